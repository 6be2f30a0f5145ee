//! What was acknowledged stays: through many processes at once, through kills at
//! any instant, through first starts that meet.

use loop_state_tests::chance::{Chance, rounds};
use loop_state_tests::look;
use loop_state_tests::views::{assert_in_step, assert_no_gap, events, lessons};
use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::File;
use std::sync::Barrier;
use std::thread;

/// How a refusal by the rules begins or what it says; anything else is a failure.
const LEGAL: [&str; 6] = [
    "waits for a refused",
    "while T",
    "the shortest legal way is",
    "there is no legal way",
    "without proof",
    "takes no more steps",
];

const STATUSES: [&str; 7] =
    ["pending", "issue-open", "in-progress", "verified", "blocked", "skipped", "failed"];

/// What one process did, as it was told.
#[derive(Default)]
struct Tally {
    passed: u64,
    refused: u64,
    bumped: u64,
    notes: BTreeSet<String>,
    lessons: u64,
}

/// One of the calls that several processes make of the same loop.
fn mixed_call(chance: &mut Chance, name: &str) -> (&'static str, Value) {
    let task = *chance.pick(&["T1", "T2", "T3", "T4"]);
    match chance.below(10) {
        0 | 1 => (
            "task_setStatus",
            json!({ "taskid": task, "status": chance.pick(&STATUSES), "evidence": format!("seen by {name}") }),
        ),
        2 | 3 => ("task_bumpCounter", json!({ "taskid": "T1", "counter": "retries" })),
        4 | 5 => ("event_append", json!({ "event": "probe", "note": name })),
        6 => ("memory_append", json!({ "agent": "qa-loop", "note": name })),
        7 => ("loop_setAwaitingUser", json!({ "awaiting": chance.pick(&[Some(name), None]) })),
        8 => ("now_set", json!({ "task": task, "agent": "rust-engineer-loop", "step": name })),
        _ => ("loop_clearBlock", json!({ "resolution": name })),
    }
}

fn hammer(client: &mut Client, mut chance: Chance, who: usize, calls: u64) -> Tally {
    let mut tally = Tally::default();
    for n in 0..calls {
        let name = format!("{who}-{n}");
        let (tool, arguments) = mixed_call(&mut chance, &name);
        match client.call(tool, arguments) {
            Ok(reply) => {
                assert!(reply.get("mirror").is_none(), "{tool}: {reply}");
                tally.passed += 1;
                match tool {
                    "task_bumpCounter" => tally.bumped += 1,
                    "memory_append" => tally.lessons += 1,
                    "event_append" => assert!(tally.notes.insert(name)),
                    _ => {}
                }
            }
            Err(refusal) => {
                assert!(LEGAL.iter().any(|words| refusal.contains(words)), "{tool}: {refusal}");
                tally.refused += 1;
            }
        }
    }
    tally
}

#[test]
fn soak_eight_processes_on_one_loop_lose_and_double_nothing() {
    let mut chance = Chance::new();
    let world = World::new();
    let mut first = world.client_with_loop();
    let tasks: Vec<_> = (1..5).map(|n| json!({ "taskid": format!("T{n}"), "title": "share it" })).collect();
    first.ok("tasks_derive", json!({ "tasks": tasks }));

    let calls = rounds(200, 2_000);
    let start = Barrier::new(8);
    let chances: Vec<_> = (0..8).map(|_| chance.fork()).collect();
    let tallies: Vec<Tally> = thread::scope(|scope| {
        let at_work: Vec<_> = chances
            .into_iter()
            .enumerate()
            .map(|(who, chance)| {
                let (world, start) = (&world, &start);
                scope.spawn(move || {
                    let mut client = world.client();
                    start.wait();
                    hammer(&mut client, chance, who, calls)
                })
            })
            .collect();
        at_work.into_iter().map(|thread| thread.join().expect("a process's calls")).collect()
    });

    let sum = |of: fn(&Tally) -> u64| tallies.iter().map(of).sum::<u64>();
    let (passed, refused) = (sum(|t| t.passed), sum(|t| t.refused));
    assert!(passed > calls && refused > calls / 2, "{passed} passed, {refused} refused: no mix");
    // Before anything else is called: the views are in step by themselves.
    assert_in_step(&world, &mut first, SLUG);
    let task = &first.ok("loop_get", json!({}))["tasks"][0];
    assert_eq!(task["retries"], sum(|t| t.bumped), "the shared counter");
    let stored = events(&world, SLUG);
    let bumps = stored.iter().filter(|e| e.what == "counter retries").count() as u64;
    assert_eq!(bumps, sum(|t| t.bumped), "events of the shared counter");
    let probes = stored.iter().filter_map(|e| e.what.strip_prefix("probe "));
    let told = tallies.iter().flat_map(|t| &t.notes).map(String::as_str);
    assert!(
        probes.clone().collect::<BTreeSet<_>>().iter().copied().eq(told.clone().collect::<BTreeSet<_>>())
    );
    assert_eq!(probes.count(), told.count(), "an event twice");
    let kept = lessons(&world, SLUG);
    assert_no_gap(kept.iter().map(|(seq, _)| *seq));
    assert_eq!(kept.len() as u64, sum(|t| t.lessons));
    look::assert_sound(&world.database());
}

