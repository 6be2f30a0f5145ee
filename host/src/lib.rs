//! The host of loop-state-mcp, as a library for embedding and tests.
//!
//! | module | owns | does not know |
//! |---|---|---|
//! | [`contract`] | the records that all others exchange | everything else |
//! | [`cancel`] | the flag that stops a call | what runs |
//! | [`service`] | one call from arguments to reply; the only place where the others meet | how any of them work |
//! | [`logic`] | the component that decides, its limits, a fresh instance a call | SQL, MCP |
//! | [`store`] | SQLite: schema, migrations, load, apply | rules, what a status means |
//! | [`mirror`] | the loop's folder: safe paths, atomic writes | what the views say, SQL |
//! | [`repo`] | which folder is the project, and which repository it belongs to | loops, SQL |
//! | [`report`] | pages for people, drawn from stored records | SQL, files, rules |
//! | [`watch`] | the same on a terminal | terminals, SQL |
//! | [`relative`] | paths that stay below a folder | whose folder it is |
//! | [`progress`] | how far long work has come | what the work is |
//! | [`cli`] | the commands for people and hooks | SQL, wasm |
//! | [`mcp`] | JSON-RPC, MCP versions, the stdio transport | loops, tasks |
pub mod cancel;
pub mod cli;
pub mod contract;
pub mod digest;
pub mod evidence;
mod home;
pub mod logic;
pub mod mcp;
pub mod mirror;
mod plain;
mod process_group;
pub mod progress;
pub mod relative;
pub mod repo;
pub mod report;
pub mod service;
pub mod store;
mod time;
pub mod watch;
