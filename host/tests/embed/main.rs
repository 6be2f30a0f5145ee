//! The built component in other hosts: JavaScript and Python get from the same state
//! the same answers as the runtime of the server, and the view that the server wrote.
//!
//! What runs there are the examples of `wit/README.md`, as they stand.

mod native;
mod value;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use loop_state_tests::contract::example;
use loop_state_tests::packages::{Package, skipped};
use loop_state_tests::{World, binary};
use serde_json::{Value, json};

use native::Native;
use value::Dialect;

/// The transpiler of `jco`, without the rest of it.
const JCO: Package = Package { registry: "npm", name: "@bytecodealliance/jco-transpile", version: "0.15.0" };

const WASMTIME: Package = Package { registry: "pip", name: "wasmtime", version: "50.0.1" };

/// The component that the build left for other programs.
fn component() -> PathBuf {
    let path = binary().with_file_name("../loop-logic.wasm");
    assert!(path.is_file(), "{} is not there: run `make build`", path.display());
    path
}

/// A loop with a refusal behind it, evidence, waiting and done tasks, and text that
/// breaks what is careless with it.
fn played() -> World {
    let world = World::with_clock(1_700_000_000_000);
    let mut client = world.client();
    client.ok("loop_init", json!({ "goal": "Ship \"it\" <fast> \u{2028} 🦀 | `x`" }));
    client.ok(
        "tasks_derive",
        json!({ "tasks": [
        { "taskid": "T1", "title": "First | \\ *bold* \u{1b} é" },
        { "taskid": "T2", "title": "Second", "depends_on": ["T1"] },
        { "taskid": "T3", "title": "Third" },
    ] }),
    );
    let mut at = 1_700_000_000_000;
    let mut later = || {
        at += 61_000;
        world.set_clock(at);
    };
    client.ok("now_set", json!({ "task": "T1", "agent": "builder", "step": "build" }));
    later();
    client.ok(
        "event_append",
        json!({ "event": "agent-return", "task": "T1", "agent": "builder", "to": "done" }),
    );
    client.refused("task_setStatus", json!({ "taskid": "T1", "status": "merged" }));
    later();
    let evidence = "42 tests passed \"all\"";
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "verified", "evidence": evidence }));
    later();
    client.ok("task_setStatus", json!({ "taskid": "T1", "status": "secure", "evidence": "no findings" }));
    drop(client);
    world
}

/// Runs an example and returns the one line of JSON that it prints.
fn printed(command: &mut Command) -> Value {
    let output = command.output().expect("the interpreter runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one line of JSON")
}

/// Compares to the byte, and tells the first part that differs.
#[track_caller]
fn same(there: &Value, native: &Value) {
    let (there_list, native_list) = (there.as_array().expect("a list"), native.as_array().expect("a list"));
    for (there, native) in there_list.iter().zip(native_list) {
        assert_eq!(there.to_string(), native.to_string());
    }
    assert_eq!(there.to_string(), native.to_string());
}

fn answers(native: &mut Native, dialect: Dialect) -> Value {
    json!([
        native.call(
            "rules",
            "check-transition",
            &[json!("standard"), json!("pending"), json!("verified")],
            dialect
        ),
        native.call(
            "rules",
            "check-transition",
            &[json!("standard"), json!("pending"), json!("merged")],
            dialect
        ),
        native.audit(dialect),
        native.page(dialect),
    ])
}

#[test]
fn the_same_state_natively_gives_what_the_server_wrote() {
    let world = played();
    let mut native = Native::of(&component(), &world.database());
    let all = answers(&mut native, Dialect::Python);
    let [moves, refusal, report, page] = &all.as_array().expect("a list")[..] else { panic!("four answers") };
    assert_eq!(moves, &json!(["in-progress", "verified"]));
    assert_eq!(refusal["tag"], "illegal");
    assert_eq!(page["path"], "loop.md");
    assert_eq!(page["content"]["payload"], world.view("loop.md"));
    let audited = world.client().ok("loop_audit", json!({}));
    let codes = |report: &Value| -> Vec<Value> {
        report["findings"]
            .as_array()
            .expect("findings")
            .iter()
            .map(|finding| finding["code"].clone())
            .collect()
    };
    assert_eq!((&report["verdict"], codes(report)), (&audited["verdict"], codes(&audited)));
    assert!(!codes(report).is_empty(), "{report}");
}

#[test]
fn javascript_gets_the_same() {
    if Command::new("node").arg("--version").output().is_err() {
        return skipped("the component in JavaScript", "node is not installed");
    }
    let Some(tool) = JCO.or_skipped() else { return };
    let world = played();
    let mut native = Native::of(&component(), &world.database());
    let folder = world.top();
    // What `jco transpile` does.
    let entry = tool.join("node_modules").join(JCO.name).join("dist/index.js");
    let transpile = format!(
        "import {{ transpile, writeFiles }} from {:?};\n\
         const made = await transpile({:?}, {{ name: \"loop-logic\", outDir: \"logic\" }});\n\
         await writeFiles(made.files);\n\
         console.log(JSON.stringify(made.imports));\n",
        entry,
        component()
    );
    fs::write(folder.join("transpile.mjs"), transpile).expect("a script");
    fs::write(folder.join("state.mjs"), native.javascript()).expect("the state");
    let script = example(
        "// embed.mjs; after `npm install @bytecodealliance/jco` and `npx jco transpile loop-logic.wasm -o logic`",
    );
    fs::write(folder.join("embed.mjs"), script).expect("the example");
    let node = |script: &str| printed(Command::new("node").arg(script).current_dir(folder));
    assert_eq!(node("transpile.mjs"), json!([]), "it imports nothing there either");
    same(&node("embed.mjs"), &answers(&mut native, Dialect::JavaScript));
}

#[test]
fn python_gets_the_same() {
    if Command::new("python3").arg("--version").output().is_err() {
        return skipped("the component in Python", "python3 is not installed");
    }
    let Some(library) = WASMTIME.or_skipped() else { return };
    let world = played();
    let mut native = Native::of(&component(), &world.database());
    let folder: &Path = world.top();
    fs::copy(component(), folder.join("loop-logic.wasm")).expect("a copy");
    fs::write(folder.join("state.json"), native.python()).expect("the state");
    fs::write(folder.join("embed.py"), example("# embed.py; after `pip install wasmtime`"))
        .expect("the example");
    let mut python = Command::new("python3");
    python.arg("embed.py").current_dir(folder).env("PYTHONPATH", library).env("PYTHONIOENCODING", "utf-8");
    same(&printed(&mut python), &answers(&mut native, Dialect::Python));
}
