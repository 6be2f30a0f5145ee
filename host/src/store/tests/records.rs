//! What is written reads back identical, and what cannot be written changes nothing.

use proptest::prelude::*;

use super::sample::Sample;
use super::*;
use crate::store::record::{Reader, Record, Sql};
use tools::Write;

/// The phases in an order that sorting would change.
const PHASES: [&str; 4] = ["preflight", "build", "qa", "done"];
const OWN_TASKS: [Option<&str>; 4] = [None, Some(""), Some("T1"), Some("T2")];

/// All that one loop holds, its steps and history included.
#[derive(Clone, Debug, PartialEq)]
struct Whole {
    state: model::LoopState,
    steps: Vec<model::Step>,
    events: Vec<model::Event>,
    memories: Vec<model::Memory>,
}

impl Whole {
    fn random(sample: &mut Sample, the_loop: model::Loop) -> Whole {
        let tasks = u32::try_from(sample.below(6)).unwrap();
        // Ids that sort the other way round than the positions.
        let tasks = (0..tasks).map(|n| sample.task(format!("T{}", 9 - n), n)).collect();
        let totals = OWN_TASKS
            .iter()
            .flat_map(|task| ["build", "qa"].map(|phase| sample.total(*task, phase)))
            .collect();
        let steps: Vec<_> = (1..=sample.below(5)).map(|seq| sample.step(seq)).collect();
        let open = steps.iter().rfind(|step| step.ended_at.is_none()).cloned();
        Whole {
            state: model::LoopState {
                loop_: the_loop,
                phases: PHASES.map(|phase| sample.phase(phase)).to_vec(),
                tasks,
                totals,
                open_step: open,
                goals: Vec::new(),
            },
            steps,
            events: (1..=sample.below(5)).map(|seq| sample.event(seq)).collect(),
            memories: (1..=sample.below(5)).map(|seq| sample.memory(seq)).collect(),
        }
    }

    /// The writes of everything that may be written again.
    fn puts(&self) -> Vec<Write> {
        let id = &self.state.loop_.id;
        let mut writes = vec![];
        writes.extend(self.state.phases.iter().map(|p| Write::PutPhase((id.clone(), p.clone()))));
        // Not in the order they are read in.
        writes.extend(self.state.tasks.iter().rev().map(|t| Write::PutTask((id.clone(), t.clone()))));
        writes.extend(self.steps.iter().map(|s| Write::PutStep((id.clone(), s.clone()))));
        let totals = self.state.totals.iter().rev();
        writes.extend(totals.map(|t| Write::PutStepTotal((id.clone(), t.clone()))));
        writes
    }

    fn appends(&self) -> Vec<Write> {
        let id = &self.state.loop_.id;
        let events = self.events.iter().map(|e| Write::AppendEvent((id.clone(), e.clone())));
        let memories = self.memories.iter().map(|m| Write::AppendMemory((id.clone(), m.clone())));
        events.chain(memories).collect()
    }

    fn read(store: &mut Store, id: &str) -> Whole {
        let steps = all_rows::<model::Step>(store, "seq");
        let tx = store.read().unwrap();
        let state = tx.loop_state_by_id(id).unwrap().unwrap();
        let by_slug = tx.loop_state(PROJECT, &state.loop_.project_root, &state.loop_.slug).unwrap();
        assert_eq!(by_slug.as_ref(), Some(&state));
        assert_eq!(tx.marks(id).unwrap(), Some(state.loop_.marks));
        let events = tx.events_after(id, 0, usize::MAX, usize::MAX).unwrap();
        for n in 0..events.len() {
            let after = u64::try_from(n).unwrap();
            assert_eq!(tx.events_after(id, after, 1, usize::MAX).unwrap(), events[n..=n]);
        }
        Whole { state, steps, events, memories: tx.memories(id).unwrap() }
    }
}

/// Creates the loop of a number with random rows in every table that has a record.
pub(super) fn random(tx: &Tx<'_>, n: u64) -> model::Loop {
    let whole = Whole::random(&mut Sample::new(n ^ 0xabcd), a_loop(n));
    create(tx, &whole.state.loop_);
    tx.apply(&whole.puts()).unwrap();
    tx.apply(&whole.appends()).unwrap();
    whole.state.loop_
}

