//! Which names may stand below a loop's folder.
//!
//! This is the wall that holds whatever logic is loaded: no name that passes
//! leaves the folder, meets one of the mirror's own files, or nests without end.
//! Which of the remaining names a tool accepts is the logic's to say.

use thiserror::Error;

use super::folder::{LOCK_FILE, TEMPORARY};

/// How deep a view may lie, its own name included.
pub const PARTS_MAX: usize = 8;

/// What file systems take for one name, in bytes.
pub const PART_BYTES_MAX: usize = 255;

/// The one hidden name that is open to callers; all others are the mirror's.
const HIDDEN_ALLOWED: &str = ".tmp";

/// Why a name cannot stand below a loop's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathFault {
    /// It begins with `/`.
    #[error("it is absolute")]
    Absolute,
    /// Nothing at all, or two slashes in a row, or one at the end.
    #[error("a part of it is empty")]
    EmptyPart,
    /// `.` or `..`.
    #[error("a part of it is `.` or `..`")]
    DotPart,
    /// A hidden name other than `.tmp`.
    #[error("a part of it starts with `.` and is not `.tmp`")]
    HiddenPart,
    /// NUL, newline and the like.
    #[error("it holds a control character")]
    Control,
    /// More than [`PART_BYTES_MAX`] bytes between two slashes.
    #[error("a part of it is longer than {PART_BYTES_MAX} bytes")]
    LongPart,
    /// More than [`PARTS_MAX`] parts.
    #[error("it has more than {PARTS_MAX} parts")]
    Deep,
    /// More than [`KEPT_PARTS_MAX`] parts.
    #[error("it has more than {KEPT_PARTS_MAX} parts")]
    Deeper,
    /// One of the mirror's own files, or a git repository's folder.
    #[error("a part of it is the mirror's own, or `.git`")]
    Reserved,
}

/// Checks a path relative to a loop's folder, `/`-separated.
///
/// # Errors
///
/// The first fault, from left to right.
pub fn check(path: &str) -> Result<(), PathFault> {
    if path.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    for (index, part) in path.split('/').enumerate() {
        if index == PARTS_MAX {
            return Err(PathFault::Deep);
        }
        check_part(part)?;
    }
    Ok(())
}

/// How deep a file that is kept in an archive may lie, its own name included.
pub const KEPT_PARTS_MAX: usize = 32;

/// What no kept file lies in: a repository that came out of an archive could have
/// git run what it names.
const REPOSITORY: &str = ".git";

