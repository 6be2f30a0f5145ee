//! Documents: those of a loop, and those that outlived theirs.

use serde_json::{Value, json};
use uuid::Uuid;

use crate::contract::model::DocumentHead;
use crate::service::{Refusal, Service};

use super::answer::Answer;
use super::page::{Column, Page, Table, cell, size};
use super::time::timestamp;
use super::tools::{arguments, ask, ask_for_text};

/// What a loop is named by on the command line.
enum Named {
    /// Its id, as it is stored; the loop may be gone.
    Id(String),
    Slug(String),
}

/// A UUID can be a slug as well; then the id wins, where one is known.
fn named(service: &Service, text: &str) -> Result<Named, String> {
    if let Ok(id) = Uuid::parse_str(text.trim()) {
        let id = id.hyphenated().to_string();
        if service.knows_loop(&id).map_err(|refusal| refusal.to_string())? {
            return Ok(Named::Id(id));
        }
    }
    Ok(Named::Slug(text.to_owned()))
}

/// The id of a loop that is named by it, or by its slug as for the tools.
pub fn loop_id(service: &Service, of: &str) -> Result<String, String> {
    match named(service, of)? {
        Named::Id(id) => Ok(id),
        Named::Slug(slug) => {
            match service.loop_here(&slug) {
                Ok(found) => return Ok(found.loop_.id),
                // Its tool knows of loops in other roots as well, and says what there is.
                Err(Refusal::UnknownSlug { .. })
                    if service.offers("loop_get").map_err(|error| error.to_string())? => {}
                Err(refusal) => return Err(refusal.to_string()),
            }
            let answer = ask(service, "loop_get", arguments(json!({ "loopSlug": slug, "limit": 0 })))?;
            Ok(cell(&answer["loop"]["id"]))
        }
    }
}

/// The documents of a loop, at their newest revisions.
pub fn list(service: &Service, of: &str, deleted: bool) -> Result<Answer, String> {
    let id = match named(service, of)? {
        Named::Slug(slug) if deleted => {
            return Err(format!(
                "no deleted loop with the id {slug} has documents; of deleted loops only the id is kept, and \
                 `documents --deleted` lists those with documents"
            ));
        }
        _ => loop_id(service, of)?,
    };
    let heads = service.documents(&id).map_err(|refusal| refusal.to_string())?;
    let mut table = Table::new(&[
        Column::Text("DOCUMENT"),
        Column::Number("REV"),
        Column::Number("SIZE"),
        Column::Whole("UPDATED"),
    ]);
    let documents: Vec<_> = heads.iter().map(row).collect();
    for document in &documents {
        table.row([
            cell(&document["path"]),
            cell(&document["rev"]),
            size(&document["bytes"]),
            cell(&document["updated_at"]),
        ]);
    }
    let page = Page::default().table(table, "It has no documents.");
    Ok(Answer::page(json!({ "loop_id": id, "documents": documents }), page))
}

fn row(head: &DocumentHead) -> Value {
    json!({
        "path": head.path,
        "rev": head.rev,
        "bytes": head.bytes,
        "sha256": head.sha256,
        "created_at": timestamp(head.created_at),
        "updated_at": timestamp(head.updated_at),
    })
}

/// The deleted loops that left documents.
pub fn list_deleted(service: &Service) -> Result<Answer, String> {
    let kept = service.kept_documents().map_err(|refusal| refusal.to_string())?;
    let mut table = Table::new(&[
        Column::Whole("LOOP"),
        Column::Number("DOCUMENTS"),
        Column::Number("REVISIONS"),
        Column::Number("SIZE"),
        Column::Whole("UPDATED"),
    ]);
    let mut loops = Vec::new();
    for of_loop in kept {
        let row = json!({
            "loop_id": of_loop.loop_id,
            "documents": of_loop.documents,
            "revisions": of_loop.revisions,
            "bytes": of_loop.bytes,
            "updated_at": timestamp(of_loop.updated_at),
        });
        table.row([
            cell(&row["loop_id"]),
            cell(&row["documents"]),
            cell(&row["revisions"]),
            size(&row["bytes"]),
            cell(&row["updated_at"]),
        ]);
        loops.push(row);
    }
    let page = Page::default().table(table, "No deleted loop has left documents.");
    Ok(Answer::page(json!({ "loops": loops }), page))
}

/// One document.
pub fn read(service: &Service, of: &str, path: &str, rev: Option<u32>) -> Result<Answer, String> {
    match named(service, of)? {
        Named::Slug(slug) => {
            let asked = arguments(json!({ "loopSlug": slug, "path": path, "rev": rev }));
            let answer = ask_for_text(service, "loop_readFile", asked)?;
            let content = answer["content"].as_str().unwrap_or_default().as_bytes().to_vec();
            Ok(Answer::bytes(answer, content))
        }
        Named::Id(id) => {
            let document = service.document(&id, path, rev).map_err(|refusal| refusal.to_string())?;
            let mut answer = row(&document.head);
            answer["loop_id"] = id.into();
            answer["content"] = document.content.clone().into();
            Ok(Answer::bytes(answer, document.content.into_bytes()))
        }
    }
}
