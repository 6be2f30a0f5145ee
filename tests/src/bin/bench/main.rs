//! Measures the server against the least that could be done instead, and beside the
//! servers that others built; prints the tables and writes them to the file that the
//! first argument names.
//!
//! What is compared runs in turns, one call each, so that a machine that slows
//! down meanwhile slows down both. Nothing fails here: a goal that is missed is
//! printed as missed, and people decide. The component's share is measured inside
//! the process, by criterion, and read from where that left it.
#![allow(clippy::print_stdout)]

mod beside;
mod floor;
mod graph;
mod keeping;
mod machine;
mod peers;
mod scale;
mod speaker;
mod table;
mod throughput;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loop_state_tests::{Client, SLUG, World, binary};
use serde_json::{Value, json};

use floor::{Floor, Replace};
use table::{Row, Spread, Table, megabytes, time};

/// Processes of each kind that are started.
const STARTS: usize = 150;
/// Calls that are timed, and those before them that are not.
const CALLS: usize = 500;
const WARM_UP: usize = 20;

/// The two statuses that a task can be moved between for ever.
const STATUSES: [&str; 2] = ["blocked", "in-progress"];

/// The bounds on sizes, in bytes.
const BINARY_MAX: u64 = 25_000_000;
const RESIDENT_MAX: u64 = 20_000_000;

fn main() {
    let busy = machine::busy();
    let start_of_run = machine::Ticks::now();
    let mut table = Table::of_rows();
    start(&mut table);
    for tasks in [20, 500, 2_000] {
        against_floor(&mut table, tasks);
    }
    let component = [("20", "20 tasks", 100), ("500", "500 tasks", 1_000)];
    for (id, name, goal) in component {
        match estimate(&format!("component/set_status/{id}")) {
            Some(share) => table.add(
                Row::new(format!("component's share, {name}"), time(share))
                    .goal(format!("≤ {goal} µs"), share <= Duration::from_micros(goal)),
            ),
            None => {
                table.add(Row::new(format!("component's share, {name}"), "run criterion first".to_owned()))
            }
        }
    }
    throughput::measure(&mut table);
    scale(&mut table);
    looking_back(&mut table);
    keeping::documents(&mut table);
    keeping::archive(&mut table);
    keeping::goals(&mut table);
    sizes(&mut table);
    let (writes, goals) = (beside::writes(), beside::goals());
    let stolen = start_of_run.and_then(machine::Ticks::since).map(|(_, stolen)| stolen);
    let report = report(&quiet(busy, stolen), &table, &writes, &goals);
    println!("{report}");
    if let Some(file) = std::env::args_os().nth(1) {
        std::fs::write(&file, report).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    }
}

/// How far the figures can be trusted: how busy other programs kept the machine before
/// the run, and how much of the run other machines of the same host took, in percent.
fn quiet(busy: Option<f64>, stolen: Option<f64>) -> String {
    const QUIET: f64 = 10.0;
    let (Some(busy), Some(stolen)) = (busy, stolen) else {
        return "How busy the machine was is not known.".to_owned();
    };
    let said = format!(
        "Other programs took {busy:.0} % of the processors before the run; other machines of the host {stolen:.1} % during it."
    );
    if busy > QUIET || stolen > QUIET {
        return format!("**{said} The ratios are not to be trusted.**");
    }
    said
}

/// All that was measured, on what, and how to read it.
fn report(quiet: &str, floor: &Table, writes: &Table, goals: &Table) -> String {
    let machine: String = machine::describe().iter().map(|line| format!("- {line}\n")).collect();
    format!(
        "# Figures\n\nWritten by `make bench`; not edited by hand.\n\n{machine}\n{quiet}\n\n\
         ## Against the floor\n\n\
         The floor of a start is a server on the same protocol library that only shakes hands; of a change, the same\n\
         statements and files in plain Rust, at the same durability; of a long history and of many loops, the same server\n\
         without them. Ratios compare medians of calls made in turns; at many changes a second, how many times as long as\n\
         the floor one takes.\n\n{floor}\n\
         ## Beside other servers\n\n\
         Each by the same driver over pipes, on the same file system, with 20 tasks (or notes) and its nearest write;\n\
         started and called in turns. Settings are as they come, but that backlog.md gets no git and does not look into\n\
         branches, which spares it time. Memory counts child processes. The last two columns are found by the\n\
         run: strace counts {TRACED} writes up to their answers (per write), and a server that was killed as soon as it had\n\
         answered is started again and asked. What is not synced by then survives a kill, not a power cut.\n\n{writes}\n\
         The goal tools have the names and arguments of loopsmith's:\n\n{goals}",
        TRACED = beside::TRACED,
    )
}

