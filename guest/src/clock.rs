//! Step clocks: opening, returning and closing steps, and their running totals.
//!
//! There is no timing call. Calls that are made anyway open and close steps, and
//! each closed one is added to the total of its task in its phase.

use crate::model::{LoopState, Step, StepQuality, StepTotal};
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

/// `source` of a step that was rebuilt from the timeline.
pub const BACKFILL: &str = "backfill";

/// The step clocks of a loop: the open step and what closed ones add up to.
pub struct Clocks<'a> {
    pub totals: &'a mut Vec<StepTotal>,
    pub quality: &'a mut StepQuality,
    /// The number of the newest step.
    pub step_seq: &'a mut u64,
    pub open: &'a mut Option<Step>,
}

/// A step about to be opened.
pub struct Dispatch {
    pub task: Option<String>,
    pub phase: String,
    pub agent: String,
    pub step: String,
    pub source: &'static str,
}

/// The time from one instant to another, never negative.
fn span(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

impl<'a> Clocks<'a> {
    /// The clocks of a loaded loop.
    pub fn of(state: &'a mut LoopState) -> Clocks<'a> {
        Clocks {
            totals: &mut state.totals,
            quality: &mut state.loop_.quality,
            step_seq: &mut state.loop_.marks.step_seq,
            open: &mut state.open_step,
        }
    }

    /// The total of a task in a phase, made when there is none yet.
    fn total(&mut self, task: Option<&str>, phase: &str, at: i64) -> &mut StepTotal {
        let found = self.totals.iter().position(|t| t.task.as_deref() == task && t.phase == phase);
        let index = found.unwrap_or_else(|| {
            self.totals.push(StepTotal {
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
            self.totals.len() - 1
        });
        &mut self.totals[index]
    }

    /// Opens a step at `at`. The one before it has to be closed.
    pub fn open(&mut self, dispatch: Dispatch, at: i64) -> &Step {
        let Dispatch { task, phase, agent, step, source } = dispatch;
        let total = self.total(task.as_deref(), &phase, at);
        total.opened += 1;
        let attempt = total.opened;
        *self.step_seq += 1;
        self.open.insert(Step {
            seq: *self.step_seq,
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
            source: source.to_owned(),
        })
    }

    /// Closes the open step at `at`, adds it to the totals and the quality
    /// counts, and returns it.
    ///
    /// A clock that ran backwards is held at the step's start, or at the agent's
    /// return, so that no part is negative and the parts add up to the whole.
    pub fn close(&mut self, by: EndedBy, at: i64) -> Option<Step> {
        let mut step = self.open.take()?;
        let floor = step.agent_returned_at.unwrap_or(step.started_at).max(step.started_at);
        let ended = at.max(floor);
        step.ended_at = Some(ended);
        step.ended_by = Some(by.word().to_owned());

        let quality = &mut *self.quality;
        match by {
            EndedBy::Explicit => quality.explicit += 1,
            EndedBy::AutoNext => quality.auto_next += 1,
            EndedBy::AutoComplete => quality.auto_complete += 1,
            EndedBy::AutoFinish => quality.auto_finish += 1,
        }
        quality.clock_corrections += u32::from(at < floor);
        quality.missing_returns += u32::from(step.agent_returned_at.is_none());
        quality.backfilled += u32::from(step.source == BACKFILL);

        let wall = span(step.started_at, ended);
        let returned = step.agent_returned_at;
        let total = self.total(step.task.as_deref(), &step.phase, step.started_at);
        total.closed += 1;
        total.wall_ms += wall;
        match returned {
            Some(back) => {
                total.agent_ms += span(step.started_at, back);
                total.orchestrator_ms += span(back, ended);
            }
            None => total.unattributed_ms += wall,
        }
        Some(step)
    }

    /// Whether the open step is one of this task.
    pub fn is_open_for(&self, taskid: &str) -> bool {
        self.open.as_ref().and_then(|s| s.task.as_deref()).is_some_and(|of_step| same_id(of_step, taskid))
    }

    /// Takes an agent's return into account and returns whether the open step
    /// changed. `task` and `agent` are those of the event, left-out ones filled in.
    pub fn agent_return(
        &mut self,
        task: Option<&str>,
        agent: Option<&str>,
        outcome: Option<&str>,
        at: i64,
    ) -> bool {
        let quality = &mut *self.quality;
        let Some(step) = self.open.as_mut() else {
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
        quality.clock_corrections += u32::from(at < step.started_at);
        step.agent_returned_at = Some(at.max(step.started_at));
        step.outcome = outcome.map(str::to_owned);
        true
    }
}
