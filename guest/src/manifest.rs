//! What to read before going on: which file, how much it matters at this point,
//! and whether it is there.

use crate::model::{DocumentHead, FileEntry, LoopState};
use crate::resume::Resume;
use crate::status::{Mode, words};

words! {
    /// How much a file matters at a point.
    Priority {
        Must = "must",
        Should = "should",
        Optional = "optional",
    }
}

/// A file to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Relative to the loop's folder.
    pub path: String,
    pub exists: bool,
    pub bytes: Option<u64>,
    pub priority: Priority,
    pub why: String,
}

/// Stands for the spec of the task at hand.
const TASK: &str = "tasks/{taskid}.md";
/// Stands for the newest QA report.
const QA_REPORT: &str = "qa-report-*.md";

type Row = (&'static [&'static str], &'static [&'static str], &'static [&'static str]);

/// What each point asks for: must, should, optional.
fn row(point: &str, mode: Mode) -> Row {
    match point {
        "clarify" => (&[], &["prompt.md"], &[]),
        "discovery" => (&["prompt.md"], &[], &[]),
        "legal" => (&["prompt.md"], &["discovery.md"], &[]),
        "plan" if mode == Mode::Standard => (&["prompt.md", "discovery.md"], &["legal.md"], &["memory.md"]),
        "plan" => (&["prompt.md"], &["discovery.md", "legal.md"], &["memory.md"]),
        "build" | "retry" => (&["plan.md", TASK], &["prompt.md", "discovery.md", "memory.md"], &[]),
        "rework" => (
            &["plan.md", TASK, "unresolved-pr-comments.md"],
            &["prompt.md", "discovery.md", "memory.md"],
            &[],
        ),
        "security" => (&["plan.md", TASK], &["security.md", "discovery.md"], &["memory.md"]),
        "issue" | "pr" | "review" | "merge" | "complete" | "escalate" => {
            (&[TASK], &["plan.md", "discovery.md"], &["memory.md"])
        }
        "qa" => (
            &["plan.md"],
            &["discovery.md", QA_REPORT, "security.md", "unresolved-pr-comments.md"],
            &["memory.md"],
        ),
        "findings-gate" => (
            &["plan.md", QA_REPORT],
            &["discovery.md", "security.md", "unresolved-pr-comments.md"],
            &["memory.md"],
        ),
        "memory" | "agents-sync" | "feature-merge" => {
            (&[], &["memory.md", "plan.md", "discovery.md"], &[QA_REPORT])
        }
        _ => (&[], &[], &[]),
    }
}

/// Why a file is read at a point, where the general reason does not say it.
fn reason(path: &str, point: &str, taskid: Option<&str>) -> String {
    match (path, point) {
        ("discovery.md", "plan") => "a plan rests on what was found out".to_owned(),
        ("unresolved-pr-comments.md", "rework") => "the comments that the rework has to answer".to_owned(),
        ("prompt.md", _) => format!("the user's own words, before {point}"),
        ("plan.md", _) => format!("the approved plan, which {point} follows"),
        ("discovery.md", _) => "what is known of the code base".to_owned(),
        ("legal.md", _) => "limits that licences and privacy set".to_owned(),
        ("security.md", _) => "security findings so far".to_owned(),
        ("unresolved-pr-comments.md", _) => "review comments still open".to_owned(),
        ("memory.md", _) => "lessons of this loop".to_owned(),
        (TASK, _) => format!("the specification of {}", taskid.unwrap_or("the task")),
        (QA_REPORT, _) => "the newest QA report".to_owned(),
        _ => format!("needed for {point}"),
    }
}

/// Returns what to read at a point: must first, then should, then optional, each
/// by path. A must is listed also when it is nowhere; the others are left out then.
pub fn manifest(
    state: &LoopState,
    resume: &Resume,
    files: &[FileEntry],
    documents: &[DocumentHead],
) -> Vec<Entry> {
    let mode = Mode::parse(&state.loop_.mode).unwrap_or(Mode::Standard);
    let (must, should, optional) = row(&resume.point, mode);
    let newest_report = || {
        let paths = files.iter().map(|f| &f.path).chain(documents.iter().map(|d| &d.path));
        paths.filter(|p| p.starts_with("qa-report-") && p.ends_with(".md")).max().cloned()
    };
    let entry = |pattern: &str, priority: Priority| -> Option<Entry> {
        let path = match pattern {
            // Without a task at hand there is no specification to read.
            TASK => format!("tasks/{}.md", resume.taskid.as_deref()?),
            QA_REPORT => newest_report().unwrap_or_else(|| QA_REPORT.to_owned()),
            path => path.to_owned(),
        };
        let why = reason(pattern, &resume.point, resume.taskid.as_deref());
        let on_disk = files.iter().find(|f| f.path == path).map(|f| f.bytes);
        let stored = documents.iter().find(|d| d.path == path).map(|d| d.bytes);
        let why = match (on_disk, stored) {
            (None, Some(_)) => {
                format!("{why}; it is in the database only, loop_materialize brings the file back")
            }
            (None, None) if priority != Priority::Must => return None,
            _ => why,
        };
        let bytes = on_disk.or(stored);
        Some(Entry { path, exists: bytes.is_some(), bytes, priority, why })
    };
    let groups = [(must, Priority::Must), (should, Priority::Should), (optional, Priority::Optional)];
    groups
        .into_iter()
        .flat_map(|(paths, priority)| {
            let mut group: Vec<_> = paths.iter().filter_map(|p| entry(p, priority)).collect();
            group.sort_by(|a, b| a.path.cmp(&b.path));
            group
        })
        .collect()
}
