//! A configuration's text as a tree of values that know their lines.
//!
//! YAML 1.2 with its core schema: a quoted scalar is text, a plain one what it
//! looks like. JSON has a reader of its own, which takes a fraction of the time and
//! gives the same tree and the same lines. How deep, how many and how large values get is bounded before
//! they are built, aliases included.

use super::problem::{Place, Problem};
use crate::arguments::excerpt;
use saphyr_parser::{Event, Parser, ScalarStyle, Tag};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// The largest configuration, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// How many lists and maps may stand in each other.
pub const MAX_DEPTH: usize = 64;

/// How many values a configuration may have once its aliases are written out.
pub const MAX_VALUES: usize = 200_000;

/// How many bytes of text those values may have together.
pub const MAX_TEXT: usize = 4 << 20;

/// A value and the line that it begins on, from 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Value<'t> {
    pub line: u32,
    pub data: Data<'t>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Data<'t> {
    Null,
    Bool(bool),
    Number(f64),
    Text(Cow<'t, str>),
    List(Vec<Value<'t>>),
    /// In the order they are written; no key twice.
    Map(Vec<Entry<'t>>),
}

#[derive(Clone, Debug, PartialEq)]
pub struct Entry<'t> {
    pub key: Cow<'t, str>,
    /// The line of the key.
    pub line: u32,
    pub value: Value<'t>,
}

impl Value<'_> {
    /// Whether nothing is said: null, or an empty list or map.
    pub fn is_empty(&self) -> bool {
        match &self.data {
            Data::Null => true,
            Data::List(items) => items.is_empty(),
            Data::Map(entries) => entries.is_empty(),
            _ => false,
        }
    }

    /// What kind of value it is, for messages.
    pub fn kind(&self) -> &'static str {
        match &self.data {
            Data::Null => "nothing",
            Data::Bool(_) => "true or false",
            Data::Number(_) => "a number",
            Data::Text(_) => "text",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
        }
    }

    fn size(&self) -> Size {
        let mut size = Size { values: 1, text: 0 };
        match &self.data {
            Data::Text(text) => size.text = text.len(),
            Data::List(items) => items.iter().for_each(|item| size.add(item.size())),
            Data::Map(entries) => entries.iter().for_each(|entry| {
                size.text += entry.key.len();
                size.add(entry.value.size());
            }),
            _ => {}
        }
        size
    }
}

/// What a value costs.
#[derive(Clone, Copy, Debug, Default)]
struct Size {
    values: usize,
    text: usize,
}

impl Size {
    fn add(&mut self, other: Size) {
        self.values += other.values;
        self.text += other.text;
    }

    fn is_too_much(self) -> bool {
        self.values > MAX_VALUES || self.text > MAX_TEXT
    }
}

/// Reads a document. What stops the reading is the only problem then; repeated keys
/// and tags without meaning do not stop it and are all named.
pub fn read(bytes: &[u8]) -> Result<Value<'_>, Vec<Problem>> {
    if bytes.len() > MAX_BYTES {
        let message = format!("has {} bytes; a configuration has at most {MAX_BYTES}", bytes.len());
        return Err(vec![Problem::whole(message)]);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = line_at(bytes, error.valid_up_to());
        vec![Problem { line: Some(line), ..Problem::whole("is not UTF-8 text from here on") }]
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // To the parser a NUL ends the text, and what follows would be dropped unseen.
    if let Some(at) = text.bytes().position(|b| b < b' ' && !matches!(b, b'\t' | b'\n' | b'\r')) {
        let line = line_at(text.as_bytes(), at);
        return Err(vec![Problem { line: Some(line), ..Problem::whole("holds a control character") }]);
    }
    let builder = Builder::default();
    if is_json(text) { builder.run_json(text) } else { builder.run(text) }
}

fn line_at(bytes: &[u8], at: usize) -> u32 {
    let ends = bytes.iter().take(at).filter(|b| **b == b'\n').count();
    u32::try_from(ends).unwrap_or(u32::MAX).saturating_add(1)
}

/// Whether a text is JSON. YAML has most of JSON, but not tabs between values and
/// not characters as two escapes; and its parser takes several times as long.
fn is_json(text: &str) -> bool {
    text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok()
}

