//! Whether a loop's folder shows what it should: for reports, changing nothing.
//!
//! Looks without the folder's lock, which on some systems needs a file. So a
//! difference is looked at again before it is believed: a call may be under way.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{self, Mode};
use rustix::io::Errno;

use super::error::MirrorError;
use super::folder::{Folder, is_file, length_of};
use super::log::{self, Lines};
use super::look::{self, FILE_FLAGS, kind_of};
use super::{Source, check_paths, views};

/// How often a folder that differs is looked at, and the pause before each further time.
const LOOKS: usize = 3;
const PAUSE: Duration = Duration::from_millis(100);

/// The header's line that tells the version of the writer, which alone does not make
/// a file another one.
const VERSION_LINE: &[u8] = b"mcp:";

/// The line before and after a header.
const FENCE: &[u8] = b"---\n";

/// A file that does not show what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Relative to the loop's folder, `/`-separated.
    pub path: String,
    /// `it is missing`, `it differs` and the like.
    pub why: String,
}

/// Which files of a loop's folder differ from what they should be, in the order of the
/// set; `None` when the root is gone.
///
/// `set` holds views rendered whole, a log with its number and length, and documents to
/// be compared as well; the log's lines come from `source`. When the loop has changed
/// since, the views are rendered anew. A log whose events are no longer stored is
/// compared by its length and last number. Nothing is written.
///
/// # Errors
///
/// `Path` for names that must not be looked at, `Root` for a root that is there and
/// cannot be opened, `Source` when the database or the logic does not answer.
pub fn differences(
    set: &views::ViewSet,
    source: &mut dyn Source,
) -> Result<Option<Vec<Difference>>, MirrorError> {
    check_paths(set)?;
    let mut set = set.clone();
    let mut look = 1;
    loop {
        let Some(found) = look_once(&set, source)? else { return Ok(None) };
        if found.is_empty() || look == LOOKS {
            return Ok(Some(found));
        }
        look += 1;
        thread::sleep(PAUSE);
        renew(&mut set, source)?;
    }
}

/// Brings the views up to date and leaves out documents that have a newer revision.
fn renew(set: &mut views::ViewSet, source: &mut dyn Source) -> Result<(), MirrorError> {
    let slug = set.slug.clone();
    let failed = |cause| MirrorError::Source { slug: slug.clone(), cause };
    let mut documents = Vec::new();
    for view in set.views.iter().filter(|view| matches!(view.content, views::Content::Document(_))) {
        let views::Content::Document(document) = &view.content else { continue };
        if source.document_rev(&view.path).map_err(failed)? == Some(document.rev) {
            documents.push(view.clone());
        }
    }
    if source.marks().map_err(failed)?.is_some_and(|marks| marks.revision != set.revision) {
        let fresh = source.render_all().map_err(failed)?;
        check_paths(&fresh)?;
        *set = fresh;
    }
    set.views.retain(|view| !matches!(view.content, views::Content::Document(_)));
    set.views.append(&mut documents);
    Ok(())
}

fn look_once(set: &views::ViewSet, source: &mut dyn Source) -> Result<Option<Vec<Difference>>, MirrorError> {
    let root = Path::new(&set.project_root);
    let folder = look::open(root, &set.slug)?;
    if folder.is_none() && !std::fs::symlink_metadata(root).is_ok_and(|root| root.is_dir()) {
        return Ok(None);
    }
    let mut found = Vec::new();
    for view in &set.views {
        let why = match &folder {
            None => Some("it is missing, with the loop's folder".to_owned()),
            Some(folder) => fault(folder, view, &set.slug, source)?,
        };
        found.extend(why.map(|why| Difference { path: view.path.clone(), why }));
    }
    Ok(Some(found))
}

/// What is wrong with a file; `None` for nothing.
fn fault(
    folder: &Folder,
    view: &views::View,
    slug: &str,
    source: &mut dyn Source,
) -> Result<Option<String>, MirrorError> {
    let (file, length) = match open(folder, &view.path) {
        Ok(opened) => opened,
        Err(why) => return Ok(Some(why)),
    };
    let is_same = match &view.content {
        views::Content::Kept(bytes) => Ok(length == *bytes),
        views::Content::Whole(text) => holds(file, length, text.as_bytes()),
        views::Content::Document(document) => holds(file, length, document.text.as_bytes()),
        views::Content::Log(log) => {
            let lines = Lines::new(source, slug, &view.path, log.seq);
            holds_log(file, length, log, lines)?
        }
    };
    Ok(match is_same {
        Ok(true) => None,
        Ok(false) => Some("it differs".to_owned()),
        Err(cause) => Some(format!("it cannot be read: {cause}")),
    })
}

