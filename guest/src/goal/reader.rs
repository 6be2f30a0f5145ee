//! Typed access to a tree, gathering every problem on the way instead of stopping
//! at the first.

use super::problem::{Place, Problem};
use super::tree::{Data, Entry, Value};
use crate::arguments::excerpt;
use crate::text::{is_blank, nearest};
use std::fmt::Display;

/// A text with the line that it stands on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    pub text: String,
    pub line: u32,
}

/// How many problems are put into words; a hostile file could have a hundred thousand.
const KEPT: usize = 1000;

/// Gathers what is wrong.
#[derive(Debug, Default)]
pub struct Reader {
    pub problems: Vec<Problem>,
}

/// A map with the place where it stands.
pub struct Fields<'a> {
    pub place: Place<'a>,
    pub line: u32,
    entries: &'a [Entry<'a>],
}

impl<'a> Fields<'a> {
    /// A map whose fields are not checked yet.
    pub fn open(place: Place<'a>, line: u32, entries: &'a [Entry<'a>]) -> Fields<'a> {
        Fields { place, line, entries }
    }

    /// The value of a field; a field that is null counts as left out.
    pub fn get(&self, key: &str) -> Option<&'a Value<'a>> {
        let entry = self.entries.iter().find(|entry| entry.key == key)?;
        (entry.value.data != Data::Null).then_some(&entry.value)
    }

    /// The place of a field.
    pub fn at<'b>(&'b self, key: &'b str) -> Place<'b> {
        self.place.key(key)
    }

    /// The names of the fields that say something, in the order of the file.
    pub fn names(&self) -> impl Iterator<Item = &'a str> {
        self.entries.iter().filter(|entry| !entry.value.is_empty()).map(|entry| &*entry.key)
    }
}

impl Reader {
    /// Notes a problem.
    pub fn problem(&mut self, place: impl Display, line: u32, message: impl Into<String>) {
        if self.problems.len() < KEPT {
            self.problems.push(Problem {
                path: place.to_string(),
                line: Some(line),
                message: message.into(),
            });
        }
    }

    fn takes(&mut self, place: Place, value: &Value, takes: &str) {
        let quote = match value.data {
            Data::Bool(_) | Data::Number(_) if takes.starts_with("text") => "; quotes make it text",
            _ => "",
        };
        self.problem(place, value.line, format!("takes {takes}, not {}{quote}", value.kind()));
    }

