//! A schedule of a graph on a number of workers, as they would work it off.
//!
//! List scheduling by critical path: whenever a worker is free it takes, of the
//! nodes that wait for nothing any more, the one with the most work behind it.
//! Whatever the graph, that ends within twice the best possible time.

use super::plan::Edges;
use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeSet, BinaryHeap};

/// Who does what, and when.
#[derive(Clone, Debug, PartialEq)]
pub struct Schedule {
    /// When the last node ends.
    pub makespan: f64,
    /// How much faster than one worker.
    pub speedup: f64,
    /// One for each worker, in order of time.
    pub lanes: Vec<Vec<Slot>>,
}

/// A node on a worker.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slot {
    /// Its index in the graph.
    pub node: usize,
    pub start: f64,
    pub end: f64,
}

/// A time or an amount of work that can be compared.
#[derive(Clone, Copy, PartialEq)]
struct Amount(f64);

impl Eq for Amount {}

impl PartialOrd for Amount {
    fn partial_cmp(&self, other: &Amount) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Amount {
    fn cmp(&self, other: &Amount) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

/// Distributes the nodes over the workers. The same graph gives the same schedule:
/// of equal nodes the first by name, of free workers the first one.
pub fn schedule(edges: &Edges, weights: &[f64], workers: usize) -> Schedule {
    // What a node and the dearest way behind it cost.
    let mut behind = vec![0.0_f64; weights.len()];
    for &node in edges.order.iter().rev() {
        let rest = edges.after[node].iter().map(|next| behind[*next]).fold(0.0, f64::max);
        behind[node] = weights[node] + rest;
    }
    let mut open: Vec<usize> = edges.before.iter().map(Vec::len).collect();
    let key = |node: usize| (Amount(behind[node]), Reverse(edges.rank[node]), node);
    let mut ready: BinaryHeap<_> = (0..weights.len()).filter(|node| open[*node] == 0).map(key).collect();
    let mut idle: BTreeSet<usize> = (0..workers).collect();
    let mut running: BinaryHeap<Reverse<(Amount, usize, usize)>> = BinaryHeap::new();
    let mut lanes: Vec<Vec<Slot>> = vec![Vec::new(); workers];
    let mut now = 0.0;
    let mut makespan = 0.0;
    loop {
        while let (false, Some(&worker)) = (ready.is_empty(), idle.first()) {
            let Some((_, _, node)) = ready.pop() else { break };
            idle.remove(&worker);
            let end = now + weights[node];
            lanes[worker].push(Slot { node, start: now, end });
            running.push(Reverse((Amount(end), worker, node)));
        }
        let Some(Reverse((Amount(end), ..))) = running.peek().copied() else { break };
        now = end;
        makespan = end;
        // All that ends now, so that what they free is weighed together.
        while let Some(&Reverse((Amount(end), worker, node))) = running.peek()
            && end <= now
        {
            running.pop();
            idle.insert(worker);
            for &next in &edges.after[node] {
                open[next] -= 1;
                if open[next] == 0 {
                    ready.push(key(next));
                }
            }
        }
    }
    let total = weights.iter().fold(0.0, |sum, weight| sum + weight);
    let speedup = if makespan > 0.0 { total / makespan } else { 1.0 };
    Schedule { makespan, speedup, lanes }
}
