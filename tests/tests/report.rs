//! The command `report`: what it writes, where, and what it refuses.

use loop_state_tests::{SLUG, World};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::{Output, Stdio};

fn run(world: &World, arguments: &[&str]) -> Output {
    let mut command = world.command();
    command.args(arguments).stdin(Stdio::null()).stderr(Stdio::piped()).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[track_caller]
fn refused(world: &World, arguments: &[&str]) -> String {
    let output = run(world, arguments);
    assert_eq!(output.status.code(), Some(1), "{arguments:?}");
    text(&output.stderr)
}

#[test]
fn a_page_goes_to_a_file_or_down_a_pipe() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let title = "</script><script>alert(1)</script>";
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": title }, { "taskid": "T2", "title": "b", "depends_on": ["T1"] }] }));
    let file = world.project().join("loop.html");

    let wrote = run(&world, &["report", SLUG, "--out", "loop.html"]);
    assert!(
        wrote.status.success() && text(&wrote.stdout).contains("Wrote the report of loop demo to loop.html")
    );
    let page = std::fs::read_to_string(&file).expect("a page");
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>"));
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)") && !page.contains("<script"));
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o400, 0o400);

    // Again: the page is replaced as a whole, and a link stays a link.
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }));
    let link = world.project().join("link.html");
    symlink("loop.html", &link).expect("a link");
    assert!(run(&world, &["report", SLUG, "--out", "link.html"]).status.success());
    assert!(std::fs::symlink_metadata(&link).expect("a link").is_symlink());
    assert!(std::fs::read_to_string(&file).expect("a page").contains("in-progress"));
    let left = std::fs::read_dir(world.project()).expect("a folder");
    assert!(left.flatten().all(|entry| !entry.file_name().to_string_lossy().starts_with(".report")));

    for arguments in [&["report", SLUG][..], &["report", SLUG, "--out", "-"]] {
        let piped = run(&world, arguments);
        assert!(piped.status.success() && text(&piped.stdout).starts_with("<!DOCTYPE html>"));
    }
    let answer: Value =
        serde_json::from_slice(&run(&world, &["report", SLUG, "--out", "loop.html", "--json"]).stdout)
            .expect("JSON");
    assert_eq!((&answer["file"], &answer["loop"]), (&json!("loop.html"), &json!(SLUG)));
    assert_eq!(answer["bytes"], std::fs::metadata(&file).expect("a file").len());
}

#[test]
fn a_project_has_a_page_of_its_loops() {
    let world = World::new();
    let empty = text(&run(&world, &["report"]).stdout);
    assert!(empty.contains("No loop is at work."), "{empty}");
    let mut client = world.client_with_loop();
    client.ok("loop_init", json!({ "loopSlug": "second", "goal": "another" }));
    client.ok("loop_finish", json!({ "loopSlug": "second", "status": "aborted", "reason": "enough" }));
    let page = text(&run(&world, &["report"]).stdout);
    for part in ["Loops at work", "demo", "Ended", "second", "aborted"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn what_cannot_be_drawn_or_written_is_said() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let told = client.refused("loop_get", json!({ "loopSlug": "demp" }));
    assert_eq!(refused(&world, &["report", "demp"]).trim_end(), told);
    std::fs::create_dir(world.project().join("folder")).expect("a folder");
    assert!(refused(&world, &["report", SLUG, "--out", "folder"]).contains("it is a folder"));
    let missing = refused(&world, &["report", SLUG, "--out", "no/where.html"]);
    assert!(missing.contains("no/where.html") && missing.contains("nothing was changed"), "{missing}");
    let before = std::fs::read_dir(world.project()).expect("a folder").count();
    refused(&world, &["report", SLUG, "--out", "folder"]);
    assert_eq!(std::fs::read_dir(world.project()).expect("a folder").count(), before);
}

#[test]
fn reading_disturbs_no_server() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let tasks: Vec<_> = (0..50).map(|n| json!({ "taskid": format!("T{n}"), "title": "a task" })).collect();
    client.ok("tasks_derive", json!({ "tasks": tasks }));
    let database = rusqlite::Connection::open(world.database()).expect("the database");
    // A writer in the middle of its transaction keeps no report waiting, nor the other way.
    database
        .execute_batch("BEGIN IMMEDIATE; UPDATE loop SET title = 'not stored yet'")
        .expect("a transaction");
    let page = text(&run(&world, &["report", SLUG]).stdout);
    assert!(page.contains("50") && !page.contains("not stored yet"));
    database.execute_batch("ROLLBACK").expect("an end");
    client.ok("event_append", json!({ "event": "note", "note": "still here" }));
}
