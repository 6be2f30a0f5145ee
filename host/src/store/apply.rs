//! Records to rows.

use std::sync::LazyLock;

use rusqlite::Connection;

use super::archive::{self, Held};
use super::error::{Failure, StoreError};
use super::record::{Binder, Record, parameters};
use super::writer::{self, Writer, own_loop_key};
use super::{document, run};
use crate::contract::{model, tools};
use crate::progress::{Progress, Unit};

/// What names a loop; seldom changed, and all of it indexed.
const IDENTITY: [&str; 4] = ["id", "slug", "project_id", "project_root"];

/// Applies the writes in order; the first that fails ends it.
///
/// `held` has the files that the archives among them take in. Each write is of a loop
/// that `writer` wrote, or of none, and so is each of the `folders`.
pub(super) fn apply(
    db: &Connection,
    writer: &Writer,
    writes: &[tools::Write],
    held: &Held,
    folders: &[&str],
    progress: &Progress,
) -> Result<(), Failure> {
    progress.begin_of("storing changes", writes.len() as u64, Unit::Of("changes"));
    let mut keys = Keys { db, writer, last: None };
    for write in writes {
        match write {
            tools::Write::CreateLoop(the_loop) => create_loop(db, writer, the_loop)?,
            tools::Write::PutLoop(the_loop) => {
                keys.of(&the_loop.id)?;
                put_loop(db, the_loop)?;
            }
            tools::Write::PutPhase((id, phase)) => put_phase(db, keys.of(id)?, phase)?,
            tools::Write::PutTask((id, task)) => {
                static SQL: LazyLock<String> = LazyLock::new(replace::<model::Task>);
                write_child(db, &SQL, keys.of(id)?, task)?;
            }
            tools::Write::AppendEvent((id, event)) => {
                static SQL: LazyLock<String> = LazyLock::new(insert::<model::Event>);
                let written = write_child(db, &SQL, keys.of(id)?, event);
                written.map_err(|error| seq_taken(error, id, "event", event.seq))?;
            }
            tools::Write::PutStep((id, step)) => {
                static SQL: LazyLock<String> = LazyLock::new(replace::<model::Step>);
                write_child(db, &SQL, keys.of(id)?, step)?;
            }
            tools::Write::PutStepTotal((id, total)) => put_step_total(db, keys.of(id)?, total)?,
            tools::Write::AppendMemory((id, memory)) => {
                static SQL: LazyLock<String> = LazyLock::new(insert::<model::Memory>);
                let written = write_child(db, &SQL, keys.of(id)?, memory);
                written.map_err(|error| seq_taken(error, id, "lesson", memory.seq))?;
            }
            tools::Write::PutDocument((id, document)) => {
                keys.of(id)?;
                document::put(db, id, document)?;
            }
            tools::Write::ArchiveLoop(archiving) => {
                keys.of(&archiving.loop_id)?;
                archive::keep(db, archiving, held)?;
                keys.last = None;
            }
            tools::Write::RestoreArchive(restoring) => {
                writer::check_archive(db, writer, &restoring.archive_id)?;
                archive::restore(db, restoring)?;
            }
            tools::Write::DeleteArchive(id) => {
                writer::check_archive(db, writer, id)?;
                archive::delete(db, id)?;
            }
            tools::Write::DeleteLoop((id, purge)) => {
                keys.of(id)?;
                delete_loop(db, id, *purge)?;
                keys.last = None;
            }
            tools::Write::PutGoalState((of, state)) => {
                keys.of_run(of)?;
                run::put_goal_state(db, of, state)?;
            }
            tools::Write::AppendLedger((of, entry)) => {
                keys.of_run(of)?;
                run::append_ledger(db, of, entry)?;
            }
            tools::Write::AppendEpisode((of, episode)) => {
                keys.of_run(of)?;
                run::append_episode(db, of, episode)?;
            }
            tools::Write::PutScratchpad((of, key, value, at)) => {
                keys.of_run(of)?;
                run::put_scratchpad(db, of, key, value.as_deref(), *at)?;
            }
            tools::Write::DropHistory((id, at)) => drop_history(db, keys.of(id)?, *at)?,
        }
        progress.add(1);
    }
    // Mostly that of the loop that was written, whose key is known by now.
    folders.iter().try_for_each(|id| keys.of(id).map(drop))
}

