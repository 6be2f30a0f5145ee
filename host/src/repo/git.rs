//! Which repository a folder belongs to, asked of git.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::fs::Access;
use thiserror::Error;

use super::process::{self, Ended};
use super::remote::remote_key;
use super::site::Site;

/// How long git may take for each of the two questions.
const LIMIT: Duration = Duration::from_secs(5);

/// What is set for git, beside `PATH`, `HOME` and the like.
const SETTINGS: [(&str, &str); 6] = [
    // Its messages are told apart by their words.
    ("LC_ALL", "C"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    // A repository is the same for each user and on each machine.
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_PAGER", "cat"),
];

/// Which repository a folder belongs to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// [`remote_key`] of the remote `origin`.
    pub remote_key: Option<String>,
    /// The git folder that all work trees of the repository share, absolute and
    /// with symbolic links resolved.
    pub repo_key: Option<String>,
    /// The top of the work tree, absolute and resolved. None in a bare repository
    /// and in a git folder.
    pub top: Option<String>,
    /// Why the fields above are empty, or fewer than they should be, as a clause.
    /// None for a repository in order and for a folder that lies in none.
    pub note: Option<String>,
}

/// How git is run: with which variables, for how long.
#[derive(Debug, Clone)]
pub struct Git {
    variables: Vec<(OsString, OsString)>,
    limit: Duration,
}

/// Why git has not told which repository a folder belongs to.
#[derive(Debug, Error)]
enum Fault {
    #[error("git is not installed, or not in a folder that PATH names by its absolute path")]
    NoGit,
    #[error("git cannot be started: {0}")]
    Start(io::Error),
    #[error("git gave no answer within {} s", .0.as_secs_f32())]
    TimedOut(Duration),
    #[error("{} is none of this user's, and git reads only repositories of its own user", .0.display())]
    Foreign(PathBuf),
    #[error(
        "{} points to a place where no repository is; if it was moved, `git worktree repair` in its new place mends a linked work tree",
        .0.display()
    )]
    Dangling(PathBuf),
    #[error("git finds no repository in {}", .0.display())]
    Broken(PathBuf),
    #[error("the configuration of {} cannot be read; `git config --list` there says why", .0.display())]
    Configuration(PathBuf),
    #[error("git cannot use {}; `git status` there says why", .0.display())]
    Unusable(PathBuf),
    #[error("the path {:?} cannot be kept, because it is not UTF-8 or holds a line break", .0)]
    Unspeakable(PathBuf),
}

/// Says which repository a folder belongs to, with git and the variables of this
/// process. See [`Git::identify`].
pub fn identify(root: &Path) -> Identity {
    Git::of_process().identify(root)
}

impl Git {
    /// Git as this process's environment has it.
    pub fn of_process() -> Self {
        Self::new(env::vars_os())
    }

    /// Git with other variables; `PATH` is where it is looked for. All variables
    /// whose name starts with `GIT_` are left out: inside a hook they name the
    /// repository that the hook is for.
    pub fn new(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        // PWD as well, which may spell the folder's path through a link.
        let kept =
            |name: &OsStr| !name.as_bytes().starts_with(b"GIT_") && name != "PWD" && name != "LANGUAGE";
        let variables = variables.into_iter().filter(|(name, _)| kept(name)).collect();
        Self { variables, limit: LIMIT }
    }

    /// Another time limit than five seconds for each of two questions.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Says which repository a folder belongs to. It never fails: what cannot be told
    /// is left out, and the note says why.
    ///
    /// - The repository is the nearest one at or above the folder. When git cannot
    ///   use that one, no other is taken in its place.
    /// - A linked work tree and a subdirectory belong to their repository; a submodule
    ///   and a repository within another are their own. A bare repository has an
    ///   identity as well, the one of its work trees.
    /// - The remote is `origin` as the repository's own configuration and its includes
    ///   have it: the first value, as for fetching, after the last empty one, which
    ///   takes back those before. No rewriting, no push URL, and no other remote in its place.
    /// - System and user configuration are not read. So a repository of another user
    ///   gives a note even where `safe.directory` allows it.
    ///
    /// A folder that lies in no repository starts no process; others start two.
    pub fn identify(&self, root: &Path) -> Identity {
        let Ok(root) = std::fs::canonicalize(root) else { return Identity::default() };
        let Some(site) = Site::of(&root) else { return Identity::default() };
        let mut identity = Identity::default();
        if let Err(fault) = self.fill(&mut identity, &root, &site) {
            identity.note = Some(fault.to_string());
        }
        identity
    }

