//! The header that rendered files and documents carry.
//!
//! It says what a file is and never what state the loop is in. It is flat YAML:
//! one `key: value` line each, every value a string that any YAML parser reads
//! back unchanged.

use super::text::is_hidden;
use super::time::push_timestamp;
use std::fmt::Write;

/// What a header says, in the order in which it says it.
#[derive(Clone, Copy, Debug)]
pub struct Header<'a> {
    /// What kind of file it is, such as `loop` or `plan`.
    pub kind: &'a str,
    /// The loop's slug.
    pub slug: &'a str,
    /// The loop's UUID; in the loop's own page only.
    pub id: Option<&'a str>,
    /// In documents about one task only.
    pub taskid: Option<&'a str>,
    /// When the content first came to be, in milliseconds since the epoch.
    pub generated: i64,
    /// When the content last changed, in milliseconds since the epoch.
    pub updated: i64,
    /// The version that writes the file.
    pub mcp: &'a str,
}

impl Header<'_> {
    /// Appends the header with both of its fences.
    pub fn write(&self, out: &mut String) {
        out.push_str("---\n");
        push_text(out, "type", self.kind);
        push_text(out, "loop", self.slug);
        if let Some(id) = self.id {
            push_text(out, "id", id);
        }
        if let Some(taskid) = self.taskid {
            push_text(out, "taskid", taskid);
        }
        push_time(out, "generated", self.generated);
        push_time(out, "updated", self.updated);
        push_text(out, "mcp", self.mcp);
        out.push_str("---\n");
    }
}

fn push_text(out: &mut String, key: &str, value: &str) {
    out.push_str(key);
    out.push_str(": ");
    if is_plain(value) {
        out.push_str(value);
    } else {
        push_quoted(out, value);
    }
    out.push('\n');
}

/// Quoted, because YAML 1.1 has a type for times and would read one.
fn push_time(out: &mut String, key: &str, ms: i64) {
    out.push_str(key);
    out.push_str(": \"");
    push_timestamp(out, ms);
    out.push_str("\"\n");
}

/// Words that some version of YAML, or a parser at large, takes for a null, a
/// truth value or a number.
const WORDS: [&str; 12] =
    ["null", "true", "false", "yes", "no", "on", "off", "y", "n", "nan", "inf", "infinity"];

/// Whether a value may stand without quotes.
///
/// Lets through what is certainly a string: a word that means nothing to YAML,
/// or what starts with a digit and has too many dots or dashes for a number
/// (versions, UUIDs) and is no date.
fn is_plain(value: &str) -> bool {
    let bytes = value.as_bytes();
    if !bytes.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b)) {
        return false;
    }
    match bytes.first() {
        Some(b) if b.is_ascii_alphabetic() => !WORDS.iter().any(|word| value.eq_ignore_ascii_case(word)),
        Some(b) if b.is_ascii_digit() => {
            let count = |mark| bytes.iter().filter(|b| **b == mark).count();
            let year =
                bytes.iter().take_while(|b| b.is_ascii_digit()).count() == 4 && bytes.get(4) == Some(&b'-');
            !year && (count(b'.') >= 2 || count(b'-') >= 2)
        }
        _ => false,
    }
}

/// Appends a value in the quotes and escapes that JSON and YAML have in common.
fn push_quoted(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // JSON would need a surrogate pair above U+FFFF, which YAML does
            // not have; both allow these as they are.
            c if is_hidden(c) && u32::from(c) <= 0xffff => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::{Header, is_plain, push_quoted};
    use proptest::prelude::*;
    use saphyr::{LoadableYamlNode, Yaml};

    fn header(slug: &str) -> String {
        let mut out = String::new();
        Header {
            kind: "task",
            slug,
            id: Some(slug),
            taskid: Some(slug),
            generated: 0,
            updated: 1,
            mcp: slug,
        }
        .write(&mut out);
        out
    }

    /// Both fences in place, and a YAML parser reads the same strings back.
    fn check(value: &str) {
        let text = header(value);
        let inner = text.strip_prefix("---\n").and_then(|rest| rest.strip_suffix("---\n")).unwrap();
        assert_eq!(inner.lines().count(), 7, "{inner}");
        let docs = Yaml::load_from_str(inner).unwrap();
        assert_eq!(docs.len(), 1);
        let map = docs[0].as_mapping().unwrap();
        let pairs: Vec<_> = map.iter().map(|(key, value)| (key.as_str().unwrap(), value.as_str())).collect();
        assert_eq!(
            pairs,
            [
                ("type", Some("task")),
                ("loop", Some(value)),
                ("id", Some(value)),
                ("taskid", Some(value)),
                ("generated", Some("1970-01-01T00:00:00.000Z")),
                ("updated", Some("1970-01-01T00:00:00.001Z")),
                ("mcp", Some(value)),
            ],
            "{text}"
        );
    }

    #[test]
    fn values_that_yaml_would_misread_are_quoted() {
        for value in [
            "",
            " ",
            "null",
            "Null",
            "NULL",
            "~",
            "yes",
            "No",
            "on",
            "OFF",
            "y",
            "N",
            "true",
            "False",
            "1",
            "0",
            "-1",
            "+1",
            "1e3",
            "1E5",
            "12e03",
            "0x1f",
            "0o17",
            "0b1",
            "017",
            "1_000",
            "1.0",
            ".5",
            "5.",
            "-.inf",
            ".nan",
            ".NaN",
            "nan",
            "inf",
            "2026-08-18",
            "2026-08-18T09:12:00Z",
            "2026-8-1",
            "1:30",
            "190:20:30",
            "#1",
            "- a",
            "-",
            "---",
            "...",
            "T1: x",
            "a:",
            "a: b",
            "a #b",
            "\"q\"",
            "'q'",
            "@a",
            "*b",
            "&c",
            "!d",
            "%e",
            "`f",
            "|",
            ">",
            "[a]",
            "{a}",
            "a, b",
            "?",
            "? a",
            "=",
            "<<",
            "a b",
            " a",
            "a ",
            "a\nb",
            "a\r\nb",
            "\t",
            "\u{0}",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "\u{202e}",
            "é",
            "\u{1f600}",
            "\u{e0041}",
            "\\",
            "a\\nb",
        ] {
            assert!(!is_plain(value), "{value:?}");
            check(value);
        }
    }

    #[test]
    fn ordinary_values_stay_plain() {
        for value in [
            "add-oauth",
            "T3",
            "task",
            "unresolved-pr-comments",
            "0.3.0",
            "1.2.3-beta.4",
            "01890000-0000-7000-8000-000000000000",
            "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "nullable",
            "one",
        ] {
            assert!(is_plain(value), "{value:?}");
            check(value);
        }
    }

    #[test]
    fn long_values_are_read_back() {
        check(&"x: #\n".repeat(20_000));
        check(&"x".repeat(100_000));
    }

    proptest! {
        #[test]
        fn any_value_is_read_back(value in prop_oneof![super::super::tests::hostile(), "[0-9a-fA-Fxobe._+-]{1,12}", any::<String>()]) {
            check(&value);
        }

        /// The escapes are those that JSON has too.
        #[test]
        fn quoted_values_are_json(value in super::super::tests::hostile()) {
            let mut out = String::new();
            push_quoted(&mut out, &value);
            prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), value);
        }
    }
}
