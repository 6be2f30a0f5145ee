//! A plan for people: waves, critical path, and the schedule drawn to scale.

use super::plan::Plan;
use crate::arguments::excerpt;
use std::fmt::Write;

/// The widths that a drawing makes sense in.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=1000;

/// Draws a plan in lines of at most `width` characters, within reason.
///
/// In the schedule a node is a bar from its start to its end, `#` on the critical
/// path and `-` off it, with as much of its name as fits.
pub fn text(plan: &Plan, width: usize) -> String {
    let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = writeln!(out, "waves");
    for (index, wave) in plan.waves.iter().enumerate() {
        let names = wave.iter().map(|node| name(plan, *node));
        wrapped(&mut out, &format!("{index:>4}  "), names, ", ", width);
    }
    if plan.waves.is_empty() {
        out.push_str("  none: the graph has no nodes\n");
        return out;
    }
    let path = plan.critical_path.iter().map(|node| name(plan, *node));
    let _ = writeln!(
        out,
        "\ncritical path, {} of {} in all",
        figure(plan.critical_path_cost),
        figure(plan.total_cost)
    );
    wrapped(&mut out, "      ", path, " > ", width);
    let schedule = &plan.schedule;
    let ceiling = plan.speedup_ceiling.map_or("no".to_owned(), figure);
    let _ = writeln!(
        out,
        "\nworkers {}, done after {}\nspeedup {}, predicted {}, ceiling {ceiling}",
        plan.concurrency,
        figure(schedule.makespan),
        figure(schedule.speedup),
        figure(plan.predicted_speedup),
    );
    let label = plan.concurrency.to_string().len().max(2) + 2;
    let columns = width - label;
    let mut critical = vec![false; plan.ids.len()];
    plan.critical_path.iter().for_each(|node| critical[*node] = true);
    for (worker, lane) in schedule.lanes.iter().enumerate() {
        let mut row = vec![' '; columns];
        for slot in lane {
            let column = |time: f64| {
                // Between 0 and `columns`, as no slot ends after the makespan.
                ((time / schedule.makespan) * columns as f64).round() as usize
            };
            let from = column(slot.start).min(columns - 1);
            let to = column(slot.end).clamp(from + 1, columns);
            let fill = if critical[slot.node] { '#' } else { '-' };
            row[from..to].fill(fill);
            row[from] = '|';
            // A bar that has room for a letter shows its name, and what is left of it.
            if to - from > 2 {
                let shown = format!(" {} ", name(plan, slot.node));
                row.iter_mut().take(to).skip(from + 1).zip(shown.chars()).for_each(|(cell, c)| *cell = c);
            }
        }
        let row: String = row.into_iter().collect();
        let _ = writeln!(out, "{:>1$}  {2}", worker + 1, label - 2, row.trim_end());
    }
    let end = figure(schedule.makespan);
    let _ = writeln!(out, "{:label$}0{end:>1$}", "", columns - 1);
    out
}

/// A node's name in one line.
fn name(plan: &Plan, node: usize) -> String {
    plan.ids.get(node).map(|id| excerpt(id)).unwrap_or_default()
}

/// A number with at most three decimals.
fn figure(number: f64) -> String {
    let text = format!("{number:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Writes names into lines, each line after the first indented.
fn wrapped(out: &mut String, head: &str, names: impl Iterator<Item = String>, between: &str, width: usize) {
    let indent = head.chars().count();
    let mut column = indent;
    out.push_str(head);
    for (i, name) in names.enumerate() {
        let length = name.chars().count() + between.len();
        if i > 0 {
            out.push_str(between.trim_end());
            if column + length > width {
                let _ = write!(out, "\n{:indent$}", "");
                column = indent;
            } else {
                out.push(' ');
            }
        }
        out.push_str(&name);
        column += length;
    }
    out.push('\n');
}
