//! Random histories against a small model: whatever is called, the rules hold.
//!
//! The model keeps, per task, what it has passed since it was last in-progress;
//! the state machine itself is not modelled again.

use super::bench::{Bench, Kept};
use crate::plan::status_of;
use crate::render;
use crate::status::{Mode, Status};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
pub struct Step {
    pub tool: &'static str,
    pub args: Value,
    /// Milliseconds that pass before it; may be negative.
    pub pause: i64,
}

fn taskid() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => select(vec!["T1", "T2", "T3", "T4"]).prop_map(str::to_owned),
        1 => select(vec!["t1", "T1a", "T1b", "T5", "nope"]).prop_map(str::to_owned),
    ]
}

fn evidence() -> impl Strategy<Value = Value> {
    prop_oneof![3 => Just(json!("abc1234")), 1 => Just(Value::Null), 1 => Just(json!("n/a"))]
}

fn status() -> impl Strategy<Value = &'static str> {
    let legal_first =
        vec!["issue-open", "in-progress", "verified", "secure", "pr-open", "in-review", "merged"];
    let all: Vec<_> = Status::ALL.iter().map(|s| s.word()).collect();
    prop_oneof![4 => select(legal_first), 2 => select(all)]
}

fn batch(with_ids: bool) -> impl Strategy<Value = Value> {
    let entry = (taskid(), prop::collection::vec(taskid(), 0..3)).prop_map(move |(id, deps)| {
        let mut task = json!({ "title": format!("do {id}"), "tech": "rust", "depends_on": deps });
        if with_ids {
            task["taskid"] = json!(id);
        }
        task
    });
    prop::collection::vec(entry, 0..3).prop_map(Value::Array)
}

fn step() -> impl Strategy<Value = Step> {
    let call = prop_oneof![
        12 => (taskid(), status(), evidence()).prop_map(|(t, s, e)| ("task_setStatus", json!({ "taskid": t, "status": s, "evidence": e }))),
        4 => (taskid(), evidence()).prop_map(|(t, e)| ("task_complete", json!({ "taskid": t, "mergeEvidence": e.as_str().unwrap_or("") }))),
        2 => batch(true).prop_map(|b| ("tasks_derive", json!({ "tasks": b }))),
        1 => batch(false).prop_map(|b| ("tasks_append", json!({ "kind": "qa-fix", "tasks": b }))),
        1 => (taskid(), batch(false)).prop_map(|(t, b)| ("tasks_split", json!({ "taskid": t, "subtasks": b }))),
        2 => (taskid(), -3_i64..4).prop_map(|(t, by)| ("task_bumpCounter", json!({ "taskid": t, "counter": "retries", "by": by }))),
        3 => taskid().prop_map(|t| ("now_set", json!({ "task": t, "agent": "a", "step": "s" }))),
        1 => Just(("now_set", json!({ "agent": "a", "step": "loop" }))),
        1 => Just(("now_clear", json!({}))),
        2 => Just(("event_append", json!({ "event": "agent-return", "to": "completed" }))),
        1 => Just(("memory_append", json!({ "agent": "a", "note": "line\nline" }))),
        1 => select(vec!["build", "qa", "done"]).prop_map(|p| ("loop_setPhase", json!({ "phase": p }))),
        1 => select(vec!["qa", "build"]).prop_map(|p| ("loop_setPhaseStatus", json!({ "phase": p, "status": "done" }))),
        1 => select(vec!["x", ""]).prop_map(|a| ("loop_setAwaitingUser", json!({ "awaiting": a }))),
        1 => select(vec!["poc", "standard", "simple"]).prop_map(|m| ("loop_setField", json!({ "field": "mode", "value": m }))),
        1 => Just(("loop_clearBlock", json!({ "resolution": "decided" }))),
        1 => select(vec!["done", "done", "done", "aborted"]).prop_map(|s| ("loop_finish", json!({ "status": s }))),
    ];
    (call, -2_000_i64..5_000).prop_map(|((tool, args), pause)| Step { tool, args, pause })
}

pub fn history() -> impl Strategy<Value = (&'static str, Vec<Step>)> {
    (select(vec!["standard", "poc", "simple"]), prop::collection::vec(step(), 1..60))
}

pub fn begin(mode: &str) -> Bench {
    let mut b = Bench::with_loop(mode);
    b.ok(
        "tasks_derive",
        json!({ "tasks": [
            { "taskid": "T1", "title": "one", "tech": "rust" },
            { "taskid": "T2", "title": "two", "depends_on": ["T1"] },
            { "taskid": "T3", "title": "three" },
        ] }),
    );
    b
}

/// No task is complete that has not passed what its mode demands.
fn check_completions(kept: &Kept) {
    let poc = Some(Mode::Poc.word());
    let was_poc = kept.state.loop_.mode == Mode::Poc.word()
        || kept
            .events
            .iter()
            .any(|e| e.event == "field" && (e.from.as_deref() == poc || e.to.as_deref() == poc));
    for task in kept.state.tasks.iter().filter(|t| status_of(t) == Status::Complete) {
        let moves: Vec<_> = kept
            .events
            .iter()
            .filter(|e| e.task.as_deref() == Some(task.taskid.as_str()) && e.event.starts_with("task_"))
            .filter_map(|e| e.to.as_deref())
            .collect();
        let since = moves.iter().rposition(|s| *s == "in-progress").map_or(0, |i| i + 1);
        let passed = &moves[since..];
        let verified = passed.iter().position(|s| *s == "verified");
        let secure = passed.iter().rposition(|s| *s == "secure");
        assert!(verified.is_some() && verified < secure, "{}: {moves:?}", task.taskid);
        assert!(was_poc || passed.contains(&"merged"), "{}: {moves:?}", task.taskid);
    }
}

