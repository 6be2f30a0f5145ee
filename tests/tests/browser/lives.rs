//! Loops with a past, lived through the real server on a clock of their own.

use loop_state_tests::{Client, SLUG, World};
use serde_json::{Value, json};

const START: i64 = 1_787_044_320_000;
const MINUTE: i64 = 60_000;

pub struct Life {
    pub world: World,
    client: Client,
    now: i64,
}

impl Life {
    /// A loop with tasks.
    pub fn begin(title: &str, tasks: Vec<Value>) -> Life {
        let world = World::with_clock(START);
        let mut client = world.client();
        let goal = "People sign in with the account that they have, and nobody has to keep another password.";
        client.ok("loop_init", json!({ "loopSlug": SLUG, "title": title, "goal": goal }));
        let mut life = Life { world, client, now: START };
        for phase in ["clarify", "discovery"] {
            life.call("loop_setPhaseStatus", json!({ "phase": phase, "status": "in-progress" }));
            life.step(None, "product-analyst", phase, 7);
            life.call("loop_setPhaseStatus", json!({ "phase": phase, "status": "done" }));
        }
        life.call("tasks_derive", json!({ "tasks": tasks }));
        life
    }

    pub fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.client.ok(tool, arguments)
    }

    /// Lets time pass.
    pub fn pass(&mut self, ms: i64) {
        self.now += ms;
        self.world.set_clock(self.now);
    }

    /// A step from its start to its end, of about so many minutes.
    fn step(&mut self, task: Option<&str>, agent: &str, step: &str, minutes: i64) {
        self.call("now_set", json!({ "task": task, "agent": agent, "step": step }));
        self.pass(minutes * MINUTE + 7_300);
        self.call("event_append", json!({ "event": "agent-return", "to": "success" }));
        self.pass(minutes * MINUTE / 3 + 1_900);
        self.call("now_clear", json!({}));
        self.pass(4_000);
    }

    /// A task up to the given number of its stations.
    pub fn task(&mut self, id: &str, stations: usize) {
        let number = id.bytes().map(i64::from).sum::<i64>();
        let table: [(&str, &str, &str, Value); 7] = [
            ("git-loop", "git-issue", "issue-open", json!({ "issue": "#41" })),
            (
                "rust-engineer-loop",
                "build",
                "verified",
                json!({ "evidence": "cargo test: 12 passed, 0 failed" }),
            ),
            ("security-reviewer-loop", "security", "secure", json!({ "evidence": "no findings" })),
            ("git-loop", "git-pr", "pr-open", json!({ "pr": "#57", "branch": format!("feat/{id}-sign-in") })),
            ("code-reviewer-loop", "review", "in-review", json!({})),
            ("git-loop", "git-merge", "merged", json!({ "evidence": "4c1f0d2" })),
            ("", "", "complete", json!({})),
        ];
        for (agent, step, status, more) in table.into_iter().take(stations) {
            if status == "complete" {
                self.call("task_complete", json!({ "taskid": id, "mergeEvidence": "4c1f0d2" }));
                continue;
            }
            self.step(Some(id), agent, step, 2 + number % 9);
            let mut arguments = json!({ "taskid": id, "status": status });
            for (key, value) in more.as_object().into_iter().flatten() {
                arguments[key] = value.clone();
            }
            self.call("task_setStatus", arguments);
        }
    }

    pub fn night(&mut self) {
        self.pass(14 * 60 * MINUTE);
    }
}

/// Five tasks, one in the middle of a step.
pub fn small() -> Life {
    let task =
        |id: &str, title: &str, needs: &[&str]| json!({ "taskid": id, "title": title, "depends_on": needs });
    let mut life = Life::begin(
        "Sign in with OAuth",
        vec![
            task("T1", "Ask the provider for a token", &[]),
            task("T2", "Store sessions for a day and renew them while they are used", &["T1"]),
            task("T3", "A button on the first page", &["T1"]),
            task("T4", "Sign out everywhere", &["T2", "T3"]),
            task("T5", "Say what changed in the handbook", &[]),
        ],
    );
    life.task("T1", 7);
    life.night();
    life.task("T2", 1);
    life.call("memory_append", json!({ "agent": "rust-engineer-loop", "task": "T1", "note": "The provider counts its limit by address and not by client: back off for a minute." }));
    life.call("now_set", json!({ "task": "T2", "agent": "rust-engineer-loop", "step": "build" }));
    life.pass(3 * MINUTE);
    life
}

/// 200 tasks in every state, with texts that want to break out, and a long past.
pub fn large() -> Life {
    let odd = [
        "</script><script>alert(1)</script><img src=x onerror=alert(2)>",
        "\u{202e}reversed\u{202c} and hid\u{200b}den, \u{1b}[31mred\u{1b}[0m",
        "تسجيل الدخول باستخدام الحساب الحالي",
        "既存のアカウントでサインインできるようにする。パスワードは増やさない。",
        "a-very-long-word-without-any-place-to-break-it-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on-and-on",
    ];
    let plain = [
        "Parse the answer",
        "Keep the session",
        "Draw the button",
        "Check the token",
        "Write the page",
        "Move the table",
    ];
    let tasks = (1..=200_usize).map(|n| {
        let title = if n % 23 == 0 {
            odd[n / 23 % odd.len()].to_owned()
        } else {
            format!("{} of part {n}", plain[n % plain.len()])
        };
        let mut needs: Vec<String> = Vec::new();
        if n > 9 && n <= 170 {
            needs.push(format!("T{}", n - 9));
            if n % 3 == 0 {
                needs.push(format!("T{}", n - 5));
            }
            if n % 31 == 0 {
                needs.push(format!("T{}", n / 31));
            }
        }
        let description = (n % 17 == 0).then(|| "Why it is done, and how. ".repeat(420));
        let mut task = json!({ "taskid": format!("T{n}"), "title": title, "depends_on": needs });
        if let Some(description) = description {
            task["description"] = description.into();
        }
        task
    });
    let mut life = Life::begin("Sign in with OAuth, <b>everywhere</b>", tasks.collect());
    for n in 1..=24 {
        life.task(&format!("T{n}"), 7);
        if n % 8 == 0 {
            life.night();
        }
    }
    for (n, status) in [(25, "failed"), (26, "blocked")] {
        life.task(&format!("T{n}"), 1);
        life.call("task_setStatus", json!({ "taskid": format!("T{n}"), "status": status }));
    }
    life.call("task_setStatus", json!({ "taskid": "T27", "status": "skipped" }));
    let parts = json!([{ "taskid": "T28a", "title": "The first half" }, { "taskid": "T28b", "title": "The second half" }]);
    life.call("tasks_split", json!({ "taskid": "T28", "subtasks": parts }));
    for n in 0..520 {
        life.call(
            "event_append",
            json!({ "event": "note", "note": format!("seen {n}: {}", odd[n % odd.len()]) }),
        );
    }
    for n in 0..70 {
        let note = if n % 10 == 0 { "x".repeat(10_000) } else { format!("{} ({n})", odd[n % odd.len()]) };
        life.call("memory_append", json!({ "agent": "code-reviewer-loop", "note": note }));
    }
    life.task("T29", 2);
    life.call(
        "loop_setAwaitingUser",
        json!({ "awaiting": "May the old sign-in go at the same time, or a release later?" }),
    );
    life.call("now_set", json!({ "task": "T29", "agent": "security-reviewer-loop", "step": "security" }));
    life.pass(9 * MINUTE);
    life
}
