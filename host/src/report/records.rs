//! What is drawn.

use crate::contract::model::{Event, LedgerEntry, LoopState, LoopSummary, Memory, StatusCount, Step, Task};
use crate::store::{Bounds, Newest};

/// A loop with as much of its history as is shown, all of one moment.
#[derive(Clone, Debug)]
pub struct LoopRecords {
    /// When it was read.
    pub at: i64,
    /// The program's version.
    pub version: String,
    /// What people call the project.
    pub project: String,
    /// The lists of words that the logic's tools take as a status, each in the logic's
    /// order.
    pub orders: Vec<Vec<String>>,
    /// The loop with its phases and tasks.
    pub state: LoopState,
    /// Its steps.
    pub steps: Newest<Step>,
    /// Its timeline.
    pub events: Newest<Event>,
    /// Its lessons.
    pub lessons: Newest<Memory>,
    /// The ledger of its goals.
    pub ledger: Newest<LedgerEntry>,
}

impl LoopRecords {
    /// The statuses of the tasks with the tasks of each, in the logic's order where it
    /// tells one that has them all, else in the order of the plan.
    pub fn board(&self) -> Vec<(&str, Vec<&Task>)> {
        let mut lanes: Vec<(&str, Vec<_>)> = Vec::new();
        for task in &self.state.tasks {
            match lanes.iter_mut().find(|(status, _)| *status == task.status) {
                Some((_, tasks)) => tasks.push(task),
                None => lanes.push((&task.status, vec![task])),
            }
        }
        sort(&mut lanes, &self.orders);
        lanes
    }

    /// What is said to be worked on: the task, where it is one.
    pub fn in_hand(&self) -> Option<&str> {
        self.state.loop_.now.as_ref().and_then(|now| now.task.as_deref())
    }
}

/// Sorts by status, in the first order that has them all; else leaves it as it is.
fn sort<T>(lanes: &mut [(&str, T)], orders: &[Vec<String>]) {
    let knows = |order: &&Vec<String>| lanes.iter().all(|(status, _)| order.iter().any(|w| w == status));
    if let Some(order) = orders.iter().find(knows) {
        lanes.sort_by_key(|(status, _)| order.iter().position(|word| word == status));
    }
}

/// How much of each list of a loop's history is read.
#[derive(Clone, Copy, Debug)]
pub struct HistoryBounds {
    /// Of the steps.
    pub steps: Bounds,
    /// Of the timeline.
    pub events: Bounds,
    /// Of the lessons.
    pub lessons: Bounds,
    /// Of the ledger.
    pub ledger: Bounds,
}

const MIB: usize = 1 << 20;

/// What a report reads: enough for the figures by agent of long loops.
pub const BOUNDS_OF_REPORT: HistoryBounds = HistoryBounds {
    steps: Bounds { rows: 20_000, bytes: 4 * MIB },
    events: Bounds { rows: 500, bytes: 2 * MIB },
    lessons: Bounds { rows: 200, bytes: 2 * MIB },
    ledger: Bounds { rows: 50, bytes: MIB },
};

/// What a live view reads with each change.
pub const BOUNDS_OF_WATCH: HistoryBounds = HistoryBounds {
    steps: Bounds { rows: 500, bytes: MIB },
    events: Bounds { rows: 200, bytes: MIB / 2 },
    lessons: Bounds { rows: 100, bytes: MIB / 2 },
    ledger: Bounds { rows: 30, bytes: MIB / 4 },
};

/// The loops of a project.
#[derive(Clone, Debug)]
pub struct Overview {
    /// When it was read.
    pub at: i64,
    /// The program's version.
    pub version: String,
    /// What people call the project.
    pub project: String,
    /// The root that was asked from.
    pub root: String,
    /// See [`LoopRecords::orders`].
    pub orders: Vec<Vec<String>>,
    /// Newest-touched first.
    pub loops: Vec<OverviewRow>,
    /// How many there are, these included.
    pub all: u64,
}

impl Overview {
    /// Statuses and counts as on a loop's board.
    pub fn in_order<'a>(&self, counts: &'a [StatusCount]) -> Vec<(&'a str, u64)> {
        let mut counts: Vec<_> =
            counts.iter().map(|count| (count.status.as_str(), u64::from(count.count))).collect();
        sort(&mut counts, &self.orders);
        counts
    }
}

/// One loop of a list.
#[derive(Clone, Debug)]
pub struct OverviewRow {
    /// The loop in short.
    pub summary: LoopSummary,
    /// It has ended.
    pub finished: bool,
}
