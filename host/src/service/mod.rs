//! One call from its arguments to its reply: the only place where the store, the
//! logic, the mirror and the project meet.
//!
//! ```text
//! begin ─► decide ─► need: answer from the store, decide again
//!                └─► done: apply, commit ─► mirror ─► reply
//! ```
//!
//! What the logic judged is what is written: the state is loaded, decided and
//! changed inside one transaction, which for a call that may write holds the
//! write lock from the start. The mirror follows after the commit and never undoes
//! it.

mod failure;
mod seams;
mod source;

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::cancel::Cancel;
use crate::contract::tools::{self, Decision, Fact, Facts, Outcome};
use crate::logic::{Logic, LogicError};
use crate::mcp::{self, Reply};
use crate::mirror;
use crate::repo::{ProjectRoot, RootError};
use crate::store::{ProjectRow, Store, StoreError, Tx};

use failure::Failure;
pub use seams::{Seams, TEST_CLOCK};
use source::Rendered;

/// The version that the views name and loops record.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How often a logic may ask before it has to decide.
const ROUNDS: usize = 8;

/// What a service works on.
pub struct Parts {
    /// The rules.
    pub logic: Logic,
    /// The project, or why there is none.
    pub root: Result<ProjectRoot, RootError>,
    /// The folder of the database, or why there is none.
    pub state_dir: Result<PathBuf, StoreError>,
    /// Time and ids.
    pub seams: Seams,
}

/// The record-keeper: runs calls one at a time.
///
/// Starting one touches neither the disk nor the database: a server answers what
/// it is even where nothing can be stored, and each call then says what is wrong.
pub struct Service {
    logic: Logic,
    root: Result<ProjectRoot, RootError>,
    state_dir: Result<PathBuf, StoreError>,
    seams: Seams,
    catalogue: Mutex<Option<Vec<tools::Tool>>>,
    /// Opened by the first call that needs it, and again after a failure.
    store: Mutex<Option<Store>>,
}

/// A call that passed: what it answers, and what became of the views.
struct Passed {
    reply: String,
    refused: bool,
    mirror: Option<mirror::MirrorError>,
}

impl Service {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Service {
        let Parts { logic, root, state_dir, seams } = parts;
        Service { logic, root, state_dir, seams, catalogue: Mutex::new(None), store: Mutex::new(None) }
    }

    /// Returns the logic's catalogue, asked for once.
    fn catalogue(&self) -> Result<Vec<tools::Tool>, LogicError> {
        let mut known = lock(&self.catalogue);
        if let Some(tools) = known.as_ref() {
            return Ok(tools.clone());
        }
        let tools = self.logic.tools()?;
        *known = Some(tools.clone());
        Ok(tools)
    }

    /// Returns whether the tool only reads; `None` for one that does not exist.
    fn reads_only(&self, name: &str) -> Result<Option<bool>, LogicError> {
        if lock(&self.catalogue).is_none() {
            self.catalogue()?;
        }
        let known = lock(&self.catalogue);
        let tool = known.iter().flatten().find(|t| t.name == name);
        Ok(tool.map(|t| t.read_only))
    }

    fn run(&self, call: &tools::Call, reads_only: bool, cancel: &Cancel) -> Result<Passed, Failure> {
        let root = self.root.as_ref().map_err(|e| Failure::NoProject(e.to_string()))?;
        let state_dir = self.state_dir.as_ref().map_err(|e| Failure::NoStateFolder(e.to_string()))?;
        let mut guard = lock(&self.store);
        let store = match &mut *guard {
            Some(store) => store,
            closed => closed.insert(Store::open(state_dir)?),
        };

        let mut session = self.logic.session(cancel)?;
        let tx = if reads_only { store.read()? } else { store.write()? };
        // Taken under the lock, so that of two calls the later one has the later time.
        let at = self.seams.now()?;
        let project = project_of(&tx, root, || self.seams.fresh_id(at))?;
        let mut facts = Facts {
            now: at,
            fresh_id: self.seams.fresh_id(at),
            version: VERSION.to_owned(),
            project: facts_of(&project, root),
            answers: Vec::new(),
        };
        let outcome = 'decided: {
            for _ in 0..ROUNDS {
                match session.decide(call, &facts)? {
                    Decision::Done(outcome) => break 'decided outcome,
                    Decision::Need(queries) => {
                        for query in queries {
                            let answer = match tx.answer(&project.id, &root.path, &query)? {
                                Some(answer) => answer,
                                None => folder_answer(&root.path, &query)?,
                            };
                            facts.answers.push(Fact { query, answer });
                        }
                    }
                }
            }
            return Err(Failure::Undecided { tool: call.tool.clone(), rounds: ROUNDS });
        };
        drop(session);
        let Outcome { reply, refused, writes, views } = outcome;

