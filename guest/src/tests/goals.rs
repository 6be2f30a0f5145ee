//! Goals through the tools: what makes a ruling, and what does not.

use super::bench::Bench;
use crate::digest::sha256;
use crate::model::GoalState;
use crate::tools::{ScriptRun, Write};
use serde_json::{Value, json};

const CONFIG: &str = "\
name: demo
intent:
  goals:
    - {name: works, description: it works}
safety:
  checks:
    - {target: overall, name: report, mode: objective, statement: a report exists, detector: {type: file_exists, path: out/report.md, non_empty: true}}
    - {target: overall, name: coverage, mode: objective, statement: enough coverage, detector: {type: threshold, metric: coverage, op: gte, value: 80}}
    - {target: works, name: tests, mode: objective, statement: tests pass, detector: {type: script, command: run-tests, args: []}}
    - {target: works, name: review, mode: subjective, statement: a judge agrees, detector: {type: judge, standard: it is good}}
";

const SATISFIED: [(&str, &str); 2] = [("out/report.md", "done"), ("metrics.json", r#"{"coverage": 91.5}"#)];

fn bench() -> Bench {
    let mut b = Bench::with_loop("standard");
    b.evidence.insert("goals.yaml".to_owned(), Some(CONFIG.as_bytes().to_vec()));
    b
}

fn provide(b: &mut Bench) {
    for (path, text) in SATISFIED {
        b.evidence.insert(path.to_owned(), Some(text.as_bytes().to_vec()));
    }
}

fn gate(b: &mut Bench, more: Value) -> Value {
    let mut arguments = json!({ "config_path": "goals.yaml", "target": "overall" });
    for (key, value) in more.as_object().expect("an object") {
        arguments[key] = value.clone();
    }
    b.ok("loopsmith_gate_evaluate", arguments)
}

fn outcome<'a>(reply: &'a Value, check: &str) -> (&'a str, &'a str) {
    let checks = reply["checks"].as_array().expect("a list");
    let found = checks.iter().find(|c| c["name"] == check).expect("the check");
    (found["outcome"].as_str().expect("a word"), found["source"].as_str().expect("a word"))
}

fn kinds(b: &mut Bench, run: &str) -> Vec<String> {
    let reply = b.ok("loopsmith_ledger", json!({ "run_id": run, "limit": 100 }));
    assert_eq!(reply["broken"], Value::Null);
    let entries = reply["entries"].as_array().expect("a list");
    entries.iter().map(|e| e["kind"].as_str().expect("a word").to_owned()).collect()
}

#[test]
fn a_ruling_follows_the_evidence_and_falls_with_it() {
    let mut b = bench();
    assert_eq!(gate(&mut b, json!({}))["satisfied"], false);
    provide(&mut b);
    let reply = gate(&mut b, json!({}));
    assert_eq!(
        (&reply["satisfied"], &reply["passed"], &reply["total"]),
        (&json!(true), &json!(2), &json!(2))
    );
    assert!(b.last.as_ref().is_some_and(|o| o.writes.is_empty()), "no run, no record");

    let run = json!({ "run_id": "demo" });
    assert_eq!(gate(&mut b, run.clone())["recorded"], true);
    let page = crate::render::loop_page(b.state(), "1");
    assert!(!page.contains("## Goals"), "shown once a configuration is bound");
    b.evidence.remove("out/report.md");
    assert_eq!(gate(&mut b, run.clone())["satisfied"], false);
    assert_eq!(
        kinds(&mut b, "demo"),
        ["run_started", "gate_evaluated", "goal_satisfied", "gate_evaluated", "goal_revoked"]
    );
    let states = b.ok("loopsmith_goal_states", json!({ "run_id": "demo" }));
    assert_eq!(
        (&states["overall"]["satisfied"], &states["overall"]["iteration"]),
        (&json!(false), &json!(2))
    );
}

/// A caller's word counts where nothing is recorded, and is marked as such.
#[test]
fn the_callers_word_is_never_recorded() {
    let mut b = bench();
    b.evidence.insert("out/report.md".to_owned(), Some(b"x".to_vec()));
    let claim = json!({ "metrics": { "coverage": "91.5" } });
    let reply = gate(&mut b, claim.clone());
    assert_eq!((&reply["satisfied"], outcome(&reply, "coverage")), (&json!(true), ("passed", "caller")));
    let reply = gate(&mut b, json!({ "metrics": { "coverage": 99 }, "run_id": "free run" }));
    assert_eq!((&reply["satisfied"], outcome(&reply, "coverage").0), (&json!(false), "unavailable"));
    // What is on disk wins over what is claimed.
    b.evidence.insert("metrics.json".to_owned(), Some(br#"{"coverage": 10}"#.to_vec()));
    let reply = gate(&mut b, claim);
    assert_eq!(outcome(&reply, "coverage"), ("failed", "disk"));
    for wrong in [json!({ "coverage": null }), json!({ "coverage": "much" }), json!([1])] {
        let arguments = json!({ "config_path": "goals.yaml", "target": "overall", "metrics": wrong });
        let refused = b.refused("loopsmith_gate_evaluate", arguments);
        assert!(refused.contains("metrics"), "{refused}");
    }
}

#[test]
fn scripts_and_judges() {
    let mut b = bench();
    let works = json!({ "target": "works", "run_id": "r" });
    let reply = gate(&mut b, works.clone());
    assert_eq!(outcome(&reply, "tests"), ("unavailable", "script"));
    b.scripts.insert("run-tests".to_owned(), ScriptRun::Exit((0, "ok".to_owned())));
    let episode = |b: &mut Bench, more: Value| {
        let mut arguments = json!({ "run_id": "r", "node_id": "n", "provider_id": "p", "output": "x" });
        for (key, value) in more.as_object().expect("an object") {
            arguments[key] = value.clone();
        }
        b.ok("loopsmith_record_episode", arguments)
    };
    assert_eq!(episode(&mut b, json!({}))["seq"], 1);
    let judge = |provider: &str, pass: bool| json!({ "provider_id": provider, "role": "judge", "judgment": { "check": "review", "pass": pass, "score": 1.0 } });
    episode(&mut b, judge(" P ", true));
    let reply = gate(&mut b, works.clone());
    assert_eq!(outcome(&reply, "review").0, "failed", "the builder's provider is no judge");
    assert_eq!(outcome(&reply, "tests").0, "passed");
    // A builder's episode with a judgment judges nothing, and a FAIL with a high score fails.
    let run = json!({ "target": "works", "run_id": "s" });
    let forged = json!({ "run_id": "s", "judgment": { "check": "review", "pass": true, "score": 1.0 } });
    episode(&mut b, forged);
    assert_ne!(outcome(&gate(&mut b, run.clone()), "review").0, "passed");
    let failing = json!({
        "run_id": "s", "provider_id": "q", "role": "judge",
        "judgment": { "check": "review", "pass": false, "score": 100.0 },
    });
    episode(&mut b, failing);
    assert_eq!(outcome(&gate(&mut b, run), "review").0, "failed");

    let refused =
        b.refused("loopsmith_record_episode", json!({ "run_id": "r", "node_id": "n", "output": "x" }));
    assert_eq!(refused, "missing required argument `provider_id`");
    let reply = b.ok("loopsmith_episodes", json!({ "run_id": "r", "limit": 1 }));
    assert_eq!((&reply["more"], &reply["episodes"][0]["role"]), (&json!(1), &json!("judge")));
    assert_eq!(b.ok("loopsmith_episodes", json!({ "run_id": "other" }))["episodes"], json!([]));
}

#[test]
fn an_edited_ledger_shows() {
    let mut b = bench();
    provide(&mut b);
    gate(&mut b, json!({ "run_id": "r" }));
    assert_eq!(kinds(&mut b, "r"), ["gate_evaluated", "goal_satisfied"]);
    b.runs.get_mut("r").expect("it has entries").ledger[0].detail = "overall: satisfied".to_owned();
    let reply = b.ok("loopsmith_ledger", json!({ "run_id": "r" }));
    assert!(reply["broken"].as_str().is_some_and(|why| why.starts_with("entry 1 is not what was sealed")));
}

#[test]
fn what_the_calls_of_a_loop_tell_its_run() {
    let mut b = Bench::with_loop("standard");
    b.ok(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "T1", "title": "one" }, { "taskid": "T2", "title": "two" }] }),
    );
    b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "build" }));
    for status in ["issue-open", "in-progress", "verified", "secure", "pr-open", "in-review", "merged"] {
        b.ok("task_setStatus", json!({ "taskid": "T1", "status": status, "evidence": "abc1234" }));
    }
    b.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
    b.ok("task_setStatus", json!({ "taskid": "T2", "status": "in-progress" }));
    b.ok("task_setStatus", json!({ "taskid": "T2", "status": "failed" }));
    b.ok("loop_finish", json!({ "status": "aborted" }));
    assert_eq!(
        kinds(&mut b, "demo"),
        ["run_started", "node_dispatched", "node_succeeded", "node_failed", "run_finished"]
    );
}

