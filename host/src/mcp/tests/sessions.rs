//! What happens while a call runs, at the end, and in full answers.

use super::*;

#[test]
fn a_ping_overtakes_a_running_call() {
    let mut client = Client::start(Limits::default());
    client.call(1, "slow");
    client.wait_until_begun();
    client.ping();
    client.release.send(()).expect("the call listens");
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(client.finish().0, Vec::<Value>::new());
}

#[test]
fn calls_run_one_at_a_time_in_order_of_arrival() {
    let mut client = Client::start(Limits::default());
    client.call(1, "slow");
    client.wait_until_begun();
    let names = ["echo", "fail", "hidden", "stop"];
    for id in 2..40 {
        client.call(id, names[id as usize % names.len()]);
    }
    client.ping();
    client.release.send(()).expect("the call listens");
    let ids: Vec<_> = (1..40).map(|_| client.hear()["id"].as_i64().expect("a number")).collect();
    assert_eq!(ids, (1..40).collect::<Vec<_>>());
    let log = client.finish().1;
    let expected = (2..40).map(|id: usize| names[id % names.len()]);
    assert_eq!(log, ["slow"].into_iter().chain(expected).collect::<Vec<_>>());
}

#[test]
fn a_cancelled_call_is_stopped_and_not_answered() {
    let mut client = Client::start(Limits::default());
    client.call(1, "slow");
    client.wait_until_begun();
    client.cancel(1);
    client.call(2, "echo");
    assert_eq!(client.hear()["id"], 2);
    let (rest, log) = client.finish();
    assert_eq!(rest, Vec::<Value>::new());
    assert_eq!(log, ["slow", "slow was cancelled", "echo"]);
}

#[test]
fn a_call_that_was_cancelled_in_the_queue_never_starts() {
    let mut client = Client::start(Limits::default());
    client.call(1, "slow");
    client.wait_until_begun();
    for id in 2..30 {
        client.call(id, "echo");
    }
    for id in 2..30 {
        client.cancel(id);
    }
    client.ping();
    client.release.send(()).expect("the call listens");
    assert_eq!(client.hear()["id"], 1);
    let (rest, log) = client.finish();
    assert_eq!(rest, Vec::<Value>::new());
    assert_eq!(log, ["slow"]);
}

#[test]
fn an_id_can_be_used_again_after_its_call_was_cancelled() {
    let mut client = Client::start(Limits::default());
    client.call(1, "slow");
    client.wait_until_begun();
    client.cancel(1);
    client.call(1, "echo");
    let answer = client.hear();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["structuredContent"], json!({ "n": 1 }));
    assert_eq!(client.finish().0, Vec::<Value>::new());
}

#[test]
fn an_id_in_flight_is_answered_once() {
    let mut client = Client::start(Limits::default());
    client.call(1, "slow");
    client.wait_until_begun();
    client.call(1, "echo");
    client.ping();
    client.release.send(()).expect("the call listens");
    let answer = client.hear();
    assert_eq!(answer["id"], 1);
    assert_eq!(answer["result"]["structuredContent"], json!({}));
    let (rest, log) = client.finish();
    assert_eq!(rest, Vec::<Value>::new());
    assert_eq!(log, ["slow"]);
}

#[test]
fn a_call_in_flight_at_the_end_of_input_is_answered() {
    let mut client = Client::start(Limits::default());
    client.call(1, "slow");
    client.call(2, "echo");
    client.wait_until_begun();
    client.end_input();
    client.release.send(()).expect("the call listens");
    assert_eq!(client.hear()["id"], 1);
    assert_eq!(client.hear()["id"], 2);
    client.finish();
}

#[test]
fn a_cancelled_call_does_not_hold_the_process() {
    let limits = Limits { wind_down: Duration::from_millis(1), ..Limits::default() };
    let mut client = Client::start(limits);
    client.call(1, "hang");
    client.wait_until_begun();
    client.cancel(1);
    let release = client.release.clone();
    let (rest, log) = client.finish();
    assert_eq!(rest, Vec::<Value>::new());
    assert_eq!(log, ["hang"]);
    drop(release);
}

