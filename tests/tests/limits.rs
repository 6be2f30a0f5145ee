//! What arguments may look like, how large things may be, which names may be
//! given.

use loop_state_tests::look;
use loop_state_tests::views::assert_in_step;
use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};
use std::fs;
use std::time::Instant;

/// The most characters of an answer.
const ANSWER_MAX: usize = 40_000;

/// The most bytes of a text.
const TEXT_MAX: usize = 1 << 20;

/// What a call is to come to.
enum Expected {
    /// Passes, with at least these fields.
    Pass(Value),
    /// Is refused, with these words.
    Refuse(&'static [&'static str]),
}

#[test]
fn arguments_that_stray_are_understood_or_named() {
    use Expected::{Pass, Refuse};
    let cases = [
        (
            "tasks_derive",
            json!({ "tasks": "[{\"taskid\":\"T2\",\"title\":\"a\"}]" }),
            Pass(json!({ "created": ["T2"] })),
        ),
        (
            "tasks_derive",
            json!({ "tasks": ["{\"taskid\":\"T3\",\"title\":\"b\",\"depends_on\":\"[\\\"T2\\\"]\"}"] }),
            Pass(json!({ "created": ["T3"] })),
        ),
        ("tasks_derive", json!({ "tasks": "T4" }), Refuse(&["`tasks`", "a list", "the text \"T4\""])),
        ("tasks_derive", json!({ "tasks": { "taskid": "T4" } }), Refuse(&["`tasks`", "a list", "an object"])),
        ("tasks_derive", json!({ "tasks": ["T4"] }), Refuse(&["`tasks[0]`", "{taskid, title", "\"T4\""])),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T4", "title": "c", "depends_on": "T2" }] }),
            Refuse(&["`tasks[0].depends_on`", "a list", "\"T2\""]),
        ),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T4", "title": "c", "dependsOn": ["T2"] }] }),
            Refuse(&["`tasks[0].dependsOn`", "did you mean `tasks[0].depends_on`"]),
        ),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T4", "title": ["c"] }] }),
            Refuse(&["`tasks[0].title`", "text", "a list"]),
        ),
        ("tasks_derive", json!({ "tasks": [{ "taskid": "T4" }] }), Refuse(&["missing", "`tasks[0].title`"])),
        ("tasks_derive", json!({ "tasks": [] }), Refuse(&["the list of tasks is empty"])),
        (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "retries", "by": "2" }),
            Pass(json!({ "value": 2 })),
        ),
        (
            "task_bumpCounter",
            json!({ "taskid": "t1", "counter": "retries", "by": 1.0 }),
            Pass(json!({ "value": 3, "capExceeded": true })),
        ),
        (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "retries", "by": 1.5 }),
            Refuse(&["`by`", "a whole number", "1.5"]),
        ),
        (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "retries", "by": "many" }),
            Refuse(&["`by`", "a whole number", "many"]),
        ),
        (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "retries", "by": -9_000_000_000_i64 }),
            Pass(json!({ "value": 0 })),
        ),
        (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "tries" }),
            Refuse(&["`counter`", "\"tries\"", "retries, security_rounds, review_rounds"]),
        ),
        ("loop_list", json!({ "includeFinished": "true" }), Pass(json!({}))),
        (
            "loop_list",
            json!({ "includeFinished": "perhaps" }),
            Refuse(&["`includeFinished`", "true or false"]),
        ),
        ("loop_list", json!({ "includeFinished": null, "limit": "1" }), Pass(json!({}))),
        ("loop_list", json!({ "limit": -1 }), Refuse(&["`limit`", "-1"])),
        ("loop_get", json!({ "limit": 1.0, "offset": "0" }), Pass(json!({}))),
        ("loop_setPhase", json!({ "phase": "Build" }), Refuse(&["`phase`", "\"Build\"", "build, qa"])),
        ("loop_setPhase", json!({ "phase": " build " }), Pass(json!({ "phase": "build" }))),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "issue-open", "issue": 12 }),
            Pass(json!({ "to": "issue-open" })),
        ),
        ("loop_setField", json!({ "field": "f_unresolved_pr", "value": "3" }), Pass(json!({ "value": 3 }))),
        ("loop_setField", json!({ "field": "f_unresolved_pr", "value": -3 }), Refuse(&["value", "-3"])),
        (
            "loop_setField",
            json!({ "field": "f_unresolved_pr", "value": null }),
            Pass(json!({ "value": null })),
        ),
        (
            "loop_setField",
            json!({ "field": "mode", "value": "fast" }),
            Refuse(&["value", "fast", "standard"]),
        ),
        ("loop_setField", json!({ "field": "mode", "value": null }), Refuse(&["mode", "null"])),
        ("loop_setField", json!({ "field": "legal" }), Refuse(&["missing required argument `value`"])),
        ("event_append", json!({ "event": "probe", "nota": "x" }), Refuse(&["`nota`", "`note`"])),
        (
            "event_append",
            json!({ "event": "probe", "_meta": { "progressToken": 1 }, "zzz": 1 }),
            Pass(json!({ "ignored": ["_meta", "zzz"] })),
        ),
        ("event_append", json!({ "event": "  " }), Refuse(&["`event`", "blank"])),
        ("event_append", json!({ "event": 7 }), Refuse(&["`event`", "text", "the number 7"])),
        ("memory_append", json!({ "agent": "a", "note": "\u{200b}" }), Refuse(&["`note`", "blank"])),
        ("loop_get", json!({ "loopSlug": null }), Refuse(&["missing required argument `loopSlug`"])),
        ("loop_get", json!({ "loopslug": SLUG }), Refuse(&["`loopslug`", "did you mean `loopSlug`"])),
    ];
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "a" }] }));
    for (tool, arguments, expected) in cases {
        let what = format!("{tool} {arguments}");
        let before = look::rows(&world.database());
        match (client.call(tool, arguments), expected) {
            (Ok(reply), Pass(fields)) => {
                for (key, value) in fields.as_object().expect("fields") {
                    assert_eq!(&reply[key], value, "{what}: {reply}");
                }
            }
            (Err(refusal), Refuse(words)) => {
                for word in words {
                    assert!(refusal.contains(word), "{what}: {refusal:?} lacks {word:?}");
                }
                look::assert_same(&before, &look::rows(&world.database()), &what);
            }
            (Ok(reply), Refuse(_)) => panic!("{what} passed: {reply}"),
            (Err(refusal), Pass(_)) => panic!("{what} was refused: {refusal}"),
        }
    }
    assert_in_step(&world, &mut client, SLUG);
}

