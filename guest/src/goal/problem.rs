//! What is wrong with a configuration, and where.

use std::fmt;
use std::rc::Rc;

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

/// Where a value stands: a chain up to the root. It is written out only where there
/// is something to say of the value, since most of a configuration is in order.
#[derive(Clone, Copy, Debug)]
pub struct Place<'a> {
    above: Option<&'a Place<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy, Debug)]
enum Step<'a> {
    /// A dotted path from the root; empty for the root itself.
    Path(&'a str),
    Key(&'a str),
    Index(usize),
}

impl<'a> Place<'a> {
    /// A place by its dotted path; empty for the root.
    pub fn of(path: &'a str) -> Place<'a> {
        Place { above: None, step: Step::Path(path) }
    }

    /// The place of a key below this one.
    pub fn key(&'a self, key: &'a str) -> Place<'a> {
        Place { above: Some(self), step: Step::Key(key) }
    }

    /// The place of an entry of this list.
    pub fn index(&'a self, index: usize) -> Place<'a> {
        Place { above: Some(self), step: Step::Index(index) }
    }

    fn is_root(&self) -> bool {
        matches!(self, Place { above: None, step: Step::Path("") })
    }
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(above) = self.above {
            above.fmt(f)?;
        }
        match self.step {
            Step::Path(path) => f.write_str(path),
            Step::Index(index) => write!(f, "[{index}]"),
            Step::Key(key) => {
                if self.above.is_some_and(|above| !above.is_root()) {
                    f.write_str(".")?;
                }
                // A key from a hostile file can be long; the path is there to find it.
                f.write_str(&crate::arguments::excerpt(key))
            }
        }
    }
}

/// The place of an entry of one of a configuration's lists, for as long as the
/// configuration is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryPlace {
    list: Rc<str>,
    index: usize,
}

impl EntryPlace {
    /// The entry of that number, from 0, of the list at a dotted path.
    pub fn new(list: &Rc<str>, index: usize) -> EntryPlace {
        EntryPlace { list: Rc::clone(list), index }
    }
}

impl fmt::Display for EntryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.list, self.index)
    }
}
