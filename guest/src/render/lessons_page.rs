//! `memory.md`: what a loop's agents learned, day by day.

use super::front_matter::Header;
use super::text::{block, inline};
use super::time::{civil, push_clock, push_date};
use crate::model::{Loop, Memory};

/// Renders the page of a loop's lessons.
///
/// `memories` are all of them, oldest first; `version` is the running server's.
/// Days follow each other even where the clock once ran backwards; within a day
/// the lessons keep their order.
pub fn lessons_page(l: &Loop, memories: &[Memory], version: &str) -> String {
    let length: usize = memories.iter().map(|lesson| lesson.note.len() + 128).sum();
    let mut out = String::with_capacity(512 + l.title.len() + length);
    Header {
        kind: "memory",
        slug: &l.slug,
        id: None,
        taskid: None,
        generated: l.created_at,
        // Not the loop's own time: a call that adds no lesson leaves the file.
        updated: memories.iter().map(|lesson| lesson.at).max().unwrap_or(l.created_at),
        mcp: version,
    }
    .write(&mut out);
    out.push_str("\n# Lessons — ");
    inline(&mut out, &l.title);
    out.push('\n');
    if memories.is_empty() {
        out.push_str("\nno lessons yet\n");
    }

    let mut lessons: Vec<_> = memories.iter().map(|lesson| (civil(lesson.at), lesson)).collect();
    lessons.sort_by_key(|(at, _)| at.date());
    let mut day = None;
    for (at, lesson) in lessons {
        if day != Some(at.date()) {
            day = Some(at.date());
            out.push_str("\n## ");
            push_date(&mut out, at);
            out.push('\n');
        }
        out.push_str("\n- ");
        push_clock(&mut out, at);
        // Bold, so that no agent's name can look like the task after it.
        out.push_str(" · **");
        inline(&mut out, &lesson.agent);
        out.push_str("**");
        if let Some(task) = &lesson.task {
            out.push_str(" · ");
            inline(&mut out, task);
        }
        out.push_str("\n\n");
        block(&mut out, "  ", &lesson.note);
    }
    out
}
