//! Tools that a test takes from a public registry, pinned, into a folder below
//! `target/`.
//!
//! What was installed once is used again. Where there is no installer or no registry,
//! one line on standard error says what was skipped and why, and the test ends.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Installs a package from npm; returns the folder that has its `node_modules`.
#[must_use]
pub fn npm(package: &str, version: &str) -> Option<PathBuf> {
    installed("npm", package, version, |folder| {
        let mut command = Command::new("npm");
        command.args(["install", "--no-audit", "--no-fund", "--loglevel=error"]);
        // Else it takes minutes to find out that there is no registry.
        command
            .args(["--fetch-retries=1", "--fetch-retry-mintimeout=1000", "--fetch-timeout=30000", "--prefix"])
            .arg(folder);
        command
    })
}

/// Installs a package from PyPI; returns the folder for Python's search path.
#[must_use]
pub fn pip(package: &str, version: &str) -> Option<PathBuf> {
    installed("pip", package, version, |folder| {
        let mut command = Command::new("python3");
        command.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        command
            .args(["--retries=1", "--timeout=30", "--target"])
            .arg(folder)
            .env("PIP_ROOT_USER_ACTION", "ignore");
        command
    })
}

/// Says that a test did not run.
pub fn skipped(what: &str, why: &str) {
    eprintln!("skipped: {what}: {why}");
}

fn installed(
    registry: &str,
    package: &str,
    version: &str,
    installer: impl FnOnce(&Path) -> Command,
) -> Option<PathBuf> {
    // One at a time: tests of one file may want the same package. What could not be
    // installed is not tried again, and why.
    static FAILED: Mutex<Vec<(PathBuf, String)>> = Mutex::new(Vec::new());
    let mut failed = FAILED.lock().unwrap_or_else(PoisonError::into_inner);

    let exe = std::env::current_exe().expect("a test knows its own path");
    // target/release/deps/test
    let target = exe.ancestors().nth(3).expect("a test lies in the target folder");
    let name = package.replace(['@', '/'], "");
    let folder = target.join("registry").join(format!("{registry}-{name}-{version}"));
    if folder.is_dir() {
        return Some(folder);
    }
    let (at, what) = if registry == "npm" { ("@", "npm") } else { ("==", "PyPI") };
    let named = format!("{package} {version} from {what}");
    if let Some((_, why)) = failed.iter().find(|(known, _)| *known == folder) {
        skipped(&named, why);
        return None;
    }
    let unfinished = folder.with_extension(format!("{}.unfinished", std::process::id()));
    std::fs::create_dir_all(&unfinished).expect("a folder below target");
    let mut command = installer(&unfinished);
    let failure = match command.arg(format!("{package}{at}{version}")).output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let error = |line: &&str| line.to_lowercase().contains("error") && !line.starts_with("WARNING");
            let line = said.lines().find(error).or_else(|| said.lines().next());
            Some(line.unwrap_or("the installer failed").to_owned())
        }
        Err(error) => Some(format!("{:?} cannot be run: {error}", command.get_program())),
    };
    if let Some(why) = failure {
        let _ = std::fs::remove_dir_all(&unfinished);
        skipped(&named, &why);
        failed.push((folder, why));
        return None;
    }
    // Another process may have been faster.
    if std::fs::rename(&unfinished, &folder).is_err() {
        let _ = std::fs::remove_dir_all(&unfinished);
    }
    Some(folder)
}

/// The example of `wit/README.md` whose code block begins with this line.
///
/// # Panics
///
/// When there is none.
#[must_use]
pub fn example(first_line: &str) -> String {
    let path = contract().join("README.md");
    let readme = std::fs::read_to_string(&path).expect("the contract's README");
    let blocks = readme.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let found = blocks.map(|(_, code)| code).find(|code| code.lines().next() == Some(first_line));
    found.unwrap_or_else(|| panic!("{} has no example {first_line:?}", path.display())).to_owned()
}

/// The folder `wit/`.
#[must_use]
pub fn contract() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")
}
