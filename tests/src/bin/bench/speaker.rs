//! A client for servers of others: it hears past their logs and declines what they ask.

use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use loop_state_tests::Client;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

/// The longest that one server may run here: one that hangs is ended, and its next
/// answer is missing.
const PATIENCE: Duration = Duration::from_secs(300);

/// A server that answers, with all processes that it starts.
pub struct Speaker {
    client: Client,
    group: Pid,
    ids: u64,
    /// Tells the thread that would end a server that hangs.
    _ended: Sender<()>,
}

impl Speaker {
    /// Starts a server and shakes hands.
    pub fn start(mut command: Command) -> Result<Speaker, String> {
        command.process_group(0);
        let client = Client::spawn(&mut command);
        let group = Pid::from_raw(client.pid().cast_signed()).ok_or("no process id")?;
        let (ended, ends) = channel::<()>();
        std::thread::spawn(move || {
            if ends.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process_group(group, Signal::KILL);
            }
        });
        let mut speaker = Speaker { client, group, ids: 0, _ended: ended };
        let hello = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": { "name": "bench", "version": "0" },
        });
        speaker.ask("initialize", hello)?;
        speaker.client.try_send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        Ok(speaker)
    }

    /// The process that was started.
    pub fn pid(&self) -> u32 {
        self.client.pid()
    }

    /// A request's result.
    pub fn ask(&mut self, method: &str, params: Value) -> Result<Value, String> {
        self.ids += 1;
        let request = json!({ "jsonrpc": "2.0", "id": self.ids, "method": method, "params": params });
        if !self.client.try_send(&request) {
            return Err(format!("{method}: the server no longer reads"));
        }
        loop {
            let line = self.client.line().ok_or_else(|| format!("{method}: the server ended"))?;
            let Ok(mut message) = serde_json::from_str::<Value>(&line) else { continue };
            if message.get("method").is_some() {
                if let Some(id) = message.get("id") {
                    let error = json!({ "code": -32601, "message": "not offered" });
                    self.client.try_send(&json!({ "jsonrpc": "2.0", "id": id, "error": error }));
                }
            } else if message["id"] == self.ids {
                return match message.get_mut("result") {
                    Some(result) => Ok(result.take()),
                    None => Err(format!("{method}: {}", message["error"])),
                };
            }
        }
    }

    /// What a tool answers, as text.
    pub fn call(&mut self, (tool, arguments): (&str, Value)) -> Result<String, String> {
        let result = self.ask("tools/call", json!({ "name": tool, "arguments": arguments }))?;
        let text = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if result["isError"] == true { Err(format!("{tool}: {text}")) } else { Ok(text) }
    }

    /// Kills the server and all that it started, as a power cut would end them.
    pub fn kill(self) {}
}

impl Drop for Speaker {
    fn drop(&mut self) {
        let _ = kill_process_group(self.group, Signal::KILL);
        self.client.kill();
    }
}
