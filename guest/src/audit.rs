//! The final audit: the loop held against its own record.
//!
//! One function a rule, each raising findings with a stable code. It reads what
//! was recorded; whether a pull request really merged it cannot know.

use crate::counter::{LoopCounter, TaskCounter};
use crate::goal::binding;
use crate::model::{Event, LoopState, Task};
use crate::owed;
use crate::phase::Rung;
use crate::plan::{same_id, status_of};
use crate::resume::{is_closed, rung_status};
use crate::status::{Mode, Status, words};
use crate::text::is_blank;
use crate::timeline::name;

words! {
    /// What an audit comes to; from worst to best.
    Verdict {
        Fail = "fail",
        Warn = "warn",
        Pass = "pass",
    }
}

words! {
    /// How much a finding weighs.
    Severity {
        Fail = "fail",
        Warn = "warn",
    }
}

words! {
    /// Who can put a finding right.
    Owner {
        Orchestrator = "orchestrator",
        User = "user",
    }
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: &'static str,
    pub severity: Severity,
    pub owner: Owner,
    /// Place in the plan; `None` for the loop itself.
    task: Option<usize>,
    pub taskid: Option<String>,
    pub message: String,
    pub fix: String,
}

/// What the audit makes of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskVerdict {
    pub taskid: String,
    pub status: String,
    pub verdict: Verdict,
    pub issue: Option<String>,
    pub pr: Option<String>,
    pub merge_sha: Option<String>,
}

/// The whole audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub verdict: Verdict,
    /// In plan order.
    pub tasks: Vec<TaskVerdict>,
    /// By severity, then plan order (the loop's own first), then code.
    pub findings: Vec<Finding>,
}

/// What the evidence of a task's merge holds.
#[derive(Clone, Debug, PartialEq, Eq)]
enum MergeProof {
    Sha(String),
    /// Something that stands in for a SHA.
    Placeholder(String),
    Missing,
}

/// Words that stand in for a SHA.
const STAND_INS: &[&str] = &["tbd", "todo", "pending", "xxx", "sha", "<sha>"];

/// Reads one evidence text.
fn read_proof(evidence: &str) -> MergeProof {
    let is_hex = |word: &str| (7..=40).contains(&word.len()) && word.bytes().all(|b| b.is_ascii_hexdigit());
    let one_digit = |word: &str| word.bytes().all(|b| Some(b) == word.bytes().next());
    let words: Vec<String> = evidence
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '<' && c != '>')
        .filter(|w| !w.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    if let Some(sha) = words.iter().find(|w| is_hex(w) && !one_digit(w)) {
        return MergeProof::Sha(sha.clone());
    }
    let stand_in = words.iter().find(|w| {
        STAND_INS.contains(&w.as_str())
            || ((is_hex(w) || w.len() > 2 && w.starts_with("xxx")) && one_digit(w))
    });
    match stand_in {
        Some(word) => MergeProof::Placeholder(word.clone()),
        None => MergeProof::Missing,
    }
}

/// The best that the timeline has for the merge of a task: the evidence of its
/// move to merged, or of its completion.
fn merge_proof(task: &Task, proofs: &[Event]) -> MergeProof {
    // A completed task may still be told its SHA, as evidence for the status it has.
    let holds_merge = [Some(Status::Merged.word()), Some(Status::Complete.word())];
    let mut best = MergeProof::Missing;
    for event in proofs.iter().rev() {
        let of_task = event.task.as_deref().is_some_and(|id| same_id(id, &task.taskid));
        let to = event.to.as_deref();
        let of_merge = event.event == name::TASK_COMPLETE
            || (event.event == name::TASK_SET_STATUS && holds_merge.contains(&to));
        let Some(evidence) = event.evidence.as_deref().filter(|_| of_task && of_merge) else { continue };
        match read_proof(evidence) {
            sha @ MergeProof::Sha(_) => return sha,
            placeholder @ MergeProof::Placeholder(_) if best == MergeProof::Missing => best = placeholder,
            _ => {}
        }
    }
    best
}

/// Whether the task was completed from secure, as mode poc allows: then there was
/// no merge to prove.
fn completed_without_merge(task: &Task, proofs: &[Event]) -> bool {
    let completion = proofs.iter().rev().find(|e| {
        e.event == name::TASK_COMPLETE && e.task.as_deref().is_some_and(|id| same_id(id, &task.taskid))
    });
    completion.is_some_and(|e| e.from.as_deref() == Some(Status::Secure.word()))
}

struct Audit<'a> {
    state: &'a LoopState,
    proofs: &'a [Event],
    findings: Vec<Finding>,
}

