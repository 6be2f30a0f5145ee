//! Rows to records.

use std::collections::HashMap;
use std::sync::LazyLock;

use rusqlite::{Connection, Params, Row};

use super::error::{Failure, StoreError};
use super::record::{Part, Reader, Record, mark_columns};
use super::{archive, document, run};
use crate::contract::{model, tools};

/// What `logic` asks; `None` for a query that the database does not answer.
pub(super) fn answer(
    db: &Connection,
    logic: &str,
    project_id: &str,
    root: &str,
    query: &tools::Query,
) -> Result<Option<tools::Answer>, Failure> {
    use tools::{Answer, Query};
    Ok(Some(match query {
        Query::LoopState(slug) => Answer::LoopState(found_loop(db, project_id, root, slug)?),
        Query::LoopById(id) => Answer::LoopById(loop_state_by_id(db, id)?),
        Query::LoopSlugs => Answer::LoopSlugs(slugs(db, project_id)?),
        Query::LoopList(filter) => Answer::LoopList(page(db, project_id, filter)?),
        Query::Memories(id) => Answer::Memories(memories(db, id)?),
        Query::RecentEvents((id, limit)) => Answer::RecentEvents(recent_events(db, id, *limit)?),
        Query::Proofs(id) => Answer::Proofs(proofs(db, id)?),
        Query::Timeline(id) => Answer::Timeline(events_after(db, id, 0, usize::MAX, usize::MAX)?),
        Query::SlowestSteps((id, limit)) => Answer::SlowestSteps(slowest_steps(db, id, *limit)?),
        Query::Documents(id) => Answer::Documents(document::heads(db, id)?),
        Query::Document((id, path, rev)) => Answer::Document(document::read(db, id, path, *rev)?),
        Query::ArchiveList(filter) => Answer::ArchiveList(archive::list(db, filter)?),
        Query::Archive(id) => Answer::Archive(archive::detail(db, id)?),
        Query::ArchivedLoop(id) => Answer::ArchivedLoop(archive::the_loop(db, id)?),
        Query::ArchivedContent((id, path)) => Answer::ArchivedContent(archive::content(db, id, path)?),
        Query::SlugHolder((root, slug)) => Answer::SlugHolder(slug_holder(db, root, slug)?),
        Query::Prunable(before) => Answer::Prunable(prunable(db, logic, *before)?),
        Query::GoalStates(of) => Answer::GoalStates(run::goal_states(db, of)?),
        Query::Ledger(part) => Answer::Ledger(run::ledger(db, part)?),
        Query::Episodes(part) => Answer::Episodes(run::episodes(db, part)?),
        Query::Scratchpad((of, key)) => Answer::Scratchpad(run::scratchpad(db, of, key)?),
        Query::Evidence(_)
        | Query::RunScript(_)
        | Query::RootsExist(_)
        | Query::LoopFiles(_)
        | Query::FileText(_)
        | Query::LoopTree(_)
        | Query::Capture(_)
        | Query::ProjectAt(_) => return Ok(None),
    }))
}

/// The loop of `slug` in `root`, else where else in the project there are some.
fn found_loop(
    db: &Connection,
    project_id: &str,
    root: &str,
    slug: &str,
) -> Result<tools::FoundLoop, Failure> {
    let here = loop_state(db, project_id, root, slug)?;
    let elsewhere = match here {
        Some(_) => Vec::new(),
        None => {
            let sql = "SELECT id, slug, title, status, project_root FROM loop \
                       WHERE project_id = ?1 AND slug = ?2 ORDER BY project_root";
            all(db, sql, [project_id, slug], |row| {
                Ok(model::LoopPlace {
                    id: row.get(0)?,
                    slug: row.get(1)?,
                    title: row.get(2)?,
                    status: row.get(3)?,
                    project_root: row.get(4)?,
                })
            })?
        }
    };
    Ok(tools::FoundLoop { here, elsewhere })
}

pub(super) fn loop_state(
    db: &Connection,
    project_id: &str,
    root: &str,
    slug: &str,
) -> Result<Option<model::LoopState>, Failure> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| loop_where("project_id = ?1 AND slug = ?2 AND project_root = ?3"));
    state(db, &SQL, [project_id, slug, root])
}

/// The loop of `slug` that the root's own project has there; the first one of a root
/// that no project has.
fn slug_holder(db: &Connection, root: &str, slug: &str) -> Result<Option<model::LoopId>, Failure> {
    let sql = "SELECT loop.id FROM loop LEFT JOIN project_root ON root = loop.project_root \
               WHERE project_root = ?1 AND slug = ?2 \
               AND loop.project_id = coalesce(project_root.project_id, loop.project_id) \
               ORDER BY loop_key LIMIT 1";
    first(db, sql, [root, slug], |row| Ok(row.get(0)?))
}

