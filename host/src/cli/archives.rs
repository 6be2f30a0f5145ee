//! Archives: made, listed, looked into, brought back, deleted.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::service::Service;

use super::answer::Answer;
use super::page::{Column, Page, Table, cell, size};
use super::tools::{arguments, ask, ask_for_list, ask_for_text, entries, with_notes};

/// Moves an ended loop into cold storage.
pub fn archive(service: &Service, slug: &str) -> Result<Answer, String> {
    let answer = ask(service, "loop_archive", arguments(json!({ "loopSlug": slug })))?;
    let page = Page::of(format!(
        "Archived loop {} as {}: {} files of {}, {} as they are kept.",
        cell(&answer["slug"]),
        cell(&answer["archiveId"]),
        cell(&answer["files"]),
        size(&answer["bytes"]),
        size(&answer["stored_bytes"])
    ));
    let page = with_notes(reasons(page, "Left out:", &answer, "skipped", "reason"), &answer);
    Ok(Answer::page(answer, page))
}

/// Adds a list of paths and why each is in it.
fn reasons(page: Page, title: &str, answer: &Value, key: &str, why: &str) -> Page {
    let rows: Vec<_> = entries(answer, key).map(|row| (cell(&row["path"]), cell(&row[why]))).collect();
    if rows.is_empty() {
        return page;
    }
    let more = answer[format!("more_{key}")].as_u64();
    let page = page.line("").line(title).fields(rows);
    match more {
        Some(more) => page.line(format!("… and {more} more")),
        None => page,
    }
}

/// The archives of all projects.
pub fn list(service: &Service, search: Option<String>, root: Option<String>) -> Result<Answer, String> {
    let asked = arguments(json!({ "search": search, "projectRoot": root, "limit": u32::MAX }));
    let answer = ask_for_list(service, "archive_list", asked, "archives")?;
    let mut table = Table::new(&[
        Column::Whole("ARCHIVE"),
        Column::Whole("SLUG"),
        Column::Text("STATUS"),
        Column::Whole("ARCHIVED"),
        Column::Number("FILES"),
        Column::Number("KEPT"),
        Column::Text("TITLE"),
        Column::Text("ROOT"),
    ]);
    for row in entries(&answer, "archives") {
        table.row([
            cell(&row["archiveId"]),
            cell(&row["slug"]),
            cell(&row["status"]),
            cell(&row["archived_at"]),
            cell(&row["files"]),
            size(&row["stored_bytes"]),
            cell(&row["title"]),
            cell(&row["project_root"]),
        ]);
    }
    Ok(Answer::page(answer, Page::default().table(table, "There is no such archive.")))
}

/// One archive: its header and its files.
pub fn show(service: &Service, id: &str) -> Result<Answer, String> {
    let answer = ask_for_list(service, "archive_get", arguments(json!({ "archiveId": id })), "files")?;
    let header = &answer["archive"];
    let fields = header.as_object().into_iter().flatten().filter(|(name, _)| *name != "skipped");
    let fields = fields.map(|(name, value)| {
        let shown = if name.ends_with("bytes") { size(value) } else { cell(value) };
        (name.clone(), shown)
    });
    let mut files = Table::new(&[
        Column::Text("FILE"),
        Column::Number("SIZE"),
        Column::Number("KEPT"),
        Column::Whole("MODIFIED"),
    ]);
    for file in entries(&answer, "files") {
        files.row([
            cell(&file["path"]),
            size(&file["bytes"]),
            size(&file["stored_bytes"]),
            cell(&file["modified_at"]),
        ]);
    }
    let page = Page::default().fields(fields).line("").table(files, "It holds no files.");
    let page = reasons(page, "Left out:", header, "skipped", "reason");
    Ok(Answer::page(answer, page))
}

/// One file of an archive.
pub fn file(service: &Service, id: &str, path: &str) -> Result<Answer, String> {
    let asked = arguments(json!({ "archiveId": id, "path": path }));
    let answer = ask_for_text(service, "archive_readFile", asked)?;
    let content = answer["content"].as_str().unwrap_or_default();
    let bytes = match answer["encoding"].as_str() {
        Some("base64") => {
            STANDARD.decode(content).map_err(|e| format!("archive_readFile answered with no base64: {e}"))?
        }
        _ => content.as_bytes().to_vec(),
    };
    Ok(Answer::bytes(answer, bytes))
}

/// Makes an archive a live loop again.
pub fn restore(
    service: &Service,
    id: &str,
    as_slug: Option<String>,
    to: Option<&Path>,
) -> Result<Answer, String> {
    let target = match to {
        None => None,
        Some(folder) => {
            let absolute = std::path::absolute(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
            let text = absolute.into_os_string().into_string();
            Some(text.map_err(|folder| format!("{} is not UTF-8", folder.display()))?)
        }
    };
    let asked = json!({ "archiveId": id, "asSlug": as_slug, "targetDir": target });
    let answer = ask(service, "archive_restore", arguments(asked))?;
    let restored = entries(&answer, "restored").count() as u64;
    let restored = restored + answer["more_restored"].as_u64().unwrap_or(0);
    let page = Page::of(format!(
        "Restored loop {} in {}, and {restored} files in its folder. The archive stays.",
        cell(&answer["loopSlug"]),
        cell(&answer["project_root"])
    ));
    let page = reasons(page, "Left as they are, because they say something else:", &answer, "kept", "why");
    let page = reasons(page, "Not written:", &answer, "failed", "why");
    let page = with_notes(page, &answer);
    Ok(Answer::page(answer, page))
}

/// Deletes an archive.
pub fn delete(service: &Service, id: &str, confirm: Option<String>) -> Result<Answer, String> {
    let asked = json!({ "archiveId": id, "confirm": confirm.unwrap_or_default() });
    let answer = ask(service, "archive_delete", arguments(asked))?;
    let page = Page::of(format!("Deleted the archive {}.", cell(&answer["deleted"])));
    let page = with_notes(page, &answer);
    Ok(Answer::page(answer, page))
}
