//! Archives and retention: what is captured, what is refused.

use super::bench::Bench;
use crate::model::{EntryKind, TreeEntry};
use crate::tools::{FollowUp, Write};
use serde_json::{Value, json};

fn ended() -> Bench {
    let mut b = Bench::with_loop("standard");
    b.ok("loop_writeFile", json!({ "path": "plan.md", "content": "the plan" }));
    b.ok("loop_writeFile", json!({ "path": "notes.md", "content": "notes" }));
    b.ok("loop_finish", json!({ "status": "done" }));
    b
}

fn entry(path: &str, kind: EntryKind, bytes: u64) -> TreeEntry {
    TreeEntry { path: path.to_owned(), kind, bytes, modified_at: 0 }
}

fn archive(b: &mut Bench) -> (Value, Vec<(String, String)>) {
    let reply = b.ok("loop_archive", json!({}));
    let outcome = b.last.clone().expect("it passed");
    let files = match outcome.writes.as_slice() {
        [Write::ArchiveLoop(request)] => request.files.clone(),
        other => panic!("other writes: {other:?}"),
    };
    let id = reply["archiveId"].as_str().expect("an id").to_owned();
    assert_eq!(outcome.follow_up, Some(FollowUp::MeasureArchive(id)));
    (reply, files)
}

#[test]
fn what_is_captured_and_what_is_named() {
    let mut b = ended();
    b.texts.insert("plan.md".to_owned(), "---\ntype: plan\nloop: demo\n---\nthe plan".to_owned());
    b.texts.insert("notes.md".to_owned(), "edited by hand".to_owned());
    b.texts.insert("loop.md".to_owned(), "a view".to_owned());
    let long = "n".repeat(256);
    b.tree = Some(vec![
        entry(".git", EntryKind::Folder, 0),
        entry("Data.bin", EntryKind::File, 100),
        entry("data.bin", EntryKind::File, 100),
        entry("fifo", EntryKind::Special, 0),
        entry("gone.txt", EntryKind::File, 1),
        entry("huge.bin", EntryKind::File, (5 << 20) + 1),
        entry("link", EntryKind::Link, 0),
        entry("locked", EntryKind::Folder, 0),
        entry("loop.md", EntryKind::File, 6),
        entry("notes.md", EntryKind::File, 14),
        entry("plan.md", EntryKind::File, 40),
        entry("secret", EntryKind::Unreadable, 9),
        entry(&long, EntryKind::File, 9),
    ]);
    b.texts.insert("Data.bin".to_owned(), "x".repeat(100));
    let (reply, files) = archive(&mut b);
    let files: Vec<_> = files.iter().map(|(path, name)| (path.as_str(), name.as_str())).collect();
    assert_eq!(files, [("Data.bin", "Data.bin"), ("loop.md", "loop.md"), ("notes.md", "notes.md~disk")]);
    let skipped: Vec<_> = reply["skipped"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|s| (s["path"].as_str().expect("a path"), s["reason"].as_str().expect("a reason")))
        .collect();
    assert_eq!(
        skipped,
        [
            (".git", "a folder that is never kept"),
            ("data.bin", "another file's name differs by case alone"),
            ("fifo", "no regular file"),
            ("huge.bin", "5242881 bytes, more than the 5242880 of a file"),
            ("link", "a symbolic link"),
            ("locked", "a folder that cannot be listed"),
            ("secret", "it cannot be read"),
            (long.as_str(), "a part of it has 256 bytes and at most 255 are possible"),
            ("gone.txt", "it went away"),
        ]
    );
    assert!(b.loops.is_empty());
}

#[test]
fn an_archive_without_reasoning_says_so() {
    let mut b = Bench::with_loop("standard");
    let refused = b.refused("loop_archive", json!({}));
    assert!(refused.contains("is active, and only an ended loop can be archived"), "{refused}");
    b.ok("loop_finish", json!({ "status": "aborted" }));
    let (reply, _) = archive(&mut b);
    assert_eq!(reply["skipped"][0]["path"], "NO DOCUMENTS CAPTURED");
}

#[test]
fn at_most_a_hundred_mebibytes_in_all() {
    let mut b = ended();
    let paths: Vec<_> = (0..22).map(|i| format!("f{i:02}.bin")).collect();
    b.tree = Some(paths.iter().map(|p| entry(p, EntryKind::File, 5 << 20)).collect());
    for path in &paths {
        b.texts.insert(path.clone(), String::new());
    }
    let (reply, files) = archive(&mut b);
    assert_eq!(files.len(), 20);
    assert_eq!(reply["skipped"].as_array().map(Vec::len), Some(2));
    assert_eq!(reply["skipped"][0]["reason"], "past the 104857600 bytes of all files");
}