/// What one call leaves behind in the database.
#[derive(Debug, PartialEq)]
enum Trace {
    Event(String),
    Lesson(String),
}

/// A call that always passes, and its trace. `skipped` is where T1 stands.
fn streamed_call(chance: &mut Chance, name: &str, skipped: &mut bool) -> (&'static str, Value, Trace) {
    let event = |text: String| Trace::Event(text);
    match chance.below(6) {
        0 => (
            "event_append",
            json!({ "event": "probe", "note": name, "agent": "a\u{1f980}" }),
            event(format!("probe {name}")),
        ),
        1 => (
            "memory_append",
            json!({ "agent": "qa-loop", "note": format!("{name}\nzwölf") }),
            Trace::Lesson(format!("{name}\nzwölf")),
        ),
        2 => (
            "task_bumpCounter",
            json!({ "taskid": "T1", "counter": "retries" }),
            event("counter retries".into()),
        ),
        3 => ("loop_setAwaitingUser", json!({ "awaiting": name }), event(format!("awaiting-user {name}"))),
        4 => (
            "now_set",
            json!({ "agent": "planner-loop", "step": name, "task": "-" }),
            event(format!("dispatch {name}")),
        ),
        _ => {
            let (from, to) = if *skipped { ("skipped", "pending") } else { ("pending", "skipped") };
            *skipped = !*skipped;
            (
                "task_setStatus",
                json!({ "taskid": "T1", "status": to }),
                event(format!("task_setStatus {from}>{to}")),
            )
        }
    }
}

/// How many of the calls the database holds, given what came of them; panics unless
/// they are the first ones, whole.
#[track_caller]
fn held(traces: &[Trace], new_events: &[String], new_lessons: &[String]) -> usize {
    let (mut events, mut lessons) = (new_events.iter(), new_lessons.iter());
    let mut count = 0;
    for trace in traces {
        let found = match trace {
            Trace::Event(text) => events.clone().next() == Some(text) && events.next().is_some(),
            Trace::Lesson(text) => lessons.clone().next() == Some(text) && lessons.next().is_some(),
        };
        if !found {
            break;
        }
        count += 1;
    }
    let left: Vec<_> = events.chain(lessons).collect();
    assert!(left.is_empty(), "after the first {count} calls there is {left:?}");
    count
}

