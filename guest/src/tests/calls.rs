//! One rule each, shown by calls.

use super::bench::{Bench, SLUG};
use crate::timeline::{Told, normalise};
use crate::tools::{RootKind, RootSource};
use serde_json::{Value, json};

/// A loop in which `T1` has the status, reached legally.
fn at(status: &str) -> Bench {
    let mut b = Bench::with_loop("standard");
    b.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "one", "tech": "rust" }] }));
    walk(&mut b, "T1", status);
    b
}

/// Walks a task along the main line to a status.
fn walk(b: &mut Bench, taskid: &str, to: &str) {
    const LINE: &[&str] =
        &["pending", "issue-open", "in-progress", "verified", "secure", "pr-open", "in-review", "merged"];
    let place = |s: &str| LINE.iter().position(|l| *l == s).expect("a status of the main line");
    for status in &LINE[place(b.status(taskid)) + 1..=place(to)] {
        b.ok("task_setStatus", json!({ "taskid": taskid, "status": status, "evidence": "abc1234" }));
    }
}

fn derive(b: &mut Bench, tasks: &[(&str, &[&str])]) {
    let tasks: Vec<Value> = tasks
        .iter()
        .map(|(id, deps)| json!({ "taskid": id, "title": format!("do {id}"), "depends_on": deps }))
        .collect();
    b.ok("tasks_derive", json!({ "tasks": tasks }));
}

#[test]
fn a_whole_loop() {
    let mut b = Bench::with_loop("standard");
    derive(&mut b, &[("T1", &[]), ("T2", &["T1"])]);
    walk(&mut b, "T1", "merged");
    let reply = b.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
    assert_eq!(reply["remaining"], 1);
    assert_eq!(reply["next"], "T2: open the tracking issue: dispatch git-loop (phase=git-issue)");
    let refused = b.refused("loop_finish", json!({ "status": "done" }));
    assert!(refused.contains("T2 is pending"), "{refused}");
    walk(&mut b, "T2", "merged");
    b.ok("task_complete", json!({ "taskid": "T2", "mergeEvidence": "abc1235" }));
    assert_eq!(
        b.ok("loop_finish", json!({ "status": "done" })),
        json!({ "status": "done", "phase": "done" })
    );
    assert_eq!(b.ok("loop_finish", json!({ "status": "done" }))["already"], true);
    let refused = b.refused("loop_finish", json!({ "status": "aborted" }));
    assert!(refused.contains("as done"), "{refused}");
}

#[test]
fn an_illegal_move_names_the_shortest_way_and_latches() {
    let mut b = at("in-review");
    derive(&mut b, &[("T2", &[])]);
    let refused = b.refused("task_setStatus", json!({ "taskid": "T1", "status": "secure", "evidence": "x" }));
    assert_eq!(
        refused,
        "T1 cannot go from in-review to secure; the shortest legal way is in-review → changes-requested → in-progress → verified → secure"
    );
    let event = b.last_event().clone();
    assert_eq!((event.event.as_str(), event.task.as_deref()), ("tool-refused", Some("T1")));
    assert_eq!((event.from.as_deref(), event.to.as_deref()), (Some("in-review"), Some("secure")));
    let other = b.refused("loop_setPhase", json!({ "phase": "qa" }));
    assert!(other.contains("refused task_setStatus on T1"), "{other}");
    b.ok("task_setStatus", json!({ "taskid": "T1", "status": "changes-requested" }));
    assert_eq!(b.state().loop_.blocked, None);
    b.ok("loop_setPhase", json!({ "phase": "qa" }));
}

