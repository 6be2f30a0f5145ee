//! From a folder to a connection: the folder, the file, access and journal mode.

use std::fs::{self, DirBuilder, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::check::{State, beside, judge, main_file, orphaned_log};
use super::error::{Failure, StoreError};
use super::{FILE, Store, Writer, migrate};
use crate::progress::Progress;

/// Every statement of the store stays prepared.
const STATEMENTS: usize = 64;
/// What a log may keep of the disk after a large transaction, in bytes.
const LOG_BYTES: i64 = 8 << 20;

/// What tests set otherwise.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// How long a lock of another process is waited for.
    pub busy_timeout: Duration,
    /// One script for each schema version, from 1.
    pub migrations: &'static [&'static str],
    /// SQLite's file layer, by name.
    pub vfs: Option<&'static str>,
    /// Opened to be looked at, and never anew for anything else.
    pub looks: bool,
    /// Whose changes are stored.
    pub writer: Arc<Writer>,
    /// Where long work tells how far it has come.
    pub progress: Progress,
}

impl Default for Options {
    fn default() -> Self {
        let busy_timeout = Duration::from_millis(5000);
        Options {
            busy_timeout,
            migrations: migrate::MIGRATIONS,
            vfs: None,
            looks: false,
            writer: Arc::default(),
            progress: Progress::default(),
        }
    }
}

impl Options {
    /// The newest schema version.
    pub(super) fn supported(&self) -> i32 {
        // A list in the source, never longer than that.
        i32::try_from(self.migrations.len()).unwrap_or(i32::MAX)
    }
}

/// What the connection may do.
#[derive(Clone, Debug)]
pub(super) enum Access {
    ReadWrite,
    ReadOnly { reason: String },
}

impl Access {
    pub(super) fn read_only(&self) -> Option<&str> {
        match self {
            Access::ReadWrite => None,
            Access::ReadOnly { reason } => Some(reason),
        }
    }
}

/// Which file a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    pub(super) fn of(path: &Path) -> Option<FileId> {
        let metadata = fs::metadata(path).ok()?;
        Some(FileId { device: metadata.dev(), inode: metadata.ino() })
    }
}

pub(super) fn open(folder: &Path, options: Options) -> Result<Store, StoreError> {
    ensure_folder(folder)?;
    let path = folder.join(FILE);
    ensure_file(&path)?;
    // Taken first: should the file be replaced meanwhile, the next call opens anew.
    let file = FileId::of(&path).ok_or_else(|| gone(&path))?;
    rustix::fs::access(&path, rustix::fs::Access::READ_OK)
        .map_err(|error| trouble("read", &path, error.into()))?;
    if !is_empty(&path) {
        main_file(&path, &options)?;
    }
    let (db, access, journal_mode) = match unwritable(&path) {
        Some(reason) => read_only(&path, reason, &options)?,
        None => read_write(&path, &options)?,
    };
    db.set_prepared_statement_cache_capacity(STATEMENTS);
    let folder = folder.to_owned();
    Ok(Store { db, folder, path, access, journal_mode, file, options })
}

/// The folder at `path`, for its owner alone.
fn ensure_folder(path: &Path) -> Result<(), StoreError> {
    let wanted = "a folder";
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            // A folder that holds other things as well may be open to others on purpose.
            if holds_nothing_else(path) {
                close_to_others(path);
            }
            Ok(())
        }
        Ok(metadata) => Err(StoreError::WrongKind { path: path.to_owned(), found: kind(&metadata), wanted }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if is_link(path) {
                let found = "a link to something that does not exist";
                return Err(StoreError::WrongKind { path: path.to_owned(), found, wanted });
            }
            let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
            made.map_err(|error| trouble("create the folder", path, error))
        }
        Err(error) => Err(trouble("look at", path, error)),
    }
}

fn holds_nothing_else(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|entries| {
        entries.flatten().all(|entry| entry.file_name().as_bytes().starts_with(FILE.as_bytes()))
    })
}