/// Checks the path of any file in a loop's folder that may be kept in an archive and
/// brought back: wider than [`check`], as people put there what they like.
///
/// # Errors
///
/// The first fault, from left to right.
pub fn check_kept(path: &str) -> Result<(), PathFault> {
    if path.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    for (index, part) in path.split('/').enumerate() {
        if index == KEPT_PARTS_MAX {
            return Err(PathFault::Deeper);
        }
        if part.is_empty() {
            return Err(PathFault::EmptyPart);
        } else if part == "." || part == ".." {
            return Err(PathFault::DotPart);
        } else if is_own(part) || part.eq_ignore_ascii_case(REPOSITORY) {
            return Err(PathFault::Reserved);
        } else if part.contains('\0') {
            return Err(PathFault::Control);
        } else if part.len() > PART_BYTES_MAX {
            return Err(PathFault::LongPart);
        }
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
/// As [`check`]; a `/` makes it [`PathFault::Deep`] or [`PathFault::Absolute`].
pub fn check_name(name: &str) -> Result<(), PathFault> {
    check(name)?;
    if name.contains('/') {
        return Err(PathFault::Deep);
    }
    Ok(())
}

fn check_part(part: &str) -> Result<(), PathFault> {
    if part.is_empty() {
        Err(PathFault::EmptyPart)
    } else if part == "." || part == ".." {
        Err(PathFault::DotPart)
    } else if part.starts_with('.') && part != HIDDEN_ALLOWED {
        Err(PathFault::HiddenPart)
    } else if part.chars().any(char::is_control) {
        Err(PathFault::Control)
    } else if part.len() > PART_BYTES_MAX {
        Err(PathFault::LongPart)
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use std::path::{Component, Path};

    use super::*;

    #[test]
    fn rule() {
        let fits = "a".repeat(PART_BYTES_MAX);
        let long = "a".repeat(PART_BYTES_MAX + 1);
        // 86 characters, 258 bytes: the limit counts bytes.
        let hangul = "한".repeat(86);
        let table: &[(&str, Result<(), PathFault>)] = &[
            ("loop.md", Ok(())),
            ("tasks/t-1.md", Ok(())),
            (".tmp/x", Ok(())),
            ("a/b/c/d/e/f/g/h", Ok(())),
            (&fits, Ok(())),
            ("a..b", Ok(())),
            ("", Err(PathFault::EmptyPart)),
            ("/etc/passwd", Err(PathFault::Absolute)),
            ("//x", Err(PathFault::Absolute)),
            ("tasks//a.md", Err(PathFault::EmptyPart)),
            ("plan.md/", Err(PathFault::EmptyPart)),
            ("./plan.md", Err(PathFault::DotPart)),
            ("../../x", Err(PathFault::DotPart)),
            ("tasks/../../x", Err(PathFault::DotPart)),
            ("tasks/..", Err(PathFault::DotPart)),
            (".git/config", Err(PathFault::HiddenPart)),
            (".tmp-view", Err(PathFault::HiddenPart)),
            ("tasks/.tmp-view", Err(PathFault::HiddenPart)),
            ("a\0b", Err(PathFault::Control)),
            ("a\nb", Err(PathFault::Control)),
            ("a\u{9b}b", Err(PathFault::Control)),
            (&long, Err(PathFault::LongPart)),
            (&hangul, Err(PathFault::LongPart)),
            ("a/b/c/d/e/f/g/h/i", Err(PathFault::Deep)),
        ];
        for (path, expected) in table {
            assert_eq!(check(path), *expected, "{path:?}");
        }
    }

    #[test]
    fn a_name_has_no_slash() {
        assert_eq!(check_name("fix-login"), Ok(()));
        assert_eq!(check_name("a/b"), Err(PathFault::Deep));
        assert_eq!(check_name("/etc"), Err(PathFault::Absolute));
        assert_eq!(check_name(".."), Err(PathFault::DotPart));
    }

    #[test]
    fn kept_files_have_more_freedom() {
        let deep = ["a"; KEPT_PARTS_MAX].join("/");
        let deeper = format!("{deep}/a");
        let table: &[(&str, Result<(), PathFault>)] = &[
            ("loop.md", Ok(())),
            (".gitignore", Ok(())),
            ("a/.hidden/b\\c", Ok(())),
            (&deep, Ok(())),
            (&deeper, Err(PathFault::Deeper)),
            ("/tmp/evil", Err(PathFault::Absolute)),
            ("../../evil", Err(PathFault::DotPart)),
            ("a/../../evil", Err(PathFault::DotPart)),
            ("a//b", Err(PathFault::EmptyPart)),
            ("tasks/", Err(PathFault::EmptyPart)),
            ("", Err(PathFault::EmptyPart)),
            ("a/.Git/config", Err(PathFault::Reserved)),
            ("a/.tmp-view", Err(PathFault::Reserved)),
            (".tmp-lock", Err(PathFault::Reserved)),
            ("a\0b", Err(PathFault::Control)),
        ];
        for (path, expected) in table {
            assert_eq!(check_kept(path), *expected, "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn what_passes_stays_below(path in "[./a\\\\~\u{0}é-]{0,20}") {
            if check(&path).is_ok() {
                let mut parts = Path::new(&path).components();
                prop_assert!(parts.all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}
