//! The host of loop-state-mcp, as a library for embedding and tests.
//!
//! | module | owns | does not know |
//! |---|---|---|
//! | [`contract`] | the records that all others exchange | everything else |
//! | [`cancel`] | the flag that stops a call | what runs |
//! | [`mirror`] | the loop's folder: safe paths, atomic writes | what the views say |
//! | [`repo`] | which project the server was started for | loops |
pub mod cancel;
pub mod contract;
pub mod mirror;
pub mod repo;