/// Calls a tool that reads and checks the length of its answer.
#[track_caller]
fn bounded(client: &mut Client, tool: &str, arguments: Value) -> Value {
    let reply = client.ok(tool, arguments);
    let length = reply.to_string().chars().count();
    assert!(length <= ANSWER_MAX, "{tool} answers with {length} characters");
    reply
}

#[test]
fn texts_are_kept_whole_up_to_their_limit_and_refused_beyond() {
    let world = World::new();
    let mut client = world.client();
    let largest = "g".repeat(TEXT_MAX);
    let over = TEXT_MAX + 1;
    for n in 0..3 {
        let slug = format!("{SLUG}-{n}");
        let reply = client.ok("loop_init", json!({ "loopSlug": slug, "goal": largest }));
        assert!(reply.to_string().len() < ANSWER_MAX);
    }
    client.ok("loop_init", json!({ "goal": "small" }));
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "small" }] }));
    client.ok("event_append", json!({ "event": "large", "note": largest }));
    client.ok("memory_append", json!({ "agent": "a", "note": largest }));
    let before = look::rows(&world.database());
    let cases = [
        ("loop_init", json!({ "loopSlug": "x", "goal": "g".repeat(over) }), "goal", over),
        ("event_append", json!({ "event": "probe", "note": "n".repeat(10 << 20) }), "note", 10 << 20),
        (
            "memory_append",
            json!({ "agent": "a", "note": "é".repeat(TEXT_MAX / 2 + 1) }),
            "note",
            TEXT_MAX + 2,
        ),
        (
            "tasks_derive",
            json!({ "tasks": [{ "taskid": "T9", "title": "t".repeat(over) }] }),
            "tasks[0].title",
            over,
        ),
        (
            "task_setStatus",
            json!({ "taskid": "T1", "status": "skipped", "evidence": "e".repeat(over) }),
            "evidence",
            over,
        ),
    ];
    for (tool, arguments, key, bytes) in cases {
        let refusal = client.refused(tool, arguments);
        let said = refusal.contains(&format!("`{key}` is {bytes} bytes")) && refusal.contains("nothing was");
        assert!(said, "{tool}: {refusal}");
    }
    let refusal =
        client.refused("task_setStatus", json!({ "taskid": "T".repeat(5_000), "status": "skipped" }));
    assert!(refusal.contains("1 to 64 characters") && refusal.len() < 1_000, "{refusal}");
    look::assert_same(&before, &look::rows(&world.database()), "rows");

    assert_eq!(look::number(&world.database(), "SELECT max(length(goal)) FROM loop"), TEXT_MAX as i64);
    assert_eq!(look::number(&world.database(), "SELECT max(length(note)) FROM event"), TEXT_MAX as i64);
    bounded(&mut client, "loop_get", json!({ "loopSlug": "demo-0" }));
    let list = bounded(&mut client, "loop_list", json!({}));
    assert_eq!(list["loops"].as_array().map(Vec::len), Some(4));
    assert_in_step(&world, &mut client, "demo-2");
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn many_tasks_are_answered_in_parts_and_too_many_refused_whole() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let task =
        |n: usize| json!({ "taskid": format!("T{n}"), "title": "t", "description": "d".repeat(4_000) });
    let tasks: Vec<_> = (1..=400).map(task).collect();
    let created = bounded(&mut client, "tasks_derive", json!({ "tasks": tasks }));
    assert_eq!(created["created"].as_array().map(Vec::len), Some(400));
    bounded(&mut client, "loop_list", json!({}));
    bounded(&mut client, "tasks_derive", json!({ "tasks": tasks }));
    bounded(&mut client, "task_setStatus", json!({ "taskid": "T400", "status": "issue-open" }));

    let mut seen = Vec::new();
    loop {
        let page = bounded(&mut client, "loop_get", json!({ "offset": seen.len() }));
        let shown = page["tasks"].as_array().expect("tasks");
        assert!(!shown.is_empty(), "no way on from {}", seen.len());
        seen.extend(shown.iter().map(|t| t["taskid"].clone()));
        let more = page["more"].as_u64().unwrap_or(0);
        assert_eq!(seen.len() as u64 + more, 400);
        if more == 0 {
            break;
        }
    }
    assert_eq!(seen, (1..=400).map(|n| json!(format!("T{n}"))).collect::<Vec<_>>());

    let before = look::rows(&world.database());
    let many: Vec<_> = (0..20_000).map(|n| json!({ "taskid": format!("N{n}"), "title": "t" })).collect();
    let begun = Instant::now();
    let refusal = client.refused("tasks_derive", json!({ "tasks": many }));
    assert!(refusal.contains("20400 tasks") && refusal.contains("Nothing of the batch"), "{refusal}");
    assert!(begun.elapsed().as_secs() < 20, "after {:?}", begun.elapsed());
    look::assert_same(&before, &look::rows(&world.database()), "rows");
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn batches_with_rings_are_refused_whole_and_long_chains_kept() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let task = |id: &str, depends_on: &[&str]| json!({ "taskid": id, "title": id, "depends_on": depends_on });
    client.ok("tasks_derive", json!({ "tasks": [task("S1", &[]), task("S2", &["S1", "s1"])] }));
    assert_eq!(client.ok("loop_get", json!({}))["tasks"][1]["depends_on"], json!(["S1"]));
    let before = look::rows(&world.database());
    let batches = [
        (vec![task("A", &["B"]), task("B", &["A"])], "A → B → A"),
        (vec![task("A", &["B"]), task("B", &["C"]), task("C", &["A"])], "A → B → C → A"),
        (vec![task("A", &[]), task("S1", &["S2"])], "S1 → S2 → S1"),
        (vec![task("A", &["a"])], "A depends on itself"),
        (vec![task("A", &[]), task("B", &["nowhere"])], "B depends on nowhere"),
        (vec![task("A", &[]), task("a", &[])], "a stands in the batch twice"),
    ];
    for (tasks, words) in batches {
        let refusal = client.refused("tasks_derive", json!({ "tasks": tasks }));
        assert!(refusal.contains(words) && refusal.contains("Nothing of the batch was stored"), "{refusal}");
        look::assert_same(&before, &look::rows(&world.database()), words);
    }
    let name = |n: usize| format!("C{n}");
    let mut chain: Vec<_> = (1..=2_000).map(|n| task(&name(n), &[name(n - 1).as_str()])).collect();
    chain.insert(0, task("C0", &[]));
    client.ok("tasks_derive", json!({ "tasks": chain }));
    let refusal = client.refused("tasks_derive", json!({ "tasks": [task("C0", &["C2000"])] }));
    assert!(refusal.contains("C0 → C2000") && refusal.len() < 2_000, "{refusal}");

    // Followers wait for every part of what they follow.
    client.ok("tasks_split", json!({ "taskid": "S1", "subtasks": [{ "title": "a" }, { "title": "b" }] }));
    client.ok("tasks_split", json!({ "taskid": "S1b", "subtasks": [{ "title": "c" }, { "title": "d" }] }));
    client.ok("task_setStatus", json!({ "taskid": "S1a", "status": "skipped" }));
    client.ok("task_setStatus", json!({ "taskid": "S1ba", "status": "skipped" }));
    let refusal = client.refused("task_complete", json!({ "taskid": "S2", "mergeEvidence": "1a2b3c4" }));
    assert!(refusal.contains("dependency S1 is not complete (status=superseded)"), "{refusal}");
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn slugs_are_names_that_every_system_takes() {
    let world = World::new();
    let mut client = world.client();
    let untouched = look::files(world.top());
    let long = "a".repeat(65);
    let bad = [
        "",
        " ",
        "..",
        ".",
        "a/b",
        "/etc",
        "../x",
        "a\\b",
        "-rf",
        "a-",
        "a--b",
        "%2e%2e",
        "a\0b",
        "A",
        "a b",
        "a.",
        "a_b",
        "con",
        "nul",
        "aux",
        "com1",
        "lpt9",
        "prn",
        "a:b",
        "a?b",
        "a*b",
        "a\"b",
        "x\n",
        "é",
        "𝐚",
        long.as_str(),
        &"가".repeat(64),
        ".git",
        "~",
        "a\u{202e}b",
        "CON",
    ];
    for slug in bad {
        let refusal = client.refused("loop_init", json!({ "loopSlug": slug, "goal": "x" }));
        let said = refusal.contains("`loopSlug`") && refusal.contains("words of a-z and 0-9");
        assert!(said && refusal.len() < 1_000, "{slug:?}: {refusal}");
        client.refused("loop_get", json!({ "loopSlug": slug }));
        client.refused("loop_render", json!({ "loopSlug": slug }));
    }
    let project = |files: look::Content| -> look::Content {
        files.into_iter().filter(|(path, _)| !path.starts_with("state")).collect()
    };
    let now = project(look::files(world.top()));
    look::assert_same(&project(untouched), &now, "a refused slug left something");
    for slug in ["a", "0", "a-b-c", "x1-2y", "con-1", "a".repeat(64).as_str(), "com10", "loop-md"] {
        client.ok("loop_init", json!({ "loopSlug": slug, "goal": "x" }));
        assert_in_step(&world, &mut client, slug);
    }
}

