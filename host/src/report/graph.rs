//! The dependencies as a drawing: a column for each wave.

use maud::{Markup, html};

use super::html::{Part, counted, grouped, left_out, name, wide};
use super::layers::{Layout, Sizes, layout};
use super::records::LoopRecords;
use super::tone::tone;
use super::waves::waves;
use crate::contract::model::Task;
use crate::plain;

/// The most tasks that are drawn.
const NODES: usize = 300;

/// The most dependencies that are drawn.
const EDGES: usize = 2_000;

/// The most tasks without dependencies that are named.
const ALONE: usize = 300;

const SIZES: Sizes =
    Sizes { node_width: 204.0, node_height: 46.0, column_gap: 56.0, row_gap: 12.0, margin: 20.0 };

/// Room for the number of the wave above each column.
const HEAD: f64 = 26.0;

/// How many cells of the drawing's type fit into a node.
const CELLS: usize = 25;

/// Nothing where no task depends on another.
pub(super) fn part(records: &LoopRecords) -> Option<Part> {
    let tasks = &records.state.tasks;
    let waves = waves(tasks);
    let mut tied = vec![false; tasks.len()];
    for (place, needs) in waves.needs.iter().enumerate() {
        for need in needs {
            (tied[place], tied[*need]) = (true, true);
        }
    }
    if !tied.contains(&true) {
        return None;
    }
    // The first waves whole, as far as there is room.
    let mut drawn: Vec<usize> = (0..tasks.len()).filter(|place| tied[*place]).collect();
    drawn.sort_by_key(|place| waves.of[*place]);
    let all = drawn.len();
    drawn.truncate(NODES);
    let mut at = vec![usize::MAX; tasks.len()];
    drawn.iter().enumerate().for_each(|(index, place)| at[*place] = index);
    let mut edges = Vec::new();
    let mut more_edges = 0_u64;
    for place in &drawn {
        for need in &waves.needs[*place] {
            // Tasks in a circle are of one wave.
            if at[*need] == usize::MAX || waves.of[*need] >= waves.of[*place] || edges.len() >= EDGES {
                more_edges += 1;
            } else {
                edges.push((at[*need], at[*place]));
            }
        }
    }
    let of: Vec<usize> = drawn.iter().map(|place| waves.of[*place]).collect();
    let shown: Vec<&Task> = drawn.iter().map(|place| &tasks[*place]).collect();
    let alone: Vec<&Task> =
        tasks.iter().zip(&tied).filter(|(_, tied)| !**tied).map(|(task, _)| task).collect();
    let placed = layout(&of, &edges, SIZES);
    let body = html! {
        p.soft {
            (counted(all as u64, "task", "tasks")) " in " (counted(waves.count as u64, "wave", "waves"))
            ": each depends on tasks to its left."
        }
        (wide("Dependency graph", drawing(&shown, &placed, edges.len())))
        (left_out((all - shown.len()) as u64, "further task", "further tasks", "are not drawn."))
        (left_out(more_edges, "dependency is", "dependencies are", "not drawn."))
        (left_out(waves.unknown as u64, "dependency names", "dependencies name", "a task that the loop does not have."))
        @if !alone.is_empty() {
            p.alone {
                (counted(alone.len() as u64, "task depends", "tasks depend")) " on nothing and nothing on "
                @if alone.len() == 1 { "it: " } @else { "them: " }
                @for (place, task) in alone.iter().take(ALONE).enumerate() {
                    @if place > 0 { ", " }
                    span.id { (name(&task.taskid)) }
                }
                @if alone.len() > ALONE { " and " (grouped((alone.len() - ALONE) as u64)) " more" }
                "."
            }
        }
    };
    Some(Part { id: "graph", title: "Dependencies", count: None, body })
}

fn drawing(tasks: &[&Task], placed: &Layout, edges: usize) -> Markup {
    let (width, height) = (placed.width, placed.height + HEAD);
    html! {
        svg xmlns="http://www.w3.org/2000/svg" role="img" aria-labelledby="graph-t graph-d"
            width=(format!("{width:.0}")) height=(format!("{height:.0}"))
            viewBox=(format!("0 0 {width:.0} {height:.0}")) {
            title id="graph-t" { "Dependency graph" }
            desc id="graph-d" {
                (counted(tasks.len() as u64, "task", "tasks")) " as boxes, " (counted(edges as u64, "dependency", "dependencies"))
                " as lines, in columns by wave. The cards above name the same dependencies."
            }
            defs {
                marker id="tip" viewBox="0 0 8 8" refX="7.5" refY="4" markerWidth="7" markerHeight="7" orient="auto" {
                    path.tip d="M0 0 8 4 0 8z" {}
                }
            }
            @for (wave, left) in placed.columns.iter().enumerate() {
                text.s x=(format!("{left:.0}")) y="20" { "wave " (wave + 1) }
            }
            g transform=(format!("translate(0 {HEAD:.0})")) {
                @for path in &placed.edges { path.edge d=(path) marker-end="url(#tip)" {} }
                @for (task, (x, y)) in tasks.iter().zip(&placed.nodes) { (node(task, *x, *y)) }
            }
        }
    }
}

fn node(task: &Task, x: f64, y: f64) -> Markup {
    let look = tone(&task.status);
    let status = plain::fit(&plain::line(&task.status), 17);
    // A sign and two gaps beside it.
    let id = plain::fit(&plain::line(&task.taskid), CELLS.saturating_sub(plain::width(&status) + 3));
    let title = plain::fit(&plain::line(&task.title), CELLS);
    let top = y - SIZES.node_height / 2.0;
    html! {
        g {
            title { (name_line(task)) }
            rect class={ "node " (look.name()) } x=(format!("{x:.0}")) y=(format!("{top:.1}"))
                width=(format!("{:.0}", SIZES.node_width)) height=(format!("{:.0}", SIZES.node_height)) rx="8" {}
            text.b x=(format!("{:.0}", x + 10.0)) y=(format!("{:.1}", top + 19.0)) { (id) }
            text class=(look.name()) text-anchor="end" x=(format!("{:.0}", x + SIZES.node_width - 10.0))
                y=(format!("{:.1}", top + 19.0)) { (look.sign()) " " (status) }
            text x=(format!("{:.0}", x + 10.0)) y=(format!("{:.1}", top + 37.0)) { (title) }
        }
    }
}

fn name_line(task: &Task) -> String {
    plain::fit(&plain::line(&format!("{} ({}): {}", task.taskid, task.status, task.title)), 300)
}
