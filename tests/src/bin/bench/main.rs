//! Measures the server against the least that could be done instead, and prints
//! one table of ratios.
//!
//! What is compared runs in turns, one call each, so that a machine that slows
//! down meanwhile slows down both. Nothing fails here: a goal that is missed is
//! printed as missed, and people decide. The component's share is measured inside
//! the process, by criterion, and read from where that left it.
#![allow(clippy::print_stdout)]

mod floor;
mod keeping;
mod scale;
mod table;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use loop_state_tests::{Client, SLUG, World, binary};
use serde_json::{Value, json};

use floor::{Floor, Replace};
use table::{Row, Table};

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
    let busy = busy();
    let mut table = Table::default();
    start(&mut table);
    for tasks in [20, 500] {
        against_floor(&mut table, tasks);
    }
    let component = [("20", "20 tasks", 100), ("500", "500 tasks", 1_000)];
    for (id, name, goal) in component {
        match estimate(&format!("component/set_status/{id}")) {
            Some(share) => table.add(
                Row::new(format!("component's share, {name}"), micros(share))
                    .goal(format!("≤ {goal} µs"), share <= Duration::from_micros(goal)),
            ),
            None => {
                table.add(Row::new(format!("component's share, {name}"), "run criterion first".to_owned()))
            }
        }
    }
    scale(&mut table);
    looking_back(&mut table);
    keeping::documents(&mut table);
    keeping::archive(&mut table);
    keeping::goals(&mut table);
    sizes(&mut table);
    println!("{table}");
    if let Some(load) = busy {
        println!("Other programs were running (load {load}): the ratios are not to be trusted.");
    }
}

/// The load of the machine, where there is more of it than one program makes.
fn busy() -> Option<f64> {
    const QUIET: f64 = 1.0;
    let load = std::fs::read_to_string("/proc/loadavg").ok()?;
    load.split(' ').next()?.parse().ok().filter(|load| *load > QUIET)
}

/// From the start of a process to its answer to `initialize`.
fn start(table: &mut Table) {
    let world = World::new();
    let mut ours = Vec::new();
    let mut least = Vec::new();
    for _ in 0..STARTS {
        ours.push(time_start(world.command()));
        least.push(time_start(noop()));
    }
    let (ours, least) = (Spread::of(ours), Spread::of(least));
    let row = Row::new("start to initialize, p50".to_owned(), millis(ours.p50));
    table.add(row.clone().goal("≤ 5 ms".to_owned(), ours.p50 <= Duration::from_millis(5)));
    table.add(row.floor(ours.p50, least.p50, 3.0));
}

fn time_start(mut command: Command) -> Duration {
    let started = Instant::now();
    let mut client = Client::spawn(&mut command);
    client.initialize();
    started.elapsed()
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
    let mut floor = Floor::open(&floor_world);
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
    let what = |part: &str| format!("task_setStatus, {tasks} tasks, {part}");
    let p50 = Row::new(what("p50"), micros(ours.p50));
    table.add(p50.floor(ours.p50, least.p50, 2.0));
    table.add(Row::new(what("p99"), micros(ours.p99)).beside(ours.p99, least.p99));
    table.add(Row::new(what("p50, floor by rename"), micros(ours.p50)).beside(ours.p50, renamed.p50));
}

/// A server with a loop of that many tasks, the first of them at work.
fn playing(tasks: usize) -> (World, Client) {
    let world = World::new();
    let mut client = world.client_with_loop();
    let plan: Vec<_> = (1..=tasks)
        .map(|n| json!({ "taskid": format!("T{n}"), "title": format!("Part {n} of the sign-in"), "tech": "rust" }))
        .collect();
    client.ok("tasks_derive", json!({ "tasks": plan }));
    for status in ["issue-open", "in-progress"] {
        client.ok("task_setStatus", json!({ "taskid": "T1", "status": status }));
    }
    (world, client)
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
        let row = Row::new(format!("task_setStatus, {count} {what}, p50"), micros(large.p50));
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
        let p50 = Spread::of(times).p50;
        let row = Row::new(format!("{tool}, {TASKS} tasks, {events} events, p50"), micros(p50));
        table.add(row.goal("≤ 5 ms".to_owned(), p50 <= GOAL));
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
        let row = Row::new(what.to_owned(), megabytes(bytes));
        table.add(match goal {
            Some(goal) => row.goal(format!("≤ {}", megabytes(goal)), bytes <= goal),
            None => row,
        });
    };
    add("resident memory, after the handshake", idle, Some(RESIDENT_MAX));
    add("resident memory, after 200 calls", resident, Some(RESIDENT_MAX));
    add("binary", binary, Some(BINARY_MAX));
    table.add(Row::new("tools/list".to_owned(), format!("{} bytes", list.to_string().len())));
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

/// What matters of many times.
struct Spread {
    p50: Duration,
    p99: Duration,
}

impl Spread {
    fn of(mut times: Vec<Duration>) -> Spread {
        times.sort();
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
        Spread { p50: at(50), p99: at(99) }
    }
}

fn micros(time: Duration) -> String {
    format!("{} µs", time.as_micros())
}

fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}
