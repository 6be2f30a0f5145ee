//! `events.jsonl`: the timeline, one JSON object a line.

use super::text::is_hidden;
use super::time::timestamp;
use crate::model::Event;
use serde::Serialize;
use serde_json::ser::{CompactFormatter, Formatter, Serializer};
use std::io::{self, Write};

/// The keys of a line, in their fixed order.
#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    at: String,
    event: &'a str,
    phase: Option<&'a str>,
    task: Option<&'a str>,
    from: Option<&'a str>,
    to: Option<&'a str>,
    agent: Option<&'a str>,
    note: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    evidence: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pr: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<&'a str>,
}

/// Returns the lines of the log for these events, each with its final newline.
pub fn log_lines(events: &[Event]) -> String {
    let mut out = String::with_capacity(events.len() * 192);
    for event in events {
        push_log_line(&mut out, event);
    }
    out
}

/// Appends one event's line with its final newline.
///
/// Nothing inside a line can end it, whichever characters a reader splits at,
/// nor act on the terminal it is printed to: such characters are escaped.
pub fn push_log_line(out: &mut String, event: &Event) {
    let line = Line {
        seq: event.seq,
        at: timestamp(event.at),
        event: &event.event,
        phase: event.phase.as_deref(),
        task: event.task.as_deref(),
        from: event.from.as_deref(),
        to: event.to.as_deref(),
        agent: event.agent.as_deref(),
        note: event.note.as_deref(),
        evidence: event.evidence.as_deref(),
        issue: event.issue.as_deref(),
        pr: event.pr.as_deref(),
        branch: event.branch.as_deref(),
    };
    let mut json = Vec::with_capacity(256);
    line.serialize(&mut Serializer::with_formatter(&mut json, Visible))
        .expect("numbers and strings always serialize, and a vector takes every write");
    out.push_str(std::str::from_utf8(&json).expect("serde_json writes whole strings, so UTF-8"));
    out.push('\n');
}

/// Compact JSON with escapes for the hidden characters that JSON itself allows.
struct Visible;

impl Formatter for Visible {
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut plain = 0;
        for (at, c) in fragment.char_indices().filter(|(_, c)| is_hidden(*c)) {
            writer.write_all(&fragment.as_bytes()[plain..at])?;
            for unit in c.encode_utf16(&mut [0; 2]) {
                write!(writer, "\\u{unit:04x}")?;
            }
            plain = at + c.len_utf8();
        }
        CompactFormatter.write_string_fragment(writer, &fragment[plain..])
    }
}
