//! Answers: rows as JSON, and the bound on their size.
//!
//! Times are RFC 3339 UTC with milliseconds; field names are those of the
//! records. Rows are shown whole (unset fields null) where the call asks for
//! the state.

use crate::model::{Event, Loop, Phase, Task};
use crate::render::timestamp;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// How long an answer may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bound {
    /// Characters of the whole answer.
    pub answer: usize,
    /// Characters of one text in it; the rest is counted.
    pub text: usize,
}

/// The bound of most answers.
pub const WIDE: Bound = Bound { answer: 40_000, text: 2_000 };

/// The bound of answers that an agent reads at the start of a session, when its
/// context is scarce.
pub const NARROW: Bound = Bound { answer: 10_000, text: 240 };

/// Lists whose newest entry comes last; they give way at their beginning.
const NEWEST_LAST: &[&str] = &["recentEvents"];

/// A JSON object under construction, in the order it is shown.
#[derive(Clone, Debug)]
pub struct Reply {
    fields: Map<String, Value>,
    bound: Bound,
    /// A text that is shown as far as there is room: its key and what is left of it.
    text: Option<(String, String)>,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply { fields: Map::new(), bound: WIDE, text: None }
    }
}

impl Reply {
    /// An answer without fields.
    pub fn new() -> Reply {
        Reply::default()
    }

    /// Sets how long the answer may be.
    pub fn within(self, bound: Bound) -> Reply {
        Reply { bound, ..self }
    }

    /// The fields so far.
    pub fn into_value(self) -> Value {
        Value::Object(self.fields)
    }

    /// Adds a field.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Reply {
        self.fields.insert(key.to_owned(), value.into());
        self
    }

    /// Adds a field when there is a value.
    pub fn with_some(self, key: &str, value: Option<impl Into<Value>>) -> Reply {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }

    /// Adds a field when it is true.
    pub fn flag(self, key: &str, on: bool) -> Reply {
        if on { self.with(key, true) } else { self }
    }

    /// Adds a list from its `offset`th entry on, at most `limit` of it, and
    /// `more` with the number of those that come after.
    pub fn page(self, key: &str, items: Vec<Value>, offset: usize, limit: Option<usize>) -> Reply {
        let total = items.len();
        let shown: Vec<_> = items.into_iter().skip(offset).take(limit.unwrap_or(usize::MAX)).collect();
        let more = total.saturating_sub(offset).saturating_sub(shown.len());
        self.with(key, shown).with_some("more", (more > 0).then_some(more))
    }

    /// Adds a text from its `offset`th character on, as much of it as the answer has
    /// room for, and `more` with the number of characters that come after.
    pub fn text(self, key: &str, text: String, offset: u32) -> Reply {
        let start = text.char_indices().nth(offset as usize).map_or(text.len(), |(at, _)| at);
        Reply { text: Some((key.to_owned(), text[start..].to_owned())), ..self }
    }

    /// Adds a text as [`Reply::text`] does, or null where there is none.
    pub fn text_or_null(self, key: &str, text: Option<String>) -> Reply {
        match text {
            Some(text) => self.text(key, text, 0),
            None => self.with(key, Value::Null),
        }
    }

    /// Returns the answer as compact JSON within its bound: long texts end in a
    /// count of what is left out, and the longest list gives way until all fits,
    /// with `more` counting what it lost.
    pub fn finish(self, ignored: Vec<String>) -> String {
        let Reply { mut fields, bound, text } = self;
        if !ignored.is_empty() {
            fields.insert("ignored".to_owned(), json!(ignored));
        }
        let mut value = Value::Object(fields);
        shorten_texts(&mut value, bound.text);
        if let (Some((key, text)), Value::Object(fields)) = (text, &mut value) {
            let rest = json_text(fields).chars().count() + key.len();
            let (shown, more) = cut(text, bound.answer.saturating_sub(rest));
            fields.insert(key, Value::String(shown));
            if more > 0 {
                fields.insert("more".to_owned(), json!(more));
            }
        }
        let text = json_text(&value);
        let length = text.chars().count();
        if length <= bound.answer { text } else { shorten_lists(value, length, bound.answer) }
    }
}

/// A value as compact JSON. Printing a [`Value`] gives the same through a formatter,
/// which takes several times as long.
pub fn json_text(value: &impl Serialize) -> String {
    // Values have text as keys, so there is nothing that could fail.
    serde_json::to_string(value).unwrap_or_default()
}

/// The part of a text that takes at most `room` characters as JSON, and how many
/// characters are left of it.
fn cut(mut text: String, room: usize) -> (String, usize) {
    // Quotes, colon, comma and the `more` field.
    const AROUND: usize = 40;
    let mut room = room.saturating_sub(AROUND);
    let end = text.char_indices().find(|(_, c)| {
        let takes = match c {
            '"' | '\\' | '\n' | '\r' | '\t' | '\u{8}' | '\u{c}' => 2,
            '\0'..='\u{1f}' => 6,
            _ => 1,
        };
        let fits = takes <= room;
        room = room.saturating_sub(takes);
        !fits
    });
    let Some((end, _)) = end else { return (text, 0) };
    let more = text[end..].chars().count();
    text.truncate(end);
    (text, more)
}