#[test]
fn work_cannot_be_walked_away_from() {
    let mut b = at("in-review");
    derive(&mut b, &[("T2", &[])]);
    for (tool, args) in [
        ("task_setStatus", json!({ "taskid": "T2", "status": "issue-open" })),
        ("now_set", json!({ "task": "T2", "agent": "git-loop", "step": "issue" })),
    ] {
        let refused = b.refused(tool, args);
        assert_eq!(
            refused,
            "T2 cannot start while T1 is in flight (in-review); T1 still owes: merge it, or record changes-requested: \
             dispatch git-loop (phase=git-merge). Do that, or park T1 first"
        );
        assert_eq!(b.state().loop_.blocked.as_ref().map(|x| x.task.as_str()), Some("T1"));
        b.ok("task_bumpCounter", json!({ "taskid": "T1", "counter": "review_rounds" }));
        assert_eq!(b.state().loop_.blocked, None);
    }
    b.ok("task_setStatus", json!({ "taskid": "T2", "status": "skipped" }));
    b.ok("task_setStatus", json!({ "taskid": "T1", "status": "blocked" }));
    b.ok("task_setStatus", json!({ "taskid": "T2", "status": "pending" }));
    b.ok("task_setStatus", json!({ "taskid": "T2", "status": "issue-open" }));
}

#[test]
fn a_task_in_flight_does_not_stand_in_the_way_of_what_it_waits_for() {
    let mut b = Bench::with_loop("standard");
    derive(&mut b, &[("T1", &["T2"]), ("T2", &["T3"]), ("T3", &[]), ("T4", &[])]);
    walk(&mut b, "T1", "merged");
    let refused = b.refused("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
    assert!(refused.contains("dependency T2 is not complete (status=pending)"), "{refused}");
    assert_eq!(b.state().loop_.blocked, None, "an unmet dependency does not latch");
    b.refused("task_setStatus", json!({ "taskid": "T4", "status": "issue-open" }));
    b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "look" }));
    b.ok("task_setStatus", json!({ "taskid": "T3", "status": "issue-open" }));
}

#[test]
fn evidence_has_to_say_something() {
    for nothing in ["", "  ", "\u{200b}", "n/a", "None", "-", "undefined", " NULL "] {
        let mut b = at("in-progress");
        let refused =
            b.refused("task_setStatus", json!({ "taskid": "T1", "status": "verified", "evidence": nothing }));
        assert!(refused.contains("without proof"), "{refused}");
        assert!(b.state().loop_.blocked.is_some());
        b.ok(
            "task_setStatus",
            json!({ "taskid": "T1", "status": "verified", "evidence": "12 tests passed" }),
        );
        assert_eq!(b.state().loop_.blocked, None);
    }
}

#[test]
fn in_progress_is_inserted_before_verified_and_nothing_else() {
    for from in ["issue-open", "secure"] {
        let mut b = at(from);
        let reply =
            b.ok("task_setStatus", json!({ "taskid": "T1", "status": "verified", "evidence": "x y" }));
        assert_eq!(reply["auto"], "in-progress");
        let tail: Vec<_> = b.kept().events.iter().rev().take(2).map(|e| e.event.as_str()).collect();
        assert_eq!(tail, ["task_setStatus", "task_setStatus:auto"]);
    }
    let mut b = at("secure");
    b.refused("task_setStatus", json!({ "taskid": "T1", "status": "merged" }));
}

#[test]
fn complete_and_superseded_have_their_own_tools() {
    let mut b = at("merged");
    let refused = b.refused("task_setStatus", json!({ "taskid": "T1", "status": "complete" }));
    assert_eq!(refused, "T1 cannot be set to complete: only task_complete does that");
    let refused = b.refused("task_setStatus", json!({ "taskid": "T1", "status": "superseded" }));
    assert_eq!(refused, "T1 cannot be set to superseded: only tasks_split does that");
    b.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
    assert_eq!(b.state().loop_.blocked, None);
    assert_eq!(b.ok("task_complete", json!({ "taskid": "t1", "mergeEvidence": "other" }))["already"], true);
    let before = b.clone();
    b.refused("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }));
    assert_eq!(b.loops, before.loops, "a closed task does not latch");
}

#[test]
fn completing_needs_the_merge_and_poc_only_security() {
    let mut b = at("in-review");
    let refused = b.refused("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
    assert!(refused.starts_with("T1 is in-review and completes only from merged"), "{refused}");
    assert!(b.state().loop_.blocked.is_some());

    let mut b = Bench::with_loop("poc");
    b.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "one", "tech": "go" }] }));
    b.refused("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
    walk(&mut b, "T1", "secure");
    b.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "abc1234" }));
}

