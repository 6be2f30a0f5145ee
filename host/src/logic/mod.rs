//! Runs a logic: the component that decides.
//!
//! Owns the engine, the component and the limits it runs under. Every call gets
//! a session of its own, a fresh instance: nothing is carried over from one call
//! to the next, and whatever a component does to itself ends with its session.
//! The instance may be made before the call comes, and be taken down after it was
//! answered: that is what [`Logic::prepare`] is for.
//! Knows neither SQL nor MCP; what the values mean is between the logic and the
//! modules that store and show them.
//!
//! All of it blocks; call it from a thread that may.

mod cache;
mod embedded;
mod engine_config;
mod error;
mod fit;
mod limits;
mod panic_text;
mod sandbox;
mod ticker;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use wasmtime::component::{Component, Linker};
use wasmtime::{Config, Engine, Store};

use crate::cancel::Cancel;
use crate::contract::{LogicBindings, LogicBindingsPre, model, tools, views};
pub use error::LogicError;
use limits::Guard;
pub use limits::Limits;
use sandbox::State;
use ticker::{Running, Ticker};

/// What a component's file may have at most, in bytes.
const MAX_COMPONENT: u64 = 64 << 20;

/// The embedded logic as a component, for whoever wants to look into it.
pub static COMPONENT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/component.wasm"));

/// A component that gives sessions; shared between threads.
pub struct Logic {
    identity: tools::Identity,
    limits: Limits,
    /// There from the start but for the built-in component, which is loaded when it is
    /// first needed, so that a server can shake hands meanwhile.
    loaded: OnceLock<Loaded>,
    /// Held while that is done, so that it is done once.
    loading: Mutex<()>,
    /// Made in advance, for the next session.
    next: Mutex<Option<Instance>>,
    /// What a session is done with, until someone has time to take it down.
    spent: Mutex<Option<Instance>>,
}

/// A component as far as its sessions share it.
struct Loaded {
    engine: Engine,
    pre: LogicBindingsPre<State>,
    ticker: Ticker,
}

/// A component's instance with its memory.
struct Instance {
    store: Store<State>,
    bindings: LogicBindings,
}

impl Loaded {
    fn new(path: &Path, engine: Engine, component: &Component) -> Result<Self, LogicError> {
        let mut linker = Linker::new(&engine);
        let ty = component.component_type();
        if let Some(what) = fit::foreign_import(&engine, &ty) {
            return Err(LogicError::Misfit { path: path.to_owned(), what });
        }
        if ty.imports(&engine).any(|(name, _)| name.starts_with("wasi:")) {
            sandbox::add_wasi(&mut linker).map_err(|error| misfit(path, &error))?;
        }
        let pre = linker.instantiate_pre(component).map_err(|error| misfit(path, &error))?;
        let pre = LogicBindingsPre::new(pre).map_err(|error| {
            let what = difference(&engine, component).unwrap_or_else(|| format!("{error:#}"));
            LogicError::Misfit { path: path.to_owned(), what }
        })?;
        Ok(Self { ticker: Ticker::new(&engine), engine, pre })
    }

    fn instantiate(&self, limits: Limits) -> Result<Instance, LogicError> {
        let mut store = Store::new(&self.engine, State::new(Guard::new(limits)));
        store.limiter(|state| &mut state.guard);
        store.epoch_deadline_callback(|state| state.data().guard.tick());
        let bindings = watched(&mut store, |store| self.pre.instantiate(store))?;
        Ok(Instance { store, bindings })
    }

    fn tick(&self) -> Result<Running, LogicError> {
        self.ticker.run().map_err(|source| LogicError::Unwatched { source })
    }
}

impl Instance {
    fn invoke<T>(
        &mut self,
        call: impl FnOnce(&LogicBindings, &mut Store<State>) -> wasmtime::Result<T>,
    ) -> Result<T, LogicError> {
        let Self { store, bindings } = self;
        watched(store, |store| call(bindings, store))
    }
}

impl std::fmt::Debug for Logic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { identity, limits, .. } = self;
        f.debug_struct("Logic").field("identity", identity).field("limits", limits).finish_non_exhaustive()
    }
}

impl Logic {
    /// The logic that was built with this program, under the default limits. It is
    /// loaded by the first that needs a session, or by [`Logic::prepare`].
    pub fn embedded() -> Self {
        Self::new(embedded::identity(), Limits::default(), OnceLock::new())
    }

    fn new(identity: tools::Identity, limits: Limits, loaded: OnceLock<Loaded>) -> Self {
        let (loading, next, spent) = Default::default();
        Self { identity, limits, loaded, loading, next, spent }
    }

