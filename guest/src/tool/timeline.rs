//! Events that a caller appends.

use crate::arguments::{Said, Slug, arguments};
use crate::clock::AGENT_RETURN;
use crate::desk::{Desk, Done};
use crate::reply::event_row;
use crate::timeline::{Told, normalise};

arguments! {
    /// Arguments of `event_append`.
    pub struct Append {
        slug: Slug = "loopSlug", "";
        event: Said = "event", "Its name, e.g. agent-return, gate, escalate.";
        task: Option<String> = "task", "";
        phase: Option<String> = "phase", "";
        from: Option<String> = "from", "";
        to: Option<String> = "to", "The outcome, e.g. done, incomplete, blocked.";
        agent: Option<String> = "agent", "";
        note: Option<String> = "note", "";
    }
}

/// Appends an event after normalising it; an agent's return stamps the step.
pub fn append(args: Append, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let told = Told {
        event: args.event.0,
        task: args.task,
        phase: args.phase,
        from: args.from,
        to: args.to,
        agent: args.agent,
        note: args.note,
    };
    let event = normalise(told, open.row(), open.now);
    if event.event == AGENT_RETURN {
        open.agent_return(&event);
    }
    let reply = event_row(open.record(event));
    open.done(reply)
}
