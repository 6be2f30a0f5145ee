//! Loops leave as archives and come back, whole or not at all.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use rusqlite::params;

use super::sample::Sample;
use super::*;
use crate::digest::digest;
use crate::store::{Held, HeldFile, pack};
use tools::{Answer, Query, Write};

pub(super) const ARCHIVE: &str = "archive-1";

/// A note of a run; its project, name, and loop.
pub(super) const NOTE: &str = "INSERT INTO scratchpad (project_id, run_id, loop_key, key, value, updated_at) \
                    VALUES (?1, ?2, ?3, 'k/ey', 'v', 1)";

pub(super) fn document(path: &str, rev: u32, content: &str) -> model::Document {
    let head = model::DocumentHead {
        path: path.into(),
        rev,
        bytes: u64::try_from(content.len()).unwrap(),
        sha256: digest(content.as_bytes()),
        created_at: 1,
        updated_at: i64::from(rev),
    };
    model::Document { head, content: content.into() }
}

pub(super) fn put(tx: &Tx<'_>, id: &str, document: model::Document) -> Result<(), StoreError> {
    tx.apply(&[Write::PutDocument((id.into(), document))])
}

fn archiving(loop_id: &str, files: &[&str]) -> tools::Archiving {
    tools::Archiving {
        id: ARCHIVE.into(),
        loop_id: loop_id.into(),
        at: 77,
        files: files.iter().map(|path| ((*path).into(), (*path).into())).collect(),
        skipped: vec![model::SkippedFile { path: "big".into(), reason: "too \"big\"".into() }],
    }
}

fn held(loop_id: &str, files: &[(&str, &[u8])]) -> Held {
    let file = |content: &[u8]| HeldFile { packed: pack(content), modified_at: Some(5) };
    files.iter().map(|(path, content)| ((loop_id.to_owned(), (*path).to_owned()), file(content))).collect()
}

/// A loop with rows in every table there is, and the loop's row.
pub(super) fn everything(tx: &Tx<'_>, n: u64) -> model::Loop {
    let the_loop = records::random(tx, n);
    let mut sample = Sample::new(n);
    for path in 0..=sample.below(4) {
        for rev in 1..=u32::try_from(1 + sample.below(3)).unwrap() {
            put(tx, &the_loop.id, document(&format!("d/{path}.md"), rev, &sample.texts().join("|"))).unwrap();
        }
    }
    let (project, run) = (&the_loop.project_id, &the_loop.slug);
    let key: i64 =
        tx.db.query_row("SELECT loop_key FROM loop WHERE id = ?1", [&the_loop.id], |row| row.get(0)).unwrap();
    let insert = |sql: &str, params: &[&dyn rusqlite::ToSql]| {
        tx.db.execute(sql, params).unwrap();
    };
    insert(
        "INSERT INTO goal_state (project_id, run_id, target, loop_key, satisfied, passed, failed, total, reason, \
         iteration, config_sha256, evidence_sha256, workdir, updated_at) \
         VALUES (?1, ?2, 't', ?3, 1, 2, 3, 5, 'why', 4, 'c', 'e', '.', 9)",
        params![project, run, key],
    );
    for seq in 0..sample.below(4) {
        let seq = i64::try_from(seq).unwrap();
        let cost = [0.1, -0.0, 1e300, f64::INFINITY][usize::try_from(seq).unwrap()];
        insert(
            "INSERT INTO ledger (project_id, run_id, seq, loop_key, at, kind, iteration, detail, tokens, \
             cost_usd, hash) VALUES (?1, ?2, ?3, ?4, 1, 'kind', 2, '{\"a\":1}', 7, ?5, 'hash')",
            params![project, run, seq, key, cost],
        );
        insert(
            "INSERT INTO episode (project_id, run_id, seq, loop_key, at, node_id, provider_id, role, \
             iteration, output, cost_usd, judgment_check, judgment_pass, judgment_score) \
             VALUES (?1, ?2, ?3, ?4, 1, 'n', 'p', 'r', 2, 'out', ?5, 'c', 1, ?5)",
            params![project, run, seq, key, cost],
        );
    }
    // A run of another name can belong to the loop as well.
    for name in [run.clone(), format!("{run}-x")] {
        insert(NOTE, params![project, name, key]);
    }
    the_loop
}

