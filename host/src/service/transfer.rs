//! Loops as files: out of the database and into it, and the database as a whole.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use crate::store::{Renamed, Selection, StoreError, Transferred};

use super::Service;
use super::failure::Failure;
use super::people::Refusal;

impl Service {
    /// Writes a loop by its id, or all there is, to the new file `to`.
    ///
    /// The file is for its owner alone and has its name only once it is whole.
    ///
    /// # Errors
    /// A file that exists or cannot be written, and a loop that does not exist.
    pub fn export(&self, id: Option<&str>, to: &Path) -> Result<Transferred, Refusal> {
        let what = match id {
            Some(id) => Selection::Loops(vec![id.to_owned()]),
            None => Selection::All,
        };
        let at = self.seams.now().map_err(Failure::from)?;
        let failed = |cause: io::Error| Refusal::File { action: "write", path: to.to_owned(), cause };
        if fs::symlink_metadata(to).is_ok() {
            return Err(failed(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "something is there already, choose another name",
            )));
        }
        let folder = match to.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder.to_owned(),
            _ => PathBuf::from("."),
        };
        let mut file = tempfile::Builder::new().prefix(".exporting-").tempfile_in(&folder).map_err(failed)?;
        let done = self.on_store(|store| Ok(store.read()?.export(&what, at, file.as_file_mut())?))?;
        file.as_file_mut().flush().and_then(|()| file.as_file().sync_all()).map_err(failed)?;
        file.persist_noclobber(to).map_err(|error| failed(error.error))?;
        File::open(&folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
        Ok(done)
    }

    /// Reads what an export wrote, all of it or nothing. With `as_slug`, the one loop of
    /// the file gets this slug, and another id where its own is taken.
    ///
    /// # Errors
    /// A file that is no export or not whole, and loops, archives or runs that are here
    /// already.
    pub fn import(&self, from: &Path, as_slug: Option<&str>) -> Result<Transferred, Refusal> {
        let failed = |cause: io::Error| Refusal::File { action: "read", path: from.to_owned(), cause };
        let mut file = File::open(from).map_err(failed)?;
        if !file.metadata().map_err(failed)?.is_file() {
            return Err(failed(io::Error::other("it is no regular file")));
        }
        let fresh_id = self.seams.fresh_id(self.seams.now().map_err(Failure::from)?);
        let renamed = as_slug.map(|slug| Renamed { slug, id: &fresh_id });
        let done = self.on_store(|store| Ok(store.import(&mut file, renamed)?));
        done.map_err(|refusal| match refusal {
            Refusal::Failed(Failure::Store(taken @ StoreError::LoopExists { .. })) => Refusal::Taken(taken),
            other => other,
        })
    }

    /// Copies the database, as it is at one moment, to the new file `to`, and returns its
    /// length in bytes.
    ///
    /// # Errors
    /// A file that exists or cannot be written.
    pub fn backup(&self, to: &Path) -> Result<u64, Refusal> {
        self.on_store(|store| Ok(store.backup(to)?))
    }
}
