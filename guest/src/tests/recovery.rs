//! Recovery: every situation gives one next action that the guards accept.

use super::bench::{Bench, SLUG};
use crate::model::{DocumentHead, FileEntry};
use crate::status::{Mode, Status};
use expect_test::expect_file;
use serde_json::{Value, json};
use std::fmt::Write;

fn file(path: &str, bytes: u64) -> FileEntry {
    FileEntry { path: path.to_owned(), bytes, modified_at: 0 }
}

/// A loop whose only task has the status, whatever led there.
fn with_status(mode: Mode, status: Status) -> Bench {
    let mut b = Bench::with_loop(mode.word());
    b.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "one", "tech": "rust" }] }));
    let kept = b.loops.get_mut(SLUG).expect("made above");
    kept.state.tasks[0].status = status.word().to_owned();
    b
}

fn recover(b: &mut Bench) -> Value {
    b.ok("loop_recover", json!({ "loopSlug": SLUG }))
}

/// The resume point of every status in every mode, each phase early and late, the
/// gate, the latch and the end, with what is to be read there.
#[test]
fn every_resume_point() {
    let mut out = String::new();
    let mut show = |situation: String, reply: &Value| {
        let r = &reply["resume"];
        let text = |v: &Value| v.as_str().unwrap_or("-").to_owned();
        let reads: Vec<_> = reply["context"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|e| {
                format!("{} {}", text(&e["priority"]), text(&e["path"]).replace(".projects/loops/demo/", ""))
            })
            .collect();
        writeln!(
            out,
            "{situation}: {} {} [{}] {}\n    {}\n    reads {}",
            text(&r["kind"]),
            text(&r["point"]),
            text(&r["agent"]),
            text(&r["nextAction"]),
            text(&r["why"]),
            reads.join(", ")
        )
        .expect("a String takes it");
    };
    let all = [
        "plan.md",
        "prompt.md",
        "discovery.md",
        "legal.md",
        "security.md",
        "memory.md",
        "tasks/T1.md",
        "unresolved-pr-comments.md",
        "qa-report-1.md",
        "qa-report-2.md",
    ];
    for mode in Mode::ALL {
        for status in Status::ALL {
            let mut b = with_status(*mode, *status);
            b.files = Some(all.iter().map(|p| file(p, 10)).collect());
            show(format!("{} {}", mode.word(), status.word()), &recover(&mut b));
        }
    }
    for with_tasks in [false, true] {
        let mut b = if with_tasks {
            with_status(Mode::Standard, Status::Complete)
        } else {
            Bench::with_loop("standard")
        };
        b.files = Some(all.iter().map(|p| file(p, 10)).collect());
        let when = if with_tasks { "late" } else { "early" };
        for _ in 0..20 {
            let reply = recover(&mut b);
            let point = reply["resume"]["point"].as_str().expect("a point").to_owned();
            show(format!("{when} {point}"), &reply);
            if point == "finish" {
                break;
            }
            // The gate before the merge holds what was put in by hand.
            if point == "feature-merge" {
                let done = json!({ "phase": point, "status": "done" });
                b.ok("loop_setPhaseStatus", done);
            } else {
                b.ok("loop_setPhaseStatus", json!({ "phase": point, "status": "in-progress" }));
                show(format!("{when} {point} interrupted"), &recover(&mut b));
                b.ok("loop_setPhaseStatus", json!({ "phase": point, "status": "done" }));
            }
        }
    }
    let mut b = with_status(Mode::Standard, Status::InReview);
    b.refused("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
    show("latched".to_owned(), &recover(&mut b));
    b.ok("loop_setAwaitingUser", json!({ "awaiting": "ship it?" }));
    show("gate over latch".to_owned(), &recover(&mut b));
    b.ok("loop_finish", json!({ "status": "aborted" }));
    show("finished".to_owned(), &recover(&mut b));
    expect_file!["resume.txt"].assert_eq(&out);
}

#[test]
fn a_task_that_waits_gives_way_to_what_it_waits_for() {
    let mut b = Bench::with_loop("standard");
    b.ok(
        "tasks_derive",
        json!({ "tasks": [
        { "taskid": "T1", "title": "one", "tech": "rust", "depends_on": ["T2"] },
        { "taskid": "T2", "title": "two", "tech": "rust" },
        { "taskid": "T3", "title": "three", "tech": "rust" },
    ] }),
    );
    assert_eq!(recover(&mut b)["resume"]["taskid"], "T2");
    b.loops.get_mut(SLUG).expect("made above").state.tasks[0].status = "merged".to_owned();
    // T3 could move, but the guard refuses it while T1 is in flight.
    assert_eq!(recover(&mut b)["resume"]["taskid"], "T2");
    b.loops.get_mut(SLUG).expect("made above").state.tasks[1].depends_on = vec!["T1".to_owned()];
    let stuck = recover(&mut b);
    assert_eq!(stuck["resume"]["nextAction"], "ESCALATE: no task can move; T1 waits for T2 (pending)");
}

#[test]
fn the_manifest_knows_database_and_disk() {
    let mut b = with_status(Mode::Standard, Status::InProgress);
    b.files = Some(vec![file("plan.md", 7)]);
    let head = |path: &str, bytes| DocumentHead {
        path: path.to_owned(),
        rev: 1,
        bytes,
        sha256: String::new(),
        created_at: 0,
        updated_at: 0,
    };
    b.documents = vec![head("plan.md", 7), head("discovery.md", 9)];
    let reply = recover(&mut b);
    let rows: Vec<_> = reply["context"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|e| (e["path"].as_str(), e["exists"].as_bool(), e["bytes"].as_u64()))
        .collect();
    let path = |p| Some(p);
    assert_eq!(
        rows,
        [
            (path(".projects/loops/demo/plan.md"), Some(true), Some(7)),
            (path(".projects/loops/demo/tasks/T1.md"), Some(false), None),
            (path(".projects/loops/demo/discovery.md"), Some(true), Some(9)),
        ]
    );
    assert!(reply["context"][2]["why"].as_str().is_some_and(|w| w.contains("loop_materialize")));
    let warnings = reply["warnings"].to_string();
    assert!(warnings.contains("must-read file missing: tasks/T1.md"), "{warnings}");
    assert!(warnings.contains("differs from the database: events.jsonl"), "{warnings}");
    b.files = None;
    assert!(
        recover(&mut b)["warnings"]
            .to_string()
            .contains("folder is missing; loop_render writes the views anew, loop_materialize")
    );
}

#[test]
fn warnings_tell_what_is_off() {
    let mut b = with_status(Mode::Standard, Status::InProgress);
    b.ok("now_set", json!({ "task": "T1", "agent": "rust-engineer-loop", "step": "build" }));
    let reply = recover(&mut b);
    assert_eq!((&reply["now"]["stale"], &reply["now"]["elapsed_ms"]), (&json!(true), &json!(1_000)));
    assert!(reply["warnings"].to_string().contains("stale pointer"));
    b.ok("event_append", json!({ "event": "agent-return" }));
    assert_eq!(recover(&mut b)["now"]["stale"], Value::Null);
    b.ok("task_bumpCounter", json!({ "taskid": "T1", "counter": "retries", "by": 3 }));
    let state = &mut b.loops.get_mut(SLUG).expect("made above").state;
    state.loop_.mcp_version = Some("0.0.9".to_owned());
    let mut second = state.tasks[0].clone();
    (second.taskid, second.position) = ("T2".to_owned(), 1);
    state.tasks.push(second);
    let warnings = recover(&mut b)["warnings"].to_string();
    for says in ["T1 is over its cap: retries 3", "2 tasks are in flight: T1, T2", "created by version 0.0.9"]
    {
        assert!(warnings.contains(says), "{warnings}");
    }
}

#[test]
fn without_a_slug_it_finds_the_only_active_loop() {
    let mut b = Bench::new();
    let reply = b.ok("loop_recover", json!({}));
    assert_eq!((&reply["recovered"], &reply["reason"]), (&json!(false), &json!("no-active-loop")));
    b.ok("loop_init", json!({ "loopSlug": "one", "goal": "x" }));
    assert_eq!(b.ok("loop_recover", json!({}))["loop"]["slug"], "one");
    b.ok("loop_init", json!({ "loopSlug": "two", "goal": "x" }));
    let reply = b.ok("loop_recover", json!({}));
    assert_eq!(
        (&reply["reason"], reply["candidates"].as_array().map(Vec::len)),
        (&json!("ambiguous"), Some(2))
    );
    for slug in ["one", "two"] {
        b.ok("loop_finish", json!({ "loopSlug": slug, "status": "aborted" }));
    }
    let reply = b.ok("loop_recover", json!({}));
    assert_eq!(
        (&reply["reason"], reply["candidates"].as_array().map(Vec::len)),
        (&json!("no-active-loop"), Some(2))
    );
    b.ok("loop_init", json!({ "loopSlug": "one", "goal": "again" }));
    let elsewhere = b.loops.get_mut("two").expect("made above");
    (elsewhere.state.loop_.project_root, elsewhere.state.loop_.finished_at) = ("/elsewhere".to_owned(), None);
    let state = elsewhere.state.clone();
    b.elsewhere = vec![(state, true)];
    let reply = b.ok("loop_recover", json!({}));
    assert_eq!(reply["reason"], "ambiguous");
    assert_eq!(reply["candidates"][0]["project_root"], "/elsewhere");
    assert!(
        b.refused("loop_recover", json!({ "loopSlug": "tow" }))
            .starts_with("loop not found: tow (nearest: two)")
    );
}

#[test]
fn it_stays_short_and_never_writes() {
    let mut b = Bench::new();
    b.ok("loop_init", json!({ "goal": "g".repeat(100_000) }));
    let tasks: Vec<Value> = (0..200)
        .map(|i| json!({ "taskid": format!("T{i}"), "title": "x".repeat(4_000), "tech": "rust", "description": "y".repeat(4_000) }))
        .collect();
    b.ok("tasks_derive", json!({ "tasks": tasks }));
    for i in 0..60 {
        b.ok("event_append", json!({ "event": "gate", "agent": "a".repeat(500), "note": format!("{i} {}", "n".repeat(4_000)) }));
    }
    let before = b.loops.clone();
    for tool in ["loop_recover", "loop_audit"] {
        let outcome = b.outcome(tool, json!({ "loopSlug": SLUG })).expect("passes");
        assert!(outcome.writes.is_empty() && outcome.views.is_none());
        assert!(outcome.reply.chars().count() <= 10_000, "{tool}: {}", outcome.reply.len());
        let reply: Value = serde_json::from_str(&outcome.reply).expect("JSON");
        assert!(reply["more"].as_u64().is_some_and(|n| n > 0), "{tool}");
    }
    let reply = recover(&mut b);
    let events = reply["recentEvents"].as_array().expect("a list");
    assert_eq!(events.last().map(|e| &e["seq"]), Some(&json!(62)), "the newest is there");
    assert!(reply["tasks"].as_array().is_some_and(|t| !t.is_empty()));
    let wide = b.ok("loop_recover", json!({ "loopSlug": SLUG, "eventLimit": 50 }));
    assert_eq!(wide["recentEvents"].as_array().map(Vec::len), Some(50));
    let full = b.ok("loop_recover", json!({ "loopSlug": SLUG, "full": true }));
    assert!(full["tasks"][0].get("description").is_some());
    assert_eq!(b.loops, before);
}
