//! Loops, or all there is, as one file, and that file as rows again.
//!
//! The file is gzipped JSON, one value a line: a header, the rows, and an end that
//! counts the lines before it and has their digest, so that a file that was cut short
//! or changed is seen. It is read through once before anything is written.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use rusqlite::Connection;
use rusqlite::types::Value;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::archive;
use super::blob::{FILE_MAX, unpack_up_to};
use super::cell::Cell;
use super::error::{Failure, StoreError};
use super::load::{all, first};
use super::record::quoted;
use super::schema::{self, DOCUMENT, Table, Tie};
use super::snapshot::{self, Snapshot, insert_row, unfit};
use super::{Store, Tx};
use crate::contract::model;
use crate::digest::hex;
use crate::progress::{Counted, Progress, Unit};

const FORMAT: &str = "loop-state export";
const VERSION: u32 = 1;

/// The longest line that is read, in bytes: one loop, its documents included.
const LINE_MAX: u64 = 2_000_000_000;

const PROJECT: &str = "project";
const ROOT: &str = "project_root";
const ARCHIVE: &str = "loop_archive";
const ARCHIVE_FILE: &str = "loop_archive_file";

/// What an export takes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Live loops by their ids, with their documents and projects.
    Loops(Vec<model::LoopId>),
    /// All projects and loops, archives, documents that outlived their loop, and runs.
    All,
}

/// What an export or import came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transferred {
    /// Projects; of an import, those that were not there yet.
    pub projects: u32,
    /// Loops.
    pub loops: u32,
    /// Archives.
    pub archives: u32,
    /// Rows that belong to none of these: kept documents and free runs.
    pub others: u32,
}

/// One line of the file.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    Header(Header),
    /// A row of a table, by column; in a file of an archive `archive` is its id.
    Row(TableRow),
    Loop(Snapshot),
    End(End),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    schema: i32,
    exported_at: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableRow {
    table: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    archive: Option<String>,
    cells: BTreeMap<String, Cell>,
}

