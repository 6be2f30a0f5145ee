//! The page of one loop.

use maud::{Markup, html};

use super::figures::{Times, whole};
use super::html::{Part, clipped, counted, foot, name, page, prose, shares, status, took, when};
use super::records::LoopRecords;
use super::tone::tone;
use super::{board, graph, history, timeline, timings};

/// Draws a loop as one page that needs nothing else.
///
/// What does not fit is left out and counted on the page.
pub fn loop_page(records: &LoopRecords) -> String {
    let the_loop = &records.state.loop_;
    let mut parts = vec![phases(records), board::part(records)];
    parts.extend(graph::part(records));
    parts.push(timeline::part(records));
    parts.push(timings::part(records));
    parts.extend(history::goals(records));
    parts.push(history::lessons(records));
    parts.push(history::events(records));
    let title = format!("{} · {}", the_loop.title, the_loop.slug);
    page(&title, head(records), &parts, foot(records.at, &records.version))
}

fn head(records: &LoopRecords) -> Markup {
    let the_loop = &records.state.loop_;
    html! {
        p.crumb { (name(&records.project)) " › " (name(&the_loop.slug)) }
        h1 { (name(&the_loop.title)) }
        div.facts {
            (status(&the_loop.status))
            span { "phase " b { (name(&the_loop.phase)) } }
            span { "mode " b { (name(&the_loop.mode)) } }
            span { "begun " b { (when(the_loop.created_at)) } }
            @match the_loop.finished_at {
                Some(at) => { span { "ended " b { (when(at)) } } }
                None => { span { "last change " b { (when(the_loop.updated_at)) } } }
            }
            @if let Some(branch) = &the_loop.feature_branch { span { "branch " b { (name(branch)) } } }
        }
        @if the_loop.goal != the_loop.title { p.goal { (prose(&the_loop.goal)) } }
        (callouts(records))
        (figures(records))
    }
}

/// What stands in the way, and what goes on.
fn callouts(records: &LoopRecords) -> Markup {
    let the_loop = &records.state.loop_;
    html! {
        @if let Some(question) = &the_loop.awaiting_user {
            div.callout.waiting { b { "Waiting for the user" } (prose(question)) }
        }
        @if let Some(block) = &the_loop.blocked {
            div.callout.bad {
                b { "Refused: " (name(&block.op)) " on task " (name(&block.task)) }
                (prose(&block.reason))
            }
        }
        @if let Some(now) = &the_loop.now {
            div.callout.active {
                b { "Now" }
                (name(&now.agent)) " · " (name(&now.step))
                @if let Some(task) = &now.task { " · task " (name(task)) }
                " · since " (when(now.since))
            }
        }
    }
}

fn figures(records: &LoopRecords) -> Markup {
    let state = &records.state;
    let the_loop = &state.loop_;
    let board = records.board();
    let closed = |(word, tasks): &(&str, Vec<_>)| if tone(word).is_closed() { tasks.len() } else { 0 };
    let closed: usize = board.iter().map(closed).sum();
    let Times { steps, wall, agent, .. } = whole(&state.totals);
    let end = the_loop.finished_at.unwrap_or(records.at);
    let clock = u64::try_from(end.saturating_sub(the_loop.created_at)).unwrap_or(0);
    html! {
        dl.figures {
            div {
                dt { "Tasks closed" }
                dd { (closed) " of " (state.tasks.len())
                    (shares(board.iter().map(|(word, tasks)| (*word, tasks.len() as u64)))) }
            }
            div { dt { "Agent time" } dd { (took(agent)) small { "of " (took(wall)) " in steps" } } }
            div { dt { "On the clock" } dd { (took(clock)) small { (counted(steps, "closed step", "closed steps")) } } }
            div { dt { "Failed gates" } dd { (the_loop.total_failed_gates)
                small { (counted(the_loop.qa_rounds.into(), "QA round", "QA rounds")) } } }
            @if let Some(open) = the_loop.f_unresolved_pr { div { dt { "Unresolved comments" } dd { (open) } } }
            @if let Some(open) = the_loop.f_security_deferred { div { dt { "Findings put off" } dd { (open) } } }
        }
    }
}

fn phases(records: &LoopRecords) -> Part {
    let body = html! {
        @if records.state.phases.is_empty() { p.soft { "It has no phases." } }
        ol.ladder { @for phase in &records.state.phases {
            @let here = phase.phase == records.state.loop_.phase;
            li.here[here] aria-current=[here.then_some("step")] {
                b { (clipped(&phase.phase, 60)) }
                (status(&phase.status))
                small { (when(phase.updated_at)) }
            }
        } }
    };
    Part { id: "phases", title: "Phases", count: None, body }
}