/// The rows of a table that no other loop has rows in.
fn all_rows<R: Record>(store: &Store, order: &str) -> Vec<R> {
    let Sql { columns, table, .. } = R::sql();
    let sql = format!("SELECT {columns} FROM {table} ORDER BY {order}");
    let mut statement = store.db.prepare(&sql).unwrap();
    let mut rows = statement.query([]).unwrap();
    let mut list = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        list.push(R::read(&mut Reader::new(row)).unwrap());
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, ..ProptestConfig::default() })]
    #[test]
    fn everything_reads_back_identical(seed: u64) {
        let mut sample = Sample::new(seed);
        let (folder, mut store) = fresh();
        let the_loop = sample.a_loop();
        let first = Whole::random(&mut sample, the_loop);
        let id = first.state.loop_.id.clone();
        write(&mut store, |tx| {
            create(tx, &first.state.loop_);
            tx.apply(&first.puts()).unwrap();
            tx.apply(&first.appends()).unwrap();
        });
        prop_assert_eq!(&Whole::read(&mut store, &id), &first);

        // Every row again with other values, under another slug half of the time.
        let mut the_loop = sample.a_loop();
        the_loop.id = id.clone();
        if sample.below(2) == 0 {
            the_loop.slug = first.state.loop_.slug.clone();
        }
        let mut second = Whole::random(&mut sample, the_loop);
        second.state.tasks = first.state.tasks.iter().enumerate()
            .map(|(n, task)| sample.task(task.taskid.clone(), u32::try_from(n).unwrap())).collect();
        second.steps = first.steps.iter().map(|step| sample.step(step.seq)).collect();
        second.state.open_step = second.steps.iter().rfind(|s| s.ended_at.is_none()).cloned();
        (second.events, second.memories) = (first.events.clone(), first.memories.clone());
        write(&mut store, |tx| {
            tx.apply(&[Write::PutLoop(second.state.loop_.clone())]).unwrap();
            tx.apply(&second.puts()).unwrap();
        });
        drop(store);
        let mut store = Store::open(folder.path()).unwrap();
        prop_assert_eq!(&Whole::read(&mut store, &id), &second);
    }
}

#[test]
fn the_schema_has_the_columns_of_the_records() {
    let (_folder, store) = fresh();
    for sql in [
        model::Loop::sql(),
        model::Phase::sql(),
        model::Task::sql(),
        model::Event::sql(),
        model::Step::sql(),
        model::StepTotal::sql(),
        model::Memory::sql(),
    ] {
        let mut statement = store.db.prepare("SELECT name FROM pragma_table_info(?1)").unwrap();
        let names = statement.query_map([sql.table], |row| row.get(0)).unwrap();
        let mut names: Vec<String> = names.map(Result::unwrap).collect();
        // What the host alone keeps.
        let hosts = ["loop_key", "rank", "logic", "logic_version"];
        names.retain(|name| !hosts.contains(&name.as_str()));
        assert_eq!(names, sql.names, "table {}", sql.table);
    }
}

/// Applies `writes` to a loop that has event 1 and lesson 1, and expects a refusal that
/// says `words` and leaves everything as it was.
#[track_caller]
fn refused(writes: Vec<Write>, words: &[&str]) {
    let (_folder, mut store) = fresh();
    let mut sample = Sample::new(1);
    let whole = Whole {
        events: vec![sample.event(1)],
        memories: vec![sample.memory(1)],
        ..Whole::random(&mut sample, a_loop(1))
    };
    write(&mut store, |tx| {
        create(tx, &whole.state.loop_);
        create(tx, &a_loop(2));
        tx.apply(&whole.puts()).unwrap();
        tx.apply(&whole.appends()).unwrap();
    });
    let before = Whole::read(&mut store, "loop-1");

    let tx = store.write().unwrap();
    // A write that works goes first: it must not stay either.
    tx.apply(&[Write::PutTask(("loop-1".into(), sample.task("new".into(), 99)))]).unwrap();
    says(&tx.apply(&writes).unwrap_err(), words);
    assert!(matches!(tx.apply(&writes), Err(StoreError::Failed)));
    assert!(matches!(tx.commit(), Err(StoreError::Failed)));
    assert_eq!(Whole::read(&mut store, "loop-1"), before);
    assert_eq!(slugs(&mut store), ["slug-1", "slug-2"]);
}

