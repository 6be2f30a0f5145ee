//! Copies, shrinking, and what a look over the database tells.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::*;

#[test]
fn a_backup_is_a_whole_database_taken_while_others_write() {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| {
        records::random(tx, 1);
    });
    let to = folder.path().join("copy.db");
    let mut other = Store::open(folder.path()).unwrap();
    write(&mut other, |tx| create(tx, &a_loop(2)));
    let expected = dump(&other);
    // What is not committed is not in it.
    let tx = other.write().unwrap();
    create(&tx, &a_loop(3));
    let bytes = store.backup(&to).unwrap();
    drop(tx);
    let metadata = fs::metadata(&to).unwrap();
    assert_eq!((metadata.len(), metadata.permissions().mode() & 0o777), (bytes, 0o600));

    let copy = tempfile::tempdir().unwrap();
    fs::copy(&to, copy.path().join(FILE)).unwrap();
    assert_eq!(dump(&Store::open(copy.path()).unwrap()), expected);

    let before = fs::read(&to).unwrap();
    says(&store.backup(&to).unwrap_err(), &["copy.db", "there already"]);
    assert_eq!(fs::read(&to).unwrap(), before);
    says(&store.backup(&folder.path().join("no/copy.db")).unwrap_err(), &["no/copy.db", "no copy was made"]);
    let left = fs::read_dir(folder.path()).unwrap();
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().contains("copying")));
}

#[test]
fn freed_pages_go_back_to_the_file_system() {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| {
        create(tx, &a_loop(1));
        let mut sample = sample::Sample::new(1);
        for seq in 1..=400 {
            let note = Some("x".repeat(4_000));
            let event = model::Event { note, ..sample.event(seq) };
            tx.apply(&[tools::Write::AppendEvent(("loop-1".into(), event))]).unwrap();
        }
    });
    write(&mut store, |tx| tx.apply(&[tools::Write::DropHistory(("loop-1".into(), 1))]).unwrap());
    let rows = dump(&store);
    let vacuumed = store.vacuum().unwrap();
    assert_eq!(vacuumed.bytes_after, store.size().total());
    assert!(vacuumed.bytes_before > 1_500_000 && vacuumed.bytes_after < 300_000, "{vacuumed:?}");
    assert_eq!(store.size().log, 0);
    assert_eq!(dump(&store), rows);
    drop(store);

    let mut other = Store::open(folder.path()).unwrap();
    let mut store = Store::open_with(folder.path(), impatient()).unwrap();
    let tx = other.write().unwrap();
    assert!(matches!(store.vacuum(), Err(StoreError::Busy { .. })));
    drop(tx);
    store.vacuum().unwrap();
}

#[test]
fn a_look_over_the_database_tells_facts() {
    let (_folder, mut store) = fresh();
    let block = |op: &str| model::Block { op: op.into(), task: "T1".into(), reason: "why".into() };
    let now = |since| model::NowPointer { task: None, agent: "a".into(), step: "s".into(), since };
    write(&mut store, |tx| {
        let plain = |n| model::Loop { blocked: None, now: None, finished_at: None, ..a_loop(n) };
        create(tx, &model::Loop { blocked: Some(block("x")), updated_at: 1, ..plain(1) });
        create(tx, &model::Loop { blocked: Some(block("y")), updated_at: 2, ..plain(2) });
        create(tx, &model::Loop { now: Some(now(9)), updated_at: 3, ..plain(3) });
        create(tx, &model::Loop { now: Some(now(8)), ..plain(4) });
        create(tx, &model::Loop { now: Some(now(7)), finished_at: Some(1), ..plain(5) });
    });
    let tx = store.read().unwrap();
    let latched = tx.latched().unwrap();
    let named: Vec<_> = latched.iter().map(|l| (l.place.id.as_str(), l.block.op.as_str())).collect();
    assert_eq!(named, [("loop-2", "y"), ("loop-1", "x")]);
    let pointed = tx.pointed().unwrap();
    let named: Vec<_> = pointed.iter().map(|p| (p.place.slug.as_str(), p.now.clone())).collect();
    assert_eq!(named, [("slug-4", now(8)), ("slug-3", now(9))]);
    assert_eq!(pointed[1].updated_at, 3);
    assert_eq!(tx.schema_version().unwrap(), 4);
    let counts = tx.row_counts().unwrap();
    assert!(counts.contains(&("loop".into(), 5)) && counts.contains(&("event".into(), 0)));
    assert!(tx.integrity_check().unwrap().is_empty());
    drop(tx);
    store
        .db
        .execute_batch("PRAGMA foreign_keys = 0; UPDATE loop SET project_id = 'nobody' WHERE id = 'loop-1'")
        .unwrap();
    let faults = store.read().unwrap().integrity_check().unwrap();
    assert_eq!(faults.len(), 1);
    assert!(faults[0].contains("loop") && faults[0].contains("project"));
}
