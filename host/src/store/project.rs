//! Projects: what a folder or a repository is recognised by, and what belongs to them.
//!
//! Which project a loop belongs to is stored with the loop, and which project a root
//! belongs to with the root. The two differ for loops whose root has become another
//! repository: they stay with their project and are no loops of that root any more.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use rusqlite::{Connection, Row, params};

use super::Tx;
use super::error::{Failure, StoreError};
use super::load::{all, first};
use super::record::quoted;
use super::schema::{self, Table};

/// A project as it is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectRow {
    /// A UUID.
    pub id: String,
    /// For people.
    pub name: String,
    /// The repository's identity by its remote, where one is known.
    pub remote_key: Option<String>,
    /// The repository's identity by its common git directory, where one is known.
    pub repo_key: Option<String>,
}

/// A root that is registered, with its project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownRoot {
    /// The project that the root belongs to.
    pub project: ProjectRow,
    /// What the repository's configuration was like when the root was looked at last.
    pub stamp: Option<String>,
}

/// One root of a project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RootRow {
    /// Absolute, with symbolic links resolved.
    pub root: String,
    /// See [`KnownRoot::stamp`].
    pub stamp: Option<String>,
    /// When it was first seen, or became this project's.
    pub registered_at: i64,
}

/// A project with all that a list of projects shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProjectSummary {
    /// Its identity.
    pub project: ProjectRow,
    /// For people: an emoji or the like.
    pub icon: Option<String>,
    /// For people.
    pub tags: Vec<String>,
    /// When it was recorded.
    pub created_at: i64,
    /// Its roots, by path.
    pub roots: Vec<RootRow>,
    /// All of its live loops.
    pub loops: u32,
    /// Those of them that have not ended.
    pub unfinished: u32,
    /// Its archives.
    pub archives: u32,
    /// When a loop was touched or archived, or a root registered, last.
    pub used_at: i64,
}

/// What several projects have in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Common {
    /// The address of the repository's remote.
    Remote,
    /// The repository's own folder.
    Repository,
    /// A root of the one has loops of the other.
    Root,
}

/// Projects that may be one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Duplicates {
    /// What they have in common.
    pub common: Common,
    /// The key or the root itself.
    pub value: String,
    /// Their ids, the oldest first.
    pub projects: Vec<String>,
}

/// What went over from one project to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Live loops.
    pub loops: u32,
    /// Roots.
    pub roots: u32,
    /// Runs, those of loops included.
    pub runs: u32,
    /// Archives.
    pub archives: u32,
}

/// What is to change about a project; what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProjectEdit {
    /// The new name.
    pub name: Option<String>,
    /// The new icon, or that there is to be none.
    pub icon: Option<Option<String>>,
    /// All tags from now on.
    pub tags: Option<Vec<String>>,
}

/// What a project is looked up by.
#[derive(Clone, Copy)]
enum By {
    Id,
    Remote,
    Repo,
}

/// The columns of a [`ProjectRow`], in the order that [`row`] reads.
const PROJECT: &str = "project.id, project.name, project.remote_key, project.repo_key";

fn row(row: &Row<'_>) -> Result<ProjectRow, Failure> {
    Ok(ProjectRow { id: row.get(0)?, name: row.get(1)?, remote_key: row.get(2)?, repo_key: row.get(3)? })
}

/// Of several projects with one key, the oldest answers.
fn find(db: &Connection, by: By, value: &str) -> Result<Option<ProjectRow>, Failure> {
    static BY_ID: LazyLock<String> = LazyLock::new(|| by_key("id"));
    static BY_REMOTE: LazyLock<String> = LazyLock::new(|| by_key("remote_key"));
    static BY_REPO: LazyLock<String> = LazyLock::new(|| by_key("repo_key"));
    let sql = match by {
        By::Id => &BY_ID,
        By::Remote => &BY_REMOTE,
        By::Repo => &BY_REPO,
    };
    first(db, sql, [value], row)
}

fn by_key(key: &str) -> String {
    format!("SELECT {PROJECT} FROM project WHERE {key} = ?1 ORDER BY created_at, id LIMIT 1")
}

fn known_root(db: &Connection, root: &str) -> Result<Option<KnownRoot>, Failure> {
    static SQL: LazyLock<String> = LazyLock::new(|| {
        format!(
            "SELECT {PROJECT}, stamp FROM project_root JOIN project ON project.id = project_id \
             WHERE root = ?1"
        )
    });
    first(db, &SQL, [root], |found| Ok(KnownRoot { project: row(found)?, stamp: found.get(4)? }))
}

