//! Programs of others that tests and the bench run beside the product, each installed
//! from its registry into `target/packages` and kept there.
//!
//! A test that cannot have one ends after one line on standard error that says what was
//! skipped and why.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// One package in one version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Package {
    /// `npm`, `pip` or `cargo`.
    pub registry: &'static str,
    /// As the registry has it.
    pub name: &'static str,
    /// The only one that is taken.
    pub version: &'static str,
}

/// Node, for the packages that are written for it.
pub const NODE: Package = Package { registry: "npm", name: "node", version: "22.23.3" };

/// The server whose goal tools this project's follow.
pub const LOOPSMITH: Package = Package { registry: "cargo", name: "loopsmith", version: "1.0.0" };

impl Package {
    /// The folder that the package lies in; it is installed when it is not there.
    ///
    /// # Errors
    ///
    /// Why it cannot be installed here, in one line.
    ///
    /// # Panics
    ///
    /// When this program does not lie in a folder of a build.
    pub fn installed(&self) -> Result<PathBuf, String> {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let exe = std::env::current_exe().expect("a program knows its own path");
        let release = exe.ancestors().find(|dir| dir.join("loop-state-mcp").is_file());
        let target = release.and_then(Path::parent).expect("the server is built beside this");
        let mut installer = Command::new("python3");
        installer.arg("-B").arg(here.join("agents/install.py")).arg(target.join("packages"));
        installer.args([self.registry, self.name, self.version]).stdin(Stdio::null());
        let done = installer.output().map_err(|error| format!("python3: {error}"))?;
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
        if done.status.success() { Ok(said(&done.stdout).into()) } else { Err(said(&done.stderr)) }
    }

    /// The folder that the package lies in; `None` where it cannot be had, which is then
    /// said.
    #[must_use]
    pub fn or_skipped(&self) -> Option<PathBuf> {
        // One at a time: tests of one file may want the same package. What could not be
        // installed is not tried again.
        static FAILED: Mutex<Vec<(Package, String)>> = Mutex::new(Vec::new());
        let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);
        let known = failed.iter().find(|(package, _)| package == self).map(|(_, why)| why.clone());
        let why = match known.map_or_else(|| self.installed(), Err) {
            Ok(folder) => return Some(folder),
            Err(why) => why,
        };
        skipped(&format!("{} {} from {}", self.name, self.version, self.registry), &why);
        failed.push((*self, why));
        None
    }
}

/// Says that a test did not run.
pub fn skipped(what: &str, why: &str) {
    eprintln!("skipped: {what}: {why}");
}
