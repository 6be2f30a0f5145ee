//! Damage done by hand: to the loop's folder, to the database, by a process that
//! holds it.

use loop_state_tests::look;
use loop_state_tests::views::{assert_in_step, events};
use loop_state_tests::{Client, SLUG, World};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::Instant;

/// A loop with a task, a lesson, and an event that ends in characters of several
/// bytes.
fn grown(world: &World) -> Client {
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "Mend" }] }));
    client.ok("memory_append", json!({ "agent": "qa-loop", "note": "Keep a copy." }));
    client.ok("event_append", json!({ "event": "probe", "note": "ends in 🦀🦀🦀" }));
    client
}

fn change(path: &Path, with: impl FnOnce(Vec<u8>) -> Vec<u8>) {
    let bytes = fs::read(path).expect("a view");
    fs::write(path, with(bytes)).expect("a damaged view");
}

fn cut(mut bytes: Vec<u8>, at_end: usize) -> Vec<u8> {
    bytes.truncate(bytes.len() - at_end);
    bytes
}

/// What happens to the folder of the loop, its path given.
type Damage = fn(&Path);

#[test]
fn the_next_change_of_a_loop_mends_its_folder() {
    let damages: &[(&str, Damage)] = &[
        ("the log cut inside a character", |f| {
            change(&f.join("events.jsonl"), |b| {
                // The line's end, the object's, the quote, and one byte of the last 🦀.
                let torn = cut(b, 4);
                assert!(std::str::from_utf8(&torn).is_err(), "not inside a character");
                torn
            });
        }),
        ("the log cut by seven bytes", |f| change(&f.join("events.jsonl"), |b| cut(b, 7))),
        ("half a line after the log", |f| {
            change(&f.join("events.jsonl"), |b| [b, b"{\"seq\":5,\"at\":\"20".to_vec()].concat());
        }),
        ("a whole line after the log", |f| {
            change(&f.join("events.jsonl"), |b| [b, b"{\"seq\":5}\n".to_vec()].concat());
        }),
        ("a line lost within the log", |f| {
            change(&f.join("events.jsonl"), |b| {
                let first = b.iter().position(|b| *b == b'\n').expect("a line");
                b[first + 1..].to_vec()
            });
        }),
        ("an empty log", |f| fs::write(f.join("events.jsonl"), "").expect("a log")),
        ("an empty page", |f| fs::write(f.join("loop.md"), "").expect("a page")),
        ("a page of an earlier state", |f| {
            change(&f.join("loop.md"), |b| {
                String::from_utf8(b).expect("UTF-8").replace("pending", "complete").into_bytes()
            });
        }),
        ("no lessons", |f| fs::remove_file(f.join("memory.md")).expect("a page")),
        ("cut lessons", |f| change(&f.join("memory.md"), |b| cut(b, 3))),
        ("a temporary file left behind", |f| fs::write(f.join(".tmp-view"), "half").expect("a file")),
        ("no folder", |f| fs::remove_dir_all(f).expect("a folder")),
        ("no folder of loops", |f| {
            fs::remove_dir_all(f.ancestors().nth(2).expect("the folder of loops")).expect("a folder");
        }),
        ("a page that is a link", |f| {
            fs::remove_file(f.join("loop.md")).expect("a page");
            symlink("../../../../outside/new", f.join("loop.md")).expect("a link");
        }),
        ("a log that is a link", |f| {
            fs::remove_file(f.join("events.jsonl")).expect("a log");
            symlink("../../../../outside/secret", f.join("events.jsonl")).expect("a link");
        }),
    ];
    let world = World::new();
    let outside = world.top().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("secret"), "keep").expect("a file");
    let untouched = look::files(&outside);
    let mut client = grown(&world);
    for (what, damage) in damages {
        damage(&world.folder(SLUG));
        let stored = look::rows(&world.database());
        let reply = client.ok("loop_get", json!({}));
        assert!(look::difference(&stored, &look::rows(&world.database())).is_empty(), "{what}: {reply}");
        let note = format!("{what} 🦀🦀🦀");
        let reply = client.ok("event_append", json!({ "event": "mended", "note": note }));
        assert!(reply.get("mirror").is_none(), "{what}: {reply}");
        assert_in_step(&world, &mut client, SLUG);
        assert_eq!(
            look::files(&world.folder(SLUG)).keys().collect::<Vec<_>>(),
            ["events.jsonl", "loop.md", "memory.md"],
            "{what}"
        );
        look::assert_same(&untouched, &look::files(&outside), what);
    }
    // The same, with loop_render instead of a change.
    let whole = look::files(&world.folder(SLUG));
    for (what, damage) in damages {
        damage(&world.folder(SLUG));
        let reply = client.ok("loop_render", json!({}));
        assert!(reply.get("mirror").is_none(), "{what}: {reply}");
        look::assert_same(&whole, &look::files(&world.folder(SLUG)), what);
    }
    look::assert_same(&untouched, &look::files(&outside), "outside");
}

