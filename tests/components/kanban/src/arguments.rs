//! What a call's arguments say.

use serde_json::{Map, Value};

/// The longest text that an argument may be, in characters.
const TEXT_MAX: usize = 200;

/// The longest name of a board.
const NAME_MAX: usize = 40;

/// The arguments of one call, all of which the tool knows.
pub struct Arguments(Map<String, Value>);

impl Arguments {
    /// Reads a JSON object that has no more than these keys.
    pub fn read(json: &str, known: &[&str]) -> Result<Arguments, String> {
        let Ok(Value::Object(map)) = serde_json::from_str(json) else {
            return Err("the arguments are no JSON object".to_owned());
        };
        match map.keys().find(|key| !known.contains(&key.as_str())) {
            Some(key) => Err(format!("there is no argument `{key}`; this tool takes {}", listed(known))),
            None => Ok(Arguments(map)),
        }
    }

    /// A text that has to be there, without blanks around it.
    pub fn text(&self, key: &str) -> Result<&str, String> {
        self.optional_text(key)?.ok_or_else(|| format!("`{key}` is missing"))
    }

    pub fn optional_text(&self, key: &str) -> Result<Option<&str>, String> {
        let text = match self.0.get(key) {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::String(text)) => text.trim(),
            Some(_) => return Err(format!("`{key}` is no text")),
        };
        match text.chars().count() {
            0 => Err(format!("`{key}` is blank")),
            n if n > TEXT_MAX => Err(format!("`{key}` has {n} characters; {TEXT_MAX} are taken")),
            _ if text.chars().any(char::is_control) => Err(format!("`{key}` holds a control character")),
            _ => Ok(Some(text)),
        }
    }

    /// The name of a board, which is also that of its folder.
    pub fn name(&self, key: &str) -> Result<&str, String> {
        let name = self.text(key)?;
        let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.len() <= NAME_MAX && name.chars().all(fits) && !name.starts_with('-') {
            return Ok(name);
        }
        Err(format!("`{key}` cannot be {name:?}: up to {NAME_MAX} of a-z, 0-9 and `-`, no `-` first"))
    }

    /// A number of cards from 1 to 99.
    pub fn limit(&self, key: &str, default: u32) -> Result<u32, String> {
        match self.0.get(key) {
            None | Some(Value::Null) => Ok(default),
            Some(value) => value
                .as_u64()
                .and_then(|n| u32::try_from(n).ok())
                .filter(|n| (1..=99).contains(n))
                .ok_or_else(|| format!("`{key}` is no whole number from 1 to 99")),
        }
    }
}

pub fn listed(words: &[&str]) -> String {
    words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
}
