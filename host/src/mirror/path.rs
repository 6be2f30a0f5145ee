//! Which names may stand below a loop's folder: relative paths that meet none of the
//! mirror's own files. Which of them a tool accepts is the logic's to say.

use thiserror::Error;

use super::folder::{LOCK_FILE, TEMPORARY};
use crate::relative::{self, KEPT_PARTS_MAX};

/// How deep a view may lie, its own name included.
pub const PARTS_MAX: usize = 8;

/// The one hidden name that is open to callers; all others are the mirror's.
const HIDDEN_ALLOWED: &str = ".tmp";

/// What no kept file lies in: a repository that came out of an archive could have
/// git run what it names.
const REPOSITORY: &str = ".git";

/// Why a name cannot stand below a loop's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathFault {
    /// It is no relative path.
    #[error(transparent)]
    Relative(#[from] relative::PathFault),
    /// A hidden name other than `.tmp`.
    #[error("a part of it starts with `.` and is not `.tmp`")]
    HiddenPart,
    /// One of the mirror's own files, or a git repository's folder.
    #[error("a part of it is the mirror's own, or `.git`")]
    Reserved,
}

/// Checks a path relative to a loop's folder, `/`-separated.
///
/// # Errors
///
/// One fault of those there are.
pub fn check(path: &str) -> Result<(), PathFault> {
    relative::check(path, PARTS_MAX)?;
    if path.split('/').any(|part| part.starts_with('.') && part != HIDDEN_ALLOWED) {
        return Err(PathFault::HiddenPart);
    }
    Ok(())
}

/// Checks the path of any file in a loop's folder that may be kept in an archive and
/// brought back: wider than [`check`], as people put there what they like.
///
/// # Errors
///
/// One fault of those there are.
pub fn check_kept(path: &str) -> Result<(), PathFault> {
    relative::check(path, KEPT_PARTS_MAX)?;
    if path.split('/').any(|part| is_own(part) || part.eq_ignore_ascii_case(REPOSITORY)) {
        return Err(PathFault::Reserved);
    }
    Ok(())
}

/// Whether a name is that of a file that the mirror makes for itself.
pub(super) fn is_own(part: &str) -> bool {
    part == TEMPORARY || part == LOCK_FILE
}

/// Checks a single name, such as a slug: no `/` in it.
///
/// # Errors
///
/// One fault of those there are; a `/` makes it too deep.
pub fn check_name(name: &str) -> Result<(), PathFault> {
    relative::check(name, 1)?;
    check(name)
}

#[cfg(test)]
mod tests {
    use relative::PathFault::{Absolute, Backslash, Deep, DotPart};

    use super::*;

    #[test]
    fn views_hide_nothing_but_what_is_temporary() {
        let table: &[(&str, Result<(), PathFault>)] = &[
            ("loop.md", Ok(())),
            ("tasks/t-1.md", Ok(())),
            (".tmp/x", Ok(())),
            ("a/b/c/d/e/f/g/h", Ok(())),
            ("../../x", Err(DotPart.into())),
            ("a/b/c/d/e/f/g/h/i", Err(Deep(PARTS_MAX).into())),
            (".git/config", Err(PathFault::HiddenPart)),
            (".tmp-view", Err(PathFault::HiddenPart)),
            ("tasks/.tmp-view", Err(PathFault::HiddenPart)),
        ];
        for (path, expected) in table {
            assert_eq!(check(path), *expected, "{path:?}");
        }
    }

    #[test]
    fn a_name_has_no_slash() {
        assert_eq!(check_name("fix-login"), Ok(()));
        assert_eq!(check_name("a/b"), Err(Deep(1).into()));
        assert_eq!(check_name("/etc"), Err(Absolute.into()));
        assert_eq!(check_name(".."), Err(DotPart.into()));
        assert_eq!(check_name(".git"), Err(PathFault::HiddenPart));
    }

    #[test]
    fn kept_files_have_more_freedom() {
        let deep = ["a"; KEPT_PARTS_MAX].join("/");
        let deeper = format!("{deep}/a");
        let table: &[(&str, Result<(), PathFault>)] = &[
            ("loop.md", Ok(())),
            (".gitignore", Ok(())),
            ("a/.hidden/b", Ok(())),
            (&deep, Ok(())),
            (&deeper, Err(Deep(KEPT_PARTS_MAX).into())),
            ("a/../../evil", Err(DotPart.into())),
            ("a\\b", Err(Backslash.into())),
            ("a/.Git/config", Err(PathFault::Reserved)),
            ("a/.tmp-view", Err(PathFault::Reserved)),
            (".tmp-lock", Err(PathFault::Reserved)),
        ];
        for (path, expected) in table {
            assert_eq!(check_kept(path), *expected, "{path:?}");
        }
    }
}