#[test]
fn an_archive_becomes_a_loop_again() {
    let mut b = ended();
    let before = b.kept().clone();
    let (reply, _) = archive(&mut b);
    let id = reply["archiveId"].clone();
    assert_eq!(b.ok("archive_list", json!({}))["archives"][0]["archiveId"], id);
    assert_eq!(b.ok("archive_get", json!({ "archiveId": id }))["archive"]["slug"], "demo");
    let reply = b.ok("archive_restore", json!({ "archiveId": id }));
    assert_eq!(reply["id"], json!(before.state.loop_.id));
    assert_eq!(*b.kept(), before, "rows as they were");
    let refused = b.refused("archive_restore", json!({ "archiveId": id }));
    assert!(refused.contains("has a loop demo already; pass asSlug"), "{refused}");
    // Beside the first one: another slug, and another id since that one is live.
    let reply =
        b.ok("archive_restore", json!({ "archiveId": id, "asSlug": "null", "targetDir": "/elsewhere" }));
    assert_ne!(reply["id"], json!(before.state.loop_.id));
    let copy = &b.loops["null"].state.loop_;
    assert_eq!((copy.project_root.as_str(), copy.project_id.as_str()), ("/elsewhere", "q"));
    let page = crate::render::lessons_page(copy, &[], "1.2.3");
    assert_eq!(copy.marks.memory_bytes, (page.len() - 5) as u64, "the page's length follows the slug");
    for (folder, why) in [("relative", "it is not absolute"), ("/", "the root of the file system")] {
        let refused =
            b.refused("archive_restore", json!({ "archiveId": id, "asSlug": "x", "targetDir": folder }));
        assert!(refused.contains(why), "{refused}");
    }
    for tool in ["archive_get", "archive_restore", "archive_readFile", "archive_delete"] {
        let refused = b.refused(tool, json!({ "archiveId": "nope", "path": "x", "confirm": "nope" }));
        assert!(refused.starts_with("no archive with the id nope"), "{tool}: {refused}");
    }
    let refused = b.refused("archive_delete", json!({ "archiveId": id, "confirm": "yes" }));
    assert!(
        !refused.contains(id.as_str().expect("text")),
        "the confirming value is not handed over: {refused}"
    );
    b.ok("archive_delete", json!({ "archiveId": id, "confirm": id }));
    assert_eq!(b.ok("archive_list", json!({}))["archives"], json!([]));
}

#[test]
fn archived_text_is_text_and_all_else_is_not() {
    let mut b = ended();
    for path in ["a.md", "b.jsonl", "c.bin", "d.md~disk"] {
        b.texts.insert(path.to_owned(), "text".to_owned());
    }
    b.tree = Some(["a.md", "b.jsonl", "c.bin", "d.md~disk"].map(|p| entry(p, EntryKind::File, 4)).to_vec());
    let (reply, _) = archive(&mut b);
    let mut read = |path: &str| {
        let reply = b.ok("archive_readFile", json!({ "archiveId": reply["archiveId"], "path": path }));
        (reply["encoding"].clone(), reply["content"].clone())
    };
    for path in ["a.md", "b.jsonl", "d.md~disk"] {
        assert_eq!(read(path), (json!("utf-8"), json!("text")), "{path}");
    }
    assert_eq!(read("c.bin"), (json!("base64"), json!("dGV4dA==")));
}

#[test]
fn pruning_previews_first() {
    let mut b = ended();
    assert_eq!(b.ok("loop_prune", json!({ "olderThanDays": 1 }))["candidates"], json!([]));
    b.now += 2 * 24 * 3_600_000;
    let preview = b.ok("loop_prune", json!({ "olderThanDays": 1 }));
    assert_eq!((&preview["dryRun"], &preview["pruned"]), (&json!(true), &json!(0)));
    assert_eq!(
        (&preview["candidates"][0]["slug"], &preview["candidates"][0]["events"]),
        (&json!("demo"), &json!(2))
    );
    let done = b.ok("loop_prune", json!({ "olderThanDays": "1", "dryRun": "false" }));
    assert_eq!(done["pruned"], 1);
    assert!(b.kept().events.is_empty());
    b.ok("event_append", json!({ "event": "note" }));
    assert_eq!(b.last_event().seq, 3, "numbers go on");
    assert_eq!(b.ok("loop_prune", json!({ "olderThanDays": 0, "dryRun": false }))["pruned"], 0);
}

#[test]
fn deleting_needs_an_end_and_the_slug_once_more() {
    let mut b = Bench::with_loop("standard");
    let refused = b.refused("loop_delete", json!({ "confirm": "demo" }));
    assert!(refused.contains("only an ended loop can be deleted"), "{refused}");
    b.ok("loop_finish", json!({ "status": "aborted" }));
    let refused = b.refused("loop_delete", json!({ "confirm": "demu" }));
    assert!(refused.starts_with("nothing was deleted: `confirm`"), "{refused}");
    let refused = b.refused("loop_delete", json!({}));
    assert_eq!(refused, "missing required argument `confirm`");
    let reply = b.ok("loop_delete", json!({ "confirm": "demo" }));
    assert_eq!(reply, json!({ "deleted": "demo", "documents": "kept" }));
    assert!(b.loops.is_empty());
}
