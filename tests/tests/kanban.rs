//! Another logic in the unchanged host: its tools, its rules, its files.

use std::collections::BTreeSet;
use std::fs;

use loop_state_test_components::KANBAN;
use loop_state_tests::{Client, World};
use serde_json::{Value, json};

const BOARD: &str = "site";

/// A world whose servers take the kanban logic.
fn world() -> World {
    let mut world = World::with_clock(1_700_000_000_000);
    world.take_logic(KANBAN);
    world
}

fn add(client: &mut Client, title: &str) -> String {
    let added = client.ok("card_add", json!({ "board": BOARD, "title": title }));
    assert_eq!(added["column"], "todo");
    added["card"].as_str().expect("a card").to_owned()
}

fn forward(client: &mut Client, card: &str) -> Result<Value, String> {
    client.call("card_move", json!({ "board": BOARD, "card": card, "way": "forward" }))
}

/// What a command prints, where it has to pass.
#[track_caller]
fn said(world: &World, arguments: &[&str]) -> String {
    let output = world.run(arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The cards of each column.
fn columns(board: &Value) -> Vec<Vec<&str>> {
    let cards = |column: &'_ Value| column["cards"].as_array().expect("cards").clone();
    let columns = board["columns"].as_array().expect("columns");
    columns
        .iter()
        .zip(columns.iter().map(cards))
        .map(|(column, cards)| {
            let ids = (0..cards.len()).map(|n| column["cards"][n]["card"].as_str().expect("an id"));
            ids.collect()
        })
        .collect()
}

#[test]
fn its_tools_are_the_only_ones_and_it_says_who_it_is() {
    let world = world();
    let mut client = Client::spawn(&mut world.command());
    let hello = client.initialize();
    assert!(hello["instructions"].as_str().expect("instructions").contains("kanban boards"), "{hello}");
    let listed = client.request("tools/list", json!({}));
    let names: BTreeSet<_> =
        listed["tools"].as_array().expect("tools").iter().filter_map(|tool| tool["name"].as_str()).collect();
    let expected = ["board_init", "board_show", "board_list", "board_close", "card_add", "card_move"];
    assert_eq!(names, BTreeSet::from(expected));
    let unknown = client.request("tools/call", json!({ "name": "loop_init", "arguments": {} }));
    assert!(unknown["error"]["message"].as_str().expect("an error").contains("loop_init"), "{unknown}");
}

#[test]
fn cards_move_within_the_limits_and_stay_after_a_restart() {
    let world = world();
    let mut client = world.client();
    let opened = client.ok("board_init", json!({ "board": BOARD, "title": "The *site*", "doingLimit": 1 }));
    assert_eq!((&opened["created"], &opened["status"]), (&json!(true), &json!("open")));
    assert_eq!(client.ok("board_init", json!({ "board": BOARD }))["created"], false);
    let (first, second) = (add(&mut client, "draw it"), add(&mut client, "build it"));
    assert_eq!(forward(&mut client, &first).expect("room")["column"], "doing");

    // Each refusal, and what it has to name.
    let refused = [
        (
            "card_move",
            json!({ "board": BOARD, "card": second, "way": "forward" }),
            "doing holds 1 of 1 cards (C1)",
        ),
        ("card_move", json!({ "board": BOARD, "card": second, "way": "back" }), "first column"),
        ("card_move", json!({ "board": BOARD, "card": "C9", "way": "forward" }), "has no card \"C9\""),
        ("card_move", json!({ "board": BOARD, "card": first, "way": "up" }), "`forward` or `back`"),
        ("card_add", json!({ "board": "other", "title": "x" }), "there is no board other"),
        ("card_add", json!({ "board": BOARD, "title": " " }), "`title` is blank"),
        ("card_add", json!({ "board": BOARD, "name": "x" }), "there is no argument `name`"),
        ("board_init", json!({ "board": "../up" }), "cannot be \"../up\""),
        ("board_init", json!({ "board": "b", "doingLimit": 0 }), "from 1 to 99"),
        ("board_close", json!({ "board": BOARD }), "C1 in doing, C2 in todo"),
    ];
    for (tool, arguments, says) in refused {
        let why = client.refused(tool, arguments);
        assert!(why.contains(says) && why.contains("nothing was changed"), "{tool}: {why}");
    }

    client.kill();
    let mut client = world.client();
    let board = client.ok("board_show", json!({ "board": BOARD }));
    assert_eq!(columns(&board), [vec!["C2"], vec!["C1"], vec![], vec![]]);
    for card in [&first, &second] {
        while forward(&mut client, card).is_ok() {}
    }
    let done = client.refused("card_move", json!({ "board": BOARD, "card": first, "way": "forward" }));
    assert!(done.contains("the last column"), "{done}");
    let back =
        client.ok("card_move", json!({ "board": BOARD, "card": second, "way": "back", "note": "typo" }));
    assert_eq!((&back["from"], &back["column"]), (&json!("done"), &json!("review")));
    forward(&mut client, &second).expect("room");
    assert_eq!(client.ok("board_close", json!({ "board": BOARD }))["status"], "closed");
    assert!(client.refused("card_add", json!({ "board": BOARD, "title": "late" })).contains("is closed"));
    assert_eq!(client.ok("board_list", json!({})), json!({ "boards": [], "total": 0 }));
}

#[test]
fn its_views_are_in_the_folder_and_grow_with_the_board() {
    let world = world();
    let mut client = world.client();
    client.ok("board_init", json!({ "board": BOARD, "title": "The *site*" }));
    add(&mut client, "draw # it");
    forward(&mut client, "C1").expect("room");
    let folder = world.folder(BOARD);
    let mut names: Vec<_> = fs::read_dir(&folder)
        .expect("the folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .filter(|name| !name.starts_with('.'))
        .collect();
    names.sort();
    assert_eq!(names, ["board.md", "log.jsonl"]);
    let page = fs::read_to_string(folder.join("board.md")).expect("board.md");
    let expected = "# The \\*site\\*\n\n## todo (0)\n\nNo cards.\n\n## doing (1 of 2)\n\n- C1: draw \\# it\n\n\
                    ## review (0 of 2)\n\nNo cards.\n\n## done (0)\n\nNo cards.\n";
    assert_eq!(page, expected);
    let log = || fs::read_to_string(folder.join("log.jsonl")).expect("log.jsonl");
    let before = log();
    let events: Vec<Value> = before.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let told: Vec<_> =
        events.iter().map(|e| (e["seq"].as_u64(), e["event"].as_str(), e["to"].as_str())).collect();
    let expected = [
        (Some(1), Some("board-opened"), None),
        (Some(2), Some("card-added"), Some("todo")),
        (Some(3), Some("card-moved"), Some("doing")),
    ];
    assert_eq!(told, expected);

    // A damaged log is made anew from the timeline, by the logic's own lines.
    fs::write(folder.join("log.jsonl"), "{\"seq\":1,\"cut").expect("a damaged log");
    forward(&mut client, "C1").expect("room");
    let after = log();
    assert!(after.starts_with(&before) && after.lines().count() == 4, "{after}");
}

#[test]
fn the_commands_for_people_show_boards() {
    let world = world();
    let mut client = world.client();
    client.ok("board_init", json!({ "board": BOARD, "title": "The site" }));
    add(&mut client, "draw it");
    assert!(client.end().success());

    let listed: Value = serde_json::from_str(&said(&world, &["list", "--json"])).expect("JSON");
    let row = &listed["loops"][0];
    assert_eq!(
        (&row["slug"], &row["status"], &row["tasks"]["by_status"]),
        (&json!(BOARD), &json!("open"), &json!({ "todo": 1 }))
    );
    assert!(said(&world, &["list"]).contains("The site"));
    let shown = said(&world, &["show", BOARD]);
    for part in ["kanban", "draw it", "C1", "doing"] {
        assert!(shown.contains(part), "{part} is not in: {shown}");
    }
    let absent = world.run(&["show", "nothing"]);
    assert_eq!(absent.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&absent.stderr).contains("nothing"), "{absent:?}");
    let tools = said(&world, &["tools"]);
    assert!(tools.contains("card_move") && !tools.contains("loop_init"), "{tools}");

    // What only the built-in logic can answer says so.
    let brief = world.run(&["brief"]);
    let why = String::from_utf8_lossy(&brief.stderr);
    assert!(!brief.status.success() && why.contains("kanban") && why.contains("loop_recover"), "{why}");
    assert!(said(&world, &["doctor"]).contains("kanban 1"));

    // A board goes out and comes in whole.
    let file = world.top().join("board.export");
    said(&world, &["export", BOARD, file.to_str().expect("a path")]);
    let elsewhere = self::world();
    said(&elsewhere, &["import", file.to_str().expect("a path")]);
    assert!(said(&elsewhere, &["list", "--all-projects"]).contains(BOARD));
}
