//! One call at work: the facts it has, the questions it still asks, the loop it
//! changes, and what comes of it.
//!
//! A tool checks first and changes afterwards. Changes are made on the loaded
//! state and noted; at the end `OpenLoop::commit` turns the notes into writes and renders the
//! views from the very state that the writes lead to. A refusal drops the notes.

use crate::clock::{self, Clocks, Dispatch, EndedBy};
use crate::document;
use crate::model::{
    Block, Document, DocumentHead, Event, FileEntry, GoalState, LedgerEntry, Loop, LoopPlace, LoopState,
    Memory, Step, Task, TreeEntry,
};
use crate::owed::{self, Owed};
use crate::phase::LoopStatus;
use crate::plan::{same_id, status_of};
use crate::policy::{AfterEnd, LatchReach, Policy};
use crate::refusal::Refusal;
use crate::render;
use crate::reply::Reply;
use crate::status::{Mode, Status};
use crate::text::nearest;
use crate::timeline::name;
use crate::tools::{
    Answer, ArchiveDetail, ArchiveFilter, ArchivePage, ArchivedLoop, CapturedFile, EpisodePage, EvidenceFile,
    Facts, FileFact, FollowUp, FoundLoop, LedgerPage, LoopFilter, LoopPage, Outcome, Project, PruneCandidate,
    Query, Run, RunPart, Script, ScriptRun, Write,
};
use crate::views::{Content, DocumentView, Log, View, ViewSet};
use std::collections::BTreeMap;

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

/// A loop that a call works on, and what it changed so far.
pub struct OpenLoop {
    policy: Policy,
    pub now: i64,
    pub state: LoopState,
    /// The loop's own root is gone, and with it the place for its views.
    pub detached: bool,
    created: bool,
    changed: bool,
    phases: Vec<usize>,
    tasks: Vec<usize>,
    steps: Vec<Step>,
    step_changed: bool,
    events: Vec<Event>,
    memories: Vec<Memory>,
    documents: Vec<Document>,
    /// The place in `state.goals` of rulings that are new.
    rulings: Vec<usize>,
    /// New entries of the loop's ledger.
    ledger: Vec<LedgerEntry>,
}

impl OpenLoop {
    fn new(policy: Policy, state: LoopState, now: i64) -> OpenLoop {
        OpenLoop {
            policy,
            now,
            state,
            detached: false,
            created: false,
            changed: false,
            phases: Vec::new(),
            tasks: Vec::new(),
            steps: Vec::new(),
            step_changed: false,
            events: Vec::new(),
            memories: Vec::new(),
            documents: Vec::new(),
            rulings: Vec::new(),
            ledger: Vec::new(),
        }
    }

    /// A loop that does not exist yet.
    pub fn create(policy: Policy, state: LoopState, now: i64) -> OpenLoop {
        let mut open = OpenLoop::new(policy, state, now);
        open.created = true;
        open.changed = true;
        open.phases = (0..open.state.phases.len()).collect();
        open
    }

    /// The loop's row, to read.
    pub fn row(&self) -> &Loop {
        &self.state.loop_
    }

    /// The loop's row, to change.
    pub fn row_mut(&mut self) -> &mut Loop {
        self.changed = true;
        &mut self.state.loop_
    }

    /// The loop's mode. A stored word that is none of ours means the strictest.
    pub fn mode(&self) -> Mode {
        Mode::parse(&self.state.loop_.mode).unwrap_or(Mode::Standard)
    }

    /// Whether the loop has ended, and how.
    pub fn ended(&self) -> Option<LoopStatus> {
        LoopStatus::parse(&self.state.loop_.status).filter(|s| *s != LoopStatus::Active)
    }

    fn refuse_when_finished(&self) -> Result<(), Halt> {
        match self.ended() {
            Some(status) if self.policy.after_end == AfterEnd::Refused => Err(Refusal::Finished {
                slug: self.state.loop_.slug.clone(),
                status: status.word().to_owned(),
            }
            .into()),
            _ => Ok(()),
        }
    }

    /// Refuses while the loop is latched, except on the task that the latch
    /// names and on tasks in flight. `None` is a call on the loop as a whole.
    pub fn refuse_when_latched(&self, task: Option<usize>) -> Result<(), Halt> {
        let Some(block) = &self.state.loop_.blocked else {
            return Ok(());
        };
        let free = task.is_some_and(|t| self.is_latched_on(t) || status_of(&self.state.tasks[t]).in_flight());
        if free {
            return Ok(());
        }
        Err(Refusal::Latched { op: block.op.clone(), task: block.task.clone(), reason: block.reason.clone() }
            .into())
    }

