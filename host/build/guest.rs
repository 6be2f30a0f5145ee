//! Builds a crate of this workspace for `wasm32-unknown-unknown`.
//!
//! Owns the choice of a toolchain that can do so and the command line that makes
//! the bytes depend on the sources and the compiler alone. Nothing is installed
//! here: that is the job of `guest/toolchain.sh`, whose installs this probe then
//! finds. Used by every build script that needs a component.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the guest is compiled for: the one target that leaves nothing imported.
pub const WASM_TARGET: &str = "wasm32-unknown-unknown";

/// The profile of the workspace's manifest that the guest is compiled with.
const PROFILE: &str = "guest";

/// Forces one of the ways below by its name.
pub const TOOLCHAIN_VARIABLE: &str = "LOOP_STATE_TOOLCHAIN";

/// Debian's compiler, as its package `rustc-web` installs it.
const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// The library's sources, as Debian's package `rust-web-src` installs them.
const DEBIAN_SOURCES: &str = "/usr/lib/rustlib/src/rust";

/// The linker of Debian's package `lld`.
const DEBIAN_LINKER: &str = "/usr/bin/wasm-ld";

/// A way to compile for [`WASM_TARGET`] that is installed.
#[derive(Debug)]
pub enum Toolchain {
    /// The compiler of the running build has the target's library.
    Rustup { rustc: OsString },
    /// Debian's compiler, with the library built from Debian's sources.
    Debian,
}

impl fmt::Display for Toolchain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rustup { rustc } => write!(f, "the {WASM_TARGET} target of {}", rustc.display()),
            Self::Debian => write!(f, "{DEBIAN_RUSTC} with the library in {DEBIAN_SOURCES}"),
        }
    }
}

impl Toolchain {
    /// Finds the first way that is installed: the compiler's own target, then
    /// Debian's packages.
    ///
    /// `minimum` is the oldest compiler version that the workspace allows.
    pub fn probe(rustc: &OsStr, minimum: &str) -> Result<Self, String> {
        let forced = std::env::var(TOOLCHAIN_VARIABLE).unwrap_or_default();
        let found = match forced.as_str() {
            "" => Self::rustup(rustc)
                .or_else(|rustup| Self::debian(minimum).map_err(|debian| format!("{rustup}; {debian}"))),
            "rustup" => Self::rustup(rustc),
            "debian" => Self::debian(minimum),
            other => {
                return Err(format!("{TOOLCHAIN_VARIABLE} is `{other}`; it takes `rustup` or `debian`"));
            }
        };
        found.map_err(|why| format!("nothing here compiles for {WASM_TARGET}: {why}; run `make toolchain`"))
    }

    fn rustup(rustc: &OsStr) -> Result<Self, String> {
        let library = ask(rustc, &["--print", "target-libdir", "--target", WASM_TARGET])?;
        if Path::new(&library).is_dir() {
            Ok(Self::Rustup { rustc: rustc.to_owned() })
        } else {
            Err(format!("{} has no library for it in {library}", rustc.display()))
        }
    }

    fn debian(minimum: &str) -> Result<Self, String> {
        let sources = Path::new(DEBIAN_SOURCES).join("library/Cargo.toml");
        for needed in [Path::new(DEBIAN_RUSTC), &sources, Path::new(DEBIAN_LINKER)] {
            if !needed.exists() {
                return Err(format!("{} is missing", needed.display()));
            }
        }
        // Debian's other compiler packages put a much older one in this place.
        let version = ask(OsStr::new(DEBIAN_RUSTC), &["--version"])?;
        let number = version.split(' ').nth(1).unwrap_or_default();
        if release(number) < release(minimum) {
            return Err(format!("{DEBIAN_RUSTC} is {number}, older than {minimum}"));
        }
        Ok(Self::Debian)
    }

    /// Whether a change of this file means that other bytes may come out.
    pub fn watched(&self) -> Option<&'static Path> {
        match self {
            // Cargo itself runs the build script again for another compiler.
            Self::Rustup { .. } => None,
            Self::Debian => Some(Path::new(DEBIAN_RUSTC)),
        }
    }
}

/// One crate to compile.
pub struct Guest<'a> {
    /// The folder of the workspace's manifest.
    pub workspace: &'a Path,
    /// The crate's package name.
    pub package: &'a str,
    /// The crate's features beside its default ones.
    pub features: &'a [&'a str],
    /// Where the inner build keeps its files; never the outer build's folder,
    /// whose lock the outer build holds.
    pub target_dir: &'a Path,
}