/// A regular file at `path`; an empty one when there was nothing.
fn ensure_file(path: &Path) -> Result<(), StoreError> {
    // One thread at a time: closing the new file would drop the locks that another
    // thread of this process got on it in between.
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());

    orphaned_log(path)?;
    let wanted = "a database file";
    match fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Ok(()),
        Ok(metadata) => Err(StoreError::WrongKind { path: path.to_owned(), found: kind(&metadata), wanted }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            if is_link(path) {
                let found = "a link to something that does not exist";
                return Err(StoreError::WrongKind { path: path.to_owned(), found, wanted });
            }
            match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
                Ok(_) => Ok(()),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                Err(error) => Err(trouble("create", path, error)),
            }
        }
        Err(error) => Err(trouble("look at", path, error)),
    }
}

pub(super) fn is_link(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|metadata| metadata.is_symlink())
}

pub(super) fn kind(metadata: &Metadata) -> &'static str {
    if metadata.is_dir() {
        "a folder"
    } else if metadata.is_file() {
        "a file"
    } else {
        "a special file"
    }
}

pub(super) fn trouble(action: &'static str, path: &Path, source: io::Error) -> StoreError {
    if source.kind() == io::ErrorKind::StorageFull {
        let folder = path.parent().unwrap_or(path).to_owned();
        return StoreError::Full { folder };
    }
    StoreError::Folder { action, path: path.to_owned(), source }
}

pub(super) fn gone(path: &Path) -> StoreError {
    trouble("look at", path, io::ErrorKind::NotFound.into())
}

/// Takes the rights of everyone but the owner away, where there are any.
///
/// Best effort: the file may be another user's. What its owner made read-only
/// is left alone.
fn close_to_others(path: &Path) {
    let Ok(metadata) = fs::metadata(path) else {
        return;
    };
    let mode = metadata.mode() & 0o7777;
    if mode & 0o077 != 0 && mode & 0o200 != 0 {
        let closed = fs::set_permissions(path, Permissions::from_mode(mode & !0o077));
        if let Err(error) = closed {
            tracing::debug!("{} stays open to others: {error}", path.display());
        }
    }
}

/// Says why the file cannot be written, if it cannot.
pub(super) fn unwritable(path: &Path) -> Option<String> {
    use rustix::fs::Access;
    if let Err(error) = rustix::fs::access(path, Access::WRITE_OK) {
        return Some(io::Error::from(error).to_string());
    }
    // SQLite keeps its log beside the file itself, not beside a link to it.
    let real = fs::canonicalize(path).ok()?;
    let folder = real.parent()?;
    let error = rustix::fs::access(folder, Access::WRITE_OK | Access::EXEC_OK).err()?;
    Some(format!("its folder: {}", io::Error::from(error)))
}

/// Opens the file with nothing but the access that `flags` give.
///
/// `immutable` reads the main file alone, without locks, log or journal. The
/// connection leaves a log as it is when it closes.
pub(super) fn connect(
    path: &Path,
    flags: OpenFlags,
    immutable: bool,
    options: &Options,
) -> Result<Connection, Failure> {
    let flags = flags
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI
        | OpenFlags::SQLITE_OPEN_EXRESCODE;
    let uri = uri(path, if immutable { "?immutable=1" } else { "" });
    let db = match options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(uri, flags, vfs)?,
        None => Connection::open_with_flags(uri, flags)?,
    };
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    // Else some statements are prepared anew at every other value that is bound.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    db.busy_timeout(options.busy_timeout)?;
    Ok(db)
}

/// The path as SQLite reads it in a URI, whatever bytes it holds.
pub(super) fn uri(path: &Path, query: &str) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => uri.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri + query
}

fn read_write(path: &Path, options: &Options) -> Result<(Connection, Access, String), StoreError> {
    let at = |failure: Failure| failure.at(path);
    let mut db = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE, false, options).map_err(at)?;
    let set = |db: &Connection, name: &str, value: &dyn rusqlite::ToSql| {
        db.pragma_update(None, name, value).map_err(|error| Failure::from(error).at(path))
    };
    set(&db, "synchronous", &"FULL")?;
    migrate::bring_up(&mut db, path, options)?;
    for suffix in ["", "-wal", "-shm"] {
        close_to_others(&beside(path, suffix));
    }
    let journal_mode = choose_journal(&db, path, options)?;
    set(&db, "foreign_keys", &true)?;
    set(&db, "journal_size_limit", &LOG_BYTES)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
        .map_err(|error| Failure::from(error).at(path))?;
    Ok((db, Access::ReadWrite, journal_mode))
}