impl Audit<'_> {
    fn raise(
        &mut self,
        code: &'static str,
        severity: Severity,
        task: Option<usize>,
        message: String,
        fix: String,
    ) {
        self.findings.push(Finding {
            code,
            severity,
            owner: Owner::User,
            task,
            taskid: task.map(|t| self.state.tasks[t].taskid.clone()),
            message,
            fix,
        });
    }

    fn task_status(&mut self, i: usize) {
        let task = &self.state.tasks[i];
        let id = task.taskid.clone();
        let mode = Mode::parse(&self.state.loop_.mode).unwrap_or(Mode::Standard);
        let status = status_of(task);
        let owed = owed::next_step(mode, status, task.tech.as_deref(), task.retries).action;
        match status {
            Status::Merged => match merge_proof(task, self.proofs) {
                MergeProof::Sha(sha) => {
                    let fix = format!("task_complete(taskid: \"{id}\", mergeEvidence: \"{sha}\")");
                    self.raise(
                        "merged-not-completed",
                        Severity::Fail,
                        Some(i),
                        format!("{id} is merged and was not completed"),
                        fix,
                    );
                    if let Some(finding) = self.findings.last_mut() {
                        finding.owner = Owner::Orchestrator;
                    }
                }
                _ => self.raise(
                    "merged-not-completed",
                    Severity::Fail,
                    Some(i),
                    format!("{id} is merged, was not completed, and no merge SHA is on record"),
                    "find out the merge SHA, then task_complete with it".to_owned(),
                ),
            },
            status if status.in_flight() => self.raise(
                "task-mid-lifecycle",
                Severity::Fail,
                Some(i),
                format!("{id} is still {}", status.word()),
                format!("decide whether it goes on ({owed}) or is skipped"),
            ),
            Status::Pending => self.raise(
                "task-never-started",
                Severity::Fail,
                Some(i),
                format!("{id} was never started"),
                "decide whether it is still to be done, or skip it".to_owned(),
            ),
            Status::Failed | Status::Blocked => self.raise(
                "task-parked",
                Severity::Fail,
                Some(i),
                format!("{id} is {} and nobody decided what becomes of it", status.word()),
                "decide whether it is taken up again, or skip it".to_owned(),
            ),
            Status::Skipped => self.raise(
                "task-skipped",
                Severity::Warn,
                Some(i),
                format!("{id} was skipped"),
                "nothing, if that is meant; else set it to pending".to_owned(),
            ),
            Status::Complete => self.completed(i),
            _ => {}
        }
        self.task_counters(i);
    }

    fn completed(&mut self, i: usize) {
        let task = &self.state.tasks[i];
        let id = task.taskid.clone();
        let needs_sha = self.state.loop_.pruned_at.is_none() && !completed_without_merge(task, self.proofs);
        if needs_sha {
            let fix = format!(
                "make sure that it was merged, then task_setStatus(taskid: \"{id}\", status: \"complete\") with the SHA as evidence"
            );
            match merge_proof(task, self.proofs) {
                MergeProof::Sha(_) => {}
                MergeProof::Placeholder(word) => {
                    let message = format!("{id} was completed with \"{word}\" in place of a merge SHA");
                    self.raise("merge-sha-placeholder", Severity::Fail, Some(i), message, fix);
                }
                MergeProof::Missing => {
                    let message = format!("{id} was completed and no merge SHA is on record");
                    self.raise("merge-sha-missing", Severity::Fail, Some(i), message, fix);
                }
            }
        }
        for (code, what, value) in
            [("missing-issue", "issue", &task.issue), ("missing-pr", "pull request", &task.pr)]
        {
            if value.is_none() {
                let message =
                    format!("{id} is complete without {} {what}", if what == "issue" { "an" } else { "a" });
                let fix = format!(
                    "nothing, if it never had one; else task_setStatus to complete again with the {what}"
                );
                self.raise(code, Severity::Warn, Some(i), message, fix);
            }
        }
    }

    fn task_counters(&mut self, i: usize) {
        let mut row = self.state.tasks[i].clone();
        for counter in TaskCounter::ALL {
            let (value, cap) = (*counter.of(&mut row), counter.cap());
            if value > cap {
                self.over_cap(Some(i), &format!("{}: ", row.taskid), counter.word(), value, cap);
            }
        }
    }

    fn over_cap(&mut self, task: Option<usize>, of: &str, counter: &str, value: u32, cap: u32) {
        let message = format!("{of}{counter} is {value}, over its cap of {cap}");
        self.raise(
            "counter-over-cap",
            Severity::Warn,
            task,
            message,
            "look at why it took so many rounds".to_owned(),
        );
    }

    fn whole_loop(&mut self) {
        let mut l = self.state.loop_.clone();
        for counter in LoopCounter::ALL {
            let value = *counter.of(&mut l);
            if let Some(cap) = counter.cap().filter(|cap| value > *cap) {
                self.over_cap(None, "", counter.word(), value, cap);
            }
        }
        if let Some(block) = &l.blocked {
            let message =
                format!("a refused {} on {} was never put right: {}", block.op, block.task, block.reason);
            let fix = format!(
                "make the corrective call on {}, or let the user decide (loop_clearBlock)",
                block.task
            );
            self.raise("refusal-unresolved", Severity::Fail, None, message, fix);
        }
        if let Some(question) = &l.awaiting_user {
            let message = format!("the user was not heard yet: {question}");
            let fix = "ask, do as they say, then clear it with loop_setAwaitingUser".to_owned();
            self.raise("user-gate-open", Severity::Fail, None, message, fix);
        }
        self.phases();
    }

    fn phases(&mut self) {
        let l = &self.state.loop_;
        let deferred = l.f_unresolved_pr.unwrap_or(0) > 0 || l.f_security_deferred.unwrap_or(0) > 0;
        let gate_silent = l.deferred_gate.as_deref().is_none_or(is_blank);
        for rung in Rung::ALL {
            let status = rung_status(&self.state.phases, *rung);
            if is_closed(status) {
                continue;
            }
            let word = rung.word();
            match rung {
                Rung::FeatureMerge => {}
                Rung::Qa => self.raise(
                    "qa-not-run",
                    Severity::Fail,
                    None,
                    format!("phase qa is {}", status.word()),
                    "run it, or record the decision with loop_setPhaseStatus (skipped, not-needed, left-open)".to_owned(),
                ),
                Rung::FindingsGate if deferred && gate_silent => self.raise(
                    "findings-gate-unasked",
                    Severity::Fail,
                    None,
                    "findings were put off and the user was not asked about them".to_owned(),
                    "ask the user, then record the answer in deferred_gate or close the phase findings-gate".to_owned(),
                ),
                _ => self.raise(
                    "phase-open",
                    Severity::Warn,
                    None,
                    format!("phase {word} is {}", status.word()),
                    format!("close it with loop_setPhaseStatus(phase: {word})"),
                ),
            }
        }
    }
}

