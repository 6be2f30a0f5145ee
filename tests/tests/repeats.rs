//! Calls that are repeated, loops that are resumed, plans that are made again; and
//! clocks that do not go straight.

use loop_state_tests::look;
use loop_state_tests::views::assert_in_step;
use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};

/// 2026-10-25T00:30:00Z, half an hour before summer time ends in Europe.
const START: i64 = 1_792_888_200_000;

const MINUTE: i64 = 60_000;
const DAY: i64 = 24 * 60 * MINUTE;

fn task_to(client: &mut Client, taskid: &str, statuses: &[&str]) {
    for status in statuses {
        client.ok("task_setStatus", json!({ "taskid": taskid, "status": status, "evidence": "seen" }));
    }
}

const TO_REVIEW: [&str; 6] = ["issue-open", "in-progress", "verified", "secure", "pr-open", "in-review"];

#[test]
fn a_call_made_twice_says_so_and_changes_no_more() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let mut other = world.client();
    client.ok(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "T1", "title": "a" }, { "taskid": "T2", "title": "b" }] }),
    );
    // Each call, and what the second answer says.
    let calls = [
        ("loop_init", json!({ "goal": "try it" }), json!({ "reused": true, "differs": [] })),
        ("loop_setPhase", json!({ "phase": "build" }), json!({ "unchanged": true })),
        ("loop_setPhaseStatus", json!({ "phase": "plan", "status": "done" }), json!({ "unchanged": true })),
        ("loop_setAwaitingUser", json!({ "awaiting": "yes or no?" }), json!({ "unchanged": true })),
        ("loop_setAwaitingUser", json!({ "awaiting": "" }), json!({ "unchanged": true })),
        ("loop_setField", json!({ "field": "legal", "value": "fine" }), json!({ "unchanged": true })),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "t1", "title": "c" }] }),
            json!({ "updated": [], "unchanged": ["T1"] }),
        ),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "issue-open", "issue": "#1" }),
            json!({ "unchanged": true }),
        ),
        ("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }), json!({ "unchanged": true })),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "verified", "evidence": "e" }),
            json!({ "unchanged": true }),
        ),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "secure", "evidence": "f" }),
            json!({ "unchanged": true }),
        ),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "pr-open", "pr": 2 }),
            json!({ "unchanged": true }),
        ),
        ("task_setStatus", json!({ "taskid": "T1", "status": "in-review" }), json!({ "unchanged": true })),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "merged", "evidence": "1a2b3c4" }),
            json!({ "unchanged": true }),
        ),
        ("task_complete", json!({ "taskid": "T1", "mergeEvidence": "1a2b3c4" }), json!({ "already": true })),
        ("task_setStatus", json!({ "taskid": "T2", "status": "skipped" }), json!({ "unchanged": true })),
        ("now_clear", json!({}), json!({})),
        ("loop_clearBlock", json!({ "resolution": "none needed" }), json!({ "cleared": null })),
        ("loop_finish", json!({ "status": "done" }), json!({ "already": true, "phase": "done" })),
    ];
    for (tool, arguments, second) in calls {
        let what = format!("{tool} {arguments}");
        client.ok(tool, arguments.clone());
        let (rows, files) = (look::rows(&world.database()), look::files(&world.folder(SLUG)));
        // Once more from the same server and once from another.
        for again in [&mut client, &mut other] {
            let reply = again.ok(tool, arguments.clone());
            for (key, value) in second.as_object().expect("fields") {
                assert_eq!(&reply[key], value, "{what}: {reply}");
            }
        }
        look::assert_same(&rows, &look::rows(&world.database()), &what);
        look::assert_same(&files, &look::files(&world.folder(SLUG)), &what);
    }
    let refusal = client.refused("loop_finish", json!({ "status": "aborted" }));
    assert!(refusal.contains("as done"), "{refusal}");
    let reply = client.ok("loop_init", json!({ "goal": "another", "mode": "poc" }));
    assert_eq!(reply["status"], "done");
    assert_eq!(reply["differs"].as_array().map(Vec::len), Some(2), "{reply}");
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn what_counts_up_counts_each_call() {
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "a" }] }));
    let calls = [
        ("task_bumpCounter", json!({ "taskid": "T1", "counter": "retries" }), "value"),
        ("loop_bumpCounter", json!({ "counter": "qa_rounds" }), "value"),
        ("event_append", json!({ "event": "probe" }), "seq"),
        ("memory_append", json!({ "agent": "a", "note": "n" }), "seq"),
        ("now_set", json!({ "task": "T1", "agent": "a", "step": "s" }), "attempt"),
    ];
    for (tool, arguments, field) in calls {
        let first = client.ok(tool, arguments.clone())[field].as_i64().expect("a number");
        assert_eq!(client.ok(tool, arguments)[field], first + 1, "{tool}");
    }
    let append = json!({ "kind": "qa-fix", "tasks": [{ "title": "a" }] });
    assert_eq!(client.ok("tasks_append", append.clone())["created"], json!(["T2"]));
    assert_eq!(client.ok("tasks_append", append)["created"], json!(["T3"]));
    let named = json!({ "kind": "qa-fix", "tasks": [{ "taskid": "T3", "title": "a" }] });
    assert!(client.refused("tasks_append", named).contains("T3 exists already"));
    let split = json!({ "taskid": "T2", "subtasks": [{ "title": "a" }] });
    client.ok("tasks_split", split.clone());
    assert!(client.refused("tasks_split", split).contains("superseded"));
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn a_plan_made_again_moves_no_status_back_and_drops_no_task() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let plan = json!({ "tasks": [
        { "taskid": "T1", "title": "a", "tech": "rust" },
        { "taskid": "T2", "title": "b", "depends_on": ["T1"] },
    ] });
    client.ok("tasks_derive", plan);
    task_to(&mut client, "T1", &TO_REVIEW);
    client.ok("task_bumpCounter", json!({ "taskid": "T1", "counter": "review_rounds" }));
    let tasks = |client: &mut Client| client.ok("loop_get", json!({}))["tasks"].clone();
    let before = tasks(&mut client);

    let reply = client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "new title" }] }));
    assert_eq!(reply, json!({ "created": [], "updated": ["T1"], "unchanged": [] }));
    client.refused("tasks_derive", json!({ "tasks": [] }));
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T2", "title": "b", "depends_on": [] }] }));
    let after = tasks(&mut client);
    assert_eq!(after.as_array().map(Vec::len), Some(2));
    for key in ["status", "tech", "last_evidence", "review_rounds", "created_at"] {
        assert_eq!(after[0][key], before[0][key], "{key}");
    }
    assert_eq!((&after[0]["title"], &after[1]["depends_on"]), (&json!("new title"), &json!([])));
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn a_latch_leaves_with_the_task_it_names_whatever_becomes_of_it() {
    for (tool, arguments) in [
        ("task_setStatus", json!({ "taskid": "T1", "status": "skipped" })),
        ("task_setStatus", json!({ "taskid": "T1", "status": "blocked" })),
        ("tasks_split", json!({ "taskid": "T1", "subtasks": [{ "title": "half" }] })),
        ("task_bumpCounter", json!({ "taskid": "T1", "counter": "retries" })),
        ("loop_clearBlock", json!({ "resolution": "the user lets it be" })),
    ] {
        let world = World::new();
        let mut client = world.client_with_loop();
        let plan = json!({ "tasks": [{ "taskid": "T1", "title": "a" }, { "taskid": "T2", "title": "b" }] });
        client.ok("tasks_derive", plan);
        client.refused("task_setStatus", json!({ "taskid": "T1", "status": "merged" }));
        // The latch outlives the server that set it.
        client.kill();
        let mut client = world.client();
        let refusal = client.refused("now_set", json!({ "task": "T2", "agent": "a", "step": "s" }));
        assert!(refusal.contains("waits for a refused task_setStatus on T1"), "{refusal}");
        client.ok(tool, arguments);
        client.ok("now_set", json!({ "task": "T2", "agent": "a", "step": "s" }));
        assert_eq!(client.ok("loop_get", json!({}))["loop"]["blocked_op"], Value::Null, "{tool}");
        assert_in_step(&world, &mut client, SLUG);
    }
}