impl Guest<'_> {
    /// Compiles the crate and returns the core module.
    pub fn build(&self, toolchain: &Toolchain, cargo: &OsStr) -> Result<Vec<u8>, String> {
        let mut command = Command::new(cargo);
        clean_environment(&mut command);
        let mut remapped = vec![(self.workspace.to_path_buf(), "/loop-state"), (cargo_home()?, "/cargo")];
        command
            .current_dir(self.workspace)
            .args(["build", "--locked", "--lib"])
            .args(["--package", self.package])
            .args(["--profile", PROFILE, "--target", WASM_TARGET])
            .arg("--target-dir")
            .arg(self.target_dir);
        if !self.features.is_empty() {
            command.args(["--features", &self.features.join(",")]);
        }
        match toolchain {
            Toolchain::Rustup { rustc } => {
                command.env("RUSTC", rustc);
                for name in ["RUSTUP_HOME", "RUSTUP_TOOLCHAIN"] {
                    if let Some(value) = std::env::var_os(name) {
                        command.env(name, value);
                    }
                }
                let sysroot = PathBuf::from(ask(rustc, &["--print", "sysroot"])?);
                remapped.push((sysroot.join("lib/rustlib/src/rust"), "/rust"));
            }
            Toolchain::Debian => {
                command
                    .env("RUSTC", DEBIAN_RUSTC)
                    // Building the library is an option of nightly compilers.
                    .env("RUSTC_BOOTSTRAP", "1")
                    .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", DEBIAN_LINKER)
                    .args(["-Z", "build-std=std,panic_abort"]);
                remapped.push((PathBuf::from(DEBIAN_SOURCES), "/rust"));
            }
        }
        // Panic messages name source files. Without these the bytes would depend
        // on where the tree and the registry lie.
        let mut flags = OsString::new();
        for (from, to) in remapped {
            if !flags.is_empty() {
                flags.push("\u{1f}");
            }
            flags.push("--remap-path-prefix=");
            flags.push(from);
            flags.push("=");
            flags.push(to);
        }
        command.env("CARGO_ENCODED_RUSTFLAGS", flags);
        let status = command
            .stdin(Stdio::null())
            // What a build script prints there is taken for instructions.
            .stdout(std::io::stderr())
            .status()
            .map_err(|error| format!("cannot run {}: {error}", cargo.display()))?;
        if !status.success() {
            return Err(format!(
                "compiling {} with {toolchain} failed ({status}); its messages stand above",
                self.package
            ));
        }
        let name = self.package.replace('-', "_");
        let module = self.target_dir.join(WASM_TARGET).join(PROFILE).join(format!("{name}.wasm"));
        std::fs::read(&module).map_err(|error| format!("cannot read {}: {error}", module.display()))
    }
}

/// Takes away what the outer build sets for its own compiler.
///
/// Any of it could change the guest's bytes or make the two builds rebuild each
/// other's work in turns. How to reach the registries stays.
fn clean_environment(command: &mut Command) {
    const KEPT: [&str; 6] =
        ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTRIES_", "CARGO_REGISTRY_", "CARGO_SOURCE_"];
    const REMOVED: [&str; 4] = ["CARGO", "RUST", "CLIPPY_", "DEP_"];
    const REMOVED_WHOLE: [&str; 9] =
        ["TARGET", "HOST", "PROFILE", "OPT_LEVEL", "DEBUG", "NUM_JOBS", "OUT_DIR", "MAKEFLAGS", "MFLAGS"];
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| text.starts_with(prefix));
        if (starts(&REMOVED) && !starts(&KEPT)) || REMOVED_WHOLE.contains(&text.as_ref()) {
            command.env_remove(&name);
        }
    }
}

/// The folder of the workspace's build output: the one that holds `out_dir`.
pub fn target_dir(out_dir: &Path) -> Result<&Path, String> {
    // Cargo marks the folder for backup programs; a build for a named target adds
    // a level below it, so counting levels would not do.
    out_dir
        .ancestors()
        .find(|folder| folder.join("CACHEDIR.TAG").is_file())
        .or_else(|| out_dir.ancestors().nth(4))
        .ok_or_else(|| format!("{} is not inside a target folder", out_dir.display()))
}

fn cargo_home() -> Result<PathBuf, String> {
    std::env::var_os("CARGO_HOME")
        .filter(|home| !home.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".cargo")))
        .ok_or_else(|| "neither CARGO_HOME nor a home folder is known".to_owned())
}

/// Major and minor number, as far as they can be read.
fn release(version: &str) -> (u32, u32) {
    let mut numbers = version.split('.').map(|part| part.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0))
}

fn ask(program: &OsStr, arguments: &[&str]) -> Result<String, String> {
    let output = Command::new(program)
        .args(arguments)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", program.display()))?;
    if !output.status.success() {
        return Err(format!("{} {} failed", program.display(), arguments.join(" ")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