/// The worst of some findings.
fn worst<'a>(findings: impl Iterator<Item = &'a Finding>) -> Verdict {
    findings
        .map(|f| match f.severity {
            Severity::Fail => Verdict::Fail,
            Severity::Warn => Verdict::Warn,
        })
        .min()
        .unwrap_or(Verdict::Pass)
}

/// Audits a loop. `proofs` are its events that carry evidence, oldest first.
///
/// `goals` is what the bound goal configuration says against the end.
pub fn audit(state: &LoopState, proofs: &[Event], goals: &[binding::Finding]) -> Report {
    let mut audit = Audit { state, proofs, findings: Vec::new() };
    for i in 0..state.tasks.len() {
        audit.task_status(i);
    }
    audit.whole_loop();
    for goal in goals {
        audit.raise(goal.code, Severity::Fail, None, goal.message.clone(), goal.fix.clone());
    }
    let mut findings = audit.findings;
    findings.sort_by(|a, b| (a.severity, a.task, a.code).cmp(&(b.severity, b.task, b.code)));
    let tasks = state
        .tasks
        .iter()
        .enumerate()
        .map(|(i, task)| TaskVerdict {
            taskid: task.taskid.clone(),
            status: task.status.clone(),
            verdict: worst(findings.iter().filter(|f| f.task == Some(i))),
            issue: task.issue.clone(),
            pr: task.pr.clone(),
            merge_sha: match merge_proof(task, proofs) {
                MergeProof::Sha(sha) => Some(sha),
                _ => None,
            },
        })
        .collect();
    Report { verdict: worst(findings.iter()), tasks, findings }
}

/// One paragraph that says what to do with the findings.
pub fn guidance(report: &Report) -> String {
    let count = |owner: Owner| {
        report.findings.iter().filter(|f| f.owner == owner && f.severity == Severity::Fail).count()
    };
    let (own, users) = (count(Owner::Orchestrator), count(Owner::User));
    match report.verdict {
        Verdict::Pass => "Nothing stands against the feature merge.".to_owned(),
        Verdict::Warn => {
            "Nothing stops the feature merge; tell the user of the warnings when you ask for it.".to_owned()
        }
        Verdict::Fail => {
            let mut text = "The feature merge is refused until this is settled.".to_owned();
            if own > 0 {
                text.push_str(&format!(" Make the calls in selfCorrectable yourself ({own})."));
            }
            if users > 0 {
                text.push_str(&format!(
                    " Put the userDecisions ({users}) to the user, and take up nothing again without their word."
                ));
            }
            text
        }
    }
}
