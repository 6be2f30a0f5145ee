//! The audit: each code with a case that raises it and one that does not.

use super::bench::{Bench, SLUG};
use crate::model::{LoopState, Phase};
use serde_json::{Value, json};

/// A loop in which nothing is wrong: one task merged by the book, phases closed.
fn clean() -> Bench {
    let mut b = Bench::with_loop("standard");
    b.ok(
        "tasks_derive",
        json!({ "tasks": [{ "taskid": "T1", "title": "one", "tech": "rust", "issue": "#1" }] }),
    );
    for status in ["issue-open", "in-progress", "verified", "secure", "pr-open", "in-review"] {
        b.ok("task_setStatus", json!({ "taskid": "T1", "status": status, "evidence": "ok", "pr": "#2" }));
    }
    b.ok("task_setStatus", json!({ "taskid": "T1", "status": "merged", "evidence": "merged as ABC1234f" }));
    b.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "see above" }));
    for phase in
        ["clarify", "discovery", "legal", "plan", "build", "qa", "findings-gate", "memory", "agents-sync"]
    {
        b.ok("loop_setPhaseStatus", json!({ "phase": phase, "status": "done" }));
    }
    b
}

fn state(b: &mut Bench) -> &mut LoopState {
    &mut b.loops.get_mut(SLUG).expect("made above").state
}

fn codes(b: &mut Bench) -> Vec<(String, String, String)> {
    let report = b.ok("loop_audit", json!({}));
    let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
    let findings = report["findings"].as_array().expect("a list");
    findings.iter().map(|f| (text(&f["code"]), text(&f["severity"]), text(&f["owner"]))).collect()
}

fn rung<'a>(s: &'a mut LoopState, phase: &str) -> &'a mut Phase {
    s.phases.iter_mut().find(|p| p.phase == phase).expect("a rung")
}

#[test]
fn a_clean_loop_passes_and_its_merge_begins() {
    let mut b = clean();
    let report = b.ok("loop_audit", json!({}));
    assert_eq!((&report["verdict"], &report["findings"]), (&json!("pass"), &json!([])));
    assert_eq!(report["tasks"][0]["merge_sha"], "abc1234f");
    b.ok("loop_setPhaseStatus", json!({ "phase": "feature-merge", "status": "in-progress" }));
}

/// One change to a clean loop each, and the code that it raises.
#[test]
fn each_code_is_raised_by_its_cause_alone() {
    type Spoil = fn(&mut Bench);
    fn status(b: &mut Bench, status: &str) {
        state(b).tasks[0].status = status.to_owned();
    }
    fn evidence(b: &mut Bench, to: &str, text: Option<&str>) {
        let events = &mut b.loops.get_mut(SLUG).expect("made above").events;
        for e in events.iter_mut().filter(|e| e.to.as_deref() == Some(to)) {
            e.evidence = text.map(str::to_owned);
        }
    }
    let cases: &[(&str, &str, &str, Spoil)] = &[
        ("task-mid-lifecycle", "fail", "user", |b| status(b, "in-review")),
        ("merged-not-completed", "fail", "orchestrator", |b| status(b, "merged")),
        ("merged-not-completed", "fail", "user", |b| {
            status(b, "merged");
            evidence(b, "merged", None);
        }),
        ("task-never-started", "fail", "user", |b| status(b, "pending")),
        ("task-parked", "fail", "user", |b| status(b, "failed")),
        ("task-parked", "fail", "user", |b| status(b, "blocked")),
        ("task-skipped", "warn", "user", |b| status(b, "skipped")),
        ("merge-sha-placeholder", "fail", "user", |b| evidence(b, "merged", Some("0000000"))),
        ("merge-sha-placeholder", "fail", "user", |b| evidence(b, "merged", Some("sha: TBD"))),
        ("merge-sha-placeholder", "fail", "user", |b| evidence(b, "merged", Some("<sha>"))),
        ("merge-sha-missing", "fail", "user", |b| evidence(b, "merged", None)),
        ("merge-sha-missing", "fail", "user", |b| evidence(b, "merged", Some("it is in, abc123"))),
        ("missing-issue", "warn", "user", |b| state(b).tasks[0].issue = None),
        ("missing-pr", "warn", "user", |b| state(b).tasks[0].pr = None),
        ("counter-over-cap", "warn", "user", |b| state(b).tasks[0].retries = 3),
        ("counter-over-cap", "warn", "user", |b| state(b).loop_.qa_rounds = 3),
        ("user-gate-open", "fail", "user", |b| state(b).loop_.awaiting_user = Some("?".to_owned())),
        ("qa-not-run", "fail", "user", |b| rung(state(b), "qa").status = "failed".to_owned()),
        ("findings-gate-unasked", "fail", "user", |b| {
            state(b).loop_.f_unresolved_pr = Some(1);
            rung(state(b), "findings-gate").status = "pending".to_owned();
        }),
        ("phase-open", "warn", "user", |b| {
            state(b).loop_.f_security_deferred = Some(1);
            state(b).loop_.deferred_gate = Some("the user agreed".to_owned());
            rung(state(b), "findings-gate").status = "pending".to_owned();
        }),
        ("phase-open", "warn", "user", |b| rung(state(b), "memory").status = "in-progress".to_owned()),
        ("refusal-unresolved", "fail", "user", |b| {
            let block =
                crate::model::Block { op: "x".to_owned(), task: "T1".to_owned(), reason: "r".to_owned() };
            state(b).loop_.blocked = Some(block);
        }),
    ];
    for (code, severity, owner, spoil) in cases {
        let mut b = clean();
        spoil(&mut b);
        let expected = vec![((*code).to_owned(), (*severity).to_owned(), (*owner).to_owned())];
        assert_eq!(codes(&mut b), expected);
        let merge = json!({ "phase": "feature-merge", "status": "in-progress" });
        if *severity == "fail" && *code != "refusal-unresolved" {
            let refused = b.refused("loop_setPhaseStatus", merge);
            assert!(
                refused.starts_with("the feature merge does not begin") && refused.contains(code),
                "{refused}"
            );
            assert_eq!(state(&mut b).loop_.blocked, None, "the gate does not latch");
        } else if *severity == "warn" {
            b.ok("loop_setPhaseStatus", merge);
        }
    }
}

