//! The same contract in another language: the README's example in JavaScript, in the
//! unchanged host.
//!
//! The component is a JavaScript engine with the example in it. It asks for WASI, and
//! what it gets has nothing in it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loop_state_tests::World;
use loop_state_tests::contract::{contract, example};
use loop_state_tests::packages::{Package, skipped};
use serde_json::json;

const COMPONENTIZE: Package = Package { registry: "npm", name: "componentize-qjs", version: "0.4.5" };

/// The folder of the tool that makes components of JavaScript.
fn tool() -> Option<PathBuf> {
    if Command::new("node").arg("--version").output().is_err() {
        skipped("a logic in JavaScript", "node is not installed");
        return None;
    }
    COMPONENTIZE.or_skipped()
}

/// A component of `logic.js` in this folder, by the README's command, for this world.
fn component(tool: &Path, folder: &Path, world: &str) -> Vec<u8> {
    let commands = example("npm install componentize-qjs");
    let command = commands.lines().find_map(|line| line.strip_prefix("npx componentize-qjs "));
    let arguments = command.expect("the command that makes the component").split(' ');
    let arguments = arguments.map(|word| if word == "logic" { world } else { word });
    let output = Command::new("node")
        .arg(tool.join("node_modules").join(COMPONENTIZE.name).join("bin").join(COMPONENTIZE.name))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("node runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::read(folder.join("logic.wasm")).expect("the component")
}

/// Copies the contract, with one edit of one of its files.
fn copy_contract(to: &Path, edit: Option<(&str, &str, &str)>) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(contract()).expect("the contract") {
        let path = entry.expect("an entry").path();
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else { continue };
        if !name.ends_with(".wit") {
            continue;
        }
        let mut text = fs::read_to_string(&path).expect("a file of the contract");
        if let Some((_, from, into)) = edit.filter(|(file, ..)| *file == name) {
            assert!(text.contains(from), "{name} has no {from:?}");
            text = text.replacen(from, into, 1);
        }
        fs::write(to.join(name), text).expect("a copy");
    }
}

#[test]
fn the_readmes_logic_counts_on_after_a_restart() {
    let Some(tool) = tool() else { return };
    let mut world = World::new();
    fs::write(world.top().join("logic.js"), example("// logic.js")).expect("logic.js");
    copy_contract(&world.top().join("wit"), None);
    let component = component(&tool, world.top(), "logic");
    world.take_logic(&component);
    for counts in [1..4, 4..6] {
        let mut client = world.client();
        let listed = client.request("tools/list", json!({}));
        assert_eq!(listed["tools"][0]["name"], "count_up", "{listed}");
        assert_eq!(listed["tools"].as_array().map(Vec::len), Some(1), "{listed}");
        for count in counts {
            let message = json!({ "name": "count_up", "arguments": {} });
            assert_eq!(client.request("tools/call", message)["structuredContent"], json!({ "count": count }));
        }
        client.kill();
    }
}

/// The example with a tool that looks for what a process usually has.
#[test]
fn it_finds_no_files_no_variables_and_no_time() {
    let Some(tool) = tool() else { return };
    let mut world = World::new();
    world.env.push(("A_SECRET".into(), "seen".into()));
    let looks = "JSON.stringify({ \
        variables: getEnvironment(), arguments: getArguments(), folders: getDirectories().length, \
        wall: Number(now().seconds), date: Date.now(), chance: Math.random(), \
        reach: [\"fetch\", \"process\", \"require\", \"std\", \"os\"].filter((name) => name in globalThis) })";
    let imports = "import { getEnvironment, getArguments } from \"wasi:cli/environment@0.2.0\";\n\
                   import { now } from \"wasi:clocks/wall-clock@0.2.0\";\n\
                   import { getDirectories } from \"wasi:filesystem/preopens@0.2.0\";\n";
    let logic = example("// logic.js");
    assert!(logic.contains("JSON.stringify({ count })"), "{logic}");
    let logic = imports.to_owned() + &logic.replace("JSON.stringify({ count })", looks);
    fs::write(world.top().join("logic.js"), logic).expect("logic.js");
    // The parts of WASI that are enough to look outside.
    let wit = world.top().join("wit");
    copy_contract(&wit.join("deps/logic"), None);
    let parts = [
        (
            "outside.wit",
            "package test:outside; world outside { include loop-state:logic/logic@0.1.0; \
             import wasi:cli/environment@0.2.0; import wasi:clocks/wall-clock@0.2.0; \
             import wasi:filesystem/preopens@0.2.0; }",
        ),
        (
            "deps/cli.wit",
            "package wasi:cli@0.2.0; interface environment { \
             get-environment: func() -> list<tuple<string, string>>; get-arguments: func() -> list<string>; }",
        ),
        (
            "deps/clocks.wit",
            "package wasi:clocks@0.2.0; interface wall-clock { \
             record datetime { seconds: u64, nanoseconds: u32 } now: func() -> datetime; }",
        ),
        (
            "deps/filesystem.wit",
            "package wasi:filesystem@0.2.0; interface types { resource descriptor; } \
             interface preopens { use types.{descriptor}; \
             get-directories: func() -> list<tuple<descriptor, string>>; }",
        ),
    ];
    for (name, text) in parts {
        fs::write(wit.join(name), text).expect("a file of the world");
    }
    let component = component(&tool, world.top(), "outside");
    world.take_logic(&component);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let message = json!({ "name": "count_up", "arguments": {} });
        seen.push(world.client().request("tools/call", message)["structuredContent"].take());
    }
    let chance = &seen[0]["chance"];
    assert!(chance.is_number(), "{seen:?}");
    let nothing = json!({
        "variables": [], "arguments": [], "folders": 0, "wall": 0, "date": 0, "chance": chance, "reach": [],
    });
    assert_eq!(seen, [nothing.clone(), nothing]);
}

/// Made against a contract that has grown: the host says what it does not know.
#[test]
fn a_write_that_the_host_does_not_know_is_named_at_the_start() {
    let Some(tool) = tool() else { return };
    let world = World::new();
    fs::write(world.top().join("logic.js"), example("// logic.js")).expect("logic.js");
    let write = "    put-loop(%loop),\n";
    let grown = format!("{write}    put-card(string),\n");
    copy_contract(&world.top().join("wit"), Some(("tools.wit", write, &grown)));
    component(&tool, world.top(), "logic");
    let file = world.top().join("logic.wasm");
    let output = world.run(&["--logic", file.to_str().expect("a path")]);
    assert!(!output.status.success() && output.stdout.is_empty(), "{output:?}");
    let says = String::from_utf8_lossy(&output.stderr);
    for part in [
        file.to_str().expect("a path"),
        "in its `tools.decide`, `write` has the case `put-card`, which this host does not know",
        "leave --logic out",
    ] {
        assert!(says.contains(part), "{part} is not in: {says}");
    }
}