/// The keys of the loops that one list of writes is about, which mostly is one.
struct Keys<'a> {
    db: &'a Connection,
    writer: &'a Writer,
    last: Option<(&'a str, i64)>,
}

impl<'a> Keys<'a> {
    fn of(&mut self, id: &'a str) -> Result<i64, Failure> {
        if let Some((last, key)) = self.last
            && last == id
        {
            return Ok(key);
        }
        let key = own_loop_key(self.db, self.writer, id)?;
        self.last = Some((id, key));
        Ok(key)
    }

    /// Checks the loop that a run belongs to, where it belongs to one.
    fn of_run(&mut self, run: &'a tools::Run) -> Result<(), Failure> {
        run.loop_id.as_ref().map_or(Ok(()), |id| self.of(id).map(|_| ()))
    }
}

fn insert<R: Record>() -> String {
    R::sql().insert_child("INSERT")
}

fn replace<R: Record>() -> String {
    R::sql().insert_child("INSERT OR REPLACE")
}

/// Runs `sql` with the loop's key and all of the record; returns the rows changed.
fn write_child<R: Record>(db: &Connection, sql: &str, key: i64, record: &R) -> Result<usize, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    statement.raw_bind_parameter(1, key)?;
    Binder::bind(&mut statement, 2, record)?;
    Ok(statement.raw_execute()?)
}

fn write_loop(db: &Connection, sql: &str, the_loop: &model::Loop) -> Result<usize, Failure> {
    let mut statement = db.prepare_cached(sql)?;
    Binder::bind(&mut statement, 1, the_loop)?;
    Ok(statement.raw_execute()?)
}

fn create_loop(db: &Connection, writer: &Writer, the_loop: &model::Loop) -> Result<(), Failure> {
    static SQL: LazyLock<String> =
        LazyLock::new(|| model::Loop::sql().insert_with(&["logic", "logic_version"]));
    let mut statement = db.prepare_cached(&SQL)?;
    Binder::bind(&mut statement, 1, the_loop)?;
    let after = model::Loop::sql().names.len() + 1;
    statement.raw_bind_parameter(after, &writer.name)?;
    statement.raw_bind_parameter(after + 1, &writer.version)?;
    statement.raw_execute().map_err(|error| loop_refused(error.into(), the_loop))?;
    Ok(())
}

pub(super) fn put_loop(db: &Connection, the_loop: &model::Loop) -> Result<(), Failure> {
    // Nearly always the identity is what it was; the indexes on it then need no work.
    static SAME: LazyLock<String> = LazyLock::new(|| {
        let sql = model::Loop::sql();
        let (set, same) = (sql.assignments(1, &IDENTITY), sql.same(1, &IDENTITY));
        format!("UPDATE loop SET {set} WHERE {same}")
    });
    static RENAMED: LazyLock<String> = LazyLock::new(|| {
        let sql = model::Loop::sql();
        format!("UPDATE loop SET {} WHERE {}", sql.assignments(1, &["id"]), sql.same(1, &["id"]))
    });
    if write_loop(db, &SAME, the_loop)? == 1 {
        return Ok(());
    }
    let changed = write_loop(db, &RENAMED, the_loop).map_err(|e| loop_refused(e, the_loop))?;
    if changed == 1 { Ok(()) } else { Err(StoreError::UnknownLoop { id: the_loop.id.clone() }.into()) }
}

