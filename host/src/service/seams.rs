//! Where time and fresh ids come from, so that tests can fix both.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use uuid::Uuid;

/// The variable that names a file holding the time, for tests.
///
/// The file holds milliseconds since the Unix epoch as decimal digits and is read
/// at each call. With it, ids are counted up instead of drawn, so that the same
/// calls give the same bytes.
pub const TEST_CLOCK: &str = "LOOP_STATE_TEST_CLOCK";

/// The clock and the source of ids.
#[derive(Debug)]
pub enum Seams {
    /// The system's.
    System,
    /// A file's time and counted ids.
    Fixed {
        /// The file.
        clock: PathBuf,
        /// The ids given so far.
        ids: AtomicU64,
    },
}

/// The time cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum SeamError {
    /// The test clock's file.
    #[error("{TEST_CLOCK} names {path}, which holds no time in milliseconds; unset it, it is for tests")]
    TestClock {
        /// The file.
        path: PathBuf,
    },
    /// The system's clock.
    #[error("the system clock stands before 1970; set it and call again")]
    System,
}

impl Seams {
    /// The system's, unless the environment names a test clock.
    pub fn of_process() -> Seams {
        match std::env::var_os(TEST_CLOCK) {
            Some(clock) => Seams::Fixed { clock: clock.into(), ids: AtomicU64::new(0) },
            None => Seams::System,
        }
    }

    /// Milliseconds since the Unix epoch.
    pub(super) fn now(&self) -> Result<i64, SeamError> {
        match self {
            Seams::System => {
                let since = SystemTime::now().duration_since(UNIX_EPOCH).map_err(|_| SeamError::System)?;
                i64::try_from(since.as_millis()).map_err(|_| SeamError::System)
            }
            Seams::Fixed { clock, .. } => std::fs::read_to_string(clock)
                .ok()
                .and_then(|text| text.trim().parse().ok())
                .ok_or_else(|| SeamError::TestClock { path: clock.clone() }),
        }
    }

    /// An id that no one has used.
    pub(super) fn fresh_id(&self, at: i64) -> String {
        let id = match self {
            Seams::System => Uuid::new_v4(),
            Seams::Fixed { ids, .. } => {
                let n = ids.fetch_add(1, Ordering::Relaxed);
                let mut bytes = [0; 16];
                bytes[..8].copy_from_slice(&at.to_be_bytes());
                bytes[8..].copy_from_slice(&n.to_be_bytes());
                uuid::Builder::from_random_bytes(bytes).into_uuid()
            }
        };
        id.to_string()
    }
}
