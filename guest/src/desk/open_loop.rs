//! A loop at work: its state, and what a call changes of it.

use super::{Accepted, Change, Done, Halt, Latch};
use crate::clock::{self, Clocks, Dispatch, EndedBy};
use crate::document;
use crate::model::{Block, Document, Event, GoalState, LedgerEntry, Loop, LoopState, Memory, Step, Task};
use crate::owed::{self, Owed};
use crate::phase::LoopStatus;
use crate::plan::{same_id, status_of};
use crate::policy::{AfterEnd, Policy};
use crate::refusal::Refusal;
use crate::render;
use crate::reply::Reply;
use crate::status::{Mode, Status};
use crate::text::nearest;
use crate::timeline::name;
use crate::tools::{Run, Write};
use crate::views::{Content, DocumentView, Log, View, ViewSet};
use std::collections::BTreeMap;

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
    pub(super) fn new(policy: Policy, state: LoopState, now: i64) -> OpenLoop {
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

    pub(super) fn refuse_when_finished(&self) -> Result<(), Halt> {
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
    pub(super) fn latch(&mut self, task: usize, asked: Option<Status>, refusal: &Refusal) {
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
    pub(super) fn commit(
        mut self,
        memories: Option<&[Memory]>,
        version: &str,
    ) -> (Vec<Write>, Option<ViewSet>) {
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
