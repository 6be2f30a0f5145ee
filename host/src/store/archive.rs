//! Ended loops that left the live tables: kept whole, looked at, brought back.
//!
//! An archive is a header, one snapshot of the loop's rows, and its files. Nothing
//! leaves the live tables before all of that was read back and found the same, and
//! nothing comes back before the whole archive was; both happen inside the caller's
//! transaction. A list of archives touches headers alone.

use std::collections::{BTreeMap, HashMap};

use rusqlite::{Connection, Row, params};
use serde_json::{Value as Json, json};
use thiserror::Error;

use super::apply::constraint;
use super::blob::{self, BlobFault, CONTENT_MAX, FILE_MAX, Packed, unpack_up_to};
use super::error::{Failure, StoreError};
use super::load::{all, count, first};
use super::schema::{self, Table};
use super::snapshot::{self, Snapshot};
use crate::contract::{model, tools};
use crate::relative::{self, KEPT_PARTS_MAX, PathFault};

/// Files that were read for an archive, by loop and path.
pub type Held = HashMap<(model::LoopId, String), HeldFile>;

/// A file as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldFile {
    /// Its content.
    pub packed: Packed,
    /// When it was changed last, in milliseconds since the Unix epoch.
    pub modified_at: Option<i64>,
}

/// Why a name cannot be that of a file in an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum NameFault {
    /// It is no relative path.
    #[error(transparent)]
    Path(#[from] PathFault),
    /// Another file of the archive has it, in upper or lower case.
    #[error("another file has the same name, upper and lower case aside")]
    Twice,
}

/// Checks all names of an archive; the first fault with its name.
fn check_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), (String, NameFault)> {
    let mut seen = std::collections::HashSet::new();
    for name in names {
        relative::check(name, KEPT_PARTS_MAX).map_err(|fault| (name.to_owned(), fault.into()))?;
        if !seen.insert(name.to_lowercase()) {
            return Err((name.to_owned(), NameFault::Twice));
        }
    }
    Ok(())
}

/// The columns of a header, in the order that [`head`] reads.
const HEAD: &str = "id, loop_id, slug, title, goal, status, project_id, project_root, archived_at, \
                    files, bytes, stored_bytes, skipped";

fn head(row: &Row<'_>) -> Result<model::ArchiveHead, Failure> {
    let id: String = row.get(0)?;
    let skipped = read_skipped(&row.get::<_, String>(12)?);
    let skipped = skipped.ok_or_else(|| damaged(&id, "its list of skipped files cannot be read"))?;
    Ok(model::ArchiveHead {
        id,
        loop_id: row.get(1)?,
        slug: row.get(2)?,
        title: row.get(3)?,
        goal: row.get(4)?,
        status: row.get(5)?,
        project_id: row.get(6)?,
        project_root: row.get(7)?,
        archived_at: row.get(8)?,
        files: row.get(9)?,
        bytes: count(row, 10)?,
        stored_bytes: count(row, 11)?,
        skipped,
    })
}

fn write_skipped(skipped: &[model::SkippedFile]) -> String {
    let list = skipped.iter().map(|file| json!({ "path": file.path, "reason": file.reason }));
    Json::Array(list.collect()).to_string()
}

fn read_skipped(json: &str) -> Option<Vec<model::SkippedFile>> {
    let list: Vec<Json> = serde_json::from_str(json).ok()?;
    let read = |file: &Json| {
        let text = |key| Some(file.get(key)?.as_str()?.to_owned());
        Some(model::SkippedFile { path: text("path")?, reason: text("reason")? })
    };
    list.iter().map(read).collect()
}

fn damaged(id: &str, detail: impl Into<String>) -> Failure {
    StoreError::DamagedArchive { id: id.to_owned(), detail: detail.into() }.into()
}

/// A value that cannot be is the archive's fault and not the database's.
fn of_archive(id: &str) -> impl Fn(Failure) -> Failure {
    move |failure| match failure {
        Failure::Value(detail) => damaged(id, detail),
        other => other,
    }
}

/// Headers, newest first; no content is touched.
pub(super) fn list(db: &Connection, filter: &tools::ArchiveFilter) -> Result<tools::ArchivePage, Failure> {
    let wanted = filter.search.as_ref().map(|text| text.to_lowercase());
    let sql = "SELECT archive_key, slug, title, goal FROM loop_archive \
               WHERE ?1 IS NULL OR project_root = ?1 ORDER BY archived_at DESC, archive_key DESC";
    // Searched here: the database folds the case of ASCII letters alone.
    let found = all(db, sql, [&filter.project_root], |row| {
        let texts: [String; 3] = [row.get(1)?, row.get(2)?, row.get(3)?];
        let fits = wanted.as_ref().is_none_or(|w| texts.iter().any(|text| text.to_lowercase().contains(w)));
        Ok(fits.then_some(row.get::<_, i64>(0)?))
    })?;
    let keys: Vec<i64> = found.into_iter().flatten().collect();
    let from = usize::try_from(filter.offset).unwrap_or(usize::MAX);
    let limit = usize::try_from(filter.limit).unwrap_or(usize::MAX);
    let sql = format!("SELECT {HEAD} FROM loop_archive WHERE archive_key = ?1");
    let mut archives = Vec::new();
    for key in keys.iter().skip(from).take(limit) {
        archives.extend(first(db, &sql, [key], head)?);
    }
    Ok(tools::ArchivePage { archives, total: u32::try_from(keys.len()).unwrap_or(u32::MAX) })
}

