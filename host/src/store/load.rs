//! Rows to records.

use std::collections::HashMap;
use std::sync::LazyLock;

use rusqlite::{Connection, Params, Row};

use super::ProjectRow;
use super::error::{Failure, StoreError};
use super::record::{Part, Reader, Record, mark_columns};
use crate::contract::{model, tools};

/// The columns of a [`ProjectRow`], in the order that [`project`] reads.
const PROJECT: &str = "project.id, project.name, project.remote_key, project.repo_key";

/// What a project is looked up by.
#[derive(Clone, Copy)]
pub(super) enum ProjectBy {
    Root,
    Remote,
    Repo,
}

/// Of several projects with one key, the oldest answers.
pub(super) fn project(db: &Connection, by: ProjectBy, value: &str) -> Result<Option<ProjectRow>, Failure> {
    static BY_ROOT: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {PROJECT} FROM project_root JOIN project ON project.id = project_id \
             WHERE root = ?1"
        )
    });
    static BY_REMOTE: LazyLock<String> = LazyLock::new(|| by_key("remote_key"));
    static BY_REPO: LazyLock<String> = LazyLock::new(|| by_key("repo_key"));
    let sql = match by {
        ProjectBy::Root => &BY_ROOT,
        ProjectBy::Remote => &BY_REMOTE,
        ProjectBy::Repo => &BY_REPO,
    };
    first(db, sql, [value], |row| {
        Ok(ProjectRow { id: row.get(0)?, name: row.get(1)?, remote_key: row.get(2)?, repo_key: row.get(3)? })
    })
}

fn by_key(key: &str) -> String {
    format!("SELECT {PROJECT} FROM project WHERE {key} = ?1 ORDER BY created_at, id LIMIT 1")
}

/// `None` for a query that the database does not answer.
pub(super) fn answer(
    db: &Connection,
    project_id: &str,
    root: &str,
    query: &tools::Query,
) -> Result<Option<tools::Answer>, Failure> {
    use tools::{Answer, Query};
    Ok(Some(match query {
        Query::LoopState(slug) => Answer::LoopState(loop_state(db, root, slug)?),
        Query::LoopSlugs => Answer::LoopSlugs(slugs(db, root)?),
        Query::LoopList(filter) => Answer::LoopList(page(db, project_id, filter)?),
        Query::Memories(id) => Answer::Memories(memories(db, id)?),
        Query::RecentEvents((id, limit)) => Answer::RecentEvents(recent_events(db, id, *limit)?),
        Query::Proofs(id) => Answer::Proofs(proofs(db, id)?),
        Query::Timeline(id) => Answer::Timeline(events_after(db, id, 0, usize::MAX)?),
        Query::SlowestSteps((id, limit)) => Answer::SlowestSteps(slowest_steps(db, id, *limit)?),
        Query::Documents(id) => Answer::Documents(documents(db, id)?),
        Query::LoopFiles(_) | Query::FileText(_) => return Ok(None),
    }))
}

pub(super) fn loop_state(
    db: &Connection,
    root: &str,
    slug: &str,
) -> Result<Option<model::LoopState>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| loop_where("project_root = ?1 AND slug = ?2"));
    state(db, &SQL, [root, slug])
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
    // Sorted here: SQLite would copy the wide rows into a sorter first.
    let mut tasks: Vec<model::Task> = all(db, &TASKS, [key], read)?;
    tasks.sort_by(|a, b| a.position.cmp(&b.position).then_with(|| a.taskid.cmp(&b.taskid)));
    Ok(Some(model::LoopState {
        loop_: the_loop,
        phases: all(db, &PHASES, [key], read)?,
        tasks,
        totals: all(db, &TOTALS, [key], read)?,
        open_step: first(db, &OPEN, [key], read)?,
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

pub(super) fn events_after(
    db: &Connection,
    id: &str,
    after: u64,
    limit: usize,
) -> Result<Vec<model::Event>, Failure> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| children::<model::Event>("AND seq > ?2 ORDER BY seq LIMIT ?3"));
    let key = loop_key(db, id)?;
    // No stored number is beyond the database's integers, and no list either.
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    all(db, &SQL, [key, after, limit], read)
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

fn documents(db: &Connection, id: &str) -> Result<Vec<model::DocumentHead>, Failure> {
    let sql = "SELECT path, revision, bytes, at FROM loop_document AS head WHERE loop_id = ?1 \
               AND revision = (SELECT max(revision) FROM loop_document \
                               WHERE loop_id = head.loop_id AND path = head.path) ORDER BY path";
    all(db, sql, [id], |row| {
        Ok(model::DocumentHead {
            path: row.get(0)?,
            rev: row.get(1)?,
            bytes: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
            updated_at: row.get(3)?,
        })
    })
}

/// Returns the number that a loop's rows carry.
pub(super) fn loop_key(db: &Connection, id: &str) -> Result<i64, Failure> {
    first(db, "SELECT loop_key FROM loop WHERE id = ?1", [id], |row| Ok(row.get(0)?))?
        .ok_or_else(|| StoreError::UnknownLoop { id: id.to_owned() }.into())
}

fn slugs(db: &Connection, root: &str) -> Result<Vec<String>, Failure> {
    let sql = "SELECT slug FROM loop WHERE project_root = ?1 ORDER BY slug";
    all(db, sql, [root], |row| Ok(row.get(0)?))
}

/// The loops that a list takes in: parameter 1 is the project, 2 whether finished
/// ones count.
const LISTED: &str = "FROM loop WHERE project_id = ?1 AND (?2 OR finished_at IS NULL)";
/// One page of them, newest-touched first: parameters 3 and 4 cut it out.
const PAGE: &str = "ORDER BY updated_at DESC, slug, loop_key LIMIT ?3 OFFSET ?4";

fn page(db: &Connection, project_id: &str, filter: &tools::LoopFilter) -> Result<tools::LoopPage, Failure> {
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

fn read<P: Part>(row: &Row<'_>) -> Result<P, Failure> {
    P::read(&mut Reader::new(row))
}

fn all<T>(
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

fn first<T>(
    db: &Connection,
    sql: &str,
    params: impl Params,
    read: impl FnOnce(&Row<'_>) -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    rows.next()?.map(read).transpose()
}
