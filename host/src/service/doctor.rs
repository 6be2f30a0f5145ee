//! Whether all is well, found out without changing anything.
//!
//! The database is opened to be looked at: no folder or file is made, nothing is
//! migrated, and no journal mode is set. What does not depend on a part that is
//! missing or broken is looked at all the same.

use std::path::Path;

use serde_json::{Map, Value};

use crate::contract::tools::{ProjectEvidence, RootKind, RootSource};
use crate::contract::views::{Content, DocumentView, View};
use crate::mirror::{self, Difference, Source};
use crate::repo::{FLAG, VARIABLE};
use crate::store::{self, Looked, OVERRIDE, Store, StoreError, Writer};

use super::failure::Failure;
use super::people::Refusal;
use super::project::{Resolution, Site};
use super::source::Rendered;
use super::{Service, VERSION, lock, loops};

/// One part of what was looked at.
#[derive(Debug)]
pub struct Section {
    /// In one word.
    pub name: &'static str,
    /// What was found, in the order it is shown.
    pub facts: Map<String, Value>,
    /// What there is to say about it.
    pub findings: Vec<Finding>,
}

/// Something to know, and what to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Something is wrong, and not only worth knowing.
    pub wrong: bool,
    /// What was found.
    pub what: String,
    /// The next safe step.
    pub next: String,
}

impl Section {
    /// A section with nothing in it yet.
    pub fn new(name: &'static str) -> Section {
        Section { name, facts: Map::new(), findings: Vec::new() }
    }

    /// Adds a fact.
    pub fn fact(&mut self, name: &str, value: impl Into<Value>) {
        self.facts.insert(name.to_owned(), value.into());
    }

    /// Adds something that is wrong.
    pub fn wrong(&mut self, what: impl Into<String>, next: impl Into<String>) {
        self.findings.push(Finding { wrong: true, what: what.into(), next: next.into() });
    }

    /// Adds something worth knowing.
    pub fn note(&mut self, what: impl Into<String>, next: impl Into<String>) {
        self.findings.push(Finding { wrong: false, what: what.into(), next: next.into() });
    }
}

impl Service {
    /// Looks at all but the loops, and leaves the database open for looking.
    ///
    /// From then on this service changes nothing. Returns the sections, and whether
    /// there is a database to ask for loops.
    pub fn examine(&self) -> (Vec<Section>, bool) {
        let mut database = Section::new("database");
        let folder = self.state_dir.as_deref();
        let mut looked = None;
        if let Ok(folder) = folder {
            // A logic without a name is told of as the program's.
            let writer = self.writer().unwrap_or_default();
            looked = look(folder, &writer, &mut database);
            if let Some(store) = &mut looked {
                check(store, &writer, &mut database);
            }
        }
        let project = self.project_section(looked.as_mut());
        let sections = vec![self.program(), paths(folder), database, project];
        let opened = looked.is_some() && self.root.is_ok();
        *lock(&self.store) = looked;
        (sections, opened)
    }

    fn program(&self) -> Section {
        let mut section = Section::new("program");
        section.fact("version", VERSION);
        match self.logic.prepare().map_err(Failure::from).and_then(|()| self.writer()) {
            Ok(logic) => section.fact("logic", logic.to_string()),
            Err(error) => {
                section.wrong(
                    format!("the logic cannot be used: {error}"),
                    "mend that, name another one with --logic, or leave the option out",
                );
            }
        }
        section.fact("sqlite", store::sqlite_version());
        section
    }

    fn project_section(&self, store: Option<&mut Store>) -> Section {
        let mut section = Section::new("project");
        let root = match &self.root {
            Ok(root) => root,
            Err(error) => {
                section.wrong(
                    error.to_string(),
                    "each call is refused until then; list --all-projects still works",
                );
                return section;
            }
        };
        let source = match root.source {
            RootSource::Flag => FLAG,
            RootSource::Variable => VARIABLE,
            RootSource::Directory => "the working directory",
        };
        section.fact("root", root.path.as_str());
        section.fact("named_by", source);
        if root.kind != RootKind::Folder && root.source == RootSource::Directory {
            section.note(
                format!("{} is no project but a folder that holds everything", root.path),
                format!("loop_init refuses here; start in the project's folder, or name it with {FLAG} or {VARIABLE}"),
            );
        }
        let site = Site::look(&root.path, root.default_name());
        site.ask_git();
        if let Some(identity) = site.identity() {
            section.fact("remote_key", identity.remote_key.clone());
            section.fact("repo_key", identity.repo_key.clone());
        }
        let resolved = store.map(|store| {
            let tx = store.read()?;
            let recorded = tx.project_of_root(&root.path)?.is_some();
            let groups = tx.duplicates()?;
            Ok::<_, StoreError>((site.resolve(&tx, String::new)?, recorded, groups))
        });
        let (below, note) = match resolved {
            Some(Ok((Resolution::Known(resolved), recorded, groups))) => {
                let facts = site.facts(&resolved);
                let is_new = facts.id.is_empty();
                section.fact("project", (!is_new).then(|| facts.id.clone()));
                section.fact("name", facts.name.as_str());
                section.fact("recognised_by", evidence(facts.evidence));
                section.fact("recorded", recorded);
                if !is_new && groups.iter().any(|group| group.projects.contains(&facts.id)) {
                    section.note(
                        "another project may be the same as this one",
                        "`projects duplicates` shows what they have in common",
                    );
                }
                (facts.below, facts.note)
            }
            Some(Ok((Resolution::AskGit, ..))) | None => {
                (site.below().map(str::to_owned), site.identity().and_then(|found| found.note.clone()))
            }
            Some(Err(error)) => {
                section.wrong(error.to_string(), "see the database above");
                (None, None)
            }
        };
        if let Some(top) = below {
            section.note(
                format!("the root lies below the work tree's top {top}"),
                format!("its loops are those of this folder; name the top with {FLAG} if that is meant"),
            );
        }
        if let Some(note) = note {
            section.note(note, "until then the project is recognised by what is known of it otherwise");
        }
        section
    }

