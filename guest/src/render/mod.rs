//! The readable files of a loop, as pure functions of its stored state.
//!
//! Owns what `loop.md`, `memory.md` and `events.jsonl` look like, the header
//! that rendered files and documents carry, and the forms in which text from
//! users may stand inside them. Leaves to others when a view is rendered and
//! where it is written.
//!
//! Equal state gives equal bytes: no clock, no hash map, no time zone.

mod front_matter;
mod goals;
mod lessons_page;
mod log;
mod loop_page;
#[cfg(test)]
mod tests;
mod text;
mod time;
mod timings;

pub use front_matter::{Header, strip};
pub use lessons_page::lessons_page;
pub use log::log_lines;
pub use loop_page::loop_page;
pub use text::is_hidden;
pub use time::timestamp;

use crate::model::{Loop, LoopState, Memory};
use crate::views::{Content, Log, View, ViewSet};

/// The page of a loop's state.
pub const LOOP_PAGE: &str = "loop.md";
/// The page of a loop's lessons.
pub const LESSONS_PAGE: &str = "memory.md";
/// The log of a loop's events.
pub const EVENT_LOG: &str = "events.jsonl";

/// The files that are rendered.
pub const VIEWS: [&str; 3] = [LOOP_PAGE, LESSONS_PAGE, EVENT_LOG];

/// Whether a path is that of a view, in whatever case.
pub fn is_view(path: &str) -> bool {
    VIEWS.iter().any(|view| view.eq_ignore_ascii_case(path))
}

/// Renders every view of a loop whole.
///
/// `memories` are all lessons, oldest first; `version` is the running server's.
/// The log comes without lines, to be rebuilt from the timeline. A pruned
/// loop's timeline is gone, so its log is left out and stays as it is on disk.
pub fn all(state: &LoopState, memories: &[Memory], version: &str) -> ViewSet {
    let l = &state.loop_;
    let whole = |path: &str, text| View { path: path.to_owned(), content: Content::Whole(text) };
    let mut views = vec![
        whole(LOOP_PAGE, loop_page(state, version)),
        whole(LESSONS_PAGE, lessons_page(l, memories, version)),
    ];
    if l.pruned_at.is_none() {
        views.push(View {
            path: EVENT_LOG.to_owned(),
            content: Content::Log(Log {
                seq: l.marks.event_seq,
                bytes: l.marks.log_bytes,
                lines: String::new(),
                rebuild: true,
            }),
        });
    }
    view_set(l, views)
}

/// The views of a loop at its present revision.
pub fn view_set(l: &Loop, views: Vec<View>) -> ViewSet {
    ViewSet {
        loop_id: l.id.clone(),
        slug: l.slug.clone(),
        project_root: l.project_root.clone(),
        revision: l.marks.revision,
        views,
    }
}
