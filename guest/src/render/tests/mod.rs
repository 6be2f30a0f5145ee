//! The views as wholes: goldens of what they look like, and properties of what
//! parsers find in them whatever the state holds.

mod fixtures;
mod golden;
mod properties;
mod reading;

pub(super) use fixtures::hostile;
use fixtures::{event, fresh, lessons, many_tasks, rich};