#[test]
fn task_ids_are_names_that_every_system_takes() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let before = look::rows(&world.database());
    let long = "T".repeat(65);
    for id in [
        "",
        "  ",
        "..",
        ".",
        "a/b",
        "../x",
        "a\\b",
        "-a",
        ".a",
        "_a",
        "x.",
        "a b",
        "a:b",
        "a?b",
        "a*b",
        "a\"b",
        "#1",
        "@a",
        "con",
        "CON",
        "nul",
        "aux.md",
        "com1",
        "lpt9.txt",
        "prn.",
        "T1: x",
        "a\0",
        "é",
        "T1\nT2",
        long.as_str(),
        &"T".repeat(256),
        "a\u{200b}",
    ] {
        let refusal = client.refused("tasks_derive", json!({ "tasks": [{ "taskid": id, "title": "x" }] }));
        let said = refusal.contains("`tasks[0].taskid`")
            && (refusal.contains("1 to 64 characters") || refusal.contains("blank"));
        assert!(said && refusal.len() < 1_000, "{id:?}: {refusal}");
    }
    look::assert_same(&before, &look::rows(&world.database()), "rows");
    // Words that YAML, JSON or a plan could take for something else are names like any other.
    let good = [
        "yes",
        "null",
        "1e3",
        "2026-08-18",
        "T".repeat(64).leak(),
        " T1 ",
        "a.b_c-d",
        "true",
        "0",
        "com10",
        "no",
    ];
    let tasks: Vec<_> = good.iter().map(|id| json!({ "taskid": id, "title": "x" })).collect();
    let created = client.ok("tasks_derive", json!({ "tasks": tasks }));
    let kept: Vec<_> = good.iter().map(|id| json!(id.trim())).collect();
    assert_eq!(created["created"], json!(kept));
    for id in good {
        client.ok("task_setStatus", json!({ "taskid": id, "status": "skipped" }));
    }
    assert_in_step(&world, &mut client, SLUG);
}

