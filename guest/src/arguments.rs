//! Arguments of a call: one type gives both the schema and the parser.
//!
//! [`arguments!`] declares a struct whose fields know their key, their type and
//! what they are for. Parsing is lenient where models are known to stray
//! (numbers, booleans, lists and objects sent as text) and never silent: what
//! it cannot use it names.

use crate::text::{self, is_blank};
use serde_json::{Map, Value, json};
use std::fmt;

/// The longest text that any argument takes, in bytes.
pub const TEXT_MAX: usize = 1 << 20;

/// Why the arguments of a call cannot be used. `key` is the dotted path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentError {
    /// A required argument is not there.
    Missing { key: String },
    /// The value is of another type than the argument takes.
    WrongType { key: String, takes: String, got: String },
    /// The word is not one of the set.
    NotOneOf { key: String, got: String, values: Vec<&'static str> },
    /// The value has the type and breaks a rule.
    Invalid { key: String, got: String, rule: &'static str },
    /// The text says nothing.
    Blank { key: String },
    /// The text is longer than any argument takes.
    TooLong { key: String, bytes: usize, limit: usize },
    /// The key is most likely another one, misspelt.
    Misspelt { key: String, meant: String },
    /// The arguments are no JSON object.
    NoObject(String),
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ArgumentError::Missing { key } => write!(f, "missing required argument `{key}`"),
            ArgumentError::WrongType { key, takes, got } => {
                write!(f, "argument `{key}` takes {takes}, not {got}")
            }
            ArgumentError::NotOneOf { key, got, values } => {
                write!(f, "argument `{key}` is \"{got}\", which is none of: {}", values.join(", "))
            }
            ArgumentError::Invalid { key, got, rule } => {
                write!(f, "argument `{key}` is \"{got}\"; it has to be {rule}")
            }
            ArgumentError::Blank { key } => write!(f, "argument `{key}` is blank; say what it is"),
            ArgumentError::TooLong { key, bytes, limit } => write!(
                f,
                "argument `{key}` is {bytes} bytes long and at most {limit} are kept; nothing was cut or stored, so send less"
            ),
            ArgumentError::Misspelt { key, meant } => {
                write!(f, "unknown argument `{key}`; did you mean `{meant}`?")
            }
            ArgumentError::NoObject(what) => {
                write!(f, "the arguments have to be one JSON object: {what}")
            }
        }
    }
}

/// Collects what a parser did not use and does not refuse.
#[derive(Debug, Default)]
pub struct Ignored(pub Vec<String>);

/// A type that an argument can have.
pub trait Argument: Sized {
    /// Whether the argument may be left out.
    const OPTIONAL: bool = false;

    /// The JSON Schema of a value.
    fn schema() -> Map<String, Value>;

    /// What it takes, in words.
    fn takes() -> String;

    /// Reads a value that is there. `key` is its dotted path.
    fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError>;

    /// The value of an argument that is not there, or null.
    fn absent(key: &str, _null: bool) -> Result<Self, ArgumentError> {
        Err(ArgumentError::Missing { key: key.to_owned() })
    }
}

/// Says what a JSON value is, short enough for a sentence.
fn describe(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(b) => format!("the boolean {b}"),
        Value::Number(n) => format!("the number {n}"),
        Value::String(s) => format!("the text \"{}\"", excerpt(s)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

/// The beginning of a text that may be long.
pub fn excerpt(text: &str) -> String {
    const SHOWN: usize = 60;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn wrong<T: Argument>(value: &Value, key: &str) -> ArgumentError {
    ArgumentError::WrongType { key: key.to_owned(), takes: T::takes(), got: describe(value) }
}

fn typed(name: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(name))])
}

/// Any text, also an empty one.
impl Argument for String {
    fn schema() -> Map<String, Value> {
        typed("string")
    }
    fn takes() -> String {
        "text".to_owned()
    }
    fn read(value: Value, key: &str, _: &mut Ignored) -> Result<Self, ArgumentError> {
        text_of::<Self>(value, key, TEXT_MAX)
    }
}

/// Reads a text of at most `limit` bytes, for the argument type `T`.
pub fn text_of<T: Argument>(value: Value, key: &str, limit: usize) -> Result<String, ArgumentError> {
    match value {
        Value::String(s) if s.len() > limit => {
            Err(ArgumentError::TooLong { key: key.to_owned(), bytes: s.len(), limit })
        }
        Value::String(s) => Ok(s),
        other => Err(wrong::<T>(&other, key)),
    }
}

