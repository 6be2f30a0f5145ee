//! Plans and schedules of any graph.

use super::{config, read};
use crate::goal::config::Config;
use crate::goal::plan::{Plan, plan};
use proptest::prelude::*;
use std::fmt::Write;

/// A graph in which each node waits for some that are listed before it, shuffled.
#[derive(Clone, Debug)]
struct Graph {
    /// Weight and dependencies, by index.
    nodes: Vec<(f64, Vec<usize>)>,
    listed: Vec<usize>,
    concurrency: String,
}

fn graph() -> impl Strategy<Value = Graph> {
    let concurrency = prop_oneof![
        Just("{mode: sequential}".to_owned()),
        (1..40_u32).prop_map(|n| format!("{{mode: fixed, max_parallel: {n}}}")),
        ((1..20_u32), (-0.1..0.6_f64))
            .prop_map(|(cap, gain)| format!("{{mode: auto, cap: {cap}, min_marginal_gain: {gain:?}}}")),
    ];
    let nodes = prop::collection::vec(
        (0.01..20.0_f64, prop::collection::vec(any::<prop::sample::Index>(), 0..4)),
        0..60,
    );
    (nodes, concurrency).prop_flat_map(|(raw, concurrency)| {
        let nodes: Vec<_> = raw
            .into_iter()
            .enumerate()
            .map(|(i, (weight, on))| {
                (weight, if i == 0 { Vec::new() } else { on.iter().map(|index| index.index(i)).collect() })
            })
            .collect();
        let order: Vec<usize> = (0..nodes.len()).collect();
        (Just(nodes), Just(order).prop_shuffle(), Just(concurrency))
            .prop_map(|(nodes, listed, concurrency)| Graph { nodes, listed, concurrency })
    })
}

impl Graph {
    fn text(&self) -> String {
        let mut text = format!("name: g\ngraph:\n  concurrency: {}\n  nodes:\n", self.concurrency);
        for i in &self.listed {
            let (weight, on) = &self.nodes[*i];
            let on: Vec<_> = on.iter().map(|on| format!("n{on}")).collect();
            let on = on.join(", ");
            writeln!(
                text,
                "    - {{id: n{i}, role: builder, instruction: x, weight: {weight:?}, depends_on: [{on}]}}"
            )
            .unwrap();
        }
        if self.listed.is_empty() { text.replace("nodes:\n", "nodes: []\n") } else { text }
    }
}

/// Whether the schedule runs every node once, after what it waits for, with no
/// worker at two nodes at a time.
fn is_valid(config: &Config, plan: &Plan) {
    let mut times = vec![None; plan.ids.len()];
    for lane in &plan.schedule.lanes {
        for pair in lane.windows(2) {
            assert!(pair[0].end <= pair[1].start, "one node at a time");
        }
        for slot in lane {
            assert_eq!(slot.end, slot.start + config.graph.nodes[slot.node].weight);
            assert!(times[slot.node].replace((slot.start, slot.end)).is_none(), "once");
        }
    }
    for (node, time) in config.graph.nodes.iter().zip(&times) {
        let (start, end) = time.expect("each node runs");
        assert!(end <= plan.schedule.makespan);
        for on in &node.depends_on {
            let on = plan.ids.iter().position(|id| *id == on.text).unwrap();
            assert!(times[on].unwrap().1 <= start, "after what it waits for");
        }
    }
}