#[test]
fn files_of_others_in_the_folder_stay() {
    let world = World::new();
    let mut client = grown(&world);
    fs::write(world.folder(SLUG).join("loop.md.tmp-123"), "of another program").expect("a file");
    client.ok("event_append", json!({ "event": "probe" }));
    client.ok("loop_render", json!({}));
    assert_eq!(world.view("loop.md.tmp-123"), "of another program");
}

#[test]
fn what_stands_in_the_way_is_told_and_nothing_is_written_elsewhere() {
    /// Puts something in the way, given the loop's folder and one outside.
    type Block = fn(&Path, &Path);
    fn move_away(path: &Path) {
        fs::rename(path, path.with_extension("moved")).expect("moved away");
    }
    fn up(folder: &Path, levels: usize) -> &Path {
        folder.ancestors().nth(levels).expect("a folder above")
    }
    let blocks: &[(&str, usize, Block)] = &[
        (".projects is a file", 2, |at, _| fs::write(at, "mine").expect("a file")),
        (".projects leads outside", 2, |at, outside| symlink(outside, at).expect("a link")),
        (".projects leads nowhere", 2, |at, outside| symlink(outside.join("new"), at).expect("a link")),
        ("loops leads outside", 1, |at, outside| symlink(outside, at).expect("a link")),
        ("the loop's folder leads outside", 0, |at, outside| symlink(outside, at).expect("a link")),
        ("the loop's folder is a file", 0, |at, _| fs::write(at, "mine").expect("a file")),
    ];
    let world = World::new().quiet();
    let outside = world.top().join("outside");
    fs::create_dir(&outside).expect("a folder");
    fs::write(outside.join("secret"), "keep").expect("a file");
    let untouched = look::files(&outside);
    let mut client = grown(&world);
    let folder = world.folder(SLUG);
    for (what, levels, block) in blocks {
        let place = up(&folder, *levels);
        move_away(place);
        block(place, &outside);
        let project = look::files(&world.project());
        for (tool, arguments) in [
            ("event_append", json!({ "event": "kept", "note": *what })),
            ("loop_setAwaitingUser", json!({ "awaiting": *what })),
            ("loop_render", json!({})),
        ] {
            let reply = client.ok(tool, arguments);
            let told = reply["mirror"].as_str().unwrap_or_default();
            assert!(told.starts_with("failed: ") && told.contains("loop_render"), "{what}: {reply}");
            assert!(told.contains(place.to_str().expect("UTF-8")), "{what}: {reply}");
        }
        let kept: Vec<_> = events(&world, SLUG).into_iter().map(|e| e.what).collect();
        assert!(kept.contains(&format!("kept {what}")), "{what}: the row is gone");
        assert!(kept.contains(&format!("awaiting-user {what}")), "{what}: the row is gone");
        look::assert_same(&untouched, &look::files(&outside), what);
        look::assert_same(&project, &look::files(&world.project()), what);
        fs::remove_file(place).expect("out of the way");
        // Without what was moved away, too, in every other case.
        if levels % 2 == 0 {
            fs::rename(place.with_extension("moved"), place).expect("moved back");
        } else {
            fs::remove_dir_all(place.with_extension("moved")).expect("removed");
        }
        let reply = client.ok("event_append", json!({ "event": "mended" }));
        assert!(reply.get("mirror").is_none(), "{what}: {reply}");
        assert_in_step(&world, &mut client, SLUG);
    }
}

