//! The plan of a graph: waves, critical path, and how many workers pay.
//!
//! Amdahl's law over the weights gives the figures; [`super::schedule`] then tells
//! what the workers really reach. Walks keep their own lists, so a chain of any
//! length is safe, and every step is linear in nodes and edges but for sorting.

use super::config::{Concurrency, Config};
use super::schedule::{Schedule, schedule};

/// The plan of a configuration's graph. Nodes are indices into the graph's nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan<'a> {
    /// The names of the nodes.
    pub ids: Vec<&'a str>,
    /// Nodes that can run together, each wave sorted by name.
    pub waves: Vec<Vec<usize>>,
    pub critical_path: Vec<usize>,
    pub critical_path_cost: f64,
    pub total_cost: f64,
    pub parallel_fraction: f64,
    pub concurrency: usize,
    pub predicted_speedup: f64,
    /// `None` when more workers would always help.
    pub speedup_ceiling: Option<f64>,
    pub schedule: Schedule,
}

/// The edges of a graph both ways; an edge that is written twice is one.
pub struct Edges {
    /// What each node waits for, in the order it is written.
    pub before: Vec<Vec<usize>>,
    /// What waits for each node.
    pub after: Vec<Vec<usize>>,
    /// The nodes, each after all that it waits for.
    pub order: Vec<usize>,
    /// The place of each node in the order of names.
    pub rank: Vec<usize>,
    /// Where `order` is cut into waves.
    waves: Vec<Vec<usize>>,
}

impl Edges {
    /// Reads the edges of a graph that has no cycle.
    fn new(config: &Config) -> Edges {
        let nodes = &config.graph.nodes;
        let mut before: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
        let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
        let mut last: Vec<Option<usize>> = vec![None; nodes.len()];
        for (i, written) in config.graph.before.iter().enumerate() {
            let mut own = Vec::with_capacity(written.len());
            for &on in written {
                // Whom this node met last: itself when the edge is here already.
                if last[on].replace(i) != Some(i) {
                    own.push(on);
                    after[on].push(i);
                }
            }
            before.push(own);
        }
        let mut by_name: Vec<usize> = (0..nodes.len()).collect();
        by_name.sort_unstable_by(|a, b| nodes[*a].id.text.cmp(&nodes[*b].id.text));
        let mut rank = vec![0; nodes.len()];
        by_name.iter().enumerate().for_each(|(at, node)| rank[*node] = at);
        let mut open: Vec<usize> = before.iter().map(Vec::len).collect();
        let mut waves = Vec::new();
        let mut wave: Vec<usize> = (0..nodes.len()).filter(|i| open[*i] == 0).collect();
        let mut order = Vec::with_capacity(nodes.len());
        while !wave.is_empty() {
            wave.sort_unstable_by_key(|node| rank[*node]);
            let mut next = Vec::new();
            for &node in &wave {
                order.push(node);
                for &waiting in &after[node] {
                    open[waiting] -= 1;
                    if open[waiting] == 0 {
                        next.push(waiting);
                    }
                }
            }
            waves.push(std::mem::replace(&mut wave, next));
        }
        Edges { before, after, order, rank, waves }
    }
}

/// Plans the graph of a configuration.
pub fn plan(config: &Config) -> Plan<'_> {
    let nodes = &config.graph.nodes;
    let weights: Vec<f64> = nodes.iter().map(|node| node.weight).collect();
    let ids: Vec<&str> = nodes.iter().map(|node| node.id.text.as_str()).collect();
    let edges = Edges::new(config);
    // Not `sum`, which begins at -0.
    let total_cost = weights.iter().fold(0.0, |sum, weight| sum + weight);
    let (critical_path, critical_path_cost) = critical_path(&edges, &weights);
    let parallel_fraction = if total_cost == 0.0 {
        0.0
    } else {
        ((total_cost - critical_path_cost) / total_cost).clamp(0.0, 1.0)
    };
    let speedup = |n: usize| 1.0 / ((1.0 - parallel_fraction) + parallel_fraction / n as f64);
    let widest = edges.waves.iter().map(Vec::len).max().unwrap_or(0);
    let at_most = |n: u32| widest.min(usize::try_from(n).unwrap_or(usize::MAX)).max(1);
    let concurrency = match config.graph.concurrency {
        Concurrency::Sequential => 1,
        Concurrency::Fixed { max_parallel } => at_most(max_parallel),
        Concurrency::Auto { cap, min_marginal_gain } => {
            let mut n = 1;
            while n < at_most(cap) && speedup(n + 1) - speedup(n) >= min_marginal_gain {
                n += 1;
            }
            n
        }
    };
    Plan {
        critical_path,
        critical_path_cost,
        total_cost,
        parallel_fraction,
        concurrency,
        predicted_speedup: speedup(concurrency),
        speedup_ceiling: (parallel_fraction < 1.0).then(|| 1.0 / (1.0 - parallel_fraction)),
        schedule: schedule(&edges, &weights, concurrency),
        waves: edges.waves,
        ids,
    }
}

/// The dearest way through the graph and its cost. Of dependencies that are equally
/// dear the first one that is written counts, of ends the last one by name.
fn critical_path(edges: &Edges, weights: &[f64]) -> (Vec<usize>, f64) {
    let mut best = vec![0.0_f64; weights.len()];
    let mut from: Vec<Option<usize>> = vec![None; weights.len()];
    let mut end: Option<usize> = None;
    for &node in &edges.order {
        for &on in &edges.before[node] {
            if from[node].is_none_or(|so_far| best[on] > best[so_far]) {
                from[node] = Some(on);
            }
        }
        best[node] = weights[node] + from[node].map_or(0.0, |on| best[on]);
        let dearer = |so_far: usize| {
            best[node] > best[so_far] || (best[node] == best[so_far] && edges.rank[node] > edges.rank[so_far])
        };
        if end.is_none_or(dearer) {
            end = Some(node);
        }
    }
    let cost = end.map_or(0.0, |end| best[end]);
    let mut path: Vec<usize> = std::iter::successors(end, |node| from[*node]).collect();
    path.reverse();
    (path, cost)
}
