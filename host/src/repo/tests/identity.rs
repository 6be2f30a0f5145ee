//! Which repository a folder belongs to, where all is in order.

use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::symlink;

use super::*;

const ORIGIN: &str = "git@example.org:acme/app.git";
const KEY: Option<&str> = Some("example.org/acme/app");

#[test]
fn one_repository_from_each_of_its_folders() {
    let lab = Lab::new();
    lab.repository("main", None);
    folder(lab.path("main/a/b"));
    lab.git("main", &["worktree", "add", "--quiet", "../wt"]);
    folder(lab.path("wt/a"));
    symlink("main", lab.path("link")).unwrap();
    symlink("main/a", lab.path("deep")).unwrap();
    for (from, top) in [
        ("main", "main"),
        ("main/a/b", "main"),
        ("wt", "wt"),
        ("wt/a", "wt"),
        ("link", "main"),
        ("link/a/b", "main"),
        ("deep", "main"),
    ] {
        assert_eq!(lab.identify(from), lab.healthy(None, "main/.git", Some(top)), "{from}");
    }
    lab.git("main", &["config", "remote.origin.url", ORIGIN]);
    for (from, top) in [("main/a/b", "main"), ("wt/a", "wt"), ("link", "main")] {
        assert_eq!(lab.identify(from), lab.healthy(KEY, "main/.git", Some(top)), "{from}");
    }
    // In the git folder itself there is no work tree.
    for from in ["main/.git", "main/.git/hooks", "main/.git/worktrees/wt"] {
        folder(lab.path(from));
        assert_eq!(lab.identify(from), lab.healthy(KEY, "main/.git", None), "{from}");
    }
}

#[test]
fn a_repository_within_another_is_its_own() {
    let lab = Lab::new();
    lab.repository("main", Some(ORIGIN));
    lab.repository("main/inner", None);
    folder(lab.path("main/inner/c"));
    for from in ["main/inner", "main/inner/c"] {
        let own = lab.healthy(None, "main/inner/.git", Some("main/inner"));
        assert_eq!(lab.identify(from), own, "{from}");
    }

    lab.repository("library", None);
    let (allowed, library) = ("protocol.file.allow=always", lab.text("library"));
    lab.git("main", &["-c", allowed, "submodule", "--quiet", "add", &library, "parts/library"]);
    folder(lab.path("main/parts/library/src"));
    let own = |key| lab.healthy(key, "main/.git/modules/parts/library", Some("main/parts/library"));
    // Its origin is a path here, and not the outer one's in its place.
    assert_eq!(lab.identify("main/parts/library"), own(None));
    lab.git("main/parts/library", &["config", "remote.origin.url", "https://example.org/acme/library"]);
    assert_eq!(lab.identify("main/parts/library/src"), own(Some("example.org/acme/library")));
    assert_eq!(lab.identify("main/parts"), lab.healthy(KEY, "main/.git", Some("main")));
}

#[test]
fn a_bare_repository_is_the_one_of_its_work_trees() {
    let lab = Lab::new();
    lab.repository("main", None);
    lab.git("", &["clone", "--quiet", "--bare", "main", "app.git"]);
    lab.git("app.git", &["config", "remote.origin.url", ORIGIN]);
    lab.git("app.git", &["worktree", "add", "--quiet", "../wt"]);
    assert_eq!(lab.identify("app.git"), lab.healthy(KEY, "app.git", None));
    assert_eq!(lab.identify("app.git/hooks"), lab.healthy(KEY, "app.git", None));
    assert_eq!(lab.identify("wt"), lab.healthy(KEY, "app.git", Some("wt")));

    // Inside the work tree of another repository it is still its own.
    lab.git("", &["clone", "--quiet", "--bare", "main", "main/fixture.git"]);
    lab.git("main/fixture.git", &["config", "--remove-section", "remote.origin"]);
    assert_eq!(lab.identify("main/fixture.git"), lab.healthy(None, "main/fixture.git", None));

    // A bare repository beside a file that points to it.
    folder(lab.path("project"));
    lab.git("", &["clone", "--quiet", "--bare", "main", "project/.bare"]);
    std::fs::write(lab.path("project/.git"), "gitdir: ./.bare\n").unwrap();
    lab.git("project", &["worktree", "add", "--quiet", "wt"]);
    assert_eq!(lab.identify("project"), lab.healthy(None, "project/.bare", None));
    assert_eq!(lab.identify("project/wt"), lab.healthy(None, "project/.bare", Some("project/wt")));
}

