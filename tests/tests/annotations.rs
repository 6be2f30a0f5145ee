//! What each tool's annotations say, held against what the tool does.

use loop_state_tests::look::{self, Content};
use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

const TASKS: [&str; 3] = ["T1", "T2", "T3"];

/// A loop in the middle of its work: T1 merged, T2 and T3 pending, a step open, a lesson kept, an
/// answer awaited.
fn prepared(world: &World) -> Client {
    let mut client = world.client_with_loop();
    let tasks: Vec<_> = TASKS.iter().map(|id| json!({ "taskid": id, "title": "work" })).collect();
    client.ok("tasks_derive", json!({ "tasks": tasks }));
    for status in ["issue-open", "in-progress", "verified", "secure", "pr-open", "in-review", "merged"] {
        client.ok("task_setStatus", json!({ "taskid": "T1", "status": status, "evidence": "1a2b3c4" }));
    }
    client.ok("now_set", json!({ "task": "T1", "agent": "git-loop", "step": "merge" }));
    client.ok("memory_append", json!({ "agent": "git-loop", "note": "Merge early." }));
    client.ok("loop_setAwaitingUser", json!({ "awaiting": "Go on?" }));
    client.ok("loop_writeFile", json!({ "path": "plan.md", "content": "The plan." }));
    client
}

fn nothing(_: &World, _: &mut Client) {}

fn skip_all(_: &World, client: &mut Client) {
    client.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "1a2b3c4" }));
    for task in ["T2", "T3"] {
        client.ok("task_setStatus", json!({ "taskid": task, "status": "skipped" }));
    }
}

fn latch(_: &World, client: &mut Client) {
    client.refused("task_setStatus", json!({ "taskid": "T2", "status": "merged" }));
}

fn damage(world: &World, _: &mut Client) {
    fs::write(world.folder(SLUG).join("loop.md"), "damaged").expect("a view");
}

fn abort(_: &World, client: &mut Client) {
    client.ok("loop_finish", json!({ "status": "aborted" }));
}

fn archive(world: &World, client: &mut Client) {
    abort(world, client);
    client.ok("loop_archive", json!({}));
}

/// A configuration of one goal in the project.
fn goals(world: &World, _: &mut Client) {
    let check = "{target: overall, name: readme, mode: objective, statement: it is there, \
                 detector: {type: file_exists, path: README.md}}";
    fs::write(world.project().join("goals.yaml"), format!("name: demo\nvalidations:\n  - {check}\n"))
        .expect("a file");
}

/// The pages that are free in the database.
fn free_pages(world: &World) -> i64 {
    look::number(&world.database(), "PRAGMA freelist_count")
}

/// A call of a tool that does what the tool is for.
struct Case {
    tool: &'static str,
    arguments: Value,
    /// What has to be done before, beyond [`prepared`].
    before: fn(&World, &mut Client),
}

