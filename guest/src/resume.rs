//! Where work on a loop goes on: derived from its state alone, in one order of
//! precedence, and never a call that the guards would refuse.

use crate::model::{LoopState, Phase, Task};
use crate::owed::{self, Owed};
use crate::phase::{LoopStatus, Rung, RungStatus};
use crate::plan::{Plan, in_the_way, same_id, status_of};
use crate::status::{Mode, Status, completable_from};

/// What kind of point it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The loop has ended.
    Done,
    /// The user decides first.
    Gate,
    Task,
    Phase,
    /// Nothing is open any more.
    Finish,
}

impl Kind {
    /// The word in answers.
    pub fn word(self) -> &'static str {
        match self {
            Kind::Done => "done",
            Kind::Gate => "gate",
            Kind::Task => "task",
            Kind::Phase => "phase",
            Kind::Finish => "finish",
        }
    }
}

/// The call that records a step once it is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextCall {
    pub tool: &'static str,
    /// Known arguments; the slug is not among them.
    pub arguments: Vec<(&'static str, String)>,
    /// Arguments that the step itself has to bring.
    pub needs: Vec<&'static str>,
}

/// A point at which work goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resume {
    pub kind: Kind,
    /// The step or phase.
    pub point: String,
    pub taskid: Option<String>,
    pub agent: Option<String>,
    pub why: String,
    /// One line that says what to do.
    pub next_action: String,
    pub next_call: Option<NextCall>,
}

/// The task to go on with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextTask {
    Task(usize),
    /// Tasks are open and none can move; the first of them.
    Stuck(usize),
    /// Every task is closed, or there is none.
    None,
}

/// Finds the task to go on with: one in flight, else the first open one in plan
/// order; a task that only waits for others is passed over for one that can move.
pub fn next_task(tasks: &[Task], mode: Mode) -> NextTask {
    let open = |i: &usize| !status_of(&tasks[*i]).closed();
    let Some(first) = (0..tasks.len()).find(open) else { return NextTask::None };
    let plan = Plan::new(tasks);
    let at_its_end = |status: Status| completable_from(mode).any(|s| s == status);
    let can_move = |i: &usize| {
        let status = status_of(&tasks[*i]);
        // A task in flight waits for its dependencies at its end alone.
        (status.in_flight() && !at_its_end(status)) || plan.first_unmet(*i).is_none()
    };
    let in_flight = (0..tasks.len()).filter(|i| status_of(&tasks[*i]).in_flight());
    let found = in_flight
        .chain((0..tasks.len()).filter(open).filter(|i| in_the_way(tasks, *i).is_none()))
        .find(can_move);
    found.map_or(NextTask::Stuck(first), NextTask::Task)
}

/// Says what an open task that cannot move waits for.
pub fn stuck(tasks: &[Task], task: usize) -> String {
    let waits: Vec<_> =
        Plan::new(tasks).all_unmet(task).into_iter().map(|(id, status)| format!("{id} ({status})")).collect();
    format!("ESCALATE: no task can move; {} waits for {}", tasks[task].taskid, waits.join(", "))
}

/// Phases that come after the tasks, in order.
const AFTER_BUILD: &[Rung] =
    &[Rung::Qa, Rung::FindingsGate, Rung::Memory, Rung::AgentsSync, Rung::FeatureMerge];

/// Phases that come before there are tasks, in order.
const BEFORE_TASKS: &[Rung] = &[Rung::Clarify, Rung::Discovery, Rung::Legal, Rung::Plan];

/// The status of a rung; one that the loop lacks has not begun.
pub fn rung_status(phases: &[Phase], rung: Rung) -> RungStatus {
    let row = phases.iter().find(|p| p.phase == rung.word());
    row.and_then(|p| RungStatus::parse(&p.status)).unwrap_or(RungStatus::Pending)
}

/// The call that records a task's step.
fn call_of(mode: Mode, task: &Task, owed: &Owed) -> Option<NextCall> {
    let id = ("taskid", task.taskid.clone());
    let to = |status: Status, needs: &[&'static str]| {
        Some(NextCall {
            tool: "task_setStatus",
            arguments: vec![id.clone(), ("status", status.word().to_owned())],
            needs: needs.to_vec(),
        })
    };
    match owed.point {
        "issue" => to(Status::IssueOpen, &["issue"]),
        "build" | "rework" | "retry" => match status_of(task) {
            Status::InProgress => to(Status::Verified, &["evidence"]),
            _ => to(Status::InProgress, &[]),
        },
        "security" => to(Status::Secure, &["evidence"]),
        "pr" => to(Status::PrOpen, &["pr", "branch"]),
        "review" => to(Status::InReview, &[]),
        "merge" => to(Status::Merged, &["evidence"]),
        "complete" => Some(NextCall {
            tool: "task_complete",
            arguments: vec![id],
            needs: vec![if mode == Mode::Poc { "mergeEvidence (the commit)" } else { "mergeEvidence" }],
        }),
        _ => None,
    }
}

/// The call as a person would write it.
fn written(call: &NextCall) -> String {
    let known = call.arguments.iter().map(|(name, value)| format!("{name}: {value}"));
    let needed = call.needs.iter().map(|name| format!("{name}: …"));
    format!("{}({})", call.tool, known.chain(needed).collect::<Vec<_>>().join(", "))
}