/// The header and the files of one archive, without their contents.
pub(super) fn detail(db: &Connection, id: &str) -> Result<Option<tools::ArchiveDetail>, Failure> {
    let sql = format!("SELECT {HEAD} FROM loop_archive WHERE id = ?1");
    let Some(head) = first(db, &sql, [id], head)? else { return Ok(None) };
    let sql = "SELECT path, document, file.bytes, file.stored_bytes, sha256, mtime \
               FROM loop_archive JOIN loop_archive_file AS file USING (archive_key) \
               WHERE id = ?1 ORDER BY path";
    let files = all(db, sql, [id], |row| {
        Ok(model::ArchivedFile {
            path: row.get(0)?,
            document: row.get(1)?,
            bytes: count(row, 2)?,
            stored_bytes: count(row, 3)?,
            sha256: row.get(4)?,
            modified_at: row.get(5)?,
        })
    })?;
    Ok(Some(tools::ArchiveDetail { head, files }))
}

/// The content of one file, whatever the state of the rest.
pub(super) fn content(db: &Connection, id: &str, path: &str) -> Result<Option<Vec<u8>>, Failure> {
    let sql = "SELECT file.bytes, sha256, content \
               FROM loop_archive JOIN loop_archive_file AS file USING (archive_key) \
               WHERE id = ?1 AND path = ?2";
    let found = first(db, sql, [id, path], |row| {
        let (bytes, sha256, gzip): (u64, String, Vec<u8>) = (count(row, 0)?, row.get(1)?, row.get(2)?);
        Ok(unpack_up_to(FILE_MAX, &gzip, bytes, &sha256))
    })?;
    let named =
        |fault| StoreError::DamagedContent { what: format!("the file {path:?} of the archive {id}"), fault };
    Ok(found.transpose().map_err(named)?)
}

/// An archive whose own parts were compared with each other.
struct Opened {
    key: i64,
    head: model::ArchiveHead,
    snapshot_stored: u64,
    snapshot: Snapshot,
    tables: Vec<Table>,
}

/// Reads header and snapshot; the files are looked at by [`check_files`].
fn open(db: &Connection, id: &str) -> Result<Option<Opened>, Failure> {
    let sql = format!(
        "SELECT {HEAD}, archive_key, snapshot_bytes, snapshot_sha256, snapshot FROM loop_archive WHERE id = ?1"
    );
    let found = first(db, &sql, [id], |row| {
        let gzip: Vec<u8> = row.get(16)?;
        let stored = u64::try_from(gzip.len()).unwrap_or(u64::MAX);
        let json = unpack_up_to(CONTENT_MAX, &gzip, count(row, 14)?, &row.get::<_, String>(15)?);
        Ok((head(row)?, row.get(13)?, stored, json))
    });
    let Some((head, key, snapshot_stored, json)) = found.map_err(of_archive(id))? else { return Ok(None) };
    let json = json.map_err(|fault| damaged(id, format!("its snapshot: {fault}")))?;
    let tables = schema::tables(db)?;
    let snapshot = Snapshot::from_json(&json, &tables).map_err(|detail| damaged(id, detail))?;
    if snapshot.id() != Ok(&head.loop_id) {
        return Err(damaged(id, "its rows are those of another loop"));
    }
    Ok(Some(Opened { key, head, snapshot_stored, snapshot, tables }))
}

/// The loop that an archive holds, in the project that the archive now belongs to.
pub(super) fn the_loop(db: &Connection, id: &str) -> Result<Option<tools::ArchivedLoop>, Failure> {
    let Some(opened) = open(db, id)? else { return Ok(None) };
    let loop_ = opened.snapshot.the_loop(db, &opened.tables).map_err(of_archive(id))?;
    let live = first(db, "SELECT 1 FROM loop WHERE id = ?1", [&loop_.id], |_| Ok(()))?.is_some();
    let documents_differ = opened.snapshot.documents_differ(db).map_err(of_archive(id))?;
    // Archives move with their project; what they hold does not.
    let loop_ = model::Loop { project_id: opened.head.project_id, ..loop_ };
    Ok(Some(tools::ArchivedLoop { loop_, live, documents_differ }))
}

