//! Lists of loops, one loop, and what takes loops or their history away.

use serde_json::{Value, json};

use crate::contract::model::{LoopState, LoopSummary};
use crate::service::{LoopsOfProject, Service};

use super::answer::Answer;
use super::page::{Column, Page, Table, cell};
use super::time::timestamp;
use super::tools::{arguments, ask, ask_for_list, entries, with_notes};

/// The loops of the project.
pub fn list(service: &Service, finished: bool) -> Result<Answer, String> {
    if !service.offers("loop_list").map_err(|error| error.to_string())? {
        let here = service.loops_here(finished).map_err(|refusal| refusal.to_string())?;
        return Ok(plain_list(vec![here], finished));
    }
    let asked = arguments(json!({ "includeFinished": finished, "limit": u32::MAX }));
    let answer = ask_for_list(service, "loop_list", asked, "loops")?;
    let mut table = Table::new(&[
        Column::Whole("SLUG"),
        Column::Text("STATUS"),
        Column::Text("PHASE"),
        Column::Number("DONE"),
        Column::Whole("UPDATED"),
        Column::Text("TITLE"),
        Column::Text("ROOT"),
    ]);
    for row in entries(&answer, "loops") {
        let tasks = &row["tasks"];
        let detached = if row["detached"] == true { " (gone)" } else { "" };
        table.row([
            cell(&row["slug"]),
            cell(&row["status"]),
            cell(&row["phase"]),
            format!("{}/{}", cell(&tasks["complete"]), cell(&tasks["total"])),
            cell(&row["updated_at"]),
            cell(&row["title"]),
            cell(&row["project_root"]) + detached,
        ]);
    }
    let none = if finished { "This project has no loop." } else { "This project has no active loop." };
    Ok(Answer::page(answer, Page::default().table(table.without_empty(), none)))
}

/// The loops of all projects.
pub fn list_everywhere(service: &Service, finished: bool) -> Result<Answer, String> {
    let projects = service.loops_of_all_projects(finished).map_err(|refusal| refusal.to_string())?;
    Ok(plain_list(projects, finished))
}

/// Loops as any logic's.
fn plain_list(projects: Vec<LoopsOfProject>, finished: bool) -> Answer {
    let mut table = Table::new(&[
        Column::Text("PROJECT"),
        Column::Whole("SLUG"),
        Column::Text("STATUS"),
        Column::Text("PHASE"),
        Column::Number("TASKS"),
        Column::Whole("UPDATED"),
        Column::Text("TITLE"),
        Column::Text("ROOT"),
    ]);
    let mut loops = Vec::new();
    for LoopsOfProject { project, loops: of_project } in projects {
        for found in of_project {
            let row = summary(&project.id, &project.name, &found);
            table.row([
                project.name.clone(),
                cell(&row["slug"]),
                cell(&row["status"]),
                cell(&row["phase"]),
                cell(&row["tasks"]["total"]),
                cell(&row["updated_at"]),
                cell(&row["title"]),
                cell(&row["project_root"]),
            ]);
            loops.push(row);
        }
    }
    let none = if finished { "There is no loop." } else { "There is no active loop." };
    Answer::page(json!({ "loops": loops }), Page::default().table(table, none))
}

fn summary(project_id: &str, project: &str, found: &LoopSummary) -> Value {
    // What a status means is the logic's to say.
    let by_status = found.tasks.iter().map(|count| (count.status.clone(), Value::from(count.count)));
    json!({
        "project": project,
        "project_id": project_id,
        "slug": found.slug,
        "title": found.title,
        "phase": found.phase,
        "status": found.status,
        "tasks": {
            "total": found.tasks.iter().map(|count| u64::from(count.count)).sum::<u64>(),
            "by_status": by_status.collect::<serde_json::Map<_, _>>(),
        },
        "updated_at": timestamp(found.updated_at),
        "project_root": found.project_root,
    })
}

