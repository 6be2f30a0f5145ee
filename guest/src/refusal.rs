//! Why a call is refused, as data, and the one place where it becomes words.
//!
//! Each sentence says what was refused, why, and the next legal step. None holds
//! a ready destructive call or the value that would confirm one.

use crate::arguments::{ArgumentError, excerpt};
use crate::document::PathFault;
use crate::goal::problem::Rejected;
use crate::status::Status;
use std::fmt;

/// A task that is not closed, for lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTask {
    pub taskid: String,
    pub status: String,
}

/// What is wrong with a batch of tasks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchFault {
    Empty,
    /// The same id stands in it twice.
    Twice(String),
    /// The id is taken already.
    Exists(String),
    UnknownDependency {
        taskid: String,
        dependency: String,
    },
    OnItself(String),
    /// The members in the order they wait for each other.
    Cycle(Vec<String>),
    TooMany {
        total: usize,
        limit: usize,
    },
    /// A made-up id would be no legal one.
    NoId(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    Argument(ArgumentError),
    UnknownTool(String),
    LoopNotFound {
        slug: String,
        nearest: Vec<String>,
        /// Other roots of the project that have the slug.
        roots: Vec<String>,
    },
    /// Several loops of the slug, none of them in a root that is still there.
    SeveralDetached {
        slug: String,
        roots: Vec<String>,
    },
    /// The call needs the loop's folder, and its root is gone.
    Detached {
        slug: String,
        root: String,
    },
    StillActive {
        slug: String,
        /// What was asked for, as a verb.
        what: &'static str,
    },
    NotConfirmed {
        /// What has to be repeated.
        what: &'static str,
    },
    DocumentPath {
        path: String,
        fault: PathFault,
    },
    DocumentNotFound {
        path: String,
        /// The revision that was asked for.
        rev: Option<u32>,
        /// The newest one there is.
        newest: Option<u32>,
        nearest: Vec<String>,
    },
    ArchiveNotFound {
        id: String,
    },
    ArchivedFileNotFound {
        slug: String,
        path: String,
        nearest: Vec<String>,
    },
    SlugTaken {
        slug: String,
        root: String,
    },
    TargetFolder {
        folder: String,
        why: String,
    },
    /// The text of a goal configuration cannot be had.
    ConfigFile {
        path: String,
        why: String,
    },
    /// All that is wrong with a goal configuration.
    Config {
        path: String,
        rejected: Rejected,
    },
    /// The configuration has no such target; which ones it has.
    Target(String),
    /// Metrics or artifacts that are none.
    Claims(Vec<String>),
    Workdir {
        path: String,
        why: String,
    },
    /// A note cannot be written and removed at once.
    WriteAndClear,
    TaskNotFound {
        taskid: String,
        nearest: Vec<String>,
    },
    /// The root is no place for a loop unless someone named it.
    BareRoot {
        root: String,
        flag: String,
        variable: String,
    },
    Finished {
        slug: String,
        status: String,
    },
    Latched {
        op: String,
        task: String,
        reason: String,
    },
    InFlight {
        taskid: String,
        stranded: String,
        status: Status,
        owed: String,
    },
    OnlyThrough {
        taskid: String,
        to: Status,
        tool: &'static str,
    },
    Illegal {
        taskid: String,
        from: Status,
        to: Status,
        path: Option<Vec<Status>>,
    },
    NoEvidence {
        taskid: String,
        what: &'static str,
        argument: &'static str,
    },
    NotMerged {
        taskid: String,
        status: Status,
        from: Vec<Status>,
        owed: String,
    },
    Unmet {
        taskid: String,
        dependency: String,
        status: String,
    },
    ClosedTask {
        taskid: String,
        status: Status,
    },
    NotSplittable {
        taskid: String,
        status: Status,
    },
    OpenTasks(Vec<OpenTask>),
    OtherEnding {
        slug: String,
        status: String,
    },
    Batch(BatchFault),
    NoResolution,
    /// The findings that stand against the feature merge.
    AuditFails(Vec<String>),
    FieldValue {
        field: &'static str,
        takes: &'static str,
        got: String,
    },
}

/// The longest list that a sentence carries; the rest is counted.
const LISTED: usize = 20;

fn list(items: impl ExactSizeIterator<Item = String>) -> String {
    let more = items.len().saturating_sub(LISTED);
    let shown: Vec<_> = items.take(LISTED).collect();
    let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{tail}", shown.join(", "))
}

