//! One call from its arguments to its reply: the only place where the store, the
//! logic, the mirror and the project meet.
//!
//! ```text
//! begin ─► decide ─► need: answer from the store, decide again
//!   ▲            ├─► need of facts from outside: end the transaction, gather, start over
//!   └────────────┘
//!                └─► done: apply, commit ─► mirror ─► follow-up ─► reply
//! ```
//!
//! What the logic judged is what is written: the state is loaded, decided and
//! changed inside one transaction, which for a call that may write holds the
//! write lock from the start. The mirror follows after the commit and never undoes
//! it.

mod doctor;
mod failure;
mod follow_up;
mod glance;
mod loops;
mod outside;
mod people;
mod project;
mod seams;
mod source;
mod transfer;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use crate::cancel::Cancel;
use crate::contract::tools::{self, Decision, Fact, Facts, Outcome};
use crate::evidence::Scripts;
use crate::logic::{Logic, LogicError};
use crate::mcp::{self, Reply};
use crate::mirror;
use crate::progress::Progress;
use crate::repo::{FLAG, ProjectRoot, RootError, VARIABLE};
use crate::store::{Store, StoreError, Tx, Writer};

pub use doctor::{Finding, Section};
pub use failure::Failure;
use outside::{Errand, Folder, Outside};
pub use people::{LoopsOfProject, MergedProjects, ProjectChanges, Refusal};
use project::{Resolution, Resolved, Site};
pub use seams::{Seams, TEST_CLOCK};
use source::Rendered;

/// The version that the views name and loops record.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// How often a logic may ask before it has to decide.
const ROUNDS: usize = 8;

/// How often a call may start over for facts from outside the database.
const STARTS: usize = 8;

/// The longest name of a logic, in bytes.
const NAME_MAX: usize = 100;

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
    /// Whether a gate may run programs.
    pub scripts: Scripts,
    /// Where long work tells how far it has come.
    pub progress: Progress,
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
    scripts: Scripts,
    progress: Progress,
    catalogue: Mutex<Option<Vec<tools::Tool>>>,
    /// Opened by the first call that needs it, and again after a failure.
    store: Mutex<Option<Store>>,
    /// The root as it was found by the first call that needed it.
    site: OnceLock<Site>,
}

/// A call that passed: what it answers, and what became of the views.
struct Passed {
    reply: String,
    refused: bool,
    mirror: Option<mirror::MirrorError>,
    follow_up: serde_json::Map<String, serde_json::Value>,
}

/// One attempt at a call.
enum Attempt {
    Passed(Passed),
    /// These have to be looked up first, for a call in this project; nothing was stored.
    Gather(String, Vec<Errand>),
    AskGit,
}

impl Service {
    /// Puts the parts together.
    pub fn new(parts: Parts) -> Service {
        let Parts { logic, root, state_dir, seams, scripts, progress } = parts;
        let (catalogue, store, site) = Default::default();
        Service { logic, root, state_dir, seams, scripts, progress, catalogue, store, site }
    }

