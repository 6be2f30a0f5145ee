//! A kanban board as a logic: what another team could put in place of the
//! built-in rules, with the host unchanged.
//!
//! | stored as | means here |
//! |---|---|
//! | loop | a board; its `mode` is `kanban`, its `status` open or closed |
//! | phase | a column, in board order; its `status` is the column's limit, or `none` |
//! | task | a card; its `status` is the column it is in |
//! | event | a card that was added or moved, a board that was opened or closed |
//!
//! Whether a loop is one of this logic is for the host to guard; here every loop is
//! read as a board, and cards in no known column are shown as such.

#[allow(unsafe_code, missing_docs, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../../../wit",
        world: "loop-state:logic/logic",
    });
}

mod arguments;
mod board;
mod pages;
#[allow(dead_code, reason = "the half that reads is for the host")]
#[path = "../../../../guest/src/panic.rs"]
mod panic;
mod tool;

use bindings::exports::loop_state::logic::{model, tools, views};

struct Kanban;

impl tools::Guest for Kanban {
    fn about() -> tools::Identity {
        panic::install();
        tools::Identity {
            name: "kanban".to_owned(),
            version: "1".to_owned(),
            instructions: tool::INSTRUCTIONS.to_owned(),
        }
    }

    fn tools() -> Vec<tools::Tool> {
        panic::install();
        tool::TOOLS.iter().map(tool::Tool::published).collect()
    }

    fn decide(call: tools::Call, facts: tools::Facts) -> tools::Decision {
        panic::install();
        tool::decide(&call, &facts)
    }
}

impl views::Guest for Kanban {
    fn render(state: model::LoopState, _: Vec<model::Memory>, _: String) -> views::ViewSet {
        panic::install();
        pages::all(&state)
    }

    fn log_lines(events: Vec<model::Event>) -> String {
        panic::install();
        events.iter().map(pages::log_line).collect()
    }

    // A board keeps no documents.
    fn stamp(_: String, _: model::DocumentHead, content: String, _: String) -> String {
        content
    }

    fn strip(text: String) -> views::Stripped {
        views::Stripped { header: Vec::new(), body: text }
    }
}

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, missing_docs)]
mod export {
    use super::{Kanban, bindings};
    bindings::export!(Kanban with_types_in bindings);
}
