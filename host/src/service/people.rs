//! What people ask on the command line and no tool answers.
//!
//! What a tool does is not done here again: the command line calls the tool. These
//! look over all projects, at what outlived its loop, and change what belongs to no
//! loop.

use crate::contract::model::{Document, DocumentHead, LoopSummary};
use crate::contract::tools::LoopFilter;
use crate::store::{
    Duplicates, KeptDocuments, Merged, ProjectEdit, ProjectRow, ProjectSummary, Store, StoreError, Tx,
};

use super::Service;
use super::failure::Failure;

/// The longest name of a project, in characters.
const NAME_MAX: usize = 200;

/// The longest icon, in characters: an emoji may be several.
const ICON_MAX: usize = 16;

/// The longest tag, in characters, and how many there may be.
const TAG_MAX: usize = 50;
const TAGS_MAX: usize = 50;

/// The shortest beginning of an id that names a project.
const PREFIX_MIN: usize = 4;

/// How many projects an error lists.
const LISTED: usize = 10;

/// Why a command was refused.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Nothing of that name or id.
    #[error("no project has the id or name {named}; `projects` lists them")]
    UnknownProject {
        /// What was asked for.
        named: String,
    },
    /// No loop of that slug.
    #[error("this project root has no loop {slug}; `list` shows those it has")]
    UnknownSlug {
        /// What was asked for.
        slug: String,
    },
    /// Several of that name or beginning.
    #[error("{named} can be any of several projects: {}; name one by its id", .ids.join(", "))]
    SeveralProjects {
        /// What was asked for.
        named: String,
        /// The ids of those.
        ids: Vec<String>,
    },
    /// A name, an icon or a tag that cannot be one.
    #[error("{what} cannot be {got:?}: {why}; nothing was changed")]
    Unfit {
        /// Which of them.
        what: &'static str,
        /// What was given.
        got: String,
        /// What is wrong with it.
        why: String,
    },
    /// Nothing to change was given.
    #[error("nothing to change was given; name, icon and tags can be")]
    NothingToChange,
    /// No such document, and what there is.
    #[error("loop {id} has no document {path:?}; it has: {}", list(.there))]
    UnknownDocument {
        /// The loop.
        id: String,
        /// The document.
        path: String,
        /// The documents that it has.
        there: Vec<String>,
    },
    /// The document has no such revision.
    #[error("{path} of loop {id} has no revision {rev}; the newest is {newest}")]
    UnknownRevision {
        /// The loop.
        id: String,
        /// The document.
        path: String,
        /// What was asked for.
        rev: u32,
        /// The newest one there is.
        newest: u32,
    },
    /// A file that cannot be written or read.
    #[error("cannot {action} {path}: {cause}", path = .path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file.
        path: std::path::PathBuf,
        /// Why it did not work.
        cause: std::io::Error,
    },
    /// A loop of a file is here already.
    #[error("{0}; a file of one loop can be read in under another slug with --as")]
    Taken(StoreError),
    /// What stops tools as well.
    #[error(transparent)]
    Failed(#[from] Failure),
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Refusal {
        Refusal::Failed(error.into())
    }
}

fn list(items: &[String]) -> String {
    match items.len().saturating_sub(LISTED) {
        0 => items.join(", "),
        more => format!("{} and {more} more", items[..LISTED].join(", ")),
    }
}

/// The loops of one project.
#[derive(Debug)]
pub struct LoopsOfProject {
    /// The project.
    pub project: ProjectRow,
    /// Newest-touched first.
    pub loops: Vec<LoopSummary>,
}

/// Two projects that became one.
#[derive(Debug)]
pub struct MergedProjects {
    /// The one that stays.
    pub keep: ProjectRow,
    /// The one that is gone.
    pub drop: ProjectRow,
    /// What went over.
    pub merged: Merged,
}

/// What a person wants to change about a project; what is `None` stays.
#[derive(Debug)]
pub struct ProjectChanges {
    /// The new name.
    pub name: Option<String>,
    /// The new icon; an empty one is none.
    pub icon: Option<String>,
    /// All tags from now on; empty ones do not count.
    pub tags: Option<Vec<String>>,
}

impl Service {
    /// The root that the service was started for, where there is one.
    pub fn root(&self) -> Option<&str> {
        self.root.as_ref().ok().map(|root| root.path.as_str())
    }

    /// Works on the database, where what goes wrong is more than the database's.
    pub(super) fn on_store<T>(
        &self,
        work: impl FnOnce(&mut Store) -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        self.with_store(|store| Ok(work(store)))?
    }

