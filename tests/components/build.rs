//! Builds the components with the same code as the host's build script.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

#[allow(dead_code, reason = "the host's build script uses the rest")]
#[path = "../../host/build/component.rs"]
mod component;
#[path = "../../host/build/guest.rs"]
mod guest;

fn main() {
    if let Err(message) = run() {
        for line in message.lines() {
            instruct("error", line);
        }
        std::process::exit(1);
    }
}

fn run() -> Result<(), String> {
    let manifest_dir = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let workspace = manifest_dir.ancestors().nth(2).ok_or("the crate lies in no workspace")?;
    let out_dir = PathBuf::from(variable("OUT_DIR")?);
    for path in [
        "tests/components/build.rs",
        "tests/components/faulty",
        "tests/components/kanban",
        "host/build",
        "guest/src/panic.rs",
        "wit",
        "Cargo.toml",
        "Cargo.lock",
    ] {
        watch(&workspace.join(path));
    }
    instruct("rerun-if-env-changed", guest::TOOLCHAIN_VARIABLE);

    let minimum = variable("CARGO_PKG_RUST_VERSION")?;
    let toolchain = guest::Toolchain::probe(&variable("RUSTC")?, &minimum.to_string_lossy())?;
    if let Some(path) = toolchain.watched() {
        watch(path);
    }
    for (file, package, features) in [
        ("faulty.wasm", "faulty-logic", &[][..]),
        ("faulty-wasi.wasm", "faulty-logic", &["wasi"]),
        ("kanban.wasm", "kanban-logic", &[]),
    ] {
        let module = guest::Guest {
            workspace,
            package,
            features,
            target_dir: &guest::target_dir(&out_dir)?.join("guest-build"),
        }
        .build(&toolchain, &variable("CARGO")?)?;
        component::write_whole(&out_dir.join(file), &component::encode(&module)?)?;
    }
    Ok(())
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