#[test]
fn the_latch_reaches_what_its_table_says() {
    let refused = [
        ("tasks_derive", json!({ "tasks": [{ "taskid": "T9", "title": "x" }] })),
        ("tasks_append", json!({ "kind": "qa-fix", "tasks": [{ "title": "x" }] })),
        ("tasks_split", json!({ "taskid": "T2", "subtasks": [{ "title": "x" }] })),
        ("task_setStatus", json!({ "taskid": "T2", "status": "skipped" })),
        ("task_bumpCounter", json!({ "taskid": "T2", "counter": "retries" })),
        ("task_complete", json!({ "taskid": "T2", "mergeEvidence": "abc1234" })),
        ("now_set", json!({ "task": "T2", "agent": "a", "step": "s" })),
        ("now_set", json!({ "task": "-", "agent": "a", "step": "s" })),
        ("loop_setPhase", json!({ "phase": "qa" })),
        ("loop_setPhaseStatus", json!({ "phase": "qa", "status": "done" })),
        ("loop_setField", json!({ "field": "legal", "value": "x" })),
        ("loop_bumpCounter", json!({ "counter": "qa_rounds" })),
        ("loop_finish", json!({ "status": "done" })),
    ];
    let free = [
        ("loop_get", json!({})),
        ("loop_list", json!({})),
        ("loop_render", json!({})),
        ("now_clear", json!({})),
        ("event_append", json!({ "event": "escalate" })),
        ("memory_append", json!({ "agent": "a", "note": "n" })),
        ("loop_setAwaitingUser", json!({ "awaiting": "decide" })),
        ("task_bumpCounter", json!({ "taskid": "T1", "counter": "retries" })),
        ("task_setStatus", json!({ "taskid": "T1", "status": "blocked" })),
        ("now_set", json!({ "task": "T1", "agent": "a", "step": "s" })),
        ("tasks_split", json!({ "taskid": "T1", "subtasks": [{ "title": "x" }] })),
        ("loop_clearBlock", json!({ "resolution": "go on" })),
        ("loop_finish", json!({ "status": "aborted" })),
    ];
    let mut latched = at("in-progress");
    derive(&mut latched, &[("T2", &[])]);
    latched.refused("task_setStatus", json!({ "taskid": "T1", "status": "merged" }));
    for (tool, args) in refused {
        let mut b = latched.clone();
        let text = b.refused(tool, args);
        assert!(text.contains("to be put right first"), "{tool}: {text}");
        assert_eq!(b.loops, latched.loops, "{tool} changed something");
    }
    for (tool, args) in free {
        latched.clone().ok(tool, args);
    }
}

#[test]
fn the_block_is_lifted_on_the_users_word() {
    let mut b = at("in-progress");
    assert_eq!(b.ok("loop_clearBlock", json!({ "resolution": "x" }))["cleared"], Value::Null);
    b.refused("task_setStatus", json!({ "taskid": "T1", "status": "merged" }));
    b.refused("loop_clearBlock", json!({ "resolution": " " }));
    let cleared = b.ok("loop_clearBlock", json!({ "resolution": "merged by hand" }))["cleared"].clone();
    assert_eq!((&cleared["op"], &cleared["task"]), (&json!("task_setStatus"), &json!("T1")));
    let note = b.last_event().note.clone().unwrap_or_default();
    assert!(
        note.contains("waived task_setStatus on T1") && note.ends_with("resolution: merged by hand"),
        "{note}"
    );
}