    fn load_embedded(limits: Limits) -> Result<Loaded, LogicError> {
        let path = Path::new("the built-in component");
        let load = |code: embedded::Code| {
            let pooled = |config: &mut Config| {
                code.configure(config);
                embedded::Code::configure_pool(config);
            };
            // A process may be denied the addresses that a pool takes.
            let engine = engine(path, limits, pooled)
                .or_else(|_| engine(path, limits, |config| code.configure(config)))?;
            let component = code.load(&engine).map_err(|error| misfit(path, &error))?;
            Ok((engine, component))
        };
        let (engine, component) = match embedded::Code::take() {
            // A system may not let a program's own pages become executable.
            embedded::Code::InPlace => {
                load(embedded::Code::InPlace).or_else(|_: LogicError| load(embedded::Code::Copy))?
            }
            embedded::Code::Copy => load(embedded::Code::Copy)?,
        };
        Loaded::new(path, engine, &component)
    }

    /// A component from a file, under the default limits.
    ///
    /// It is compiled once; the machine code is kept in `cache_dir`, where one is
    /// given, under a name that stands for the component's content and for all
    /// that machine code depends on. The folder is created for this user alone,
    /// and what others could have changed is not used.
    pub fn from_file(path: &Path, cache_dir: Option<&Path>) -> Result<Self, LogicError> {
        Self::from_file_within(path, cache_dir, Limits::default())
    }

    /// Like [`Logic::from_file`], under the given limits.
    pub fn from_file_within(
        path: &Path,
        cache_dir: Option<&Path>,
        limits: Limits,
    ) -> Result<Self, LogicError> {
        let bytes = read(path).map_err(|source| LogicError::Unreadable { path: path.to_owned(), source })?;
        if let Some(what) = fit::wrong_kind(&bytes) {
            return Err(LogicError::WrongKind { path: path.to_owned(), what });
        }
        let engine = engine(path, limits, |_| {})?;
        let entry = cache_dir.map(|folder| cache::Entry::new(folder, &engine, &bytes));
        let cached = entry.as_ref().and_then(cache::Entry::load).and_then(|code| {
            // SAFETY: `load` returns only what this user alone could have written,
            // unchanged since this program wrote it from a compiler's result.
            #[allow(unsafe_code)]
            let component = unsafe { Component::deserialize(&engine, code) };
            component.inspect_err(|error| tracing::warn!(%error, "cached machine code does not fit")).ok()
        });
        let component = match cached {
            Some(component) => component,
            None => {
                let compiled = Component::from_binary(&engine, &bytes).map_err(|error| {
                    LogicError::Compile { path: path.to_owned(), what: format!("{error:#}") }
                })?;
                if let Some(entry) = &entry {
                    match compiled.serialize() {
                        Ok(code) => entry.save(&code),
                        Err(error) => tracing::warn!(%error, "machine code cannot be stored"),
                    }
                }
                compiled
            }
        };
        // A type that differs shows when the functions are looked up in an instance.
        let loaded = Loaded::new(path, engine.clone(), &component)?;
        let _ticking = loaded.tick()?;
        let mut instance =
            loaded.instantiate(limits).map_err(|error| match difference(&engine, &component) {
                Some(what) => LogicError::Misfit { path: path.to_owned(), what },
                None => error,
            })?;
        let identity = instance
            .invoke(|logic, store| logic.loop_state_logic_tools().call_about(store))
            .map_err(|error| LogicError::Mute { path: path.to_owned(), why: Box::new(error) })?;
        Ok(Self::new(identity, limits, loaded.into()))
    }

    /// Who the logic is.
    pub fn identity(&self) -> &tools::Identity {
        &self.identity
    }

    /// The whole catalogue, in the order it is published.
    pub fn tools(&self) -> Result<Vec<tools::Tool>, LogicError> {
        self.session(&Cancel::default())?
            .instance
            .invoke(|logic, store| logic.loop_state_logic_tools().call_tools(store))
    }

    /// A fresh instance for one call.
    ///
    /// Raising `cancel` ends a running invocation within some tens of
    /// milliseconds and keeps the next one from starting.
    pub fn session(&self, cancel: &Cancel) -> Result<Session<'_>, LogicError> {
        if cancel.is_cancelled() {
            return Err(LogicError::Cancelled);
        }
        let loaded = self.loaded()?;
        let ticking = loaded.tick()?;
        let mut instance = match lock(&self.next).take() {
            Some(instance) => instance,
            None => loaded.instantiate(self.limits)?,
        };
        instance.store.data_mut().guard.watch(cancel);
        Ok(Session { instance, _ticking: ticking, logic: self })
    }

    /// Takes down what the last session left and makes an instance for the next one,
    /// so that neither is on a call's way, nor is loading the component on the first
    /// one's. To be called when nobody waits.
    ///
    /// # Errors
    ///
    /// What the next session, which would try again, fails with as well.
    pub fn prepare(&self) -> Result<(), LogicError> {
        drop(lock(&self.spent).take());
        let mut next = lock(&self.next);
        if next.is_none() {
            let loaded = self.loaded()?;
            let _ticking = loaded.tick()?;
            *next = Some(loaded.instantiate(self.limits)?);
        }
        Ok(())
    }

    fn loaded(&self) -> Result<&Loaded, LogicError> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let _alone = lock(&self.loading);
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let loaded = Self::load_embedded(self.limits)?;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}

