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
//!
//! A document does not follow the loop's revision but its own: calls that come later
//! do not carry it. So a call brings its document to the folder also when the loop
//! has moved on, and leaves it alone only when a newer revision of that document is
//! stored; the call that stored it writes it.

mod compare;
mod error;
mod folder;
mod log;
mod look;
pub mod path;
mod place;
mod replacement;
mod tree;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::error::Error;
use std::path::Path;
use std::time::Duration;

pub use compare::{Difference, differences, same_but_version};
pub use error::MirrorError;
pub use folder::LOOPS;
pub use look::{FileRead, ReadFault, TEXT_MAX, files, read_file, text};
pub use place::{Item, Placed, Same, create_root, place};
pub use tree::{ENTRIES_MAX, tree};

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

    /// The number of the newest revision of a document; `None` when the loop has no
    /// such document.
    ///
    /// # Errors
    ///
    /// When the database does not answer.
    fn document_rev(&mut self, path: &str) -> Result<Option<u32>, SourceError>;

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
    /// The folder shows this revision of the loop, or a newer one; where the loop has
    /// moved on, the views are left to the call that changed it and `files` are
    /// documents alone.
    Written {
        /// What was written, relative to the loop's folder, in the order it was
        /// written: logs first, documents last.
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
/// as it is now instead of being skipped. Documents come last, whatever became of
/// the views, each unless a newer revision of it is stored.
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
    let views = match marks.revision.cmp(&set.revision) {
        Ordering::Greater if !whole_folder => Ok(Synced::Skipped(Skip::Newer)),
        Ordering::Equal if kept_fit(set, &folder) => write_views(set, &folder, source),
        // Less: the database was put back to an older copy of itself.
        _ => write_fresh(set, whole_folder, &folder, source),
    };
    match views {
        // The folder is another loop's, or went away.
        Ok(Synced::Skipped(Skip::Gone | Skip::Moved)) | Err(MirrorError::Changing { .. }) => views,
        views => add_documents(views, set, &folder, source),
    }
}

/// Writes the views as they are now, rendered anew.
fn write_fresh(
    set: &views::ViewSet,
    whole_folder: bool,
    folder: &LockedFolder,
    source: &mut dyn Source,
) -> Result<Synced, MirrorError> {
    let fresh = source.render_all();
    let mut fresh = fresh.map_err(|cause| MirrorError::Source { slug: set.slug.clone(), cause })?;
    if (&fresh.loop_id, &fresh.slug, &fresh.project_root) != (&set.loop_id, &set.slug, &set.project_root) {
        return Ok(Synced::Skipped(Skip::Moved));
    }
    check_paths(&fresh)?;
    for view in &mut fresh.views {
        match &mut view.content {
            views::Content::Whole(_) | views::Content::Document(_) => {}
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
    write_views(&fresh, folder, source)
}

/// Whether the views that the call does not touch have the length they should.
fn kept_fit(set: &views::ViewSet, folder: &LockedFolder) -> bool {
    set.views.iter().all(|view| match view.content {
        // What keeps a view from being looked at is reported when it is written.
        views::Content::Kept(bytes) => {
            matches!(folder.length(&view.path), Ok(Some(length)) if length == bytes)
        }
        views::Content::Whole(_) | views::Content::Log(_) | views::Content::Document(_) => true,
    })
}

fn write_views(
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
        views::Content::Whole(text) => write_whole(&view.path, text, folder),
        views::Content::Log(log) => log::write(folder, slug, &view.path, log, source),
        // Kept was looked at before anything was written; documents come later.
        views::Content::Kept(_) | views::Content::Document(_) => Ok(Outcome::UpToDate),
    }
}

fn write_whole(path: &str, text: &str, folder: &LockedFolder) -> Result<Outcome, MirrorError> {
    let mut replacement = folder.replace(path)?;
    replacement.write(text)?;
    replacement.commit()?;
    Ok(Outcome::Written)
}

/// Writes the documents of a set and adds them to what became of its views.
fn add_documents(
    views: Result<Synced, MirrorError>,
    set: &views::ViewSet,
    folder: &LockedFolder,
    source: &mut dyn Source,
) -> Result<Synced, MirrorError> {
    let mut written = Vec::new();
    let mut failure = None;
    for view in &set.views {
        let views::Content::Document(document) = &view.content else { continue };
        match write_document(&view.path, document, &set.slug, folder, source) {
            Ok(Outcome::Written) => written.push(view.path.clone()),
            Ok(Outcome::UpToDate | Outcome::Left) => {}
            Err(changing @ MirrorError::Changing { .. }) => return Err(changing),
            Err(error) => failure = failure.or(Some(error)),
        }
    }
    match (views?, failure) {
        (_, Some(error)) => Err(error),
        (Synced::Written { mut files, left }, None) => {
            files.append(&mut written);
            Ok(Synced::Written { files, left })
        }
        (skipped, None) if written.is_empty() => Ok(skipped),
        (Synced::Skipped(_), None) => Ok(Synced::Written { files: written, left: Vec::new() }),
    }
}

fn write_document(
    path: &str,
    document: &views::DocumentView,
    slug: &str,
    folder: &LockedFolder,
    source: &mut dyn Source,
) -> Result<Outcome, MirrorError> {
    let newest = source.document_rev(path);
    let newest = newest.map_err(|cause| MirrorError::Source { slug: slug.to_owned(), cause })?;
    // An older one, or none: the database was put back to an older copy of itself,
    // and the file may be all that is left of the text.
    if newest.is_some_and(|newest| newest > document.rev) {
        return Ok(Outcome::UpToDate);
    }
    write_whole(path, &document.text, folder)
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