pub(super) fn ask(store: &mut Store, query: Query) -> Answer {
    store.read().unwrap().answer(PROJECT, ROOT, &query).unwrap().expect("the database answers")
}

fn archived(store: &mut Store) -> Option<tools::ArchivedLoop> {
    match ask(store, Query::ArchivedLoop(ARCHIVE.into())) {
        Answer::ArchivedLoop(found) => found,
        other => panic!("another query's answer: {other:?}"),
    }
}

fn restore(store: &mut Store, the_loop: &model::Loop) -> Result<(), StoreError> {
    let restoring = tools::Restoring { archive_id: ARCHIVE.into(), loop_: the_loop.clone() };
    let tx = store.write()?;
    tx.apply(&[Write::RestoreArchive(restoring)])?;
    tx.commit()
}

pub(super) fn archive(store: &mut Store, loop_id: &str, files: &[(&str, &[u8])]) -> Result<(), StoreError> {
    let names: Vec<_> = files.iter().map(|(path, _)| *path).collect();
    let tx = store.write()?;
    tx.apply_with(&[Write::ArchiveLoop(archiving(loop_id, &names))], &held(loop_id, files), &[])?;
    tx.commit()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]
    #[test]
    fn archived_and_restored_is_the_same_in_every_row(seed in 2..u64::MAX) {
        let (_folder, mut store) = fresh();
        let mut the_loop = None;
        write(&mut store, |tx| {
            everything(tx, 1);
            the_loop = Some(everything(tx, seed));
        });
        let the_loop = the_loop.unwrap();
        let before = dump(&store);
        archive(&mut store, &the_loop.id, &[("notes.txt", b"\xff\0")]).unwrap();
        let without = dump(&store);
        prop_assert!(without["loop"].len() == 1 && without["loop_document"].len() < before["loop_document"].len());

        let found = archived(&mut store).unwrap();
        prop_assert_eq!((&found.loop_, found.live, found.documents_differ), (&the_loop, false, false));
        restore(&mut store, &found.loop_).unwrap();
        let mut after = dump(&store);
        prop_assert_eq!(after["loop_archive"].len(), 1);
        for table in ["loop_archive", "loop_archive_file"] {
            after.insert(table.into(), vec![]);
        }
        prop_assert_eq!(&after, &before);
        prop_assert!(archived(&mut store).unwrap().live);

        // Once more under other names: all that names the loop follows.
        write(&mut store, |tx| tx.apply(&[Write::DeleteLoop((the_loop.id.clone(), true))]).unwrap());
        let other = model::Loop { id: "other-id".into(), slug: "other-slug".into(), ..the_loop.clone() };
        restore(&mut store, &other).unwrap();
        let text = |value: &str| format!("{:?}", rusqlite::types::Value::Text(value.into()));
        let mut renamed = dump(&store);
        for table in ["loop_archive", "loop_archive_file"] {
            renamed.insert(table.into(), vec![]);
        }
        for row in renamed.values_mut().flatten() {
            *row = row.replace(&text("other-id"), &text(&the_loop.id));
            *row = row.replace(&text("other-slug"), &text(&the_loop.slug));
        }
        renamed.values_mut().for_each(|rows| rows.sort());
        prop_assert_eq!(&renamed, &before);
    }
}

