//! Documents: written as revisions, read from the database first and from the
//! loop's folder for what predates it.

use crate::arguments::{Argument, ArgumentError, Ignored, Slug, arguments, text_of};
use crate::desk::{Accepted, Desk, Done, Halt, OpenLoop, document_view};
use crate::digest::sha256;
use crate::document::{self, CONTENT_MAX, PathFault};
use crate::model::{Document, DocumentHead};
use crate::refusal::Refusal;
use crate::render::{self, strip, view_set};
use crate::reply::Reply;
use crate::text::nearest;
use crate::tools::FollowUp;
use serde_json::{Map, Value};

/// The content of a document: any text up to the longest that is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content(pub String);

impl Argument for Content {
    fn schema() -> Map<String, Value> {
        String::schema()
    }
    fn takes() -> String {
        String::takes()
    }
    fn read(value: Value, key: &str, _: &mut Ignored) -> Result<Self, ArgumentError> {
        text_of::<Self>(value, key, CONTENT_MAX).map(Content)
    }
}

arguments! {
    /// Arguments of `loop_writeFile`.
    pub struct WriteFile {
        slug: Slug = "loopSlug", "";
        path: String = "path", "In the loop's folder, e.g. plan.md, tasks/T1.md.";
        content: Content = "content", "Whole text, without header.";
    }
}

/// Stores a revision and writes its file.
pub fn write_file(args: WriteFile, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let path = args.path;
    check(&path)?;
    let id = open.row().id.clone();
    let heads = desk.documents(&id)?;
    document::check_beside(&path, &heads).map_err(|fault| refuse(&path, fault))?;
    let (_, body) = strip(&args.content.0);
    let before = heads.into_iter().find(|head| head.path == path);
    let sha256 = sha256(body.as_bytes());
    let unchanged = before.as_ref().is_some_and(|head| head.sha256 == sha256);
    let head = match before {
        Some(head) if unchanged => head,
        before => DocumentHead {
            rev: before.as_ref().map_or(0, |head| head.rev) + 1,
            bytes: body.len() as u64,
            sha256,
            created_at: before.as_ref().map_or(open.now, |head| head.created_at),
            updated_at: before.as_ref().map_or(open.now, |head| head.updated_at.max(open.now)),
            path,
        },
    };
    let reply = Reply::new()
        .with("path", head.path.clone())
        .with("rev", head.rev)
        .with("unchanged", unchanged)
        .with("bytes", head.bytes)
        .with("sha256", head.sha256.clone())
        .with("mirror", "written");
    let document = Document { head, content: body.to_owned() };
    if unchanged {
        // Its file may be gone, or behind.
        let view = document_view(&open.row().slug, &document, &desk.facts.version);
        return Accepted::rendering(reply, view_set(open.row(), vec![view]));
    }
    open.row_mut();
    open.keep_document(document);
    open.done(reply)
}

fn refuse(path: &str, fault: PathFault) -> Halt {
    Refusal::DocumentPath { path: path.to_owned(), fault }.into()
}

fn check(path: &str) -> Result<(), Halt> {
    document::check_path(path).map_err(|fault| refuse(path, fault))
}

arguments! {
    /// Arguments of `loop_readFile`.
    pub struct ReadFile {
        slug: Slug = "loopSlug", "";
        path: String = "path", "";
        rev: Option<u32> = "rev", "Default: the newest.";
        offset: Option<u32> = "offset", "Characters to pass over.";
    }
}

/// Reads a document, or a view.
pub fn read_file(args: ReadFile, desk: &mut Desk) -> Done {
    let open = desk.open(&args.slug.0)?;
    let path = args.path;
    check(&path)?;
    let id = open.row().id.clone();
    let stored = if render::is_view(&path) { None } else { desk.document(&id, &path, args.rev)? };
    let (rev, header, content, source) = match stored {
        Some(Document { head, content }) => {
            let stamped = document::stamp(&open.row().slug, &head, "", &desk.facts.version);
            (Some(head.rev), strip(&stamped).0, content, "database")
        }
        None if args.rev.is_some() => return Err(not_found(&open, path, args.rev, desk)?),
        None => match desk.file_text(&id, &path)? {
            Some(text) => {
                let (header, body) = strip(&text);
                (None, header, body.to_owned(), "disk")
            }
            None => return Err(not_found(&open, path, None, desk)?),
        },
    };
    let header: Map<_, _> = header.into_iter().map(|(key, value)| (key, Value::String(value))).collect();
    Accepted::reading(
        Reply::new()
            .with("path", path)
            .with("rev", rev)
            .with("frontmatter", if header.is_empty() { Value::Null } else { Value::Object(header) })
            .with("source", source)
            .text("content", content, args.offset.unwrap_or(0)),
    )
}

/// The refusal of a document that is not there, with what is.
fn not_found(open: &OpenLoop, path: String, rev: Option<u32>, desk: &mut Desk) -> Result<Halt, Halt> {
    let heads = desk.documents(&open.row().id.clone())?;
    let newest = heads.iter().find(|head| head.path == path).map(|head| head.rev);
    let near = nearest(&path, heads.iter().map(|head| head.path.as_str()));
    let nearest = near.into_iter().map(str::to_owned).collect();
    Ok(Refusal::DocumentNotFound { path, rev, newest, nearest }.into())
}

arguments! {
    /// Arguments of `loop_materialize`.
    pub struct Materialize {
        slug: Slug = "loopSlug", "";
    }
}

/// Brings the documents to the loop's folder.
pub fn materialize(args: Materialize, desk: &mut Desk) -> Done {
    let open = desk.open(&args.slug.0)?;
    open.refuse_when_detached()?;
    let follow_up = FollowUp::Materialize(open.row().id.clone());
    Accepted::writing(Reply::new(), Vec::new(), Some(follow_up))
}
