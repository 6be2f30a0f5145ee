//! The loop itself: its state, its phases, its fields, its end.

use crate::arguments::{Argument, Clearable, Ignored, Scalar, Slug, arguments, word_argument};
use crate::audit::{self, Severity};
use crate::clock::EndedBy;
use crate::counter::{LoopCounter, bump};
use crate::desk::{Accepted, Desk, Done, Halt, OpenLoop};
use crate::goal::ledger::Kind;
use crate::model::{Event, Loop, LoopSummary, Phase};
use crate::phase::{Ending, LoopStatus, Pointer, Rung, RungStatus};
use crate::plan::status_of;
use crate::refusal::{OpenTask, Refusal};
use crate::render;
use crate::reply::{self, Reply};
use crate::status::{Mode, Status, words};
use crate::text::is_blank;
use crate::timeline::name;
use crate::tool::{goals, runs};
use crate::tools::LoopFilter;
use serde_json::{Value, json};
use std::collections::BTreeSet;

arguments! {
    /// Arguments of `loop_get`.
    pub struct Get {
        slug: Slug = "loopSlug", "";
        limit: Option<u32> = "limit", "Tasks to show.";
        offset: Option<u32> = "offset", "Tasks to pass over.";
    }
}

/// Reads the whole state.
pub fn get(args: Get, desk: &mut Desk) -> Done {
    let open = desk.open(&args.slug.0)?;
    let state = &open.state;
    let tasks = state.tasks.iter().map(reply::task_row).collect();
    let offset = args.offset.unwrap_or(0) as usize;
    Accepted::reading(
        Reply::new()
            .with("loop", reply::loop_row(&state.loop_))
            .with("phases", state.phases.iter().map(reply::phase_row).collect::<Vec<_>>())
            .page("tasks", tasks, offset, args.limit.map(|l| l as usize)),
    )
}

/// Loops that a list shows unless told otherwise.
const LISTED: u32 = 50;

arguments! {
    /// Arguments of `loop_list`.
    pub struct List {
        include_finished: Option<bool> = "includeFinished", "";
        limit: Option<u32> = "limit", "Default 50.";
        offset: Option<u32> = "offset", "";
    }
}

/// Lists the project's loops.
pub fn list(args: List, desk: &mut Desk) -> Done {
    let filter = LoopFilter {
        include_finished: args.include_finished.unwrap_or(false),
        limit: args.limit.unwrap_or(LISTED),
        offset: args.offset.unwrap_or(0),
    };
    let page = desk.loop_page(filter)?;
    let shown = page.loops.len() as u64;
    let more = u64::from(page.total).saturating_sub(u64::from(filter.offset)).saturating_sub(shown);
    let gone = gone_roots(&page.loops, desk)?;
    let root = &desk.facts.project.root;
    let loops: Vec<_> = page.loops.iter().map(|l| summary_row(l, root, &gone)).collect();
    Accepted::reading(Reply::new().with("loops", loops).with_some("more", (more > 0).then_some(more)))
}

/// The roots of these loops that are no longer there.
pub fn gone_roots(loops: &[LoopSummary], desk: &mut Desk) -> Result<BTreeSet<String>, Halt> {
    let own = &desk.facts.project.root;
    let others: BTreeSet<_> = loops.iter().map(|l| &l.project_root).filter(|root| *root != own).collect();
    if others.is_empty() {
        return Ok(BTreeSet::new());
    }
    let others: Vec<String> = others.into_iter().cloned().collect();
    let there = desk.roots_exist(others.clone())?;
    Ok(others.into_iter().zip(there).filter(|(_, there)| !there).map(|(root, _)| root).collect())
}

/// One line of a list of loops; `gone` are roots that are no longer there.
pub fn summary_row(l: &LoopSummary, root: &str, gone: &BTreeSet<String>) -> Value {
    let count = |wanted: fn(Status) -> bool| -> u64 {
        let counts = l.tasks.iter().filter(|c| Status::parse(&c.status).is_some_and(wanted));
        counts.map(|c| u64::from(c.count)).sum()
    };
    let total: u64 = l.tasks.iter().map(|c| u64::from(c.count)).sum();
    let mut row = json!({
        "slug": l.slug,
        "title": l.title,
        "phase": l.phase,
        "status": l.status,
        "tasks": {
            "total": total,
            "complete": count(|s| s == Status::Complete),
            "open": total - count(Status::closed),
        },
        "updated_at": render::timestamp(l.updated_at),
    });
    if l.project_root != *root {
        if gone.contains(&l.project_root) {
            row["detached"] = json!(true);
        }
        row["project_root"] = json!(l.project_root);
    }
    row
}