#[test]
fn every_table_has_its_place() {
    let (_folder, store) = fresh();
    let of_loops: Vec<_> = crate::store::schema::tables_of_a_loop(&store.db)
        .unwrap()
        .into_iter()
        .map(|table| table.name)
        .collect();
    assert_eq!(
        of_loops,
        [
            "episode",
            "event",
            "goal_state",
            "ledger",
            "loop",
            "loop_document",
            "loop_phase",
            "memory",
            "scratchpad",
            "step",
            "step_total",
            "task"
        ]
    );
    // A table that is neither in the list above nor here has to get its place in both
    // snapshot and export.
    let others: Vec<_> = dump(&store).into_keys().filter(|name| !of_loops.contains(name)).collect();
    assert_eq!(others, ["loop_archive", "loop_archive_file", "project", "project_root"]);
}

/// A store with an archive of one loop, and what restores it.
fn kept() -> (TempDir, Store, model::Loop) {
    let (folder, mut store) = fresh();
    let mut the_loop = None;
    write(&mut store, |tx| the_loop = Some(everything(tx, 4)));
    let the_loop = the_loop.unwrap();
    archive(&mut store, &the_loop.id, &[("notes.txt", b"notes"), ("tasks/T1.log", b"log")]).unwrap();
    (folder, store, the_loop)
}

#[test]
fn an_archive_tells_what_it_has() {
    let (_folder, mut store, the_loop) = kept();
    let Answer::Archive(Some(detail)) = ask(&mut store, Query::Archive(ARCHIVE.into())) else { panic!() };
    assert!(store.read().unwrap().content_check().unwrap().is_empty());
    let head = &detail.head;
    assert_eq!((head.id.as_str(), &head.loop_id, &head.slug), (ARCHIVE, &the_loop.id, &the_loop.slug));
    assert_eq!((&head.title, &head.goal, &head.status), (&the_loop.title, &the_loop.goal, &the_loop.status));
    assert_eq!((head.project_root.as_str(), head.archived_at), (ROOT, 77));
    assert_eq!(head.skipped, [model::SkippedFile { path: "big".into(), reason: "too \"big\"".into() }]);
    assert_eq!(usize::try_from(head.files).unwrap(), detail.files.len());
    assert_eq!(head.bytes, detail.files.iter().map(|file| file.bytes).sum::<u64>());
    assert!(head.stored_bytes > detail.files.iter().map(|file| file.stored_bytes).sum::<u64>());
    let file = detail.files.iter().find(|file| file.path == "notes.txt").unwrap();
    assert_eq!((file.document, file.bytes, file.modified_at), (false, 5, Some(5)));
    assert_eq!(file.sha256, digest(b"notes"));
    assert!(detail.files.iter().any(|file| file.document && file.path == "d/0.md"));

    let content = |store: &mut Store, path: &str| match ask(
        store,
        Query::ArchivedContent((ARCHIVE.into(), path.into())),
    ) {
        Answer::ArchivedContent(found) => found,
        other => panic!("another query's answer: {other:?}"),
    };
    assert_eq!(content(&mut store, "notes.txt").unwrap(), b"notes");
    assert_eq!(content(&mut store, "none"), None);
    assert_eq!(ask(&mut store, Query::Archive("none".into())), Answer::Archive(None));
    assert_eq!(ask(&mut store, Query::ArchivedLoop("none".into())), Answer::ArchivedLoop(None));

    let tx = store.write().unwrap();
    tx.apply(&[Write::DeleteArchive(ARCHIVE.into())]).unwrap();
    says(&tx.apply(&[Write::DeleteArchive(ARCHIVE.into())]).unwrap_err(), &["no archive", ARCHIVE]);
    drop(tx);
    write(&mut store, |tx| tx.apply(&[Write::DeleteArchive(ARCHIVE.into())]).unwrap());
    assert!(dump(&store).iter().all(|(table, rows)| rows.is_empty() || table.starts_with("project")));
}

