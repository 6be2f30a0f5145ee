//! The steps as bars in time, a lane for each agent.

use maud::{Markup, html};

use super::axis::Axis;
use super::figures::{by_agent, duration, moment};
use super::html::{Part, counted, left_out, wide};
use super::records::LoopRecords;
use crate::contract::model::Step;
use crate::plain;

/// The most steps that are drawn: the newest ones.
const STEPS: usize = 2_000;

/// The most lanes; further agents share one.
const LANES: usize = 24;

const WIDTH: f64 = 1_140.0;
/// Where the time begins, beside the names.
const LEFT: f64 = 216.0;
const RIGHT: f64 = WIDTH - 24.0;
const LANE: f64 = 46.0;
const BAR: f64 = 20.0;
/// Above the first lane, for the times.
const TOP: f64 = 34.0;

/// The room of a pause.
const PAUSE: f64 = 26.0;

/// The cells of a lane's name that fit beside it.
const CELLS: usize = 27;

/// The narrowest bar.
const HAIR: f64 = 1.5;

pub(super) fn part(records: &LoopRecords) -> Part {
    let steps = &records.steps.rows[records.steps.rows.len().saturating_sub(STEPS)..];
    let more = records.steps.all.saturating_sub(steps.len() as u64);
    let end_of = |step: &Step| step.ended_at.unwrap_or(records.at.max(step.started_at));
    let spans: Vec<(i64, i64)> = steps.iter().map(|step| (step.started_at, end_of(step))).collect();
    let axis = Axis::new(spans, LEFT, RIGHT, PAUSE);
    let pauses: Vec<String> = axis.pauses().map(|pause| duration(length(pause.from, pause.to))).collect();
    let body = html! {
        @if steps.is_empty() {
            p.soft { "No step was recorded." }
        } @else {
            ul.key aria-label="What the bars show" {
                li { span.swatch.agent aria-hidden="true" {} " agent time: start to return" }
                li { span.swatch.rest aria-hidden="true" {} " the rest of the wall time" }
                li { span.swatch.unknown aria-hidden="true" {} " the agent did not report back" }
                @if steps.iter().any(|step| step.ended_at.is_none()) {
                    li { span.swatch.open aria-hidden="true" {} " still open" }
                }
            }
            (wide("Steps in time", drawing(records, steps, &axis, end_of)))
            @if !pauses.is_empty() {
                p.note {
                    (counted(pauses.len() as u64, "pause", "pauses")) " in which no step ran "
                    @if pauses.len() == 1 { "is" } @else { "are" } " drawn short: " (pauses.join(", ")) "."
                }
            }
            (left_out(more, "older step is", "older steps are", "not drawn."))
        }
    };
    Part { id: "timeline", title: "Steps in time", count: Some(records.steps.all), body }
}

fn length(from: i64, to: i64) -> u64 {
    u64::try_from(to.saturating_sub(from)).unwrap_or(0)
}

fn drawing(records: &LoopRecords, steps: &[Step], axis: &Axis, end_of: impl Fn(&Step) -> i64) -> Markup {
    let mut agents: Vec<&str> = Vec::new();
    for step in steps {
        if !agents.contains(&step.agent.as_str()) {
            agents.push(&step.agent);
        }
    }
    let lane_of =
        |step: &Step| agents.iter().position(|agent| *agent == step.agent).unwrap_or(0).min(LANES - 1);
    let lanes = agents.len().min(LANES);
    let times = by_agent(&records.steps);
    let height = TOP + LANE * lanes as f64 + 12.0;
    let label = |lane: usize| match agents.len().saturating_sub(LANES) {
        more if more > 0 && lane + 1 == LANES => (format!("{} more agents", more + 1), String::new()),
        _ => {
            let agent = agents[lane];
            let took =
                times.iter().find(|(name, _)| *name == agent).map(|(_, times)| *times).unwrap_or_default();
            let took = format!("{} of {}", duration(took.agent), duration(took.wall));
            (plain::fit(&plain::line(agent), CELLS), plain::fit(&took, CELLS))
        }
    };
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="timeline-t timeline-d"
            width=(format!("{WIDTH:.0}")) height=(format!("{height:.0}"))
            viewBox=(format!("0 0 {WIDTH:.0} {height:.0}")) {
            title id="timeline-t" { "Steps in time, a lane for each agent" }
            desc id="timeline-d" {
                (counted(steps.len() as u64, "step", "steps")) " of " (counted(agents.len() as u64, "agent", "agents"))
                " as bars. Below each name: agent time of wall time. The tables of timings have the figures."
            }
            @for (x, text) in axis.marks(96.0) {
                path.line d=(format!("M{x:.1} {:.0}V{height:.0}", TOP - 8.0)) {}
                @if x > RIGHT - 84.0 {
                    text.s text-anchor="end" x=(format!("{RIGHT:.0}")) y="18" { (text) }
                } @else {
                    text.s x=(format!("{x:.1}")) y="18" { (text) }
                }
            }
            @for pause in axis.pauses() {
                rect.pause x=(format!("{:.1}", pause.left)) y=(format!("{:.0}", TOP - 8.0))
                    width=(format!("{:.1}", pause.right - pause.left)) height=(format!("{:.0}", height - TOP + 8.0)) {
                    title { "No step for " (duration(length(pause.from, pause.to))) ", from " (moment(pause.from)) }
                }
            }
            @for lane in 0..lanes {
                @let y = TOP + LANE * lane as f64;
                @let (name, took) = label(lane);
                path.line d=(format!("M0 {y:.0}H{WIDTH:.0}")) {}
                text.b x="14" y=(format!("{:.0}", y + 20.0)) { (name) }
                text.s x="14" y=(format!("{:.0}", y + 37.0)) { (took) }
            }
            @for step in steps {
                (bar(step, axis, TOP + LANE * lane_of(step) as f64 + (LANE - BAR) / 2.0, end_of(step)))
            }
        }
    }
}

fn bar(step: &Step, axis: &Axis, y: f64, end: i64) -> Markup {
    let (left, right) = (axis.x(step.started_at), axis.x(end));
    let right = right.max(left + HAIR);
    let back = step.agent_returned_at.map(|back| axis.x(back).clamp(left, right));
    let rect = |class: &str, left: f64, right: f64| {
        html! {
            rect class=(class) x=(format!("{left:.1}")) y=(format!("{y:.0}"))
                width=(format!("{:.1}", (right - left).max(0.5))) height=(format!("{BAR:.0}")) {}
        }
    };
    html! {
        g {
            title { (about(step, end)) }
            @match (back, step.ended_at) {
                (Some(back), _) => {
                    (rect("agent", left, back.max(left + 0.5)))
                    @if right > back { (rect("rest", back, right)) }
                }
                (None, Some(_)) => { (rect("unknown", left, right)) }
                (None, None) => { (rect("open", left, right)) }
            }
        }
    }
}

fn about(step: &Step, end: i64) -> String {
    let mut text = plain::line(&step.step);
    if let Some(task) = &step.task {
        text = format!("{} · {text}", plain::line(task));
    }
    text = format!("{text} · {} · from {}", plain::line(&step.agent), moment(step.started_at));
    text.push_str(&format!(", {}", duration(length(step.started_at, end))));
    if let Some(back) = step.agent_returned_at {
        text.push_str(&format!(", agent {}", duration(length(step.started_at, back))));
    }
    if let Some(outcome) = &step.outcome {
        text.push_str(&format!(", {}", plain::line(outcome)));
    }
    if step.ended_at.is_none() {
        text.push_str(", still open");
    }
    plain::fit(&text, 300)
}
