//! Where the server is started and where its state goes: working directories,
//! homes and state folders, odd ones too.

use loop_state_tests::look::{self, Content};
use loop_state_tests::{Client, SLUG, World, binary};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Everything in the world but the state folder.
fn outside_state(world: &World) -> Content {
    look::files(world.top()).into_iter().filter(|(path, _)| !path.starts_with("state")).collect()
}

/// Whether the server answers what it is, wherever it was started.
#[track_caller]
fn hello(command: &mut Command, what: &str) -> Client {
    let mut client = Client::spawn(command);
    assert!(client.initialize()["serverInfo"].is_object(), "{what}");
    assert!(client.request("tools/list", json!({}))["tools"].is_array(), "{what}");
    client
}

#[track_caller]
fn assert_says(refusal: &str, words: &[&str], what: &str) {
    for word in words {
        assert!(refusal.contains(word), "{what}: {refusal:?} lacks {word:?}");
    }
}

#[test]
fn a_state_folder_that_cannot_be_used_is_named() {
    /// Prepares the world's top and returns the variable's value.
    type Setting = fn(&Path) -> OsString;
    let cases: &[(&str, Setting, &[&str])] = &[
        ("a tilde", |_| "~/x".into(), &["DEV_LOOP_STATE_DIR", "~/x", "no shell", "absolute"]),
        ("a variable", |_| "${HOME}/x".into(), &["DEV_LOOP_STATE_DIR", "${HOME}/x", "no shell"]),
        ("a relative path", |_| "state/here".into(), &["DEV_LOOP_STATE_DIR", "state/here", "absolute"]),
        ("this folder", |_| ".".into(), &["DEV_LOOP_STATE_DIR", "absolute"]),
        (
            "a file",
            |top| {
                fs::write(top.join("file"), "mine").expect("a file");
                top.join("file").into()
            },
            &["/file is a file, not a folder", "DEV_LOOP_STATE_DIR"],
        ),
        (
            "below a file",
            |top| {
                fs::write(top.join("file"), "mine").expect("a file");
                top.join("file/state").into()
            },
            &["/file/state", "DEV_LOOP_STATE_DIR"],
        ),
        (
            "a link that leads nowhere",
            |top| {
                symlink(top.join("nowhere"), top.join("link")).expect("a link");
                top.join("link").into()
            },
            &["/link is a link to something that does not exist", "DEV_LOOP_STATE_DIR"],
        ),
        ("a device", |_| "/dev/null".into(), &["/dev/null is a special file, not a folder"]),
    ];
    for (what, setting, words) in cases {
        let world = World::new();
        let value = setting(world.top());
        let before = look::files(world.top());
        let mut client = hello(world.command().env("DEV_LOOP_STATE_DIR", value), what);
        for (tool, arguments) in
            [("loop_list", json!({})), ("loop_init", json!({ "goal": "x" })), ("loop_get", json!({}))]
        {
            assert_says(&client.refused(tool, arguments), words, what);
        }
        look::assert_same(&before, &look::files(world.top()), what);
    }
}