#[test]
fn a_list_of_archives_is_searched_and_cut() {
    let (_folder, mut store) = fresh();
    let titles = ["Login 100%", "ÉCLAIR", "login_x", "other"];
    write(&mut store, |tx| {
        for (n, title) in (1..).zip(titles) {
            let root = if n == 4 { "/elsewhere" } else { ROOT };
            let the_loop = model::Loop {
                title: title.into(),
                goal: "goal".into(),
                project_root: root.into(),
                ..a_loop(n)
            };
            create(tx, &the_loop);
            let at = if n == 2 { 9 } else { 5 };
            let archiving =
                tools::Archiving { id: format!("archive-{n}"), at, ..archiving(&the_loop.id, &[]) };
            tx.apply(&[Write::ArchiveLoop(archiving)]).unwrap();
        }
    });
    // The list needs no content at all.
    store.db.execute_batch("UPDATE loop_archive SET snapshot = x''").unwrap();
    let mut list = |root: Option<&str>, search: Option<&str>, limit, offset| {
        let (project_root, search) = (root.map(Into::into), search.map(Into::into));
        let filter = tools::ArchiveFilter { project_root, search, limit, offset };
        match ask(&mut store, Query::ArchiveList(filter)) {
            Answer::ArchiveList(page) => {
                let ids: Vec<_> = page.archives.iter().map(|head| head.id.replace("archive-", "")).collect();
                (ids.join(" "), page.total)
            }
            other => panic!("another query's answer: {other:?}"),
        }
    };
    assert_eq!(list(None, None, 9, 0), ("2 4 3 1".into(), 4));
    assert_eq!(list(None, None, 2, 1), ("4 3".into(), 4));
    assert_eq!(list(None, None, 2, 9), (String::new(), 4));
    assert_eq!(list(Some(ROOT), None, 9, 0), ("2 3 1".into(), 3));
    assert_eq!(list(None, Some("LOGIN"), 9, 0), ("3 1".into(), 2));
    assert_eq!(list(None, Some("éclair"), 9, 0), ("2".into(), 1));
    assert_eq!(list(None, Some("%"), 9, 0), ("1".into(), 1));
    assert_eq!(list(None, Some("n_x"), 9, 0), ("3".into(), 1));
    assert_eq!(list(None, Some("SLUG-4"), 9, 0), ("4".into(), 1));
}

#[test]
fn what_cannot_be_archived_is_refused_and_stays() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        everything(tx, 4);
    });
    let before = dump(&store);
    let named = |name: &str| {
        let files = vec![("notes".to_owned(), name.to_owned())];
        vec![Write::ArchiveLoop(tools::Archiving { files, ..archiving("loop-4", &[]) })]
    };
    let twice = vec![Write::ArchiveLoop(archiving("loop-4", &["notes", "notes"]))];
    let table: [(Vec<Write>, &[&str]); 7] = [
        (vec![Write::ArchiveLoop(archiving("nobody", &[]))], &["no loop", "nobody"]),
        (vec![Write::ArchiveLoop(archiving("loop-4", &["other"]))], &["other", "without having been read"]),
        (named("../x"), &["../x", "`..`"]),
        (named("d/0.md"), &["d/0.md", "same name"]),
        (named("D/0.md"), &["0.md", "same name"]),
        (twice, &["notes", "same name"]),
        (
            vec![Write::ArchiveLoop(archiving("loop-4", &[])), Write::DropHistory(("loop-4".into(), 1))],
            &["no loop"],
        ),
    ];
    for (writes, words) in table {
        let tx = store.write().unwrap();
        says(&tx.apply_with(&writes, &held("loop-4", &[("notes", b"x")]), &[]).unwrap_err(), words);
        drop(tx);
        assert_eq!(dump(&store), before);
    }
    // A document that is damaged where it is would be damaged for good.
    store.db.execute_batch("UPDATE loop_document SET content = x'00'").unwrap();
    says(&archive(&mut store, "loop-4", &[]).unwrap_err(), &["loop-4", "d/0.md", "not a gzip"]);
    assert_eq!(dump(&store)["loop"], before["loop"]);
}

