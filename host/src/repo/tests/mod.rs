//! Identity and stamp, with real repositories.

mod faults;
mod identity;
mod stamps;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Git, Identity};

/// A folder with repositories in it, and a git that nothing of the machine reaches
/// but its program.
struct Lab {
    _guard: tempfile::TempDir,
    top: PathBuf,
}

impl Lab {
    fn new() -> Self {
        let guard = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(guard.path()).unwrap();
        std::fs::create_dir(top.join("home")).unwrap();
        Self { _guard: guard, top }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.top.join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// What a server's environment holds at the least.
    fn variables(&self) -> Vec<(OsString, OsString)> {
        let path = std::env::var_os("PATH").unwrap();
        vec![("PATH".into(), path), ("HOME".into(), self.path("home").into())]
    }

    fn command(&self, folder: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new("git");
        command.env_clear().envs(self.variables()).current_dir(self.path(folder)).args(arguments);
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
        for role in ["AUTHOR", "COMMITTER"] {
            command
                .env(format!("GIT_{role}_NAME"), "Ann")
                .env(format!("GIT_{role}_EMAIL"), "ann@example.org");
        }
        command
    }

    #[track_caller]
    fn git(&self, folder: &str, arguments: &[&str]) {
        let output = self.command(folder, arguments).output().unwrap();
        let message = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "git {arguments:?} in {folder}: {message}");
    }

    /// A repository with one commit, and with an origin if one is given.
    #[track_caller]
    fn repository(&self, name: &str, origin: Option<&str>) {
        std::fs::create_dir_all(self.path(name)).unwrap();
        self.git(name, &["init", "--quiet", "--initial-branch=main"]);
        self.git(name, &["commit", "--quiet", "--allow-empty", "--message=first"]);
        if let Some(origin) = origin {
            self.git(name, &["config", "remote.origin.url", origin]);
        }
    }

    /// The identity of a folder of the lab, with more variables in the environment.
    fn identify_with(&self, name: &str, more: &[(&str, &str)]) -> Identity {
        let more = more.iter().map(|(name, value)| (OsString::from(name), OsString::from(value)));
        Git::new(self.variables().into_iter().chain(more)).identify(&self.path(name))
    }

    fn identify(&self, name: &str) -> Identity {
        self.identify_with(name, &[])
    }

    /// An identity without a note; the two places are names in the lab.
    fn healthy(&self, remote_key: Option<&str>, repo_key: &str, top: Option<&str>) -> Identity {
        Identity {
            remote_key: remote_key.map(str::to_owned),
            repo_key: Some(self.text(repo_key)),
            top: top.map(|top| self.text(top)),
            note: None,
        }
    }

    fn stamp(&self, name: &str) -> String {
        super::stamp(&self.path(name))
    }
}

fn folder(path: PathBuf) -> PathBuf {
    std::fs::create_dir_all(&path).unwrap();
    path
}

/// Writes a program.
fn program(path: &Path, text: &str) {
    let draft = path.with_extension("draft");
    std::fs::write(&draft, text).unwrap();
    // By a process of its own: what this one has open for writing, a program that another
    // test starts meanwhile may have as well, and no system runs a file that is written to.
    let done = std::process::Command::new("install").args(["-m", "755"]).arg(&draft).arg(path).status();
    assert!(done.unwrap().success(), "cannot install {}", path.display());
    std::fs::remove_file(draft).unwrap();
}
