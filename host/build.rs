//! Builds the logic, makes it a component that imports nothing, and compiles it
//! ahead of time for every processor of the target.
//!
//! What the host includes lies in `OUT_DIR`: `component.wasm`, as machine code
//! `component.cwasm`, and `identity.rs`, which says who the component is. The
//! component also goes to `<target>/loop-logic.wasm` for other embedders.
//! `LOOP_STATE_COMPONENT=FILE` takes a ready component instead of building one.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wasmtime::Engine;

#[path = "build/component.rs"]
mod component;
#[path = "src/logic/engine_config.rs"]
mod engine_config;
#[path = "build/guest.rs"]
mod guest;
#[path = "build/identity.rs"]
mod identity;
#[path = "build/link.rs"]
mod link;

/// Names a ready component to embed.
const COMPONENT_VARIABLE: &str = "LOOP_STATE_COMPONENT";

const PACKAGE: &str = "loop-logic";

fn main() {
    if let Err(message) = run() {
        // Each line on its own: cargo reads one instruction a line.
        for line in message.lines() {
            instruct("error", line);
        }
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let workspace = manifest_dir.parent().ok_or("the crate lies in no workspace")?;
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    let target = variable("TARGET")?.to_string_lossy().into_owned();
    let target_dir = guest::target_dir(&out_dir)?;

    for path in ["build.rs", "build", "src/logic/engine_config.rs"] {
        watch(&manifest_dir.join(path));
    }
    for path in ["guest/src", "guest/Cargo.toml", "wit", "Cargo.toml", "Cargo.lock"] {
        watch(&workspace.join(path));
    }
    for name in [COMPONENT_VARIABLE, guest::TOOLCHAIN_VARIABLE] {
        instruct("rerun-if-env-changed", name);
    }

    let bytes = match env::var_os(COMPONENT_VARIABLE).filter(|file| !file.is_empty()) {
        Some(file) => {
            let path = workspace.join(file);
            watch(&path);
            std::fs::read(&path)
                .map_err(|error| format!("{COMPONENT_VARIABLE}: {}: {error}", path.display()))?
        }
        None => {
            let minimum = variable("CARGO_PKG_RUST_VERSION")?;
            let toolchain = guest::Toolchain::probe(&variable("RUSTC")?, &minimum.to_string_lossy())?;
            if let Some(path) = toolchain.watched() {
                watch(path);
            }
            let module = guest::Guest {
                workspace,
                package: PACKAGE,
                features: &[],
                target_dir: &target_dir.join("guest-build"),
            }
            .build(&toolchain, &variable("CARGO")?)?;
            component::encode(&module)?
        }
    };

    let imports = component::imports(&bytes)?;
    if !imports.is_empty() {
        return Err(format!("the logic must import nothing, but it imports {}", imports.join(", ")));
    }
    let machine_code = precompile(&bytes, &target)
        .map_err(|error| format!("cannot compile the component for {target}: {error:#}"))?;
    let identity = identity::Identity::of(&bytes)
        .map_err(|error| format!("the logic does not say who it is: {error:#}"))?;
    component::write_whole(&out_dir.join("identity.rs"), identity.expression().as_bytes())?;
    component::write_whole(&out_dir.join("component.wasm"), &bytes)?;
    component::write_whole(&out_dir.join("component.cwasm"), &machine_code)?;
    component::write_whole(&target_dir.join(format!("{PACKAGE}.wasm")), &bytes)?;
    instruct("rustc-env", &format!("LOOP_STATE_TARGET={target}"));
    if let Some(argument) = link::argument() {
        instruct("rustc-link-arg-bins", argument);
    }
    Ok(())
}

fn precompile(component: &[u8], target: &str) -> wasmtime::Result<Vec<u8>> {
    let config = engine_config::engine_config(target, engine_config::DEFAULT_STACK_BYTES)?;
    Engine::new(&config)?.precompile_component(component)
}

fn variable(name: &str) -> Result<OsString, String> {
    env::var_os(name).ok_or_else(|| format!("cargo did not set {name}"))
}

fn watch(path: &Path) {
    instruct("rerun-if-changed", &path.display().to_string());
}

#[allow(clippy::print_stdout, reason = "cargo reads a build script's output")]
fn instruct(what: &str, value: &str) {
    println!("cargo::{what}={value}");
}