/// Declares a text type with a rule of its own.
macro_rules! text_type {
    ($(#[$meta:meta])* $name:ident, $takes:expr, $check:expr) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(pub String);

        impl Argument for $name {
            fn schema() -> Map<String, Value> {
                typed("string")
            }
            fn takes() -> String {
                $takes.to_owned()
            }
            fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
                let text = String::read(value, key, ignored)?;
                #[allow(clippy::redundant_closure_call)]
                ($check)(text, key).map($name)
            }
        }
    };
}

text_type!(
    /// Text that says something.
    Said, "text",
    |text: String, key: &str| {
        if is_blank(&text) { Err(ArgumentError::Blank { key: key.to_owned() }) } else { Ok(text) }
    }
);

text_type!(
    /// A loop's slug.
    Slug, "a loop's slug",
    |text: String, key: &str| {
        if text::is_slug(&text) { Ok(text) } else {
            Err(ArgumentError::Invalid { key: key.to_owned(), got: excerpt(&text), rule: text::SLUG_RULE })
        }
    }
);

text_type!(
    /// A task's id.
    TaskId, "a task's id",
    |text: String, key: &str| {
        let id = text.trim();
        if id.is_empty() {
            Err(ArgumentError::Blank { key: key.to_owned() })
        } else if text::is_taskid(id) {
            Ok(id.to_owned())
        } else {
            Err(ArgumentError::Invalid { key: key.to_owned(), got: excerpt(&text), rule: text::TASKID_RULE })
        }
    }
);

/// The number or address of an issue or pull request: text, or a bare number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference(pub String);

impl Argument for Reference {
    fn schema() -> Map<String, Value> {
        typed("string")
    }
    fn takes() -> String {
        "text or a whole number".to_owned()
    }
    fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
        match value {
            Value::Number(n) if n.is_u64() => Ok(Reference(n.to_string())),
            Value::String(_) => String::read(value, key, ignored).map(Reference),
            other => Err(wrong::<Self>(&other, key)),
        }
    }
}

impl Argument for f64 {
    fn schema() -> Map<String, Value> {
        typed("number")
    }
    fn takes() -> String {
        "a number".to_owned()
    }
    fn read(value: Value, key: &str, _: &mut Ignored) -> Result<Self, ArgumentError> {
        let number = match &value {
            Value::Number(n) => n.as_f64(),
            Value::String(s) => s.trim().parse().ok(),
            _ => None,
        };
        number.filter(|n| n.is_finite()).ok_or_else(|| wrong::<Self>(&value, key))
    }
}

impl Argument for i64 {
    fn schema() -> Map<String, Value> {
        typed("integer")
    }
    fn takes() -> String {
        "a whole number".to_owned()
    }
    fn read(value: Value, key: &str, _: &mut Ignored) -> Result<Self, ArgumentError> {
        let number = match &value {
            Value::Number(n) => n.as_i64().or_else(|| n.as_f64().and_then(whole)),
            Value::String(s) => s.trim().parse().ok(),
            _ => None,
        };
        number.ok_or_else(|| wrong::<Self>(&value, key))
    }
}

/// The integer that a float is exactly, if it is one.
fn whole(f: f64) -> Option<i64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    (f.fract() == 0.0 && f.abs() <= EXACT).then_some(f as i64)
}

/// Declares whole numbers from 0 on.
macro_rules! counts {
    ($($type:ty),+) => {$(
        impl Argument for $type {
            fn schema() -> Map<String, Value> {
                let mut schema = typed("integer");
                schema.insert("minimum".to_owned(), json!(0));
                schema
            }
            fn takes() -> String {
                format!("a whole number from 0 to {}", i64::try_from(<$type>::MAX).unwrap_or(i64::MAX))
            }
            fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
                i64::read(value.clone(), key, ignored)
                    .ok()
                    .and_then(|n| <$type>::try_from(n).ok())
                    .ok_or_else(|| wrong::<Self>(&value, key))
            }
        }
    )+};
}
counts!(u32, u64);

impl Argument for bool {
    fn schema() -> Map<String, Value> {
        typed("boolean")
    }
    fn takes() -> String {
        "true or false".to_owned()
    }
    fn read(value: Value, key: &str, _: &mut Ignored) -> Result<Self, ArgumentError> {
        match &value {
            Value::Bool(b) => Ok(*b),
            Value::String(s) if s.trim().eq_ignore_ascii_case("true") => Ok(true),
            Value::String(s) if s.trim().eq_ignore_ascii_case("false") => Ok(false),
            other => Err(wrong::<Self>(other, key)),
        }
    }
}

impl<T: Argument> Argument for Option<T> {
    const OPTIONAL: bool = true;

