//! Components in place of the built-in one, for tests of the host that runs them:
//! one that misbehaves and one that has rules of its own.
//!
//! They are built from the crates `faulty-logic` and `kanban-logic` the way the real
//! one is.

/// A logic whose tools each fail in one way; imports nothing.
///
/// `ok` works; `panic`, `index`, `spin`, `bomb` and `recurse` do not.
pub static FAULTY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/faulty.wasm"));

/// The same logic with WASI: its panics go to standard error, and it has two
/// more tools.
///
/// `outside` answers with the time and a random number, `wait` sleeps.
pub static FAULTY_WASI: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/faulty-wasi.wasm"));

/// Another logic that works: kanban boards, with tools, rules and views of its own;
/// imports nothing.
pub static KANBAN: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/kanban.wasm"));