#[test]
fn a_git_folder_elsewhere() {
    let lab = Lab::new();
    folder(lab.path("tree/a"));
    lab.git("", &["init", "--quiet", "--separate-git-dir", "kept.git", "tree"]);
    assert_eq!(lab.identify("tree/a"), lab.healthy(None, "kept.git", Some("tree")));
    lab.repository("linked-to", None);
    folder(lab.path("linked"));
    symlink("../linked-to/.git", lab.path("linked/.git")).unwrap();
    assert_eq!(lab.identify("linked"), lab.healthy(None, "linked-to/.git", Some("linked")));
}

#[test]
fn a_folder_in_no_repository_needs_no_git() {
    let lab = Lab::new();
    folder(lab.path("plain/a"));
    for from in ["plain", "plain/a", "gone"] {
        assert_eq!(lab.identify(from), Identity::default(), "{from}");
        assert_eq!(Git::new([]).identify(&lab.path(from)), Identity::default(), "{from}");
    }
}

#[test]
fn origin_is_what_the_repository_itself_stores() {
    let app = ["remote.origin.url", ORIGIN];
    let other = "https://example.org/acme/other";
    type Settings<'a> = &'a [&'a [&'a str]];
    #[rustfmt::skip]
    let table: [(&str, Settings, Option<&str>); 14] = [
        ("set", &[&app], KEY),
        ("with a token", &[&["remote.origin.url", "https://me:ghs_SECRET@example.org/acme/app"]], KEY),
        ("rewritten", &[&app, &["url.git@elsewhere.org:.insteadOf", "git@example.org:"]], KEY),
        ("rewritten for pushes", &[&app, &["url.git@elsewhere.org:.pushInsteadOf", "git@example.org:"]], KEY),
        ("pushed elsewhere", &[&app, &["remote.origin.pushurl", other], &["remote.pushDefault", "fork"]], KEY),
        ("a shorthand", &[&["remote.origin.url", "gh:acme/app"], &["url.git@github.com:.insteadOf", "gh:"]], Some("gh/acme/app")),
        ("the first of two", &[&app, &["--add", "remote.origin.url", other]], KEY),
        ("a path first", &[&["remote.origin.url", "../app.git"], &["--add", "remote.origin.url", other]], None),
        ("taken back", &[&["remote.origin.url", other], &["--add", "remote.origin.url", ""], &["--add", "remote.origin.url", ORIGIN]], KEY),
        ("empty", &[&["remote.origin.url", ""]], None),
        ("blank", &[&["remote.origin.url", "  "]], None),
        ("no origin", &[&["remote.upstream.url", ORIGIN], &["remote.pushDefault", "upstream"]], None),
        ("included", &[&["include.path", "../extra"]], KEY),
        ("included when it applies", &[&["includeIf.gitdir:**/included-when-it-applies/.path", "../extra"]], KEY),
    ];
    let lab = Lab::new();
    for (name, settings, expected) in table {
        let name = name.replace(' ', "-");
        lab.repository(&name, None);
        let extra = format!("[remote \"origin\"]\n\turl = {ORIGIN}\n");
        std::fs::write(lab.path(&name).join("extra"), extra).unwrap();
        for setting in settings {
            lab.git(&name, &[&["config"], *setting].concat());
        }
        let found = lab.identify(&name);
        assert_eq!(found, lab.healthy(expected, &format!("{name}/.git"), Some(&name)));
        assert!(!format!("{found:?}").contains("SECRET"));
    }
}

#[test]
fn nothing_local_or_relative_joins_two_repositories() {
    let lab = Lab::new();
    let origins = [
        "./_dummy",
        "../app.git",
        "file:///srv/app.git",
        "/srv/app.git",
        "C:\\src\\app",
        "C:/src/app",
        "~/app.git",
    ];
    for origin in origins {
        let mut keys = Vec::new();
        for name in ["a", "b"] {
            lab.repository(name, Some(origin));
            let Identity { remote_key, repo_key, note, .. } = lab.identify(name);
            assert_eq!((remote_key, note), (None, None), "{origin}");
            keys.push(repo_key.unwrap());
        }
        assert_ne!(keys[0], keys[1]);
    }
}