impl TableRow {
    fn text(&self, column: &str) -> Option<&str> {
        self.cells.get(column).and_then(Cell::as_text)
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    lines: u64,
    sha256: String,
}

fn stream(action: &'static str) -> impl Fn(std::io::Error) -> Failure {
    move |source| StoreError::Stream { action, source }.into()
}

/// Writes lines, and keeps count of what went out.
struct Lines<W: Write> {
    to: W,
    sum: Sha256,
    lines: u64,
}

impl<W: Write> Lines<W> {
    fn put(&mut self, line: &Line) -> Result<(), Failure> {
        let mut text = serde_json::to_vec(line).map_err(|error| Failure::Value(error.to_string()))?;
        text.push(b'\n');
        self.sum.update(&text);
        self.lines += 1;
        self.to.write_all(&text).map_err(stream("write"))
    }
}

fn export(
    db: &Connection,
    what: &Selection,
    at: i64,
    to: &mut dyn Write,
    progress: &Progress,
) -> Result<Transferred, Failure> {
    let gzip = GzBuilder::new().operating_system(255).write(BufWriter::new(to), Compression::default());
    let mut lines = Lines { to: gzip, sum: Sha256::new(), lines: 0 };
    let schema = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    lines.put(&Line::Header(Header {
        format: FORMAT.to_owned(),
        version: VERSION,
        schema,
        exported_at: at,
    }))?;
    let mut done = Transferred::default();
    let tables = schema::tables(db)?;
    let loops = match what {
        Selection::Loops(ids) => ids.clone(),
        Selection::All => {
            all(db, "SELECT id FROM loop ORDER BY loop_key", [], |row| Ok(row.get::<_, String>(0)?))?
        }
    };
    match what {
        Selection::All => {
            done.projects = rows(db, &tables, PROJECT, "TRUE", &mut lines)?;
            rows(db, &tables, ROOT, "TRUE", &mut lines)?;
        }
        Selection::Loops(ids) => {
            let ids = serde_json::to_string(ids).map_err(|error| Failure::Value(error.to_string()))?;
            // As a literal: the condition is put into statements that have no parameters.
            let of = format!(
                "(SELECT project_id FROM loop WHERE id IN (SELECT value FROM json_each('{}')))",
                ids.replace('\'', "''")
            );
            done.projects = rows(db, &tables, PROJECT, &format!("id IN {of}"), &mut lines)?;
            let roots = format!(
                "project_id IN {of} AND root IN (SELECT project_root FROM loop WHERE project_id IN {of})"
            );
            rows(db, &tables, ROOT, &roots, &mut lines)?;
        }
    }
    progress.begin_of("writing loops", loops.len() as u64, Unit::Of("loops"));
    for id in &loops {
        lines.put(&Line::Loop(snapshot::take(db, id)?))?;
        done.loops += 1;
        progress.add(1);
    }
    if *what == Selection::All {
        progress.begin("writing archives and the rest");
        done.archives = rows(db, &tables, ARCHIVE, "TRUE", &mut lines)?;
        rows(db, &tables, ARCHIVE_FILE, "TRUE", &mut lines)?;
        done.others += rows(db, &tables, DOCUMENT, "loop_id NOT IN (SELECT id FROM loop)", &mut lines)?;
        for table in tables.iter().filter(|table| table.has("run_id")) {
            done.others += rows(db, &tables, &table.name, "loop_key IS NULL", &mut lines)?;
        }
    }
    let end = End { lines: lines.lines, sha256: hex(&lines.sum.clone().finalize()) };
    lines.put(&Line::End(end))?;
    let mut buffer = lines.to.finish().map_err(stream("write"))?;
    buffer.flush().map_err(stream("write"))?;
    Ok(done)
}

/// Writes the rows of a table that fit `condition`; returns how many they are.
fn rows<W: Write>(
    db: &Connection,
    tables: &[Table],
    name: &str,
    condition: &str,
    to: &mut Lines<W>,
) -> Result<u32, Failure> {
    let Some(table) = tables.iter().find(|table| table.name == name) else { return Ok(0) };
    let columns: Vec<&str> = table.kept().map(|column| column.name.as_str()).collect();
    let archive = match table.has("archive_key") && name != ARCHIVE {
        true => "(SELECT id FROM loop_archive AS a WHERE a.archive_key = own.archive_key)",
        false => "NULL",
    };
    // By the key that the rows lie in the order of, so that no content has to be sorted.
    let key = table.columns.iter().find(|column| column.surrogate && column.key == 1);
    let order = key.map_or_else(|| table.order(), |column| quoted(&column.name));
    let sql = format!(
        "SELECT {}, {archive} FROM {} AS own WHERE {condition} ORDER BY {order}",
        table.kept_columns(),
        quoted(name),
    );
    let mut statement = db.prepare(&sql)?;
    let mut found = statement.query([])?;
    let mut count = 0_u32;
    while let Some(row) = found.next()? {
        let cells = schema::cells(row, name, columns.len())?;
        let cells = columns.iter().map(|column| (*column).to_owned()).zip(cells).collect();
        let archive = row.get(columns.len())?;
        to.put(&Line::Row(TableRow { table: name.to_owned(), archive, cells }))?;
        count = count.saturating_add(1);
    }
    Ok(count)
}

fn refused(detail: impl Into<String>) -> Failure {
    StoreError::Import { detail: detail.into() }.into()
}

/// Goes through all lines but the end, which is compared with them; returns their digest.
fn each_line(
    from: &mut dyn Read,
    mut visit: impl FnMut(u64, Line) -> Result<(), Failure>,
) -> Result<String, Failure> {
    let mut reader = BufReader::new(GzDecoder::new(BufReader::new(from)));
    let mut sum = Sha256::new();
    let mut number = 0_u64;
    let mut text = Vec::new();
    let digest = loop {
        text.clear();
        let read = (&mut reader).take(LINE_MAX).read_until(b'\n', &mut text);
        read.map_err(|error| refused(format!("line {}: {error}", number + 1)))?;
        if text.is_empty() {
            return Err(refused("it ends before its last line, which counts the others"));
        }
        number += 1;
        if text.last() != Some(&b'\n') {
            return Err(refused(format!("line {number} is cut off or too long")));
        }
        let line =
            serde_json::from_slice(&text).map_err(|error| refused(format!("line {number}: {error}")))?;
        match line {
            Line::End(End { lines, sha256 }) => {
                let found = hex(&sum.finalize());
                if (lines, &sha256) != (number - 1, &found) {
                    return Err(refused(format!("its lines are not those that line {number} counts")));
                }
                break found;
            }
            Line::Header(header) => match (number, header.format.as_str(), header.version) {
                (1, FORMAT, VERSION) => {}
                (1, format, version) => {
                    return Err(refused(format!("it is of the kind {format:?}, version {version}")));
                }
                _ => return Err(refused(format!("line {number} is a second header"))),
            },
            _ if number == 1 => return Err(refused("its first line is no header")),
            line => visit(number, line)?,
        }
        sum.update(&text);
    };
    // The end of the stream has a sum of its own, and nothing follows.
    let mut more = [0];
    let after = reader.read(&mut more).map_err(|error| refused(error.to_string()))?;
    let mut inner = reader.into_inner().into_inner();
    let left = inner.read(&mut more).map_err(stream("read"))?;
    if after + left > 0 { Err(refused("something follows its last line")) } else { Ok(digest) }
}

/// Looks at every line before anything is written; returns the digest of all.
fn verify(from: &mut dyn Read, tables: &[Table], one_loop: bool) -> Result<String, Failure> {
    let mut loops = 0_u64;
    let digest = each_line(from, |number, line| {
        let at = |detail: String| refused(format!("line {number}: {detail}"));
        match line {
            Line::Loop(snapshot) => {
                loops += 1;
                snapshot.check(tables).and_then(|()| snapshot.check_revisions()).map_err(at)
            }
            Line::Row(row) => check_row(&row, tables).map_err(at),
            Line::Header(_) | Line::End(_) => Ok(()),
        }
    })?;
    if one_loop && loops != 1 {
        return Err(refused(format!("another slug fits one loop, and it has {loops}; read it in without")));
    }
    Ok(digest)
}

fn check_row(row: &TableRow, tables: &[Table]) -> Result<(), String> {
    let TableRow { table: name, archive, cells } = row;
    let table = tables.iter().find(|table| table.name == *name && name != "loop");
    let table = table.ok_or_else(|| format!("it is a row of the unknown table {name:?}"))?;
    // The rows of loops come with their loops; the others may have none.
    if table.tie() == Some(Tie::Key) && !table.has("run_id") {
        return Err(format!("it is a row of the table {name} outside of a loop"));
    }
    if let Some(column) = cells.keys().find(|column| !table.kept().any(|known| known.name == **column)) {
        return Err(format!("it has the unknown column {column:?} in the table {name}"));
    }
    if archive.is_some() != (name == ARCHIVE_FILE) {
        return Err(format!("a row of the table {name} names an archive, or names none"));
    }
    if name == DOCUMENT {
        let of = |column: &str| cells.get(column);
        let bytes = of("bytes").and_then(Cell::as_integer).and_then(|bytes| u64::try_from(bytes).ok());
        let parts = (of("content").and_then(Cell::as_blob), bytes, row.text("sha256"));
        let (Some(content), Some(bytes), Some(sha256)) = parts else {
            return Err("a document has no content".to_owned());
        };
        unpack_up_to(FILE_MAX, content, bytes, sha256).map_err(|fault| format!("a document: {fault}"))?;
    }
    Ok(())
}

/// What the one loop of an export is called here.
#[derive(Clone, Copy, Debug)]
pub struct Renamed<'a> {
    /// Its slug.
    pub slug: &'a str,
    /// Its id, where the one that it had is taken or has other documents.
    pub id: &'a str,
}

