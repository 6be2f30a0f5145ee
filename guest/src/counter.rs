//! The counters of loops and tasks, their caps, and where each is stored.

use crate::model::{Loop, Task};
use crate::status::words;

words! {
    /// A counter of the loop.
    LoopCounter {
        TotalFailedGates = "total_failed_gates",
        SplitsDone = "splits_done",
        QaRounds = "qa_rounds",
    }
}

words! {
    /// A counter of a task.
    TaskCounter {
        Retries = "retries",
        SecurityRounds = "security_rounds",
        ReviewRounds = "review_rounds",
    }
}

impl LoopCounter {
    /// The highest value that is still in order; `None` for one without a cap.
    pub const fn cap(self) -> Option<u32> {
        match self {
            LoopCounter::QaRounds => Some(2),
            LoopCounter::TotalFailedGates | LoopCounter::SplitsDone => None,
        }
    }

    /// The place of the counter in the loop's row.
    pub fn of(self, l: &mut Loop) -> &mut u32 {
        match self {
            LoopCounter::TotalFailedGates => &mut l.total_failed_gates,
            LoopCounter::SplitsDone => &mut l.splits_done,
            LoopCounter::QaRounds => &mut l.qa_rounds,
        }
    }
}

impl TaskCounter {
    /// The highest value that is still in order.
    pub const fn cap(self) -> u32 {
        match self {
            TaskCounter::Retries | TaskCounter::SecurityRounds | TaskCounter::ReviewRounds => 2,
        }
    }

    /// The place of the counter in the task's row.
    pub fn of(self, task: &mut Task) -> &mut u32 {
        match self {
            TaskCounter::Retries => &mut task.retries,
            TaskCounter::SecurityRounds => &mut task.security_rounds,
            TaskCounter::ReviewRounds => &mut task.review_rounds,
        }
    }
}

/// Adds `by` to a counter, which stays between 0 and what it can hold.
pub fn bump(value: u32, by: i64) -> u32 {
    // The clamp makes the cast lossless.
    i64::from(value).saturating_add(by).clamp(0, i64::from(u32::MAX)) as u32
}
