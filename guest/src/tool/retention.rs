//! What leaves the database for good, and the space it took.

use crate::arguments::{Slug, arguments};
use crate::desk::{Accepted, Desk, Done};
use crate::refusal::Refusal;
use crate::render::timestamp;
use crate::reply::Reply;
use crate::tools::{FollowUp, PruneCandidate, Write};
use serde_json::json;

const DAY_MS: i64 = 24 * 60 * 60 * 1_000;

arguments! {
    /// Arguments of `loop_prune`.
    pub struct Prune {
        days: u32 = "olderThanDays", "";
        dry_run: Option<bool> = "dryRun", "Default true.";
        limit: Option<u32> = "limit", "Candidates to show.";
        offset: Option<u32> = "offset", "";
    }
}

/// Drops the history of loops that ended long ago, or shows which ones those are.
pub fn prune(args: Prune, desk: &mut Desk) -> Done {
    let dry_run = args.dry_run.unwrap_or(true);
    let before = desk.facts.now.saturating_sub(i64::from(args.days) * DAY_MS);
    let candidates = desk.prunable(before)?;
    let row = |c: &PruneCandidate| {
        json!({
            "slug": c.slug,
            "project_root": c.project_root,
            "finished_at": timestamp(c.finished_at),
            "events": c.events,
            "steps": c.steps,
        })
    };
    let pruned = if dry_run { 0 } else { candidates.len() };
    let rows = candidates.iter().map(row).collect();
    let (offset, limit) = (args.offset.unwrap_or(0) as usize, args.limit.map(|l| l as usize));
    let reply =
        Reply::new().with("dryRun", dry_run).page("candidates", rows, offset, limit).with("pruned", pruned);
    if dry_run {
        return Accepted::reading(reply);
    }
    let now = desk.facts.now;
    let writes = candidates.into_iter().map(|c| Write::DropHistory((c.id, now))).collect();
    Accepted::writing(reply, writes, None)
}

arguments! {
    /// Arguments of `loop_delete`.
    pub struct Delete {
        slug: Slug = "loopSlug", "";
        confirm: String = "confirm", "The slug once more.";
        purge_documents: Option<bool> = "purgeDocuments", "Default false.";
    }
}

/// Deletes an ended loop.
pub fn delete(args: Delete, desk: &mut Desk) -> Done {
    let open = desk.open(&args.slug.0)?;
    open.refuse_while_active("delete")?;
    if args.confirm != open.row().slug {
        return Err(Refusal::NotConfirmed { what: "the loop's slug" }.into());
    }
    let purge = args.purge_documents.unwrap_or(false);
    let reply = Reply::new()
        .with("deleted", open.row().slug.clone())
        .with("documents", if purge { "purged" } else { "kept" });
    Accepted::writing(reply, vec![Write::DeleteLoop((open.row().id.clone(), purge))], None)
}

arguments! {
    /// Arguments of `db_vacuum`.
    pub struct Vacuum {
    }
}

/// Returns freed pages to the file system.
pub fn vacuum(_: Vacuum, _: &mut Desk) -> Done {
    Accepted::writing(Reply::new(), Vec::new(), Some(FollowUp::Vacuum))
}