/// Loops of `logic` that ended before `before` and have history, oldest end first.
fn prunable(db: &Connection, logic: &str, before: i64) -> Result<Vec<tools::PruneCandidate>, Failure> {
    let sql = "SELECT id, slug, project_root, finished_at, \
               (SELECT count(*) FROM event WHERE event.loop_key = loop.loop_key) AS events, \
               (SELECT count(*) FROM step WHERE step.loop_key = loop.loop_key) AS steps \
               FROM loop WHERE finished_at < ?1 AND logic = ?2 AND events + steps > 0 \
               ORDER BY finished_at, loop_key";
    all(db, sql, (before, logic), |row| {
        Ok(tools::PruneCandidate {
            id: row.get(0)?,
            slug: row.get(1)?,
            project_root: row.get(2)?,
            finished_at: row.get(3)?,
            events: row.get(4)?,
            steps: row.get(5)?,
        })
    })
}

pub(super) fn loop_state_by_id(db: &Connection, id: &str) -> Result<Option<model::LoopState>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| loop_where("id = ?1"));
    state(db, &SQL, [id])
}

/// The loop's columns, and its key after them.
fn loop_where(condition: &str) -> String {
    format!("SELECT {}, loop_key FROM loop WHERE {condition}", model::Loop::sql().columns)
}

fn state(db: &Connection, sql: &str, params: impl Params) -> Result<Option<model::LoopState>, Failure> {
    let found = first(db, sql, params, |row| {
        let key: i64 = row.get(model::Loop::sql().names.len())?;
        Ok((model::Loop::read(&mut Reader::new(row))?, key))
    })?;
    let Some((the_loop, key)) = found else {
        return Ok(None);
    };

    static PHASES: LazyLock<String> = LazyLock::new(|| children::<model::Phase>("ORDER BY rank"));
    static TASKS: LazyLock<String> = LazyLock::new(|| children::<model::Task>(""));
    static TOTALS: LazyLock<String> = LazyLock::new(|| children::<model::StepTotal>("ORDER BY task, phase"));
    static OPEN: LazyLock<String> =
        LazyLock::new(|| children::<model::Step>("AND ended_at IS NULL ORDER BY seq DESC LIMIT 1"));
    let goals = match the_loop.goal_config {
        Some(_) => run::goals_of_loop(db, key)?,
        None => Vec::new(),
    };
    // Sorted here: SQLite would copy the wide rows into a sorter first.
    let mut tasks: Vec<model::Task> = all(db, &TASKS, [key], read)?;
    tasks.sort_by(|a, b| a.position.cmp(&b.position).then_with(|| a.taskid.cmp(&b.taskid)));
    Ok(Some(model::LoopState {
        loop_: the_loop,
        phases: all(db, &PHASES, [key], read)?,
        tasks,
        totals: all(db, &TOTALS, [key], read)?,
        open_step: first(db, &OPEN, [key], read)?,
        goals,
    }))
}

fn children<R: Record>(rest: &str) -> String {
    let sql = R::sql();
    format!("SELECT {} FROM {} WHERE loop_key = ?1 {rest}", sql.columns, sql.table)
}

pub(super) fn memories(db: &Connection, id: &str) -> Result<Vec<model::Memory>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| children::<model::Memory>("ORDER BY seq"));
    all(db, &SQL, [loop_key(db, id)?], read)
}

pub(super) fn marks(db: &Connection, id: &str) -> Result<Option<model::Marks>, Failure> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {} FROM loop WHERE id = ?1", mark_columns()));
    first(db, &SQL, [id], read)
}

/// At most `limit` events, and none after those whose texts reach `bytes`.
pub(super) fn events_after(
    db: &Connection,
    id: &str,
    after: u64,
    limit: usize,
    bytes: usize,
) -> Result<Vec<model::Event>, Failure> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| children::<model::Event>("AND seq > ?2 ORDER BY seq LIMIT ?3"));
    let key = loop_key(db, id)?;
    // No stored number is beyond the database's integers, and no list either.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = db.prepare_cached(&SQL)?;
    let mut rows = statement.query([key, after, limit])?;
    let mut events = Vec::new();
    let mut taken = 0_usize;
    while taken < bytes
        && let Some(row) = rows.next()?
    {
        let event: model::Event = read(row)?;
        taken = taken.saturating_add(text_bytes(&event));
        events.push(event);
    }
    Ok(events)
}

pub(super) fn text_bytes(event: &model::Event) -> usize {
    let model::Event { event, phase, task, from, to, agent, note, evidence, issue, pr, branch, .. } = event;
    let others = [phase, task, from, to, agent, note, evidence, issue, pr, branch];
    event.len() + others.into_iter().flatten().map(String::len).sum::<usize>()
}

