//! Recovery as a few plain lines, for a session that begins or is compacted.

use serde_json::Value;

use crate::report::tone;

/// Turns the answer of `loop_recover` into text of at most `max_bytes` bytes, the
/// most important line first. Lines that do not fit are left out from the end.
pub fn text(answer: &Value, max_bytes: usize) -> String {
    let lines = if answer["recovered"] == true { standing(answer) } else { candidates(answer) };
    let mut out = String::new();
    for line in lines {
        if out.len() + line.len() < max_bytes {
            out.push_str(&line);
            out.push('\n');
        } else {
            // A first line that is too long says more cut than left out.
            if out.is_empty() {
                out.push_str(&line[..line.floor_char_boundary(max_bytes.saturating_sub(1))]);
                out.push('\n');
            }
            break;
        }
    }
    out
}

/// A text on one line.
fn line(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn items<'a>(answer: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    answer[key].as_array().into_iter().flatten()
}

fn standing(answer: &Value) -> Vec<String> {
    let (l, resume) = (&answer["loop"], &answer["resume"]);
    let name = if l["title"].is_string() { &l["title"] } else { &l["goal"] };
    let mut lines = vec![
        format!(
            "Loop {} ({}, phase {}): {}",
            line(&l["slug"]),
            line(&l["status"]),
            line(&l["phase"]),
            line(name)
        ),
        format!("Next: {}", line(&resume["nextAction"])),
        format!("Why: {}", line(&resume["why"])),
    ];
    lines.extend(items(answer, "warnings").map(|w| format!("Warning: {}", line(w))));
    let must = items(answer, "context").filter(|e| e["priority"] == "must");
    lines.extend(must.map(|e| {
        let missing = if e["exists"] == true { "" } else { " (missing)" };
        format!("Read first: {}{missing}", line(&e["path"]))
    }));
    let open: Vec<_> = items(answer, "tasks")
        .filter(|t| !tone(t["status"].as_str().unwrap_or_default()).is_closed())
        .map(|t| format!("{} {}", line(&t["taskid"]), line(&t["status"])))
        .collect();
    if !open.is_empty() {
        lines.push(format!("Open tasks: {}", open.join(", ")));
    }
    lines.push("Call the tool loop_recover for the whole picture before you do anything.".to_owned());
    lines.extend(items(answer, "protocol").map(|rule| format!("- {}", line(rule))));
    lines
}

fn candidates(answer: &Value) -> Vec<String> {
    let mut lines =
        vec![format!("No loop was recovered ({}): {}", line(&answer["reason"]), line(&answer["guidance"]))];
    lines.extend(items(answer, "candidates").map(|c| {
        format!(
            "- {} ({}, phase {}): {}",
            line(&c["slug"]),
            line(&c["status"]),
            line(&c["phase"]),
            line(&c["title"])
        )
    }));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_does_not_fit_is_left_out_from_the_end() {
        let answer = json!({
            "recovered": true,
            "loop": { "slug": "demo", "status": "active", "phase": "build", "goal": "a\nb" },
            "resume": { "nextAction": "do it", "why": "because" },
            "warnings": ["w"],
            "context": [{ "path": "p.md", "priority": "must", "exists": false }],
            "tasks": [{ "taskid": "T1", "status": "complete" }, { "taskid": "T2", "status": "pending" }],
            "protocol": ["a rule"],
        });
        let whole = text(&answer, 2_000);
        assert_eq!(
            whole,
            "Loop demo (active, phase build): a b\nNext: do it\nWhy: because\nWarning: w\n\
             Read first: p.md (missing)\nOpen tasks: T2 pending\n\
             Call the tool loop_recover for the whole picture before you do anything.\n- a rule\n"
        );
        for max in 0..whole.len() {
            assert!(text(&answer, max).len() <= max.max(1), "{max}");
        }
    }
}
