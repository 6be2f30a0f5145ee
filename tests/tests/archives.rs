//! Documents, archives and what comes back out of them.

use loop_state_tests::look::{self, Content};
use loop_state_tests::{Client, SLUG, World};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

const VIEWS: [&str; 3] = ["loop.md", "memory.md", "events.jsonl"];

/// The files of a loop's folder beside its views.
fn own_files(folder: &Path) -> Content {
    look::files(folder).into_iter().filter(|(path, _)| !VIEWS.contains(&path.as_str())).collect()
}

/// Whether a column is a number that only this database knows a row by.
fn is_surrogate(table: &str, column: &str) -> bool {
    let own = match table {
        "loop_document" => "document_key".to_owned(),
        table => format!("{table}_key"),
    };
    column == "loop_key" || column == own
}

/// The rows that belong to loops, without what only this database knows them by.
fn rows(world: &World) -> BTreeMap<String, usize> {
    let db = look::open(&world.database());
    let mut found = BTreeMap::new();
    for table in [
        "loop",
        "loop_phase",
        "task",
        "event",
        "step",
        "step_total",
        "memory",
        "loop_document",
        "goal_state",
        "ledger",
        "episode",
        "scratchpad",
    ] {
        let columns = look::names(&db, &format!("SELECT name FROM pragma_table_info('{table}')"));
        let kept: Vec<_> = columns.iter().filter(|column| !is_surrogate(table, column)).collect();
        let list = kept.iter().map(|c| format!("quote(\"{c}\")")).collect::<Vec<_>>().join(" || ',' || ");
        for row in look::names(&db, &format!("SELECT {list} FROM {table}")) {
            *found.entry(format!("{table}: {row}")).or_insert(0) += 1;
        }
    }
    found
}

#[test]
fn documents_survive_a_clean() {
    let world = World::new();
    let mut client = world.client_with_loop();
    for path in ["plan.md", "tasks/T1.md", "scratch/notes", "a/b/c.md"] {
        client.ok("loop_writeFile", json!({ "path": path, "content": format!("text of {path}\n") }));
    }
    let before = own_files(&world.folder(SLUG));
    assert!(String::from_utf8_lossy(&before["tasks/T1.md"]).starts_with("---\ntype: task\n"));
    assert_eq!(before["scratch/notes"], b"text of scratch/notes\n");
    fs::remove_dir_all(world.project().join(".projects")).expect("removed");
    let read = client.ok("loop_readFile", json!({ "path": "plan.md" }));
    assert_eq!((&read["content"], &read["source"]), (&json!("text of plan.md\n"), &json!("database")));
    let recovered = client.ok("loop_recover", json!({}));
    assert!(recovered["warnings"].to_string().contains("loop_materialize"), "{recovered}");
    let done = client.ok("loop_materialize", json!({}));
    assert_eq!(done["written"].as_array().map(Vec::len), Some(4));
    look::assert_same(&before, &own_files(&world.folder(SLUG)), "brought back");
    // What someone wrote there stays, and a header alone is no difference.
    let plan = world.folder(SLUG).join("plan.md");
    fs::write(&plan, "mine").expect("a file");
    let task = world.folder(SLUG).join("tasks/T1.md");
    let other_version = fs::read_to_string(&task).expect("text").replace("mcp: ", "mcp: 0.0.");
    fs::write(&task, other_version).expect("a file");
    let done = client.ok("loop_materialize", json!({}));
    assert_eq!(done["kept"][0]["path"], "plan.md");
    assert_eq!(done["unchanged"].as_array().map(Vec::len), Some(3), "{done}");
    assert_eq!(fs::read_to_string(&plan).expect("text"), "mine");
    // The next write is the caller's word.
    client.ok("loop_writeFile", json!({ "path": "plan.md", "content": "next" }));
    assert!(fs::read_to_string(&plan).expect("text").ends_with("---\nnext"));
}

