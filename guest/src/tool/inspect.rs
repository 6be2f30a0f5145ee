//! Looking at a loop without changing it: recovery, audit, timings, files.

use crate::arguments::{Slug, arguments};
use crate::audit::{self, Owner, Severity};
use crate::counter::TaskCounter;
use crate::desk::{Accepted, Desk, Done, Halt, OpenLoop};
use crate::manifest::{self, Priority};
use crate::model::{Event, FileEntry, LoopState, LoopSummary, Step, Task};
use crate::phase::{Rung, RungStatus};
use crate::plan::status_of;
use crate::render::{self, timestamp};
use crate::reply::{self, NARROW, Reply, WIDE};
use crate::resume::{Kind, Resume, resume_point, rung_status};
use crate::status::Status;
use crate::timing;
use crate::tool::goals;
use crate::tool::init::project;
use crate::tool::loops::{gone_roots, summary_row};
use crate::tools::{LoopFilter, Query};
use serde_json::{Value, json};

/// Events that recovery shows unless told otherwise.
const EVENTS_SHOWN: u32 = 25;

/// Loops that are offered when it is not clear which one is meant.
const CANDIDATES: u32 = 20;

/// What a session that lost its memory forgets first.
const PROTOCOL: &[&str] = &[
    "read the must files in context before you dispatch anybody",
    "do nextAction, and nothing before it; one task in flight at a time",
    "now_set before each dispatch, event_append agent-return after it",
    "a status is moved by task_setStatus with evidence, never by editing a file",
    "a refusal says what to do: make the corrective call, do not work around it",
    "what waits for the user is asked again, never answered for them",
    "ESCALATE means: stop and ask the user",
];

arguments! {
    /// Arguments of `loop_recover`.
    pub struct Recover {
        slug: Option<Slug> = "loopSlug", "Leave out to find the one active loop.";
        event_limit: Option<u32> = "eventLimit", "Default 25.";
        full: Option<bool> = "full", "Whole rows.";
    }
}

/// Rebuilds the working context of a session that lost it.
pub fn recover(args: Recover, desk: &mut Desk) -> Done {
    let slug = match args.slug {
        Some(slug) => slug.0,
        None => match the_active_loop(desk)? {
            Ok(slug) => slug,
            Err(reply) => return Accepted::reading(reply),
        },
    };
    let open = desk.open(&slug)?;
    let (id, slug) = (open.row().id.clone(), open.row().slug.clone());
    let limit = args.event_limit.unwrap_or(EVENTS_SHOWN);
    let page = |path: &str| Query::FileText((id.clone(), path.to_owned()));
    desk.gather(vec![
        Query::RecentEvents((id.clone(), limit)),
        Query::Memories(id.clone()),
        Query::Documents(id.clone()),
        Query::LoopFiles(id.clone()),
        page(render::LOOP_PAGE),
        page(render::LESSONS_PAGE),
    ])?;
    let events = desk.recent_events(&id, limit)?;
    let memories = desk.memories(&id)?;
    let documents = desk.documents(&id)?;
    let files = desk.loop_files(&id)?;
    let mut stale_views = Vec::new();
    if files.is_some() {
        for (path, rendered) in rendered_pages(&open.state, &memories, &desk.facts.version) {
            let on_disk = desk.file_text(&id, path)?;
            if on_disk.as_deref().map(without_version) != Some(without_version(&rendered)) {
                stale_views.push(path);
            }
        }
    }

    let state = &open.state;
    let resume = resume_point(state);
    let present = files.as_deref().unwrap_or_default();
    let context = manifest::manifest(state, &resume, present, &documents);
    let mut warnings = warnings(state, &resume, &desk.facts.version);
    match &files {
        _ if open.detached => warnings.push(format!(
            "detached loop: its project root {} is gone, so no file is written; database and documents answer",
            state.loop_.project_root
        )),
        None if documents.is_empty() => {
            warnings.push("the loop's folder is missing; loop_render writes the views anew".to_owned());
        }
        None => warnings.push(
            "the loop's folder is missing; loop_render writes the views anew, loop_materialize the documents"
                .to_owned(),
        ),
        Some(files) => stale_views.extend(log_differs(state, files).then_some(render::EVENT_LOG)),
    }
    if !stale_views.is_empty() {
        warnings.push(format!(
            "differs from the database: {}; loop_render puts it right",
            stale_views.join(", ")
        ));
    }
    for entry in context.iter().filter(|e| e.priority == Priority::Must && !e.exists) {
        warnings.push(format!("must-read file missing: {}", entry.path));
    }

    let full = args.full.unwrap_or(false);
    let folder = desk.folder(&slug);
    let tasks: Vec<Value> = if full {
        state.tasks.iter().map(reply::task_row).collect()
    } else {
        // Open ones first: when the answer gets too long, closed ones give way.
        let closed = |t: &&Task| status_of(t).closed();
        let open = state.tasks.iter().filter(|t| !closed(t));
        open.chain(state.tasks.iter().filter(closed)).map(short_task).collect()
    };
    let bound = if full || args.event_limit.is_some() { WIDE } else { NARROW };
    let context: Vec<_> = context
        .into_iter()
        .map(|e| {
            json!({
                "path": format!("{folder}/{}", e.path),
                "exists": e.exists,
                "bytes": e.bytes,
                "priority": e.priority.word(),
                "why": e.why,
            })
        })
        .collect();
    Accepted::reading(
        Reply::new()
            .within(bound)
            .with("recovered", true)
            .with("loop", if full { reply::loop_row(&state.loop_) } else { short_loop(state) })
            .with("phases", phases(state))
            .with("tasks", tasks)
            .with("now", now_row(state, desk.facts.now))
            .with("resume", resume_row(resume))
            .with("context", context)
            .with("recentEvents", recent(&events, full))
            .with("warnings", warnings)
            .with("protocol", json!(PROTOCOL))
            .with("project", project(desk)),
    )
}

