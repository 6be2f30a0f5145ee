//! A column's value as JSON, without loss.
//!
//! Null, integers and texts are JSON's own. A real number is `{"real": "1.5"}`,
//! its shortest text that reads back as the same bits, because JSON readers round;
//! bytes are `{"blob": "<base64>"}`. Stored contents stay gzipped in there: no row
//! needs to be understood to be kept, and what comes back is the same to the byte.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rusqlite::types::{ToSql, ToSqlOutput, Value, ValueRef};
use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// The value of one column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cell(pub Value);

impl Cell {
    /// Takes a value from a row; `None` for a text that is no UTF-8.
    pub(super) fn of(value: ValueRef<'_>) -> Option<Cell> {
        Some(Cell(match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(_) => Value::Text(value.as_str().ok()?.to_owned()),
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_owned()),
        }))
    }

    pub(super) fn text(text: &str) -> Cell {
        Cell(Value::Text(text.to_owned()))
    }

    pub(super) fn as_text(&self) -> Option<&str> {
        match &self.0 {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn as_integer(&self) -> Option<i64> {
        match self.0 {
            Value::Integer(number) => Some(number),
            _ => None,
        }
    }

    pub(super) fn as_blob(&self) -> Option<&[u8]> {
        match &self.0 {
            Value::Blob(bytes) => Some(bytes),
            _ => None,
        }
    }
}

impl ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        self.0.to_sql()
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let tagged = |to: S, tag: &str, text: &str| {
            let mut map = to.serialize_map(Some(1))?;
            map.serialize_entry(tag, text)?;
            map.end()
        };
        match &self.0 {
            Value::Null => to.serialize_unit(),
            Value::Integer(number) => to.serialize_i64(*number),
            Value::Text(text) => to.serialize_str(text),
            Value::Real(number) => tagged(to, "real", &format!("{number:?}")),
            Value::Blob(bytes) => tagged(to, "blob", &BASE64.encode(bytes)),
        }
    }
}

impl<'de> Deserialize<'de> for Cell {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Cell, D::Error> {
        let json = Json::deserialize(from)?;
        read(json).map(Cell).ok_or_else(|| D::Error::custom("a value that no column has"))
    }
}

fn read(json: Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Number(number) => Value::Integer(number.as_i64()?),
        Json::String(text) => Value::Text(text),
        Json::Object(map) if map.len() == 1 => match map.iter().next() {
            Some((tag, Json::String(text))) if tag == "real" => Value::Real(text.parse().ok()?),
            Some((tag, Json::String(text))) if tag == "blob" => Value::Blob(BASE64.decode(text).ok()?),
            _ => return None,
        },
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn value() -> impl Strategy<Value = Value> {
        prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::Integer),
            any::<f64>().prop_filter("SQLite has none", |n| !n.is_nan()).prop_map(Value::Real),
            any::<String>().prop_map(Value::Text),
            any::<Vec<u8>>().prop_map(Value::Blob),
        ]
    }

    proptest! {
        #[test]
        fn every_value_comes_back(value in value()) {
            let json = serde_json::to_string(&Cell(value.clone())).unwrap();
            let back = serde_json::from_str::<Cell>(&json).unwrap().0;
            match (&value, &back) {
                (Value::Real(a), Value::Real(b)) => prop_assert_eq!(a.to_bits(), b.to_bits()),
                _ => prop_assert_eq!(&value, &back),
            }
        }
    }

    #[test]
    fn what_is_no_value_is_refused() {
        let cases = [
            "true",
            "[]",
            "{}",
            "1.5",
            "9223372036854775808",
            r#"{"real":1.5}"#,
            r#"{"real":"x"}"#,
            r#"{"blob":"!"}"#,
            r#"{"text":"x"}"#,
            r#"{"real":"1","blob":""}"#,
        ];
        for json in cases {
            assert!(serde_json::from_str::<Cell>(json).is_err(), "{json}");
        }
    }
}
