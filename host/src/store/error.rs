//! What can go wrong in the store, and how SQLite's own errors are told.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

use super::archive::NameFault;
use super::blob::BlobFault;
use super::location::OVERRIDE;
use super::writer::Writer;

/// A failure of the store.
///
/// Each text names its subject and, where there is one, the next safe step.
/// Unless a text says otherwise, nothing was changed.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The override of the state folder is not an absolute path.
    #[error(
        "{OVERRIDE} is `{value}`, which is not an absolute path{hint}; \
         nothing was created, set it to an absolute path or unset it"
    )]
    RelativeOverride {
        /// The value as it was set.
        value: String,
        /// What the value looks like, or nothing.
        hint: &'static str,
    },
    /// No usable home folder, from the environment or the user database.
    #[error(
        "no home folder to keep the state in: HOME is {home} and the user database {database}; \
         set {OVERRIDE} to an absolute path"
    )]
    NoHome {
        /// What HOME is instead of a usable folder.
        home: String,
        /// What the user database has instead.
        database: String,
    },
    /// The state folder, or a file in it, cannot be made or looked at.
    #[error("cannot {action} {path}: {source}; make it accessible, or set {OVERRIDE} to another folder", path = .path.display())]
    Folder {
        /// What was tried.
        action: &'static str,
        /// On which path.
        path: PathBuf,
        /// Why it did not work.
        source: io::Error,
    },
    /// Something of the wrong kind stands where the folder or the file should.
    #[error("{path} is {found}, not {wanted}; move it away, or set {OVERRIDE} to another folder", path = .path.display())]
    WrongKind {
        /// The path in question.
        path: PathBuf,
        /// What stands there.
        found: &'static str,
        /// What should.
        wanted: &'static str,
    },
    /// The file is not an SQLite database, or so damaged that it is not seen as one.
    #[error("{path} is not a database, it was left as it is; restore it from a copy or move it away, or set {OVERRIDE} to another folder", path = .path.display())]
    NotADatabase {
        /// The file.
        path: PathBuf,
    },
    /// The database belongs to another program.
    #[error("{path} is the database of another program (application id {application_id:#010x}), it was left as it is; move it away, or set {OVERRIDE} to another folder", path = .path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it says it is; 0 says nothing.
        application_id: i32,
    },
    /// The database was written by a newer version of this program.
    #[error("{path} has schema version {found}, newer than the {supported} that this program knows, it was left as it is; run the newer program, or set {OVERRIDE} to another folder", path = .path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i32,
        /// The newest version that this program knows.
        supported: i32,
    },
    /// The database is ours and its version cannot be.
    #[error("{path} has schema version {found}, which no version of this program writes, it was left as it is; restore it from a copy or move it away, or set {OVERRIDE} to another folder", path = .path.display())]
    BadVersion {
        /// The file.
        path: PathBuf,
        /// Its schema version.
        found: i32,
    },
    /// The database is gone and its write-ahead log still holds something.
    #[error("{log} holds data of a database that is not there any more, it was left as it is; put the database back, or move the log away to start anew", log = .log.display())]
    Orphaned {
        /// The log.
        log: PathBuf,
    },
    /// Another process kept the database locked past the time limit.
    #[error("the database {path} is busy with another process; nothing was changed, call again", path = .path.display())]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// No room left on the disk.
    #[error("no room left for the database in {folder}; nothing was changed, free some space there and call again", folder = .folder.display())]
    Full {
        /// The folder that is full.
        folder: PathBuf,
    },
    /// The database can be read and not written.
    #[error("the database {path} cannot be written: {reason}; nothing was changed, make it and its folder writable, or set {OVERRIDE} to another folder", path = .path.display())]
    ReadOnly {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// An older database could not be brought to the current version.
    #[error("cannot bring the database {path} from schema version {from} to {to}: {source}; it is as it was{}", kept(.snapshot), path = .path.display())]
    Migration {
        /// The file.
        path: PathBuf,
        /// The version it has.
        from: i32,
        /// The version it should get.
        to: i32,
        /// The copy that was taken before.
        snapshot: Option<PathBuf>,
        /// What went wrong.
        source: Box<StoreError>,
    },
    /// The copy before a migration could not be taken, so nothing was migrated.
    #[error("cannot copy the database to {snapshot} before its migration: {detail}; nothing was changed", snapshot = .snapshot.display())]
    Snapshot {
        /// Where the copy should have gone.
        snapshot: PathBuf,
        /// What went wrong.
        detail: String,
    },
    /// No loop has this id.
    #[error("no loop with the id {id}; nothing was changed")]
    UnknownLoop {
        /// The id.
        id: String,
    },
    /// Another logic wrote the loop.
    #[error(
        "{what} was written by the logic {wrote} and can only be read by {runs}; nothing was changed, start the server with that logic (--logic; without it the built-in one runs), or take another slug or state folder"
    )]
    OtherLogic {
        /// The loop, or its archive.
        what: String,
        /// The logic that wrote it.
        wrote: Writer,
        /// The logic that wanted to change it.
        runs: Writer,
    },
    /// No project has this id.
    #[error("no project with the id {id}; nothing was changed")]
    UnknownProject {
        /// The id.
        id: String,
    },
    /// The loop's id, or its slug in its project root, is taken.
    #[error(
        "a loop with the id {id}, or with the slug {slug} in {project_root}, exists already; nothing was changed"
    )]
    LoopExists {
        /// The id of the loop that was to be created.
        id: String,
        /// Its slug.
        slug: String,
        /// Its project root.
        project_root: String,
    },
    /// A number in a loop's timeline or among its lessons is taken.
    #[error("loop {id} already has {record} number {seq}; nothing was changed")]
    SeqTaken {
        /// The loop.
        id: String,
        /// Which kind of record.
        record: &'static str,
        /// The number.
        seq: u64,
    },
    /// The number of a document's revision is taken.
    #[error("loop {id} already has revision {revision} of the document {path:?}; nothing was changed")]
    RevisionTaken {
        /// The loop.
        id: String,
        /// The document.
        path: String,
        /// The revision.
        revision: u32,
    },
    /// Two documents differ in upper and lower case alone.
    #[error(
        "loop {id} has a document {existing:?} already, which only case tells from {path:?}; nothing was changed, use that name"
    )]
    DocumentCase {
        /// The loop.
        id: String,
        /// The name that was to be written.
        path: String,
        /// The one that is there.
        existing: String,
    },
    /// A document's head is not that of its content.
    #[error(
        "the length or digest given for the document {path:?} is not that of its content; nothing was changed, and this is a defect of the logic"
    )]
    HeadDiffers {
        /// The document.
        path: String,
    },
    /// The database keeps other documents under a loop's id than those that come.
    #[error(
        "the database already has revision {revision} of the document {path:?} under the loop id {id}, and it is another one; nothing was changed, use another id"
    )]
    DocumentsDiffer {
        /// The loop.
        id: String,
        /// The document.
        path: String,
        /// Its revision.
        revision: i64,
    },
    /// Stored bytes are not what was stored.
    #[error("{what} is damaged: {fault}; it was not used, restore it from a copy")]
    DamagedContent {
        /// Which content, with its place.
        what: String,
        /// What is wrong with it.
        fault: BlobFault,
    },
    /// No archive has this id.
    #[error("no archive with the id {id}; nothing was changed")]
    UnknownArchive {
        /// The id.
        id: String,
    },
    /// The archive's id is taken.
    #[error("an archive with the id {id} exists already; nothing was changed")]
    ArchiveExists {
        /// The id.
        id: String,
    },
    /// An archive does not agree with itself.
    #[error(
        "the archive {id} is damaged: {detail}; nothing was changed, and files of it that are whole can still be read one by one"
    )]
    DamagedArchive {
        /// The archive.
        id: String,
        /// What does not fit.
        detail: String,
    },
    /// A file was to be archived that nobody read.
    #[error(
        "the file {path:?} of loop {id} was to be archived without having been read; nothing was changed, and this is a defect of the logic"
    )]
    NotHeld {
        /// The loop.
        id: String,
        /// The file.
        path: String,
    },
    /// A file cannot be archived under this name.
    #[error(
        "nothing can be archived as {name:?}: {fault}; nothing was changed, rename the file or leave it out"
    )]
    EntryName {
        /// The name.
        name: String,
        /// What is wrong with it.
        fault: NameFault,
    },
    /// A run of this name is there already.
    #[error("the project {project} already has a run named {run}; nothing was changed, choose another name")]
    RunTaken {
        /// The run.
        run: String,
        /// Its project.
        project: String,
    },
    /// A project cannot become a part of another one.
    #[error("cannot merge the project {drop} into {keep}: {detail}; nothing was changed")]
    Merge {
        /// The project that should stay.
        keep: String,
        /// The one that should go.
        drop: String,
        /// What stands in the way.
        detail: String,
    },
    /// An exported file cannot be read in.
    #[error("the export cannot be read in: {detail}; nothing was changed")]
    Import {
        /// What is wrong with it, and in which line.
        detail: String,
    },
    /// An export could not be written or read.
    #[error("cannot {action} the export: {source}; the database is as it was")]
    Stream {
        /// What was tried.
        action: &'static str,
        /// Why it did not work.
        source: io::Error,
    },
    /// A copy of the database could not be made.
    #[error("cannot copy the database to {path}: {detail}; no copy was made", path = .path.display())]
    Backup {
        /// Where it should have gone.
        path: PathBuf,
        /// What went wrong.
        detail: String,
    },
    /// A number in a run's record is taken.
    #[error("run {run} already has {record} number {seq}; nothing was changed, call again")]
    RunSeqTaken {
        /// The run's name.
        run: String,
        /// Which kind of record.
        record: &'static str,
        /// The number.
        seq: u64,
    },
    /// A number does not fit into the database's integers.
    #[error("{value} is more than {column} can hold; nothing was changed")]
    TooLarge {
        /// Table and column.
        column: String,
        /// The value.
        value: u64,
    },
    /// A stored value cannot be what it should be.
    #[error("the database {path} is damaged: {detail}; restore it from a copy", path = .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found where.
        detail: String,
    },
    /// A change in a transaction that was begun for reading.
    #[error("this transaction only reads; nothing was changed")]
    ReadTransaction,
    /// A transaction whose writes failed cannot be committed.
    #[error("the writes of this transaction failed, it was rolled back; nothing was changed")]
    Failed,
    /// Any other failure of SQLite.
    #[error("the database {path} failed: {source}; nothing was changed", path = .path.display())]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What SQLite says.
        source: rusqlite::Error,
    },
}

