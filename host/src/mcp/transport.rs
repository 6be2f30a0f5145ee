//! Lines, ids in flight, back-pressure and the end of the stream.
//!
//! Leaves to `message` what a line means and to the handler what is answered.
//!
//! Every request goes to `rmcp` under a number of this module's own, and its
//! answer leaves under the id that the client gave. An id that is used again,
//! while its first request runs or after that was cancelled, can therefore never
//! receive another request's answer.

use std::collections::HashMap;
use std::future::{pending, ready};
use std::io::{self, BufRead, Read, Write};
use std::thread;

use rmcp::RoleServer;
use rmcp::model::{
    CancelledNotification, CancelledNotificationParam, ClientJsonRpcMessage, ClientNotification, ErrorCode,
    ErrorData, JsonRpcMessage, RequestId, ServerJsonRpcMessage,
};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::Limits;
use super::answer::Answer;
use super::message::{self, Incoming};

/// Lines that the reader may be ahead.
const READ_AHEAD: usize = 8;

enum Line {
    Whole(Vec<u8>),
    TooLong,
}

/// The client's end of the conversation, as `rmcp` sees it.
///
/// Everything that changes it comes through `send` or `receive`, which `rmcp`
/// never runs at once: it gives up a waiting `receive` to `send`, and then asks
/// again. So `receive` may simply wait for ever where only an answer can help.
pub(super) struct Wire<W> {
    lines: mpsc::Receiver<Line>,
    output: W,
    limits: Limits,
    initialized: bool,
    /// Requests without an answer so far, by our number.
    open: HashMap<i64, Open>,
    /// Our number for each id in flight.
    numbers: HashMap<Value, i64>,
    number_last: i64,
    held_bytes: usize,
    /// The request that is answered before another line is looked at.
    first: Option<i64>,
    input_ended: bool,
    /// When the wait for the next answer after the end of input is over.
    deadline: Option<Instant>,
    /// Nobody is left to answer.
    given_up: bool,
}

struct Open {
    id: Value,
    bytes: usize,
}

impl<W: Write> Wire<W> {
    /// Starts to read `input` on a thread of its own.
    pub(super) fn start<R: BufRead + Send + 'static>(
        limits: Limits,
        input: R,
        output: W,
    ) -> io::Result<Self> {
        let (lines, reading) = mpsc::channel(READ_AHEAD);
        thread::Builder::new()
            .name("input".to_owned())
            .spawn(move || read_lines(input, limits.line_bytes, &lines))?;
        Ok(Self {
            lines: reading,
            output,
            limits,
            initialized: false,
            open: HashMap::new(),
            numbers: HashMap::new(),
            number_last: 0,
            held_bytes: 0,
            first: None,
            input_ended: false,
            deadline: None,
            given_up: false,
        })
    }

    /// Acts on one line; returns what `rmcp` has to know of it.
    fn take(&mut self, line: Line) -> Option<ClientJsonRpcMessage> {
        let Line::Whole(line) = line else {
            let text = format!("a line may have {} bytes at most", self.limits.line_bytes);
            self.refuse(&Value::Null, &ErrorData::new(ErrorCode::PARSE_ERROR, text, None));
            return None;
        };
        match message::read(&line, self.initialized) {
            Incoming::Ignored(what) => {
                tracing::debug!(what, "ignored a line");
                None
            }
            Incoming::Refused { id, error } => {
                self.refuse(&id, &error);
                None
            }
            Incoming::Cancelled { id, reason } => {
                let number = *self.numbers.get(&id)?;
                self.close(number);
                Some(cancellation(number, reason))
            }
            Incoming::Request { id, request } => {
                if self.numbers.contains_key(&id) {
                    // The id gets the answer of the request that runs; a second
                    // answer could be taken for that one.
                    tracing::warn!(%id, "ignored a request: its id is in flight already");
                    return None;
                }
                if request.method() == message::INITIALIZE {
                    self.initialized = true;
                }
                self.number_last += 1;
                let number = self.number_last;
                // What is not a call is answered at once, so answers keep the
                // order of the requests wherever they can.
                if !message::is_call(&request) {
                    self.first = Some(number);
                }
                self.held_bytes += line.len();
                self.numbers.insert(id.clone(), number);
                self.open.insert(number, Open { id, bytes: line.len() });
                Some(JsonRpcMessage::request(*request, RequestId::Number(number)))
            }
        }
    }

    /// Forgets a request that was answered or is not waited for any more.
    fn close(&mut self, number: i64) -> Option<Open> {
        let open = self.open.remove(&number)?;
        self.numbers.remove(&open.id);
        self.held_bytes -= open.bytes;
        if self.first == Some(number) {
            self.first = None;
        }
        Some(open)
    }

    fn is_full(&self) -> bool {
        self.open.len() >= self.limits.open || self.held_bytes >= self.limits.held_bytes
    }

    /// Returns a cancellation for a request that is still open, until none is.
    ///
    /// The newest first: were the call at work the first to end, one that waits would
    /// begin before it is cancelled as well.
    fn abandon(&mut self) -> Option<ClientJsonRpcMessage> {
        let number = *self.open.keys().max()?;
        self.close(number);
        Some(cancellation(number, None))
    }

    fn refuse(&mut self, id: &Value, error: &ErrorData) {
        self.put(&Answer::error(id, error));
    }

    /// Writes one whole line. When that fails the client is gone, and all that is
    /// left is to end in silence.
    fn put(&mut self, message: &Answer<'_>) {
        if self.given_up {
            return;
        }
        let written = serde_json::to_vec(message).map_err(io::Error::from).and_then(|mut line| {
            line.push(b'\n');
            self.output.write_all(&line)?;
            self.output.flush()
        });
        if let Err(error) = written {
            tracing::debug!(%error, "the client does not read any more");
            self.given_up = true;
        }
    }
}

