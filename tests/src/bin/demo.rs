//! Plays one whole loop against the server, as a client would, and shows the
//! conversation and the view that comes of it.
//!
//! Exits with an error at the first answer that is not what it expects. Works in
//! a throw-away home; `--quiet` shows nothing but the verdict.
#![allow(clippy::print_stdout)]

use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};
use std::fmt::Write as _;

struct Demo {
    client: Client,
    quiet: bool,
}

impl Demo {
    fn title(&self, text: &str) {
        if !self.quiet {
            println!("\n── {text} ──");
        }
    }

    fn show(&self, tool: &str, arguments: &Value, answer: &Result<Value, String>) {
        if self.quiet {
            return;
        }
        let mut line = String::new();
        for (key, value) in arguments.as_object().into_iter().flatten() {
            let _ = write!(line, " {key}={value}");
        }
        println!("▶ {tool}{line}");
        match answer {
            Ok(reply) => println!("  ✓ {reply}"),
            Err(refusal) => println!("  ✗ {refusal}"),
        }
    }

    /// A call that passes and answers at least with these fields.
    fn pass(&mut self, tool: &str, arguments: Value, expected: Value) -> Result<Value, String> {
        let answer = self.client.call(tool, arguments.clone());
        self.show(tool, &arguments, &answer);
        let reply = answer.map_err(|refusal| format!("{tool} was refused: {refusal}"))?;
        for (key, value) in expected.as_object().into_iter().flatten() {
            if reply[key] != *value {
                return Err(format!("{tool}: expected {key} to be {value}, got {}", reply[key]));
            }
        }
        Ok(reply)
    }

    /// A call that is refused, saying this among other things.
    fn refuse(&mut self, tool: &str, arguments: Value, says: &str) -> Result<(), String> {
        let answer = self.client.call(tool, arguments.clone());
        self.show(tool, &arguments, &answer);
        match answer {
            Ok(reply) => Err(format!("{tool} should have been refused, and answered {reply}")),
            Err(refusal) if refusal.contains(says) => Ok(()),
            Err(refusal) => Err(format!("{tool}: expected the refusal to say {says:?}, got {refusal:?}")),
        }
    }

    /// Brackets a phase.
    fn phase(&mut self, phase: &str, statuses: &[&str]) -> Result<(), String> {
        for status in statuses {
            self.pass(
                "loop_setPhaseStatus",
                json!({ "phase": phase, "status": status }),
                json!({ "status": status }),
            )?;
        }
        Ok(())
    }

    /// One step of a task: dispatch, the agent's return, the new status.
    fn step(
        &mut self,
        taskid: &str,
        agent: &str,
        step: &str,
        status: &str,
        extra: Value,
    ) -> Result<(), String> {
        self.pass("now_set", json!({ "task": taskid, "agent": agent, "step": step }), json!({}))?;
        self.pass(
            "event_append",
            json!({ "event": "agent-return", "to": "success" }),
            json!({ "to": "done", "task": taskid }),
        )?;
        let mut arguments = json!({ "taskid": taskid, "status": status });
        for (key, value) in extra.as_object().into_iter().flatten() {
            arguments[key] = value.clone();
        }
        self.pass("task_setStatus", arguments, json!({ "to": status }))?;
        self.pass("now_clear", json!({}), json!({})).map(|_| ())
    }

    /// The whole lifecycle of a task.
    fn task(&mut self, taskid: &str, issue: &str, sha: &str) -> Result<(), String> {
        self.step(taskid, "git-loop", "git-issue", "issue-open", json!({ "issue": issue }))?;
        self.step(
            taskid,
            "rust-engineer-loop",
            "build",
            "verified",
            json!({ "evidence": "cargo test: 12 passed" }),
        )?;
        self.step(
            taskid,
            "security-reviewer-loop",
            "security",
            "secure",
            json!({ "evidence": "no findings" }),
        )?;
        self.step(
            taskid,
            "git-loop",
            "git-pr",
            "pr-open",
            json!({ "pr": format!("{issue}-pr"), "branch": format!("feat/{taskid}") }),
        )?;
        self.step(taskid, "code-reviewer-loop", "review", "in-review", json!({}))?;
        self.step(taskid, "git-loop", "git-merge", "merged", json!({ "evidence": sha }))?;
        self.pass(
            "task_complete",
            json!({ "taskid": taskid, "mergeEvidence": sha }),
            json!({ "status": "complete" }),
        )
        .map(|_| ())
    }
}

