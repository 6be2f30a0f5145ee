//! The protocol in memory, over a backend that does as it is told.

mod lint_rules;
mod odd_input;
mod sessions;

use std::io::{BufRead, BufReader, PipeReader, PipeWriter, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::*;

/// Longer than anything here takes; only a failing test waits for it.
const TIMEOUT: Duration = Duration::from_secs(20);

const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"0"}}}"#,
    "\n",
    r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
    "\n",
);

/// The `_meta` of a request that speaks for itself.
const META: &str = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"0"},"io.modelcontextprotocol/clientCapabilities":{}}"#;

/// Echoes, fails, panics, and runs until told.
struct Fake {
    /// Each `slow` call says here that it has begun …
    begun: Sender<()>,
    /// … and ends with the next word from here, or when it is cancelled.
    go_on: Mutex<Receiver<()>>,
    /// Tools in the order in which their calls began; a cancelled one twice.
    log: Mutex<Vec<String>>,
    tools: fn() -> Result<Vec<Tool>, String>,
}

impl Fake {
    fn new() -> (Arc<Self>, Receiver<()>, Sender<()>) {
        let (begun, has_begun) = channel();
        let (release, go_on) = channel();
        let fake = Self { begun, go_on: Mutex::new(go_on), log: Mutex::default(), tools: || Ok(tools()) };
        (Arc::new(fake), has_begun, release)
    }

    fn note(&self, what: impl Into<String>) {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).push(what.into());
    }

    fn log(&self) -> Vec<String> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Backend for Fake {
    fn identity(&self) -> Identity {
        Identity { name: "fake".into(), version: "1.2.3".into(), instructions: "do this".into() }
    }

    fn tools(&self) -> Result<Vec<Tool>, String> {
        (self.tools)()
    }

    fn call(&self, tool: &str, arguments: Map<String, Value>, cancel: &Cancel) -> Reply {
        self.note(tool);
        match tool {
            "echo" => Reply::Done(Value::Object(arguments).to_string()),
            "hidden" => Reply::Done(r#"{ "b": 1, "a": [] }"#.into()),
            "fail" => Reply::Refused("it failed; do that".into()),
            "bare" => Reply::Done("no object".into()),
            "stop" => Reply::Cancelled,
            "panic" => panic!("lost my way"),
            "slow" => {
                // A test that does not listen is one that has ended.
                let _ = self.begun.send(());
                let go_on = self.go_on.lock().unwrap_or_else(PoisonError::into_inner);
                loop {
                    if go_on.recv_timeout(Duration::from_millis(1)).is_ok() {
                        return Reply::Done("{}".into());
                    }
                    if cancel.is_cancelled() {
                        self.note("slow was cancelled");
                        return Reply::Cancelled;
                    }
                }
            }
            "hang" => {
                let _ = self.begun.send(());
                let go_on = self.go_on.lock().unwrap_or_else(PoisonError::into_inner);
                let _ = go_on.recv();
                Reply::Done("{}".into())
            }
            _ => Reply::UnknownTool,
        }
    }

    /// Panics, in silence: whatever goes wrong after an answer is no matter of the
    /// calls that follow.
    fn rest(&self) {
        std::panic::resume_unwind(Box::new("no rest"));
    }
}

fn tool(name: &str, profile: Profile) -> Tool {
    Tool {
        name: name.into(),
        title: format!("The {name}"),
        description: format!("Does {name}"),
        input_schema: r#"{"type":"object","properties":{}}"#.into(),
        read_only: true,
        destructive: false,
        idempotent: true,
        profile,
    }
}

fn tools() -> Vec<Tool> {
    vec![
        tool("slow", Profile::All),
        tool("echo", Profile::Core),
        tool("Bad name", Profile::Core),
        tool("fail", Profile::Standard),
    ]
}

/// Serves `input` to its end and returns what was written.
fn converse(options: Options, input: &[u8]) -> Vec<u8> {
    let (fake, _begun, _release) = Fake::new();
    let written = Written::default();
    serve_on(std::io::Cursor::new(input.to_vec()), written.clone(), fake, options).expect("served");
    written.0.lock().expect("no panic while writing").clone()
}

/// Collects what is written.
#[derive(Clone, Default)]
struct Written(Arc<Mutex<Vec<u8>>>);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic while writing").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    assert!(text.is_empty() || text.ends_with('\n'), "whole lines only");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// A client at the other end of two pipes.
struct Client {
    fake: Arc<Fake>,
    begun: Receiver<()>,
    release: Sender<()>,
    input: Option<PipeWriter>,
    answers: Receiver<Value>,
    reader: Option<JoinHandle<()>>,
    server: JoinHandle<Result<(), McpError>>,
}

impl Client {
    fn start(limits: Limits) -> Self {
        let (mut client, output) = Self::start_unread(limits);
        let (tell, answers) = channel();
        client.answers = answers;
        client.reader = Some(thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let line = line.expect("UTF-8");
                // A test that has seen enough no longer listens.
                let _ = tell.send(serde_json::from_str(&line).expect("each line is JSON"));
            }
        }));
        client.say(HELLO);
        client.hear();
        client
    }

    /// Starts a session whose answers nobody reads so far.
    fn start_unread(limits: Limits) -> (Self, PipeReader) {
        let (from_client, input) = std::io::pipe().expect("a pipe");
        let (output, to_client) = std::io::pipe().expect("a pipe");
        let (fake, begun, release) = Fake::new();
        let backend = fake.clone();
        let server = thread::spawn(move || {
            serve_within(limits, BufReader::new(from_client), to_client, backend, Options::default())
        });
        let (_, answers) = channel();
        (Self { fake, begun, release, input: Some(input), answers, reader: None, server }, output)
    }

    fn say(&mut self, line: &str) {
        let input = self.input.as_mut().expect("input is open");
        input.write_all(line.as_bytes()).expect("the server reads");
        if !line.ends_with('\n') {
            input.write_all(b"\n").expect("the server reads");
        }
    }

    fn call(&mut self, id: i64, tool: &str) {
        let params = json!({ "name": tool, "arguments": { "n": id } });
        self.say(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params }).to_string(),
        );
    }

    fn cancel(&mut self, id: i64) {
        let params = json!({ "requestId": id });
        self.say(
            &json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": params }).to_string(),
        );
    }

    /// Returns once everything said before was taken up.
    fn ping(&mut self) {
        self.say(r#"{"jsonrpc":"2.0","id":"ping","method":"ping"}"#);
        assert_eq!(self.hear(), json!({ "jsonrpc": "2.0", "id": "ping", "result": {} }));
    }

    fn hear(&self) -> Value {
        self.answers.recv_timeout(TIMEOUT).expect("an answer in time")
    }

    fn wait_until_begun(&self) {
        self.begun.recv_timeout(TIMEOUT).expect("the call begins in time");
    }

    fn end_input(&mut self) {
        self.input = None;
    }

    /// Ends the session; returns what came after the last `hear`, and the log.
    fn finish(mut self) -> (Vec<Value>, Vec<String>) {
        self.end_input();
        self.server.join().expect("no panic").expect("served");
        if let Some(reader) = self.reader {
            reader.join().expect("well-formed answers");
        }
        (self.answers.try_iter().collect(), self.fake.log())
    }
}
