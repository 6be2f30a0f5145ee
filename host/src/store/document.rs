//! Revisions of documents: they are added, read, and never changed.

use rusqlite::{Connection, Row, params};

use super::apply::constraint;
use super::blob::{self, BlobFault, FILE_MAX, Packed, unpack_up_to};
use super::error::{Failure, StoreError};
use super::load::{all, count, first};
use crate::contract::model;

/// The columns of a head, in the order that [`head`] reads; of the table as `own`.
const HEAD: &str = "own.path, own.revision, own.bytes, own.sha256, own.at, \
                    (SELECT at FROM loop_document AS oldest WHERE oldest.loop_id = own.loop_id \
                     AND oldest.path = own.path ORDER BY revision LIMIT 1)";

/// The number of the newest revision of the document at hand.
const NEWEST: &str = "(SELECT max(revision) FROM loop_document AS newest \
                       WHERE newest.loop_id = own.loop_id AND newest.path = own.path)";

fn head(row: &Row<'_>) -> Result<model::DocumentHead, Failure> {
    Ok(model::DocumentHead {
        path: row.get(0)?,
        rev: row.get(1)?,
        bytes: count(row, 2)?,
        sha256: row.get(3)?,
        updated_at: row.get(4)?,
        created_at: row.get(5)?,
    })
}

/// The documents of a loop id at their newest revisions, by path; the loop may be gone.
pub(super) fn heads(db: &Connection, id: &str) -> Result<Vec<model::DocumentHead>, Failure> {
    let sql = format!(
        "SELECT {HEAD} FROM loop_document AS own WHERE loop_id = ?1 AND revision = {NEWEST} \
         ORDER BY path COLLATE BINARY"
    );
    all(db, &sql, [id], head)
}

/// One revision, or the newest one, with its content.
pub(super) fn read(
    db: &Connection,
    id: &str,
    path: &str,
    rev: Option<u32>,
) -> Result<Option<model::Document>, Failure> {
    // The second comparison: to the index, names that only case tells apart are the same.
    let sql = format!(
        "SELECT {HEAD}, content FROM loop_document AS own \
         WHERE loop_id = ?1 AND path = ?2 AND path = ?2 COLLATE BINARY \
         AND revision = coalesce(?3, {NEWEST})"
    );
    let found = first(db, &sql, params![id, path, rev], |row| Ok((head(row)?, row.get::<_, Vec<u8>>(6)?)))?;
    let Some((head, gzip)) = found else { return Ok(None) };
    let content = unpack_up_to(FILE_MAX, &gzip, head.bytes, &head.sha256)
        .and_then(|content| String::from_utf8(content).map_err(|_| BlobFault::NotText))
        .map_err(|fault| StoreError::DamagedContent {
            what: format!("revision {} of the document {path:?} of loop {id}", head.rev),
            fault,
        })?;
    Ok(Some(model::Document { head, content }))
}

/// Names every revision that is not what its row says.
pub(super) fn faults(db: &Connection) -> Result<Vec<String>, Failure> {
    let sql = "SELECT loop_id, path, revision, bytes, sha256, content FROM loop_document \
               ORDER BY document_key";
    let found = all(db, sql, [], |row| {
        let (id, path, revision): (String, String, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        let (sha256, gzip): (String, Vec<u8>) = (row.get(4)?, row.get(5)?);
        let bytes = u64::try_from(row.get::<_, i64>(3)?).unwrap_or(u64::MAX);
        let fault = unpack_up_to(FILE_MAX, &gzip, bytes, &sha256).err();
        Ok(fault.map(|fault| format!("revision {revision} of the document {path:?} of loop {id}: {fault}")))
    })?;
    Ok(found.into_iter().flatten().collect())
}

/// Adds a revision; when the first one was made, the rows already say.
pub(super) fn put(db: &Connection, id: &str, document: &model::Document) -> Result<(), Failure> {
    let model::DocumentHead { path, rev, bytes, sha256, updated_at, .. } = &document.head;
    let packed = blob::pack(document.content.as_bytes());
    if (packed.bytes, &packed.sha256) != (*bytes, sha256) {
        return Err(StoreError::HeadDiffers { path: path.clone() }.into());
    }
    if packed.bytes > FILE_MAX {
        let column = "loop_document.content".to_owned();
        return Err(StoreError::TooLarge { column, value: packed.bytes }.into());
    }
    let sql = "SELECT path FROM loop_document WHERE loop_id = ?1 AND path = ?2 LIMIT 1";
    if let Some(existing) = first(db, sql, [id, path], |row| Ok(row.get::<_, String>(0)?))?
        && existing != *path
    {
        return Err(StoreError::DocumentCase { id: id.to_owned(), path: path.clone(), existing }.into());
    }
    let Packed { gzip, .. } = packed;
    // Checked above: not more than FILE_MAX.
    let bytes = i64::try_from(*bytes).unwrap_or(i64::MAX);
    let added = db
        .prepare_cached(
            "INSERT INTO loop_document (loop_id, path, revision, at, bytes, sha256, content) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![id, path, rev, updated_at, bytes, sha256, gzip]);
    added.map_err(Failure::from).map_err(|error| match constraint(&error) {
        Some(rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE) => {
            StoreError::RevisionTaken { id: id.to_owned(), path: path.clone(), revision: *rev }.into()
        }
        _ => error,
    })?;
    Ok(())
}

/// Documents that outlived their loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptDocuments {
    /// The id that the loop had.
    pub loop_id: model::LoopId,
    /// How many documents there are.
    pub documents: u32,
    /// How many revisions they have together.
    pub revisions: u32,
    /// The length of all revisions.
    pub bytes: u64,
    /// When the newest revision was written.
    pub updated_at: i64,
}

/// The documents whose loop is gone, the newest first.
pub(super) fn kept(db: &Connection) -> Result<Vec<KeptDocuments>, Failure> {
    let sql = "SELECT loop_id, count(DISTINCT path), count(*), sum(bytes), max(at) AS newest \
               FROM loop_document WHERE loop_id NOT IN (SELECT id FROM loop) \
               GROUP BY loop_id ORDER BY newest DESC, loop_id";
    all(db, sql, [], |row| {
        Ok(KeptDocuments {
            loop_id: row.get(0)?,
            documents: row.get(1)?,
            revisions: row.get(2)?,
            bytes: count(row, 3)?,
            updated_at: row.get(4)?,
        })
    })
}
