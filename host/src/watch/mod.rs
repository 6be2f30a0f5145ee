//! A loop, or a list of loops, on a terminal: records in, cells out.
//!
//! Drawing is a pure function of the records, the view and the room, and a key press
//! is one of the view. The terminal itself, and when to read again, is the command
//! line's business.

mod body;
mod draw;
mod steps;
#[cfg(test)]
mod tests;
mod view;

pub use draw::{Look, draw};
pub use view::{Key, Outcome, Shown, Tab, View};
