//! The settings that a component is compiled and run with.
//!
//! The build script compiles with them and the server runs with them: both
//! include this one file, because machine code is only accepted by an engine of
//! equal settings.

use wasmtime::{Config, Result};

/// The deepest that a component's calls may nest, in bytes of stack.
///
/// Far below the 2 MiB that a thread has by default, so that a component's
/// recursion ends in a trap and never in the end of the process.
pub const DEFAULT_STACK_BYTES: usize = 512 * 1024;

/// The settings for a `target`, named as compilers name it.
///
/// Naming it means: no more of the processor than what every processor of this
/// target has. Machine code made here then runs on the older one beside it.
pub fn engine_config(target: &str, stack_bytes: usize) -> Result<Config> {
    let mut config = Config::new();
    config
        .target(target)?
        // Runaway code is stopped by the clock, not by counting: that costs less.
        .epoch_interruption(true)
        // Maps from code to source that nobody reads: a panic names its own line.
        .generate_address_map(false)
        .native_unwind_info(false)
        .max_wasm_stack(stack_bytes);
    Ok(config)
}
