//! The step that a task owes next, and who takes it.
//!
//! One table, read by the in-flight guard's refusals, by the answers of the task
//! tools and by recovery.

use crate::counter::TaskCounter;
use crate::status::{Mode, Status};

/// Tech tags that have an engineer of their own.
pub const TECH_TAGS: &[&str] = &[
    "frontend",
    "backend",
    "fullstack",
    "rust",
    "go",
    "python",
    "typescript",
    "javascript",
    "java",
    "kotlin",
    "csharp",
    "cpp",
    "c",
    "swift",
    "php",
    "ruby",
    "sql",
    "mobile",
    "infra",
    "docs",
];

/// One step that is due.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The step's name, one of a small fixed set.
    pub point: &'static str,
    /// One line that says what to do.
    pub action: String,
    /// The agent to dispatch; `None` where the orchestrator or the user acts.
    pub agent: Option<String>,
}

const GIT: &str = "git-loop";
const SECURITY: &str = "security-reviewer-loop";
const REVIEWER: &str = "code-reviewer-loop";

fn dispatch(point: &'static str, agent: &str, what: &str) -> Owed {
    Owed { point, action: format!("{what}: dispatch {agent}"), agent: Some(agent.to_owned()) }
}

fn git(point: &'static str, phase: &str, what: &str) -> Owed {
    Owed { point, action: format!("{what}: dispatch {GIT} (phase={phase})"), agent: Some(GIT.to_owned()) }
}

fn own(point: &'static str, action: &str) -> Owed {
    Owed { point, action: action.to_owned(), agent: None }
}

/// A step of the engineer that the tag names. Without one the user is asked:
/// somebody else's engineer would be a guess.
fn engineer(point: &'static str, tech: Option<&str>, what: &str) -> Owed {
    let tag = tech.map(|t| t.trim().to_lowercase()).filter(|t| !t.is_empty());
    match tag {
        Some(tag) if TECH_TAGS.contains(&tag.as_str()) => {
            dispatch(point, &format!("{tag}-engineer-loop"), what)
        }
        Some(tag) => own(
            "escalate",
            &format!(
                "ESCALATE: no engineer is known for the tech tag `{tag}`; ask the user who should {what}"
            ),
        ),
        None => {
            own("escalate", &format!("ESCALATE: the task has no tech tag; ask the user who should {what}"))
        }
    }
}

/// Returns the step that a task of this status owes.
pub fn next_step(mode: Mode, status: Status, tech: Option<&str>, retries: u32) -> Owed {
    let poc = mode == Mode::Poc;
    match status {
        Status::Pending if poc => engineer("build", tech, "build it"),
        Status::Pending => git("issue", "git-issue", "open the tracking issue"),
        Status::IssueOpen => engineer("build", tech, "build it"),
        Status::InProgress => engineer("build", tech, "finish the build and record verified with evidence"),
        Status::Verified => {
            dispatch("security", SECURITY, "check its security and record secure with evidence")
        }
        Status::Secure if poc => own("complete", "call task_complete with the commit as mergeEvidence"),
        Status::Secure => git("pr", "git-pr", "open the pull request"),
        Status::PrOpen => dispatch("review", REVIEWER, "review the pull request"),
        Status::InReview => git("merge", "git-merge", "merge it, or record changes-requested"),
        Status::ChangesRequested => engineer("rework", tech, "rework it"),
        Status::Merged => own("complete", "call task_complete with the merge SHA as mergeEvidence"),
        Status::Failed if retries > TaskCounter::Retries.cap() => {
            own("escalate", "ESCALATE: its retries are used up; ask the user how to go on")
        }
        Status::Failed => engineer("retry", tech, "retry it"),
        Status::Blocked => own("escalate", "ESCALATE: it is blocked; ask the user how to go on"),
        Status::Complete | Status::Skipped | Status::Superseded => own("none", "nothing: it is closed"),
    }
}
