//! How an answer is written.
//!
//! A reply goes out twice: as text, and as structured content for clients that show
//! only that. `rmcp` wants the second as a tree of values, and to grow a large one, to
//! write it out and to fell it takes as long as the call. So a result says only that its
//! text is meant (see [`the_text`]), and the text is written again as it is.

use std::borrow::Cow;

use rmcp::model::{ContentBlock, ErrorData, ServerResult};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

/// The structured content of a result that has its text there once more.
///
/// An object, because `rmcp` takes whatever is none away from older clients; and an
/// empty one, because a text can say nothing less.
pub(super) fn the_text() -> Value {
    Value::Object(Map::new())
}

/// An answer on its way out.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    jsonrpc: &'static str,
    id: &'a Value,
    #[serde(flatten)]
    said: Said<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Said<'a> {
    Error(&'a ErrorData),
    Result(Written<'a>),
}

#[derive(Serialize)]
struct Written<'a> {
    #[serde(flatten)]
    result: &'a ServerResult,
    #[serde(rename = "structuredContent", skip_serializing_if = "Option::is_none")]
    structured: Option<Cow<'a, RawValue>>,
}

impl<'a> Answer<'a> {
    /// What came of a request.
    pub(super) fn result(id: &'a Value, result: &'a mut ServerResult) -> Self {
        let repeats = match result {
            ServerResult::CallToolResult(call) => {
                call.structured_content.take_if(|content| *content == the_text()).is_some()
            }
            _ => false,
        };
        let result = &*result;
        let text = match result {
            ServerResult::CallToolResult(call) if repeats => {
                call.content.first().and_then(ContentBlock::as_text)
            }
            _ => None,
        };
        let structured = text.and_then(|text| {
            let object = object(&text.text);
            if object.is_none() {
                // What was asked for is done by now: the client gets the text all the same.
                tracing::error!(bytes = text.text.len(), "a reply is not a JSON object");
            }
            object
        });
        Self { jsonrpc: "2.0", id, said: Said::Result(Written { result, structured }) }
    }

    /// Why a request came to nothing.
    pub(super) fn error(id: &'a Value, error: &'a ErrorData) -> Self {
        Self { jsonrpc: "2.0", id, said: Said::Error(error) }
    }
}

/// The text as a value on one line, if it is an object.
fn object(text: &str) -> Option<Cow<'_, RawValue>> {
    let value: &RawValue = serde_json::from_str(text).ok()?;
    if !value.get().starts_with('{') {
        return None;
    }
    // A line's end would end the answer.
    if value.get().contains(['\n', '\r']) {
        let value: Value = serde_json::from_str(text).ok()?;
        return to_raw_value(&value).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(value))
}

#[cfg(test)]
mod tests {
    use rmcp::model::{CallToolResult, EmptyObject};
    use serde_json::json;

    use super::*;

    fn written(text: &str, structured: Option<Value>) -> String {
        let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
        result.structured_content = structured;
        let mut result = ServerResult::CallToolResult(result);
        serde_json::to_string(&Answer::result(&json!(7), &mut result)).expect("JSON")
    }

    #[test]
    fn a_text_is_written_again_where_it_is_an_object() {
        let cases = [
            (r#"{"b":1,"a":[1.50,"\u00e4"]}"#, Some(r#"{"b":1,"a":[1.50,"\u00e4"]}"#)),
            (" {} ", Some("{}")),
            ("{\n  \"a\": \"x\\ny\"\r\n}", Some(r#"{"a":"x\ny"}"#)),
            ("[1]", None),
            ("plain", None),
            (r#"{"a":1} more"#, None),
            ("", None),
        ];
        for (text, again) in cases {
            let line = written(text, Some(the_text()));
            let again = again.map(|value| format!(r#","structuredContent":{value}"#)).unwrap_or_default();
            let text = json!(text);
            let content = format!(r#"[{{"type":"text","text":{text}}}]"#);
            assert_eq!(
                line,
                format!(
                    r#"{{"jsonrpc":"2.0","id":7,"result":{{"resultType":"complete","content":{content},"isError":false{again}}}}}"#
                )
            );
        }
    }

    #[test]
    fn other_content_and_other_results_stay_as_they_are() {
        let line = written("text", Some(json!({ "a": 1 })));
        let answer: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(answer["result"]["structuredContent"], json!({ "a": 1 }));
        assert!(!written("{}", None).contains("structuredContent"));
        let mut empty = ServerResult::EmptyResult(EmptyObject {});
        let line = serde_json::to_string(&Answer::result(&json!("x"), &mut empty)).expect("JSON");
        assert_eq!(line, r#"{"jsonrpc":"2.0","id":"x","result":{}}"#);
    }
}
