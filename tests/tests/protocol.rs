//! The protocol over real pipes: odd input, ends of every kind, the published list.

use loop_state_tests::look;
use loop_state_tests::views::{assert_in_step, events};
use loop_state_tests::{Client, SLUG, World};
use serde_json::{Map, Value, json};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"p","version":"0"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const PING: &str = r#"{"jsonrpc":"2.0","id":"alive","method":"ping"}"#;
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"p","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

fn list_call(id: u64) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"loop_list","arguments":{{}}}}}}"#
    )
}

/// An answer in short: the id, and the error's code or what the result is.
fn brief(answer: &Value) -> String {
    assert_eq!(answer["jsonrpc"], "2.0", "{answer}");
    let id = &answer["id"];
    if let Some(error) = answer.get("error") {
        assert!(error["message"].as_str().is_some_and(|m| !m.is_empty()), "{answer}");
        return format!("{id} {}", error["code"]);
    }
    let result = answer["result"].as_object().unwrap_or_else(|| panic!("no result: {answer}"));
    let known = ["serverInfo", "tools", "content", "supportedVersions"];
    let what = known.into_iter().find(|key| result.contains_key(*key)).unwrap_or("{}");
    format!("{id} {}", if result.get("isError") == Some(&json!(true)) { "refused" } else { what })
}

/// Sends bytes to a fresh server, closes its input, and returns all of its answers in
/// short; every line has to be a message and the end a good one.
fn converse(world: &World, bytes: &[u8]) -> Vec<String> {
    let mut client = Client::spawn(&mut world.command());
    assert!(client.write(bytes));
    client.close_input();
    let answers = std::iter::from_fn(|| client.receive()).map(|answer| brief(&answer)).collect();
    assert!(client.wait().success());
    answers
}

#[test]
fn odd_lines_are_answered_and_what_follows_is_not_lost() {
    let world = World::new().quiet();
    let handshake = format!("{INITIALIZE}\n{INITIALIZED}\n");
    let after = |lines: &str| format!("{handshake}{lines}");
    let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
    let cases: Vec<(&str, Vec<u8>, &[&str])> = vec![
        ("no JSON", after("{\"jsonrpc\":\"2.0\",\"id\":5,\"meth\n").into(), &["0 serverInfo", "null -32700"]),
        ("no JSON, first", format!("hello\n{handshake}").into(), &["null -32700", "0 serverInfo"]),
        ("a number", after("42\n").into(), &["0 serverInfo", "null -32600"]),
        ("a batch", after(&format!("[{PING},{PING}]\n")).into(), &["0 serverInfo", "null -32600"]),
        ("an empty batch", after("[]\n").into(), &["0 serverInfo", "null -32600"]),
        (
            "id null",
            after("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n").into(),
            &["0 serverInfo", "null -32600"],
        ),
        (
            "a large id",
            after("{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"ping\"}\n").into(),
            &["0 serverInfo", "9007199254740993 {}"],
        ),
        (
            "NUL bytes",
            [after("").into_bytes(), b"\0\0\0\n".to_vec()].concat(),
            &["0 serverInfo", "null -32700"],
        ),
        (
            "no UTF-8",
            [after("").into_bytes(), b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}\n".to_vec()]
                .concat(),
            &["0 serverInfo", "null -32700"],
        ),
        (
            "a mark of byte order",
            [b"\xef\xbb\xbf".to_vec(), after("").into_bytes()].concat(),
            &["0 serverInfo"],
        ),
        (
            "CRLF",
            after(&format!("{}\r\n", list_call(1))).replace("}\n", "}\r\n").into(),
            &["0 serverInfo", "1 content"],
        ),
        (
            "blank lines",
            format!("\n\n{handshake}   \n{}\n\n", list_call(1)).into(),
            &["0 serverInfo", "1 content"],
        ),
        ("an early notification", format!("{INITIALIZED}\n{handshake}").into(), &["0 serverInfo"]),
        (
            "a foreign early notification",
            format!("{{\"jsonrpc\":\"2.0\",\"method\":\"$/setTrace\"}}\n{handshake}").into(),
            &["0 serverInfo"],
        ),
        (
            "a stray response",
            format!("{{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{{}}}}\n{handshake}").into(),
            &["0 serverInfo"],
        ),
        (
            "too deep",
            after(&list_call(1).replace("\"arguments\":{}", &format!("\"arguments\":{{\"x\":{deep}}}")))
                .into(),
            &["0 serverInfo", "null -32700"],
        ),
        (
            "an unknown tool",
            after(&list_call(1).replace("loop_list", "loop_lists")).into(),
            &["0 serverInfo", "1 -32602"],
        ),
        (
            "an unknown method",
            after("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/list\"}\n").into(),
            &["0 serverInfo", "1 -32601"],
        ),
        (
            "arguments that are text",
            after(&list_call(1).replace("\"arguments\":{}", "\"arguments\":\"{}\"")).into(),
            &["0 serverInfo", "1 -32602"],
        ),
        (
            "no arguments",
            after(&list_call(1).replace(",\"arguments\":{}", "")).into(),
            &["0 serverInfo", "1 content"],
        ),
        (
            "arguments null",
            after(&list_call(1).replace("\"arguments\":{}", "\"arguments\":null")).into(),
            &["0 serverInfo", "1 content"],
        ),
        ("a last line without its end", after(&list_call(1)).into(), &["0 serverInfo", "1 content"]),
        (
            "half a last line",
            after("{\"jsonrpc\":\"2.0\",\"id\":1,").into(),
            &["0 serverInfo", "null -32700"],
        ),
        ("nothing", Vec::new(), &[]),
        ("a handshake only", handshake.clone().into(), &["0 serverInfo"]),
    ];
    for (what, bytes, expected) in cases {
        assert_eq!(converse(&world, &bytes), expected, "{what}");
        // The same again, with a client that stays and asks on.
        let whole = bytes.is_empty() || bytes.ends_with(b"\n");
        if whole {
            let more = [bytes, format!("{PING}\n").into_bytes()].concat();
            let answers = converse(&world, &more);
            assert!(answers.contains(&"\"alive\" {}".to_owned()), "{what}: {answers:?}");
        }
    }
}

