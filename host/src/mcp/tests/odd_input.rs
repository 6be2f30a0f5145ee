//! What odd input is answered with, as a table.

use proptest::prelude::*;

use super::*;

/// Writes an answer in short: the id, then an error's code or what the result is.
fn brief(answer: &Value) -> String {
    assert_eq!(answer["jsonrpc"], "2.0");
    let id = &answer["id"];
    if let Some(error) = answer.get("error") {
        assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{answer}");
        return format!("{id} {}", error["code"]);
    }
    let result = &answer["result"];
    let era = if result.get("resultType").is_some() { " modern" } else { "" };
    let what = if let Some(version) = result.get("protocolVersion") {
        format!("initialize {}", version.as_str().expect("a string"))
    } else if result.get("supportedVersions").is_some() {
        "discover".to_owned()
    } else if let Some(tools) = result.get("tools") {
        let names: Vec<_> = tools
            .as_array()
            .expect("a list")
            .iter()
            .map(|tool| tool["name"].as_str().expect("a name"))
            .collect();
        format!("tools {}", names.join(","))
    } else if let Some(content) = result.get("content") {
        let state = if result["isError"] == true { "failed" } else { "done" };
        format!("{state} {}", content[0]["text"].as_str().expect("a text"))
    } else {
        result.to_string()
    };
    format!("{id} {what}{era}")
}

fn request(id: &str, method: &str, params: &str) -> String {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\",\"params\":{{{params}}}}}\n")
}