    pub(super) fn read<T>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.on_store(|store| work(&store.read()?))
    }

    fn write<T>(&self, work: impl FnOnce(&Tx<'_>) -> Result<T, Refusal>) -> Result<T, Refusal> {
        self.on_store(|store| {
            let tx = store.write()?;
            let done = work(&tx)?;
            tx.commit()?;
            Ok(done)
        })
    }

    /// The loops of all projects, the last used project first.
    ///
    /// # Errors
    /// A failing database, as with every method here.
    pub fn loops_of_all_projects(&self, include_finished: bool) -> Result<Vec<LoopsOfProject>, Refusal> {
        let filter = LoopFilter { include_finished, limit: u32::MAX, offset: 0 };
        self.read(|tx| {
            let mut projects = Vec::new();
            for ProjectSummary { project, .. } in tx.projects()? {
                let loops = tx.loop_page(&project.id, &filter)?.loops;
                projects.push(LoopsOfProject { project, loops });
            }
            Ok(projects)
        })
    }

    /// All projects, the last used first.
    ///
    /// # Errors
    /// See [`Service::loops_of_all_projects`].
    pub fn projects(&self) -> Result<Vec<ProjectSummary>, Refusal> {
        self.read(|tx| Ok(tx.projects()?))
    }

    /// Groups of projects that may be one, each with its projects, the oldest first.
    ///
    /// # Errors
    /// See [`Service::loops_of_all_projects`].
    pub fn duplicate_projects(&self) -> Result<Vec<(Duplicates, Vec<ProjectSummary>)>, Refusal> {
        self.read(|tx| {
            let all = tx.projects()?;
            let of = |group: &Duplicates| -> Vec<ProjectSummary> {
                let find = |id: &String| all.iter().find(|p| p.project.id == *id).cloned();
                group.projects.iter().filter_map(find).collect()
            };
            Ok(tx.duplicates()?.into_iter().map(|group| (group.clone(), of(&group))).collect())
        })
    }

    /// Moves all that belongs to the project `drop` to `keep`; each is named by its id,
    /// the beginning of its id, or its name.
    ///
    /// # Errors
    /// Projects that do not exist, are the same, or have loops or runs of one name.
    pub fn merge_projects(&self, keep: &str, drop: &str) -> Result<MergedProjects, Refusal> {
        self.write(|tx| {
            let all = tx.projects()?;
            let (keep, drop) = (project_named(&all, keep)?, project_named(&all, drop)?);
            let merged = tx.merge_projects(&keep.project.id, &drop.project.id)?;
            Ok(MergedProjects { keep: keep.project.clone(), drop: drop.project.clone(), merged })
        })
    }

    /// Changes what people see of a project, and returns it as it then is.
    ///
    /// # Errors
    /// A project that does not exist, and names, icons and tags that cannot be one.
    pub fn edit_project(&self, named: &str, changes: ProjectChanges) -> Result<ProjectSummary, Refusal> {
        let edit = check(changes)?;
        self.write(|tx| {
            let id = project_named(&tx.projects()?, named)?.project.id.clone();
            tx.edit_project(&id, &edit)?;
            Ok(project_named(&tx.projects()?, &id)?.clone())
        })
    }

    /// Whether a loop of this id is there, or documents of it are.
    ///
    /// # Errors
    /// See [`Service::loops_of_all_projects`].
    pub fn knows_loop(&self, id: &str) -> Result<bool, Refusal> {
        self.read(|tx| Ok(tx.loop_place(id)?.is_some() || !tx.document_heads(id)?.is_empty()))
    }

    /// The documents of a loop id, by path; the loop may be gone.
    ///
    /// # Errors
    /// See [`Service::loops_of_all_projects`].
    pub fn documents(&self, id: &str) -> Result<Vec<DocumentHead>, Refusal> {
        self.read(|tx| Ok(tx.document_heads(id)?))
    }

    /// The loops that are gone and left documents.
    ///
    /// # Errors
    /// See [`Service::loops_of_all_projects`].
    pub fn kept_documents(&self) -> Result<Vec<KeptDocuments>, Refusal> {
        self.read(|tx| Ok(tx.kept_documents()?))
    }

    /// A document of a loop id, at its newest or another revision; the loop may be gone.
    ///
    /// # Errors
    /// A document or a revision that does not exist.
    pub fn document(&self, id: &str, path: &str, rev: Option<u32>) -> Result<Document, Refusal> {
        self.read(|tx| {
            if let Some(document) = tx.document(id, path, rev)? {
                return Ok(document);
            }
            let heads = tx.document_heads(id)?;
            let (id, path) = (id.to_owned(), path.to_owned());
            match (heads.iter().find(|head| head.path == path), rev) {
                (Some(head), Some(rev)) => Err(Refusal::UnknownRevision { id, path, rev, newest: head.rev }),
                _ => {
                    let there = heads.into_iter().map(|head| head.path).collect();
                    Err(Refusal::UnknownDocument { id, path, there })
                }
            }
        })
    }
}

