//! The timing report, and steps rebuilt from a timeline.

use super::bench::{Bench, SLUG};
use super::histories::{begin, history};
use crate::timing::{backfill, duration};
use proptest::prelude::*;
use serde_json::{Value, json};

#[test]
fn the_report_sums_up() {
    let mut b = begin("standard");
    b.ok("now_set", json!({ "agent": "plan-loop", "step": "plan" }));
    b.ok("event_append", json!({ "event": "agent-return" }));
    b.ok("loop_setPhase", json!({ "phase": "build" }));
    b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "build" }));
    b.now += 60_000;
    b.ok("event_append", json!({ "event": "agent-return", "to": "done" }));
    b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "again" }));
    let report = b.ok("loop_timings", json!({}));
    assert_eq!(
        report["loop"],
        json!({ "steps": 2, "wall_ms": 65_000, "agent_ms": 62_000, "orchestrator_ms": 3_000, "unattributed_ms": 0, "clock_ms": null })
    );
    let keys = |list: &str, key: &str| -> Vec<Value> {
        report[list].as_array().expect("a list").iter().map(|r| r[key].clone()).collect()
    };
    assert_eq!(keys("tasks", "taskid"), [Value::Null, json!("T1")]);
    assert_eq!(keys("phases", "phase"), [json!("preflight"), json!("build")]);
    assert_eq!(keys("slowest", "seq"), [json!(2), json!(1)]);
    assert_eq!((&report["running"]["step"], &report["running"]["attempt"]), (&json!("again"), &json!(2)));
    assert_eq!(report["quality"]["auto_next"], 2);
    let audit = b.ok("loop_audit", json!({}));
    assert_eq!(
        audit["summary"]["timing"],
        "2 closed steps, 1m 05s in all: agents 1m 02s, orchestrator 3.0s, unattributed 0ms"
    );
}

#[test]
fn durations_are_readable() {
    for (ms, text) in [
        (0, "0ms"),
        (999, "999ms"),
        (1_000, "1.0s"),
        (59_999, "59.9s"),
        (60_000, "1m 00s"),
        (3_599_999, "59m 59s"),
        (3_600_000, "1h 00m"),
        (360_000_000, "100h 00m"),
    ] {
        assert_eq!(duration(ms), text);
    }
}

/// A loop that has a history and no steps is reported as if they had been timed.
#[test]
fn a_loop_without_steps_is_rebuilt_for_reading() {
    let mut b = begin("standard");
    b.ok("now_set", json!({ "task": "T1", "agent": "a", "step": "s" }));
    b.ok("event_append", json!({ "event": "agent-return" }));
    b.ok("loop_finish", json!({ "status": "aborted" }));
    let live = b.ok("loop_timings", json!({}));
    let kept = b.loops.get_mut(SLUG).expect("made above");
    kept.steps.clear();
    kept.state.totals.clear();
    kept.state.loop_.quality = crate::timing::NO_QUALITY;
    kept.state.loop_.marks.step_seq = 0;
    let before = b.loops.clone();
    let mut rebuilt = b.ok("loop_timings", json!({}));
    assert_eq!(b.loops, before, "nothing of it is stored");
    assert_eq!(rebuilt["quality"]["backfilled"], 1);
    rebuilt["quality"]["backfilled"] = json!(0);
    rebuilt["slowest"][0]["source"] = json!("live");
    assert_eq!(rebuilt, live);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, ..ProptestConfig::default() })]

    /// Measured and rebuilt agree wherever the pointer was not cleared by hand.
    #[test]
    fn backfill_rebuilds_what_was_measured((mode, steps) in history()) {
        let mut b: Bench = begin(mode);
        for s in steps.iter().filter(|s| s.tool != "now_clear") {
            b.now += s.pause;
            let _ = b.call(s.tool, s.args.clone());
        }
        let kept = b.kept();
        let rebuilt = backfill(&kept.events);
        let plain = |steps: &[crate::model::Step]| {
            let mut steps = steps.to_vec();
            for s in &mut steps {
                (s.ended_by, s.source) = (None, String::new());
            }
            steps
        };
        prop_assert_eq!(plain(&rebuilt.steps), plain(&kept.steps));
        prop_assert_eq!(&rebuilt.totals, &kept.state.totals);
        let mut quality = rebuilt.quality;
        quality.backfilled = 0;
        prop_assert_eq!(quality, kept.state.loop_.quality);
    }
}
