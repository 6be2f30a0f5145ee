//! Why a call came to no decision.

use crate::logic::LogicError;
use crate::mirror::MirrorError;
use crate::store::StoreError;

use super::seams::SeamError;

/// A call that failed, as opposed to one that was refused.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The project root cannot be used.
    #[error("no project: {0}")]
    NoProject(String),
    /// There is no place for the database.
    #[error("no state folder: {0}")]
    NoStateFolder(String),
    /// The database failed or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The logic failed.
    #[error(transparent)]
    Logic(#[from] LogicError),
    /// The loop's folder could not be looked at.
    #[error(transparent)]
    Folder(#[from] MirrorError),
    /// Nobody answers the query.
    #[error("the logic asked what nothing here answers ({query}); nothing was changed, and this is a defect")]
    Unanswered {
        /// The query.
        query: String,
    },
    /// Something that was there a moment ago is not.
    #[error("{what} went away meanwhile; call again")]
    Vanished {
        /// What it was.
        what: String,
    },
    /// Time or ids could not be had.
    #[error(transparent)]
    Seam(#[from] SeamError),
    /// The logic kept asking.
    #[error(
        "the logic did not decide {tool} within {rounds} rounds; nothing was changed, and this is a defect of the logic"
    )]
    Undecided {
        /// The tool called.
        tool: String,
        /// The rounds it had.
        rounds: usize,
    },
    /// The logic has no name that its loops could be known by.
    #[error(
        "the logic's name cannot be {name:?}: up to 100 bytes that are not blank; nothing was changed, and this is a defect of the logic"
    )]
    Nameless {
        /// What it says it is called.
        name: String,
    },
    /// A tool that is published as reading wanted to write.
    #[error(
        "{tool} is published as reading and wanted to write; nothing was changed, and this is a defect of the logic"
    )]
    ReaderWrites {
        /// The tool called.
        tool: String,
    },
}
