//! What the steps took, by agent, phase and task.

use maud::{Markup, html};

use super::figures::{Times, by_agent, by_phase, by_task, whole};
use super::html::{Part, bar, bar_key, grouped, left_out, name, took, wide};
use super::records::LoopRecords;

/// The most rows of one table.
const ROWS: usize = 500;

pub(super) fn part(records: &LoopRecords) -> Part {
    let totals = &records.state.totals;
    let all = whole(totals);
    let agents = by_agent(&records.steps);
    let title = |id: &str| {
        let task = records.state.tasks.iter().find(|task| task.taskid == id);
        task.map(|task| task.title.as_str())
    };
    let plain = |text: &str| html! { (name(text)) };
    let tasks: Vec<(Markup, Times)> = (by_task(totals).into_iter())
        .map(|(task, times)| {
            let label = match task {
                Some(id) => html! { (name(id)) @if let Some(title) = title(id) { span { (name(title)) } } },
                None => html! { "the loop as a whole" },
            };
            (label, times)
        })
        .collect();
    let phases = by_phase(totals).into_iter().map(|(phase, times)| (plain(phase), times)).collect();
    let agents = agents.into_iter().map(|(agent, times)| (plain(agent), times)).collect();
    let body = html! {
        @if totals.is_empty() && records.steps.rows.is_empty() {
            p.soft { "No step was recorded." }
        } @else {
            (bar_key())
            div.tables {
                (table("Time by phase", "Phase", phases, Some(&all)))
                (table("Time by agent", "Agent", agents, None))
                (table("Time by task", "Task", tasks, Some(&all)))
            }
            (left_out(records.steps.left_out(), "older step", "older steps", "are not in the table by agent."))
            (quality(records))
        }
    };
    Part { id: "timings", title: "Timings", count: None, body }
}

fn table(caption: &str, key: &str, rows: Vec<(Markup, Times)>, sum: Option<&Times>) -> Markup {
    let longest = rows.iter().map(|(_, times)| times.wall).max().unwrap_or(0);
    let more = rows.len().saturating_sub(ROWS);
    let figures = |times: &Times| {
        html! {
            td.num { (grouped(times.steps)) }
            td.num { (took(times.wall)) }
            td.num { (took(times.agent)) }
            td.num { (took(times.orchestrator)) }
            td.num { (took(times.unattributed)) }
        }
    };
    let body = html! {
        table {
            caption { (caption) ", closed steps" }
            thead { tr {
                th scope="col" { (key) }
                th.num scope="col" { "Steps" }
                th.num scope="col" { "Wall" }
                th.num scope="col" { "Agent" }
                th.num scope="col" { "Orchestrator" }
                th.num scope="col" { "No return" }
                th scope="col" { "Share" }
            } }
            tbody { @for (label, times) in rows.iter().take(ROWS) {
                tr { th scope="row" { (label) } (figures(times)) td.bars { (bar(times, longest)) } }
            } }
            @if let Some(sum) = sum {
                tfoot { tr { th scope="row" { "In all" } (figures(sum)) td {} } }
            }
        }
    };
    html! { div { (wide(caption, body)) (left_out(more as u64, "further row", "further rows", "are left out.")) } }
}

/// How far the figures are to be trusted.
fn quality(records: &LoopRecords) -> Markup {
    let quality = &records.state.loop_.quality;
    let odd = [
        (quality.missing_returns, "steps ended without a return of their agent"),
        (quality.orphan_returns, "returns met no open step"),
        (quality.duplicate_returns, "second returns were not counted"),
        (quality.backfilled, "steps were rebuilt from the timeline"),
        (quality.clock_corrections, "times ran backwards and were held"),
    ];
    html! {
        @if odd.iter().any(|(count, _)| *count > 0) {
            p.note { "How far to trust it: "
                @for (place, (count, what)) in odd.iter().filter(|(count, _)| *count > 0).enumerate() {
                    @if place > 0 { "; " }
                    (grouped(u64::from(*count))) " " (what)
                }
                "."
            }
        }
    }
}
