//! The Model Context Protocol over a pair of byte streams.
//!
//! Owns JSON-RPC, the protocol versions, the line transport and the publishing
//! of tools. What a tool does, who the server is and which tools exist come from
//! a [`Backend`]; nothing here knows loops, tasks, SQL or components.
//!
//! | part | does |
//! |---|---|
//! | `message` | one line in, one message or one refusal out; pure |
//! | `answer` | one answer as it is written; pure |
//! | `transport` | lines, ids in flight, back-pressure, the end of the stream |
//! | `handler` | what each method answers |
//! | `worker` | the threads on which a backend runs |
//! | `lint` | which tools are fit to be published |
//!
//! `rmcp` lies between `transport` and `handler`: it picks the rules of the
//! version that a request speaks, shapes the results accordingly and keeps the
//! cancellation tokens. It is kept away from everything it would leave without
//! an answer.

mod answer;
mod handler;
mod lint;
mod message;
mod transport;
mod worker;

#[cfg(test)]
mod tests;

use std::io::{BufRead, BufReader, Write};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};

use crate::cancel::Cancel;
pub use lint::{Fault, Fit, LeftOut, TEXT_BYTES_MAX, check, lint};

/// What the protocol side needs from the rest of the server.
///
/// `tools` may run while a call runs, and nothing further is read until it returns, so it
/// must be quick; `identity` holds up all else as well, so it must not block. Calls run
/// one at a time, in the order in which they arrived.
pub trait Backend: Send + Sync + 'static {
    /// Returns who the server is. Asked once, when a client first wants to know.
    fn identity(&self) -> Identity;

    /// Returns every tool, in the order in which they are published.
    ///
    /// Asked when the list is first wanted, and again only after a failure.
    ///
    /// # Errors
    ///
    /// A text for people; the client gets it as an internal error.
    fn tools(&self) -> Result<Vec<Tool>, String>;

    /// Runs one call, published or not, for as long as it takes.
    ///
    /// Once `cancel` is raised nobody waits for the reply any more. A panic is
    /// caught and told to the client as a failure that changed nothing, so work
    /// that is half done must not survive one.
    fn call(&self, tool: &str, arguments: Map<String, Value>, cancel: &Cancel) -> Reply;

    /// Called before the first call and when a reply was given, for what need not be on
    /// a call's way: clearing up after the last one, and getting ready for the next one,
    /// which waits for this. A panic is caught.
    fn rest(&self) {}
}

/// Who the server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The server's short name.
    pub name: String,
    /// The server's version.
    pub version: String,
    /// For the model; cut to [`TEXT_BYTES_MAX`] bytes, since some clients cut there as well.
    pub instructions: String,
}

/// One tool as it is offered to clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    /// `[a-z][a-zA-Z0-9_]*`, at most 40 characters.
    pub name: String,
    /// For people.
    pub title: String,
    /// For the model; never blank, at most [`TEXT_BYTES_MAX`] bytes.
    pub description: String,
    /// A JSON Schema of type `object`, as JSON text.
    pub input_schema: String,
    /// The call changes nothing.
    pub read_only: bool,
    /// The call may remove or replace what was there.
    pub destructive: bool,
    /// The same call twice changes no more than once.
    pub idempotent: bool,
    /// The smallest list that the tool is published in.
    pub profile: Profile,
}

/// How much of the catalogue is published; each holds the ones before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Profile {
    /// What a loop cannot do without.
    Core,
    /// What most loops use.
    Standard,
    /// Everything.
    #[default]
    All,
}

/// What came of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The answer, a JSON object as text.
    Done(String),
    /// Why the call was refused or failed, and what to do instead.
    Refused(String),
    /// No tool has this name.
    UnknownTool,
    /// The call stopped because it was asked to.
    Cancelled,
}

/// What the person who starts the server can choose.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// The list that is published. Tools beyond it still answer when called.
    pub profile: Profile,
}

/// Why serving did not come about or broke off.
#[derive(Debug, thiserror::Error)]
pub enum McpError {
    /// The operating system gave no thread or no event loop.
    #[error(
        "cannot start the {what} of the MCP server: {source}; free some threads or memory and start it again"
    )]
    Start {
        /// Which part.
        what: &'static str,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// The protocol task ended by itself, which is a defect.
    #[error("the MCP server stopped by itself: {0}; start it again, what was acknowledged is stored")]
    Broken(tokio::task::JoinError),
}

/// Bounds on what one client can make the server hold or wait for.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The longest line that is read, in bytes without its end.
    line_bytes: usize,
    /// No further line is taken up while unanswered requests came in as many bytes.
    held_bytes: usize,
    /// No further line is taken up while as many requests are unanswered.
    open: usize,
    /// After the end of input, the longest wait from one answer to the next. Every
    /// call has limits of its own; this one is for a call that outlives them.
    patience: Duration,
    /// How long a call that was told to stop may take to come to rest.
    wind_down: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            line_bytes: 64 << 20,
            held_bytes: 128 << 20,
            open: 256,
            patience: Duration::from_secs(300),
            wind_down: Duration::from_secs(1),
        }
    }
}

/// Serves one client on standard input and output until either ends.
///
/// At the end of input, what is in flight is answered first. When the client no
/// longer reads, what is in flight is cancelled. Neither is an error.
///
/// # Errors
///
/// See [`McpError`].
pub fn serve(backend: Arc<dyn Backend>, options: Options) -> Result<(), McpError> {
    let input = BufReader::with_capacity(64 << 10, std::io::stdin());
    serve_on(input, std::io::stdout(), backend, options)
}

/// Serves one client on any pair of streams; see [`serve`].
///
/// A thread that waits for `input` is left behind when the writing side breaks
/// first.
///
/// # Errors
///
/// See [`McpError`].
pub fn serve_on<R, W>(
    input: R,
    output: W,
    backend: Arc<dyn Backend>,
    options: Options,
) -> Result<(), McpError>
where
    R: BufRead + Send + 'static,
    W: Write + Send + 'static,
{
    serve_within(Limits::default(), input, output, backend, options)
}

fn serve_within<R, W>(
    limits: Limits,
    input: R,
    output: W,
    backend: Arc<dyn Backend>,
    options: Options,
) -> Result<(), McpError>
where
    R: BufRead + Send + 'static,
    W: Write + Send + 'static,
{
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .map_err(|source| McpError::Start { what: "event loop", source })?;
    let (jobs, at_rest) =
        worker::start(backend.clone()).map_err(|source| McpError::Start { what: "worker thread", source })?;
    let wire = transport::Wire::start(limits, input, output)
        .map_err(|source| McpError::Start { what: "reader thread", source })?;
    let handler = handler::Handler::new(backend, options, jobs);
    let ended =
        runtime.block_on(async { rmcp::service::serve_directly(handler, wire, None).waiting().await });
    // Dropping the event loop drops the queue's sending half, so the worker
    // ends after the call in hand.
    drop(runtime);
    at_rest.wait(limits.wind_down);
    ended.map(|_| ()).map_err(McpError::Broken)
}
