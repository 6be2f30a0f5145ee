//! Documents, archives and goals: what each takes against the time it may take.

use std::fs;
use std::time::{Duration, Instant};

use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};

use crate::table::{self, Row, Spread, Table};
use crate::{graph, scale};

/// Calls that are timed, and those before them that are not.
const CALLS: usize = 100;
const WARM_UP: usize = 10;

fn row(table: &mut Table, what: &str, times: Vec<Duration>, goal: Duration) {
    let spread = Spread::of(times);
    table.add(Row::times(what, spread).goal(format!("≤ {} ms", goal.as_millis()), spread.p50 <= goal));
}

fn time(client: &mut Client, tool: &str, arguments: &Value) -> Duration {
    let message = client.message(tool, arguments.clone());
    let started = Instant::now();
    client.send(&message);
    let answer = client.receive().expect("an answer");
    let taken = started.elapsed();
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    taken
}

/// A document of 50 kB, written as a new revision each time and read whole.
pub fn documents(table: &mut Table) {
    const BYTES: usize = 50_000;
    let world = World::new();
    let mut client = world.client_with_loop();
    let line = "A line of prose such as a plan has, with a little punctuation in it.\n";
    let text: String = line.chars().cycle().take(BYTES).collect();
    let (mut writes, mut reads) = (Vec::new(), Vec::new());
    for n in 0..WARM_UP + CALLS {
        let content = format!("{n}\n{text}");
        writes.push(time(&mut client, "loop_writeFile", &json!({ "path": "plan.md", "content": content })));
        // It comes in two parts, as no answer passes 40,000 characters.
        let part = |offset: usize| json!({ "path": "plan.md", "offset": offset });
        let first = time(&mut client, "loop_readFile", &part(0));
        reads.push(first + time(&mut client, "loop_readFile", &part(39_000)));
    }
    for times in [&mut writes, &mut reads] {
        times.drain(..WARM_UP);
    }
    row(table, "write a document of 50 kB", writes, Duration::from_millis(5));
    row(table, "read it, both parts", reads, Duration::from_millis(5));
}

/// A loop with a long history and many files, archived and restored.
pub fn archive(table: &mut Table) {
    const FILES: usize = 100;
    const EVENTS: u32 = 5_000;
    let world = World::new();
    let client = world.client_with_loop();
    client.end();
    scale::events(&world.database(), EVENTS);
    let mut client = world.client();
    for n in 0..FILES / 2 {
        let content = format!("# {n}\n{}", "Some words that a document has.\n".repeat(200));
        client.ok("loop_writeFile", json!({ "path": format!("tasks/T{n}.md"), "content": content }));
        fs::write(world.folder(SLUG).join(format!("note-{n}.txt")), content).expect("a file");
    }
    client.ok("loop_finish", json!({ "status": "aborted" }));
    let started = Instant::now();
    let archived = client.ok("loop_archive", json!({}));
    let taken = started.elapsed();
    let what = format!("archive {EVENTS} events and {} files", archived["files"]);
    let goal = Duration::from_secs(1);
    table.add(Row::new(what, table::time(taken)).goal("≤ 1 s", taken <= goal));
    let started = Instant::now();
    client.ok("archive_restore", json!({ "archiveId": archived["archiveId"] }));
    table.add(Row::new("restore it", table::time(started.elapsed())));
}

/// A plan of many nodes, and a gate that looks at files.
pub fn goals(table: &mut Table) {
    let world = World::new();
    let mut client = world.client_with_loop();
    for (name, text) in graph::files() {
        fs::write(world.project().join(name), text).expect("a file");
        let arguments = json!({ "config_path": name });
        let mut times: Vec<_> =
            (0..WARM_UP + CALLS).map(|_| time(&mut client, "loopsmith_plan", &arguments)).collect();
        times.drain(..WARM_UP);
        row(table, &format!("plan {} nodes ({name})", graph::NODES), times, Duration::from_millis(5));
    }

    let mut config = "name: bench\nvalidations:\n".to_owned();
    for n in 0..4 {
        fs::write(world.project().join(format!("f{n}.md")), "evidence\n".repeat(500)).expect("a file");
        config.push_str(&format!(
            "  - {{target: overall, name: c{n}, mode: objective, statement: s, detector: {{type: file_exists, path: f{n}.md}}}}\n"
        ));
    }
    fs::write(world.project().join("goals.yaml"), config).expect("a file");
    for (what, arguments) in [
        ("gate of four files", json!({ "config_path": "goals.yaml", "target": "overall" })),
        (
            "gate of four files, recorded",
            json!({ "config_path": "goals.yaml", "target": "overall", "run_id": "bench" }),
        ),
    ] {
        let mut times: Vec<_> =
            (0..WARM_UP + CALLS).map(|_| time(&mut client, "loopsmith_gate_evaluate", &arguments)).collect();
        times.drain(..WARM_UP);
        row(table, what, times, Duration::from_millis(2));
    }
}
