//! Whose database a file is, told without changing a byte of it.
//!
//! A database of ours has our application id in its main file from the moment it
//! has any content: the id is set by the transaction that creates the schema, and
//! only afterwards does a write-ahead log come into use. So a look at the main file
//! alone, past locks and logs, tells another program's database; SQLite's usual way
//! of opening would recover or fold in that program's log first.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::{Failure, StoreError};
use super::open::{Options, connect};

/// What marks a database as this program's: `LOOP` in ASCII.
pub const APPLICATION_ID: i32 = 0x4c4f_4f50;

/// The smallest page there is, and so the smallest database with any content, in bytes.
const SMALLEST: u64 = 512;

/// How far a database of ours is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Without any content.
    Empty,
    /// Of this schema version, from 1 to the newest known one.
    Version(i32),
}

/// Returns what `db` is to a program that knows `supported` versions.
pub(super) fn judge(db: &Connection, path: &Path, supported: i32) -> Result<State, Failure> {
    let number = |pragma: &str| db.query_row(pragma, [], |row| row.get::<_, i32>(0));
    // First of all: outside a transaction another process can fill the file between two
    // statements, and what has content has its id as well.
    let pages: i64 = db.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    let application_id = number("PRAGMA application_id")?;
    let found = number("PRAGMA user_version")?;
    // A write transaction gives an empty file its first page before anyone asks for it.
    let begun = pages == 1 && !db.is_autocommit() && (application_id, found) == (0, 0);
    if pages == 0 || (begun && !db.prepare("SELECT 1 FROM sqlite_schema")?.exists([])?) {
        return Ok(State::Empty);
    }
    let path = path.to_owned();
    if application_id != APPLICATION_ID {
        Err(StoreError::Foreign { path, application_id }.into())
    } else if found < 1 {
        Err(StoreError::BadVersion { path, found }.into())
    } else if found > supported {
        Err(StoreError::Newer { path, found, supported }.into())
    } else {
        Ok(State::Version(found))
    }
}

/// Refuses a file that is not ours, by its main file alone.
///
/// A log can still hold a newer version than the main file shows; [`judge`] over a
/// normal connection finds that one.
pub(super) fn main_file(path: &Path, options: &Options) -> Result<(), StoreError> {
    // The first transaction of another process may be half written; it says so with a
    // journal, and takes a few milliseconds.
    const PATIENCE: u32 = 40;
    let journal = beside(path, "-journal");
    // SQLite takes a file of one byte for an empty one and would write over it.
    if std::fs::metadata(path).is_ok_and(|metadata| (1..SMALLEST).contains(&metadata.len())) {
        return Err(StoreError::NotADatabase { path: path.to_owned() });
    }
    for left in (0..PATIENCE).rev() {
        // Through SQLite, not `File`: closing a file drops all locks that this process
        // has on it, those of SQLite's other connections too, and SQLite knows that.
        let writing = journal.exists();
        let judged = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, true, options)
            .and_then(|db| judge(&db, path, options.supported()))
            .map_err(|failure| failure.at(path));
        match judged {
            Ok(_) => return Ok(()),
            Err(_) if left > 0 && (writing || journal.exists()) => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Refuses to start a new database over the log of one that is gone.
///
/// SQLite would delete such a log.
pub(super) fn orphaned_log(path: &Path) -> Result<(), StoreError> {
    let length = |path: &Path| std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let log = beside(path, "-wal");
    // In this order: the main file of a living log has had content for longer.
    if length(&log) > 0 && length(path) == 0 {
        return Err(StoreError::Orphaned { log });
    }
    Ok(())
}

/// Returns the path with `suffix` at the end of its name.
pub(super) fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}
