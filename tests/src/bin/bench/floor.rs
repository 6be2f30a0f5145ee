//! The floor: the statements and files of one `task_setStatus` in plain Rust,
//! without rules, component or protocol.
//!
//! At the same durability, on a database that the server made: one transaction
//! that reads the whole loop and writes its row, one task and one event; then a
//! line at the end of the log and a whole page in place of the old one.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use loop_state_tests::World;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, Params, params_from_iter};
use rustix::fs::{CWD, RenameFlags, renameat_with};

/// How the new page takes the place of the old one.
#[derive(Clone, Copy)]
pub enum Replace {
    /// The two change places and the old one is deleted: the cheapest way.
    Exchange,
    /// The usual way, which some file systems answer by writing the data out.
    Rename,
}

/// The rows of one table, each in the order of its columns.
struct Rows {
    columns: Vec<String>,
    rows: Vec<Vec<Value>>,
}

impl Rows {
    fn at(&self, column: &str) -> usize {
        self.columns.iter().position(|name| name == column).expect("a column of the schema")
    }

    fn get(&self, row: usize, column: &str) -> &Value {
        &self.rows[row][self.at(column)]
    }

    fn set(&mut self, row: usize, column: &str, value: Value) -> Value {
        let at = self.at(column);
        std::mem::replace(&mut self.rows[row][at], value)
    }

    fn count_up(&mut self, row: usize, column: &str, by: i64) {
        let Value::Integer(value) = *self.get(row, column) else { panic!("{column} is no number") };
        self.set(row, column, Value::Integer(value + by));
    }
}

/// A loop and its folder.
pub struct Floor {
    db: Connection,
    root: String,
    slug: String,
    folder: PathBuf,
    page: String,
    line: String,
    update: String,
    replace: String,
}

