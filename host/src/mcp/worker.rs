//! The threads on which a backend runs, so that the event loop stays free.
//!
//! Knows nothing of the protocol: a job goes in, a reply comes out, and a panic
//! is a reply like any other.

use std::any::Any;
use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc as std_mpsc;
use std::thread;
use std::time::Duration;

use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};

use super::{Backend, Reply};
use crate::cancel::Cancel;

/// Enough for a component's stack with native frames around it.
const STACK_BYTES: usize = 8 << 20;

/// Room for the next job while one that was cancelled comes to rest; further
/// ones wait with whoever sends them, where a cancellation drops them at once.
const QUEUE: usize = 1;

/// One call on its way to the worker.
pub(super) struct Job {
    pub tool: String,
    pub arguments: Map<String, Value>,
    pub cancel: Cancel,
    pub reply: oneshot::Sender<Reply>,
}

/// Tells when the worker has ended.
pub(super) struct AtRest(std_mpsc::Receiver<Infallible>);

impl AtRest {
    /// Waits for the worker, but no longer than `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        // Nothing is ever sent: an answer means that the other half is gone.
        if self.0.recv_timeout(limit) == Err(std_mpsc::RecvTimeoutError::Timeout) {
            tracing::warn!("a call did not stop when asked to; it is left behind");
        }
    }
}

/// Starts the worker. It ends when the last sender is dropped.
pub(super) fn start(backend: Arc<dyn Backend>) -> io::Result<(mpsc::Sender<Job>, AtRest)> {
    let (jobs, mut queue) = mpsc::channel::<Job>(QUEUE);
    let (running, at_rest) = std_mpsc::channel::<Infallible>();
    spawn("calls", move || {
        while let Some(job) = queue.blocking_recv() {
            // A receiver that is gone means that the client, or the whole
            // session, has lost interest before the call began.
            if job.cancel.is_cancelled() || job.reply.is_closed() {
                continue;
            }
            let reply = run(&*backend, &job.tool, job.arguments, &job.cancel);
            // Whoever cancelled in the meantime does not wait for it.
            let _ = job.reply.send(reply);
        }
        // What the backend has open is closed before the process is let go.
        drop(backend);
        drop(running);
    })?;
    Ok((jobs, AtRest(at_rest)))
}

fn run(backend: &dyn Backend, tool: &str, arguments: Map<String, Value>, cancel: &Cancel) -> Reply {
    // The backend promises that half-done work does not survive a panic, so
    // nothing broken can be seen through it afterwards.
    match catch_unwind(AssertUnwindSafe(|| backend.call(tool, arguments, cancel))) {
        Ok(reply) => reply,
        Err(panic) => {
            let why = panic_text(&*panic);
            tracing::error!(tool, why, "a call panicked");
            Reply::Refused(format!(
                "{tool} failed inside the server and nothing was changed: {why}; \
                 call it again, and report it if it fails again"
            ))
        }
    }
}

/// Runs something short on a thread of its own and waits for it.
///
/// # Errors
///
/// A text for people, when there is no thread to be had or `work` panics.
pub(super) async fn apart<T: Send + 'static>(
    name: &'static str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, String> {
    let (done, result) = oneshot::channel();
    spawn(name, move || {
        let _ = done.send(catch_unwind(AssertUnwindSafe(work)));
    })
    .map_err(|error| format!("cannot start a thread for the {name}: {error}"))?;
    match result.await {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(panic)) => Err(format!("the {name} failed inside the server: {}", panic_text(&*panic))),
        Err(_) => Err(format!("the {name} thread ended without a result")),
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<thread::JoinHandle<()>> {
    thread::Builder::new().name(name.to_owned()).stack_size(STACK_BYTES).spawn(work)
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no reason given")
}
