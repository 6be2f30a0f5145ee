//! What a command came to, and how it is printed.

use std::io::{self, IsTerminal, Write};

use serde_json::Value;

use super::page::Page;
use super::plain;

/// What a command came to: the same as JSON and for people.
#[derive(Debug)]
pub struct Answer {
    json: Value,
    shown: Shown,
    well: bool,
}

#[derive(Debug)]
enum Shown {
    Page(Page),
    /// A text that has its own lines.
    Text(String),
    /// The content of a file, byte by byte.
    Bytes(Vec<u8>),
}

impl Answer {
    /// An answer that people see as a page.
    pub fn page(json: Value, page: Page) -> Answer {
        Answer { json, shown: Shown::Page(page), well: true }
    }

    /// An answer that people see as a text.
    pub fn text(json: Value, text: String) -> Answer {
        Answer { json, shown: Shown::Text(text), well: true }
    }

    /// An answer that people see as what a file holds.
    pub fn bytes(json: Value, bytes: Vec<u8>) -> Answer {
        Answer { json, shown: Shown::Bytes(bytes), well: true }
    }

    /// The same, where something of what was looked at is wrong unless `well`.
    pub fn well(self, well: bool) -> Answer {
        Answer { well, ..self }
    }

    /// Whether nothing of what was looked at is wrong.
    pub fn is_well(&self) -> bool {
        self.well
    }

    /// Prints the answer to standard output; a reader that has seen enough is no error.
    ///
    /// # Errors
    ///
    /// Output that cannot be written.
    pub fn print(&self, as_json: bool) -> io::Result<()> {
        let terminal = io::stdout().is_terminal();
        let bytes = match &self.shown {
            _ if as_json => format!("{}\n", self.json).into_bytes(),
            Shown::Page(page) => page.render(columns()).into_bytes(),
            Shown::Text(text) => text.clone().into_bytes(),
            Shown::Bytes(bytes) if !terminal => bytes.clone(),
            Shown::Bytes(bytes) => plain::block(&String::from_utf8_lossy(bytes)).into_bytes(),
        };
        let mut out = io::stdout().lock();
        match out.write_all(&bytes).and_then(|()| out.flush()) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written,
        }
    }
}

/// The columns of the terminal: `COLUMNS`, else what it says itself; no limit where
/// standard output is none.
pub fn columns() -> Option<usize> {
    let asked = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let told = || {
        let size = rustix::termios::tcgetwinsize(io::stdout()).ok()?;
        Some(usize::from(size.ws_col))
    };
    asked.or_else(told).filter(|columns| *columns > 0)
}
