//! Opening the database to look at it, so that nothing changes by it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;

use super::check::{State, beside, main_file, orphaned_log};
use super::error::StoreError;
use super::open::{Access, FileId, Options, gone, is_empty, is_link, kind, to_read, trouble, unwritable};
use super::{FILE, Store, Writer};

/// What there is to look at.
pub enum Looked {
    /// No database, or one without any content.
    Nothing,
    /// One that has to be migrated before it can be read.
    Older {
        /// The version of its schema.
        version: i32,
    },
    /// One of the present version.
    Store(Box<Store>),
}

impl Store {
    /// Opens the database in the state folder `dir` to look at it, as `writer` would see it.
    ///
    /// No folder and no database is made, nothing is migrated, access and journal mode
    /// stay as they are. A log that another process left may get an index beside it, as
    /// SQLite reads none without. The store refuses every change. Not for a process that
    /// has the same database open otherwise: it loses its locks.
    ///
    /// # Errors
    /// As for [`Store::open`].
    pub fn look(dir: &Path, writer: Writer) -> Result<Looked, StoreError> {
        look(dir, Options { looks: true, writer: Arc::new(writer), ..Options::default() })
    }

    /// Returns why the database could not be written either, if so.
    pub fn unwritable(&self) -> Option<String> {
        unwritable(&self.path)
    }

    /// Returns the newest schema version that this program knows.
    pub fn supported_version() -> i32 {
        Options::default().supported()
    }
}

fn look(folder: &Path, options: Options) -> Result<Looked, StoreError> {
    let path = folder.join(FILE);
    orphaned_log(&path)?;
    match fs::metadata(&path) {
        Ok(metadata) if !metadata.is_file() => {
            let (found, wanted) = (kind(&metadata), "a database file");
            return Err(StoreError::WrongKind { path, found, wanted });
        }
        Ok(metadata) if metadata.len() == 0 => return Ok(Looked::Nothing),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound && !is_link(&path) => {
            return Ok(Looked::Nothing);
        }
        Err(error) => return Err(trouble("look at", &path, error)),
    }
    let file = FileId::of(&path).ok_or_else(|| gone(&path))?;
    rustix::fs::access(&path, rustix::fs::Access::READ_OK)
        .map_err(|error| trouble("read", &path, error.into()))?;
    main_file(&path, &options)?;
    let at_rest = is_at_rest(&path);
    let logs = at_rest && is_marked_for_log(&path).map_err(|error| trouble("read", &path, error))?;
    let (db, state, mode) = to_read(&path, at_rest, &options)?;
    // Without its log's files, SQLite tells a mode that no other connection is in.
    let journal_mode = if logs { "wal".to_owned() } else { mode };
    match state {
        State::Version(version) if version == options.supported() => {
            let access = Access::ReadOnly { reason: "it was opened to be looked at".to_owned() };
            let folder = folder.to_owned();
            Ok(Looked::Store(Box::new(Store { db, folder, path, access, journal_mode, file, options })))
        }
        State::Version(version) => Ok(Looked::Older { version }),
        State::Empty => Ok(Looked::Nothing),
    }
}

/// Whether the main file is the whole database and no process has it open, as far as
/// the files beside it tell.
fn is_at_rest(path: &Path) -> bool {
    ["-wal", "-journal"].iter().all(|suffix| is_empty(&beside(path, suffix)))
        && !beside(path, "-shm").exists()
}

/// Whether the header of the main file says that changes go to a log first.
fn is_marked_for_log(path: &Path) -> io::Result<bool> {
    // The write version of the file format: 1 for a journal, 2 for a log.
    const WRITE_VERSION: u64 = 18;
    let mut version = [0];
    File::open(path)?.read_exact_at(&mut version, WRITE_VERSION)?;
    Ok(version == [2])
}

/// Returns the version of SQLite.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}
