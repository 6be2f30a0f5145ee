//! Goals with real files, real programs and a real database: what the server reads
//! itself, and what no word of a caller changes.

use loop_state_tests::{SLUG, World, look};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, Instant};

const CONFIG: &str = "\
name: demo
safety:
  checks:
    - {target: overall, name: report, mode: objective, statement: s, detector: {type: file_exists, path: report.md, non_empty: true}}
    - {target: overall, name: words, mode: objective, statement: s, detector: {type: regex_match, artifact: report.md, pattern: '^done$'}}
";

fn with_config(config: &str) -> World {
    let world = World::new();
    fs::write(world.project().join("goals.yaml"), config).expect("a file");
    world
}

fn script(command: &str, args: &[&str]) -> String {
    let args = json!(args);
    format!(
        "name: s\nvalidations:\n  - {{target: overall, name: run, mode: objective, statement: s, detector: {{type: script, command: {command}, args: {args}}}}}\n"
    )
}

fn gate() -> Value {
    json!({ "config_path": "goals.yaml", "target": "overall", "run_id": SLUG })
}

#[test]
fn evidence_comes_and_goes() {
    let world = with_config(CONFIG);
    let mut client = world.client_with_loop();
    client.ok("loop_setField", json!({ "field": "goal_config", "value": "goals.yaml" }));
    assert!(world.view("loop.md").contains("no ruling yet"));
    let report = world.project().join("report.md");
    let steps: [(&str, &dyn Fn(), bool); 6] = [
        ("nothing is there", &|| {}, false),
        ("a folder", &|| fs::create_dir(&report).expect("a folder"), false),
        (
            "an empty file",
            &|| {
                fs::remove_dir(&report).expect("gone");
                fs::write(&report, "").expect("a file")
            },
            false,
        ),
        ("the report", &|| fs::write(&report, "it is\ndone\n").expect("a file"), false),
        ("all of a line", &|| fs::write(&report, "done").expect("a file"), true),
        (
            "a link that leaves",
            &|| {
                let outside = world.top().join("outside.md");
                fs::rename(&report, &outside).expect("moved");
                symlink(outside, &report).expect("a link");
            },
            false,
        ),
    ];
    for (what, prepare, satisfied) in steps {
        prepare();
        assert_eq!(client.ok("loopsmith_gate_evaluate", gate())["satisfied"], satisfied, "{what}");
        let shown = if satisfied { "- [x] overall: satisfied" } else { "- [ ] overall: not satisfied" };
        assert!(world.view("loop.md").contains(shown), "{what}: {}", world.view("loop.md"));
    }
    let ledger = client.ok("loopsmith_ledger", json!({ "run_id": SLUG, "kind": "goal_revoked" }));
    assert_eq!(ledger["entries"].as_array().map(Vec::len), Some(1));
    assert_eq!(ledger["broken"], Value::Null);
    let audit = client.ok("loop_audit", json!({}));
    assert!(audit.to_string().contains("goal-unsatisfied"), "{audit}");
}

/// Whoever edits the database leaves a chain that does not hold.
#[test]
fn an_edited_ledger_shows() {
    let world = with_config(CONFIG);
    let mut client = world.client_with_loop();
    client.ok("loopsmith_gate_evaluate", gate());
    for (sql, broken) in [
        ("UPDATE ledger SET detail = 'overall: satisfied' WHERE seq = 2", "entry 2 is not"),
        ("DELETE FROM ledger WHERE seq = 1", "entry 2 stands where entry 1 belongs"),
    ] {
        let db = rusqlite::Connection::open(world.database()).expect("the database");
        db.execute(sql, []).expect("an edit");
        let ledger = client.ok("loopsmith_ledger", json!({ "run_id": SLUG }));
        assert!(ledger["broken"].as_str().is_some_and(|why| why.starts_with(broken)), "{ledger}");
    }
}

