//! From one schema version to the next, with lists that only tests have.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Barrier;

use super::*;
use crate::store::migrate::MIGRATIONS;
use crate::store::record::Record as _;

/// Neither statement can run twice.
const NEXT: &[&str] = &[
    MIGRATIONS[0],
    MIGRATIONS[1],
    MIGRATIONS[2],
    MIGRATIONS[3],
    "ALTER TABLE project ADD COLUMN colour TEXT; CREATE TABLE extra (x INTEGER) STRICT",
];

fn with(migrations: &'static [&'static str]) -> Options {
    Options { migrations, ..Options::default() }
}

/// A database of version 4 with one loop in it.
fn old() -> TempDir {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| create(tx, &a_loop(1)));
    folder
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn version(path: &Path) -> i32 {
    foreign(path).query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap()
}

#[test]
fn what_was_there_is_copied_and_kept() {
    let folder = old();
    let kept = folder.path().join("loops.db.before-v5");
    fs::write(folder.path().join("loops.db.copying"), "of a killed one").unwrap();
    // Another process is at work, with a log that is not folded in.
    let mut other = Store::open(folder.path()).unwrap();
    write(&mut other, |tx| create(tx, &a_loop(2)));

    let mut store = Store::open_with(folder.path(), with(NEXT)).unwrap();
    assert_eq!(slugs(&mut store), ["slug-1", "slug-2"]);
    assert!(store.db.table_exists(None, "extra").unwrap());
    assert!(!folder.path().join("loops.db.copying").exists());
    assert_eq!(version(store.path()), 5);
    drop((store, other));

    assert_eq!(version(&kept), 4);
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    // The copy is a whole database of the older version.
    let copy = tempfile::tempdir().unwrap();
    fs::copy(&kept, copy.path().join(FILE)).unwrap();
    assert_eq!(slugs(&mut Store::open(copy.path()).unwrap()), ["slug-1", "slug-2"]);

    // The newer version now refuses to be opened by the older program, and a second
    // migration from the copy takes another name.
    says(&Store::open(folder.path()).err().unwrap(), &["version 5", "the 4 "]);
    fs::copy(&kept, folder.path().join(FILE)).unwrap();
    drop(Store::open_with(folder.path(), with(NEXT)).unwrap());
    assert!(folder.path().join("loops.db.before-v5-2").exists());
}

#[test]
fn a_new_database_needs_no_copy() {
    let folder = tempfile::tempdir().unwrap();
    drop(Store::open_with(folder.path(), with(NEXT)).unwrap());
    assert_eq!(names(folder.path()), [FILE]);
    assert_eq!(version(&folder.path().join(FILE)), 5);
}

#[test]
fn a_failed_migration_leaves_the_old_version_and_names_the_copy() {
    const FAILS: &[&str] = &[
        MIGRATIONS[0],
        MIGRATIONS[1],
        MIGRATIONS[2],
        MIGRATIONS[3],
        "CREATE TABLE extra (x); SELECT no_such_function()",
    ];
    const DANGLES: &[&str] = &[
        MIGRATIONS[0],
        MIGRATIONS[1],
        MIGRATIONS[2],
        MIGRATIONS[3],
        "INSERT INTO project_root VALUES ('/x', 'nobody', 1, NULL)",
    ];
    for (list, word) in [(FAILS, "no_such_function"), (DANGLES, "does not exist")] {
        let folder = old();
        let error = Store::open_with(folder.path(), with(list)).err().unwrap();
        says(&error, &["from schema version 4 to 5", word, "as it was", "loops.db.before-v5"]);
        assert!(folder.path().join("loops.db.before-v5").exists());
        let mut store = Store::open(folder.path()).unwrap();
        assert_eq!(slugs(&mut store), ["slug-1"]);
        assert!(!store.db.table_exists(None, "extra").unwrap());
    }
}

