//! What a gate rests on, read by the server itself: files, and how programs end.
//!
//! Facts only. Which of them are needed, and what they prove, is the logic's to say.

mod file;
mod script;

pub use file::{BYTES_MAX, file};
pub use script::{ALLOW_FLAG, ALLOW_VARIABLE, Scripts};
