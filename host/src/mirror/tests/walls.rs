//! What stands in the way, leads outside, or refuses to be written.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;

#[test]
fn nothing_is_followed_or_made_on_the_way() {
    for place in [".projects", ".projects/loops", ".projects/loops/fix-login"] {
        for (target, found) in [
            (Some("outside"), "is a symbolic link"),
            (Some("outside/new"), "is a symbolic link"),
            (Some("outside/secret"), "is a symbolic link"),
            (None, "is not a folder"),
        ] {
            let ground = Ground::new(2);
            let path = ground.root.join(place);
            fs::remove_dir_all(&path).unwrap();
            match target {
                Some(target) => symlink(ground.outside.with_file_name(target), &path).unwrap(),
                None => fs::write(&path, "in the way").unwrap(),
            }
            let error = ground.step("refused", false).unwrap_err().to_string();
            let start = format!("{} {found}", path.display());
            assert!(error.starts_with(&start), "{error}\nis not {start}");
            ground.assert_outside_untouched(place);
            fs::remove_file(&path).unwrap();
            ground.step("healed", false).unwrap();
            ground.assert_in_step(place);
        }
    }
}

#[test]
fn a_project_root_is_never_made() {
    let ground = Ground::new(1);
    let moved = ground.root.with_file_name("moved");
    fs::rename(&ground.root, &moved).unwrap();
    let refused = ground.step("root gone", false);
    assert!(matches!(refused, Err(MirrorError::Root { .. })));
    assert!(!ground.root.exists());
}

#[test]
fn one_view_that_cannot_be_written_does_not_stop_the_others() {
    for (view, kind) in [(VIEW, "folder"), (LOG, "folder"), (LOG, "full folder")] {
        let ground = Ground::new(3);
        let path = ground.loop_folder().join(view);
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        if kind == "full folder" {
            fs::write(path.join("mine"), "").unwrap();
        }
        let error = ground.step("in the way", true).unwrap_err().to_string();
        let start = format!("{} is a folder", path.display());
        assert!(error.starts_with(&start), "{error}\nis not {start}");
        fs::remove_dir_all(&path).unwrap();
        let expected = ground.stored.lock().unwrap().expected();
        for (name, text) in files_in(&ground.loop_folder()) {
            assert_eq!(text, expected[&name], "{name}");
        }
        ground.step("out of the way", false).unwrap();
        ground.assert_in_step(view);
    }
}

#[test]
fn a_folder_under_the_temporary_name_is_reported() {
    let ground = Ground::new(1);
    let path = ground.loop_folder().join(".tmp-view");
    fs::create_dir(&path).unwrap();
    let error = ground.step("blocked", false).unwrap_err().to_string();
    assert!(error.contains(&format!("cannot remove {}", path.display())), "{error}");
    fs::remove_dir(&path).unwrap();
    ground.step("free", false).unwrap();
    ground.assert_in_step("free");
}

#[test]
fn views_in_folders_below() {
    let ground = Ground::new(1);
    let deep = "tasks/a/b/c/d/e/f/t-1.md";
    let long = format!("tasks/{}", "n".repeat(crate::relative::PART_BYTES_MAX));
    let with = |paths: &[&str]| {
        let mut set = ground.change("with documents", false);
        set.views.extend(paths.iter().map(|path| views::View {
            path: (*path).to_owned(),
            content: views::Content::Whole("text".to_owned()),
        }));
        set
    };
    ground.sync(&with(&[deep, &long])).unwrap();
    for path in [deep, &long] {
        let text = fs::read_to_string(ground.loop_folder().join(path)).unwrap();
        assert_eq!(text, "text");
    }
    let tasks = ground.loop_folder().join("tasks");
    fs::remove_dir_all(&tasks).unwrap();
    symlink(&ground.outside, &tasks).unwrap();
    let refused = ground.sync(&with(&["tasks/t-1.md"]));
    assert!(matches!(refused, Err(MirrorError::InTheWay { .. })));
    ground.assert_outside_untouched("link to a folder below");
    let refused = ground.sync(&with(&["a.md", "../../../../outside/x"]));
    assert!(matches!(refused, Err(MirrorError::Path { .. })));
    assert!(!ground.loop_folder().join("a.md").exists());
}

#[test]
fn hostile_slugs_never_become_a_path() {
    let ground = Ground::new(0);
    for slug in ["..", ".", "", "a/b", "/etc", "../x", ".git", "a\0b"] {
        let mut set = ground.change("hostile", false);
        set.slug = slug.to_owned();
        let refused = ground.sync(&set);
        assert!(matches!(refused, Err(MirrorError::Path { .. })), "{slug:?}");
    }
    assert_eq!(fs::read_dir(&ground.root).unwrap().count(), 0);
}

#[test]
fn a_project_whose_path_is_almost_too_long() {
    let guard = tempfile::tempdir().unwrap();
    let mut root = fs::canonicalize(guard.path()).unwrap();
    while root.as_os_str().len() + 201 < 4090 {
        root.push("d".repeat(200));
    }
    root.push("e".repeat(4090 - root.as_os_str().len() - 1));
    fs::create_dir_all(&root).unwrap();
    let mut stored = Stored::new(&root);
    let set = stored.change("far down", 1, true);
    let stored = Mutex::new(stored);
    for _ in 0..2 {
        let synced = sync(&set, &mut Fake::new(&stored)).unwrap();
        assert!(matches!(synced, Synced::Written { .. }));
    }
    // The root goes by one call; the views only relative to it.
    let entries = Command::new("find").current_dir(&root).args([".", "-type", "f"]).output().unwrap();
    let found = String::from_utf8(entries.stdout).unwrap();
    assert_eq!(found.lines().count(), 3, "{found}");
}

/// As with a full disk: the system takes part of a write, then refuses.
#[test]
fn a_log_that_could_not_grow_is_cut_back_and_caught_up_later() {
    let ground = Ground::new(3);
    let log = ground.loop_folder().join(LOG);
    let length = fs::metadata(&log).unwrap().len();
    let mut read_only = fs::File::open(&log).unwrap();
    assert!(super::replacement::append(&mut read_only, length, "{\"seq\":4,\n").is_err());
    assert_eq!(fs::metadata(&log).unwrap().len(), length);

    let full = Path::new("/dev/full");
    if full.exists() {
        let mut device = fs::File::options().append(true).open(full).unwrap();
        let error = super::replacement::append(&mut device, 0, "x\n").unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn a_folder_swapped_for_a_link_meanwhile_leads_nowhere() {
    let ground = Ground::new(1);
    let folder = ground.loop_folder();
    let aside = folder.with_file_name("aside");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                if fs::rename(&folder, &aside).is_ok() {
                    // The writer may have made the folder again: then it stays.
                    if symlink(&ground.outside, &folder).is_ok() {
                        std::thread::yield_now();
                        fs::remove_file(&folder).unwrap();
                    }
                    // A writer that is still in there can add a file meanwhile.
                    while aside.exists() {
                        let _ = fs::remove_dir_all(&aside);
                    }
                }
            }
        });
        for _ in 0..300 {
            // Refused while the link stands; that is what is wanted.
            let _ = ground.step("meanwhile", false);
        }
        done.store(true, Ordering::Relaxed);
    });
    ground.assert_outside_untouched("swapped");
    ground.step("at rest", false).unwrap();
    ground.assert_in_step("at rest");
}