#[test]
fn a_damaged_archive_is_refused_whole() {
    let gzip = |content: &[u8]| pack(content).gzip;
    let (_folder, store, _) = kept();
    let json: Vec<u8> = {
        let (stored, bytes, sha): (Vec<u8>, i64, String) = store
            .db
            .query_row("SELECT snapshot, snapshot_bytes, snapshot_sha256 FROM loop_archive", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        crate::store::unpack(&stored, u64::try_from(bytes).unwrap(), &sha).unwrap()
    };
    let json = String::from_utf8(json).unwrap();
    // With its digest and length put right, as whoever writes it would.
    let snapshot = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        let packed = pack(json.replacen(from, to, 1).as_bytes());
        move |db: &Connection| {
            let stored = i64::try_from(packed.gzip.len()).unwrap();
            let bytes = i64::try_from(packed.bytes).unwrap();
            db.execute(
                "UPDATE loop_archive SET stored_bytes = stored_bytes - length(snapshot) + ?1, \
                 snapshot = ?2, snapshot_bytes = ?3, snapshot_sha256 = ?4",
                params![stored, packed.gzip, bytes, packed.sha256],
            )
            .unwrap();
        }
    };
    let sql = |sql: &'static str| move |db: &Connection| db.execute_batch(sql).unwrap();
    let bomb = pack(&vec![0; 8 << 20]);
    let rename = |name: &'static str| {
        move |db: &Connection| {
            db.execute("UPDATE loop_archive_file SET path = ?1 WHERE path = 'notes.txt'", [name]).unwrap();
        }
    };
    type Damage = Box<dyn Fn(&Connection)>;
    let cases: Vec<(&str, Damage)> = vec![
        ("`..`", Box::new(rename("../../evil"))),
        ("`..`", Box::new(rename("a/../../evil"))),
        ("absolute", Box::new(rename("/tmp/evil"))),
        ("absolute", Box::new(rename("C:\\evil"))),
        ("backslash", Box::new(rename("tasks\\..\\evil"))),
        ("empty", Box::new(rename("a/"))),
        ("control", Box::new(rename("a\nb"))),
        ("same name", Box::new(rename("TASKS/T1.log"))),
        ("SHA-256", Box::new(sql("UPDATE loop_archive_file SET sha256 = 'x' WHERE path = 'notes.txt'"))),
        ("recorded 4", Box::new(sql("UPDATE loop_archive_file SET bytes = 4 WHERE path = 'notes.txt'"))),
        ("6 are recorded", Box::new(sql("UPDATE loop_archive_file SET bytes = 6 WHERE path = 'notes.txt'"))),
        ("negative", Box::new(sql("UPDATE loop_archive_file SET bytes = -1 WHERE path = 'notes.txt'"))),
        ("space", Box::new(sql("UPDATE loop_archive_file SET stored_bytes = 1 WHERE path = 'notes.txt'"))),
        ("gzip", Box::new(sql("UPDATE loop_archive_file SET content = zeroblob(stored_bytes)"))),
        ("newest revision", Box::new(sql("UPDATE loop_archive_file SET document = 1"))),
        ("missing among", Box::new(sql("UPDATE loop_archive_file SET document = 0"))),
        ("as many", Box::new(sql("DELETE FROM loop_archive_file WHERE document = 0"))),
        ("as many", Box::new(sql("UPDATE loop_archive SET bytes = bytes + 1"))),
        ("recorded 5 bytes", {
            let gzip = bomb.gzip.clone();
            Box::new(move |db| {
                let sql =
                    "UPDATE loop_archive_file SET content = ?1, stored_bytes = ?2 WHERE path = 'notes.txt'";
                db.execute(sql, params![gzip, i64::try_from(gzip.len()).unwrap()]).unwrap();
            })
        }),
        ("follows", {
            let gzip = [gzip(b"notes"), gzip(b"")].concat();
            Box::new(move |db| {
                let sql =
                    "UPDATE loop_archive_file SET content = ?1, stored_bytes = ?2 WHERE path = 'notes.txt'";
                db.execute(sql, params![gzip, i64::try_from(gzip.len()).unwrap()]).unwrap();
            })
        }),
        ("snapshot", Box::new(sql("UPDATE loop_archive SET snapshot = zeroblob(9)"))),
        ("snapshot", Box::new(sql("UPDATE loop_archive SET snapshot_bytes = 10"))),
        ("more than anything", Box::new(sql("UPDATE loop_archive SET snapshot_bytes = 1 << 60"))),
        ("snapshot", Box::new(sql("UPDATE loop_archive SET snapshot_sha256 = ''"))),
        ("another loop", Box::new(sql("UPDATE loop_archive SET loop_id = 'x'"))),
        ("skipped", Box::new(sql("UPDATE loop_archive SET skipped = '{'"))),
        ("cannot be read", Box::new(snapshot("{", "["))),
        ("kind", Box::new(snapshot("\"version\":1", "\"version\":2"))),
        ("unknown table \"tusk\"", Box::new(snapshot("\"task\":{", "\"tusk\":{"))),
        ("unknown table \"project\"", Box::new(snapshot("\"task\":{", "\"project\":{"))),
        ("unknown column \"evil\"", Box::new(snapshot("\"memory_harvest\"", "\"evil\""))),
        ("unknown column \"loop_key\"", Box::new(snapshot("\"memory_harvest\"", "\"loop_key\""))),
        ("twice", Box::new(snapshot("\"memory_harvest\"", "\"legal\""))),
        ("more or fewer", Box::new(snapshot("\"rows\":[[", "\"rows\":[[null,"))),
    ];
    for (word, damage) in cases {
        let (_folder, mut store, the_loop) = kept();
        damage(&store.db);
        let before = dump(&store);
        let error = restore(&mut store, &the_loop).unwrap_err();
        says(&error, &["archive-1", word, "nothing was changed"]);
        let faults = store.read().unwrap().content_check().unwrap();
        assert!(faults.len() == 1 && faults[0].contains(word), "{faults:?} lacks {word:?}");
        assert_eq!(dump(&store), before, "{word}");
        if before["loop_archive_file"].iter().any(|row| row.contains("tasks/T1.log")) && word != "gzip" {
            let query = Query::ArchivedContent((ARCHIVE.into(), "tasks/T1.log".into()));
            assert_eq!(ask(&mut store, query), Answer::ArchivedContent(Some(b"log".into())));
        }
    }
}

