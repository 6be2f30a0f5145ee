//! The stored records as columns: the one place that says which columns a
//! record has and in which order.
//!
//! A record's list of fields gives its column names, binds it to a statement and
//! reads it from a row, so the three cannot differ. A record inside a record
//! takes the field's name as a prefix: `blocked.op` is the column `blocked_op`.
//! A test compares the names with the schema.

use std::sync::LazyLock;

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::{Row, Statement};

use super::error::{Failure, StoreError};
use crate::contract::model;

/// A value that takes one or more neighbouring columns.
pub(super) trait Part: Sized {
    /// Appends the names of the columns.
    fn names(name: &str, to: &mut Vec<String>);
    fn bind(&self, to: &mut Binder<'_, '_>) -> Result<(), Failure>;
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, Failure>;
}

/// A record with a table of its own.
pub(super) trait Record: Part {
    fn sql() -> &'static Sql;
}

/// Fills a statement's parameters from left to right.
pub(super) struct Binder<'s, 'c> {
    statement: &'s mut Statement<'c>,
    sql: &'static Sql,
    /// Parameters before the record's first column.
    before: usize,
    next: usize,
}

impl<'s, 'c> Binder<'s, 'c> {
    /// Binds all of `record`, from parameter `first` (counted from 1) on.
    pub(super) fn bind<R: Record>(
        statement: &'s mut Statement<'c>,
        first: usize,
        record: &R,
    ) -> Result<(), Failure> {
        let mut binder = Binder { statement, sql: R::sql(), before: first, next: first };
        record.bind(&mut binder)
    }

    fn value(&mut self, value: ToSqlOutput<'_>) -> Result<(), Failure> {
        self.statement.raw_bind_parameter(self.next, value)?;
        self.next += 1;
        Ok(())
    }

    fn nulls(&mut self, count: usize) -> Result<(), Failure> {
        (0..count).try_for_each(|_| self.value(ToSqlOutput::Borrowed(ValueRef::Null)))
    }

    fn too_large(&self, value: u64) -> Failure {
        let name = self.sql.names.get(self.next - self.before).map_or("?", String::as_str);
        let column = format!("{}.{name}", self.sql.table);
        StoreError::TooLarge { column, value }.into()
    }
}

/// Reads a row's columns from left to right.
pub(super) struct Reader<'r, 's> {
    row: &'r Row<'s>,
    next: usize,
}

impl<'r, 's> Reader<'r, 's> {
    pub(super) fn new(row: &'r Row<'s>) -> Self {
        Reader { row, next: 0 }
    }

    fn value(&mut self) -> Result<ValueRef<'r>, Failure> {
        let value = self.row.get_ref(self.next)?;
        self.next += 1;
        Ok(value)
    }

    fn is_null(&self) -> Result<bool, Failure> {
        Ok(matches!(self.row.get_ref(self.next)?, ValueRef::Null))
    }

    /// The failure of the column that was read last.
    fn unfit(&self, wanted: &str) -> Failure {
        let statement: &Statement<'_> = self.row.as_ref();
        let column = statement.column_name(self.next - 1).unwrap_or("?");
        Failure::Value(format!("column {column} holds something other than {wanted}"))
    }
}

/// A value of exactly one column.
trait Scalar: Sized {
    const WANTED: &'static str;
    /// Returns the value for SQLite, or the number that does not fit.
    fn value(&self) -> Result<ToSqlOutput<'_>, u64>;
    fn from(value: ValueRef<'_>) -> Option<Self>;
}

impl Scalar for String {
    const WANTED: &'static str = "text";
    fn value(&self) -> Result<ToSqlOutput<'_>, u64> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Text(self.as_bytes())))
    }
    fn from(value: ValueRef<'_>) -> Option<Self> {
        value.as_str().ok().map(str::to_owned)
    }
}

macro_rules! integers {
    ($($type:ident: $wanted:literal),*) => {$(
        impl Scalar for $type {
            const WANTED: &'static str = $wanted;
            // For the types that always fit, the failing branch is dead.
            #[allow(clippy::unnecessary_fallible_conversions, clippy::cast_lossless)]
            fn value(&self) -> Result<ToSqlOutput<'_>, u64> {
                match i64::try_from(*self) {
                    Ok(value) => Ok(ToSqlOutput::Owned(Value::Integer(value))),
                    Err(_) => Err(*self as u64),
                }
            }
            #[allow(clippy::unnecessary_fallible_conversions)]
            fn from(value: ValueRef<'_>) -> Option<Self> {
                value.as_i64().ok().and_then(|value| Self::try_from(value).ok())
            }
        }
    )*};
}
integers!(i64: "an integer", u64: "a count", u32: "a small count");

