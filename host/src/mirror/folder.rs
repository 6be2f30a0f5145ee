//! A loop's folder as a handle: found without following links, locked, and
//! written to by names below it only.
//!
//! Everything after the opening goes through the open folder, so that a folder
//! which is swapped for a link meanwhile cannot lead a write elsewhere.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{self, AtFlags, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::error::MirrorError;
use super::replacement::Replacement;

/// The way from a project's root to the folder that holds its loops' folders.
pub const LOOPS: [&str; 2] = [".projects", "loops"];

/// The file that becomes a view by being renamed. One name is enough, and never
/// too long: whoever writes in a folder holds its lock. `path` keeps callers off it.
pub(super) const TEMPORARY: &str = ".tmp-view";

/// What is locked where a folder itself cannot be (NFS wants a writable file).
pub(super) const LOCK_FILE: &str = ".tmp-lock";

const FOLDER_MODE: Mode = Mode::from_raw_mode(0o755);
const FILE_MODE: Mode = Mode::from_raw_mode(0o644);
pub(super) const FOLDER_FLAGS: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The first and the longest pause between two looks at a lock that is held.
const LOCK_PAUSE_MIN: Duration = Duration::from_micros(200);
const LOCK_PAUSE_MAX: Duration = Duration::from_millis(5);

/// An open loop folder.
pub struct Folder {
    handle: OwnedFd,
    path: PathBuf,
}

/// A loop folder that no other process writes in until this is dropped.
pub struct LockedFolder {
    folder: Folder,
    /// Holds the lock where the folder itself could not be locked.
    _lock_file: Option<OwnedFd>,
}

/// The folder that directly holds a view.
pub(super) enum Parent<'a> {
    Loop(BorrowedFd<'a>),
    Below(OwnedFd),
}

impl AsFd for Parent<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Loop(handle) => *handle,
            Self::Below(handle) => handle.as_fd(),
        }
    }
}

/// What a log that is to grow was found to be.
pub enum Existing {
    /// Nothing of that name.
    Absent,
    /// A regular file of this length, with no second name elsewhere.
    File(File, u64),
    /// A link, a pipe, a file with a second name: to be replaced, not written to.
    Foreign,
}

impl Folder {
    /// Opens the folder of a loop; `None` when there is none yet.
    ///
    /// # Errors
    ///
    /// `Root` when the project root cannot be opened, `InTheWay` when a link or a
    /// file stands where a folder should.
    pub fn open(root: &Path, slug: &str) -> Result<Option<Self>, MirrorError> {
        let path = path_of(root, slug);
        // One call for the whole way. It takes less than the walk takes, so what
        // it refuses, or does not know, the walk decides and explains.
        #[cfg(target_os = "linux")]
        if let Ok(handle) =
            fs::openat2(fs::CWD, &path, FOLDER_FLAGS, Mode::empty(), fs::ResolveFlags::NO_SYMLINKS)
        {
            return Ok(Some(Self { handle, path }));
        }
        let handle = walk(root, slug, false)?;
        Ok(handle.map(|handle| Self { handle, path }))
    }

    /// The open folder.
    pub(super) fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Opens the folder of a loop and makes what is missing of it; never the root.
    ///
    /// # Errors
    ///
    /// As [`Folder::open`], and `Io` when a folder cannot be made.
    pub fn create(root: &Path, slug: &str) -> Result<Self, MirrorError> {
        let path = path_of(root, slug);
        match walk(root, slug, true)? {
            Some(handle) => Ok(Self { handle, path }),
            // Made and taken away in between.
            None => Err(MirrorError::Changing { path }),
        }
    }

