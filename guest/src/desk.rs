//! One call at work: the facts it has, the questions it still asks, the loop it
//! changes, and what comes of it.
//!
//! A tool checks first and changes afterwards. Changes are made on the loaded
//! state and noted; at the end `OpenLoop::commit` turns the notes into writes and renders the
//! views from the very state that the writes lead to. A refusal drops the notes.

mod open_loop;

pub use open_loop::{OpenLoop, document_view};

use crate::model::{
    Document, DocumentHead, Event, FileEntry, GoalState, LoopPlace, LoopState, Memory, Step, TreeEntry,
};
use crate::policy::{LatchReach, Policy};
use crate::refusal::Refusal;
use crate::reply::Reply;
use crate::status::Status;
use crate::text::nearest;
use crate::tools::{
    Answer, ArchiveDetail, ArchiveFilter, ArchivePage, ArchivedLoop, CapturedFile, EpisodePage, EvidenceFile,
    Facts, FileFact, FollowUp, FoundLoop, LedgerPage, LoopFilter, LoopPage, Outcome, Project, PruneCandidate,
    Query, Run, RunPart, Script, ScriptRun, Write,
};
use crate::views::ViewSet;

/// Why a tool stops before it has an answer.
pub enum Halt {
    /// It needs these answered.
    Need(Vec<Query>),
    /// It is refused.
    Refuse(Refusal),
    /// It is refused and the loop remembers it.
    Latch(Box<Latch>),
}

/// A refusal that the loop remembers until it is put right.
pub struct Latch {
    open: OpenLoop,
    /// The task that the refusal names.
    task: usize,
    /// The status that was asked for, where one was.
    asked: Option<Status>,
    refusal: Refusal,
}

impl<R: Into<Refusal>> From<R> for Halt {
    fn from(refusal: R) -> Halt {
        Halt::Refuse(refusal.into())
    }
}

/// What an accepted call answers, and what it changes.
pub struct Accepted {
    reply: Reply,
    change: Change,
    follow_up: Option<FollowUp>,
}

enum Change {
    None,
    /// The changed loop, and all its lessons where the call read them.
    Loop(Box<OpenLoop>, Option<Vec<Memory>>),
    /// Nothing is stored; the views are written anew.
    Views(ViewSet),
    /// Changes beside those of one loop's state.
    Writes(Vec<Write>),
}

impl Accepted {
    /// An answer that changes nothing.
    pub fn reading(reply: Reply) -> Done {
        Ok(Accepted { reply, change: Change::None, follow_up: None })
    }

    /// An answer that writes views without a change to the state.
    pub fn rendering(reply: Reply, views: ViewSet) -> Done {
        Ok(Accepted { reply, change: Change::Views(views), follow_up: None })
    }

    /// An answer that changes something other than one loop's state.
    pub fn writing(reply: Reply, writes: Vec<Write>, follow_up: Option<FollowUp>) -> Done {
        Ok(Accepted { reply, change: Change::Writes(writes), follow_up })
    }

    /// The outcome of the call; `ignored` are the arguments that nobody read, and
    /// `gone` the root of the loop when that is no longer there.
    pub fn outcome(self, ignored: Vec<String>, gone: Option<&str>, version: &str) -> Outcome {
        let Accepted { mut reply, change, follow_up } = self;
        let (writes, mut views) = match change {
            Change::None => (Vec::new(), None),
            Change::Views(views) => (Vec::new(), Some(views)),
            Change::Loop(open, memories) => open.commit(memories.as_deref(), version),
            Change::Writes(writes) => (writes, None),
        };
        if let Some(root) = gone {
            reply = reply.with("detached", true).with("project_root", root);
            if views.take().is_some() {
                reply = reply.with("mirror", "not written: the loop's project root is gone");
            }
        }
        Outcome { reply: reply.finish(ignored), refused: false, writes, views, follow_up }
    }
}

/// What a slug turned out to mean.
pub enum Found {
    /// A loop of this root.
    Here(LoopState),
    /// The only loop of the project whose own root is gone.
    Detached(LoopState),
    /// No loop that a call could be on; those of other roots that exist.
    Nothing(Vec<LoopPlace>),
}

impl Latch {
    /// The outcome of the refused call, which is remembered.
    pub fn outcome(self, version: &str) -> Outcome {
        let Latch { mut open, task, asked, refusal } = self;
        open.latch(task, asked, &refusal);
        let detached = open.detached;
        let (writes, views) = open.commit(None, version);
        Outcome { writes, views: views.filter(|_| !detached), ..refused(&refusal) }
    }
}