#[test]
fn rows_of_other_loops_do_not_come_along() {
    // The snapshot is edited as a value, and its digest put right.
    type Edit = fn(&mut serde_json::Value);
    let edits: [(&str, &str, Edit); 5] = [
        ("another loop", "loop_document", |rows| rows[0][0] = "loop-5".into()),
        ("another project", "ledger", |rows| rows[0][0] = "elsewhere".into()),
        ("2 loops", "loop", |rows| {
            let row = rows[0].clone();
            rows.as_array_mut().unwrap().push(row);
        }),
        ("0 loops", "loop", |rows| *rows = serde_json::json!([])),
        ("does not fit", "event", |rows| rows[0][0] = "one".into()),
    ];
    for (word, table, edit) in edits {
        let (_folder, mut store, the_loop) = kept_with_history();
        let (stored, bytes, sha): (Vec<u8>, i64, String) = store
            .db
            .query_row("SELECT snapshot, snapshot_bytes, snapshot_sha256 FROM loop_archive", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .unwrap();
        let json = crate::store::unpack(&stored, u64::try_from(bytes).unwrap(), &sha).unwrap();
        let mut json: serde_json::Value = serde_json::from_slice(&json).unwrap();
        edit(&mut json["tables"][table]["rows"]);
        let packed = pack(json.to_string().as_bytes());
        store
            .db
            .execute(
                "UPDATE loop_archive SET stored_bytes = stored_bytes - length(snapshot) + ?1, \
                 snapshot = ?2, snapshot_bytes = ?3, snapshot_sha256 = ?4",
                params![
                    i64::try_from(packed.gzip.len()).unwrap(),
                    packed.gzip,
                    i64::try_from(packed.bytes).unwrap(),
                    packed.sha256
                ],
            )
            .unwrap();
        let before = dump(&store);
        says(&restore(&mut store, &the_loop).unwrap_err(), &["archive-1", word]);
        assert_eq!(dump(&store), before, "{word}");
    }
}

/// As [`kept`], with at least one event, run and document.
fn kept_with_history() -> (TempDir, Store, model::Loop) {
    let (folder, mut store) = fresh();
    let mut the_loop = None;
    write(&mut store, |tx| {
        let made = everything(tx, 4);
        tx.apply(&[Write::AppendEvent((made.id.clone(), Sample::new(1).event(1_000)))]).unwrap();
        tx.db
            .execute(
                "INSERT INTO ledger (project_id, run_id, seq, loop_key, at, kind, iteration, detail, hash) \
                 SELECT project_id, slug, 99, loop_key, 1, 'k', 1, '', '' FROM loop",
                [],
            )
            .unwrap();
        the_loop = Some(made);
    });
    let the_loop = the_loop.unwrap();
    archive(&mut store, &the_loop.id, &[]).unwrap();
    (folder, store, the_loop)
}

#[test]
fn names_that_are_taken_refuse_a_restore() {
    let (_folder, mut store, the_loop) = kept();
    says(
        &restore(&mut store, &model::Loop { project_id: "no".into(), ..the_loop.clone() }).unwrap_err(),
        &["no project"],
    );
    write(&mut store, |tx| create(tx, &model::Loop { id: the_loop.id.clone(), ..a_loop(9) }));
    says(&restore(&mut store, &the_loop).unwrap_err(), &[&the_loop.id, "exists already"]);
    let other = model::Loop { id: "new".into(), slug: "slug-9".into(), ..the_loop.clone() };
    says(&restore(&mut store, &other).unwrap_err(), &["slug-9", "exists already"]);
    let before = dump(&store);
    says(&archive(&mut store, &the_loop.id, &[]).unwrap_err(), &["archive", ARCHIVE, "exists already"]);
    assert_eq!(dump(&store), before);
}

#[test]
fn kept_documents_are_reused_and_never_mixed() {
    let (_folder, mut store, the_loop) = kept();
    restore(&mut store, &the_loop).unwrap();
    let before = dump(&store);
    write(&mut store, |tx| tx.apply(&[Write::DeleteLoop((the_loop.id.clone(), false))]).unwrap());
    let kept = store.read().unwrap().kept_documents().unwrap();
    assert_eq!(kept.iter().map(|k| k.loop_id.as_str()).collect::<Vec<_>>(), [the_loop.id.as_str()]);
    assert!(!archived(&mut store).unwrap().documents_differ);
    restore(&mut store, &the_loop).unwrap();
    assert_eq!(dump(&store), before);

    write(&mut store, |tx| tx.apply(&[Write::DeleteLoop((the_loop.id.clone(), false))]).unwrap());
    store.db.execute_batch("UPDATE loop_document SET at = at + 1 WHERE revision = 1").unwrap();
    assert!(archived(&mut store).unwrap().documents_differ);
    says(&restore(&mut store, &the_loop).unwrap_err(), &["d/0.md", &the_loop.id, "another"]);
    let other = model::Loop { id: "new".into(), ..the_loop };
    restore(&mut store, &other).unwrap();
}

#[test]
fn a_fault_at_any_step_leaves_the_one_or_the_other() {
    // Deleting and inserting rows of each table fails in turn.
    let tables: Vec<String> = dump(&fresh().1).into_keys().collect();
    for table in &tables {
        for step in ["INSERT", "UPDATE", "DELETE"] {
            let (_folder, mut store) = fresh();
            let mut the_loop = None;
            write(&mut store, |tx| the_loop = Some(everything(tx, 4)));
            let the_loop = the_loop.unwrap();
            let fault = format!(
                "CREATE TEMP TRIGGER fault BEFORE {step} ON main.\"{table}\" BEGIN SELECT RAISE(ABORT, 'fault'); END"
            );
            let live = dump(&store);
            store.db.execute_batch(&fault).unwrap();
            let done = archive(&mut store, &the_loop.id, &[("n", b"n")]);
            store.db.execute_batch("DROP TRIGGER fault").unwrap();
            match done {
                Err(_) => {
                    assert_eq!(dump(&store), live, "{step} {table}");
                    archive(&mut store, &the_loop.id, &[("n", b"n")]).unwrap();
                }
                Ok(()) => assert!(dump(&store)["loop"].is_empty()),
            }
            let kept = dump(&store);
            store.db.execute_batch(&fault).unwrap();
            let done = restore(&mut store, &the_loop);
            store.db.execute_batch("DROP TRIGGER fault").unwrap();
            if done.is_err() {
                assert_eq!(dump(&store), kept, "{step} {table}");
                restore(&mut store, &the_loop).unwrap();
            }
            assert_eq!(dump(&store)["loop"], live["loop"]);
        }
    }
}

#[test]
fn a_full_disk_at_any_page_leaves_the_loop() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        everything(tx, 4);
        let noise: String = (0..9_000).map(|n| format!("{:x}", Sample::new(n).number())).collect();
        put(tx, "loop-4", document("noise.md", 1, &noise)).unwrap();
    });
    let live = dump(&store);
    let pages: i64 = store.db.query_row("PRAGMA page_count", [], |row| row.get(0)).unwrap();
    let mut failed = 0;
    for limit in pages.. {
        store.db.query_row(&format!("PRAGMA max_page_count = {limit}"), [], |_| Ok(())).unwrap();
        match archive(&mut store, "loop-4", &[("n", b"n")]) {
            Err(error) => {
                says(&error, &["no room"]);
                assert_eq!(dump(&store), live);
                failed += 1;
            }
            Ok(()) => break,
        }
    }
    assert!(failed > 3, "{failed}");
    assert!(dump(&store)["loop"].is_empty());
}

