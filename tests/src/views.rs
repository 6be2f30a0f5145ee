//! Whether a loop's folder shows what its database holds.

use crate::look::{self, Content};
use crate::{Client, World};
use serde_json::{Value, json};

/// An event as the database has it: its number, and what a test can foretell of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub seq: i64,
    /// Name and note, or where there is none what it moved from and to.
    pub what: String,
}

/// A loop's events in order.
///
/// # Panics
///
/// When the database cannot be read.
#[must_use]
pub fn events(world: &World, slug: &str) -> Vec<Recorded> {
    let db = look::open(&world.database());
    let mut statement = db
        .prepare(
            "SELECT seq, event || ' ' || coalesce(note, \"from\" || '>' || \"to\", '') \
             FROM event JOIN loop USING (loop_key) WHERE slug = ?1 ORDER BY seq",
        )
        .expect("the event table");
    let rows = statement.query_map([slug], |row| Ok(Recorded { seq: row.get(0)?, what: row.get(1)? }));
    rows.expect("the events").collect::<Result<_, _>>().expect("an event")
}

/// A loop's lessons in order, by number and text.
///
/// # Panics
///
/// When the database cannot be read.
#[must_use]
pub fn lessons(world: &World, slug: &str) -> Vec<(i64, String)> {
    let db = look::open(&world.database());
    let mut statement = db
        .prepare("SELECT seq, note FROM memory JOIN loop USING (loop_key) WHERE slug = ?1 ORDER BY seq")
        .expect("the table of lessons");
    let rows = statement.query_map([slug], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.expect("the lessons").collect::<Result<_, _>>().expect("a lesson")
}

/// Panics unless the numbers are 1, 2, 3 and so on.
#[track_caller]
pub fn assert_no_gap(numbers: impl IntoIterator<Item = i64>) {
    for (expected, seq) in (1..).zip(numbers) {
        assert_eq!(seq, expected, "a gap or a double");
    }
}

/// Panics unless the folder of a loop at rest is what `loop_render` writes, and its
/// log has each event of the database once.
///
/// # Panics
///
/// When they differ.
#[track_caller]
pub fn assert_in_step(world: &World, client: &mut Client, slug: &str) {
    let folder = world.folder(slug);
    let before = look::files(&folder);
    let reply = client.ok("loop_render", json!({ "loopSlug": slug }));
    assert!(reply.get("mirror").is_none(), "{reply}");
    look::assert_same(&before, &look::files(&folder), "on disk / from loop_render");
    assert_log_is_whole(world, &before, slug);
}

#[track_caller]
fn assert_log_is_whole(world: &World, files: &Content, slug: &str) {
    let log = String::from_utf8(files["events.jsonl"].clone()).expect("UTF-8");
    assert!(log.is_empty() || log.ends_with('\n'), "the log ends with half a line");
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).expect("a line of the log is JSON")).collect();
    let stored = events(world, slug);
    assert_eq!(lines.len(), stored.len(), "lines of the log, and events");
    for (line, event) in lines.iter().zip(&stored) {
        assert_eq!(line["seq"], event.seq);
    }
    assert_no_gap(stored.iter().map(|e| e.seq));
}