/// From the start of a process to its answer to `initialize`, and on to its tools, for
/// which the logic has to be there.
fn start(table: &mut Table) {
    let world = World::new();
    let mut ours = Vec::new();
    let mut listed = Vec::new();
    let mut least = Vec::new();
    for _ in 0..STARTS {
        let started = Instant::now();
        let (mut client, taken) = time_start(world.command());
        ours.push(taken);
        client.request("tools/list", json!({}));
        listed.push(started.elapsed());
        least.push(time_start(noop()).1);
    }
    let (ours, least) = (Spread::of(ours), Spread::of(least));
    let row = Row::times("start to initialize", ours);
    table.add(row.clone().goal("≤ 5 ms", ours.p50 <= Duration::from_millis(5)));
    table.add(row.floor(ours.p50, least.p50, 3.0));
    table.add(Row::times("start to tools/list", Spread::of(listed)));
}

fn time_start(mut command: Command) -> (Client, Duration) {
    let started = Instant::now();
    let mut client = Client::spawn(&mut command);
    client.initialize();
    let taken = started.elapsed();
    (client, taken)
}

/// A server that only shakes hands, built beside this program.
fn noop() -> Command {
    let path = beside_this("loop-state-noop-server");
    let mut command = Command::new(&path);
    command.env_clear().stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
    command
}

fn beside_this(name: &str) -> PathBuf {
    std::env::current_exe().expect("a program knows its own path").with_file_name(name)
}

/// `task_setStatus` against the same statements and file in plain Rust.
fn against_floor(table: &mut Table, tasks: usize) {
    let (world, mut client) = playing(tasks);
    let (floor_world, floor_client) = playing(tasks);
    floor_client.end();
    let mut floor = Floor::open(&floor_world, SLUG);
    let mut ours = Vec::new();
    let mut least = Vec::new();
    let mut renamed = Vec::new();
    for n in 0..WARM_UP + CALLS {
        ours.push(time_call(&mut client, n));
        // In this order and the other, so that neither always follows the server.
        let mut kinds = [(Replace::Exchange, &mut least), (Replace::Rename, &mut renamed)];
        if n % 2 == 1 {
            kinds.reverse();
        }
        for (kind, times) in kinds {
            let started = Instant::now();
            floor.set_status(STATUSES[n % 2], kind);
            times.push(started.elapsed());
        }
    }
    drop(world);
    for times in [&mut ours, &mut least, &mut renamed] {
        times.drain(..WARM_UP);
    }
    let (ours, least, renamed) = (Spread::of(ours), Spread::of(least), Spread::of(renamed));
    let what = format!("task_setStatus, {tasks} tasks");
    table.add(Row::times(what.clone(), ours).floor(ours.p50, least.p50, 2.0));
    table.add(Row::new(format!("{what}, p99 to p99"), time(ours.p99)).beside_time(ours.p99, least.p99));
    table
        .add(Row::new(format!("{what}, floor by rename"), time(ours.p50)).beside_time(ours.p50, renamed.p50));
}

/// A server with a loop of that many tasks, the first of them at work.
fn playing(tasks: usize) -> (World, Client) {
    let world = World::new();
    let mut client = world.client_with_loop();
    plan(&mut client, SLUG, tasks);
    (world, client)
}

/// Gives a loop that many tasks, and starts the first.
fn plan(client: &mut Client, slug: &str, tasks: usize) {
    let plan: Vec<_> = (1..=tasks)
        .map(|n| json!({ "taskid": format!("T{n}"), "title": format!("Part {n} of the sign-in"), "tech": "rust" }))
        .collect();
    client.ok("tasks_derive", json!({ "loopSlug": slug, "tasks": plan }));
    for status in ["issue-open", "in-progress"] {
        client.ok("task_setStatus", json!({ "loopSlug": slug, "taskid": "T1", "status": status }));
    }
}

