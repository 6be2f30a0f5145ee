//! Records for tests of what is drawn.

use super::{LoopRecords, Overview, OverviewRow};
use crate::contract::model::*;
use crate::store::Newest;

pub(crate) const START: i64 = 1_787_044_320_000;
pub(crate) const MINUTE: i64 = 60_000;

fn the_loop() -> Loop {
    let marks =
        Marks { revision: 1, event_seq: 0, log_bytes: 0, step_seq: 0, memory_seq: 0, memory_bytes: 0 };
    let quality = StepQuality {
        explicit: 0,
        auto_next: 0,
        auto_complete: 0,
        auto_finish: 0,
        missing_returns: 1,
        orphan_returns: 0,
        duplicate_returns: 0,
        backfilled: 0,
        clock_corrections: 0,
    };
    Loop {
        id: "9a1c".into(),
        slug: "demo".into(),
        title: "Sign in with OAuth".into(),
        goal: "People sign in with the account that they have.".into(),
        mode: "standard".into(),
        status: "active".into(),
        phase: "build".into(),
        project_id: "p".into(),
        project_root: "/home/someone/project".into(),
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
        created_at: START,
        updated_at: START,
        finished_at: None,
        pruned_at: None,
        marks,
        quality,
    }
}

pub(crate) fn task(id: &str, title: &str, status: &str, needs: &[&str]) -> Task {
    Task {
        taskid: id.into(),
        position: 0,
        title: title.into(),
        description: None,
        kind: None,
        tech: None,
        status: status.into(),
        depends_on: needs.iter().map(|need| (*need).to_owned()).collect(),
        issue: None,
        pr: None,
        branch: None,
        last_evidence: None,
        retries: 0,
        security_rounds: 0,
        review_rounds: 0,
        superseded_by: Vec::new(),
        created_at: START,
        updated_at: START,
        completed_at: None,
    }
}

pub(crate) fn event(seq: u64, kind: &str, note: &str) -> Event {
    Event {
        seq,
        at: START + seq as i64 * 1_000,
        event: kind.into(),
        phase: None,
        task: Some("T1".into()),
        from: None,
        to: None,
        agent: Some("coder".into()),
        note: Some(note.into()),
        evidence: None,
        issue: None,
        pr: None,
        branch: None,
    }
}

/// A step from one minute of the loop to another, with the agent back in the middle.
pub(crate) fn step(seq: u64, agent: &str, from: i64, to: Option<i64>) -> Step {
    Step {
        seq,
        task: Some("T1".into()),
        phase: "build".into(),
        agent: agent.into(),
        step: "build".into(),
        attempt: 1,
        started_at: START + from * MINUTE,
        agent_returned_at: to.map(|to| START + (from + to) * MINUTE / 2),
        outcome: None,
        ended_at: to.map(|to| START + to * MINUTE),
        ended_by: None,
        source: "live".into(),
    }
}

fn newest<T>(rows: Vec<T>) -> Newest<T> {
    let all = rows.len() as u64;
    Newest { rows, all }
}

/// A loop without anything.
pub(crate) fn empty() -> LoopRecords {
    LoopRecords {
        at: START + 30 * MINUTE,
        version: "0.1.0".into(),
        project: "project".into(),
        orders: vec![["pending", "in-progress", "complete", "skipped"].map(str::to_owned).to_vec()],
        state: LoopState {
            loop_: the_loop(),
            phases: Vec::new(),
            tasks: Vec::new(),
            totals: Vec::new(),
            open_step: None,
            goals: Vec::new(),
        },
        steps: newest(Vec::new()),
        events: newest(Vec::new()),
        lessons: newest(Vec::new()),
        ledger: newest(Vec::new()),
    }
}

/// A loop at work.
pub(crate) fn at_work() -> LoopRecords {
    let mut records = empty();
    let state = &mut records.state;
    let phase =
        |phase: &str, status: &str| Phase { phase: phase.into(), status: status.into(), updated_at: START };
    state.phases = vec![phase("plan", "done"), phase("build", "in-progress"), phase("qa", "pending")];
    state.tasks = vec![
        task("T1", "Ask for a token", "complete", &[]),
        task("T2", "Store sessions", "in-progress", &["T1"]),
        task("T3", "Draw the button", "pending", &["T1"]),
        task("T4", "Sign out everywhere", "pending", &["T2", "T3"]),
        task("T5", "An old idea", "skipped", &[]),
    ];
    state.loop_.now = Some(NowPointer {
        task: Some("T2".into()),
        agent: "coder".into(),
        step: "build".into(),
        since: START + 28 * MINUTE,
    });
    state.totals = vec![StepTotal {
        task: Some("T1".into()),
        phase: "build".into(),
        opened: 2,
        closed: 2,
        wall_ms: 20 * MINUTE as u64,
        agent_ms: 10 * MINUTE as u64,
        orchestrator_ms: 10 * MINUTE as u64,
        unattributed_ms: 0,
        first_started_at: START,
    }];
    state.goals = vec![GoalState {
        target: "overall".into(),
        satisfied: false,
        passed: 1,
        failed: 1,
        total: 2,
        reason: "the tests did not run".into(),
        iteration: 1,
        config_sha256: "c".into(),
        evidence_sha256: "e".into(),
        workdir: String::new(),
        updated_at: START,
    }];
    records.steps = newest(vec![
        step(1, "coder", 0, Some(10)),
        step(2, "reviewer", 10, Some(20)),
        step(3, "coder", 28, None),
    ]);
    records.events = newest(vec![event(1, "dispatch", "begun"), event(2, "agent-return", "it compiles")]);
    let note = "Back off for a minute.".to_owned();
    records.lessons = newest(vec![Memory { seq: 1, at: START, agent: "coder".into(), task: None, note }]);
    records.ledger = newest(vec![LedgerEntry {
        seq: 1,
        at: START,
        kind: "goal_failed".into(),
        iteration: 1,
        detail: "overall: 1 of 2".into(),
        node_id: None,
        tokens: None,
        cost_usd: None,
        hash: "abcdef".into(),
    }]);
    records
}

/// A list of two loops.
pub(crate) fn overview() -> Overview {
    let summary = |slug: &str, status: &str| LoopSummary {
        slug: slug.into(),
        title: format!("The loop {slug}"),
        phase: "build".into(),
        status: status.into(),
        tasks: vec![StatusCount { status: "pending".into(), count: 2 }],
        updated_at: START,
        project_root: "/home/someone/project".into(),
    };
    let loops = vec![
        OverviewRow { summary: summary("demo", "active"), finished: false },
        OverviewRow { summary: summary("old", "done"), finished: true },
    ];
    let at = START;
    let (version, project, root) = ("0.1.0".into(), "project".into(), "/home/someone/project".into());
    Overview { at, version, project, root, orders: Vec::new(), loops, all: 2 }
}