#[test]
fn a_finished_loop_takes_no_more_work() {
    let mut b = at("in-progress");
    b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "s" }));
    b.ok("loop_setAwaitingUser", json!({ "awaiting": "x" }));
    b.ok("loop_finish", json!({ "status": "aborted" }));
    assert_eq!((b.state().loop_.now.clone(), b.state().open_step.clone()), (None, None));
    for (tool, args) in [
        ("task_setStatus", json!({ "taskid": "T1", "status": "verified", "evidence": "x" })),
        ("task_complete", json!({ "taskid": "T1", "mergeEvidence": "x" })),
        ("task_bumpCounter", json!({ "taskid": "T1", "counter": "retries" })),
        ("tasks_derive", json!({ "tasks": [{ "taskid": "T9", "title": "x" }] })),
        ("tasks_append", json!({ "kind": "qa-fix", "tasks": [{ "title": "x" }] })),
        ("tasks_split", json!({ "taskid": "T1", "subtasks": [{ "title": "x" }] })),
        ("now_set", json!({ "agent": "a", "step": "s" })),
        ("loop_setPhase", json!({ "phase": "qa" })),
        ("loop_setPhaseStatus", json!({ "phase": "qa", "status": "done" })),
        ("loop_setField", json!({ "field": "legal", "value": "x" })),
        ("loop_bumpCounter", json!({ "counter": "qa_rounds" })),
        ("loop_setAwaitingUser", json!({ "awaiting": "x" })),
    ] {
        let before = b.clone();
        let text = b.refused(tool, args);
        assert!(text.contains("finished (aborted)"), "{tool}: {text}");
        assert_eq!(b.loops, before.loops);
    }
    for (tool, args) in [
        ("memory_append", json!({ "agent": "a", "note": "n" })),
        ("event_append", json!({ "event": "gate" })),
        ("loop_render", json!({})),
        ("loop_get", json!({})),
        ("now_clear", json!({})),
        ("loop_init", json!({ "goal": "again" })),
    ] {
        b.ok(tool, args);
    }
}

#[test]
fn starting_again_tells_what_differs() {
    let mut b = Bench::with_loop("standard");
    let before = b.clone();
    let reply = b.ok("loop_init", json!({ "goal": "other", "mode": "poc", "title": "try it" }));
    assert_eq!(reply["reused"], true);
    assert_eq!(reply["status"], "active");
    assert_eq!(
        reply["differs"],
        json!([
            { "argument": "goal", "given": "other", "stored": "try it" },
            { "argument": "mode", "given": "poc", "stored": "standard" }
        ])
    );
    assert_eq!(b.loops, before.loops);
}

#[test]
fn no_loop_in_a_bare_root_unless_it_was_named() {
    for kind in [RootKind::Top, RootKind::Home] {
        let mut b = Bench::new();
        b.root_kind = kind;
        let refused = b.refused("loop_init", json!({ "goal": "x" }));
        assert!(refused.contains("--project-root"), "{refused}");
        for source in [RootSource::Flag, RootSource::Variable] {
            b.root_source = source;
            let mut named = b.clone();
            named.ok("loop_init", json!({ "goal": "x" }));
        }
    }
}

#[test]
fn batches_are_taken_whole_or_not_at_all() {
    let mut b = Bench::with_loop("standard");
    derive(&mut b, &[("T1", &[]), ("T2", &["T1"]), ("T3", &["T2"])]);
    let chain: Vec<Value> = (0..6_000).map(|i| json!({ "taskid": format!("X{i}"), "title": "x" })).collect();
    let before = b.clone();
    for (tool, args, says) in [
        ("tasks_derive", json!({ "tasks": [] }), "empty"),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "A", "title": "x", "depends_on": ["A"] }] }),
            "A depends on itself",
        ),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "A", "title": "x", "depends_on": ["nope"] }] }),
            "nope, which is no task",
        ),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "A", "title": "x" }, { "taskid": "a", "title": "y" }] }),
            "in the batch twice",
        ),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T1", "title": "x", "depends_on": ["T3"] }] }),
            "T1 → T3 → T2 → T1",
        ),
        ("tasks_derive", json!({ "tasks": [{ "taskid": " ", "title": "x" }] }), "`tasks[0].taskid` is blank"),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "A", "title": "\u{200b}" }] }),
            "`tasks[0].title` is blank",
        ),
        ("tasks_derive", json!({ "tasks": ["A"] }), "an object {taskid, title"),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "A", "title": "x", "dependsOn": [] }] }),
            "did you mean `tasks[0].depends_on`",
        ),
        ("tasks_derive", json!({ "tasks": [{ "taskid": "con", "title": "x" }] }), "Windows"),
        ("tasks_derive", json!({ "tasks": chain }), "6003 tasks"),
        (
            "tasks_append",
            json!({ "kind": "qa-fix", "tasks": [{ "taskid": "t2", "title": "x" }] }),
            "t2 exists already",
        ),
        (
            "tasks_append",
            json!({ "kind": "other", "tasks": [{ "title": "x" }] }),
            "none of: qa-fix, deferred-findings",
        ),
        (
            "tasks_split",
            json!({ "taskid": "T1", "subtasks": [{ "title": "x", "depends_on": ["T3"] }] }),
            "T1 → T1a → T3 → T2 → T1",
        ),
        (
            "tasks_split",
            json!({ "taskid": "T1", "subtasks": [{ "title": "x", "depends_on": ["T1"] }] }),
            "T1 → T1a → T1",
        ),
        (
            "tasks_split",
            json!({ "taskid": "T9", "subtasks": [{ "title": "x" }] }),
            "task not found: T9; loop_get",
        ),
    ] {
        let text = b.refused(tool, args);
        assert!(text.contains(says), "{tool}: {text}");
        assert_eq!(b.loops, before.loops, "{text}");
    }
}

