//! Which project the server was started for.
//!
//! Owns the facts that the file system tells about a project. Knows no loops.

mod root;

pub use root::{FLAG, ProjectRoot, RootError, Surroundings, VARIABLE};