    /// Returns the logic as the one whose loops the database keeps.
    fn writer(&self) -> Result<Writer, Failure> {
        let tools::Identity { name, version, .. } = self.logic.identity();
        if name.trim() != name || name.is_empty() || name.len() > NAME_MAX || name.contains(char::is_control)
        {
            return Err(Failure::Nameless { name: name.chars().take(NAME_MAX).collect() });
        }
        Ok(Writer { name: name.clone(), version: version.clone() })
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

    /// Runs something on the database, which is opened if need be.
    pub(crate) fn with_store<T>(
        &self,
        run: impl FnOnce(&mut Store) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let state_dir = self.state_dir.as_ref().map_err(|e| Failure::NoStateFolder(e.to_string()))?;
        let mut guard = lock(&self.store);
        let store = match &mut *guard {
            Some(store) => store,
            closed => {
                let writer = self.writer()?;
                let mut store = Store::open_for(state_dir, writer.clone(), self.progress.clone())?;
                let others = store.read()?.other_logics()?;
                if let Some(said) = loops::of_others(&others, &writer) {
                    tracing::warn!("{}: {said}", store.path().display());
                }
                closed.insert(store)
            }
        };
        run(store)
    }

    fn run(&self, call: &tools::Call, reads_only: bool, cancel: &Cancel) -> Result<Passed, Failure> {
        let root = self.root.as_ref().map_err(|e| Failure::NoProject(e.to_string()))?;
        let site = self.site.get_or_init(|| Site::look(&root.path, root.default_name()));
        let mut ids = Ids { seams: &self.seams, at: self.seams.now()?, call: None };
        let mut outside = Outside::default();
        let call = Running { call, reads_only, cancel, root, site };
        for _ in 0..STARTS {
            match self.with_store(|store| self.attempt(&call, store, &outside, &mut ids))? {
                Attempt::Passed(passed) => return Ok(passed),
                Attempt::AskGit => site.ask_git(),
                Attempt::Gather(project, errands) => {
                    let with = outside::Gathering { service: self, cancel, ids: &ids };
                    for errand in errands {
                        outside.gather(errand, &project, &root.path, &with)?;
                    }
                }
            }
        }
        Err(Failure::Undecided { tool: call.call.tool.clone(), rounds: STARTS })
    }

    /// Decides and stores a call in one transaction, as far as the facts allow, and
    /// does what follows.
    fn attempt(
        &self,
        running: &Running<'_>,
        store: &mut Store,
        outside: &Outside,
        ids: &mut Ids<'_>,
    ) -> Result<Attempt, Failure> {
        let &Running { call, reads_only, cancel, root, site } = running;
        let mut session = self.logic.session(cancel)?;
        let tx = if reads_only { store.read()? } else { store.write()? };
        // Taken under the lock, so that of two calls the later one has the later time.
        let at = self.seams.now()?;
        ids.at = at;
        let resolved = match site.resolve(&tx, || ids.fresh())? {
            Resolution::Known(resolved) => resolved,
            Resolution::AskGit => return Ok(Attempt::AskGit),
        };
        let mut facts = Facts {
            now: at,
            fresh_id: ids.of_call(),
            version: VERSION.to_owned(),
            project: site.facts(&resolved),
            place: place_of(root),
            answers: Vec::new(),
        };
        let mut folders = HashMap::new();
        for _ in 0..ROUNDS {
            let queries = match session.decide(call, &facts)? {
                Decision::Need(queries) => queries,
                Decision::Done(outcome) => {
                    session.end();
                    let with = Stored { resolved: &resolved, outside, at };
                    self.store(running, tx, &outcome, &with)?;
                    return self.finish(outcome, store).map(Attempt::Passed);
                }
            };
            let mut errands = Vec::new();
            for query in queries {
                let answer = match tx.answer(&resolved.project.id, &root.path, &query)? {
                    Some(answer) => Some(answer),
                    None => outside.answer(&query),
                };
                match answer {
                    Some(answer) => facts.answers.push(Fact { query, answer }),
                    None => errands.push(Errand { folder: folder_of(&query, &tx, &mut folders)?, query }),
                }
            }
            if !errands.is_empty() {
                return Ok(Attempt::Gather(resolved.project.id, errands));
            }
        }
        Err(Failure::Undecided { tool: call.tool.clone(), rounds: ROUNDS })
    }

    /// Stores what was decided.
    fn store(
        &self,
        running: &Running<'_>,
        tx: Tx<'_>,
        outcome: &Outcome,
        with: &Stored<'_>,
    ) -> Result<(), Failure> {
        let &Running { call, reads_only, cancel, site, .. } = running;
        if reads_only && !(outcome.writes.is_empty() && outcome.follow_up.is_none()) {
            return Err(Failure::ReaderWrites { tool: call.tool.clone() });
        }
        let folders = folders_of(outcome);
        let apply = |tx: &Tx<'_>| tx.apply_with(&outcome.writes, &with.outside.held, &folders);
        if outcome.writes.is_empty() {
            return Ok(apply(&tx)?);
        }
        if cancel.is_cancelled() {
            return Err(Failure::Logic(LogicError::Cancelled));
        }
        site.record(with.resolved, &tx, with.at)?;
        for write in &outcome.writes {
            if let tools::Write::RestoreArchive(restoring) = write
                && let Some(other) = with.outside.site(&restoring.loop_.project_root)
                && let Resolution::Known(resolved) =
                    other.resolve(&tx, || restoring.loop_.project_id.clone())?
            {
                other.record(&resolved, &tx, with.at)?;
            }
        }
        apply(&tx)?;
        tx.commit()?;
        Ok(())
    }

    /// Brings the folder up to date, and does what is left.
    ///
    /// What fails here is told in the answer of a call that was stored. A call that is
    /// nothing but its follow-up fails with it.
    fn finish(&self, outcome: Outcome, store: &mut Store) -> Result<Passed, Failure> {
        let Outcome { reply, refused, writes, views, follow_up } = outcome;
        let mirror = views.and_then(|set| {
            let mut source = Rendered { store, logic: &self.logic, loop_id: &set.loop_id };
            mirror::sync(&set, &mut source).err()
        });
        let added =
            match follow_up.map(|follow_up| follow_up::run(&follow_up, store, &self.logic, &self.progress)) {
                None => serde_json::Map::new(),
                Some(Ok(added)) => added,
                Some(Err(error)) if writes.is_empty() => return Err(error),
                Some(Err(error)) => {
                    tracing::warn!(%error, "the call was stored, and what follows it failed");
                    serde_json::Map::from_iter([("follow_up".to_owned(), format!("failed: {error}").into())])
                }
            };
        Ok(Passed { reply, refused, mirror, follow_up: added })
    }

    fn answer(&self, tool: &str, arguments: String, cancel: &Cancel) -> Result<Option<Passed>, Failure> {
        let Some(reads_only) = self.reads_only(tool)? else { return Ok(None) };
        let call = tools::Call { tool: tool.to_owned(), arguments };
        self.run(&call, reads_only, cancel).map(Some)
    }
}

/// A poisoned lock guards a value that is either whole or rebuilt: a transaction
/// that a panic left open was rolled back when it was dropped.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A call with what stays the same however often it starts.
struct Running<'a> {
    call: &'a tools::Call,
    reads_only: bool,
    cancel: &'a Cancel,
    root: &'a ProjectRoot,
    site: &'a Site,
}