fn kept(snapshot: &Option<PathBuf>) -> String {
    match snapshot {
        Some(path) => format!(", and a copy of it is {}", path.display()),
        None => String::new(),
    }
}

/// A failure before it is known which file it is about.
#[derive(Debug)]
pub(super) enum Failure {
    Sql(rusqlite::Error),
    /// A value that is not what its column should hold.
    Value(String),
    Known(StoreError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Failure::Sql(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Failure::Known(error)
    }
}

impl Failure {
    /// Returns the failure as one of the database at `path`.
    pub(super) fn at(self, path: &Path) -> StoreError {
        let path = path.to_owned();
        let error = match self {
            Failure::Known(error) => return error,
            Failure::Value(detail) => return StoreError::Damaged { path, detail },
            Failure::Sql(error) => error,
        };
        let extended = error.sqlite_error().map_or(0, |e| e.extended_code);
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => StoreError::Busy { path },
            Some(ErrorCode::DiskFull) => StoreError::full(&path),
            // The index of the log could not be given its space.
            Some(ErrorCode::SystemIoFailure) if extended == rusqlite::ffi::SQLITE_IOERR_SHMSIZE => {
                StoreError::full(&path)
            }
            Some(ErrorCode::ReadOnly) => {
                let reason = match extended {
                    rusqlite::ffi::SQLITE_READONLY_DBMOVED => "it was moved or deleted meanwhile",
                    rusqlite::ffi::SQLITE_READONLY_DIRECTORY => "its folder is read-only",
                    _ => "it is read-only",
                };
                StoreError::ReadOnly { path, reason: reason.into() }
            }
            Some(ErrorCode::NotADatabase) => StoreError::NotADatabase { path },
            Some(ErrorCode::DatabaseCorrupt) => StoreError::Damaged { path, detail: error.to_string() },
            _ => StoreError::Sqlite { path, source: error },
        }
    }
}

impl StoreError {
    fn full(path: &Path) -> StoreError {
        let folder = path.parent().unwrap_or(path).to_owned();
        StoreError::Full { folder }
    }
}