    /// Waits until no one else writes in the folder.
    ///
    /// The wait is bounded: a process that was stopped while it held the lock must
    /// not stop all others.
    ///
    /// # Errors
    ///
    /// `Busy` after `patience`, `Changing` when the folder is no longer the one of
    /// its name, `Io` when it cannot be locked.
    pub fn lock(self, patience: Duration) -> Result<LockedFolder, MirrorError> {
        let started = Instant::now();
        let lock_file = match self.wait_for(&self.handle, started, patience) {
            Ok(()) => None,
            Err(LockFault::Busy) => return Err(self.busy(patience)),
            Err(LockFault::Refused(_)) => Some(self.lock_by_file(started, patience)?),
        };
        if !self.has_its_name()? {
            return Err(MirrorError::Changing { path: self.path });
        }
        Ok(LockedFolder { folder: self, _lock_file: lock_file })
    }

    fn lock_by_file(&self, started: Instant, patience: Duration) -> Result<OwnedFd, MirrorError> {
        let path = || self.path.join(LOCK_FILE);
        let file = fs::openat(
            &self.handle,
            LOCK_FILE,
            OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
            FILE_MODE,
        )
        .map_err(|errno| MirrorError::io("create", path(), errno))?;
        match self.wait_for(&file, started, patience) {
            Ok(()) => Ok(file),
            Err(LockFault::Busy) => Err(self.busy(patience)),
            Err(LockFault::Refused(errno)) => Err(MirrorError::io("lock", path(), errno)),
        }
    }

    fn wait_for(&self, what: &OwnedFd, started: Instant, patience: Duration) -> Result<(), LockFault> {
        let mut pause = LOCK_PAUSE_MIN;
        loop {
            match fs::flock(what, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(Errno::WOULDBLOCK) if started.elapsed() >= patience => {
                    return Err(LockFault::Busy);
                }
                Err(Errno::WOULDBLOCK) => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(LOCK_PAUSE_MAX);
                }
                Err(errno) => return Err(LockFault::Refused(errno)),
            }
        }
    }

    fn busy(&self, waited: Duration) -> MirrorError {
        MirrorError::Busy { path: self.path.clone(), waited }
    }

    /// Whether the path still leads to the folder that is open.
    fn has_its_name(&self) -> Result<bool, MirrorError> {
        let open =
            fs::fstat(&self.handle).map_err(|errno| MirrorError::io("examine", self.path.clone(), errno))?;
        match fs::lstat(&self.path) {
            Ok(named) => Ok((named.st_dev, named.st_ino) == (open.st_dev, open.st_ino)),
            // Reached step by step, a path can be longer than one call takes; such
            // a folder is trusted to be the one that was just opened.
            Err(Errno::NAMETOOLONG) => Ok(true),
            Err(_) => Ok(false),
        }
    }
}

enum LockFault {
    Busy,
    Refused(Errno),
}

impl LockedFolder {
    /// The absolute path of a view, for messages.
    pub fn path_of(&self, view: &str) -> PathBuf {
        self.folder.path.join(view)
    }

