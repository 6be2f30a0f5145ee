//! Bringing files back to a loop's folder without touching what stands there.
//!
//! Whatever is there and differs is someone's work: it stays, and is told.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{self, AtFlags, Mode};
use rustix::io::Errno;

use super::error::MirrorError;
use super::folder::{FOLDER_FLAGS, Folder, LockedFolder, is_file, length_of, step};
use super::look::{FILE_FLAGS, TEXT_MAX, kind_of};
use super::{ATTEMPTS, LOCK_PATIENCE, path};

/// A file that is to stand in a loop's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Relative to the loop's folder, `/`-separated.
    pub path: String,
    /// Its bytes, or why they cannot be had.
    pub content: Result<Vec<u8>, String>,
    /// The time of modification that it gets, in milliseconds since the Unix epoch;
    /// without one it is that of the writing.
    pub modified_at: Option<i64>,
}

/// Whether an existing file is the same although its bytes differ: asked with the path,
/// the new bytes, and those that are there.
pub type Same<'a> = dyn FnMut(&str, &[u8], &[u8]) -> bool + 'a;

/// What became of the files; each is in one of the lists, in the order given.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Placed {
    /// Not there before.
    pub written: Vec<String>,
    /// There, and the same.
    pub unchanged: Vec<String>,
    /// Left out because of what stands there, and what that is.
    pub kept: Vec<(String, String)>,
    /// Not written, and why.
    pub failed: Vec<(String, String)>,
}

enum Outcome {
    Written,
    Unchanged,
    Kept(String),
}

/// Brings files to the folder of a loop, which is made if it is missing; the root has
/// to be there.
///
/// Nothing is overwritten. For an existing file of other bytes `same` is asked; what it
/// takes for the same is `unchanged`. Items are taken one at a time under the folder's
/// lock, so no transaction that waits for the folder may be open.
///
/// # Errors
///
/// When the folder can be neither opened nor made nor locked; then no item was taken.
pub fn place(
    root: &Path,
    slug: &str,
    items: impl IntoIterator<Item = Item>,
    same: &mut Same<'_>,
) -> Result<Placed, MirrorError> {
    path::check_name(slug).map_err(|fault| MirrorError::Path { path: slug.to_owned(), fault })?;
    let folder = lock(root, slug)?;
    let mut placed = Placed::default();
    for Item { path, content, modified_at } in items {
        let outcome = match &content {
            Ok(bytes) => place_one(&folder, &path, bytes, modified_at, same),
            Err(why) => Err(why.clone()),
        };
        match outcome {
            Ok(Outcome::Written) => placed.written.push(path),
            Ok(Outcome::Unchanged) => placed.unchanged.push(path),
            Ok(Outcome::Kept(why)) => placed.kept.push((path, why)),
            Err(why) => placed.failed.push((path, why)),
        }
    }
    Ok(placed)
}

