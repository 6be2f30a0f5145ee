//! Looking at a loop's folder: what lies in it, and the text of one file.
//!
//! For people and agents to compare with; nothing read here becomes state. The
//! way to the folder is walked as for writing: no link is followed.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, Mode, OFlags};
use rustix::io::Errno;

use super::MirrorError;
use super::folder::{FOLDER_FLAGS, Folder, TEMPORARY};
use super::path;
use crate::contract::model::FileEntry;

/// The folder of task specifications, listed with the top level.
const TASKS: &str = "tasks";

/// The longest file whose text is read, in bytes.
pub const TEXT_MAX: u64 = 8 << 20;

/// Lists the regular files of a loop's folder, top level and `tasks/`, by path;
/// `None` when there is no folder, or something else stands in its place.
///
/// # Errors
///
/// `Root` when the project root cannot be opened, `Io` when the folder cannot be
/// read.
pub fn files(root: &Path, slug: &str) -> Result<Option<Vec<FileEntry>>, MirrorError> {
    let Some(folder) = open(root, slug)? else { return Ok(None) };
    let failed = |errno: Errno| MirrorError::io("list", super::folder::path_of(root, slug), errno);
    let mut found = Vec::new();
    list(folder.handle(), "", &mut found).map_err(failed)?;
    match fs::openat(folder.handle(), TASKS, FOLDER_FLAGS, Mode::empty()) {
        Ok(tasks) => list(tasks, &format!("{TASKS}/"), &mut found).map_err(failed)?,
        // Not there, or something that is no folder: then it holds no task files.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => {}
        Err(errno) => return Err(failed(errno)),
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Some(found))
}

/// Reads the text of a file in a loop's folder; `None` when it is not there, is no
/// regular file, is longer than [`TEXT_MAX`], or is not UTF-8.
///
/// # Errors
///
/// `Path` for a name that climbs, `Root` and `Io` as for [`files`].
pub fn text(root: &Path, slug: &str, path: &str) -> Result<Option<String>, MirrorError> {
    path::check(path).map_err(|fault| MirrorError::Path { path: path.to_owned(), fault })?;
    let Some(folder) = open(root, slug)? else { return Ok(None) };
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let (parent, name) = match path.rsplit_once('/') {
        None => (None, path),
        Some((below, name)) => match folder_below(&folder, below) {
            Some(parent) => (Some(parent), name),
            None => return Ok(None),
        },
    };
    let at = parent.as_ref().map_or(folder.handle(), AsFd::as_fd);
    let Ok(file) = fs::openat(at, name, flags, Mode::empty()) else { return Ok(None) };
    let failed =
        |cause: std::io::Error| MirrorError::io("read", super::folder::path_of(root, slug).join(path), cause);
    let file = File::from(file);
    let meta = file.metadata().map_err(failed)?;
    if !meta.is_file() || meta.len() > TEXT_MAX {
        return Ok(None);
    }
    let mut bytes = Vec::new();
    // It may grow between the look and the read.
    file.take(TEXT_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
    Ok(String::from_utf8(bytes).ok().filter(|text| text.len() as u64 <= TEXT_MAX))
}

fn open(root: &Path, slug: &str) -> Result<Option<Folder>, MirrorError> {
    match Folder::open(root, slug) {
        Err(MirrorError::InTheWay { .. }) => Ok(None),
        other => other,
    }
}

/// Opens a folder below the loop's, part by part; `None` when there is none.
fn folder_below(folder: &Folder, path: &str) -> Option<OwnedFd> {
    let mut at: Option<OwnedFd> = None;
    for part in path.split('/') {
        let parent = at.as_ref().map_or(folder.handle(), AsFd::as_fd);
        at = Some(fs::openat(parent, part, FOLDER_FLAGS, Mode::empty()).ok()?);
    }
    at
}

/// Adds the regular files directly in a folder.
fn list(folder: impl AsFd, prefix: &str, found: &mut Vec<FileEntry>) -> Result<(), Errno> {
    for entry in Dir::read_from(&folder)? {
        let entry = entry?;
        let name = entry.file_name();
        // A name that is not UTF-8 cannot be told in an answer.
        let Ok(text) = name.to_str() else { continue };
        if text == TEMPORARY {
            continue;
        }
        let stat = match fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        if fs::FileType::from_raw_mode(stat.st_mode) == fs::FileType::RegularFile {
            found.push(FileEntry {
                path: format!("{prefix}{text}"),
                bytes: u64::try_from(stat.st_size).unwrap_or(0),
                modified_at: (stat.st_mtime as i64).saturating_mul(1_000)
                    + i64::try_from(stat.st_mtime_nsec).unwrap_or(0) / 1_000_000,
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn playground() -> (tempfile::TempDir, std::path::PathBuf) {
        let top = tempfile::tempdir().expect("a temporary folder");
        let loop_folder = top.path().join(".projects/loops/demo");
        std::fs::create_dir_all(loop_folder.join("tasks/deep")).expect("folders");
        (top, loop_folder)
    }

    #[test]
    fn lists_top_level_and_tasks_and_follows_nothing() {
        let (top, folder) = playground();
        let outside = top.path().join("secret");
        std::fs::write(&outside, "secret").expect("a file");
        for (path, text) in [("plan.md", "plan"), ("tasks/T1.md", "one"), ("tasks/deep/x.md", "x")] {
            std::fs::write(folder.join(path), text).expect("a file");
        }
        symlink(&outside, folder.join("link.md")).expect("a link");
        let found = files(top.path(), "demo").expect("listed").expect("a folder");
        let paths: Vec<_> = found.iter().map(|f| (f.path.as_str(), f.bytes)).collect();
        assert_eq!(paths, [("plan.md", 4), ("tasks/T1.md", 3)]);
        assert_eq!(text(top.path(), "demo", "tasks/T1.md").expect("read").as_deref(), Some("one"));
        for nothing in ["link.md", "nope.md", "tasks", "nope/x.md"] {
            assert_eq!(text(top.path(), "demo", nothing).expect("looked"), None, "{nothing}");
        }
        assert!(text(top.path(), "demo", "../secret").is_err());
    }

    #[test]
    fn no_folder_is_none() {
        let (top, _) = playground();
        assert_eq!(files(top.path(), "other").expect("looked"), None);
        symlink(top.path().join(".projects/loops/demo"), top.path().join(".projects/loops/linked"))
            .expect("a link");
        assert_eq!(files(top.path(), "linked").expect("looked"), None);
    }
}