/// The slug of the only active loop, or the answer that offers candidates.
fn the_active_loop(desk: &mut Desk) -> Result<Result<String, Reply>, Halt> {
    let filter = |include_finished| LoopFilter { include_finished, limit: CANDIDATES, offset: 0 };
    let active = desk.loop_page(filter(false))?;
    let root = desk.facts.project.root.clone();
    let gone = gone_roots(&active.loops, desk)?;
    // A loop of another root that is still there is offered and never resumed unasked.
    let ours = |l: &&LoopSummary| l.project_root == root || gone.contains(&l.project_root);
    let here: Vec<_> = active.loops.iter().filter(ours).collect();
    if let ([only], 1) = (here.as_slice(), active.total) {
        return Ok(Ok(only.slug.clone()));
    }
    let (reason, page, gone, guidance) = if active.total > 0 {
        let guidance = if here.len() == 1 || active.total == 1 {
            "another folder of this project has an active loop: ask the user which one is meant, then pass its slug"
        } else {
            "several loops are active: ask the user which one is meant, then pass its slug"
        };
        ("ambiguous", active, gone, guidance)
    } else {
        let all = desk.loop_page(filter(true))?;
        let guidance = if all.total == 0 {
            "this project has no loop at all: is the server in the right folder? A new one begins with loop_init"
        } else {
            "every loop of this project is finished: new work begins with loop_init"
        };
        let gone = gone_roots(&all.loops, desk)?;
        ("no-active-loop", all, gone, guidance)
    };
    let candidates: Vec<_> = page.loops.iter().map(|l| summary_row(l, &root, &gone)).collect();
    let more = u64::from(page.total).saturating_sub(candidates.len() as u64);
    Ok(Err(Reply::new()
        .within(NARROW)
        .with("recovered", false)
        .with("reason", reason)
        .with("candidates", candidates)
        .with("guidance", guidance)
        .with("project", project(desk))
        .with_some("more", (more > 0).then_some(more))))
}