#[test]
fn state_folders_that_can_be_used_hold_everything() {
    type Setting = fn(&World) -> PathBuf;
    let cases: &[(&str, Setting)] = &[
        ("blanks and emoji", |w| w.top().join("state of/my 🦀 loops")),
        ("a link to a folder", |w| {
            fs::create_dir(w.top().join("state-real")).expect("a folder");
            symlink("state-real", w.top().join("state")).expect("a link");
            w.top().join("state")
        }),
        ("many levels", |w| w.top().join("state").join(["deep"; 40].join("/"))),
        ("characters of an address", |w| w.top().join("state?mode=memory&x=%41#y")),
    ];
    for (what, setting) in cases {
        let world = World::new();
        let folder = setting(&world);
        let mut client = hello(world.command().env("DEV_LOOP_STATE_DIR", &folder), what);
        client.ok("loop_init", json!({ "goal": "x" }));
        assert!(client.end().success());
        let database = folder.join("loops.db");
        assert_eq!(fs::metadata(&database).expect(what).mode() & 0o777, 0o600, "{what}");
        look::assert_sound(&database);
        let mut client = hello(world.command().env("DEV_LOOP_STATE_DIR", &folder), what);
        assert_eq!(client.ok("loop_list", json!({}))["loops"][0]["slug"], SLUG, "{what}");
    }
    // Without the override, or with an empty one, it is the home's.
    for value in [None, Some("")] {
        let world = World::new();
        let mut command = world.command();
        match value {
            None => command.env_remove("DEV_LOOP_STATE_DIR"),
            Some(empty) => command.env("DEV_LOOP_STATE_DIR", empty),
        };
        let mut client = hello(&mut command, "home");
        client.ok("loop_init", json!({ "goal": "x" }));
        let folder = world.home().join(".dev-loop-state");
        assert_eq!(fs::metadata(&folder).expect("the folder").mode() & 0o777, 0o700);
        look::assert_sound(&folder.join("loops.db"));
        assert!(!world.state().exists());
    }
}

/// Makes the command run as a user without any rights of its own and without an entry in
/// the user database, if this process may do so.
fn as_a_stranger(world: &World, command: &mut Command) -> bool {
    if fs::metadata("/proc/self").is_ok_and(|m| m.uid() != 0) {
        return false;
    }
    for folder in [world.top().to_owned(), world.project(), world.home()] {
        fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("open to all");
    }
    command.uid(54_321).gid(54_321);
    true
}

/// The server's command with the binary where every user can reach it.
fn reachable(world: &World) -> Command {
    let here = world.top().join("server");
    if !here.exists() {
        fs::copy(binary(), &here).expect("a copy of the server");
    }
    let plain = world.command();
    let mut command = Command::new(here);
    command.current_dir(world.project()).env_clear();
    for (key, value) in plain.get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command
}

#[test]
fn a_home_that_cannot_be_used_is_passed_over() {
    for home in [None, Some(""), Some("rel/dir"), Some("${HOME}"), Some("/nonexistent"), Some("/dev/null")] {
        let what = format!("HOME={home:?}");
        let world = World::new();
        fs::create_dir_all(world.project().join("rel/dir")).expect("a folder");
        let mut command = reachable(&world);
        command.env_remove("DEV_LOOP_STATE_DIR");
        match home {
            None => command.env_remove("HOME"),
            Some(home) => command.env("HOME", home),
        };
        let stranger = as_a_stranger(&world, &mut command);
        let before = look::files(&world.project());
        let mut client = hello(&mut command, &what);
        // Any other user has a home in the user database, which is not the tests' to fill.
        if stranger {
            let refusal = client.refused("loop_init", json!({ "goal": "x" }));
            assert_says(&refusal, &["no home folder", "user database", "DEV_LOOP_STATE_DIR"], &what);
            assert_says(&refusal, &[home.filter(|h| !h.is_empty()).unwrap_or("HOME is")], &what);
        }
        look::assert_same(&before, &look::files(&world.project()), &what);
    }
}

#[test]
fn a_state_folder_that_is_not_writable_can_be_read() {
    for (what, folder_mode, file_mode) in [
        ("a read-only file", 0o755, 0o444),
        ("a read-only folder", 0o555, 0o644),
        ("both read-only", 0o555, 0o444),
    ] {
        let world = World::new().quiet();
        let mut client = world.client_with_loop();
        client.ok("event_append", json!({ "event": "probe" }));
        assert!(client.end().success());
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode));
        set(&world.database(), file_mode).expect("a mode");
        set(&world.state(), folder_mode).expect("a mode");
        let mut command = reachable(&world);
        as_a_stranger(&world, &mut command);
        let before = look::files(&world.state());
        let mut client = hello(&mut command, what);
        assert_eq!(client.ok("loop_get", json!({}))["loop"]["goal"], "try it", "{what}");
        assert_eq!(client.ok("loop_list", json!({}))["loops"][0]["slug"], SLUG, "{what}");
        let refusal = client.refused("event_append", json!({ "event": "probe" }));
        let database = world.database();
        let words = ["cannot be written", "nothing was changed", database.to_str().expect("UTF-8")];
        assert_says(&refusal, &words, what);
        look::assert_same(&before, &look::files(&world.state()), what);
        // Mended under the running server.
        set(&world.state(), 0o777).expect("a mode");
        set(&world.database(), 0o666).expect("a mode");
        client.ok("event_append", json!({ "event": "probe" }));
        assert!(client.end().success());
        look::assert_sound(&world.database());
    }
}

