//! One logic's loops are for others to read, not to change.

use super::archive::{ARCHIVE, archive, document, everything};
use super::sample::Sample;
use super::*;
use crate::progress::Progress;
use crate::store::{Held, OtherLogic, Selection, Writer};
use tools::{Answer, Query, Write};

fn kanban() -> Writer {
    Writer { name: "kanban".into(), version: "7".into() }
}

/// The same database, as another logic has it open.
fn as_kanban(folder: &TempDir) -> Store {
    Store::open_for(folder.path(), kanban(), Progress::default()).unwrap()
}

/// Every write there is that is about the loop `id`; creating one aside.
fn changes(id: &str) -> Vec<(&'static str, Write)> {
    let mut sample = Sample::new(5);
    let of = || id.to_owned();
    let the_loop = model::Loop { id: of(), ..a_loop(1) };
    let run = || tools::Run { project_id: PROJECT.into(), name: "slug-1".into(), loop_id: Some(of()) };
    let goal = model::GoalState {
        target: "t".into(),
        satisfied: true,
        passed: 1,
        failed: 0,
        total: 1,
        reason: String::new(),
        iteration: 1,
        config_sha256: String::new(),
        evidence_sha256: String::new(),
        workdir: String::new(),
        updated_at: 1,
    };
    let entry = model::LedgerEntry {
        seq: 900,
        at: 1,
        kind: "k".into(),
        iteration: 1,
        detail: String::new(),
        node_id: None,
        tokens: None,
        cost_usd: None,
        hash: String::new(),
    };
    let episode = model::Episode {
        seq: 900,
        at: 1,
        node_id: String::new(),
        provider_id: String::new(),
        role: String::new(),
        iteration: 1,
        output: String::new(),
        tokens: None,
        cost_usd: None,
        duration_ms: None,
        prompt_digest: None,
        error: None,
        judgment: None,
    };
    let archiving =
        tools::Archiving { id: "new".into(), loop_id: of(), at: 1, files: Vec::new(), skipped: Vec::new() };
    vec![
        ("put-loop", Write::PutLoop(the_loop)),
        ("put-phase", Write::PutPhase((of(), sample.phase("qa")))),
        ("put-task", Write::PutTask((of(), sample.task("T".into(), 0)))),
        ("append-event", Write::AppendEvent((of(), sample.event(900)))),
        ("put-step", Write::PutStep((of(), sample.step(900)))),
        ("put-step-total", Write::PutStepTotal((of(), sample.total(None, "qa")))),
        ("append-memory", Write::AppendMemory((of(), sample.memory(900)))),
        ("put-document", Write::PutDocument((of(), document("new.md", 1, "x")))),
        ("archive-loop", Write::ArchiveLoop(archiving)),
        ("delete-loop", Write::DeleteLoop((of(), true))),
        ("drop-history", Write::DropHistory((of(), 1))),
        ("put-goal-state", Write::PutGoalState((run(), goal))),
        ("append-ledger", Write::AppendLedger((run(), entry))),
        ("append-episode", Write::AppendEpisode((run(), episode))),
        ("put-scratchpad", Write::PutScratchpad((run(), "k".into(), Some("v".into()), 1))),
    ]
}

#[test]
fn another_logics_loop_takes_no_change() {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| drop(everything(tx, 1)));
    let before = dump(&store);
    let mut other = as_kanban(&folder);
    for (name, change) in changes("loop-1") {
        let error = other.write().unwrap().apply(&[change]).unwrap_err();
        assert!(matches!(error, StoreError::OtherLogic { .. }), "{name}: {error}");
        says(&error, &["loop slug-1", "loop-state", "kanban 7", "nothing was changed", "--logic"]);
    }
    assert_eq!(dump(&store), before);
    // Its own logic may do each of them, the last state first: what they need is there.
    for (name, change) in changes("loop-1") {
        let done = store.write().unwrap().apply(&[change]);
        assert!(done.is_ok(), "{name}: {done:?}");
    }
    assert!(other.read().unwrap().loop_state_by_id("loop-1").unwrap().is_some(), "reading is free");
}

