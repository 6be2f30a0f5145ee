//! One whole loop, driven by the official Rust client.

use rmcp::model::{CallToolRequestParams, CallToolResult};
use rmcp::service::RunningService;
use rmcp::transport::TokioChildProcess;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::process::Command;

type Client = RunningService<RoleClient, ()>;

/// The server: `LOOP_STATE_BIN`, else the one built in the main workspace.
fn binary() -> PathBuf {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/release/loop-state-mcp");
    let path = std::env::var_os("LOOP_STATE_BIN").map_or_else(built, PathBuf::from);
    assert!(path.is_file(), "{} is not built: run `make build`", path.display());
    path
}

fn server(world: &Path) -> Command {
    let mut command = Command::new(binary());
    command
        .current_dir(world.join("project"))
        .env_clear()
        .env("HOME", world.join("home"))
        .env("DEV_LOOP_STATE_DIR", world.join("state"));
    command
}

async fn call(client: &Client, tool: &'static str, mut arguments: Value) -> CallToolResult {
    arguments["loopSlug"] = json!("demo");
    let mut params = CallToolRequestParams::new(tool);
    params.arguments = arguments.as_object().cloned();
    client.call_tool(params).await.unwrap_or_else(|e| panic!("{tool}: {e}"))
}

fn text(result: &CallToolResult) -> &str {
    &result.content[0].as_text().expect("a text").text
}

async fn ok(client: &Client, tool: &'static str, arguments: Value) -> Value {
    let result = call(client, tool, arguments).await;
    assert_ne!(result.is_error, Some(true), "{tool}: {}", text(&result));
    let answer: Value = serde_json::from_str(text(&result)).expect("JSON");
    assert_eq!(result.structured_content.as_ref(), Some(&answer));
    answer
}

async fn refused(client: &Client, tool: &'static str, arguments: Value) -> String {
    let result = call(client, tool, arguments).await;
    assert_eq!(result.is_error, Some(true), "{tool}: {}", text(&result));
    assert_eq!(result.structured_content, None);
    text(&result).to_owned()
}

async fn play(client: &Client) {
    ok(client, "loop_init", json!({ "goal": "Users can sign in" })).await;
    let tasks = json!([{ "taskid": "T1", "title": "Sign-in page", "tech": "rust" }]);
    assert_eq!(ok(client, "tasks_derive", json!({ "tasks": tasks })).await["created"], json!(["T1"]));
    for status in ["issue-open", "in-progress", "verified", "secure", "pr-open", "in-review", "merged"] {
        if status == "verified" {
            let refusal =
                refused(client, "task_setStatus", json!({ "taskid": "T1", "status": status })).await;
            assert!(refusal.contains("without proof"), "{refusal}");
        }
        ok(client, "now_set", json!({ "task": "T1", "agent": "rust-engineer-loop", "step": status })).await;
        let moved = json!({ "taskid": "T1", "status": status, "evidence": "1a2b3c4" });
        assert_eq!(ok(client, "task_setStatus", moved).await["to"], status);
    }
    let complete = json!({ "taskid": "T1", "mergeEvidence": "1a2b3c4" });
    assert_eq!(ok(client, "task_complete", complete).await["remaining"], 0);
    assert_eq!(ok(client, "loop_finish", json!({ "status": "done" })).await["status"], "done");
}

#[tokio::test]
async fn the_official_client_plays_a_loop() {
    let world = tempfile::tempdir().expect("a temporary folder");
    for folder in ["project", "home"] {
        std::fs::create_dir(world.path().join(folder)).expect("a folder");
    }
    let transport = TokioChildProcess::new(server(world.path())).expect("the server starts");
    let session = async {
        let client = ().serve(transport).await.expect("a handshake");
        let info = client.peer_info().expect("the server's introduction");
        assert!(info.server_info.as_ref().is_some_and(|server| server.name == "loop-state-mcp"));
        assert!(info.instructions.as_ref().is_some_and(|text| text.contains("loop")));
        let tools = client.list_all_tools().await.expect("the list");
        for wanted in ["loop_init", "tasks_derive", "task_setStatus", "task_complete", "loop_finish"] {
            assert!(tools.iter().any(|tool| tool.name == wanted), "{wanted} is not listed");
        }
        play(&client).await;
        let unknown = client.call_tool(CallToolRequestParams::new("no_such_tool")).await;
        assert!(unknown.is_err_and(|e| e.to_string().contains("no_such_tool")));
        client.cancel().await.expect("an end");
    };
    tokio::time::timeout(Duration::from_secs(60), session).await.expect("no answer within a minute");
    let page = world.path().join("project/.projects/loops/demo/loop.md");
    let page = std::fs::read_to_string(page).expect("a view");
    assert!(page.contains("- [x] T1: Sign-in page — **complete**"), "{page}");
}