/// Inserts the project, or fills in an identity that was not known before.
pub(super) fn record(db: &Connection, project: &ProjectRow, at: i64) -> Result<(), Failure> {
    db.prepare_cached(
        "INSERT INTO project (id, name, remote_key, repo_key, created_at) \
         VALUES (?1, ?2, ?3, ?4, ?5) \
         ON CONFLICT (id) DO UPDATE SET \
         remote_key = coalesce(remote_key, excluded.remote_key), \
         repo_key = coalesce(repo_key, excluded.repo_key)",
    )?
    .execute(params![project.id, project.name, project.remote_key, project.repo_key, at])?;
    Ok(())
}

fn register_root(
    db: &Connection,
    project: &ProjectRow,
    root: &str,
    stamp: Option<&str>,
    at: i64,
) -> Result<(), Failure> {
    record(db, project, at)?;
    db.prepare_cached(
        "INSERT INTO project_root (root, project_id, registered_at, stamp) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (root) DO UPDATE SET stamp = coalesce(excluded.stamp, stamp) \
         WHERE project_id = excluded.project_id",
    )?
    .execute(params![root, project.id, at, stamp])?;
    Ok(())
}

fn re_root(
    db: &Connection,
    project: &ProjectRow,
    root: &str,
    stamp: Option<&str>,
    at: i64,
) -> Result<u32, Failure> {
    record(db, project, at)?;
    db.prepare_cached(
        "INSERT INTO project_root (root, project_id, registered_at, stamp) VALUES (?1, ?2, ?3, ?4) \
         ON CONFLICT (root) DO UPDATE SET stamp = excluded.stamp, registered_at = excluded.registered_at, \
         project_id = excluded.project_id",
    )?
    .execute(params![root, project.id, at, stamp])?;
    let sql = "SELECT count(*) FROM loop WHERE project_root = ?1 AND project_id <> ?2";
    Ok(first(db, sql, [root, &project.id], |row| Ok(row.get(0)?))?.unwrap_or(0))
}

fn summaries(db: &Connection) -> Result<Vec<ProjectSummary>, Failure> {
    let sql = format!(
        "SELECT {PROJECT}, icon, tags, created_at, \
         (SELECT count(*) FROM loop WHERE project_id = project.id), \
         (SELECT count(*) FROM loop WHERE project_id = project.id AND finished_at IS NULL), \
         (SELECT count(*) FROM loop_archive WHERE project_id = project.id), \
         max(created_at, \
          coalesce((SELECT max(updated_at) FROM loop WHERE project_id = project.id), created_at), \
          coalesce((SELECT max(archived_at) FROM loop_archive WHERE project_id = project.id), created_at), \
          coalesce((SELECT max(registered_at) FROM project_root WHERE project_id = project.id), created_at)) \
         AS used_at FROM project ORDER BY used_at DESC, id"
    );
    let mut projects = all(db, &sql, [], |found| {
        let project = row(found)?;
        let tags: String = found.get(5)?;
        let tags = serde_json::from_str(&tags)
            .map_err(|_| Failure::Value(format!("the tags of the project {} are no list", project.id)))?;
        Ok(ProjectSummary {
            project,
            icon: found.get(4)?,
            tags,
            created_at: found.get(6)?,
            roots: Vec::new(),
            loops: found.get(7)?,
            unfinished: found.get(8)?,
            archives: found.get(9)?,
            used_at: found.get(10)?,
        })
    })?;
    let sql = "SELECT root, stamp, registered_at FROM project_root WHERE project_id = ?1 ORDER BY root";
    for summary in &mut projects {
        summary.roots = all(db, sql, [&summary.project.id], |row| {
            Ok(RootRow { root: row.get(0)?, stamp: row.get(1)?, registered_at: row.get(2)? })
        })?;
    }
    Ok(projects)
}