fn open(folder: &Folder, path: &str) -> Result<(File, u64), String> {
    let describe = |errno: Errno| match errno {
        Errno::NOENT | Errno::NOTDIR => "it is missing".to_owned(),
        Errno::LOOP | Errno::MLINK => "it is a symbolic link".to_owned(),
        errno => format!("it cannot be read: {}", io::Error::from(errno)),
    };
    let (parent, name) = match path.rsplit_once('/') {
        None => (None::<OwnedFd>, path),
        Some((below, name)) => {
            let parent = look::folder_below(folder, below).ok_or_else(|| describe(Errno::NOENT))?;
            (Some(parent), name)
        }
    };
    let at = parent.as_ref().map_or(folder.handle(), AsFd::as_fd);
    let file = File::from(fs::openat(at, name, FILE_FLAGS, Mode::empty()).map_err(describe)?);
    let stat = fs::fstat(&file).map_err(describe)?;
    if is_file(&stat) { Ok((file, length_of(&stat))) } else { Err(format!("it is {}", kind_of(&stat))) }
}

fn holds(file: File, length: u64, expected: &[u8]) -> io::Result<bool> {
    // A version's line is short; what is longer differs in more than that.
    let most = expected.len() as u64 + 256;
    if length > most {
        return Ok(false);
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    Ok(same_but_version(&bytes, expected))
}

/// The outer error is the database's, the inner one the file's.
fn holds_log(
    file: File,
    length: u64,
    log: &views::Log,
    mut lines: Lines<'_>,
) -> Result<io::Result<bool>, MirrorError> {
    if length != log.bytes {
        return Ok(Ok(false));
    }
    let mut reader = BufReader::new(&file);
    while let Some(text) = lines.next_page()? {
        let mut bytes = vec![0; text.len()];
        match reader.read_exact(&mut bytes) {
            Ok(()) if bytes == text.as_bytes() => {}
            Ok(()) => return Ok(Ok(false)),
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => return Ok(Ok(false)),
            Err(cause) => return Ok(Err(cause)),
        }
    }
    if lines.is_complete() {
        // As long as it says and the same from the beginning; is that all of it?
        let mut rest = [0; 1];
        return Ok(reader.read(&mut rest).map(|more| more == 0));
    }
    Ok(log::ends_with(&file, length, log.seq))
}

/// Whether two files are the same but for the version in their header.
pub fn same_but_version(one: &[u8], other: &[u8]) -> bool {
    one == other || without_version(one).eq(without_version(other))
}

/// The lines of a file without that of its version, which stands in a header only.
fn without_version(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut in_header = text.starts_with(FENCE);
    text.split_inclusive(|byte| *byte == b'\n').enumerate().filter_map(move |(index, line)| {
        in_header &= index == 0 || line != FENCE;
        (!(in_header && line.starts_with(VERSION_LINE))).then_some(line)
    })
}

#[cfg(test)]
mod tests {
    use super::same_but_version;

    #[test]
    fn only_the_headers_version_may_differ() {
        let table = [
            ("", "", true),
            ("---\ntype: a\nmcp: 1\n---\nx", "---\ntype: a\nmcp: 22\n---\nx", true),
            ("---\ntype: a\nmcp: 1\n---\nx", "---\ntype: b\nmcp: 1\n---\nx", false),
            ("---\ntype: a\nmcp: 1\n---\nx", "---\ntype: a\nmcp: 1\n---\ny", false),
            ("---\nmcp: 1\n---\nmcp: 1\n", "---\nmcp: 1\n---\nmcp: 2\n", false),
            ("---\nmcp: 1\n---\n", "---\nmcp: 1\n", false),
            ("mcp: 1\n", "mcp: 2\n", false),
            ("a\n---\nmcp: 1\n", "a\n---\nmcp: 2\n", false),
            ("---\r\nmcp: 1\n", "---\r\nmcp: 2\n", false),
        ];
        for (one, other, expected) in table {
            assert_eq!(same_but_version(one.as_bytes(), other.as_bytes()), expected, "{one:?} {other:?}");
        }
    }
}