impl Scalar for bool {
    const WANTED: &'static str = "0 or 1";
    fn value(&self) -> Result<ToSqlOutput<'_>, u64> {
        let integer = if *self { 1 } else { 0 };
        Ok(ToSqlOutput::Owned(Value::Integer(integer)))
    }
    fn from(value: ValueRef<'_>) -> Option<Self> {
        match value.as_i64().ok()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Scalar for f64 {
    const WANTED: &'static str = "a number";
    fn value(&self) -> Result<ToSqlOutput<'_>, u64> {
        Ok(ToSqlOutput::Owned(Value::Real(*self)))
    }
    fn from(value: ValueRef<'_>) -> Option<Self> {
        value.as_f64().ok()
    }
}

impl Scalar for Vec<String> {
    const WANTED: &'static str = "a JSON list of texts";
    fn value(&self) -> Result<ToSqlOutput<'_>, u64> {
        if self.is_empty() {
            return Ok(ToSqlOutput::Borrowed(ValueRef::Text(b"[]")));
        }
        let list = self.iter().cloned().map(serde_json::Value::String).collect();
        Ok(ToSqlOutput::Owned(Value::Text(serde_json::Value::Array(list).to_string())))
    }
    fn from(value: ValueRef<'_>) -> Option<Self> {
        match value.as_bytes().ok()? {
            b"[]" => Some(Vec::new()),
            json => serde_json::from_slice(json).ok(),
        }
    }
}

fn bind_scalar<T: Scalar>(value: &T, to: &mut Binder<'_, '_>) -> Result<(), Failure> {
    match value.value() {
        Ok(value) => to.value(value),
        Err(value) => Err(to.too_large(value)),
    }
}

fn read_scalar<T: Scalar>(from: &mut Reader<'_, '_>) -> Result<T, Failure> {
    T::from(from.value()?).ok_or_else(|| from.unfit(T::WANTED))
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl Part for $type {
            fn names(name: &str, to: &mut Vec<String>) {
                to.push(name.to_owned());
            }
            fn bind(&self, to: &mut Binder<'_, '_>) -> Result<(), Failure> {
                bind_scalar(self, to)
            }
            fn read(from: &mut Reader<'_, '_>) -> Result<Self, Failure> {
                read_scalar(from)
            }
        }
    )*};
}
scalars!(String, i64, u64, u32, bool, f64, Vec<String>);

impl<T: Scalar> Part for Option<T> {
    fn names(name: &str, to: &mut Vec<String>) {
        to.push(name.to_owned());
    }
    fn bind(&self, to: &mut Binder<'_, '_>) -> Result<(), Failure> {
        match self {
            Some(value) => bind_scalar(value, to),
            None => to.nulls(1),
        }
    }
    fn read(from: &mut Reader<'_, '_>) -> Result<Self, Failure> {
        if from.is_null()? {
            from.next += 1;
            return Ok(None);
        }
        read_scalar(from).map(Some)
    }
}

/// Appends the columns of the field that `_of` takes; the closure only tells its type.
fn names_of<R, P: Part>(_of: fn(&R) -> &P, prefix: &str, field: &str, to: &mut Vec<String>) {
    let field = field.trim_start_matches("r#");
    if prefix.is_empty() {
        P::names(field, to);
    } else {
        P::names(&format!("{prefix}_{field}"), to);
    }
}

macro_rules! part {
    ($type:ident { $($field:ident),* $(,)? }) => {
        impl Part for model::$type {
            fn names(name: &str, to: &mut Vec<String>) {
                $(names_of(|record: &model::$type| &record.$field, name, stringify!($field), to);)*
            }
            fn bind(&self, to: &mut Binder<'_, '_>) -> Result<(), Failure> {
                $(self.$field.bind(to)?;)*
                Ok(())
            }
            fn read(from: &mut Reader<'_, '_>) -> Result<Self, Failure> {
                Ok(model::$type { $($field: Part::read(from)?),* })
            }
        }
    };
}

/// A part that may be absent as a whole: its first column is then null, and
/// never is when it is there.
macro_rules! optional_part {
    ($type:ident { $($field:ident),* $(,)? }) => {
        part!($type { $($field),* });
        impl Part for Option<model::$type> {
            fn names(name: &str, to: &mut Vec<String>) {
                <model::$type as Part>::names(name, to);
            }
            fn bind(&self, to: &mut Binder<'_, '_>) -> Result<(), Failure> {
                match self {
                    Some(record) => record.bind(to),
                    None => to.nulls([$(stringify!($field)),*].len()),
                }
            }
            fn read(from: &mut Reader<'_, '_>) -> Result<Self, Failure> {
                if from.is_null()? {
                    from.next += [$(stringify!($field)),*].len();
                    return Ok(None);
                }
                <model::$type as Part>::read(from).map(Some)
            }
        }
    };
}

/// A record, its table, and what names its row: the loop's own key goes before
/// it, or nothing for the loop itself.
macro_rules! record {
    ($type:ident in $table:literal { $($field:ident),* $(,)? }) => {
        part!($type { $($field),* });
        impl Record for model::$type {
            fn sql() -> &'static Sql {
                static SQL: LazyLock<Sql> = LazyLock::new(|| Sql::of::<model::$type>($table));
                &SQL
            }
        }
    };
}

