//! `loop.md`: the whole of a loop's state on one page.

use super::front_matter::Header;
use super::goals;
use super::text::{inline, inline_first};
use super::time::push_timestamp;
use super::timings;
use crate::model::{LoopState, Task};
use crate::status::Status;
use std::collections::BTreeMap;
use std::fmt::Write;

/// One part of the page: its heading and what writes the lines under it.
struct Section {
    title: &'static str,
    body: fn(&mut String, &LoopState),
    /// Whether a loop has the part.
    when: fn(&LoopState) -> bool,
}

/// The parts in the order they appear.
const SECTIONS: [Section; 6] = [
    Section { title: "Loop", body: loop_fields, when: |_| true },
    Section { title: "Now", body: now, when: |_| true },
    Section { title: "Phases", body: phases, when: |_| true },
    Section { title: "Tasks", body: tasks, when: |_| true },
    Section { title: "Goals", body: goals::section, when: |state| state.loop_.goal_config.is_some() },
    Section { title: "Timings", body: timings::section, when: |_| true },
];

/// Renders the page of a loop's state; `version` is the running server's.
pub fn loop_page(state: &LoopState, version: &str) -> String {
    let l = &state.loop_;
    let titles: usize = state.tasks.iter().map(|task| task.title.len()).sum();
    let mut out =
        String::with_capacity(2048 + l.title.len() + l.goal.len() + titles + state.tasks.len() * 160);
    Header {
        kind: "loop",
        slug: &l.slug,
        id: Some(&l.id),
        taskid: None,
        generated: l.created_at,
        updated: l.updated_at,
        mcp: version,
    }
    .write(&mut out);
    out.push_str("\n# Loop — ");
    inline(&mut out, &l.title);
    out.push('\n');
    for section in SECTIONS.iter().filter(|section| (section.when)(state)) {
        out.push_str("\n## ");
        out.push_str(section.title);
        out.push_str("\n\n");
        (section.body)(&mut out, state);
    }
    out
}

/// The banners as quotes, then one list item a field.
fn loop_fields(out: &mut String, state: &LoopState) {
    let l = &state.loop_;
    if let Some(question) = &l.awaiting_user {
        out.push_str("> **Waiting for the user:** ");
        inline(out, question);
        out.push_str("\n\n");
    }
    if let Some(block) = &l.blocked {
        out.push_str("> **Refused:** ");
        inline(out, &block.op);
        out.push_str(" **on task** ");
        inline(out, &block.task);
        out.push_str(" **because** ");
        inline(out, &block.reason);
        out.push_str("\n\n");
    }

    field(out, "slug", &l.slug);
    field(out, "goal", &l.goal);
    field(out, "mode", &l.mode);
    field(out, "status", &l.status);
    field(out, "phase", &l.phase);
    for (key, value) in [
        ("default_branch", &l.default_branch),
        ("branch_mode", &l.branch_mode),
        ("feature_branch", &l.feature_branch),
        ("legal", &l.legal),
        ("memory_harvest", &l.memory_harvest),
        ("docs_sync", &l.docs_sync),
        ("deferred_gate", &l.deferred_gate),
        ("qa_report", &l.qa_report),
    ] {
        if let Some(value) = value {
            field(out, key, value);
        }
    }
    let findings = [("f_unresolved_pr", l.f_unresolved_pr), ("f_security_deferred", l.f_security_deferred)];
    numbers(out, "findings", findings.into_iter().filter_map(|(name, count)| Some((name, count?))));
    let counters = [
        ("total_failed_gates", l.total_failed_gates),
        ("splits_done", l.splits_done),
        ("qa_rounds", l.qa_rounds),
    ];
    numbers(out, "counters", counters.into_iter());
    if let Some(key) = &l.project_key {
        field(out, "project_key", key);
    }
    field(out, "mcp_version", l.mcp_version.as_deref().unwrap_or("unknown"));
    time_field(out, "created", l.created_at);
    time_field(out, "updated", l.updated_at);
}

/// What is being worked on.
fn now(out: &mut String, state: &LoopState) {
    let Some(now) = &state.loop_.now else {
        out.push_str("idle\n");
        return;
    };
    // The same spelling that the tools take for the loop as a whole.
    field(out, "task", now.task.as_deref().unwrap_or("-"));
    field(out, "agent", &now.agent);
    field(out, "step", &now.step);
    time_field(out, "since", now.since);
}

