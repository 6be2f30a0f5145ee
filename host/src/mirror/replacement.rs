//! New versions of files: written under another name, then put in place at once.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use rustix::fs::{self, AtFlags, Timespec, Timestamps};
use rustix::io::Errno;

use super::error::MirrorError;
use super::folder::{Parent, TEMPORARY};

/// A new version of a view, not yet under its name. Dropped before
/// [`Replacement::commit`], it leaves nothing behind.
pub struct Replacement<'a> {
    parent: Parent<'a>,
    name: String,
    path: PathBuf,
    file: File,
    committed: bool,
}

impl<'a> Replacement<'a> {
    pub(super) fn new(parent: Parent<'a>, name: String, path: PathBuf, file: File) -> Self {
        Self { parent, name, path, file, committed: false }
    }

    /// Adds to the new version.
    ///
    /// # Errors
    ///
    /// `Io` when it does not fit.
    pub fn write(&mut self, content: impl AsRef<[u8]>) -> Result<(), MirrorError> {
        self.file
            .write_all(content.as_ref())
            .map_err(|cause| MirrorError::io("write", self.path.clone(), cause))
    }

    /// Gives the new version a time of modification, in milliseconds since the Unix
    /// epoch, UTC.
    ///
    /// A time that the file system refuses is no reason to give up the content.
    pub fn set_modified(&self, at: i64) {
        let time =
            Timespec { tv_sec: at.div_euclid(1_000), tv_nsec: (at.rem_euclid(1_000) * 1_000_000) as _ };
        let kept = Timespec { tv_sec: 0, tv_nsec: fs::UTIME_OMIT };
        if let Err(errno) =
            fs::futimens(&self.file, &Timestamps { last_access: kept, last_modification: time })
        {
            tracing::debug!(path = %self.path.display(), %errno, "the file's time could not be set");
        }
    }

    /// Puts the new version under its name if nothing stands there; `false` when
    /// something does, which stays as it is.
    ///
    /// # Errors
    ///
    /// `Changing` when the folder is gone, `Io` when the system refuses.
    pub fn commit_new(mut self) -> Result<bool, MirrorError> {
        match self.take_free_name() {
            Ok(()) => {
                self.committed = true;
                Ok(true)
            }
            Err(Errno::EXIST) => Ok(false),
            Err(Errno::NOENT) => Err(MirrorError::Changing { path: self.path.clone() }),
            Err(errno) => Err(MirrorError::io("create", self.path.clone(), errno)),
        }
    }

    /// Never over something, also not over what another program makes meanwhile.
    fn take_free_name(&self) -> Result<(), Errno> {
        #[cfg(target_os = "linux")]
        {
            let free = fs::RenameFlags::NOREPLACE;
            match fs::renameat_with(&self.parent, TEMPORARY, &self.parent, &self.name, free) {
                // The kernel or the file system does not know how.
                Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {}
                done => return done,
            }
        }
        match fs::linkat(&self.parent, TEMPORARY, &self.parent, &self.name, AtFlags::empty()) {
            Ok(()) => {
                // A leftover is met by the next replacement.
                let _ = fs::unlinkat(&self.parent, TEMPORARY, AtFlags::empty());
                Ok(())
            }
            // No second names on this file system: looked at, then renamed.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
                match fs::statat(&self.parent, &*self.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(_) => Err(Errno::EXIST),
                    Err(Errno::NOENT) => fs::renameat(&self.parent, TEMPORARY, &self.parent, &self.name),
                    Err(errno) => Err(errno),
                }
            }
            Err(errno) => Err(errno),
        }
    }

    /// Puts the new version in the place of the old one, at once for all readers.
    ///
    /// Not forced to the disk: after a power cut the database writes it anew.
    ///
    /// # Errors
    ///
    /// `InTheWay` for a folder of that name, `Io` when the system refuses.
    pub fn commit(mut self) -> Result<(), MirrorError> {
        #[cfg(target_os = "linux")]
        if self.exchange().is_ok() {
            // The old version has the temporary name now, and goes.
            return match fs::unlinkat(&self.parent, TEMPORARY, AtFlags::empty()) {
                Ok(()) => {
                    self.committed = true;
                    Ok(())
                }
                Err(Errno::ISDIR) if self.exchange().is_ok() => Err(self.in_the_way()),
                Err(errno) => {
                    self.committed = true;
                    let temporary = self.path.with_file_name(TEMPORARY);
                    Err(MirrorError::io("remove", temporary, errno))
                }
            };
        }
        match fs::renameat(&self.parent, TEMPORARY, &self.parent, &self.name) {
            Ok(()) => {
                self.committed = true;
                Ok(())
            }
            Err(Errno::ISDIR | Errno::NOTEMPTY | Errno::EXIST) => Err(self.in_the_way()),
            Err(errno) => Err(MirrorError::io("replace", self.path.clone(), errno)),
        }
    }

    /// Swaps the new and the old version; fails where there is no old one, or where
    /// the file system does not know how.
    ///
    /// As atomic as renaming over the old one. But ext4 answers that with writing
    /// the new one's data out, against a power cut, which costs a hundred times as
    /// much as all the rest and buys nothing here.
    #[cfg(target_os = "linux")]
    fn exchange(&self) -> Result<(), Errno> {
        let swap = fs::RenameFlags::EXCHANGE;
        fs::renameat_with(&self.parent, TEMPORARY, &self.parent, &self.name, swap)
    }

    fn in_the_way(&self) -> MirrorError {
        MirrorError::InTheWay { path: self.path.clone(), found: "a folder" }
    }
}

impl Drop for Replacement<'_> {
    fn drop(&mut self) {
        if !self.committed {
            // Whatever keeps it from going, the next replacement meets and reports.
            let _ = fs::unlinkat(&self.parent, TEMPORARY, AtFlags::empty());
        }
    }
}

/// Appends to a file that was `length` bytes long, as one write where the system
/// takes it whole.
///
/// # Errors
///
/// What the system said; the file is then cut back to `length`, so that no reader
/// meets half a line.
pub fn append(file: &mut File, length: u64, text: &str) -> io::Result<()> {
    let written = file.write_all(text.as_bytes());
    if written.is_err() {
        // The length tells the next call that lines are missing, cut back or not.
        let _ = file.set_len(length);
    }
    written
}