#[test]
fn a_plan_is_updated_and_never_set_back() {
    let mut b = at("in-progress");
    let reply = b.ok(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "t1", "title": "new", "depends_on": ["T2", "t2 "] }, { "taskid": "T2", "title": "two" }] }),
    );
    assert_eq!(reply, json!({ "created": ["T2"], "updated": ["T1"], "unchanged": [] }));
    let t1 = &b.state().tasks[0];
    assert_eq!(
        (t1.status.as_str(), t1.title.as_str(), t1.tech.as_deref()),
        ("in-progress", "new", Some("rust"))
    );
    assert_eq!(t1.depends_on, ["T2"]);
    let before = b.clone();
    let again = b.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T2", "title": "two" }] }));
    assert_eq!(again["unchanged"], json!(["T2"]));
    assert_eq!(b.loops, before.loops);
}

#[test]
fn split_and_append_go_on_with_the_ids() {
    let mut b = Bench::with_loop("standard");
    derive(&mut b, &[("T1", &[]), ("T2", &["T1"]), ("T3", &["T2"])]);
    b.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T2", "title": "two", "tech": "go" }, { "taskid": "T2b", "title": "taken" }] }));
    let reply = b.ok(
        "tasks_split",
        json!({ "taskid": "T2", "subtasks": [{ "title": "x" }, { "title": "y", "tech": "rust" }] }),
    );
    assert_eq!(reply, json!({ "superseded": "T2", "created": ["T2a", "T2c"] }));
    let order: Vec<_> =
        b.state().tasks.iter().map(|t| (t.taskid.as_str(), t.depends_on.join(","), t.tech.clone())).collect();
    assert_eq!(
        order,
        [
            ("T1", String::new(), None),
            ("T2", "T1".into(), Some("go".into())),
            ("T2a", "T1".into(), Some("go".into())),
            ("T2c", "T1".into(), Some("rust".into())),
            ("T3", "T2".into(), None),
            ("T2b", String::new(), None)
        ]
    );
    let reply = b.ok("tasks_append", json!({ "kind": "qa-fix", "tasks": [{ "title": "z" }, { "title": "w", "taskid": "T7" }, { "title": "v" }] }));
    assert_eq!(reply["created"], json!(["T8", "T7", "T9"]));
    // Followers wait for all parts.
    for id in ["T1", "T2a"] {
        walk(&mut b, id, "merged");
        b.ok("task_complete", json!({ "taskid": id, "mergeEvidence": "abc1234" }));
    }
    walk(&mut b, "T3", "merged");
    let refused = b.refused("task_complete", json!({ "taskid": "T3", "mergeEvidence": "abc1234" }));
    assert!(refused.contains("dependency T2 is not complete (status=superseded)"), "{refused}");
    b.ok("task_setStatus", json!({ "taskid": "T2c", "status": "skipped" }));
    b.ok("task_complete", json!({ "taskid": "T3", "mergeEvidence": "abc1234" }));
}

