//! A loop, or a list of loops, drawn for people from its stored records.
//!
//! Everything here is a pure function: records come in, a page goes out as text, and
//! equal records give equal bytes. It knows no SQL, no files and no rules: what a
//! status means is the logic's, and [`Tone`] says only how a word looks.
//!
//! | module | does |
//! |---|---|
//! | `records` | what is drawn, and how much of it |
//! | `figures` | sums and durations |
//! | `waves` | the order that the dependencies give |
//! | `tone` | how a status looks |
//! | `html` | the page around all parts, and how text gets into it |
//! | `loop_page`, `board`, `graph`, `timeline`, `timings`, `history` | the parts of a loop's page |
//! | `overview` | the page of a list of loops |

mod axis;
mod board;
mod figures;
mod graph;
mod history;
mod html;
mod layers;
mod loop_page;
mod overview;
mod records;
#[cfg(test)]
pub(crate) mod samples;
#[cfg(test)]
mod tests;
mod timeline;
mod timings;
mod tone;
mod waves;

pub(crate) use axis::Axis;
pub use figures::{Agents, Times, by_agent, by_phase, by_task, duration, moment, whole};
pub use loop_page::loop_page;
pub use overview::overview_page;
pub use records::{BOUNDS_OF_REPORT, BOUNDS_OF_WATCH, HistoryBounds, LoopRecords, Overview, OverviewRow};
pub use tone::{Tone, tone};
pub use waves::{Waves, waves};