#[test]
fn without_a_copy_there_is_no_migration() {
    let folder = old();
    // Stands in the way of the copy and cannot be removed as a file can.
    fs::create_dir(folder.path().join("loops.db.copying")).unwrap();
    let error = Store::open_with(folder.path(), with(NEXT)).err().unwrap();
    says(&error, &["cannot copy", "loops.db.before-v5", "nothing was changed"]);
    assert_eq!(version(&folder.path().join(FILE)), 4);
}

#[test]
fn twelve_at_once_migrate_once() {
    for _round in 0..10 {
        let folder = old();
        let barrier = Barrier::new(12);
        std::thread::scope(|scope| {
            for _ in 0..12 {
                scope.spawn(|| {
                    barrier.wait();
                    let mut store = Store::open_with(folder.path(), with(NEXT)).unwrap();
                    assert_eq!(slugs(&mut store), ["slug-1"]);
                });
            }
        });
        let copies = names(folder.path()).into_iter().filter(|name| name.contains("before"));
        assert_eq!(copies.collect::<Vec<_>>(), ["loops.db.before-v5"]);
    }
}

/// Every row of the tables that version 1 wrote, with their columns.
fn rows_of_one(path: &Path) -> Vec<(String, Vec<rusqlite::types::Value>)> {
    let db = foreign(path);
    let columns_of_loop = model::Loop::sql().names.len() + 1;
    let mut found = Vec::new();
    for table in ["project", "loop", "loop_phase", "task", "event", "step", "step_total", "memory"] {
        let mut statement = db.prepare(&format!("SELECT * FROM {table} ORDER BY 1, 2")).unwrap();
        let count = statement.column_count();
        let rows = statement.query_map([], |row| (0..count).map(|n| row.get(n)).collect()).unwrap();
        found.extend(rows.map(|row: Result<Vec<_>, _>| {
            let mut row = row.unwrap();
            // Without what version 4 added.
            row.truncate(if table == "loop" { columns_of_loop } else { count });
            (table.to_owned(), row)
        }));
    }
    found
}

#[test]
fn a_database_of_version_1_keeps_every_row() {
    const ONE: &[&str] = &[MIGRATIONS[0]];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(FILE);
    let mut store = Store::open_with(folder.path(), with(ONE)).unwrap();
    store.db.execute("INSERT INTO project VALUES (?1, 'p', NULL, '[]', NULL, '/g', 1)", [PROJECT]).unwrap();
    store.db.execute("INSERT INTO project_root VALUES (?1, ?2, 7)", [ROOT, PROJECT]).unwrap();
    // Records are written as they are today: with the columns of who wrote them.
    let of_today = ["logic", "logic_version"];
    let alter = |store: &Store, how: &str, what: &str| {
        let each = of_today.map(|column| format!("ALTER TABLE loop {how} COLUMN {column} {what}"));
        store.db.execute_batch(&each.join(";")).unwrap();
    };
    alter(&store, "ADD", "TEXT");
    write(&mut store, |tx| {
        for n in 0..8 {
            records::random(tx, n);
        }
    });
    alter(&store, "DROP", "");
    drop(store);
    let before = rows_of_one(&path);

    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(version(&path), 4);
    assert_eq!(version(&folder.path().join("loops.db.before-v4")), 1);
    assert_eq!(rows_of_one(&path), before);
    assert_eq!(rows_of_one(&folder.path().join("loops.db.before-v4")), before);
    let tx = store.read().unwrap();
    let known = tx.project_of_root(ROOT).unwrap().unwrap();
    assert_eq!((known.project.id.as_str(), known.stamp), (PROJECT, None));
    assert!(tx.integrity_check().unwrap().is_empty());
    drop(tx);
    // References still lead to the rebuilt table, and its rows take theirs along.
    write(&mut store, |tx| tx.apply(&[tools::Write::DeleteLoop(("loop-3".into(), true))]).unwrap());
    let left = "SELECT count(DISTINCT loop_key) FROM loop_phase";
    assert_eq!(store.db.query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 7);
    {
        let tx = store.write().unwrap();
        let taken = model::Loop { slug: "slug-4".into(), ..a_loop(9) };
        says(&tx.apply(&[tools::Write::CreateLoop(taken)]).unwrap_err(), &["slug-4", "exists already"]);
    }
}