fn on_task(state: &LoopState, task: usize, why: String) -> Resume {
    let row = &state.tasks[task];
    let mode = Mode::parse(&state.loop_.mode).unwrap_or(Mode::Standard);
    let owed = owed::next_step(mode, status_of(row), row.tech.as_deref(), row.retries);
    let next_call = call_of(mode, row, &owed);
    let then = next_call.as_ref().map(|c| format!("; then {}", written(c))).unwrap_or_default();
    Resume {
        kind: Kind::Task,
        point: owed.point.to_owned(),
        taskid: Some(row.taskid.clone()),
        agent: owed.agent,
        why,
        next_action: format!("{}: {}{then}", row.taskid, owed.action),
        next_call,
    }
}

/// The task that the latch names. Where its own step would be refused, or it has
/// none, a call on it that lifts the block comes first.
fn on_latched(state: &LoopState, task: usize, reason: &str) -> Resume {
    let row = &state.tasks[task];
    let why = format!("a refused call is not put right yet: {reason}");
    let resume = on_task(state, task, why);
    let status = status_of(row);
    let waits = Plan::new(&state.tasks).first_unmet(task);
    let lift = |tool, arguments: Vec<(&'static str, String)>, needs: Vec<&'static str>, text: String| {
        Resume { next_action: text, next_call: Some(NextCall { tool, arguments, needs }), ..resume.clone() }
    };
    let id = ("taskid", row.taskid.clone());
    match (status, waits) {
        (Status::Skipped, _) => lift(
            "task_setStatus",
            vec![id, ("status", Status::Pending.word().to_owned())],
            vec![],
            format!(
                "{0} is skipped: set it to pending to take it up again, or let the user decide",
                row.taskid
            ),
        ),
        (_, Some((dependency, _))) if resume.point == "complete" => lift(
            "now_set",
            vec![("task", row.taskid.clone())],
            vec!["agent", "step"],
            format!(
                "{0} waits for {dependency}: call now_set on {0}, which lifts the block, then finish {dependency}",
                row.taskid
            ),
        ),
        _ => resume,
    }
}

fn on_phase(state: &LoopState, rung: Rung) -> Resume {
    let status = rung_status(&state.phases, rung);
    let word = rung.word();
    let interrupted = status == RungStatus::InProgress;
    let why = if interrupted {
        format!("phase {word} was interrupted: it is in-progress, which is not done")
    } else {
        format!("phase {word} is the first that is not closed ({})", status.word())
    };
    let to = if interrupted { RungStatus::Done } else { RungStatus::InProgress };
    let next_action = if interrupted {
        format!("finish phase {word}, then loop_setPhaseStatus(phase: {word}, status: done)")
    } else {
        format!("begin phase {word}: loop_setPhaseStatus(phase: {word}, status: in-progress)")
    };
    Resume {
        kind: Kind::Phase,
        point: word.to_owned(),
        taskid: None,
        agent: None,
        why,
        next_action,
        next_call: Some(NextCall {
            tool: "loop_setPhaseStatus",
            arguments: vec![("phase", word.to_owned()), ("status", to.word().to_owned())],
            needs: vec![],
        }),
    }
}

/// Whether a rung needs nothing more. `left-open` is a recorded decision.
pub fn is_closed(status: RungStatus) -> bool {
    matches!(status, RungStatus::Done | RungStatus::Skipped | RungStatus::NotNeeded | RungStatus::LeftOpen)
}

/// Derives the point at which work goes on.
pub fn resume_point(state: &LoopState) -> Resume {
    let l = &state.loop_;
    let plain = |kind, point: &str, why: String, next_action: String, next_call| Resume {
        kind,
        point: point.to_owned(),
        taskid: None,
        agent: None,
        why,
        next_action,
        next_call,
    };
    if l.status != LoopStatus::Active.word() {
        let why = format!("the loop is finished ({})", l.status);
        return plain(Kind::Done, "done", why, "nothing: new work needs a new loop".to_owned(), None);
    }
    if let Some(question) = &l.awaiting_user {
        let call =
            NextCall { tool: "loop_setAwaitingUser", arguments: vec![], needs: vec!["awaiting: null"] };
        let action = "put the question to the user and do as they say; then clear it with loop_setAwaitingUser(awaiting: null)";
        return plain(
            Kind::Gate,
            "gate",
            format!("the loop waits for its user: {question}"),
            action.to_owned(),
            Some(call),
        );
    }
    if let Some(block) = &l.blocked {
        let named = state.tasks.iter().position(|t| same_id(&t.taskid, &block.task));
        if let Some(task) = named {
            return on_latched(state, task, &block.reason);
        }
    }
    let mode = Mode::parse(&l.mode).unwrap_or(Mode::Standard);
    match next_task(&state.tasks, mode) {
        NextTask::Task(task) => {
            let row = &state.tasks[task];
            let why = if status_of(row).in_flight() {
                format!("{} is in flight ({})", row.taskid, row.status)
            } else {
                format!("{} is the first open task that can move ({})", row.taskid, row.status)
            };
            on_task(state, task, why)
        }
        NextTask::Stuck(task) => Resume {
            taskid: Some(state.tasks[task].taskid.clone()),
            ..plain(
                Kind::Task,
                "escalate",
                "every open task waits for another".to_owned(),
                stuck(&state.tasks, task),
                None,
            )
        },
        NextTask::None => {
            let before = if state.tasks.is_empty() { BEFORE_TASKS } else { &[] };
            let open = |rung: &&Rung| !is_closed(rung_status(&state.phases, **rung));
            match before.iter().chain(AFTER_BUILD).find(open) {
                Some(rung) => on_phase(state, *rung),
                None => plain(
                    Kind::Finish,
                    "finish",
                    "every task and phase is closed".to_owned(),
                    "loop_finish(status: done)".to_owned(),
                    Some(NextCall {
                        tool: "loop_finish",
                        arguments: vec![("status", "done".to_owned())],
                        needs: vec![],
                    }),
                ),
            }
        }
    }
}
