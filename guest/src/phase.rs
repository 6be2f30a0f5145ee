//! The phases of a loop: the pointer, the ladder, and the statuses of a rung.

use crate::status::words;

words! {
    /// Where the loop as a whole stands; set by `loop_setPhase`.
    Pointer {
        Preflight = "preflight",
        Clarify = "clarify",
        Discovery = "discovery",
        Legal = "legal",
        Plan = "plan",
        Gate = "gate",
        Build = "build",
        Qa = "qa",
        FindingsGate = "findings-gate",
        Memory = "memory",
        FeatureGate = "feature-gate",
        Done = "done",
        Blocked = "blocked",
    }
}

words! {
    /// A rung of the ladder that every loop carries; set by
    /// `loop_setPhaseStatus`, shown in this order.
    Rung {
        Clarify = "clarify",
        Discovery = "discovery",
        Legal = "legal",
        Plan = "plan",
        Build = "build",
        Qa = "qa",
        FindingsGate = "findings-gate",
        Memory = "memory",
        AgentsSync = "agents-sync",
        FeatureMerge = "feature-merge",
    }
}

words! {
    /// Where a rung stands.
    RungStatus {
        Pending = "pending",
        InProgress = "in-progress",
        Done = "done",
        Skipped = "skipped",
        Failed = "failed",
        Blocked = "blocked",
        NotNeeded = "not-needed",
        LeftOpen = "left-open",
    }
}

words! {
    /// Where a loop stands.
    LoopStatus {
        Active = "active",
        Done = "done",
        Aborted = "aborted",
    }
}

words! {
    /// How a loop can end; set by `loop_finish`.
    Ending {
        Done = "done",
        Aborted = "aborted",
    }
}

impl Ending {
    /// The loop status that the ending sets.
    pub fn status(self) -> LoopStatus {
        match self {
            Ending::Done => LoopStatus::Done,
            Ending::Aborted => LoopStatus::Aborted,
        }
    }

    /// The phase pointer that the ending sets.
    pub fn phase(self) -> Pointer {
        match self {
            Ending::Done => Pointer::Done,
            Ending::Aborted => Pointer::Blocked,
        }
    }
}