    fn fill(&self, identity: &mut Identity, root: &Path, site: &Site) -> Result<(), Fault> {
        let program = self.program().ok_or(Fault::NoGit)?;
        let command = |arguments: &[&str]| {
            let mut command = Command::new(&program);
            command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
            command.envs(SETTINGS).current_dir(root).arg("--no-pager").args(arguments);
            process::run(command, self.limit).map_err(Fault::Start)?.ok_or(Fault::TimedOut(self.limit))
        };
        // The top comes last: asking for it fails where there is no work tree.
        let answer = command(&["rev-parse", "--git-common-dir", "--show-toplevel"])?;
        let (common, top) = places(&answer, root, site)?;
        let text = |path: PathBuf| {
            path.into_os_string().into_string().map_err(|path| Fault::Unspeakable(path.into()))
        };
        identity.repo_key = Some(text(common)?);
        identity.top = top.map(text).transpose()?;

        let answer =
            command(&["config", "--local", "--includes", "--null", "--get-all", "remote.origin.url"])?;
        match answer.status.code() {
            Some(0) => identity.remote_key = origin(&answer.stdout).and_then(remote_key),
            // Not set.
            Some(1) => {}
            _ => return Err(Fault::Configuration(site.entry.clone())),
        }
        Ok(())
    }

    /// The git that `PATH` leads to. Empty and relative parts are passed over: they
    /// would mean the project's folder, whose files are not for running.
    fn program(&self) -> Option<PathBuf> {
        let (_, path) = self.variables.iter().find(|(name, _)| name == "PATH")?;
        env::split_paths(path)
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join("git"))
            .find(|git| git.is_file() && rustix::fs::access(git, Access::EXEC_OK).is_ok())
    }
}

/// The common git folder and the work tree's top, out of what git said.
fn places(answer: &Ended, root: &Path, site: &Site) -> Result<(PathBuf, Option<PathBuf>), Fault> {
    let mut lines = answer.stdout.splitn(2, |byte| *byte == b'\n');
    let said = lines.next().filter(|line| !line.is_empty()).ok_or_else(|| explain(&answer.stderr, site))?;
    let resolve = |line: &[u8]| std::fs::canonicalize(root.join(OsStr::from_bytes(line))).ok();
    // Git passes over what it cannot use, and goes on to the next folder above.
    let common = site.common_dir().ok_or_else(|| Fault::Broken(site.entry.clone()))?;
    if common.as_os_str().as_bytes().contains(&b'\n') {
        return Err(Fault::Unspeakable(common));
    }
    if resolve(said).as_ref() != Some(&common) {
        return Err(Fault::Broken(site.entry.clone()));
    }
    // A top that is configured and gone is no top.
    let top = lines.next().and_then(|rest| rest.strip_suffix(b"\n")).and_then(resolve);
    Ok((common, top))
}

/// Why git gave no answer at all, by the words that it has used for it for years.
/// Its message itself goes nowhere, since it can quote the configuration.
fn explain(stderr: &[u8], site: &Site) -> Fault {
    let message = String::from_utf8_lossy(stderr);
    let says = |words: &str| message.contains(words);
    let entry = site.entry.clone();
    if says("dubious ownership") || says("unsafe repository") {
        Fault::Foreign(entry)
    } else if says("not a git repository") && site.is_pointer() {
        Fault::Dangling(entry)
    } else if says("not a git repository") || says("gitfile") {
        Fault::Broken(entry)
    } else if says("config") {
        Fault::Configuration(entry)
    } else {
        Fault::Unusable(entry)
    }
}

/// The first of several values that counts.
fn origin(output: &[u8]) -> Option<&str> {
    let output = output.strip_suffix(b"\0")?;
    let values: Vec<&[u8]> = output.split(|byte| *byte == 0).collect();
    let counting = values.rsplit(|value| value.is_empty()).next()?;
    std::str::from_utf8(counting.first()?).ok()
}
