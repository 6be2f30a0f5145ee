//! The published example configurations of loopsmith 1.0, planned by both.
//!
//! Runs with `LOOP_STATE_PEERS=1`, as it builds loopsmith from source. The examples come
//! with that source and stay where cargo put them.

use loop_state_tests::packages::LOOPSMITH;
use loop_state_tests::{Client, World};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// How far apart two figures may be that are the same.
const CLOSE: f64 = 1e-9;

#[test]
fn the_published_examples_have_the_same_plan() {
    if std::env::var_os("LOOP_STATE_PEERS").is_none() {
        eprintln!(
            "skipped: the plans of loopsmith 1.0.0 beside ours; LOOP_STATE_PEERS=1 runs it, `make bench` does"
        );
        return;
    }
    let peer = match LOOPSMITH.installed() {
        Ok(folder) => folder.join("bin/loopsmith"),
        Err(reason) => {
            eprintln!("skipped: loopsmith 1.0.0 cannot be installed: {reason}");
            return;
        }
    };
    let examples = examples();
    if examples.is_empty() {
        eprintln!("skipped: cargo kept no source of loopsmith-web 1.0.0, whose examples are compared");
        return;
    }
    assert_eq!(examples.len(), 15);
    let world = World::new();
    let mut ours = world.client();
    let mut theirs = Command::new(peer);
    theirs.arg("mcp").current_dir(world.project()).env_clear().env("HOME", world.home());
    theirs.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut theirs = Client::spawn(&mut theirs);
    theirs.initialize();
    for example in examples {
        let name = example.file_name().expect("a file").to_string_lossy().into_owned();
        fs::copy(&example, world.project().join(&name)).expect("a copy");
        let (ours, theirs) = (plan(&mut ours, &name), plan(&mut theirs, &name));
        for (figure, value) in theirs.as_object().expect("an object") {
            assert!(
                same(&ours[figure], value),
                "{name}: {figure} is {} here and {value} there",
                ours[figure]
            );
        }
        assert!(theirs["waves"].as_array().is_some_and(|waves| !waves.is_empty()), "{name}: {theirs}");
    }
}

fn plan(client: &mut Client, name: &str) -> Value {
    let arguments = json!({ "name": "loopsmith_plan", "arguments": { "config_path": name } });
    let result = client.request("tools/call", arguments);
    assert_ne!(result["isError"], true, "{name}: {result}");
    let text = result["content"][0]["text"].as_str().expect("a text block");
    serde_json::from_str(text).expect("an answer is JSON")
}

fn same(one: &Value, other: &Value) -> bool {
    match (one.as_f64(), other.as_f64()) {
        (Some(one), Some(other)) => (one - other).abs() <= CLOSE,
        _ => one == other,
    }
}

/// The examples in the source that cargo unpacked.
fn examples() -> Vec<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(Path::new(&std::env::var_os("HOME")?).join(".cargo")));
    let sources = home.and_then(|home| fs::read_dir(home.join("registry/src")).ok()).into_iter().flatten();
    let folders = sources.flatten().map(|entry| entry.path().join("loopsmith-web-1.0.0/templates/examples"));
    let mut found: Vec<_> =
        folders.filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten().collect();
    found.sort_by_key(fs::DirEntry::file_name);
    found.into_iter().map(|entry| entry.path()).collect()
}
