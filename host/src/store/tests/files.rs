//! Files that are not ours stay as they are, to the byte.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;
use crate::store::APPLICATION_ID;

/// Name, mode and bytes of everything in a folder; bytes of what is no file are left out.
fn contents(folder: &Path) -> BTreeMap<String, (u32, Vec<u8>)> {
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let mode = entry.metadata().unwrap().permissions().mode();
            let is_file = entry.file_type().unwrap().is_file();
            let bytes = if is_file { fs::read(entry.path()).unwrap() } else { Vec::new() };
            (entry.file_name().into_string().unwrap(), (mode, bytes))
        })
        .collect()
}

/// Our own database, changed by `sql`; in its log alone when `in_log`.
fn ours(path: &Path, sql: &str, in_log: bool) {
    drop(Store::open(path.parent().unwrap()).unwrap());
    let db = foreign(path);
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, in_log).unwrap();
    db.execute_batch(sql).unwrap();
}

#[test]
fn other_files_are_refused_and_left_alone() {
    type Prepare = fn(&Path);
    let cases: &[(&str, Prepare, &[&str])] = &[
        ("text", |path| fs::write(path, "hello").unwrap(), &["not a database"]),
        ("one byte", |path| fs::write(path, "S").unwrap(), &["not a database"]),
        ("zeros", |path| fs::write(path, [0; 8192]).unwrap(), &["not a database"]),
        (
            "half a header",
            |path| {
                ours(path, "", false);
                let bytes = fs::read(path).unwrap();
                fs::write(path, &bytes[..50]).unwrap();
            },
            &["not a database"],
        ),
        (
            "another program's",
            |path| foreign(path).execute_batch("CREATE TABLE t (x)").unwrap(),
            &["another program", "0x00000000"],
        ),
        (
            "another program's with an id",
            |path| {
                foreign(path).execute_batch("PRAGMA application_id = 66; PRAGMA user_version = 1").unwrap();
            },
            &["another program", "0x00000042"],
        ),
        (
            "another program's with a log",
            |path| {
                let sql = "PRAGMA journal_mode = wal; CREATE TABLE t (x); INSERT INTO t VALUES (1)";
                foreign(path).execute_batch(sql).unwrap();
                assert!(fs::metadata(path.with_extension("db-wal")).unwrap().len() > 0);
            },
            &["another program"],
        ),
        (
            "another program's with a journal",
            |path| {
                foreign(path).execute_batch("CREATE TABLE t (x)").unwrap();
                fs::write(path.with_extension("db-journal"), "left over").unwrap();
            },
            &["another program"],
        ),
        (
            "newer",
            |path| ours(path, "PRAGMA user_version = 99; CREATE TABLE more (x)", false),
            &["schema version 99", "newer than the 4 ", "run the newer program"],
        ),
        (
            "newer in its log",
            |path| {
                ours(path, "PRAGMA user_version = 99", true);
                assert!(fs::metadata(path.with_extension("db-wal")).unwrap().len() > 0);
            },
            &["schema version 99"],
        ),
        ("without a version", |path| ours(path, "PRAGMA user_version = 0", false), &["version 0,"]),
        ("negative", |path| ours(path, "PRAGMA user_version = -1", false), &["version -1,"]),
        (
            "a log alone",
            |path| fs::write(path.with_extension("db-wal"), "log").unwrap(),
            &["loops.db-wal holds data"],
        ),
        (
            "a log beside an empty file",
            |path| {
                fs::write(path, "").unwrap();
                fs::write(path.with_extension("db-wal"), "log").unwrap();
            },
            &["loops.db-wal holds data"],
        ),
        ("a folder", |path| fs::create_dir(path).unwrap(), &["is a folder"]),
        ("a dangling link", |path| symlink("nothing", path).unwrap(), &["link to something"]),
        ("a socket", |path| drop(std::os::unix::net::UnixListener::bind(path).unwrap()), &["special file"]),
    ];
    for (name, prepare, words) in cases {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        prepare(&path);
        let mut before = contents(folder.path());
        let error = match Store::open(folder.path()) {
            Ok(_) => panic!("{name}: opened"),
            Err(error) => error,
        };
        says(&error, words);
        says(&error, &[path.to_str().unwrap()]);
        let mut after = contents(folder.path());
        if *name == "newer in its log" {
            // The log's index, which holds nothing that is not in the log.
            before.remove("loops.db-shm");
            after.remove("loops.db-shm");
        }
        assert!(before == after, "{name}: {:?} became {:?}", before.keys(), after.keys());
    }
}

