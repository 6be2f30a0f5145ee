//! Timeline in words, lessons, and the goals with their ledger.

use maud::{Markup, html};

use super::html::{Part, counted, grouped, left_out, name, pill, prose, status, when, wide};
use super::records::LoopRecords;
use super::tone::Tone;
use crate::contract::model::{Event, LedgerEntry, Memory};

/// How many entries of a list are shown at once; further ones open.
const AT_ONCE: usize = 60;

/// A list, the newest first, the older part of it folded.
fn folded<T>(rows: &[T], one: &str, many: &str, entry: impl Fn(&T) -> Markup) -> Markup {
    let newest_first: Vec<&T> = rows.iter().rev().collect();
    let (shown, rest) = newest_first.split_at(newest_first.len().min(AT_ONCE));
    html! {
        ol.log { @for row in shown { (entry(row)) } }
        @if !rest.is_empty() {
            details {
                summary { (counted(rest.len() as u64, one, many)) }
                ol.log { @for row in rest { (entry(row)) } }
            }
        }
    }
}

pub(super) fn events(records: &LoopRecords) -> Part {
    let events = &records.events;
    let body = html! {
        @if events.rows.is_empty() {
            p.soft { @match records.state.loop_.pruned_at {
                Some(at) => { "Its history was dropped " (when(at)) "." }
                None => { "Nothing has happened yet." }
            } }
        }
        (folded(&events.rows, "earlier event", "earlier events", event))
        (left_out(events.left_out(), "older event is", "older events are", "not on this page; events.jsonl has them."))
    };
    Part { id: "events", title: "Events", count: Some(events.all), body }
}

fn event(event: &Event) -> Markup {
    let words = [
        ("agent", &event.agent),
        ("phase", &event.phase),
        ("issue", &event.issue),
        ("PR", &event.pr),
        ("branch", &event.branch),
    ];
    let more = html! {
        @if let Some(from) = &event.from { (status(from)) span { "→" } }
        @if let Some(to) = &event.to { (status(to)) }
        @for (what, word) in words {
            @if let Some(word) = word { span.soft { (what) " " (name(word)) } }
        }
    };
    let below = html! {
        @if let Some(note) = &event.note { p { (prose(note)) } }
        @if let Some(evidence) = &event.evidence { p { span.soft { "evidence: " } (prose(evidence)) } }
    };
    numbered((event.seq, event.at), &event.event, event.task.as_deref(), &more, &below)
}

/// One numbered entry of a history: what it is called and of which task, what else
/// stands on that line, and what below it.
fn numbered(
    (seq, at): (u64, i64),
    called: &str,
    task: Option<&str>,
    more: &Markup,
    below: &Markup,
) -> Markup {
    html! {
        li {
            span.at { "#" (seq) " " (when(at)) }
            div {
                p.what {
                    b { (name(called)) }
                    @if let Some(task) = task { span.id { (name(task)) } }
                    (more)
                }
                (below)
            }
        }
    }
}

pub(super) fn lessons(records: &LoopRecords) -> Part {
    let lessons = &records.lessons;
    let body = html! {
        @if lessons.rows.is_empty() { p.soft { "None was kept." } }
        (folded(&lessons.rows, "earlier lesson", "earlier lessons", lesson))
        (left_out(lessons.left_out(), "older lesson is", "older lessons are", "not on this page; memory.md has them."))
    };
    Part { id: "lessons", title: "Lessons", count: Some(lessons.all), body }
}

fn lesson(lesson: &Memory) -> Markup {
    let note = html! { p { (prose(&lesson.note)) } };
    numbered((lesson.seq, lesson.at), &lesson.agent, lesson.task.as_deref(), &html! {}, &note)
}

/// The most rulings.
const GOALS: usize = 200;

/// Nothing for a loop that no goals are bound to and that has no rulings.
pub(super) fn goals(records: &LoopRecords) -> Option<Part> {
    let (the_loop, goals, ledger) = (&records.state.loop_, &records.state.goals, &records.ledger);
    if the_loop.goal_config.is_none() && goals.is_empty() && ledger.rows.is_empty() {
        return None;
    }
    let verdict = |satisfied: bool| match satisfied {
        true => pill(Tone::Good, &html! { "satisfied" }),
        false => pill(Tone::Bad, &html! { "not satisfied" }),
    };
    let table = html! {
        table {
            caption { "The newest recorded ruling on each target" }
            thead { tr {
                th scope="col" { "Target" }
                th scope="col" { "Ruling" }
                th.num scope="col" { "Passed" }
                th.num scope="col" { "Iteration" }
                th scope="col" { "Reason" }
                th scope="col" { "Recorded" }
            } }
            tbody { @for goal in goals.iter().take(GOALS) {
                tr {
                    th scope="row" { (name(&goal.target)) }
                    td { (verdict(goal.satisfied)) }
                    td.num { (goal.passed) " of " (goal.total) }
                    td.num { (goal.iteration) }
                    td.text { (prose(&goal.reason)) }
                    td.num { (when(goal.updated_at)) }
                }
            } }
        }
    };
    let body = html! {
        @if let Some(file) = &the_loop.goal_config {
            p.soft { "Bound to " b { (name(file)) }
                @if let Some(digest) = &the_loop.goal_config_sha256 { " (sha256 " (name(digest.get(..12).unwrap_or(digest))) "…)" } }
        }
        @if goals.is_empty() { p.soft { "No ruling was recorded." } } @else { (wide("Rulings", table)) }
        (left_out(goals.len().saturating_sub(GOALS) as u64, "further target", "further targets", "are left out."))
        @if !ledger.rows.is_empty() {
            h3 { "Ledger " span.count { (grouped(ledger.all)) } }
            (folded(&ledger.rows, "earlier entry", "earlier entries", entry))
            (left_out(ledger.left_out(), "older entry is", "older entries are", "not on this page."))
        }
    };
    Some(Part { id: "goals", title: "Goals", count: Some(goals.len() as u64), body })
}

fn entry(entry: &LedgerEntry) -> Markup {
    html! {
        li {
            span.at { "#" (entry.seq) " " (when(entry.at)) }
            div {
                p.what {
                    b { (name(&entry.kind)) }
                    span.soft { "iteration " (entry.iteration) }
                    @if let Some(node) = &entry.node_id { span.id { (name(node)) } }
                    span.soft { "seal " (name(entry.hash.get(..12).unwrap_or(&entry.hash))) "…" }
                }
                p { (prose(&entry.detail)) }
            }
        }
    }
}