#[test]
fn patience_with_a_call_after_the_end_of_input_is_bounded() {
    let limits = Limits { patience: Duration::from_millis(1), ..Limits::default() };
    let mut client = Client::start(limits);
    client.call(1, "slow");
    client.call(2, "echo");
    client.wait_until_begun();
    let release = client.release.clone();
    let (rest, log) = client.finish();
    assert_eq!(rest, Vec::<Value>::new());
    assert_eq!(log, ["slow", "slow was cancelled"]);
    drop(release);
}

#[test]
fn a_client_that_no_longer_reads_ends_the_session() {
    let (mut client, output) = Client::start_unread(Limits::default());
    drop(output);
    client.say(HELLO);
    // Input stays open: only the failing answer can end it.
    client.server.join().expect("no panic").expect("served");
}

#[test]
fn a_running_call_is_cancelled_when_the_client_no_longer_reads() {
    let (mut client, output) = Client::start_unread(Limits::default());
    let mut output = BufReader::new(output);
    client.say(HELLO);
    output.read_line(&mut String::new()).expect("an answer");
    client.call(1, "slow");
    client.call(2, "echo");
    client.wait_until_begun();
    drop(output);
    client.say(r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#);
    client.server.join().expect("no panic").expect("served");
    assert_eq!(client.fake.log(), ["slow", "slow was cancelled"]);
}

/// More answers than the pipe holds, asked for before the first is read.
#[test]
fn a_client_that_reads_late_gets_every_answer() {
    let (mut client, output) = Client::start_unread(Limits::default());
    let mut input = client.input.take().expect("input is open");
    let writer = thread::spawn(move || {
        input.write_all(HELLO.as_bytes()).expect("the server reads");
        for id in 1..=3000 {
            writeln!(input, "{}", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }))
                .expect("the server reads");
        }
    });
    client.begun.recv_timeout(Duration::from_millis(20)).expect_err("no call is made");
    let ids: Vec<_> = BufReader::new(output)
        .lines()
        .map(|line| {
            serde_json::from_str::<Value>(&line.expect("UTF-8")).expect("JSON")["id"]
                .as_i64()
                .expect("a number")
        })
        .collect();
    assert_eq!(ids, (0..=3000).collect::<Vec<_>>());
    writer.join().expect("all was read");
    client.server.join().expect("no panic").expect("served");
}

#[test]
fn profiles_hold_each_other_and_keep_the_order() {
    let list = format!("{HELLO}{}\n", json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    for (profile, expected) in [
        (Profile::Core, &["echo"] as &[_]),
        (Profile::Standard, &["echo", "fail"]),
        (Profile::All, &["slow", "echo", "fail"]),
    ] {
        let heard = lines(&converse(Options { profile }, list.as_bytes()));
        let tools = heard[1]["result"]["tools"].as_array().expect("a list");
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().expect("a name")).collect();
        assert_eq!(names, expected);
    }
}

