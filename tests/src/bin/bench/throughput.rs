//! How many changes a second one and several processes get done, all in one database.
//!
//! Each has a loop of its own, as sessions of several projects have. The floor is the
//! same number of connections, each in a thread.

use std::sync::Barrier;
use std::time::{Duration, Instant};

use loop_state_tests::{Client, World};
use serde_json::json;

use crate::STATUSES;
use crate::floor::{Floor, Replace};
use crate::table::{Row, Spread, Table};

/// Changes of each process or connection.
const CHANGES: usize = 300;
/// The tasks of each loop.
const TASKS: usize = 20;

/// One process and eight.
pub fn measure(table: &mut Table) {
    for processes in [1, 8] {
        let slugs: Vec<_> = (1..=processes).map(|n| format!("loop-{n}")).collect();
        let (ours, waits) = servers(&slugs);
        let least = connections(&slugs);
        let each = if processes == 1 { "1 process" } else { "8 processes" };
        let row = Row::new(format!("task_setStatus a second, {each}, {TASKS} tasks"), format!("{ours:.0}"));
        // Turned round: how many times as long as the floor a change takes.
        table.add(row.beside(least, ours, format!("{least:.0}")));
        if processes > 1 {
            table.add(Row::times("one call among these", Spread::of(waits)));
        }
    }
}

/// Changes a second that as many servers answer together, and what each call took.
fn servers(slugs: &[String]) -> (f64, Vec<Duration>) {
    let world = World::new();
    let mut clients: Vec<_> = slugs.iter().map(|slug| playing(&world, slug)).collect();
    let barrier = Barrier::new(slugs.len() + 1);
    let start = &barrier;
    let mut waits = Vec::new();
    let mut taken = Duration::ZERO;
    std::thread::scope(|scope| {
        let threads: Vec<_> = clients
            .iter_mut()
            .zip(slugs)
            .map(|(client, slug)| {
                scope.spawn(move || {
                    start.wait();
                    let change = |n: usize| {
                        let called = Instant::now();
                        let status = STATUSES[n % 2];
                        client.ok(
                            "task_setStatus",
                            json!({ "loopSlug": slug, "taskid": "T1", "status": status }),
                        );
                        called.elapsed()
                    };
                    (0..CHANGES).map(change).collect::<Vec<_>>()
                })
            })
            .collect();
        start.wait();
        let started = Instant::now();
        for thread in threads {
            waits.extend(thread.join().expect("every call passes"));
        }
        taken = started.elapsed();
    });
    (rate(slugs, taken), waits)
}

/// The same statements and files by as many connections.
fn connections(slugs: &[String]) -> f64 {
    let world = World::new();
    for slug in slugs {
        playing(&world, slug).end();
    }
    let mut floors: Vec<_> = slugs.iter().map(|slug| Floor::open(&world, slug)).collect();
    let barrier = Barrier::new(slugs.len() + 1);
    let start = &barrier;
    let mut taken = Duration::ZERO;
    std::thread::scope(|scope| {
        let threads: Vec<_> = floors
            .iter_mut()
            .map(|floor| {
                scope.spawn(move || {
                    start.wait();
                    (0..CHANGES).for_each(|n| floor.set_status(STATUSES[n % 2], Replace::Exchange));
                })
            })
            .collect();
        start.wait();
        let started = Instant::now();
        for thread in threads {
            thread.join().expect("every change passes");
        }
        taken = started.elapsed();
    });
    rate(slugs, taken)
}

fn rate(slugs: &[String], taken: Duration) -> f64 {
    (CHANGES * slugs.len()) as f64 / taken.as_secs_f64()
}

/// A server with a loop of that name in the world, its first task at work.
fn playing(world: &World, slug: &str) -> Client {
    let mut client = world.client();
    client.ok("loop_init", json!({ "loopSlug": slug, "goal": "try it" }));
    crate::plan(&mut client, slug, TASKS);
    client
}