/// One loop whole.
pub fn show(service: &Service, slug: &str) -> Result<Answer, String> {
    let answer = if service.offers("loop_get").map_err(|error| error.to_string())? {
        ask_for_list(service, "loop_get", arguments(json!({ "loopSlug": slug })), "tasks")?
    } else {
        plain(&service.loop_here(slug).map_err(|refusal| refusal.to_string())?)
    };
    let fields = answer["loop"].as_object().into_iter().flatten();
    let fields =
        fields.filter(|(_, value)| !value.is_null()).map(|(name, value)| (name.clone(), cell(value)));
    let mut phases = Table::new(&[Column::Text("PHASE"), Column::Text("STATUS"), Column::Whole("UPDATED")]);
    for phase in entries(&answer, "phases") {
        phases.row(["phase", "status", "updated_at"].map(|key| cell(&phase[key])));
    }
    let mut tasks = Table::new(&[
        Column::Whole("TASK"),
        Column::Whole("STATUS"),
        Column::Text("ISSUE"),
        Column::Text("PR"),
        Column::Text("DEPENDS ON"),
        Column::Text("TITLE"),
    ]);
    for task in entries(&answer, "tasks") {
        tasks.row(["taskid", "status", "issue", "pr", "depends_on", "title"].map(|key| cell(&task[key])));
    }
    let page = Page::default()
        .fields(fields)
        .line("")
        .table(phases, "It has no phases.")
        .line("")
        .table(tasks.without_empty(), "It has no tasks yet.");
    Ok(Answer::page(answer, page))
}

/// A loop as any logic's, in the form of `loop_get`.
fn plain(state: &LoopState) -> Value {
    let LoopState { loop_, phases, tasks, .. } = state;
    let phases = phases.iter().map(|phase| {
        json!({ "phase": phase.phase, "status": phase.status, "updated_at": timestamp(phase.updated_at) })
    });
    let tasks = tasks.iter().map(|task| {
        json!({
            "taskid": task.taskid,
            "status": task.status,
            "issue": task.issue,
            "pr": task.pr,
            "depends_on": task.depends_on,
            "title": task.title,
        })
    });
    json!({
        "loop": {
            "id": loop_.id,
            "slug": loop_.slug,
            "title": loop_.title,
            "goal": loop_.goal,
            "mode": loop_.mode,
            "status": loop_.status,
            "phase": loop_.phase,
            "project_root": loop_.project_root,
            "created_at": timestamp(loop_.created_at),
            "updated_at": timestamp(loop_.updated_at),
            "finished_at": loop_.finished_at.map(timestamp),
        },
        "phases": phases.collect::<Vec<_>>(),
        "tasks": tasks.collect::<Vec<_>>(),
    })
}

/// Drops the history of loops that ended long ago, or shows which ones those are.
pub fn prune(service: &Service, older_than: u32, apply: bool) -> Result<Answer, String> {
    let asked = arguments(json!({ "olderThanDays": older_than, "dryRun": !apply }));
    let answer = if apply {
        // Once: a second call would find other loops.
        ask(service, "loop_prune", asked)?
    } else {
        ask_for_list(service, "loop_prune", asked, "candidates")?
    };
    let mut table = Table::new(&[
        Column::Whole("SLUG"),
        Column::Whole("FINISHED"),
        Column::Number("EVENTS"),
        Column::Number("STEPS"),
        Column::Text("ROOT"),
    ]);
    for row in entries(&answer, "candidates") {
        table.row(["slug", "finished_at", "events", "steps", "project_root"].map(|key| cell(&row[key])));
    }
    let none = format!("No loop that ended more than {older_than} days ago has history left.");
    let some = entries(&answer, "candidates").next().is_some();
    let mut page = Page::default().table(table, &none);
    if let Some(more) = answer["more"].as_u64() {
        page = page.line(format!("… and {more} more"));
    }
    if apply {
        page = page.line(format!("Dropped the history of {} loops.", cell(&answer["pruned"])));
    } else if some {
        page = page.line(
            "Nothing was changed: this is what --apply drops. Loops, tasks, lessons and documents stay.",
        );
    }
    Ok(Answer::page(answer, page))
}

/// Deletes an ended loop.
pub fn delete(service: &Service, slug: &str, confirm: Option<String>, purge: bool) -> Result<Answer, String> {
    let asked = json!({ "loopSlug": slug, "confirm": confirm.unwrap_or_default(), "purgeDocuments": purge });
    let answer = ask(service, "loop_delete", arguments(asked))?;
    let page = Page::of(format!(
        "Deleted loop {}; its documents were {}.",
        cell(&answer["deleted"]),
        cell(&answer["documents"])
    ));
    let page = with_notes(page, &answer);
    Ok(Answer::page(answer, page))
}