optional_part!(Block { op, task, reason });
optional_part!(Judgment { check, pass, score });
optional_part!(NowPointer { agent, task, step, since });
part!(Marks { revision, event_seq, log_bytes, step_seq, memory_seq, memory_bytes });
part!(StepQuality {
    explicit,
    auto_next,
    auto_complete,
    auto_finish,
    missing_returns,
    orphan_returns,
    duplicate_returns,
    backfilled,
    clock_corrections,
});

record!(Loop in "loop" {
    id, slug, title, goal, mode, status, phase, project_id, project_root, project_key,
    default_branch, branch_mode, feature_branch, legal, memory_harvest, docs_sync,
    deferred_gate, qa_report, f_unresolved_pr, f_security_deferred, total_failed_gates,
    splits_done, qa_rounds, awaiting_user, blocked, now, goal_config, goal_config_sha256,
    mcp_version, created_at, updated_at, finished_at, pruned_at, marks, quality,
});
record!(Phase in "loop_phase" { phase, status, updated_at });
record!(Task in "task" {
    taskid, position, title, description, kind, tech, status, depends_on, issue, pr, branch,
    last_evidence, retries, security_rounds, review_rounds, superseded_by, created_at,
    updated_at, completed_at,
});
record!(Event in "event" {
    seq, at, event, phase, task, from, to, agent, note, evidence, issue, pr, branch,
});
record!(Step in "step" {
    seq, task, phase, agent, step, attempt, started_at, agent_returned_at, outcome, ended_at,
    ended_by, source,
});
record!(StepTotal in "step_total" {
    task, phase, opened, closed, wall_ms, agent_ms, orchestrator_ms, unattributed_ms,
    first_started_at,
});
record!(Memory in "memory" { seq, at, agent, task, note });
record!(GoalState in "goal_state" {
    target, satisfied, passed, failed, total, reason, iteration, config_sha256,
    evidence_sha256, workdir, updated_at,
});
record!(LedgerEntry in "ledger" {
    seq, at, kind, iteration, detail, node_id, tokens, cost_usd, hash,
});
record!(Episode in "episode" {
    seq, at, node_id, provider_id, role, iteration, output, tokens, cost_usd, duration_ms,
    prompt_digest, error, judgment,
});

/// The pieces of SQL that follow from a record's columns.
pub(super) struct Sql {
    pub table: &'static str,
    pub names: Vec<String>,
    /// The columns, quoted, with commas between.
    pub columns: String,
}

impl Sql {
    fn of<R: Part>(table: &'static str) -> Sql {
        let mut names = Vec::new();
        R::names("", &mut names);
        let columns = names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
        Sql { table, names, columns }
    }

    /// `insert` is `INSERT` or one of its forms; parameter 1 is the loop's key.
    pub(super) fn insert_child(&self, insert: &str) -> String {
        let values = parameters(2, self.names.len());
        format!("{insert} INTO {} (loop_key, {}) VALUES (?1, {values})", self.table, self.columns)
    }

    /// The insertion of the record by itself, and of further columns after its own.
    pub(super) fn insert_with(&self, further: &[&str]) -> String {
        let values = parameters(1, self.names.len() + further.len());
        format!("INSERT INTO {} ({}, {}) VALUES ({values})", self.table, self.columns, further.join(", "))
    }

    /// The assignments of an `UPDATE`, without the columns in `except`.
    ///
    /// Column n is parameter `first` + n, whether it is left out or not.
    pub(super) fn assignments(&self, first: usize, except: &[&str]) -> String {
        let assigned = self.names.iter().enumerate().filter(|(_, name)| !except.contains(&name.as_str()));
        assigned.map(|(n, name)| format!("{} = ?{}", quoted(name), first + n)).collect::<Vec<_>>().join(", ")
    }

    /// The condition that the columns in `of` have the values of a record bound
    /// from `first` on; absent equals absent.
    pub(super) fn same(&self, first: usize, of: &[&str]) -> String {
        let compared = self.names.iter().enumerate().filter(|(_, name)| of.contains(&name.as_str()));
        compared
            .map(|(n, name)| format!("{} IS ?{}", quoted(name), first + n))
            .collect::<Vec<_>>()
            .join(" AND ")
    }
}

/// Quoted, because some names (`from`, `to`) are words of SQL.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

pub(super) fn parameters(first: usize, count: usize) -> String {
    (first..first + count).map(|n| format!("?{n}")).collect::<Vec<_>>().join(", ")
}

/// The columns of a loop's marks, which are read alone as well.
pub(super) fn mark_columns() -> String {
    let mut names = Vec::new();
    names_of(|record: &model::Loop| &record.marks, "", "marks", &mut names);
    names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ")
}
