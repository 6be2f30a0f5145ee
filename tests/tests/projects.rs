//! Which project a folder belongs to, with real git repositories: clones, work
//! trees, folders that move, go, or are used again.

use loop_state_tests::{Client, World, look};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const REMOTE: &str = "git@github.com:Acme/App.git";
const KEY: &str = "github.com/acme/app";

/// Runs git below the world's top, with nothing of the user's configuration.
#[track_caller]
fn git(world: &World, folder: &str, arguments: &[&str]) {
    let done = Command::new("git")
        .args(arguments)
        .current_dir(world.top().join(folder))
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", world.home())
        .envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .envs([("GIT_AUTHOR_NAME", "Ann"), ("GIT_AUTHOR_EMAIL", "ann@example.org")])
        .envs([("GIT_COMMITTER_NAME", "Ann"), ("GIT_COMMITTER_EMAIL", "ann@example.org")])
        .output()
        .expect("git is there");
    assert!(done.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
}

/// Makes a repository with one commit.
fn repository(world: &World, name: &str, remote: Option<&str>) {
    fs::create_dir_all(world.top().join(name)).expect("a folder");
    git(world, name, &["init", "-q", "-b", "main"]);
    git(world, name, &["commit", "-q", "--allow-empty", "-m", "first"]);
    if let Some(remote) = remote {
        git(world, name, &["remote", "add", "origin", remote]);
    }
}

/// A server that is started in a folder.
fn client_in(world: &World, folder: impl AsRef<Path>) -> Client {
    let mut client = Client::spawn(world.command().current_dir(world.top().join(folder)));
    client.initialize();
    client
}

fn init(client: &mut Client, slug: &str) -> Value {
    client.ok("loop_init", json!({ "loopSlug": slug, "goal": format!("do {slug}") }))
}

fn slugs(client: &mut Client) -> Vec<(String, Option<String>, bool)> {
    let list = client.ok("loop_list", json!({ "includeFinished": true }));
    let mut loops: Vec<_> = list["loops"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|l| {
            let root = l["project_root"]
                .as_str()
                .map(|root| Path::new(root).file_name().expect("a name").to_string_lossy().into_owned());
            (l["slug"].as_str().expect("a slug").to_owned(), root, l["detached"] == true)
        })
        .collect();
    loops.sort();
    loops
}

fn projects(world: &World) -> i64 {
    look::number(&world.database(), "SELECT count(*) FROM project")
}

fn here(slug: &str) -> (String, Option<String>, bool) {
    (slug.to_owned(), None, false)
}

fn elsewhere(slug: &str, root: &str, detached: bool) -> (String, Option<String>, bool) {
    (slug.to_owned(), Some(root.to_owned()), detached)
}

#[test]
fn a_repository_its_work_trees_and_its_folders_are_one_project() {
    for remote in [Some(REMOTE), None] {
        let world = World::new();
        repository(&world, "main", remote);
        git(&world, "main", &["worktree", "add", "-q", "../wt", "-b", "feature"]);
        fs::create_dir_all(world.top().join("main/a/b")).expect("a folder");
        std::os::unix::fs::symlink("main", world.top().join("link")).expect("a link");
        let evidence = if remote.is_some() { "remote" } else { "repository" };
        let mut found = Vec::new();
        for folder in ["main", "wt", "main/a/b", "link"] {
            let mut client = client_in(&world, folder);
            let project = init(&mut client, "same")["project"].clone();
            found.push((
                project["evidence"].as_str().expect("a word").to_owned(),
                project["below"].is_string(),
            ));
            if remote.is_some() {
                assert_eq!(project["key"], KEY);
            }
        }
        // The link leads to a root that is known by then, and to the same loop.
        let expected = [(evidence, false), (evidence, false), (evidence, true), ("known root", false)];
        assert_eq!(found, expected.map(|(word, below)| (word.to_owned(), below)));
        assert_eq!(projects(&world), 1);
        let mut client = client_in(&world, "wt");
        assert_eq!(
            slugs(&mut client),
            [here("same"), elsewhere("same", "b", false), elsewhere("same", "main", false)]
        );
    }
}

#[test]
fn an_inner_repository_is_its_own_project() {
    let world = World::new();
    repository(&world, "main", None);
    repository(&world, "main/inner", None);
    fs::create_dir_all(world.top().join("main/inner/c")).expect("a folder");
    init(&mut client_in(&world, "main"), "outer");
    init(&mut client_in(&world, "main/inner"), "inner");
    assert_eq!(slugs(&mut client_in(&world, "main/inner/c")), [elsewhere("inner", "inner", false)]);
    assert_eq!(projects(&world), 2);
}

/// The work tree is gone; from the main checkout its loop still answers.
#[test]
fn a_loop_outlives_its_work_tree() {
    let world = World::new();
    repository(&world, "main", None);
    git(&world, "main", &["worktree", "add", "-q", "../wt", "-b", "feature"]);
    let mut client = client_in(&world, "wt");
    let id = init(&mut client, "feature")["id"].clone();
    client.ok("loop_writeFile", json!({ "loopSlug": "feature", "path": "plan.md", "content": "why" }));
    client.end();
    init(&mut client_in(&world, "main"), "other");
    git(&world, "main", &["worktree", "remove", "--force", "../wt"]);

    let mut client = client_in(&world, "main");
    assert_eq!(slugs(&mut client), [elsewhere("feature", "wt", true), here("other")]);
    let on = |more: Value| {
        let mut arguments = json!({ "loopSlug": "feature" });
        for (key, value) in more.as_object().expect("an object") {
            arguments[key] = value.clone();
        }
        arguments
    };
    let read = client.ok("loop_readFile", on(json!({ "path": "plan.md" })));
    assert_eq!((&read["content"], &read["detached"]), (&json!("why"), &json!(true)));
    assert_eq!(client.ok("loop_init", on(json!({ "goal": "again" })))["id"], id);
    assert_eq!(client.ok("loop_audit", on(json!({})))["detached"], true);
    let recovered = client.ok("loop_recover", on(json!({})));
    assert!(recovered["warnings"].to_string().contains("detached loop"), "{recovered}");
    // A change is stored, and the answer says that no file shows it.
    let changed = client.ok("loop_setPhase", on(json!({ "phase": "plan" })));
    assert!(changed["mirror"].as_str().is_some_and(|said| said.starts_with("not written")), "{changed}");
    assert!(!world.top().join("wt").exists() && !world.top().join("main/.projects/loops/feature").exists());
    let refused = client.refused("loop_render", on(json!({})));
    assert!(refused.contains("is gone"), "{refused}");

    // Restored here, it has a folder again.
    client.ok("loop_finish", on(json!({ "status": "aborted" })));
    let archive = client.ok("loop_archive", on(json!({})))["archiveId"].clone();
    let target = world.top().join("main");
    let restored = client.ok("archive_restore", json!({ "archiveId": archive, "targetDir": target }));
    assert_eq!(restored["id"], id);
    assert_eq!(slugs(&mut client), [here("feature"), here("other")]);
    assert!(world.top().join("main/.projects/loops/feature/plan.md").exists());
}

#[test]
fn two_clones_share_a_project_and_never_resume_each_other() {
    let world = World::new();
    repository(&world, "one", Some(REMOTE));
    repository(&world, "two", Some("https://user:secret@github.com/acme/app/"));
    init(&mut client_in(&world, "one"), "work");
    let mut client = client_in(&world, "two");
    let recovered = client.ok("loop_recover", json!({ "loopSlug": null }));
    assert_eq!(recovered["recovered"], false, "{recovered}");
    assert!(recovered["candidates"][0]["project_root"].as_str().is_some_and(|root| root.ends_with("/one")));
    let refused = client.refused("loop_get", json!({ "loopSlug": "work" }));
    assert!(refused.contains("this project has one in ") && refused.contains("/one"), "{refused}");
    init(&mut client, "work");
    assert_eq!(slugs(&mut client), [here("work"), elsewhere("work", "one", false)]);
    client.end();
    let stored = format!("{:?}", look::rows(&world.database()).keys());
    assert!(!stored.contains("secret"), "a password was stored");
}

/// The folder moves: by its remote the project is found again; without one it is
/// another, and the old one is listed for a merge.
#[test]
fn a_folder_that_moves() {
    for (remote, found) in [(Some(REMOTE), true), (None, false)] {
        let world = World::new();
        repository(&world, "app", remote);
        init(&mut client_in(&world, "app"), "work");
        fs::rename(world.top().join("app"), world.top().join("app2")).expect("moved");
        let mut client = client_in(&world, "app2");
        let expected = if found { vec![elsewhere("work", "app", true)] } else { Vec::new() };
        assert_eq!(slugs(&mut client), expected, "{remote:?}");
        if found {
            assert_eq!(client.ok("loop_recover", json!({ "loopSlug": null }))["recovered"], true);
        }
    }
}

/// Another repository takes the folder: its loops are its own, and the earlier ones
/// neither resume nor hold their slugs.
#[test]
fn a_folder_that_is_used_again() {
    let world = World::new();
    repository(&world, "app", Some(REMOTE));
    let old = init(&mut client_in(&world, "app"), "work")["id"].clone();
    fs::remove_dir_all(world.top().join("app")).expect("removed");
    repository(&world, "app", Some("git@github.com:other/thing.git"));
    let mut client = client_in(&world, "app");
    assert_eq!(slugs(&mut client), []);
    assert_eq!(client.ok("loop_recover", json!({ "loopSlug": null }))["reason"], "no-active-loop");
    let new = init(&mut client, "work");
    assert_eq!(new["project"]["key"], "github.com/other/thing");
    assert!(
        new["project"]["note"].as_str().is_some_and(|note| note.contains("another repository now")),
        "{new}"
    );
    assert_ne!(new["id"], old);
    client.end();
    assert_eq!(slugs(&mut client_in(&world, "app")), [here("work")]);
    assert_eq!(projects(&world), 2);
    // From another clone of the first repository its loop is still there, detached.
    repository(&world, "clone", Some(REMOTE));
    assert_eq!(slugs(&mut client_in(&world, "clone")), [elsewhere("work", "app", true)]);
}

#[test]
fn what_git_cannot_tell_is_no_error() {
    /// Prepares the world and returns the folder that the server is started in.
    type Preparing = fn(&World) -> PathBuf;
    let cases: [(&str, Preparing, bool); 4] = [
        ("a plain folder", |world| world.project(), false),
        (
            "a broken pointer",
            |world| {
                fs::write(world.project().join(".git"), "gitdir: /nowhere/.git/worktrees/x\n")
                    .expect("a file");
                world.project()
            },
            true,
        ),
        (
            "junk in its place",
            |world| {
                fs::write(world.project().join(".git"), "junk").expect("a file");
                world.project()
            },
            true,
        ),
        (
            "a bare repository",
            |world| {
                git(world, "project", &["init", "-q", "--bare", "bare.git"]);
                world.project().join("bare.git")
            },
            false,
        ),
    ];
    for (what, prepare, note) in cases {
        let world = World::new();
        let folder = prepare(&world);
        let mut client = client_in(&world, folder);
        let project = init(&mut client, "work")["project"].clone();
        assert_eq!(project["note"].is_string(), note, "{what}: {project}");
        assert_eq!(slugs(&mut client), [here("work")], "{what}");
    }
    // No git at all, and variables that name another repository.
    let world = World::new();
    repository(&world, "b", Some("git@github.com:b/b.git"));
    repository(&world, "a", Some(REMOTE));
    let git_dir = world.top().join("b/.git");
    for (variable, value) in
        [("PATH", PathBuf::from("/nowhere")), ("GIT_DIR", git_dir.clone()), ("GIT_COMMON_DIR", git_dir)]
    {
        let mut command = world.command();
        command.current_dir(world.top().join("a")).env(variable, value);
        let mut client = Client::spawn(&mut command);
        client.initialize();
        let project = client.ok("loop_recover", json!({ "loopSlug": null }))["project"].clone();
        match variable {
            "PATH" => assert!(project["note"].as_str().is_some_and(|note| note.contains("git")), "{project}"),
            _ => assert_eq!(project["key"], KEY, "{variable}"),
        }
    }
}

/// A known root asks no git; a changed configuration is looked at anew.
#[test]
fn a_known_root_needs_no_git() {
    let world = World::new();
    repository(&world, "app", Some(REMOTE));
    init(&mut client_in(&world, "app"), "work");
    let mut command = world.command();
    command.current_dir(world.top().join("app")).env("PATH", "/nowhere");
    let mut client = Client::spawn(&mut command);
    client.initialize();
    let project = client.ok("loop_recover", json!({ "loopSlug": null }))["project"].clone();
    assert_eq!(
        (&project["evidence"], &project["key"], &project["note"]),
        (&json!("known root"), &json!(KEY), &Value::Null)
    );
    client.end();
    git(&world, "app", &["config", "user.name", "Someone"]);
    let mut client = client_in(&world, "app");
    assert_eq!(slugs(&mut client), [here("work")]);
    assert_eq!(projects(&world), 1);
}

/// A project from before identity was recorded gets it the first time it is seen.
#[test]
fn identity_is_filled_in_later() {
    let world = World::new();
    init(&mut client_in(&world, world.project()), "old");
    git(&world, "project", &["init", "-q"]);
    git(&world, "project", &["remote", "add", "origin", REMOTE]);
    let mut client = client_in(&world, world.project());
    assert_eq!(slugs(&mut client), [here("old")]);
    client.ok("loop_setPhase", json!({ "loopSlug": "old", "phase": "plan" }));
    client.end();
    repository(&world, "clone", Some(REMOTE));
    assert_eq!(slugs(&mut client_in(&world, "clone")), [elsewhere("old", "project", false)]);
}
