//! What can go wrong with a logic, in words for whoever called a tool.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use thiserror::Error;
use wasmtime::{Store, Trap, WasmCoreDump};

use super::limits::Stop;
use super::panic_text;
use super::sandbox::State;

/// Ends every message about a call.
const UNCHANGED: &str = "nothing was changed, and other calls still work";

/// Why a logic could not be loaded, or why a call of it failed.
///
/// A call that fails with any of these decided nothing; the session it ran in
/// cannot be used again.
#[derive(Debug, Error)]
pub enum LogicError {
    /// The code gave up, with a message and mostly its source file and line.
    #[error("the logic panicked at {message}; {}", UNCHANGED)]
    Panicked {
        /// `file:line:column: message`.
        message: String,
    },
    /// The call ran for as long as it may.
    #[error("the logic was stopped after {} s without an answer; {}", .limit.as_secs_f64(), UNCHANGED)]
    TimedOut {
        /// How long a call may take.
        limit: Duration,
    },
    /// Whoever made the call lost interest in it.
    #[error("the call was cancelled; {}", UNCHANGED)]
    Cancelled,
    /// The call needed more memory than it may have.
    #[error("the logic needed more than its {} MiB of memory; {}", limit >> 20, UNCHANGED)]
    OutOfMemory {
        /// What it may have, in bytes.
        limit: usize,
    },
    /// Calls inside the logic nested too deeply.
    #[error("the logic nested its calls too deeply; {}", UNCHANGED)]
    OutOfStack,
    /// The code did something that it must not, without a message of its own.
    #[error("the logic failed: {what}; {}", UNCHANGED)]
    Trapped {
        /// What the runtime says about it.
        what: String,
    },
    /// No clock could be started to watch over the call, so it was not made.
    #[error("no thread could be started to watch over the logic: {source}; {}", UNCHANGED)]
    Unwatched {
        /// What the system says.
        source: io::Error,
    },
    /// The component does not follow the contract.
    #[error(
        "{} is not a logic for this server: {what}; build it against the contract in this version's wit/, or leave --logic out for the built-in logic",
        .path.display()
    )]
    Misfit {
        /// The component's file.
        path: PathBuf,
        /// What is missing or too much, by name.
        what: String,
    },
    /// The component fails when it is asked who it is.
    #[error(
        "{} does not say who it is: {why}; build it so that `about` answers, or leave --logic out for the built-in logic",
        .path.display()
    )]
    Mute {
        /// The component's file.
        path: PathBuf,
        /// What the call came to.
        why: Box<LogicError>,
    },
    /// The file is something other than a component.
    #[error("{} is not a WebAssembly component: {what}, or leave --logic out for the built-in logic", .path.display())]
    WrongKind {
        /// The file.
        path: PathBuf,
        /// What it is, and what to do.
        what: &'static str,
    },
    /// The file could not be read.
    #[error(
        "cannot read the logic {}: {source}; name another file with --logic, or leave it out for the built-in logic",
        .path.display()
    )]
    Unreadable {
        /// The component's file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file's content is not a component that can be compiled.
    #[error(
        "{} is not a WebAssembly component that can be compiled: {what}; build it anew, or leave --logic out for the built-in logic",
        .path.display()
    )]
    Compile {
        /// The component's file.
        path: PathBuf,
        /// What the compiler says.
        what: String,
    },
}

impl From<Stop> for LogicError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::Cancelled,
            Stop::TimedOut(limit) => Self::TimedOut { limit },
            Stop::OutOfMemory(limit) => Self::OutOfMemory { limit },
        }
    }
}

impl LogicError {
    /// Finds out why a call failed.
    ///
    /// `said` is what the component last wrote to its standard error, where it
    /// has one.
    pub(super) fn of_call(error: &wasmtime::Error, store: &mut Store<State>, said: &str) -> Self {
        if let Some(stop) = error.downcast_ref::<Stop>() {
            return (*stop).into();
        }
        let dump = error.downcast_ref::<WasmCoreDump>();
        match error.downcast_ref::<Trap>() {
            Some(Trap::StackOverflow) => Self::OutOfStack,
            Some(Trap::MemoryOutOfBounds)
                if dump.is_some_and(|dump| panic_text::stack_ran_out(dump, store)) =>
            {
                Self::OutOfStack
            }
            Some(Trap::UnreachableCodeReached) => {
                let message = dump
                    .and_then(|dump| panic_text::in_dump(dump, store))
                    .or_else(|| Some(said.trim().to_owned()).filter(|said| !said.is_empty()));
                match message {
                    Some(message) => Self::Panicked { message },
                    None => Self::Trapped { what: Trap::UnreachableCodeReached.to_string() },
                }
            }
            Some(trap) => Self::Trapped { what: trap.to_string() },
            // The root alone: what is wrapped around it are a backtrace and a
            // dump, which no caller can use.
            None => Self::Trapped { what: error.root_cause().to_string() },
        }
    }
}