#[test]
fn scripts_run_only_where_they_are_allowed() {
    let world = with_config(&script("sh", &["-c", "echo fine; exit 0"]));
    let mut client = world.client_with_loop();
    let reply = client.ok("loopsmith_gate_evaluate", gate());
    assert_eq!(reply["checks"][0]["outcome"], "unavailable");
    assert!(reply["checks"][0]["evidence"].to_string().contains("--allow-scripts"), "{reply}");
    client.end();
    for (variable, argument) in [(Some("1"), None), (None, Some("--allow-scripts"))] {
        let mut world = with_config(&script("sh", &["-c", "echo fine; exit 0"]));
        world.env.extend(variable.map(|v| ("LOOP_STATE_ALLOW_SCRIPTS".into(), v.into())));
        world.args.extend(argument.map(Into::into));
        world.env.push(("LOOP_STATE_SCRIPT_SECONDS".into(), "1".into()));
        let mut client = world.client_with_loop();
        let reply = client.ok("loopsmith_gate_evaluate", gate());
        assert_eq!((&reply["satisfied"], &reply["checks"][0]["source"]), (&json!(true), &json!("script")));
        for (text, outcome) in [
            (script("sh", &["-c", "exit 3"]), "failed"),
            (script("no-such-program", &[]), "unavailable"),
            (script("./check.sh", &[]), "unavailable"),
            (script("sh", &["-c", "kill -9 $$"]), "failed"),
            (script("sleep", &["1000"]), "unavailable"),
        ] {
            fs::write(world.project().join("goals.yaml"), text.clone()).expect("a file");
            let reply = client.ok("loopsmith_gate_evaluate", gate());
            assert_eq!(reply["checks"][0]["outcome"], outcome, "{text}: {reply}");
        }
    }
}

