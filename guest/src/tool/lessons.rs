//! Lessons.

use crate::arguments::{Said, Slug, arguments};
use crate::desk::{Desk, Done};
use crate::reply::Reply;
use crate::text::present;

arguments! {
    /// Arguments of `memory_append`.
    pub struct Append {
        slug: Slug = "loopSlug", "";
        agent: Said = "agent", "Who learned it.";
        note: Said = "note", "The lesson; keeps its lines.";
        taskid: Option<String> = "taskid", "";
    }
}

/// Keeps a lesson.
pub fn append(args: Append, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = match present(args.taskid) {
        None => None,
        Some(taskid) => Some(open.state.tasks[open.find_task(&taskid)?].taskid.clone()),
    };
    let id = open.row().id.clone();
    let mut memories = desk.memories(&id)?;
    let memory = open.remember(args.agent.0, task, args.note.0);
    let reply = Reply::new().with("seq", memory.seq);
    memories.push(memory.clone());
    open.done_with_lessons(reply, memories)
}
