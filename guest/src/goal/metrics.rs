//! `metrics.json`: one flat object of numbers.

use super::evidence::{FileFact, MAX_TEXT, METRICS};
use crate::arguments::excerpt;
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// What the file holds of the metrics that are asked for.
pub struct Metrics(Read);

enum Read {
    Absent,
    /// Why nothing in it counts.
    Broken(String),
    Entries(BTreeMap<String, Entry>),
}

#[derive(Clone, Copy)]
enum Entry {
    Number(f64),
    Other,
    /// The file has it more than once.
    Twice,
}

impl Metrics {
    /// Reads what was found at [`METRICS`]; only what is wanted is kept.
    pub fn new(fact: Option<&FileFact>, wanted: &BTreeSet<&str>) -> Metrics {
        Metrics(match fact {
            Some(FileFact::Absent) => Read::Absent,
            Some(FileFact::File { text: Some(text), .. }) => match entries(text, wanted) {
                Ok(entries) => Read::Entries(entries),
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

fn entries(text: &[u8], wanted: &BTreeSet<&str>) -> serde_json::Result<BTreeMap<String, Entry>> {
    let mut json = serde_json::Deserializer::from_slice(text);
    let entries = Wanted(wanted).deserialize(&mut json)?;
    json.end()?;
    Ok(entries)
}

/// Reads an object and keeps the entries that are wanted: the file may be large.
struct Wanted<'a>(&'a BTreeSet<&'a str>);

impl<'de> DeserializeSeed<'de> for Wanted<'_> {
    type Value = BTreeMap<String, Entry>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Wanted<'_> {
    type Value = BTreeMap<String, Entry>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let entry = map.next_value::<Entry>()?;
            if self.0.contains(key.as_str()) {
                let first = !entries.contains_key(&key);
                entries.insert(key, if first { entry } else { Entry::Twice });
            }
        }
        Ok(entries)
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        deserializer.deserialize_any(OneEntry)
    }
}

struct OneEntry;

impl<'de> Visitor<'de> for OneEntry {
    type Value = Entry;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_f64<E>(self, number: f64) -> Result<Entry, E> {
        Ok(if number.is_finite() { Entry::Number(number) } else { Entry::Other })
    }

    fn visit_u64<E>(self, number: u64) -> Result<Entry, E> {
        Ok(Entry::Number(number as f64))
    }

    fn visit_i64<E>(self, number: i64) -> Result<Entry, E> {
        Ok(Entry::Number(number as f64))
    }

    fn visit_str<E>(self, _: &str) -> Result<Entry, E> {
        Ok(Entry::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Entry, E> {
        Ok(Entry::Other)
    }

    fn visit_unit<E>(self) -> Result<Entry, E> {
        Ok(Entry::Other)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entry, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Entry::Other)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Entry, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Entry::Other)
    }
}
