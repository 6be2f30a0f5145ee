//! `metrics.json`: one flat object of numbers.

use super::evidence::{FileFact, MAX_TEXT, METRICS};
use crate::arguments::excerpt;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// What the file holds.
pub struct Metrics(Read);

enum Read {
    Absent,
    /// Why nothing in it counts.
    Broken(String),
    Entries(BTreeMap<String, Entry>),
}

enum Entry {
    Number(f64),
    Other,
    /// The file has it more than once.
    Twice,
}

impl Metrics {
    /// Reads what was found at [`METRICS`].
    pub fn new(fact: Option<&FileFact>) -> Metrics {
        Metrics(match fact {
            Some(FileFact::Absent) => Read::Absent,
            Some(FileFact::File { text: Some(text), .. }) => match serde_json::from_slice::<Object>(text) {
                Ok(object) => Read::Entries(object.0),
                Err(error) => Read::Broken(format!(
                    "{METRICS} is no flat JSON object of numbers: {}",
                    excerpt(&error.to_string())
                )),
            },
            Some(FileFact::NotAFile) => Read::Broken(format!("{METRICS} is no file")),
            Some(FileFact::Outside) => Read::Broken(format!("{METRICS} leads out of the working folder")),
            Some(FileFact::TooLarge { bytes }) => {
                Read::Broken(format!("{METRICS} has {bytes} bytes; up to {MAX_TEXT} are read"))
            }
            Some(FileFact::Unreadable { reason }) => {
                Read::Broken(format!("{METRICS} cannot be read: {}", excerpt(reason)))
            }
            Some(FileFact::File { text: None, .. }) | None => Read::Broken(format!("{METRICS} was not read")),
        })
    }

    /// A metric; `None` when the file does not have it, an error when what it has is
    /// no number to go by.
    pub fn get(&self, metric: &str) -> Result<Option<f64>, String> {
        let entries = match &self.0 {
            Read::Absent => return Ok(None),
            Read::Broken(why) => return Err(why.clone()),
            Read::Entries(entries) => entries,
        };
        match entries.get(metric) {
            None => Ok(None),
            Some(Entry::Number(number)) => Ok(Some(*number)),
            Some(Entry::Other) => Err(format!("`{}` in {METRICS} is no finite number", excerpt(metric))),
            Some(Entry::Twice) => Err(format!("`{}` stands in {METRICS} more than once", excerpt(metric))),
        }
    }
}

struct Object(BTreeMap<String, Entry>);

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Object, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut entries = BTreeMap::new();
                while let Some((key, value)) = map.next_entry::<String, Value>()? {
                    let entry = match value.as_f64().filter(|number| number.is_finite()) {
                        Some(number) => Entry::Number(number),
                        None => Entry::Other,
                    };
                    let entry = if entries.contains_key(&key) { Entry::Twice } else { entry };
                    entries.insert(key, entry);
                }
                Ok(Object(entries))
            }

            fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut seq: A) -> Result<Object, A::Error> {
                while seq.next_element::<IgnoredAny>()?.is_some() {}
                Err(A::Error::custom("it is a list"))
            }
        }
        deserializer.deserialize_any(Entries)
    }
}
