//! The section of a loop's page on what its steps took.
//!
//! Closed steps only, so that equal state gives equal bytes; what is in flight
//! reads `running`.

use super::text::{inline, inline_first};
use crate::model::LoopState;
use crate::timing::{Row, duration, report, summary};
use std::fmt::Write;

/// Writes the section's body.
pub(super) fn section(out: &mut String, state: &LoopState) {
    let report = report(state);
    out.push_str(&summary(&report));
    out.push('\n');
    if let Some(step) = &state.open_step {
        out.push_str("\n- running: ");
        inline(out, step.task.as_deref().unwrap_or("the loop"));
        out.push_str(" · ");
        inline(out, &step.agent);
        out.push_str(" · ");
        inline(out, &step.step);
        out.push('\n');
    }
    if report.whole.steps == 0 {
        return;
    }
    rows(out, "By phase", &report.phases);
    rows(out, "By task", &report.tasks);
}

fn rows(out: &mut String, title: &str, rows: &[Row]) {
    let _ = write!(out, "\n### {title}\n\n");
    for row in rows.iter().filter(|row| row.steps > 0) {
        out.push_str("- ");
        inline_first(out, row.key.as_deref().unwrap_or("the loop"));
        let plural = if row.steps == 1 { "" } else { "s" };
        // Writing to a String does not fail.
        let _ = write!(
            out,
            ": {} · {} step{plural} · agents {} · orchestrator {} · unattributed {}",
            duration(row.wall_ms),
            row.steps,
            duration(row.agent_ms),
            duration(row.orchestrator_ms),
            duration(row.unattributed_ms)
        );
        if let Some(clock) = row.clock_ms {
            let _ = write!(out, " · from start to completion {}", duration(clock));
        }
        out.push('\n');
    }
}