    fn schema() -> Map<String, Value> {
        T::schema()
    }
    fn takes() -> String {
        T::takes()
    }
    fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
        T::read(value, key, ignored).map(Some)
    }
    fn absent(_: &str, _: bool) -> Result<Self, ArgumentError> {
        Ok(None)
    }
}

/// An argument that has to be there and whose null clears something.
#[derive(Clone, Debug, PartialEq)]
pub struct Clearable<T>(pub Option<T>);

impl<T: Argument> Argument for Clearable<T> {
    fn schema() -> Map<String, Value> {
        T::schema()
    }
    fn takes() -> String {
        format!("{} or null", T::takes())
    }
    fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
        T::read(value, key, ignored).map(|v| Clearable(Some(v)))
    }
    fn absent(key: &str, null: bool) -> Result<Self, ArgumentError> {
        if null { Ok(Clearable(None)) } else { Err(ArgumentError::Missing { key: key.to_owned() }) }
    }
}

/// Text or a number, kept as it came; which of the two is right depends on
/// another argument.
#[derive(Clone, Debug, PartialEq)]
pub struct Scalar(pub Value);

impl Argument for Scalar {
    fn schema() -> Map<String, Value> {
        typed("string")
    }
    fn takes() -> String {
        "text, a number".to_owned()
    }
    fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
        match value {
            Value::Number(_) => Ok(Scalar(value)),
            Value::String(_) => String::read(value, key, ignored).map(|s| Scalar(Value::String(s))),
            other => Err(wrong::<Self>(&other, key)),
        }
    }
}

impl<T: Argument> Argument for Vec<T> {
    fn schema() -> Map<String, Value> {
        let mut schema = typed("array");
        schema.insert("items".to_owned(), Value::Object(T::schema()));
        schema
    }
    fn takes() -> String {
        format!("a list, each entry {}", T::takes())
    }
    fn read(value: Value, key: &str, ignored: &mut Ignored) -> Result<Self, ArgumentError> {
        let items = match value {
            Value::Array(items) => items,
            Value::String(ref text) => match serde_json::from_str(text) {
                Ok(Value::Array(items)) => items,
                _ => return Err(wrong::<Self>(&value, key)),
            },
            other => return Err(wrong::<Self>(&other, key)),
        };
        let mut read = Vec::with_capacity(items.len());
        for (i, item) in items.into_iter().enumerate() {
            read.push(T::read(item, &format!("{key}[{i}]"), ignored)?);
        }
        Ok(read)
    }
}

/// Makes a closed set of words an argument type.
macro_rules! word_argument {
    ($($name:ty),+ $(,)?) => {$(
        impl $crate::arguments::Argument for $name {
            fn schema() -> serde_json::Map<String, serde_json::Value> {
                let words: Vec<_> = Self::ALL.iter().map(|w| w.word()).collect();
                let mut schema = serde_json::Map::new();
                schema.insert("type".to_owned(), serde_json::json!("string"));
                schema.insert("enum".to_owned(), serde_json::json!(words));
                schema
            }
            fn takes() -> String {
                let words: Vec<_> = Self::ALL.iter().map(|w| w.word()).collect();
                format!("one of {}", words.join(", "))
            }
            fn read(
                value: serde_json::Value,
                key: &str,
                ignored: &mut $crate::arguments::Ignored,
            ) -> Result<Self, $crate::arguments::ArgumentError> {
                let serde_json::Value::String(_) = value else {
                    return Err($crate::arguments::wrong_type::<Self>(&value, key));
                };
                let text = String::read(value, key, ignored)?;
                Self::parse(text.trim()).ok_or_else(|| $crate::arguments::ArgumentError::NotOneOf {
                    key: key.to_owned(),
                    got: $crate::arguments::excerpt(&text),
                    values: Self::ALL.iter().map(|w| w.word()).collect(),
                })
            }
        }
    )+};
}
pub(crate) use word_argument;

/// The error for a value of another type, for types outside this module.
pub fn wrong_type<T: Argument>(value: &Value, key: &str) -> ArgumentError {
    wrong::<T>(value, key)
}

/// What [`arguments!`] writes once for each struct: its fields as a table.
pub struct Field {
    /// The key as the caller writes it.
    pub key: &'static str,
    /// What the argument is for; empty where the key says it all.
    pub about: &'static str,
    /// Whether it may be left out.
    pub optional: bool,
    /// Its schema.
    pub schema: fn() -> Map<String, Value>,
}

