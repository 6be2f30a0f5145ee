//! Which logic wrote a loop. One logic's loops are for others to read, not to
//! change: the words in their rows mean something to the one that chose them alone.

use rusqlite::Connection;

use super::Tx;
use super::error::{Failure, StoreError};
use super::load::{all, first};

/// The logic whose changes are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Writer {
    /// What it is known by.
    pub name: String,
    /// Recorded with the loops that it begins.
    pub version: String,
}

impl Default for Writer {
    /// The built-in logic, of no version.
    fn default() -> Self {
        Writer { name: "loop-state".to_owned(), version: String::new() }
    }
}

impl std::fmt::Display for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.name)?;
        if self.version.is_empty() { Ok(()) } else { write!(f, " {}", self.version) }
    }
}

/// A loop of another logic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OthersLoop {
    /// Its slug.
    pub slug: String,
    /// Its project root.
    pub project_root: String,
}

/// Loops of another logic, counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtherLogic {
    /// The logic's name.
    pub name: String,
    /// How many loops of it there are.
    pub loops: u32,
}

/// The condition that a loop is not the writer's, whose name is parameter 1; as two
/// ranges, which an index finds empty at once.
const ANOTHERS: &str = "(logic < ?1 OR logic > ?1)";

/// Returns the number of a loop that the writer may change.
pub(super) fn own_loop_key(db: &Connection, writer: &Writer, id: &str) -> Result<i64, Failure> {
    let sql = "SELECT loop_key, logic, logic_version, slug FROM loop WHERE id = ?1";
    let found = first(db, sql, [id], |row| {
        let key = row.get(0)?;
        if row.get_ref(1)?.as_str().is_ok_and(|name| name == writer.name) {
            return Ok(Ok(key));
        }
        let version = row.get::<_, Option<String>>(2)?.unwrap_or_default();
        let wrote = Writer { name: row.get(1)?, version };
        Ok(Err((format!("loop {}", row.get::<_, String>(3)?), wrote)))
    })?;
    match found {
        Some(Ok(key)) => Ok(key),
        Some(Err((what, wrote))) => Err(StoreError::OtherLogic { what, wrote, runs: writer.clone() }.into()),
        None => Err(StoreError::UnknownLoop { id: id.to_owned() }.into()),
    }
}

/// Refuses an archive of another logic's loop; one that does not exist passes.
pub(super) fn check_archive(db: &Connection, writer: &Writer, id: &str) -> Result<(), Failure> {
    let sql = "SELECT slug, logic FROM loop_archive WHERE id = ?1 AND logic <> ?2";
    let found = first(db, sql, [id, &writer.name], |row| {
        Ok((row.get::<_, String>(0)?, Writer { name: row.get(1)?, version: String::new() }))
    })?;
    match found {
        Some((slug, wrote)) => {
            let what = format!("the archive {id} of loop {slug}");
            Err(StoreError::OtherLogic { what, wrote, runs: writer.clone() }.into())
        }
        None => Ok(()),
    }
}

impl Tx<'_> {
    /// Refuses a loop that another logic wrote.
    ///
    /// # Errors
    /// [`StoreError::OtherLogic`], [`StoreError::UnknownLoop`].
    pub(super) fn check_own_loop(&self, id: &str) -> Result<(), StoreError> {
        self.at(own_loop_key(self.db, self.writer, id).map(|_| ()))
    }

    /// Returns the other logics that have loops here, by name.
    ///
    /// # Errors
    /// A failing database.
    pub fn other_logics(&self) -> Result<Vec<OtherLogic>, StoreError> {
        let sql = format!("SELECT logic, count(*) FROM loop WHERE {ANOTHERS} GROUP BY logic ORDER BY logic");
        let read = |row: &rusqlite::Row<'_>| Ok(OtherLogic { name: row.get(0)?, loops: row.get(1)? });
        self.at(all(self.db, &sql, [&self.writer.name], read))
    }

    /// Returns the loops of other logics.
    ///
    /// # Errors
    /// A failing database.
    pub fn loops_of_others(&self) -> Result<Vec<OthersLoop>, StoreError> {
        let sql = format!("SELECT slug, project_root FROM loop WHERE {ANOTHERS} ORDER BY slug, project_root");
        let read = |row: &rusqlite::Row<'_>| Ok(OthersLoop { slug: row.get(0)?, project_root: row.get(1)? });
        self.at(all(self.db, &sql, [&self.writer.name], read))
    }
}
