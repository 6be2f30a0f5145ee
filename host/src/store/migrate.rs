//! From whatever version a database has to the newest one.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, OpenFlags, TransactionBehavior};

use super::check::{APPLICATION_ID, State, beside, judge};
use super::error::{Failure, StoreError};
use super::open::{Options, connect, uri};

/// The script that leads to each schema version, from 1.
pub(super) const MIGRATIONS: &[&str] = &[
    include_str!("migrations/0001.sql"),
    include_str!("migrations/0002.sql"),
    include_str!("migrations/0003.sql"),
    include_str!("migrations/0004.sql"),
];

/// Brings the database to the newest version, in one transaction.
///
/// However many processes do this at once, one migrates, and the others find it done
/// when they get the lock. Content that is there already is copied first.
pub(super) fn bring_up(db: &mut Connection, path: &Path, options: &Options) -> Result<(), StoreError> {
    let at = |failure: Failure| failure.at(path);
    let to = options.supported();
    if judge(db, path, to).map_err(at)? == State::Version(to) {
        return Ok(());
    }
    // Has no effect inside a transaction. A script may rebuild a table that others refer to;
    // the references are checked at its end.
    db.pragma_update(None, "foreign_keys", false).map_err(|error| at(error.into()))?;
    let tx =
        db.transaction_with_behavior(TransactionBehavior::Immediate).map_err(|error| at(error.into()))?;
    // Again, under the lock: the list of what is to be done may have become empty.
    let from = match judge(&tx, path, to).map_err(at)? {
        State::Version(version) if version == to => return Ok(()),
        State::Version(version) => version,
        State::Empty => 0,
    };
    let kept = if from == 0 { None } else { Some(snapshot(path, to, options)?) };
    let done = run(&tx, from, options).and_then(|()| Ok(tx.commit()?));
    match (done.map_err(at), kept) {
        (Ok(()), Some(kept)) => {
            tracing::warn!(
                "{} was brought from schema version {from} to {to}; a copy from before is {}",
                path.display(),
                kept.display()
            );
            Ok(())
        }
        (Err(source), kept) if from > 0 => Err(StoreError::Migration {
            path: path.to_owned(),
            from,
            to,
            snapshot: kept,
            source: Box::new(source),
        }),
        (done, _) => done,
    }
}

fn run(db: &Connection, from: i32, options: &Options) -> Result<(), Failure> {
    // Never negative, `judge` has seen to that.
    for script in options.migrations.iter().skip(usize::try_from(from).unwrap_or(0)) {
        db.execute_batch(script)?;
    }
    if db.prepare("PRAGMA foreign_key_check")?.exists([])? {
        return Err(Failure::Value("a row refers to one that does not exist".to_owned()));
    }
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.pragma_update(None, "user_version", options.supported())?;
    Ok(())
}

/// Copies the database beside itself, as it is before it gets version `to`.
///
/// The caller holds the write lock, so that nothing changes between the copy and the
/// migration; a second connection reads what is committed.
fn snapshot(path: &Path, to: i32, options: &Options) -> Result<PathBuf, StoreError> {
    let kept = unused(path, to);
    let failed = |detail: String| StoreError::Snapshot { snapshot: kept.clone(), detail };
    // Only the holder of the lock gets here: an older one is a left-over.
    let unfinished = beside(path, ".copying");
    let copied = copy(path, &unfinished, options).and_then(|()| {
        fs::rename(&unfinished, &kept)
            .and_then(|()| match path.parent() {
                Some(folder) => File::open(folder)?.sync_all(),
                None => Ok(()),
            })
            .map_err(|error| error.to_string())
    });
    if let Err(detail) = copied {
        let _ = fs::remove_file(&unfinished);
        return Err(failed(detail));
    }
    Ok(kept)
}

pub(super) fn copy(path: &Path, to: &Path, options: &Options) -> Result<(), String> {
    let _ = fs::remove_file(to);
    // SQLite fills an empty file, and would make one that others can read.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to);
    let file = file.map_err(|error| error.to_string())?;
    let source = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY, false, options)
        .map_err(|failure| failure.at(path).to_string())?;
    source.execute("VACUUM INTO ?1", [uri(to, "")]).map_err(|error| error.to_string())?;
    file.sync_all().map_err(|error| error.to_string())
}

/// The first free name for a copy from before version `to`.
fn unused(path: &Path, to: i32) -> PathBuf {
    let first = beside(path, &format!(".before-v{to}"));
    if !first.exists() {
        return first;
    }
    (2_u32..)
        .map(|n| beside(path, &format!(".before-v{to}-{n}")))
        .find(|path| !path.exists())
        .unwrap_or(first)
}
