//! The pointer to the step at work, and with it the step clocks.

use crate::arguments::{Said, Slug, arguments};
use crate::clock::EndedBy;
use crate::desk::{Desk, Done};
use crate::goal::ledger::Kind;
use crate::model::{Event, NowPointer};
use crate::plan::{in_the_way, status_of};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::text::present;
use crate::timeline::name;
use crate::tool::runs;
use serde_json::json;

arguments! {
    /// Arguments of `now_set`.
    pub struct Set {
        slug: Slug = "loopSlug", "";
        task: Option<String> = "task", "Task id; leave out for the loop as a whole.";
        agent: Said = "agent", "Who is dispatched.";
        step: Said = "step", "What for.";
    }
}

/// Points at a step, which starts its clock and ends the one before it.
pub fn set(args: Set, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = match present(args.task) {
        None => {
            open.refuse_when_latched(None)?;
            None
        }
        Some(taskid) => {
            let task = open.task(&taskid)?;
            let row = &open.state.tasks[task];
            let status = status_of(row);
            if status.closed() {
                return Err(Refusal::ClosedTask { taskid: row.taskid.clone(), status }.into());
            }
            if let Some(stranded) = in_the_way(&open.state.tasks, task) {
                let taskid = row.taskid.clone();
                return Err(open.refuse_in_flight(taskid, stranded, None));
            }
            Some(task)
        }
    };

    let taskid = task.map(|t| open.state.tasks[t].taskid.clone());
    open.row_mut().now = Some(NowPointer {
        task: taskid.clone(),
        agent: args.agent.0.clone(),
        step: args.step.0.clone(),
        since: open.now,
    });
    let event = Event {
        task: taskid.clone(),
        agent: Some(args.agent.0.clone()),
        note: Some(args.step.0.clone()),
        ..open.event(name::DISPATCH)
    };
    open.record(event);
    let detail = format!("{}: {}", args.agent.0, args.step.0);
    runs::tell(&mut open, Kind::NodeDispatched, &detail, taskid.clone(), desk)?;
    if let Some(task) = task {
        open.settle(task);
    }
    let (attempt, seq) = open.open_step(taskid, args.agent.0, args.step.0);
    let reply = Reply::new().with("attempt", attempt).with("step_seq", seq);
    open.done(reply)
}

arguments! {
    /// Arguments of `now_clear`.
    pub struct Clear {
        slug: Slug = "loopSlug", "";
    }
}

/// Clears the pointer and closes the step.
pub fn clear(args: Clear, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    if open.row().now.is_none() && open.state.open_step.is_none() {
        return open.done(Reply::new());
    }
    open.row_mut().now = None;
    let closed = open.close_step(EndedBy::Explicit);
    let reply = Reply::new().with_some(
        "closed",
        closed.map(|s| {
            let ms = |end: Option<i64>| end.map(|e| e - s.started_at);
            json!({
                "step_seq": s.seq,
                "task": s.task,
                "agent": s.agent,
                "step": s.step,
                "wall_ms": ms(s.ended_at),
                "agent_ms": ms(s.agent_returned_at),
            })
        }),
    );
    open.done(reply)
}
