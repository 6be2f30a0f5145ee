//! The measured server and its peers, by the same driver, in turns, in one run.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use loop_state_tests::World;
use loop_state_tests::packages::{LOOPSMITH, NODE};
use serde_json::{Value, json};

use crate::peers::{PEERS, Peer};
use crate::speaker::Speaker;
use crate::table::{Spread, Table, megabytes, time};
use crate::{WARM_UP, graph, resident};

/// Starts of each server.
const STARTS: usize = 7;
/// Writes of each that are timed.
const WRITES: usize = 200;
/// Writes whose system calls are counted.
pub const TRACED: usize = 10;

/// A server of the table while it is measured.
struct Measured<'a> {
    peer: &'a Peer,
    place: (PathBuf, PathBuf),
    starts: Vec<Duration>,
    writes: Vec<Duration>,
    running: Option<(World, Speaker, Value)>,
    list: usize,
    memory: u64,
    durability: String,
    survives: String,
}

/// Starts, one write, memory and durability.
pub fn writes() -> Table {
    let mut table = Table::new(&[
        "server",
        "start, p50",
        "its write",
        "p50",
        "p99",
        "to ours",
        "memory",
        "tools/list",
        "before a write is answered",
        "after kill -9",
    ]);
    let mut measured = Vec::new();
    let mut failed = Vec::new();
    for peer in &PEERS {
        match begin(peer) {
            Ok(begun) => measured.push(begun),
            Err(reason) => failed.push((peer, reason)),
        }
    }
    // In turns, in this order and the other, so that none always follows the same one.
    for n in 0..STARTS {
        in_turns(&mut measured, &mut failed, n, |one| {
            let world = one.peer.world();
            let started = Instant::now();
            let speaker = one.peer.start(&one.place, &world)?;
            one.starts.push(started.elapsed());
            drop(speaker);
            Ok(())
        });
    }
    for n in 0..WARM_UP + WRITES {
        in_turns(&mut measured, &mut failed, n, |one| {
            let (_, speaker, filled) = one.running.as_mut().ok_or("it is not running")?;
            let write = one.peer.write(n, filled);
            let started = Instant::now();
            speaker.call(write)?;
            if n >= WARM_UP {
                one.writes.push(started.elapsed());
            }
            Ok(())
        });
    }
    in_turns(&mut measured, &mut failed, 0, |one| {
        let (_world, mut speaker, filled) = one.running.take().ok_or("it is not running")?;
        if !one.peer.shows(&mut speaker, WARM_UP + WRITES - 1, &filled)? {
            return Err("what was written last is not what it reads".to_owned());
        }
        one.memory = resident_with_children(speaker.pid());
        drop(speaker);
        (one.durability, one.survives) = durability(one.peer, &one.place)?;
        Ok(())
    });
    let ours = measured.first().map(|one| Spread::of(one.writes.clone()).p50);
    for one in measured {
        let spread = Spread::of(one.writes);
        let to_ours = ours.map(|ours| format!("{:.1} ×", spread.p50.as_secs_f64() / ours.as_secs_f64()));
        table.line(vec![
            one.peer.title(),
            time(Spread::of(one.starts).p50),
            one.peer.what.to_owned(),
            time(spread.p50),
            time(spread.p99),
            to_ours.unwrap_or_default(),
            megabytes(one.memory),
            format!("{} bytes", one.list),
            one.durability,
            one.survives,
        ]);
    }
    for (peer, reason) in failed {
        let mut line = vec![String::new(); 10];
        line[0] = peer.title();
        line[2] = format!("not measured: {}", reason.lines().next().unwrap_or_default());
        table.line(line);
    }
    table
}

/// Does something with each that still runs; one that fails leaves the table.
fn in_turns<'a>(
    measured: &mut Vec<Measured<'a>>,
    failed: &mut Vec<(&'a Peer, String)>,
    turn: usize,
    mut act: impl FnMut(&mut Measured<'a>) -> Result<(), String>,
) {
    let mut order: Vec<_> = (0..measured.len()).collect();
    if turn % 2 == 1 {
        order.reverse();
    }
    let mut reasons: Vec<_> = measured.iter().map(|_| None).collect();
    for at in order {
        reasons[at] = act(&mut measured[at]).err();
    }
    for at in (0..measured.len()).rev() {
        if let Some(reason) = reasons[at].take() {
            failed.push((measured.remove(at).peer, reason));
        }
    }
}

/// Installs a server, starts it and makes its tasks.
fn begin(peer: &Peer) -> Result<Measured<'_>, String> {
    let place = peer.installed()?;
    let world = peer.world();
    let mut speaker = peer.start(&place, &world)?;
    let list = speaker.ask("tools/list", json!({}))?.to_string().len();
    let filled = peer.fill(&mut speaker)?;
    Ok(Measured {
        peer,
        place,
        starts: Vec::new(),
        writes: Vec::new(),
        running: Some((world, speaker, filled)),
        list,
        memory: 0,
        durability: String::new(),
        survives: String::new(),
    })
}

/// What the system is asked for during a write, and whether the last one is still there
/// when the server was killed as soon as it had answered.
fn durability(peer: &Peer, place: &(PathBuf, PathBuf)) -> Result<(String, String), String> {
    let world = peer.world();
    let mut speaker = peer.start(place, &world)?;
    let filled = peer.fill(&mut speaker)?;
    for n in 0..TRACED {
        speaker.call(peer.write(n, &filled))?;
    }
    speaker.kill();
    let mut again = peer.start(place, &world)?;
    // What was made after the start may be gone as well: then reading fails.
    let there = peer.shows(&mut again, TRACED - 1, &filled).unwrap_or(false);
    drop(again);
    Ok((traced(peer, place)?, if there { "kept" } else { "lost" }.to_owned()))
}

