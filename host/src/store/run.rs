//! The record of runs: rulings, ledger, episodes, notes.
//!
//! A run is found by its project, its name and the loop that it belongs to; one
//! without a loop is another run than a loop's of the same name.

use std::sync::LazyLock;

use rusqlite::{Connection, Statement, params};

use super::apply::constraint;
use super::error::{Failure, StoreError};
use super::load::{all, first, loop_key, read};
use super::record::{Binder, Record, parameters};
use crate::contract::{model, tools};

/// The condition that a row is one of the run in parameters 1 to 3.
const OF_RUN: &str = "project_id = ?1 AND run_id = ?2 AND ifnull(loop_key, 0) = ?3";

/// The number that stands for the run's loop, 0 for none.
fn owner(db: &Connection, run: &tools::Run) -> Result<i64, Failure> {
    run.loop_id.as_ref().map_or(Ok(0), |id| loop_key(db, id))
}

fn insert<R: Record>(insert: &str) -> String {
    let sql = R::sql();
    let values = parameters(4, sql.names.len());
    format!(
        "{insert} INTO {} (project_id, run_id, loop_key, {}) VALUES (?1, ?2, nullif(?3, 0), {values})",
        sql.table, sql.columns
    )
}

/// Runs `sql` with the run and all of the record.
fn write<R: Record>(db: &Connection, sql: &str, run: &tools::Run, record: &R) -> Result<(), Failure> {
    let owner = owner(db, run)?;
    let mut statement = db.prepare_cached(sql)?;
    bind_run(&mut statement, run, owner)?;
    Binder::bind(&mut statement, 4, record)?;
    statement.raw_execute()?;
    Ok(())
}

fn bind_run(statement: &mut Statement<'_>, run: &tools::Run, owner: i64) -> Result<(), Failure> {
    statement.raw_bind_parameter(1, &run.project_id)?;
    statement.raw_bind_parameter(2, &run.name)?;
    statement.raw_bind_parameter(3, owner)?;
    Ok(())
}

pub(super) fn put_goal_state(
    db: &Connection,
    run: &tools::Run,
    state: &model::GoalState,
) -> Result<(), Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| insert::<model::GoalState>("INSERT OR REPLACE"));
    write(db, &SQL, run, state)
}

pub(super) fn append_ledger(
    db: &Connection,
    run: &tools::Run,
    entry: &model::LedgerEntry,
) -> Result<(), Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| insert::<model::LedgerEntry>("INSERT"));
    write(db, &SQL, run, entry).map_err(|error| taken(error, run, "ledger entry", entry.seq))
}

pub(super) fn append_episode(
    db: &Connection,
    run: &tools::Run,
    episode: &model::Episode,
) -> Result<(), Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| insert::<model::Episode>("INSERT"));
    write(db, &SQL, run, episode).map_err(|error| taken(error, run, "episode", episode.seq))
}

fn taken(error: Failure, run: &tools::Run, record: &'static str, seq: u64) -> Failure {
    match constraint(&error) {
        Some(rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE) => {
            StoreError::RunSeqTaken { run: run.name.clone(), record, seq }.into()
        }
        _ => error,
    }
}

pub(super) fn put_scratchpad(
    db: &Connection,
    run: &tools::Run,
    key: &str,
    value: Option<&str>,
    at: i64,
) -> Result<(), Failure> {
    let owner = owner(db, run)?;
    match value {
        Some(value) => db
            .prepare_cached(
                "INSERT OR REPLACE INTO scratchpad (project_id, run_id, loop_key, key, value, updated_at) \
                 VALUES (?1, ?2, nullif(?3, 0), ?4, ?5, ?6)",
            )?
            .execute(params![run.project_id, run.name, owner, key, value, at])?,
        None => db
            .prepare_cached(&format!("DELETE FROM scratchpad WHERE {OF_RUN} AND key = ?4"))?
            .execute(params![run.project_id, run.name, owner, key])?,
    };
    Ok(())
}

fn of_run<R: Record>(rest: &str) -> String {
    let sql = R::sql();
    format!("SELECT {} FROM {} WHERE {OF_RUN} {rest}", sql.columns, sql.table)
}

pub(super) fn goal_states(db: &Connection, run: &tools::Run) -> Result<Vec<model::GoalState>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| of_run::<model::GoalState>("ORDER BY target"));
    all(db, &SQL, params![run.project_id, run.name, owner(db, run)?], read)
}

/// The rulings of the run that is a loop's own.
pub(super) fn goals_of_loop(db: &Connection, key: i64) -> Result<Vec<model::GoalState>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        let sql = model::GoalState::sql();
        format!("SELECT {} FROM {} WHERE loop_key = ?1 ORDER BY target", sql.columns, sql.table)
    });
    all(db, &SQL, [key], read)
}

pub(super) fn ledger(db: &Connection, part: &tools::RunPart) -> Result<tools::LedgerPage, Failure> {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        of_run::<model::LedgerEntry>("AND (?4 IS NULL OR kind = ?4) ORDER BY seq DESC LIMIT ?5")
    });
    static NEWEST: LazyLock<String> =
        LazyLock::new(|| of_run::<model::LedgerEntry>("ORDER BY seq DESC LIMIT 1"));
    let run = &part.run;
    let owner = owner(db, run)?;
    let newest = first(db, &NEWEST, params![run.project_id, run.name, owner], read)?;
    // Most calls ask for the newest one alone.
    if part.limit == 0 {
        return Ok(tools::LedgerPage { entries: Vec::new(), total: 0, newest });
    }
    let mut entries: Vec<model::LedgerEntry> =
        all(db, &PAGE, params![run.project_id, run.name, owner, part.only, part.limit], read)?;
    entries.reverse();
    Ok(tools::LedgerPage { entries, total: total(db, "ledger", "kind", part, owner)?, newest })
}

pub(super) fn episodes(db: &Connection, part: &tools::RunPart) -> Result<tools::EpisodePage, Failure> {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        of_run::<model::Episode>("AND (?4 IS NULL OR node_id = ?4) ORDER BY seq DESC LIMIT ?5")
    });
    let run = &part.run;
    let owner = owner(db, run)?;
    let sql = format!("SELECT ifnull(max(seq), 0) FROM episode WHERE {OF_RUN}");
    let newest: i64 =
        first(db, &sql, params![run.project_id, run.name, owner], |row| Ok(row.get(0)?))?.unwrap_or(0);
    let mut episodes: Vec<model::Episode> =
        all(db, &PAGE, params![run.project_id, run.name, owner, part.only, part.limit], read)?;
    episodes.reverse();
    let total = total(db, "episode", "node_id", part, owner)?;
    Ok(tools::EpisodePage { episodes, total, newest: u64::try_from(newest).unwrap_or(0) })
}

fn total(db: &Connection, table: &str, by: &str, part: &tools::RunPart, owner: i64) -> Result<u64, Failure> {
    let sql = format!("SELECT count(*) FROM {table} WHERE {OF_RUN} AND (?4 IS NULL OR {by} = ?4)");
    let run = &part.run;
    let count: Option<i64> =
        first(db, &sql, params![run.project_id, run.name, owner, part.only], |row| Ok(row.get(0)?))?;
    Ok(count.and_then(|count| u64::try_from(count).ok()).unwrap_or(0))
}

pub(super) fn scratchpad(db: &Connection, run: &tools::Run, key: &str) -> Result<Option<String>, Failure> {
    let sql = format!("SELECT value FROM scratchpad WHERE {OF_RUN} AND key = ?4");
    first(db, &sql, params![run.project_id, run.name, owner(db, run)?, key], |row| Ok(row.get(0)?))
}
