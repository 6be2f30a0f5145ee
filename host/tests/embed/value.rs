//! Values of the contract as JSON, in the form that each language gives them.

use serde_json::{Map, Value, json};
use wasmtime::component::{Type, Val};

/// How a language's binding shows values.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Names in camel case; what is absent is left out; a variant has `tag` and `val`.
    JavaScript,
    /// Names as in the contract; what is absent is null; a variant has `tag` and
    /// `payload`.
    Python,
}

impl Dialect {
    fn name(self, name: &str) -> String {
        if self == Dialect::Python {
            return name.to_owned();
        }
        let mut words = name.split('-');
        let mut camel = words.next().unwrap_or_default().to_owned();
        for word in words {
            let (first, rest) = word.split_at(1);
            camel += &(first.to_uppercase() + rest);
        }
        camel
    }
}

/// A value as the language prints it; `None` for an absent one.
pub fn shown(value: &Val, dialect: Dialect) -> Option<Value> {
    Some(match value {
        Val::Bool(value) => json!(value),
        Val::U8(value) => json!(value),
        Val::U32(value) => json!(value),
        Val::S32(value) => json!(value),
        Val::U64(value) => json!(value),
        Val::S64(value) => json!(value),
        Val::Float64(value) => json!(value),
        Val::String(value) | Val::Enum(value) => json!(value),
        Val::List(list) | Val::Tuple(list) => {
            list.iter().map(|value| shown(value, dialect).unwrap_or(Value::Null)).collect()
        }
        Val::Record(fields) => {
            let mut map = Map::new();
            for (name, value) in fields {
                match shown(value, dialect) {
                    None if dialect == Dialect::JavaScript => {}
                    value => drop(map.insert(dialect.name(name), value.unwrap_or(Value::Null))),
                }
            }
            Value::Object(map)
        }
        Val::Variant(tag, value) => {
            let payload = if dialect == Dialect::JavaScript { "val" } else { "payload" };
            let mut map = Map::from_iter([("tag".to_owned(), json!(tag))]);
            if let Some(value) = value {
                map.insert(payload.to_owned(), shown(value, dialect).unwrap_or(Value::Null));
            }
            Value::Object(map)
        }
        Val::Option(value) => return value.as_ref().and_then(|value| shown(value, dialect)),
        // The languages throw or return what a refusal carries.
        Val::Result(Ok(value) | Err(value)) => return value.as_ref().and_then(|value| shown(value, dialect)),
        other => panic!("the contract has no {other:?}"),
    })
}

/// A value as JavaScript's source: 64 bits make a `BigInt`.
pub fn source(value: &Val) -> String {
    match value {
        Val::U64(value) => format!("{value}n"),
        Val::S64(value) => format!("{value}n"),
        Val::List(list) => format!("[{}]", list.iter().map(source).collect::<Vec<_>>().join(", ")),
        Val::Record(fields) => {
            let field = |(name, value): &(String, Val)| {
                format!("{}: {}", Dialect::JavaScript.name(name), source(value))
            };
            format!("{{ {} }}", fields.iter().map(field).collect::<Vec<_>>().join(", "))
        }
        Val::Option(None) => "undefined".to_owned(),
        Val::Option(Some(value)) => source(value),
        plain => shown(plain, Dialect::JavaScript).unwrap_or_default().to_string(),
    }
}

/// A value of this type out of what a test says or a column holds.
///
/// # Panics
///
/// When it is none.
pub fn read(value: &Value, ty: &Type) -> Val {
    let integer = || value.as_i64().unwrap_or_else(|| panic!("{value} is no integer"));
    match ty {
        Type::Bool => Val::Bool(value.as_bool().unwrap_or_else(|| integer() == 1)),
        Type::U32 => Val::U32(integer().try_into().expect("32 bits")),
        Type::U64 => Val::U64(integer().try_into().expect("a count")),
        Type::S64 => Val::S64(integer()),
        Type::String => {
            Val::String(value.as_str().unwrap_or_else(|| panic!("{value} is no text")).to_owned())
        }
        Type::Option(_) if value.is_null() => Val::Option(None),
        Type::Option(some) => Val::Option(Some(Box::new(read(value, &some.ty())))),
        Type::List(list) => {
            let values = value.as_array().unwrap_or_else(|| panic!("{value} is no list"));
            Val::List(values.iter().map(|value| read(value, &list.ty())).collect())
        }
        other => panic!("no column holds {other:?}"),
    }
}