#[test]
fn soak_a_kill_at_any_instant_loses_nothing_that_was_acknowledged() {
    let mut chance = Chance::new();
    let world = World::new();
    let mut client = world.client_with_loop();
    client.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "survive" }] }));
    let mut skipped = false;
    let mut torn = 0;
    for round in 0..rounds(10, 200) {
        let known = (events(&world, SLUG).len(), lessons(&world, SLUG).len());
        let mut traces = Vec::new();
        for n in 0..60 {
            let (tool, arguments, trace) = streamed_call(&mut chance, &format!("{round}-{n}"), &mut skipped);
            let message = client.message(tool, arguments);
            client.send(&message);
            traces.push(trace);
        }
        let mut acknowledged = 0;
        let mut take = |client: &mut Client| {
            let answer = client.receive()?;
            let reply = answer["result"]["structuredContent"].as_object();
            assert!(reply.is_some_and(|r| !r.contains_key("mirror")), "{answer}");
            acknowledged += 1;
            Some(())
        };
        for _ in 0..chance.below(58) {
            take(&mut client).expect("an answer");
        }
        let delay = std::time::Duration::from_micros(chance.below(4_000));
        let begun = std::time::Instant::now();
        while begun.elapsed() < delay {
            std::hint::spin_loop();
        }
        client.kill();
        while take(&mut client).is_some() {}

        let left = look::files(&world.folder(SLUG));
        client = world.client();
        let healed = client.ok("event_append", json!({ "event": "healed", "note": round.to_string() }));
        assert!(healed.get("mirror").is_none(), "{healed}");
        assert_in_step(&world, &mut client, SLUG);
        look::assert_sound(&world.database());

        let mut stored = events(&world, SLUG);
        let last = stored.pop().expect("the event after the restart");
        assert_eq!((last.seq, &last.what), (stored.len() as i64 + 1, &format!("healed {round}")));
        assert_eq!(healed["seq"], last.seq, "the number that was told");
        let new_events: Vec<_> = stored.drain(known.0..).map(|e| e.what).collect();
        let kept = lessons(&world, SLUG);
        assert_no_gap(kept.iter().map(|(seq, _)| *seq));
        let new_lessons: Vec<_> = kept.into_iter().skip(known.1).map(|(_, note)| note).collect();
        let held = held(&traces, &new_events, &new_lessons);
        assert!(held >= acknowledged, "{acknowledged} calls were acknowledged and {held} are there");

        let task = client.ok("loop_get", json!({}))["tasks"][0].clone();
        skipped = task["status"] == "skipped";
        let bumps = events(&world, SLUG).iter().filter(|e| e.what == "counter retries").count();
        assert_eq!(task["retries"], bumps, "the counter");
        torn += usize::from(held > acknowledged || left.contains_key(".tmp-view"));
    }
    eprintln!("{torn} kills met a call half done");
}

/// Twelve first starts on an empty state folder; returns when all have answered.
fn first_starts(together: bool) {
    let world = World::new();
    let start = Barrier::new(12);
    thread::scope(|scope| {
        let at_work: Vec<_> = (0..12)
            .map(|n| {
                let (world, start) = (&world, &start);
                scope.spawn(move || {
                    let log = world.top().join(format!("stderr-{n}"));
                    let mut command = world.command();
                    command.stderr(File::create(&log).expect("a log"));
                    start.wait();
                    let mut client = Client::spawn(&mut command);
                    client.initialize();
                    if together {
                        start.wait();
                    }
                    let slug = format!("s{n}");
                    let reply = client.ok("loop_init", json!({ "loopSlug": slug, "goal": "meet" }));
                    assert_eq!(reply["loopSlug"], slug);
                    assert!(reply.get("reused").is_none(), "{reply}");
                    let listed = client.ok("loop_list", json!({}));
                    assert!(listed["loops"].as_array().is_some_and(|l| l.iter().any(|l| l["slug"] == slug)));
                    assert!(client.end().success());
                    assert_eq!(std::fs::read_to_string(&log).expect("a log"), "", "said on stderr");
                })
            })
            .collect();
        at_work.into_iter().for_each(|thread| thread.join().expect("a first start"));
    });
    let mut client = world.client();
    let listed = client.ok("loop_list", json!({}));
    assert_eq!(listed["loops"].as_array().map(Vec::len), Some(12), "{listed}");
    for n in 0..12 {
        assert_in_step(&world, &mut client, &format!("s{n}"));
    }
    assert!(client.end().success());
    // No log is left, and no copy was taken before a migration that was none.
    assert_eq!(look::files(&world.state()).keys().collect::<Vec<_>>(), ["loops.db"]);
    look::assert_sound(&world.database());
    assert_eq!(look::number(&world.database(), "SELECT count(*) FROM project"), 1);
    // One schema, as of a server that started alone.
    let alone = World::new();
    assert!(alone.client_with_loop().end().success());
    assert_eq!(look::schema(&world.database()), look::schema(&alone.database()));
}

#[test]
fn soak_twelve_first_starts_meet() {
    for round in 0..rounds(3, 50) {
        first_starts(round % 2 == 0);
    }
}
