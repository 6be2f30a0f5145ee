//! When a folder's stamp changes, and when it does not.

use super::*;

#[test]
fn a_plain_folder_until_a_repository_comes() {
    let lab = Lab::new();
    folder(lab.path("app/a/b"));
    let plain = lab.stamp("app/a/b");
    assert_eq!(lab.stamp("home"), plain);
    assert_eq!(lab.stamp("gone"), plain);
    std::fs::write(lab.path("app/a/file"), "").unwrap();
    assert_eq!(lab.stamp("app/a/b"), plain);
    lab.repository("app", None);
    let above = lab.stamp("app/a/b");
    assert_ne!(above, plain);
    // A nearer one.
    lab.repository("app/a", None);
    assert_ne!(lab.stamp("app/a/b"), above);
    std::fs::remove_dir_all(lab.path("app/a/.git")).unwrap();
    assert_eq!(lab.stamp("app/a/b"), above);
}

#[test]
fn work_leaves_it() {
    let lab = Lab::new();
    lab.repository("app", Some("https://example.org/acme/app"));
    lab.git("app", &["worktree", "add", "--quiet", "../wt"]);
    let before = [lab.stamp("app"), lab.stamp("wt")];
    lab.git("app", &["commit", "--quiet", "--allow-empty", "--message=second"]);
    lab.git("wt", &["checkout", "--quiet", "--detach"]);
    std::fs::write(lab.path("app/file"), "text").unwrap();
    lab.git("app", &["add", "file"]);
    lab.git("app", &["gc", "--quiet"]);
    assert_eq!([lab.stamp("app"), lab.stamp("wt")], before);
    std::os::unix::fs::symlink("app", lab.path("link")).unwrap();
    assert_eq!(lab.stamp("link"), before[0]);
}

#[test]
fn another_origin_changes_it_from_everywhere() {
    let lab = Lab::new();
    lab.repository("app", Some("https://example.org/acme/app"));
    folder(lab.path("app/a"));
    lab.git("app", &["worktree", "add", "--quiet", "../wt"]);
    lab.git("", &["clone", "--quiet", "--bare", "app", "bare.git"]);
    let everywhere = || ["app", "app/a", "wt"].map(|name| lab.stamp(name));
    let settings: [&[&str]; 4] = [
        // As long as the old one.
        &["remote", "set-url", "origin", "https://example.org/acme/apq"],
        &["remote", "set-url", "origin", "https://example.org/acme/other"],
        &["remote", "remove", "origin"],
        &["remote", "add", "origin", "https://example.org/acme/app"],
    ];
    for setting in settings {
        let before = everywhere();
        lab.git("app", setting);
        for (before, after) in before.iter().zip(everywhere()) {
            assert_ne!(*before, after, "{setting:?}");
        }
    }
    let before = lab.stamp("bare.git");
    lab.git("bare.git", &["remote", "set-url", "origin", "https://example.org/acme/other"]);
    assert_ne!(lab.stamp("bare.git"), before);
}

#[test]
fn a_configuration_that_is_included_counts() {
    let lab = Lab::new();
    lab.repository("app", None);
    std::fs::write(lab.path("app/first"), "[Include] # comment\n  Path = second\n[x]\n path = nothing\n")
        .unwrap();
    lab.git("app", &["config", "includeIf.gitdir:/nowhere].path", "../first"]);
    let mut before = lab.stamp("app");
    for text in ["[remote \"origin\"]\nurl = a:b\n", "[remote \"origin\"]\nurl = a:bc\n"] {
        std::fs::write(lab.path("app/second"), text).unwrap();
        let after = lab.stamp("app");
        assert_ne!(after, before);
        before = after;
    }
    std::fs::write(lab.path("app/nothing"), "").unwrap();
    assert_eq!(lab.stamp("app"), before);
    // One that includes itself ends.
    std::fs::write(lab.path("app/second"), "[include]\npath=second\npath=first\n").unwrap();
    assert_ne!(lab.stamp("app"), before);
}

#[test]
fn another_repository_in_the_same_place() {
    let lab = Lab::new();
    lab.repository("one", None);
    lab.repository("two", None);
    lab.git("", &["clone", "--quiet", "one", "app"]);
    let before = lab.stamp("app");
    std::fs::remove_dir_all(lab.path("app")).unwrap();
    assert_eq!(lab.stamp("app"), lab.stamp("home"));
    lab.git("", &["clone", "--quiet", "two", "app"]);
    assert_ne!(lab.stamp("app"), before);
    // Exchanged by renaming, which keeps every file's times.
    let before = lab.stamp("app");
    std::fs::rename(lab.path("app"), lab.path("kept")).unwrap();
    std::fs::rename(lab.path("one"), lab.path("app")).unwrap();
    assert_ne!(lab.stamp("app"), before);
    std::fs::rename(lab.path("app"), lab.path("one")).unwrap();
    std::fs::rename(lab.path("kept"), lab.path("app")).unwrap();
    assert_eq!(lab.stamp("app"), before);
}

#[test]
fn the_main_repository_moved_away() {
    let lab = Lab::new();
    lab.repository("main", None);
    lab.git("main", &["worktree", "add", "--quiet", "../wt"]);
    let before = lab.stamp("wt");
    std::fs::rename(lab.path("main"), lab.path("moved")).unwrap();
    let broken = lab.stamp("wt");
    assert_ne!(broken, before);
    lab.git("moved", &["worktree", "repair", "../wt"]);
    let mended = lab.stamp("wt");
    assert!(mended != broken && mended != before);
}