/// While a program runs the server answers others, keeps nothing locked, and ends
/// the program when the call is cancelled.
#[test]
fn others_are_answered_while_a_script_runs() {
    let mut world =
        with_config(&script("sh", &["-c", "touch started; while [ ! -e go ]; do sleep 0.01; done"]));
    world.args.push("--allow-scripts".into());
    let mut client = world.client_with_loop();
    let message = client.message("loopsmith_gate_evaluate", gate());
    client.send(&message);
    let started = world.project().join("started");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !started.exists() {
        assert!(Instant::now() < deadline, "the program does not start");
        std::thread::yield_now();
    }
    // Two mutations and a read, each answered before the gate is.
    for (tool, arguments) in [
        ("loop_setPhase", json!({ "phase": "plan" })),
        ("event_append", json!({ "event": "note" })),
        ("loop_get", json!({})),
    ] {
        let other = client.message(tool, arguments);
        client.send(&other);
        let answer = client.receive().expect("an answer");
        assert_eq!(answer["id"], other["id"], "{tool}");
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    fs::write(world.project().join("go"), "").expect("a file");
    let answer = client.receive().expect("an answer");
    assert_eq!(answer["id"], message["id"]);
    assert_eq!(answer["result"]["structuredContent"]["satisfied"], true, "{answer}");

    fs::remove_file(world.project().join("go")).expect("gone");
    fs::remove_file(&started).expect("gone");
    let message = client.message("loopsmith_gate_evaluate", gate());
    client.send(&message);
    while !started.exists() {
        assert!(Instant::now() < deadline, "the program does not start");
        std::thread::yield_now();
    }
    let before = look::number(&world.database(), "SELECT count(*) FROM ledger");
    client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": message["id"] } }));
    assert_eq!(client.ok("loop_get", json!({}))["loop"]["phase"], "plan");
    client.end();
    assert_eq!(
        look::number(&world.database(), "SELECT count(*) FROM ledger"),
        before,
        "nothing was recorded"
    );
}

/// Everything that is wrong with a configuration comes in one answer, with its line.
#[test]
fn a_configuration_is_told_all_its_faults() {
    let text = "\
name: ''
graph:
  nodes:
    - {id: a, role: builder, instruction: x, depends_on: [a, ghost], weight: -1}
    - {id: a, role: captain, instruction: x}
validations:
  - {target: nobody, name: n, mode: objective, statement: s, detector: {type: regex_match, artifact: f, pattern: '('}}
  - {target: overall, name: m, mode: objective, statement: s, detector: {type: script, command: '', args: []}}
surprise: 1
";
    let world = with_config(text);
    let mut client = world.client();
    let refused = client.refused("loopsmith_plan", json!({ "config_path": "goals.yaml" }));
    for part in ["(line 4)", "(line 5)", "(line 7)", "(line 8)", "ghost", "captain", "nobody", "surprise"] {
        assert!(refused.contains(part), "{part}: {refused}");
    }
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &(0..12)
            .map(|n| {
                let name = char::from(b'b' + n);
                let before = char::from(b'a' + n);
                format!("{name}: &{name} [{}]\n", vec![format!("*{before}"); 9].join(","))
            })
            .collect::<String>();
    fs::write(world.project().join("goals.yaml"), bomb).expect("a file");
    let started = Instant::now();
    client.refused("loopsmith_plan", json!({ "config_path": "goals.yaml" }));
    assert!(started.elapsed() < Duration::from_secs(5));
    symlink("/etc/hostname", world.project().join("out.yaml")).expect("a link");
    let refused = client.refused("loopsmith_plan", json!({ "config_path": "out.yaml" }));
    assert!(refused.contains("leads out of the project root"), "{refused}");
}

/// The run of a loop leaves and comes back with it; a later loop of the slug begins
/// a run of its own.
#[test]
fn a_run_travels_with_its_loop() {
    let world = with_config(CONFIG);
    let mut client = world.client_with_loop();
    fs::write(world.project().join("report.md"), "done").expect("a file");
    client.ok("loopsmith_gate_evaluate", gate());
    client.ok("loopsmith_scratchpad", json!({ "run_id": SLUG, "key": "k", "value": "v" }));
    client.ok("loop_finish", json!({ "status": "aborted" }));
    let ledger = client.ok("loopsmith_ledger", json!({ "run_id": SLUG }));
    let archive = client.ok("loop_archive", json!({}))["archiveId"].clone();
    assert_eq!(client.ok("loopsmith_goal_states", json!({ "run_id": SLUG })), json!({}));
    client.ok("loop_init", json!({ "goal": "another" }));
    assert_eq!(
        client.ok("loopsmith_ledger", json!({ "run_id": SLUG }))["entries"].as_array().map(Vec::len),
        Some(1)
    );
    client.ok("archive_restore", json!({ "archiveId": archive, "asSlug": "older" }));
    let older = client.ok("loopsmith_ledger", json!({ "run_id": "older" }));
    assert_eq!(older, ledger, "sealed as it was");
    assert_eq!(
        client.ok("loopsmith_goal_states", json!({ "run_id": "older" }))["overall"]["satisfied"],
        true
    );
    assert_eq!(client.ok("loopsmith_scratchpad", json!({ "run_id": "older", "key": "k" }))["value"], "v");
}

/// What the command line says of a plan and of verdicts, and its exit status.
#[test]
fn plans_and_verdicts_for_people() {
    let graph = "graph:\n  nodes:\n    - {id: design, role: builder, instruction: x, weight: 2}\n    - {id: build, role: builder, instruction: x, depends_on: [design]}\n";
    let world = with_config(&format!("{CONFIG}{graph}"));
    let run = |arguments: &[&str]| {
        let done = world.command().args(arguments).env("COLUMNS", "60").output().expect("it runs");
        let said = [done.stdout, done.stderr].concat();
        (done.status.code(), String::from_utf8(said).expect("text"))
    };
    let (status, drawn) = run(&["plan", "goals.yaml"]);
    assert_eq!(status, Some(0), "{drawn}");
    for part in ["waves\n   0  design\n   1  build\n", "design > build", "| design ####"] {
        assert!(drawn.contains(part), "{part}: {drawn}");
    }
    let (status, said) = run(&["gate", "goals.yaml"]);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.starts_with("overall is not satisfied: ") && said.contains("report.md is not there"),
        "{said}"
    );
    fs::write(world.project().join("report.md"), "done").expect("a file");
    let (status, said) = run(&["gate", "goals.yaml", "overall", "--json"]);
    assert_eq!(status, Some(0), "{said}");
    let answer: Value = serde_json::from_str(&said).expect("JSON");
    assert_eq!(answer["satisfied"], true);
    for wrong in [["gate", "goals.yaml", "nobody"], ["gate", "none.yaml", "overall"]] {
        let (status, said) = run(&wrong);
        assert_eq!(status, Some(2), "{said}");
    }
    assert_eq!(run(&["plan", "none.yaml"]).0, Some(1));
}
