//! What one call may use, and the guard that holds it to that.

use std::time::{Duration, Instant};

use thiserror::Error;
use wasmtime::{ResourceLimiter, UpdateDeadline};

use super::engine_config::DEFAULT_STACK_BYTES;
use crate::cancel::Cancel;

/// What a logic may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that all memories and tables of one session may take together.
    /// 256 MiB: a thousand times what a loop of a hundred tasks needs.
    pub memory_bytes: usize,
    /// How long one invocation may run. 10 s: a real one takes milliseconds, and
    /// an agent still gets its answer before its client gives up.
    pub call_time: Duration,
    /// Bytes of stack that calls inside the component may take. 512 KiB: a
    /// quarter of what a thread has by default.
    pub stack_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { memory_bytes: 256 << 20, call_time: Duration::from_secs(10), stack_bytes: DEFAULT_STACK_BYTES }
    }
}

/// Why the guard ended a call.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(super) enum Stop {
    #[error("the call was cancelled")]
    Cancelled,
    #[error("the call took longer than {0:?}")]
    TimedOut(Duration),
    #[error("the call needed more memory than {0} bytes")]
    OutOfMemory(usize),
}

/// Holds one session to its limits.
pub(super) struct Guard {
    limits: Limits,
    cancel: Cancel,
    started: Instant,
    used_bytes: usize,
}

impl Guard {
    pub fn new(limits: Limits) -> Self {
        Self { limits, cancel: Cancel::default(), started: Instant::now(), used_bytes: 0 }
    }

    /// Listens to this wish to stop from here on.
    pub fn watch(&mut self, cancel: &Cancel) {
        self.cancel = cancel.clone();
    }

    /// Starts the clock of one invocation.
    pub fn start(&mut self) -> Result<(), Stop> {
        self.started = Instant::now();
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled);
        }
        Ok(())
    }

    /// Asked at every tick whether the invocation may go on.
    pub fn tick(&self) -> wasmtime::Result<UpdateDeadline> {
        if self.cancel.is_cancelled() {
            return Err(Stop::Cancelled.into());
        }
        if self.started.elapsed() >= self.limits.call_time {
            return Err(Stop::TimedOut(self.limits.call_time).into());
        }
        Ok(UpdateDeadline::Continue(1))
    }

    /// Takes the growth into the account or ends the call.
    ///
    /// A refusal that the component could see would become its panic, and the
    /// reason would be lost.
    fn grow(&mut self, from: usize, to: usize) -> wasmtime::Result<bool> {
        let used = self.used_bytes.saturating_add(to.saturating_sub(from));
        if used > self.limits.memory_bytes {
            return Err(Stop::OutOfMemory(self.limits.memory_bytes).into());
        }
        self.used_bytes = used;
        Ok(true)
    }
}

impl ResourceLimiter for Guard {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        // Beyond what the component itself declares the growth fails anyway.
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        self.grow(current, desired)
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> wasmtime::Result<bool> {
        if maximum.is_some_and(|maximum| desired > maximum) {
            return Ok(false);
        }
        let entry = size_of::<usize>();
        self.grow(current.saturating_mul(entry), desired.saturating_mul(entry))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memories_and_tables_share_one_account() {
        let limits = Limits { memory_bytes: 1000, ..Limits::default() };
        let mut guard = Guard::new(limits);
        assert!(guard.memory_growing(0, 600, None).unwrap());
        assert!(guard.table_growing(0, 50, None).unwrap());
        // Refused by the component's own maximum, and not charged.
        assert!(!guard.memory_growing(600, 800, Some(700)).unwrap());
        let stop = guard.memory_growing(600, 601, None).unwrap_err();
        assert_eq!(stop.downcast_ref(), Some(&Stop::OutOfMemory(1000)));
    }

    #[test]
    fn a_cancelled_call_does_not_start() {
        let cancel = Cancel::default();
        let mut guard = Guard::new(Limits::default());
        guard.watch(&cancel);
        assert_eq!(guard.start(), Ok(()));
        cancel.cancel();
        assert_eq!(guard.start(), Err(Stop::Cancelled));
        let stop = guard.tick().err().expect("a raised flag stops the call");
        assert_eq!(stop.downcast_ref(), Some(&Stop::Cancelled));
    }
}