fn play(demo: &mut Demo) -> Result<(), String> {
    demo.title("a loop begins");
    demo.pass(
        "loop_init",
        json!({ "goal": "Users can sign in with OAuth", "title": "Add OAuth" }),
        json!({ "loopSlug": SLUG }),
    )?;
    demo.pass(
        "loop_init",
        json!({ "goal": "Users can sign in with OAuth" }),
        json!({ "reused": true, "differs": [] }),
    )?;
    demo.phase("clarify", &["in-progress", "done"])?;
    demo.phase("discovery", &["in-progress", "done"])?;
    demo.phase("legal", &["not-needed"])?;

    demo.title("the plan");
    demo.phase("plan", &["in-progress"])?;
    demo.pass(
        "tasks_derive",
        json!({ "tasks": [
            { "taskid": "T1", "title": "Store the tokens", "tech": "rust" },
            { "taskid": "T2", "title": "Sign-in page", "tech": "rust", "depends_on": ["T1"] },
        ] }),
        json!({ "created": ["T1", "T2"] }),
    )?;
    demo.refuse(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "T1", "title": "Store the tokens", "depends_on": ["T2"] }] }),
        "T1 → T2 → T1",
    )?;
    demo.phase("plan", &["done"])?;
    demo.pass("loop_setPhase", json!({ "phase": "build" }), json!({ "phase": "build" }))?;
    demo.phase("build", &["in-progress"])?;

    demo.title("a jump is refused, and put right");
    demo.step("T1", "git-loop", "git-issue", "issue-open", json!({ "issue": "#1" }))?;
    demo.refuse(
        "task_setStatus",
        json!({ "taskid": "T1", "status": "merged", "evidence": "trust me" }),
        "shortest legal way",
    )?;
    demo.refuse("loop_setPhase", json!({ "phase": "qa" }), "refused task_setStatus on T1")?;
    demo.step("T1", "rust-engineer-loop", "build", "in-progress", json!({}))?;

    demo.title("the task is too big");
    demo.pass(
        "tasks_split",
        json!({ "taskid": "T1", "subtasks": [{ "title": "Encrypt the tokens" }, { "title": "Refresh them" }] }),
        json!({ "created": ["T1a", "T1b"] }),
    )?;
    demo.task("T1a", "#2", "1a2b3c4")?;
    demo.refuse("loop_finish", json!({ "status": "done" }), "T1b is pending")?;
    demo.task("T1b", "#3", "2b3c4d5")?;
    demo.task("T2", "#4", "3c4d5e6")?;
    demo.phase("build", &["done"])?;

    demo.title("QA finds something");
    demo.pass("loop_setPhase", json!({ "phase": "qa" }), json!({}))?;
    demo.phase("qa", &["in-progress"])?;
    demo.pass(
        "loop_bumpCounter",
        json!({ "counter": "qa_rounds" }),
        json!({ "value": 1, "capExceeded": false }),
    )?;
    demo.pass(
        "tasks_append",
        json!({ "kind": "qa-fix", "tasks": [{ "title": "Sign-in fails on a slow network", "tech": "rust" }] }),
        json!({ "created": ["T3"] }),
    )?;
    demo.task("T3", "#5", "4d5e6f7")?;
    demo.phase("qa", &["done"])?;

    demo.title("the end");
    demo.pass(
        "memory_append",
        json!({ "agent": "qa-loop", "note": "Test on a slow network\nbefore the review." }),
        json!({ "seq": 1 }),
    )?;
    for phase in ["findings-gate", "memory", "agents-sync", "feature-merge"] {
        demo.phase(phase, &["done"])?;
    }
    demo.pass("loop_finish", json!({ "status": "done" }), json!({ "status": "done", "phase": "done" }))?;
    demo.refuse("task_setStatus", json!({ "taskid": "T3", "status": "in-progress" }), "finished")?;
    Ok(())
}

fn main() {
    let quiet = std::env::args().any(|a| a == "--quiet");
    let world = World::new();
    let mut demo = Demo { client: world.client(), quiet };
    let outcome = play(&mut demo).and_then(|()| {
        let kept = world.view("loop.md");
        demo.pass("loop_render", json!({}), json!({}))?;
        if world.view("loop.md") == kept {
            Ok(kept)
        } else {
            Err("loop.md is not what loop_render writes".to_owned())
        }
    });
    match outcome {
        Ok(page) => {
            if !quiet {
                println!("\n── .projects/loops/{SLUG}/loop.md ──\n\n{page}");
            }
            println!("demo: every answer was as expected");
        }
        Err(difference) => {
            eprintln!("demo: {difference}");
            std::process::exit(1);
        }
    }
}
