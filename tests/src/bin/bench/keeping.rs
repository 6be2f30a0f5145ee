//! Documents, archives and goals: what each takes against the time it may take.

use std::fs;
use std::time::{Duration, Instant};

use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};

use crate::scale;
use crate::table::{Row, Table};
use crate::{Spread, micros, millis};

/// Calls that are timed, and those before them that are not.
const CALLS: usize = 100;
const WARM_UP: usize = 10;

fn row(table: &mut Table, what: &str, times: Vec<Duration>, goal: Duration) {
    let spread = Spread::of(times);
    let goal_text = format!("≤ {} ms", goal.as_millis());
    table.add(Row::new(format!("{what}, p50"), micros(spread.p50)).goal(goal_text, spread.p50 <= goal));
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
    table.add(Row::new(what, millis(taken)).goal("≤ 1 s".to_owned(), taken <= goal));
    let started = Instant::now();
    client.ok("archive_restore", json!({ "archiveId": archived["archiveId"] }));
    table.add(Row::new("restore it".to_owned(), millis(started.elapsed())));
}

/// A plan of many nodes, and a gate that looks at files.
pub fn goals(table: &mut Table) {
    const NODES: usize = 1_000;
    let world = World::new();
    let mut client = world.client_with_loop();
    let nodes: Vec<_> = (0..NODES)
        .map(|n| {
            let on: Vec<_> = [n / 2, n / 3].iter().filter(|on| **on < n).map(|on| format!("n{on}")).collect();
            json!({ "id": format!("n{n}"), "role": "builder", "instruction": "build it", "depends_on": on, "weight": 1 + n % 5 })
        })
        .map(|mut node| {
            if let Some(on) = node["depends_on"].as_array_mut() {
                on.dedup();
            }
            node
        })
        .collect();
    let graph = json!({ "name": "bench", "execution": { "graph": { "nodes": nodes } } });
    let mut yaml = "name: bench\nexecution:\n  graph:\n    nodes:\n".to_owned();
    for node in graph["execution"]["graph"]["nodes"].as_array().expect("a list") {
        let on: Vec<_> =
            node["depends_on"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        yaml.push_str(&format!(
            "      - {{id: {}, role: builder, instruction: build it, depends_on: [{}], weight: {}}}\n",
            node["id"].as_str().expect("text"),
            on.join(", "),
            node["weight"]
        ));
    }
    for (name, text) in [("graph.json", graph.to_string()), ("graph.yaml", yaml)] {
        fs::write(world.project().join(name), text).expect("a file");
        let arguments = json!({ "config_path": name });
        let mut times: Vec<_> =
            (0..WARM_UP + CALLS).map(|_| time(&mut client, "loopsmith_plan", &arguments)).collect();
        times.drain(..WARM_UP);
        row(table, &format!("plan {NODES} nodes ({name})"), times, Duration::from_millis(5));
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