#[test]
fn five_thousand_events_and_a_hundred_files_are_quick() {
    let (_folder, mut store) = fresh();
    let body: Vec<String> = (0..100_u32).map(|n| format!("# Part {n}\n").repeat(1_000)).collect();
    let names: Vec<String> = (0..50).map(|n| format!("n{n}.txt")).collect();
    write(&mut store, |tx| {
        create(tx, &a_loop(1));
        for seq in 1..=5_000 {
            let note = format!("event {seq} did {} things to {}", seq * 7 % 13, seq % 31);
            let event = model::Event { note: Some(note), evidence: None, ..Sample::new(1).event(seq) };
            tx.apply(&[Write::AppendEvent(("loop-1".into(), event))]).unwrap();
        }
        for (n, body) in body.iter().take(50).enumerate() {
            put(tx, "loop-1", document(&format!("d{n}.md"), 1, body)).unwrap();
        }
    });
    let files: Vec<(&str, &[u8])> =
        names.iter().zip(&body).map(|(name, body)| (name.as_str(), body.as_bytes())).collect();
    let start = Instant::now();
    archive(&mut store, "loop-1", &files).unwrap();
    let kept = start.elapsed();
    let the_loop = archived(&mut store).unwrap().loop_;
    let start = Instant::now();
    restore(&mut store, &the_loop).unwrap();
    eprintln!("archived in {kept:?}, restored in {:?}", start.elapsed());
    // A tenth of this, by itself; the limit leaves room for whatever else the machine does.
    assert!(kept < Duration::from_secs(5), "{kept:?}");
}