/// One case at least for each tool there is.
fn cases() -> Vec<Case> {
    let case = |tool, arguments| Case { tool, arguments, before: nothing };
    let after = |tool, arguments, before| Case { tool, arguments, before };
    vec![
        case("loop_init", json!({ "loopSlug": "another", "goal": "try that", "mode": "poc" })),
        case("loop_get", json!({})),
        case("loop_list", json!({ "includeFinished": true })),
        case("loop_recover", json!({})),
        case("loop_audit", json!({})),
        case("loop_timings", json!({})),
        case("loop_files", json!({})),
        case("loop_setPhase", json!({ "phase": "build" })),
        case("loop_setPhaseStatus", json!({ "phase": "plan", "status": "done" })),
        case("loop_setAwaitingUser", json!({ "awaiting": null })),
        case("loop_setAwaitingUser", json!({ "awaiting": "And now?" })),
        case("loop_setField", json!({ "field": "legal", "value": "fine" })),
        case("loop_setField", json!({ "field": "f_unresolved_pr", "value": 2 })),
        case("loop_bumpCounter", json!({ "counter": "qa_rounds" })),
        after("loop_finish", json!({ "status": "done" }), skip_all),
        case("loop_finish", json!({ "status": "aborted" })),
        after("loop_render", json!({}), damage),
        after("loop_clearBlock", json!({ "resolution": "let it be" }), latch),
        case(
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T3", "title": "more" }, { "taskid": "T4", "title": "new" }] }),
        ),
        case(
            "tasks_split",
            json!({ "taskid": "T2", "subtasks": [{ "title": "half" }, { "title": "half" }] }),
        ),
        case("tasks_append", json!({ "kind": "qa-fix", "tasks": [{ "title": "fix" }] })),
        case("task_setStatus", json!({ "taskid": "T2", "status": "blocked", "evidence": "no key" })),
        case("task_bumpCounter", json!({ "taskid": "T2", "counter": "retries", "by": 2 })),
        case("task_complete", json!({ "taskid": "T1", "mergeEvidence": "1a2b3c4" })),
        case("now_set", json!({ "task": "T1", "agent": "git-loop", "step": "merge" })),
        case("now_clear", json!({})),
        case("event_append", json!({ "event": "agent-return", "to": "done" })),
        case("loop_writeFile", json!({ "path": "plan.md", "content": "Another plan." })),
        case("loop_readFile", json!({ "path": "plan.md" })),
        after("loop_materialize", json!({}), |world, _| {
            fs::remove_file(world.folder(SLUG).join("plan.md")).expect("a document");
        }),
        after("loop_archive", json!({}), abort),
        after("archive_list", json!({}), archive),
        after("archive_get", json!({ "archiveId": "ARCHIVE" }), archive),
        after("archive_readFile", json!({ "archiveId": "ARCHIVE", "path": "plan.md" }), archive),
        after("archive_restore", json!({ "archiveId": "ARCHIVE" }), archive),
        after("archive_delete", json!({ "archiveId": "ARCHIVE", "confirm": "ARCHIVE" }), archive),
        after("loop_prune", json!({ "olderThanDays": 0, "dryRun": false }), abort),
        after("loop_delete", json!({ "confirm": SLUG }), abort),
        after("db_vacuum", json!({}), |_, client| {
            let text = "x".repeat(200_000);
            client.ok("loopsmith_scratchpad", json!({ "run_id": "r", "key": "k", "value": text }));
            client.ok("loopsmith_scratchpad", json!({ "run_id": "r", "key": "k", "clear": true }));
        }),
        after("loopsmith_plan", json!({ "config_path": "goals.yaml" }), goals),
        after(
            "loopsmith_gate_evaluate",
            json!({ "config_path": "goals.yaml", "target": "overall", "run_id": SLUG }),
            goals,
        ),
        case("loopsmith_ledger", json!({ "run_id": SLUG })),
        case("loopsmith_goal_states", json!({ "run_id": SLUG })),
        case(
            "loopsmith_record_episode",
            json!({ "run_id": SLUG, "node_id": "n", "provider_id": "p", "output": "o" }),
        ),
        case("loopsmith_episodes", json!({ "run_id": SLUG })),
        case("loopsmith_scratchpad", json!({ "run_id": "r", "key": "k", "value": "v" })),
        case("memory_append", json!({ "agent": "git-loop", "note": "Merge early.", "taskid": "T1" })),
    ]
}

/// Rows of the database, and files of the project.
fn everything(world: &World) -> (Content, Content) {
    (look::rows(&world.database()), look::files(&world.project()))
}

fn differs(before: &(Content, Content), after: &(Content, Content)) -> Vec<String> {
    [look::difference(&before.0, &after.0), look::difference(&before.1, &after.1)].concat()
}

