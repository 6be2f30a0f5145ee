//! Single questions that the host itself has, beside those of a logic.

use super::error::StoreError;
use super::load::{self, first};
use super::{Tx, archive, document};
use crate::contract::{model, tools};

impl Tx<'_> {
    /// Returns the project root and the slug of a loop.
    ///
    /// # Errors
    /// A failing database, as with every method here.
    pub fn loop_place(&self, id: &str) -> Result<Option<(String, String)>, StoreError> {
        let sql = "SELECT project_root, slug FROM loop WHERE id = ?1";
        self.at(first(self.db, sql, [id], |row| Ok((row.get(0)?, row.get(1)?))))
    }

    /// Returns the documents of a loop id at their newest revisions, by path; the loop
    /// may be gone.
    ///
    /// # Errors
    /// See [`Tx::loop_place`].
    pub fn document_heads(&self, loop_id: &str) -> Result<Vec<model::DocumentHead>, StoreError> {
        self.at(document::heads(self.db, loop_id))
    }

    /// Returns one revision of a document, or the newest one.
    ///
    /// # Errors
    /// [`StoreError::DamagedContent`].
    pub fn document(
        &self,
        loop_id: &str,
        path: &str,
        rev: Option<u32>,
    ) -> Result<Option<model::Document>, StoreError> {
        self.at(document::read(self.db, loop_id, path, rev))
    }

    /// Returns an archive's header and files.
    ///
    /// # Errors
    /// See [`Tx::loop_place`].
    pub fn archive(&self, id: &str) -> Result<Option<tools::ArchiveDetail>, StoreError> {
        self.at(archive::detail(self.db, id))
    }

    /// Returns the content of one file of an archive.
    ///
    /// # Errors
    /// [`StoreError::DamagedContent`].
    pub fn archived_content(&self, id: &str, path: &str) -> Result<Option<Vec<u8>>, StoreError> {
        self.at(archive::content(self.db, id, path))
    }

    /// Returns the number of a document's newest revision.
    ///
    /// # Errors
    /// See [`Tx::loop_place`].
    pub fn document_rev(&self, loop_id: &str, path: &str) -> Result<Option<u32>, StoreError> {
        let sql = "SELECT max(revision) FROM loop_document WHERE loop_id = ?1 AND path = ?2";
        Ok(self.at(load::first(self.db, sql, [loop_id, path], |row| Ok(row.get(0)?)))?.flatten())
    }
}
