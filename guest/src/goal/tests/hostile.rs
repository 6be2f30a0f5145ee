//! Texts that are made to hurt: none panics, none takes memory or time.

use super::{problems, read};
use crate::goal::pattern::{MAX_STEPS, Pattern, Search};
use crate::goal::tree::{self, Data, MAX_BYTES, Value};
use proptest::prelude::*;
use std::time::{Duration, Instant};

/// Far more than any of these takes, and far less than one without a bound would.
const PATIENCE: Duration = Duration::from_secs(5);

#[test]
fn bombs_are_refused_at_once() {
    let laughs = {
        let mut text =
            "name: x\nmemory:\n  a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
        for i in 1..12 {
            let aliases = vec![format!("*a{}", i - 1); 9].join(", ");
            text.push_str(&format!("  a{i}: &a{i} [{aliases}]\n"));
        }
        text
    };
    let long = format!(
        "name: x\nmemory:\n  a: &a {}\n  b: [{}]\n",
        "x".repeat(100_000),
        vec!["*a"; 10_000].join(", ")
    );
    let nested = |open: &str, n: usize| format!("name: x\nmemory: {}", open.repeat(n));
    let keys = (0..60_000).map(|i| format!("k{i}: 1\n")).collect::<String>();
    let table = [
        (laughs, "more than 200000 values"),
        (long, "bytes of text"),
        (format!("name: x\nmemory: {}{}", "[".repeat(70), "]".repeat(70)), "deeper than 64"),
        (nested("[", 400_000), "(line 2)"),
        (nested("{a: ", 200_000), "(line 2)"),
        (
            format!(
                "name: x\nmemory:\n{}",
                (0..900).map(|i| format!("{}a:\n", " ".repeat(i + 1))).collect::<String>()
            ),
            "deeper than 64",
        ),
        (format!("name: x\nmemory:\n  {}", "- ".repeat(300_000)), "deeper than 64"),
        (format!("name: x\nmemory:\n  {}", "? ".repeat(300_000)), "(line 3)"),
        (format!("name: x\nmemory: [{}]", "0,".repeat(500_000)), "more than 200000 values"),
        (format!("name: x\nmemory: {}", "&a ".repeat(300_000)), "(line 2)"),
        (format!("name: x\nmemory: \"{}", "\\".repeat(800_000)), "(line "),
        (format!("name: x\nmemory: !{}", "a".repeat(800_000)), "the tag"),
        (format!("name: x\n{}", keys), "is no field of a goal configuration"),
        (format!("name: x\n{}", "name: y\n".repeat(100_000)), "stands here a second time"),
        (format!("name: x\n{}", "#".repeat(MAX_BYTES)), "a configuration has at most 1048576"),
        (format!("{{\"name\": {}1{}}}", "[".repeat(120), "]".repeat(120)), "deeper than 64"),
    ];
    for (text, words) in table {
        let start = Instant::now();
        let said = problems(&text);
        let head: String = text.chars().take(60).collect();
        assert!(said.contains(words), "{head}: {}", said.lines().next().unwrap_or("nothing"));
        assert!(said.len() < 100_000, "{head}: {} bytes", said.len());
        assert!(start.elapsed() < PATIENCE, "{head}: {:?}", start.elapsed());
    }
    assert!(problems_of(b"name: \xff").starts_with("the configuration (line 1): is not UTF-8"));
    assert_eq!(problems("\u{feff}name: x"), "", "a byte order mark is no content");
}

fn problems_of(bytes: &[u8]) -> String {
    read(bytes).map(|_| String::new()).unwrap_or_else(|rejected| rejected.to_string())
}

#[test]
fn patterns_are_bounded() {
    for pattern in [
        "(a{1000}){1000}",
        r"\pL{500}",
        "((((a{50}){50}){50}){50})",
        &"(".repeat(150),
        &"a".repeat(3000),
        &format!("{}a{}", "(".repeat(120), ")".repeat(120)),
    ] {
        let start = Instant::now();
        assert!(Pattern::new(pattern).is_err(), "{}", &pattern[..pattern.len().min(40)]);
        assert!(start.elapsed() < PATIENCE);
    }
    let many = (0..2_000).map(|i| format!("  - {{target: overall, name: c{i}, mode: objective, statement: s, detector: {{type: regex_match, artifact: a, pattern: '\\w{{20}}{i}'}}}}\n")).collect::<String>();
    let start = Instant::now();
    let said = problems(&format!("name: x\nvalidations:\n{many}"));
    assert!(said.contains("is one too many"), "{}", &said[..said.len().min(200)]);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());
}

/// Searches that take a backtracking matcher longer than anyone waits.
#[test]
fn searches_are_bounded() {
    let text = "a".repeat(8 << 20);
    let mixed: String = ["ab ", "é", "ba"].concat().repeat(1 << 20);
    for pattern in [
        r"(a+)+$b",
        r"(a|aa)+b",
        r"a?{1000}a{900}b",
        r"[ab]*a[ab]{200}c",
        r"(\w+\s*)+\b\d",
        r"(?:.*a.*){40}z",
        r"\b(\w|é)+\b!",
    ] {
        let compiled = Pattern::new(pattern).unwrap();
        for text in [&text, &mixed] {
            let start = Instant::now();
            let found = compiled.search(text.as_bytes(), &mut { MAX_STEPS });
            let finds = pattern == "(a|aa)+b" && text == &mixed;
            assert_eq!(found == Search::Found, finds, "{pattern}");
            assert!(start.elapsed() < PATIENCE, "{pattern}: {:?}", start.elapsed());
        }
    }
}