#[test]
fn old_views_that_come_back_are_not_believed() {
    let world = World::new();
    let mut client = grown(&world);
    let old = look::files(&world.folder(SLUG));
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "skipped" }));
    client.ok("memory_append", json!({ "agent": "qa-loop", "note": "newer" }));
    let stored = client.ok("loop_get", json!({}));
    for (name, bytes) in &old {
        fs::write(world.folder(SLUG).join(name), bytes).expect("a view");
    }
    assert_eq!(client.ok("loop_get", json!({})), stored);
    assert!(client.end().success());
    let mut client = world.client();
    assert_eq!(client.ok("loop_get", json!({})), stored);
    client.ok("event_append", json!({ "event": "probe" }));
    assert_in_step(&world, &mut client, SLUG);
    assert!(world.view("loop.md").contains("T1: Mend — **skipped**"));
}

#[test]
fn a_database_that_is_held_too_long_is_told_and_the_repeat_works() {
    let world = World::new();
    let mut client = grown(&world);
    let folder = look::files(&world.folder(SLUG));
    let holder = Connection::open(world.database()).expect("the database");
    holder.execute_batch("BEGIN EXCLUSIVE").expect("the lock");
    let rows = look::rows(&world.database());
    let begun = Instant::now();
    let call = ("task_setStatus", json!({ "taskid": "T1", "status": "issue-open" }));
    let refusal = client.refused(call.0, call.1.clone());
    let waited = begun.elapsed().as_secs_f32();
    assert!((4.0..15.0).contains(&waited), "after {waited} s");
    assert!(refusal.contains("nothing was changed") && refusal.contains("call again"), "{refusal}");
    assert!(client.ok("loop_get", json!({}))["loop"].is_object(), "reads go on");
    look::assert_same(&rows, &look::rows(&world.database()), "rows");
    look::assert_same(&folder, &look::files(&world.folder(SLUG)), "views");
    holder.execute_batch("ROLLBACK").expect("the end of the lock");
    assert_eq!(client.ok(call.0, call.1)["to"], "issue-open");
    assert_in_step(&world, &mut client, SLUG);
}

/// What becomes of a sound database, its path given.
type Spoil = fn(&Path);

fn sql(database: &Path, batch: &str) {
    let db = Connection::open(database).expect("the database");
    db.execute_batch(batch).expect("the change");
}

fn fresh(database: &Path, batch: &str) {
    fs::remove_file(database).expect("the old one");
    sql(database, batch);
}