fn lock(root: &Path, slug: &str) -> Result<LockedFolder, MirrorError> {
    let mut attempt = 1;
    loop {
        match Folder::create(root, slug).and_then(|folder| folder.lock(LOCK_PATIENCE)) {
            Err(MirrorError::Changing { .. }) if attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

fn place_one(
    folder: &LockedFolder,
    path: &str,
    bytes: &[u8],
    modified_at: Option<i64>,
    same: &mut Same<'_>,
) -> Result<Outcome, String> {
    path::check_kept(path).map_err(|fault| fault.to_string())?;
    // Once more when another program makes the file in between.
    for _ in 0..2 {
        match look_at(folder, path, bytes, same) {
            Ok(None) => {}
            Ok(Some(found)) => return Ok(found),
            Err(error) => return in_the_way(error),
        }
        match write_new(folder, path, bytes, modified_at) {
            Ok(true) => return Ok(Outcome::Written),
            Ok(false) => {}
            Err(error) => return in_the_way(error),
        }
    }
    Ok(Outcome::Kept("another program keeps making and removing it".to_owned()))
}

/// What stands in the way is kept; all else failed.
fn in_the_way(error: MirrorError) -> Result<Outcome, String> {
    match error {
        MirrorError::InTheWay { .. } => Ok(Outcome::Kept(error.why())),
        error => Err(error.why()),
    }
}

fn write_new(
    folder: &LockedFolder,
    path: &str,
    bytes: &[u8],
    modified_at: Option<i64>,
) -> Result<bool, MirrorError> {
    let mut replacement = folder.replace(path)?;
    replacement.write(bytes)?;
    if let Some(at) = modified_at {
        replacement.set_modified(at);
    }
    replacement.commit_new()
}

/// What stands under the path; `None` for nothing.
fn look_at(
    folder: &LockedFolder,
    path: &str,
    bytes: &[u8],
    same: &mut Same<'_>,
) -> Result<Option<Outcome>, MirrorError> {
    let failed = |errno: Errno| MirrorError::io("examine", folder.path_of(path), errno);
    let stands = |stat: &fs::Stat| Some(Outcome::Kept(format!("{} stands there", kind_of(stat))));
    let Some((parent, name)) = folder.parent(path, false)? else { return Ok(None) };
    match fs::statat(&parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) if !is_file(&stat) => return Ok(stands(&stat)),
        Ok(_) => {}
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Err(failed(errno)),
    }
    let unreadable =
        |cause: std::io::Error| Some(Outcome::Kept(format!("it cannot be read and may differ: {cause}")));
    let file = match fs::openat(parent.as_fd(), name, FILE_FLAGS, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return Ok(None),
        Err(errno) => return Ok(unreadable(errno.into())),
    };
    let stat = fs::fstat(&file).map_err(failed)?;
    if !is_file(&stat) {
        return Ok(stands(&stat));
    }
    // What is longer than any text is not held in memory to be told apart.
    let max = TEXT_MAX.max(bytes.len() as u64);
    let mut existing = Vec::new();
    if length_of(&stat) <= max
        && let Err(cause) = file.take(max).read_to_end(&mut existing)
    {
        return Ok(unreadable(cause));
    }
    let is_same = length_of(&stat) <= max && (existing == bytes || same(path, bytes, &existing));
    Ok(Some(if is_same {
        Outcome::Unchanged
    } else {
        Outcome::Kept("it differs from what is stored".to_owned())
    }))
}

/// Makes a folder that is to be a project's root, with what is missing above it, and
/// returns it with symbolic links resolved.
///
/// Links in the part of the path that exists are followed, as whoever named it meant
/// them; below, nothing is followed that appears meanwhile. A root that exists is left
/// as it is.
///
/// # Errors
///
/// `NewRoot` for a path that is not absolute or has `..` in it, `InTheWay` when a file or
/// a dangling link stands on the way, `Io` when the system refuses.
pub fn create_root(path: &Path) -> Result<PathBuf, MirrorError> {
    let refused = |why| MirrorError::NewRoot { path: path.to_owned(), why };
    if !path.is_absolute() {
        return Err(refused("it is not absolute"));
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return Err(refused("it has `..` in it"));
    }
    let mut missing = Vec::new();
    let mut resolved = None;
    for above in path.ancestors() {
        match std::fs::canonicalize(above) {
            Ok(real) => {
                resolved = Some(real);
                break;
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => {
                missing.extend(above.file_name());
            }
            Err(cause) if cause.kind() == std::io::ErrorKind::NotADirectory => {
                return Err(MirrorError::InTheWay { path: above.to_owned(), found: "below a file" });
            }
            Err(cause) => return Err(MirrorError::io("open", above.to_owned(), cause)),
        }
    }
    let mut at = resolved.ok_or_else(|| refused("the file system has no top"))?;
    let mut handle = match fs::open(&at, FOLDER_FLAGS, Mode::empty()) {
        Ok(handle) => handle,
        Err(Errno::NOTDIR) => return Err(MirrorError::InTheWay { path: at, found: "not a folder" }),
        Err(errno) => return Err(MirrorError::io("open", at, errno)),
    };
    for part in missing.into_iter().rev() {
        at.push(part);
        match step(handle.as_fd(), part, &at, true)? {
            Some(next) => handle = next,
            None => return Err(MirrorError::Changing { path: at }),
        }
    }
    Ok(at)
}
