//! The rules of loop-state-mcp.

#[allow(unsafe_code, missing_docs, clippy::all)]
mod bindings {
    wit_bindgen::generate!({
        path: "../wit",
        world: "loop-logic",
        additional_derives: [PartialEq],
    });
}
pub use bindings::exports::loop_state::logic::{model, rules, tools, views};

mod panic;

struct Component;

impl rules::Guest for Component {
    fn transitions(mode: String) -> Result<Vec<rules::Transition>, rules::MoveRefusal> {
        panic::install();
        Err(rules::MoveRefusal::UnknownMode(mode))
    }

    fn check_transition(
        mode: String,
        _from: String,
        _to: String,
    ) -> Result<Vec<String>, rules::MoveRefusal> {
        panic::install();
        Err(rules::MoveRefusal::UnknownMode(mode))
    }

    fn shortest_path(
        mode: String,
        _from: String,
        _to: String,
    ) -> Result<Option<Vec<String>>, rules::MoveRefusal> {
        panic::install();
        Err(rules::MoveRefusal::UnknownMode(mode))
    }

    fn next_step(
        mode: String,
        _status: String,
        _tech: Option<String>,
        _retries: u32,
    ) -> Result<rules::OwedStep, rules::MoveRefusal> {
        panic::install();
        Err(rules::MoveRefusal::UnknownMode(mode))
    }
}

impl tools::Guest for Component {
    fn about() -> tools::Identity {
        panic::install();
        tools::Identity {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            instructions: String::new(),
        }
    }

    fn tools() -> Vec<tools::Tool> {
        panic::install();
        Vec::new()
    }

    fn decide(call: tools::Call, _facts: tools::Facts) -> tools::Decision {
        panic::install();
        tools::Decision::Done(tools::Outcome {
            reply: format!("unknown tool `{}`", call.tool),
            refused: true,
            writes: Vec::new(),
            views: None,
        })
    }
}

impl views::Guest for Component {
    fn render(state: model::LoopState, _: Vec<model::Memory>, _: String) -> views::ViewSet {
        panic::install();
        views::ViewSet {
            loop_id: state.loop_.id,
            slug: state.loop_.slug,
            project_root: state.loop_.project_root,
            revision: state.loop_.marks.revision,
            views: Vec::new(),
        }
    }

    fn log_lines(events: Vec<model::Event>) -> String {
        panic::install();
        events
            .iter()
            .map(|event| format!("{}\n", event.seq))
            .collect()
    }
}

#[cfg(target_family = "wasm")]
#[allow(unsafe_code, missing_docs)]
mod export {
    use super::{Component, bindings};
    bindings::export!(Component with_types_in bindings);
}