#[test]
fn variables_of_a_hook_or_a_user_change_nothing() {
    let lab = Lab::new();
    lab.repository("a", Some(ORIGIN));
    lab.repository("b", Some("https://example.org/acme/other"));
    folder(lab.path("a/sub"));
    let [b, b_git] = ["b", "b/.git"].map(|name| lab.text(name));
    let index = format!("{b_git}/index");
    let objects = format!("{b_git}/objects");
    let config = lab.text("home/.gitconfig");
    let above = lab.text("a");
    std::fs::write(
        &config,
        "[remote \"origin\"]\n\turl = https://example.org/acme/users\n[core]\n\tbare = true\n",
    )
    .unwrap();
    let trace = lab.text("trace");
    let variables = [
        ("GIT_DIR", b_git.as_str()),
        ("GIT_WORK_TREE", &b),
        ("GIT_COMMON_DIR", &b_git),
        ("GIT_INDEX_FILE", &index),
        ("GIT_OBJECT_DIRECTORY", &objects),
        ("GIT_NAMESPACE", "other"),
        ("GIT_CEILING_DIRECTORIES", &above),
        ("GIT_PREFIX", "sub/"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "remote.origin.url"),
        ("GIT_CONFIG_VALUE_0", "https://example.org/acme/counted"),
        ("GIT_CONFIG_PARAMETERS", "'remote.origin.url'='https://example.org/acme/parameter'"),
        ("GIT_CONFIG", &config),
        ("GIT_CONFIG_GLOBAL", &config),
        ("GIT_CONFIG_SYSTEM", &config),
        ("GIT_CONFIG_NOSYSTEM", "0"),
        ("GIT_TRACE", "1"),
        ("GIT_TRACE_SETUP", &trace),
        ("GIT_TRACE2_EVENT", &trace),
        ("LC_ALL", "de_DE.UTF-8"),
        ("LANGUAGE", "de"),
        ("PWD", &b),
        ("PAGER", "false"),
    ];
    let own = lab.healthy(KEY, "a/.git", Some("a"));
    for variable in variables {
        assert_eq!(lab.identify_with("a/sub", &[variable]), own, "{variable:?}");
    }
    assert_eq!(lab.identify_with("a/sub", &variables), own);
    assert_eq!(lab.identify_with("home", &variables), Identity::default());
    assert!(!lab.path("trace").exists());
}

#[test]
fn inside_a_hook_of_a_linked_work_tree() {
    let lab = Lab::new();
    lab.repository("main", Some(ORIGIN));
    lab.git("main", &["worktree", "add", "--quiet", "../wt"]);
    lab.repository("other", None);
    folder(lab.path("main/.git/hooks"));
    let seen = lab.path("seen");
    // What a server that is started by the hook gets.
    program(&lab.path("main/.git/hooks/pre-commit"), &format!("#!/bin/sh\nenv -0 > '{}'\n", seen.display()));
    lab.git("wt", &["commit", "--quiet", "--allow-empty", "--message=second"]);

    let seen = std::fs::read(seen).unwrap();
    let variables: Vec<(OsString, OsString)> = seen
        .split(|byte| *byte == 0)
        .filter_map(|pair| {
            let equals = pair.iter().position(|byte| *byte == b'=')?;
            let text = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
            Some((text(&pair[..equals]), text(&pair[equals + 1..])))
        })
        .collect();
    assert!(variables.iter().any(|(name, _)| name == "GIT_DIR"), "{variables:?}");
    let git = Git::new(variables);
    assert_eq!(git.identify(&lab.path("wt")), lab.healthy(KEY, "main/.git", Some("wt")));
    assert_eq!(git.identify(&lab.path("other")), lab.healthy(None, "other/.git", Some("other")));
}

#[test]
fn odd_names() {
    let lab = Lab::new();
    for name in ["Grüße 🚀", " blank ", "line\nbreak", "-n", "quo\"te"] {
        lab.repository(name, Some(ORIGIN));
        folder(lab.path(name).join("sub"));
        let found = lab.identify(&format!("{name}/sub"));
        if name.contains('\n') {
            assert!(found.note.unwrap().contains("line break"));
        } else {
            assert_eq!(found, lab.healthy(KEY, &format!("{name}/.git"), Some(name)));
        }
    }
}