        if writes.is_empty() {
            drop(tx);
        } else {
            if reads_only {
                return Err(Failure::ReaderWrites { tool: call.tool.clone() });
            }
            if cancel.is_cancelled() {
                return Err(Failure::Logic(LogicError::Cancelled));
            }
            if writes.iter().any(|w| matches!(w, tools::Write::CreateLoop(_))) {
                tx.register_project(&project, &root.path, at)?;
            }
            tx.apply(&writes)?;
            tx.commit()?;
        }
        let mirror = views.and_then(|set| {
            let mut source = Rendered { store, logic: &self.logic, loop_id: &set.loop_id };
            mirror::sync(&set, &mut source).err()
        });
        Ok(Passed { reply, refused, mirror })
    }

    fn answer(&self, tool: &str, arguments: String, cancel: &Cancel) -> Result<Option<Passed>, Failure> {
        let Some(reads_only) = self.reads_only(tool)? else { return Ok(None) };
        let call = tools::Call { tool: tool.to_owned(), arguments };
        self.run(&call, reads_only, cancel).map(Some)
    }
}

/// Answers what a decision asks of a loop's folder.
fn folder_answer(root: &str, query: &tools::Query) -> Result<tools::Answer, Failure> {
    let root = Path::new(root);
    Ok(match query {
        tools::Query::LoopFiles(slug) => tools::Answer::LoopFiles(mirror::files(root, slug)?),
        tools::Query::FileText((slug, path)) => tools::Answer::FileText(mirror::text(root, slug, path)?),
        other => return Err(Failure::Unanswered { query: format!("{other:?}") }),
    })
}

/// A poisoned lock guards a value that is either whole or rebuilt: a transaction
/// that a panic left open was rolled back when it was dropped.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The project of the root; a new one is recorded with its first loop.
fn project_of(
    tx: &Tx<'_>,
    root: &ProjectRoot,
    fresh_id: impl FnOnce() -> String,
) -> Result<ProjectRow, StoreError> {
    Ok(tx.project_of_root(&root.path)?.unwrap_or_else(|| ProjectRow {
        id: fresh_id(),
        name: root.default_name().to_owned(),
        remote_key: None,
        repo_key: None,
    }))
}

fn facts_of(project: &ProjectRow, root: &ProjectRoot) -> tools::Project {
    tools::Project {
        id: project.id.clone(),
        name: project.name.clone(),
        root: root.path.clone(),
        root_source: root.source,
        root_kind: root.kind,
        key: project.remote_key.clone().or_else(|| project.repo_key.clone()),
        evidence: "root folder".to_owned(),
        loops_folder: mirror::LOOPS.join("/"),
    }
}

/// Adds to an answer that the views could not be written.
fn tell_mirror(reply: String, failed: &mirror::MirrorError) -> String {
    match serde_json::from_str(&reply) {
        Ok(serde_json::Value::Object(mut answer)) => {
            answer.insert("mirror".to_owned(), format!("failed: {failed}").into());
            serde_json::Value::Object(answer).to_string()
        }
        _ => reply,
    }
}

impl mcp::Backend for Service {
    fn identity(&self) -> mcp::Identity {
        let instructions = match self.logic.identity() {
            Ok(identity) => identity.instructions,
            Err(error) => {
                tracing::error!(%error, "the logic does not say who it is");
                String::new()
            }
        };
        mcp::Identity { name: env!("CARGO_PKG_NAME").to_owned(), version: VERSION.to_owned(), instructions }
    }

    fn tools(&self) -> Result<Vec<mcp::Tool>, String> {
        let tools = self.catalogue().map_err(|e| e.to_string())?;
        Ok(tools.into_iter().map(published).collect())
    }

    fn call(
        &self,
        tool: &str,
        arguments: serde_json::Map<String, serde_json::Value>,
        cancel: &Cancel,
    ) -> Reply {
        let arguments = serde_json::Value::Object(arguments).to_string();
        match self.answer(tool, arguments, cancel) {
            Ok(None) => Reply::UnknownTool,
            Ok(Some(Passed { reply, refused, mirror })) => {
                if let Some(error) = &mirror {
                    tracing::warn!(%error, "the views could not be written");
                }
                match (refused, &mirror) {
                    (true, _) => Reply::Refused(reply),
                    (false, None) => Reply::Done(reply),
                    (false, Some(error)) => Reply::Done(tell_mirror(reply, error)),
                }
            }
            Err(Failure::Logic(LogicError::Cancelled)) => Reply::Cancelled,
            Err(failure) => Reply::Refused(failure.to_string()),
        }
    }
}

fn published(tool: tools::Tool) -> mcp::Tool {
    mcp::Tool {
        name: tool.name,
        title: tool.title,
        description: tool.description,
        input_schema: tool.input_schema,
        read_only: tool.read_only,
        destructive: tool.destructive,
        idempotent: tool.idempotent,
        profile: match tool.profile {
            tools::Profile::Core => mcp::Profile::Core,
            tools::Profile::Standard => mcp::Profile::Standard,
            tools::Profile::All => mcp::Profile::All,
        },
    }
}
