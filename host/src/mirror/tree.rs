//! The whole tree below a loop's folder, for what is to be kept of it.
//!
//! Every name is told, also of what cannot be read: nothing is left out of an
//! archive without a word. No link is followed, and both depth and number of names
//! have bounds.

use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use rustix::fs::{self, AtFlags, Dir, FileType, Mode, Stat};
use rustix::io::Errno;

use super::MirrorError;
use super::folder::{FOLDER_FLAGS, length_of, path_of};
use super::look::{self, FILE_FLAGS};
use super::path;
use crate::contract::model::{EntryKind, TreeEntry};
use crate::relative::KEPT_PARTS_MAX;

/// The most names that are listed.
pub const ENTRIES_MAX: usize = 100_000;

/// Lists all that lies below a loop's folder, by path; `None` when there is no
/// folder, something else stands in its place, or its root is gone.
///
/// Folders are entered and not listed, but for those named in `leave_out`, those
/// that cannot be read, and those [`KEPT_PARTS_MAX`] deep: these are listed and not
/// entered. The mirror's own temporary files are left out.
///
/// # Errors
///
/// `TooMany` past [`ENTRIES_MAX`] names; `Root` and `Io` as for [`files`](super::files).
pub fn tree(root: &Path, slug: &str, leave_out: &[String]) -> Result<Option<Vec<TreeEntry>>, MirrorError> {
    let Some(folder) = look::open(root, slug)? else { return Ok(None) };
    let mut walk = Walk { leave_out, limit: ENTRIES_MAX, found: Vec::new() };
    match walk.enter(folder.handle(), "", 1) {
        Ok(()) => {}
        Err(Stop::Full) => {
            return Err(MirrorError::TooMany { path: path_of(root, slug), limit: ENTRIES_MAX });
        }
        Err(Stop::Refused(errno)) => return Err(MirrorError::io("list", path_of(root, slug), errno)),
    }
    let mut found = walk.found;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(Some(found))
}

struct Walk<'a> {
    leave_out: &'a [String],
    limit: usize,
    found: Vec<TreeEntry>,
}

enum Stop {
    Full,
    /// The folder itself cannot be listed.
    Refused(Errno),
}

impl From<Errno> for Stop {
    fn from(errno: Errno) -> Self {
        Self::Refused(errno)
    }
}

