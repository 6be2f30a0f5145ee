//! Projects, their roots, and what happens when either changes.

use super::*;
use crate::store::{Common, Duplicates, Merged, ProjectEdit};
use tools::{Answer, Query, Write};

fn project(id: &str, remote: Option<&str>, repo: Option<&str>) -> ProjectRow {
    ProjectRow {
        id: id.into(),
        name: format!("name of {id}"),
        remote_key: remote.map(Into::into),
        repo_key: repo.map(Into::into),
    }
}

fn at(project: &str, root: &str, slug: &str, id: &str) -> model::Loop {
    model::Loop {
        id: id.into(),
        slug: slug.into(),
        project_id: project.into(),
        project_root: root.into(),
        ..a_loop(1)
    }
}

fn found(tx: &Tx<'_>, project: &str, root: &str, slug: &str) -> (Option<String>, Vec<String>) {
    match tx.answer(project, root, &Query::LoopState(slug.into())).unwrap() {
        Some(Answer::LoopState(found)) => (
            found.here.map(|state| state.loop_.id),
            found.elsewhere.into_iter().map(|place| place.id).collect(),
        ),
        other => panic!("another query's answer: {other:?}"),
    }
}

fn holder(tx: &Tx<'_>, root: &str, slug: &str) -> Option<String> {
    match tx.answer(PROJECT, ROOT, &Query::SlugHolder((root.into(), slug.into()))).unwrap() {
        Some(Answer::SlugHolder(found)) => found,
        other => panic!("another query's answer: {other:?}"),
    }
}

#[test]
fn a_stamp_is_renewed_and_a_root_keeps_its_project() {
    let (_folder, mut store) = fresh();
    let (a, b) = (project("a", None, None), project("b", None, None));
    write(&mut store, |tx| {
        tx.register_root(&a, "/a", Some("one"), 1).unwrap();
        tx.register_root(&a, "/a", None, 2).unwrap();
        assert_eq!(tx.project_of_root("/a").unwrap().unwrap().stamp.as_deref(), Some("one"));
        tx.register_root(&b, "/a", Some("foreign"), 3).unwrap();
        tx.register_root(&project("a", Some("r"), None), "/a", Some("two"), 4).unwrap();
    });
    let tx = store.read().unwrap();
    let known = tx.project_of_root("/a").unwrap().unwrap();
    assert_eq!(known.project, project("a", Some("r"), None));
    assert_eq!(known.stamp.as_deref(), Some("two"));
    assert_eq!(tx.project("b").unwrap(), Some(b));
    assert_eq!(tx.project("c").unwrap(), None);
}

#[test]
fn a_root_that_becomes_another_repository_has_its_slugs_free() {
    let (_folder, mut store) = fresh();
    let (old, new) = (project("old", Some("r/old"), None), project("new", Some("r/new"), None));
    write(&mut store, |tx| {
        tx.register_root(&old, "/app", Some("1"), 1).unwrap();
        tx.register_root(&old, "/app2", None, 1).unwrap();
        create(tx, &at("old", "/app", "fix", "first"));
        assert_eq!(holder(tx, "/app", "fix").as_deref(), Some("first"));
        assert_eq!(tx.re_root(&new, "/app", Some("2"), 5).unwrap(), 1);
        assert_eq!(holder(tx, "/app", "fix"), None);
        assert_eq!(found(tx, "new", "/app", "fix"), (None, vec![]));
        create(tx, &at("new", "/app", "fix", "second"));
    });
    write(&mut store, |tx| {
        assert_eq!(found(tx, "new", "/app", "fix"), (Some("second".into()), vec![]));
        assert_eq!(holder(tx, "/app", "fix").as_deref(), Some("second"));
        // From another root of the old project, the first one is elsewhere, in its own root.
        assert_eq!(found(tx, "old", "/app2", "fix"), (None, vec!["first".into()]));
        let state = tx.loop_state_by_id("first").unwrap().unwrap();
        assert_eq!(state.loop_.project_root, "/app");
        let roots = ["/app".to_owned(), "/app2".to_owned(), "/none".to_owned()];
        assert_eq!(tx.roots_of_others("old", &roots).unwrap(), [true, false, false]);
        let known = tx.project_of_root("/app").unwrap().unwrap();
        assert_eq!((known.project.id.as_str(), known.stamp.as_deref()), ("new", Some("2")));
        // The work goes on.
        tx.apply(&[Write::PutLoop(state.loop_)]).unwrap();
        // And back again.
        assert_eq!(tx.re_root(&old, "/app", None, 9).unwrap(), 1);
        assert_eq!(holder(tx, "/app", "fix").as_deref(), Some("first"));
        assert_eq!(found(tx, "old", "/app", "fix").0.as_deref(), Some("first"));
    });
    let clash = at("old", "/app", "fix", "third");
    says(&store.write().unwrap().apply(&[Write::CreateLoop(clash)]).unwrap_err(), &["fix", "/app", "exists"]);
}

