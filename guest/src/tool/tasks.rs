//! The moves of one task.

use crate::arguments::{Reference, Slug, TaskId, arguments};
use crate::counter::{TaskCounter, bump};
use crate::desk::{Desk, Done, OpenLoop};
use crate::goal::ledger::Kind;
use crate::model::{Event, Task};
use crate::plan::{Plan, in_the_way, same_id, status_of};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::resume::{self, NextTask};
use crate::status::{IllegalMove, Mode, Status, check_move, completable_from};
use crate::text::{is_absent, is_blank, present};
use crate::timeline::name;
use crate::tool::loops::counter_event;
use crate::tool::runs;

arguments! {
    /// Arguments of `task_setStatus`.
    pub struct SetStatus {
        slug: Slug = "loopSlug", "";
        taskid: TaskId = "taskid", "";
        status: Status = "status", "";
        evidence: Option<String> = "evidence", "What was checked and what came out; for merged the merge SHA.";
        issue: Option<Reference> = "issue", "";
        pr: Option<Reference> = "pr", "";
        branch: Option<String> = "branch", "";
    }
}

/// What a status call brings along beside the status.
struct Brought {
    evidence: Option<String>,
    issue: Option<String>,
    pr: Option<String>,
    branch: Option<String>,
}

impl Brought {
    fn is_nothing(&self) -> bool {
        self.evidence.is_none() && self.issue.is_none() && self.pr.is_none() && self.branch.is_none()
    }

    /// Writes it over the task and returns whether anything changed.
    fn write(&self, task: &mut Task) -> bool {
        let before = (task.last_evidence.clone(), task.issue.clone(), task.pr.clone(), task.branch.clone());
        let fields = [
            (&mut task.last_evidence, &self.evidence),
            (&mut task.issue, &self.issue),
            (&mut task.pr, &self.pr),
            (&mut task.branch, &self.branch),
        ];
        for (place, value) in fields {
            if value.is_some() {
                place.clone_from(value);
            }
        }
        before != (task.last_evidence.clone(), task.issue.clone(), task.pr.clone(), task.branch.clone())
    }
}

/// Whether a text proves anything: it says something, and not that there is
/// nothing.
fn proves(evidence: &str) -> bool {
    !is_blank(evidence) && !is_absent(evidence)
}

/// Moves a task.
pub fn set_status(args: SetStatus, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = open.task(&args.taskid.0)?;
    let (mode, to) = (open.mode(), args.status);
    let (taskid, from) = (open.state.tasks[task].taskid.clone(), status_of(&open.state.tasks[task]));
    let brought = Brought {
        evidence: args.evidence.filter(|e| proves(e)),
        issue: present(args.issue.map(|r| r.0)),
        pr: present(args.pr.map(|r| r.0)),
        branch: present(args.branch),
    };

    if from == to {
        return stay(open, task, &brought);
    }
    if to.in_flight()
        && let Some(stranded) = in_the_way(&open.state.tasks, task)
    {
        return Err(open.refuse_in_flight(taskid, stranded, Some(to)));
    }
    let hops = match check_move(mode, from, to) {
        Ok(hops) => hops,
        Err(illegal) => {
            let refusal = match illegal {
                IllegalMove::OnlyThrough(tool) => Refusal::OnlyThrough { taskid, to, tool },
                IllegalMove::NoSuchMove(path) => Refusal::Illegal { taskid, from, to, path },
            };
            return Err(refuse_move(open, task, from, to, refusal));
        }
    };
    if to.needs_evidence() && brought.evidence.is_none() {
        let refusal = Refusal::NoEvidence { taskid, what: to.word(), argument: "evidence" };
        return Err(open.refuse_and_latch(task, Some(to), refusal));
    }

    let mut at = from;
    let auto = hops.len() > 1;
    for (i, hop) in hops.iter().enumerate() {
        let last = i + 1 == hops.len();
        let event = Event {
            task: Some(taskid.clone()),
            from: Some(at.word().to_owned()),
            to: Some(hop.word().to_owned()),
            ..open.event(if last { name::TASK_SET_STATUS } else { name::TASK_SET_STATUS_AUTO })
        };
        let event = if last {
            Event {
                evidence: brought.evidence.clone(),
                issue: brought.issue.clone(),
                pr: brought.pr.clone(),
                branch: brought.branch.clone(),
                ..event
            }
        } else {
            event
        };
        open.record(event);
        at = *hop;
    }
    if to == Status::Failed {
        let detail = brought.evidence.as_deref().unwrap_or_default();
        runs::tell(&mut open, Kind::NodeFailed, detail, Some(taskid.clone()), desk)?;
    }
    let row = open.task_mut(task);
    brought.write(row);
    row.status = to.word().to_owned();
    open.settle(task);
    let next = open.owed_next(task);
    open.done(
        Reply::new()
            .with("taskid", taskid)
            .with("from", from.word())
            .with("to", to.word())
            .with_some("auto", auto.then(|| hops[0].word()))
            .with("next", next),
    )
}