/// The project of an id, of the beginning of one, or of a name.
fn project_named<'a>(all: &'a [ProjectSummary], named: &str) -> Result<&'a ProjectSummary, Refusal> {
    if let Some(found) = all.iter().find(|project| project.project.id == named) {
        return Ok(found);
    }
    let begins = |project: &&ProjectSummary| {
        named.len() >= PREFIX_MIN && project.project.id.starts_with(&named.to_ascii_lowercase())
    };
    let found: Vec<_> =
        all.iter().filter(|project| project.project.name == named || begins(project)).collect();
    let named = named.to_owned();
    match found.as_slice() {
        [] => Err(Refusal::UnknownProject { named }),
        [only] => Ok(only),
        several => {
            let ids = several.iter().take(LISTED).map(|project| project.project.id.clone()).collect();
            Err(Refusal::SeveralProjects { named, ids })
        }
    }
}

/// Names, icons and tags as they are stored.
fn check(changes: ProjectChanges) -> Result<ProjectEdit, Refusal> {
    let ProjectChanges { name, icon, tags } = changes;
    if name.is_none() && icon.is_none() && tags.is_none() {
        return Err(Refusal::NothingToChange);
    }
    let name = name.map(|name| text("the name", &name, NAME_MAX)).transpose()?;
    let icon = match icon.as_deref().map(str::trim) {
        None => None,
        Some("") => Some(None),
        Some(icon) => Some(Some(text("the icon", icon, ICON_MAX)?)),
    };
    let tags = match tags {
        None => None,
        Some(tags) => {
            let mut kept: Vec<String> = Vec::new();
            for tag in tags.iter().filter(|tag| !tag.trim().is_empty()) {
                let tag = text("a tag", tag, TAG_MAX)?;
                if !kept.contains(&tag) {
                    kept.push(tag);
                }
            }
            if kept.len() > TAGS_MAX {
                let (what, got) = ("the list of tags", format!("{} tags", kept.len()));
                return Err(Refusal::Unfit { what, got, why: format!("at most {TAGS_MAX} are kept") });
            }
            Some(kept)
        }
    };
    Ok(ProjectEdit { name, icon, tags })
}

fn text(what: &'static str, got: &str, max: usize) -> Result<String, Refusal> {
    let text = got.trim();
    let why = if text.is_empty() {
        "it is blank".to_owned()
    } else if text.chars().any(char::is_control) {
        "it holds a control character".to_owned()
    } else if text.chars().count() > max {
        format!("it is longer than {max} characters")
    } else {
        return Ok(text.to_owned());
    };
    let got = got.chars().take(60).collect();
    Err(Refusal::Unfit { what, got, why })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project(id: &str, name: &str) -> ProjectSummary {
        let project =
            ProjectRow { id: id.to_owned(), name: name.to_owned(), remote_key: None, repo_key: None };
        ProjectSummary {
            project,
            icon: None,
            tags: Vec::new(),
            created_at: 0,
            roots: Vec::new(),
            loops: 0,
            unfinished: 0,
            archives: 0,
            used_at: 0,
        }
    }

    #[test]
    fn what_names_a_project() {
        let all = [project("aaaa1111", "app"), project("aaaa2222", "app"), project("bbbb3333", "aaaa1")];
        // What is given, and the id it means, or a word of the refusal.
        let table = [
            ("aaaa1111", Ok("aaaa1111")),
            ("aaaa2", Ok("aaaa2222")),
            ("BBBB", Ok("bbbb3333")),
            ("bbb", Err("no project")),
            ("", Err("no project")),
            ("aaaa", Err("aaaa1111, aaaa2222")),
            ("app", Err("aaaa1111, aaaa2222")),
            ("aaaa1", Err("aaaa1111, bbbb3333")),
        ];
        for (named, expected) in table {
            match (project_named(&all, named), expected) {
                (Ok(found), Ok(id)) => assert_eq!(found.project.id, id),
                (Err(refusal), Err(word)) => assert!(refusal.to_string().contains(word), "{refusal}"),
                (found, _) => panic!("{named:?} gave {found:?}"),
            }
        }
    }

    #[test]
    fn names_icons_and_tags() {
        let changes = |name: Option<&str>, icon: Option<&str>, tags: Option<&[&str]>| ProjectChanges {
            name: name.map(str::to_owned),
            icon: icon.map(str::to_owned),
            tags: tags.map(|tags| tags.iter().map(|tag| (*tag).to_owned()).collect()),
        };
        let edit = check(changes(Some(" a b "), Some(""), Some(&["x", "", "y", "x"]))).expect("fit");
        let tags = Some(vec!["x".to_owned(), "y".to_owned()]);
        assert_eq!(edit, ProjectEdit { name: Some("a b".to_owned()), icon: Some(None), tags });
        let long = "x".repeat(NAME_MAX + 1);
        let refused = [
            (changes(None, None, None), "nothing to change"),
            (changes(Some("  "), None, None), "blank"),
            (changes(Some("a\u{1b}b"), None, None), "control"),
            (changes(Some(&long), None, None), "longer"),
            (changes(None, Some("a long word as icon"), None), "longer"),
        ];
        for (changes, word) in refused {
            let refusal = check(changes).expect_err(word).to_string();
            assert!(refusal.contains(word), "{refusal}");
        }
    }
}