/// What becomes of the lines as they are written.
struct Import<'a> {
    db: &'a Connection,
    renamed: Option<Renamed<'a>>,
    /// Ids of projects in the file, to those that they are here.
    projects: HashMap<String, String>,
    archives: HashMap<String, i64>,
    /// Projects and names of the free runs that were here before.
    runs: HashSet<(String, String)>,
    done: Transferred,
}

impl Import<'_> {
    fn line(&mut self, line: Line) -> Result<(), Failure> {
        match line {
            Line::Loop(snapshot) => self.a_loop(&snapshot),
            Line::Row(row) if row.table == PROJECT => self.project(&row),
            Line::Row(row) => self.row(&row),
            Line::Header(_) | Line::End(_) => Ok(()),
        }
    }

    /// A project is the one of its id here, else that of its remote, else a new one.
    fn project(&mut self, row: &TableRow) -> Result<(), Failure> {
        let id = row.text("id").ok_or_else(|| refused("a project has no id"))?.to_owned();
        let known = "SELECT id FROM project WHERE id = ?1 OR remote_key = ?2 \
                     ORDER BY id <> ?1, created_at, id LIMIT 1";
        let here = first(self.db, known, (&id, row.text("remote_key")), |row| Ok(row.get::<_, String>(0)?))?;
        match here {
            Some(here) => {
                self.db.execute(
                    "UPDATE project SET remote_key = coalesce(remote_key, ?2), \
                     repo_key = coalesce(repo_key, ?3) WHERE id = ?1",
                    (&here, row.text("remote_key"), row.text("repo_key")),
                )?;
                self.projects.insert(id, here);
            }
            None => {
                self.insert(row, None)?;
                self.projects.insert(id.clone(), id);
                self.done.projects += 1;
            }
        }
        Ok(())
    }

    /// The project that one of the file is here.
    fn project_here(&self, id: &str) -> Result<String, Failure> {
        let here = self.projects.get(id).cloned();
        here.ok_or_else(|| refused(format!("a row belongs to the project {id:?}, which it does not have")))
    }

    fn a_loop(&mut self, snapshot: &Snapshot) -> Result<(), Failure> {
        let tables = schema::tables(self.db)?;
        let the_loop = snapshot.the_loop(self.db, &tables)?;
        let project_id = self.project_here(&the_loop.project_id)?;
        let (id, slug) = match self.renamed {
            None => (the_loop.id.clone(), the_loop.slug.clone()),
            Some(Renamed { slug, id }) => {
                let known = "SELECT 1 FROM loop WHERE id = ?1";
                let taken = first(self.db, known, [&the_loop.id], |_| Ok(()))?.is_some()
                    || snapshot.documents_differ(self.db)?;
                (if taken { id.to_owned() } else { the_loop.id.clone() }, slug.to_owned())
            }
        };
        snapshot.insert(self.db, &model::Loop { id, slug, project_id, ..the_loop })?;
        self.done.loops += 1;
        Ok(())
    }

    fn row(&mut self, row: &TableRow) -> Result<(), Failure> {
        match row.table.as_str() {
            // A root that is known here stays with its project.
            ROOT => {
                let root = row.text("root").ok_or_else(|| refused("a root has no path"))?;
                let known = first(self.db, "SELECT 1 FROM project_root WHERE root = ?1", [root], |_| Ok(()))?;
                if known.is_none() {
                    self.insert(row, None)?;
                }
            }
            ARCHIVE => {
                let id = row.text("id").ok_or_else(|| refused("an archive has no id"))?;
                if first(self.db, "SELECT 1 FROM loop_archive WHERE id = ?1", [id], |_| Ok(()))?.is_some() {
                    return Err(StoreError::ArchiveExists { id: id.to_owned() }.into());
                }
                self.insert(row, None)?;
                self.archives.insert(id.to_owned(), self.db.last_insert_rowid());
                self.done.archives += 1;
            }
            ARCHIVE_FILE => {
                let key = row.archive.as_ref().and_then(|id| self.archives.get(id)).copied();
                let key = key.ok_or_else(|| refused("a file belongs to an archive that it does not have"))?;
                self.insert(row, Some(("archive_key", key)))?;
            }
            DOCUMENT => self.document(row)?,
            _ => {
                let project = self.project_here(row.text("project_id").unwrap_or_default())?;
                let run = (project, row.text("run_id").unwrap_or_default().to_owned());
                if self.runs.contains(&run) {
                    return Err(StoreError::RunTaken { project: run.0, run: run.1 }.into());
                }
                self.insert(row, None)?;
                self.done.others += 1;
            }
        }
        Ok(())
    }

    /// A document that is kept here as well stays as it is, or is another one.
    fn document(&mut self, row: &TableRow) -> Result<(), Failure> {
        let text = |column| row.text(column).unwrap_or_default();
        let revision = row.cells.get("revision").and_then(Cell::as_integer).unwrap_or_default();
        let (id, path) = (text("loop_id"), text("path"));
        let sql = "SELECT path, sha256 FROM loop_document WHERE loop_id = ?1 AND path = ?2 AND revision = ?3";
        let here = first(self.db, sql, (id, path, revision), |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        match here {
            Some((name, sha256)) if name == path && sha256 == text("sha256") => Ok(()),
            Some(_) => {
                let (id, path) = (id.to_owned(), path.to_owned());
                Err(StoreError::DocumentsDiffer { id, path, revision }.into())
            }
            None => {
                self.insert(row, None)?;
                self.done.others += 1;
                Ok(())
            }
        }
    }

    /// Inserts a row under the project that its own one is here.
    fn insert(&self, row: &TableRow, tie: Option<(&str, i64)>) -> Result<(), Failure> {
        let mut columns = Vec::new();
        let mut cells = Vec::new();
        for (column, cell) in &row.cells {
            let cell = match (column.as_str(), cell.as_text()) {
                ("project_id", Some(id)) => Cell::text(&self.project_here(id)?),
                _ => cell.clone(),
            };
            columns.push(column.clone());
            cells.push(cell);
        }
        if let Some((column, key)) = tie {
            columns.push(column.to_owned());
            cells.push(Cell(Value::Integer(key)));
        }
        insert_row(self.db, &row.table, &columns, None, &cells).map_err(|error| unfit(error, &row.table))
    }
}

