//! All rows of one loop as one value, and the value as rows again.
//!
//! Tables and columns are taken from the schema, by name. What a snapshot has and
//! the schema has not is refused by name; what the schema has since gained gets its
//! default.

use std::collections::{BTreeMap, BTreeSet};

use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use serde::{Deserialize, Serialize};

use super::apply::{constraint, loop_refused, put_loop};
use super::blob::{BlobFault, FILE_MAX, unpack_up_to};
use super::cell::Cell;
use super::error::{Failure, StoreError};
use super::load::{all, first, loop_key};
use super::record::{Part as _, Reader, Record as _, parameters, quoted};
use super::schema::{self, DOCUMENT, Table, Tie};
use crate::contract::model;

const FORMAT: &str = "loop-state loop";
const VERSION: u32 = 1;

const LOOP: &str = "loop";

/// All rows of one loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Snapshot {
    format: String,
    version: u32,
    /// Of the database that the rows were taken from.
    schema: i32,
    /// By table.
    tables: BTreeMap<String, Rows>,
}

/// Rows of one table, without the numbers that only their database knows them by.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Cell>>,
}

/// A document's revision in a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Revision<'a> {
    pub path: &'a str,
    pub revision: i64,
    pub at: i64,
    pub bytes: u64,
    pub sha256: &'a str,
    pub content: &'a [u8],
}

/// Reads all rows of a loop.
pub(super) fn take(db: &Connection, id: &str) -> Result<Snapshot, Failure> {
    let key = loop_key(db, id)?;
    let mut tables = BTreeMap::new();
    for table in schema::tables_of_a_loop(db)? {
        let columns: Vec<String> = table.kept().map(|column| column.name.clone()).collect();
        let (tie, own) = match table.tie() {
            Some(Tie::Id) => ("loop_id", Cell::text(id)),
            _ => ("loop_key", Cell(Value::Integer(key))),
        };
        let sql = format!(
            "SELECT {} FROM {} WHERE {tie} = ?1 ORDER BY {}",
            table.kept_columns(),
            quoted(&table.name),
            table.order()
        );
        let rows = all(db, &sql, [own], |row| schema::cells(row, &table.name, columns.len()))?;
        tables.insert(table.name, Rows { columns, rows });
    }
    let schema = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    Ok(Snapshot { format: FORMAT.to_owned(), version: VERSION, schema, tables })
}

impl Rows {
    fn place(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|name| name == column)
    }

    /// The cells of one column, in the order of the rows.
    fn column(&self, column: &str) -> impl Iterator<Item = &Cell> {
        let place = self.place(column);
        self.rows.iter().filter_map(move |row| row.get(place?))
    }
}

impl Snapshot {
    pub(super) fn to_json(&self) -> Result<Vec<u8>, Failure> {
        serde_json::to_vec(self).map_err(|error| Failure::Value(error.to_string()))
    }

    /// Reads a snapshot and checks that it is one, as far as its own rows tell.
    pub(super) fn from_json(json: &[u8], tables: &[Table]) -> Result<Snapshot, String> {
        let snapshot: Snapshot =
            serde_json::from_slice(json).map_err(|error| format!("its rows cannot be read: {error}"))?;
        snapshot.check(tables)?;
        Ok(snapshot)
    }

