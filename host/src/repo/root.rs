//! The project root: the folder whose loops a server keeps.
//!
//! Named by the flag, else by the variable, else the working directory. It is taken
//! as it was named, with symbolic links resolved: not raised to a work tree's top
//! and not corrected by a guess. Whether a loop may begin in it is the logic's to
//! say, from [`ProjectRoot::source`] and [`ProjectRoot::kind`].

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

use rustix::fs::Access;
use thiserror::Error;

use crate::contract::tools::{RootKind, RootSource};
use crate::home;

/// The command-line flag that names the root.
pub const FLAG: &str = "--project-root";

/// The environment variable that names the root when the flag does not.
pub const VARIABLE: &str = "LOOP_STATE_PROJECT_ROOT";

/// What a root is found from. [`Surroundings::of_process`] fills it for the server.
#[derive(Debug)]
pub struct Surroundings {
    /// The value of [`FLAG`].
    pub flag: Option<OsString>,
    /// The value of [`VARIABLE`]; an empty one counts as not set.
    pub variable: Option<OsString>,
    /// The working directory, absolute, or why it cannot be told.
    pub directory: io::Result<PathBuf>,
    /// The user's home folders as the environment and the user database name them.
    pub homes: Vec<PathBuf>,
}

/// The folder whose loops a server keeps.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectRoot {
    /// Absolute, with symbolic links resolved.
    pub path: String,
    /// What named it.
    pub source: RootSource,
    /// Whether it is a folder that holds everything rather than one project.
    pub kind: RootKind,
}

/// A root that cannot be used. Each message names the value and what named it.
#[derive(Debug, Error)]
pub enum RootError {
    /// The flag was given an empty value.
    #[error("{FLAG} is empty; name an existing folder")]
    Empty,
    /// A value with `~`, `$` or the like that nothing has expanded.
    #[error(
        "{named} names {value:?}, which does not exist: whoever started the server did not expand it; write the folder's absolute path"
    )]
    Unexpanded {
        /// The flag or the variable.
        named: &'static str,
        /// The value as it was given.
        value: OsString,
    },
    /// Nothing is there.
    #[error(
        "{named} names {value:?}, which does not exist; create it or name an existing folder with {FLAG}"
    )]
    Missing {
        /// The flag, the variable, or the working directory.
        named: &'static str,
        /// The value as it was given.
        value: OsString,
    },
    /// Something else than a folder is there.
    #[error("{named} names {value:?}, which is not a folder; name the folder that it lies in with {FLAG}")]
    NotAFolder {
        /// The flag, the variable, or the working directory.
        named: &'static str,
        /// The value as it was given.
        value: OsString,
    },
    /// The folder cannot be entered by this user.
    #[error(
        "{named} names {value:?}, which this user may not enter; give it access or name another folder with {FLAG}"
    )]
    NoPermission {
        /// The flag, the variable, or the working directory.
        named: &'static str,
        /// The value as it was given.
        value: OsString,
    },
    /// The resolved path cannot be stored, because it is not text.
    #[error("{named} leads to {value:?}, which is not UTF-8; rename it or name another folder with {FLAG}")]
    NotUtf8 {
        /// The flag, the variable, or the working directory.
        named: &'static str,
        /// The resolved path.
        value: OsString,
    },
    /// The working directory was removed, or cannot be told, and it is needed.
    #[error(
        "the working directory cannot be told ({cause}): it may have been removed; start the server in an existing folder or name one by its absolute path with {FLAG}"
    )]
    Directory {
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Anything else.
    #[error("{named} names {value:?}, which cannot be resolved: {cause}; name another folder with {FLAG}")]
    Io {
        /// The flag, the variable, or the working directory.
        named: &'static str,
        /// The value as it was given.
        value: OsString,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
}

impl Surroundings {
    /// Reads the environment of this process; `flag` is what its command line said.
    pub fn of_process(flag: Option<OsString>) -> Self {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self {
            flag,
            variable: std::env::var_os(VARIABLE),
            directory: std::env::current_dir(),
            // HOME can be set to anything; the user database knows the real one. Where
            // neither can be told, no folder counts as the home folder.
            homes: home.into_iter().chain(home::listed()).collect(),
        }
    }
}

impl ProjectRoot {
    /// Finds the root: flag, variable, working directory, in this order.
    ///
    /// A value that is set but cannot be used is an error, never a reason to go on
    /// to the next one: the loops would end up in another project.
    ///
    /// # Errors
    ///
    /// One case for each way in which the value cannot be used.
    pub fn find(surroundings: Surroundings) -> Result<Self, RootError> {
        let Surroundings { flag, variable, directory, homes } = surroundings;
        let variable = variable.filter(|value| !value.is_empty());
        let (source, value) = match (flag, variable) {
            (Some(flag), _) if flag.is_empty() => return Err(RootError::Empty),
            (Some(flag), _) => (RootSource::Flag, flag),
            (None, Some(variable)) => (RootSource::Variable, variable),
            (None, None) => match &directory {
                Ok(directory) => (RootSource::Directory, directory.clone().into_os_string()),
                Err(_) => (RootSource::Directory, OsString::new()),
            },
        };
        // An absolute value replaces the directory, which may then be a removed one.
        let absolute = if Path::new(&value).is_absolute() {
            PathBuf::from(&value)
        } else {
            directory.map_err(|cause| RootError::Directory { cause })?.join(&value)
        };
        let path = resolve(source, value, &absolute)?;
        let kind = kind_of(Path::new(&path), &homes);
        Ok(Self { path, source, kind })
    }

    /// The name of a project that no one has named: its folder's.
    pub fn default_name(&self) -> &str {
        // `/` has no name of its own, and a root is resolved, so it has no `..`.
        self.path.rsplit('/').find(|part| !part.is_empty()).unwrap_or("/")
    }
}

fn resolve(source: RootSource, value: OsString, absolute: &Path) -> Result<String, RootError> {
    let named = name_of(source);
    let resolved = match std::fs::canonicalize(absolute) {
        Ok(resolved) => resolved,
        Err(cause) => return Err(explain(source, value, cause)),
    };
    // Opening a folder does not say whether names in it can be reached.
    if !resolved.is_dir() {
        return Err(RootError::NotAFolder { named, value });
    }
    rustix::fs::access(&resolved, Access::EXEC_OK).map_err(|errno| explain(source, value, errno.into()))?;
    resolved.into_os_string().into_string().map_err(|value| RootError::NotUtf8 { named, value })
}

fn explain(source: RootSource, value: OsString, cause: io::Error) -> RootError {
    let named = name_of(source);
    match cause.kind() {
        io::ErrorKind::NotFound if is_unexpanded(&value) => RootError::Unexpanded { named, value },
        io::ErrorKind::NotFound => RootError::Missing { named, value },
        io::ErrorKind::NotADirectory => RootError::NotAFolder { named, value },
        io::ErrorKind::PermissionDenied => RootError::NoPermission { named, value },
        _ => RootError::Io { named, value, cause },
    }
}

/// Whether a shell or an editor would have made another path of the value.
fn is_unexpanded(value: &OsStr) -> bool {
    let bytes = value.as_encoded_bytes();
    bytes.starts_with(b"~") || bytes.starts_with(b"$") || bytes.windows(2).any(|two| two == b"${")
}

fn name_of(source: RootSource) -> &'static str {
    match source {
        RootSource::Flag => FLAG,
        RootSource::Variable => VARIABLE,
        RootSource::Directory => "the working directory",
    }
}

