//! One conversation to the byte, and the views at its end.
//!
//! `UPDATE_EXPECT=1` writes the files anew.

use expect_test::expect_file;
use loop_state_tests::{Client, World};
use serde_json::{Value, json};

/// 2026-03-01T09:00:00Z.
const START: i64 = 1_772_355_600_000;

/// Time between two calls.
const PACE_MS: i64 = 1_500;

/// A session whose lines are kept as they went over the pipes.
struct Session {
    world: World,
    client: Client,
    now: i64,
    lines: String,
}

impl Session {
    fn new() -> Session {
        let world = World::with_clock(START);
        let client = Client::spawn(&mut world.command());
        Session { world, client, now: START, lines: String::new() }
    }

    fn say(&mut self, message: &Value) {
        self.lines.push_str(&format!("> {message}\n"));
        self.client.send(message);
    }

    fn hear(&mut self) {
        let line = self.client.line().expect("an answer");
        self.lines.push_str(&format!("< {line}\n\n"));
    }

    fn call(&mut self, tool: &str, arguments: Value) {
        self.now += PACE_MS;
        self.world.set_clock(self.now);
        let message = self.client.message(tool, arguments);
        self.say(&message);
        self.hear();
    }

    /// Dispatches a step, reports the agent's return, moves the task.
    fn step(&mut self, agent: &str, status: Value) {
        let task = &status["taskid"];
        self.call("now_set", json!({ "task": task, "agent": agent, "step": status["status"] }));
        self.call("event_append", json!({ "event": "agent-return", "to": "success" }));
        self.call("task_setStatus", status);
    }
}

fn play(s: &mut Session) {
    s.call("loop_init", json!({ "goal": "Users can sign in", "title": "Sign-in", "defaultBranch": "main" }));
    s.call("loop_init", json!({ "goal": "Users can sign out" }));
    s.call("loop_setPhaseStatus", json!({ "phase": "plan", "status": "in-progress" }));
    s.call(
        "tasks_derive",
        json!({ "tasks": [
            { "taskid": "T1", "title": "Store tokens | safely", "tech": "rust" },
            { "taskid": "T2", "title": "Sign-in page", "tech": "frontend", "depends_on": "[\"T1\"]" },
        ] }),
    );
    s.call(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "T1", "title": "Store tokens", "depends_on": ["T2"] }] }),
    );
    s.call("tasks_derive", json!({ "tasks": [{ "taskid": "T3", "titel": "misspelt" }] }));
    s.call("loop_setPhase", json!({ "phase": "build" }));
    s.step("git-loop", json!({ "taskid": "T1", "status": "issue-open", "issue": 1 }));
    s.call("task_setStatus", json!({ "taskid": "T1", "status": "merged" }));
    s.call("loop_setField", json!({ "field": "docs_sync", "value": "later" }));
    s.call("task_setStatus", json!({ "taskid": "T1", "status": "verified", "evidence": "n/a" }));
    s.step(
        "rust-engineer-loop",
        json!({ "taskid": "T1", "status": "verified", "evidence": "cargo test: 12 passed" }),
    );
    s.call("task_setStatus", json!({ "taskid": "T2", "status": "issue-open" }));
    s.step(
        "security-reviewer-loop",
        json!({ "taskid": "T1", "status": "secure", "evidence": "nothing found" }),
    );
    s.step("git-loop", json!({ "taskid": "T1", "status": "pr-open", "pr": "#2", "branch": "feat/tokens" }));
    s.step("code-reviewer-loop", json!({ "taskid": "T1", "status": "in-review" }));
    s.call("task_bumpCounter", json!({ "taskid": "T1", "counter": "review_rounds", "by": "3" }));
    s.step("git-loop", json!({ "taskid": "T1", "status": "merged", "evidence": "1a2b3c4" }));
    s.call("task_complete", json!({ "taskid": "T1", "mergeEvidence": "1a2b3c4" }));
    s.call("task_complete", json!({ "taskid": "T1", "mergeEvidence": "1a2b3c4" }));
    s.call("loop_finish", json!({ "status": "done" }));
    s.call(
        "tasks_split",
        json!({ "taskid": "T2", "subtasks": [{ "title": "Form" }, { "title": "Errors", "depends_on": ["T2a"] }] }),
    );
    s.call("task_complete", json!({ "taskid": "T2b", "mergeEvidence": "2b3c4d5" }));
    s.call("task_setStatus", json!({ "taskid": "T2a", "status": "blocked" }));
    s.call("loop_setAwaitingUser", json!({ "awaiting": "Is the form still wanted?" }));
    s.call(
        "memory_append",
        json!({ "agent": "git-loop", "note": "Ask early.\n# Not late.", "taskid": "T2a" }),
    );
    s.call("task_setStatus", json!({ "taskid": "T2a", "status": "skipped", "note": "not an argument" }));
    s.call("task_setStatus", json!({ "taskid": "T2b", "status": "skipped" }));
    s.call("loop_setAwaitingUser", json!({ "awaiting": null }));
    s.call("tasks_append", json!({ "kind": "qa-fix", "tasks": ["T3: slow network"] }));
    s.call("loop_finish", json!({ "status": "done" }));
    s.call("now_set", json!({ "task": "T1", "agent": "git-loop", "step": "again" }));
    s.call("loop_get", json!({}));
    s.call("loop_list", json!({ "includeFinished": "true" }));
    s.call("loop_get", json!({ "loopSlug": "demos" }));
}

#[test]
fn a_loop_from_first_to_last_byte() {
    let mut s = Session::new();
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": { "name": "transcript", "version": "0" },
    });
    s.say(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello }));
    s.hear();
    s.say(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    play(&mut s);
    let views = ["loop.md", "memory.md", "events.jsonl"].map(|name| s.world.view(name));
    let Session { world, client, lines, .. } = s;
    assert!(client.end().success());

    let top = world.top().canonicalize().expect("the world's folder");
    let told = |text: &str| text.replace(top.to_str().expect("UTF-8"), "$WORLD");
    expect_file!["golden/transcript.txt"].assert_eq(&told(&lines));
    expect_file!["golden/loop.md"].assert_eq(&told(&views[0]));
    expect_file!["golden/memory.md"].assert_eq(&told(&views[1]));
    expect_file!["golden/events.jsonl"].assert_eq(&told(&views[2]));
}
