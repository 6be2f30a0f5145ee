//! States to render: a few fixed ones, and random hostile text.

use crate::model::{
    Block, Event, Loop, LoopState, Marks, Memory, NowPointer, Phase, Step, StepQuality, StepTotal, Task,
};
use proptest::prelude::*;

/// 2026-08-18T09:12:00.000Z
pub const CREATED: i64 = 1_787_044_320_000;
const DAY_MS: i64 = 86_400_000;

const LADDER: [&str; 10] = [
    "clarify",
    "discovery",
    "legal",
    "plan",
    "build",
    "qa",
    "findings-gate",
    "memory",
    "agents-sync",
    "feature-merge",
];

fn text(value: &str) -> Option<String> {
    Some(value.to_owned())
}

/// A loop of which only what `loop_init` needs is known.
pub fn fresh() -> LoopState {
    let phases = LADDER.map(|phase| Phase {
        phase: phase.to_owned(),
        status: "pending".to_owned(),
        updated_at: CREATED,
    });
    LoopState {
        loop_: Loop {
            id: "01890000-0000-7000-8000-000000000001".to_owned(),
            slug: "add-oauth".to_owned(),
            title: "Add OAuth login".to_owned(),
            goal: "Users can sign in with OAuth".to_owned(),
            mode: "standard".to_owned(),
            status: "active".to_owned(),
            phase: "preflight".to_owned(),
            project_id: "p1".to_owned(),
            project_root: "/repo".to_owned(),
            project_key: None,
            default_branch: None,
            branch_mode: None,
            feature_branch: None,
            legal: None,
            memory_harvest: None,
            docs_sync: None,
            deferred_gate: None,
            qa_report: None,
            f_unresolved_pr: None,
            f_security_deferred: None,
            total_failed_gates: 0,
            splits_done: 0,
            qa_rounds: 0,
            awaiting_user: None,
            blocked: None,
            now: None,
            goal_config: None,
            goal_config_sha256: None,
            mcp_version: None,
            created_at: CREATED,
            updated_at: CREATED,
            finished_at: None,
            pruned_at: None,
            marks: Marks {
                revision: 1,
                event_seq: 1,
                log_bytes: 140,
                step_seq: 0,
                memory_seq: 0,
                memory_bytes: 0,
            },
            quality: StepQuality {
                explicit: 0,
                auto_next: 0,
                auto_complete: 0,
                auto_finish: 0,
                missing_returns: 0,
                orphan_returns: 0,
                duplicate_returns: 0,
                backfilled: 0,
                clock_corrections: 0,
            },
        },
        phases: phases.into(),
        tasks: Vec::new(),
        totals: Vec::new(),
        goals: Vec::new(),
        open_step: None,
    }
}

/// A task of which only the required fields are set.
pub fn task(position: u32, taskid: &str, title: &str, status: &str) -> Task {
    Task {
        taskid: taskid.to_owned(),
        position,
        title: title.to_owned(),
        description: None,
        kind: None,
        tech: None,
        status: status.to_owned(),
        depends_on: Vec::new(),
        issue: None,
        pr: None,
        branch: None,
        last_evidence: None,
        retries: 0,
        security_rounds: 0,
        review_rounds: 0,
        superseded_by: Vec::new(),
        created_at: CREATED,
        updated_at: CREATED,
        completed_at: None,
    }
}

/// A loop with every field set, both banners up and a step in flight.
pub fn rich() -> LoopState {
    let mut state = fresh();
    let l = &mut state.loop_;
    l.phase = "build".to_owned();
    l.project_key = text("github.com/acme/app");
    l.default_branch = text("main");
    l.branch_mode = text("new-feature-branch");
    l.feature_branch = text("feat/add_oauth");
    l.legal = text("MIT only, signed off by @legal");
    l.memory_harvest = text("3 lessons");
    l.docs_sync = text("README | CHANGELOG");
    l.deferred_gate = text("none\nyet");
    l.qa_report = text("qa-report-20260818-0912.md");
    l.f_unresolved_pr = Some(2);
    l.f_security_deferred = Some(1);
    l.total_failed_gates = 3;
    l.splits_done = 1;
    l.qa_rounds = 2;
    l.awaiting_user = text("Ship without *SAML*?");
    l.blocked = Some(Block {
        op: "task_complete".to_owned(),
        task: "T3".to_owned(),
        reason: "T3 is in-review; dispatch git-loop (phase=git-merge)".to_owned(),
    });
    l.now = Some(NowPointer {
        task: text("T3"),
        agent: "code-reviewer-loop".to_owned(),
        step: "review".to_owned(),
        since: CREATED + 5_400_000,
    });
    l.mcp_version = text("0.1.0");
    l.updated_at = CREATED + 5_400_001;
    for (phase, status) in state.phases.iter_mut().zip([
        "done",
        "skipped",
        "not-needed",
        "done",
        "in-progress",
        "blocked",
        "left-open",
        "failed",
    ]) {
        phase.status = status.to_owned();
    }
    state.tasks = vec![
        Task {
            tech: text("rust"),
            issue: text("#12"),
            pr: text("https://github.com/acme/app/pull/13"),
            branch: text("feat/t1"),
            ..task(0, "T1", "Store tokens in `tokens.db`", "complete")
        },
        Task {
            superseded_by: vec!["T3".to_owned(), "T4".to_owned()],
            ..task(1, "T2", "Login and logout", "superseded")
        },
        Task {
            tech: text("frontend"),
            depends_on: vec!["T1".to_owned()],
            issue: text("#14"),
            pr: text("#15"),
            branch: text("feat/login_page"),
            retries: 1,
            security_rounds: 2,
            review_rounds: 3,
            ..task(2, "T3", "Login page <form> & [link](x)", "in-review")
        },
        Task { depends_on: vec!["T1".to_owned(), "T3".to_owned()], ..task(3, "T4", "Logout", "pending") },
        task(4, "T5", "- [x] done — **complete**", "waiting-for-moon"),
    ];
    state.tasks[0].completed_at = Some(CREATED + 4_000_000);
    state.totals = vec![
        total(None, "plan", 1, 45_300, 45_000),
        total(Some("T1"), "build", 5, 3_725_000, 2_400_000),
        total(Some("T3"), "build", 2, 900, 120),
    ];
    state.open_step = Some(running_step());
    state
}

