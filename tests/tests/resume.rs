//! A session that knows only its working directory goes on with a loop: it asks
//! where the loop stands and makes the call that it is told, until the end.

use loop_state_tests::{Client, SLUG, World, look};
use serde_json::{Map, Value, json};

/// Does what recovery says next, and nothing that it does not say. Stands in for
/// the agents by bringing what a step has to bring, and for the user at a gate.
fn follow(client: &mut Client) -> Vec<String> {
    let mut done = Vec::new();
    for _ in 0..200 {
        let answer = client.ok("loop_recover", json!({}));
        if answer["recovered"] == false {
            assert_eq!(answer["reason"], "no-active-loop", "{answer}");
            return done;
        }
        let resume = &answer["resume"];
        if resume["kind"] == "done" {
            return done;
        }
        let slug = answer["loop"]["slug"].clone();
        let call = &resume["nextCall"];
        let tool = call["tool"].as_str().unwrap_or_else(|| panic!("nothing to call: {resume}"));
        let mut arguments: Map<String, Value> = call["arguments"].as_object().cloned().unwrap_or_default();
        arguments.insert("loopSlug".to_owned(), slug.clone());
        for need in call["needs"].as_array().into_iter().flatten() {
            let need = need.as_str().unwrap_or_default();
            let name = need.split([' ', ':']).next().unwrap_or_default().to_owned();
            let value = match name.as_str() {
                "awaiting" => Value::Null,
                "evidence" | "mergeEvidence" => json!("1a2b3c4d"),
                _ => json!("#1"),
            };
            arguments.insert(name, value);
        }
        if let Some(agent) = resume["agent"].as_str() {
            let step = json!({ "loopSlug": slug, "task": resume["taskid"], "agent": agent, "step": resume["point"] });
            client.ok("now_set", step);
            client.ok("event_append", json!({ "loopSlug": slug, "event": "agent-return", "to": "done" }));
        }
        client.ok(tool, Value::Object(arguments));
        done.push(format!(
            "{}:{}",
            resume["point"].as_str().unwrap_or("-"),
            resume["taskid"].as_str().unwrap_or("-")
        ));
    }
    panic!("no end: {done:?}");
}

fn plan(client: &mut Client) {
    let tasks = json!([
        { "taskid": "T1", "title": "one", "tech": "rust" },
        { "taskid": "T2", "title": "two", "tech": "go", "depends_on": ["T1"] },
    ]);
    client.ok("tasks_derive", json!({ "tasks": tasks }));
}

/// Kills the server and starts another that knows the working directory alone.
fn killed(world: &World, mut client: Client) -> Client {
    client.kill();
    world.client()
}

#[test]
fn after_a_kill_in_mid_build() {
    let world = World::new();
    let mut client = world.client_with_loop();
    plan(&mut client);
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "issue-open", "issue": "#1" }));
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }));
    client.ok("now_set", json!({ "task": "T1", "agent": "rust-engineer-loop", "step": "build" }));
    let mut client = killed(&world, client);
    let answer = client.ok("loop_recover", json!({}));
    assert_eq!(answer["now"]["stale"], true);
    assert_eq!(answer["resume"]["taskid"], "T1");
    let steps = follow(&mut client);
    assert_eq!(steps.first().map(String::as_str), Some("build:T1"));
    assert_eq!(steps.last().map(String::as_str), Some("finish:-"));
    let state = client.ok("loop_get", json!({}));
    assert_eq!(state["loop"]["status"], "done");
    assert!(state["tasks"].as_array().is_some_and(|t| t.iter().all(|t| t["status"] == "complete")));
    assert_eq!(client.ok("loop_audit", json!({}))["verdict"], "warn", "build and the early phases stay open");
}

#[test]
fn behind_the_latch() {
    let world = World::new();
    let mut client = world.client_with_loop();
    plan(&mut client);
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "issue-open" }));
    client.refused("task_setStatus", json!({ "taskid": "T1", "status": "merged" }));
    client.refused("loop_setPhase", json!({ "phase": "qa" }));
    let mut client = killed(&world, client);
    let answer = client.ok("loop_recover", json!({}));
    assert!(answer["warnings"].to_string().contains("LOOP BLOCKED"));
    let steps = follow(&mut client);
    assert_eq!(steps.first().map(String::as_str), Some("build:T1"));
    assert_eq!(client.ok("loop_get", json!({}))["loop"]["status"], "done");
}