#[test]
fn the_scratchpad_keeps_notes_by_key() {
    let mut b = Bench::new();
    let mut pad = |more: Value| {
        let mut arguments = json!({ "run_id": "r", "key": "a/b" });
        for (key, value) in more.as_object().expect("an object") {
            arguments[key] = value.clone();
        }
        b.call("loopsmith_scratchpad", arguments)
    };
    assert_eq!(pad(json!({})), Ok(json!({ "value": null })));
    assert_eq!(pad(json!({ "value": "note" })), Ok(json!({ "written": true })));
    assert_eq!(pad(json!({})), Ok(json!({ "value": "note" })));
    assert!(pad(json!({ "value": "x", "clear": true })).is_err());
    assert_eq!(pad(json!({ "clear": true })), Ok(json!({ "cleared": true })));
    assert_eq!(pad(json!({})), Ok(json!({ "value": null })));
    assert!(
        b.refused("loopsmith_scratchpad", json!({ "run_id": "a\nb", "key": "k" }))
            .contains("control character")
    );
}

/// The audit of a loop with goals, and the gate before its merge.
#[test]
fn a_loop_with_goals_ends_on_evidence_alone() {
    let mut b = bench();
    let refused = b.refused("loop_setField", json!({ "field": "goal_config", "value": "nope.yaml" }));
    assert!(refused.contains("cannot be read: it does not exist"), "{refused}");
    let bound = b.ok("loop_setField", json!({ "field": "goal_config", "value": "./goals.yaml" }));
    let pin = sha256(CONFIG.as_bytes());
    assert_eq!((&bound["value"], &bound["sha256"]), (&json!("goals.yaml"), &json!(pin)));
    assert_eq!(b.last_event().to.as_deref(), Some(format!("goals.yaml sha256:{pin}").as_str()));
    let codes = |b: &mut Bench| -> Vec<String> {
        let reply = b.ok("loop_audit", json!({}));
        let findings = reply["findings"].as_array().expect("a list");
        let codes = findings.iter().filter_map(|f| f["code"].as_str());
        codes.filter(|code| code.starts_with("goal-")).map(str::to_owned).collect()
    };
    assert_eq!(codes(&mut b), ["goal-unchecked"]);
    let refused =
        b.refused("loop_setPhaseStatus", json!({ "phase": "feature-merge", "status": "in-progress" }));
    assert!(refused.contains("goal-unchecked"), "{refused}");
    let run = json!({ "run_id": "demo" });
    gate(&mut b, run.clone());
    assert_eq!(codes(&mut b), ["goal-unsatisfied"]);
    provide(&mut b);
    assert_eq!(codes(&mut b), ["goal-stale", "goal-unsatisfied"]);
    gate(&mut b, run.clone());
    assert_eq!(codes(&mut b), [""; 0]);
    let page = crate::render::loop_page(b.state(), "1");
    assert!(
        page.contains("## Goals")
            && page.contains("- [x] overall: satisfied, 2 of 2 checks passed, ruling 2"),
        "{page}"
    );

    // Evidence goes, or is another: the audit fails again, without a new ruling.
    b.evidence.insert("out/report.md".to_owned(), Some(b"other".to_vec()));
    assert_eq!(codes(&mut b), ["goal-stale"]);
    b.evidence.insert("out/report.md".to_owned(), None);
    assert_eq!(codes(&mut b), ["goal-stale"]);
    provide(&mut b);
    assert_eq!(codes(&mut b), [""; 0]);
    // A weaker configuration in the same place is not the pinned one.
    b.evidence.insert("goals.yaml".to_owned(), Some(CONFIG.replace("value: 80", "value: 8").into_bytes()));
    assert_eq!(codes(&mut b), ["goal-config-changed"]);
    gate(&mut b, run);
    assert_eq!(codes(&mut b), ["goal-config-changed", "goal-unchecked"]);
    b.ok("loop_setField", json!({ "field": "goal_config", "value": "goals.yaml" }));
    assert_eq!(codes(&mut b), [""; 0]);
    b.ok("loop_setField", json!({ "field": "goal_config", "value": null }));
    assert_eq!(b.state().loop_.goal_config_sha256, None);
}