/// How a server is started, and what comes of it.
struct Start {
    what: &'static str,
    directory: fn(&World) -> PathBuf,
    flag: Option<fn(&World) -> PathBuf>,
    variable: Option<fn(&World) -> PathBuf>,
    outcome: Outcome,
}

enum Outcome {
    /// The loop is created below this folder, which this named.
    Created(fn(&World) -> PathBuf, &'static str),
    /// Nothing is, and the refusal of `loop_init` has these words.
    Refused(&'static [&'static str]),
}

const BARE: &[&str] = &["no loop was created", "--project-root", "LOOP_STATE_PROJECT_ROOT"];

#[test]
fn the_project_is_flag_variable_or_directory_and_never_a_bare_root() {
    use Outcome::{Created, Refused};
    let project: fn(&World) -> PathBuf = World::project;
    let home: fn(&World) -> PathBuf = World::home;
    let top: fn(&World) -> PathBuf = |_| "/".into();
    let other: fn(&World) -> PathBuf = |w| w.top().join("other");
    let link: fn(&World) -> PathBuf = |w| w.top().join("link");
    let below: fn(&World) -> PathBuf = |w| w.project().join("a/b");
    let missing: fn(&World) -> PathBuf = |w| w.top().join("missing");
    let file: fn(&World) -> PathBuf = |w| w.top().join("file");
    let empty: fn(&World) -> PathBuf = |_| PathBuf::new();
    let row = |what, directory, flag, variable, outcome| Start { what, directory, flag, variable, outcome };
    let starts = [
        row("the project", project, None, None, Created(project, "working directory")),
        row("a link to it", link, None, None, Created(project, "working directory")),
        row("below its top", below, None, None, Created(below, "working directory")),
        row("/", top, None, None, Refused(BARE)),
        row("the home", home, None, None, Refused(BARE)),
        row("the home, named", home, Some(home), None, Created(home, "--project-root")),
        row("/ with a flag", top, Some(project), None, Created(project, "--project-root")),
        row("/ with a variable", top, None, Some(project), Created(project, "LOOP_STATE_PROJECT_ROOT")),
        row("flag before variable", top, Some(project), Some(other), Created(project, "--project-root")),
        row(
            "variable before directory",
            other,
            None,
            Some(link),
            Created(project, "LOOP_STATE_PROJECT_ROOT"),
        ),
        row("a relative flag", project, Some(|_| "../other".into()), None, Created(other, "--project-root")),
        row("an empty variable", project, None, Some(empty), Created(project, "working directory")),
        row("an empty flag", project, Some(empty), None, Refused(&["--project-root is empty"])),
        row("a flag to nothing", project, Some(missing), None, Refused(&["missing", "does not exist"])),
        row("a variable to nothing", project, None, Some(missing), Refused(&["missing", "does not exist"])),
        row("a flag to a file", project, Some(file), None, Refused(&["not a folder"])),
        row(
            "a flag that no shell expanded",
            project,
            Some(|_| "~/project".into()),
            None,
            Refused(&["~/project", "did not expand it"]),
        ),
        // As some clients hand on a variable that they do not know.
        row(
            "a variable that nothing expanded",
            project,
            None,
            Some(|_| "${workspaceFolder}".into()),
            Refused(&["${workspaceFolder}", "did not expand it"]),
        ),
    ];
    for Start { what, directory, flag, variable, outcome } in starts {
        let world = World::new();
        fs::create_dir_all(below(&world)).expect("a folder");
        fs::create_dir(other(&world)).expect("a folder");
        fs::write(file(&world), "mine").expect("a file");
        symlink("project", link(&world)).expect("a link");
        let mut command = world.command();
        command.current_dir(directory(&world));
        if let Some(flag) = flag {
            command.arg("--project-root").arg(flag(&world));
        }
        if let Some(variable) = variable {
            command.env("LOOP_STATE_PROJECT_ROOT", variable(&world));
        }
        let before = outside_state(&world);
        let mut client = hello(&mut command, what);
        match outcome {
            Refused(words) => {
                assert_says(&client.refused("loop_init", json!({ "goal": "x" })), words, what);
                look::assert_same(&before, &outside_state(&world), what);
                assert!(!Path::new("/.projects").exists(), "{what}");
            }
            Created(root, named_by) => {
                let reply = client.ok("loop_init", json!({ "goal": "x" }));
                assert_eq!(reply["project"]["root_from"], named_by, "{what}");
                let root = root(&world).canonicalize().expect("a root");
                assert_eq!(
                    client.ok("loop_get", json!({}))["loop"]["project_root"],
                    root.to_str().expect("UTF-8")
                );
                let top = world.top().canonicalize().expect("a top");
                let inside = format!("{}/.projects/", root.strip_prefix(&top).expect("below").display());
                let new: Vec<_> =
                    outside_state(&world).into_keys().filter(|k| !before.contains_key(k)).collect();
                assert!(!new.is_empty() && new.iter().all(|k| k.starts_with(&inside)), "{what}: {new:?}");
            }
        }
    }
}

