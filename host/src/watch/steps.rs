//! The steps as bars in time, a line for each agent.

use ratatui::text::{Line, Span};

use super::draw::{BOLD, Look, SOFT, pad};
use crate::plain;
use crate::report::{Axis, LoopRecords, Tone, by_agent, duration};

/// The widest column of names.
const NAMES: usize = 22;

/// The fewest cells that a bar chart makes sense in.
const LEAST: usize = 12;

/// What a cell of a bar stands for, the strongest last.
const SIGNS: [char; 5] = [' ', '▒', '░', '█', '▸'];

pub(super) fn lines(records: &LoopRecords, look: Look, width: usize) -> Vec<Line<'static>> {
    let steps = &records.steps.rows;
    if steps.is_empty() {
        return vec![Line::styled("No step was recorded.", SOFT)];
    }
    let agents = by_agent(&records.steps);
    let widest = agents.iter().map(|(agent, _)| plain::width(&plain::line(agent))).max().unwrap_or(0);
    let names = widest.min(NAMES).min(width.saturating_sub(LEAST + 1).max(4));
    let cells = width.saturating_sub(names + 1).max(1);
    let end = |step: &crate::contract::model::Step| step.ended_at.unwrap_or(records.at.max(step.started_at));
    let spans = steps.iter().map(|step| (step.started_at, end(step))).collect();
    let axis = Axis::new(spans, 0.0, cells as f64, 1.0);
    let cell = |at: i64| (axis.x(at).max(0.0) as usize).min(cells - 1);
    let mut lines = vec![marks(&axis, names, cells)];
    for (agent, times) in &agents {
        let mut row = vec![0_usize; cells];
        for step in steps.iter().filter(|step| step.agent == *agent) {
            let (from, to) = (cell(step.started_at), cell(end(step)));
            let back = step.agent_returned_at.map(cell);
            for (place, sign) in row.iter_mut().enumerate().take(to + 1).skip(from) {
                let strength = match (back, step.ended_at) {
                    (Some(back), _) if place <= back => 3,
                    (Some(_), _) => 2,
                    (None, Some(_)) => 1,
                    (None, None) => 4,
                };
                *sign = (*sign).max(strength);
            }
        }
        let bar: String = row.iter().map(|sign| SIGNS[*sign]).collect();
        lines.push(Line::from(vec![
            Span::styled(pad(&plain::fit(&plain::line(agent), names), names + 1), BOLD),
            Span::styled(bar, look.tone(Tone::Active)),
        ]));
        let took = format!("{} of {}", duration(times.agent), duration(times.wall));
        lines.push(Line::styled(plain::fit(&format!("  {took}"), width), SOFT));
    }
    lines.push(Line::default());
    for text in plain::wrap("█ agent at work  ░ until the step ended  ▒ no return  ▸ still open", width)
    {
        lines.push(Line::styled(text, SOFT));
    }
    let pauses = axis.pauses().count();
    if pauses > 0 {
        lines.push(Line::styled(plain::fit(&format!("pauses drawn as one cell: {pauses}"), width), SOFT));
    }
    if records.steps.left_out() > 0 {
        lines.push(Line::styled(format!("{} older steps are not shown", records.steps.left_out()), SOFT));
    }
    lines
}

/// The times above the bars.
fn marks(axis: &Axis, names: usize, cells: usize) -> Line<'static> {
    let mut text = String::new();
    for (x, label) in axis.marks(13.0) {
        let at = x as usize;
        if at + plain::width(&label) <= cells && at >= plain::width(&text) {
            text = pad(&text, at) + &label;
        }
    }
    Line::styled(format!("{}{text}", " ".repeat(names + 1)), SOFT)
}
