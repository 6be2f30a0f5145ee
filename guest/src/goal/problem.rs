//! What is wrong with a configuration, and where.

use std::fmt;

/// How many problems one answer names; the rest is counted.
pub const SHOWN: usize = 100;

/// One thing to mend in a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Where, as `execution.graph.nodes[2].depends_on[0]`; empty for the whole.
    pub path: String,
    /// The line, from 1.
    pub line: Option<u32>,
    /// What is wrong there and what would be right; reads on from the path.
    pub message: String,
}

impl Problem {
    /// A problem of the configuration as a whole.
    pub fn whole(message: impl Into<String>) -> Problem {
        Problem { path: String::new(), line: None, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the configuration" } else { &self.path };
        match self.line {
            Some(line) => write!(f, "{path} (line {line}): {}", self.message),
            None => write!(f, "{path}: {}", self.message),
        }
    }
}

/// Why a configuration cannot be used: everything that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// In the order of the file, at most [`SHOWN`].
    pub problems: Vec<Problem>,
    /// How many more there are.
    pub more: usize,
}

impl Rejected {
    /// Sorts the problems by line and keeps as many as are shown.
    pub fn new(mut problems: Vec<Problem>) -> Rejected {
        // One without a line is about the whole file and comes first.
        problems.sort_by_key(|problem| problem.line);
        problems.dedup();
        let more = problems.len().saturating_sub(SHOWN);
        problems.truncate(SHOWN);
        Rejected { problems, more }
    }
}

impl fmt::Display for Rejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, problem) in self.problems.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{problem}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "\n… and {more} more"),
        }
    }
}

/// The path of a key below a path.
pub fn join(path: &str, key: &str) -> String {
    // A key from a hostile file can be long; the path is there to find it.
    let key = crate::arguments::excerpt(key);
    if path.is_empty() { key } else { format!("{path}.{key}") }
}
