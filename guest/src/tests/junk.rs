//! Whatever is sent, a call ends in an answer or a refusal: no panic, no write by a
//! refused call beside the latch.

use super::bench::{Bench, SLUG};
use crate::catalogue::TOOLS;
use crate::tools::{Call, Decision, Guest};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Values of every kind, with those that rules look for among them.
fn value() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "demo",
        "T1",
        "t1 ",
        "done",
        "build",
        "qa",
        "in-progress",
        "complete",
        "superseded",
        "poc",
        "retries",
        "feature-merge",
        "n/a",
        "",
        "-",
        "\u{200b}",
        "[]",
        "{}",
        "[{\"taskid\":\"T9\",\"title\":\"x\"}]",
        "9e99",
        "18446744073709551616",
        "T18446744073709551615",
    ]);
    let leaf = prop_oneof![
        4 => word.prop_map(|w| json!(w)),
        1 => any::<String>().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
            prop::collection::vec((key(), inner), 0..5)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => prop::sample::select(vec![
            "loopSlug", "taskid", "status", "evidence", "mergeEvidence", "tasks", "subtasks", "title", "depends_on",
            "kind", "phase", "field", "value", "counter", "by", "agent", "step", "task", "event", "note", "awaiting",
            "goal", "mode", "resolution", "limit", "offset", "eventLimit", "full", "includeFinished", "issue",
        ]).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn any_arguments_are_answered(
        tool in 0..TOOLS.len(),
        pairs in prop::collection::vec((key(), value()), 0..6),
        with_slug in prop::bool::weighted(0.8),
    ) {
        let mut b = Bench::with_loop("standard");
        b.ok("tasks_derive", json!({ "tasks": [{ "taskid": "T1", "title": "one" }, { "taskid": "T2", "title": "two" }] }));
        b.ok("task_setStatus", json!({ "taskid": "T1", "status": "in-progress" }));
        let mut arguments: Map<String, Value> = pairs.into_iter().collect();
        if with_slug {
            arguments.insert("loopSlug".to_owned(), json!(SLUG));
        }
        let before = b.loops.clone();
        if b.call(TOOLS[tool].name, Value::Object(arguments)).is_err() {
            let (old, new) = (&before[SLUG], b.kept());
            prop_assert_eq!(&old.state.tasks, &new.state.tasks);
            prop_assert!(new.events.len() - old.events.len() <= 1);
        }
    }

    /// Arguments that are no object, or no JSON at all, are a refusal.
    #[test]
    fn any_text_is_answered(tool in 0..TOOLS.len(), text in any::<String>()) {
        let facts = crate::tests::bench::facts(i64::MIN, String::new());
        let call = Call { tool: TOOLS[tool].name.to_owned(), arguments: text };
        if let Decision::Done(outcome) = crate::Logic::decide(call, facts) {
            prop_assert!(outcome.writes.is_empty());
        }
    }
}