/// What a stored call rests on beside its outcome.
struct Stored<'a> {
    resolved: &'a Resolved,
    outside: &'a Outside,
    at: i64,
}

/// The ids of one call.
struct Ids<'a> {
    seams: &'a Seams,
    at: i64,
    /// The one that the call is given, however often it starts.
    call: Option<String>,
}

impl Ids<'_> {
    /// An id that no one has used.
    fn fresh(&self) -> String {
        self.seams.fresh_id(self.at)
    }

    fn of_call(&mut self) -> String {
        let fresh = || self.seams.fresh_id(self.at);
        self.call.get_or_insert_with(fresh).clone()
    }
}

/// The loops to whose folders files are brought, by id.
fn folders_of(outcome: &Outcome) -> Vec<&str> {
    let viewed = outcome.views.as_ref().map(|views| views.loop_id.as_str());
    let followed = outcome.follow_up.as_ref().and_then(|follow_up| match follow_up {
        tools::FollowUp::Materialize(id) => Some(id.as_str()),
        tools::FollowUp::RestoreFiles(restore) => Some(restore.loop_id.as_str()),
        tools::FollowUp::MeasureArchive(_) | tools::FollowUp::Vacuum => None,
    });
    viewed.into_iter().chain(followed).collect()
}

/// The folder that a query is about.
fn folder_of(
    query: &tools::Query,
    tx: &Tx<'_>,
    known: &mut HashMap<String, Option<Folder>>,
) -> Result<Option<Folder>, StoreError> {
    let Some(id) = Outside::loop_of(query) else { return Ok(None) };
    if let Some(folder) = known.get(id) {
        return Ok(folder.clone());
    }
    let folder = tx.loop_place(id)?.map(|(root, slug)| Folder { root, slug });
    known.insert(id.clone(), folder.clone());
    Ok(folder)
}

fn place_of(root: &ProjectRoot) -> tools::Place {
    tools::Place {
        root_source: root.source,
        root_kind: root.kind,
        loops_folder: mirror::LOOPS.join("/"),
        root_flag: FLAG.to_owned(),
        root_variable: VARIABLE.to_owned(),
    }
}

/// An object as text. Printing a value gives the same through a formatter, which takes
/// several times as long.
fn json_text(object: &serde_json::Map<String, serde_json::Value>) -> String {
    // Text as keys: there is nothing that could fail.
    serde_json::to_string(object).unwrap_or_default()
}

/// Adds fields to an answer.
fn tell(reply: String, fields: serde_json::Map<String, serde_json::Value>) -> String {
    if fields.is_empty() {
        return reply;
    }
    match serde_json::from_str(&reply) {
        Ok(serde_json::Value::Object(mut answer)) => {
            answer.extend(fields);
            json_text(&answer)
        }
        _ => reply,
    }
}

impl mcp::Backend for Service {
    fn identity(&self) -> mcp::Identity {
        mcp::Identity {
            name: env!("CARGO_PKG_NAME").to_owned(),
            version: VERSION.to_owned(),
            instructions: self.logic.identity().instructions.clone(),
        }
    }

    fn tools(&self) -> Result<Vec<mcp::Tool>, String> {
        let tools = self.catalogue().map_err(|e| e.to_string())?;
        Ok(tools.into_iter().map(published).collect())
    }

    fn rest(&self) {
        if let Err(error) = self.logic.prepare() {
            tracing::debug!(%error, "no instance of the logic was made in advance");
        }
    }

    fn call(
        &self,
        tool: &str,
        arguments: serde_json::Map<String, serde_json::Value>,
        cancel: &Cancel,
    ) -> Reply {
        let arguments = json_text(&arguments);
        match self.answer(tool, arguments, cancel) {
            Ok(None) => Reply::UnknownTool,
            Ok(Some(Passed { reply, refused, mirror, follow_up: mut fields })) => {
                if let Some(error) = mirror {
                    tracing::warn!(%error, "the views could not be written");
                    fields.insert("mirror".to_owned(), format!("failed: {error}").into());
                }
                if refused { Reply::Refused(reply) } else { Reply::Done(tell(reply, fields)) }
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