fn shorten_texts(value: &mut Value, shown: usize) {
    match value {
        Value::String(s) if s.len() > shown => {
            if let Some((end, _)) = s.char_indices().nth(shown) {
                let left = s[end..].chars().count();
                s.truncate(end);
                s.push_str(&format!("… ({left} more characters)"));
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|v| shorten_texts(v, shown)),
        Value::Object(map) => map.values_mut().for_each(|v| shorten_texts(v, shown)),
        _ => {}
    }
}

/// Takes entries off whichever list is the longest until the answer fits.
fn shorten_lists(mut value: Value, length: usize, max: usize) -> String {
    // Room for the `more` field itself.
    const MORE: usize = 24;
    struct List {
        key: String,
        /// The lengths of the entries, the one that goes first at the end.
        entries: Vec<usize>,
        length: usize,
        dropped: usize,
    }
    let Some(map) = value.as_object_mut() else { return json_text(&value) };
    let mut lists: Vec<List> = map
        .iter()
        .filter_map(|(key, v)| v.as_array().map(|items| (key, items)))
        .map(|(key, items)| {
            let mut entries: Vec<_> = items.iter().map(|v| json_text(v).chars().count() + 1).collect();
            if NEWEST_LAST.contains(&key.as_str()) {
                entries.reverse();
            }
            List { key: key.clone(), length: entries.iter().sum(), entries, dropped: 0 }
        })
        .collect();
    let mut over = (length + MORE).saturating_sub(max);
    while over > 0 {
        let longest = lists.iter_mut().max_by_key(|list| list.length);
        let Some((list, entry)) = longest.and_then(|list| list.entries.pop().map(|entry| (list, entry)))
        else {
            break;
        };
        list.length -= entry;
        list.dropped += 1;
        over = over.saturating_sub(entry);
    }
    let mut more = map.get("more").and_then(Value::as_u64).unwrap_or(0);
    for list in lists {
        more += list.dropped as u64;
        if let Some(Value::Array(items)) = map.get_mut(&list.key) {
            if NEWEST_LAST.contains(&list.key.as_str()) {
                items.drain(..list.dropped);
            } else {
                items.truncate(items.len() - list.dropped);
            }
        }
    }
    map.insert("more".to_owned(), json!(more));
    json_text(&value)
}

fn time(ms: Option<i64>) -> Option<String> {
    ms.map(timestamp)
}

/// A loop's row with every field, unset ones null.
pub fn loop_row(l: &Loop) -> Value {
    let now = l.now.as_ref();
    let block = l.blocked.as_ref();
    json!({
        "id": l.id,
        "slug": l.slug,
        "title": l.title,
        "goal": l.goal,
        "mode": l.mode,
        "status": l.status,
        "phase": l.phase,
        "project_root": l.project_root,
        "project_key": l.project_key,
        "default_branch": l.default_branch,
        "branch_mode": l.branch_mode,
        "feature_branch": l.feature_branch,
        "legal": l.legal,
        "memory_harvest": l.memory_harvest,
        "docs_sync": l.docs_sync,
        "deferred_gate": l.deferred_gate,
        "qa_report": l.qa_report,
        "f_unresolved_pr": l.f_unresolved_pr,
        "f_security_deferred": l.f_security_deferred,
        "total_failed_gates": l.total_failed_gates,
        "splits_done": l.splits_done,
        "qa_rounds": l.qa_rounds,
        "awaiting_user": l.awaiting_user,
        "blocked_op": block.map(|b| &b.op),
        "blocked_task": block.map(|b| &b.task),
        "blocked_reason": block.map(|b| &b.reason),
        "now_task": now.and_then(|n| n.task.as_ref()),
        "now_agent": now.map(|n| &n.agent),
        "now_step": now.map(|n| &n.step),
        "now_since": time(now.map(|n| n.since)),
        "goal_config": l.goal_config,
        "goal_config_sha256": l.goal_config_sha256,
        "mcp_version": l.mcp_version,
        "created_at": timestamp(l.created_at),
        "updated_at": timestamp(l.updated_at),
        "finished_at": time(l.finished_at),
    })
}

/// A task's row with every field, unset ones null.
pub fn task_row(t: &Task) -> Value {
    json!({
        "taskid": t.taskid,
        "title": t.title,
        "description": t.description,
        "kind": t.kind,
        "tech": t.tech,
        "status": t.status,
        "depends_on": t.depends_on,
        "issue": t.issue,
        "pr": t.pr,
        "branch": t.branch,
        "last_evidence": t.last_evidence,
        "retries": t.retries,
        "security_rounds": t.security_rounds,
        "review_rounds": t.review_rounds,
        "superseded_by": (!t.superseded_by.is_empty()).then_some(&t.superseded_by),
        "created_at": timestamp(t.created_at),
        "updated_at": timestamp(t.updated_at),
        "completed_at": time(t.completed_at),
    })
}

/// A rung of the ladder.
pub fn phase_row(p: &Phase) -> Value {
    json!({ "phase": p.phase, "status": p.status, "updated_at": timestamp(p.updated_at) })
}

/// An event: the first nine fields always, the others where set.
pub fn event_row(e: &Event) -> Reply {
    Reply::new()
        .with("seq", e.seq)
        .with("at", timestamp(e.at))
        .with("event", e.event.clone())
        .with("phase", e.phase.clone())
        .with("task", e.task.clone())
        .with("from", e.from.clone())
        .with("to", e.to.clone())
        .with("agent", e.agent.clone())
        .with("note", e.note.clone())
        .with_some("evidence", e.evidence.clone())
        .with_some("issue", e.issue.clone())
        .with_some("pr", e.pr.clone())
        .with_some("branch", e.branch.clone())
}
