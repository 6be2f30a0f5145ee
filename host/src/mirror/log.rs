//! The log view: grows at its end, written anew only when its end does not fit.
//!
//! Whether it fits is told from its length and the number in its last line, so
//! that an append costs the same whatever the log's length. A log whose lines do
//! not begin with their number is never taken to fit: it stays correct, but is
//! written anew each time.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::error::MirrorError;
use super::folder::{Existing, LockedFolder};
use super::replacement::append;
use super::{Source, views};

/// How a line of the log begins, up to its event's number.
const LINE_START: &[u8] = b"{\"seq\":";

/// How much of a log's end is looked at first; most last lines lie within.
const TAIL_BYTES_FIRST: u64 = 4 << 10;

/// The longest line that is looked for at a log's end.
const TAIL_BYTES_MAX: u64 = 16 << 20;

/// How much may be missing at a log's end before it is written anew instead, so
/// that what is held in memory has a bound.
const CATCH_UP_BYTES_MAX: u64 = 1 << 20;

/// What became of a log view.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It holds what it did not hold before.
    Written,
    /// It already held everything.
    UpToDate,
    /// It does not fit and the events it would be rebuilt from are no longer
    /// stored; it was not touched.
    Left,
}

/// How a log ends.
#[derive(Debug, PartialEq, Eq, Clone, Copy)]
enum Tail {
    Empty,
    /// With the whole line of the event of this number.
    Line(u64),
    /// With anything else.
    Torn,
}

/// What brings a log up to date.
#[derive(Debug, PartialEq, Eq)]
enum Plan {
    Nothing,
    /// Append the call's own lines.
    Append,
    /// Append the lines after this event, which other calls failed to write.
    CatchUp(u64),
    Rebuild,
}

/// The numbers of a log that a call described, checked.
struct Expected<'a> {
    log: &'a views::Log,
    /// The number and length of the log before the call's own lines.
    seq_before: u64,
    bytes_before: u64,
}

impl<'a> Expected<'a> {
    fn new(log: &'a views::Log) -> Result<Self, &'static str> {
        if !log.lines.is_empty() && !log.lines.ends_with('\n') {
            return Err("its last line does not end");
        }
        let seq_before = log.seq.checked_sub(lines_in(&log.lines));
        let bytes_before = log.bytes.checked_sub(bytes_in(&log.lines));
        let (Some(seq_before), Some(bytes_before)) = (seq_before, bytes_before) else {
            return Err("it adds more than the whole log holds");
        };
        Ok(Self { log, seq_before, bytes_before })
    }

    fn plan(&self, length: u64, tail: Tail) -> Plan {
        let seq = match tail {
            Tail::Empty => 0,
            Tail::Line(seq) => seq,
            Tail::Torn => return Plan::Rebuild,
        };
        if self.log.rebuild {
            Plan::Rebuild
        } else if (seq, length) == (self.log.seq, self.log.bytes) {
            Plan::Nothing
        } else if (seq, length) == (self.seq_before, self.bytes_before) {
            Plan::Append
        } else if seq < self.log.seq
            && self.log.bytes.checked_sub(length).is_some_and(|missing| missing <= CATCH_UP_BYTES_MAX)
        {
            Plan::CatchUp(seq)
        } else {
            Plan::Rebuild
        }
    }
}

/// Brings the log at `view` up to date.
///
/// # Errors
///
/// `Contract` when `log` contradicts itself, `Source` when lines cannot be read,
/// otherwise as the folder's operations.
pub fn write(
    folder: &LockedFolder,
    slug: &str,
    view: &str,
    log: &views::Log,
    source: &mut dyn Source,
) -> Result<Outcome, MirrorError> {
    let expected = Expected::new(log).map_err(|why| MirrorError::Contract {
        slug: slug.to_owned(),
        path: view.to_owned(),
        why,
    })?;
    let mut lines = Lines::new(source, slug, view, log.seq);
    let append_to = |mut file: File, length, text: &str| {
        append(&mut file, length, text)
            .map(|()| Outcome::Written)
            .map_err(|cause| MirrorError::io("append to", folder.path_of(view), cause))
    };
    match folder.open_to_append(view)? {
        Existing::Absent if expected.seq_before == 0 && !log.rebuild => {
            let mut replacement = folder.replace(view)?;
            replacement.write(&log.lines)?;
            replacement.commit()?;
            return Ok(Outcome::Written);
        }
        Existing::Absent | Existing::Foreign => {}
        Existing::File(file, length) => {
            let tail =
                tail(&file, length).map_err(|cause| MirrorError::io("read", folder.path_of(view), cause))?;
            match expected.plan(length, tail) {
                Plan::Nothing => return Ok(Outcome::UpToDate),
                Plan::Append => return append_to(file, length, &log.lines),
                Plan::CatchUp(seq) => {
                    if let Some(text) = lines.exactly(seq, log.bytes - length)? {
                        return append_to(file, length, &text);
                    }
                }
                Plan::Rebuild => {}
            }
        }
    }
    rebuild(folder, view, log, &mut lines)
}

fn rebuild(
    folder: &LockedFolder,
    view: &str,
    log: &views::Log,
    lines: &mut Lines<'_>,
) -> Result<Outcome, MirrorError> {
    let mut replacement = folder.replace(view)?;
    let mut bytes = 0;
    lines.at = 0;
    while let Some(text) = lines.next_page()? {
        bytes += bytes_in(&text);
        replacement.write(&text)?;
    }
    if lines.at != log.seq {
        tracing::debug!(
            path = %folder.path_of(view).display(),
            "the log's history is not stored any more; the file is left as it is"
        );
        return Ok(Outcome::Left);
    }
    replacement.commit()?;
    if bytes != log.bytes {
        // Another logic rendered the older lines. The file is right, but until the
        // loop's marks say so as well every call writes it anew.
        tracing::warn!(
            path = %folder.path_of(view).display(),
            written = bytes,
            recorded = log.bytes,
            "the log's length differs from the recorded one"
        );
    }
    Ok(Outcome::Written)
}

/// The stored lines after the event `at`, up to and with the event `until`.
///
/// Events that other calls committed meanwhile are left to those calls.
pub(super) struct Lines<'a> {
    source: &'a mut dyn Source,
    slug: &'a str,
    view: &'a str,
    at: u64,
    until: u64,
}

