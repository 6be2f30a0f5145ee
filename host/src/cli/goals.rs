//! Plans and verdicts of a goal configuration.

use std::path::Path;

use serde_json::{Value, json};

use crate::service::Service;

use super::answer::Answer;
use super::gantt;
use super::page::{Column, Page, Table, cell};
use super::tools::{arguments, ask, entries};

/// The width of a drawing that goes to no terminal.
const WIDTH: usize = 100;

/// Draws the graph of a configuration.
///
/// # Errors
///
/// What the tool said when it refused.
pub fn plan(service: &Service, file: &Path) -> Result<Answer, String> {
    let path = config_path(service, file);
    let answer = ask(service, "loopsmith_plan", arguments(json!({ "config_path": path })))?;
    let text = gantt::text(&answer, super::answer::columns().unwrap_or(WIDTH));
    Ok(Answer::text(answer, text))
}

/// Rules on a target; the answer is well when it is satisfied.
///
/// # Errors
///
/// What the tool said when it refused.
pub fn gate(
    service: &Service,
    file: &Path,
    target: &str,
    workdir: Option<&str>,
    run: Option<&str>,
) -> Result<Answer, String> {
    let asked = json!({
        "config_path": config_path(service, file),
        "target": target,
        "workdir": workdir,
        "run_id": run,
    });
    let answer = ask(service, "loopsmith_gate_evaluate", arguments(asked))?;
    let satisfied = answer["satisfied"] == true;
    let mut table = Table::new(&[
        Column::Whole("CHECK"),
        Column::Whole("OUTCOME"),
        Column::Whole("SOURCE"),
        Column::Text("EVIDENCE"),
    ]);
    for check in entries(&answer, "checks") {
        let name = match &check["blocking"] {
            Value::Bool(false) => format!("{} (not blocking)", cell(&check["name"])),
            _ => cell(&check["name"]),
        };
        table.row([name, cell(&check["outcome"]), cell(&check["source"]), cell(&check["evidence"])]);
    }
    let stands = if satisfied { "satisfied" } else { "not satisfied" };
    let page =
        Page::of(format!("{target} is {stands}: {}", cell(&answer["reason"]))).table(table, "no checks");
    Ok(Answer::page(answer, page).well(satisfied))
}

/// The file as the tools take it: below the project root, if it is there.
fn config_path(service: &Service, file: &Path) -> String {
    let below = || {
        let root = Path::new(service.root()?);
        let file = std::fs::canonicalize(file).ok()?;
        Some(file.strip_prefix(root).ok()?.to_str()?.to_owned())
    };
    below().unwrap_or_else(|| file.display().to_string())
}