#[test]
fn a_working_directory_that_was_removed_is_told() {
    let world = World::new();
    let gone = world.top().join("gone");
    fs::create_dir(&gone).expect("a folder");
    let plain = world.command();
    let script = |arguments: &str| {
        let mut command = Command::new("sh");
        let line = format!("rmdir ../gone; exec \"$0\" {arguments}");
        command.arg("-c").arg(line).arg(binary()).arg(world.project()).env_clear();
        for (key, value) in plain.get_envs() {
            command.env(key, value.unwrap_or_default());
        }
        command.current_dir(&gone).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        command
    };
    let mut client = hello(&mut script(""), "removed");
    for (tool, arguments) in [("loop_init", json!({ "goal": "x" })), ("loop_list", json!({}))] {
        let refusal = client.refused(tool, arguments);
        assert_says(&refusal, &["working directory", "removed", "--project-root"], tool);
    }
    assert!(!gone.exists() && !world.state().exists(), "something was made");
    fs::create_dir(&gone).expect("a folder");
    let mut client = hello(&mut script("--project-root \"$1\""), "removed, with a flag");
    client.ok("loop_init", json!({ "goal": "x" }));
    assert!(world.folder(SLUG).join("loop.md").is_file());
}

#[test]
fn a_project_that_goes_away_is_told_and_its_loops_stay() {
    let world = World::new().quiet();
    let mut client = world.client_with_loop();
    let moved = world.top().join("moved");
    fs::rename(world.project(), &moved).expect("moved away");
    let reply: Value = client.ok("event_append", json!({ "event": "kept" }));
    assert!(reply["mirror"].as_str().is_some_and(|m| m.contains("cannot open the project root")), "{reply}");
    assert!(!world.project().exists(), "a project was made");
    fs::rename(&moved, world.project()).expect("moved back");
    let reply = client.ok("event_append", json!({ "event": "mended" }));
    assert!(reply.get("mirror").is_none(), "{reply}");
    loop_state_tests::views::assert_in_step(&world, &mut client, SLUG);
}
