//! One line in, one message or one refusal out. Pure: no streams, no state.
//!
//! `rmcp` would leave some malformed requests without an answer, or answer them
//! without their id; here every line that could be a request is either turned
//! into a well-formed one or refused with the best id that it shows.

use std::cell::RefCell;
use std::fmt;

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientRequest, CustomRequest, ErrorCode, ErrorData, GetMeta,
    MetaObject, ProtocolVersion, RequestMetaObject,
};
use serde::Deserialize;
use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value, json};

/// The `_meta` key by which a request speaks for itself, without a handshake.
pub(super) const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";

/// The newest version that opens with `initialize`; offered to whoever asks for
/// one that is not known. Later ones have no `ping` either.
pub(super) const NEWEST_WITH_INITIALIZE: ProtocolVersion = ProtocolVersion::V_2025_11_25;

pub(super) const INITIALIZE: &str = "initialize";
const DISCOVER: &str = "server/discover";
const PING: &str = "ping";
const LIST: &str = "tools/list";
const CALL: &str = "tools/call";

/// What a line turned out to be.
#[derive(Debug)]
pub(super) enum Incoming {
    /// A request that the handler can answer.
    Request { id: Value, request: Box<ClientRequest> },
    /// The client no longer waits for the answer to `id`.
    Cancelled { id: Value, reason: Option<String> },
    /// Nothing that wants an answer; says what it was, for the log.
    Ignored(&'static str),
    /// The client gets this error now.
    Refused { id: Value, error: ErrorData },
}

/// Reads a line, given whether an `initialize` came before it.
pub(super) fn read(line: &[u8], initialized: bool) -> Incoming {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Incoming::Ignored("blank line");
    }
    let (message, duplicate) = match parse(line) {
        Ok(parsed) => parsed,
        Err(error) => {
            return refuse(Value::Null, ErrorCode::PARSE_ERROR, format!("not JSON: {error}"));
        }
    };
    let Value::Object(mut message) = message else {
        let text = "a message is one JSON object; batches are not supported";
        return refuse(Value::Null, ErrorCode::INVALID_REQUEST, text);
    };
    let sent_id = message.remove("id");
    let id = sent_id.as_ref().and_then(readable_id);
    let method = match message.remove("method") {
        Some(Value::String(method)) => method,
        None if message.contains_key("result") || message.contains_key("error") => {
            return Incoming::Ignored("response to a request that was never sent");
        }
        _ => {
            let text = "a request has a `method`, which is a string";
            return refuse(id.unwrap_or_default(), ErrorCode::INVALID_REQUEST, text);
        }
    };
    if sent_id.is_none() {
        return notification(&method, &message);
    }
    let Some(id) = id else {
        let text = "the `id` of a request is a string or a whole number";
        return refuse(Value::Null, ErrorCode::INVALID_REQUEST, text);
    };
    match request(method, message, duplicate, initialized) {
        Ok(request) => Incoming::Request { id, request: Box::new(request) },
        Err(text) => refuse(id, ErrorCode::INVALID_PARAMS, text),
    }
}

/// Returns whether a request may take long, so that others overtake it.
pub(super) fn is_call(request: &ClientRequest) -> bool {
    matches!(request, ClientRequest::CallToolRequest(_))
}

fn refuse(id: Value, code: ErrorCode, text: impl Into<String>) -> Incoming {
    Incoming::Refused { id, error: ErrorData::new(code, text.into(), None) }
}

/// Returns the id as it is given back, or `None` where it cannot be one.
///
/// A whole number in float form is the integer it stands for, as long as a float
/// tells it apart from its neighbours.
fn readable_id(id: &Value) -> Option<Value> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match id {
        Value::String(_) => Some(id.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(id.clone()),
        Value::Number(number) => {
            let number = number.as_f64()?;
            // Whole and below 2^53, so the cast loses nothing.
            (number.fract() == 0.0 && number.abs() < EXACT).then(|| Value::from(number as i64))
        }
        _ => None,
    }
}

fn notification(method: &str, message: &Map<String, Value>) -> Incoming {
    if method != "notifications/cancelled" {
        return Incoming::Ignored("notification");
    }
    let params = message.get("params");
    let Some(id) = params.and_then(|params| params.get("requestId")).and_then(readable_id) else {
        return Incoming::Ignored("cancellation without a request id");
    };
    let reason = params.and_then(|params| params.get("reason")).and_then(Value::as_str);
    Incoming::Cancelled { id, reason: reason.map(str::to_owned) }
}

