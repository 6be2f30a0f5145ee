//! Sums of what steps took, and how durations and times read.

use std::collections::HashMap;

use crate::contract::model::{Step, StepTotal};
use crate::store::Newest;
use crate::time::timestamp;

/// What the closed steps of something took, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Closed steps.
    pub steps: u64,
    /// From start to end.
    pub wall: u64,
    /// From start to the agent's return.
    pub agent: u64,
    /// From the return to the end.
    pub orchestrator: u64,
    /// All of the steps whose agent did not report back.
    pub unattributed: u64,
}

impl Times {
    fn add(&mut self, total: &StepTotal) {
        self.steps += u64::from(total.closed);
        self.wall = self.wall.saturating_add(total.wall_ms);
        self.agent = self.agent.saturating_add(total.agent_ms);
        self.orchestrator = self.orchestrator.saturating_add(total.orchestrator_ms);
        self.unattributed = self.unattributed.saturating_add(total.unattributed_ms);
    }
}

/// The sum of all running totals.
pub fn whole(totals: &[StepTotal]) -> Times {
    let mut times = Times::default();
    totals.iter().for_each(|total| times.add(total));
    times
}

fn by<'a, K: Eq + std::hash::Hash + Copy>(
    totals: &'a [StepTotal],
    key: impl Fn(&'a StepTotal) -> K,
) -> Vec<(K, Times)> {
    let mut order: Vec<&StepTotal> = totals.iter().collect();
    order.sort_by_key(|total| total.first_started_at);
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut rows: Vec<(K, Times)> = Vec::new();
    for total in order {
        let key = key(total);
        let place = *places.entry(key).or_insert(rows.len());
        if place == rows.len() {
            rows.push((key, Times::default()));
        }
        rows[place].1.add(total);
    }
    rows
}

/// By task, in the order of their first steps; `None` for the loop's own steps.
pub fn by_task(totals: &[StepTotal]) -> Vec<(Option<&str>, Times)> {
    by(totals, |total| total.task.as_deref())
}

/// By phase, in the order of their first steps.
pub fn by_phase(totals: &[StepTotal]) -> Vec<(&str, Times)> {
    by(totals, |total| total.phase.as_str())
}

/// The agents in the order of their first steps, with what their steps took.
pub type Agents<'a> = Vec<(&'a str, Times)>;

/// By agent, of those steps that are there.
pub fn by_agent(steps: &Newest<Step>) -> Agents<'_> {
    let mut rows: Agents<'_> = Vec::new();
    for step in &steps.rows {
        let place = match rows.iter().position(|(agent, _)| *agent == step.agent) {
            Some(place) => place,
            None => {
                rows.push((&step.agent, Times::default()));
                rows.len() - 1
            }
        };
        let Some(end) = step.ended_at else { continue };
        let took = |from: i64, to: i64| u64::try_from(to.saturating_sub(from)).unwrap_or(0);
        let times = &mut rows[place].1;
        let wall = took(step.started_at, end);
        times.steps += 1;
        times.wall = times.wall.saturating_add(wall);
        match step.agent_returned_at {
            Some(back) => {
                let agent = took(step.started_at, back).min(wall);
                times.agent = times.agent.saturating_add(agent);
                times.orchestrator = times.orchestrator.saturating_add(wall - agent);
            }
            None => times.unattributed = times.unattributed.saturating_add(wall),
        }
    }
    rows
}

/// A duration as one reads it, its two largest units.
pub fn duration(ms: u64) -> String {
    const UNITS: [(u64, &str); 4] = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s")];
    if ms < 1_000 {
        return format!("{ms} ms");
    }
    if ms < 10_000 {
        return format!("{}.{} s", ms / 1_000, ms % 1_000 / 100);
    }
    let Some(first) = UNITS.iter().position(|(unit, _)| ms >= *unit) else { return format!("{ms} ms") };
    let (unit, name) = UNITS[first];
    let rest = UNITS.get(first + 1).map(|(smaller, name)| (ms % unit / smaller, *name));
    match rest {
        Some((rest, smaller)) if rest > 0 => format!("{} {name} {rest} {smaller}", ms / unit),
        _ => format!("{} {name}", ms / unit),
    }
}

/// A moment up to its minutes: `2026-08-18 09:12`; UTC.
pub fn moment(ms: i64) -> String {
    timestamp(ms).get(..16).unwrap_or_default().replace('T', " ")
}