/// What a tool comes to.
pub type Done = Result<Accepted, Halt>;

/// Declares, for each kind of query, the method that asks it.
macro_rules! questions {
    ($($(#[$meta:meta])* $name:ident($($arg:ident: $ty:ty),*) $kind:ident $($payload:expr)? => $answer:ty;)+) => {
        impl Desk {
            $($(#[$meta])*
            pub fn $name(&mut self, $($arg: $ty),*) -> Result<$answer, Halt> {
                let query = Query::$kind$(($payload))?;
                match self.answer(query.clone())? {
                    Answer::$kind(answer) => Ok(answer),
                    // An answer to something else is none.
                    _ => Err(Halt::Need(vec![query])),
                }
            })+
        }
    };
}

questions! {
    /// The loops of a slug.
    loops_of(slug: &str) LoopState slug.to_owned() => FoundLoop;
    /// The loop of an id.
    loop_by_id(id: &str) LoopById id.to_owned() => Option<LoopState>;
    /// Which of these roots are there.
    roots_exist(roots: Vec<String>) RootsExist roots => Vec<bool>;
    /// Every slug of the project.
    slugs() LoopSlugs => Vec<String>;
    /// One page of the project's loops.
    loop_page(filter: LoopFilter) LoopList filter => LoopPage;
    /// The lessons of a loop, oldest first.
    memories(id: &str) Memories id.to_owned() => Vec<Memory>;
    /// The newest events of a loop, oldest first.
    recent_events(id: &str, limit: u32) RecentEvents (id.to_owned(), limit) => Vec<Event>;
    /// The events that carry evidence, oldest first.
    proofs(id: &str) Proofs id.to_owned() => Vec<Event>;
    /// Every event of a loop, oldest first.
    timeline(id: &str) Timeline id.to_owned() => Vec<Event>;
    /// The closed steps that took longest.
    slowest_steps(id: &str, limit: u32) SlowestSteps (id.to_owned(), limit) => Vec<Step>;
    /// The documents in the database, by path.
    documents(id: &str) Documents id.to_owned() => Vec<DocumentHead>;
    /// One revision of a document, or the newest.
    document(id: &str, path: &str, rev: Option<u32>) Document (id.to_owned(), path.to_owned(), rev) => Option<Document>;
    /// What lies in a loop's folder, top level and tasks.
    loop_files(id: &str) LoopFiles id.to_owned() => Option<Vec<FileEntry>>;
    /// The text of one file in a loop's folder.
    file_text(id: &str, path: &str) FileText (id.to_owned(), path.to_owned()) => Option<String>;
    /// All that lies below a loop's folder.
    loop_tree(id: &str, leave_out: Vec<String>) LoopTree (id.to_owned(), leave_out) => Option<Vec<TreeEntry>>;
    /// Files of a loop's folder, read and held for an archive.
    capture(id: &str, paths: Vec<String>) Capture (id.to_owned(), paths) => Vec<CapturedFile>;
    /// One page of the archives.
    archive_page(filter: ArchiveFilter) ArchiveList filter => ArchivePage;
    /// One archive's header and files.
    archive(id: &str) Archive id.to_owned() => Option<ArchiveDetail>;
    /// The loop that an archive holds.
    archived_loop(id: &str) ArchivedLoop id.to_owned() => Option<ArchivedLoop>;
    /// One file of an archive.
    archived_content(id: &str, path: &str) ArchivedContent (id.to_owned(), path.to_owned()) => Option<Vec<u8>>;
    /// The project of any folder.
    project_at(folder: &str) ProjectAt folder.to_owned() => Result<Project, String>;
    /// The loop that has a slug in a root.
    slug_holder(root: &str, slug: &str) SlugHolder (root.to_owned(), slug.to_owned()) => Option<String>;
    /// Loops whose history can go.
    prunable(before: i64) Prunable before => Vec<PruneCandidate>;
    /// A file that a gate rests on.
    evidence(file: EvidenceFile) Evidence file => FileFact;
    /// How a program ends.
    run_script(script: Script) RunScript script => ScriptRun;
    /// The recorded rulings of a run.
    goal_states(run: Run) GoalStates run => Vec<GoalState>;
    /// Entries of a run's ledger.
    ledger(part: RunPart) Ledger part => LedgerPage;
    /// Episodes of a run.
    episodes(part: RunPart) Episodes part => EpisodePage;
    /// A note of a run.
    scratchpad(run: &Run, key: &str) Scratchpad (run.clone(), key.to_owned()) => Option<String>;
}

/// The facts of a call and the policy of the tool that it is for.
pub struct Desk {
    pub policy: Policy,
    pub facts: Facts,
    /// The root of the loop that the call is on, when that is no longer there.
    pub gone: Option<String>,
}

impl Desk {
    /// Takes the answer to a query out of the facts, or asks for it.
    fn answer(&mut self, query: Query) -> Result<Answer, Halt> {
        match self.facts.answers.iter().position(|f| f.query == query) {
            Some(i) => Ok(self.facts.answers.swap_remove(i).answer),
            None => Err(Halt::Need(vec![query])),
        }
    }

    /// Asks several queries in one round; their answers are then at hand.
    pub fn gather(&self, queries: Vec<Query>) -> Result<(), Halt> {
        let known = |query: &Query| self.facts.answers.iter().any(|f| f.query == *query);
        let missing: Vec<_> = queries.into_iter().filter(|q| !known(q)).collect();
        if missing.is_empty() { Ok(()) } else { Err(Halt::Need(missing)) }
    }

    /// The folder of a loop, relative to the project root.
    pub fn folder(&self, slug: &str) -> String {
        format!("{}/{slug}", self.facts.place.loops_folder)
    }

    /// A run that belongs to no loop.
    pub fn free_run(&self, name: String) -> Run {
        Run { project_id: self.facts.project.id.clone(), name, loop_id: None }
    }

    /// Finds the loop that a slug means: the one of this root, else the only one of
    /// the project whose own root is gone.
    pub fn find(&mut self, slug: &str) -> Result<Found, Halt> {
        let FoundLoop { here, elsewhere } = self.loops_of(slug)?;
        if let Some(state) = here {
            return Ok(Found::Here(state));
        }
        if elsewhere.is_empty() {
            return Ok(Found::Nothing(elsewhere));
        }
        let roots = elsewhere.iter().map(|place| place.project_root.clone()).collect();
        let mut there = self.roots_exist(roots)?.into_iter();
        let (living, gone): (Vec<_>, Vec<_>) =
            elsewhere.into_iter().partition(|_| there.next().unwrap_or(false));
        match gone.as_slice() {
            [] => Ok(Found::Nothing(living)),
            [only] => Ok(match self.loop_by_id(&only.id)? {
                Some(state) => Found::Detached(state),
                None => Found::Nothing(living),
            }),
            several => Err(Refusal::SeveralDetached {
                slug: slug.to_owned(),
                roots: several.iter().map(|place| place.project_root.clone()).collect(),
            }
            .into()),
        }
    }

    /// Opens the loop of a slug for this tool: it has to exist, and to be in a
    /// state in which the tool is allowed.
    pub fn open(&mut self, slug: &str) -> Result<OpenLoop, Halt> {
        match self.find(slug)? {
            Found::Nothing(living) => {
                let known = self.slugs()?;
                let known = known.iter().map(String::as_str).filter(|other| *other != slug);
                let nearest = nearest(slug, known).into_iter().map(str::to_owned).collect();
                let roots = living.into_iter().map(|place| place.project_root).collect();
                Err(Refusal::LoopNotFound { slug: slug.to_owned(), nearest, roots }.into())
            }
            Found::Here(state) => self.opened(state, false),
            Found::Detached(state) => self.opened(state, true),
        }
    }

    /// Opens a loop that was found.
    pub fn opened(&mut self, state: LoopState, detached: bool) -> Result<OpenLoop, Halt> {
        self.gone = detached.then(|| state.loop_.project_root.clone());
        let mut open = OpenLoop::new(self.policy, state, self.facts.now);
        open.detached = detached;
        open.refuse_when_finished()?;
        if self.policy.latch == LatchReach::Whole {
            open.refuse_when_latched(None)?;
        }
        Ok(open)
    }
}

/// The outcome of a refused call that writes nothing.
pub fn refused(refusal: &Refusal) -> Outcome {
    let reply = refusal.to_string();
    Outcome { reply, refused: true, writes: Vec::new(), views: None, follow_up: None }
}