#[test]
fn two_logics_keep_loops_side_by_side() {
    let (folder, mut store) = fresh();
    write(&mut store, |tx| create(tx, &a_loop(1)));
    assert_eq!(store.read().unwrap().other_logics().unwrap(), []);
    let mut other = as_kanban(&folder);
    let taken = model::Loop { id: "loop-9".into(), ..a_loop(1) };
    says(
        &other.write().unwrap().apply(&[Write::CreateLoop(taken)]).unwrap_err(),
        &["slug-1", "exists already"],
    );
    write(&mut other, |tx| {
        create(tx, &a_loop(2));
        create(tx, &a_loop(3));
    });
    let told = |name: &str, loops| vec![OtherLogic { name: name.into(), loops }];
    assert_eq!(store.read().unwrap().other_logics().unwrap(), told("kanban", 2));
    assert_eq!(other.read().unwrap().other_logics().unwrap(), told("loop-state", 1));
    let slugs: Vec<_> =
        store.read().unwrap().loops_of_others().unwrap().into_iter().map(|found| found.slug).collect();
    assert_eq!(slugs, ["slug-2", "slug-3"]);
    let versions = "SELECT group_concat(logic || ':' || logic_version, ' ') FROM loop ORDER BY id";
    let versions: String = store.db.query_row(versions, [], |row| row.get(0)).unwrap();
    assert_eq!(versions, "loop-state: kanban:7 kanban:7");
    // A change by a later version is one by the same logic.
    let mut later =
        Store::open_for(folder.path(), Writer { version: "8".into(), ..kanban() }, Progress::default())
            .unwrap();
    write(&mut later, |tx| tx.apply(&[Write::PutLoop(a_loop(2))]).unwrap());

    // What is offered for pruning is what may be pruned.
    let prunable =
        |store: &mut Store| match store.read().unwrap().answer(PROJECT, ROOT, &Query::Prunable(i64::MAX)) {
            Ok(Some(Answer::Prunable(list))) => list.into_iter().map(|found| found.slug).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
    let ended = |n| Write::PutLoop(model::Loop { finished_at: Some(9), ..a_loop(n) });
    let event = |n: u64| Write::AppendEvent((format!("loop-{n}"), Sample::new(n).event(1)));
    write(&mut store, |tx| tx.apply(&[ended(1), event(1)]).unwrap());
    write(&mut other, |tx| tx.apply(&[ended(2), event(2)]).unwrap());
    assert_eq!((prunable(&mut store), prunable(&mut other)), (vec!["slug-1".into()], vec!["slug-2".into()]));
}

#[test]
fn an_archive_and_an_export_remember_who_wrote() {
    let (folder, mut store) = fresh();
    let mut other = as_kanban(&folder);
    write(&mut other, |tx| drop(everything(tx, 1)));
    archive(&mut other, "loop-1", &[]).unwrap();
    let head = |tx: &Tx<'_>| tx.archive(ARCHIVE).unwrap().unwrap().head;
    assert_eq!(head(&store.read().unwrap()).slug, "slug-1");
    let restoring = Write::RestoreArchive(tools::Restoring { archive_id: ARCHIVE.into(), loop_: a_loop(1) });
    for change in [restoring.clone(), Write::DeleteArchive(ARCHIVE.into())] {
        let error = store.write().unwrap().apply(&[change]).unwrap_err();
        assert!(matches!(error, StoreError::OtherLogic { .. }), "{error}");
        says(&error, &[ARCHIVE, "slug-1", "kanban"]);
    }

    let mut file = Vec::new();
    store.read().unwrap().export(&Selection::All, 5, &mut file).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let mut copy = Store::open(elsewhere.path()).unwrap();
    copy.import(&mut std::io::Cursor::new(file), None).unwrap();
    assert_eq!(dump(&copy), dump(&store));

    write(&mut other, |tx| tx.apply_with(&[restoring], &Held::new(), &["loop-1"]).unwrap());
    let put = Write::PutLoop(a_loop(1));
    assert!(matches!(store.write().unwrap().apply(&[put]), Err(StoreError::OtherLogic { .. })));
}

/// What is written is one's own, and so is every folder that files follow to.
#[test]
fn no_files_go_to_the_folder_of_anothers_loop() {
    let (folder, mut store) = fresh();
    let mut other = as_kanban(&folder);
    write(&mut store, |tx| drop(everything(tx, 1)));
    write(&mut other, |tx| tx.apply(&[Write::CreateLoop(a_loop(2))]).unwrap());
    let before = dump(&store);
    let own = [Write::PutLoop(model::Loop { goal: "another".into(), ..a_loop(1) })];
    for (folders, refused) in
        [(&["loop-2"][..], "kanban"), (&["loop-1", "loop-2"], "kanban"), (&["loop-9"], "loop-9")]
    {
        let tx = store.write().unwrap();
        let error = tx.apply_with(&own, &Held::new(), folders).unwrap_err();
        assert!(matches!(error, StoreError::OtherLogic { .. } | StoreError::UnknownLoop { .. }), "{error}");
        says(&error, &[refused]);
        drop(tx);
        assert_eq!(dump(&store), before, "{folders:?}");
        // The same where there is nothing to write.
        says(&store.read().unwrap().apply_with(&[], &Held::new(), folders).unwrap_err(), &[refused]);
    }
    store.read().unwrap().apply_with(&[], &Held::new(), &["loop-1"]).unwrap();
    write(&mut store, |tx| tx.apply_with(&own, &Held::new(), &["loop-1"]).unwrap());
    // A loop may be made by the same writes.
    write(&mut store, |tx| {
        tx.apply_with(&[Write::CreateLoop(a_loop(3))], &Held::new(), &["loop-3"]).unwrap();
    });
}