/// The ladder, one list item a phase.
fn phases(out: &mut String, state: &LoopState) {
    if state.phases.is_empty() {
        out.push_str("no phases\n");
    }
    for phase in &state.phases {
        out.push_str("- ");
        inline_first(out, &phase.phase);
        out.push_str(": ");
        inline(out, &phase.status);
        out.push('\n');
    }
}

/// How many tasks there are of which status, then one list item a task.
fn tasks(out: &mut String, state: &LoopState) {
    if state.tasks.is_empty() {
        out.push_str("no tasks yet\n");
        return;
    }
    rollup(out, &state.tasks);
    out.push('\n');
    for task in &state.tasks {
        task_line(out, task);
    }
}

/// One line such as `7 tasks: 3 complete, 1 in-review, 3 pending`: the furthest
/// first, then statuses that the table does not have, by name.
fn rollup(out: &mut String, tasks: &[Task]) {
    let mut known = [0_u32; Status::ALL.len()];
    let mut foreign = BTreeMap::<&str, u32>::new();
    for task in tasks {
        match Status::parse(&task.status) {
            // In the order of declaration, which is that of the table.
            Some(status) => known[status as usize] += 1,
            None => *foreign.entry(&task.status).or_default() += 1,
        }
    }
    let plural = if tasks.len() == 1 { "" } else { "s" };
    let _ = write!(out, "{} task{plural}", tasks.len());
    let words = Status::ALL.iter().map(|status| status.word());
    let counts = words.zip(known).rev().chain(foreign);
    for (place, (status, count)) in counts.filter(|(_, count)| *count > 0).enumerate() {
        let _ = write!(out, "{}{count} ", if place == 0 { ": " } else { ", " });
        inline(out, status);
    }
    out.push('\n');
}

fn task_line(out: &mut String, task: &Task) {
    out.push_str(if task.status == Status::Complete.word() { "- [x] " } else { "- [ ] " });
    inline(out, &task.taskid);
    out.push_str(": ");
    inline(out, &task.title);
    // Bold, so that no title can look like the status after it.
    out.push_str(" — **");
    inline(out, &task.status);
    out.push_str("**");
    if let Some(tech) = &task.tech {
        part(out, "tech");
        inline(out, tech);
    }
    for (place, dependency) in task.depends_on.iter().enumerate() {
        if place == 0 {
            part(out, "depends_on");
        } else {
            out.push_str(", ");
        }
        inline(out, dependency);
    }
    for (name, value) in [("issue", &task.issue), ("pr", &task.pr), ("branch", &task.branch)] {
        if let Some(value) = value {
            part(out, name);
            inline(out, value);
        }
    }
    for (name, count) in [
        ("retries", task.retries),
        ("security_rounds", task.security_rounds),
        ("review_rounds", task.review_rounds),
    ] {
        if count > 0 {
            part(out, name);
            let _ = write!(out, "{count}");
        }
    }
    out.push('\n');
}

/// Starts one more part of a task's line.
fn part(out: &mut String, name: &str) {
    out.push_str(" · ");
    out.push_str(name);
    out.push(' ');
}

fn key(out: &mut String, key: &str) {
    out.push_str("- ");
    out.push_str(key);
    out.push_str(": ");
}

fn field(out: &mut String, name: &str, value: &str) {
    key(out, name);
    inline(out, value);
    out.push('\n');
}

fn time_field(out: &mut String, name: &str, ms: i64) {
    key(out, name);
    push_timestamp(out, ms);
    out.push('\n');
}

/// A list item of named numbers; none when there are no numbers.
fn numbers<'a>(out: &mut String, name: &str, values: impl Iterator<Item = (&'a str, u32)>) {
    let mut values = values.peekable();
    if values.peek().is_none() {
        return;
    }
    key(out, name);
    for (place, (name, value)) in values.enumerate() {
        // Writing to a string cannot fail.
        let _ = write!(out, "{}{name} {value}", if place == 0 { "" } else { ", " });
    }
    out.push('\n');
}
