//! Projects: what they are recognised by, what they are called, and two becoming one.

use serde_json::{Value, json};

use crate::service::{ProjectChanges, Service};
use crate::store::{Common, ProjectSummary};

use super::answer::Answer;
use super::page::{Column, Page, Table, cell};
use super::time::timestamp;

/// What to do with projects; without a word they are listed.
#[derive(Debug, clap::Subcommand)]
pub enum Action {
    /// Show projects that may be one: the same remote, the same repository, the same folder
    Duplicates,
    /// Move loops, folders, runs and archives of DROP to KEEP; KEEP's name, icon and tags stay
    Merge {
        /// The project that stays: its id, the beginning of it, or its name
        keep: String,
        /// The project that goes
        drop: String,
    },
    /// Change what a project is called and shown with
    Edit {
        /// The project: its id, the beginning of it, or its name
        project: String,
        /// Its new name
        #[arg(long)]
        name: Option<String>,
        /// An emoji or a short word; "" for none
        #[arg(long)]
        icon: Option<String>,
        /// A tag, as often as there are tags, in place of all it has; "" for none
        #[arg(long = "tag", value_name = "TAG")]
        tags: Option<Vec<String>>,
    },
}

/// Runs what is to be done with projects.
pub fn run(service: &Service, action: Option<Action>) -> Result<Answer, String> {
    match action {
        None => list(service),
        Some(Action::Duplicates) => duplicates(service),
        Some(Action::Merge { keep, drop }) => merge(service, &keep, &drop),
        Some(Action::Edit { project, name, icon, tags }) => {
            edit(service, &project, ProjectChanges { name, icon, tags })
        }
    }
}

fn row(project: &ProjectSummary, root: Option<&str>) -> Value {
    let ProjectSummary { project: identity, icon, tags, created_at, roots, .. } = project;
    json!({
        "id": identity.id,
        "name": identity.name,
        "icon": icon,
        "tags": tags,
        "remote_key": identity.remote_key,
        "repo_key": identity.repo_key,
        "roots": roots.iter().map(|root| root.root.as_str()).collect::<Vec<_>>(),
        "here": roots.iter().any(|known| Some(known.root.as_str()) == root),
        "loops": project.loops,
        "unfinished": project.unfinished,
        "archives": project.archives,
        "created_at": timestamp(*created_at),
        "used_at": timestamp(project.used_at),
    })
}

/// The name with the icon before it.
fn title(row: &Value) -> String {
    match row["icon"].as_str() {
        Some(icon) => format!("{icon} {}", cell(&row["name"])),
        None => cell(&row["name"]),
    }
}

fn list(service: &Service) -> Result<Answer, String> {
    let projects = service.projects().map_err(|refusal| refusal.to_string())?;
    let mut table = Table::new(&[
        Column::Whole("PROJECT"),
        Column::Text("NAME"),
        Column::Number("LOOPS"),
        Column::Number("OPEN"),
        Column::Number("ARCHIVES"),
        Column::Whole("USED"),
        Column::Text("TAGS"),
        Column::Text("RECOGNISED BY"),
        Column::Text("ROOTS"),
    ]);
    let rows: Vec<_> = projects.iter().map(|project| row(project, service.root())).collect();
    for row in &rows {
        let key = if row["remote_key"].is_null() { &row["repo_key"] } else { &row["remote_key"] };
        table.row([
            cell(&row["id"]),
            title(row) + if row["here"] == true { " (here)" } else { "" },
            cell(&row["loops"]),
            cell(&row["unfinished"]),
            cell(&row["archives"]),
            cell(&row["used_at"]),
            cell(&row["tags"]),
            cell(key),
            cell(&row["roots"]),
        ]);
    }
    let page = Page::default().table(table.without_empty(), "No project is known yet.");
    Ok(Answer::page(json!({ "projects": rows }), page))
}

fn duplicates(service: &Service) -> Result<Answer, String> {
    let groups = service.duplicate_projects().map_err(|refusal| refusal.to_string())?;
    let mut table = Table::new(&[
        Column::Text("IN COMMON"),
        Column::Whole("PROJECT"),
        Column::Text("NAME"),
        Column::Number("LOOPS"),
        Column::Whole("CREATED"),
        Column::Text("ROOTS"),
    ]);
    let mut rows = Vec::new();
    for (group, projects) in &groups {
        let common = match group.common {
            Common::Remote => "remote",
            Common::Repository => "repository",
            Common::Root => "root",
        };
        let projects: Vec<_> = projects.iter().map(|project| row(project, service.root())).collect();
        for project in &projects {
            table.row([
                format!("{common} {}", group.value),
                cell(&project["id"]),
                title(project),
                cell(&project["loops"]),
                cell(&project["created_at"]),
                cell(&project["roots"]),
            ]);
        }
        rows.push(json!({ "common": common, "value": group.value, "projects": projects }));
    }
    let page = Page::default().table(table, "No two projects have anything in common.");
    let page = if rows.is_empty() {
        page
    } else {
        page.line("").line(
            "Where two of them are one project, `projects merge` moves all that belongs to the second to the first.",
        )
    };
    Ok(Answer::page(json!({ "duplicates": rows }), page))
}

fn merge(service: &Service, keep: &str, drop: &str) -> Result<Answer, String> {
    let done = service.merge_projects(keep, drop).map_err(|refusal| refusal.to_string())?;
    let answer = json!({
        "kept": { "id": done.keep.id, "name": done.keep.name },
        "dropped": { "id": done.drop.id, "name": done.drop.name },
        "loops": done.merged.loops,
        "roots": done.merged.roots,
        "runs": done.merged.runs,
        "archives": done.merged.archives,
    });
    let page = Page::of(format!(
        "{} is now part of {}: {} loops, {} roots, {} runs and {} archives moved.",
        done.drop.name,
        done.keep.name,
        done.merged.loops,
        done.merged.roots,
        done.merged.runs,
        done.merged.archives
    ));
    Ok(Answer::page(answer, page))
}

fn edit(service: &Service, project: &str, changes: ProjectChanges) -> Result<Answer, String> {
    let changed = service.edit_project(project, changes).map_err(|refusal| refusal.to_string())?;
    let answer = row(&changed, service.root());
    let fields = ["id", "name", "icon", "tags"].map(|key| (key, cell(&answer[key])));
    let page = Page::default().fields(fields);
    Ok(Answer::page(answer, page))
}
