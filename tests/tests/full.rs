//! Disks that are full: the one of the database, and the one of the project.
//!
//! A small file system is mounted where only the server sees it, which takes user
//! namespaces; where the system has none, these tests say so and do nothing.

use loop_state_tests::look;
use loop_state_tests::{Client, World};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Mounts the small disk, puts a file on it that can be taken away later, and becomes
/// the server.
const SCRIPT: &str = r#"mount -t tmpfs -o "size=$2" none "$1" && head -c 400000 /dev/zero > "$1/ballast" && cd "$3" && exec "$0""#;

/// A server that sees a disk of this size at `place`.
fn on_a_small_disk(world: &World, place: &Path, size: &str) -> Option<Client> {
    let probe = Command::new("unshare")
        .args(["-Urm", "mount", "-t", "tmpfs", "none"])
        .arg(place)
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("no user namespaces here: nothing was tried");
        return None;
    }
    let plain = world.command();
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", SCRIPT]).arg(plain.get_program()).arg(place).arg(size);
    command.arg(world.project()).env_clear().stdin(Stdio::piped()).stdout(Stdio::piped());
    for (key, value) in plain.get_envs() {
        command.env(key, value.unwrap_or_default());
    }
    let mut client = Client::spawn(&mut command);
    client.initialize();
    Some(client)
}

/// A path as the server sees it.
fn seen_by(client: &Client, path: &Path) -> PathBuf {
    let root = PathBuf::from(format!("/proc/{}/root", client.pid()));
    root.join(path.strip_prefix("/").expect("an absolute path"))
}

/// The numbers in a log.
fn numbers(folder: &Path) -> Vec<u64> {
    let log = fs::read_to_string(folder.join("events.jsonl")).expect("a log");
    assert!(log.ends_with('\n'), "half a line at the end");
    let number = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("a line of the log is JSON");
        event["seq"].as_u64().expect("a number")
    };
    log.lines().map(number).collect()
}

/// Panics unless the folder is what `loop_render` writes and its log has no gap.
#[track_caller]
fn assert_rendered(client: &mut Client, folder: &Path, last: u64) {
    let before = look::files(folder);
    client.ok("loop_render", json!({}));
    look::assert_same(&before, &look::files(folder), "on disk / from loop_render");
    assert_eq!(numbers(folder), (1..=last).collect::<Vec<_>>());
}

fn large() -> Value {
    json!({ "event": "probe", "note": "n".repeat(100_000) })
}

#[test]
fn a_full_disk_of_the_database_refuses_the_change_and_keeps_the_rest() {
    let world = World::new();
    fs::create_dir(world.state()).expect("a folder");
    let Some(mut client) = on_a_small_disk(&world, &world.state(), "2m") else { return };
    let state = seen_by(&client, &world.state());
    client.ok("loop_init", json!({ "goal": "fill it" }));
    let mut last = 1;
    let refusal = loop {
        match client.call("event_append", large()) {
            Ok(reply) => last = reply["seq"].as_u64().expect("a number"),
            Err(refusal) => break refusal,
        }
        assert!(last < 100, "the disk does not fill up");
    };
    let folder = world.folder("demo");
    let views = look::files(&folder);
    let told = |refusal: &str| {
        refusal.contains("no room left")
            && refusal.contains("nothing was changed")
            && refusal.contains(world.state().to_str().expect("UTF-8"))
    };
    assert!(told(&refusal), "{refusal}");
    let again = client.refused("event_append", large());
    assert!(told(&again), "{again}");
    look::assert_same(&views, &look::files(&folder), "views of a refused call");
    assert_eq!(client.ok("loop_get", json!({}))["loop"]["goal"], "fill it", "reads go on");
    assert_rendered(&mut client, &folder, last);
    // Room is made, and the same server goes on.
    fs::remove_file(state.join("ballast")).expect("the ballast");
    assert_eq!(client.ok("event_append", large())["seq"], last + 1);
    assert_rendered(&mut client, &folder, last + 1);
    // SQLite would resolve the way through the server's root; the server is at rest.
    for file in ["loops.db", "loops.db-wal"] {
        fs::copy(state.join(file), world.state().join(file)).expect("a copy");
    }
    look::assert_sound(&world.database());
}

#[test]
fn a_full_disk_of_the_project_is_told_and_the_row_is_kept() {
    let world = World::new().quiet();
    let Some(mut client) = on_a_small_disk(&world, &world.project(), "1m") else { return };
    let project = seen_by(&client, &world.project());
    let folder = project.join(".projects/loops/demo");
    client.ok("loop_init", json!({ "goal": "fill it" }));
    let (last, told) = loop {
        let reply = client.ok("event_append", large());
        let last = reply["seq"].as_u64().expect("a number");
        if let Some(told) = reply.get("mirror") {
            break (last, told.clone());
        }
        assert!(last < 100, "the disk does not fill up");
    };
    assert!(told.as_str().is_some_and(|t| t.contains("failed: ") && t.contains("make room")), "{told}");
    let stored = look::number(&world.database(), "SELECT max(seq) FROM event");
    assert_eq!(u64::try_from(stored), Ok(last), "the row was not kept");
    assert!(numbers(&folder).last().is_some_and(|seq| *seq < last), "the log holds what did not fit");
    client.ok("memory_append", json!({ "agent": "a", "note": "Make room." }));
    // Room is made, and the next change brings everything.
    fs::remove_file(project.join("ballast")).expect("the ballast");
    let reply = client.ok("event_append", json!({ "event": "mended" }));
    assert!(reply.get("mirror").is_none(), "{reply}");
    assert_rendered(&mut client, &folder, last + 1);
    look::assert_sound(&world.database());
}
