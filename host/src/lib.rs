//! The host of loop-state-mcp, as a library for embedding and tests.
//!
//! | module | owns | does not know |
//! |---|---|---|
//! | [`contract`] | the records that all others exchange | everything else |
//! | [`cancel`] | the flag that stops a call | what runs |
//! | [`store`] | SQLite: schema, migrations, load, apply | rules, what a status means |
pub mod cancel;
pub mod contract;
pub mod store;
