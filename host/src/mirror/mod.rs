//! The mirror: the folder of a loop in its project, with the readable files.
//!
//! Owns the folder `{project_root}/.projects/loops/{slug}/`, which names are safe
//! in it, and how files are written there. Does not know what the views say, nor
//! where the loop is stored: whatever it writes can be written anew from a
//! [`Source`], and nothing in the folder is ever read back as state.
//!
//! # How the folder follows the database
//!
//! A call commits first and then calls [`sync`] with the views of its revision.
//! Under the folder's lock the revision is compared with the stored one. If the
//! database has moved on, the call leaves the folder alone: whoever committed the
//! newer revision comes after it or has been there. So the folder never goes back,
//! and at rest it shows the newest revision, however many processes take part.
//! A process that is killed on the way leaves a folder that the next [`sync`] of
//! the loop sees to be behind: the log by its length and last number, views that
//! a call does not touch by their length, all others because they are written with
//! every call.

mod error;
mod folder;
mod log;
mod look;
pub mod path;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

pub use error::MirrorError;
pub use folder::LOOPS;
pub use look::{TEXT_MAX, files, text};

use crate::contract::{model, views};
use folder::{Folder, LockedFolder};
use log::Outcome;

/// How long a call waits for others that write in the same loop's folder.
const LOCK_PATIENCE: Duration = Duration::from_secs(30);

/// How often a call starts over because the folder was taken away meanwhile.
const ATTEMPTS: usize = 8;

/// What kept a [`Source`] from answering.
pub type SourceError = Box<dyn Error + Send + Sync>;

/// Where the mirror gets what a call itself did not render.
///
/// Each answer is of the database as it is at that moment; all are asked for under
/// the folder's lock, so no transaction that waits for the folder may be open.
pub trait Source {
    /// The loop's marks; `None` when the loop is gone.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    fn marks(&mut self) -> Result<Option<model::Marks>, SourceError>;

    /// The log lines of the events after the event `after`, oldest first, at most a
    /// page of them, and the number of the last one; `None` when there are none.
    ///
    /// # Errors
    ///
    /// When the database or the logic does not answer.
    fn log_lines(&mut self, after: u64) -> Result<Option<(String, u64)>, SourceError>;

    /// Every view, rendered whole.
    ///
    /// # Errors
    ///
    /// When the database or the logic does not answer.
    fn render_all(&mut self) -> Result<views::ViewSet, SourceError>;
}

/// What became of a loop's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Synced {
    /// The folder shows this revision of the loop, or a newer one.
    Written {
        /// The views that were written, relative to the loop's folder, in the order
        /// they were written: logs first.
        files: Vec<String>,
        /// Logs that do not fit and could not be rebuilt, because their events are
        /// no longer stored; not touched.
        left: Vec<String>,
    },
    /// Nothing was touched.
    Skipped(Skip),
}

/// Why a folder was left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Skip {
    /// The loop has changed since; the call that changed it writes its folder.
    Newer,
    /// The loop is no longer stored.
    Gone,
    /// The loop now has another slug or belongs to another root.
    Moved,
}

/// Brings the folder of a loop up to date with the views of a committed call.
///
/// Views that the call does not touch are looked at and, when their length is not
/// the expected one, rendered anew together with all others. A set with a log to
/// rebuild asks for the whole folder: if the loop has changed since, it is rendered
/// as it is now instead of being skipped.
///
/// # Errors
///
/// Every view is attempted; the first failure is returned. The database is never
/// affected, and the next call on the loop tries again.
pub fn sync(set: &views::ViewSet, source: &mut dyn Source) -> Result<Synced, MirrorError> {
    check_paths(set)?;
    let mut attempt = 1;
    loop {
        match sync_once(set, source) {
            Err(MirrorError::Changing { .. }) if attempt < ATTEMPTS => attempt += 1,
            result => return result,
        }
    }
}