    /// Checks that the rows fit the schema and belong to one loop.
    pub(super) fn check(&self, tables: &[Table]) -> Result<(), String> {
        if self.format != FORMAT || self.version != VERSION {
            return Err(format!("its rows are of the kind {:?}, version {}", self.format, self.version));
        }
        for (name, rows) in &self.tables {
            let table = tables.iter().find(|table| table.name == *name && table.tie().is_some());
            let table = table.ok_or_else(|| format!("it has rows of the unknown table {name:?}"))?;
            let mut seen = BTreeSet::new();
            for column in &rows.columns {
                if !table.kept().any(|known| known.name == *column) {
                    return Err(format!("it has the unknown column {column:?} in the table {name}"));
                }
                if !seen.insert(column) {
                    return Err(format!("it has the column {column:?} of the table {name} twice"));
                }
            }
            if rows.rows.iter().any(|row| row.len() != rows.columns.len()) {
                return Err(format!("a row of the table {name} has more or fewer values than columns"));
            }
        }
        let (id, project) = (self.the_text("id")?, self.the_text("project_id")?);
        self.the_text("slug")?;
        // All of them, also those without a value: a missing column gives no cell at all.
        let foreign = |name: &String, column: &str, own: &str| match self.tables.get(name) {
            Some(rows) if rows.rows.is_empty() => false,
            Some(rows) if rows.place(column).is_none() => true,
            Some(rows) => rows.column(column).any(|cell| cell.as_text() != Some(own)),
            None => false,
        };
        for table in tables {
            if table.has("project_id") && foreign(&table.name, "project_id", project) {
                return Err(format!("a row of the table {} belongs to another project", table.name));
            }
            if table.tie() == Some(Tie::Id) && foreign(&table.name, "loop_id", id) {
                return Err(format!("a row of the table {} belongs to another loop", table.name));
            }
        }
        Ok(())
    }

    /// The one row of the loop itself.
    fn the_row(&self) -> Result<(&Rows, &Vec<Cell>), String> {
        match self.tables.get(LOOP) {
            Some(rows) => match rows.rows.as_slice() {
                [row] => Ok((rows, row)),
                several => Err(format!("it has {} loops instead of one", several.len())),
            },
            None => Err("it has no loop".to_owned()),
        }
    }

    /// A text of the loop's row that is never absent.
    fn the_text(&self, column: &str) -> Result<&str, String> {
        let (rows, row) = self.the_row()?;
        let cell = rows.place(column).and_then(|place| row.get(place));
        cell.and_then(Cell::as_text).ok_or_else(|| format!("its loop has no {column}"))
    }

    /// The uuid of the loop.
    pub(super) fn id(&self) -> Result<&str, String> {
        self.the_text("id")
    }

    /// The slug of the loop.
    pub(super) fn slug(&self) -> Result<&str, String> {
        self.the_text("slug")
    }

