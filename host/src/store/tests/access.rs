//! Folders and files without the right to write, as a user who is not above rights.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;

use super::concurrent::{finish, spawn};
use super::*;

/// A user without any rights of its own.
const NOBODY: u32 = 65_534;

/// Runs a scenario of [`as_someone`] in a folder that anyone may use; as nobody when
/// this is root, whom no mode stops.
fn scenario(task: &str) {
    let base = tempfile::tempdir().unwrap();
    set(base.path(), 0o777);
    let child = spawn(task, base.path(), |command| {
        if nix::unistd::Uid::effective().is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
    });
    finish(child);
}

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_database_in_a_read_only_folder_can_be_read() {
    scenario("read-only-folder");
}

#[test]
fn a_read_only_database_can_be_read() {
    scenario("read-only-file");
}

#[test]
fn a_log_in_a_read_only_folder_is_read_or_refused() {
    scenario("read-only-folder-with-log");
}

#[test]
fn what_cannot_be_made_or_seen_is_named() {
    scenario("out-of-reach");
}

/// What the tests above do, in a process of another user.
pub(super) fn as_someone(task: &str, base: &Path) {
    let folder = base.join("state");
    let path = folder.join(FILE);
    if task != "out-of-reach" {
        let mut store = Store::open(&folder).unwrap();
        write(&mut store, register);
        write(&mut store, |tx| create(tx, &a_loop(1)));
    }
    match task {
        "read-only-folder" => {
            set(&folder, 0o555);
            only_reads(&folder, &["its folder: Permission denied"]);
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "a read made files");
            mended(&folder, || set(&folder, 0o700));
        }
        "read-only-file" => {
            set(&path, 0o444);
            only_reads(&folder, &["Permission denied"]);
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o444);
            mended(&folder, || set(&path, 0o600));
        }
        "read-only-folder-with-log" => {
            foreign(&path).execute_batch("UPDATE loop SET slug = 'slug-1' || '-in-log'").unwrap();
            set(&folder, 0o555);
            let mut store = Store::open(&folder).unwrap();
            assert_eq!(slugs(&mut store), ["slug-1-in-log"]);
            assert!(store.write().is_err());
            set(&folder, 0o700);
        }
        "out-of-reach" => {
            let cases = [(0o555, "cannot create"), (0o000, "cannot look at")];
            for (mode, words) in cases {
                fs::create_dir(&folder).unwrap();
                set(&folder, mode);
                for target in [folder.clone(), folder.join("below")] {
                    let error = Store::open(&target).err().unwrap();
                    says(&error, &[words, target.to_str().unwrap(), "Permission denied"]);
                }
                set(&folder, 0o700);
                fs::remove_dir_all(&folder).unwrap();
            }
            drop(Store::open(&folder).unwrap());
            set(&path, 0o000);
            says(
                &Store::open(&folder).err().unwrap(),
                &["read", path.to_str().unwrap(), "Permission denied"],
            );
        }
        other => panic!("no such task: {other}"),
    }
}

/// Reads work, a write is refused with the path and `words`.
fn only_reads(folder: &Path, words: &[&str]) {
    let mut store = Store::open(folder).unwrap();
    for _ in 0..2 {
        assert_eq!(slugs(&mut store), ["slug-1"]);
        let error = store.write().err().unwrap();
        says(&error, words);
        says(&error, &[folder.join(FILE).to_str().unwrap(), "cannot be written", "nothing was changed"]);
    }
    assert!(store.read_only().is_some());
}

/// Once the rights are there again, an open store writes.
fn mended(folder: &Path, mend: impl FnOnce()) {
    let mut store = Store::open(folder).unwrap();
    assert!(store.write().is_err());
    mend();
    write(&mut store, |tx| create(tx, &a_loop(2)));
    assert_eq!(slugs(&mut store), ["slug-1", "slug-2"]);
}
