//! A plan for people: waves, critical path, and the schedule drawn to scale.

use std::collections::HashSet;
use std::fmt::Write as _;

use serde_json::Value;

/// The widths that a drawing makes sense in.
const WIDTHS: std::ops::RangeInclusive<usize> = 40..=1000;

/// The most characters of a name that are shown.
const NAME: usize = 60;

/// Draws the answer of `loopsmith_plan` in lines of at most `width` characters,
/// within reason.
///
/// In the schedule a node is a bar from its start to its end, `#` on the critical
/// path and `-` off it, with as much of its name as fits.
pub fn text(plan: &Value, width: usize) -> String {
    let width = width.clamp(*WIDTHS.start(), *WIDTHS.end());
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let mut out = String::new();
    // Writing into a string does not fail.
    let _ = writeln!(out, "waves");
    let waves = list(&plan["waves"]);
    for (index, wave) in waves.iter().enumerate() {
        wrapped(&mut out, &format!("{index:>4}  "), list(&wave["nodes"]).iter().map(name), ", ", width);
    }
    if waves.is_empty() {
        out.push_str("  none: the graph has no nodes\n");
        return out;
    }
    let path = list(&plan["critical_path"]);
    let figure = |value: &Value| value.as_f64().map_or("no".to_owned(), figure);
    let _ = writeln!(
        out,
        "\ncritical path, {} of {} in all",
        figure(&plan["critical_path_cost"]),
        figure(&plan["total_cost"])
    );
    wrapped(&mut out, "      ", path.iter().map(name), " > ", width);
    let schedule = &plan["schedule"];
    let makespan = schedule["makespan"].as_f64().unwrap_or(0.0);
    let _ = writeln!(
        out,
        "\nworkers {}, done after {}\nspeedup {}, predicted {}, ceiling {}",
        plan["concurrency"],
        figure(&schedule["makespan"]),
        figure(&schedule["speedup"]),
        figure(&plan["predicted_speedup"]),
        figure(&plan["speedup_ceiling"]),
    );
    let critical: HashSet<&str> = path.iter().filter_map(Value::as_str).collect();
    let lanes = list(&schedule["lanes"]);
    let label = lanes.len().to_string().len().max(2) + 2;
    let columns = width - label;
    for (worker, lane) in lanes.iter().enumerate() {
        let mut row = vec![' '; columns];
        for slot in list(lane) {
            draw(&mut row, &slot, makespan, &critical);
        }
        let row: String = row.into_iter().collect();
        let _ = writeln!(out, "{:>1$}  {2}", worker + 1, label - 2, row.trim_end());
    }
    let _ = writeln!(out, "{:label$}0{:>2$}", "", figure(&schedule["makespan"]), columns - 1);
    if let Some(more) = schedule["more"].as_u64() {
        let _ = writeln!(out, "{more} more nodes are not drawn; --json names all of the waves");
    }
    out
}

/// Draws the bar of one node.
fn draw(row: &mut [char], slot: &Value, makespan: f64, critical: &HashSet<&str>) {
    let columns = row.len();
    let column = |time: &Value| {
        // Between 0 and the width, as no node ends after the makespan.
        let share = time.as_f64().unwrap_or(0.0) / makespan;
        if share.is_finite() { (share * columns as f64).round() as usize } else { 0 }
    };
    let from = column(&slot["start"]).min(columns - 1);
    let to = column(&slot["end"]).clamp(from + 1, columns);
    let id = slot["node"].as_str().unwrap_or_default();
    row[from..to].fill(if critical.contains(id) { '#' } else { '-' });
    row[from] = '|';
    // A bar that has room for a letter shows its name, and what is left of it.
    if to - from > 2 {
        let shown = format!(" {} ", name(&slot["node"]));
        row.iter_mut().take(to).skip(from + 1).zip(shown.chars()).for_each(|(cell, c)| *cell = c);
    }
}

/// A node's name on one line.
fn name(id: &Value) -> String {
    let id = id.as_str().unwrap_or_default();
    let line: String = id.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match line.char_indices().nth(NAME) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_drawing_shows_waves_path_and_bars() {
        let slot = |node: &str, start: f64, end: f64| json!({ "node": node, "start": start, "end": end });
        let plan = json!({
            "waves": [
                { "index": 0, "nodes": ["design"] },
                { "index": 1, "nodes": ["build", "docs", "tests"] },
                { "index": 2, "nodes": ["judge"] },
            ],
            "critical_path": ["design", "build", "judge"],
            "critical_path_cost": 8.0,
            "total_cost": 14.5,
            "concurrency": 3,
            "predicted_speedup": 1.426,
            "speedup_ceiling": 1.8125,
            "schedule": {
                "makespan": 8.0,
                "speedup": 1.8125,
                "lanes": [
                    [slot("design", 0.0, 2.0), slot("build", 2.0, 7.0), slot("judge", 7.0, 8.0)],
                    [slot("tests", 2.0, 5.5)],
                    [slot("docs", 2.0, 5.0)],
                ],
            },
        });
        let drawn = text(&plan, 60);
        let expected = "\
waves
   0  design
   1  build, docs, tests
   2  judge

critical path, 8 of 14.5 in all
      design > build > judge

workers 3, done after 8
speedup 1.812, predicted 1.426, ceiling 1.812
 1  | design #####| build ###########################| judge
 2                | tests -----------------
 3                | docs --------------
    0                                                      8
";
        assert_eq!(drawn, expected, "\n{drawn}");
        for width in 0..200 {
            assert!(text(&plan, width).lines().all(|line| line.chars().count() <= width.max(48)), "{width}");
        }
        assert_eq!(text(&json!({}), 80), "waves\n  none: the graph has no nodes\n");
    }
}
