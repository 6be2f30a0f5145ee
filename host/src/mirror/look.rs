//! Looking at a loop's folder: what lies in it, and the content of one file.
//!
//! For people and agents to compare with, and for archives; nothing read here becomes
//! state. The way to the folder is walked as for writing: no link is followed. A root
//! that is gone is no error: what is kept of its loops can still be asked for.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::thread;
use std::time::Duration;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use thiserror::Error;

use super::MirrorError;
use super::folder::{FOLDER_FLAGS, Folder, is_file, length_of};
use super::path::{self, PathFault};
use crate::contract::model::FileEntry;

/// The folder of task specifications, listed with the top level.
const TASKS: &str = "tasks";

/// The longest file whose text is read, in bytes.
pub const TEXT_MAX: u64 = 8 << 20;

/// How a file is opened to be read: a link is refused, and a pipe or a terminal does
/// not hold us.
pub(super) const FILE_FLAGS: OFlags = OFlags::RDONLY
    .union(OFlags::NOFOLLOW)
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOCTTY)
    .union(OFlags::CLOEXEC);

/// How often a file that changes while it is read is read again, and the pause before
/// each time.
const READ_ATTEMPTS: usize = 5;
const READ_PAUSE: Duration = Duration::from_millis(10);

/// A file as it was read.
#[derive(Debug, PartialEq, Eq)]
pub struct FileRead {
    /// Its whole content.
    pub bytes: Vec<u8>,
    /// In milliseconds since the Unix epoch, UTC.
    pub modified_at: i64,
}

/// Why a file was not read.
#[derive(Debug, Error)]
pub enum ReadFault {
    /// No file may have this path.
    #[error("its path is not one to keep: {0}")]
    Path(PathFault),
    /// Nothing of that name, or no folder to hold it.
    #[error("it is not there")]
    Absent,
    /// A link, a folder, a pipe and the like.
    #[error("it is {0}, not a regular file")]
    Kind(&'static str),
    /// Longer than asked for.
    #[error("it has {bytes} bytes and at most {max} are kept")]
    Long {
        /// Its length.
        bytes: u64,
        /// What was asked for.
        max: u64,
    },
    /// It was another one at the end of each reading than at its beginning.
    #[error("it kept changing while it was read")]
    Changing,
    /// The system refused.
    #[error("it cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The loop's folder could not be opened.
    #[error(transparent)]
    Folder(#[from] MirrorError),
}

impl From<Errno> for ReadFault {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::NOTDIR => Self::Absent,
            Errno::LOOP | Errno::MLINK => Self::Kind(LINK),
            Errno::NXIO => Self::Kind("a socket or a device"),
            errno => Self::Io(errno.into()),
        }
    }
}

const LINK: &str = "a symbolic link";

/// Lists the regular files of a loop's folder, top level and `tasks/`, by path;
/// `None` when there is no folder, something else stands in its place, or its root is
/// gone.
///
/// # Errors
///
/// `Root` when the project root is there and cannot be opened, `Io` when the folder cannot be
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
    let (parent, name) = match path.rsplit_once('/') {
        None => (None, path),
        Some((below, name)) => match folder_below(&folder, below) {
            Some(parent) => (Some(parent), name),
            None => return Ok(None),
        },
    };
    let at = parent.as_ref().map_or(folder.handle(), AsFd::as_fd);
    let Ok(file) = fs::openat(at, name, FILE_FLAGS, Mode::empty()) else { return Ok(None) };
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

/// Reads a file in a loop's folder whole, for an archive.
///
/// A file whose length or times changed meanwhile is read again, a few times.
///
/// # Errors
///
/// Why there is nothing to keep; a path is checked by [`path::check_kept`].
pub fn read_file(root: &Path, slug: &str, path: &str, max: u64) -> Result<FileRead, ReadFault> {
    path::check_kept(path).map_err(ReadFault::Path)?;
    let Some(folder) = open(root, slug)? else { return Err(ReadFault::Absent) };
    for attempt in 0..READ_ATTEMPTS {
        if attempt > 0 {
            thread::sleep(READ_PAUSE);
        }
        if let Some(read) = read_once(&folder, path, max)? {
            return Ok(read);
        }
    }
    Err(ReadFault::Changing)
}

/// `None` for a file that changed meanwhile.
fn read_once(folder: &Folder, path: &str, max: u64) -> Result<Option<FileRead>, ReadFault> {
    let (parent, name) = match path.rsplit_once('/') {
        None => (None, path),
        Some((below, name)) => (Some(folder_below(folder, below).ok_or(ReadFault::Absent)?), name),
    };
    let at = parent.as_ref().map_or(folder.handle(), AsFd::as_fd);
    let mut file = File::from(fs::openat(at, name, FILE_FLAGS, Mode::empty())?);
    let before = fs::fstat(&file)?;
    if !is_file(&before) {
        return Err(ReadFault::Kind(kind_of(&before)));
    }
    let bytes = length_of(&before);
    if bytes > max {
        return Err(ReadFault::Long { bytes, max });
    }
    read_unchanged(&mut file, &before)
}

