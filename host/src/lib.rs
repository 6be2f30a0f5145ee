//! The host of loop-state-mcp, as a library for embedding and tests.
//!
//! | module | owns | does not know |
//! |---|---|---|
//! | [`contract`] | the records that all others exchange | everything else |
//! | [`cancel`] | the flag that stops a call | what runs |
//! | [`logic`] | the component that decides, its limits, a fresh instance a call | SQL, MCP |
//! | [`store`] | SQLite: schema, migrations, load, apply | rules, what a status means |
pub mod cancel;
pub mod contract;
pub mod logic;
pub mod store;