fn put_phase(db: &Connection, key: i64, phase: &model::Phase) -> Result<(), Failure> {
    static UPDATE: LazyLock<String> = LazyLock::new(|| update_by::<model::Phase>(&["phase"]));
    static INSERT: LazyLock<String> = LazyLock::new(|| {
        let sql = model::Phase::sql();
        let values = parameters(2, sql.names.len());
        format!(
            "INSERT INTO {table} (loop_key, {columns}, rank) VALUES (?1, {values}, \
             (SELECT coalesce(max(rank), 0) + 1 FROM {table} WHERE loop_key = ?1))",
            table = sql.table,
            columns = sql.columns,
        )
    });
    if write_child(db, &UPDATE, key, phase)? == 0 {
        write_child(db, &INSERT, key, phase)?;
    }
    Ok(())
}

fn put_step_total(db: &Connection, key: i64, total: &model::StepTotal) -> Result<(), Failure> {
    // Not `OR REPLACE`: which index says "the same" depends on whether there is a task.
    static UPDATE: LazyLock<String> = LazyLock::new(|| update_by::<model::StepTotal>(&["task", "phase"]));
    static INSERT: LazyLock<String> = LazyLock::new(insert::<model::StepTotal>);
    if write_child(db, &UPDATE, key, total)? == 0 {
        write_child(db, &INSERT, key, total)?;
    }
    Ok(())
}

/// The update of the one row of a loop that is named by the columns `by`.
fn update_by<R: Record>(by: &[&str]) -> String {
    let sql = R::sql();
    let (set, same) = (sql.assignments(2, by), sql.same(2, by));
    format!("UPDATE {} SET {set} WHERE loop_key = ?1 AND {same}", sql.table)
}

/// Deletes the loop's row; what is tied to it by its number goes with it.
fn delete_loop(db: &Connection, id: &str, documents_too: bool) -> Result<(), Failure> {
    if db.prepare_cached("DELETE FROM loop WHERE id = ?1")?.execute([id])? == 0 {
        return Err(StoreError::UnknownLoop { id: id.to_owned() }.into());
    }
    if documents_too {
        db.prepare_cached("DELETE FROM loop_document WHERE loop_id = ?1")?.execute([id])?;
    }
    Ok(())
}

/// Deletes what grows without end; all that was counted stays counted.
fn drop_history(db: &Connection, key: i64, at: i64) -> Result<(), Failure> {
    db.prepare_cached("DELETE FROM event WHERE loop_key = ?1")?.execute([key])?;
    db.prepare_cached("DELETE FROM step WHERE loop_key = ?1")?.execute([key])?;
    db.prepare_cached("UPDATE loop SET pruned_at = ?2 WHERE loop_key = ?1")?.execute([key, at])?;
    Ok(())
}

/// Returns the extended code of a failed constraint.
pub(super) fn constraint(error: &Failure) -> Option<i32> {
    match error {
        Failure::Sql(error) => error
            .sqlite_error()
            .filter(|e| e.code == rusqlite::ErrorCode::ConstraintViolation)
            .map(|e| e.extended_code),
        _ => None,
    }
}

pub(super) fn loop_refused(error: Failure, the_loop: &model::Loop) -> Failure {
    match constraint(&error) {
        Some(rusqlite::ffi::SQLITE_CONSTRAINT_UNIQUE) => StoreError::LoopExists {
            id: the_loop.id.clone(),
            slug: the_loop.slug.clone(),
            project_root: the_loop.project_root.clone(),
        }
        .into(),
        Some(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY) => {
            StoreError::UnknownProject { id: the_loop.project_id.clone() }.into()
        }
        _ => error,
    }
}

fn seq_taken(error: Failure, id: &str, record: &'static str, seq: u64) -> Failure {
    match constraint(&error) {
        Some(rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY) => {
            StoreError::SeqTaken { id: id.to_owned(), record, seq }.into()
        }
        _ => error,
    }
}