fn read_unchanged(file: &mut File, before: &Stat) -> Result<Option<FileRead>, ReadFault> {
    let length = length_of(before);
    let mut bytes = Vec::new();
    // One more, so that growth shows; no further, however much it grows.
    file.take(length + 1).read_to_end(&mut bytes)?;
    let after = fs::fstat(&*file)?;
    let times = |stat: &Stat| (stat.st_mtime, stat.st_mtime_nsec, stat.st_ctime, stat.st_ctime_nsec);
    let unchanged =
        bytes.len() as u64 == length && length_of(&after) == length && times(before) == times(&after);
    Ok(unchanged.then(|| FileRead { bytes, modified_at: modified_at(before) }))
}

/// What something is, where a regular file was expected.
pub(super) fn kind_of(stat: &Stat) -> &'static str {
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => "a file",
        FileType::Directory => "a folder",
        FileType::Symlink => LINK,
        FileType::Fifo => "a pipe",
        _ => "a socket or a device",
    }
}

/// In milliseconds since the Unix epoch, UTC.
pub(super) fn modified_at(stat: &Stat) -> i64 {
    stat.st_mtime
        .saturating_mul(1_000)
        .saturating_add(i64::try_from(stat.st_mtime_nsec).unwrap_or(0) / 1_000_000)
}

/// The folder of a loop; `None` when there is none, something else stands in its
/// place, or its root is gone.
pub(super) fn open(root: &Path, slug: &str) -> Result<Option<Folder>, MirrorError> {
    path::check_name(slug).map_err(|fault| MirrorError::Path { path: slug.to_owned(), fault })?;
    match Folder::open(root, slug) {
        Err(MirrorError::InTheWay { .. }) => Ok(None),
        // A link stands for a root that is gone as well: roots have theirs resolved.
        Err(MirrorError::Root { cause, .. })
            if matches!(
                Errno::from_io_error(&cause),
                Some(Errno::NOENT | Errno::NOTDIR | Errno::LOOP | Errno::MLINK)
            ) =>
        {
            Ok(None)
        }
        other => other,
    }
}

/// Opens a folder below the loop's, part by part; `None` when there is none.
pub(super) fn folder_below(folder: &Folder, path: &str) -> Option<OwnedFd> {
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
        if path::is_own(text) {
            continue;
        }
        let stat = match fs::statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => stat,
            Err(Errno::NOENT) => continue,
            Err(errno) => return Err(errno),
        };
        if is_file(&stat) {
            found.push(FileEntry {
                path: format!("{prefix}{text}"),
                bytes: length_of(&stat),
                modified_at: modified_at(&stat),
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

    #[test]
    fn a_root_that_is_gone_is_none() {
        let (top, _) = playground();
        let elsewhere = top.path().join("link");
        symlink(top.path(), &elsewhere).expect("a link");
        std::fs::write(top.path().join("file"), "").expect("a file");
        for root in [top.path().join("gone"), top.path().join("file"), elsewhere] {
            assert_eq!(files(&root, "demo").expect("looked"), None, "{root:?}");
            assert_eq!(text(&root, "demo", "plan.md").expect("looked"), None, "{root:?}");
            let read = read_file(&root, "demo", "plan.md", 9);
            assert!(matches!(read, Err(ReadFault::Absent)), "{root:?}");
        }
    }

    #[test]
    fn only_whole_regular_files_are_read() {
        let (top, folder) = playground();
        let bytes = b"\xff\0four";
        std::fs::write(folder.join("tasks/deep/x"), bytes).expect("a file");
        let read = read_file(top.path(), "demo", "tasks/deep/x", 6).expect("read");
        let time = fs::stat(folder.join("tasks/deep/x")).expect("there");
        assert_eq!(read, FileRead { bytes: bytes.to_vec(), modified_at: modified_at(&time) });
        symlink(folder.join("tasks/deep/x"), folder.join("link")).expect("a link");
        symlink(folder.join("tasks"), folder.join("folder-link")).expect("a link");
        let made = std::process::Command::new("mkfifo").arg(folder.join("pipe")).status();
        assert!(made.expect("mkfifo").success());
        std::os::unix::net::UnixListener::bind(folder.join("socket")).expect("a socket");
        let table = [
            ("tasks/deep/x", 5, "6 bytes"),
            ("link", 9, "a symbolic link"),
            ("folder-link/deep/x", 9, "not there"),
            ("pipe", 9, "a pipe"),
            ("socket", 9, "a socket"),
            ("tasks", 9, "a folder"),
            ("nope", 9, "not there"),
            ("../demo/link", 9, "`..`"),
            (".git/config", 9, ".git"),
        ];
        for (path, max, why) in table {
            let fault = read_file(top.path(), "demo", path, max).expect_err(path).to_string();
            assert!(fault.contains(why), "{path}: {fault}");
        }
    }

    #[test]
    fn a_change_while_reading_shows() {
        let (_top, folder) = playground();
        let path = folder.join("growing");
        let changes: [fn(&Path); 3] = [
            |path| std::fs::write(path, "longer").expect("written"),
            |path| std::fs::write(path, "x").expect("written"),
            |path| {
                let file = File::options().write(true).open(path).expect("opened");
                file.set_modified(std::time::UNIX_EPOCH).expect("set");
            },
        ];
        for change in changes {
            std::fs::write(&path, "four").expect("a file");
            let mut file = File::open(&path).expect("opened");
            let before = fs::fstat(&file).expect("there");
            change(&path);
            assert_eq!(read_unchanged(&mut file, &before).expect("read"), None);
        }
    }
}
