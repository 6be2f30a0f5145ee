//! Plans, verdicts, states and ledgers as JSON, in the order of their fields.

use super::gate::Verdict;
use super::plan::Plan;
use super::problem::Problem;
use crate::model::{GoalState, LedgerEntry};
use crate::render::timestamp;
use crate::reply::{Reply, json_text};
use serde_json::{Map, Value, json};

/// A plan; `warnings` are those of its configuration.
pub fn plan(plan: &Plan, warnings: &[Problem]) -> Reply {
    let names = |nodes: &[usize]| -> Vec<&str> {
        nodes.iter().filter_map(|node| plan.ids.get(*node).copied()).collect()
    };
    let waves: Vec<_> = plan
        .waves
        .iter()
        .enumerate()
        .map(|(index, nodes)| json!({"index": index, "nodes": names(nodes)}))
        .collect();
    Reply::new()
        .with("waves", waves)
        .with("critical_path", names(&plan.critical_path))
        .with("critical_path_cost", plan.critical_path_cost)
        .with("total_cost", plan.total_cost)
        .with("parallel_fraction", plan.parallel_fraction)
        .with("concurrency", plan.concurrency)
        .with("predicted_speedup", plan.predicted_speedup)
        .with("speedup_ceiling", plan.speedup_ceiling.map_or(Value::Null, Value::from))
        .with("schedule", schedule(plan))
        .with_some("warnings", said(warnings))
}

/// How many characters the lanes may take: of a large graph the beginning is shown,
/// so that the rest of the answer stays.
const LANES: usize = 16_000;

fn schedule(plan: &Plan) -> Value {
    let schedule = &plan.schedule;
    let mut slots: Vec<_> = schedule
        .lanes
        .iter()
        .enumerate()
        .flat_map(|(lane, slots)| slots.iter().map(move |slot| (lane, slot)))
        .collect();
    // By time, and so that each lane keeps its order.
    slots.sort_by(|a, b| a.1.start.total_cmp(&b.1.start).then(a.0.cmp(&b.0)));
    let mut lanes: Vec<Vec<Value>> = vec![Vec::new(); schedule.lanes.len()];
    let mut room = LANES;
    let mut shown = 0;
    for (lane, slot) in &slots {
        let mut value = Map::with_capacity(3);
        value.insert("node".to_owned(), plan.ids.get(slot.node).map_or(Value::Null, |id| (*id).into()));
        value.insert("start".to_owned(), slot.start.into());
        value.insert("end".to_owned(), slot.end.into());
        let value = Value::Object(value);
        let length = json_text(&value).len();
        if length > room {
            break;
        }
        room -= length;
        shown += 1;
        if let Some(lane) = lanes.get_mut(*lane) {
            lane.push(value);
        }
    }
    let mut map = Map::new();
    map.insert("makespan".to_owned(), json!(schedule.makespan));
    map.insert("speedup".to_owned(), json!(schedule.speedup));
    map.insert("lanes".to_owned(), json!(lanes));
    if slots.len() > shown {
        map.insert("more".to_owned(), json!(slots.len() - shown));
    }
    Value::Object(map)
}

/// A verdict.
pub fn verdict(verdict: &Verdict, warnings: &[Problem]) -> Reply {
    let checks: Vec<_> = verdict
        .checks
        .iter()
        .map(|check| {
            json!({
                "name": check.name,
                "text": check.text,
                "blocking": check.blocking,
                "passed": check.passed(),
                "outcome": check.outcome.word(),
                "evidence": check.evidence,
                "source": check.source.word(),
            })
        })
        .collect();
    Reply::new()
        .with("target", verdict.target.as_str())
        .with("satisfied", verdict.satisfied)
        .with("passed", verdict.passed)
        .with("failed", verdict.failed)
        .with("total", verdict.total)
        .with("reason", verdict.reason.as_str())
        .with("checks", checks)
        .with("config_sha256", verdict.config_sha256.as_str())
        .with("evidence_sha256", verdict.evidence_sha256.as_str())
        .with_some("warnings", said(warnings))
}

/// How many characters the states of a run may take.
const STATES: usize = 36_000;

/// The recorded rulings of a run by target, in the order given; of more than an
/// answer holds the rest is counted in `more`.
pub fn goal_states(states: &[GoalState]) -> Reply {
    let mut reply = Reply::new();
    let mut room = STATES;
    for (shown, state) in states.iter().enumerate() {
        let value = json!({
            "satisfied": state.satisfied,
            "passed": state.passed,
            "failed": state.failed,
            "total": state.total,
            "reason": state.reason,
            "iteration": state.iteration,
            "config_sha256": state.config_sha256,
            "evidence_sha256": state.evidence_sha256,
            "workdir": state.workdir,
            "updated_at": timestamp(state.updated_at),
        });
        let length = state.target.len() + json_text(&value).len();
        if length > room {
            return reply.with("more", states.len() - shown);
        }
        room -= length;
        reply = reply.with(&state.target, value);
    }
    reply
}

/// An entry of the ledger.
pub fn ledger_entry(entry: &LedgerEntry) -> Value {
    let mut map = Map::new();
    let mut add = |key: &str, value: Value| map.insert(key.to_owned(), value);
    add("seq", json!(entry.seq));
    add("at", json!(timestamp(entry.at)));
    add("kind", json!(entry.kind));
    add("iteration", json!(entry.iteration));
    add("detail", json!(entry.detail));
    if let Some(node) = &entry.node_id {
        add("node_id", json!(node));
    }
    if let Some(tokens) = entry.tokens {
        add("tokens", json!(tokens));
    }
    if let Some(cost) = entry.cost_usd {
        add("cost_usd", json!(cost));
    }
    add("hash", json!(entry.hash));
    Value::Object(map)
}

fn said(warnings: &[Problem]) -> Option<Vec<String>> {
    (!warnings.is_empty()).then(|| warnings.iter().map(Problem::to_string).collect())
}