fn echo(id: &str) -> String {
    request(id, "tools/call", r#""name":"echo","arguments":{"n":1}"#)
}

fn initialize(version: &str) -> String {
    let params = format!(
        r#""protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"t","version":"0"}}"#
    );
    request("0", "initialize", &params)
}

/// What the client says after the handshake, and what it hears after that.
fn after_hello() -> Vec<(&'static str, String, &'static [&'static str])> {
    let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    vec![
        ("unfinished JSON", "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/li\n".into(), &["null -32700"]),
        ("NUL bytes", "\0\0\0\n".into(), &["null -32700"]),
        (
            "lone surrogate",
            request("1", "tools/call", r#""name":"echo","arguments":{"t":"\ud800"}"#),
            &["null -32700"],
        ),
        (
            "nested too deep",
            request("1", "tools/call", &format!(r#""name":"echo","arguments":{{"x":{}}}"#, nested(200))),
            &["null -32700"],
        ),
        ("two values on a line", "{} {}\n".into(), &["null -32700"]),
        ("number", "42\n".into(), &["null -32600"]),
        ("string", "\"ping\"\n".into(), &["null -32600"]),
        ("batch", format!("[{}]\n", request("1", "ping", "").trim_end()), &["null -32600"]),
        ("empty batch", "[]\n".into(), &["null -32600"]),
        ("empty object", "{}\n".into(), &["null -32600"]),
        ("id without method", "{\"jsonrpc\":\"2.0\",\"id\":1}\n".into(), &["1 -32600"]),
        ("method that is a number", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":5}\n".into(), &["1 -32600"]),
        (
            "params that are an array",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":[]}\n".into(),
            &["1 -32602"],
        ),
        ("no jsonrpc", "{\"id\":1,\"method\":\"ping\"}\n".into(), &["1 -32602"]),
        ("jsonrpc 1.0", "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}\n".into(), &["1 -32602"]),
        (
            "request that is a response too",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"result\":{}}\n".into(),
            &["1 -32602"],
        ),
        (
            "call without params",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\"}\n".into(),
            &["1 -32602"],
        ),
        ("call without a name", request("1", "tools/call", ""), &["1 -32602"]),
        ("call with a number as name", request("1", "tools/call", r#""name":1"#), &["1 -32602"]),
        ("string arguments", request("1", "tools/call", r#""name":"echo","arguments":"{}""#), &["1 -32602"]),
        ("array arguments", request("1", "tools/call", r#""name":"echo","arguments":[]"#), &["1 -32602"]),
        ("meta that is a string", request("1", "tools/list", r#""_meta":"x""#), &["1 -32602"]),
        ("meta that is null", request("1", "ping", r#""_meta":null"#), &["1 {}"]),
        ("cursor that is a number", request("1", "tools/list", r#""cursor":1"#), &["1 -32602"]),
        ("cursor that was never given", request("1", "tools/list", r#""cursor":"zzz""#), &["1 -32602"]),
        ("unknown method", request("1", "no/such", ""), &["1 -32601"]),
        (
            "unknown method with null params",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"no/such\",\"params\":null}\n".into(),
            &["1 -32601"],
        ),
        ("resources/list", request("1", "resources/list", ""), &["1 -32601"]),
        ("prompts/list", request("1", "prompts/list", ""), &["1 -32601"]),
        ("prompts/get", request("1", "prompts/get", r#""name":"x""#), &["1 -32601"]),
        ("logging/setLevel", request("1", "logging/setLevel", r#""level":"info""#), &["1 -32601"]),
        (
            "completion/complete",
            request(
                "1",
                "completion/complete",
                r#""ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a","value":"b"}"#,
            ),
            &["1 -32601"],
        ),
        ("tasks/get", request("1", "tasks/get", r#""taskId":"x""#), &["1 -32601"]),
        ("unknown tool", request("1", "tools/call", r#""name":"nope""#), &["1 -32602"]),
        ("failing tool", request("1", "tools/call", r#""name":"fail""#), &["1 failed it failed; do that"]),
        ("no arguments", request("1", "tools/call", r#""name":"echo""#), &["1 done {}"]),
        ("null arguments", request("1", "tools/call", r#""name":"echo","arguments":null"#), &["1 done {}"]),
        (
            "unknown members",
            request("1", "tools/call", r#""name":"echo","x":1,"task":{"ttl":1}"#),
            &["1 done {}"],
        ),
        (
            "list with null params",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\",\"params\":null}\n".into(),
            &["1 tools slow,echo,fail"],
        ),
        (
            "list without params",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n".into(),
            &["1 tools slow,echo,fail"],
        ),
        ("id null", request("null", "ping", ""), &["null -32600"]),
        ("id 1.5", request("1.5", "ping", ""), &["null -32600"]),
        ("id true", request("true", "ping", ""), &["null -32600"]),
        ("id list", request("[1]", "ping", ""), &["null -32600"]),
        ("id 1e300", request("1e300", "ping", ""), &["null -32600"]),
        ("id 1.0", request("1.0", "ping", ""), &["1 {}"]),
        ("id string", request("\"a-b\"", "ping", ""), &["\"a-b\" {}"]),
        ("id empty string", request("\"\"", "ping", ""), &["\"\" {}"]),
        ("id 2^53+1", request("9007199254740993", "ping", ""), &["9007199254740993 {}"]),
        ("id 2^64-1", request("18446744073709551615", "ping", ""), &["18446744073709551615 {}"]),
        ("id -1", request("-1", "ping", ""), &["-1 {}"]),
        ("id 1 and \"1\"", echo("1") + &echo("\"1\""), &["1 done {\"n\":1}", "\"1\" done {\"n\":1}"]),
        (
            "duplicate id",
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"ping\"}\n".into(),
            &["2 -32602"],
        ),
        (
            "duplicate argument",
            request("1", "tools/call", r#""name":"echo","arguments":{"a":{"b":1,"b":2}}"#),
            &["1 -32602"],
        ),
        ("second initialize", HELLO.replace("\"id\":0", "\"id\":7"), &["7 initialize 2025-11-25"]),
        (
            "unknown notification",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/zzz\",\"params\":{}}\n".into(),
            &[],
        ),
        (
            "notification with array params",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":[]}\n".into(),
            &[],
        ),
        (
            "roots changed",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/roots/list_changed\"}\n".into(),
            &[],
        ),
        (
            "call that is a notification",
            "{\"jsonrpc\":\"2.0\",\"method\":\"tools/call\",\"params\":{\"name\":\"echo\"}}\n".into(),
            &[],
        ),
        ("stray response", "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}\n".into(), &[]),
        (
            "stray error",
            "{\"jsonrpc\":\"2.0\",\"id\":99,\"error\":{\"code\":1,\"message\":\"x\"}}\n".into(),
            &[],
        ),
        (
            "cancel of an unknown id",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":77}}\n"
                .into(),
            &[],
        ),
        (
            "cancel of nothing",
            "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}\n".into(),
            &[],
        ),
        ("blank lines", "\n   \n\t\r\n".into(), &[]),
        ("CRLF", request("1", "ping", "").replace('\n', "\r\n"), &["1 {}"]),
        ("byte order mark", format!("\u{feff}{}", request("1", "ping", "")), &["1 {}"]),
        ("spaces around", format!("  {}", request("1", "ping", "").replace('\n', " \n")), &["1 {}"]),
        (
            "raw U+2028",
            request("1", "tools/call", "\"name\":\"echo\",\"arguments\":{\"t\":\"a\u{2028}b\"}"),
            &["1 done {\"t\":\"a\u{2028}b\"}"],
        ),
        (
            "newline in a text",
            request("1", "tools/call", r#""name":"echo","arguments":{"t":"a\nb"}"#),
            &["1 done {\"t\":\"a\\nb\"}"],
        ),
        ("no newline at the end", echo("1").trim_end().into(), &["1 done {\"n\":1}"]),
        (
            "panic, then another call",
            request("1", "tools/call", r#""name":"panic""#) + &echo("2"),
            &[
                "1 failed panic failed inside the server and nothing was changed: lost my way; call it again, and report it if it fails again",
                "2 done {\"n\":1}",
            ],
        ),
        ("reply that is no object", request("1", "tools/call", r#""name":"bare""#), &["1 done no object"]),
        (
            "call that stops by itself",
            request("1", "tools/call", r#""name":"stop""#),
            &["1 failed stop was stopped before it was done and nothing was changed; call it again"],
        ),
        (
            "tool that is not listed",
            request("1", "tools/call", r#""name":"hidden""#),
            &["1 done { \"b\": 1, \"a\": [] }"],
        ),
        (
            "modern call",
            request("1", "tools/call", &format!(r#""name":"echo",{META}"#)),
            &["1 done {} modern"],
        ),
        (
            "modern, then legacy call",
            request("1", "tools/call", &format!(r#""name":"echo",{META}"#)) + &echo("2"),
            &["1 done {} modern", "2 done {\"n\":1}"],
        ),
        (
            "older version in meta",
            request("1", "tools/list", r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2025-06-18"}"#),
            &["1 tools slow,echo,fail"],
        ),
        (
            "version that is a number",
            request("1", "tools/list", r#""_meta":{"io.modelcontextprotocol/protocolVersion":5}"#),
            &["1 -32602"],
        ),
    ]
}

/// What a fresh process is told, and all that it says.
fn from_the_start() -> Vec<(&'static str, String, &'static [&'static str])> {
    let discover = |params: &str| request("5", "server/discover", params);
    vec![
        ("nothing", String::new(), &[]),
        ("only blank lines", "\n\n".into(), &[]),
        ("handshake only", HELLO.into(), &["0 initialize 2025-11-25"]),
        ("junk first", format!("hello\n{HELLO}"), &["null -32700", "0 initialize 2025-11-25"]),
        ("ping first", request("1", "ping", "") + HELLO, &["1 {}", "0 initialize 2025-11-25"]),
        (
            "call first",
            echo("1") + HELLO + &echo("2"),
            &["1 -32602", "0 initialize 2025-11-25", "2 done {\"n\":1}"],
        ),
        ("list first", request("1", "tools/list", "") + HELLO, &["1 -32602", "0 initialize 2025-11-25"]),
        (
            "unknown method first",
            request("1", "no/such", "") + HELLO,
            &["1 -32601", "0 initialize 2025-11-25"],
        ),
        (
            "initialized first",
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}}\n{HELLO}"),
            &["0 initialize 2025-11-25"],
        ),
        (
            "foreign notification first",
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/setTrace\",\"params\":{{}}}}\n{HELLO}"),
            &["0 initialize 2025-11-25"],
        ),
        (
            "stray response first",
            format!("{{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{{}}}}\n{HELLO}"),
            &["0 initialize 2025-11-25"],
        ),
        (
            "list before initialized",
            initialize("2025-11-25") + &request("1", "tools/list", ""),
            &["0 initialize 2025-11-25", "1 tools slow,echo,fail"],
        ),
        (
            "initialize without params",
            "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\"}\n".to_owned() + HELLO,
            &["0 -32602", "0 initialize 2025-11-25"],
        ),
        (
            "initialize without clientInfo",
            request("0", "initialize", r#""protocolVersion":"2025-06-18","capabilities":{}"#) + &echo("1"),
            &["0 -32602", "1 -32602"],
        ),
        ("version 2024-11-05", initialize("2024-11-05"), &["0 initialize 2024-11-05"]),
        ("version 2025-03-26", initialize("2025-03-26"), &["0 initialize 2025-03-26"]),
        ("version 2025-06-18", initialize("2025-06-18"), &["0 initialize 2025-06-18"]),
        ("version 2025-11-25", initialize("2025-11-25"), &["0 initialize 2025-11-25"]),
        (
            "version 2026-07-28 by handshake",
            initialize("2026-07-28") + &request("1", "ping", "") + &echo("2"),
            &["0 initialize 2025-11-25", "1 {}", "2 done {\"n\":1}"],
        ),
        (
            "version 1999-01-01",
            initialize("1999-01-01") + &echo("1"),
            &["0 initialize 2025-11-25", "1 done {\"n\":1}"],
        ),
        ("version nonsense", initialize(""), &["0 initialize 2025-11-25"]),
        ("discover", discover(META), &["5 discover modern"]),
        ("discover without meta", discover(""), &["5 -32602"]),
        (
            "discover without capabilities",
            discover(r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#),
            &["5 -32602"],
        ),
        (
            "discover in an unknown version",
            discover(&META.replace("2026-07-28", "2099-01-01")),
            &["5 -32022"],
        ),
        (
            "discover, then initialize",
            discover(META) + HELLO + &echo("1"),
            &["5 discover modern", "0 initialize 2025-11-25", "1 done {\"n\":1}"],
        ),
        (
            "failed discover, then initialize",
            discover("") + HELLO + &echo("1"),
            &["5 -32602", "0 initialize 2025-11-25", "1 done {\"n\":1}"],
        ),
        ("modern list", request("1", "tools/list", META), &["1 tools slow,echo,fail modern"]),
        (
            "modern call",
            request("1", "tools/call", &format!(r#""name":"echo",{META}"#)),
            &["1 done {} modern"],
        ),
        (
            "modern failing call",
            request("1", "tools/call", &format!(r#""name":"fail",{META}"#)),
            &["1 failed it failed; do that modern"],
        ),
        (
            "modern unknown tool",
            request("1", "tools/call", &format!(r#""name":"nope",{META}"#)),
            &["1 -32602"],
        ),
        (
            "modern, then a call without meta",
            request("1", "tools/call", &format!(r#""name":"echo",{META}"#)) + &echo("2"),
            &["1 done {} modern", "2 -32602"],
        ),
        (
            "modern, then initialize",
            request("1", "tools/list", META) + HELLO + &echo("2"),
            &["1 tools slow,echo,fail modern", "0 initialize 2025-11-25", "2 done {\"n\":1}"],
        ),
        ("modern ping", request("1", "ping", META), &["1 -32601"]),
        (
            "ping in an unknown version",
            request("1", "ping", &META.replace("2026-07-28", "2099-01-01")),
            &["1 -32022"],
        ),
        (
            "ping in an older version",
            request("1", "ping", &META.replace("2026-07-28", "2025-11-25")),
            &["1 {}"],
        ),
        (
            "modern subscriptions/listen",
            request(
                "1",
                "subscriptions/listen",
                &format!(r#""notifications":{{"toolsListChanged":true}},{META}"#),
            ),
            &["1 -32601"],
        ),
        ("modern unknown method", request("1", "no/such", META), &["1 -32601"]),
        (
            "modern call in an unknown version",
            request(
                "1",
                "tools/call",
                &format!(r#""name":"echo",{}"#, META.replace("2026-07-28", "2099-01-01")),
            ),
            &["1 -32022"],
        ),
    ]
}

/// Converses and compares the answers in any order: a call is overtaken by
/// whatever needs no worker.
fn assert_answers(name: &str, input: &str, expected: &[&str]) {
    let answers = lines(&converse(Options::default(), input.as_bytes()));
    let mut heard: Vec<String> = answers.iter().map(brief).collect();
    heard.sort();
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(heard, expected, "{name}");
}

#[test]
fn odd_input_within_a_session() {
    for (name, said, expected) in after_hello() {
        let expected = [&["0 initialize 2025-11-25"], expected].concat();
        assert_answers(name, &format!("{HELLO}{said}"), &expected);
    }
}

#[test]
fn odd_input_from_the_start() {
    for (name, said, expected) in from_the_start() {
        assert_answers(name, &said, expected);
    }
}

#[test]
fn bytes_that_are_not_utf8_are_a_parse_error() {
    let mut input = HELLO.as_bytes().to_vec();
    input.extend(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"echo\",\"arguments\":{\"t\":\"\xff\xfe\"}}}\n");
    let heard = lines(&converse(Options::default(), &input));
    assert_eq!(brief(&heard[1]), "null -32700");
}

#[test]
fn a_large_line_is_served_and_a_larger_one_is_not() {
    let limits = Limits { line_bytes: 1 << 20, ..Limits::default() };
    let fits = request(
        "1",
        "tools/call",
        &format!(r#""name":"echo","arguments":{{"t":"{}"}}"#, "x".repeat(1_000_000)),
    );
    let too_long = "x".repeat(3 << 20);
    let input = format!("{HELLO}{too_long}\n{fits}{too_long}");
    let (fake, _begun, _release) = Fake::new();
    let written = Written::default();
    serve_within(limits, std::io::Cursor::new(input.into_bytes()), written.clone(), fake, Options::default())
        .expect("served");
    let mut heard = lines(&written.0.lock().expect("no panic while writing"));
    // The refusal of the last line overtakes the call.
    heard.sort_by_key(|answer| answer["id"].as_i64());
    assert_eq!(brief(&heard[0]), "null -32700");
    assert_eq!(brief(&heard[1]), "null -32700");
    assert_eq!(brief(&heard[2]), "0 initialize 2025-11-25");
    let text = heard[3]["result"]["structuredContent"]["t"].as_str().expect("a text");
    assert_eq!(text.len(), 1_000_000);
}

proptest! {
    #[test]
    fn any_bytes_are_ignored_or_refused_or_a_request(line in proptest::collection::vec(any::<u8>(), 0..200)) {
        let _ = message::read(&line, true);
    }

    /// Whatever stands in the members of a message, what has a method and a good
    /// id is refused under that id or taken up.
    #[test]
    fn every_request_is_answered(
        id in prop_oneof![any::<i64>().prop_map(Value::from), any::<u64>().prop_map(Value::from), "[a-z]{0,3}".prop_map(Value::from)],
        method in prop_oneof![Just("tools/call".to_owned()), Just("tools/list".to_owned()), Just("initialize".to_owned()), Just("ping".to_owned()), Just("server/discover".to_owned()), ".{0,8}"],
        params in odd_json(), meta in odd_json(), jsonrpc in odd_json(), initialized in any::<bool>(),
    ) {
        let mut line = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        if let Some(params) = line["params"].as_object_mut() {
            params.insert("_meta".into(), meta);
        } else {
            line["jsonrpc"] = jsonrpc;
        }
        match message::read(line.to_string().as_bytes(), initialized) {
            message::Incoming::Request { id: read, .. } => prop_assert_eq!(read, id),
            message::Incoming::Refused { id: read, error } => {
                prop_assert_eq!(read, id);
                prop_assert_eq!(error.code.0, -32602);
            }
            other => prop_assert!(false, "{:?}", other),
        }
    }
}

fn odd_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        Just(Value::from("2.0")),
        Just(Value::from("2026-07-28")),
    ];
    let key = prop_oneof![
        Just("name".to_owned()),
        Just("arguments".to_owned()),
        Just("cursor".to_owned()),
        Just(message::VERSION_KEY.to_owned()),
        "[a-z]{0,4}"
    ];
    leaf.prop_recursive(3, 12, 4, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            proptest::collection::vec((key.clone(), inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}