/// One mutation, from the first byte sent to the last one received.
fn time_call(client: &mut Client, n: usize) -> Duration {
    let message = client.message("task_setStatus", json!({ "taskid": "T1", "status": STATUSES[n % 2] }));
    let started = Instant::now();
    client.send(&message);
    let answer = client.receive().expect("an answer");
    let taken = started.elapsed();
    assert_ne!(answer["result"]["isError"], true, "{answer}");
    taken
}

/// The same mutation where there is much else in the database.
fn scale(table: &mut Table) {
    const TASKS: usize = 20;
    type Fill = fn(&Path) -> u32;
    let fills: [(&str, Fill); 2] =
        [("events in the loop", |database| scale::events(database, scale::EVENTS)), ("loops", scale::loops)];
    for (what, fill) in fills {
        let (_fresh_world, mut fresh) = playing(TASKS);
        let (full_world, client) = playing(TASKS);
        client.end();
        let count = fill(&full_world.database());
        let mut full = full_world.client();
        let mut small = Vec::new();
        let mut large = Vec::new();
        // The first call also brings the log on disk up to date.
        for n in 0..WARM_UP + CALLS {
            small.push(time_call(&mut fresh, n));
            large.push(time_call(&mut full, n));
        }
        for times in [&mut small, &mut large] {
            times.drain(..WARM_UP);
        }
        let (small, large) = (Spread::of(small), Spread::of(large));
        let row = Row::times(format!("task_setStatus, {count} {what}"), large);
        table.add(row.floor(large.p50, small.p50, 1.3));
    }
}

/// What a session that lost its memory, and one before its merge, ask for.
fn looking_back(table: &mut Table) {
    const TASKS: usize = 200;
    const GOAL: Duration = Duration::from_millis(5);
    let (world, mut client) = playing(TASKS);
    // A loop that was worked on has steps; one without any is read whole for them.
    client.ok("now_set", json!({ "task": "T1", "agent": "rust-engineer-loop", "step": "build" }));
    client.ok("now_clear", json!({}));
    client.end();
    let events = scale::events(&world.database(), scale::HISTORY);
    let mut client = world.client();
    // Brings the log on disk up to date.
    client.ok("loop_render", json!({}));
    for tool in ["loop_recover", "loop_audit"] {
        let mut times = Vec::new();
        for _ in 0..WARM_UP + CALLS {
            let message = client.message(tool, json!({ "loopSlug": SLUG }));
            let started = Instant::now();
            client.send(&message);
            client.receive().expect("an answer");
            times.push(started.elapsed());
        }
        times.drain(..WARM_UP);
        let spread = Spread::of(times);
        let row = Row::times(format!("{tool}, {TASKS} tasks, {events} events"), spread);
        table.add(row.goal("≤ 5 ms", spread.p50 <= GOAL));
    }
}

fn sizes(table: &mut Table) {
    let (_world, mut client) = playing(20);
    let list = client.request("tools/list", json!({}));
    for n in 0..200 {
        time_call(&mut client, n);
    }
    let resident = resident(client.pid());
    let idle_world = World::new();
    let idle = self::resident(idle_world.client().pid());
    let binary = std::fs::metadata(binary()).expect("it was just run").len();
    let mut add = |what: &str, bytes: u64, goal: Option<u64>| {
        let row = Row::new(what, megabytes(bytes));
        table.add(match goal {
            Some(goal) => row.goal(format!("≤ {}", megabytes(goal)), bytes <= goal),
            None => row,
        });
    };
    add("resident memory, after the handshake", idle, Some(RESIDENT_MAX));
    add("resident memory, after 200 calls", resident, Some(RESIDENT_MAX));
    add("binary", binary, Some(BINARY_MAX));
    table.add(Row::new("tools/list", format!("{} bytes", list.to_string().len())));
}

/// What a process holds in memory, in bytes.
fn resident(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a running process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a process has memory");
    let kib: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kib * 1024
}

/// The median that criterion found last.
fn estimate(id: &str) -> Option<Duration> {
    let file = beside_this("../criterion").join(id).join("new/estimates.json");
    let estimates: Value = serde_json::from_str(&std::fs::read_to_string(file).ok()?).ok()?;
    let nanos = estimates["median"]["point_estimate"].as_f64()?;
    Some(Duration::from_secs_f64(nanos / 1e9))
}