#[test]
fn lines_of_any_length_leave_the_server_alive() {
    let world = World::new().quiet();
    let mut client = world.client();
    for length in [1 << 20, 20 << 20, 70 << 20] {
        assert!(client.write(&vec![b'x'; length]) && client.write(b"\n"));
        let answer = client.receive().expect("an answer");
        assert_eq!(answer["error"]["code"], -32700, "{length} bytes");
        assert_eq!(client.request("ping", json!({})), json!({}));
    }
}

#[test]
fn fifty_queued_calls_are_answered_after_the_end_of_input() {
    let world = World::new();
    let mut client = world.client_with_loop();
    let messages: Vec<_> = (1..=50)
        .map(|n| client.message("event_append", json!({ "event": "probe", "note": n.to_string() })))
        .collect();
    let lines: String = messages.iter().map(|m| format!("{m}\n")).collect();
    assert!(client.write(lines.trim_end().as_bytes()));
    client.close_input();
    for message in &messages {
        let answer = client.receive().expect("an answer");
        assert_eq!(answer["id"], message["id"]);
        assert_eq!(answer["result"]["structuredContent"]["note"], message["params"]["arguments"]["note"]);
    }
    assert_eq!(client.receive(), None);
    assert!(client.wait().success());
    assert_eq!(events(&world, SLUG).iter().filter(|e| e.what.starts_with("probe ")).count(), 50);
}

#[test]
fn a_server_without_a_client_ends_at_once() {
    let world = World::new().quiet();
    let mut nobody = Client::spawn(world.command().stdin(Stdio::null()));
    assert!(nobody.wait().success(), "no input");
    let begun = Instant::now();
    assert!(world.client().end().success());
    assert!(begun.elapsed() < Duration::from_secs(5), "after {:?}", begun.elapsed());

    // The client stops to read, then asks.
    let mut client = world.client_with_loop();
    let message = client.message("event_append", json!({ "event": "unheard" }));
    client.close_output();
    client.send(&message);
    assert!(client.wait().success(), "a broken output is no failure");
    look::assert_sound(&world.database());
    // The input is still open, and a child of the client holds it.
    let mut client = world.client();
    assert_in_step(&world, &mut client, SLUG);
}

/// Whether this process ignores a signal, as under `nohup` or in the background of a
/// script, and so does all that it starts; not known everywhere.
fn is_ignored(signal: u32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored
        .and_then(|set| u64::from_str_radix(set.trim(), 16).ok())
        .is_some_and(|set| set >> (signal - 1) & 1 == 1)
}