#[test]
fn a_step_that_was_left_open_is_found_three_days_later() {
    let world = World::with_clock(START);
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "a" }] }));
    world.set_clock(START + MINUTE);
    client.ok("now_set", json!({ "task": "T1", "agent": "rust-engineer-loop", "step": "build" }));
    client.kill();
    world.set_clock(START + MINUTE + 3 * DAY);
    let mut client = world.client();
    let stale = client.ok("loop_get", json!({}))["loop"].clone();
    assert_eq!(stale["now_task"], "T1");
    assert_eq!(stale["now_since"], "2026-10-25T00:31:00.000Z");
    assert_eq!(stale["updated_at"], "2026-10-25T00:31:00.000Z", "a read changes nothing");
    // A new dispatch closes the old step and counts on.
    let again = client.ok("now_set", json!({ "task": "T1", "agent": "rust-engineer-loop", "step": "build" }));
    assert_eq!(again, json!({ "attempt": 2, "step_seq": 2 }));
    world.set_clock(START + 2 * MINUTE + 3 * DAY);
    let closed = client.ok("now_clear", json!({}))["closed"].clone();
    assert_eq!(closed["wall_ms"], MINUTE);
    let first = "SELECT ended_at - started_at FROM step WHERE seq = 1 AND ended_by = 'auto-next'";
    assert_eq!(look::number(&world.database(), first), 3 * DAY);
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn a_clock_that_jumps_back_makes_no_time_negative_and_changes_no_order() {
    let world = World::with_clock(START);
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "a" }] }));
    let before = client.ok("loop_get", json!({}));
    // Dispatch, return, end: each at its own odd time, by two servers in turn.
    let mut other = world.client();
    let jumps = [(0, -MINUTE, -2 * MINUTE), (MINUTE, -DAY, 0), (-DAY, 0, -2 * DAY), (0, 0, 0)];
    for (dispatch, back, end) in jumps {
        world.set_clock(START + dispatch);
        client.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "s" }));
        world.set_clock(START + back);
        other.ok("event_append", json!({ "event": "agent-return", "to": "done" }));
        world.set_clock(START + end);
        let closed = client.ok("now_clear", json!({}))["closed"].clone();
        for part in ["wall_ms", "agent_ms"] {
            assert!(closed[part].as_i64().is_some_and(|ms| ms >= 0), "{part}: {closed}");
        }
    }
    world.set_clock(START - 5 * DAY);
    task_to(&mut client, "T1", &TO_REVIEW);
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "merged", "evidence": "1a2b3c4" }));
    client.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "1a2b3c4" }));
    client.ok("loop_finish", json!({ "status": "done" }));
    let after = client.ok("loop_get", json!({}));
    let (row, task) = (&after["loop"], &after["tasks"][0]);
    let text = |value: &Value| value.as_str().expect("a time").to_owned();
    assert!(text(&row["updated_at"]) >= text(&before["loop"]["updated_at"]), "{row}");
    assert!(text(&row["finished_at"]) >= text(&row["created_at"]), "{row}");
    assert!(text(&task["updated_at"]) >= text(&task["created_at"]), "{task}");
    assert!(text(&task["completed_at"]) >= text(&task["created_at"]), "{task}");
    let negative = "SELECT count(*) FROM step WHERE ended_at < started_at \
        OR agent_returned_at < started_at OR ended_at < agent_returned_at";
    assert_eq!(look::number(&world.database(), negative), 0);
    let total = "SELECT count(*) FROM step_total WHERE min(wall_ms, agent_ms, orchestrator_ms, unattributed_ms) < 0 \
        OR wall_ms <> agent_ms + orchestrator_ms + unattributed_ms";
    assert_eq!(look::number(&world.database(), total), 0);
    assert!(look::number(&world.database(), "SELECT quality_clock_corrections FROM loop") > 0);
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn the_time_zone_of_the_server_shows_nowhere() {
    let zones = [
        None,
        Some(""),
        Some("UTC"),
        Some("Europe/Prague"),
        Some("Asia/Kathmandu"),
        Some("America/St_Johns"),
        Some(":broken"),
        Some("XXX-25:61"),
    ];
    let mut first: Option<(Vec<Value>, look::Content)> = None;
    for zone in zones {
        let mut world = World::with_clock(START);
        if let Some(zone) = zone {
            world.env.push(("TZ".into(), zone.into()));
            world.env.push(("LC_ALL".into(), "de_DE.UTF-8".into()));
        }
        let mut client = world.client_with_loop();
        let mut replies = Vec::new();
        // Over the hour that is there twice, by the wall clock.
        for hour in 0..3 {
            world.set_clock(START + hour * 60 * MINUTE);
            replies.push(client.ok("now_set", json!({ "agent": "a", "step": "s" })));
            replies.push(client.ok("event_append", json!({ "event": "probe" })));
            replies.push(client.ok("memory_append", json!({ "agent": "a", "note": "n" })));
        }
        replies.push(client.ok("now_clear", json!({})));
        replies.push(client.ok("loop_list", json!({})));
        let seen = (replies, look::files(&world.folder(SLUG)));
        let first = first.get_or_insert_with(|| seen.clone());
        assert_eq!(first.0, seen.0, "{zone:?}");
        look::assert_same(&first.1, &seen.1, &format!("{zone:?}"));
    }
}
