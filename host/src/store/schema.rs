//! Which tables and columns there are, as the database itself tells it.
//!
//! Whatever copies or moves whole rows goes by this, so that a column or table
//! that a later version adds is not forgotten.

use rusqlite::Connection;

use super::cell::Cell;
use super::error::Failure;
use super::load::all;
use super::record::quoted;

/// The rows of documents; they are tied to a loop by its uuid.
pub(super) const DOCUMENT: &str = "loop_document";

/// A table of the database.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub name: String,
    pub columns: Vec<Column>,
}

/// One of its columns.
#[derive(Clone, Debug)]
pub(super) struct Column {
    pub name: String,
    /// The default as SQL.
    pub default: Option<String>,
    /// Place in the primary key, from 1; 0 for one outside of it.
    pub key: u32,
    /// A number that only this database knows the row by.
    pub surrogate: bool,
}

/// How a table's rows belong to a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tie {
    /// By the loop's number here.
    Key,
    /// By its uuid.
    Id,
}

/// Returns every table of this program, by name.
pub(super) fn tables(db: &Connection) -> Result<Vec<Table>, Failure> {
    let sql = "SELECT t.name, c.name, c.dflt_value, c.pk, \
               c.pk = 1 AND NOT t.wr AND upper(c.type) = 'INTEGER' AND \
               (SELECT count(*) FROM pragma_table_info(t.name) WHERE pk > 0) = 1 \
               FROM pragma_table_list AS t JOIN pragma_table_info(t.name) AS c \
               WHERE t.schema = 'main' AND t.type = 'table' AND t.name NOT GLOB 'sqlite_*' \
               ORDER BY t.name, c.cid";
    let mut tables: Vec<Table> = Vec::new();
    let rows = all(db, sql, [], |row| {
        let table: String = row.get(0)?;
        let name: String = row.get(1)?;
        let rowid: bool = row.get(4)?;
        let surrogate = rowid || name == "loop_key" || name == "archive_key";
        Ok((table, Column { name, default: row.get(2)?, key: row.get(3)?, surrogate }))
    })?;
    for (name, column) in rows {
        match tables.last_mut().filter(|table| table.name == name) {
            Some(table) => table.columns.push(column),
            None => tables.push(Table { name, columns: vec![column] }),
        }
    }
    Ok(tables)
}

/// Returns the tables with rows that belong to a loop, the loop's own included.
pub(super) fn tables_of_a_loop(db: &Connection) -> Result<Vec<Table>, Failure> {
    Ok(tables(db)?.into_iter().filter(|table| table.tie().is_some()).collect())
}

impl Table {
    pub(super) fn has(&self, column: &str) -> bool {
        self.columns.iter().any(|c| c.name == column)
    }

    pub(super) fn tie(&self) -> Option<Tie> {
        if self.has("loop_key") {
            Some(Tie::Key)
        } else if self.name == DOCUMENT {
            Some(Tie::Id)
        } else {
            None
        }
    }

    /// The columns that mean something outside of this database.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| !column.surrogate)
    }

    /// Their names, quoted, with commas between.
    pub(super) fn kept_columns(&self) -> String {
        list(self.kept())
    }

    /// The order of rows that does not depend on when they were written.
    pub(super) fn order(&self) -> String {
        let mut key: Vec<_> = self.kept().filter(|column| column.key > 0).collect();
        key.sort_by_key(|column| column.key);
        if key.is_empty() { self.kept_columns() } else { list(key.into_iter()) }
    }
}

fn list<'a>(columns: impl Iterator<Item = &'a Column>) -> String {
    columns.map(|column| quoted(&column.name)).collect::<Vec<_>>().join(", ")
}

/// Reads the first `count` columns of a row of `table` as they are.
pub(super) fn cells(row: &rusqlite::Row<'_>, table: &str, count: usize) -> Result<Vec<Cell>, Failure> {
    (0..count)
        .map(|n| {
            Cell::of(row.get_ref(n)?)
                .ok_or_else(|| Failure::Value(format!("a text in the table {table} is not UTF-8")))
        })
        .collect()
}
