//! A flag that asks a running call to stop, and the call's word that it takes long.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// Shared between whoever may lose interest in a call and whoever runs it.
///
/// Raising it is final. A running component notices within a few milliseconds;
/// a transaction that has not committed is rolled back.
#[derive(Clone, Default)]
pub struct Cancel(Arc<Shared>);

#[derive(Default)]
struct Shared {
    cancelled: AtomicBool,
    /// What to do when the call says that it takes long.
    aside: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl Cancel {
    /// Asks the call to stop.
    pub fn cancel(&self) {
        self.0.cancelled.store(true, Ordering::Release);
    }

    /// Returns whether the call was asked to stop.
    pub fn is_cancelled(&self) -> bool {
        self.0.cancelled.load(Ordering::Acquire)
    }

    /// Says what is to be done when the call takes long; only the first word counts.
    pub fn when_it_takes_long(&self, aside: impl Fn() + Send + Sync + 'static) {
        let _ = self.0.aside.set(Box::new(aside));
    }

    /// The call is about to wait for something outside, and holds nothing that others
    /// need: they may go on meanwhile.
    pub fn takes_long(&self) {
        if let Some(aside) = self.0.aside.get() {
            aside();
        }
    }
}

impl fmt::Debug for Cancel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Cancel").field(&self.is_cancelled()).finish()
    }
}
