//! Where the state folder is.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::error::StoreError;

/// The variable that names another state folder.
pub const OVERRIDE: &str = "DEV_LOOP_STATE_DIR";

/// The state folder's name in the home folder.
const FOLDER: &str = ".dev-loop-state";

/// What the choice of the state folder rests on.
#[derive(Clone, Debug, Default)]
pub struct Environment {
    /// The value of [`OVERRIDE`]; empty counts as unset.
    pub state_dir: Option<OsString>,
    /// The value of `HOME`.
    pub home: Option<OsString>,
    /// The home folder in the user database.
    pub user_home: Option<PathBuf>,
}

impl Environment {
    /// Reads this process's environment, and the user database where it matters.
    pub fn from_process() -> Environment {
        let state_dir = std::env::var_os(OVERRIDE);
        let home = std::env::var_os("HOME");
        let named = state_dir.as_deref().is_some_and(|value| !value.is_empty())
            || home.as_deref().is_some_and(|home| usable(Path::new(home)).is_ok());
        let user_home = if named { None } else { user_home() };
        Environment { state_dir, home, user_home }
    }
}

/// Returns the state folder: the override, else `~/.dev-loop-state`.
///
/// A `HOME` that is unset, empty, relative or not a folder is passed over for the
/// home in the user database. Nothing is created and nothing is taken relative
/// to the working directory.
///
/// # Errors
/// An override that is not absolute, and no usable home at all.
pub fn state_dir(environment: &Environment) -> Result<PathBuf, StoreError> {
    if let Some(value) = environment.state_dir.as_deref().filter(|value| !value.is_empty()) {
        if !Path::new(value).is_absolute() {
            return Err(StoreError::RelativeOverride {
                value: value.to_string_lossy().into_owned(),
                hint: hint(value),
            });
        }
        return Ok(PathBuf::from(value));
    }
    let home = match &environment.home {
        None => "unset".to_owned(),
        Some(home) => match usable(Path::new(home)) {
            Ok(()) => return Ok(Path::new(home).join(FOLDER)),
            Err(why) => why,
        },
    };
    let database = match &environment.user_home {
        None => "has none".to_owned(),
        Some(home) => match usable(home) {
            Ok(()) => return Ok(home.join(FOLDER)),
            Err(why) => format!("has one that is {why}"),
        },
    };
    Err(StoreError::NoHome { home, database })
}

/// Says why a path cannot be a home folder, if it cannot.
fn usable(home: &Path) -> Result<(), String> {
    let shown = home.display();
    if home.as_os_str().is_empty() {
        Err("empty".to_owned())
    } else if !home.is_absolute() {
        Err(format!("`{shown}`, a relative path"))
    } else if !home.is_dir() {
        Err(format!("`{shown}`, not a folder"))
    } else {
        Ok(())
    }
}

fn hint(value: &OsStr) -> &'static str {
    match value.as_encoded_bytes().first() {
        Some(b'~' | b'$') => " (no shell has expanded it)",
        _ => "",
    }
}

fn user_home() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current()).ok()??;
    Some(user.dir)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_folder_for_each_environment() {
        let home = tempfile::tempdir().unwrap();
        let other = tempfile::tempdir().unwrap();
        let (home, other) = (home.path().to_str().unwrap(), other.path().to_str().unwrap());
        let file = format!("{home}/file");
        std::fs::write(&file, "").unwrap();
        let in_home = format!("{home}/.dev-loop-state");
        let in_other = format!("{other}/.dev-loop-state");
        // Override, HOME, user database; the folder, or words of the refusal.
        type Case<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>, Result<&'a str, &'a [&'a str]>);
        let cases: &[Case] = &[
            (Some("/s"), Some(home), None, Ok("/s")),
            (Some("/s/a b/🦀"), None, None, Ok("/s/a b/🦀")),
            (Some(""), Some(home), None, Ok(&in_home)),
            (None, Some(home), Some(other), Ok(&in_home)),
            (None, None, Some(other), Ok(&in_other)),
            (None, Some(""), Some(other), Ok(&in_other)),
            (None, Some("rel/dir"), Some(other), Ok(&in_other)),
            (None, Some("${HOME}"), Some(other), Ok(&in_other)),
            (None, Some("/nonexistent"), Some(other), Ok(&in_other)),
            (None, Some(&file), Some(other), Ok(&in_other)),
            (Some("~/x"), Some(home), None, Err(&["`~/x`", OVERRIDE, "no shell", "absolute"])),
            (Some("${HOME}/x"), Some(home), None, Err(&["`${HOME}/x`", "no shell"])),
            (Some("x/y"), Some(home), None, Err(&["`x/y`", "absolute"])),
            (None, None, None, Err(&["HOME is unset", "has none", OVERRIDE])),
            (None, Some(""), Some("/nonexistent"), Err(&["HOME is empty", "`/nonexistent`", OVERRIDE])),
            (None, Some("rel"), Some(""), Err(&["`rel`, a relative path", "empty", OVERRIDE])),
        ];
        for (state_dir, home, user_home, expected) in cases {
            let environment = Environment {
                state_dir: state_dir.map(OsString::from),
                home: home.map(OsString::from),
                user_home: user_home.map(PathBuf::from),
            };
            match (super::state_dir(&environment), expected) {
                (Ok(found), Ok(wanted)) => assert_eq!(found, Path::new(wanted)),
                (Err(error), Err(words)) => {
                    let text = error.to_string();
                    for word in *words {
                        assert!(text.contains(word), "{text:?} lacks {word:?}");
                    }
                }
                (found, _) => panic!("{environment:?} gave {found:?}"),
            }
        }
    }

    #[test]
    fn the_user_database_gives_no_relative_home() {
        assert!(user_home().is_none_or(|home| home.is_absolute()));
    }
}