#[test]
fn a_document_never_leaves_its_folder() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let out = world.top().join("out");
    fs::create_dir(&out).expect("a folder");
    fs::write(out.join("secret"), "s").expect("a file");
    let folder = world.folder(SLUG);
    symlink(&out, folder.join("tasks")).expect("a link");
    symlink(out.join("secret"), folder.join("plan.md")).expect("a link");
    symlink(out.join("new"), folder.join("legal.md")).expect("a link");
    let before = look::files(&out);
    for path in ["tasks/T1.md", "plan.md", "legal.md"] {
        let reply = client.ok("loop_writeFile", json!({ "path": path, "content": "x" }));
        assert_eq!(reply["rev"], 1, "the row is safe whatever stands in the folder");
    }
    assert_eq!(client.ok("loop_readFile", json!({ "path": "tasks/T1.md" }))["content"], "x");
    look::assert_same(&before, &look::files(&out), "outside");
    let failed = client.ok("loop_writeFile", json!({ "path": "tasks/T2.md", "content": "x" }));
    assert!(failed["mirror"].as_str().is_some_and(|m| m.starts_with("failed: ")), "{failed}");
    // Without a document of the name the disk is looked at, and no link is followed.
    fs::remove_file(folder.join("tasks")).expect("the link");
    symlink(out.join("secret"), folder.join("security.md")).expect("a link");
    let refused = client.refused("loop_readFile", json!({ "path": "security.md" }));
    assert!(refused.starts_with("no document security.md"), "{refused}");
}

