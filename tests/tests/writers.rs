//! Two logics on one database: each changes its own loops, reads the other's, and is
//! told whose they are.

use std::fs;

use loop_state_test_components::KANBAN;
use loop_state_tests::{SLUG, World};
use serde_json::{Value, json};

const BOARD: &str = "site";

/// A world with a loop and a board in one database, and the arguments that name the
/// kanban logic; its servers run the built-in one.
fn shared() -> (World, Vec<std::ffi::OsString>) {
    let mut world = World::with_clock(1_700_000_000_000);
    // What is refused and told is expected here.
    world.env.push(("LOOP_STATE_LOG".into(), "off".into()));
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "one" }] }));
    assert!(client.end().success());
    world.take_logic(KANBAN);
    let mut client = world.client();
    client.ok("board_init", json!({ "board": BOARD }));
    client.ok("card_add", json!({ "board": BOARD, "title": "draw it" }));
    assert!(client.end().success());
    let kanban = std::mem::take(&mut world.args);
    (world, kanban)
}

/// All files of a folder with what is in them.
fn files(world: &World, slug: &str) -> Vec<(String, Vec<u8>)> {
    let entries = fs::read_dir(world.folder(slug)).expect("the folder");
    let mut files: Vec<_> = entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_file())
        .map(|path| (path.display().to_string(), fs::read(&path).expect("a file")))
        .collect();
    files.sort();
    files
}

#[track_caller]
fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in: {text}");
    }
}

#[test]
fn the_built_in_logic_reads_a_board_and_does_not_change_it() {
    let (world, _) = shared();
    let before = files(&world, BOARD);
    let mut client = world.client();
    let read = client.ok("loop_get", json!({ "loopSlug": BOARD }));
    assert_eq!((&read["loop"]["mode"], &read["tasks"][0]["status"]), (&json!("kanban"), &json!("todo")));
    let changes = [
        ("event_append", json!({ "event": "note", "note": "x" })),
        ("memory_append", json!({ "agent": "a", "note": "x" })),
        ("tasks_append", json!({ "tasks": [{ "title": "x" }], "kind": "qa-fix" })),
        ("loop_setPhase", json!({ "phase": "build" })),
        ("loop_writeFile", json!({ "path": "plan.md", "content": "x" })),
        ("loop_render", json!({})),
    ];
    for (tool, mut arguments) in changes {
        arguments["loopSlug"] = BOARD.into();
        let why = client.refused(tool, arguments);
        says(
            &why,
            &["loop site", "written by the logic kanban 1", "loop-state", "nothing was changed", "--logic"],
        );
    }
    assert_eq!(files(&world, BOARD), before);
    // Its own loop goes on as ever, and so does a new one.
    client.ok("event_append", json!({ "event": "note", "note": "x" }));
    client.ok("loop_init", json!({ "goal": "another", "loopSlug": "another" }));
}

#[test]
fn the_other_logic_reads_a_loop_and_does_not_change_it() {
    let (mut world, kanban) = shared();
    let before = files(&world, SLUG);
    world.args = kanban;
    let mut client = world.client();
    let board = client.ok("board_show", json!({ "board": SLUG }));
    assert_eq!(board["in_no_column"], json!(["T1"]));
    assert_eq!(client.ok("board_init", json!({ "board": SLUG }))["created"], false);
    let why = client.refused("card_add", json!({ "board": SLUG, "title": "x" }));
    let version = env!("CARGO_PKG_VERSION");
    says(
        &why,
        &["loop demo", &format!("loop-state {version}"), "kanban 1", "nothing was changed", "another slug"],
    );
    assert_eq!(files(&world, SLUG), before);
    client.ok("card_add", json!({ "board": BOARD, "title": "build it" }));
    client.ok("board_init", json!({ "board": "more" }));
}

#[test]
fn doctor_and_the_log_say_whose_loops_there_are() {
    let (mut world, kanban) = shared();
    world.env.retain(|(name, _)| name != "LOOP_STATE_LOG");
    for (arguments, sentence) in [
        (Vec::new(), "1 loop of the logic kanban, which loop-state"),
        (kanban, "1 loop of the logic loop-state, which kanban 1"),
    ] {
        world.args = arguments;
        let doctor = world.run(&["doctor", "--json"]);
        let report: Value = serde_json::from_slice(&doctor.stdout).expect("JSON");
        assert_eq!(report["ok"], true, "{report}");
        says(&report["findings"].to_string(), &[sentence, "can read and not change"]);
        // The command opens the database as a server's first call does.
        let listed = world.run(&["list"]);
        assert!(listed.status.success(), "{listed:?}");
        says(&String::from_utf8_lossy(&listed.stderr), &["WARN", "loops.db", sentence]);
        says(&String::from_utf8_lossy(&listed.stdout), &[SLUG, BOARD]);
    }
}

/// A database of one logic alone says nothing.
#[test]
fn nothing_is_said_where_there_is_nothing_to_say() {
    let world = World::new();
    drop(world.client_with_loop());
    let listed = world.run(&["list"]);
    assert!(listed.status.success() && listed.stderr.is_empty(), "{listed:?}");
}