#[test]
fn signals_leave_the_database_sound() {
    let world = World::new();
    drop(world.client_with_loop());
    for (signal, number) in [("TERM", 15), ("INT", 2), ("HUP", 1), ("QUIT", 3)] {
        if is_ignored(number) {
            eprintln!("skipped: whoever started the tests has SIG{signal} ignored, and servers inherit that");
            continue;
        }
        let before = events(&world, SLUG).len();
        let mut client = world.client();
        for n in 0..40 {
            let message = client.message("event_append", json!({ "event": signal, "note": n.to_string() }));
            client.send(&message);
        }
        for _ in 0..5 {
            client.receive().expect("an answer");
        }
        let sent = Command::new("kill").arg(format!("-{signal}")).arg(client.pid().to_string()).status();
        assert!(sent.expect("kill runs").success());
        let mut told = 5;
        while client.receive().is_some() {
            told += 1;
        }
        client.wait();
        let mut client = world.client();
        client.ok("event_append", json!({ "event": "after" }));
        assert_in_step(&world, &mut client, SLUG);
        look::assert_sound(&world.database());
        let there = events(&world, SLUG).len() - before - 1;
        assert!(there >= told && there <= 40, "{signal}: {told} were told, {there} are there");
    }
}

#[test]
fn a_client_that_does_not_read_holds_nothing_up_but_itself() {
    let world = World::new();
    let mut client = world.client();
    // More than both pipes take: the writer has to wait for the reader.
    let count = 3_000;
    let lines: String = (0..count)
        .map(|n| format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"method\":\"tools/list\"}}\n"))
        .collect();
    let mut input = client.take_input().expect("an input");
    let writer = thread::spawn(move || std::io::Write::write_all(&mut input, lines.as_bytes()).is_ok());
    for n in 0..count {
        let answer = client.receive().expect("an answer");
        assert_eq!(answer["id"], n);
    }
    assert!(writer.join().expect("a writer"));
    assert_eq!(client.receive(), None);
    assert!(client.wait().success());
}

/// The tools that a server lists with this `LOOP_STATE_TOOLS` and these arguments, and
/// the bytes of the line.
fn listed(variable: &str, arguments: &[&str]) -> (Vec<String>, usize) {
    let world = World::new();
    let mut command = world.command();
    command.args(arguments);
    if !variable.is_empty() {
        command.env("LOOP_STATE_TOOLS", variable);
    }
    let mut client = Client::spawn(&mut command);
    client.initialize();
    client.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let line = client.line().expect("an answer");
    let answer: Value = serde_json::from_str(&line).expect("JSON");
    // What is left out of the list still answers.
    client.ok("loop_init", json!({ "goal": "x" }));
    client.ok("loop_render", json!({}));
    let names = answer["result"]["tools"].as_array().expect("tools").iter();
    (names.map(|t| t["name"].as_str().expect("a name").to_owned()).collect(), line.len())
}

#[test]
fn the_list_of_tools_has_the_size_that_was_asked_for() {
    let (all, bytes) = listed("", &[]);
    assert!(bytes <= 24_000, "{bytes} bytes");
    let (standard, standard_bytes) = listed("", &["--tools", "standard"]);
    assert!(standard_bytes <= bytes && standard.iter().all(|tool| all.contains(tool)));
    let (core, core_bytes) = listed("", &["--tools", "core"]);
    assert!(core_bytes <= 9_000 && core.len() <= 16, "{} tools, {core_bytes} bytes", core.len());
    assert!(core.iter().all(|tool| standard.contains(tool)) && core.len() < standard.len());
    assert_eq!(listed("core", &[]).0, core);
    assert_eq!(listed("core", &["--tools", "all"]).0, all);
    let world = World::new();
    let mut command = world.command();
    command.args(["--tools", "some"]).stderr(Stdio::null());
    let mut client = Client::spawn(&mut command);
    assert_eq!(client.line(), None, "nothing on standard output");
    assert!(!client.wait().success());
}