/// A step that has not come back.
pub fn running_step() -> Step {
    Step {
        seq: 9,
        task: text("T3"),
        phase: "build".to_owned(),
        agent: "code-reviewer-loop".to_owned(),
        step: "review".to_owned(),
        attempt: 1,
        started_at: CREATED + 5_400_000,
        agent_returned_at: None,
        outcome: None,
        ended_at: None,
        ended_by: None,
        source: "live".to_owned(),
    }
}

fn total(task: Option<&str>, phase: &str, closed: u32, wall_ms: u64, agent_ms: u64) -> StepTotal {
    StepTotal {
        task: task.map(str::to_owned),
        phase: phase.to_owned(),
        opened: closed,
        closed,
        wall_ms,
        agent_ms,
        orchestrator_ms: wall_ms - agent_ms,
        unattributed_ms: 0,
        first_started_at: CREATED + 60_000,
    }
}

/// A loop of that many tasks, each depending on the one before.
pub fn many_tasks(count: u32) -> LoopState {
    let statuses = ["complete", "complete", "complete", "in-review", "pending", "pending", "skipped"];
    let mut state = fresh();
    state.tasks = (0..count)
        .map(|n| Task {
            tech: text("rust"),
            depends_on: n.checked_sub(1).map(|n| format!("T{n}")).into_iter().collect(),
            issue: Some(format!("#{}", 100 + n)),
            ..task(n, &format!("T{n}"), &format!("Part {n} of the work"), statuses[n as usize % 7])
        })
        .collect();
    state.totals = state.tasks.iter().map(|t| total(Some(&t.taskid), "build", 3, 600_000, 480_000)).collect();
    state
}

fn lesson(seq: u64, at: i64, agent: &str, task: Option<&str>, note: &str) -> Memory {
    Memory { seq, at, agent: agent.to_owned(), task: task.map(str::to_owned), note: note.to_owned() }
}

/// Lessons of three days, the last one written by a clock that is behind.
pub fn lessons() -> Vec<Memory> {
    vec![
        lesson(
            1,
            CREATED,
            "rust-engineer-loop",
            Some("T1"),
            "Run the migration first:\n\n```sh\nmake migrate\n```\n",
        ),
        lesson(2, CREATED + 1, "qa-loop", None, "one line"),
        lesson(
            3,
            CREATED + 2 * DAY_MS,
            "a_b | c",
            Some("T3"),
            "# not a heading\n---\n<!-- kept -->\n\tindented\u{202e}",
        ),
        lesson(4, CREATED + DAY_MS, "git-loop", Some("T3"), ""),
    ]
}

/// An event with every field set.
pub fn event(seq: u64, note: &str) -> Event {
    Event {
        seq,
        at: CREATED,
        event: "task-status".to_owned(),
        phase: text("build"),
        task: text("T1"),
        from: text("in-progress"),
        to: text("verified"),
        agent: text("rust-engineer-loop"),
        note: text(note),
        evidence: text("cargo test: 12 passed"),
        issue: text("#12"),
        pr: text("#13"),
        branch: text("feat/t1"),
    }
}

/// Pieces of text that mean something to a parser, a terminal or a reader.
const PIECES: [&str; 96] = [
    "a",
    "b1",
    "Wort",
    "é",
    "ß",
    "Ⓐ",
    "1",
    "_",
    "__",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\u{b}",
    "\u{c}",
    "\0",
    "\u{1b}[2J",
    "\u{7f}",
    "\u{85}",
    "\u{9b}",
    "\u{a0}",
    "\u{3000}",
    "\u{2028}",
    "\u{2029}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{200d}",
    "\u{200c}",
    "\u{fe0f}",
    "\u{feff}",
    "\u{fff9}",
    "\u{fffd}",
    "\u{3164}",
    "\u{e0041}",
    "👨‍👩‍👧",
    "🇨🇿",
    "❤️",
    "e\u{301}\u{302}",
    "مرحبا",
    "שלום",
    "\\",
    "\\\\",
    "`",
    "```",
    "~",
    "~~",
    "*",
    "**",
    "***",
    "-",
    "---",
    "\n---\n",
    "+",
    "=",
    "\n===\n",
    "#",
    "##",
    " #",
    "# ",
    "\n# h\n",
    "- [x] done",
    "1. x",
    "> q",
    "[",
    "]",
    "[ ]",
    "(",
    ")",
    "](",
    "![",
    "[t](javascript:x)",
    "[^1]",
    "[t]: /u",
    "<",
    ">",
    "<b>",
    "</details>",
    "<!--",
    "-->",
    "<http://x.y>",
    "http://a.b/c",
    "https://",
    "www.a.b",
    "a@b.c",
    "&",
    "&amp;",
    "&#65",
    ";",
    "|",
    "\n|-|\n",
    ":",
    "{#id}",
    "!",
];

/// Random text made of such pieces, and now and then of anything.
pub fn hostile() -> impl Strategy<Value = String> {
    prop_oneof![
        8 => prop::collection::vec(prop::sample::select(&PIECES[..]), 0..10).prop_map(|pieces| pieces.concat()),
        1 => any::<String>(),
    ]
}