/// A status set to the value it has: new evidence is kept, no move recorded.
fn stay(mut open: OpenLoop, task: usize, brought: &Brought) -> Done {
    let word = open.state.tasks[task].status.clone();
    let taskid = open.state.tasks[task].taskid.clone();
    let mut row = open.state.tasks[task].clone();
    let changed = !brought.is_nothing() && brought.write(&mut row);
    if changed {
        *open.task_mut(task) = row;
        let now = open.now;
        let row = open.task_mut(task);
        row.updated_at = row.updated_at.max(now);
        let event = Event {
            task: Some(taskid.clone()),
            from: Some(word.clone()),
            to: Some(word.clone()),
            evidence: brought.evidence.clone(),
            issue: brought.issue.clone(),
            pr: brought.pr.clone(),
            branch: brought.branch.clone(),
            ..open.event(name::TASK_SET_STATUS)
        };
        open.record(event);
    }
    let next = open.owed_next(task);
    open.done(
        Reply::new()
            .with("taskid", taskid)
            .with("from", word.clone())
            .with("to", word)
            .flag("unchanged", !changed)
            .with("next", next),
    )
}

/// A refused move latches, unless the task can never move again.
fn refuse_move(open: OpenLoop, task: usize, from: Status, to: Status, refusal: Refusal) -> crate::desk::Halt {
    if from.terminal() { refusal.into() } else { open.refuse_and_latch(task, Some(to), refusal) }
}

arguments! {
    /// Arguments of `task_bumpCounter`.
    pub struct BumpCounter {
        slug: Slug = "loopSlug", "";
        taskid: TaskId = "taskid", "";
        counter: TaskCounter = "counter", "";
        by: Option<i64> = "by", "Default 1; may be negative.";
    }
}

/// Adds to a counter of a task.
pub fn bump_counter(args: BumpCounter, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = open.task(&args.taskid.0)?;
    let row = open.task_mut(task);
    let taskid = row.taskid.clone();
    let place = args.counter.of(row);
    let before = *place;
    *place = bump(before, args.by.unwrap_or(1));
    let value = *place;
    let event = counter_event(&open, Some(taskid.clone()), args.counter.word(), before, value);
    open.record(event);
    open.settle(task);
    open.done(
        Reply::new()
            .with("taskid", taskid)
            .with("counter", args.counter.word())
            .with("value", value)
            .with("capExceeded", value > args.counter.cap()),
    )
}

arguments! {
    /// Arguments of `task_complete`.
    pub struct Complete {
        slug: Slug = "loopSlug", "";
        taskid: TaskId = "taskid", "";
        evidence: String = "mergeEvidence", "The merge SHA.";
    }
}

/// Completes a task.
pub fn complete(args: Complete, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = open.find_task(&args.taskid.0)?;
    let mode: Mode = open.mode();
    let row = &open.state.tasks[task];
    let (taskid, from) = (row.taskid.clone(), status_of(row));
    if from == Status::Complete {
        let reply = completed(&open, &taskid).with("already", true);
        return open.done(reply);
    }
    open.refuse_when_latched(Some(task))?;
    if let Some((dependency, status)) = Plan::new(&open.state.tasks).first_unmet(task) {
        return Err(Refusal::Unmet { taskid, dependency, status: status.to_owned() }.into());
    }
    if !completable_from(mode).any(|s| s == from) {
        let refusal = Refusal::NotMerged {
            taskid,
            status: from,
            from: completable_from(mode).collect(),
            owed: open.owed(task).action,
        };
        return Err(refuse_move(open, task, from, Status::Complete, refusal));
    }
    if !proves(&args.evidence) {
        let refusal =
            Refusal::NoEvidence { taskid, what: Status::Complete.word(), argument: "mergeEvidence" };
        return Err(open.refuse_and_latch(task, Some(Status::Complete), refusal));
    }

    let event = Event {
        task: Some(taskid.clone()),
        from: Some(from.word().to_owned()),
        to: Some(Status::Complete.word().to_owned()),
        evidence: Some(args.evidence.clone()),
        ..open.event(name::TASK_COMPLETE)
    };
    open.record(event);
    runs::tell(&mut open, Kind::NodeSucceeded, &args.evidence, Some(taskid.clone()), desk)?;
    let now = open.now;
    let row = open.task_mut(task);
    row.status = Status::Complete.word().to_owned();
    row.last_evidence = Some(args.evidence);
    row.completed_at = Some(now.max(row.created_at));
    open.settle(task);
    open.close_step_of(&taskid);
    let now_task = open.row().now.as_ref().and_then(|n| n.task.as_deref());
    if now_task.is_some_and(|id| same_id(id, &taskid)) {
        open.row_mut().now = None;
    }
    let reply = completed(&open, &taskid);
    open.done(reply)
}

fn completed(open: &OpenLoop, taskid: &str) -> Reply {
    let remaining = open.state.tasks.iter().filter(|t| !status_of(t).closed()).count();
    Reply::new()
        .with("taskid", taskid)
        .with("status", Status::Complete.word())
        .with("remaining", remaining)
        .with("next", open.upcoming())
}

impl OpenLoop {
    /// What comes after a call on this task: what it owes, or what the loop does
    /// once it is closed.
    fn owed_next(&self, task: usize) -> String {
        if status_of(&self.state.tasks[task]).closed() { self.upcoming() } else { self.owed(task).action }
    }

    /// The next thing to do in the loop, in one line.
    fn upcoming(&self) -> String {
        match resume::next_task(&self.state.tasks, self.mode()) {
            NextTask::Task(i) => format!("{}: {}", self.state.tasks[i].taskid, self.owed(i).action),
            NextTask::Stuck(i) => resume::stuck(&self.state.tasks, i),
            NextTask::None => {
                "every task is closed: go on with the phases after the build, then loop_finish".to_owned()
            }
        }
    }
}