impl Floor {
    /// Takes over the loop of a server that has ended.
    pub fn open(world: &World, slug: &str) -> Floor {
        let db = Connection::open(world.database()).expect("the server made it");
        // Longer than the server waits: without its work in between, one of many can starve.
        db.busy_timeout(Duration::from_secs(60)).expect("a setting");
        db.set_prepared_statement_cache_capacity(64);
        db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).expect("a setting");
        db.pragma_update(None, "synchronous", "FULL").expect("a setting");
        db.pragma_update(None, "foreign_keys", true).expect("a setting");
        let mode: String = db.query_row("PRAGMA journal_mode", [], |row| row.get(0)).expect("a setting");
        assert_eq!(mode, "wal");
        let root = world.project().canonicalize().expect("it is there").to_string_lossy().into_owned();
        let folder = world.folder(slug);
        let view = |name: &str| fs::read_to_string(folder.join(name)).expect("the server wrote it");
        let (log, page) = (view("events.jsonl"), view("loop.md"));
        let line = log.lines().last().expect("a loop begins with an event");
        let task = columns(&db, "task");
        let values = vec!["?"; task.len()].join(", ");
        Floor {
            update: update(&columns(&db, "loop")),
            replace: format!("INSERT OR REPLACE INTO task ({}) VALUES ({values})", task.join(", ")),
            db,
            root,
            folder,
            page,
            slug: slug.to_owned(),
            line: format!("{line}\n"),
        }
    }

    /// Moves the first task.
    pub fn set_status(&mut self, status: &str, replace: Replace) {
        self.run("BEGIN IMMEDIATE", []);
        let project =
            "SELECT project.* FROM project_root JOIN project ON project.id = project_id WHERE root = ?1";
        assert_eq!(self.read(project, [&self.root]).rows.len(), 1);
        let by_slug = "SELECT * FROM loop WHERE project_root = ?1 AND slug = ?2";
        let mut the_loop = self.read(by_slug, [&self.root, &self.slug]);
        let key = the_loop.get(0, "loop_key").clone();
        let of_loop = |sql: &str| self.read(sql, [&key]);
        of_loop("SELECT * FROM loop_phase WHERE loop_key = ?1 ORDER BY rank");
        let mut tasks = of_loop("SELECT * FROM task WHERE loop_key = ?1");
        of_loop("SELECT * FROM step_total WHERE loop_key = ?1 ORDER BY task, phase");
        of_loop("SELECT * FROM step WHERE loop_key = ?1 AND ended_at IS NULL ORDER BY seq DESC LIMIT 1");

        let id = tasks.at("taskid");
        let task = tasks.rows.iter().position(|task| task[id] == text("T1")).expect("the first task");
        let from = tasks.set(task, "status", text(status));
        for mark in ["marks_revision", "marks_event_seq"] {
            the_loop.count_up(0, mark, 1);
        }
        the_loop.count_up(0, "marks_log_bytes", self.line.len() as i64);
        let (seq, at) = (the_loop.get(0, "marks_event_seq"), the_loop.get(0, "updated_at"));
        let (phase, event, taskid, to) =
            (the_loop.get(0, "phase"), text("task_setStatus"), text("T1"), text(status));
        self.run(&self.update, params_from_iter(the_loop.rows[0].iter().chain([&key])));
        self.run(&self.replace, params_from_iter(&tasks.rows[task]));
        self.run(
            "INSERT INTO event (loop_key, seq, at, event, phase, task, \"from\", \"to\") \
             VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            params_from_iter([&key, seq, at, &event, phase, &taskid, &from, &to]),
        );
        self.run("COMMIT", []);

        let log = OpenOptions::new().append(true).open(self.folder.join("events.jsonl"));
        log.and_then(|mut log| log.write_all(self.line.as_bytes())).expect("the log grows");
        let (temporary, page) = (self.folder.join(".tmp-view"), self.folder.join("loop.md"));
        File::create(&temporary).and_then(|mut f| f.write_all(self.page.as_bytes())).expect("a new page");
        match replace {
            Replace::Exchange => {
                renameat_with(CWD, &temporary, CWD, &page, RenameFlags::EXCHANGE).expect("the pages swap");
                fs::remove_file(&temporary).expect("the old page goes");
            }
            Replace::Rename => fs::rename(&temporary, &page).expect("the new page replaces the old one"),
        }
    }

    fn run(&self, sql: &str, params: impl Params) {
        let done = self.db.prepare_cached(sql).and_then(|mut statement| statement.execute(params));
        done.unwrap_or_else(|error| panic!("{sql}: {error}"));
    }

    fn read(&self, sql: &str, params: impl Params) -> Rows {
        let read = || -> rusqlite::Result<Rows> {
            let mut statement = self.db.prepare_cached(sql)?;
            let columns: Vec<_> = statement.column_names().map(str::to_owned).collect();
            let row = |row: &rusqlite::Row<'_>| (0..columns.len()).map(|n| row.get(n)).collect();
            let rows = statement.query_map(params, row)?.collect::<rusqlite::Result<_>>()?;
            Ok(Rows { columns, rows })
        };
        read().unwrap_or_else(|error| panic!("{sql}: {error}"))
    }
}

/// The columns of a table, quoted.
fn columns(db: &Connection, table: &str) -> Vec<String> {
    let statement = db.prepare(&format!("SELECT * FROM {table}")).expect("a table of the schema");
    statement.column_names().map(|name| format!("\"{name}\"")).collect()
}

/// The update of a loop's row: all columns in their order, then the key; what the
/// indexes are on stays as it is.
fn update(columns: &[String]) -> String {
    let kept = ["loop_key", "id", "slug", "project_id", "project_root"].map(|name| format!("\"{name}\""));
    let numbered = columns.iter().enumerate().filter(|(_, name)| !kept.contains(name));
    let set: Vec<_> = numbered.map(|(n, name)| format!("{name} = ?{}", n + 1)).collect();
    format!("UPDATE loop SET {} WHERE loop_key = ?{}", set.join(", "), columns.len() + 1)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}
