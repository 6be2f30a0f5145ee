//! The contract of `wit/` as Rust types.
//!
//! One set of records for the whole host: what the store reads and writes, what
//! the logic is given and gives back. They are plain data; nothing in here knows
//! what a status means or how a component is run, and the generated module stays
//! private to this file and to `logic`, which calls through it.

#[allow(missing_docs)]
mod generated {
    wasmtime::component::bindgen!({
        path: "../wit",
        world: "logic",
        additional_derives: [PartialEq],
    });
}

pub use generated::exports::loop_state::logic::{model, tools, views};
pub(crate) use generated::{Logic as LogicBindings, LogicPre as LogicBindingsPre};
