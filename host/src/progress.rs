//! How far long work has come, told by the one that does it to one that may look.
//!
//! The work counts; whether and how it is shown is the looker's business. Where nobody
//! looks, counting costs nothing.

use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the numbers of some work are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Bytes,
    /// Things of this name.
    Of(&'static str),
}

/// Where to tell how far work has come.
#[derive(Clone, Debug, Default)]
pub struct Progress(Option<Arc<State>>);

#[derive(Debug, Default)]
struct State {
    stage: Mutex<Option<Stage>>,
    done: AtomicU64,
}

#[derive(Clone, Debug)]
struct Stage {
    what: &'static str,
    /// How much there is to do, where that is known.
    of: Option<(u64, Unit)>,
    /// The file that grows by the work.
    file: Option<PathBuf>,
}

/// How far some work has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// What is being done.
    pub what: &'static str,
    /// How much of how much, where that is known.
    pub done: Option<(u64, u64, Unit)>,
}

impl Progress {
    /// One that somebody looks at.
    pub fn watched() -> Progress {
        Progress(Some(Arc::default()))
    }

    fn stage(&self, stage: Stage) {
        if let Some(state) = &self.0 {
            state.done.store(0, Ordering::Relaxed);
            *state.stage.lock().unwrap_or_else(PoisonError::into_inner) = Some(stage);
        }
    }

    /// Begins something of which nobody can tell how long it takes.
    pub fn begin(&self, what: &'static str) {
        self.stage(Stage { what, of: None, file: None });
    }

    /// Begins something that is done when `total` has been counted.
    pub fn begin_of(&self, what: &'static str, total: u64, unit: Unit) {
        // Of one thing there is no half.
        let of = (total > 1).then_some((total, unit));
        self.stage(Stage { what, of, file: None });
    }

    /// Begins something that is done when `file` has about `total` bytes.
    pub fn begin_file(&self, what: &'static str, file: PathBuf, total: u64) {
        self.stage(Stage { what, of: Some((total, Unit::Bytes)), file: Some(file) });
    }

    /// Counts what was done.
    pub fn add(&self, count: u64) {
        if let Some(state) = &self.0 {
            state.done.fetch_add(count, Ordering::Relaxed);
        }
    }

    /// How far it has come; `None` before anything began, or where nobody looks.
    pub fn look(&self) -> Option<Standing> {
        let state = self.0.as_ref()?;
        let stage = state.stage.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let counted = match &stage.file {
            None => state.done.load(Ordering::Relaxed),
            Some(file) => fs::metadata(file).map_or(0, |metadata| metadata.len()),
        };
        let done = stage.of.map(|(total, unit)| (counted.min(total), total, unit));
        Some(Standing { what: stage.what, done })
    }
}

/// A reader or writer that counts the bytes that pass.
#[derive(Debug)]
pub struct Counted<'a, T> {
    /// Where they come from or go to.
    pub inner: T,
    /// Where they are counted.
    pub progress: &'a Progress,
}

impl<T: std::io::Read> std::io::Read for Counted<'_, T> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.progress.add(read as u64);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_where_somebody_looks() {
        let silent = Progress::default();
        silent.begin("nothing");
        silent.add(1);
        assert_eq!(silent.look(), None);

        let watched = Progress::watched();
        assert_eq!(watched.look(), None);
        watched.begin_of("writing files", 3, Unit::Of("files"));
        watched.add(2);
        let done = Some((2, 3, Unit::Of("files")));
        assert_eq!(watched.clone().look(), Some(Standing { what: "writing files", done }));
        watched.add(9);
        assert_eq!(watched.look().and_then(|standing| standing.done), Some((3, 3, Unit::Of("files"))));
        watched.begin("checking");
        assert_eq!(watched.look(), Some(Standing { what: "checking", done: None }));

        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("growing");
        watched.begin_file("copying", file.clone(), 10);
        assert_eq!(watched.look().and_then(|standing| standing.done), Some((0, 10, Unit::Bytes)));
        fs::write(file, "1234").expect("a file");
        assert_eq!(watched.look().and_then(|standing| standing.done), Some((4, 10, Unit::Bytes)));
    }
}
