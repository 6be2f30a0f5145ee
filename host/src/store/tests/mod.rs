//! What the tests share: stores in fresh folders, and random records.

mod access;
mod archive;
mod concurrent;
mod documents;
mod files;
mod migration;
mod projects;
mod records;
mod sample;
mod transfer;
mod upkeep;
mod writers;

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use tempfile::TempDir;

use super::open::Options;
use super::{FILE, ProjectRow, Store, StoreError, Tx};
use crate::contract::{model, tools};

const PROJECT: &str = "6b1f0d0e-0000-4000-8000-000000000001";
const ROOT: &str = "/home/someone/project";

/// Short, so that a test of a held lock is quick.
fn impatient() -> Options {
    Options { busy_timeout: Duration::from_millis(20), ..Options::default() }
}

fn fresh() -> (TempDir, Store) {
    let folder = tempfile::tempdir().unwrap();
    let mut store = Store::open(folder.path()).unwrap();
    write(&mut store, register);
    (folder, store)
}

fn write(store: &mut Store, change: impl FnOnce(&Tx<'_>)) {
    let tx = store.write().unwrap();
    change(&tx);
    tx.commit().unwrap();
}

fn register(tx: &Tx<'_>) {
    let project = ProjectRow {
        id: PROJECT.into(),
        name: "project".into(),
        remote_key: None,
        repo_key: Some("/home/someone/project/.git".into()),
    };
    tx.register_root(&project, ROOT, None, 1).unwrap();
}

/// A loop of the test project, with the given number's id and slug.
fn a_loop(n: u64) -> model::Loop {
    let mut the_loop = sample::Sample::new(n).a_loop();
    the_loop.id = format!("loop-{n}");
    the_loop.slug = format!("slug-{n}");
    the_loop
}

fn create(tx: &Tx<'_>, the_loop: &model::Loop) {
    tx.apply(&[tools::Write::CreateLoop(the_loop.clone())]).unwrap();
}

fn slugs(store: &mut Store) -> Vec<String> {
    let tx = store.read().unwrap();
    match tx.answer(PROJECT, ROOT, &tools::Query::LoopSlugs).unwrap() {
        Some(tools::Answer::LoopSlugs(slugs)) => slugs,
        other => panic!("another query's answer: {other:?}"),
    }
}

/// A connection of someone else, who leaves a log behind when it closes.
fn foreign(path: &Path) -> Connection {
    let db =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE)
            .unwrap();
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
    db
}

/// Fails with the error's text when it lacks one of the words.
#[track_caller]
fn says(error: &StoreError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text:?} lacks {word:?}");
    }
}

/// Every row of every table, without the numbers that only one database knows rows by.
fn dump(store: &Store) -> std::collections::BTreeMap<String, Vec<String>> {
    let tables = super::schema::tables(&store.db).unwrap();
    let rows = |table: &super::schema::Table| {
        let sql = format!("SELECT {} FROM \"{}\"", table.kept_columns(), table.name);
        let mut statement = store.db.prepare(&sql).unwrap();
        let count = statement.column_count();
        let cells = |row: &rusqlite::Row<'_>| -> rusqlite::Result<Vec<rusqlite::types::Value>> {
            (0..count).map(|n| row.get(n)).collect()
        };
        let mut rows: Vec<String> =
            statement.query_map([], cells).unwrap().map(|row| format!("{:?}", row.unwrap())).collect();
        rows.sort();
        rows
    };
    tables.iter().map(|table| (table.name.clone(), rows(table))).collect()
}
