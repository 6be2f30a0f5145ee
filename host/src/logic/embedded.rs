//! The embedded logic: who it is, and its machine code, run from where it lies in the
//! program.
//!
//! Copying it into memory of its own costs a start more than all the rest of
//! loading it, and as much memory again. So the first logic of a process, which in
//! a server is the only one, takes the program's own pages, which are made
//! executable once and stay so. Code can be registered once at one address; every
//! further logic gets a copy.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::mm::{MprotectFlags, mprotect};
use wasmtime::component::Component;
use wasmtime::{Config, CustomCodeMemory, Enabled, Engine, PoolingAllocationConfig, Result};

use crate::contract::tools::Identity;

/// Sessions that can be open at once. A server has one, or two while it is asked
/// for its tools; a place costs nothing but addresses.
const SESSIONS: u32 = 16;

/// Bytes that a place in the pool keeps between sessions.
const RESIDENT: usize = 2 << 20;

/// What the component said of itself when it was built.
pub(super) fn identity() -> Identity {
    let (name, version, instructions) = include!(concat!(env!("OUT_DIR"), "/identity.rs"));
    Identity { name: name.to_owned(), version: version.to_owned(), instructions: instructions.to_owned() }
}

/// Begins a page, whatever size pages have here.
#[cfg_attr(target_arch = "x86_64", repr(C, align(4096)))]
#[cfg_attr(not(target_arch = "x86_64"), repr(C, align(65536)))]
struct OnPages<T: ?Sized>(T);

static MACHINE_CODE: &OnPages<[u8]> = &OnPages(*include_bytes!(concat!(env!("OUT_DIR"), "/component.cwasm")));

/// Which bytes a logic runs.
pub(super) enum Code {
    InPlace,
    Copy,
}

impl Code {
    /// Takes the bytes in place, unless someone else of this process has.
    pub fn take() -> Self {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        if TAKEN.swap(true, Ordering::Relaxed) { Self::Copy } else { Self::InPlace }
    }

    /// Sees to it that an engine of these settings runs them.
    pub fn configure(&self, config: &mut Config) {
        if let Self::InPlace = self {
            config.with_custom_code_memory(Some(Arc::new(OwnPages)));
        }
    }

    /// Sees to it that sessions of an engine of these settings take their memory
    /// from a pool: mapping it anew, and touching every page of it for the first
    /// time, takes about as long as a decision.
    ///
    /// Only for this component, whose shape is known; others may be larger than
    /// any place in a pool. And only where the system can tell which pages were
    /// touched (Linux 6.7): clearing the others as well would cost what is saved.
    pub fn configure_pool(config: &mut Config) {
        if !PoolingAllocationConfig::is_pagemap_scan_available() {
            return;
        }
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(SESSIONS)
            .total_core_instances(SESSIONS)
            .total_memories(SESSIONS)
            .total_tables(SESSIONS)
            .total_stacks(0)
            .max_unused_warm_slots(1)
            .linear_memory_keep_resident(RESIDENT)
            .table_keep_resident(RESIDENT)
            .pagemap_scan(Enabled::Yes);
        config.allocation_strategy(pool);
    }

    /// The component, for the engine that was configured for it.
    pub fn load(self, engine: &Engine) -> Result<Component> {
        // SAFETY: the bytes were made by this program's build with the settings of
        // `engine_config`, and are part of the program: whoever could change them
        // could change the program itself. They are constant and never go away.
        #[allow(unsafe_code)]
        unsafe {
            match self {
                Self::InPlace => Component::deserialize_raw(engine, NonNull::from(&MACHINE_CODE.0)),
                Self::Copy => Component::deserialize(engine, &MACHINE_CODE.0),
            }
        }
    }
}

/// Makes pages of the program executable, where they are the machine code.
struct OwnPages;

impl CustomCodeMemory for OwnPages {
    fn required_alignment(&self) -> usize {
        rustix::param::page_size()
    }

    fn publish_executable(&self, code: *const u8, length: usize) -> Result<()> {
        let ours = MACHINE_CODE.0.as_ptr_range();
        if !ours.contains(&code) || length > ours.end.addr() - code.addr() {
            return Err(wasmtime::Error::msg("the code is not the program's own"));
        }
        // SAFETY: whole pages, by the alignment asked for above and that of the
        // code's section, of a constant of this program. They stay readable, and
        // nobody ever writes to them.
        #[allow(unsafe_code)]
        unsafe {
            mprotect(code.cast_mut().cast(), length, MprotectFlags::READ | MprotectFlags::EXEC)?;
        }
        Ok(())
    }

    fn unpublish_executable(&self, _: *const u8, _: usize) -> Result<()> {
        Ok(())
    }
}