fn recent_events(db: &Connection, id: &str, limit: u32) -> Result<Vec<model::Event>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| children::<model::Event>("ORDER BY seq DESC LIMIT ?2"));
    let mut events = all(db, &SQL, [loop_key(db, id)?, limit.into()], read)?;
    events.reverse();
    Ok(events)
}

fn proofs(db: &Connection, id: &str) -> Result<Vec<model::Event>, Failure> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| children::<model::Event>("AND evidence IS NOT NULL ORDER BY seq"));
    all(db, &SQL, [loop_key(db, id)?], read)
}

fn slowest_steps(db: &Connection, id: &str, limit: u32) -> Result<Vec<model::Step>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        children::<model::Step>("AND ended_at IS NOT NULL ORDER BY ended_at - started_at DESC, seq LIMIT ?2")
    });
    all(db, &SQL, [loop_key(db, id)?, limit.into()], read)
}

/// Returns the number that a loop's rows carry.
pub(super) fn loop_key(db: &Connection, id: &str) -> Result<i64, Failure> {
    first(db, "SELECT loop_key FROM loop WHERE id = ?1", [id], |row| Ok(row.get(0)?))?
        .ok_or_else(|| StoreError::UnknownLoop { id: id.to_owned() }.into())
}

fn slugs(db: &Connection, project_id: &str) -> Result<Vec<String>, Failure> {
    let sql = "SELECT DISTINCT slug FROM loop WHERE project_id = ?1 ORDER BY slug";
    all(db, sql, [project_id], |row| Ok(row.get(0)?))
}

/// The loops that a list takes in: parameter 1 is the project, 2 whether finished
/// ones count.
const LISTED: &str = "FROM loop WHERE project_id = ?1 AND (?2 OR finished_at IS NULL)";
/// One page of them, newest-touched first: parameters 3 and 4 cut it out.
const PAGE: &str = "ORDER BY updated_at DESC, slug, loop_key LIMIT ?3 OFFSET ?4";

pub(super) fn page(
    db: &Connection,
    project_id: &str,
    filter: &tools::LoopFilter,
) -> Result<tools::LoopPage, Failure> {
    static TOTAL: LazyLock<String> = LazyLock::new(|| format!("SELECT count(*) {LISTED}"));
    static LOOPS: LazyLock<String> = LazyLock::new(|| {
        format!("SELECT loop_key, slug, title, phase, status, updated_at, project_root {LISTED} {PAGE}")
    });
    static COUNTS: LazyLock<String> = LazyLock::new(|| {
        format!(
            "WITH page AS MATERIALIZED (SELECT loop_key {LISTED} {PAGE}) \
             SELECT task.loop_key, task.status, count(*) \
             FROM page CROSS JOIN task ON task.loop_key = page.loop_key \
             GROUP BY task.loop_key, task.status ORDER BY task.loop_key, task.status"
        )
    });
    let total = first(db, &TOTAL, (project_id, filter.include_finished), |row| Ok(row.get(0)?))?;
    let cut = (project_id, filter.include_finished, filter.limit, filter.offset);
    let mut places = HashMap::new();
    let mut loops = all(db, &LOOPS, cut, |row| {
        places.insert(row.get::<_, i64>(0)?, places.len());
        Ok(model::LoopSummary {
            slug: row.get(1)?,
            title: row.get(2)?,
            phase: row.get(3)?,
            status: row.get(4)?,
            tasks: Vec::new(),
            updated_at: row.get(5)?,
            project_root: row.get(6)?,
        })
    })?;
    let counts = all(db, &COUNTS, cut, |row| {
        let count = model::StatusCount { status: row.get(1)?, count: row.get(2)? };
        Ok((row.get::<_, i64>(0)?, count))
    })?;
    for (key, count) in counts {
        if let Some(summary) = places.get(&key).and_then(|place| loops.get_mut(*place)) {
            summary.tasks.push(count);
        }
    }
    Ok(tools::LoopPage { loops, total: total.unwrap_or(0) })
}

/// Reads a number that is never negative.
pub(super) fn count(row: &Row<'_>, column: usize) -> Result<u64, Failure> {
    let number: i64 = row.get(column)?;
    u64::try_from(number).map_err(|_| {
        let name = row.as_ref().column_name(column).unwrap_or("?").to_owned();
        Failure::Value(format!("column {name} holds the negative number {number}"))
    })
}

pub(super) fn read<P: Part>(row: &Row<'_>) -> Result<P, Failure> {
    P::read(&mut Reader::new(row))
}

pub(super) fn all<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    mut read: impl FnMut(&Row<'_>) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut list = Vec::new();
    while let Some(row) = rows.next()? {
        list.push(read(row)?);
    }
    Ok(list)
}

pub(super) fn first<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}