fn duplicates(db: &Connection) -> Result<Vec<Duplicates>, Failure> {
    // One row for each project and what it has in common with another one.
    let by_key = |key: &str| {
        format!(
            "SELECT {key}, id FROM project WHERE {key} IN \
             (SELECT {key} FROM project GROUP BY {key} HAVING count(*) > 1) ORDER BY {key}, created_at, id"
        )
    };
    let by_root = "SELECT root, id FROM \
                   (SELECT root, project_root.project_id AS id FROM project_root JOIN loop \
                    ON loop.project_root = root AND loop.project_id <> project_root.project_id \
                    UNION SELECT root, loop.project_id FROM project_root JOIN loop \
                    ON loop.project_root = root AND loop.project_id <> project_root.project_id) \
                   JOIN project USING (id) ORDER BY root, created_at, id"
        .to_owned();
    let kinds = [
        (Common::Remote, by_key("remote_key")),
        (Common::Repository, by_key("repo_key")),
        (Common::Root, by_root),
    ];
    let mut groups: Vec<Duplicates> = Vec::new();
    for (common, sql) in kinds {
        for (value, id) in all(db, &sql, [], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)))?
        {
            match groups.last_mut().filter(|group| group.common == common && group.value == value) {
                Some(group) => group.projects.push(id),
                None => groups.push(Duplicates { common, value, projects: vec![id] }),
            }
        }
    }
    Ok(groups)
}

/// The tables that a run's rows are in.
fn run_tables(tables: &[Table]) -> impl Iterator<Item = &Table> {
    tables.iter().filter(|table| table.has("project_id") && table.has("run_id"))
}

/// A project's runs, by name and the loop that one belongs to.
fn runs(
    db: &Connection,
    tables: &[Table],
    project: &str,
) -> Result<BTreeSet<(String, Option<i64>)>, Failure> {
    let mut names = BTreeSet::new();
    for table in run_tables(tables) {
        let sql =
            format!("SELECT DISTINCT run_id, loop_key FROM {} WHERE project_id = ?1", quoted(&table.name));
        names.extend(all(db, &sql, [project], |row| Ok((row.get(0)?, row.get(1)?)))?);
    }
    Ok(names)
}