    fn is_latched_on(&self, task: usize) -> bool {
        let block = self.state.loop_.blocked.as_ref();
        block.is_some_and(|b| same_id(&b.task, &self.state.tasks[task].taskid))
    }

    /// Finds a task, without regard to case.
    pub fn find_task(&self, taskid: &str) -> Result<usize, Halt> {
        self.state.tasks.iter().position(|t| same_id(&t.taskid, taskid)).ok_or_else(|| {
            let nearest = nearest(taskid, self.state.tasks.iter().map(|t| t.taskid.as_str()));
            Refusal::TaskNotFound {
                taskid: taskid.to_owned(),
                nearest: nearest.into_iter().map(str::to_owned).collect(),
            }
            .into()
        })
    }

    /// Finds the task that the call is on; the latch may forbid it.
    pub fn task(&self, taskid: &str) -> Result<usize, Halt> {
        let task = self.find_task(taskid)?;
        self.refuse_when_latched(Some(task))?;
        Ok(task)
    }

    /// A task, to change.
    pub fn task_mut(&mut self, task: usize) -> &mut Task {
        self.changed = true;
        if !self.tasks.contains(&task) {
            self.tasks.push(task);
        }
        let row = &mut self.state.tasks[task];
        row.updated_at = row.updated_at.max(self.now);
        row
    }

    /// Puts another plan in place of the one there is; each task whose row
    /// differs is stored anew.
    pub fn replace_tasks(&mut self, tasks: Vec<Task>) {
        self.changed = true;
        let old = std::mem::replace(&mut self.state.tasks, tasks);
        let old: BTreeMap<_, _> = old.iter().map(|t| (&t.taskid, t)).collect();
        let differs = |task: &Task| old.get(&task.taskid).is_none_or(|before| **before != *task);
        self.tasks = (0..self.state.tasks.len()).filter(|i| differs(&self.state.tasks[*i])).collect();
    }

    /// A rung of the ladder, to change.
    pub fn phase_mut(&mut self, phase: usize) -> &mut crate::model::Phase {
        self.changed = true;
        self.phases.push(phase);
        &mut self.state.phases[phase]
    }

    /// The step that a task owes next.
    pub fn owed(&self, task: usize) -> Owed {
        let row = &self.state.tasks[task];
        owed::next_step(self.mode(), status_of(row), row.tech.as_deref(), row.retries)
    }

    /// Starts an event at the present phase. Fill in the rest with struct update.
    pub fn event(&self, name: &str) -> Event {
        Event {
            seq: 0,
            at: self.now,
            event: name.to_owned(),
            phase: Some(self.state.loop_.phase.clone()),
            task: None,
            from: None,
            to: None,
            agent: None,
            note: None,
            evidence: None,
            issue: None,
            pr: None,
            branch: None,
        }
    }

    /// Puts an event at the end of the timeline and gives it its number.
    pub fn record(&mut self, mut event: Event) -> &Event {
        let marks = &mut self.row_mut().marks;
        marks.event_seq += 1;
        event.seq = marks.event_seq;
        self.events.push(event);
        // Just pushed.
        &self.events[self.events.len() - 1]
    }

    /// Adds a lesson and gives it its number.
    pub fn remember(&mut self, agent: String, task: Option<String>, note: String) -> &Memory {
        let at = self.now;
        let marks = &mut self.row_mut().marks;
        marks.memory_seq += 1;
        let seq = marks.memory_seq;
        self.memories.push(Memory { seq, at, agent, task, note });
        &self.memories[self.memories.len() - 1]
    }

    /// Keeps a revision of a document.
    pub fn keep_document(&mut self, document: Document) {
        self.changed = true;
        self.documents.push(document);
    }

    /// Takes a recorded ruling over into the loop's state.
    pub fn rule(&mut self, ruling: GoalState) {
        self.changed = true;
        let goals = &mut self.state.goals;
        let at = match goals.binary_search_by(|state| state.target.cmp(&ruling.target)) {
            Ok(at) => {
                goals[at] = ruling;
                at
            }
            Err(at) => {
                goals.insert(at, ruling);
                at
            }
        };
        self.rulings.push(at);
    }