/// The runs that belong to no loop, by project and name.
fn free_runs(db: &Connection, tables: &[Table]) -> Result<HashSet<(String, String)>, Failure> {
    let mut runs = HashSet::new();
    for table in tables.iter().filter(|table| table.has("run_id")) {
        let sql =
            format!("SELECT DISTINCT project_id, run_id FROM {} WHERE loop_key IS NULL", quoted(&table.name));
        runs.extend(all(db, &sql, [], |row| Ok((row.get(0)?, row.get(1)?)))?);
    }
    Ok(runs)
}

/// Writes the lines of a file that was verified and has this digest.
fn import(
    db: &Connection,
    from: &mut dyn Read,
    renamed: Option<Renamed<'_>>,
    verified: &str,
) -> Result<Transferred, Failure> {
    let runs = free_runs(db, &schema::tables(db)?)?;
    let (projects, archives, done) = (HashMap::new(), HashMap::new(), Transferred::default());
    let mut import = Import { db, renamed, projects, archives, runs, done };
    let digest = each_line(from, |number, line| {
        import.line(line).map_err(|failure| match failure {
            Failure::Value(detail) => refused(format!("line {number}: {detail}")),
            other => other,
        })
    })?;
    if digest != verified {
        return Err(refused("it was changed while it was read"));
    }
    for id in import.archives.keys() {
        archive::check(db, id)?;
    }
    Ok(import.done)
}