impl<'a> Lines<'a> {
    pub(super) fn new(source: &'a mut dyn Source, slug: &'a str, view: &'a str, until: u64) -> Self {
        Self { source, slug, view, at: 0, until }
    }

    /// Whether all lines came.
    pub(super) fn is_complete(&self) -> bool {
        self.at >= self.until
    }

    /// The next lines; `None` at the end, or where lines are missing (`at` tells).
    pub(super) fn next_page(&mut self) -> Result<Option<String>, MirrorError> {
        if self.at >= self.until {
            return Ok(None);
        }
        let page = self.source.log_lines(self.at);
        let page = page.map_err(|cause| MirrorError::Source { slug: self.slug.to_owned(), cause })?;
        let Some((mut text, last)) = page else {
            return Ok(None);
        };
        if last <= self.at || !text.ends_with('\n') {
            return Err(MirrorError::Contract {
                slug: self.slug.to_owned(),
                path: self.view.to_owned(),
                why: "its stored lines do not end or do not advance",
            });
        }
        if lines_in(&text) != last - self.at {
            return Ok(None);
        }
        if last > self.until {
            text.truncate(end_of_line(&text, self.until - self.at));
        }
        self.at = last.min(self.until);
        Ok(Some(text))
    }

    /// All lines after the event `after`, if they take exactly this many bytes.
    fn exactly(&mut self, after: u64, bytes: u64) -> Result<Option<String>, MirrorError> {
        let mut all = String::new();
        self.at = after;
        while let Some(text) = self.next_page()? {
            all.push_str(&text);
            if bytes_in(&all) > bytes {
                return Ok(None);
            }
        }
        let complete = self.at == self.until && bytes_in(&all) == bytes;
        Ok(complete.then_some(all))
    }
}

/// Whether a log's last line is whole and that of the event of this number.
pub(super) fn ends_with(file: &File, length: u64, seq: u64) -> io::Result<bool> {
    tail(file, length).map(|tail| tail == Tail::Line(seq) || (tail == Tail::Empty && seq == 0))
}

fn tail(file: &File, length: u64) -> io::Result<Tail> {
    if length == 0 {
        return Ok(Tail::Empty);
    }
    let mut span = TAIL_BYTES_FIRST;
    loop {
        let start = length.saturating_sub(span);
        // At most TAIL_BYTES_MAX, which every usize of this platform holds.
        let mut bytes = vec![0; usize::try_from(length - start).map_err(io::Error::other)?];
        match file.read_exact_at(&mut bytes, start) {
            Ok(()) => {}
            // Cut by someone who does not take the lock.
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(Tail::Torn),
            Err(cause) => return Err(cause),
        }
        let Some((b'\n', lines)) = bytes.split_last() else {
            return Ok(Tail::Torn);
        };
        let line = match lines.iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => &lines[newline + 1..],
            None if start == 0 => lines,
            None if span >= TAIL_BYTES_MAX => return Ok(Tail::Torn),
            None => {
                span *= 8;
                continue;
            }
        };
        return Ok(number_of(line).map_or(Tail::Torn, Tail::Line));
    }
}

