//! A line on the terminal that says how far long work has come.
//!
//! On standard error, and only there where it is a terminal that can take a line back.
//! Short work shows nothing.

use std::io::{self, IsTerminal, Write as _};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::plain;
use crate::progress::{Progress, Standing, Unit};

use super::page::size;

/// Work that is done sooner shows nothing.
const PATIENCE: Duration = Duration::from_millis(300);

/// How often the line is drawn anew.
const EVERY: Duration = Duration::from_millis(100);

/// The cells of a bar.
const BAR: usize = 24;

/// The line while it is shown; it is taken back when this is dropped.
#[derive(Debug)]
pub struct Shown(Option<(Sender<()>, JoinHandle<()>)>);

impl Shown {
    /// Begins to look at some work, where there is a terminal to show it on.
    pub fn begin(progress: &Progress, as_json: bool) -> Shown {
        let dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
        if as_json || dumb || !io::stderr().is_terminal() {
            return Shown(None);
        }
        // Until the work says what it does: it may wait for its turn.
        progress.begin("at work");
        let (done, ended) = mpsc::channel();
        let progress = progress.clone();
        let drawing = std::thread::Builder::new().name("progress".to_owned()).spawn(move || {
            let began = Instant::now();
            let mut wait = PATIENCE;
            let mut drawn = false;
            while ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout) {
                if let Some(standing) = progress.look() {
                    put(&line(&standing, began.elapsed(), columns()));
                    drawn = true;
                }
                wait = EVERY;
            }
            if drawn {
                put("");
            }
        });
        // Without a thread there is no line, and the work is done all the same.
        Shown(drawing.ok().map(|drawing| (done, drawing)))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        if let Some((done, drawing)) = self.0.take() {
            let _ = done.send(());
            let _ = drawing.join();
        }
    }
}

/// Draws over the line that is there, and goes back to where it begins: what the log
/// says meanwhile is written over it and not behind it.
fn put(line: &str) {
    let mut out = io::stderr().lock();
    // A terminal that is gone has nobody to tell.
    let _ = out.write_all(format!("\r{line}\u{1b}[K\r").as_bytes()).and_then(|()| out.flush());
}

fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(io::stderr());
    size.map_or(80, |size| usize::from(size.ws_col)).clamp(10, 200)
}

/// The line for a terminal of so many columns; it never fills the last one.
fn line(standing: &Standing, since: Duration, columns: usize) -> String {
    let seconds = format!("{} s", since.as_secs());
    let text = match standing.done {
        None => {
            let sign = ['|', '/', '-', '\\'][since.as_millis() as usize / 100 % 4];
            format!("{sign} {}  {seconds}", standing.what)
        }
        Some((done, total, unit)) => {
            let part = |of: u64| usize::try_from(done.saturating_mul(of) / total.max(1)).unwrap_or(0);
            let filled = part(BAR as u64).min(BAR);
            let bar = format!("[{}{}]", "#".repeat(filled), "-".repeat(BAR - filled));
            let counts = match unit {
                Unit::Bytes => format!("{} of {}", size(&json!(done)), size(&json!(total))),
                Unit::Of(name) => format!("{done} of {total} {name}"),
            };
            let whole = format!("{}  {bar} {:>3} %  {counts}  {seconds}", standing.what, part(100));
            match plain::width(&whole) < columns {
                true => whole,
                false => format!("{} {:>3} %", standing.what, part(100)),
            }
        }
    };
    plain::fit(&text, columns.saturating_sub(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_it_is_and_fits() {
        let at = |done| Standing { what: "copying the database", done };
        let second = Duration::from_millis(1_100);
        let table = [
            (None, 80, "\\ copying the database  1 s"),
            (
                Some((5_120, 10_240, Unit::Bytes)),
                90,
                "copying the database  [############------------]  50 %  5.0 KiB of 10.0 KiB  1 s",
            ),
            (
                Some((3, 3, Unit::Of("files"))),
                80,
                "copying the database  [########################] 100 %  3 of 3 files  1 s",
            ),
            (Some((1, 3, Unit::Of("files"))), 40, "copying the database  33 %"),
            (Some((0, 0, Unit::Bytes)), 20, "copying the databa…"),
        ];
        for (done, columns, shown) in table {
            let drawn = line(&at(done), second, columns);
            assert_eq!(drawn, shown);
            assert!(plain::width(&drawn) < columns);
        }
    }
}