#[test]
fn patterns_read_as_rust_does() {
    let table = [
        (r"^v\d+\.\d+$", "v1.20", true),
        (r"(?m)^b$", "a\nb\nc", true),
        (r"^b$", "a\nb\nc", false),
        (r"(?i)STRASSE", "strasse", true),
        (r"\p{Greek}", "λ", true),
        (r"\bword\b", "über word ß", true),
        (r"\bé", "é", true),
        (r"(?x) a  b # comment", "ab", true),
        (r"a.c", "a\nc", false),
        (r"(?s)a.c", "a\nc", true),
        (r"[[:alpha:]--b]", "b", false),
        ("", "", true),
    ];
    for (pattern, text, wanted) in table {
        let found = Pattern::new(pattern).unwrap().search(text.as_bytes(), &mut { MAX_STEPS });
        assert_eq!(found, if wanted { Search::Found } else { Search::NotFound }, "{pattern} in {text:?}");
    }
    for pattern in ["(?=a)", r"(a)\1", "a**b)", "[z-a]", r"\p{Nope}", "a{2,1}", "(?P<n"] {
        let why = Pattern::new(pattern).unwrap_err();
        assert!(why.starts_with("does not compile: ") && why.lines().count() == 1, "{why}");
    }
}

/// Fragments that configurations are made of, so that junk gets past the first line.
fn fragment() -> impl Strategy<Value = String> {
    let pieces = vec![
        "name: x\n",
        "goals:\n",
        "validations:\n",
        "graph:\n",
        "  nodes:\n",
        "  - ",
        "    - ",
        "{",
        "}",
        "[",
        "]",
        ", ",
        ": ",
        "id: a",
        "role: builder",
        "instruction: |\n",
        "depends_on: ",
        "detector: ",
        "type: script",
        "weight: .nan",
        "&a ",
        "*a",
        "!!str ",
        "!x ",
        "? ",
        "- ",
        "\"",
        "'",
        "\\",
        "#",
        "---\n",
        "...\n",
        "%YAML 1.2\n",
        "|2-\n",
        ">+\n",
        "\n",
        "  ",
        "\t",
        "\r",
        "\u{feff}",
        "\u{85}",
        "\u{2028}",
        "é",
        "<<: *a\n",
        "\\u12",
        "\"\\ud800\"",
        "~",
        "@",
        "`",
        ":",
        "intent: ",
        "safety: ",
        "execution: ",
        "\u{0}",
    ];
    prop_oneof![
        12 => prop::sample::select(pieces).prop_map(str::to_owned),
        1 => any::<String>(),
    ]
}

/// A JSON value as a configuration might hold it.
fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        any::<String>().prop_map(serde_json::Value::from),
        (-1e9..1e9_f64).prop_map(serde_json::Value::from),
        any::<i32>().prop_map(serde_json::Value::from),
        any::<bool>().prop_map(serde_json::Value::from),
        Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(serde_json::Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..6)
                .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
        ]
    })
}

/// The tree as JSON.
fn back(value: &Value) -> serde_json::Value {
    match &value.data {
        Data::Null => serde_json::Value::Null,
        Data::Bool(flag) => (*flag).into(),
        Data::Number(number) => (*number).into(),
        Data::Text(text) => (&**text).into(),
        Data::List(items) => items.iter().map(back).collect(),
        Data::Map(entries) => serde_json::Value::Object(
            entries.iter().map(|entry| (entry.key.to_string(), back(&entry.value))).collect(),
        ),
    }
}

/// Every number as the double that it is read as.
fn doubles(value: &serde_json::Value) -> serde_json::Value {
    match value {
        serde_json::Value::Number(number) => number.as_f64().into(),
        serde_json::Value::Array(items) => items.iter().map(doubles).collect(),
        serde_json::Value::Object(map) => {
            serde_json::Value::Object(map.iter().map(|(key, value)| (key.clone(), doubles(value))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn junk_never_panics(pieces in prop::collection::vec(fragment(), 0..60)) {
        let text = pieces.concat();
        if let Err(rejected) = read(text.as_bytes()) {
            prop_assert!(!rejected.problems.is_empty());
        }
    }

    #[test]
    fn bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&bytes);
    }
}

proptest! {
    #[test]
    fn json_reads_as_json(value in json(), pretty: bool) {
        let wrapped = serde_json::json!({"v": value});
        let text = if pretty { serde_json::to_string_pretty(&wrapped) } else { serde_json::to_string(&wrapped) }.unwrap();
        let read = tree::read(text.as_bytes()).map_err(|problems| format!("{problems:?}\n{text}"));
        prop_assert_eq!(read.map(|value| back(&value)), Ok(doubles(&wrapped)));
    }

    /// All as escapes, as some writers do.
    #[test]
    fn escaped_json_reads_as_json(value in any::<String>()) {
        let escaped: String = value.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        let text = format!("{{\n\t\"v\":\t\"{escaped}\"}}");
        let read = tree::read(text.as_bytes()).map_err(|problems| format!("{problems:?}"));
        prop_assert_eq!(read.map(|value| back(&value)), Ok(serde_json::json!({"v": value})));
    }
}