/// The pages that a full render writes, by name.
fn rendered_pages(
    state: &LoopState,
    memories: &[crate::model::Memory],
    version: &str,
) -> [(&'static str, String); 2] {
    [
        (render::LOOP_PAGE, render::loop_page(state, version)),
        (render::LESSONS_PAGE, render::lessons_page(&state.loop_, memories, version)),
    ]
}

/// A page without the line that names the server's version.
fn without_version(page: &str) -> String {
    page.lines().filter(|line| !line.starts_with("mcp: ")).collect::<Vec<_>>().join("\n")
}

/// Whether the event log on disk cannot be what the database has.
fn log_differs(state: &LoopState, files: &[FileEntry]) -> bool {
    let log = files.iter().find(|f| f.path == render::EVENT_LOG);
    state.loop_.pruned_at.is_none() && log.map(|f| f.bytes) != Some(state.loop_.marks.log_bytes)
}

fn warnings(state: &LoopState, resume: &Resume, version: &str) -> Vec<String> {
    let l = &state.loop_;
    let mut warnings = Vec::new();
    if let Some(block) = &l.blocked {
        warnings.push(format!("LOOP BLOCKED: {} was refused on {}: {}", block.op, block.task, block.reason));
    }
    if let Some(question) = l.awaiting_user.as_ref().filter(|_| resume.kind == Kind::Gate) {
        warnings.push(format!("open user gate: {question}"));
    }
    if is_stale(state) {
        warnings.push("stale pointer: a dispatch was on its way when the session ended; look at what it left behind before you repeat it".to_owned());
    }
    let in_flight: Vec<_> =
        state.tasks.iter().filter(|t| status_of(t).in_flight()).map(|t| t.taskid.as_str()).collect();
    if in_flight.len() > 1 {
        warnings.push(format!("{} tasks are in flight: {}", in_flight.len(), in_flight.join(", ")));
    }
    for task in &state.tasks {
        let status = status_of(task);
        if matches!(status, Status::Blocked | Status::Failed) {
            warnings.push(format!("{} is {}", task.taskid, status.word()));
        }
        let over = over_caps(task);
        if !over.is_empty() && !status.closed() {
            warnings.push(format!("{} is over its cap: {}", task.taskid, over.join(", ")));
        }
    }
    for rung in Rung::ALL {
        if rung_status(&state.phases, *rung) == RungStatus::InProgress {
            warnings.push(format!("phase {} was interrupted: in-progress is not done", rung.word()));
        }
    }
    match l.mcp_version.as_deref() {
        Some(created_by) if created_by != version => {
            warnings.push(format!("created by version {created_by}, this is {version}"));
        }
        _ => {}
    }
    warnings
}

/// The counters of a task that are over their cap.
fn over_caps(task: &Task) -> Vec<String> {
    let mut row = task.clone();
    let over = TaskCounter::ALL.iter().filter_map(|c| {
        let value = *c.of(&mut row);
        (value > c.cap()).then(|| format!("{} {value}", c.word()))
    });
    over.collect()
}

/// Whether a dispatch was on its way: the pointer is set, and its step has neither
/// an agent's return nor an end.
fn is_stale(state: &LoopState) -> bool {
    state.loop_.now.is_some() && state.open_step.as_ref().is_some_and(|s| s.agent_returned_at.is_none())
}

fn now_row(state: &LoopState, at: i64) -> Value {
    let Some(now) = &state.loop_.now else { return Value::Null };
    let elapsed = state.open_step.as_ref().map(|s| at.saturating_sub(s.started_at).max(0));
    let mut row = json!({
        "task": now.task,
        "agent": now.agent,
        "step": now.step,
        "since": timestamp(now.since),
        "elapsed_ms": elapsed,
    });
    if is_stale(state) {
        row["stale"] = json!(true);
    }
    row
}

fn resume_row(r: Resume) -> Value {
    let call = r.next_call.map(|c| {
        let arguments: serde_json::Map<_, _> =
            c.arguments.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect();
        json!({ "tool": c.tool, "arguments": arguments, "needs": c.needs })
    });
    json!({
        "kind": r.kind.word(),
        "point": r.point,
        "taskid": r.taskid,
        "agent": r.agent,
        "why": r.why,
        "nextAction": r.next_action,
        "nextCall": call,
    })
}

/// The loop's row without what is unset.
fn short_loop(state: &LoopState) -> Value {
    let mut row = reply::loop_row(&state.loop_);
    if let Some(map) = row.as_object_mut() {
        map.retain(|key, value| !value.is_null() && *value != json!(0) && !key.starts_with("now_"));
        if map.get("title") == map.get("goal") {
            map.shift_remove("title");
        }
    }
    row
}

fn phases(state: &LoopState) -> Vec<Value> {
    state.phases.iter().map(|p| json!({ "phase": p.phase, "status": p.status })).collect()
}

/// A task in short: what it is, where it stands, and what is off.
fn short_task(task: &Task) -> Value {
    const TITLE_SHOWN: usize = 60;
    let title = match task.title.char_indices().nth(TITLE_SHOWN) {
        Some((end, _)) => format!("{}…", &task.title[..end]),
        None => task.title.clone(),
    };
    let mut row = json!({ "taskid": task.taskid, "title": title, "status": task.status });
    let over = over_caps(task);
    if !over.is_empty() {
        row["over_cap"] = json!(over);
    }
    row
}

/// Events as recovery shows them: whole, or without what is unset.
fn recent(events: &[Event], full: bool) -> Vec<Value> {
    events
        .iter()
        .map(|e| {
            let mut row = reply::event_row(e).into_value();
            if let Some(map) = row.as_object_mut().filter(|_| !full) {
                map.retain(|key, value| !value.is_null() && key != "phase");
                map.values_mut().for_each(shorten);
            }
            row
        })
        .collect()
}

fn shorten(value: &mut Value) {
    const SHOWN: usize = 80;
    if let Value::String(text) = value
        && let Some((end, _)) = text.char_indices().nth(SHOWN)
    {
        text.truncate(end);
        text.push('…');
    }
}

arguments! {
    /// Arguments of `loop_audit`.
    pub struct Audit {
        slug: Slug = "loopSlug", "";
    }
}

/// Holds the loop against its own record.
pub fn audit(args: Audit, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let proofs = desk.proofs(&open.row().id.clone())?;
    backfill(&mut open, desk)?;
    let goals = goals::findings(&open, desk)?;
    let report = audit::audit(&open.state, &proofs, &goals);
    let findings: Vec<_> = report
        .findings
        .iter()
        .map(|f| {
            let mut row = json!({ "code": f.code, "severity": f.severity.word(), "owner": f.owner.word() });
            if let Some(taskid) = &f.taskid {
                row["taskid"] = json!(taskid);
            }
            row["message"] = json!(f.message);
            row["fix"] = json!(f.fix);
            row
        })
        .collect();
    let of_owner = |owner: Owner| -> Vec<String> {
        let owned = report.findings.iter().filter(|f| f.owner == owner);
        owned.map(|f| f.taskid.as_ref().map_or(f.code.to_owned(), |t| format!("{} {t}", f.code))).collect()
    };
    let tasks: Vec<_> = report
        .tasks
        .iter()
        .map(|t| {
            json!({
                "taskid": t.taskid,
                "status": t.status,
                "verdict": t.verdict.word(),
                "issue": t.issue,
                "pr": t.pr,
                "merge_sha": t.merge_sha,
            })
        })
        .collect();
    let count = |severity: Severity| report.findings.iter().filter(|f| f.severity == severity).count();
    let complete = report.tasks.iter().filter(|t| t.status == Status::Complete.word()).count();
    Accepted::reading(
        Reply::new()
            .within(NARROW)
            .with("verdict", report.verdict.word())
            .with("tasks", tasks)
            .with("findings", findings)
            .with("selfCorrectable", of_owner(Owner::Orchestrator))
            .with("userDecisions", of_owner(Owner::User))
            .with(
                "summary",
                json!({
                    "tasks": report.tasks.len(),
                    "complete": complete,
                    "fail": count(Severity::Fail),
                    "warn": count(Severity::Warn),
                    "timing": timing::summary(&timing::report(&open.state)),
                }),
            )
            .with("guidance", audit::guidance(&report)),
    )
}

/// Rebuilds the totals of a loop that has a history and no steps. Nothing of it is
/// stored.
fn backfill(open: &mut OpenLoop, desk: &mut Desk) -> Result<Option<Vec<Step>>, Halt> {
    if !timing::needs_backfill(&open.state) {
        return Ok(None);
    }
    let events = desk.timeline(&open.row().id.clone())?;
    let rebuilt = timing::backfill(&events);
    open.state.totals = rebuilt.totals;
    open.state.loop_.quality = rebuilt.quality;
    open.state.open_step = rebuilt.steps.iter().find(|s| s.ended_at.is_none()).cloned();
    Ok(Some(rebuilt.steps))
}

/// Steps that the report names as the slowest.
const SLOWEST: u32 = 5;

arguments! {
    /// Arguments of `loop_timings`.
    pub struct Timings {
        slug: Slug = "loopSlug", "";
    }
}

/// Reports what the loop's steps took.
pub fn timings(args: Timings, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let slowest = match backfill(&mut open, desk)? {
        None => desk.slowest_steps(&open.row().id.clone(), SLOWEST)?,
        Some(mut steps) => {
            steps.retain(|s| s.ended_at.is_some());
            steps.sort_by_key(|s| (std::cmp::Reverse(wall_ms(s)), s.seq));
            steps.truncate(SLOWEST as usize);
            steps
        }
    };
    let state = &open.state;
    let report = timing::report(state);
    let quality = state.loop_.quality;
    let rows = |rows: &[timing::Row], key: &str, clock: bool| -> Vec<Value> {
        rows.iter().map(|r| total_row(r, Some(key), clock)).collect()
    };
    Accepted::reading(
        Reply::new()
            .with("loop", total_row(&report.whole, None, true))
            .with("tasks", rows(&report.tasks, "taskid", true))
            .with("phases", rows(&report.phases, "phase", false))
            .with("slowest", slowest.iter().map(step_row).collect::<Vec<_>>())
            .with("running", state.open_step.as_ref().map(step_row))
            .with(
                "quality",
                json!({
                    "steps": report.whole.steps,
                    "explicit": quality.explicit,
                    "auto_next": quality.auto_next,
                    "auto_complete": quality.auto_complete,
                    "auto_finish": quality.auto_finish,
                    "missing_returns": quality.missing_returns,
                    "orphan_returns": quality.orphan_returns,
                    "duplicate_returns": quality.duplicate_returns,
                    "backfilled": quality.backfilled,
                    "clock_corrections": quality.clock_corrections,
                }),
            ),
    )
}

fn total_row(row: &timing::Row, key: Option<&str>, clock: bool) -> Value {
    let mut reply = Reply::new();
    if let Some(key) = key {
        reply = reply.with(key, row.key.clone());
    }
    reply = reply
        .with("steps", row.steps)
        .with("wall_ms", row.wall_ms)
        .with("agent_ms", row.agent_ms)
        .with("orchestrator_ms", row.orchestrator_ms)
        .with("unattributed_ms", row.unattributed_ms);
    if clock { reply.with("clock_ms", row.clock_ms).into_value() } else { reply.into_value() }
}

fn wall_ms(step: &Step) -> Option<i64> {
    step.ended_at.map(|end| end - step.started_at)
}

fn step_row(s: &Step) -> Value {
    json!({
        "seq": s.seq,
        "task": s.task,
        "phase": s.phase,
        "agent": s.agent,
        "step": s.step,
        "attempt": s.attempt,
        "started_at": timestamp(s.started_at),
        "wall_ms": wall_ms(s),
        "agent_ms": s.agent_returned_at.map(|back| back - s.started_at),
        "outcome": s.outcome,
        "ended_by": s.ended_by,
        "source": s.source,
    })
}

arguments! {
    /// Arguments of `loop_files`.
    pub struct Files {
        slug: Slug = "loopSlug", "";
        limit: Option<u32> = "limit", "";
        offset: Option<u32> = "offset", "";
    }
}

/// Lists what is on disk in the loop's folder.
pub fn files(args: Files, desk: &mut Desk) -> Done {
    let open = desk.open(&args.slug.0)?;
    let slug = open.row().slug.clone();
    let files = desk.loop_files(&open.row().id.clone())?;
    let folder = desk.folder(&slug);
    let rows = files.iter().flatten().map(|f| {
        json!({ "path": format!("{folder}/{}", f.path), "bytes": f.bytes, "modified_at": timestamp(f.modified_at) })
    });
    Accepted::reading(
        Reply::new()
            .page("files", rows.collect(), args.offset.unwrap_or(0) as usize, args.limit.map(|l| l as usize))
            .with_some(
                "note",
                files.is_none().then_some("the loop's folder does not exist; loop_render makes it"),
            ),
    )
}