#[test]
fn refused_writes_say_why_and_change_nothing() {
    let mut sample = Sample::new(2);
    let no = || "no-such-loop".to_owned();
    let of = || "loop-1".to_owned();
    let unknown = ["no loop with the id no-such-loop"];
    refused(vec![Write::PutLoop(model::Loop { id: no(), ..a_loop(3) })], &unknown);
    refused(vec![Write::PutPhase((no(), sample.phase("qa")))], &unknown);
    refused(vec![Write::PutTask((no(), sample.task("T1".into(), 0)))], &unknown);
    refused(vec![Write::AppendEvent((no(), sample.event(1)))], &unknown);
    refused(vec![Write::PutStep((no(), sample.step(1)))], &unknown);
    refused(vec![Write::PutStepTotal((no(), sample.total(None, "qa")))], &unknown);
    refused(vec![Write::AppendMemory((no(), sample.memory(1)))], &unknown);

    let same_id = model::Loop { id: of(), ..a_loop(3) };
    refused(vec![Write::CreateLoop(same_id)], &["id loop-1", "exists already"]);
    let same_slug = model::Loop { slug: "slug-1".into(), ..a_loop(3) };
    refused(vec![Write::CreateLoop(same_slug.clone())], &["slug slug-1", ROOT, "exists already"]);
    let renamed = model::Loop { id: "loop-2".into(), ..same_slug };
    refused(vec![Write::PutLoop(renamed)], &["slug slug-1", ROOT, "exists already"]);
    let homeless = model::Loop { project_id: "nobody".into(), ..a_loop(3) };
    refused(vec![Write::CreateLoop(homeless)], &["no project with the id nobody"]);

    refused(
        vec![Write::AppendEvent((of(), sample.event(2))), Write::AppendEvent((of(), sample.event(1)))],
        &["loop-1 already has event number 1"],
    );
    refused(vec![Write::AppendMemory((of(), sample.memory(1)))], &["already has lesson number 1"]);

    let too_large = u64::try_from(i64::MAX).unwrap() + 1;
    let mut large = a_loop(1);
    large.marks.log_bytes = too_large;
    refused(vec![Write::PutLoop(large)], &["9223372036854775808", "loop.marks_log_bytes"]);
    refused(vec![Write::AppendEvent((of(), sample.event(u64::MAX)))], &["event.seq"]);
    let total = model::StepTotal { agent_ms: too_large, ..sample.total(None, "qa") };
    refused(vec![Write::PutStepTotal((of(), total))], &["step_total.agent_ms"]);
}

#[test]
fn task_ids_are_the_same_in_either_case() {
    let (_folder, mut store) = fresh();
    let mut sample = Sample::new(3);
    let newer = sample.task("t1".into(), 1);
    write(&mut store, |tx| {
        create(tx, &a_loop(1));
        let of = || "loop-1".to_owned();
        tx.apply(&[
            Write::PutTask((of(), sample.task("T1".into(), 0))),
            Write::PutTask((of(), newer.clone())),
        ])
        .unwrap();
    });
    let state = store.read().unwrap().loop_state_by_id("loop-1").unwrap().unwrap();
    assert_eq!(state.tasks, [newer]);
}

#[test]
fn a_dropped_transaction_never_happened() {
    let (_folder, mut store) = fresh();
    let tx = store.write().unwrap();
    create(&tx, &a_loop(1));
    drop(tx);
    assert_eq!(slugs(&mut store), [""; 0]);
    write(&mut store, |tx| create(tx, &a_loop(1)));
    assert_eq!(slugs(&mut store), ["slug-1"]);
}

#[test]
fn a_read_transaction_refuses_to_write() {
    let (_folder, mut store) = fresh();
    let tx = store.read().unwrap();
    let error = tx.apply(&[Write::CreateLoop(a_loop(1))]).unwrap_err();
    says(&error, &["only reads"]);
    tx.commit().unwrap();
    assert_eq!(slugs(&mut store), [""; 0]);
}

