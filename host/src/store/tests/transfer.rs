//! What was exported comes in the same, or not at all.

use std::io::{Cursor, Read as _, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use proptest::prelude::*;

use super::archive::{ARCHIVE, NOTE, archive, everything};
use super::sample::Sample;
use super::*;
use crate::store::{ProjectEdit, Renamed, Selection, Transferred};

fn export(store: &mut Store, what: &Selection) -> Vec<u8> {
    let mut file = Vec::new();
    store.read().unwrap().export(what, 5, &mut file).unwrap();
    file
}

fn import(store: &mut Store, file: &[u8]) -> Result<Transferred, StoreError> {
    store.import(&mut Cursor::new(file), None)
}

/// A store without even the test's project.
fn empty() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(folder.path()).unwrap();
    (folder, store)
}

/// A store with rows in every table: loops, an archive, kept documents, free runs.
fn full(seed: u64) -> (TempDir, Store) {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| {
        let other = ProjectRow {
            id: "other".into(),
            name: "o\"ther".into(),
            remote_key: Some("example.org/other".into()),
            repo_key: None,
        };
        tx.register_root(&other, "/other", Some("stamp"), 3).unwrap();
        let tags = Some(vec!["a".into()]);
        tx.edit_project("other", &ProjectEdit { icon: Some(Some("i".into())), tags, name: None }).unwrap();
        let mut sample = Sample::new(seed);
        for n in 1..=3 + sample.below(3) {
            everything(tx, n);
        }
        tx.apply(&[tools::Write::DeleteLoop(("loop-1".into(), false))]).unwrap();
        tx.db.execute(NOTE, rusqlite::params!["other", "free", None::<i64>]).unwrap();
    });
    archive(&mut store, "loop-2", &[("notes.txt", b"\xff\0")]).unwrap();
    (folder, store)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]
    #[test]
    fn everything_comes_in_the_same(seed: u64) {
        let (_folder, mut store) = full(seed);
        let before = dump(&store);
        prop_assert!(before.values().all(|rows| !rows.is_empty()), "{:?}", before.keys());
        let file = export(&mut store, &Selection::All);
        prop_assert_eq!(&file, &export(&mut store, &Selection::All));
        let (_other, mut other) = empty();
        let done = import(&mut other, &file).unwrap();
        prop_assert_eq!((done.projects, done.archives), (2, 1));
        prop_assert_eq!(dump(&other), before);
    }
}

#[test]
fn chosen_loops_come_in_with_their_project() {
    let (_folder, mut store) = full(1);
    let before = dump(&store);
    let one = export(&mut store, &Selection::Loops(vec!["loop-3".into()]));
    let error = store.read().unwrap().export(&Selection::Loops(vec!["no".into()]), 1, &mut Vec::new());
    says(&error.unwrap_err(), &["no loop", "no"]);

    let (_other, mut other) = empty();
    let done = import(&mut other, &one).unwrap();
    assert_eq!(done, Transferred { projects: 1, loops: 1, ..Transferred::default() });
    let here = dump(&other);
    assert!(here["loop_archive"].is_empty() && here["project_root"].len() == 1);
    for table in ["loop", "event", "loop_document", "task", "step", "memory", "scratchpad"] {
        assert!(here[table].iter().all(|row| before[table].contains(row)), "{table}");
    }
    assert_eq!((here["loop"].len(), here["scratchpad"].len()), (1, 2));

    // Nothing that is here is doubled or changed.
    for store in [&mut other, &mut store] {
        let before = dump(store);
        says(&store.import(&mut Cursor::new(&one), None).unwrap_err(), &["loop-3", "exists already"]);
        assert_eq!(dump(store), before);
    }
    // The slug alone is taken, and the file can have another one.
    write(&mut other, |tx| {
        tx.apply(&[tools::Write::DeleteLoop(("loop-3".into(), false))]).unwrap();
        create(tx, &model::Loop { slug: "slug-3".into(), ..a_loop(9) });
    });
    says(&import(&mut other, &one).unwrap_err(), &["slug-3", ROOT, "exists already"]);
    let renamed = |slug| Some(Renamed { slug, id: "loop-77" });
    other.import(&mut Cursor::new(&one), renamed("new-slug")).unwrap();
    let state = other.read().unwrap().loop_state(PROJECT, ROOT, "new-slug").unwrap().unwrap();
    assert_eq!(state.loop_.id, "loop-3");
    assert!(dump(&other)["scratchpad"].iter().any(|row| row.contains("\"new-slug\"")));

    // The id is taken as well by now.
    says(&other.import(&mut Cursor::new(&one), renamed("new-slug")).unwrap_err(), &["new-slug", "exists"]);
    other.import(&mut Cursor::new(&one), renamed("newer-slug")).unwrap();
    let state = other.read().unwrap().loop_state(PROJECT, ROOT, "newer-slug").unwrap().unwrap();
    assert_eq!(state.loop_.id, "loop-77");
    let mut heads = |id: &str| other.read().unwrap().document_heads(id).unwrap();
    assert_eq!(heads("loop-77"), heads("loop-3"));

    let all = export(&mut store, &Selection::All);
    let (_third, mut third) = empty();
    says(&third.import(&mut Cursor::new(&all), renamed("x")).unwrap_err(), &["one loop", "it has"]);
}

