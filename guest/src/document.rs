//! Documents: which paths they may have, what they are by their path, and the
//! header that their files carry.

use crate::model::DocumentHead;
use crate::render::{self, Header, is_hidden};
use crate::text::is_reserved_on_windows;
use std::fmt;

/// The longest content of a document, in bytes.
pub const CONTENT_MAX: usize = 5 << 20;

/// How deep a document may lie, its own name included.
const PARTS_MAX: usize = 8;

/// The longest part of a path, in bytes.
const PART_MAX: usize = 255;

/// The one name with a leading dot that is no hidden one.
const TMP: &str = ".tmp";

/// Working notes; they get no header.
const SCRATCH: &str = "scratch/";

/// Documents about one task each.
const TASKS: &str = "tasks/";

/// Documents whose kind is their name.
const NAMED: &[&str] = &["plan", "discovery", "prompt", "legal", "security", "unresolved-pr-comments"];

/// Why a path cannot be a document's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PathFault {
    Empty,
    Absolute,
    EmptyPart,
    DotPart(String),
    Hidden(String),
    Character(char),
    Ending(String),
    Reserved(String),
    Long(usize),
    Deep(usize),
    /// It is one of the rendered views.
    Rendered,
    /// It differs from an existing document by case alone.
    Case(String),
    /// A document stands where a folder would have to, or the other way round.
    Blocked(String),
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PathFault::Empty => write!(f, "it is empty"),
            PathFault::Absolute => write!(f, "it is absolute; paths are relative to the loop's folder"),
            PathFault::EmptyPart => write!(f, "a part between its slashes is empty"),
            PathFault::DotPart(part) => write!(f, "`{part}` is no name"),
            PathFault::Hidden(part) => write!(f, "`{part}` is a hidden name"),
            PathFault::Character(c) => {
                write!(f, "it holds {}, which no portable file name has", c.escape_default())
            }
            PathFault::Ending(part) => write!(f, "`{part}` ends in a dot or a blank"),
            PathFault::Reserved(part) => write!(f, "`{part}` is a device name of Windows"),
            PathFault::Long(bytes) => {
                write!(f, "a part of it has {bytes} bytes and at most {PART_MAX} are possible")
            }
            PathFault::Deep(parts) => write!(f, "its {parts} parts are more than are possible"),
            PathFault::Rendered => write!(f, "that file is a view, which is written from the database"),
            PathFault::Case(other) => write!(f, "it differs from {other} by case alone"),
            PathFault::Blocked(other) => {
                write!(f, "{other} is a document, and no name can be both that and a folder")
            }
        }
    }
}

