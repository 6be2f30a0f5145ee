//! The component's share of a call: a fresh instance, the records in, the
//! decision, the records and views out. No database and no files in the timed
//! part.
#![allow(missing_docs, reason = "criterion's macros make public functions")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use loop_state_mcp::cancel::Cancel;
use loop_state_mcp::contract::tools::{
    Answer, Call, Decision, EvidenceFile, Fact, Facts, FileFact, FoundFile, FoundLoop, Place, Project,
    ProjectEvidence, Query,
};
use loop_state_mcp::evidence::Scripts;
use loop_state_mcp::logic::Logic;
use loop_state_mcp::mcp::{Backend, Reply};
use loop_state_mcp::progress::Progress;
use loop_state_mcp::repo::{ProjectRoot, Surroundings};
use loop_state_mcp::service::{Parts, Seams, Service, VERSION};
use loop_state_mcp::store::Store;
use serde_json::{Value, json};

const SLUG: &str = "demo";

/// A call on a loop of that many tasks, with all that it is decided from.
struct Prepared {
    call: Call,
    /// Before and after the logic's question was answered.
    rounds: [Facts; 2],
}

/// Plays a loop up to its first task at work and takes it out of the store.
fn prepare(tasks: usize) -> Prepared {
    let dir = tempfile::tempdir().expect("a temporary folder");
    let (project, state) = (dir.path().join("project"), dir.path().join("state"));
    std::fs::create_dir(&project).expect("a new folder");
    let root = ProjectRoot::find(Surroundings {
        flag: Some(OsString::from(&project)),
        variable: None,
        directory: std::env::current_dir(),
        homes: Vec::new(),
    })
    .expect("the folder was just made");
    let service = Service::new(Parts {
        logic: Logic::embedded(),
        root: Ok(root.clone()),
        state_dir: Ok(state.clone()),
        seams: Seams::System,
        scripts: Scripts::default(),
        progress: Progress::default(),
    });
    let ok = |tool: &str, arguments: Value| {
        let Value::Object(mut arguments) = arguments else { panic!("{tool}: not an object") };
        arguments.insert("loopSlug".to_owned(), SLUG.into());
        let reply = service.call(tool, arguments, &Cancel::default());
        assert!(matches!(reply, Reply::Done(_)), "{tool}: {reply:?}");
    };
    ok("loop_init", json!({ "goal": "Users can sign in with OAuth" }));
    let plan: Vec<_> = (1..=tasks)
        .map(|n| json!({ "taskid": format!("T{n}"), "title": format!("Part {n} of the sign-in"), "tech": "rust" }))
        .collect();
    ok("tasks_derive", json!({ "tasks": plan }));
    ok("task_setStatus", json!({ "taskid": "T1", "status": "issue-open" }));
    ok("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }));

    let mut store = Store::open(&state).expect("the service made it");
    let tx = store.read().expect("a transaction");
    let stored =
        tx.project_of_root(&root.path).expect("a project").expect("registered by the first loop").project;
    let query = Query::LoopState(SLUG.to_owned());
    let answer = tx.answer(&stored.id, &root.path, &query).expect("a database").expect("the loop");
    let unasked = Facts {
        now: 1_787_044_320_000,
        fresh_id: "00000000-0000-4000-8000-000000000001".to_owned(),
        version: VERSION.to_owned(),
        project: Project {
            id: stored.id,
            name: stored.name,
            root: root.path.clone(),
            key: None,
            evidence: ProjectEvidence::Folder,
            note: None,
            below: None,
        },
        place: Place {
            root_source: root.source,
            root_kind: root.kind,
            loops_folder: ".projects/loops".to_owned(),
            root_flag: String::new(),
            root_variable: String::new(),
        },
        answers: Vec::new(),
    };
    let asked = Facts { answers: vec![Fact { query, answer }], ..unasked.clone() };
    let arguments = json!({ "loopSlug": SLUG, "taskid": "T1", "status": "blocked" }).to_string();
    Prepared { call: Call { tool: "task_setStatus".to_owned(), arguments }, rounds: [unasked, asked] }
}

/// A plan of a graph of that many nodes, from the text of its configuration on.
fn prepare_plan(nodes: usize, unasked: &Facts) -> Prepared {
    let nodes: Vec<_> = (0..nodes)
        .map(|n| {
            let on: BTreeSet<_> = [n / 2, n / 3].into_iter().filter(|on| *on < n).collect();
            let on: Vec<_> = on.into_iter().map(|on| format!("n{on}")).collect();
            json!({ "id": format!("n{n}"), "role": "builder", "instruction": "build it", "depends_on": on, "weight": 1 + n % 5 })
        })
        .collect();
    let text = json!({ "name": "bench", "execution": { "graph": { "nodes": nodes } } }).to_string();
    let path = "graph.json";
    let query =
        Query::Evidence(EvidenceFile { workdir: String::new(), path: path.to_owned(), content: true });
    let file =
        FoundFile { bytes: text.len() as u64, sha256: "0".repeat(64), content: Some(text.into_bytes()) };
    let asked = Facts {
        answers: vec![Fact { query, answer: Answer::Evidence(FileFact::File(file)) }],
        ..unasked.clone()
    };
    let arguments = json!({ "config_path": path }).to_string();
    Prepared { call: Call { tool: "loopsmith_plan".to_owned(), arguments }, rounds: [unasked.clone(), asked] }
}

fn decide(logic: &Logic, prepared: &Prepared) {
    let [unasked, asked] = &prepared.rounds;
    let mut session = logic.session(&Cancel::default()).expect("an instance");
    let first = session.decide(&prepared.call, unasked).expect("a decision");
    assert!(matches!(first, Decision::Need(_)));
    let second = session.decide(&prepared.call, asked).expect("a decision");
    assert!(matches!(&second, Decision::Done(outcome) if !outcome.refused), "{second:?}");
    black_box(second);
}

fn component(c: &mut Criterion) {
    let logic = Logic::embedded();
    let mut group = c.benchmark_group("component");
    group.bench_function("load", |b| {
        b.iter(|| Logic::embedded().prepare().expect("the built-in logic loads"))
    });
    group.bench_function("session", |b| b.iter(|| logic.session(&Cancel::default()).expect("an instance")));
    for tasks in [20, 500] {
        let prepared = prepare(tasks);
        group.bench_with_input(BenchmarkId::new("set_status", tasks), &prepared, |b, prepared| {
            b.iter(|| decide(&logic, prepared));
        });
        if tasks == 500 {
            let plan = prepare_plan(1_000, &prepared.rounds[0]);
            group.bench_with_input(BenchmarkId::new("plan", 1_000), &plan, |b, plan| {
                b.iter(|| decide(&logic, plan));
            });
            let Answer::LoopState(FoundLoop { here: Some(state), .. }) =
                &prepared.rounds[1].answers[0].answer
            else {
                panic!("the loop was just made");
            };
            group.bench_with_input(BenchmarkId::new("render", tasks), state, |b, state| {
                b.iter(|| {
                    let mut session = logic.session(&Cancel::default()).expect("an instance");
                    session.render(state, &[], VERSION).expect("views")
                });
            });
        }
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default().without_plots().measurement_time(std::time::Duration::from_secs(3));
    targets = component
}
criterion_main!(benches);