fn merge(db: &Connection, keep: &str, drop: &str) -> Result<Merged, Failure> {
    let refused = |detail: String| -> Failure {
        StoreError::Merge { keep: keep.to_owned(), drop: drop.to_owned(), detail }.into()
    };
    for id in [keep, drop] {
        if find(db, By::Id, id)?.is_none() {
            return Err(StoreError::UnknownProject { id: id.to_owned() }.into());
        }
    }
    if keep == drop {
        return Err(refused("they are the same project".to_owned()));
    }
    let sql = "SELECT slug, project_root FROM loop WHERE project_id = ?1 INTERSECT \
               SELECT slug, project_root FROM loop WHERE project_id = ?2 ORDER BY 1, 2";
    let both: Vec<String> = all(db, sql, [keep, drop], |row| {
        Ok(format!("{} in {}", row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    if !both.is_empty() {
        return Err(refused(format!(
            "both have a loop of this name there: {}; archive or delete one of each",
            both.join(", ")
        )));
    }
    let tables = schema::tables(db)?;
    let moving = runs(db, &tables, drop)?;
    let staying = runs(db, &tables, keep)?;
    // Those of loops never meet: a loop is in one project.
    let both: Vec<&str> = moving.intersection(&staying).map(|(run, _)| run.as_str()).collect();
    if !both.is_empty() {
        return Err(refused(format!("both have runs of these names: {}", both.join(", "))));
    }
    let mut merged = Merged { runs: u32::try_from(moving.len()).unwrap_or(u32::MAX), ..Merged::default() };
    for table in tables.iter().filter(|table| table.has("project_id")) {
        let sql = format!("UPDATE {} SET project_id = ?1 WHERE project_id = ?2", quoted(&table.name));
        let moved = u32::try_from(db.execute(&sql, [keep, drop])?).unwrap_or(u32::MAX);
        match table.name.as_str() {
            "loop" => merged.loops = moved,
            "project_root" => merged.roots = moved,
            "loop_archive" => merged.archives = moved,
            _ => {}
        }
    }
    db.execute(
        "UPDATE project SET remote_key = coalesce(project.remote_key, gone.remote_key), \
         repo_key = coalesce(project.repo_key, gone.repo_key) \
         FROM project AS gone WHERE project.id = ?1 AND gone.id = ?2",
        [keep, drop],
    )?;
    db.execute("DELETE FROM project WHERE id = ?1", [drop])?;
    Ok(merged)
}

fn edit(db: &Connection, id: &str, edit: &ProjectEdit) -> Result<(), Failure> {
    let ProjectEdit { name, icon, tags } = edit;
    let tags = match tags {
        Some(tags) => Some(serde_json::to_string(tags).map_err(|e| Failure::Value(e.to_string()))?),
        None => None,
    };
    let changed = db.execute(
        "UPDATE project SET name = coalesce(?2, name), icon = iif(?3, ?4, icon), tags = coalesce(?5, tags) \
         WHERE id = ?1",
        params![id, name, icon.is_some(), icon.as_ref().and_then(Option::as_ref), tags],
    )?;
    if changed == 0 { Err(StoreError::UnknownProject { id: id.to_owned() }.into()) } else { Ok(()) }
}

impl Tx<'_> {
    /// Returns the project that `root` is registered for, and the root's stamp.
    ///
    /// # Errors
    /// A failing database, as with every method here.
    pub fn project_of_root(&self, root: &str) -> Result<Option<KnownRoot>, StoreError> {
        self.at(known_root(self.db, root))
    }

    /// Returns the oldest project of this remote key.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn project_of_remote_key(&self, key: &str) -> Result<Option<ProjectRow>, StoreError> {
        self.at(find(self.db, By::Remote, key))
    }

    /// Returns the oldest project of this repo key.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn project_of_repo_key(&self, key: &str) -> Result<Option<ProjectRow>, StoreError> {
        self.at(find(self.db, By::Repo, key))
    }

    /// Returns the project of this id.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn project(&self, id: &str) -> Result<Option<ProjectRow>, StoreError> {
        self.at(find(self.db, By::Id, id))
    }

    /// Registers a project and one of its roots, as far as they are missing.
    ///
    /// A key that is not recorded yet is filled in, and a stamp replaces an older one;
    /// nothing else recorded changes, nor does the project of a root that has one:
    /// that is [`Tx::re_root`].
    ///
    /// # Errors
    /// See [`Tx::apply`].
    pub fn register_root(
        &self,
        project: &ProjectRow,
        root: &str,
        stamp: Option<&str>,
        at: i64,
    ) -> Result<(), StoreError> {
        self.change(|| register_root(self.db, project, root, stamp, at))
    }

    /// Makes `root` a root of `project`, whichever it was registered for before.
    ///
    /// Loops that another project has there stay with that project, with the root as it
    /// is; they are no longer found as loops of this root, and their slugs are free in
    /// it. Returns how many they are. When the root goes back, they are found again.
    ///
    /// # Errors
    /// See [`Tx::apply`].
    pub fn re_root(
        &self,
        project: &ProjectRow,
        root: &str,
        stamp: Option<&str>,
        at: i64,
    ) -> Result<u32, StoreError> {
        self.change(|| re_root(self.db, project, root, stamp, at))
    }

    /// Returns for each root, in order, whether it is registered for a project other
    /// than `project_id`.
    ///
    /// To a loop of the project such a root is gone, although the folder is there.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn roots_of_others(&self, project_id: &str, roots: &[String]) -> Result<Vec<bool>, StoreError> {
        let of_another = |root: &String| {
            let known = known_root(self.db, root)?;
            Ok(known.is_some_and(|known| known.project.id != project_id))
        };
        self.at(roots.iter().map(of_another).collect())
    }

    /// Returns all projects, the last used first.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn projects(&self) -> Result<Vec<ProjectSummary>, StoreError> {
        self.at(summaries(self.db))
    }

    /// Returns the groups of projects that may be one.
    ///
    /// # Errors
    /// See [`Tx::project_of_root`].
    pub fn duplicates(&self) -> Result<Vec<Duplicates>, StoreError> {
        self.at(duplicates(self.db))
    }

    /// Moves all that belongs to the project `drop` to `keep`, and deletes `drop`.
    ///
    /// Name, icon and tags of `keep` stay; a key that it has not is taken over.
    ///
    /// # Errors
    /// [`StoreError::UnknownProject`]; [`StoreError::Merge`] when both have a loop of one
    /// slug in one root, or a run of one name.
    pub fn merge_projects(&self, keep: &str, drop: &str) -> Result<Merged, StoreError> {
        self.change(|| merge(self.db, keep, drop))
    }

    /// Changes what people see of a project.
    ///
    /// # Errors
    /// [`StoreError::UnknownProject`].
    pub fn edit_project(&self, id: &str, changes: &ProjectEdit) -> Result<(), StoreError> {
        self.change(|| edit(self.db, id, changes))
    }
}