    /// Every revision of every document.
    pub(super) fn revisions(&self) -> Result<Vec<Revision<'_>>, String> {
        let Some(rows) = self.tables.get(DOCUMENT) else { return Ok(Vec::new()) };
        let place =
            |column: &str| rows.place(column).ok_or_else(|| format!("its documents have no column {column}"));
        if rows.rows.is_empty() {
            return Ok(Vec::new());
        }
        let [path, revision, at] = [place("path")?, place("revision")?, place("at")?];
        let [bytes, sha256, content] = [place("bytes")?, place("sha256")?, place("content")?];
        rows.rows
            .iter()
            .map(|row| {
                let cell = |place: usize| row.get(place);
                let revision = || {
                    Some(Revision {
                        path: cell(path)?.as_text()?,
                        revision: cell(revision)?.as_integer()?,
                        at: cell(at)?.as_integer()?,
                        bytes: u64::try_from(cell(bytes)?.as_integer()?).ok()?,
                        sha256: cell(sha256)?.as_text()?,
                        content: cell(content)?.as_blob()?,
                    })
                };
                revision().ok_or_else(|| "a document has a value of the wrong kind".to_owned())
            })
            .collect()
    }

    /// Compares every revision with its length and digest.
    pub(super) fn check_revisions(&self) -> Result<(), String> {
        for Revision { path, revision, bytes, sha256, content, .. } in self.revisions()? {
            let fault = |fault: BlobFault| format!("revision {revision} of the document {path:?}: {fault}");
            let text = unpack_up_to(FILE_MAX, content, bytes, sha256).map_err(fault)?;
            String::from_utf8(text).map_err(|_| fault(BlobFault::NotText))?;
        }
        Ok(())
    }

    /// The loop's row as a record.
    pub(super) fn the_loop(&self, db: &Connection, tables: &[Table]) -> Result<model::Loop, Failure> {
        let (rows, row) = self.the_row().map_err(Failure::Value)?;
        let known = tables.iter().find(|table| table.name == LOOP);
        let mut values = Vec::new();
        let mut columns = Vec::new();
        for name in &model::Loop::sql().names {
            // What a row becomes, the database says: the record is read as from a table.
            let value = match rows.place(name).and_then(|place| row.get(place)) {
                Some(cell) => {
                    values.push(cell.clone());
                    format!("?{}", values.len())
                }
                None => {
                    let default = known.and_then(|t| t.columns.iter().find(|c| c.name == *name));
                    default.and_then(|c| c.default.clone()).unwrap_or_else(|| "NULL".to_owned())
                }
            };
            columns.push(format!("{value} AS {}", quoted(name)));
        }
        let sql = format!("SELECT {}", columns.join(", "));
        let found =
            first(db, &sql, params_from_iter(&values), |row| model::Loop::read(&mut Reader::new(row)));
        found?.ok_or_else(|| Failure::Value("a row without a table came to nothing".to_owned()))
    }

    /// Inserts all rows, as the loop `target`; checked rows only.
    ///
    /// Whatever names the loop follows it: its documents, and the runs that have its
    /// slug as their name. Documents that were kept under its id are not doubled.
    pub(super) fn insert(&self, db: &Connection, target: &model::Loop) -> Result<(), Failure> {
        let slug = self.slug().map_err(Failure::Value)?;
        let kept = self.kept_documents(db, &target.id)?;
        let (loops, row) = self.the_row().map_err(Failure::Value)?;
        let row = changed(loops, row, |column| match column {
            "id" => Some(&target.id),
            "slug" => Some(&target.slug),
            "project_id" => Some(&target.project_id),
            "project_root" => Some(&target.project_root),
            _ => None,
        });
        insert_row(db, LOOP, &loops.columns, None, &row)
            .map_err(|error| unfit(loop_refused(error, target), LOOP))?;
        put_loop(db, target)?;
        let key = loop_key(db, &target.id)?;
        for (name, rows) in self.tables.iter().filter(|(name, _)| *name != LOOP) {
            let tie = if name == DOCUMENT { None } else { Some(key) };
            let run = rows.place("run_id");
            for row in &rows.rows {
                if name == DOCUMENT && kept.contains(&document_name(rows, row)) {
                    continue;
                }
                let own_run =
                    run.and_then(|place| row.get(place)).is_some_and(|cell| cell.as_text() == Some(slug));
                let row = changed(rows, row, |column| match column {
                    "loop_id" => Some(&target.id),
                    "project_id" => Some(&target.project_id),
                    "run_id" if own_run => Some(&target.slug),
                    _ => None,
                });
                let written = insert_row(db, name, &rows.columns, tie, &row);
                written.map_err(|error| taken(error, name, rows, &row))?;
            }
        }
        Ok(())
    }

    /// The revisions that the database has of this id already, by path and number.
    ///
    /// Each of them has to be one of ours: what stands there is not mixed with what comes.
    fn kept_documents(&self, db: &Connection, id: &str) -> Result<BTreeSet<(String, i64)>, Failure> {
        let live = live_documents(db, id)?;
        if let Some(Live { path, revision, .. }) = self.first_other(&live)? {
            let (id, path) = (id.to_owned(), path.clone());
            return Err(StoreError::DocumentsDiffer { id, path, revision: *revision }.into());
        }
        Ok(live.into_iter().map(|found| (found.path, found.revision)).collect())
    }

    /// Whether the database has documents of the loop that are not in here.
    pub(super) fn documents_differ(&self, db: &Connection) -> Result<bool, Failure> {
        let live = live_documents(db, self.id().map_err(Failure::Value)?)?;
        Ok(self.first_other(&live)?.is_some())
    }

    /// The first of `live` that is not in here, or is otherwise.
    fn first_other<'a>(&self, live: &'a [Live]) -> Result<Option<&'a Live>, Failure> {
        let own = self.revisions().map_err(Failure::Value)?;
        let own: BTreeMap<_, _> = own.iter().map(|own| ((own.path, own.revision), own)).collect();
        let same =
            |found: &Live| own.get(&(found.path.as_str(), found.revision)).is_some_and(|own| found.is(own));
        Ok(live.iter().find(|found| !same(found)))
    }
}