#[test]
fn what_raises_nothing() {
    let mut b = Bench::with_loop("poc");
    b.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "one" }] }));
    for status in ["in-progress", "verified", "secure"] {
        b.ok("task_setStatus", json!({ "taskid": "T1", "status": status, "evidence": "ok" }));
    }
    b.ok("task_complete", json!({ "taskid": "T1", "mergeEvidence": "local commit" }));
    assert!(codes(&mut b).iter().all(|(code, ..)| !code.starts_with("merge-sha")));

    for closed in ["skipped", "not-needed", "left-open"] {
        let mut b = clean();
        rung(state(&mut b), "qa").status = closed.to_owned();
        assert_eq!(codes(&mut b), []);
    }
    let mut pruned = clean();
    pruned.loops.get_mut(SLUG).expect("made above").events.clear();
    state(&mut pruned).loop_.pruned_at = Some(1);
    assert_eq!(codes(&mut pruned), []);
}

/// The fix of the one finding that the orchestrator may settle is a call that works.
#[test]
fn the_fix_of_a_merged_task_is_the_call_to_make() {
    let mut b = clean();
    state(&mut b).tasks[0].status = "merged".to_owned();
    let report = b.ok("loop_audit", json!({}));
    assert_eq!(report["selfCorrectable"], json!(["merged-not-completed T1"]));
    let fix = report["findings"][0]["fix"].as_str().expect("a fix");
    let inner = fix.strip_prefix("task_complete(").and_then(|f| f.strip_suffix(")")).expect("a call");
    let quoted = inner.replace("taskid:", "\"taskid\":").replace("mergeEvidence:", "\"mergeEvidence\":");
    b.ok("task_complete", serde_json::from_str(&format!("{{{quoted}}}")).expect("arguments"));
    assert_eq!(b.ok("loop_audit", json!({}))["verdict"], "pass");
}

/// A completed task without a SHA is not stuck before the merge for ever.
#[test]
fn a_sha_can_still_be_told_after_completion() {
    let mut b = clean();
    for e in &mut b.loops.get_mut(SLUG).expect("made above").events {
        e.evidence = None;
    }
    assert_eq!(codes(&mut b)[0].0, "merge-sha-missing");
    b.ok("task_setStatus", json!({ "taskid": "T1", "status": "complete", "evidence": "1234abcd" }));
    assert_eq!(codes(&mut b), []);
}

#[test]
fn a_loop_without_tasks_is_judged_by_its_phases() {
    let mut b = Bench::with_loop("standard");
    assert_eq!(codes(&mut b)[0].0, "qa-not-run");
}