    /// Which files of a loop's folder differ from what the database has, documents
    /// included; `None` when its root is gone.
    ///
    /// # Errors
    /// A loop that is not stored, or a folder that must not be looked at.
    pub fn differences(&self, id: &str) -> Result<Option<Vec<Difference>>, Refusal> {
        self.on_store(|store| {
            let mut damaged = Vec::new();
            let mut views = Vec::new();
            let slug = store.read()?.loop_place(id)?.map(|(_, slug)| slug).unwrap_or_default();
            let heads = store.read()?.document_heads(id)?;
            let mut session = self.logic.session(&crate::cancel::Cancel::default()).map_err(Failure::from)?;
            for head in heads {
                let path = head.path;
                match store.read()?.document(id, &path, Some(head.rev)) {
                    Ok(Some(document)) => {
                        let text = session
                            .stamp(&slug, &document.head, &document.content, VERSION)
                            .map_err(Failure::from)?;
                        let content = Content::Document(DocumentView { rev: document.head.rev, text });
                        views.push(View { path, content });
                    }
                    Ok(None) => {}
                    Err(error) => damaged.push(Difference { path, why: error.to_string() }),
                }
            }
            drop(session);
            let mut source = Rendered { store, logic: &self.logic, loop_id: id };
            let rendered = source.render_all();
            let mut set = rendered
                .map_err(|cause| Failure::from(mirror::MirrorError::Source { slug: slug.clone(), cause }))?;
            set.views.append(&mut views);
            let found = mirror::differences(&set, &mut source).map_err(Failure::from)?;
            Ok(found.map(|mut found| {
                found.append(&mut damaged);
                found
            }))
        })
    }
}

fn paths(folder: Result<&Path, &StoreError>) -> Section {
    let mut section = Section::new("paths");
    match folder {
        Ok(folder) => {
            let named = std::env::var_os(OVERRIDE).is_some_and(|value| !value.is_empty());
            section.fact("state_folder", folder.display().to_string());
            section.fact("named_by", if named { OVERRIDE } else { "the home folder" });
            section.fact("database", folder.join(store::FILE).display().to_string());
            section.fact("compiled_logics", folder.join("logic").display().to_string());
        }
        Err(error) => section.wrong(error.to_string(), "nothing can be stored until then"),
    }
    section
}

/// Opens the database to be looked at, and says how it stands where that fails.
fn look(folder: &Path, writer: &Writer, section: &mut Section) -> Option<Store> {
    section.fact("supported_schema_version", Store::supported_version());
    match Store::look(folder, writer.clone()) {
        Ok(Looked::Store(store)) => return Some(*store),
        Ok(Looked::Nothing) => {
            section.note("there is no database yet", "the first call that needs it makes it");
        }
        Ok(Looked::Older { version }) => {
            section.fact("schema_version", version);
            section.note(
                "the database is of an older version of this program",
                "the first call that needs it brings it up to date, and keeps a copy of it beside it",
            );
        }
        Err(error) => {
            if let StoreError::Newer { found, .. } | StoreError::BadVersion { found, .. } = &error {
                section.fact("schema_version", *found);
            }
            section.wrong(error.to_string(), "each call is refused until then");
        }
    }
    None
}

fn check(store: &mut Store, writer: &Writer, section: &mut Section) {
    section.fact("journal_mode", store.journal_mode());
    let size = store.size();
    section.fact("bytes", size.database);
    section.fact("log_bytes", size.log);
    let unwritable = store.unwritable();
    section.fact("writable", unwritable.is_none());
    if let Some(why) = unwritable {
        section.wrong(
            format!("the database can be read and not written: {why}"),
            "make it and its folder writable; until then each change is refused",
        );
    }
    match store.read().and_then(|tx| tx.other_logics()) {
        Ok(others) => {
            if let Some(said) = loops::of_others(&others, writer) {
                section.note(said, "start the server with that logic to change them");
            }
        }
        Err(error) => section.wrong(error.to_string(), "restore the database from a backup"),
    }
    let found =
        store.read().and_then(|tx| Ok((tx.schema_version()?, tx.row_counts()?, tx.integrity_check()?)));
    match found {
        Ok((version, counts, faults)) => {
            section.fact("schema_version", version);
            let rows = counts.into_iter().map(|(table, rows)| (table, Value::from(rows)));
            section.fact("rows", Value::Object(rows.collect()));
            section.fact("integrity", if faults.is_empty() { "ok" } else { "damaged" });
            for fault in faults {
                section.wrong(
                    fault,
                    "restore the database from a backup; `export` saves what can still be read",
                );
            }
        }
        Err(error) => section.wrong(error.to_string(), "restore the database from a backup"),
    }
}

fn evidence(evidence: ProjectEvidence) -> &'static str {
    match evidence {
        ProjectEvidence::KnownRoot => "known root",
        ProjectEvidence::Remote => "remote",
        ProjectEvidence::Repository => "repository",
        ProjectEvidence::Folder => "folder",
    }
}
