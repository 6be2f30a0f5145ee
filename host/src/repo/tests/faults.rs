//! Where git gives no identity: a note says why, and no other repository's comes
//! in its place.

use std::os::unix::fs::symlink;
use std::time::Duration;

use super::*;

/// Asserts that there is nothing but a note with these words.
#[track_caller]
fn assert_note(found: &Identity, words: &[&str]) {
    let note = found.note.as_deref().unwrap_or_default();
    for word in words {
        assert!(note.contains(word), "{note:?} lacks {word:?}");
    }
    assert_eq!(*found, Identity { note: found.note.clone(), ..Identity::default() });
}

#[test]
fn a_work_tree_whose_repository_is_gone() {
    let lab = Lab::new();
    lab.repository("outer", Some("https://example.org/acme/outer"));
    lab.repository("main", Some("https://example.org/acme/app"));
    lab.git("main", &["worktree", "add", "--quiet", "../outer/wt"]);
    folder(lab.path("outer/wt/a"));
    std::fs::rename(lab.path("main"), lab.path("moved")).unwrap();
    for from in ["outer/wt", "outer/wt/a"] {
        assert_note(
            &lab.identify(from),
            &[&lab.text("outer/wt/.git"), "no repository is", "git worktree repair"],
        );
    }
    lab.git("moved", &["worktree", "repair", "../outer/wt"]);
    let mended = lab.healthy(Some("example.org/acme/app"), "moved/.git", Some("outer/wt"));
    assert_eq!(lab.identify("outer/wt"), mended);
    // Removed by its own repository, and only its entry left.
    lab.git("moved", &["worktree", "prune"]);
    std::fs::remove_dir_all(lab.path("moved/.git/worktrees")).unwrap();
    assert_note(&lab.identify("outer/wt"), &["no repository is"]);
}

#[test]
fn a_damaged_repository_is_not_taken_for_the_one_around_it() {
    let lab = Lab::new();
    lab.repository("outer", Some("https://example.org/acme/outer"));
    type Damage = fn(&Path);
    let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
    #[rustfmt::skip]
    let table: [(&str, Damage, &str); 14] = [
        ("empty folder", |git| { folder(git.to_owned()); }, "finds no repository"),
        ("empty file", |git| std::fs::write(git, "").unwrap(), "finds no repository"),
        ("file of words", |git| std::fs::write(git, "gitdir\n").unwrap(), "finds no repository"),
        ("file without place", |git| std::fs::write(git, "gitdir: \n").unwrap(), "finds no repository"),
        ("link to nowhere", |git| symlink("nowhere", git).unwrap(), "finds no repository"),
        ("link to itself", |git| symlink(".git", git).unwrap(), "finds no repository"),
        ("pipe", |git| make_pipe(git), "finds no repository"),
        ("pointer to the outer folder", |git| std::fs::write(git, "gitdir: ../\n").unwrap(), "no repository is"),
        ("no head", |git| { init(git); std::fs::remove_file(git.join("HEAD")).unwrap() }, "finds no repository"),
        ("no objects", |git| { init(git); std::fs::remove_dir_all(git.join("objects")).unwrap() }, "finds no repository"),
        ("bad configuration", |git| { init(git); std::fs::write(git.join("config"), "[remote \"SECRET\n").unwrap() }, "configuration"),
        ("bad inclusion", |git| { init(git); include(git, "[x\n") }, "configuration"),
        ("format of the future", |git| { init(git); std::fs::write(git.join("config"), "[core]\nrepositoryformatversion = 99\n").unwrap() }, "git cannot use"),
        ("unknown extension", |git| { init(git); std::fs::write(git.join("config"), "[core]\nrepositoryformatversion = 1\n[extensions]\nunheard = true\n").unwrap() }, "git cannot use"),
    ];
    for (name, damage, words) in table {
        // With nothing around it, where the pointer has nowhere to lead either.
        damage(&folder(lab.path("alone").join(name)).join(".git"));
        assert!(lab.identify(&format!("alone/{name}")).note.unwrap().contains(words), "{name}");

        let place = folder(lab.path("outer").join(name));
        damage(&place.join(".git"));
        write(&place.join("file"), "");
        let mut found = lab.identify(&format!("outer/{name}"));
        // What was told before the damage was met may stay; it is its own.
        if found.repo_key.take_if(|key| *key == place.join(".git").to_str().unwrap()).is_some() {
            found.top = None;
        }
        assert_note(&found, &[words, &lab.text("outer")]);
        assert!(!found.note.unwrap().contains("SECRET"));
        assert_ne!(lab.stamp(&format!("outer/{name}")), lab.stamp("outer"), "{name}");
    }
}

fn init(git: &Path) {
    let place = git.parent().unwrap();
    let status = Command::new("git")
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .args(["init", "--quiet"])
        .arg(place)
        .status();
    assert!(status.unwrap().success());
}

fn include(git: &Path, text: &str) {
    std::fs::write(git.join("more"), text).unwrap();
    std::fs::write(git.join("config"), "[core]\nbare = false\n[include]\npath = more\n").unwrap();
}

fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[test]
fn a_repository_of_another_user() {
    let lab = Lab::new();
    lab.repository("outer", Some("https://example.org/acme/outer"));
    lab.repository("outer/app", Some("https://example.org/acme/app"));
    let chown = |owner: u32| {
        for place in ["outer/app", "outer/app/.git"] {
            std::os::unix::fs::chown(lab.path(place), Some(owner), None)?;
        }
        Ok::<(), std::io::Error>(())
    };
    let before = lab.stamp("outer/app");
    if let Err(error) = chown(54_321) {
        eprintln!("skipped: only root can give a folder to another user ({error})");
        return;
    }
    // Even where the user has allowed it, as said in the documentation.
    std::fs::write(lab.path("home/.gitconfig"), "[safe]\n\tdirectory = *\n").unwrap();
    assert_note(&lab.identify("outer/app"), &[&lab.text("outer/app/.git"), "none of this user's"]);
    assert_ne!(lab.stamp("outer/app"), before);
    chown(0).unwrap();
    assert_eq!(lab.identify("outer/app").note, None);
}

#[test]
fn no_git_to_run() {
    let lab = Lab::new();
    lab.repository("app", Some("https://example.org/acme/app"));
    folder(lab.path("empty"));
    folder(lab.path("bin/git"));
    std::fs::write(lab.path("home/git"), "#!/bin/sh\n").unwrap();
    // Files of the project are not for running.
    program(&lab.path("app/git"), "#!/bin/sh\ntouch ran\necho .git\n");
    for path in ["", ".", ":", "TOP/empty:.", "TOP/bin:TOP/home:bin"] {
        let path = path.replace("TOP", lab.top.to_str().unwrap());
        assert_note(&Git::new([("PATH".into(), path.into())]).identify(&lab.path("app")), &["not installed"]);
    }
    assert_note(&Git::new([]).identify(&lab.path("app")), &["not installed"]);
    // A relative path to a git that would run.
    let here = std::env::current_dir().unwrap();
    let up = "../".repeat(here.components().count());
    let path = format!("{up}{}", lab.text("app"));
    assert!(here.join(&path).join("git").is_file());
    assert_note(&Git::new([("PATH".into(), path.into())]).identify(&lab.path("app")), &["not installed"]);
    assert!(!lab.path("app/ran").exists());
}

#[test]
fn a_git_that_misbehaves() {
    #[rustfmt::skip]
    let table = [
        ("silent", "#!/bin/sh\n", "git cannot use"),
        ("failing", "#!/bin/sh\necho 'fatal: SECRET' >&2\nexit 128\n", "git cannot use"),
        ("killed", "#!/bin/sh\nkill -9 $$\n", "git cannot use"),
        ("hanging", "#!/bin/sh\nsleep 600\n", "no answer within 0.2 s"),
        ("leaving", "#!/bin/sh\nsleep 600 & echo .git\n", "no answer within 0.2 s"),
        ("closing", "#!/bin/sh\nexec >&- 2>&-\nsleep 600\n", "no answer within 0.2 s"),
        ("flooding", "#!/bin/sh\nwhile :; do echo /nowhere; done\n", "finds no repository"),
        ("lying", "#!/bin/sh\necho ../other/.git; echo ..\n", "finds no repository"),
        ("nonsense", "#!/nowhere/sh\n", "cannot be started"),
    ];
    let lab = Lab::new();
    lab.repository("app", Some("https://example.org/acme/app"));
    lab.repository("other", Some("https://example.org/acme/other"));
    for (name, text, words) in table {
        program(&folder(lab.path(name)).join("git"), text);
        let path = format!("{}:/usr/bin:/bin", lab.text(name));
        // What does not hang must not depend on the machine's pace.
        let limit =
            if words.starts_with("no answer") { Duration::from_millis(200) } else { Duration::from_secs(60) };
        let found = Git::new([("PATH".into(), path.into())]).with_limit(limit).identify(&lab.path("app"));
        assert_note(&found, &[words]);
        assert!(!found.note.unwrap().contains("SECRET"), "{name}");
    }
}

#[test]
fn what_a_hanging_git_has_started_is_stopped_with_it() {
    use std::io::Read as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    let lab = Lab::new();
    lab.repository("app", None);
    let pipe = lab.path("pipe");
    make_pipe(&pipe);
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).unwrap();
    let mut reader = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(&pipe).unwrap();
    let text = format!("#!/bin/sh\nsleep 60 9>'{}' & sleep 60\n", pipe.display());
    program(&folder(lab.path("bin")).join("git"), &text);
    let path = format!("{}:/usr/bin:/bin", lab.text("bin"));
    let git = Git::new([("PATH".into(), path.into())]).with_limit(Duration::from_millis(500));
    assert_note(&git.identify(&lab.path("app")), &["no answer"]);
    // The pipe ends when the last process that holds it has.
    let began = std::time::Instant::now();
    while reader.read(&mut [0]).is_err() {
        assert!(began.elapsed() < Duration::from_secs(20), "still there");
        std::thread::yield_now();
    }
}