/// Arguments of the right names and the wrong kind.
fn junk(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut arguments = Map::new();
    for (key, property) in properties {
        let wrong = match property["type"].as_str() {
            Some("string") => json!({ "not": ["text"] }),
            Some("integer" | "number") => json!("many"),
            Some("boolean") => json!("perhaps"),
            _ => json!(17.5),
        };
        arguments.insert(key, wrong);
    }
    Value::Object(arguments)
}

#[test]
fn every_tool_answers_empty_and_junk_arguments_and_only_messages_are_on_stdout() {
    let mut world = World::new();
    world.env.push(("LOOP_STATE_LOG".into(), "trace".into()));
    world.env.push(("RUST_LOG".into(), "trace".into()));
    world.env.push(("RUST_BACKTRACE".into(), "full".into()));
    world.env.push(("TERM".into(), "xterm".into()));
    let mut command = world.command();
    command.stderr(std::fs::File::create(world.top().join("log")).expect("a log"));
    let mut client = Client::spawn(&mut command);
    client.initialize();
    let tools = client.request("tools/list", json!({}));
    let before = look::files(&world.project());
    for tool in tools["tools"].as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        let required = tool["inputSchema"]["required"].as_array().cloned().unwrap_or_default();
        let names_one = |refusal: &str| {
            required.iter().any(|key| refusal.contains(&format!("`{}`", key.as_str().unwrap_or_default())))
        };
        for (what, arguments) in [
            ("empty", json!({})),
            ("junk", junk(&tool["inputSchema"])),
            ("foreign", json!({ "zzz": [{ "": null }] })),
        ] {
            let params = json!({ "name": name, "arguments": arguments });
            let result = client.request("tools/call", params);
            assert!(result["content"][0]["text"].is_string(), "{name}, {what}: {result}");
            let text = result["content"][0]["text"].as_str().unwrap_or_default();
            assert!(!text.contains("panic") && text.len() < 4_000, "{name}, {what}: {text}");
            // Where there is no argument, junk has none to be in.
            let takes_any = tool["inputSchema"]["properties"].as_object().is_some_and(|p| !p.is_empty());
            if required.is_empty() && (what != "junk" || !takes_any) {
                assert_eq!(result["isError"], false, "{name}, {what}: {text}");
            } else {
                assert_eq!(result["isError"], true, "{name}, {what}: {text}");
                assert!(result.get("structuredContent").is_none(), "{name}, {what}: {result}");
                assert!(required.is_empty() || names_one(text), "{name}, {what}: {text}");
            }
        }
    }
    client.ok("loop_init", json!({ "goal": "x" }));
    assert!(client.end().success());
    let log = std::fs::read_to_string(world.top().join("log")).expect("a log");
    assert!(log.contains("TRACE") || log.contains("DEBUG"), "the log was asked for and is silent");
    assert!(before.is_empty());
}

#[test]
fn a_client_of_2026_needs_no_handshake() {
    let world = World::new();
    let mut client = Client::spawn(&mut world.command());
    let mut ask = |method: &str, params: &str| -> Value {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{method}\",\"params\":{{{params}{META}}}}}\n"
        );
        assert!(client.write(line.as_bytes()));
        let answer = client.receive().expect("an answer");
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    };
    let found = ask("server/discover", "");
    assert!(
        found["supportedVersions"].as_array().is_some_and(|v| v.contains(&json!("2026-07-28"))),
        "{found}"
    );
    assert_eq!(found["resultType"], "complete");
    assert!(found["instructions"].as_str().is_some_and(|i| i.len() <= 1_500), "{found}");
    let tools = ask("tools/list", "");
    assert!(tools["tools"].as_array().is_some_and(|t| !t.is_empty()) && tools["ttlMs"].is_u64(), "{tools}");
    let mut call = |tool: &str, arguments: Value| -> Value {
        let result = ask("tools/call", &format!("\"name\":\"{tool}\",\"arguments\":{arguments},"));
        assert_eq!(result["resultType"], "complete", "{result}");
        result
    };
    let begun = call("loop_init", json!({ "loopSlug": SLUG, "goal": "x" }));
    assert_eq!(begun["structuredContent"]["loopSlug"], SLUG);
    let refused = call("loop_finish", json!({ "loopSlug": SLUG }));
    assert_eq!(refused["isError"], true);
    let done = call("loop_finish", json!({ "loopSlug": SLUG, "status": "done" }));
    assert_eq!(done["structuredContent"]["status"], "done");
}
