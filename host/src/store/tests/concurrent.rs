//! Many at once: threads with a connection each, and processes.

use std::io::{BufRead as _, Write as _};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use super::*;

/// Tells a child process of a test what to do.
const TASK: &str = "LOOP_STATE_STORE_TEST_TASK";
const FOLDER: &str = "LOOP_STATE_STORE_TEST_FOLDER";

/// Starts this test program again, to run [`child`] alone.
pub(super) fn spawn(task: &str, folder: &Path, prepare: impl FnOnce(&mut Command)) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "--ignored", "--nocapture", "store::tests::concurrent::child"])
        .env(TASK, task)
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    prepare(&mut command);
    command.spawn().unwrap()
}

/// Lets a child go on, and fails with its output when it fails.
pub(super) fn finish(child: Child) {
    let output = child.wait_with_output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    // A filter that matches nothing would succeed as well.
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
#[ignore = "what other tests start as a process of its own"]
fn child() {
    let task = std::env::var(TASK).unwrap();
    let folder = std::path::PathBuf::from(std::env::var_os(FOLDER).unwrap());
    match task.split_once(' ') {
        Some(("first-start", n)) => {
            std::io::stdin().lock().read_line(&mut String::new()).unwrap();
            first_start(&folder, n.parse().unwrap());
        }
        _ => super::access::as_someone(&task, &folder),
    }
}

/// One of many first starts: opens, writes a loop of its own, lists.
fn first_start(folder: &Path, n: u64) {
    let mut store = Store::open(folder).unwrap();
    write(&mut store, register);
    write(&mut store, |tx| create(tx, &a_loop(n)));
    assert!(slugs(&mut store).contains(&format!("slug-{n}")));
    assert_eq!(store.journal_mode(), "wal");
}

fn all_twelve_are_there(folder: &Path) {
    let mut store = Store::open(folder).unwrap();
    assert_eq!(slugs(&mut store).len(), 12);
    let check = "PRAGMA integrity_check";
    assert_eq!(store.db.query_row(check, [], |row| row.get::<_, String>(0)).unwrap(), "ok");
}

#[test]
fn twelve_threads_start_in_one_fresh_folder() {
    for _round in 0..8 {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("state");
        let barrier = Barrier::new(12);
        std::thread::scope(|scope| {
            for n in 0..12 {
                let (folder, barrier) = (&folder, &barrier);
                scope.spawn(move || {
                    barrier.wait();
                    first_start(folder, n);
                });
            }
        });
        all_twelve_are_there(&folder);
    }
}

#[test]
fn twelve_processes_start_in_one_fresh_folder() {
    for _round in 0..4 {
        let base = tempfile::tempdir().unwrap();
        let folder = base.path().join("state");
        let start = |n| spawn(&format!("first-start {n}"), &folder, |_| ());
        let mut children: Vec<_> = (0..12).map(start).collect();
        for child in &mut children {
            child.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        }
        children.into_iter().for_each(finish);
        all_twelve_are_there(&folder);
    }
}

#[test]
fn writers_at_once_lose_nothing() {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| create(tx, &model::Loop { qa_rounds: 0, ..a_loop(1) }));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut store = Store::open(folder.path()).unwrap();
                for _ in 0..25 {
                    write(&mut store, |tx| {
                        let mut state = tx.loop_state_by_id("loop-1").unwrap().unwrap();
                        state.loop_.qa_rounds += 1;
                        tx.apply(&[tools::Write::PutLoop(state.loop_)]).unwrap();
                    });
                }
            });
        }
    });
    let state = store.read().unwrap().loop_state_by_id("loop-1").unwrap().unwrap();
    assert_eq!(state.loop_.qa_rounds, 100);
}

#[test]
fn a_held_lock_is_told_and_over_when_released() {
    let (folder, store) = fresh();
    drop(store);
    let mut store = Store::open_with(folder.path(), impatient()).unwrap();
    let path = store.path().to_owned();
    let holder = foreign(&path);
    holder.execute_batch("BEGIN IMMEDIATE").unwrap();
    let error = store.write().err().unwrap();
    assert!(matches!(error, StoreError::Busy { .. }));
    says(&error, &[path.to_str().unwrap(), "busy", "nothing was changed, call again"]);
    assert_eq!(slugs(&mut store), [""; 0], "reading goes on");
    holder.execute_batch("ROLLBACK").unwrap();
    write(&mut store, |tx| create(tx, &a_loop(1)));
    assert_eq!(slugs(&mut store), ["slug-1"]);
}

#[test]
fn a_lock_on_an_empty_file_is_told_as_busy() {
    let folder = tempfile::tempdir().unwrap();
    let holder = foreign(&folder.path().join(FILE));
    holder.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let error = Store::open_with(folder.path(), impatient()).err().unwrap();
    assert!(matches!(error, StoreError::Busy { .. }), "{error}");
    holder.execute_batch("ROLLBACK").unwrap();
    Store::open_with(folder.path(), impatient()).unwrap();
}