proptest! {
    #[test]
    fn schedules_are_valid_and_within_the_bounds(graph in graph()) {
        let config = config(&graph.text());
        let plan = plan(&config);
        is_valid(&config, &plan);
        prop_assert_eq!(plan.schedule.lanes.len(), plan.concurrency);
        let (total, path, makespan) = (plan.total_cost, plan.critical_path_cost, plan.schedule.makespan);
        let n = plan.concurrency as f64;
        let slack = 1e-9 * total.max(1.0);
        prop_assert!(makespan >= path.max(total / n) - slack && makespan <= total + slack);
        // Graham's bound for list scheduling.
        prop_assert!(makespan <= total / n + (1.0 - 1.0 / n) * path + slack);
        prop_assert_eq!(&plan, &crate::goal::plan::plan(&config), "the same each time");
    }

    #[test]
    fn waves_are_a_partition_in_order(graph in graph()) {
        let config = config(&graph.text());
        let plan = plan(&config);
        let mut wave_of = vec![None; plan.ids.len()];
        for (index, wave) in plan.waves.iter().enumerate() {
            prop_assert!(wave.windows(2).all(|pair| plan.ids[pair[0]] < plan.ids[pair[1]]));
            for node in wave {
                prop_assert!(wave_of[*node].replace(index).is_none());
            }
        }
        for (i, node) in config.graph.nodes.iter().enumerate() {
            let before = node.depends_on.iter().map(|on| plan.ids.iter().position(|id| *id == on.text).unwrap());
            let wanted = before.map(|on| wave_of[on].unwrap() + 1).max().unwrap_or(0);
            prop_assert_eq!(wave_of[i], Some(wanted));
        }
        let widest = plan.waves.iter().map(Vec::len).max().unwrap_or(1);
        prop_assert!((1..=widest).contains(&plan.concurrency));
    }

    #[test]
    fn the_critical_path_is_a_path_and_none_is_dearer(graph in graph()) {
        let config = config(&graph.text());
        let plan = plan(&config);
        let cost: f64 = plan.critical_path.iter().fold(0.0, |sum, node| sum + config.graph.nodes[*node].weight);
        prop_assert_eq!(cost, plan.critical_path_cost);
        for pair in plan.critical_path.windows(2) {
            let on = &config.graph.nodes[pair[1]].depends_on;
            prop_assert!(on.iter().any(|on| on.text == plan.ids[pair[0]]));
        }
        // By brute force over the order in which the graph was made.
        let mut best = vec![0.0_f64; graph.nodes.len()];
        for (i, (weight, on)) in graph.nodes.iter().enumerate() {
            best[i] = weight + on.iter().map(|on| best[*on]).fold(0.0, f64::max);
        }
        prop_assert_eq!(best.into_iter().fold(0.0, f64::max), cost);
    }
}

fn chain(n: usize) -> String {
    let mut text = "name: chain\ngraph:\n  nodes:\n".to_owned();
    for i in 0..n {
        let on = if i == 0 { String::new() } else { format!("n{}", i - 1) };
        writeln!(text, "    - {{id: n{i}, role: builder, instruction: x, depends_on: [{on}]}}").unwrap();
    }
    text
}

#[test]
fn a_long_chain_needs_little_stack() {
    let small = std::thread::Builder::new().stack_size(512 << 10);
    let thread = small.spawn(|| {
        let config = config(&chain(2_000));
        let plan = plan(&config);
        assert_eq!((plan.waves.len(), plan.critical_path.len()), (2_000, 2_000));
        assert_eq!((plan.concurrency, plan.predicted_speedup, plan.speedup_ceiling), (1, 1.0, Some(1.0)));
        // And one that closes: the whole chain is the cycle.
        let closed = chain(2_000).replacen("depends_on: []", "depends_on: [n1999]", 1);
        assert!(read(closed.as_bytes()).unwrap_err().to_string().contains("n0 → n1999 → n1998"));
    });
    thread.unwrap().join().unwrap();
}

/// Ten times the nodes take about ten times as long, not a hundred times.
#[test]
fn a_dense_graph_of_a_thousand_nodes_plans() {
    let mut text =
        "name: dense\ngraph:\n  concurrency: {mode: fixed, max_parallel: 16}\n  nodes:\n".to_owned();
    for i in 0..1_000_usize {
        let on: Vec<_> = (i.saturating_sub(i % 50)..i).rev().take(20).map(|on| format!("n{on}")).collect();
        let weight = 1 + i % 7;
        writeln!(
            text,
            "    - {{id: n{i}, role: builder, instruction: x, weight: {weight}, depends_on: [{}]}}",
            on.join(", ")
        )
        .unwrap();
    }
    let config = config(&text);
    let plan = plan(&config);
    is_valid(&config, &plan);
    assert_eq!(plan.waves.iter().map(Vec::len).sum::<usize>(), 1_000);
    assert_eq!(plan.concurrency, 16);
    // The answer stays within its bound, and says what it left out.
    let answer = crate::goal::answer::plan(&plan, &[]).finish(Vec::new());
    assert!(answer.chars().count() <= crate::reply::WIDE.answer, "{}", answer.len());
    let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
    let lanes = answer["schedule"]["lanes"].as_array().unwrap();
    let shown: usize = lanes.iter().map(|lane| lane.as_array().unwrap().len()).sum();
    assert_eq!(lanes.len(), 16);
    assert_eq!(answer["schedule"]["more"], 1_000 - shown);
    assert_eq!(answer["waves"].as_array().unwrap().len(), plan.waves.len());
}