    /// The length of a view in bytes; `None` unless it is a regular file.
    ///
    /// # Errors
    ///
    /// `InTheWay` when a folder on the way to it is none, `Io` when it cannot be
    /// examined.
    pub fn length(&self, view: &str) -> Result<Option<u64>, MirrorError> {
        let Some((parent, name)) = self.parent(view, false)? else {
            return Ok(None);
        };
        match fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) if is_file(&stat) => Ok(Some(length_of(&stat))),
            Ok(_) | Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(MirrorError::io("examine", self.path_of(view), errno)),
        }
    }

    /// Opens a view to read its end and to append to it.
    ///
    /// # Errors
    ///
    /// `InTheWay` for a folder of that name, `Io` when the system refuses.
    pub fn open_to_append(&self, view: &str) -> Result<Existing, MirrorError> {
        let Some((parent, name)) = self.parent(view, false)? else {
            return Ok(Existing::Absent);
        };
        // NONBLOCK and NOCTTY: a pipe or a terminal of that name must not hold us.
        let flags = OFlags::RDWR
            | OFlags::APPEND
            | OFlags::NOFOLLOW
            | OFlags::NONBLOCK
            | OFlags::NOCTTY
            | OFlags::CLOEXEC;
        let file = match fs::openat(&parent, name, flags, Mode::empty()) {
            Ok(file) => file,
            Err(Errno::NOENT) => return Ok(Existing::Absent),
            Err(Errno::ISDIR) => {
                return Err(MirrorError::InTheWay { path: self.path_of(view), found: "a folder" });
            }
            // A link, a file that is not writable, a socket: renaming over it works
            // wherever the folder is writable.
            Err(Errno::LOOP | Errno::MLINK | Errno::ACCESS | Errno::PERM | Errno::NXIO) => {
                return Ok(Existing::Foreign);
            }
            Err(errno) => return Err(MirrorError::io("open", self.path_of(view), errno)),
        };
        let stat = fs::fstat(&file).map_err(|errno| MirrorError::io("examine", self.path_of(view), errno))?;
        // What is appended to a file with a second name appears under both.
        if is_file(&stat) && stat.st_nlink == 1 {
            Ok(Existing::File(file.into(), length_of(&stat)))
        } else {
            Ok(Existing::Foreign)
        }
    }

    /// Begins a new version of a view; the old one stays until
    /// [`Replacement::commit`].
    ///
    /// # Errors
    ///
    /// `InTheWay` or `Io` when no file can be made there, `Changing` when the
    /// folder is gone.
    pub fn replace(&self, view: &str) -> Result<Replacement<'_>, MirrorError> {
        let path = self.path_of(view);
        let Some((parent, name)) = self.parent(view, true)? else {
            return Err(MirrorError::Changing { path });
        };
        let temporary = path.with_file_name(TEMPORARY);
        // EXCL: whatever a killed process or someone else left under the name is
        // removed, never written into.
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut opened = fs::openat(&parent, TEMPORARY, flags, FILE_MODE);
        if opened.as_ref().is_err_and(|errno| *errno == Errno::EXIST) {
            match fs::unlinkat(&parent, TEMPORARY, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(errno) => return Err(MirrorError::io("remove", temporary, errno)),
            }
            opened = fs::openat(&parent, TEMPORARY, flags, FILE_MODE);
        }
        match opened {
            Ok(file) => Ok(Replacement::new(parent, name.to_owned(), path, file.into())),
            Err(Errno::NOENT) => Err(MirrorError::Changing { path: self.folder.path.clone() }),
            Err(errno) => Err(MirrorError::io("create", temporary, errno)),
        }
    }

    /// The folder that directly holds a view, and the view's name in it; `None`
    /// when it is missing and not to be made.
    pub(super) fn parent<'v>(
        &self,
        view: &'v str,
        create: bool,
    ) -> Result<Option<(Parent<'_>, &'v str)>, MirrorError> {
        let Some((folders, name)) = view.rsplit_once('/') else {
            return Ok(Some((Parent::Loop(self.folder.handle.as_fd()), view)));
        };
        let mut path = self.folder.path.clone();
        let mut parent = Parent::Loop(self.folder.handle.as_fd());
        for part in folders.split('/') {
            path.push(part);
            match step(parent.as_fd(), part, &path, create)? {
                Some(next) => parent = Parent::Below(next),
                None if create => return Err(MirrorError::Changing { path }),
                None => return Ok(None),
            }
        }
        Ok(Some((parent, name)))
    }
}

pub(super) fn path_of(root: &Path, slug: &str) -> PathBuf {
    let mut path = root.to_owned();
    path.extend(LOOPS);
    path.push(slug);
    path
}

fn walk(root: &Path, slug: &str, create: bool) -> Result<Option<OwnedFd>, MirrorError> {
    let mut path = root.to_owned();
    let mut handle = fs::open(root, FOLDER_FLAGS, Mode::empty())
        .map_err(|errno| MirrorError::Root { root: root.to_owned(), cause: errno.into() })?;
    for part in LOOPS.into_iter().chain([slug]) {
        path.push(part);
        match step(handle.as_fd(), part, &path, create)? {
            Some(next) => handle = next,
            None => return Ok(None),
        }
    }
    Ok(Some(handle))
}

