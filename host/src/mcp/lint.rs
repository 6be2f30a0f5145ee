//! Which tools are fit to be published.
//!
//! Several clients show none of a server's tools when a single one has a schema
//! that they cannot take, and say nothing. So a tool that breaks a rule is left
//! out on its own.

use std::collections::HashSet;
use std::fmt;

use serde_json::{Map, Value};

use super::Tool;

/// The most bytes of a description or of the instructions that every client
/// passes on whole.
pub const TEXT_BYTES_MAX: usize = 2000;

/// The longest name that stays whole behind every client's prefix, in characters.
const NAME_CHARS_MAX: usize = 40;

/// Members that some client refuses, loses or misreads at the top of a schema.
const TOP_LEVEL_FORBIDDEN: [&str; 5] = ["anyOf", "oneOf", "allOf", "enum", "not"];

/// Members that some client refuses, loses or misreads anywhere.
const FORBIDDEN: [&str; 5] = ["$ref", "prefixItems", "const", "format", "patternProperties"];

/// Members that hold one schema; some may be a boolean as well.
const HOLDS_ONE: [&str; 8] =
    ["items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"];

/// Members that hold a list of schemas.
const HOLDS_LIST: [&str; 3] = ["anyOf", "oneOf", "allOf"];

/// Members that hold schemas by name.
const HOLDS_MAP: [&str; 4] = ["properties", "$defs", "definitions", "dependentSchemas"];

/// Why a tool is not published. A place in a schema is written as a JSON pointer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The name has other characters or is too long.
    #[error("the name must match [a-z][a-zA-Z0-9_]* and have {NAME_CHARS_MAX} characters at most")]
    Name,
    /// Another tool before it has the same name.
    #[error("the name is taken by a tool before it")]
    NameTaken,
    /// Nothing tells the model when to call it.
    #[error("the description is blank")]
    DescriptionBlank,
    /// Clients would cut it.
    #[error("the description has {0} bytes, more than {TEXT_BYTES_MAX}")]
    DescriptionLong(usize),
    /// The schema cannot be read.
    #[error("the schema is not JSON: {0}")]
    NotJson(String),
    /// The schema's top level is something else than an object with properties.
    #[error("the schema needs `type: object` and `properties` at its top")]
    NotObject,
    /// A member that only the top level must not have.
    #[error("the schema has `{0}` at its top")]
    TopLevel(&'static str),
    /// A member that no level must have.
    #[error("the schema has `{member}` at `{place}`")]
    Member {
        /// The schema that has it.
        place: String,
        /// What it has.
        member: &'static str,
    },
    /// Not an object where a schema belongs.
    #[error("the schema at `{0}` is not an object")]
    NotSchema(String),
    /// `type` is a list, or nothing at all.
    #[error("`type` at `{0}` is not one string")]
    TypeNotOne(String),
    /// An array that does not say what is in it.
    #[error("the array at `{0}` needs `items` that are an object")]
    Items(String),
}

/// A tool that breaks no rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The tool.
    pub tool: Tool,
    /// Its input schema, read.
    pub schema: Map<String, Value>,
}

/// A tool that is not published, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The tool's name.
    pub tool: String,
    /// The first rule that it breaks.
    pub fault: Fault,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "tool {:?} is left out of the list: {}", self.tool, self.fault)
    }
}

/// Parts the tools that are fit from those that are not.
/// Both keep their order.
pub fn lint(tools: Vec<Tool>) -> (Vec<Fit>, Vec<LeftOut>) {
    let mut names = HashSet::new();
    let (mut fit, mut left_out) = (Vec::new(), Vec::new());
    for tool in tools {
        let checked = check(&tool).and_then(|schema| {
            if names.insert(tool.name.clone()) { Ok(schema) } else { Err(Fault::NameTaken) }
        });
        match checked {
            Ok(schema) => fit.push(Fit { tool, schema }),
            Err(fault) => left_out.push(LeftOut { tool: tool.name, fault }),
        }
    }
    (fit, left_out)
}

/// Returns the schema of a tool that breaks no rule.
///
/// # Errors
///
/// The first rule that it breaks, [`Fault::NameTaken`] excepted.
pub fn check(tool: &Tool) -> Result<Map<String, Value>, Fault> {
    if !is_name(&tool.name) {
        return Err(Fault::Name);
    }
    if tool.description.trim().is_empty() {
        return Err(Fault::DescriptionBlank);
    }
    if tool.description.len() > TEXT_BYTES_MAX {
        return Err(Fault::DescriptionLong(tool.description.len()));
    }
    let schema = match serde_json::from_str(&tool.input_schema) {
        Ok(Value::Object(schema)) => schema,
        Ok(_) => return Err(Fault::NotObject),
        Err(error) => return Err(Fault::NotJson(error.to_string())),
    };
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if !is_object || !schema.get("properties").is_some_and(Value::is_object) {
        return Err(Fault::NotObject);
    }
    if let Some(member) = TOP_LEVEL_FORBIDDEN.into_iter().find(|member| schema.contains_key(*member)) {
        return Err(Fault::TopLevel(member));
    }
    walk(&schema, "")?;
    Ok(schema)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= NAME_CHARS_MAX
        && name.chars().all(|each| each.is_ascii_alphanumeric() || each == '_')
}

/// Checks a schema and all that it holds. The parser's own limit on nesting
/// bounds the depth.
fn walk(schema: &Map<String, Value>, place: &str) -> Result<(), Fault> {
    if let Some(member) = FORBIDDEN.into_iter().find(|member| schema.contains_key(*member)) {
        return Err(Fault::Member { place: place.to_owned(), member });
    }
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            if !schema.get("items").is_some_and(Value::is_object) {
                return Err(Fault::Items(place.to_owned()));
            }
        }
        None | Some(Value::String(_)) => {}
        Some(_) => return Err(Fault::TypeNotOne(place.to_owned())),
    }
    for member in HOLDS_ONE {
        match schema.get(member) {
            // `additionalProperties: false` is what closes an object.
            None | Some(Value::Bool(_)) => {}
            Some(inner) => step(inner, format!("{place}/{member}"))?,
        }
    }
    for member in HOLDS_LIST {
        for (index, inner) in schema.get(member).and_then(Value::as_array).into_iter().flatten().enumerate() {
            step(inner, format!("{place}/{member}/{index}"))?;
        }
    }
    for member in HOLDS_MAP {
        for (name, inner) in schema.get(member).and_then(Value::as_object).into_iter().flatten() {
            step(inner, format!("{place}/{member}/{name}"))?;
        }
    }
    Ok(())
}

fn step(inner: &Value, place: String) -> Result<(), Fault> {
    match inner {
        Value::Object(schema) => walk(schema, &place),
        _ => Err(Fault::NotSchema(place)),
    }
}