#[test]
fn a_long_path_and_texts_of_every_kind_come_through() {
    let mut world = World::new();
    let mut deep = world.top().join("project");
    for _ in 0..15 {
        deep.push("d".repeat(250));
    }
    fs::create_dir_all(&deep).expect("a long path");
    world.args = vec!["--project-root".into(), deep.clone().into()];
    let mut client = world.client();
    let texts = [
        "a | b | c",
        r"x \| y",
        r"ends with \",
        "`a|b`",
        "l1\nl2\r\nl3\rl4",
        "a\u{2028}b\u{2029}c",
        "a\tb",
        "[ ]",
        "- [x] done",
        "1. x",
        "> q",
        "***",
        "---",
        "<b>",
        "</details>",
        "<!--",
        "&amp;",
        "[t](javascript:x)",
        "\u{1b}[2J",
        "\u{1b}]0;pwn\u{7}",
        "\0",
        "\u{7f}",
        "\u{9b}",
        "\u{202e}abc",
        "\u{2066}x\u{200b}",
        "👨‍👩‍👧‍👦 🇨🇿",
        "مرحبا שלום",
        "# T1: x",
        "- status: done",
        "```",
    ];
    for (n, text) in texts.iter().enumerate() {
        let slug = format!("t{n}");
        // A control character alone would be blank.
        let said = format!("x{text}");
        client.ok("loop_init", json!({ "loopSlug": slug, "goal": said, "title": said }));
        let at = |value: Value| {
            let mut value = value;
            value["loopSlug"] = json!(slug);
            value
        };
        client.ok(
            "tasks_derive",
            at(json!({ "tasks": [{ "taskid": "T1", "title": said, "description": text }] })),
        );
        client.ok("memory_append", at(json!({ "agent": said, "note": said })));
        client.ok("now_set", at(json!({ "task": "T1", "agent": said, "step": said })));
        let reply = client.ok("event_append", at(json!({ "event": said, "note": text })));
        assert!(reply.get("mirror").is_none(), "{reply}");
        let state = client.ok("loop_get", at(json!({})));
        assert_eq!(state["loop"]["goal"], said);
        assert_eq!(state["tasks"][0]["title"], said);
        assert_eq!(state["loop"]["now_step"], said);
        let folder = deep.join(".projects/loops").join(&slug);
        for view in ["loop.md", "memory.md", "events.jsonl"] {
            let page = fs::read_to_string(folder.join(view)).expect("a view");
            let raw = page.chars().find(|c| {
                (c.is_control() && !matches!(c, '\n' | '\t'))
                    || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{2028}' | '\u{2029}')
            });
            assert_eq!(raw.map(|c| c.escape_unicode().to_string()), None, "{text:?} in {view}: {page}");
        }
        let page = fs::read_to_string(folder.join("loop.md")).expect("a view");
        assert_eq!(page.lines().filter(|l| l.starts_with("- [")).count(), 1, "{text:?}: {page}");
        assert!(!page.contains("- [x]") && page.matches("\n## ").count() == 5, "{text:?}: {page}");
    }
}