#[test]
fn a_chain_of_two_thousand_is_fine() {
    let mut b = Bench::with_loop("standard");
    let tasks: Vec<Value> = (0..2_000)
        .map(|i| json!({ "taskid": format!("T{i}"), "title": "x", "depends_on": if i > 0 { vec![format!("T{}", i - 1)] } else { vec![] } }))
        .collect();
    b.ok("tasks_derive", json!({ "tasks": tasks }));
    let refused = b.refused(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "T0", "title": "x", "depends_on": ["T1999"] }] }),
    );
    assert!(refused.contains("T0 → T1999 → T1998") && refused.contains("1981 more …"), "{refused}");
}

#[test]
fn arguments_are_read_leniently_and_never_dropped() {
    let mut b = at("in-progress");
    for (tool, args, reply_has) in [
        (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "retries", "by": "2" }),
            json!({ "value": 2 }),
        ),
        (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "retries", "by": -5.0 }),
            json!({ "value": 0 }),
        ),
        (
            "loop_list",
            json!({ "includeFinished": "true", "wait_for_previous": true }),
            json!({ "ignored": ["wait_for_previous"] }),
        ),
        (
            "tasks_derive",
            json!({ "tasks": "[{\"taskid\":\"T5\",\"title\":\"a\",\"depends_on\":\"[\\\"T1\\\"]\"}]" }),
            json!({ "created": ["T5"] }),
        ),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "in-progress", "issue": 42 }),
            json!({ "to": "in-progress" }),
        ),
        ("loop_setField", json!({ "field": "f_unresolved_pr", "value": "3" }), json!({ "value": 3 })),
        ("loop_setField", json!({ "field": "f_unresolved_pr", "value": null }), json!({ "value": null })),
        ("loop_setField", json!({ "field": "mode", "value": "poc" }), json!({ "value": "poc" })),
    ] {
        let reply = b.ok(tool, args.clone());
        for (key, value) in reply_has.as_object().expect("an object") {
            assert_eq!(&reply[key], value, "{tool} {args}");
        }
    }
    for (tool, args, says) in [
        ("task_setStatus", json!({ "status": "blocked" }), "missing required argument `taskid`"),
        ("task_setStatus", json!({ "taskid": "T1", "status": "done" }), "none of: pending, issue-open"),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T1", "title": ["a"] }] }),
            "`tasks[0].title` takes text, not a list",
        ),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T1", "title": "a", "depends_on": "T1" }] }),
            "takes a list, each entry text, not the text \"T1\"",
        ),
        ("loop_bumpCounter", json!({ "counter": "qa_rounds", "by": "two" }), "takes a whole number"),
        ("loop_setField", json!({ "field": "mode", "value": "fast" }), "none of: standard, simple, poc"),
        ("loop_setField", json!({ "field": "f_unresolved_pr", "value": -1 }), "takes a whole number from 0"),
        ("loop_setField", json!({ "field": "legal" }), "missing required argument `value`"),
        ("loop_setAwaitingUser", json!({}), "missing required argument `awaiting`"),
        ("loop_get", json!({ "loopSlug": "../x" }), "single hyphens"),
        ("loop_get", json!({ "loopSlug": "dmo" }), "loop not found: dmo (nearest: demo)"),
        ("task_setStatus", json!({ "taskId": "T1", "status": "blocked" }), "did you mean `taskid`?"),
        ("memory_append", json!({ "agent": "a", "note": "x".repeat(2 << 20) }), "2097152 bytes long"),
    ] {
        let before = b.clone();
        let text = b.refused(tool, args);
        assert!(text.contains(says), "{tool}: {text}");
        assert_eq!(b.loops, before.loops);
    }
}

#[test]
fn events_are_normalised_as_the_vectors_say() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("events.json")).expect("the vector is JSON");
    assert!(!cases.is_empty());
    for case in cases {
        let mut b = Bench::with_loop("standard");
        let text = |v: &Value, key: &str| v[key].as_str().map(str::to_owned);
        let l = &mut b.loops.get_mut(SLUG).expect("made above").state.loop_;
        l.phase = text(&case, "phase").expect("a phase");
        l.now = case["pointer"]["agent"].as_str().map(|agent| crate::model::NowPointer {
            task: text(&case["pointer"], "task"),
            agent: agent.to_owned(),
            step: "s".to_owned(),
            since: 0,
        });
        let i = &case["in"];
        let told = Told {
            event: text(i, "event").expect("a name"),
            task: text(i, "task"),
            phase: text(i, "phase"),
            from: text(i, "from"),
            to: text(i, "to"),
            agent: text(i, "agent"),
            note: text(i, "note"),
        };
        let e = normalise(told, l, 0);
        let out = json!({ "event": e.event, "task": e.task, "agent": e.agent, "phase": e.phase, "from": e.from, "to": e.to, "note": e.note });
        assert_eq!(out, case["out"], "{i}");
    }
}