fn number_of(line: &[u8]) -> Option<u64> {
    let rest = line.strip_prefix(LINE_START)?;
    let digits = &rest[..rest.iter().position(|byte| *byte == b',')?];
    if !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(digits).ok()?.parse().ok()
}

fn lines_in(text: &str) -> u64 {
    text.bytes().filter(|byte| *byte == b'\n').count() as u64
}

fn bytes_in(text: &str) -> u64 {
    text.len() as u64
}

/// The length of the first `count` lines, at least one; all of the text if it has
/// fewer.
fn end_of_line(text: &str, count: u64) -> usize {
    let index = usize::try_from(count).map_or(usize::MAX, |count| count.saturating_sub(1));
    text.match_indices('\n').nth(index).map_or(text.len(), |(newline, _)| newline + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans() {
        let log = views::Log { seq: 10, bytes: 1000, lines: "x\ny\n".to_owned(), rebuild: false };
        let table = [
            (1000, Tail::Line(10), Plan::Nothing),
            (996, Tail::Line(8), Plan::Append),
            (900, Tail::Line(7), Plan::CatchUp(7)),
            (996, Tail::Line(7), Plan::CatchUp(7)),
            (0, Tail::Empty, Plan::CatchUp(0)),
            (996, Tail::Torn, Plan::Rebuild),
            (1000, Tail::Line(9), Plan::CatchUp(9)),
            (1000, Tail::Line(11), Plan::Rebuild),
            (1001, Tail::Line(10), Plan::Rebuild),
            (1001, Tail::Line(3), Plan::Rebuild),
            (999, Tail::Line(10), Plan::Rebuild),
        ];
        for (length, tail, plan) in table {
            let expected = Expected::new(&log).unwrap();
            assert_eq!(expected.plan(length, tail), plan, "{length} {tail:?}");
        }
        let forced = views::Log { rebuild: true, ..log.clone() };
        let expected = Expected::new(&forced).unwrap();
        assert_eq!(expected.plan(1000, Tail::Line(10)), Plan::Rebuild);
        let far = views::Log { bytes: CATCH_UP_BYTES_MAX + 1001, ..log };
        let expected = Expected::new(&far).unwrap();
        assert_eq!(expected.plan(1000, Tail::Line(3)), Plan::Rebuild);
    }

    #[test]
    fn a_log_that_contradicts_itself_is_refused() {
        let table = [(1, 1, "a\nb\n"), (2, 3, "a\nb\n"), (1, 5, "a")];
        for (seq, bytes, lines) in table {
            let log = views::Log { seq, bytes, lines: lines.to_owned(), rebuild: false };
            assert!(Expected::new(&log).is_err(), "{seq} {bytes} {lines:?}");
        }
    }

    #[test]
    fn tails() {
        let long = format!("{{\"seq\":1,\"a\":0}}\n{{\"seq\":2,{}}}\n", "é".repeat(50_000));
        let torn = &long.as_bytes()[..long.len() - 4];
        let table: &[(&[u8], Tail)] = &[
            (b"", Tail::Empty),
            (b"{\"seq\":7,\"at\":1}\n", Tail::Line(7)),
            (b"junk\n{\"seq\":12,}\n", Tail::Line(12)),
            (long.as_bytes(), Tail::Line(2)),
            (torn, Tail::Torn),
            (b"\n", Tail::Torn),
            (b"{\"seq\":7,\"at\":1}\n\n", Tail::Torn),
            (b"{\"seq\":7,\"at\":1}", Tail::Torn),
            (b"{\"seq\":}\n", Tail::Torn),
            (b"{\"seq\":,}\n", Tail::Torn),
            (b"{\"seq\":-1,}\n", Tail::Torn),
            (b"{\"seq\":+1,}\n", Tail::Torn),
            (b"{\"seq\":99999999999999999999,}\n", Tail::Torn),
            (b"{\"at\":1,\"seq\":7}\n", Tail::Torn),
            (b"\0\0\0\0\n", Tail::Torn),
        ];
        for (bytes, expected) in table {
            let file = tempfile::tempfile().unwrap();
            file.write_all_at(bytes, 0).unwrap();
            let found = tail(&file, bytes.len() as u64).unwrap();
            assert_eq!(found, *expected, "{:?}", String::from_utf8_lossy(bytes));
        }
        // Shorter than a moment ago.
        let file = tempfile::tempfile().unwrap();
        assert_eq!(tail(&file, 10).unwrap(), Tail::Torn);
    }
}