    /// Adds entries to the ledger of the loop's own run.
    pub fn log_run(&mut self, entries: Vec<LedgerEntry>) {
        self.changed = true;
        self.ledger.extend(entries);
    }

    /// The run that belongs to the loop.
    pub fn run(&self) -> Run {
        let row = &self.state.loop_;
        Run { project_id: row.project_id.clone(), name: row.slug.clone(), loop_id: Some(row.id.clone()) }
    }

    /// Refuses what is only for loops that have ended.
    pub fn refuse_while_active(&self, what: &'static str) -> Result<(), Halt> {
        match self.ended() {
            Some(_) => Ok(()),
            None => Err(Refusal::StillActive { slug: self.row().slug.clone(), what }.into()),
        }
    }

    /// Refuses what needs the loop's folder when its root is gone.
    pub fn refuse_when_detached(&self) -> Result<(), Halt> {
        let row = self.row();
        let refusal = || Refusal::Detached { slug: row.slug.clone(), root: row.project_root.clone() };
        if self.detached { Err(refusal().into()) } else { Ok(()) }
    }

    /// Opens a step in the loop's phase, closing the one that is open. Returns its
    /// attempt and its number.
    pub fn open_step(&mut self, task: Option<String>, agent: String, step: String) -> (u32, u64) {
        self.close_step(EndedBy::AutoNext);
        self.changed = true;
        self.step_changed = true;
        let phase = self.state.loop_.phase.clone();
        let dispatch = Dispatch { task, phase, agent, step, source: clock::LIVE };
        let mut clocks = Clocks::of(&mut self.state);
        let opened = clocks.open(dispatch, self.now);
        (opened.attempt, opened.seq)
    }

    /// Closes the open step, if there is one, and returns it.
    pub fn close_step(&mut self, by: EndedBy) -> Option<Step> {
        let at = self.now;
        let step = Clocks::of(&mut self.state).close(by, at)?;
        self.changed = true;
        self.steps.push(step.clone());
        Some(step)
    }

    /// Closes the open step when it is one of this task.
    pub fn close_step_of(&mut self, taskid: &str) {
        if Clocks::of(&mut self.state).is_open_for(taskid) {
            self.close_step(EndedBy::AutoComplete);
        }
    }

    /// Takes an agent's return into account.
    pub fn agent_return(&mut self, event: &Event) {
        self.changed = true;
        self.step_changed |= Clocks::of(&mut self.state).agent_return(
            event.task.as_deref(),
            event.agent.as_deref(),
            event.to.as_deref(),
            self.now,
        );
    }

    /// Lifts the latch when it names this task: the corrective call was made.
    pub fn settle(&mut self, task: usize) {
        if self.is_latched_on(task) {
            self.row_mut().blocked = None;
        }
    }

    /// The refusal that this call ends in, which the loop is to remember. Nothing
    /// may have been changed before.
    pub fn refuse_and_latch(self, task: usize, asked: Option<Status>, refusal: Refusal) -> Halt {
        Halt::Latch(Box::new(Latch { open: self, task, asked, refusal }))
    }

    /// Refuses to start a task while another is in flight.
    pub fn refuse_in_flight(self, taskid: String, stranded: usize, asked: Option<Status>) -> Halt {
        let row = &self.state.tasks[stranded];
        let refusal = Refusal::InFlight {
            taskid,
            stranded: row.taskid.clone(),
            status: status_of(row),
            owed: self.owed(stranded).action,
        };
        self.refuse_and_latch(stranded, asked, refusal)
    }

    /// Sets the latch for a refused call and writes its event.
    fn latch(&mut self, task: usize, asked: Option<Status>, refusal: &Refusal) {
        let row = &self.state.tasks[task];
        let block =
            Block { op: self.policy.op.to_owned(), task: row.taskid.clone(), reason: refusal.to_string() };
        let event = Event {
            task: Some(block.task.clone()),
            from: Some(row.status.clone()),
            to: asked.map(|s| s.word().to_owned()),
            note: Some(format!("{}: {}", block.op, block.reason)),
            ..self.event(name::TOOL_REFUSED)
        };
        self.record(event);
        self.row_mut().blocked = Some(block);
    }

    /// Ends the call with this answer and the changes made so far.
    pub fn done(self, reply: Reply) -> Done {
        Ok(Accepted { reply, change: Change::Loop(Box::new(self), None), follow_up: None })
    }