#[test]
fn what_stands_in_the_folders_place_is_named() {
    let base = tempfile::tempdir().unwrap();
    let at = |name: &str| base.path().join(name);
    fs::write(at("file"), "").unwrap();
    symlink("nothing", at("link")).unwrap();
    let cases = [
        ("file", "is a file, not a folder"),
        ("link", "a link to something that does not exist"),
        ("file/below", "cannot look at"),
        ("link/below", "cannot create the folder"),
    ];
    for (name, words) in cases {
        let before = contents(base.path());
        let error = Store::open(&at(name)).err().unwrap();
        says(&error, &[words, at(name).to_str().unwrap(), "DEV_LOOP_STATE_DIR"]);
        assert_eq!(contents(base.path()), before);
    }
}

#[test]
fn folders_and_files_are_for_their_owner() {
    let base = tempfile::tempdir().unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };

    let made = base.path().join("a b/🦀?#%41/state");
    let mut store = Store::open(&made).unwrap();
    write(&mut store, register);
    assert_eq!(mode(&made), 0o700);
    for name in [FILE, "loops.db-wal", "loops.db-shm"] {
        assert_eq!(mode(&made.join(name)), 0o600, "{name}");
    }
    drop(store);
    // Opened up by someone: closed again.
    set(&made, 0o755);
    set(&made.join(FILE), 0o644);
    drop(Store::open(&made).unwrap());
    assert_eq!((mode(&made), mode(&made.join(FILE))), (0o700, 0o600));

    // A folder that holds other things as well is not ours to close.
    let shared = base.path().join("shared");
    fs::create_dir(&shared).unwrap();
    fs::write(shared.join("other"), "").unwrap();
    set(&shared, 0o755);
    drop(Store::open(&shared).unwrap());
    assert_eq!((mode(&shared), mode(&shared.join(FILE))), (0o755, 0o600));
}

#[test]
fn a_new_database_is_marked_and_durable() {
    let (_folder, store) = fresh();
    let pragma =
        |name: &str| store.db.query_row(&format!("PRAGMA {name}"), [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(store.journal_mode(), "wal");
    assert_eq!(pragma("application_id"), i64::from(APPLICATION_ID));
    assert_eq!(pragma("user_version"), 4);
    assert_eq!(pragma("synchronous"), 2);
    assert_eq!(pragma("foreign_keys"), 1);
    assert_eq!(pragma("busy_timeout"), 5000);
    // Told by the main file alone, whatever is in the log.
    let header = fs::read(store.path()).unwrap();
    assert_eq!(header[68..72], APPLICATION_ID.to_be_bytes());
}

#[test]
fn without_a_shared_log_a_journal_does() {
    let folder = tempfile::tempdir().unwrap();
    // Locks by files of their own and shares no memory.
    let options = Options { vfs: Some("unix-dotfile"), ..Options::default() };
    let mut store = Store::open_with(folder.path(), options.clone()).unwrap();
    assert_eq!(store.journal_mode(), "delete");
    write(&mut store, register);
    write(&mut store, |tx| create(tx, &a_loop(1)));
    drop(store);
    let mut store = Store::open_with(folder.path(), options).unwrap();
    assert_eq!(slugs(&mut store), ["slug-1"]);
}

#[test]
fn a_full_disk_changes_nothing_and_is_over_once_there_is_room() {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| create(tx, &a_loop(1)));
    let pages: i64 = store.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let limit = |store: &Store, pages: i64| {
        store.db.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(())).unwrap();
    };
    let note = "x".repeat(1 << 20);
    let memory = model::Memory { seq: 1, at: 1, agent: "a".into(), task: None, note };
    let writes = [tools::Write::AppendMemory(("loop-1".into(), memory))];

    limit(&store, pages);
    let tx = store.write().unwrap();
    let error = tx.apply(&writes).unwrap_err();
    says(&error, &["no room", folder.path().to_str().unwrap(), "nothing was changed"]);
    drop(tx);
    assert_eq!(store.read().unwrap().memories("loop-1").unwrap(), []);

    limit(&store, 1 << 30);
    write(&mut store, |tx| tx.apply(&writes).unwrap());
    assert_eq!(store.read().unwrap().memories("loop-1").unwrap().len(), 1);
}

#[test]
fn a_database_that_was_deleted_or_replaced_is_opened_anew() {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| create(tx, &a_loop(1)));
    fs::remove_dir_all(folder.path()).unwrap();
    assert_eq!(slugs(&mut store), [""; 0]);
    write(&mut store, register);
    write(&mut store, |tx| create(tx, &a_loop(2)));
    assert_eq!(slugs(&mut store), ["slug-2"]);

    drop(store);
    let mut store = Store::open(folder.path()).unwrap();
    assert_eq!(slugs(&mut store), ["slug-2"]);
}
