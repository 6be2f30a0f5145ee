//! The database: where it is, its schema, and each record's way in and out.
//!
//! Owns SQLite. It knows neither the rules nor what a status means, and nothing of
//! wasm or MCP: records come in and go out as the contract's plain data, and
//! [`tools::Write`] lists every change there is.
//!
//! Every call is one transaction, [`Store::read`] or [`Store::write`]; one that is
//! dropped without [`Tx::commit`] never happened. Reads write nothing.

mod apply;
mod archive;
mod ask;
mod blob;
mod cell;
mod check;
mod document;
mod error;
mod glance;
mod load;
mod location;
mod look;
mod migrate;
mod open;
mod project;
mod record;
mod run;
mod schema;
mod snapshot;
#[cfg(test)]
mod tests;
mod transfer;
mod upkeep;
mod writer;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rusqlite::Connection;

pub use archive::{Held, HeldFile, NameFault};
pub use blob::{BlobFault, FILE_MAX, Packed, pack, unpack};
pub use check::APPLICATION_ID;
pub use document::KeptDocuments;
pub use error::StoreError;
pub use glance::{Bounds, Newest, Version};
pub use location::{Environment, OVERRIDE, state_dir};
pub use look::{Looked, sqlite_version};

pub use project::{Common, Duplicates, KnownRoot, Merged, ProjectEdit, ProjectRow, ProjectSummary, RootRow};
pub use transfer::{Renamed, Selection, Transferred};
pub use upkeep::{Latched, Pointed, Size, Vacuumed};
pub use writer::{OtherLogic, OthersLoop, Writer};

use crate::contract::{model, tools};
use crate::progress::Progress;
use error::Failure;
use open::{Access, FileId, Options};

/// The database's name in the state folder.
pub const FILE: &str = "loops.db";

/// One connection to the database, for one thread at a time.
pub struct Store {
    db: Connection,
    folder: PathBuf,
    path: PathBuf,
    access: Access,
    journal_mode: String,
    file: FileId,
    options: Options,
}

impl Store {
    /// Opens the database in the state folder `dir` for the changes of `writer`; makes
    /// and migrates it as needed.
    ///
    /// Long work tells `progress` how far it has come.
    ///
    /// Any number of processes may do this at once. A database that cannot be written
    /// is opened for reading, as far as SQLite can read it.
    ///
    /// # Errors
    /// Whatever stands in the way, by path; a file that is not ours, or newer, is left
    /// as it was.
    pub fn open_for(dir: &Path, writer: Writer, progress: Progress) -> Result<Store, StoreError> {
        Store::open_with(dir, Options { writer: Arc::new(writer), progress, ..Options::default() })
    }

    /// Opens the database for the built-in logic; see [`Store::open_for`].
    ///
    /// # Errors
    /// As there.
    pub fn open(dir: &Path) -> Result<Store, StoreError> {
        Store::open_with(dir, Options::default())
    }

    fn open_with(dir: &Path, options: Options) -> Result<Store, StoreError> {
        open::open(dir, options)
    }

    /// Returns the database's path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the journal mode that was obtained, not the one asked for.
    ///
    /// `wal` as a rule; `delete` where the file system cannot share a log.
    pub fn journal_mode(&self) -> &str {
        &self.journal_mode
    }

    /// Returns why the database can only be read, if so.
    pub fn read_only(&self) -> Option<&str> {
        self.access.read_only()
    }

    /// Begins a transaction that sees one state of the database and changes nothing.
    ///
    /// # Errors
    /// The database was moved away, and none can be opened in its place.
    pub fn read(&mut self) -> Result<Tx<'_>, StoreError> {
        self.refresh()?;
        Tx::begin(self, "BEGIN", false)
    }

    /// Begins a transaction that holds the write lock from the start.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another process keeps the lock past the time limit,
    /// [`StoreError::ReadOnly`] when the database cannot be written.
    pub fn write(&mut self) -> Result<Tx<'_>, StoreError> {
        self.refresh()?;
        if let Some(reason) = self.access.read_only() {
            let reason = reason.to_owned();
            return Err(StoreError::ReadOnly { path: self.path.clone(), reason });
        }
        Tx::begin(self, "BEGIN IMMEDIATE", true)
    }

    /// Opens anew when the file is not the one that was opened, or could only be read.
    ///
    /// Else writes to a file that was deleted or replaced would be acknowledged and
    /// lost, and mended permissions would show only after a restart.
    fn refresh(&mut self) -> Result<(), StoreError> {
        if self.options.looks {
            return Ok(());
        }
        let same = FileId::of(&self.path).is_some_and(|file| file == self.file);
        if !same || self.access.read_only().is_some() {
            *self = Store::open_with(&self.folder, self.options.clone())?;
        }
        Ok(())
    }
}

/// A transaction; rolled back when dropped without [`Tx::commit`].
pub struct Tx<'a> {
    db: &'a Connection,
    path: &'a Path,
    writer: &'a Writer,
    writes: bool,
    progress: &'a Progress,
    /// Set when writes failed half-way, so that the first half cannot be committed.
    failed: Cell<bool>,
}

