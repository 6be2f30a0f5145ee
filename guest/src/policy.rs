//! What the end of a loop and its latch mean to a tool. The catalogue gives each
//! tool its policy, the desk holds calls to it.

/// Whether a tool works on a loop that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterEnd {
    Allowed,
    Refused,
}

/// What the refusal latch of a loop does to a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LatchReach {
    /// Nothing.
    Free,
    /// Refuses it, except on the named task and on tasks in flight.
    ByTask,
    /// Refuses it.
    Whole,
    /// Refuses it when it would end the loop as done.
    WhenDone,
}

/// What holds for the calls of one tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The tool's name.
    pub op: &'static str,
    pub after_end: AfterEnd,
    pub latch: LatchReach,
}
