//! What people do to the database as a whole: copy it, shrink it, look it over.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::check::beside;
use super::error::{Failure, StoreError};
use super::load::{all, count, first};
use super::migrate::copy;
use super::open::connect;
use super::record::quoted;
use super::{Store, Tx, archive, document, schema};
use crate::contract::model;

/// How much room the database takes, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Size {
    /// The main file.
    pub database: u64,
    /// What is not folded into it yet.
    pub log: u64,
}

impl Size {
    fn of(path: &Path) -> Size {
        let length = |path: &Path| fs::metadata(path).map_or(0, |metadata| metadata.len());
        Size { database: length(path), log: length(&beside(path, "-wal")) }
    }

    /// Both files.
    pub fn total(self) -> u64 {
        self.database.saturating_add(self.log)
    }
}

/// What a return of freed pages came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vacuumed {
    /// The database and its log before.
    pub bytes_before: u64,
    /// And after.
    pub bytes_after: u64,
}

/// A loop that stands on an unresolved refusal.
#[derive(Clone, Debug, PartialEq)]
pub struct Latched {
    /// Which loop.
    pub place: model::LoopPlace,
    /// The refusal.
    pub block: model::Block,
    /// When the loop was touched last.
    pub updated_at: i64,
}

/// A loop that has not ended and says what is being worked on.
#[derive(Clone, Debug, PartialEq)]
pub struct Pointed {
    /// Which loop.
    pub place: model::LoopPlace,
    /// What is being worked on.
    pub now: model::NowPointer,
    /// When the loop was touched last.
    pub updated_at: i64,
}

impl Store {
    /// Returns how much room the database takes.
    pub fn size(&self) -> Size {
        Size::of(&self.path)
    }

    /// Copies the database, as it is at one moment, to the new file `to`.
    ///
    /// Servers may work on it meanwhile. The copy is for its owner alone, was compared
    /// with itself, and has its name only once it is whole. Returns its length in bytes.
    ///
    /// # Errors
    /// [`StoreError::Backup`], also when `to` exists.
    pub fn backup(&mut self, to: &Path) -> Result<u64, StoreError> {
        self.refresh()?;
        let failed = |detail: String| StoreError::Backup { path: to.to_owned(), detail };
        if fs::symlink_metadata(to).is_ok() {
            return Err(failed("something is there already, choose another name".to_owned()));
        }
        let unfinished = beside(to, &format!(".copying-{}", std::process::id()));
        let progress = &self.options.progress;
        // Free pages are not copied, so that it ends a little before it was told.
        progress.begin_file("copying the database", unfinished.clone(), self.size().database);
        let made = copy(&self.path, &unfinished, &self.options)
            .inspect(|()| progress.begin("checking the copy"))
            .and_then(|()| self.inspect(&unfinished))
            .and_then(|()| settle(&unfinished, to).map_err(|error| error.to_string()));
        let _ = fs::remove_file(&unfinished);
        made.map_err(failed)?;
        Ok(fs::metadata(to).map_err(|error| failed(error.to_string()))?.len())
    }

    /// Finds out whether a copy is a whole database.
    fn inspect(&self, copy: &Path) -> Result<(), String> {
        let told = |failure: Failure| failure.at(copy).to_string();
        let db = connect(copy, OpenFlags::SQLITE_OPEN_READ_ONLY, true, &self.options).map_err(told)?;
        match integrity(&db).map_err(told)?.first() {
            None => Ok(()),
            Some(fault) => Err(format!("the copy is damaged: {fault}")),
        }
    }

    /// Returns freed pages to the file system.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another process keeps writing, [`StoreError::Full`] when
    /// there is no room for the rebuilt database.
    pub fn vacuum(&mut self) -> Result<Vacuumed, StoreError> {
        self.options.progress.begin("rebuilding the database");
        // For its refusals, and to have the file that is there now.
        drop(self.write()?);
        let bytes_before = self.size().total();
        let done = self.db.execute_batch("VACUUM").map_err(Failure::from);
        done.map_err(|failure| failure.at(&self.path))?;
        // Folds the rebuilt pages in. A reader elsewhere can be in the way; the next fold does it.
        let folded = self.db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
        match folded {
            Ok(0) => {}
            Ok(_) => tracing::info!("the log stays until a reader of {} is done", self.path.display()),
            Err(error) => tracing::info!("the log of {} stays: {error}", self.path.display()),
        }
        Ok(Vacuumed { bytes_before, bytes_after: self.size().total() })
    }
}