/// Turns the rest of a request into its type, or says what is wrong with it.
fn request(
    method: String,
    mut message: Map<String, Value>,
    duplicate: Option<String>,
    initialized: bool,
) -> Result<ClientRequest, String> {
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err("`jsonrpc` must be \"2.0\"".into());
    }
    if message.contains_key("result") || message.contains_key("error") {
        return Err("a request has no `result` and no `error`".into());
    }
    if let Some(key) = duplicate {
        return Err(format!("the key `{key}` stands twice in one object"));
    }
    let mut params = object("params", message.remove("params"))?;
    let meta = params.remove("_meta").filter(|meta| !meta.is_null());
    let meta = meta.map(|meta| object("_meta", Some(meta))).transpose()?;
    let version = meta.as_ref().and_then(|meta| meta.get(VERSION_KEY));
    if version.is_some_and(|version| !version.is_string()) {
        return Err(format!("`{VERSION_KEY}` must be a string"));
    }
    let version = version.and_then(Value::as_str);
    let speaks_for_itself = version.is_some();
    // Versions are dates, so later ones sort behind.
    let without_ping = version.is_some_and(|version| version > NEWEST_WITH_INITIALIZE.as_str());

    let mut request = match method.as_str() {
        LIST | CALL if !initialized && !speaks_for_itself => {
            return Err(format!(
                "`{method}` needs an `{INITIALIZE}` before it, or `{VERSION_KEY}` in its `_meta`"
            ));
        }
        CALL => call(params)?,
        INITIALIZE | DISCOVER | LIST => known(&method, params)?,
        PING if !without_ping => known(&method, params)?,
        // None of the other methods is offered, whatever its parameters.
        _ => CustomRequest::new(method, Some(Value::Object(params))).into(),
    };
    if let Some(meta) = meta {
        *request.get_meta_mut() = RequestMetaObject(MetaObject(meta));
    }
    Ok(request)
}

/// Built by hand: the arguments may be large, and the generic way copies them
/// several times.
fn call(mut params: Map<String, Value>) -> Result<ClientRequest, String> {
    let name = match params.remove("name") {
        Some(Value::String(name)) => name,
        None => return Err(format!("`{CALL}` needs the `name` of a tool")),
        Some(other) => return Err(format!("`name` must be a string, got {}", kind(&other))),
    };
    let arguments = object("arguments", params.remove("arguments"))?;
    Ok(CallToolRequest::new(CallToolRequestParams::new(name).with_arguments(arguments)).into())
}

fn known(method: &str, params: Map<String, Value>) -> Result<ClientRequest, String> {
    let misfit = |error: String| format!("the parameters of `{method}` do not fit: {error}");
    if method == INITIALIZE {
        // The generic way below cannot say what is wrong.
        rmcp::model::InitializeRequestParams::deserialize(Value::Object(params.clone()))
            .map_err(|error| misfit(error.to_string()))?;
    }
    if method == LIST && params.get("cursor").is_some_and(|cursor| !cursor.is_null()) {
        return Err("the tool list is one page; ask for it without a `cursor`".into());
    }
    match ClientRequest::deserialize(json!({ "method": method, "params": params })) {
        // The type that takes any method takes those that fit no other.
        Ok(ClientRequest::CustomRequest(_)) => Err(misfit("a member has the wrong type".into())),
        Ok(request) => Ok(request),
        Err(error) => Err(misfit(error.to_string())),
    }
}

fn object(name: &str, value: Option<Value>) -> Result<Map<String, Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(object)) => Ok(object),
        Some(other) => Err(format!("`{name}` must be a JSON object, got {}", kind(&other))),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// Parses JSON and says which key, if any, stood twice in one object; the later
/// one is kept.
fn parse(text: &[u8]) -> Result<(Value, Option<String>), serde_json::Error> {
    let duplicate = RefCell::new(None);
    let mut parser = serde_json::Deserializer::from_slice(text);
    let value = Checked(&duplicate).deserialize(&mut parser)?;
    parser.end()?;
    Ok((value, duplicate.into_inner()))
}

/// Builds a [`Value`] and notes the first duplicate key.
#[derive(Clone, Copy)]
struct Checked<'a>(&'a RefCell<Option<String>>);

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, parser: D) -> Result<Value, D::Error> {
        parser.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Checked<'_> {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut array = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            array.push(item);
        }
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = entries.next_key::<String>()? {
            let value = entries.next_value_seed(self)?;
            if object.contains_key(&key) {
                self.0.borrow_mut().get_or_insert_with(|| key.clone());
            }
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}
