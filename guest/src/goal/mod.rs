//! Goals: the configuration, the plan of its graph, the gate, and the ledger.
//!
//! Pure throughout. What the gate needs of the world it says as [`evidence::Need`],
//! and what the host finds comes back as [`evidence::Evidence`]; `tool` turns the two
//! into the contract's queries and facts.
//!
//! | module | knows |
//! |---|---|
//! | `tree` | YAML and JSON, and how much of it is too much |
//! | `config`, `reader`, `validate`, `problem` | the format, and all that is wrong with a text, with path and line |
//! | `pattern` | regular expressions that cannot take long |
//! | `plan`, `schedule` | waves, critical path, speedup, who does what when |
//! | `evidence`, `metrics`, `gate` | what a ruling rests on, and the ruling |
//! | `ledger` | the hash chain of a run, and what recording a ruling adds to it |
//! | `binding` | what speaks against the end of a loop with goals |
//! | `answer` | all of it as JSON |

pub mod answer;
pub mod binding;
pub mod config;
pub mod evidence;
pub mod gate;
pub mod ledger;
mod metrics;
mod pattern;
pub mod plan;
pub mod problem;
mod reader;
pub mod schedule;
mod tree;
mod validate;

#[cfg(test)]
mod tests;