#[test]
fn steps_are_timed_by_the_calls_around_them() {
    let mut b = at("in-progress");
    let start = b.now;
    assert_eq!(
        b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "build" })),
        json!({ "attempt": 1, "step_seq": 1 })
    );
    b.ok("event_append", json!({ "event": "agent-return", "to": "Succeeded" }));
    b.ok("event_append", json!({ "event": "agent-return" }));
    assert_eq!(
        b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "again" })),
        json!({ "attempt": 2, "step_seq": 2 })
    );
    b.ok("event_append", json!({ "event": "agent-return", "agent": "somebody" }));
    let closed = b.ok("now_clear", json!({}))["closed"].clone();
    assert_eq!((&closed["wall_ms"], &closed["agent_ms"]), (&json!(2_000), &Value::Null));
    assert_eq!(b.ok("now_clear", json!({})), json!({}));
    let first = &b.kept().steps[0];
    assert_eq!(
        (first.started_at, first.agent_returned_at, first.ended_at),
        (start + 1_000, Some(start + 2_000), Some(start + 4_000))
    );
    assert_eq!((first.outcome.as_deref(), first.ended_by.as_deref()), (Some("done"), Some("auto-next")));
    let total = &b.state().totals[0];
    assert_eq!(
        (
            total.opened,
            total.closed,
            total.wall_ms,
            total.agent_ms,
            total.orchestrator_ms,
            total.unattributed_ms
        ),
        (2, 2, 5_000, 1_000, 2_000, 2_000)
    );
    let q = b.state().loop_.quality;
    assert_eq!(
        (q.explicit, q.auto_next, q.missing_returns, q.orphan_returns, q.duplicate_returns),
        (1, 1, 1, 1, 1)
    );
}

#[test]
fn a_clock_that_runs_backwards_gives_no_negative_time() {
    let mut b = at("in-progress");
    b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "build" }));
    let updated = b.state().loop_.updated_at;
    b.now -= 3_600_000;
    b.ok("event_append", json!({ "event": "agent-return" }));
    b.ok("now_clear", json!({}));
    let step = &b.kept().steps[0];
    assert_eq!((step.agent_returned_at, step.ended_at), (Some(step.started_at), Some(step.started_at)));
    assert_eq!(b.state().loop_.quality.clock_corrections, 2);
    assert_eq!(b.state().loop_.updated_at, updated);
}

#[test]
fn answers_stay_within_their_bound() {
    let mut b = Bench::new();
    b.ok("loop_init", json!({ "goal": "g".repeat(1 << 20) }));
    let tasks: Vec<Value> =
        (0..400).map(|i| json!({ "taskid": format!("T{i}"), "title": "x".repeat(4_096), "description": "y".repeat(4_096) })).collect();
    b.ok("tasks_derive", json!({ "tasks": tasks }));
    let outcome = b.outcome("loop_get", json!({})).expect("passes");
    assert!(outcome.reply.chars().count() <= crate::reply::WIDE.answer, "{}", outcome.reply.len());
    let reply: Value = serde_json::from_str(&outcome.reply).expect("JSON");
    let shown = reply["tasks"].as_array().expect("a list").len();
    assert_eq!(reply["more"], 400 - shown);
    assert!(shown > 0);
    let goal = reply["loop"]["goal"].as_str().expect("text");
    assert!(goal.ends_with("… (1046576 more characters)"), "{}", &goal[1990..]);
    let next = b.ok("loop_get", json!({ "offset": shown, "limit": 1 }));
    assert_eq!(next["tasks"][0]["taskid"], format!("T{shown}"));
}
