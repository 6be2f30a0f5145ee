//! What can keep a loop's folder from following the database.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;

use super::SourceError;
use super::path::PathFault;

/// The tool that writes every view anew; each message that leaves a view behind
/// ends with it.
const HEAL: &str = "call loop_render";

/// A folder that could not be brought up to date. What was committed stays
/// committed; the next change of the loop, or `loop_render`, writes the views.
#[derive(Debug, Error)]
pub enum MirrorError {
    /// A slug or the path of a view that must not become a file.
    #[error("cannot write {path:?} in a loop's folder: {fault}")]
    Path {
        /// The name as it was given.
        path: String,
        /// The rule that it breaks.
        fault: PathFault,
    },

    /// The project root is not a folder that can be opened.
    #[error("cannot open the project root {}: {cause}; restore it, then {HEAL}", .root.display())]
    Root {
        /// The root.
        root: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },

    /// Something stands where the mirror needs a folder or a file of its own.
    #[error("{} is {found}, which the mirror neither follows nor replaces; move it away, then {HEAL}", .path.display())]
    InTheWay {
        /// Where it stands.
        path: PathBuf,
        /// What it is: `a symbolic link`, `a folder`, `not a folder`.
        found: &'static str,
    },

    /// The system refused: read-only, no room, no permission.
    #[error("cannot {action} {}: {cause}; make it writable or make room, then {HEAL}", .path.display())]
    Io {
        /// `create`, `append to` and the like.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },

    /// Another process held the folder all the time.
    #[error("{} was held by another process for {} s; {HEAL} when that one has gone on", .path.display(), .waited.as_secs())]
    Busy {
        /// The loop's folder.
        path: PathBuf,
        /// How long it was waited for.
        waited: Duration,
    },

    /// The folder was taken away or replaced again and again meanwhile.
    #[error("{} keeps being moved or removed; leave it in place, then {HEAL}", .path.display())]
    Changing {
        /// The loop's folder, or the one in it that went away.
        path: PathBuf,
    },

    /// More lies in the folder than is looked at.
    #[error("{} holds more than {limit} files; move away what does not belong to the loop, then call again", .path.display())]
    TooMany {
        /// The loop's folder.
        path: PathBuf,
        /// What is looked at, at most.
        limit: usize,
    },

    /// A folder that is to become a project root and cannot.
    #[error("{} cannot be a project root: {why}; name an absolute folder without `..`", .path.display())]
    NewRoot {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },

    /// The database, or the logic that renders, did not answer.
    #[error("cannot read the loop `{slug}` to write its folder: {cause}; then {HEAL}")]
    Source {
        /// The loop.
        slug: String,
        /// Why.
        #[source]
        cause: SourceError,
    },

    /// The logic described a view in a way that cannot be written.
    #[error("the logic described the view {path:?} of the loop `{slug}` wrongly: {why}")]
    Contract {
        /// The loop.
        slug: String,
        /// The view.
        path: String,
        /// What does not fit.
        why: &'static str,
    },
}

impl MirrorError {
    /// What is wrong, without what to do about it: for lists of files, where that is
    /// said once for all.
    pub fn why(&self) -> String {
        match self {
            Self::Path { fault, .. } => fault.to_string(),
            Self::InTheWay { path, found } => format!("{} is {found}", path.display()),
            Self::Io { action, path, cause } => format!("cannot {action} {}: {cause}", path.display()),
            Self::Changing { path } => format!("{} was moved or removed meanwhile", path.display()),
            other => other.to_string(),
        }
    }

    pub(super) fn io(action: &'static str, path: PathBuf, cause: impl Into<io::Error>) -> Self {
        Self::Io { action, path, cause: cause.into() }
    }
}
