//! Loops and the whole database as files.

use std::path::Path;

use serde_json::{Map, json};

use crate::service::Service;
use crate::store::Transferred;

use super::answer::Answer;
use super::documents;
use super::page::{Page, size};
use super::tools::{arguments, ask};

fn counts(done: &Transferred) -> Vec<String> {
    let Transferred { projects, loops, archives, others } = *done;
    let counted = [
        (projects, "project", "projects"),
        (loops, "loop", "loops"),
        (archives, "archive", "archives"),
        (others, "other row", "other rows"),
    ];
    let there = counted.into_iter().filter(|(count, ..)| *count > 0);
    there.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many })).collect()
}

/// Writes a loop, or everything, to a file.
pub fn export(service: &Service, of: Option<&str>, file: &Path) -> Result<Answer, String> {
    let id = of.map(|of| documents::loop_id(service, of)).transpose()?;
    let done = service.export(id.as_deref(), file).map_err(|refusal| refusal.to_string())?;
    let page = Page::of(format!("Wrote {} to {}.", said(&done), file.display()));
    Ok(Answer::page(answer(&done, file), page))
}

/// Reads what an export wrote.
pub fn import(service: &Service, file: &Path, as_slug: Option<&str>) -> Result<Answer, String> {
    if let Some(slug) = as_slug {
        check_slug(service, slug)?;
    }
    let done = service.import(file, as_slug).map_err(|refusal| refusal.to_string())?;
    let mut page = Page::of(match as_slug {
        Some(slug) => format!("Read {} from {}, as {slug}.", said(&done), file.display()),
        None => format!("Read {} from {}.", said(&done), file.display()),
    });
    if done.loops > 0 {
        page = page.line(
            "The folder of a loop is written with its next change, or by loop_render and loop_materialize.",
        );
    }
    Ok(Answer::page(answer(&done, file), page))
}

/// What can be a slug is the logic's to say: a tool that takes one refuses any other
/// before it looks for what it is to be the slug of.
fn check_slug(service: &Service, slug: &str) -> Result<(), String> {
    let refusal = |slug: &str| {
        let asked = arguments(json!({ "archiveId": "-", "asSlug": slug }));
        ask(service, "archive_restore", asked).err()
    };
    match refusal(slug) {
        Some(why) if refusal("a").as_ref() != Some(&why) => Err(why),
        _ => Ok(()),
    }
}

fn said(done: &Transferred) -> String {
    let counts = counts(done);
    if counts.is_empty() { "nothing new".to_owned() } else { counts.join(", ") }
}

fn answer(done: &Transferred, file: &Path) -> serde_json::Value {
    json!({
        "file": file.display().to_string(),
        "projects": done.projects,
        "loops": done.loops,
        "archives": done.archives,
        "others": done.others,
    })
}

/// Copies the database.
pub fn backup(service: &Service, file: &Path) -> Result<Answer, String> {
    let bytes = service.backup(file).map_err(|refusal| refusal.to_string())?;
    let answer = json!({ "file": file.display().to_string(), "bytes": bytes });
    let page = Page::of(format!("Copied the database to {} ({}).", file.display(), size(&answer["bytes"])));
    Ok(Answer::page(answer, page))
}

/// Returns freed pages to the file system.
pub fn vacuum(service: &Service) -> Result<Answer, String> {
    let answer = ask(service, "db_vacuum", Map::new())?;
    let page = Page::of(format!(
        "The database took {} and now takes {}.",
        size(&answer["bytes_before"]),
        size(&answer["bytes_after"])
    ));
    Ok(Answer::page(answer, page))
}