#[test]
fn a_database_that_is_not_ours_is_refused_and_left_alone() {
    let cases: &[(&str, Spoil, &[&str])] = &[
        (
            "a newer one",
            |db| sql(db, "PRAGMA user_version = 99"),
            &["schema version 99", "newer", "left as it is"],
        ),
        (
            "a newer one with what we do not know",
            |db| {
                sql(
                    db,
                    "ALTER TABLE task ADD COLUMN owner TEXT NOT NULL DEFAULT ''; PRAGMA user_version = 98",
                )
            },
            &["schema version 98", "newer", "left as it is"],
        ),
        (
            "a version below all",
            |db| sql(db, "PRAGMA user_version = -1"),
            &["schema version -1", "left as it is"],
        ),
        ("no version", |db| sql(db, "PRAGMA user_version = 0"), &["schema version 0", "left as it is"]),
        (
            "another program's",
            |db| fresh(db, "PRAGMA application_id = 77; CREATE TABLE bill (n); INSERT INTO bill VALUES (1)"),
            &["another program", "left as it is"],
        ),
        (
            "one that no one owns",
            |db| fresh(db, "CREATE TABLE loop (id)"),
            &["another program", "left as it is"],
        ),
        ("text", |db| fs::write(db, "loops: none\n").expect("a file"), &["not a database", "left as it is"]),
        (
            "noise",
            |db| {
                fs::write(db, (0..9_000_u32).map(|n| (n * 7 % 251) as u8).collect::<Vec<_>>())
                    .expect("a file")
            },
            &["not a database", "left as it is"],
        ),
        ("one byte", |db| fs::write(db, "x").expect("a file"), &["not a database", "left as it is"]),
        ("half of the first page", |db| change(db, |b| b[..2_000].to_vec()), &["damaged"]),
        (
            "a broken page",
            |db| {
                change(db, |mut b| {
                    let end = b.len();
                    b[4_096..end].fill(0xa5);
                    b
                });
            },
            &["damaged"],
        ),
        (
            "a folder",
            |db| {
                fs::remove_file(db).expect("the old one");
                fs::create_dir(db).expect("a folder");
            },
            &["is a folder, not a database file"],
        ),
    ];
    for (what, spoil, words) in cases {
        let world = World::new();
        assert!(grown(&world).end().success());
        let sound = fs::read(world.database()).expect("a database in one file");
        assert_eq!(look::files(&world.state()).len(), 1, "{what}: no log is left by a clean end");
        spoil(&world.database());
        let spoiled = look::files(&world.state());
        let views = look::files(&world.project());

        let mut client = Client::spawn(&mut world.command());
        assert!(client.initialize()["serverInfo"].is_object(), "{what}");
        assert!(client.request("tools/list", json!({}))["tools"].is_array(), "{what}");
        for (tool, arguments) in [
            ("loop_list", json!({})),
            ("loop_get", json!({})),
            ("loop_init", json!({ "goal": "again" })),
            ("task_setStatus", json!({ "taskid": "T1", "status": "skipped" })),
        ] {
            let refusal = client.refused(tool, arguments);
            let named = refusal.contains(world.database().to_str().expect("UTF-8"));
            let said = words.iter().all(|word| refusal.contains(word));
            assert!(named && said, "{what}: {tool}: {refusal}");
        }
        assert_eq!(client.request("ping", json!({})), json!({}), "{what}");
        look::assert_same(&spoiled, &look::files(&world.state()), what);
        look::assert_same(&views, &look::files(&world.project()), what);

        // Put right under the running server.
        if world.database().is_dir() {
            fs::remove_dir(world.database()).expect("the folder");
        }
        let copy = world.top().join("copy");
        fs::write(&copy, &sound).expect("a copy");
        fs::rename(&copy, world.database()).expect("the copy in place");
        assert_eq!(client.ok("loop_get", json!({}))["tasks"][0]["title"], "Mend", "{what}");
        client.ok("event_append", json!({ "event": "mended" }));
        assert_in_step(&world, &mut client, SLUG);
    }
}

#[test]
fn an_empty_file_is_a_new_database_and_a_log_without_its_database_is_none() {
    let world = World::new();
    fs::create_dir(world.state()).expect("a folder");
    fs::write(world.database(), "").expect("a file");
    let mut client = grown(&world);
    assert_in_step(&world, &mut client, SLUG);
    client.kill();
    // The log of a killed server is all that is left of the last calls.
    assert!(fs::metadata(world.state().join("loops.db-wal")).is_ok_and(|m| m.len() > 0));
    fs::rename(world.database(), world.top().join("copy")).expect("moved away");
    let left = look::files(&world.state());
    let mut client = world.client();
    let refusal = client.refused("loop_init", json!({ "goal": "anew" }));
    assert!(refusal.contains("loops.db-wal") && refusal.contains("left as it is"), "{refusal}");
    look::assert_same(&left, &look::files(&world.state()), "the log");
    fs::rename(world.top().join("copy"), world.database()).expect("moved back");
    assert_eq!(client.ok("loop_get", json!({}))["tasks"][0]["title"], "Mend");
}

#[test]
fn a_database_that_is_deleted_under_a_running_server_is_not_written_into_the_void() {
    let world = World::new();
    let mut client = grown(&world);
    fs::remove_dir_all(world.state()).expect("the state folder");
    let refusal = client.refused("event_append", json!({ "event": "lost?" }));
    assert!(refusal.contains("loop not found"), "{refusal}");
    let mut file =
        fs::OpenOptions::new().append(true).open(world.folder(SLUG).join("loop.md")).expect("a view");
    file.write_all(b"note of mine\n").expect("a note");
    let reply: Value = client.ok("loop_init", json!({ "goal": "anew" }));
    assert!(reply.get("reused").is_none(), "{reply}");
    assert_in_step(&world, &mut client, SLUG);
}