/// System calls of a write, before it is answered, as strace counts them.
fn traced(peer: &Peer, place: &(PathBuf, PathBuf)) -> Result<String, String> {
    let world = peer.world();
    let log = world.top().join("trace");
    let inner = peer.command(&place.0, &place.1, &world);
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-e", "signal=none", "-e"]);
    command.arg(
        "trace=fsync,fdatasync,msync,sync_file_range,rename,renameat,renameat2,open,openat,creat,ftruncate",
    );
    command.arg("-o").arg(&log).arg("--").arg(inner.get_program()).args(inner.get_args()).env_clear();
    command.envs(inner.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.current_dir(world.project());
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    command.stderr(std::process::Stdio::null());
    if Command::new("strace").arg("-V").output().is_err() {
        return Ok("not looked at: no strace".to_owned());
    }
    let mut speaker = Speaker::start(command)?;
    let filled = peer.fill(&mut speaker)?;
    let lines = || fs::read_to_string(&log).map_err(|error| format!("strace's log: {error}"));
    let before = lines()?.len();
    for n in 0..TRACED {
        speaker.call(peer.write(n, &filled))?;
    }
    let log = lines()?;
    let during: Vec<_> = log[before..].lines().collect();
    let each =
        |is: &dyn Fn(&str) -> bool| during.iter().filter(|line| is(line)).count() as f64 / TRACED as f64;
    let sync = each(&|line| {
        ["fsync(", "fdatasync(", "msync(", "sync_file_range("].iter().any(|call| line.contains(call))
    });
    let renames = each(&|line| ["rename(", "renameat(", "renameat2("].iter().any(|call| line.contains(call)));
    let rewritten = each(&|line| ["O_TRUNC", "ftruncate(", "creat("].iter().any(|call| line.contains(call)));
    let said = |count: f64, one: &str, none: &str| match count {
        0.0 => none.to_owned(),
        count => format!("{} {one}", (count * 10.0).round() / 10.0),
    };
    let words = [
        said(sync, "sync", "no sync"),
        said(rewritten, "file written anew", "no file written anew"),
        said(renames, "rename", "no rename"),
    ];
    Ok(words.join(", "))
}

/// What a process and all that it started hold in memory.
fn resident_with_children(pid: u32) -> u64 {
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    let below: u64 =
        children.split_whitespace().filter_map(|child| child.parse().ok()).map(resident_with_children).sum();
    resident(pid) + below
}

/// The goal tools beside those that they follow.
pub fn goals() -> Table {
    let mut table =
        Table::new(&["call", "ours, p50", "p99", "loopsmith 1.0.0, p50", "p99", "ours to theirs"]);
    if let Err(reason) = compare(&mut table) {
        let mut line = vec![String::new(); 6];
        line[0] = format!("not measured: {}", reason.lines().next().unwrap_or_default());
        table.line(line);
    }
    table
}

fn compare(table: &mut Table) -> Result<(), String> {
    let peer = PEERS.iter().find(|peer| peer.name == LOOPSMITH.name).ok_or("no such peer")?;
    let place = (LOOPSMITH.installed()?, NODE.installed().unwrap_or_default());
    let (our_world, their_world) = (World::new(), peer.world());
    let mut ours = Speaker::start(our_world.command())?;
    let mut theirs = peer.start(&place, &their_world)?;
    for (name, text) in graph::files() {
        for world in [&our_world, &their_world] {
            fs::write(world.project().join(name), &text).map_err(|error| error.to_string())?;
        }
    }
    type Arguments = fn(usize) -> Value;
    let calls: [(String, &str, Arguments); 4] = [
        (
            format!("plan of {} nodes (JSON)", graph::NODES),
            "loopsmith_plan",
            |_| json!({ "config_path": "graph.json" }),
        ),
        (
            format!("plan of {} nodes (YAML)", graph::NODES),
            "loopsmith_plan",
            |_| json!({ "config_path": "graph.yaml" }),
        ),
        (
            "record an episode".to_owned(),
            "loopsmith_record_episode",
            |n| json!({ "run_id": "r", "node_id": "n1", "provider_id": "p1", "role": "builder", "iteration": n, "output": "built it" }),
        ),
        (
            "write to the scratchpad".to_owned(),
            "loopsmith_scratchpad",
            |n| json!({ "run_id": "r", "key": "note", "value": format!("thought {n}") }),
        ),
    ];
    for (what, tool, arguments) in calls {
        let mut times = [Vec::new(), Vec::new()];
        for n in 0..WARM_UP + WRITES {
            let mut turn = [(0, &mut ours), (1, &mut theirs)];
            if n % 2 == 1 {
                turn.reverse();
            }
            for (at, speaker) in turn {
                let started = Instant::now();
                speaker.call((tool, arguments(n)))?;
                times[at].push(started.elapsed());
            }
        }
        let [ours, theirs] = times.map(|mut times| {
            times.drain(..WARM_UP);
            Spread::of(times)
        });
        let ratio = ours.p50.as_secs_f64() / theirs.p50.as_secs_f64();
        let figures = [ours.p50, ours.p99, theirs.p50, theirs.p99].map(time);
        table.line([vec![what], figures.to_vec(), vec![format!("{ratio:.2} ×")]].concat());
    }
    Ok(())
}