    /// The fields of a map, once each of them is one that `what` has.
    pub fn fields<'a>(
        &mut self,
        value: &'a Value<'a>,
        place: Place<'a>,
        what: impl Display,
        accepted: &[&str],
    ) -> Option<Fields<'a>> {
        let Data::Map(entries) = &value.data else {
            self.takes(place, value, &format!("{what}: a map with {}", accepted.join(", ")));
            return None;
        };
        for entry in entries {
            if accepted.contains(&&*entry.key) || self.problems.len() >= KEPT {
                continue;
            }
            let mut message = format!("is no field of {what}; it takes {}", accepted.join(", "));
            if let Some(near) = nearest(&entry.key, accepted.iter().copied()).first() {
                message.push_str(&format!(" (`{near}`?)"));
            }
            self.problem(place.key(&entry.key), entry.line, message);
        }
        Some(Fields { place, line: value.line, entries })
    }

    /// The entries of a list; none when the field is left out.
    pub fn list<'a>(&mut self, fields: &Fields<'a>, key: &str) -> &'a [Value<'a>] {
        match fields.get(key) {
            Some(value) => self.items(value, fields.at(key)),
            None => &[],
        }
    }

    /// The entries of a list.
    pub fn items<'a>(&mut self, value: &'a Value<'a>, place: Place) -> &'a [Value<'a>] {
        match &value.data {
            Data::List(items) => items,
            Data::Null => &[],
            _ => {
                self.takes(place, value, "a list");
                &[]
            }
        }
    }

    /// A field of text that has to be there.
    pub fn text(&mut self, fields: &Fields, key: &str) -> Word {
        match fields.get(key) {
            Some(value) => self.word(value, fields.at(key)),
            None => {
                self.missing(fields, key);
                Word { text: String::new(), line: fields.line }
            }
        }
    }

    /// A field of text that may be left out.
    pub fn optional_text(&mut self, fields: &Fields, key: &str) -> Option<String> {
        let value = fields.get(key)?;
        Some(self.word(value, fields.at(key)).text)
    }

    /// A list of texts.
    pub fn texts(&mut self, fields: &Fields, key: &str) -> Vec<Word> {
        self.words(fields, key, Reader::word)
    }

    fn words(
        &mut self,
        fields: &Fields,
        key: &str,
        read: impl Fn(&mut Reader, &Value, Place) -> Word,
    ) -> Vec<Word> {
        let list = fields.at(key);
        let items = self.list(fields, key).iter().enumerate();
        items.map(|(i, value)| read(self, value, list.index(i))).collect()
    }

    fn word(&mut self, value: &Value, place: Place) -> Word {
        match &value.data {
            Data::Text(text) => Word { text: text.clone().into_owned(), line: value.line },
            _ => {
                self.takes(place, value, "text");
                Word { text: String::new(), line: value.line }
            }
        }
    }

    /// A text that has to be there, one line of it and not blank: a name.
    pub fn name(&mut self, fields: &Fields, key: &str) -> Word {
        match fields.get(key) {
            Some(value) => self.named(value, fields.at(key)),
            None => self.text(fields, key),
        }
    }

    /// A list of names.
    pub fn names(&mut self, fields: &Fields, key: &str) -> Vec<Word> {
        self.words(fields, key, Reader::named)
    }

    fn named(&mut self, value: &Value, place: Place) -> Word {
        let word = self.word(value, place);
        if matches!(value.data, Data::Text(_)) {
            if is_blank(&word.text) {
                self.problem(place, value.line, "is empty");
            } else if word.text.chars().any(char::is_control) {
                self.problem(place, value.line, "holds a control character");
            }
        }
        word
    }

    fn missing(&mut self, fields: &Fields, key: &str) {
        self.problem(fields.at(key), fields.line, "is missing");
    }

    /// True or false, with what it is when left out.
    pub fn flag(&mut self, fields: &Fields, key: &str, default: bool) -> bool {
        match fields.get(key).map(|value| (&value.data, value)) {
            None => default,
            Some((Data::Bool(flag), _)) => *flag,
            Some((_, value)) => {
                self.takes(fields.at(key), value, "true or false");
                default
            }
        }
    }

    /// A finite number.
    pub fn number(&mut self, fields: &Fields, key: &str) -> Option<f64> {
        let value = fields.get(key)?;
        match value.data {
            Data::Number(number) if number.is_finite() => return Some(number),
            Data::Number(number) => {
                let message = format!(
                    "takes a finite number, not {}",
                    if number.is_nan() { "NaN" } else { "infinity" }
                );
                self.problem(fields.at(key), value.line, message);
            }
            _ => self.takes(fields.at(key), value, "a number"),
        }
        None
    }

    /// A finite number that has to be there.
    pub fn required_number(&mut self, fields: &Fields, key: &str) -> f64 {
        if fields.get(key).is_none() {
            self.missing(fields, key);
        }
        self.number(fields, key).unwrap_or_default()
    }

    /// A whole number within bounds.
    pub fn whole(&mut self, fields: &Fields, key: &str, from: i32, to: u32) -> Option<i64> {
        let value = fields.get(key)?;
        if let Data::Number(number) = value.data
            && number.fract() == 0.0
            && number >= f64::from(from)
            && number <= f64::from(to)
        {
            // In bounds, so the cast keeps the value.
            return Some(number as i64);
        }
        let got = match value.data {
            Data::Number(number) => format!("{number}"),
            _ => value.kind().to_owned(),
        };
        self.problem(
            fields.at(key),
            value.line,
            format!("takes a whole number from {from} to {to}, not {got}"),
        );
        None
    }

    /// One word of a closed set; `None` when it is left out or wrong.
    pub fn one_of<T>(
        &mut self,
        fields: &Fields,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        words: &[&str],
    ) -> Option<T> {
        let value = fields.get(key)?;
        let Data::Text(text) = &value.data else {
            self.takes(fields.at(key), value, &format!("one of {}", words.join(", ")));
            return None;
        };
        let parsed = parse(text);
        if parsed.is_none() {
            let mut message = format!("is `{}`; it takes {}", excerpt(text), words.join(", "));
            if let Some(near) = nearest(text, words.iter().copied()).first() {
                message.push_str(&format!(" (`{near}`?)"));
            }
            self.problem(fields.at(key), value.line, message);
        }
        parsed
    }

    /// One word of a closed set that has to be there.
    pub fn required_one_of<T>(
        &mut self,
        fields: &Fields,
        key: &str,
        parse: impl Fn(&str) -> Option<T>,
        words: &[&str],
    ) -> Option<T> {
        if fields.get(key).is_none() {
            self.problem(fields.at(key), fields.line, format!("is missing; it takes {}", words.join(", ")));
        }
        self.one_of(fields, key, parse, words)
    }
}
