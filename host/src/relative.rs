//! Relative paths, `/`-separated, that mean the same file below whatever folder they are
//! put in, on every system.
//!
//! The wall that holds whatever logic is loaded and whatever database is opened: what
//! passes neither leaves that folder nor nests without end. What else a name may be is
//! for those to say who use it.

use thiserror::Error;

/// What file systems take for one name, in bytes.
pub const PART_BYTES_MAX: usize = 255;

/// How deep a file that is kept in an archive may lie, its own name included.
pub const KEPT_PARTS_MAX: usize = 32;

/// Why a path is not one of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum PathFault {
    /// From the top of a file system or of a drive.
    #[error("it is absolute")]
    Absolute,
    /// Elsewhere this separates the parts of a path.
    #[error("it holds a backslash")]
    Backslash,
    /// NUL, newline and the like.
    #[error("it holds a control character")]
    Control,
    /// Nothing at all, or two slashes in a row, or one at the end.
    #[error("a part of it is empty")]
    EmptyPart,
    /// `.` or `..`.
    #[error("a part of it is `.` or `..`")]
    DotPart,
    /// More than [`PART_BYTES_MAX`] bytes between two slashes.
    #[error("a part of it is longer than {PART_BYTES_MAX} bytes")]
    LongPart,
    /// More parts than were asked for.
    #[error("it has more than {0} parts")]
    Deep(usize),
}

/// Checks a path of at most `parts_max` parts.
///
/// # Errors
///
/// One fault of those there are.
pub fn check(path: &str, parts_max: usize) -> Result<(), PathFault> {
    let drive = matches!(path.as_bytes(), [letter, b':', ..] if letter.is_ascii_alphabetic());
    if path.starts_with('/') || drive {
        return Err(PathFault::Absolute);
    }
    if path.contains('\\') {
        return Err(PathFault::Backslash);
    }
    if path.chars().any(char::is_control) {
        return Err(PathFault::Control);
    }
    for (index, part) in path.split('/').enumerate() {
        if index == parts_max {
            return Err(PathFault::Deep(parts_max));
        }
        match part {
            "" => return Err(PathFault::EmptyPart),
            "." | ".." => return Err(PathFault::DotPart),
            long if long.len() > PART_BYTES_MAX => return Err(PathFault::LongPart),
            _ => {}
        }
    }
    Ok(())
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
            ("plan.md", Ok(())),
            ("tasks/T1.md", Ok(())),
            (".tmp/a b", Ok(())),
            ("a..b", Ok(())),
            ("ab:c", Ok(())),
            ("plan.md~disk", Ok(())),
            ("a/b/c/d", Ok(())),
            (&fits, Ok(())),
            ("", Err(PathFault::EmptyPart)),
            ("a//b", Err(PathFault::EmptyPart)),
            ("a/", Err(PathFault::EmptyPart)),
            ("/tmp/evil", Err(PathFault::Absolute)),
            ("//x", Err(PathFault::Absolute)),
            ("C:\\evil", Err(PathFault::Absolute)),
            ("c:evil", Err(PathFault::Absolute)),
            ("../../evil", Err(PathFault::DotPart)),
            ("a/../../evil", Err(PathFault::DotPart)),
            ("tasks/..", Err(PathFault::DotPart)),
            ("./a", Err(PathFault::DotPart)),
            ("tasks\\..\\evil", Err(PathFault::Backslash)),
            ("a\0b", Err(PathFault::Control)),
            ("a\nb", Err(PathFault::Control)),
            ("a\u{9b}b", Err(PathFault::Control)),
            (&long, Err(PathFault::LongPart)),
            (&hangul, Err(PathFault::LongPart)),
            ("a/b/c/d/e", Err(PathFault::Deep(4))),
        ];
        for (path, expected) in table {
            assert_eq!(check(path, 4), *expected, "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn what_passes_stays_below(path in "[./a\\\\~:\u{0}é-]{0,20}") {
            if check(&path, 32).is_ok() {
                let mut parts = Path::new(&path).components();
                prop_assert!(parts.all(|part| matches!(part, Component::Normal(_))));
            }
        }
    }
}
