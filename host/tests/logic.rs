//! A logic that misbehaves is an error of its call and of nothing else.

use std::thread;
use std::time::{Duration, Instant};

use loop_state_mcp::cancel::Cancel;
use loop_state_mcp::contract::{model, tools};
use loop_state_mcp::logic::{self, Limits, Logic, LogicError};
use loop_state_test_components::{FAULTY, FAULTY_WASI};
use tempfile::TempDir;
use wasmtime::component::Component;

/// Far above what any machine needs, far below the default time of a call.
const SOON: Duration = Duration::from_secs(5);

const LIMITS: Limits =
    Limits { memory_bytes: 32 << 20, call_time: Duration::from_millis(200), stack_bytes: 512 * 1024 };

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn load(bytes: &[u8], limits: Limits) -> Result<Logic, LogicError> {
    let folder = folder();
    let path = folder.path().join("logic.wasm");
    std::fs::write(&path, bytes).unwrap();
    Logic::from_file_within(&path, None, limits)
}

fn call(tool: &str) -> tools::Call {
    tools::Call { tool: tool.to_owned(), arguments: "{}".to_owned() }
}

fn facts() -> tools::Facts {
    tools::Facts {
        now: 0,
        fresh_id: String::new(),
        version: String::new(),
        project: tools::Project {
            id: String::new(),
            name: String::new(),
            root: String::new(),
            key: None,
            evidence: tools::ProjectEvidence::Folder,
            note: None,
            below: None,
        },
        place: tools::Place {
            root_source: tools::RootSource::Flag,
            root_kind: tools::RootKind::Folder,
            loops_folder: ".projects/loops".to_owned(),
            root_flag: String::new(),
            root_variable: String::new(),
        },
        answers: Vec::new(),
    }
}

fn decide(logic: &Logic, tool: &str) -> Result<String, LogicError> {
    let mut session = logic.session(&Cancel::default())?;
    match session.decide(&call(tool), &facts())? {
        tools::Decision::Done(outcome) => Ok(outcome.reply),
        tools::Decision::Need(queries) => panic!("asked for {queries:?}"),
    }
}