fn kind_of(path: &Path, homes: &[PathBuf]) -> RootKind {
    let is_home =
        |home: &PathBuf| home.is_absolute() && std::fs::canonicalize(home).is_ok_and(|home| home == path);
    if path.parent().is_none() {
        RootKind::Top
    } else if homes.iter().any(is_home) {
        RootKind::Home
    } else {
        RootKind::Folder
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt;
    use std::os::unix::fs::symlink;

    use super::*;

    /// A folder with a project, a home, a file, links and names that are not text.
    fn playground() -> (tempfile::TempDir, PathBuf) {
        let guard = tempfile::tempdir().unwrap();
        let top = std::fs::canonicalize(guard.path()).unwrap();
        for folder in ["app", "home/ann/work", "Grüße 🚀"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        std::fs::write(top.join("file"), "").unwrap();
        symlink("app", top.join("link")).unwrap();
        symlink("nowhere", top.join("dangling")).unwrap();
        symlink("cycle", top.join("cycle")).unwrap();
        symlink("home/ann", top.join("ann")).unwrap();
        let bytes = OsString::from_vec(b"caf\xe9".to_vec());
        std::fs::create_dir(top.join(&bytes)).unwrap();
        symlink(&bytes, top.join("latin")).unwrap();
        (guard, top)
    }

    fn find(top: &Path, flag: Option<&str>, variable: Option<&str>, directory: &str) -> String {
        let directory = match directory {
            "removed" => Err(io::ErrorKind::NotFound.into()),
            named => Ok(top.join(named)),
        };
        let expand = |value: &str| OsString::from(value.replace("TOP", top.to_str().unwrap()));
        let found = ProjectRoot::find(Surroundings {
            flag: flag.map(expand),
            variable: variable.map(expand),
            directory,
            homes: vec![PathBuf::from(""), PathBuf::from("x"), top.join("ann")],
        });
        let text = match found {
            Ok(root) => format!("{:?} {:?} {} {}", root.source, root.kind, root.path, root.default_name()),
            Err(error) => error.to_string(),
        };
        text.replace(top.to_str().unwrap(), "TOP").replace("RootSource::", "").replace("RootKind::", "")
    }

    #[test]
    fn roots() {
        let (_guard, top) = playground();
        #[rustfmt::skip]
        let table = [
            (None, None, "app", "Directory Folder TOP/app app"),
            (None, Some("TOP/Grüße 🚀"), "app", "Variable Folder TOP/Grüße 🚀 Grüße 🚀"),
            (Some("TOP/app"), Some("TOP/home"), "home", "Flag Folder TOP/app app"),
            (Some("TOP/app"), Some("TOP/nowhere"), "home", "Flag Folder TOP/app app"),
            // An empty variable counts as not set, as most programs have it.
            (None, Some(""), "app", "Directory Folder TOP/app app"),
            // Links, and names relative to the working directory.
            (None, None, "link", "Directory Folder TOP/app app"),
            (Some("TOP/link"), None, "app", "Flag Folder TOP/app app"),
            (Some("../app"), None, "link", "Flag Folder TOP/app app"),
            (Some("."), None, "app", "Flag Folder TOP/app app"),
            (None, Some("ann/work"), "", "Variable Folder TOP/home/ann/work work"),
            // Folders that hold everything.
            (None, None, "/", "Directory Top / /"),
            (Some("//"), None, "app", "Flag Top / /"),
            (None, None, "home/ann", "Directory Home TOP/home/ann ann"),
            (None, Some("TOP/ann/."), "app", "Variable Home TOP/home/ann ann"),
            (None, None, "home", "Directory Folder TOP/home home"),
            // A removed working directory matters only where it is needed.
            (Some("TOP/app"), None, "removed", "Flag Folder TOP/app app"),
        ];
        for (flag, variable, directory, expected) in table {
            let found = find(&top, flag, variable, directory);
            assert_eq!(found, expected, "{flag:?} {variable:?} {directory:?}");
        }
    }

    #[test]
    fn refusals_name_the_value_and_a_way_out() {
        let (_guard, top) = playground();
        #[rustfmt::skip]
        let table = [
            (Some(""), None, "app", "--project-root is empty; name an existing folder"),
            (Some("TOP/gone"), None, "app", "--project-root names \"TOP/gone\", which does not exist;"),
            (Some("TOP/dangling"), None, "app", "--project-root names \"TOP/dangling\", which does not exist;"),
            (None, Some("gone"), "app", "LOOP_STATE_PROJECT_ROOT names \"gone\", which does not exist;"),
            (None, None, "gone", "the working directory names \"TOP/gone\", which does not exist;"),
            (None, Some("~/x"), "app", "LOOP_STATE_PROJECT_ROOT names \"~/x\", which does not exist: whoever"),
            (Some("${workspaceFolder}"), None, "app", "--project-root names \"${workspaceFolder}\", which does not exist: whoever"),
            (Some("TOP/${X}/app"), None, "app", "--project-root names \"TOP/${X}/app\", which does not exist: whoever"),
            (Some("TOP/file"), None, "app", "--project-root names \"TOP/file\", which is not a folder;"),
            (Some("TOP/file/x"), None, "app", "--project-root names \"TOP/file/x\", which is not a folder;"),
            (Some("TOP/latin"), None, "app", "--project-root leads to \"TOP/caf\\xE9\", which is not UTF-8;"),
            (Some("TOP/cycle"), None, "app", "--project-root names \"TOP/cycle\", which cannot be resolved:"),
            (None, None, "removed", "the working directory cannot be told ("),
            (Some("app"), None, "removed", "the working directory cannot be told ("),
        ];
        for (flag, variable, directory, expected) in table {
            let found = find(&top, flag, variable, directory);
            assert!(found.starts_with(expected), "{found}\nis not {expected}");
        }
    }

    #[test]
    fn a_folder_that_may_not_be_entered_is_told_from_a_missing_one() {
        let cause = io::ErrorKind::PermissionDenied.into();
        let error = explain(RootSource::Directory, "/srv".into(), cause);
        assert!(matches!(error, RootError::NoPermission { .. }), "{error}");
    }

    #[test]
    fn the_process_has_surroundings() {
        let surroundings = Surroundings::of_process(Some("/".into()));
        let root = ProjectRoot::find(surroundings).unwrap();
        assert_eq!(root.path, "/");
        assert_eq!(root.kind, RootKind::Top);
    }
}