impl<'a> Tx<'a> {
    fn begin(store: &'a Store, sql: &str, writes: bool) -> Result<Tx<'a>, StoreError> {
        let (writer, progress) = (&store.options.writer, &store.options.progress);
        let tx = Tx { db: &store.db, path: &store.path, writer, writes, progress, failed: Cell::new(false) };
        tx.run(sql)?;
        Ok(tx)
    }

    fn run(&self, sql: &str) -> Result<(), StoreError> {
        let done = self.db.prepare_cached(sql).and_then(|mut statement| statement.execute([]));
        self.at(done.map_err(Failure::from))?;
        Ok(())
    }

    fn at<T>(&self, result: Result<T, Failure>) -> Result<T, StoreError> {
        result.map_err(|failure| failure.at(self.path))
    }

    /// Runs a change; its failure is the end of the transaction.
    fn change<T>(&self, change: impl FnOnce() -> Result<T, Failure>) -> Result<T, StoreError> {
        if !self.writes {
            return Err(StoreError::ReadTransaction);
        }
        if self.failed.get() {
            return Err(StoreError::Failed);
        }
        let result = self.at(change());
        self.failed.set(result.is_err());
        result
    }

    /// Answers what a decision asks, for the project `project_id` in `root`; `None`
    /// for what is not in the database.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`] for the lessons of a loop that does not exist.
    pub fn answer(
        &self,
        project_id: &str,
        root: &str,
        query: &tools::Query,
    ) -> Result<Option<tools::Answer>, StoreError> {
        self.at(load::answer(self.db, &self.writer.name, project_id, root, query))
    }

    /// Applies the writes in order, none of which archives files.
    ///
    /// # Errors
    /// The first write that fails, by what it is about; a loop of another logic is one
    /// reason ([`StoreError::OtherLogic`]). The transaction can then only be rolled back.
    pub fn apply(&self, writes: &[tools::Write]) -> Result<(), StoreError> {
        self.apply_with(writes, &Held::new(), &[])
    }

    /// Applies the writes in order; archives among them take their files from `held`, and
    /// `folders` are the loops, by id, whose files will follow.
    ///
    /// # Errors
    /// See [`Tx::apply`]; a file that is not held is one, and a folder of a loop that
    /// another logic wrote or that is not there by then.
    pub fn apply_with(
        &self,
        writes: &[tools::Write],
        held: &Held,
        folders: &[&str],
    ) -> Result<(), StoreError> {
        if writes.is_empty() {
            // Nothing that could be undone, so a transaction that only reads will do.
            return folders.iter().try_for_each(|id| self.check_own_loop(id));
        }
        self.change(|| apply::apply(self.db, self.writer, writes, held, folders, self.progress))
    }

    /// Returns the loop that the project `project_id` has as `slug` in `root`.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn loop_state(
        &self,
        project_id: &str,
        root: &str,
        slug: &str,
    ) -> Result<Option<model::LoopState>, StoreError> {
        self.at(load::loop_state(self.db, project_id, root, slug))
    }

    /// Returns the project's loops under all of its roots, newest-touched first.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn loop_page(
        &self,
        project_id: &str,
        filter: &tools::LoopFilter,
    ) -> Result<tools::LoopPage, StoreError> {
        self.at(load::page(self.db, project_id, filter))
    }

    /// Returns the loop with this id.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn loop_state_by_id(&self, id: &str) -> Result<Option<model::LoopState>, StoreError> {
        self.at(load::loop_state_by_id(self.db, id))
    }

    /// Returns a loop's lessons, oldest first.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`].
    pub fn memories(&self, loop_id: &str) -> Result<Vec<model::Memory>, StoreError> {
        self.at(load::memories(self.db, loop_id))
    }

    /// Returns how far a loop's numbers have come.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn marks(&self, loop_id: &str) -> Result<Option<model::Marks>, StoreError> {
        self.at(load::marks(self.db, loop_id))
    }

    /// Returns the first `limit` events whose number is greater than `after`, in order.
    ///
    /// Ends with the event whose texts make it `bytes` or more in all, so that one comes
    /// back however long it is.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`].
    pub fn events_after(
        &self,
        loop_id: &str,
        after: u64,
        limit: usize,
        bytes: usize,
    ) -> Result<Vec<model::Event>, StoreError> {
        self.at(load::events_after(self.db, loop_id, after, limit, bytes))
    }

    /// Returns the documents whose loop is gone, by the loop's id.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn kept_documents(&self) -> Result<Vec<KeptDocuments>, StoreError> {
        self.at(document::kept(self.db))
    }

    /// Makes the changes lasting: they survive a kill and a power cut from here on.
    ///
    /// # Errors
    /// [`StoreError::Failed`] after a failed write, or why SQLite cannot commit; all is
    /// rolled back then.
    pub fn commit(self) -> Result<(), StoreError> {
        if self.failed.get() {
            return Err(StoreError::Failed);
        }
        self.run("COMMIT")
    }
}

impl Drop for Tx<'_> {
    fn drop(&mut self) {
        // Some failures (no room, I/O) make SQLite roll back by itself.
        if !self.db.is_autocommit()
            && let Err(error) = self.run("ROLLBACK")
        {
            tracing::error!("cannot roll back: {error}");
        }
    }
}