#[test]
fn tools_do_what_their_annotations_say() {
    let listed = World::new().client().request("tools/list", json!({}));
    let tools: BTreeMap<_, _> = listed["tools"]
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| (tool["name"].as_str().expect("a name"), &tool["annotations"]))
        .collect();
    let cases = cases();
    for tool in tools.keys() {
        assert!(
            cases.iter().any(|case| case.tool == *tool),
            "give {tool} a case, so that its hints are tried"
        );
    }
    for Case { tool, arguments, before } in cases {
        // A catalogue may lack a tool; one without a case was found above.
        let Some(hints) = tools.get(tool) else { continue };
        let hint = |name: &str| hints[name].as_bool().unwrap_or_else(|| panic!("{tool} has no {name}"));
        assert!(hints["title"].as_str().is_some_and(|t| !t.is_empty()), "{tool} has no title");
        // The clock moves on with each call, so that a time that is written anew shows.
        let world = World::with_clock(1_000_000_000_000);
        let mut client = prepared(&world);
        before(&world, &mut client);
        world.set_clock(1_000_000_060_000);
        let archives = look::names(&look::open(&world.database()), "SELECT id FROM loop_archive");
        let id = archives.first().map_or("", String::as_str);
        let arguments: Value =
            serde_json::from_str(&arguments.to_string().replace("ARCHIVE", id)).expect("JSON");
        let pages = free_pages(&world);
        let at_first = everything(&world);
        client.ok(tool, arguments.clone());
        let once = everything(&world);
        let changed = differs(&at_first, &once);
        if hint("readOnlyHint") {
            assert!(changed.is_empty(), "{tool} says that it only reads:\n{}", changed.join("\n"));
        } else if tool == "db_vacuum" {
            assert!(pages > free_pages(&world), "{tool} freed nothing of {pages} pages");
        } else {
            assert!(
                !changed.is_empty(),
                "{tool} {arguments} does not say that it only reads, and changed nothing"
            );
        }
        // What is gone from the tables without another row in its place.
        let rows_of = |content: &Content| {
            let mut rows = BTreeMap::new();
            for row in content.keys() {
                *rows.entry(row.split(':').next().unwrap_or_default().to_owned()).or_insert(0) += 1;
            }
            rows
        };
        let (had, has) = (rows_of(&at_first.0), rows_of(&once.0));
        let lost = had.iter().any(|(table, count)| has.get(table).is_none_or(|now| now < count));
        assert!(hint("destructiveHint") || !lost, "{tool} removed rows: {}", changed.join("\n"));

        world.set_clock(1_000_000_120_000);
        let second = client.call(tool, arguments.clone());
        let again = differs(&once, &everything(&world));
        if hint("idempotentHint") {
            assert!(second.is_ok(), "{tool} {arguments} twice: {second:?}");
            assert!(again.is_empty(), "{tool} {arguments} twice:\n{}", again.join("\n"));
        } else {
            assert!(
                second.is_err() || !again.is_empty(),
                "{tool} {arguments} could say that it is idempotent"
            );
        }
    }
}

#[test]
fn a_refused_call_changes_nothing_but_the_latch() {
    let world = World::new();
    let mut client = prepared(&world);
    let refusals = [
        ("loop_finish", json!({ "status": "done" })),
        ("loop_get", json!({ "loopSlug": "demos" })),
        ("task_setStatus", json!({ "taskid": "T9", "status": "skipped" })),
        ("tasks_append", json!({ "kind": "qa-fix", "tasks": [{ "taskid": "T1", "title": "x" }] })),
        ("tasks_split", json!({ "taskid": "T1", "subtasks": [{ "title": "x" }] })),
        ("loop_clearBlock", json!({ "resolution": " " })),
        ("loop_setField", json!({ "field": "mode", "value": "fast" })),
    ];
    for (tool, arguments) in refusals {
        let before = everything(&world);
        client.refused(tool, arguments.clone());
        let changed = differs(&before, &everything(&world));
        assert!(changed.is_empty(), "{tool} {arguments} was refused:\n{}", changed.join("\n"));
    }
    let before = everything(&world);
    client.refused("task_setStatus", json!({ "taskid": "T2", "status": "issue-open" }));
    let (rows, _) = everything(&world);
    let mut tables: Vec<_> = look::difference(&before.0, &rows)
        .iter()
        .map(|line| line.split(' ').take(2).collect::<Vec<_>>().join(" "))
        .collect();
    tables.sort();
    assert_eq!(tables, ["gone: loop:", "new: event:", "new: loop:"]);
}
