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

pub mod render;
