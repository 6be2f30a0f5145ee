//! What people look at and no tool asks for: the newest rows of a loop's history,
//! and whether anything changed.

use rusqlite::Connection;

use super::error::{Failure, StoreError};
use super::load::{count, first, loop_key, read, text_bytes};
use super::record::Record;
use super::{Store, Tx};
use crate::contract::model;

/// The newest rows of a list, oldest first, and how many there are in all.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Newest<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// How many there are, these included.
    pub all: u64,
}

impl<T> Newest<T> {
    /// How many older rows are not among them.
    pub fn left_out(&self) -> u64 {
        self.all.saturating_sub(self.rows.len() as u64)
    }
}

/// How much of a list is read.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The most rows.
    pub rows: u32,
    /// No row is read after those whose texts reach this many bytes in all.
    pub bytes: usize,
}

fn newest<R: Record>(
    db: &Connection,
    id: &str,
    bounds: Bounds,
    bytes: impl Fn(&R) -> usize,
) -> Result<Newest<R>, Failure> {
    let key = loop_key(db, id)?;
    let sql = R::sql();
    let counted = format!("SELECT count(*) FROM {} WHERE loop_key = ?1", sql.table);
    let all = first(db, &counted, [key], |row| count(row, 0))?.unwrap_or(0);
    let rows =
        format!("SELECT {} FROM {} WHERE loop_key = ?1 ORDER BY seq DESC LIMIT ?2", sql.columns, sql.table);
    let mut statement = db.prepare_cached(&rows)?;
    let mut found = statement.query((key, bounds.rows))?;
    let mut rows = Vec::new();
    let mut taken = 0_usize;
    while taken < bounds.bytes
        && let Some(row) = found.next()?
    {
        let record: R = read(row)?;
        taken = taken.saturating_add(bytes(&record));
        rows.push(record);
    }
    rows.reverse();
    Ok(Newest { rows, all })
}

impl Tx<'_> {
    /// Returns the newest events of a loop.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`].
    pub fn newest_events(&self, id: &str, bounds: Bounds) -> Result<Newest<model::Event>, StoreError> {
        self.at(newest(self.db, id, bounds, text_bytes))
    }

    /// Returns the newest steps of a loop.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`].
    pub fn newest_steps(&self, id: &str, bounds: Bounds) -> Result<Newest<model::Step>, StoreError> {
        self.at(newest(self.db, id, bounds, |step: &model::Step| step.agent.len() + step.step.len()))
    }

    /// Returns the newest lessons of a loop.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`].
    pub fn newest_memories(&self, id: &str, bounds: Bounds) -> Result<Newest<model::Memory>, StoreError> {
        self.at(newest(self.db, id, bounds, |lesson: &model::Memory| lesson.note.len()))
    }

    /// Returns the newest entries of the ledger of a loop's own run.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`].
    pub fn newest_ledger(&self, id: &str, bounds: Bounds) -> Result<Newest<model::LedgerEntry>, StoreError> {
        self.at(newest(self.db, id, bounds, |entry: &model::LedgerEntry| entry.detail.len()))
    }
}

/// A state of the database as one connection sees it; another one means that another
/// connection has committed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Version(i64, super::open::FileId);

impl Store {
    /// Returns which state of the database there is to read.
    ///
    /// Reads no table and takes no lock that a writer waits for.
    ///
    /// # Errors
    /// The database was moved away, and none can be opened in its place.
    pub fn version(&mut self) -> Result<Version, StoreError> {
        self.refresh()?;
        let found = first(&self.db, "PRAGMA data_version", [], |row| Ok(row.get(0)?));
        let found = found.map_err(|failure| failure.at(&self.path))?;
        Ok(Version(found.unwrap_or(0), self.file))
    }
}