/// ` (nearest: a, b)`, or nothing.
fn hint(nearest: &[String]) -> String {
    if nearest.is_empty() { String::new() } else { format!(" (nearest: {})", nearest.join(", ")) }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Argument(error) => error.fmt(f),
            Refusal::UnknownTool(name) => write!(f, "unknown tool `{}`", excerpt(name)),
            Refusal::LoopNotFound { slug, nearest, roots } => {
                write!(f, "loop not found: {slug}{}", hint(nearest))?;
                match (roots.as_slice(), nearest.as_slice()) {
                    ([], []) => write!(f, "; loop_list shows the loops of this project"),
                    ([], _) => Ok(()),
                    (roots, _) => write!(
                        f,
                        "; this project has one in {}: start the server there to work on it",
                        list(roots.iter().cloned())
                    ),
                }
            }
            Refusal::SeveralDetached { slug, roots } => write!(
                f,
                "{slug} means several loops whose project roots are gone: {}; bring one of these folders back, or let \
                 the user export or delete the others on the command line",
                list(roots.iter().cloned())
            ),
            Refusal::Detached { slug, root } => write!(
                f,
                "loop {slug} has no folder any more: its project root {root} is gone. Its documents, timeline and audit \
                 still answer; once it has ended, archiving it and restoring it here gives it a folder again"
            ),
            Refusal::StillActive { slug, what } => write!(
                f,
                "loop {slug} is active, and only an ended loop can be {what}d; end it with loop_finish when its work is over"
            ),
            Refusal::NotConfirmed { what } => write!(
                f,
                "nothing was deleted: `confirm` does not repeat {what}. Ask the user before you go on; what is deleted is gone"
            ),
            Refusal::DocumentPath { path, fault } => {
                write!(f, "`{}` is no path of a document: {fault}", excerpt(path))
            }
            Refusal::DocumentNotFound { path, rev, newest, nearest } => {
                let path = excerpt(path);
                match (rev, newest) {
                    (Some(rev), Some(newest)) => {
                        write!(f, "{path} has no revision {rev}; the newest is {newest}")
                    }
                    _ => write!(
                        f,
                        "no document {path}, neither in the database nor on disk{}; loop_files shows what is on disk",
                        hint(nearest)
                    ),
                }
            }
            Refusal::ArchiveNotFound { id } => {
                write!(f, "no archive with the id {}; archive_list shows those there are", excerpt(id))
            }
            Refusal::ArchivedFileNotFound { slug, path, nearest } => write!(
                f,
                "the archive of {slug} has no file {}{}; archive_get lists its files",
                excerpt(path),
                hint(nearest)
            ),
            Refusal::SlugTaken { slug, root } => write!(
                f,
                "nothing was restored: {root} has a loop {slug} already; pass asSlug to restore it under another slug"
            ),
            Refusal::TargetFolder { folder, why } => write!(
                f,
                "nothing was restored: targetDir `{}` cannot be used: {why}; name an absolute folder",
                excerpt_long(folder)
            ),
            Refusal::TaskNotFound { taskid, nearest } => {
                write!(
                    f,
                    "task not found: {}{}; loop_get shows the loop's tasks",
                    excerpt(taskid),
                    hint(nearest)
                )
            }
            Refusal::ConfigFile { path, why } => write!(
                f,
                "the goal configuration {} cannot be read: {why}; config_path is relative to the project root",
                excerpt(path)
            ),
            Refusal::Config { path, rejected } => {
                write!(
                    f,
                    "the goal configuration {} cannot be used; mend all of this:\n{rejected}",
                    excerpt(path)
                )
            }
            Refusal::Target(what) => write!(f, "{what}"),
            Refusal::Claims(faults) => {
                write!(f, "nothing was evaluated: {}", list(faults.iter().cloned()))
            }
            Refusal::Workdir { path, why } => {
                write!(
                    f,
                    "workdir `{}` cannot be used: {why}; name a folder below the project root",
                    excerpt(path)
                )
            }
            Refusal::WriteAndClear => {
                write!(f, "nothing was changed: pass either `value`, which writes, or `clear`, which removes")
            }
            Refusal::BareRoot { root, flag, variable } => write!(
                f,
                "no loop was created: the server was started in {root}, which is no project; start it in the project's \
                 folder, or name that folder with {flag} or {variable}"
            ),
            Refusal::Finished { slug, status } => {
                write!(
                    f,
                    "loop {slug} is finished ({status}) and takes no more work; reads, events and lessons go on, new work needs a new loop"
                )
            }
            Refusal::Latched { op, task, reason } => write!(
                f,
                "the loop waits for a refused {op} on {task} to be put right first ({}); make the corrective call on {task}, \
                 or let the user decide and record it with loop_clearBlock",
                excerpt_long(reason)
            ),
            Refusal::InFlight { taskid, stranded, status, owed } => write!(
                f,
                "{taskid} cannot start while {stranded} is in flight ({}); {stranded} still owes: {owed}. Do that, or park {stranded} first",
                status.word()
            ),
            Refusal::OnlyThrough { taskid, to, tool } => {
                write!(f, "{taskid} cannot be set to {}: only {tool} does that", to.word())
            }
            Refusal::Illegal { taskid, from, to, path } => match path {
                Some(path) => {
                    let path: Vec<_> = path.iter().map(|s| s.word()).collect();
                    write!(
                        f,
                        "{taskid} cannot go from {} to {}; the shortest legal way is {}",
                        from.word(),
                        to.word(),
                        path.join(" → ")
                    )
                }
                None => write!(
                    f,
                    "{taskid} is {} and there is no legal way from there to {}",
                    from.word(),
                    to.word()
                ),
            },
            Refusal::NoEvidence { taskid, what, argument } => write!(
                f,
                "{taskid} is not {what} without proof: pass `{argument}` saying what was checked and what came out"
            ),
            Refusal::NotMerged { taskid, status, from, owed } => {
                let from: Vec<_> = from.iter().map(|s| s.word()).collect();
                write!(
                    f,
                    "{taskid} is {} and completes only from {}; it owes next: {owed}",
                    status.word(),
                    from.join(" or ")
                )
            }
            Refusal::Unmet { taskid, dependency, status } => write!(
                f,
                "{taskid} cannot complete yet: dependency {dependency} is not complete (status={status}); finish {dependency} first"
            ),
            Refusal::ClosedTask { taskid, status } => {
                write!(
                    f,
                    "{taskid} is {} and takes no more steps; point now_set at an open task",
                    status.word()
                )
            }
            Refusal::NotSplittable { taskid, status } => {
                write!(
                    f,
                    "{taskid} is {} and cannot be split any more; append new tasks with tasks_append",
                    status.word()
                )
            }
            Refusal::OpenTasks(tasks) => write!(
                f,
                "the loop is not done: {}; complete or skip each, or finish it as aborted",
                list(tasks.iter().map(|t| format!("{} is {}", t.taskid, t.status)))
            ),
            Refusal::OtherEnding { slug, status } => {
                write!(f, "loop {slug} is finished already, as {status}, and stays so")
            }
            Refusal::Batch(fault) => {
                match fault {
                    BatchFault::Empty => write!(f, "the list of tasks is empty")?,
                    BatchFault::Twice(id) => write!(f, "{id} stands in the batch twice")?,
                    BatchFault::Exists(id) => {
                        write!(f, "{id} exists already; leave taskid out to get the next free one")?
                    }
                    BatchFault::UnknownDependency { taskid, dependency } => {
                        write!(
                            f,
                            "{taskid} depends on {}, which is no task of this loop or batch",
                            excerpt(dependency)
                        )?;
                    }
                    BatchFault::OnItself(id) => write!(f, "{id} depends on itself")?,
                    BatchFault::Cycle(members) => {
                        let ring = members.iter().chain(members.first()).cloned().collect::<Vec<_>>();
                        write!(f, "tasks would wait for each other for ever: {}", list_path(&ring))?;
                    }
                    BatchFault::TooMany { total, limit } => {
                        write!(
                            f,
                            "the loop would have {total} tasks and at most {limit} are kept; split the work over several loops"
                        )?;
                    }
                    BatchFault::NoId(id) => {
                        write!(f, "the made-up id {id} would be too long; give each task a taskid")?
                    }
                }
                write!(f, ". Nothing of the batch was stored")
            }
            Refusal::AuditFails(findings) => write!(
                f,
                "the feature merge does not begin: {}. loop_audit says for each how it is settled, and by whom",
                findings.iter().take(LISTED).map(|x| excerpt_long(x)).collect::<Vec<_>>().join("; ")
                    + &if findings.len() > LISTED {
                        format!(" and {} more", findings.len() - LISTED)
                    } else {
                        String::new()
                    }
            ),
            Refusal::NoResolution => {
                write!(f, "the block stays: `resolution` is blank, and it has to say what the user decided")
            }
            Refusal::FieldValue { field, takes, got } => {
                write!(f, "field `{field}` takes {takes}, not {got}")
            }
        }
    }
}

/// A reason may itself be long; it is on the timeline in full.
fn excerpt_long(text: &str) -> String {
    match text.char_indices().nth(400) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A ring of ids; a long one keeps its beginning and its end.
fn list_path(ring: &[String]) -> String {
    if ring.len() <= LISTED {
        return ring.join(" → ");
    }
    let half = LISTED / 2;
    format!(
        "{} → … {} more … → {}",
        ring[..half].join(" → "),
        ring.len() - 2 * half,
        ring[ring.len() - half..].join(" → ")
    )
}

impl From<ArgumentError> for Refusal {
    fn from(error: ArgumentError) -> Refusal {
        Refusal::Argument(error)
    }
}

impl From<BatchFault> for Refusal {
    fn from(fault: BatchFault) -> Refusal {
        Refusal::Batch(fault)
    }
}