#[test]
fn a_project_is_known_by_its_remote() {
    let (_folder, mut store) = full(2);
    write(&mut store, |tx| {
        create(tx, &model::Loop { project_id: "other".into(), project_root: "/other".into(), ..a_loop(50) });
    });
    let file = export(&mut store, &Selection::Loops(vec!["loop-50".into()]));
    let (_other, mut other) = empty();
    write(&mut other, |tx| {
        let same = ProjectRow {
            id: "mine".into(),
            name: "mine".into(),
            remote_key: Some("example.org/other".into()),
            repo_key: None,
        };
        tx.register_root(&same, "/mine", None, 1).unwrap();
    });
    assert_eq!(import(&mut other, &file).unwrap().projects, 0);
    let tx = other.read().unwrap();
    assert_eq!(tx.loop_state_by_id("loop-50").unwrap().unwrap().loop_.project_id, "mine");
    assert_eq!(tx.project_of_root("/other").unwrap().unwrap().project.id, "mine");
    assert_eq!(tx.projects().unwrap().len(), 1);
}

#[test]
fn a_file_that_is_not_whole_changes_nothing() {
    let (_folder, mut store) = full(3);
    let file = export(&mut store, &Selection::All);
    let mut text = String::new();
    GzDecoder::new(&file[..]).read_to_string(&mut text).unwrap();
    let gzip = |text: &str| {
        let mut to = GzEncoder::new(Vec::new(), Compression::fast());
        to.write_all(text.as_bytes()).unwrap();
        to.finish().unwrap()
    };
    let (_other, mut other) = empty();
    let mut refused = |file: &[u8], word: &str| {
        let error = import(&mut other, file).unwrap_err();
        assert!(matches!(error, StoreError::Import { .. }), "{error}");
        says(&error, &[word, "nothing was changed"]);
        assert!(dump(&other).values().all(Vec::is_empty));
    };
    refused(b"", "line 1");
    refused(b"not gzip at all", "line 1");
    for part in 1..20 {
        refused(&file[..file.len() * part / 20], "");
    }
    refused(&file[..file.len() - 1], "");
    refused(&[&file[..], b"x"].concat(), "follows");
    refused(&gzip(&format!("{text}{{}}\n")), "follows");
    let lines: Vec<&str> = text.lines().collect();
    let without = |n: usize| {
        let left: Vec<&str> =
            lines.iter().enumerate().filter(|(at, _)| *at != n).map(|(_, line)| *line).collect();
        gzip(&(left.join("\n") + "\n"))
    };
    refused(&without(0), "header");
    refused(&without(2), "not those");
    refused(&without(lines.len() - 1), "ends before");
    refused(&gzip(&text.replacen("slug-3", "slug-4", 1)), "not those");
    refused(&gzip(&text.replacen("\"version\":1", "\"version\":9", 1)), "version 9");
    refused(&gzip(&text.replacen("{\"row\"", "{\"rows\"", 1)), "line 2");
    refused(&gzip(&text.replacen("\"table\":\"project\"", "\"table\":\"loop\"", 1)), "unknown table");
    refused(&gzip(&text.replacen("\"table\":\"project\"", "\"table\":\"event\"", 1)), "outside of a loop");
    refused(&gzip(&text.replacen("\"icon\"", "\"evil\"", 1)), "evil");

    // A file that is whole and whose rows do not belong together.
    let end = |body: &str| {
        let count = body.lines().count();
        let sha256 = crate::digest::digest(body.as_bytes());
        format!("{body}{{\"end\":{{\"lines\":{count},\"sha256\":\"{sha256}\"}}}}\n")
    };
    let body = text.rsplit_once("{\"end\"").unwrap().0;
    assert_eq!(end(body), text);
    refused(&gzip(&end(&body.replacen("\"slug-3\"", "null", 1))), "line");
    let no_project: String = body
        .lines()
        .filter(|line| !line.contains("\"table\":\"project"))
        .fold(String::new(), |text, line| text + line + "\n");
    refused(&gzip(&end(&no_project)), "which it does not have");
    // The same archive under a changed content is found out by its own digests.
    let sha256 = crate::digest::digest(b"\xff\0");
    let damaged = gzip(&end(&body.replacen(&sha256, "0", 1)));
    says(&import(&mut other, &damaged).unwrap_err(), &[ARCHIVE, "notes.txt"]);
    assert!(dump(&other).values().all(Vec::is_empty));
    assert_eq!(import(&mut other, &file).unwrap().archives, 1);
    says(&import(&mut other, &file).unwrap_err(), &["exists already"]);
}