    /// The same for a call that adds to the lessons; `memories` are all of them.
    pub fn done_with_lessons(self, reply: Reply, memories: Vec<Memory>) -> Done {
        Ok(Accepted { reply, change: Change::Loop(Box::new(self), Some(memories)), follow_up: None })
    }

    /// Turns the changes into writes, and the state they lead to into views.
    ///
    /// `memories` are all lessons, the new ones included, where the call had to
    /// read them.
    fn commit(mut self, memories: Option<&[Memory]>, version: &str) -> (Vec<Write>, Option<ViewSet>) {
        if !self.changed {
            return (Vec::new(), None);
        }
        let lines = render::log_lines(&self.events);
        let lessons = memories.map(|all| render::lessons_page(&self.state.loop_, all, version));
        let row = &mut self.state.loop_;
        row.updated_at = row.updated_at.max(self.now);
        row.marks.revision += 1;
        row.marks.log_bytes += lines.len() as u64;
        if let Some(page) = &lessons {
            row.marks.memory_bytes = (page.len() - version.len()) as u64;
        }

        let mut views = Vec::new();
        // The history of a pruned loop is gone; its log stays as it was.
        if self.state.loop_.pruned_at.is_none() {
            let marks = self.state.loop_.marks;
            let log = Log { seq: marks.event_seq, bytes: marks.log_bytes, lines, rebuild: false };
            views.push(View { path: render::EVENT_LOG.to_owned(), content: Content::Log(log) });
        }
        views.push(View {
            path: render::LOOP_PAGE.to_owned(),
            content: Content::Whole(render::loop_page(&self.state, version)),
        });
        views.push(View {
            path: render::LESSONS_PAGE.to_owned(),
            content: match lessons {
                Some(page) => Content::Whole(page),
                None => Content::Kept(self.state.loop_.marks.memory_bytes + version.len() as u64),
            },
        });
        let slug = &self.state.loop_.slug;
        views.extend(self.documents.iter().map(|d| document_view(slug, d, version)));
        let views = render::view_set(&self.state.loop_, views);
        (self.into_writes(), Some(views))
    }

    fn into_writes(self) -> Vec<Write> {
        let id = self.state.loop_.id.clone();
        let run = self.run();
        let mut writes = Vec::with_capacity(2 + self.tasks.len() + self.phases.len() + self.events.len());
        if self.created {
            writes.push(Write::CreateLoop(self.state.loop_));
        } else {
            writes.push(Write::PutLoop(self.state.loop_));
        }
        let mut phases = self.phases;
        phases.dedup();
        for phase in phases {
            writes.push(Write::PutPhase((id.clone(), self.state.phases[phase].clone())));
        }
        for task in self.tasks {
            writes.push(Write::PutTask((id.clone(), self.state.tasks[task].clone())));
        }
        writes.extend(self.events.into_iter().map(|e| Write::AppendEvent((id.clone(), e))));
        let mut steps = self.steps;
        steps.extend(self.state.open_step.filter(|_| self.step_changed));
        let totals = self.state.totals.into_iter();
        let touched = totals.filter(|t| steps.iter().any(|s| s.task == t.task && s.phase == t.phase));
        writes.extend(touched.map(|t| Write::PutStepTotal((id.clone(), t))));
        writes.extend(steps.into_iter().map(|s| Write::PutStep((id.clone(), s))));
        writes.extend(self.memories.into_iter().map(|m| Write::AppendMemory((id.clone(), m))));
        writes.extend(self.documents.into_iter().map(|d| Write::PutDocument((id.clone(), d))));
        for ruling in self.rulings {
            writes.push(Write::PutGoalState((run.clone(), self.state.goals[ruling].clone())));
        }
        writes.extend(self.ledger.into_iter().map(|entry| Write::AppendLedger((run.clone(), entry))));
        writes
    }
}

/// The file of a document.
pub fn document_view(slug: &str, document: &Document, version: &str) -> View {
    let Document { head, content } = document;
    let text = document::stamp(slug, head, content, version);
    View { path: head.path.clone(), content: Content::Document(DocumentView { rev: head.rev, text }) }
}

/// The outcome of a refused call that writes nothing.
pub fn refused(refusal: &Refusal) -> Outcome {
    let reply = refusal.to_string();
    Outcome { reply, refused: true, writes: Vec::new(), views: None, follow_up: None }
}