/// One file's row as it is, its content left where it lies.
struct FileRow {
    key: i64,
    path: String,
    document: bool,
    bytes: u64,
    stored_bytes: u64,
    sha256: String,
}

/// Compares the files with their lengths and digests, the header and the snapshot.
fn check_files(db: &Connection, opened: &Opened) -> Result<(), Failure> {
    let Opened { key, head, snapshot_stored, snapshot, .. } = opened;
    let id = &head.id;
    let sql = "SELECT archive_file_key, path, document, bytes, stored_bytes, sha256 \
               FROM loop_archive_file WHERE archive_key = ?1 ORDER BY path";
    let files = all(db, sql, [key], |row| {
        let (bytes, stored_bytes) = (count(row, 3)?, count(row, 4)?);
        let sha256 = row.get(5)?;
        Ok(FileRow {
            key: row.get(0)?,
            path: row.get(1)?,
            document: row.get(2)?,
            bytes,
            stored_bytes,
            sha256,
        })
    })
    .map_err(of_archive(id))?;
    check_names(files.iter().map(|file| file.path.as_str()))
        .map_err(|(name, fault)| damaged(id, format!("its file {name:?}: {fault}")))?;

    let mut heads: BTreeMap<&str, snapshot::Revision<'_>> = BTreeMap::new();
    for revision in snapshot.revisions().map_err(|detail| damaged(id, detail))? {
        let newest = heads.entry(revision.path).or_insert(revision);
        if newest.revision < revision.revision {
            *newest = revision;
        }
    }
    let (mut bytes, mut stored_bytes) = (0_u64, *snapshot_stored);
    for file in &files {
        let fault = |fault: BlobFault| damaged(id, format!("its file {:?}: {fault}", file.path));
        let sql = "SELECT content FROM loop_archive_file WHERE archive_file_key = ?1";
        let gzip: Vec<u8> = first(db, sql, [file.key], |row| Ok(row.get(0)?))?.unwrap_or_default();
        if u64::try_from(gzip.len()) != Ok(file.stored_bytes) {
            return Err(damaged(id, format!("its file {:?} takes other than the recorded space", file.path)));
        }
        unpack_up_to(FILE_MAX, &gzip, file.bytes, &file.sha256).map_err(fault)?;
        bytes = bytes.saturating_add(file.bytes);
        stored_bytes = stored_bytes.saturating_add(file.stored_bytes);
        let newest = if file.document { heads.remove(file.path.as_str()) } else { None };
        if file.document && newest.is_none_or(|r| r.bytes != file.bytes || r.sha256 != file.sha256) {
            return Err(damaged(id, format!("its document {:?} is not the newest revision", file.path)));
        }
    }
    if let Some(path) = heads.keys().next() {
        return Err(damaged(id, format!("its document {path:?} is missing among the files")));
    }
    let recorded = (u64::from(head.files), head.bytes, head.stored_bytes);
    if recorded != (u64::try_from(files.len()).unwrap_or(u64::MAX), bytes, stored_bytes) {
        return Err(damaged(id, "its files are not as many or as large as its header says"));
    }
    Ok(())
}

/// Opens an archive and compares all there is to compare.
fn verified(db: &Connection, id: &str) -> Result<Opened, Failure> {
    let opened = open(db, id)?.ok_or_else(|| StoreError::UnknownArchive { id: id.to_owned() })?;
    opened.snapshot.check_revisions().map_err(|detail| damaged(id, detail))?;
    check_files(db, &opened)?;
    Ok(opened)
}

/// Compares all parts of an archive with each other.
pub(super) fn check(db: &Connection, id: &str) -> Result<(), Failure> {
    verified(db, id).map(|_| ())
}

/// Keeps a loop as an archive and deletes it.
pub(super) fn keep(db: &Connection, archiving: &tools::Archiving, held: &Held) -> Result<(), Failure> {
    let tools::Archiving { id, loop_id, .. } = archiving;
    let taken = snapshot::take(db, loop_id)?;
    taken.check_revisions().map_err(|detail| Failure::Value(format!("loop {loop_id}: {detail}")))?;
    insert(db, archiving, &taken, held)?;

    // What was written is compared with what is still there, not with what was meant.
    let back = verified(db, id)?;
    if back.snapshot != snapshot::take(db, loop_id)? {
        return Err(damaged(id, "its rows are not those of the loop"));
    }
    db.prepare_cached("DELETE FROM loop WHERE id = ?1")?.execute([loop_id])?;
    db.prepare_cached("DELETE FROM loop_document WHERE loop_id = ?1")?.execute([loop_id])?;
    Ok(())
}

