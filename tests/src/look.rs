//! What is in a database and in a folder, in a form that can be compared.
//!
//! The database is read through SQLite itself, past the product.

use rusqlite::types::Value;
use rusqlite::{Connection, OpenFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// A folder or a database: what stands where.
pub type Content = BTreeMap<String, Vec<u8>>;

/// Opens a database to look at it.
///
/// # Panics
///
/// When it cannot be opened, as with all of this module.
#[must_use]
pub fn open(database: &Path) -> Connection {
    let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .unwrap_or_else(|e| panic!("{}: {e}", database.display()));
    db.busy_timeout(std::time::Duration::from_secs(10)).expect("a time limit");
    db
}

/// Every row of every table, as `table: values`; empty without a database.
#[must_use]
pub fn rows(database: &Path) -> Content {
    let mut found = Content::new();
    if !database.exists() {
        return found;
    }
    let db = open(database);
    for table in names(&db, "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name") {
        let mut statement = db.prepare(&format!("SELECT * FROM \"{table}\"")).expect("a table");
        let columns = statement.column_count();
        let mut rows = statement.query([]).expect("its rows");
        while let Some(row) = rows.next().expect("a row") {
            let values: Vec<Value> = (0..columns).map(|i| row.get(i).expect("a value")).collect();
            found.insert(format!("{table}: {values:?}"), Vec::new());
        }
    }
    found
}

/// The schema: every object's SQL, and the version.
#[must_use]
pub fn schema(database: &Path) -> Vec<String> {
    let db = open(database);
    let mut all = names(&db, "SELECT coalesce(sql, name) FROM sqlite_schema ORDER BY name");
    let version: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("a version");
    all.push(format!("version {version}"));
    all
}

/// The texts that a query of one column gives.
#[must_use]
pub fn names(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(sql).unwrap_or_else(|e| panic!("{sql}: {e}"));
    let rows = statement.query_map([], |row| row.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"));
    rows.collect::<Result<_, _>>().unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// The number that a query gives.
#[must_use]
pub fn number(database: &Path, sql: &str) -> i64 {
    open(database).query_row(sql, [], |row| row.get(0)).unwrap_or_else(|e| panic!("{sql}: {e}"))
}

/// Panics unless SQLite finds the database sound.
#[track_caller]
pub fn assert_sound(database: &Path) {
    assert_eq!(names(&open(database), "PRAGMA integrity_check"), ["ok"]);
    assert_eq!(names(&open(database), "SELECT \"table\" FROM pragma_foreign_key_check"), [""; 0]);
}

/// Every file below a folder by its relative path, with its bytes; a link with
/// where it leads, a folder with nothing.
#[must_use]
pub fn files(folder: &Path) -> Content {
    let mut found = Content::new();
    walk(folder, "", &mut found);
    found
}

fn walk(folder: &Path, prefix: &str, found: &mut Content) {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => panic!("{}: {error}", folder.display()),
    };
    for entry in entries {
        let entry = entry.expect("an entry");
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().expect("a kind");
        if kind.is_dir() {
            found.insert(format!("{name}/"), Vec::new());
            walk(&entry.path(), &format!("{name}/"), found);
        } else if kind.is_symlink() {
            let target = std::fs::read_link(entry.path()).expect("a link");
            found.insert(format!("{name} ->"), target.into_os_string().into_encoded_bytes());
        } else {
            found.insert(name, std::fs::read(entry.path()).expect("a readable file"));
        }
    }
}

/// What differs between two contents, one line each.
#[must_use]
pub fn difference(before: &Content, after: &Content) -> Vec<String> {
    let keys: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    let differs = |key: &&&String| before.get(**key) != after.get(**key);
    keys.iter()
        .filter(differs)
        .map(|key| match (before.get(*key), after.get(*key)) {
            (None, _) => format!("new: {key}"),
            (_, None) => format!("gone: {key}"),
            (Some(old), Some(new)) => {
                let at = old.iter().zip(new).take_while(|(a, b)| a == b).count();
                let from = at.saturating_sub(40);
                let show = |bytes: &[u8]| {
                    let end = bytes.len().min(at + 80);
                    String::from_utf8_lossy(&bytes[from.min(end)..end]).into_owned()
                };
                format!("{key}: differs at byte {at}: {:?} / {:?}", show(old), show(new))
            }
        })
        .collect()
}

/// Panics when the two differ, saying where.
#[track_caller]
pub fn assert_same(before: &Content, after: &Content, what: &str) {
    let difference = difference(before, after);
    assert!(difference.is_empty(), "{what}:\n{}", difference.join("\n"));
}