#[test]
fn projects_are_listed_with_what_they_have() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        tx.register_root(&project("a", None, None), "/a2", Some("s"), 3).unwrap();
        tx.register_root(&project("a", None, None), "/a", None, 2).unwrap();
        create(tx, &model::Loop { finished_at: Some(4), updated_at: 50, ..at("a", "/a", "x", "1") });
        create(tx, &model::Loop { finished_at: None, updated_at: 40, ..at("a", "/a", "y", "2") });
        create(tx, &at("a", "/a", "z", "3"));
        let archiving =
            tools::Archiving { id: "k".into(), loop_id: "3".into(), at: 60, files: vec![], skipped: vec![] };
        tx.apply(&[Write::ArchiveLoop(archiving)]).unwrap();
        let edit = ProjectEdit {
            name: Some("New".into()),
            icon: Some(Some("🦀".into())),
            tags: Some(vec!["a".into(), "b\"".into()]),
        };
        tx.edit_project("a", &edit).unwrap();
        tx.edit_project("a", &ProjectEdit::default()).unwrap();
    });
    let list = store.read().unwrap().projects().unwrap();
    assert_eq!(list.iter().map(|p| p.project.id.as_str()).collect::<Vec<_>>(), ["a", PROJECT]);
    let a = &list[0];
    assert_eq!((a.project.name.as_str(), a.icon.as_deref()), ("New", Some("🦀")));
    assert_eq!(a.tags, ["a", "b\""]);
    assert_eq!((a.loops, a.unfinished, a.archives, a.used_at, a.created_at), (2, 1, 1, 60, 3));
    let roots: Vec<_> = a.roots.iter().map(|r| (r.root.as_str(), r.stamp.as_deref())).collect();
    assert_eq!(roots, [("/a", None), ("/a2", Some("s"))]);
    assert_eq!((list[1].loops, list[1].used_at), (0, 1));

    write(&mut store, |tx| {
        tx.edit_project("a", &ProjectEdit { icon: Some(None), ..ProjectEdit::default() }).unwrap();
    });
    let list = store.read().unwrap().projects().unwrap();
    assert_eq!((list[0].icon.as_deref(), list[0].project.name.as_str()), (None, "New"));
    let error = store.write().unwrap().edit_project("no", &ProjectEdit::default()).unwrap_err();
    says(&error, &["no project", "no"]);
}

#[test]
fn duplicates_share_a_key_or_a_root() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        for (n, id) in (5..).zip(["d", "c", "b"]) {
            tx.register_root(&project(id, Some("r/x"), None), &format!("/{id}"), None, n).unwrap();
        }
        tx.register_root(&project("e", Some("r/y"), Some("/g")), "/e", None, 9).unwrap();
        tx.register_root(&project("f", None, Some("/g")), "/f", None, 9).unwrap();
        create(tx, &at("f", "/f", "x", "1"));
        create(tx, &at("f", "/f", "y", "2"));
        tx.re_root(&project("h", None, None), "/f", None, 10).unwrap();
    });
    let group = |common, value: &str, projects: &[&str]| Duplicates {
        common,
        value: value.into(),
        projects: projects.iter().map(|id| (*id).into()).collect(),
    };
    assert_eq!(
        store.read().unwrap().duplicates().unwrap(),
        [
            group(Common::Remote, "r/x", &["d", "c", "b"]),
            group(Common::Repository, "/g", &["e", "f"]),
            group(Common::Root, "/f", &["f", "h"]),
        ]
    );
}

