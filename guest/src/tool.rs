//! What each tool decides. The catalogue says all else about it.

pub mod archive;
pub mod batch;
pub mod documents;
pub mod goals;
pub mod init;
pub mod inspect;
pub mod lessons;
pub mod loops;
pub mod now;
pub mod retention;
pub mod runs;
pub mod tasks;
pub mod timeline;

use crate::arguments::word_argument;
use crate::counter::{LoopCounter, TaskCounter};
use crate::phase::{Ending, Pointer, Rung, RungStatus};
use crate::status::{Mode, Status};

word_argument!(Mode, Status, Pointer, Rung, RungStatus, Ending, LoopCounter, TaskCounter);
