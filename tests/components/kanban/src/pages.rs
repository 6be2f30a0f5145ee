//! The readable files: `board.md` and `log.jsonl`.

use serde_json::json;

use crate::bindings::exports::loop_state::logic::{model, views};
use crate::board::{Board, COLUMNS};

const PAGE: &str = "board.md";
const LOG: &str = "log.jsonl";

/// Every view whole; the log is read from the timeline.
pub fn all(state: &model::LoopState) -> views::ViewSet {
    set(state, String::new(), true)
}

/// The views after a change that added these lines to the log.
pub fn changed(state: &model::LoopState, lines: String) -> views::ViewSet {
    set(state, lines, false)
}

fn set(state: &model::LoopState, lines: String, rebuild: bool) -> views::ViewSet {
    let marks = &state.loop_.marks;
    let log = views::Log { seq: marks.event_seq, bytes: marks.log_bytes, lines, rebuild };
    views::ViewSet {
        loop_id: state.loop_.id.clone(),
        slug: state.loop_.slug.clone(),
        project_root: state.loop_.project_root.clone(),
        revision: marks.revision,
        views: vec![
            views::View { path: PAGE.to_owned(), content: views::Content::Whole(page(state)) },
            views::View { path: LOG.to_owned(), content: views::Content::Log(log) },
        ],
    }
}

fn page(state: &model::LoopState) -> String {
    let board = Board::of(state);
    let closed = if board.is_closed() { " (closed)" } else { "" };
    let mut page = format!("# {}{closed}\n", plain(&state.loop_.title));
    for column in COLUMNS {
        let held = board.cards(column).count();
        let limit = board.limit(column).map(|limit| format!(" of {limit}")).unwrap_or_default();
        page += &format!("\n## {column} ({held}{limit})\n\n");
        page += &cards(board.cards(column));
    }
    if board.elsewhere().next().is_some() {
        page += "\n## in no column\n\n";
        page += &cards(board.elsewhere());
    }
    page
}

fn cards<'a>(cards: impl Iterator<Item = &'a model::Task>) -> String {
    let list: String = cards.map(|card| format!("- {}: {}\n", card.taskid, plain(&card.title))).collect();
    if list.is_empty() { "No cards.\n".to_owned() } else { list }
}

/// Text as it reads, whatever Markdown would make of it.
fn plain(text: &str) -> String {
    let mut plain = String::new();
    for c in text.chars() {
        if c.is_ascii_punctuation() {
            plain.push('\\');
        }
        plain.push(c);
    }
    plain
}

/// One event as a line; its number comes first, as the host asks.
pub fn log_line(event: &model::Event) -> String {
    let line = json!({
        "seq": event.seq,
        "at": event.at,
        "event": event.event,
        "card": event.task,
        "from": event.from,
        "to": event.to,
        "note": event.note,
    });
    format!("{line}\n")
}
