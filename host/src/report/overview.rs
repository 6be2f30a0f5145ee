//! The page of a list of loops.

use maud::{Markup, html};

use super::html::{Part, counted, foot, left_out, name, page, shares, status, when};
use super::records::{Overview, OverviewRow};

/// Draws the loops of a project as one page that needs nothing else.
pub fn overview_page(overview: &Overview) -> String {
    let (ended, open): (Vec<_>, Vec<_>) = overview.loops.iter().partition(|row| row.finished);
    let mut parts = vec![part("open", "Loops at work", &open, "No loop is at work.", overview)];
    if !ended.is_empty() {
        parts.push(part("ended", "Ended", &ended, "", overview));
    }
    let head = html! {
        p.crumb { (name(&overview.root)) }
        h1 { (name(&overview.project)) }
        div.facts {
            span { b { (open.len()) } " at work" }
            span { b { (ended.len()) } " ended" }
        }
    };
    let foot = html! {
        (left_out(overview.all.saturating_sub(overview.loops.len() as u64), "older loop is", "older loops are",
            "not on this page; `list --finished` has them."))
        (foot(overview.at, &overview.version))
    };
    page(&format!("Loops of {}", overview.project), head, &parts, foot)
}

fn part(
    id: &'static str,
    title: &'static str,
    rows: &[&OverviewRow],
    none: &str,
    overview: &Overview,
) -> Part {
    let body = html! {
        @if rows.is_empty() { p.soft { (none) } }
        ul.loops { @for row in rows { li { (card(row, overview)) } } }
    };
    Part { id, title, count: Some(rows.len() as u64), body }
}

fn card(row: &OverviewRow, overview: &Overview) -> Markup {
    let summary = &row.summary;
    let counts = overview.in_order(&summary.tasks);
    let all: u64 = counts.iter().map(|(_, count)| count).sum();
    html! {
        h3 { (name(&summary.title)) }
        p.id { (name(&summary.slug)) }
        div.facts {
            (status(&summary.status))
            span { "phase " b { (name(&summary.phase)) } }
            span { (when(summary.updated_at)) }
        }
        @if all > 0 {
            (shares(counts.iter().copied()))
            p.meta {
                span { (counted(all, "task", "tasks")) ":" }
                @for (word, count) in &counts { span { (count) " " (name(word)) } }
            }
        } @else {
            p.meta { span { "no tasks yet" } }
        }
        @if summary.project_root != overview.root {
            p.meta { span { "in " (name(&summary.project_root)) } }
        }
    }
}
