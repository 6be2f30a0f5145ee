//! Step clocks: opening, returning and closing steps, and their running totals.
//!
//! There is no timing call. Calls that are made anyway open and close steps, and
//! each closed one is added to the total of its task in its phase.

use crate::model::{LoopState, Step, StepTotal};
use crate::plan::same_id;
use crate::status::words;

words! {
    /// What closed a step.
    EndedBy {
        Explicit = "explicit",
        AutoNext = "auto-next",
        AutoComplete = "auto-complete",
        AutoFinish = "auto-finish",
    }
}

/// `source` of a step that was timed as it happened.
pub const LIVE: &str = "live";

/// The name of the event by which an agent says that it is back.
pub const AGENT_RETURN: &str = "agent-return";

/// Returns the total of a task in a phase, made when there is none yet.
fn total<'a>(state: &'a mut LoopState, task: Option<&str>, phase: &str, at: i64) -> &'a mut StepTotal {
    let found = state.totals.iter().position(|t| t.task.as_deref() == task && t.phase == phase);
    let index = found.unwrap_or_else(|| {
        state.totals.push(StepTotal {
            task: task.map(str::to_owned),
            phase: phase.to_owned(),
            opened: 0,
            closed: 0,
            wall_ms: 0,
            agent_ms: 0,
            orchestrator_ms: 0,
            unattributed_ms: 0,
            first_started_at: at,
        });
        state.totals.len() - 1
    });
    &mut state.totals[index]
}

/// The time from one instant to another, never negative.
fn span(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

/// Opens a step at `at` in the loop's phase. The one before it has to be closed.
pub fn open(state: &mut LoopState, task: Option<String>, agent: String, step: String, at: i64) -> Step {
    let phase = state.loop_.phase.clone();
    let total = total(state, task.as_deref(), &phase, at);
    total.opened += 1;
    let attempt = total.opened;
    state.loop_.marks.step_seq += 1;
    Step {
        seq: state.loop_.marks.step_seq,
        task,
        phase,
        agent,
        step,
        attempt,
        started_at: at,
        agent_returned_at: None,
        outcome: None,
        ended_at: None,
        ended_by: None,
        source: LIVE.to_owned(),
    }
}

/// Closes a step at `at` and adds it to the totals and the quality counts.
///
/// A clock that ran backwards is held at the step's start, or at the agent's
/// return, so that no part is negative and the parts add up to the whole.
pub fn close(state: &mut LoopState, step: &mut Step, by: EndedBy, at: i64) {
    let floor = step.agent_returned_at.unwrap_or(step.started_at).max(step.started_at);
    if at < floor {
        state.loop_.quality.clock_corrections += 1;
    }
    let ended = at.max(floor);
    step.ended_at = Some(ended);
    step.ended_by = Some(by.word().to_owned());

    let quality = &mut state.loop_.quality;
    match by {
        EndedBy::Explicit => quality.explicit += 1,
        EndedBy::AutoNext => quality.auto_next += 1,
        EndedBy::AutoComplete => quality.auto_complete += 1,
        EndedBy::AutoFinish => quality.auto_finish += 1,
    }
    if step.agent_returned_at.is_none() {
        quality.missing_returns += 1;
    }

    let wall = span(step.started_at, ended);
    let total = total(state, step.task.as_deref(), &step.phase, step.started_at);
    total.closed += 1;
    total.wall_ms += wall;
    match step.agent_returned_at {
        Some(back) => {
            total.agent_ms += span(step.started_at, back);
            total.orchestrator_ms += span(back, ended);
        }
        None => total.unattributed_ms += wall,
    }
}

/// Takes an agent's return into account and returns whether the open step
/// changed. `task` and `agent` are those of the event, left-out ones filled in.
pub fn agent_return(
    state: &mut LoopState,
    task: Option<&str>,
    agent: Option<&str>,
    outcome: Option<&str>,
    at: i64,
) -> bool {
    let quality = &mut state.loop_.quality;
    let Some(step) = &mut state.open_step else {
        quality.orphan_returns += 1;
        return false;
    };
    let same_task = match (step.task.as_deref(), task) {
        (Some(of_step), Some(returned)) => same_id(of_step, returned),
        (of_step, returned) => of_step == returned,
    };
    if !same_task || agent != Some(step.agent.as_str()) {
        quality.orphan_returns += 1;
        return false;
    }
    if step.agent_returned_at.is_some() {
        quality.duplicate_returns += 1;
        return false;
    }
    if at < step.started_at {
        quality.clock_corrections += 1;
    }
    step.agent_returned_at = Some(at.max(step.started_at));
    step.outcome = outcome.map(str::to_owned);
    true
}