/// What is kept behind these locks is whole whenever one of them can be had.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A component's instance, for one call.
///
/// After an error it cannot be used again; take another one.
pub struct Session<'a> {
    instance: Instance,
    _ticking: Running,
    logic: &'a Logic,
}

impl std::fmt::Debug for Session<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").finish_non_exhaustive()
    }
}

impl Session<'_> {
    /// Decides one call as far as the facts allow.
    pub fn decide(
        &mut self,
        call: &tools::Call,
        facts: &tools::Facts,
    ) -> Result<tools::Decision, LogicError> {
        self.instance.invoke(|logic, store| logic.loop_state_logic_tools().call_decide(store, call, facts))
    }

    /// Renders every view of a loop whole; `memories` are all of its lessons,
    /// oldest first, and `version` is the running server's.
    pub fn render(
        &mut self,
        state: &model::LoopState,
        memories: &[model::Memory],
        version: &str,
    ) -> Result<views::ViewSet, LogicError> {
        self.instance.invoke(|logic, store| {
            let views = logic.loop_state_logic_views();
            views.call_render(store, state, memories, version)
        })
    }

    /// The lines of the log view for these events, each with its newline.
    pub fn log_lines(&mut self, events: &[model::Event]) -> Result<String, LogicError> {
        self.instance.invoke(|logic, store| logic.loop_state_logic_views().call_log_lines(store, events))
    }

    /// The text of a document's file: its header, where its path gets one, and the
    /// content.
    pub fn stamp(
        &mut self,
        slug: &str,
        head: &model::DocumentHead,
        content: &str,
        version: &str,
    ) -> Result<String, LogicError> {
        self.instance.invoke(|logic, store| {
            logic.loop_state_logic_views().call_stamp(store, slug, head, content, version)
        })
    }

    /// Takes the header off the text of a file, if it is one of the logic's.
    pub fn strip(&mut self, text: &str) -> Result<views::Stripped, LogicError> {
        self.instance.invoke(|logic, store| logic.loop_state_logic_views().call_strip(store, text))
    }

    /// Ends the session, and leaves it to [`Logic::prepare`] to take it down.
    pub fn end(self) {
        let Self { instance, logic, .. } = self;
        *lock(&logic.spent) = Some(instance);
    }
}

/// Runs code of a component under its limits.
fn watched<T>(
    store: &mut Store<State>,
    run: impl FnOnce(&mut Store<State>) -> wasmtime::Result<T>,
) -> Result<T, LogicError> {
    store.data_mut().guard.start()?;
    store.set_epoch_deadline(1);
    let result = run(store);
    let said = store.data_mut().take_stderr();
    for line in said.lines() {
        tracing::debug!(target: "loop_state_mcp::logic::stderr", "{line}");
    }
    result.map_err(|error| LogicError::of_call(&error, store, &said))
}

fn engine(path: &Path, limits: Limits, further: impl FnOnce(&mut Config)) -> Result<Engine, LogicError> {
    engine_config::engine_config(env!("LOOP_STATE_TARGET"), limits.stack_bytes)
        .and_then(|mut config| {
            // A component that imports nothing has no other way to say why it
            // failed. This alone is not part of the shared settings: the code is
            // the same with and without.
            config.coredump_on_trap(true);
            further(&mut config);
            Engine::new(&config)
        })
        .map_err(|error| misfit(path, &error))
}

/// What a component has otherwise than the built-in one, as far as the host asks for it.
fn difference(engine: &Engine, component: &Component) -> Option<String> {
    // Its types alone are used; where it cannot be had, the runtime's words have to do.
    let expected = embedded::Code::Copy.load(engine).ok()?;
    fit::difference(engine, &expected.component_type(), &component.component_type())
}

fn misfit(path: &Path, error: &wasmtime::Error) -> LogicError {
    LogicError::Misfit { path: PathBuf::from(path), what: format!("{error:#}") }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(MAX_COMPONENT + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_COMPONENT {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it has more than {MAX_COMPONENT} bytes"),
        ));
    }
    Ok(bytes)
}