arguments! {
    /// Arguments of `loop_setPhase`.
    pub struct SetPhase {
        slug: Slug = "loopSlug", "";
        phase: Pointer = "phase", "";
    }
}

/// Moves the phase pointer.
pub fn set_phase(args: SetPhase, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let word = args.phase.word();
    let reply = Reply::new().with("phase", word);
    if open.row().phase == word {
        return open.done(reply.with("unchanged", true));
    }
    let from = std::mem::replace(&mut open.row_mut().phase, word.to_owned());
    let event = Event { from: Some(from), to: Some(word.to_owned()), ..open.event(name::PHASE) };
    open.record(event);
    open.done(reply)
}

arguments! {
    /// Arguments of `loop_setPhaseStatus`.
    pub struct SetPhaseStatus {
        slug: Slug = "loopSlug", "";
        phase: Rung = "phase", "";
        status: RungStatus = "status", "left-open records a decision not to do it.";
    }
}

/// Sets the status of one rung of the ladder.
pub fn set_phase_status(args: SetPhaseStatus, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let (phase, status) = (args.phase.word(), args.status.word());
    let reply = Reply::new().with("phase", phase).with("status", status);
    let at = open.state.phases.iter().position(|p| p.phase == phase);
    let rung = match at {
        Some(i) if open.state.phases[i].status == status => {
            return open.done(reply.with("unchanged", true));
        }
        Some(i) => i,
        // A loop that another logic wrote may lack the rung.
        None => {
            open.state.phases.push(Phase {
                phase: phase.to_owned(),
                status: String::new(),
                updated_at: open.now,
            });
            open.state.phases.len() - 1
        }
    };
    if args.phase == Rung::FeatureMerge && args.status == RungStatus::InProgress {
        let proofs = desk.proofs(&open.row().id.clone())?;
        let goals = goals::findings(&open, desk)?;
        let report = audit::audit(&open.state, &proofs, &goals);
        let fails = report.findings.into_iter().filter(|f| f.severity == Severity::Fail);
        let fails: Vec<_> = fails.map(|f| format!("{}: {}", f.code, f.message)).collect();
        if !fails.is_empty() {
            return Err(Refusal::AuditFails(fails).into());
        }
    }
    let now = open.now;
    let row = open.phase_mut(rung);
    row.updated_at = row.updated_at.max(now);
    let from = std::mem::replace(&mut row.status, status.to_owned());
    let event = Event {
        phase: Some(phase.to_owned()),
        from: Some(from),
        to: Some(status.to_owned()),
        ..open.event(name::PHASE_STATUS)
    };
    open.record(event);
    open.done(reply)
}

arguments! {
    /// Arguments of `loop_setAwaitingUser`.
    pub struct SetAwaitingUser {
        slug: Slug = "loopSlug", "";
        awaiting: Clearable<String> = "awaiting", "What the user is to decide; \"\" clears.";
    }
}

/// Sets or clears what the loop waits for its user to decide.
pub fn set_awaiting_user(args: SetAwaitingUser, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let awaiting = args.awaiting.0.filter(|t| !is_blank(t));
    let reply = Reply::new().with("awaiting_user", awaiting.clone());
    let reply = reply.with_some(
        "reminder",
        awaiting
            .as_ref()
            .map(|_| "recorded only: no one has been asked yet, so put the question to the user now"),
    );
    if open.row().awaiting_user == awaiting {
        return open.done(reply.with("unchanged", true));
    }
    let before = std::mem::replace(&mut open.row_mut().awaiting_user, awaiting.clone());
    let event = match awaiting {
        Some(text) => Event { note: Some(text), ..open.event(name::AWAITING_USER) },
        None => Event { note: before, ..open.event(name::AWAITING_CLEARED) },
    };
    open.record(event);
    open.done(reply)
}

words! {
    /// A field that `loop_setField` stores.
    Field {
        Mode = "mode",
        DefaultBranch = "default_branch",
        BranchMode = "branch_mode",
        FeatureBranch = "feature_branch",
        Legal = "legal",
        MemoryHarvest = "memory_harvest",
        DocsSync = "docs_sync",
        DeferredGate = "deferred_gate",
        QaReport = "qa_report",
        UnresolvedPr = "f_unresolved_pr",
        SecurityDeferred = "f_security_deferred",
        GoalConfig = "goal_config",
    }
}
word_argument!(Field);