#[test]
fn whole_answers_of_both_eras() {
    let meta: Value = serde_json::from_str(&format!("{{{META}}}")).expect("JSON");
    let meta = &meta["_meta"];
    let call = json!({ "name": "hidden" });
    let modern_call = json!({ "name": "hidden", "_meta": meta });
    let input: String = [
        ("server/discover", json!({ "_meta": meta })),
        ("tools/list", json!({ "_meta": meta })),
        ("tools/call", modern_call),
    ]
    .iter()
    .map(|(method, params)| {
        format!("{}\n", json!({ "jsonrpc": "2.0", "id": method, "method": method, "params": params }))
    })
    .collect::<String>()
        + HELLO
        + &format!("{}\n", json!({ "jsonrpc": "2.0", "id": "list", "method": "tools/list" }))
        + &format!("{}\n", json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": call }));
    let mut results: Vec<(String, Value)> =
        lines(&converse(Options { profile: Profile::Core }, input.as_bytes()))
            .into_iter()
            .map(|mut answer| (answer["id"].to_string(), answer["result"].take()))
            .collect();
    // A call may be overtaken by what needs no worker.
    results.sort_by(|left, right| left.0.cmp(&right.0));

    let server_info = json!({ "name": "fake", "version": "1.2.3" });
    let result_meta = json!({ "io.modelcontextprotocol/serverInfo": server_info });
    let echo = json!({
        "name": "echo", "description": "Does echo",
        "inputSchema": { "type": "object", "properties": {} },
        "annotations": { "title": "The echo", "readOnlyHint": true, "destructiveHint": false, "idempotentHint": true },
    });
    let content = json!([{ "type": "text", "text": r#"{ "b": 1, "a": [] }"# }]);
    let structured = json!({ "b": 1, "a": [] });
    let expected = [
        ("\"call\"", json!({ "content": content, "structuredContent": structured, "isError": false })),
        ("\"list\"", json!({ "tools": [echo] })),
        (
            "\"server/discover\"",
            json!({
                "resultType": "complete",
                "supportedVersions": ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"],
                "capabilities": { "tools": {} }, "instructions": "do this",
                "ttlMs": 300_000, "cacheScope": "public", "_meta": result_meta,
            }),
        ),
        (
            "\"tools/call\"",
            json!({
                "resultType": "complete", "content": content, "structuredContent": structured, "isError": false, "_meta": result_meta,
            }),
        ),
        (
            "\"tools/list\"",
            json!({
                "resultType": "complete", "_meta": result_meta, "ttlMs": 300_000, "cacheScope": "public", "tools": [echo],
            }),
        ),
        (
            "0",
            json!({
                "protocolVersion": "2025-11-25", "capabilities": { "tools": {} },
                "serverInfo": server_info, "instructions": "do this",
            }),
        ),
    ];
    for (result, (id, expected)) in results.iter().zip(expected) {
        assert_eq!((result.0.as_str(), &result.1), (id, &expected));
    }
}

#[test]
fn a_refusal_carries_its_text_alone() {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "fail" } });
    let heard = lines(&converse(Options::default(), format!("{HELLO}{call}\n").as_bytes()));
    let text = json!([{ "type": "text", "text": "it failed; do that" }]);
    assert_eq!(heard[1]["result"], json!({ "content": text, "isError": true }));
}

#[test]
fn an_unsupported_version_is_told_which_are_supported() {
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\",\"params\":{{{}}}}}\n",
        META.replace("2026-07-28", "2099-01-01")
    );
    let heard = lines(&converse(Options::default(), line.as_bytes()));
    assert_eq!(heard[0]["error"]["code"], -32022);
    assert_eq!(heard[0]["error"]["data"]["requested"], "2099-01-01");
    assert_eq!(heard[0]["error"]["data"]["supported"].as_array().map(Vec::len), Some(5));
}

#[test]
fn a_list_that_fails_is_an_error_and_is_asked_for_again() {
    use std::sync::atomic::{AtomicUsize, Ordering};
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let (begun, _has_begun) = channel();
    let (_release, go_on) = channel();
    let fake = Fake {
        begun,
        go_on: Mutex::new(go_on),
        log: Mutex::default(),
        tools: || match ASKED.fetch_add(1, Ordering::Relaxed) {
            0 => Err("no component".into()),
            1 => panic!("broken component"),
            _ => Ok(tools()),
        },
    };
    let list = |id| format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, "method": "tools/list" }));
    let input = format!("{HELLO}{}{}{}{}", list(1), list(2), list(3), list(4));
    let written = Written::default();
    serve_on(std::io::Cursor::new(input.into_bytes()), written.clone(), Arc::new(fake), Options::default())
        .expect("served");
    let heard = lines(&written.0.lock().expect("no panic while writing"));
    assert_eq!(heard[1]["error"], json!({ "code": -32603, "message": "no component" }));
    assert_eq!(heard[2]["error"]["message"], "the tool list failed inside the server: broken component");
    assert_eq!(heard[3]["result"]["tools"].as_array().map(Vec::len), Some(3));
    assert_eq!(heard[4]["result"], heard[3]["result"]);
    assert_eq!(ASKED.load(Ordering::Relaxed), 3);
}