fn insert(
    db: &Connection,
    archiving: &tools::Archiving,
    taken: &Snapshot,
    held: &Held,
) -> Result<(), Failure> {
    let tools::Archiving { id, loop_id, at, files, skipped } = archiving;
    let Packed { bytes, sha256, gzip } = blob::pack(&taken.to_json()?);
    if bytes > CONTENT_MAX {
        return Err(StoreError::TooLarge { column: "loop_archive.snapshot".to_owned(), value: bytes }.into());
    }
    let stored = i64::try_from(gzip.len()).unwrap_or(i64::MAX);
    db.prepare_cached(
        "INSERT INTO loop_archive (id, loop_id, slug, title, goal, status, project_id, project_root, logic, \
         archived_at, files, bytes, stored_bytes, skipped, snapshot_bytes, snapshot_sha256, snapshot) \
         SELECT ?1, id, slug, title, goal, status, project_id, project_root, logic, ?3, 0, 0, ?4, ?5, ?6, ?7, ?8 \
         FROM loop WHERE id = ?2",
    )?
    .execute(params![id, loop_id, at, stored, write_skipped(skipped), number(bytes)?, sha256, gzip])
    .map_err(|error| instead(error.into(), StoreError::ArchiveExists { id: id.clone() }))?;
    let key = db.last_insert_rowid();

    // A document's content is stored as it should be kept: it is copied as it is.
    db.prepare_cached(
        "INSERT INTO loop_archive_file \
         (archive_key, path, document, mtime, bytes, stored_bytes, sha256, content) \
         SELECT ?1, path, 1, at, bytes, length(content), sha256, content FROM loop_document AS head \
         WHERE loop_id = ?2 AND revision = \
         (SELECT max(revision) FROM loop_document WHERE loop_id = head.loop_id AND path = head.path)",
    )?
    .execute(params![key, loop_id])?;
    for (path, name) in files {
        let file = held
            .get(&(loop_id.clone(), path.clone()))
            .ok_or_else(|| StoreError::NotHeld { id: loop_id.clone(), path: path.clone() })?;
        let Packed { bytes, sha256, gzip } = &file.packed;
        let stored = i64::try_from(gzip.len()).unwrap_or(i64::MAX);
        db.prepare_cached(
            "INSERT INTO loop_archive_file \
             (archive_key, path, document, mtime, bytes, stored_bytes, sha256, content) \
             VALUES (?1, ?2, 0, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![key, name, file.modified_at, number(*bytes)?, stored, sha256, gzip])
        .map_err(|error| {
            instead(error.into(), StoreError::EntryName { name: name.clone(), fault: NameFault::Twice })
        })?;
    }
    let names = all(db, "SELECT path FROM loop_archive_file WHERE archive_key = ?1", [key], |row| {
        Ok(row.get::<_, String>(0)?)
    })?;
    // An archive that could not be restored is not made.
    check_names(names.iter().map(String::as_str))
        .map_err(|(name, fault)| StoreError::EntryName { name, fault })?;
    db.prepare_cached(
        "UPDATE loop_archive SET (files, bytes, stored_bytes) = \
         (SELECT count(*), coalesce(sum(bytes), 0), loop_archive.stored_bytes + coalesce(sum(stored_bytes), 0) \
          FROM loop_archive_file WHERE archive_key = ?1) WHERE archive_key = ?1",
    )?
    .execute([key])?;
    Ok(())
}

/// Tells of a value that has to be the only one by what it means.
fn instead(error: Failure, taken: StoreError) -> Failure {
    match constraint(&error) {
        Some(rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE) => taken.into(),
        _ => error,
    }
}

fn number(value: u64) -> Result<i64, Failure> {
    i64::try_from(value)
        .map_err(|_| StoreError::TooLarge { column: "loop_archive.bytes".to_owned(), value }.into())
}

/// Makes a loop of an archive again; the archive stays.
pub(super) fn restore(db: &Connection, restoring: &tools::Restoring) -> Result<(), Failure> {
    let id = &restoring.archive_id;
    let opened = verified(db, id)?;
    opened.snapshot.insert(db, &restoring.loop_).map_err(of_archive(id))
}

pub(super) fn delete(db: &Connection, id: &str) -> Result<(), Failure> {
    match db.prepare_cached("DELETE FROM loop_archive WHERE id = ?1")?.execute([id])? {
        0 => Err(StoreError::UnknownArchive { id: id.to_owned() }.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let climbing = check_names(["a", "../b"]);
        assert_eq!(climbing, Err(("../b".to_owned(), PathFault::DotPart.into())));
        assert_eq!(check_names(["a", "b/a", "A"]), Err(("A".to_owned(), NameFault::Twice)));
        assert_eq!(check_names(["É.md", "é.md"]), Err(("é.md".to_owned(), NameFault::Twice)));
        assert_eq!(check_names(["a", "b/a", "b/B"]), Ok(()));
    }
}