/// Evidence in another folder makes a ruling that says so, and that ends no loop.
#[test]
fn another_folder_ends_no_loop() {
    let mut b = bench();
    b.ok("loop_setField", json!({ "field": "goal_config", "value": "goals.yaml" }));
    for (path, text) in SATISFIED {
        b.evidence.insert(format!("sub/{path}"), Some(text.as_bytes().to_vec()));
    }
    let reply = gate(&mut b, json!({ "run_id": "demo", "workdir": "/home/me/project/sub/" }));
    assert_eq!((&reply["satisfied"], &reply["workdir"]), (&json!(true), &json!("sub")));
    let states = b.ok("loopsmith_goal_states", json!({ "run_id": "demo" }));
    assert_eq!(states["overall"]["workdir"], "sub");
    let reply = b.ok("loop_audit", json!({}));
    assert!(reply.to_string().contains("rests on what lies in sub"), "{reply}");
    provide(&mut b);
    gate(&mut b, json!({ "run_id": "demo" }));
    let reply = b.ok("loop_audit", json!({}));
    assert!(!reply.to_string().contains("goal-"), "{reply}");
    for workdir in ["../x", "/etc", "/home/me/projects"] {
        let arguments = json!({ "config_path": "goals.yaml", "target": "overall", "workdir": workdir });
        let refused = b.refused("loopsmith_gate_evaluate", arguments);
        assert!(refused.contains("name a folder below the project root"), "{refused}");
    }
}