impl<W: Write + Send + 'static> Transport<RoleServer> for Wire<W> {
    type Error = io::Error;

    /// Writes before it returns: a client that does not read holds up the event
    /// loop, and with it everything that would pile up.
    fn send(
        &mut self,
        mut item: ServerJsonRpcMessage,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let number = match &item {
            JsonRpcMessage::Response(response) => Some(response.id.clone()),
            JsonRpcMessage::Error(error) => error.id.clone(),
            // The handler sends neither requests nor notifications.
            _ => None,
        };
        if let Some(RequestId::Number(number)) = number
            && let Some(Open { id, .. }) = self.close(number)
        {
            self.deadline = None;
            match &mut item {
                JsonRpcMessage::Response(response) => self.put(&Answer::result(&id, &mut response.result)),
                JsonRpcMessage::Error(error) => self.refuse(&id, &error.error),
                _ => {}
            }
        }
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if self.given_up {
                return self.abandon();
            }
            if self.input_ended {
                if self.open.is_empty() {
                    return None;
                }
                let patience = self.limits.patience;
                let deadline = *self.deadline.get_or_insert_with(|| Instant::now() + patience);
                tokio::time::sleep_until(deadline).await;
                tracing::warn!("calls are still running long after the end of input; they are cancelled");
                self.given_up = true;
                continue;
            }
            if self.first.is_some() || self.is_full() {
                pending::<()>().await;
            }
            match self.lines.recv().await {
                None => self.input_ended = true,
                Some(line) => {
                    if let Some(message) = self.take(line) {
                        return Some(message);
                    }
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn cancellation(number: i64, reason: Option<String>) -> ClientJsonRpcMessage {
    let params = CancelledNotificationParam::new(Some(RequestId::Number(number)), reason);
    let notification = CancelledNotification::new(params);
    JsonRpcMessage::notification(ClientNotification::CancelledNotification(notification))
}

/// Reads until the end of input, an error, or until nobody listens.
fn read_lines(mut input: impl BufRead, bytes_max: usize, lines: &mpsc::Sender<Line>) {
    loop {
        let line = match read_line(&mut input, bytes_max) {
            Ok(Some(line)) => line,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(%error, "cannot read the input any more; taken as its end");
                return;
            }
        };
        if lines.blocking_send(line).is_err() {
            return;
        }
    }
}

/// Returns the next line without its end, or `None` at the end of input. A last
/// line may lack its end.
fn read_line(input: &mut impl BufRead, bytes_max: usize) -> io::Result<Option<Line>> {
    let mut line = Vec::new();
    // One more for the line's end.
    let limit = bytes_max as u64 + 1;
    if input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') {
        line.pop();
    } else if line.len() > bytes_max {
        input.skip_until(b'\n')?;
        return Ok(Some(Line::TooLong));
    }
    Ok(Some(Line::Whole(line)))
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use rmcp::model::{CallToolResult, ServerResult};

    use super::*;

    fn wire(limits: Limits, input: &'static str) -> Wire<Vec<u8>> {
        let mut wire = Wire::start(limits, input.as_bytes(), Vec::new()).expect("a thread");
        wire.initialized = true;
        wire
    }

    fn number(message: ClientJsonRpcMessage) -> i64 {
        match message {
            JsonRpcMessage::Request(request) => match request.id {
                RequestId::Number(number) => number,
                RequestId::String(id) => panic!("not a number of ours: {id}"),
            },
            other => panic!("not a request: {other:?}"),
        }
    }

    fn answer(wire: &mut Wire<Vec<u8>>, number: i64) {
        let result = ServerResult::CallToolResult(CallToolResult::success(Vec::new()));
        // The future is ready: writing is done when it is made.
        drop(wire.send(JsonRpcMessage::response(result, RequestId::Number(number))));
    }

    const TWO_CALLS: &str = concat!(
        r#"{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x"}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":"b","method":"tools/call","params":{"name":"x"}}"#,
        "\n",
    );

    #[tokio::test]
    async fn further_lines_wait_until_there_is_room() {
        for limits in [Limits { open: 1, ..Limits::default() }, Limits { held_bytes: 1, ..Limits::default() }]
        {
            let mut wire = wire(limits, TWO_CALLS);
            let first = number(wire.receive().await.expect("a request"));
            {
                let mut context = Context::from_waker(Waker::noop());
                let mut second = pin!(wire.receive());
                assert!(matches!(second.as_mut().poll(&mut context), Poll::Pending));
            }
            answer(&mut wire, first);
            let second = number(wire.receive().await.expect("a request"));
            answer(&mut wire, second);
            assert!(wire.receive().await.is_none());
            assert_eq!(wire.held_bytes, 0);
            assert_eq!(
                String::from_utf8(wire.output).expect("UTF-8"),
                concat!(
                    r#"{"jsonrpc":"2.0","id":"a","result":{"resultType":"complete","content":[],"isError":false}}"#,
                    "\n",
                    r#"{"jsonrpc":"2.0","id":"b","result":{"resultType":"complete","content":[],"isError":false}}"#,
                    "\n",
                )
            );
        }
    }

    #[test]
    fn lines_are_cut_at_their_ends_and_bounded() {
        let cases: [(&str, &[Option<&str>]); 8] = [
            ("", &[]),
            ("abc", &[Some("abc")]),
            ("abcd\n", &[Some("abcd")]),
            ("abcd", &[Some("abcd")]),
            ("abcde", &[None]),
            ("abcde\nf\n", &[None, Some("f")]),
            ("abcdefghijkl\n\nf", &[None, Some(""), Some("f")]),
            ("a\r\nb\n", &[Some("a\r"), Some("b")]),
        ];
        for (text, expected) in cases {
            let mut input = text.as_bytes();
            let mut lines = Vec::new();
            while let Some(line) = read_line(&mut input, 4).expect("memory does not fail") {
                lines.push(match line {
                    Line::Whole(line) => Some(String::from_utf8(line).expect("UTF-8")),
                    Line::TooLong => None,
                });
            }
            let lines: Vec<_> = lines.iter().map(Option::as_deref).collect();
            assert_eq!(lines, expected, "{text:?}");
        }
    }
}
