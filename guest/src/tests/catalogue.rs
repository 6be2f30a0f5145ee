//! The published catalogue: its shape as a snapshot, its size, and that each
//! annotation tells the truth.

use crate::Logic;
use crate::catalogue::TOOLS;
use crate::tools::{Guest, Profile};
use expect_test::expect_file;
use serde_json::{Value, json};

#[test]
fn the_catalogue_and_its_schemas() {
    let tools: Vec<Value> = Logic::tools()
        .into_iter()
        .map(|t| {
            let schema: Value = serde_json::from_str(&t.input_schema).expect("a schema is JSON");
            json!({
                "name": t.name,
                "title": t.title,
                "description": t.description,
                "profile": format!("{:?}", t.profile).to_lowercase(),
                "readOnly": t.read_only,
                "destructive": t.destructive,
                "idempotent": t.idempotent,
                "inputSchema": schema,
            })
        })
        .collect();
    let text = serde_json::to_string_pretty(&tools).expect("JSON prints") + "\n";
    expect_file!["catalogue.json"].assert_eq(&text);
}

/// What `tools/list` carries per tool beside what the logic hands out.
const AROUND: usize = 120;

#[test]
fn the_lists_are_small() {
    let size = |most: Profile| -> (usize, usize) {
        let tools = Logic::tools();
        let listed = tools.iter().filter(|t| t.profile <= most);
        let bytes = listed
            .clone()
            .map(|t| AROUND + t.name.len() + t.title.len() + t.description.len() + t.input_schema.len());
        (listed.count(), bytes.sum())
    };
    let (core, core_bytes) = size(Profile::Core);
    let (_, all_bytes) = size(Profile::All);
    assert!(core <= 16, "{core} tools in core");
    assert!(core_bytes <= 9_000, "core takes {core_bytes} bytes");
    assert!(all_bytes <= 24_000, "all take {all_bytes} bytes");
    assert!(crate::INSTRUCTIONS.len() <= 1_500, "{}", crate::INSTRUCTIONS.len());
}

#[test]
fn names_are_unique_and_each_tool_takes_a_slug_first() {
    for (i, tool) in TOOLS.iter().enumerate() {
        assert!(TOOLS[..i].iter().all(|t| t.name != tool.name), "{}", tool.name);
        let schema: Value = serde_json::from_str(&tool.published().input_schema).expect("JSON");
        let keys: Vec<_> = schema["properties"].as_object().expect("a map").keys().cloned().collect();
        let about_a_loop =
            !["archive_", "db_", "loopsmith_"].iter().any(|other| tool.name.starts_with(other));
        if about_a_loop && !matches!(tool.name, "loop_list" | "loop_prune") {
            assert_eq!(keys.first().map(String::as_str), Some("loopSlug"), "{}", tool.name);
        }
    }
}

/// No tool decides by itself that a goal is met.
#[test]
fn no_tool_declares_success() {
    for tool in TOOLS {
        for word in ["satisf", "set_goal", "mark_done", "verdict"] {
            assert!(!tool.name.to_lowercase().contains(word), "{}", tool.name);
        }
    }
}