impl Walk<'_> {
    /// Adds what lies below a folder, whose own names have `depth` parts.
    fn enter(&mut self, folder: BorrowedFd<'_>, prefix: &str, depth: usize) -> Result<(), Stop> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let raw = entry.file_name();
            if matches!(raw.to_bytes(), b"." | b"..") {
                continue;
            }
            let stat = match fs::statat(folder, raw, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                // Taken away meanwhile.
                Err(Errno::NOENT) => continue,
                Err(errno) => return Err(errno.into()),
            };
            let Ok(name) = raw.to_str() else {
                self.add(format!("{prefix}{}", raw.to_string_lossy()), EntryKind::Special, &stat)?;
                continue;
            };
            if path::is_own(name) {
                continue;
            }
            let path = format!("{prefix}{name}");
            match FileType::from_raw_mode(stat.st_mode) {
                FileType::Directory => self.folder(folder, name, path, depth, &stat)?,
                FileType::RegularFile => match fs::openat(folder, raw, FILE_FLAGS, Mode::empty()) {
                    Ok(_) => self.add(path, EntryKind::File, &stat)?,
                    Err(Errno::NOENT) => {}
                    Err(_) => self.add(path, EntryKind::Unreadable, &stat)?,
                },
                FileType::Symlink => self.add(path, EntryKind::Link, &stat)?,
                _ => self.add(path, EntryKind::Special, &stat)?,
            }
        }
        Ok(())
    }

    fn folder(
        &mut self,
        parent: BorrowedFd<'_>,
        name: &str,
        path: String,
        depth: usize,
        stat: &Stat,
    ) -> Result<(), Stop> {
        if depth >= KEPT_PARTS_MAX || self.leave_out.iter().any(|left_out| left_out == name) {
            return self.add(path, EntryKind::Folder, stat);
        }
        let before = self.found.len();
        let entered = match fs::openat(parent, name, FOLDER_FLAGS, Mode::empty()) {
            Ok(folder) => self.enter(folder.as_fd(), &format!("{path}/"), depth + 1),
            Err(Errno::NOENT) => return Ok(()),
            Err(errno) => Err(errno.into()),
        };
        match entered {
            Err(Stop::Refused(_)) => {
                self.found.truncate(before);
                self.add(path, EntryKind::Folder, stat)
            }
            other => other,
        }
    }

    fn add(&mut self, path: String, kind: EntryKind, stat: &Stat) -> Result<(), Stop> {
        if self.found.len() >= self.limit {
            return Err(Stop::Full);
        }
        let bytes = match kind {
            EntryKind::File | EntryKind::Unreadable => length_of(stat),
            EntryKind::Folder | EntryKind::Link | EntryKind::Special => 0,
        };
        self.found.push(TreeEntry { path, kind, bytes, modified_at: look::modified_at(stat) });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn every_name_is_told_and_no_link_followed() {
        let top = tempfile::tempdir().unwrap();
        let folder = path_of(top.path(), "demo");
        std::fs::create_dir_all(folder.join("a/b")).unwrap();
        std::fs::create_dir_all(folder.join("node_modules/x")).unwrap();
        std::fs::create_dir_all(folder.join("a/.git")).unwrap();
        std::fs::create_dir_all(folder.join("empty")).unwrap();
        for path in ["plan.md", "a/b/c", "node_modules/x/y", "a/.git/config", ".tmp-view", "a/.tmp-view"] {
            std::fs::write(folder.join(path), "four").unwrap();
        }
        symlink(top.path(), folder.join("out")).unwrap();
        symlink("nowhere", folder.join("dangling")).unwrap();
        assert!(Command::new("mkfifo").arg(folder.join("pipe")).status().unwrap().success());
        std::fs::write(folder.join(std::ffi::OsStr::from_bytes(b"x\xff")), "four").unwrap();
        let leave_out = ["node_modules".to_owned(), ".git".to_owned(), "plan.md".to_owned()];
        let found = tree(top.path(), "demo", &leave_out).unwrap().unwrap();
        let found: Vec<_> = found.iter().map(|e| (e.path.as_str(), e.kind, e.bytes)).collect();
        use EntryKind::{File, Folder, Link, Special};
        let expected = [
            ("a/.git", Folder, 0),
            ("a/b/c", File, 4),
            ("dangling", Link, 0),
            ("node_modules", Folder, 0),
            ("out", Link, 0),
            ("pipe", Special, 0),
            ("plan.md", File, 4),
            ("x\u{fffd}", Special, 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        use std::os::unix::fs::PermissionsExt;
        let top = tempfile::tempdir().unwrap();
        let folder = path_of(top.path(), "demo");
        std::fs::create_dir_all(folder.join("shut")).unwrap();
        let shut = [folder.join("shut"), folder.join("x")];
        for path in ["shut/a", "x"] {
            std::fs::write(folder.join(path), "four").unwrap();
        }
        let set = |mode| {
            for path in &shut {
                std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
            }
        };
        set(0o000);
        let refused = std::fs::read(&shut[1]).is_err();
        let found = tree(top.path(), "demo", &[]);
        set(0o755);
        let found = found.unwrap().unwrap();
        let found: Vec<_> = found.iter().map(|e| (e.path.as_str(), e.kind, e.bytes)).collect();
        // Who may read everything reads this as well.
        let expected = if refused {
            [("shut", EntryKind::Folder, 0), ("x", EntryKind::Unreadable, 4)]
        } else {
            [("shut/a", EntryKind::File, 4), ("x", EntryKind::File, 4)]
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn depth_and_number_have_bounds() {
        let top = tempfile::tempdir().unwrap();
        let folder = path_of(top.path(), "demo");
        let deep = vec!["d"; KEPT_PARTS_MAX].join("/");
        std::fs::create_dir_all(folder.join(&deep).join("deeper")).unwrap();
        let found = tree(top.path(), "demo", &[]).unwrap().unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].path.as_str(), found[0].kind), (deep.as_str(), EntryKind::Folder));

        for name in ["1", "2", "3"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        for (limit, fits) in [(4, true), (3, false)] {
            let mut walk = Walk { leave_out: &[], limit, found: Vec::new() };
            let opened = look::open(top.path(), "demo").unwrap().unwrap();
            assert_eq!(walk.enter(opened.handle(), "", 1).is_ok(), fits, "{limit}");
        }
    }

    #[test]
    fn no_folder_is_none() {
        let top = tempfile::tempdir().unwrap();
        assert_eq!(tree(top.path(), "demo", &[]).unwrap(), None);
        assert_eq!(tree(&top.path().join("gone"), "demo", &[]).unwrap(), None);
    }
}