#[test]
fn a_list_has_the_loops_of_all_roots_newest_first() {
    let (_folder, mut store) = fresh();
    let touched = [5, 9, 9, 1, 7];
    write(&mut store, |tx| {
        let other = ProjectRow {
            id: "other".into(),
            name: "other".into(),
            remote_key: Some("example.org/other".into()),
            repo_key: None,
        };
        tx.register_root(&other, "/other", None, 1).unwrap();
        for (n, updated_at) in (0..).zip(touched) {
            let mut the_loop = model::Loop { updated_at, finished_at: None, ..a_loop(n) };
            match n {
                0 => the_loop.finished_at = Some(5),
                3 => the_loop.project_root = "/elsewhere".into(),
                4 => the_loop.project_id = "other".into(),
                _ => {}
            }
            create(tx, &the_loop);
        }
        let mut sample = Sample::new(4);
        for (n, status) in (0..).zip(["b", "a", "b", ""]) {
            let task = model::Task { status: status.into(), ..sample.task(format!("T{n}"), n) };
            tx.apply(&[Write::PutTask(("loop-2".into(), task))]).unwrap();
        }
    });
    let tx = store.read().unwrap();
    let page = |include_finished, limit, offset| {
        let filter = tools::LoopFilter { include_finished, limit, offset };
        match tx.answer(PROJECT, ROOT, &tools::Query::LoopList(filter)).unwrap() {
            Some(tools::Answer::LoopList(page)) => page,
            other => panic!("another query's answer: {other:?}"),
        }
    };
    let names =
        |page: &tools::LoopPage| page.loops.iter().map(|found| found.slug.clone()).collect::<Vec<_>>();
    let all = page(true, 10, 0);
    assert_eq!((names(&all).join(" "), all.total), ("slug-1 slug-2 slug-0 slug-3".into(), 4));
    let active = page(false, 10, 0);
    assert_eq!((names(&active).join(" "), active.total), ("slug-1 slug-2 slug-3".into(), 3));
    let part = page(true, 2, 1);
    assert_eq!((names(&part).join(" "), part.total), ("slug-2 slug-0".into(), 4));
    let counts: Vec<_> = part.loops[0].tasks.iter().map(|c| (c.status.as_str(), c.count)).collect();
    assert_eq!(counts, [("", 1), ("a", 1), ("b", 2)]);
    assert!(part.loops[1].tasks.is_empty());
    assert_eq!(all.loops[3].project_root, "/elsewhere");
    assert_eq!(page(true, 10, 9), tools::LoopPage { loops: vec![], total: 4 });
}

#[test]
fn projects_are_found_by_root_and_keys() {
    let (_folder, mut store) = fresh();
    let row = |id: &str, remote: Option<&str>, repo: Option<&str>| ProjectRow {
        id: id.into(),
        name: "n".into(),
        remote_key: remote.map(Into::into),
        repo_key: repo.map(Into::into),
    };
    write(&mut store, |tx| {
        tx.register_root(&row("new", Some("example.org/a"), None), "/new", None, 9).unwrap();
        tx.register_root(&row("old", Some("example.org/a"), None), "/old", None, 3).unwrap();
        // The second root fills in what is missing and changes nothing else.
        tx.register_root(&row("old", Some("example.org/b"), Some("/old/.git")), "/old2", None, 4).unwrap();
        // A root keeps its project.
        tx.register_root(&row("new", None, None), "/old", None, 5).unwrap();
    });
    let tx = store.read().unwrap();
    let old = row("old", Some("example.org/a"), Some("/old/.git"));
    assert_eq!(tx.project_of_root("/old").unwrap().unwrap().project, old);
    assert_eq!(tx.project_of_root("/old2").unwrap().unwrap().project, old);
    assert_eq!(tx.project_of_root("/none").unwrap(), None);
    assert_eq!(tx.project_of_remote_key("example.org/a").unwrap().as_ref(), Some(&old));
    assert_eq!(tx.project_of_repo_key("/old/.git").unwrap().as_ref(), Some(&old));
    assert_eq!(tx.project_of_remote_key("example.org/b").unwrap(), None);
}

#[test]
fn a_damaged_row_is_an_error_that_names_the_column() {
    let cases = [
        ("UPDATE task SET position = -1", "column position"),
        ("UPDATE task SET retries = 1 << 40", "column retries"),
        ("UPDATE task SET depends_on = '[1]'", "column depends_on"),
        ("UPDATE loop SET now_agent = 'x', now_step = NULL, now_since = NULL", "column now_step"),
    ];
    for (damage, word) in cases {
        let (_folder, mut store) = fresh();
        write(&mut store, |tx| {
            create(tx, &model::Loop { now: None, ..a_loop(1) });
            let task = Sample::new(5).task("T1".into(), 0);
            tx.apply(&[Write::PutTask(("loop-1".into(), task))]).unwrap();
        });
        store.db.execute_batch(damage).unwrap();
        let path = store.path().to_owned();
        let error = store.read().unwrap().loop_state_by_id("loop-1").unwrap_err();
        says(&error, &["damaged", word, path.to_str().unwrap()]);
    }
}