/// A document's revision in the database, without its content.
struct Live {
    path: String,
    revision: i64,
    at: i64,
    bytes: i64,
    sha256: String,
}

impl Live {
    fn is(&self, other: &Revision<'_>) -> bool {
        self.path == other.path
            && self.revision == other.revision
            && self.at == other.at
            && u64::try_from(self.bytes) == Ok(other.bytes)
            && self.sha256 == other.sha256
    }
}

fn live_documents(db: &Connection, id: &str) -> Result<Vec<Live>, Failure> {
    let sql = "SELECT path, revision, at, bytes, sha256 FROM loop_document WHERE loop_id = ?1 \
               ORDER BY path, revision";
    all(db, sql, [id], |row| {
        Ok(Live {
            path: row.get(0)?,
            revision: row.get(1)?,
            at: row.get(2)?,
            bytes: row.get(3)?,
            sha256: row.get(4)?,
        })
    })
}

fn document_name(rows: &Rows, row: &[Cell]) -> (String, i64) {
    let cell = |column| rows.place(column).and_then(|place| row.get(place));
    let path = cell("path").and_then(Cell::as_text).unwrap_or_default();
    (path.to_owned(), cell("revision").and_then(Cell::as_integer).unwrap_or_default())
}

/// The row with other texts in the columns that `with` names.
fn changed<'a>(rows: &Rows, row: &[Cell], with: impl Fn(&str) -> Option<&'a String>) -> Vec<Cell> {
    let columns = rows.columns.iter().zip(row);
    columns.map(|(column, cell)| with(column).map_or_else(|| cell.clone(), |text| Cell::text(text))).collect()
}

/// Inserts one row by the names of its columns, tied to a loop where there is a number.
pub(super) fn insert_row(
    db: &Connection,
    table: &str,
    columns: &[String],
    tie: Option<i64>,
    row: &[Cell],
) -> Result<(), Failure> {
    let mut names: Vec<_> = columns.iter().map(|name| quoted(name)).collect();
    let mut cells: Vec<Cell> = row.to_vec();
    if let Some(key) = tie {
        names.push(quoted("loop_key"));
        cells.push(Cell(Value::Integer(key)));
    }
    let values = parameters(1, cells.len());
    let sql = format!("INSERT INTO {} ({}) VALUES ({values})", quoted(table), names.join(", "));
    db.prepare_cached(&sql)?.execute(params_from_iter(&cells))?;
    Ok(())
}

/// A row of a run that stands in the way, by the run's name.
fn taken(error: Failure, table: &str, rows: &Rows, row: &[Cell]) -> Failure {
    let text = |column| rows.place(column).and_then(|place| row.get(place)).and_then(Cell::as_text);
    match (constraint(&error), text("project_id"), text("run_id")) {
        (Some(rusqlite::ffi::SQLITE_CONSTRAINT_PRIMARYKEY), Some(project), Some(run)) => {
            StoreError::RunTaken { run: run.to_owned(), project: project.to_owned() }.into()
        }
        _ => unfit(error, table),
    }
}

/// A row that the table does not take is the fault of the row.
pub(super) fn unfit(error: Failure, table: &str) -> Failure {
    match &error {
        Failure::Sql(sql) if constraint(&error).is_some() => {
            Failure::Value(format!("a row of the table {table} does not fit in: {sql}"))
        }
        _ => error,
    }
}
