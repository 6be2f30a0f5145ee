//! Fills a database, by SQL alone: what years of use would leave in it.

use std::path::Path;

use rusqlite::{Connection, Params};

/// Events of a loop that many changes were made to.
pub const EVENTS: u32 = 100_000;
/// Events of a loop that is looked back on.
pub const HISTORY: u32 = 20_000;
/// Loops of a database that many projects use.
const LOOPS: u32 = 10_000;

/// Counts from 1 to the parameter `?1`.
const NUMBERS: &str =
    "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ?1)";

/// Gives the one loop of the database a long history, by repeating its last event.
pub fn events(database: &Path, count: u32) -> u32 {
    let db = open(database);
    let columns = columns(&db, "event", &[("seq", "seq + n")]);
    run(
        &db,
        &format!(
            "{NUMBERS} INSERT INTO event SELECT {columns} FROM number, \
             (SELECT * FROM event ORDER BY seq DESC LIMIT 1)"
        ),
        [count],
    );
    // The new lines are as long as the last one, but for their numbers.
    let last: u32 = one(&db, "SELECT marks_event_seq FROM loop");
    let folder: String = one(&db, "SELECT project_root || '/.projects/loops/' || slug FROM loop");
    let log = std::fs::read_to_string(Path::new(&folder).join("events.jsonl")).expect("the log");
    let length = log.lines().last().expect("a loop begins with an event").len() + 1 - digits(last);
    let bytes: usize = (last + 1..=last + count).map(|seq| length + digits(seq)).sum();
    let marks =
        "UPDATE loop SET marks_event_seq = marks_event_seq + ?1, marks_log_bytes = marks_log_bytes + ?2";
    run(&db, marks, (count, bytes as i64));
    count
}

/// Puts many loops like the one that there is beside it.
pub fn loops(database: &Path) -> u32 {
    let db = open(database);
    let base: i64 = one(&db, "SELECT loop_key FROM loop");
    let copied =
        columns(&db, "loop", &[("loop_key", "NULL"), ("id", "id || '-' || n"), ("slug", "slug || '-' || n")]);
    run(&db, &format!("{NUMBERS} INSERT INTO loop SELECT {copied} FROM number, loop"), [LOOPS]);
    for table in ["loop_phase", "task", "event"] {
        let copied = columns(&db, table, &[("loop_key", "loop.loop_key")]);
        run(
            &db,
            &format!(
                "INSERT INTO {table} SELECT {copied} FROM loop, {table} AS base \
                 WHERE base.loop_key = ?1 AND loop.loop_key <> ?1"
            ),
            [base],
        );
    }
    LOOPS
}

fn digits(number: u32) -> usize {
    number.to_string().len()
}

fn open(database: &Path) -> Connection {
    Connection::open(database).expect("the server made it")
}

fn run(db: &Connection, sql: &str, params: impl Params) {
    db.execute(sql, params).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn one<T: rusqlite::types::FromSql>(db: &Connection, sql: &str) -> T {
    db.query_row(sql, [], |row| row.get(0)).unwrap_or_else(|error| panic!("{sql}: {error}"))
}

/// The columns of a table as a list to select, some of them replaced.
fn columns(db: &Connection, table: &str, replaced: &[(&str, &str)]) -> String {
    let of_base = if replaced.iter().any(|(_, by)| by.starts_with("loop.")) { "base." } else { "" };
    let select = |name: &str| match replaced.iter().find(|(column, _)| *column == name) {
        Some((_, by)) => (*by).to_owned(),
        None => format!("{of_base}\"{name}\""),
    };
    let statement = db.prepare(&format!("SELECT * FROM {table}")).expect("a table of the schema");
    statement.column_names().map(select).collect::<Vec<_>>().join(", ")
}