fn sync_once(set: &views::ViewSet, source: &mut dyn Source) -> Result<Synced, MirrorError> {
    let failed = |cause| MirrorError::Source { slug: set.slug.clone(), cause };
    let root = Path::new(&set.project_root);
    let folder = match Folder::open(root, &set.slug)? {
        Some(folder) => folder,
        // No folder is made for a loop that was deleted meanwhile.
        None if source.marks().map_err(failed)?.is_none() => {
            return Ok(Synced::Skipped(Skip::Gone));
        }
        None => Folder::create(root, &set.slug)?,
    };
    let folder = folder.lock(LOCK_PATIENCE)?;

    let Some(marks) = source.marks().map_err(failed)? else {
        return Ok(Synced::Skipped(Skip::Gone));
    };
    let whole_folder = set.views.iter().any(|view| is_rebuild(&view.content));
    let fits = match marks.revision.cmp(&set.revision) {
        Ordering::Greater if !whole_folder => return Ok(Synced::Skipped(Skip::Newer)),
        Ordering::Equal => kept_fit(set, &folder),
        // Less: the database was put back to an older copy of itself.
        Ordering::Greater | Ordering::Less => false,
    };
    if fits {
        return write_all(set, &folder, source);
    }
    let mut fresh = source.render_all().map_err(failed)?;
    if (&fresh.loop_id, &fresh.slug, &fresh.project_root) != (&set.loop_id, &set.slug, &set.project_root) {
        return Ok(Synced::Skipped(Skip::Moved));
    }
    check_paths(&fresh)?;
    for view in &mut fresh.views {
        match &mut view.content {
            views::Content::Whole(_) => {}
            // A missing lessons' file is no reason to write a long log anew.
            views::Content::Log(log) => log.rebuild = whole_folder,
            views::Content::Kept(_) => {
                return Err(MirrorError::Contract {
                    slug: set.slug.clone(),
                    path: view.path.clone(),
                    why: "it was to be rendered whole",
                });
            }
        }
    }
    write_all(&fresh, &folder, source)
}

/// Whether the views that the call does not touch have the length they should.
fn kept_fit(set: &views::ViewSet, folder: &LockedFolder) -> bool {
    set.views.iter().all(|view| match view.content {
        // What keeps a view from being looked at is reported when it is written.
        views::Content::Kept(bytes) => {
            matches!(folder.length(&view.path), Ok(Some(length)) if length == bytes)
        }
        views::Content::Whole(_) | views::Content::Log(_) => true,
    })
}

fn write_all(
    set: &views::ViewSet,
    folder: &LockedFolder,
    source: &mut dyn Source,
) -> Result<Synced, MirrorError> {
    let (logs, others): (Vec<_>, Vec<_>) =
        set.views.iter().partition(|view| matches!(view.content, views::Content::Log(_)));
    let mut files = Vec::new();
    let mut left = Vec::new();
    let mut failure = None;
    for view in logs.into_iter().chain(others) {
        match write_view(view, &set.slug, folder, source) {
            Ok(Outcome::Written) => files.push(view.path.clone()),
            Ok(Outcome::UpToDate) => {}
            Ok(Outcome::Left) => left.push(view.path.clone()),
            // The folder went away: all of it is done again in the new one.
            Err(changing @ MirrorError::Changing { .. }) => return Err(changing),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match failure {
        Some(error) => Err(error),
        None => Ok(Synced::Written { files, left }),
    }
}

fn write_view(
    view: &views::View,
    slug: &str,
    folder: &LockedFolder,
    source: &mut dyn Source,
) -> Result<Outcome, MirrorError> {
    match &view.content {
        views::Content::Whole(text) => {
            let mut replacement = folder.replace(&view.path)?;
            replacement.write(text)?;
            replacement.commit()?;
            Ok(Outcome::Written)
        }
        views::Content::Log(log) => log::write(folder, slug, &view.path, log, source),
        // Checked before anything was written.
        views::Content::Kept(_) => Ok(Outcome::UpToDate),
    }
}

fn is_rebuild(content: &views::Content) -> bool {
    matches!(content, views::Content::Log(log) if log.rebuild)
}

fn check_paths(set: &views::ViewSet) -> Result<(), MirrorError> {
    let refused = |path: &str| {
        let path = path.to_owned();
        |fault| MirrorError::Path { path, fault }
    };
    path::check_name(&set.slug).map_err(refused(&set.slug))?;
    for view in &set.views {
        path::check(&view.path).map_err(refused(&view.path))?;
    }
    Ok(())
}
