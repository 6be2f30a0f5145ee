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

/// Every key that a header of ours can have.
const KEYS: [&str; 7] = ["type", "loop", "id", "taskid", "generated", "updated", "mcp"];

/// Those without which a header is not ours.
const REQUIRED: [&str; 2] = ["type", "loop"];

/// The keys and values of a header.
pub type Pairs = Vec<(String, String)>;

/// Takes the headers of ours off the beginning of a text, and returns the last of
/// them with what comes after it.
///
/// What is not understood is no header: a block with another key, a nested value,
/// a list, or no end stays where it is. A byte-order mark before a header and
/// carriage returns in it are an editor's doing and go with it.
pub fn strip(text: &str) -> (Pairs, &str) {
    let mut header = Pairs::new();
    let mut body = text;
    while let Some((pairs, rest)) = strip_one(body) {
        header = pairs;
        body = rest;
    }
    (header, body)
}

fn strip_one(text: &str) -> Option<(Pairs, &str)> {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut next_line = || {
        let (line, after) = rest.split_once('\n')?;
        rest = after;
        Some(line.strip_suffix('\r').unwrap_or(line))
    };
    if next_line()? != "---" {
        return None;
    }
    let mut pairs = Pairs::new();
    loop {
        let line = next_line()?;
        if line == "---" {
            break;
        }
        let (key, value) = line.split_once(':')?;
        let known = KEYS.contains(&key) && pairs.iter().all(|(earlier, _)| earlier != key);
        if !known {
            return None;
        }
        pairs.push((key.to_owned(), scalar(value.strip_prefix([' ', '\t'])?.trim_matches([' ', '\t']))?));
    }
    REQUIRED.iter().all(|key| pairs.iter().any(|(k, _)| k == key)).then_some((pairs, rest))
}

/// Reads a value of the flat subset.
fn scalar(value: &str) -> Option<String> {
    if value.starts_with('"') {
        return serde_json::from_str(value).ok();
    }
    if let Some(quoted) = value.strip_prefix('\'') {
        let inner = quoted.strip_suffix('\'')?.replace("''", "\0");
        return (!inner.contains('\'')).then(|| inner.replace('\0', "'"));
    }
    let means_more = value
        .starts_with(['[', '{', '&', '*', '!', '|', '>', '%', '@', '`', '#', '-', '?', ',', ']', '}'])
        || value.contains(": ")
        || value.contains(" #")
        || value.ends_with(':');
    (!value.is_empty() && !means_more).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{Header, is_plain, push_quoted, strip};
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
    fn only_our_headers_are_taken_off() {
        let ours = header("demo");
        for body in [
            "",
            "text",
            "---\nstatus: done\nphase: qa\n---\n",
            "---",
            "---\n---\n",
            "a\n---\nb\n...\n",
            "---\ntype: plan",
            "---\ntype: plan\nloop: x\n",
            "---\ntype: plan\n---\n",
            "---\ntype: plan\nloop: x\nstatus: done\n---\n",
            "---\ntype: plan\nloop: [1, 2]\n---\n",
            "---\ntype: plan\nloop:\n  x: y\n---\n",
            "---\ntype: plan\ntype: plan\nloop: x\n---\n",
            "---\ntype: plan\nloop:\n---\n",
            "--- \ntype: plan\nloop: x\n---\n",
            "\n---\ntype: plan\nloop: x\n---\n",
            "\u{feff}text",
            "\r\n",
            "a\rb",
        ] {
            assert_eq!(strip(body), (Vec::new(), body));
            let stamped = format!("{ours}{body}");
            let (pairs, rest) = strip(&stamped);
            assert_eq!((pairs.len(), rest), (7, body));
            assert_eq!(strip(&format!("{ours}{stamped}")).1, body, "doubled");
            let windows = format!("\u{feff}{}{body}", ours.replace('\n', "\r\n"));
            assert_eq!(strip(&windows).1, body);
        }
        let quoted = "---\ntype: 'it''s'\nloop: \"a\\u0041\"\nupdated: yesterday\n---\nx";
        let (pairs, rest) = strip(quoted);
        let pairs: Vec<_> = pairs.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(pairs, [("type", "it's"), ("loop", "aA"), ("updated", "yesterday")]);
        assert_eq!(rest, "x");
    }

    #[test]
    fn long_values_are_read_back() {
        check(&"x: #\n".repeat(20_000));
        check(&"x".repeat(100_000));
    }

    proptest! {
        /// What is stamped comes off again, whatever stands in it.
        #[test]
        fn stripping_undoes_stamping(value in super::super::tests::hostile(), body in super::super::tests::hostile()) {
            prop_assume!(strip(&body).0.is_empty());
            let text = header(&value) + &body;
            let (pairs, rest) = strip(&text);
            prop_assert_eq!(&pairs[1], &("loop".to_owned(), value));
            prop_assert_eq!(rest, body);
        }

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
