//! Task statuses and the one table of their transitions.
//!
//! Guard, hints, audit and recovery all read this table; nothing else in the
//! crate knows which move is legal.

use std::collections::VecDeque;

/// Declares a closed set of words with their spelling, in one place.
macro_rules! words {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum $name {
            $(#[doc = concat!("`", $word, "`")] $(#[$variant_meta])* $variant),+
        }

        // Not every set needs all of these.
        #[allow(dead_code)]
        impl $name {
            /// Every value, in the order that tables and views show them.
            pub const ALL: &'static [$name] = &[$($name::$variant),+];

            /// The words of [`Self::ALL`].
            pub const WORDS: &'static [&'static str] = &[$($word),+];

            /// Returns the word as it is stored and shown.
            pub const fn word(self) -> &'static str {
                match self { $($name::$variant => $word),+ }
            }

            /// Reads a stored word; `None` for one that is not of this set.
            pub fn parse(word: &str) -> Option<$name> {
                match word { $($word => Some($name::$variant),)+ _ => None }
            }
        }
    };
}
pub(crate) use words;

words! {
    /// Where a task stands.
    Status {
        Pending = "pending",
        IssueOpen = "issue-open",
        InProgress = "in-progress",
        Verified = "verified",
        Secure = "secure",
        PrOpen = "pr-open",
        InReview = "in-review",
        ChangesRequested = "changes-requested",
        Merged = "merged",
        Failed = "failed",
        Blocked = "blocked",
        Complete = "complete",
        Skipped = "skipped",
        Superseded = "superseded",
    }
}

words! {
    /// How much of the pull-request lifecycle a loop asks for.
    Mode {
        Standard = "standard",
        Simple = "simple",
        Poc = "poc",
    }
}

use Status::*;

/// The moves of every mode, in table order.
const STRICT: &[(Status, &[Status])] = &[
    (Pending, &[IssueOpen, InProgress, Blocked, Skipped]),
    (IssueOpen, &[InProgress, Failed, Blocked, Skipped]),
    (InProgress, &[Verified, Failed, Blocked, Skipped]),
    (Verified, &[Secure, InProgress, Failed, Blocked, Skipped]),
    (Secure, &[PrOpen, InProgress, Failed, Blocked, Skipped]),
    (PrOpen, &[InReview, ChangesRequested, Failed, Blocked, Skipped]),
    (InReview, &[Merged, ChangesRequested, Failed, Blocked, Skipped]),
    (ChangesRequested, &[InProgress, Failed, Blocked, Skipped]),
    (Merged, &[Complete]),
    (Failed, &[IssueOpen, InProgress, Blocked, Skipped]),
    (Blocked, &[Pending, IssueOpen, InProgress, Failed, Skipped]),
    (Skipped, &[Pending]),
    (Complete, &[]),
    (Superseded, &[]),
];

/// What a mode adds to the strict table.
const ADDED: &[(Mode, Status, &[Status])] = &[(Mode::Poc, Secure, &[Complete])];

/// Statuses that one tool alone may set.
pub const ONLY_THROUGH: &[(Status, &str)] = &[(Complete, "task_complete"), (Superseded, "tasks_split")];

/// Statuses that have to be proved.
pub const NEEDS_EVIDENCE: &[Status] = &[Verified, Secure];

/// The status that may be recorded on the way to [`AUTO_TARGET`].
pub const AUTO_INSERT: Status = InProgress;

/// The one status that [`AUTO_INSERT`] is inserted for.
pub const AUTO_TARGET: Status = Verified;

/// Statuses of a task that was started and not brought to an end. The same set
/// is the working destinations of the in-flight guard.
pub const IN_FLIGHT: &[Status] =
    &[IssueOpen, InProgress, Verified, Secure, PrOpen, InReview, ChangesRequested, Merged];

impl Status {
    /// Whether a task of this status is started and unfinished.
    pub fn in_flight(self) -> bool {
        IN_FLIGHT.contains(&self)
    }

    /// Whether nothing is left to do: complete, skipped or superseded.
    pub fn closed(self) -> bool {
        matches!(self, Complete | Skipped | Superseded)
    }

    /// Whether the status can never change again.
    pub fn terminal(self) -> bool {
        matches!(self, Complete | Superseded)
    }

    /// Whether a status change to it has to bring evidence.
    pub fn needs_evidence(self) -> bool {
        NEEDS_EVIDENCE.contains(&self)
    }

    /// The tool that alone may set this status, if there is one.
    pub fn only_through(self) -> Option<&'static str> {
        ONLY_THROUGH.iter().find(|(s, _)| *s == self).map(|(_, tool)| *tool)
    }
}

/// Returns the statuses that `from` may go to, in table order.
pub fn targets(mode: Mode, from: Status) -> impl Iterator<Item = Status> {
    let strict = STRICT.iter().find(|(s, _)| *s == from).map_or(&[][..], |(_, to)| to);
    let added = ADDED.iter().find(|(m, s, _)| *m == mode && *s == from).map_or(&[][..], |(_, _, to)| to);
    strict.iter().chain(added).copied()
}

/// Returns whether the table has the move.
pub fn is_legal(mode: Mode, from: Status, to: Status) -> bool {
    targets(mode, from).any(|s| s == to)
}

/// Returns the shortest legal way, both ends included; breadth-first in table
/// order, so that the answer is always the same one. `None` when there is none.
pub fn shortest_path(mode: Mode, from: Status, to: Status) -> Option<Vec<Status>> {
    let mut came_from: Vec<(Status, Option<usize>)> = vec![(from, None)];
    let mut queue = VecDeque::from([0]);
    while let Some(here) = queue.pop_front() {
        if came_from[here].0 == to {
            let mut path = Vec::new();
            let mut at = Some(here);
            while let Some(i) = at {
                path.push(came_from[i].0);
                at = came_from[i].1;
            }
            path.reverse();
            return Some(path);
        }
        for next in targets(mode, came_from[here].0) {
            if !came_from.iter().any(|(s, _)| *s == next) {
                came_from.push((next, Some(here)));
                queue.push_back(came_from.len() - 1);
            }
        }
    }
    None
}

/// Why a task may not go where it was sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum IllegalMove {
    /// The status belongs to this tool.
    OnlyThrough(&'static str),
    /// The table has no such move; the shortest legal way, if there is one.
    NoSuchMove(Option<Vec<Status>>),
}

/// Decides whether `task_setStatus` may take a task from `from` to `to`.
///
/// Returns the statuses to record, the last one being `to`: none when the task
/// is there already, two when [`AUTO_INSERT`] is recorded on the way.
pub fn check_move(mode: Mode, from: Status, to: Status) -> Result<Vec<Status>, IllegalMove> {
    if from == to {
        return Ok(Vec::new());
    }
    if let Some(tool) = to.only_through() {
        return Err(IllegalMove::OnlyThrough(tool));
    }
    if is_legal(mode, from, to) {
        return Ok(vec![to]);
    }
    if to == AUTO_TARGET && is_legal(mode, from, AUTO_INSERT) && is_legal(mode, AUTO_INSERT, to) {
        return Ok(vec![AUTO_INSERT, to]);
    }
    Err(IllegalMove::NoSuchMove(shortest_path(mode, from, to)))
}

/// Returns the statuses from which `task_complete` may complete a task.
pub fn completable_from(mode: Mode) -> impl Iterator<Item = Status> {
    Status::ALL.iter().copied().filter(move |s| is_legal(mode, *s, Complete))
}