/// Gives a finished file its name, unless the name is taken by now.
fn settle(unfinished: &Path, to: &Path) -> io::Result<()> {
    // A link is never made over something, as a renamed file is.
    if fs::hard_link(unfinished, to).is_err() {
        if fs::symlink_metadata(to).is_ok() {
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, "something is there already"));
        }
        fs::rename(unfinished, to)?;
    }
    match to.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}

/// What SQLite finds wrong, and rows that refer to none.
fn integrity(db: &Connection) -> Result<Vec<String>, Failure> {
    let mut faults = all(db, "PRAGMA integrity_check", [], |row| Ok(row.get::<_, String>(0)?))?;
    faults.retain(|line| line != "ok");
    faults.extend(all(db, "PRAGMA foreign_key_check", [], |row| {
        let (table, parent): (String, String) = (row.get(0)?, row.get(2)?);
        Ok(format!("a row of the table {table} refers to one that the table {parent} does not have"))
    })?);
    Ok(faults)
}

/// A loop's place, in the order that [`place`] reads.
const PLACE: &str = "id, slug, title, status, project_root";

fn place(row: &rusqlite::Row<'_>) -> Result<model::LoopPlace, Failure> {
    Ok(model::LoopPlace {
        id: row.get(0)?,
        slug: row.get(1)?,
        title: row.get(2)?,
        status: row.get(3)?,
        project_root: row.get(4)?,
    })
}

impl Tx<'_> {
    /// Returns what is wrong with the file as a database; nothing is good.
    ///
    /// Reads every page.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn integrity_check(&self) -> Result<Vec<String>, StoreError> {
        self.at(integrity(self.db))
    }

    /// Compares every stored content with its digest; returns what is wrong, by name.
    ///
    /// Reads and unpacks every document's revision and every archive.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn content_check(&self) -> Result<Vec<String>, StoreError> {
        let mut faults = self.at(document::faults(self.db))?;
        let archives =
            all(self.db, "SELECT id FROM loop_archive ORDER BY id", [], |row| Ok(row.get::<_, String>(0)?));
        for id in self.at(archives)? {
            match self.at(archive::check(self.db, &id)) {
                Ok(()) => {}
                Err(StoreError::DamagedArchive { id, detail }) => {
                    faults.push(format!("the archive {id}: {detail}"));
                }
                Err(other) => return Err(other),
            }
        }
        Ok(faults)
    }

    /// Returns the version of the schema.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn schema_version(&self) -> Result<i32, StoreError> {
        let found = first(self.db, "PRAGMA user_version", [], |row| Ok(row.get(0)?));
        Ok(self.at(found)?.unwrap_or(0))
    }

    /// Returns how many rows each table has, by name.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn row_counts(&self) -> Result<Vec<(String, u64)>, StoreError> {
        let counted = || -> Result<_, Failure> {
            let mut counts = Vec::new();
            for table in schema::tables(self.db)? {
                let sql = format!("SELECT count(*) FROM {}", quoted(&table.name));
                let rows = first(self.db, &sql, [], |row| count(row, 0))?.unwrap_or(0);
                counts.push((table.name, rows));
            }
            Ok(counts)
        };
        self.at(counted())
    }

    /// Returns the loops that have not resolved a refusal, the last touched first.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn latched(&self) -> Result<Vec<Latched>, StoreError> {
        let sql = format!(
            "SELECT {PLACE}, blocked_op, blocked_task, blocked_reason, updated_at FROM loop \
             WHERE blocked_op IS NOT NULL ORDER BY updated_at DESC, loop_key"
        );
        self.at(all(self.db, &sql, [], |row| {
            let block = model::Block { op: row.get(5)?, task: row.get(6)?, reason: row.get(7)? };
            Ok(Latched { place: place(row)?, block, updated_at: row.get(8)? })
        }))
    }

    /// Returns the loops that have not ended and have a pointer, the oldest pointer first.
    ///
    /// Which of them are stale is not the store's to say.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn pointed(&self) -> Result<Vec<Pointed>, StoreError> {
        let sql = format!(
            "SELECT {PLACE}, now_agent, now_task, now_step, now_since, updated_at FROM loop \
             WHERE now_agent IS NOT NULL AND finished_at IS NULL ORDER BY now_since, loop_key"
        );
        self.at(all(self.db, &sql, [], |row| {
            let now = model::NowPointer {
                agent: row.get(5)?,
                task: row.get(6)?,
                step: row.get(7)?,
                since: row.get(8)?,
            };
            Ok(Pointed { place: place(row)?, now, updated_at: row.get(9)? })
        }))
    }
}
