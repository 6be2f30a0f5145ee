//! The clock that running components are interrupted by.
//!
//! A component checks a counter of its engine at every loop and call. One thread
//! moves that counter on while a session is open, and sleeps without a timer
//! while none does, so that an idle server uses no processor time.

use std::io;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// How soon a running component notices that it should stop.
const TICK: Duration = Duration::from_millis(10);

/// Moves an engine's epoch on while something runs.
pub(super) struct Ticker {
    shared: Arc<Shared>,
    engine: EngineWeak,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    thread: Thread,
    closed: bool,
}

#[derive(Clone, Copy, Default, PartialEq)]
enum Thread {
    /// Started by the first session, so that whoever only loads a logic has
    /// no thread of it.
    #[default]
    Absent,
    Ticking,
    Parked,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can panic halfway through a change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ticker {
    pub fn new(engine: &Engine) -> Self {
        Self { shared: Arc::default(), engine: engine.weak() }
    }

    /// Ticks until the returned value is dropped.
    ///
    /// Fails when the thread cannot be started.
    pub fn run(&self) -> io::Result<Running> {
        let mut state = self.shared.lock();
        if state.thread == Thread::Absent {
            let shared = Arc::clone(&self.shared);
            let engine = self.engine.clone();
            thread::Builder::new().name("logic-ticker".to_owned()).spawn(move || tick(&shared, &engine))?;
        }
        let parked = mem::replace(&mut state.thread, Thread::Ticking) == Thread::Parked;
        state.running += 1;
        // Woken only now, or it would at once wait for the lock.
        drop(state);
        if parked {
            self.shared.wake.notify_one();
        }
        Ok(Running(Arc::clone(&self.shared)))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().closed = true;
        self.shared.wake.notify_one();
    }
}

/// Keeps the clock going.
pub(super) struct Running(Arc<Shared>);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
    }
}

fn tick(shared: &Shared, engine: &EngineWeak) {
    let mut state = shared.lock();
    while !state.closed {
        if state.running == 0 {
            state.thread = Thread::Parked;
            state = shared.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
            continue;
        }
        state = shared.wake.wait_timeout(state, TICK).unwrap_or_else(PoisonError::into_inner).0;
        // The engine goes when its logic and all of its sessions are gone.
        let Some(engine) = engine.upgrade() else {
            return;
        };
        engine.increment_epoch();
    }
}
