//! What is done after the writes are stored. Its failures are told in the answer and
//! undo nothing.

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::cancel::Cancel;
use crate::contract::model::LoopId;
use crate::contract::tools::{FileRestore, FollowUp};
use crate::logic::{Logic, Session};
use crate::mirror::{self, Item, MirrorError, Placed, Source as _, Synced};
use crate::progress::{Progress, Unit};
use crate::store::Store;

use super::VERSION;
use super::failure::Failure;
use super::source::Rendered;

/// The most characters that one list adds to an answer; what comes after is counted.
const LIST_MAX: usize = 9_000;

/// Does what is left to do, and returns the fields that it adds to the answer.
pub(super) fn run(
    follow_up: &FollowUp,
    store: &mut Store,
    logic: &Logic,
    progress: &Progress,
) -> Result<Map<String, Value>, Failure> {
    let mut fields = Map::new();
    match follow_up {
        FollowUp::MeasureArchive(id) => {
            if let Some(archive) = store.read()?.archive(id)?.map(|detail| detail.head) {
                fields.insert("files".to_owned(), archive.files.into());
                fields.insert("bytes".to_owned(), archive.bytes.into());
                fields.insert("stored_bytes".to_owned(), archive.stored_bytes.into());
            }
        }
        FollowUp::Vacuum => {
            let vacuumed = store.vacuum()?;
            fields.insert("bytes_before".to_owned(), vacuumed.bytes_before.into());
            fields.insert("bytes_after".to_owned(), vacuumed.bytes_after.into());
        }
        FollowUp::Materialize(id) => {
            let placed = Restorer { store, logic, progress }.documents(id)?;
            list(&mut fields, "written", placed.written.into_iter().map(Value::from));
            list(&mut fields, "unchanged", placed.unchanged.into_iter().map(Value::from));
            list(&mut fields, "kept", placed.kept.into_iter().map(because));
            list(&mut fields, "failed", placed.failed.into_iter().map(because));
        }
        FollowUp::RestoreFiles(restore) => {
            let placed = Restorer { store, logic, progress }.files(restore)?;
            let restored = placed.written.into_iter().chain(placed.unchanged);
            list(&mut fields, "restored", restored.map(Value::from));
            list(&mut fields, "kept", placed.kept.into_iter().map(because));
            list(&mut fields, "failed", placed.failed.into_iter().map(because));
        }
    }
    Ok(fields)
}

fn because((path, why): (String, String)) -> Value {
    json!({ "path": path, "why": why })
}

/// Adds a list as far as there is room for it, and how many entries are left out.
fn list(fields: &mut Map<String, Value>, key: &str, entries: impl Iterator<Item = Value>) {
    let mut room = LIST_MAX;
    let mut shown = Vec::new();
    let mut more = 0_u64;
    for entry in entries {
        let takes = entry.to_string().chars().count() + 1;
        if more > 0 || takes > room {
            more += 1;
        } else {
            room -= takes;
            shown.push(entry);
        }
    }
    fields.insert(key.to_owned(), Value::Array(shown));
    if more > 0 {
        fields.insert(format!("more_{key}"), more.into());
    }
}

/// Brings what is stored to a loop's folder.
struct Restorer<'a> {
    store: &'a mut Store,
    logic: &'a Logic,
    progress: &'a Progress,
}

impl Restorer<'_> {
    fn place(&mut self, id: &LoopId) -> Result<Option<(String, String)>, Failure> {
        Ok(self.store.read()?.loop_place(id)?)
    }

    /// The documents of a loop; a file that says something else stays.
    fn documents(&mut self, id: &LoopId) -> Result<Placed, Failure> {
        let Some((root, slug)) = self.place(id)? else { return Ok(Placed::default()) };
        let heads = self.store.read()?.document_heads(id)?;
        let mut stamps = self.logic.session(&Cancel::default())?;
        let mut strips = self.logic.session(&Cancel::default())?;
        let (store, progress) = (&mut *self.store, self.progress);
        progress.begin_of("writing documents", heads.len() as u64, Unit::Of("documents"));
        // One at a time, so that no more than one is held however many there are.
        let items = heads.into_iter().map(|head| {
            let path = head.path;
            let content = stamped(store, &mut stamps, id, &slug, &path).map_err(|error| error.to_string());
            progress.add(1);
            Item { path, content, modified_at: None }
        });
        // A file that differs in its header alone is the same.
        let mut body = |bytes: &[u8]| {
            let text = std::str::from_utf8(bytes).ok()?;
            strips.strip(text).ok().map(|stripped| stripped.body)
        };
        let mut same = |_: &str, new: &[u8], existing: &[u8]| {
            let new = body(new);
            new.is_some() && new == body(existing)
        };
        Ok(mirror::place(Path::new(&root), &slug, items, &mut same)
            .unwrap_or_else(|error| all_failed(&slug, &error)))
    }

    /// Views, documents and the other files of a restored loop.
    fn files(&mut self, restore: &FileRestore) -> Result<Placed, Failure> {
        let id = &restore.loop_id;
        let Some((root, slug)) = self.place(id)? else { return Ok(Placed::default()) };
        if let Err(error) = mirror::create_root(Path::new(&root)) {
            return Ok(all_failed(&root, &error));
        }
        let mut placed = self.documents(id)?;
        let detail = self.store.read()?.archive(&restore.archive_id)?;
        let files = detail.map(|detail| detail.files).unwrap_or_default();
        let (store, progress) = (&mut *self.store, self.progress);
        progress.begin_of("writing files", files.len() as u64, Unit::Of("files"));
        let files = files.into_iter().inspect(|_| progress.add(1));
        let wanted = files.filter(|file| !file.document && !restore.without.contains(&file.path));
        let items = wanted.map(|file| {
            let content = store.read().and_then(|tx| tx.archived_content(&restore.archive_id, &file.path));
            let content = match content {
                Ok(Some(bytes)) => Ok(bytes),
                Ok(None) => Err("it is no longer in the archive".to_owned()),
                Err(error) => Err(error.to_string()),
            };
            Item { path: file.path, content, modified_at: file.modified_at }
        });
        let others = mirror::place(Path::new(&root), &slug, items, &mut |_, _, _| false)
            .unwrap_or_else(|error| all_failed(&slug, &error));
        placed.written.extend(others.written);
        placed.unchanged.extend(others.unchanged);
        placed.kept.extend(others.kept);
        placed.failed.extend(others.failed);
        let mut source = Rendered { store: self.store, logic: self.logic, loop_id: id };
        let views = match source.render_all() {
            Ok(set) => mirror::sync(&set, &mut source).map_err(|error| error.why()),
            Err(cause) => Err(cause.to_string()),
        };
        match views {
            Ok(Synced::Written { files, .. }) => placed.written.extend(files),
            Ok(Synced::Skipped(_)) => {}
            Err(why) => placed.failed.push((slug, why)),
        }
        Ok(placed)
    }
}

/// The file of a document as it should be.
fn stamped(
    store: &mut Store,
    session: &mut Session<'_>,
    id: &LoopId,
    slug: &str,
    path: &str,
) -> Result<Vec<u8>, Failure> {
    let document = store.read()?.document(id, path, None)?;
    let document = document.ok_or_else(|| Failure::Vanished { what: format!("document {path}") })?;
    let text = session.stamp(slug, &document.head, &document.content, VERSION)?;
    Ok(text.into_bytes())
}

/// The folder as a whole could not be written.
fn all_failed(what: &str, error: &MirrorError) -> Placed {
    Placed { failed: vec![(what.to_owned(), error.why())], ..Placed::default() }
}