fn read_only(
    path: &Path,
    reason: String,
    options: &Options,
) -> Result<(Connection, Access, String), StoreError> {
    // Where no log or journal is in use the main file is the whole database. Read alone, it
    // needs no log's files made beside it; every call opens it anew, so that one which came
    // into use meanwhile is seen.
    let alone = ["-wal", "-journal"].iter().all(|suffix| is_empty(&beside(path, suffix)));
    let (db, state, mode) = to_read(path, alone, options)?;
    let path = path.to_owned();
    match state {
        State::Version(version) if version == options.supported() => {
            Ok((db, Access::ReadOnly { reason }, mode))
        }
        State::Version(version) => {
            let to = options.supported();
            let reason = format!("{reason}, and its schema version {version} has to become {to} first");
            Err(StoreError::ReadOnly { path, reason })
        }
        State::Empty => Err(StoreError::ReadOnly { path, reason: format!("{reason}, and it is empty") }),
    }
}

/// Opens the file for reading, the main file alone or with its log, and tells how far it
/// is and its journal mode.
pub(super) fn to_read(
    path: &Path,
    alone: bool,
    options: &Options,
) -> Result<(Connection, State, String), StoreError> {
    let opened = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, alone, options).and_then(|db| {
        let state = judge(&db, path, options.supported())?;
        let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
        Ok((db, state, mode))
    });
    opened.map_err(|failure| failure.at(path))
}

pub(super) fn is_empty(path: &Path) -> bool {
    fs::metadata(path).map_or(true, |metadata| metadata.len() == 0)
}

/// Brings the database into the journal mode that fits its file system, and returns
/// the mode that it then really has.
fn choose_journal(db: &Connection, path: &Path, options: &Options) -> Result<String, StoreError> {
    let wanted = if on_network(path) { "delete" } else { "wal" };
    let current = || db.query_row("PRAGMA journal_mode", [], |row| row.get::<_, String>(0));
    let deadline = Instant::now() + options.busy_timeout;
    loop {
        let mode = current().map_err(|error| Failure::from(error).at(path))?;
        if mode == wanted {
            return Ok(mode);
        }
        // Needs the file for itself for a moment, and SQLite does not wait for that.
        let changed =
            db.query_row(&format!("PRAGMA journal_mode = {wanted}"), [], |row| row.get::<_, String>(0));
        match changed {
            Ok(mode) if mode == wanted => return Ok(mode),
            Err(error)
                if error.sqlite_error_code() == Some(ErrorCode::DatabaseBusy)
                    && Instant::now() < deadline =>
            {
                std::thread::sleep(Duration::from_millis(2));
            }
            refused => {
                let why = match refused {
                    Ok(_) => "the file system does not support it".to_owned(),
                    Err(error) => error.to_string(),
                };
                let mode = current().map_err(|error| Failure::from(error).at(path))?;
                tracing::warn!("{}: journal mode {mode} instead of {wanted}: {why}", path.display());
                return Ok(mode);
            }
        }
    }
}

/// Whether other machines may have the same file open, with whom a log cannot be shared.
#[cfg(target_os = "linux")]
fn on_network(path: &Path) -> bool {
    /// NFS, SMB, CIFS, SMB 2, 9p, AFS and Ceph, as `statfs` tells them.
    const NETWORK: [u32; 7] =
        [0x6969, 0x517b, 0xff53_4d42, 0xfe53_4d42, 0x0102_1997, 0x5346_414f, 0x00c3_6400];
    // The type's width differs by platform; its numbers have 32 bits.
    #[allow(clippy::unnecessary_cast)]
    rustix::fs::statfs(path).is_ok_and(|found| NETWORK.contains(&(found.f_type as u32)))
}

#[cfg(not(target_os = "linux"))]
fn on_network(_path: &Path) -> bool {
    false
}