/// The running totals are what the steps add up to.
fn check_totals(kept: &Kept) {
    let sum = |f: fn(&crate::model::StepTotal) -> u64| kept.state.totals.iter().map(f).sum::<u64>();
    let closed: Vec<_> = kept.steps.iter().filter(|s| s.ended_at.is_some()).collect();
    let ms = |a: i64, b: i64| u64::try_from(b - a).expect("no time is negative");
    let wall: u64 = closed.iter().map(|s| ms(s.started_at, s.ended_at.unwrap_or(s.started_at))).sum();
    let agent: u64 = closed.iter().filter_map(|s| s.agent_returned_at.map(|r| ms(s.started_at, r))).sum();
    assert_eq!(sum(|t| t.wall_ms), wall);
    assert_eq!(sum(|t| t.agent_ms), agent);
    assert_eq!(sum(|t| t.agent_ms + t.orchestrator_ms + t.unattributed_ms), wall);
    assert_eq!(sum(|t| u64::from(t.closed)), closed.len() as u64);
    assert_eq!(sum(|t| u64::from(t.opened)), kept.steps.len() as u64);
    let q = kept.state.loop_.quality;
    assert_eq!((q.explicit + q.auto_next + q.auto_complete + q.auto_finish) as usize, closed.len());
}

/// The views that calls hand out are those that a full render gives.
fn check_marks(kept: &Kept) {
    let marks = kept.state.loop_.marks;
    assert_eq!(marks.log_bytes, render::log_lines(&kept.events).len() as u64);
    assert_eq!(marks.event_seq, kept.events.len() as u64);
    assert_eq!(marks.memory_seq, kept.memories.len() as u64);
    for version in ["1.2.3", "10.20.30-beta"] {
        let page = render::lessons_page(&kept.state.loop_, &kept.memories, version);
        assert_eq!(marks.memory_bytes + version.len() as u64, page.len() as u64);
    }
}

/// Brings the loop to its end by legal calls, without lifting a block by word.
fn drive_to_the_end(b: &mut Bench) {
    for _ in 0..400 {
        if b.state().loop_.finished_at.is_some() {
            return;
        }
        let state = b.state();
        let mode = Mode::parse(&state.loop_.mode).expect("a mode of ours");
        // A call on the task that the latch names lifts it, also when it is closed.
        if let Some(block) = &state.loop_.blocked {
            let id = block.task.clone();
            b.ok("task_bumpCounter", json!({ "taskid": id, "counter": "retries" }));
            continue;
        }
        let mut order: Vec<_> = state.tasks.iter().filter(|t| !status_of(t).closed()).collect();
        order.sort_by_key(|t| !status_of(t).in_flight());
        let ids: Vec<_> = order.iter().map(|t| (t.taskid.clone(), status_of(t))).collect();
        if ids.is_empty() {
            b.ok("loop_finish", json!({ "status": "done" }));
            continue;
        }
        let moved = ids.iter().any(|(id, status)| {
            let next = match status {
                Status::Pending | Status::Blocked | Status::Failed => "issue-open",
                Status::IssueOpen | Status::ChangesRequested => "in-progress",
                Status::InProgress => "verified",
                Status::Verified => "secure",
                Status::Secure if mode != Mode::Poc => "pr-open",
                Status::PrOpen => "in-review",
                Status::InReview => "merged",
                _ => {
                    return b
                        .call("task_complete", json!({ "taskid": id, "mergeEvidence": "abc1234" }))
                        .is_ok();
                }
            };
            let mut trial = b.clone();
            let passed = trial
                .call("task_setStatus", json!({ "taskid": id, "status": next, "evidence": "abc1234" }))
                .is_ok();
            if passed {
                *b = trial;
            }
            passed
        });
        assert!(moved, "no way out: {:?}", ids);
    }
    panic!("the end was not reached: {:?}", b.state().tasks);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    #[test]
    fn the_rules_hold((mode, steps) in history()) {
        let mut b = begin(mode);
        for s in &steps {
            b.now += s.pause;
            let before = b.kept().clone();
            let result = b.call(s.tool, s.args.clone());
            let after = b.kept();
            for task in before.state.tasks.iter().filter(|t| status_of(t).terminal()) {
                let now = after.state.tasks.iter().find(|t| t.taskid == task.taskid);
                prop_assert_eq!(now.map(|t| &t.status), Some(&task.status));
            }
            prop_assert!(after.state.loop_.updated_at >= before.state.loop_.updated_at);
            if result.is_err() {
                // Nothing but the latch, its event, and what every write carries.
                let mut same = after.clone();
                let latched = after.events.len() - before.events.len();
                prop_assert!(latched <= 1);
                if latched == 1 {
                    prop_assert_eq!(&same.events.pop().expect("one more").event, "tool-refused");
                    prop_assert!(same.state.loop_.blocked.is_some());
                }
                same.state.loop_.blocked = before.state.loop_.blocked.clone();
                same.state.loop_.marks = before.state.loop_.marks;
                same.state.loop_.updated_at = before.state.loop_.updated_at;
                prop_assert_eq!(&same, &before);
            }
            check_completions(after);
            check_totals(after);
            check_marks(after);
        }
        if b.state().loop_.finished_at.is_none() {
            drive_to_the_end(&mut b);
        }
    }
}
