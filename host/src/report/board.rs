//! The tasks by their status.

use maud::{Markup, html};

use super::html::{Part, clipped, left_out, name, prose, status};
use super::records::LoopRecords;
use crate::contract::model::Task;

/// How many cards of one status are shown at once; further ones open.
const AT_ONCE: usize = 12;

/// The most cards of one status.
const CARDS: usize = 400;

/// The most dependencies on a card.
const NAMES: usize = 8;

pub(super) fn part(records: &LoopRecords) -> Part {
    let body = html! {
        @if records.state.tasks.is_empty() { p.soft { "It has no tasks yet." } }
        @for (word, tasks) in records.board() {
            div.lane {
                h3 { (status(word)) " " span.count { (tasks.len()) } }
                (cards(&tasks[..tasks.len().min(AT_ONCE)], records))
                @if tasks.len() > AT_ONCE {
                    @let rest = &tasks[AT_ONCE..tasks.len().min(CARDS)];
                    details {
                        summary { (rest.len()) " more " (clipped(word, 40)) }
                        (cards(rest, records))
                    }
                    (left_out((tasks.len().saturating_sub(CARDS)) as u64, "further task", "further tasks",
                        "of this status are not on this page; `show` lists them."))
                }
            }
        }
    };
    Part { id: "tasks", title: "Tasks", count: Some(records.state.tasks.len() as u64), body }
}

fn cards(tasks: &[&Task], records: &LoopRecords) -> Markup {
    html! {
        ol.cards { @for task in tasks {
            @let in_hand = records.in_hand() == Some(task.taskid.as_str());
            li.hand[in_hand] { (card(task, in_hand)) }
        } }
    }
}

fn card(task: &Task, in_hand: bool) -> Markup {
    let words = [
        ("issue", &task.issue),
        ("PR", &task.pr),
        ("branch", &task.branch),
        ("kind", &task.kind),
        ("tech", &task.tech),
    ];
    let counts = [
        ("retries", task.retries),
        ("security rounds", task.security_rounds),
        ("review rounds", task.review_rounds),
    ];
    html! {
        span.id { (name(&task.taskid)) }
        @if in_hand { " " span.soft { "· in hand" } }
        span.title { (name(&task.title)) }
        p.meta {
            @if !task.depends_on.is_empty() { span { "after " (names(&task.depends_on)) } }
            @if !task.superseded_by.is_empty() { span { "now " (names(&task.superseded_by)) } }
            @for (what, word) in words {
                @if let Some(word) = word { span { (what) " " (name(word)) } }
            }
            @for (what, count) in counts { @if count > 0 { span { (what) " " (count) } } }
        }
        @if let Some(text) = &task.description {
            details { summary { "Description" } (prose(text)) }
        }
    }
}

fn names(list: &[String]) -> Markup {
    html! {
        @for (place, one) in list.iter().take(NAMES).enumerate() {
            @if place > 0 { ", " }
            (name(one))
        }
        @if list.len() > NAMES { " and " (list.len() - NAMES) " more" }
    }
}