/// What happened, without what differs from run to run.
fn kind(result: Result<String, LogicError>) -> &'static str {
    match result {
        Ok(_) => "ok",
        Err(LogicError::Panicked { .. }) => "panicked",
        Err(LogicError::TimedOut { .. }) => "timed out",
        Err(LogicError::Cancelled) => "cancelled",
        Err(LogicError::OutOfMemory { .. }) => "out of memory",
        Err(LogicError::OutOfStack) => "out of stack",
        Err(LogicError::Trapped { .. }) => "trapped",
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn each_fault_is_named_and_the_next_call_works() {
    for (component, prepare) in [(FAULTY, false), (FAULTY, true), (FAULTY_WASI, false), (FAULTY_WASI, true)] {
        let logic = load(component, LIMITS).unwrap();
        let decide = |tool: &str| {
            if prepare {
                logic.prepare().unwrap();
            }
            decide(&logic, tool)
        };
        for (tool, expected) in [
            ("ok", "ok"),
            ("panic", "panicked"),
            ("index", "panicked"),
            ("spin", "timed out"),
            ("bomb", "out of memory"),
            ("recurse", "out of stack"),
        ] {
            let started = Instant::now();
            assert_eq!(kind(decide(tool)), expected, "{tool}");
            assert!(started.elapsed() < SOON, "{tool} took too long");
            assert_eq!(kind(decide("ok")), "ok", "after {tool}");
        }
    }
}

#[test]
fn a_panic_is_told_with_its_place() {
    for (component, name) in [(FAULTY, "plain"), (FAULTY_WASI, "wasi")] {
        let logic = load(component, LIMITS).unwrap();
        let text = decide(&logic, "panic").unwrap_err().to_string();
        for part in
            ["tests/components/faulty/src/lib.rs:", "this tool always panics: {}", "nothing was changed"]
        {
            assert!(text.contains(part), "{name}: {text}");
        }
        let text = decide(&logic, "index").unwrap_err().to_string();
        assert!(text.contains("the len is 3 but the index is 7"), "{name}: {text}");
    }
}

#[test]
fn a_logic_that_does_not_say_who_it_is_is_refused_when_it_is_loaded() {
    assert_eq!(load(FAULTY, LIMITS).unwrap().identity().name, "faulty");
    let mut silent = FAULTY.to_vec();
    for at in 0..silent.len() {
        if silent[at..].starts_with(b"faulty") {
            silent[at..at + 6].copy_from_slice(b"silent");
        }
    }
    let error = load(&silent, LIMITS).unwrap_err();
    assert!(matches!(error, LogicError::Mute { .. }), "{error}");
    let text = error.to_string();
    for part in ["logic.wasm", "this logic does not say who it is", "`about`", "--logic"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn an_instance_that_failed_stays_failed() {
    let logic = load(FAULTY, LIMITS).unwrap();
    let mut session = logic.session(&Cancel::default()).unwrap();
    for tool in ["panic", "ok", "ok"] {
        assert!(session.decide(&call(tool), &facts()).is_err(), "{tool}");
    }
}

#[test]
fn one_session_serves_many_calls() {
    let logic = load(FAULTY, LIMITS).unwrap();
    let mut session = logic.session(&Cancel::default()).unwrap();
    for _ in 0..100 {
        session.decide(&call("ok"), &facts()).unwrap();
    }
    assert_eq!(session.log_lines(&[]).unwrap(), "");
}

#[test]
fn nothing_passes_from_one_session_to_the_next() {
    let logic = load(FAULTY, LIMITS).unwrap();
    for round in 0..3 {
        for prepared in [true, false] {
            if prepared {
                logic.prepare().unwrap();
                logic.prepare().unwrap();
            }
            let mut session = logic.session(&Cancel::default()).unwrap();
            for said in ["0", "1"] {
                match session.decide(&call("count"), &facts()).unwrap() {
                    tools::Decision::Done(outcome) => assert_eq!(outcome.reply, said, "in round {round}"),
                    tools::Decision::Need(queries) => panic!("asked for {queries:?}"),
                }
            }
            session.end();
        }
    }
}

#[test]
fn a_call_is_cancelled_from_another_thread() {
    for prepared in [false, true] {
        cancelled_from_another_thread(prepared);
    }
}

fn cancelled_from_another_thread(prepared: bool) {
    let unlimited = Limits { call_time: Duration::from_secs(3600), ..LIMITS };
    let logic = load(FAULTY, unlimited).unwrap();
    if prepared {
        logic.prepare().unwrap();
    }
    let cancel = Cancel::default();
    let mut session = logic.session(&cancel).unwrap();
    let started = Instant::now();
    thread::scope(|scope| {
        let running = scope.spawn(|| session.decide(&call("spin"), &facts()));
        cancel.cancel();
        let result = running.join().unwrap();
        assert!(matches!(result, Err(LogicError::Cancelled)), "{result:?}");
    });
    assert!(started.elapsed() < SOON);
    // Neither this session nor a new one under the same flag starts anything.
    let late = session.decide(&call("ok"), &facts());
    assert!(matches!(late, Err(LogicError::Cancelled)), "{late:?}");
    assert!(matches!(logic.session(&cancel), Err(LogicError::Cancelled)));
    assert_eq!(kind(decide(&logic, "ok")), "ok");
}

#[test]
fn calls_run_side_by_side_and_fail_alone() {
    let logic = load(FAULTY, LIMITS).unwrap();
    thread::scope(|scope| {
        for tool in ["spin", "bomb", "panic", "ok", "ok", "ok"] {
            let logic = &logic;
            scope.spawn(move || {
                let worked = decide(logic, tool).is_ok();
                assert_eq!(worked, tool == "ok", "{tool}");
            });
        }
    });
}

#[test]
fn the_embedded_logic_imports_nothing() {
    let engine = wasmtime::Engine::default();
    let component = Component::from_binary(&engine, logic::COMPONENT).unwrap();
    let imports: Vec<_> =
        component.component_type().imports(&engine).map(|(name, _)| name.to_owned()).collect();
    assert_eq!(imports, Vec::<String>::new());
}

#[test]
fn the_embedded_logic_answers() {
    let logic = Logic::embedded();
    let identity = logic.identity();
    assert!(!identity.name.is_empty() && !identity.version.is_empty());
    assert!(identity.instructions.len() <= 1500);
    logic.tools().unwrap();
    match logic.session(&Cancel::default()).unwrap().decide(&call("no such tool"), &facts()).unwrap() {
        tools::Decision::Done(outcome) => assert!(outcome.refused),
        tools::Decision::Need(queries) => panic!("asked for {queries:?}"),
    }
}

#[test]
fn the_embedded_component_runs_from_a_file_as_well() {
    let built_in = Logic::embedded();
    let loaded = load(logic::COMPONENT, Limits::default()).unwrap();
    // What the built-in one is known by was asked when it was built; the other was asked now.
    assert_eq!(built_in.identity(), loaded.identity());
    assert_eq!(built_in.tools().unwrap(), loaded.tools().unwrap());
}

#[test]
fn a_wasi_logic_sees_no_time_and_no_chance() {
    let logic = load(FAULTY_WASI, LIMITS).unwrap();
    let seen = decide(&logic, "outside").unwrap();
    assert!(seen.starts_with("0.0 "), "{seen}");
    assert_eq!(decide(&logic, "outside").unwrap(), seen);
    let started = Instant::now();
    let text = decide(&logic, "wait").unwrap_err().to_string();
    assert!(text.contains("no logic may wait"), "{text}");
    assert!(started.elapsed() < SOON);
}

#[test]
fn a_cached_logic_is_the_same_and_a_damaged_entry_is_made_anew() {
    let folder = folder();
    let path = folder.path().join("logic.wasm");
    std::fs::write(&path, FAULTY).unwrap();
    let cache = folder.path().join("cache");
    let run = || {
        let logic = Logic::from_file_within(&path, Some(&cache), LIMITS).unwrap();
        assert_eq!(kind(decide(&logic, "ok")), "ok");
        let entries: Vec<_> = std::fs::read_dir(&cache).unwrap().map(|entry| entry.unwrap().path()).collect();
        let [entry] = entries.as_slice() else {
            panic!("one entry, not {entries:?}");
        };
        (entry.clone(), std::fs::read(entry).unwrap())
    };
    let (entry, first) = run();
    assert_eq!(run(), (entry.clone(), first.clone()));
    let mut damaged = first.clone();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 0xff;
    std::fs::write(&entry, damaged).unwrap();
    assert_eq!(run(), (entry, first));
}

#[test]
fn a_useless_cache_folder_does_not_keep_a_logic_from_loading() {
    let folder = folder();
    let path = folder.path().join("logic.wasm");
    std::fs::write(&path, FAULTY).unwrap();
    let logic = Logic::from_file_within(&path, Some(&path.join("below a file")), LIMITS).unwrap();
    assert_eq!(kind(decide(&logic, "ok")), "ok");
}

#[test]
fn values_cross_the_border_unchanged() {
    let events: Vec<_> = (1..=3)
        .map(|seq| model::Event {
            seq,
            at: -1,
            event: "é\u{0}\u{10ffff}".to_owned(),
            phase: None,
            task: None,
            from: None,
            to: None,
            agent: None,
            note: None,
            evidence: None,
            issue: None,
            pr: None,
            branch: None,
        })
        .collect();
    let logic = load(FAULTY, LIMITS).unwrap();
    let mut session = logic.session(&Cancel::default()).unwrap();
    assert_eq!(session.log_lines(&events).unwrap(), "1\n2\n3\n");
    assert_eq!(decide(&logic, "é\u{0}").unwrap(), "unknown tool `é\u{0}`");
}