/// A list or map that is not closed yet.
struct Open<'t> {
    line: u32,
    anchor: usize,
    kind: Kind<'t>,
}

enum Kind<'t> {
    List(Vec<Value<'t>>),
    Map {
        entries: Vec<Entry<'t>>,
        /// The keys of the entries, once there are many.
        keys: BTreeSet<String>,
        /// A key whose value comes next; `None` in it when the key was there before.
        key: Option<(Option<Cow<'t, str>>, u32)>,
    },
}

/// From how many entries on the keys of a map are looked up and not gone through.
const MANY: usize = 16;

/// Whether a map has no such key yet; it will have it from now on.
fn is_new(entries: &[Entry<'_>], keys: &mut BTreeSet<String>, name: &str) -> bool {
    if entries.len() < MANY {
        return entries.iter().all(|entry| entry.key != name);
    }
    if keys.is_empty() {
        keys.extend(entries.iter().map(|entry| entry.key.clone().into_owned()));
    }
    keys.insert(name.to_owned())
}

#[derive(Default)]
struct Builder<'t> {
    open: Vec<Open<'t>>,
    root: Option<Value<'t>>,
    anchors: BTreeMap<usize, (Value<'t>, Size)>,
    size: Size,
    problems: Vec<Problem>,
}

impl<'t> Builder<'t> {
    fn run(mut self, text: &'t str) -> Result<Value<'t>, Vec<Problem>> {
        // The parser may see the end of the text on a line after the last.
        let lines = u32::try_from(text.lines().count().max(1)).unwrap_or(u32::MAX);
        for event in Parser::new_from_str(text) {
            let stop = match event {
                Ok((event, span)) => self.take(event, u32::try_from(span.start.line()).unwrap_or(u32::MAX)),
                Err(error) => Err(Problem {
                    line: u32::try_from(error.marker().line()).ok().map(|line| line.min(lines)),
                    ..Problem::whole(format!("cannot be read: {}", error.info()))
                }),
            };
            if let Err(problem) = stop {
                self.problems.push(problem);
                return Err(self.problems);
            }
        }
        self.end()
    }

    /// The same for a text that is known to be JSON, as the events that YAML's parser
    /// would see.
    fn run_json(mut self, text: &'t str) -> Result<Value<'t>, Vec<Problem>> {
        let bytes = text.as_bytes();
        let (mut at, mut line) = (0, 1);
        while let Some(byte) = bytes.get(at) {
            let start = at;
            at += 1;
            let event = match byte {
                b'\n' => {
                    line += 1;
                    continue;
                }
                b' ' | b'\t' | b'\r' | b',' | b':' => continue,
                b'{' => Event::MappingStart(0, None),
                b'}' => Event::MappingEnd,
                b'[' => Event::SequenceStart(0, None),
                b']' => Event::SequenceEnd,
                b'"' => {
                    let mut escapes = false;
                    while let Some(byte) = bytes.get(at).filter(|byte| **byte != b'"') {
                        // What is escaped goes along, so that a quote does not end the text.
                        let escape = *byte == b'\\';
                        escapes |= escape;
                        at += if escape { 2 } else { 1 };
                    }
                    at += 1;
                    let said = if escapes {
                        let quoted = text.get(start..at).unwrap_or_default();
                        Cow::Owned(serde_json::from_str(quoted).unwrap_or_default())
                    } else {
                        Cow::Borrowed(text.get(start + 1..at - 1).unwrap_or_default())
                    };
                    Event::Scalar(said, ScalarStyle::DoubleQuoted, 0, None)
                }
                _ => {
                    let ends = |b: &u8| matches!(b, b',' | b']' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
                    at += bytes[at..].iter().position(ends).unwrap_or(bytes.len() - at);
                    let word = text.get(start..at).unwrap_or_default();
                    Event::Scalar(Cow::Borrowed(word), ScalarStyle::Plain, 0, None)
                }
            };
            if let Err(problem) = self.take(event, line) {
                self.problems.push(problem);
                return Err(self.problems);
            }
        }
        self.end()
    }

    fn end(self) -> Result<Value<'t>, Vec<Problem>> {
        match self.root {
            _ if !self.problems.is_empty() => Err(self.problems),
            Some(root) => Ok(root),
            None => Err(vec![Problem::whole("is empty")]),
        }
    }

    fn take(&mut self, event: Event<'t>, line: u32) -> Result<(), Problem> {
        match event {
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(self.at(line, "a second document begins here; one is read"))
            }
            Event::Alias(anchor) => {
                let Some((value, size)) = self.anchors.get(&anchor) else {
                    return Err(self.at(line, "an alias stands inside what it refers to"));
                };
                let (value, size) = (value.clone(), *size);
                if self.is_key_next() {
                    let Data::Text(key) = value.data else {
                        return Err(self.at(line, "a key is text, not an alias of another value"));
                    };
                    return self.key(key, line);
                }
                self.grow(size, line)?;
                self.place(value);
                Ok(())
            }
            Event::Scalar(text, style, anchor, tag) => {
                if self.is_key_next() {
                    if anchor > 0 {
                        let key = Value { line, data: Data::Text(text.clone()) };
                        self.anchor(anchor, &key, line)?;
                    }
                    return self.key(text, line);
                }
                self.grow(Size { values: 1, text: text.len() }, line)?;
                let data = self.scalar(text, style, tag.as_deref(), line);
                let value = Value { line, data };
                self.anchor(anchor, &value, line)?;
                self.place(value);
                Ok(())
            }
            Event::SequenceStart(anchor, tag) => {
                self.no_tag(tag.as_deref(), "seq", line);
                self.enter(Open { line, anchor, kind: Kind::List(Vec::new()) })
            }
            Event::MappingStart(anchor, tag) => {
                self.no_tag(tag.as_deref(), "map", line);
                // As many as a node has, so that its fields are moved at most once.
                let entries = Vec::with_capacity(8);
                let kind = Kind::Map { entries, keys: BTreeSet::new(), key: None };
                self.enter(Open { line, anchor, kind })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(open) = self.open.pop() else { return Ok(()) };
                let data = match open.kind {
                    Kind::List(items) => Data::List(items),
                    Kind::Map { entries, .. } => Data::Map(entries),
                };
                let value = Value { line: open.line, data };
                self.anchor(open.anchor, &value, line)?;
                self.place(value);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn enter(&mut self, open: Open<'t>) -> Result<(), Problem> {
        if self.is_key_next() {
            return Err(self.at(open.line, "a key is text, not a list or map"));
        }
        if self.open.len() >= MAX_DEPTH {
            return Err(self.at(open.line, format!("stands deeper than {MAX_DEPTH} lists and maps")));
        }
        self.grow(Size { values: 1, text: 0 }, open.line)?;
        self.open.push(open);
        Ok(())
    }

    fn is_key_next(&self) -> bool {
        matches!(self.open.last(), Some(Open { kind: Kind::Map { key: None, .. }, .. }))
    }

    fn key(&mut self, name: Cow<'t, str>, line: u32) -> Result<(), Problem> {
        self.grow(Size { values: 1, text: name.len() }, line)?;
        let mut again = None;
        if let Some(Open { kind: Kind::Map { entries, keys, key }, .. }) = self.open.last_mut() {
            if is_new(entries, keys, &name) {
                *key = Some((Some(name), line));
            } else {
                *key = Some((None, line));
                again = Some(name);
            }
        }
        if let Some(name) = again {
            let path = Place::of(&self.path()).key(&name).to_string();
            let message = "stands here a second time; keep one".to_owned();
            self.problems.push(Problem { path, line: Some(line), message });
        }
        Ok(())
    }

    /// Puts a finished value where it belongs.
    fn place(&mut self, value: Value<'t>) {
        match self.open.last_mut().map(|open| &mut open.kind) {
            None => self.root = Some(value),
            Some(Kind::List(items)) => items.push(value),
            Some(Kind::Map { entries, key, .. }) => {
                if let Some((Some(key), line)) = key.take() {
                    entries.push(Entry { key, line, value });
                }
            }
        }
    }

    /// Keeps a value for the aliases of its anchor.
    fn anchor(&mut self, anchor: usize, value: &Value<'t>, line: u32) -> Result<(), Problem> {
        if anchor > 0 {
            let size = value.size();
            self.grow(size, line)?;
            self.anchors.insert(anchor, (value.clone(), size));
        }
        Ok(())
    }

    fn grow(&mut self, size: Size, line: u32) -> Result<(), Problem> {
        self.size.add(size);
        if self.size.is_too_much() {
            return Err(self.at(
                line,
                format!("is more than {MAX_VALUES} values or {MAX_TEXT} bytes of text, aliases written out"),
            ));
        }
        Ok(())
    }

    fn scalar(&mut self, text: Cow<'t, str>, style: ScalarStyle, tag: Option<&Tag>, line: u32) -> Data<'t> {
        match tag {
            Some(tag) if tag.is_yaml_core_schema() && tag.suffix == "str" => Data::Text(text),
            Some(tag) if tag.handle.is_empty() && tag.suffix == "!" => Data::Text(text),
            Some(tag) if !tag.is_yaml_core_schema() => {
                self.no_tag(Some(tag), "str", line);
                Data::Null
            }
            _ if style == ScalarStyle::Plain => plain(text),
            _ => Data::Text(text),
        }
    }

    fn no_tag(&mut self, tag: Option<&Tag>, core: &str, line: u32) {
        let Some(tag) = tag else { return };
        if !(tag.is_yaml_core_schema() && tag.suffix == core) {
            let tag = excerpt(&tag.to_string());
            let problem = self.at(line, format!("the tag `{tag}` has no meaning here; leave it out"));
            self.problems.push(problem);
        }
    }

    fn at(&self, line: u32, message: impl Into<String>) -> Problem {
        Problem { path: self.path(), line: Some(line), message: message.into() }
    }

    /// The path of the value that comes next.
    fn path(&self) -> String {
        let mut path = String::new();
        for open in &self.open {
            match &open.kind {
                Kind::List(items) => path.push_str(&format!("[{}]", items.len())),
                Kind::Map { key: Some((Some(key), _)), .. } => path = Place::of(&path).key(key).to_string(),
                Kind::Map { .. } => {}
            }
        }
        path
    }
}

/// What a plain scalar stands for.
fn plain(text: Cow<'_, str>) -> Data<'_> {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => Data::Null,
        "true" | "True" | "TRUE" => Data::Bool(true),
        "false" | "False" | "FALSE" => Data::Bool(false),
        other => match number(other) {
            Some(number) => Data::Number(number),
            None => Data::Text(text),
        },
    }
}

fn number(text: &str) -> Option<f64> {
    match text {
        ".nan" | ".NaN" | ".NAN" => return Some(f64::NAN),
        _ => {}
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1.0, rest),
        None => (1.0, text.strip_prefix('+').unwrap_or(text)),
    };
    if matches!(digits, ".inf" | ".Inf" | ".INF") {
        return Some(sign * f64::INFINITY);
    }
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
            // As many digits as a number can tell apart.
            return u64::from_str_radix(digits, radix).ok().filter(|_| plain).map(|n| n as f64);
        }
    }
    let begins = digits.bytes().find(|b| *b != b'.')?.is_ascii_digit() && !digits.starts_with("..");
    let only = digits.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'e' | b'E' | b'+' | b'-'));
    if begins && only { digits.parse::<f64>().ok().map(|n| sign * n) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(serde_json::Value::from),
            any::<i32>().prop_map(serde_json::Value::from),
            (-1e9..1e9_f64).prop_map(serde_json::Value::from),
            "[ -~é😀\\n\\t]{0,8}".prop_map(serde_json::Value::from),
        ];
        leaf.prop_recursive(4, 40, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
                prop::collection::btree_map("[a-z\"\\\\]{1,6}", inner, 0..6)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Both readers give the same tree with the same lines.
        #[test]
        fn json_is_read_as_yaml_is(value in json()) {
            let value = serde_json::json!({ "all": value });
            let text = serde_json::to_string_pretty(&value).expect("JSON prints");
            prop_assert!(is_json(&text));
            prop_assert_eq!(Builder::default().run_json(&text), Builder::default().run(&text));
        }
    }
}