/// No call but the gate's own writes a ruling, whatever it is given.
#[test]
fn only_the_gate_writes_rulings() {
    let mut b = bench();
    provide(&mut b);
    let arguments = json!({
        "run_id": "demo", "config_path": "goals.yaml", "target": "overall", "satisfied": true, "key": "overall",
        "value": "satisfied", "node_id": "overall", "provider_id": "p", "output": "goal_satisfied", "role": "judge",
        "goal": "x", "status": "done", "field": "goal_config", "phase": "qa", "taskid": "T1", "task": "T1",
        "agent": "a", "step": "s", "event": "goal_satisfied", "note": "x", "path": "p.md", "content": "x",
    });
    for tool in crate::catalogue::TOOLS.iter().filter(|tool| tool.name != "loopsmith_gate_evaluate") {
        let _ = b.clone().call(tool.name, arguments.clone());
        let mut copy = b.clone();
        if copy.call(tool.name, arguments.clone()).is_ok() {
            let writes = copy.last.map(|o| o.writes).unwrap_or_default();
            assert!(!writes.iter().any(|w| matches!(w, Write::PutGoalState(_))), "{}", tool.name);
        }
    }
    let states: &[GoalState] = &b.state().goals;
    assert!(states.is_empty());
    gate(&mut b, json!({ "run_id": "demo" }));
    assert_eq!(b.state().goals.len(), 1);
}

#[test]
fn a_plan_and_what_is_wrong_with_one() {
    let mut b = Bench::new();
    let text = "name: x\ngraph:\n  nodes:\n    - {id: a, role: builder, instruction: x}\n    - {id: b, role: builder, instruction: x, depends_on: [a]}\n";
    b.evidence.insert("g.yaml".to_owned(), Some(text.as_bytes().to_vec()));
    let plan = b.ok("loopsmith_plan", json!({ "config_path": "g.yaml" }));
    assert_eq!(plan["critical_path"], json!(["a", "b"]));
    b.evidence.insert("g.yaml".to_owned(), Some(text.replace("[a]", "[ghost]").into_bytes()));
    let refused = b.refused("loopsmith_plan", json!({ "config_path": "g.yaml" }));
    assert!(refused.contains("graph.nodes[1].depends_on[0] (line 5)"), "{refused}");
    for (path, why) in [("../g.yaml", "`..`"), ("/etc/passwd", "absolute"), ("none.yaml", "does not exist")] {
        let refused = b.refused("loopsmith_plan", json!({ "config_path": path }));
        assert!(refused.contains(why), "{refused}");
    }
    b.evidence.insert("big.yaml".to_owned(), Some(vec![b'#'; (1 << 20) + 1]));
    assert!(b.refused("loopsmith_plan", json!({ "config_path": "big.yaml" })).contains("1048577 bytes"));
}
