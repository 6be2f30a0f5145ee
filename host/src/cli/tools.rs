//! Calling tools as a client would, and putting together what they answer in parts.

use serde_json::{Map, Value, json};

use crate::cancel::Cancel;
use crate::contract::tools;
use crate::mcp::{Backend, Reply};
use crate::service::Service;

use super::answer::Answer;
use super::page::{Column, Page, Table};

/// Arguments of a call, those that are null left out.
pub fn arguments(all: Value) -> Map<String, Value> {
    match all {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

/// Calls a tool.
///
/// # Errors
///
/// What the tool said when it refused.
pub fn ask(service: &Service, tool: &str, arguments: Map<String, Value>) -> Result<Value, String> {
    match service.call(tool, arguments, &Cancel::default()) {
        Reply::Done(answer) => {
            serde_json::from_str(&answer).map_err(|e| format!("{tool} answered with no JSON: {e}"))
        }
        Reply::Refused(why) => Err(why),
        Reply::UnknownTool => Err(format!(
            "{} has no tool {tool}, which this command asks; `tools` lists those it has",
            service.logic_name()
        )),
        Reply::Cancelled => Err(format!("{tool} was cancelled")),
    }
}

/// The tools of the logic.
pub fn list(service: &Service) -> Result<Answer, String> {
    let tools = service.published_tools().map_err(|error| error.to_string())?;
    let mut table = Table::new(&[
        Column::Whole("TOOL"),
        Column::Whole("LIST"),
        Column::Whole("CHANGES"),
        Column::Text("TITLE"),
    ]);
    let mut rows = Vec::new();
    for tool in tools {
        let profile = match tool.profile {
            tools::Profile::Core => "core",
            tools::Profile::Standard => "standard",
            tools::Profile::All => "all",
        };
        let changes = if tool.read_only {
            "nothing"
        } else if tool.destructive {
            "takes away"
        } else {
            "adds"
        };
        table.row([tool.name.clone(), profile.to_owned(), changes.to_owned(), tool.title.clone()]);
        rows.push(json!({
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "profile": profile,
            "read_only": tool.read_only,
            "destructive": tool.destructive,
            "idempotent": tool.idempotent,
        }));
    }
    let logic = service.logic_name();
    let page = Page::default().table(table, &format!("{logic} has no tools."));
    Ok(Answer::page(json!({ "logic": logic, "tools": rows }), page))
}

fn more(answer: &Value) -> u64 {
    answer["more"].as_u64().unwrap_or(0)
}

fn without_more(mut answer: Value) -> Value {
    if let Some(fields) = answer.as_object_mut() {
        fields.shift_remove("more");
    }
    answer
}

/// Calls a tool as often as it takes for the list `key` to be whole.
///
/// # Errors
///
/// As for [`ask`].
pub fn ask_for_list(
    service: &Service,
    tool: &str,
    arguments: Map<String, Value>,
    key: &str,
) -> Result<Value, String> {
    let mut answer = ask(service, tool, arguments.clone())?;
    while more(&answer) > 0 {
        let shown = answer[key].as_array().map_or(0, Vec::len);
        let mut arguments = arguments.clone();
        arguments.insert("offset".to_owned(), shown.into());
        let mut next = ask(service, tool, arguments)?;
        let left = more(&next);
        let Some(Value::Array(entries)) = next.get_mut(key).map(Value::take) else { break };
        if entries.is_empty() {
            // What is counted is in no list that can be asked for.
            return Ok(answer);
        }
        if let Some(Value::Array(list)) = answer.get_mut(key) {
            list.extend(entries);
        }
        answer["more"] = left.into();
    }
    Ok(without_more(answer))
}

/// Calls a tool as often as it takes for the text `content` to be whole.
///
/// # Errors
///
/// As for [`ask`]; and when the text changed between two calls.
pub fn ask_for_text(
    service: &Service,
    tool: &str,
    mut arguments: Map<String, Value>,
) -> Result<Value, String> {
    let mut answer = ask(service, tool, arguments.clone())?;
    if answer["rev"].is_u64() {
        arguments.insert("rev".to_owned(), answer["rev"].clone());
    }
    let length = |answer: &Value| answer["content"].as_str().map_or(0, |text| text.chars().count() as u64);
    while more(&answer) > 0 {
        let shown = length(&answer);
        arguments.insert("offset".to_owned(), shown.into());
        let next = ask(service, tool, arguments.clone())?;
        let same =
            length(&next) + more(&next) == more(&answer) && next["frontmatter"] == answer["frontmatter"];
        let (Value::String(text), Some(rest)) = (&mut answer["content"], next["content"].as_str()) else {
            return Err(format!("{tool} answered without content"));
        };
        if !same || rest.is_empty() {
            return Err("the file changed while it was read; run the command again".to_owned());
        }
        text.push_str(rest);
        answer["more"] = more(&next).into();
    }
    Ok(without_more(answer))
}

/// The entries of a list in an answer.
pub fn entries<'a>(answer: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    answer[key].as_array().into_iter().flatten()
}

/// Adds what a change could not do after it was stored.
pub fn with_notes(mut page: Page, answer: &Value) -> Page {
    for (key, what) in [("mirror", "the views were not written"), ("follow_up", "what follows was not done")]
    {
        if let Some(why) = answer[key].as_str().and_then(|text| text.strip_prefix("failed: ")) {
            page = page.line(format!("Stored, but {what}: {why}"));
        }
    }
    page
}