impl Tx<'_> {
    /// Writes what is selected, as it is now, to a new file of the export format.
    ///
    /// Everything comes back by [`Store::import`]: rows, every revision of every document,
    /// and with [`Selection::All`] archives and what belongs to no loop as well.
    ///
    /// # Errors
    /// [`StoreError::UnknownLoop`]; [`StoreError::Stream`] for `to`, which is incomplete then.
    pub fn export(&self, what: &Selection, at: i64, to: &mut dyn Write) -> Result<Transferred, StoreError> {
        self.at(export(self.db, what, at, to, self.progress))
    }
}

impl Store {
    /// Reads an export in, in one transaction, after it was read through and found whole.
    ///
    /// A project is the one of its id here, else the one of its remote, else a new one;
    /// what is known of a project, or of a root, stays. `renamed` is for an export of one
    /// loop.
    ///
    /// # Errors
    /// [`StoreError::Import`] for a file that is cut short, changed, or does not fit;
    /// [`StoreError::LoopExists`], [`StoreError::ArchiveExists`], [`StoreError::RunTaken`]
    /// and [`StoreError::DocumentsDiffer`] for what is here already.
    pub fn import(
        &mut self,
        from: &mut (impl Read + Seek),
        renamed: Option<Renamed<'_>>,
    ) -> Result<Transferred, StoreError> {
        let tx = self.read()?;
        let tables = tx.at(schema::tables(tx.db))?;
        drop(tx);
        let progress = self.options.progress.clone();
        let at = |failure: Failure| failure.at(&self.path);
        let bytes = from.seek(SeekFrom::End(0)).map_err(stream("read")).map_err(at)?;
        let mut from = Counted { inner: from, progress: &progress };
        progress.begin_of("checking the file", bytes, Unit::Bytes);
        from.inner.seek(SeekFrom::Start(0)).map_err(stream("read")).map_err(at)?;
        let digest = verify(&mut from, &tables, renamed.is_some()).map_err(at)?;
        progress.begin_of("reading it in", bytes, Unit::Bytes);
        from.inner.seek(SeekFrom::Start(0)).map_err(stream("read")).map_err(at)?;
        let tx = self.write()?;
        let done = tx.change(|| import(tx.db, &mut from, renamed, &digest))?;
        tx.commit()?;
        Ok(done)
    }
}
