//! The logic's bytes depend on its sources and its compiler alone.

use std::ffi::OsString;
use std::path::Path;
use std::{env, fs, io};

#[allow(dead_code)] // the build script uses the rest
#[path = "../build/guest.rs"]
mod guest;

/// Copies a tree without what builds and version control keep in it.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let (entry, path) = entry.map(|entry| (entry.path(), to.join(entry.file_name())))?;
        if entry.is_file() && entry.file_name().is_some_and(|name| name != ".git") {
            fs::copy(&entry, &path)?;
        } else if entry.is_dir()
            && !entry.join("CACHEDIR.TAG").exists()
            && entry.file_name().is_some_and(|name| name != ".git")
        {
            copy(&entry, &path)?;
        }
    }
    Ok(())
}

fn variable(name: &str, otherwise: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| otherwise.into())
}

#[test]
#[ignore = "compiles the logic and what it uses anew: half a minute or more"]
fn the_logic_is_the_same_from_another_folder() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let temporary = tempfile::tempdir().unwrap();
    let there = temporary.path().join("another place/with a longer name");
    copy(here, &there).unwrap();

    let minimum = env!("CARGO_PKG_RUST_VERSION");
    let toolchain = guest::Toolchain::probe(&variable("RUSTC", "rustc"), minimum).unwrap();
    assert!(!toolchain.to_string().is_empty());
    let build = |workspace: &Path, target_dir: &Path| {
        guest::Guest { workspace, package: "loop-logic", features: &[], target_dir }
            .build(&toolchain, &variable("CARGO", "cargo"))
            .unwrap()
    };
    let target = guest::target_dir(Path::new(env!("CARGO_TARGET_TMPDIR"))).unwrap();
    let first = build(here, &target.join("guest-build"));
    let second = build(&there, &temporary.path().join("target"));
    assert!(first == second, "{} and {} bytes differ", first.len(), second.len());
    for part in [here, temporary.path()] {
        let part = part.to_str().unwrap().as_bytes();
        assert_eq!(memchr::memmem::find(&first, part), None, "it names a folder");
    }
}
