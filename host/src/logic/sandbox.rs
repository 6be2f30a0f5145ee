//! What surrounds a component: nothing, or an empty WASI.
//!
//! The contract asks for no imports. Most languages' standard libraries import
//! WASI all the same, so a component that does gets one without files, variables,
//! arguments or network. Time stands still in it and randomness is always the
//! same, because equal arguments have to give equal results; waiting is refused,
//! because a component that waits does not notice that it should stop.

use wasmtime::Result;
use wasmtime::component::{HasData, Linker, Resource};
use wasmtime_wasi::p2::bindings::sync::io::poll::{self, Host, HostPollable};
use wasmtime_wasi::p2::pipe::MemoryOutputPipe;
use wasmtime_wasi::p2::{DynPollable, add_to_linker_sync};
use wasmtime_wasi::random::Deterministic;
use wasmtime_wasi::{HostMonotonicClock, HostWallClock, ResourceTable, WasiCtx, WasiCtxView, WasiView};

use super::limits::Guard;

/// What a component may write to its standard error in one session, in bytes;
/// the stream is closed then.
const MAX_STDERR: usize = 64 * 1024;

/// The data of one session.
pub(super) struct State {
    pub guard: Guard,
    /// Made when the component first asks for it; most never do.
    wasi: Option<Wasi>,
}

struct Wasi {
    context: WasiCtx,
    table: ResourceTable,
    stderr: MemoryOutputPipe,
    /// How much of `stderr` was taken already.
    taken: usize,
}

impl State {
    pub fn new(guard: Guard) -> Self {
        Self { guard, wasi: None }
    }

    /// What the component wrote to its standard error since this was last asked.
    pub fn take_stderr(&mut self) -> String {
        let Some(wasi) = &mut self.wasi else {
            return String::new();
        };
        let written = wasi.stderr.contents();
        let new = &written[wasi.taken..];
        wasi.taken = written.len();
        String::from_utf8_lossy(new).into_owned()
    }
}

impl Wasi {
    fn new() -> Self {
        let stderr = MemoryOutputPipe::new(MAX_STDERR);
        let context = WasiCtx::builder()
            .stderr(stderr.clone())
            .secure_random(Deterministic::new(vec![0]))
            .insecure_random(Deterministic::new(vec![0]))
            .insecure_random_seed(0)
            .wall_clock(Stopped)
            .monotonic_clock(Stopped)
            .allow_tcp(false)
            .allow_udp(false)
            .build();
        Self { context, table: ResourceTable::new(), stderr, taken: 0 }
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        let wasi = self.wasi.get_or_insert_with(Wasi::new);
        WasiCtxView { ctx: &mut wasi.context, table: &mut wasi.table }
    }
}

/// Offers the empty WASI to a component.
pub(super) fn add_wasi(linker: &mut Linker<State>) -> Result<()> {
    add_to_linker_sync(linker)?;
    linker.allow_shadowing(true);
    poll::add_to_linker::<_, Unwaiting>(linker, |state| Poll(state.ctx().table))?;
    linker.allow_shadowing(false);
    Ok(())
}

/// A clock that always shows the same time.
struct Stopped;

impl HostWallClock for Stopped {
    fn resolution(&self) -> std::time::Duration {
        std::time::Duration::from_nanos(1)
    }

    fn now(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }
}

impl HostMonotonicClock for Stopped {
    fn resolution(&self) -> u64 {
        1
    }

    fn now(&self) -> u64 {
        0
    }
}

struct Unwaiting;

impl HasData for Unwaiting {
    type Data<'a> = Poll<'a>;
}

/// Polling that answers what is ready and never waits for what is not.
struct Poll<'a>(&'a mut ResourceTable);

fn would_wait<T>() -> Result<T> {
    Err(wasmtime::Error::msg("it waits for something, and no logic may wait"))
}

impl Host for Poll<'_> {
    fn poll(&mut self, all: Vec<Resource<DynPollable>>) -> Result<Vec<u32>> {
        let mut ready = Vec::new();
        for (index, pollable) in (0..).zip(&all) {
            if HostPollable::ready(self.0, Resource::new_borrow(pollable.rep()))? {
                ready.push(index);
            }
        }
        if ready.is_empty() {
            return would_wait();
        }
        Ok(ready)
    }
}

impl HostPollable for Poll<'_> {
    fn ready(&mut self, pollable: Resource<DynPollable>) -> Result<bool> {
        HostPollable::ready(self.0, pollable)
    }

    fn block(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        if HostPollable::ready(self.0, pollable)? {
            return Ok(());
        }
        would_wait()
    }

    fn drop(&mut self, pollable: Resource<DynPollable>) -> Result<()> {
        HostPollable::drop(self.0, pollable)
    }
}
