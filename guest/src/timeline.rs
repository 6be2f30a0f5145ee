//! Events: the names that calls write by themselves, and what a caller's event
//! is turned into.

use crate::model::{Event, Loop};
use crate::text::{is_absent, present};

/// The events that calls write by themselves.
pub mod name {
    pub const LOOP_INIT: &str = "loop-init";
    pub const PHASE: &str = "phase";
    pub const PHASE_STATUS: &str = "phase-status";
    pub const AWAITING_USER: &str = "awaiting-user";
    pub const AWAITING_CLEARED: &str = "awaiting-cleared";
    pub const FIELD: &str = "field";
    pub const COUNTER: &str = "counter";
    pub const TASKS_DERIVE: &str = "tasks-derive";
    pub const TASKS_APPEND: &str = "tasks-append";
    pub const TASKS_SPLIT: &str = "tasks-split";
    pub const TASK_SET_STATUS: &str = "task_setStatus";
    pub const TASK_SET_STATUS_AUTO: &str = "task_setStatus:auto";
    pub const TASK_COMPLETE: &str = "task_complete";
    pub const DISPATCH: &str = "dispatch";
    pub const TOOL_REFUSED: &str = "tool-refused";
    pub const BLOCK_CLEARED: &str = "block-cleared";
    pub const LOOP_FINISH: &str = "loop-finish";
}

/// Spellings of an outcome, in lower case, and the word they stand for. Task
/// statuses are not among them and never rewritten.
const OUTCOMES: &[(&str, &str)] = &[
    ("completed", "done"),
    ("finished", "done"),
    ("success", "done"),
    ("succeeded", "done"),
    ("partial", "incomplete"),
    ("unfinished", "incomplete"),
    ("stuck", "blocked"),
];

/// What a caller appends, before it is normalised.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub event: String,
    pub task: Option<String>,
    pub phase: Option<String>,
    pub from: Option<String>,
    pub to: Option<String>,
    pub agent: Option<String>,
    pub note: Option<String>,
}

/// An outcome in the vocabulary of agents; absent spellings are `None`.
fn outcome(value: Option<String>) -> Option<String> {
    let value = present(value)?;
    let folded = value.trim().to_lowercase();
    match OUTCOMES.iter().find(|(spelling, _)| *spelling == folded) {
        Some((_, word)) => Some((*word).to_owned()),
        None => Some(value),
    }
}

/// Turns what a caller told into an event: absent spellings are null, outcomes
/// are folded, and a left-out task, agent or phase comes from the loop.
///
/// `seq` stays 0: it is given when the event is recorded.
pub fn normalise(told: Told, l: &Loop, at: i64) -> Event {
    let now = l.now.as_ref();
    let named = |value: Option<String>| value.filter(|v| !is_absent(v)).map(|v| v.trim().to_owned());
    Event {
        seq: 0,
        at,
        event: told.event.trim().to_owned(),
        phase: named(told.phase).or_else(|| Some(l.phase.clone())),
        task: named(told.task).or_else(|| now.and_then(|n| n.task.clone())),
        from: outcome(told.from),
        to: outcome(told.to),
        agent: named(told.agent).or_else(|| now.map(|n| n.agent.clone())),
        note: present(told.note),
        evidence: None,
        issue: None,
        pr: None,
        branch: None,
    }
}
