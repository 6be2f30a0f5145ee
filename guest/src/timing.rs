//! What steps took: the report over running totals, and steps rebuilt from a
//! timeline.

use crate::clock::{AGENT_RETURN, BACKFILL, Clocks, Dispatch, EndedBy};
use crate::model::{Event, LoopState, Step, StepQuality, StepTotal};
use crate::timeline::name;

/// The closed steps of a task, a phase, or the loop; milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The task or phase; `None` for the loop, and for steps without a task.
    pub key: Option<String>,
    pub steps: u32,
    pub wall_ms: u64,
    pub agent_ms: u64,
    pub orchestrator_ms: u64,
    pub unattributed_ms: u64,
    /// From the beginning to the end; `None` while it goes on.
    pub clock_ms: Option<u64>,
}

impl Row {
    fn add(&mut self, total: &StepTotal) {
        self.steps += total.closed;
        self.wall_ms += total.wall_ms;
        self.agent_ms += total.agent_ms;
        self.orchestrator_ms += total.orchestrator_ms;
        self.unattributed_ms += total.unattributed_ms;
    }

    fn of<'a>(key: Option<&str>, totals: impl Iterator<Item = &'a StepTotal>) -> Row {
        let mut row = Row { key: key.map(str::to_owned), ..Row::default() };
        totals.for_each(|t| row.add(t));
        row
    }
}

/// The sums of a loop's steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    pub whole: Row,
    /// In plan order, the loop's own steps first; those without steps left out.
    pub tasks: Vec<Row>,
    /// In the order of their first step.
    pub phases: Vec<Row>,
}

fn clock(from: i64, to: Option<i64>) -> Option<u64> {
    to.map(|to| u64::try_from(to.saturating_sub(from)).unwrap_or(0))
}

/// Sums up the running totals of a loop.
pub fn report(state: &LoopState) -> Report {
    let totals = &state.totals;
    let mut whole = Row::of(None, totals.iter());
    whole.clock_ms = clock(state.loop_.created_at, state.loop_.finished_at);

    let of_task = |key: Option<&str>| {
        let mine = totals.iter().filter(move |t| t.task.as_deref() == key);
        (Row::of(key, mine.clone()), mine.map(|t| t.first_started_at).min())
    };
    let mut tasks = Vec::new();
    if totals.iter().any(|t| t.task.is_none()) {
        tasks.push(of_task(None).0);
    }
    for task in &state.tasks {
        if let (mut row, Some(first)) = of_task(Some(&task.taskid)) {
            row.clock_ms = clock(first, task.completed_at);
            tasks.push(row);
        }
    }

    let mut order: Vec<(i64, &str)> = Vec::new();
    for total in totals {
        match order.iter_mut().find(|(_, phase)| *phase == total.phase) {
            Some((first, _)) => *first = total.first_started_at.min(*first),
            None => order.push((total.first_started_at, &total.phase)),
        }
    }
    order.sort_unstable();
    let of_phase = |phase: &str| Row::of(Some(phase), totals.iter().filter(move |t| t.phase == phase));
    let phases = order.into_iter().map(|(_, phase)| of_phase(phase)).collect();
    Report { whole, tasks, phases }
}

/// Steps that were rebuilt, and what they add up to.
#[derive(Clone, Debug, PartialEq)]
pub struct Backfilled {
    /// By number; the last one may be open.
    pub steps: Vec<Step>,
    pub totals: Vec<StepTotal>,
    pub quality: StepQuality,
}

/// The counts of a loop without steps.
pub const NO_QUALITY: StepQuality = StepQuality {
    explicit: 0,
    auto_next: 0,
    auto_complete: 0,
    auto_finish: 0,
    missing_returns: 0,
    orphan_returns: 0,
    duplicate_returns: 0,
    backfilled: 0,
    clock_corrections: 0,
};

/// Rebuilds steps from a timeline, oldest event first.
///
/// A dispatch opens a step and closes the one before it, an agent's return stamps
/// it, `task_complete` closes its task's, and the end of the loop closes the last.
/// What cannot be known is when the pointer was cleared in between, so a rebuilt
/// step's wall time is an upper bound.
pub fn backfill(events: &[Event]) -> Backfilled {
    let (mut totals, mut quality, mut step_seq, mut open) = (Vec::new(), NO_QUALITY, 0, None);
    let mut clocks =
        Clocks { totals: &mut totals, quality: &mut quality, step_seq: &mut step_seq, open: &mut open };
    let mut steps = Vec::new();
    for event in events {
        match event.event.as_str() {
            name::DISPATCH => {
                steps.extend(clocks.close(EndedBy::AutoNext, event.at));
                let text = |value: &Option<String>| value.clone().unwrap_or_default();
                let dispatch = Dispatch {
                    task: event.task.clone(),
                    phase: text(&event.phase),
                    agent: text(&event.agent),
                    step: text(&event.note),
                    source: BACKFILL,
                };
                clocks.open(dispatch, event.at);
            }
            AGENT_RETURN => {
                clocks.agent_return(
                    event.task.as_deref(),
                    event.agent.as_deref(),
                    event.to.as_deref(),
                    event.at,
                );
            }
            name::TASK_COMPLETE if event.task.as_deref().is_some_and(|t| clocks.is_open_for(t)) => {
                steps.extend(clocks.close(EndedBy::AutoComplete, event.at));
            }
            name::LOOP_FINISH => steps.extend(clocks.close(EndedBy::AutoFinish, event.at)),
            _ => {}
        }
    }
    steps.extend(open);
    Backfilled { steps, totals, quality }
}

/// Whether a loop's steps have to be rebuilt to be known: it has a history and no
/// step was ever recorded.
pub fn needs_backfill(state: &LoopState) -> bool {
    let marks = state.loop_.marks;
    marks.step_seq == 0 && marks.event_seq > 0 && state.loop_.pruned_at.is_none()
}

/// A duration for people: `1h 02m`, `3m 04s`, `5.6s`, `120ms`.
pub fn duration(ms: u64) -> String {
    let (seconds, minutes, hours) = (ms / 1_000, ms / 60_000, ms / 3_600_000);
    if hours > 0 {
        format!("{hours}h {:02}m", minutes % 60)
    } else if minutes > 0 {
        format!("{minutes}m {:02}s", seconds % 60)
    } else if seconds > 0 {
        format!("{seconds}.{}s", ms % 1_000 / 100)
    } else {
        format!("{ms}ms")
    }
}

/// The totals in one line.
pub fn summary(report: &Report) -> String {
    let whole = &report.whole;
    if whole.steps == 0 {
        return "no closed steps yet".to_owned();
    }
    format!(
        "{} closed steps, {} in all: agents {}, orchestrator {}, unattributed {}",
        whole.steps,
        duration(whole.wall_ms),
        duration(whole.agent_ms),
        duration(whole.orchestrator_ms),
        duration(whole.unattributed_ms)
    )
}
