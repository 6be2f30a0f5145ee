//! Cold storage: what of an ended loop goes into an archive, and what comes out.

use crate::arguments::{Said, Slug, arguments};
use crate::desk::{Accepted, Desk, Done, Halt};
use crate::document::check_kept;
use crate::model::{ArchiveHead, ArchivedFile, DocumentHead, EntryKind, Loop, SkippedFile, TreeEntry};
use crate::refusal::Refusal;
use crate::render::{self, timestamp};
use crate::reply::Reply;
use crate::tools::{
    ArchiveDetail, ArchiveFilter, Archiving, CapturedFile, FileRestore, FollowUp, Restoring, Write,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// Folders that are never kept: nothing in them is the loop's own work.
const LEFT_OUT: &[&str] = &[".tmp", "node_modules", ".git"];

/// The longest file that is kept, in bytes.
const FILE_MAX: u64 = 5 << 20;

/// The most that all files of an archive may take, in bytes.
const TOTAL_MAX: u64 = 100 << 20;

/// What a local copy of a document is kept as, when it differs from the database.
const DISK_COPY: &str = "~disk";

/// Stands among what was left out when nothing of the loop's reasoning was there.
const NO_DOCUMENTS: &str = "NO DOCUMENTS CAPTURED";

/// Archives that a list shows unless told otherwise.
const LISTED: u32 = 50;

arguments! {
    /// Arguments of `loop_archive`.
    pub struct Archive {
        slug: Slug = "loopSlug", "";
    }
}

/// Moves an ended loop into cold storage.
pub fn archive(args: Archive, desk: &mut Desk) -> Done {
    let open = desk.open(&args.slug.0)?;
    open.refuse_while_active("archive")?;
    let (id, slug) = (open.row().id.clone(), open.row().slug.clone());
    let heads = desk.documents(&id)?;
    let tree = desk.loop_tree(&id, LEFT_OUT.iter().map(|name| (*name).to_owned()).collect())?;
    let (wanted, mut skipped) = choose(tree.unwrap_or_default());
    let captured = if wanted.is_empty() { Vec::new() } else { desk.capture(&id, wanted)? };
    let files = name(captured, &heads, &mut skipped);
    if heads.is_empty() && files.iter().all(|(_, path)| render::is_view(path)) {
        skipped.push(SkippedFile {
            path: NO_DOCUMENTS.to_owned(),
            reason: "neither the database nor the loop's folder has one".to_owned(),
        });
    }
    let reply = Reply::new()
        .with("archiveId", desk.facts.fresh_id.clone())
        .with("slug", slug)
        .with("skipped", skipped_rows(&skipped));
    let archiving =
        Archiving { id: desk.facts.fresh_id.clone(), loop_id: id, at: desk.facts.now, files, skipped };
    let measure = FollowUp::MeasureArchive(archiving.id.clone());
    Accepted::writing(reply, vec![Write::ArchiveLoop(archiving)], Some(measure))
}

/// Splits what lies in the folder into what is to be read, and what is left out
/// and why.
fn choose(tree: Vec<TreeEntry>) -> (Vec<String>, Vec<SkippedFile>) {
    let (mut wanted, mut skipped) = (Vec::<String>::new(), Vec::new());
    let mut folded = std::collections::BTreeSet::new();
    let mut total = 0_u64;
    for entry in tree {
        let why = match entry.kind {
            EntryKind::Folder => {
                let name = entry.path.rsplit('/').next().unwrap_or_default();
                let known = LEFT_OUT.contains(&name);
                Some(
                    if known { "a folder that is never kept" } else { "a folder that cannot be listed" }
                        .to_owned(),
                )
            }
            EntryKind::Link => Some("a symbolic link".to_owned()),
            EntryKind::Special => Some("no regular file".to_owned()),
            EntryKind::Unreadable => Some("it cannot be read".to_owned()),
            EntryKind::File if entry.bytes > FILE_MAX => {
                Some(format!("{} bytes, more than the {FILE_MAX} of a file", entry.bytes))
            }
            EntryKind::File if total + entry.bytes > TOTAL_MAX => {
                Some(format!("past the {TOTAL_MAX} bytes of all files"))
            }
            EntryKind::File => match check_kept(&entry.path) {
                Err(fault) => Some(fault.to_string()),
                Ok(()) if !folded.insert(entry.path.to_lowercase()) => {
                    Some("another file's name differs by case alone".to_owned())
                }
                Ok(()) => None,
            },
        };
        match why {
            Some(reason) => skipped.push(SkippedFile { path: entry.path, reason }),
            None => {
                total += entry.bytes;
                wanted.push(entry.path);
            }
        }
    }
    (wanted, skipped)
}

/// The name under which each file is kept. A document's own file is left to the
/// database unless it says something else.
fn name(
    captured: Vec<CapturedFile>,
    heads: &[DocumentHead],
    skipped: &mut Vec<SkippedFile>,
) -> Vec<(String, String)> {
    let document = |path: &str| heads.iter().find(|head| head.path.eq_ignore_ascii_case(path));
    let mut names: Vec<(String, String)> = Vec::with_capacity(captured.len());
    let mut beside = Vec::new();
    for CapturedFile { path, content } in captured {
        match content {
            Err(reason) => skipped.push(SkippedFile { path, reason }),
            Ok(file) => match document(&path) {
                None => names.push((path.clone(), path)),
                Some(head) if file.body_sha256.as_deref() == Some(head.sha256.as_str()) => {}
                Some(_) => beside.push(path),
            },
        }
    }
    for path in beside {
        let mut kept = path.clone();
        loop {
            kept.push_str(DISK_COPY);
            let taken = |other: &str| other.eq_ignore_ascii_case(&kept);
            if !names.iter().any(|(_, name)| taken(name)) && !heads.iter().any(|head| taken(&head.path)) {
                break;
            }
        }
        match check_kept(&kept) {
            Ok(()) => names.push((path, kept)),
            Err(fault) => skipped.push(SkippedFile {
                path,
                reason: format!("it differs from the stored document, and {fault} as {DISK_COPY}"),
            }),
        }
    }
    names
}

fn skipped_rows(skipped: &[SkippedFile]) -> Vec<Value> {
    skipped.iter().map(|s| json!({ "path": s.path, "reason": s.reason })).collect()
}

fn head_row(head: &ArchiveHead) -> Value {
    json!({
        "archiveId": head.id,
        "slug": head.slug,
        "title": head.title,
        "goal": head.goal,
        "status": head.status,
        "project_root": head.project_root,
        "archived_at": timestamp(head.archived_at),
        "files": head.files,
        "bytes": head.bytes,
        "stored_bytes": head.stored_bytes,
    })
}

arguments! {
    /// Arguments of `archive_list`.
    pub struct List {
        project_root: Option<String> = "projectRoot", "Only those of this root.";
        search: Option<String> = "search", "In slug, title and goal.";
        limit: Option<u32> = "limit", "Default 50.";
        offset: Option<u32> = "offset", "";
    }
}

/// Lists archives.
pub fn list(args: List, desk: &mut Desk) -> Done {
    let filter = ArchiveFilter {
        project_root: args.project_root,
        search: args.search.filter(|s| !s.is_empty()),
        limit: args.limit.unwrap_or(LISTED),
        offset: args.offset.unwrap_or(0),
    };
    let page = desk.archive_page(filter.clone())?;
    let shown: Vec<_> = page.archives.iter().map(head_row).collect();
    let more = page.total.saturating_sub(filter.offset).saturating_sub(shown.len() as u32);
    Accepted::reading(Reply::new().with("archives", shown).with_some("more", (more > 0).then_some(more)))
}

/// The archive of an id.
fn find(id: &str, desk: &mut Desk) -> Result<ArchiveDetail, Halt> {
    desk.archive(id)?.ok_or_else(|| Refusal::ArchiveNotFound { id: id.to_owned() }.into())
}

arguments! {
    /// Arguments of `archive_get`.
    pub struct Get {
        id: Said = "archiveId", "";
        limit: Option<u32> = "limit", "Files to show.";
        offset: Option<u32> = "offset", "Files to pass over.";
    }
}

/// Shows an archive's header and files.
pub fn get(args: Get, desk: &mut Desk) -> Done {
    let ArchiveDetail { head, files } = find(&args.id.0, desk)?;
    let row = |f: &ArchivedFile| {
        json!({
            "path": f.path,
            "bytes": f.bytes,
            "stored_bytes": f.stored_bytes,
            "sha256": f.sha256,
            "modified_at": f.modified_at.map(timestamp),
        })
    };
    let mut header = head_row(&head);
    header["loop_id"] = json!(head.loop_id);
    header["skipped"] = json!(skipped_rows(&head.skipped));
    Accepted::reading(Reply::new().with("archive", header).page(
        "files",
        files.iter().map(row).collect(),
        args.offset.unwrap_or(0) as usize,
        args.limit.map(|l| l as usize),
    ))
}

arguments! {
    /// Arguments of `archive_readFile`.
    pub struct ReadFile {
        id: Said = "archiveId", "";
        path: String = "path", "";
        offset: Option<u32> = "offset", "Characters to pass over.";
    }
}

/// Reads one file of an archive.
pub fn read_file(args: ReadFile, desk: &mut Desk) -> Done {
    let ArchiveDetail { head, files } = find(&args.id.0, desk)?;
    let not_found = || Refusal::ArchivedFileNotFound {
        slug: head.slug.clone(),
        path: args.path.clone(),
        nearest: crate::text::nearest(&args.path, files.iter().map(|f| f.path.as_str()))
            .into_iter()
            .map(str::to_owned)
            .collect(),
    };
    let Some(file) = files.iter().find(|f| f.path == args.path) else { return Err(not_found().into()) };
    let Some(content) = desk.archived_content(&head.id, &file.path)? else {
        return Err(not_found().into());
    };
    let (encoding, content) = encode(&file.path, content);
    Accepted::reading(
        Reply::new()
            .with("path", file.path.clone())
            .with("bytes", file.bytes)
            .with("sha256", file.sha256.clone())
            .with("encoding", encoding)
            .text("content", content, args.offset.unwrap_or(0)),
    )
}

/// Text as it is where the name says so and the bytes agree.
fn encode(path: &str, content: Vec<u8>) -> (&'static str, String) {
    let name = path.trim_end_matches(DISK_COPY).to_ascii_lowercase();
    let textual = [".md", ".jsonl"].iter().any(|ending| name.ends_with(ending));
    let bytes = match String::from_utf8(content) {
        Ok(text) if textual => return ("utf-8", text),
        Ok(text) => text.into_bytes(),
        Err(error) => error.into_bytes(),
    };
    ("base64", STANDARD.encode(bytes))
}

arguments! {
    /// Arguments of `archive_restore`.
    pub struct Restore {
        id: Said = "archiveId", "";
        as_slug: Option<Slug> = "asSlug", "Another slug.";
        target_dir: Option<Said> = "targetDir", "Another project root; absolute, made if missing.";
    }
}

/// Makes an archive a live loop again.
pub fn restore(args: Restore, desk: &mut Desk) -> Done {
    let archive_id = args.id.0;
    let Some(archived) = desk.archived_loop(&archive_id)? else {
        return Err(Refusal::ArchiveNotFound { id: archive_id }.into());
    };
    let mut row = archived.loop_;
    if let Some(folder) = args.target_dir {
        let folder = folder.0;
        let unfit = |why: &str| Refusal::TargetFolder { folder: folder.clone(), why: why.to_owned() };
        if !folder.starts_with('/') {
            return Err(unfit("it is not absolute").into());
        }
        let project = desk.project_at(&folder)?.map_err(|why| unfit(&why))?;
        if project.root == "/" {
            return Err(unfit("it is the root of the file system, which is no project").into());
        }
        row.project_id = project.id;
        row.project_root = project.root;
        row.project_key = project.key;
    }
    let slug = args.as_slug.map_or_else(|| row.slug.clone(), |slug| slug.0);
    if desk.slug_holder(&row.project_root, &slug)?.is_some() {
        return Err(Refusal::SlugTaken { slug, root: row.project_root }.into());
    }
    rename(&mut row, slug, &desk.facts.version);
    if archived.live || archived.documents_differ {
        row.id = desk.facts.fresh_id.clone();
    }
    let reply = Reply::new()
        .with("loopSlug", row.slug.clone())
        .with("id", row.id.clone())
        .with("project_root", row.project_root.clone());
    let files = FileRestore {
        archive_id: archive_id.clone(),
        loop_id: row.id.clone(),
        without: render::VIEWS.iter().map(|view| (*view).to_owned()).collect(),
    };
    let restoring = Restoring { archive_id, loop_: row };
    Accepted::writing(reply, vec![Write::RestoreArchive(restoring)], Some(FollowUp::RestoreFiles(files)))
}

/// Gives a loop another slug. The lessons' page names it, so its length follows.
fn rename(row: &mut Loop, slug: String, version: &str) {
    let header = |row: &Loop| render::lessons_page(row, &[], version).len() as u64;
    let before = header(row);
    row.slug = slug;
    let after = header(row);
    row.marks.memory_bytes = (row.marks.memory_bytes + after).saturating_sub(before);
}

arguments! {
    /// Arguments of `archive_delete`.
    pub struct Delete {
        id: Said = "archiveId", "";
        confirm: String = "confirm", "The archive's id once more.";
    }
}

/// Deletes an archive.
pub fn delete(args: Delete, desk: &mut Desk) -> Done {
    let ArchiveDetail { head, .. } = find(&args.id.0, desk)?;
    if args.confirm != head.id {
        return Err(Refusal::NotConfirmed { what: "the archive's id" }.into());
    }
    let reply = Reply::new().with("deleted", head.id.clone());
    Accepted::writing(reply, vec![Write::DeleteArchive(head.id)], None)
}
