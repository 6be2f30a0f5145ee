//! A flag that asks a running call to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Shared between whoever may lose interest in a call and whoever runs it.
///
/// Raising it is final. A running component notices within a few milliseconds;
/// a transaction that has not committed is rolled back.
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks the call to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Returns whether the call was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