arguments! {
    /// Arguments of `loop_setField`.
    pub struct SetField {
        slug: Slug = "loopSlug", "";
        field: Field = "field", "";
        value: Clearable<Scalar> = "value", "Text; for f_* a whole number; null clears.";
    }
}

/// The place of a field in the loop's row.
enum Place<'a> {
    Mode(&'a mut String),
    Text(&'a mut Option<String>),
    Count(&'a mut Option<u32>),
    /// A goal configuration and the digest that it is pinned by.
    Pin(&'a mut Option<String>, &'a mut Option<String>),
}

impl Field {
    fn of(self, l: &mut Loop) -> Place<'_> {
        match self {
            Field::Mode => Place::Mode(&mut l.mode),
            Field::DefaultBranch => Place::Text(&mut l.default_branch),
            Field::BranchMode => Place::Text(&mut l.branch_mode),
            Field::FeatureBranch => Place::Text(&mut l.feature_branch),
            Field::Legal => Place::Text(&mut l.legal),
            Field::MemoryHarvest => Place::Text(&mut l.memory_harvest),
            Field::DocsSync => Place::Text(&mut l.docs_sync),
            Field::DeferredGate => Place::Text(&mut l.deferred_gate),
            Field::QaReport => Place::Text(&mut l.qa_report),
            Field::UnresolvedPr => Place::Count(&mut l.f_unresolved_pr),
            Field::SecurityDeferred => Place::Count(&mut l.f_security_deferred),
            Field::GoalConfig => Place::Pin(&mut l.goal_config, &mut l.goal_config_sha256),
        }
    }
}

/// Stores one field.
pub fn set_field(args: SetField, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let field = args.field;
    let value = args.value.0.map(|s| s.0);
    let mut row = open.row().clone();
    let (from, to) = match field.of(&mut row) {
        Place::Mode(place) => {
            let mode = match value {
                Some(value) => Mode::read(value, "value", &mut Ignored::default())?,
                None => {
                    return Err(Refusal::FieldValue {
                        field: field.word(),
                        takes: "a mode",
                        got: "null".to_owned(),
                    }
                    .into());
                }
            };
            let from = std::mem::replace(place, mode.word().to_owned());
            (Some(from), Some(mode.word().to_owned()))
        }
        Place::Pin(path, sha256) => {
            let pin = match value {
                Some(Value::String(path)) if !is_blank(&path) => Some(goals::pin(&path, desk)?),
                None => None,
                Some(other) => {
                    return Err(Refusal::FieldValue {
                        field: field.word(),
                        takes: "the path of a goal configuration",
                        got: other.to_string(),
                    }
                    .into());
                }
            };
            // The timeline says what is pinned, and not only where it lies.
            let word = |path: Option<String>, sha256: Option<String>| {
                path.map(|path| format!("{path} sha256:{}", sha256.unwrap_or_default()))
            };
            let before = word(path.take(), sha256.take());
            (*path, *sha256) = pin.unzip();
            (before, word(path.clone(), sha256.clone()))
        }
        Place::Text(place) => {
            let text = value.map(|v| match v {
                Value::String(s) => s,
                number => number.to_string(),
            });
            (std::mem::replace(place, text.clone()), text)
        }
        Place::Count(place) => {
            let count = match value {
                Some(value) => Some(u32::read(value, "value", &mut Ignored::default())?),
                None => None,
            };
            let word = |c: Option<u32>| c.map(|c| c.to_string());
            (word(std::mem::replace(place, count)), word(count))
        }
    };
    let shown = match field.of(&mut row) {
        Place::Count(count) => json!(count),
        Place::Mode(text) => json!(text),
        Place::Text(text) => json!(text),
        Place::Pin(path, _) => json!(path),
    };
    let pinned = row.goal_config_sha256.clone().filter(|_| field == Field::GoalConfig);
    let reply = Reply::new().with("field", field.word()).with("value", shown).with_some("sha256", pinned);
    if from == to {
        return open.done(reply.with("unchanged", true));
    }
    *open.row_mut() = row;
    let event = Event { from, to, note: Some(field.word().to_owned()), ..open.event(name::FIELD) };
    open.record(event);
    open.done(reply)
}

arguments! {
    /// Arguments of `loop_bumpCounter`.
    pub struct BumpCounter {
        slug: Slug = "loopSlug", "";
        counter: LoopCounter = "counter", "";
        by: Option<i64> = "by", "Default 1; may be negative.";
    }
}

/// Adds to a counter of the loop.
pub fn bump_counter(args: BumpCounter, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let place = args.counter.of(open.row_mut());
    let before = *place;
    *place = bump(before, args.by.unwrap_or(1));
    let value = *place;
    let event = counter_event(&open, None, args.counter.word(), before, value);
    open.record(event);
    let over = args.counter.cap().is_some_and(|cap| value > cap);
    open.done(
        Reply::new().with("counter", args.counter.word()).with("value", value).with("capExceeded", over),
    )
}

/// The event of a counter that was bumped.
pub fn counter_event(open: &OpenLoop, task: Option<String>, counter: &str, from: u32, to: u32) -> Event {
    Event {
        task,
        from: Some(from.to_string()),
        to: Some(to.to_string()),
        note: Some(counter.to_owned()),
        ..open.event(name::COUNTER)
    }
}

arguments! {
    /// Arguments of `loop_finish`.
    pub struct Finish {
        slug: Slug = "loopSlug", "";
        status: Ending = "status", "";
    }
}

/// Ends the loop: clears the pointer, the latch and the user's gate, and closes
/// the open step.
pub fn finish(args: Finish, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let ending = args.status;
    let reply = Reply::new().with("status", ending.status().word()).with("phase", ending.phase().word());
    if let Some(ended) = open.ended() {
        if ended == ending.status() {
            return open.done(reply.with("already", true));
        }
        return Err(Refusal::OtherEnding { slug: args.slug.0, status: ended.word().to_owned() }.into());
    }
    if ending == Ending::Done {
        open.refuse_when_latched(None)?;
        let left: Vec<_> = open
            .state
            .tasks
            .iter()
            .filter(|t| !status_of(t).closed())
            .map(|t| OpenTask { taskid: t.taskid.clone(), status: t.status.clone() })
            .collect();
        if !left.is_empty() {
            return Err(Refusal::OpenTasks(left).into());
        }
    }
    open.close_step(EndedBy::AutoFinish);
    let event = Event {
        from: Some(LoopStatus::Active.word().to_owned()),
        to: Some(ending.status().word().to_owned()),
        ..open.event(name::LOOP_FINISH)
    };
    open.record(event);
    runs::tell(&mut open, Kind::RunFinished, ending.status().word(), None, desk)?;
    let now = open.now;
    let row = open.row_mut();
    row.status = ending.status().word().to_owned();
    row.phase = ending.phase().word().to_owned();
    row.finished_at = Some(now.max(row.created_at));
    row.now = None;
    row.blocked = None;
    row.awaiting_user = None;
    open.done(reply)
}

arguments! {
    /// Arguments of `loop_render`.
    pub struct Render {
        slug: Slug = "loopSlug", "";
    }
}

/// Writes every view anew.
pub fn render_views(args: Render, desk: &mut Desk) -> Done {
    let open = desk.open(&args.slug.0)?;
    open.refuse_when_detached()?;
    let memories = desk.memories(&open.row().id.clone())?;
    let views = render::all(&open.state, &memories, &desk.facts.version);
    let folder = desk.folder(&open.row().slug);
    let files: Vec<_> = views.views.iter().map(|v| format!("{folder}/{}", v.path)).collect();
    Accepted::rendering(Reply::new().with("files", files), views)
}

arguments! {
    /// Arguments of `loop_clearBlock`.
    pub struct ClearBlock {
        slug: Slug = "loopSlug", "";
        resolution: String = "resolution", "What the user decided.";
    }
}

/// Lifts the latch on the user's word, which goes to the timeline with what was
/// waived.
pub fn clear_block(args: ClearBlock, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    if is_blank(&args.resolution) {
        return Err(Refusal::NoResolution.into());
    }
    let Some(block) = open.row().blocked.clone() else {
        return open.done(
            Reply::new().with("cleared", Value::Null).with("note", "nothing was blocked; nothing changed"),
        );
    };
    let event = Event {
        task: Some(block.task.clone()),
        note: Some(format!(
            "waived {} on {}: {}; resolution: {}",
            block.op, block.task, block.reason, args.resolution
        )),
        ..open.event(name::BLOCK_CLEARED)
    };
    open.record(event);
    open.row_mut().blocked = None;
    open.done(
        Reply::new().with("cleared", json!({ "op": block.op, "task": block.task, "reason": block.reason })),
    )
}