/// The schema of an object with these fields.
pub fn object_schema(fields: &[Field]) -> Map<String, Value> {
    let mut properties = Map::new();
    for field in fields {
        let mut schema = (field.schema)();
        if !field.about.is_empty() {
            schema.insert("description".to_owned(), json!(field.about));
        }
        properties.insert(field.key.to_owned(), Value::Object(schema));
    }
    let required: Vec<_> = fields.iter().filter(|f| !f.optional).map(|f| f.key).collect();
    let mut schema = typed("object");
    schema.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".to_owned(), json!(required));
    }
    schema
}

/// The shape of an object with these fields, in words.
pub fn object_shape(fields: &[Field]) -> String {
    let keys: Vec<_> =
        fields.iter().map(|f| format!("{}{}", f.key, if f.optional { "?" } else { "" })).collect();
    format!("an object {{{}}}", keys.join(", "))
}

/// Reads an object: from JSON, or from text that holds JSON.
pub fn open_object(
    value: Value,
    wrong: impl Fn(&Value) -> ArgumentError,
) -> Result<Map<String, Value>, ArgumentError> {
    match value {
        Value::Object(map) => Ok(map),
        Value::String(ref text) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => Ok(map),
            _ => Err(wrong(&value)),
        },
        other => Err(wrong(&other)),
    }
}

/// Takes one field out of an object.
pub fn take<T: Argument>(
    map: &mut Map<String, Value>,
    key: &str,
    path: &str,
    ignored: &mut Ignored,
) -> Result<T, ArgumentError> {
    match map.shift_remove(key) {
        None => T::absent(path, false),
        Some(Value::Null) => T::absent(path, true),
        Some(value) => T::read(value, path, ignored),
    }
}

/// Refuses a left-over key that looks like a misspelt one, notes any other.
pub fn sort_out(
    left: &Map<String, Value>,
    fields: &[Field],
    prefix: &str,
    ignored: &mut Ignored,
) -> Result<(), ArgumentError> {
    for key in left.keys() {
        if let Some(meant) = text::nearest(key, fields.iter().map(|f| f.key)).first() {
            return Err(ArgumentError::Misspelt {
                key: format!("{prefix}{}", excerpt(key)),
                meant: format!("{prefix}{meant}"),
            });
        }
        ignored.0.push(format!("{prefix}{}", excerpt(key)));
    }
    Ok(())
}

/// Declares the arguments of a tool, or an object within them.
///
/// ```text
/// arguments! {
///     /// What it is.
///     pub struct Bump {
///         slug: Slug = "loopSlug", "The loop.";
///         by: Option<i64> = "by", "Default 1.";
///     }
/// }
/// ```
macro_rules! arguments {
    ($(#[$meta:meta])* pub struct $name:ident {
        $($field:ident: $ty:ty = $key:literal, $about:literal;)*
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug)]
        pub struct $name {
            $(#[doc = concat!("`", $key, "` ", $about)] pub $field: $ty,)*
        }

        impl $name {
            const FIELDS: &'static [$crate::arguments::Field] = &[$($crate::arguments::Field {
                key: $key,
                about: $about,
                optional: <$ty as $crate::arguments::Argument>::OPTIONAL,
                schema: <$ty as $crate::arguments::Argument>::schema,
            }),*];
        }

        impl $crate::arguments::Argument for $name {
            fn schema() -> serde_json::Map<String, serde_json::Value> {
                $crate::arguments::object_schema(Self::FIELDS)
            }
            fn takes() -> String {
                $crate::arguments::object_shape(Self::FIELDS)
            }
            fn read(
                value: serde_json::Value,
                key: &str,
                ignored: &mut $crate::arguments::Ignored,
            ) -> Result<Self, $crate::arguments::ArgumentError> {
                // A tool without arguments takes nothing out of it.
                #[allow(unused_mut)]
                let mut map = $crate::arguments::open_object(value, |v| {
                    $crate::arguments::wrong_type::<Self>(v, key)
                })?;
                let prefix = if key.is_empty() { String::new() } else { format!("{key}.") };
                // A misspelt key explains a missing one: it is told first.
                let left: serde_json::Map<_, _> = map
                    .iter()
                    .filter(|(k, _)| !Self::FIELDS.iter().any(|f| f.key == k.as_str()))
                    .map(|(k, _)| (k.clone(), serde_json::Value::Null))
                    .collect();
                $crate::arguments::sort_out(&left, Self::FIELDS, &prefix, ignored)?;
                Ok($name {
                    $($field: $crate::arguments::take(&mut map, $key, &format!("{prefix}{}", $key), ignored)?,)*
                })
            }
        }
    };
}
pub(crate) use arguments;