/// Checks a path by its text alone.
pub fn check_path(path: &str) -> Result<(), PathFault> {
    if path.is_empty() {
        return Err(PathFault::Empty);
    }
    if path.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    let unfit = |c: &char| {
        c.is_control() || is_hidden(*c) || matches!(c, '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
    };
    if let Some(c) = path.chars().find(unfit) {
        return Err(PathFault::Character(c));
    }
    let parts = path.split('/').count();
    if parts > PARTS_MAX {
        return Err(PathFault::Deep(parts));
    }
    path.split('/').try_for_each(check_part)
}

fn check_part(part: &str) -> Result<(), PathFault> {
    let named = || part.to_owned();
    if part.is_empty() {
        Err(PathFault::EmptyPart)
    } else if part == "." || part == ".." {
        Err(PathFault::DotPart(named()))
    } else if part.starts_with('.') && part != TMP {
        Err(PathFault::Hidden(named()))
    } else if part.ends_with(['.', ' ']) {
        Err(PathFault::Ending(named()))
    } else if is_reserved_on_windows(part) {
        Err(PathFault::Reserved(named()))
    } else if part.len() > PART_MAX {
        Err(PathFault::Long(part.len()))
    } else {
        Ok(())
    }
}

/// How deep a file of an archive may lie.
const KEPT_PARTS_MAX: usize = 32;

/// Checks the name that a file gets in an archive. Files are not chosen by the
/// server, so this refuses only what could not be put back everywhere.
pub fn check_kept(path: &str) -> Result<(), PathFault> {
    let bytes = path.as_bytes();
    if path.starts_with('/') || matches!(bytes, [letter, b':', ..] if letter.is_ascii_alphabetic()) {
        return Err(PathFault::Absolute);
    }
    if let Some(c) = path.chars().find(|c| c.is_control() || *c == '\\') {
        return Err(PathFault::Character(c));
    }
    let parts = path.split('/').count();
    if parts > KEPT_PARTS_MAX {
        return Err(PathFault::Deep(parts));
    }
    path.split('/').try_for_each(|part| match part {
        "" => Err(PathFault::EmptyPart),
        "." | ".." => Err(PathFault::DotPart(part.to_owned())),
        long if long.len() > PART_MAX => Err(PathFault::Long(long.len())),
        _ => Ok(()),
    })
}

/// Checks whether a document of this path can be written beside those there are.
pub fn check_beside(path: &str, existing: &[DocumentHead]) -> Result<(), PathFault> {
    if render::is_view(path) {
        return Err(PathFault::Rendered);
    }
    let folded = path.to_lowercase();
    for other in existing.iter().filter(|head| head.path != path) {
        let other_folded = other.path.to_lowercase();
        let lies_in =
            |below: &str, above: &str| below.strip_prefix(above).is_some_and(|rest| rest.starts_with('/'));
        if other_folded == folded {
            return Err(PathFault::Case(other.path.clone()));
        }
        if lies_in(&folded, &other_folded) || lies_in(&other_folded, &folded) {
            return Err(PathFault::Blocked(other.path.clone()));
        }
    }
    // `views/x` where `views` would be a view's own name.
    if let Some((top, _)) = path.split_once('/')
        && render::is_view(top)
    {
        return Err(PathFault::Rendered);
    }
    Ok(())
}

/// What a document is, by its path; with the task it is about, if it is about one.
/// `None` for a file that carries no header: working notes, and whatever is not
/// Markdown, which a header would break.
fn kind(path: &str) -> Option<(&str, Option<&str>)> {
    let stem = path.strip_suffix(".md")?;
    if path.starts_with(SCRATCH) {
        return None;
    }
    if let Some(taskid) = stem.strip_prefix(TASKS).filter(|name| !name.contains('/')) {
        return Some(("task", Some(taskid)));
    }
    let kind = match NAMED.iter().find(|name| **name == stem) {
        Some(name) => name,
        None if stem.starts_with("qa-report-") && !stem.contains('/') => "qa-report",
        None => "document",
    };
    Some((kind, None))
}

/// The text of a document's file: its header, where its path gets one, and the
/// content.
pub fn stamp(slug: &str, head: &DocumentHead, content: &str, version: &str) -> String {
    let Some((kind, taskid)) = kind(&head.path) else { return content.to_owned() };
    let mut out = String::with_capacity(content.len() + 256);
    let (generated, updated) = (head.created_at, head.updated_at);
    Header { kind, slug, id: None, taskid, generated, updated, mcp: version }.write(&mut out);
    out.push_str(content);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(path: &str) -> DocumentHead {
        DocumentHead {
            path: path.to_owned(),
            rev: 1,
            bytes: 0,
            sha256: String::new(),
            created_at: 0,
            updated_at: 1,
        }
    }

    #[test]
    fn paths() {
        let long = "a".repeat(256);
        #[rustfmt::skip]
        let table: &[(&str, Result<(), PathFault>)] = &[
            ("plan.md", Ok(())),
            ("tasks/T1.md", Ok(())),
            (".tmp/x", Ok(())),
            ("a/b/c/d/e/f/g/h", Ok(())),
            ("Grüße 1.md", Ok(())),
            ("", Err(PathFault::Empty)),
            ("/etc/passwd", Err(PathFault::Absolute)),
            ("../../x", Err(PathFault::DotPart("..".into()))),
            ("tasks/../../x", Err(PathFault::DotPart("..".into()))),
            ("./plan.md", Err(PathFault::DotPart(".".into()))),
            ("..\\x", Err(PathFault::Character('\\'))),
            ("C:\\x", Err(PathFault::Character(':'))),
            ("a?b", Err(PathFault::Character('?'))),
            ("a\0b", Err(PathFault::Character('\0'))),
            ("a\u{202e}b", Err(PathFault::Character('\u{202e}'))),
            ("tasks//a.md", Err(PathFault::EmptyPart)),
            ("plan.md/", Err(PathFault::EmptyPart)),
            (".git/config", Err(PathFault::Hidden(".git".into()))),
            ("x.", Err(PathFault::Ending("x.".into()))),
            ("x /y", Err(PathFault::Ending("x ".into()))),
            ("aux.md", Err(PathFault::Reserved("aux.md".into()))),
            ("a/NUL", Err(PathFault::Reserved("NUL".into()))),
            (&long, Err(PathFault::Long(256))),
            ("a/b/c/d/e/f/g/h/i", Err(PathFault::Deep(9))),
        ];
        for (path, expected) in table {
            assert_eq!(check_path(path), *expected, "{path:?}");
        }
    }

    #[test]
    fn neighbours() {
        let existing = [head("Plan.md"), head("a/b.md")];
        #[rustfmt::skip]
        let table = [
            ("Plan.md", Ok(())),
            ("x.md", Ok(())),
            ("a/c.md", Ok(())),
            ("plan.md", Err(PathFault::Case("Plan.md".into()))),
            ("A/B.md", Err(PathFault::Case("a/b.md".into()))),
            ("a", Err(PathFault::Blocked("a/b.md".into()))),
            ("a/b.md/c", Err(PathFault::Blocked("a/b.md".into()))),
            ("loop.md", Err(PathFault::Rendered)),
            ("Memory.MD", Err(PathFault::Rendered)),
            ("events.jsonl", Err(PathFault::Rendered)),
            ("loop.md/x", Err(PathFault::Rendered)),
        ];
        for (path, expected) in table {
            assert_eq!(check_beside(path, &existing), expected, "{path:?}");
        }
    }

    #[test]
    fn kinds() {
        let table = [
            ("plan.md", Some(("plan", None))),
            ("unresolved-pr-comments.md", Some(("unresolved-pr-comments", None))),
            ("tasks/T3.md", Some(("task", Some("T3")))),
            ("tasks/deep/T3.md", Some(("document", None))),
            ("qa-report-20260814-0912.md", Some(("qa-report", None))),
            ("notes.md", Some(("document", None))),
            ("sub/plan.md", Some(("document", None))),
            ("scratch/plan.md", None),
            ("data.json", None),
        ];
        for (path, expected) in table {
            assert_eq!(kind(path), expected, "{path}");
        }
    }

    #[test]
    fn a_stamped_document() {
        let text = stamp("demo", &head("tasks/T3.md"), "# T3\n", "1.2.3");
        expect_test::expect![[r#"
            ---
            type: task
            loop: demo
            taskid: T3
            generated: "1970-01-01T00:00:00.000Z"
            updated: "1970-01-01T00:00:00.001Z"
            mcp: 1.2.3
            ---
            # T3
        "#]]
        .assert_eq(&text);
        assert_eq!(render::strip(&text).1, "# T3\n");
        assert_eq!(stamp("demo", &head("scratch/a.md"), "x", "1"), "x");
    }
}