#[test]
fn a_latched_task_that_waits_for_another() {
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "one", "tech": "rust" }] }));
    for status in ["issue-open", "in-progress", "verified", "secure", "pr-open", "in-review", "merged"] {
        client.ok("task_setStatus", json!({ "taskid": "T1", "status": status, "evidence": "1a2b3c4d" }));
    }
    client.refused("task_setStatus", json!({ "taskid": "T1", "status": "pending" }));
    client.ok("task_bumpCounter", json!({ "taskid": "T1", "counter": "retries" }));
    let tasks = json!([
        { "taskid": "T1", "title": "one", "tech": "rust", "depends_on": ["T2"] },
        { "taskid": "T2", "title": "two", "tech": "rust" },
    ]);
    client.ok("tasks_derive", json!({ "tasks": tasks }));
    client.refused("task_setStatus", json!({ "taskid": "T1", "status": "pending" }));
    let mut client = killed(&world, client);
    let steps = follow(&mut client);
    assert_eq!(&steps[..2], ["complete:T1", "issue:T2"]);
    assert_eq!(client.ok("loop_get", json!({}))["loop"]["status"], "done");
}

#[test]
fn at_a_gate() {
    let world = World::new();
    let mut client = world.client_with_loop();
    plan(&mut client);
    client.ok("loop_setAwaitingUser", json!({ "awaiting": "ship it without SAML?" }));
    let mut client = killed(&world, client);
    let answer = client.ok("loop_recover", json!({}));
    assert_eq!(answer["resume"]["kind"], "gate");
    assert!(answer["resume"]["why"].to_string().contains("without SAML"));
    let steps = follow(&mut client);
    assert_eq!(&steps[..2], ["gate:-", "issue:T1"]);
}

/// Recovery and the other reads leave database and folder byte for byte as they were.
#[test]
fn looking_changes_nothing() {
    let world = World::new();
    let mut client = world.client_with_loop();
    plan(&mut client);
    client.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "s" }));
    std::fs::write(world.folder(SLUG).join("loop.md"), "changed by hand").expect("the view");
    let (rows, files) = (look::rows(&world.database()), look::files(&world.project()));
    for (tool, arguments) in [
        ("loop_recover", json!({})),
        ("loop_recover", json!({ "loopSlug": SLUG, "full": true })),
        ("loop_audit", json!({})),
        ("loop_timings", json!({})),
        ("loop_files", json!({})),
    ] {
        let answer = client.ok(tool, arguments);
        if tool == "loop_recover" {
            assert!(
                answer["warnings"].to_string().contains("differs from the database: loop.md"),
                "{answer}"
            );
        }
    }
    look::assert_same(&rows, &look::rows(&world.database()), "the database");
    look::assert_same(&files, &look::files(&world.project()), "the project");
}

#[test]
fn brief_says_it_in_a_few_lines() {
    let world = World::new();
    let run = |arguments: &[&str]| {
        let output =
            world.command().args(arguments).stderr(std::process::Stdio::piped()).output().expect("runs");
        (
            output.status.success(),
            String::from_utf8(output.stdout).expect("text"),
            String::from_utf8(output.stderr).expect("text"),
        )
    };
    let (ok, text, _) = run(&["brief"]);
    assert!(ok && text.starts_with("No loop was recovered (no-active-loop): "), "{text}");
    let mut client = world.client_with_loop();
    plan(&mut client);
    let (ok, text, _) = run(&["brief"]);
    assert!(ok);
    let lines: Vec<_> = text.lines().take(2).collect();
    assert_eq!(
        lines,
        [
            "Loop demo (active, phase preflight): try it",
            "Next: T1: open the tracking issue: dispatch git-loop (phase=git-issue); then task_setStatus(taskid: T1, status: issue-open, issue: …)",
        ]
    );
    assert!(text.len() <= 2_000);
    let (ok, text, _) = run(&["brief", "--slug", SLUG, "--max-bytes", "60"]);
    assert!(ok && text.len() <= 60, "{text}");
    let (ok, _, error) = run(&["brief", "--slug", "demp"]);
    assert!(!ok && error.contains("loop not found: demp (nearest: demo)"), "{error}");
}
