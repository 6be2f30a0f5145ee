//! Which project the server was started for.
//!
//! Owns the facts that the file system and git tell about a project. Knows no loops.

mod git;
mod process;
mod remote;
mod root;
mod site;
#[cfg(test)]
mod tests;

pub use git::{Git, Identity, identify};
pub use remote::remote_key;
pub use root::{FLAG, ProjectRoot, RootError, Surroundings, VARIABLE};
pub use site::{stamp, work_tree_top};