/// Opens the folder `part` below `parent`, without following a link.
pub(super) fn step(
    parent: BorrowedFd<'_>,
    part: impl rustix::path::Arg + Copy,
    path: &Path,
    create: bool,
) -> Result<Option<OwnedFd>, MirrorError> {
    let open = || fs::openat(parent, part, FOLDER_FLAGS, Mode::empty());
    let mut opened = open();
    if create && opened.as_ref().is_err_and(|errno| *errno == Errno::NOENT) {
        match fs::mkdirat(parent, part, FOLDER_MODE) {
            // EXIST: another process was quicker.
            Ok(()) | Err(Errno::EXIST) => opened = open(),
            // The parent itself is gone.
            Err(Errno::NOENT) => return Ok(None),
            Err(errno) => return Err(MirrorError::io("create", path.to_owned(), errno)),
        }
    }
    match opened {
        Ok(handle) => Ok(Some(handle)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::LOOP | Errno::MLINK | Errno::NOTDIR) => {
            let is_link = fs::statat(parent, part, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink);
            Err(MirrorError::InTheWay {
                path: path.to_owned(),
                found: if is_link { "a symbolic link" } else { "not a folder" },
            })
        }
        Err(errno) => Err(MirrorError::io("open", path.to_owned(), errno)),
    }
}

pub(super) fn is_file(stat: &Stat) -> bool {
    FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
}

pub(super) fn length_of(stat: &Stat) -> u64 {
    // Never negative for a file that exists.
    u64::try_from(stat.st_size).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NO_WAIT: Duration = Duration::ZERO;

    #[test]
    fn the_lock_is_one_for_all_and_ends_with_its_holder() {
        let root = tempfile::tempdir().unwrap();
        let open = || Folder::create(root.path(), "fix").unwrap();
        let held = open().lock(NO_WAIT).unwrap();
        let refused = open().lock(NO_WAIT);
        assert!(matches!(refused, Err(MirrorError::Busy { .. })));
        drop(held);
        assert!(open().lock(NO_WAIT).is_ok());
    }

    #[test]
    fn a_lock_file_serves_where_a_folder_cannot_be_locked() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::create(root.path(), "fix").unwrap();
        let held = folder.lock_by_file(Instant::now(), NO_WAIT).unwrap();
        let refused = folder.lock_by_file(Instant::now(), NO_WAIT);
        assert!(matches!(refused, Err(MirrorError::Busy { .. })));
        drop(held);
        assert!(folder.lock_by_file(Instant::now(), NO_WAIT).is_ok());
    }

    #[test]
    fn a_folder_that_was_replaced_before_the_lock_is_not_locked() {
        let root = tempfile::tempdir().unwrap();
        let opened = Folder::create(root.path(), "fix").unwrap();
        let path = opened.path.clone();
        std::fs::remove_dir(&path).unwrap();
        let Err(MirrorError::Changing { .. }) = opened.lock(NO_WAIT) else {
            panic!("a removed folder was locked");
        };
        let opened = Folder::create(root.path(), "fix").unwrap();
        std::fs::rename(&path, path.with_file_name("moved")).unwrap();
        std::fs::create_dir(&path).unwrap();
        let Err(MirrorError::Changing { .. }) = opened.lock(NO_WAIT) else {
            panic!("a moved folder was locked");
        };
    }

    #[test]
    fn a_replacement_that_is_dropped_leaves_the_old_version_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let folder = Folder::create(root.path(), "fix").unwrap();
        let locked = folder.lock(NO_WAIT).unwrap();
        let mut first = locked.replace("a.md").unwrap();
        first.write("one").unwrap();
        first.commit().unwrap();
        let mut second = locked.replace("a.md").unwrap();
        second.write("tw").unwrap();
        drop(second);
        let names: Vec<_> =
            std::fs::read_dir(locked.path_of("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["a.md"]);
        assert_eq!(std::fs::read_to_string(locked.path_of("a.md")).unwrap(), "one");
    }
}
