//! Files that are brought back: nothing that stands there is touched.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};

use super::*;

fn item(path: &str, text: &str) -> Item {
    Item { path: path.to_owned(), content: Ok(text.as_bytes().to_vec()), modified_at: None }
}

fn never(_: &str, _: &[u8], _: &[u8]) -> bool {
    false
}

#[test]
fn missing_files_are_written_and_equal_ones_left() {
    let ground = Ground::new(0);
    let bytes = vec![0xff, 0, b'\r', b'\n'];
    let items = || {
        [
            item("plan.md", "plan"),
            Item { path: "a/.b/c.bin".to_owned(), content: Ok(bytes.clone()), modified_at: Some(-1_500) },
            Item { path: "late".to_owned(), content: Ok(Vec::new()), modified_at: Some(1_786_000_000_123) },
        ]
    };
    let names = ["plan.md", "a/.b/c.bin", "late"].map(str::to_owned).to_vec();
    let first = place(&ground.root, SLUG, items(), &mut never).unwrap();
    assert_eq!(first, Placed { written: names.clone(), ..Placed::default() });
    let folder = ground.loop_folder();
    assert_eq!(fs::read(folder.join("a/.b/c.bin")).unwrap(), bytes);
    let modified = |path: &str| fs::metadata(folder.join(path)).unwrap().modified().unwrap();
    assert_eq!(modified("a/.b/c.bin"), UNIX_EPOCH - Duration::from_millis(1_500));
    assert_eq!(modified("late"), UNIX_EPOCH + Duration::from_millis(1_786_000_000_123));
    let second = place(&ground.root, SLUG, items(), &mut never).unwrap();
    assert_eq!(second, Placed { unchanged: names, ..Placed::default() });
    assert_eq!(files_in(&folder).len(), 3);
}

#[test]
fn what_stands_there_is_kept_and_told() {
    let ground = Ground::new(0);
    let folder = ground.loop_folder();
    fs::create_dir_all(folder.join("folder")).unwrap();
    fs::write(folder.join("mine"), "mine").unwrap();
    fs::write(folder.join("file"), "").unwrap();
    symlink(&ground.outside, folder.join("tasks")).unwrap();
    symlink(ground.outside.join("secret"), folder.join("link")).unwrap();
    symlink(ground.outside.join("new"), folder.join("dangling")).unwrap();
    assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
    let kept = [
        ("mine", "it differs"),
        ("folder", "a folder stands there"),
        ("link", "a symbolic link stands there"),
        ("dangling", "a symbolic link stands there"),
        ("pipe", "a pipe stands there"),
        ("tasks/T1.md", "tasks is a symbolic link"),
        ("file/x", "file is not a folder"),
    ];
    let failed = [
        ("../evil", "`..`"),
        ("/tmp/evil", "absolute"),
        ("a/", "empty"),
        (".git/config", ".git"),
        (".tmp-view", "mirror's own"),
    ];
    let items = kept.iter().chain(&failed).map(|(path, _)| item(path, "theirs"));
    let damaged =
        Item { path: "bad".to_owned(), content: Err("its digest differs".to_owned()), modified_at: None };
    let placed = place(&ground.root, SLUG, items.chain([damaged]), &mut never).unwrap();
    assert_eq!((placed.written.len(), placed.unchanged.len()), (0, 0), "{placed:?}");
    for (found, expected) in [(&placed.kept, &kept[..]), (&placed.failed, &failed[..])] {
        for ((path, why), (expected_path, part)) in found.iter().zip(expected) {
            assert_eq!(path, expected_path);
            assert!(why.contains(part), "{path}: {why}");
        }
    }
    assert_eq!((placed.kept.len(), placed.failed.len()), (kept.len(), failed.len() + 1));
    assert_eq!(placed.failed.last().unwrap().1, "its digest differs");
    assert_eq!(fs::read_to_string(folder.join("mine")).unwrap(), "mine");
    assert!(!folder.join("bad").exists() && !folder.join(".tmp-view").exists());
    ground.assert_outside_untouched("kept");
}

#[test]
fn the_caller_says_what_else_is_the_same() {
    let ground = Ground::new(0);
    let folder = ground.loop_folder();
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("a"), "old header, body").unwrap();
    fs::write(folder.join("b"), "other").unwrap();
    let mut asked = Vec::new();
    let mut same = |path: &str, new: &[u8], existing: &[u8]| {
        asked.push(path.to_owned());
        existing.ends_with(b"body") && new.ends_with(b"body")
    };
    let items = [item("a", "header, body"), item("b", "header, body"), item("c", "header, body")];
    let placed = place(&ground.root, SLUG, items, &mut same).unwrap();
    assert_eq!((placed.unchanged, placed.written), (vec!["a".to_owned()], vec!["c".to_owned()]));
    assert_eq!(placed.kept.len(), 1);
    assert_eq!(asked, ["a", "b"]);
    assert_eq!(fs::read_to_string(folder.join("a")).unwrap(), "old header, body");
}

#[test]
fn a_name_that_another_program_takes_meanwhile_is_not_overwritten() {
    let ground = Ground::new(1);
    let folder = folder::Folder::open(&ground.root, SLUG).unwrap().unwrap();
    let locked = folder.lock(Duration::ZERO).unwrap();
    let mut replacement = locked.replace("late.md").unwrap();
    replacement.write("ours").unwrap();
    fs::write(ground.loop_folder().join("late.md"), "theirs").unwrap();
    assert!(!replacement.commit_new().unwrap());
    assert_eq!(fs::read_to_string(ground.loop_folder().join("late.md")).unwrap(), "theirs");
    assert!(!ground.loop_folder().join(".tmp-view").exists());
}

#[test]
fn without_a_root_nothing_is_made() {
    let ground = Ground::new(0);
    let gone = ground.root.join("gone");
    let refused = place(&gone, SLUG, [item("a", "a")], &mut never);
    assert!(matches!(refused, Err(MirrorError::Root { .. })));
    assert!(!gone.exists());
    assert!(matches!(place(&ground.root, "../x", [], &mut never), Err(MirrorError::Path { .. })));
}

#[test]
fn a_new_root_is_made_with_what_is_above_it() {
    let ground = Ground::new(0);
    let target = ground.root.join("a/b/c");
    assert_eq!(create_root(&target).unwrap(), target);
    assert_eq!(create_root(&target).unwrap(), target);
    assert!(target.is_dir());
    let link = ground.root.join("link");
    symlink(&target, &link).unwrap();
    assert_eq!(create_root(&link.join("d")).unwrap(), target.join("d"));
    let placed = place(&target.join("d"), SLUG, [item("a", "a")], &mut never).unwrap();
    assert_eq!(placed.written, ["a"]);

    fs::write(ground.root.join("file"), "").unwrap();
    symlink(ground.outside.join("new"), ground.root.join("dangling")).unwrap();
    for (path, why) in [
        ("relative/x".into(), "not absolute"),
        (ground.root.join("a/../x"), "`..`"),
        (ground.root.join("file"), "not a folder"),
        (ground.root.join("file/x"), "below a file"),
        (ground.root.join("dangling"), "a symbolic link"),
        (ground.root.join("dangling/x"), "a symbolic link"),
    ] {
        let error = create_root(&path).unwrap_err().to_string();
        assert!(error.contains(why), "{path:?}: {error}");
    }
    ground.assert_outside_untouched("roots");
}