#[test]
fn merging_moves_everything_or_nothing() {
    let (_folder, mut store) = fresh();
    write(&mut store, |tx| {
        tx.register_root(&project("keep", None, Some("/g")), "/k", None, 1).unwrap();
        tx.register_root(&project("drop", Some("r"), Some("/other")), "/d", None, 1).unwrap();
        tx.edit_project("keep", &ProjectEdit { tags: Some(vec!["t".into()]), ..ProjectEdit::default() })
            .unwrap();
        create(tx, &at("keep", "/k", "x", "1"));
        create(tx, &at("drop", "/d", "x", "2"));
        create(tx, &at("drop", "/d", "gone", "3"));
        let archiving =
            tools::Archiving { id: "k".into(), loop_id: "3".into(), at: 6, files: vec![], skipped: vec![] };
        tx.apply(&[Write::ArchiveLoop(archiving)]).unwrap();
        let sql = "INSERT INTO scratchpad (project_id, run_id, key, value, updated_at) VALUES (?1, ?2, 'k', 'v', 1)";
        tx.db.execute(sql, ["keep", "run-k"]).unwrap();
        tx.db.execute(sql, ["drop", "run-d"]).unwrap();
    });
    let before = dump(&store);
    let refused = |store: &mut Store, keep: &str, drop: &str, words: &[&str]| {
        let tx = store.write().unwrap();
        says(&tx.merge_projects(keep, drop).unwrap_err(), words);
    };
    refused(&mut store, "keep", "keep", &["same project"]);
    refused(&mut store, "keep", "none", &["no project", "none"]);
    refused(&mut store, "none", "drop", &["no project", "none"]);
    write(&mut store, |tx| create(tx, &at("drop", "/k", "x", "4")));
    refused(&mut store, "keep", "drop", &["x in /k"]);
    write(&mut store, |tx| tx.apply(&[Write::DeleteLoop(("4".into(), true))]).unwrap());
    store.db.execute_batch("UPDATE scratchpad SET run_id = 'run-k'").unwrap();
    refused(&mut store, "keep", "drop", &["run-k"]);
    store.db.execute_batch("UPDATE scratchpad SET run_id = 'run-d' WHERE project_id = 'drop'").unwrap();
    assert_eq!(dump(&store), before);

    let mut merged = None;
    write(&mut store, |tx| merged = Some(tx.merge_projects("keep", "drop").unwrap()));
    assert_eq!(merged, Some(Merged { loops: 1, roots: 1, runs: 1, archives: 1 }));
    let tx = store.read().unwrap();
    let list = tx.projects().unwrap();
    let kept = list.iter().find(|p| p.project.id == "keep").unwrap();
    assert_eq!(
        kept.project,
        ProjectRow { name: "name of keep".into(), ..project("keep", Some("r"), Some("/g")) }
    );
    assert_eq!((kept.tags.as_slice(), kept.loops, kept.archives), (&["t".to_owned()][..], 2, 1));
    assert_eq!(tx.project("drop").unwrap(), None);
    assert!(tx.integrity_check().unwrap().is_empty());
    // What an archive holds comes back into the project that the archive belongs to.
    match tx.answer("keep", "/k", &Query::ArchivedLoop("k".into())).unwrap() {
        Some(Answer::ArchivedLoop(Some(found))) => {
            assert_eq!((found.loop_.project_id.as_str(), found.loop_.project_root.as_str()), ("keep", "/d"));
            drop(tx);
            let restoring = tools::Restoring { archive_id: "k".into(), loop_: found.loop_ };
            write(&mut store, |tx| tx.apply(&[Write::RestoreArchive(restoring)]).unwrap());
        }
        other => panic!("another query's answer: {other:?}"),
    }
}