/// A loop with a bit of everything; the steps are data, so that they can be drawn.
fn play(world: &World, client: &mut Client, steps: &[u8]) {
    let folder = world.folder(SLUG);
    client.ok(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "T1", "title": "one | two" }, { "taskid": "T2", "title": "b" }] }),
    );
    for (n, step) in steps.iter().enumerate() {
        match step % 9 {
            0 => drop(client.call("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }))),
            1 => drop(client.call("now_set", json!({ "task": "T1", "agent": "a", "step": format!("s{n}") }))),
            2 => drop(client.call("event_append", json!({ "event": "agent-return", "note": format!("n{n}\n\u{2028}") }))),
            3 => drop(client.call("memory_append", json!({ "agent": "a", "note": format!("lesson {n}") }))),
            4 => {
                let path = format!("d{}.md", n % 3);
                client.ok("loop_writeFile", json!({ "path": path, "content": format!("revision {n}\n") }));
            }
            5 => fs::write(folder.join(format!("file{n}.bin")), vec![n as u8; n * 37]).expect("a file"),
            6 => {
                fs::create_dir_all(folder.join("deep/er")).expect("a folder");
                fs::write(folder.join("deep/er/.hidden"), format!("{n}")).expect("a file");
            }
            7 => drop(client.ok("loopsmith_scratchpad", json!({ "run_id": SLUG, "key": format!("k{n}"), "value": "v" }))),
            _ => drop(client.ok(
                "loopsmith_record_episode",
                json!({ "run_id": SLUG, "node_id": "n", "provider_id": "p", "output": "o", "cost_usd": 0.1 * n as f64 }),
            )),
        }
    }
    client.ok("loop_finish", json!({ "status": "aborted" }));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    /// Captured, the folder deleted, restored elsewhere: the same rows, revisions and
    /// files.
    #[test]
    fn what_is_archived_comes_back(steps in prop::collection::vec(any::<u8>(), 0..40)) {
        let world = World::new();
        let mut client = world.client_with_loop();
        play(&world, &mut client, &steps);
        let (rows_before, files_before) = (rows(&world), own_files(&world.folder(SLUG)));
        let views_before: Vec<_> = VIEWS.iter().map(|view| world.view(view)).collect();
        let archived = client.ok("loop_archive", json!({}));
        prop_assert!(archived["skipped"].as_array().is_some_and(|s| s.iter().all(|s| s["path"] == "NO DOCUMENTS CAPTURED")), "{archived}");
        prop_assert_eq!(look::number(&world.database(), "SELECT count(*) FROM loop"), 0);
        fs::remove_dir_all(world.project()).expect("removed");
        // The place it was in is gone; its rows come back there all the same.
        let target = world.top().join("target/deep");
        let arguments = json!({ "archiveId": archived["archiveId"], "targetDir": target });
        let restored = client.ok("archive_restore", arguments);
        prop_assert_eq!(&restored["failed"], &json!([]));
        let folder = target.join(".projects/loops").join(SLUG);
        look::assert_same(&files_before, &own_files(&folder), "files");
        for (view, before) in VIEWS.iter().zip(views_before) {
            prop_assert_eq!(fs::read_to_string(folder.join(view)).expect("a view"), before);
        }
        // Rows are the same but for where the loop is.
        let root = |rows: BTreeMap<String, usize>| -> BTreeMap<String, usize> {
            let db = look::open(&world.database());
            let projects = look::names(&db, "SELECT id FROM project");
            let strip = |row: &str| {
                let mut row = row.replace(&target.display().to_string(), "ROOT").replace(&world.project().display().to_string(), "ROOT");
                for id in &projects {
                    row = row.replace(id.as_str(), "PROJECT");
                }
                row
            };
            rows.into_iter().map(|(row, n)| (strip(&row), n)).collect()
        };
        prop_assert_eq!(root(rows_before), root(rows(&world)));
        look::assert_sound(&world.database());
    }
}

#[test]
fn a_local_edit_is_kept_beside_the_document() {
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("loop_writeFile", json!({ "path": "plan.md", "content": "stored" }));
    fs::write(world.folder(SLUG).join("plan.md"), "edited").expect("a file");
    client.ok("loop_finish", json!({ "status": "aborted" }));
    let id = client.ok("loop_archive", json!({}))["archiveId"].clone();
    let read = |client: &mut Client, path: &str| {
        client.ok("archive_readFile", json!({ "archiveId": id, "path": path }))["content"].clone()
    };
    assert_eq!(read(&mut client, "plan.md"), "stored");
    assert_eq!(read(&mut client, "plan.md~disk"), "edited");
    // What stands in the folder is newer work, and stays.
    let restored = client.ok("archive_restore", json!({ "archiveId": id }));
    assert_eq!(restored["kept"][0]["path"], "plan.md");
    assert_eq!(fs::read_to_string(world.folder(SLUG).join("plan.md")).expect("text"), "edited");
    let refused = client.refused("archive_restore", json!({ "archiveId": id }));
    assert!(refused.contains("pass asSlug"), "{refused}");
    let second = client.ok("archive_restore", json!({ "archiveId": id, "asSlug": "second" }));
    assert_ne!(second["id"], restored["id"]);
    let page = fs::read_to_string(world.folder("second").join("loop.md")).expect("a view");
    assert!(page.contains("\nloop: second\n"), "{page}");
}

/// An archive that was tampered with is refused whole, and what is sound in it can
/// still be read.
#[test]
fn hostile_archives_are_refused_whole() {
    let hostile: [(&str, &str); 7] = [
        ("UPDATE loop_archive_file SET path = '../../evil' WHERE path = 'note.txt'", "evil"),
        ("UPDATE loop_archive_file SET path = '/tmp/evil' WHERE path = 'note.txt'", "evil"),
        ("UPDATE loop_archive_file SET path = 'tasks\\..\\evil' WHERE path = 'note.txt'", "evil"),
        ("UPDATE loop_archive_file SET path = 'PLAN.md' WHERE path = 'note.txt'", "plan.md"),
        (
            "UPDATE loop_archive_file SET sha256 = replace(sha256, substr(sha256, 1, 1), 'x') WHERE path = 'note.txt'",
            "note.txt",
        ),
        ("UPDATE loop_archive_file SET bytes = 1 WHERE path = 'note.txt'", "note.txt"),
        ("UPDATE loop_archive SET snapshot = (SELECT content FROM loop_archive_file LIMIT 1)", ""),
    ];
    for (sql, named) in hostile {
        let world = World::new();
        let mut client = world.client_with_loop();
        client.ok("loop_writeFile", json!({ "path": "plan.md", "content": "why" }));
        fs::write(world.folder(SLUG).join("note.txt"), "a note").expect("a file");
        client.ok("loop_finish", json!({ "status": "aborted" }));
        let id = client.ok("loop_archive", json!({}))["archiveId"].clone();
        let db = rusqlite::Connection::open(world.database()).expect("the database");
        assert!(db.execute(sql, []).expect("an update") > 0, "{sql}");
        drop(db);
        fs::remove_dir_all(world.project().join(".projects")).expect("removed");
        let before = (look::rows(&world.database()), look::files(world.top()).len());
        let refused = client.refused("archive_restore", json!({ "archiveId": id }));
        assert!(refused.contains(named), "{sql}: {refused}");
        assert_eq!(before, (look::rows(&world.database()), look::files(world.top()).len()), "{sql}");
        let read = client.ok("archive_readFile", json!({ "archiveId": id, "path": "plan.md" }));
        assert_eq!(read["content"], "why", "{sql}");
    }
}

#[test]
fn pruned_and_deleted_loops() {
    let world = World::with_clock(1_760_000_000_000);
    let mut client = world.client_with_loop();
    client.ok("loop_writeFile", json!({ "path": "plan.md", "content": "why" }));
    client.ok("now_set", json!({ "agent": "a", "step": "s" }));
    client.ok("loop_finish", json!({ "status": "aborted" }));
    world.set_clock(1_760_000_000_000 + 40 * 86_400_000);
    let log = world.view("events.jsonl");
    let preview = client.ok("loop_prune", json!({ "olderThanDays": 30 }));
    let rows = look::rows(&world.database());
    assert_eq!(
        (&preview["candidates"][0]["events"], &preview["candidates"][0]["steps"]),
        (&json!(3), &json!(1))
    );
    look::assert_same(&rows, &look::rows(&world.database()), "a preview changes nothing");
    assert_eq!(client.ok("loop_prune", json!({ "olderThanDays": 30, "dryRun": false }))["pruned"], 1);
    assert_eq!(look::number(&world.database(), "SELECT count(*) FROM event"), 0);
    client.ok("event_append", json!({ "event": "note", "note": "later" }));
    assert_eq!(look::number(&world.database(), "SELECT seq FROM event"), 4);
    client.ok("loop_render", json!({}));
    assert_eq!(world.view("events.jsonl"), log, "what cannot be rebuilt is not touched");
    assert_eq!(client.ok("loop_timings", json!({}))["loop"]["steps"], 1, "totals stay");

    let id = client.ok("loop_get", json!({}))["loop"]["id"].clone();
    assert_eq!(client.ok("loop_delete", json!({ "confirm": SLUG }))["documents"], "kept");
    client.ok("loop_init", json!({ "goal": "the next one" }));
    let refused = client.refused("loop_readFile", json!({ "path": "plan.md", "rev": 1 }));
    assert!(
        refused.starts_with("no document plan.md"),
        "a later loop of the slug inherits nothing: {refused}"
    );
    let kept = look::names(&look::open(&world.database()), "SELECT loop_id FROM loop_document");
    assert_eq!(kept, [id.as_str().expect("text")]);
}

/// Eight servers write one document: no revision is lost, none doubled, and the
/// file is the newest.
#[test]
fn many_writers_of_one_document() {
    let world = World::new();
    world.client_with_loop().end();
    const WRITERS: usize = 6;
    const WRITES: usize = 15;
    let writers: Vec<_> = (0..WRITERS).map(|_| world.client()).collect();
    std::thread::scope(|scope| {
        for (w, mut client) in writers.into_iter().enumerate() {
            scope.spawn(move || {
                for n in 0..WRITES {
                    client.ok("loop_writeFile", json!({ "path": "plan.md", "content": format!("{w} {n}") }));
                }
            });
        }
    });
    let mut client = world.client();
    let newest: Value = client.ok("loop_readFile", json!({ "path": "plan.md" }));
    assert_eq!(newest["rev"], WRITERS * WRITES);
    let text = fs::read_to_string(world.folder(SLUG).join("plan.md")).expect("the file");
    assert!(text.ends_with(&format!("---\n{}", newest["content"].as_str().expect("text"))), "{text}");
}
