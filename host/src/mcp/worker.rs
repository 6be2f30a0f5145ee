//! The threads on which a backend runs, so that the event loop stays free.
//!
//! Knows nothing of the protocol: a job goes in, a reply comes out, and a panic
//! is a reply like any other.

use std::any::Any;
use std::convert::Infallible;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex, PoisonError, Weak};
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
    /// Told when the call leaves its turn to others.
    pub aside: oneshot::Sender<()>,
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

/// What the threads that run calls share.
struct Desk {
    backend: Arc<dyn Backend>,
    /// Whoever holds it takes the next job. One thread at a time does.
    queue: Mutex<mpsc::Receiver<Job>>,
    /// Dropped with the last thread.
    _running: std_mpsc::Sender<Infallible>,
}

/// Starts the worker. It ends when the last sender is dropped.
///
/// Jobs are done one after the other. One that says that it takes long leaves the
/// queue to another thread, and its own thread ends with it.
pub(super) fn start(backend: Arc<dyn Backend>) -> io::Result<(mpsc::Sender<Job>, AtRest)> {
    let (jobs, queue) = mpsc::channel::<Job>(QUEUE);
    let (running, at_rest) = std_mpsc::channel::<Infallible>();
    serve(Arc::new(Desk { backend, queue: Mutex::new(queue), _running: running }))?;
    Ok((jobs, AtRest(at_rest)))
}

/// Starts a thread that takes jobs until there are no more, or one of them takes long.
fn serve(desk: Arc<Desk>) -> io::Result<()> {
    spawn("calls", move || {
        let left = Arc::new(AtomicBool::new(false));
        while !left.load(Ordering::Acquire) {
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| desk.backend.rest())) {
                tracing::error!(why = panic_text(&*panic), "getting ready for the next call panicked");
            }
            let next = desk.queue.lock().unwrap_or_else(PoisonError::into_inner).blocking_recv();
            let Some(job) = next else { break };
            // A receiver that is gone means that the client, or the whole
            // session, has lost interest before the call began.
            if job.cancel.is_cancelled() || job.reply.is_closed() {
                continue;
            }
            let (next_desk, leaving) = (Arc::downgrade(&desk), Arc::clone(&left));
            let aside = Mutex::new(Some(job.aside));
            job.cancel.when_it_takes_long(move || {
                if leave(&next_desk, &leaving)
                    && let Some(aside) = aside.lock().unwrap_or_else(PoisonError::into_inner).take()
                {
                    // Whoever cancelled in the meantime does not wait for it.
                    let _ = aside.send(());
                }
            });
            let reply = run(&*desk.backend, &job.tool, job.arguments, &job.cancel);
            // Whoever cancelled in the meantime does not wait for it.
            let _ = job.reply.send(reply);
        }
        // What the backend has open is closed with the last thread, before the process
        // is let go.
    })
    .map(drop)
}

/// Leaves the queue to another thread, and returns whether there is one. Without
/// one, the jobs wait.
fn leave(desk: &Weak<Desk>, left: &AtomicBool) -> bool {
    let Some(desk) = desk.upgrade() else { return false };
    if left.swap(true, Ordering::AcqRel) {
        return true;
    }
    if let Err(error) = serve(desk) {
        left.store(false, Ordering::Release);
        tracing::warn!(%error, "no thread for other calls; they wait for one that takes long");
        return false;
    }
    true
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
