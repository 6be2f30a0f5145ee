//! Tasks: the plan, and the moves of each task.

use crate::arguments::{Reference, Said, Slug, TaskId, arguments};
use crate::clock::EndedBy;
use crate::counter::{TaskCounter, bump};
use crate::desk::{Desk, Done, OpenLoop};
use crate::model::{Event, Task};
use crate::plan::{self, Plan, fold_id, in_the_way, same_id, status_of};
use crate::refusal::{BatchFault, Refusal};
use crate::reply::Reply;
use crate::status::{IllegalMove, Mode, Status, check_move, completable_from, words};
use crate::text::{NAME_MAX, is_absent, is_blank, present};
use crate::timeline::name;
use crate::tool::loops::counter_event;
use std::collections::BTreeSet;

/// The most tasks that a loop keeps.
pub const TASKS_MAX: usize = 5_000;

arguments! {
    /// A task of the plan.
    pub struct Planned {
        taskid: TaskId = "taskid", "";
        title: Said = "title", "";
        tech: Option<String> = "tech", "Picks the engineer, e.g. rust, frontend.";
        depends_on: Option<Vec<String>> = "depends_on", "";
        description: Option<String> = "description", "";
        issue: Option<Reference> = "issue", "";
        branch: Option<String> = "branch", "";
    }
}

arguments! {
    /// A task that gets the next free id when it names none.
    pub struct Added {
        taskid: Option<TaskId> = "taskid", "";
        title: Said = "title", "";
        tech: Option<String> = "tech", "";
        depends_on: Option<Vec<String>> = "depends_on", "";
        description: Option<String> = "description", "";
        issue: Option<Reference> = "issue", "";
        branch: Option<String> = "branch", "";
    }
}

words! {
    /// Why tasks were appended.
    Kind {
        QaFix = "qa-fix",
        DeferredFindings = "deferred-findings",
    }
}
crate::arguments::word_argument!(Kind);

/// What a batch says of one task; what it leaves out stays as it is.
struct Entry {
    taskid: String,
    title: String,
    tech: Option<String>,
    depends_on: Option<Vec<String>>,
    description: Option<String>,
    issue: Option<String>,
    branch: Option<String>,
}

impl From<Planned> for Entry {
    fn from(p: Planned) -> Entry {
        Entry {
            taskid: p.taskid.0,
            title: p.title.0,
            tech: present(p.tech),
            depends_on: p.depends_on,
            description: present(p.description),
            issue: present(p.issue.map(|r| r.0)),
            branch: present(p.branch),
        }
    }
}

impl Added {
    fn with_id(self, taskid: String) -> Entry {
        Entry {
            taskid,
            title: self.title.0,
            tech: present(self.tech),
            depends_on: self.depends_on,
            description: present(self.description),
            issue: present(self.issue.map(|r| r.0)),
            branch: present(self.branch),
        }
    }
}

impl Entry {
    /// Writes what the entry says over a task.
    fn write(self, task: &mut Task) {
        task.title = self.title;
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        set(&mut task.tech, self.tech.map(Some));
        set(&mut task.depends_on, self.depends_on);
        set(&mut task.description, self.description.map(Some));
        set(&mut task.issue, self.issue.map(Some));
        set(&mut task.branch, self.branch.map(Some));
    }

    fn into_task(self, kind: Option<String>, now: i64) -> Task {
        let mut task = Task {
            taskid: self.taskid.clone(),
            position: 0,
            title: String::new(),
            description: None,
            kind,
            tech: None,
            status: Status::Pending.word().to_owned(),
            depends_on: Vec::new(),
            issue: None,
            pr: None,
            branch: None,
            last_evidence: None,
            retries: 0,
            security_rounds: 0,
            review_rounds: 0,
            superseded_by: Vec::new(),
            created_at: now,
            updated_at: now,
            completed_at: None,
        };
        self.write(&mut task);
        task
    }
}

/// Checks a batch on its own: not empty, no id twice.
fn check_ids<'a>(ids: impl ExactSizeIterator<Item = &'a str>) -> Result<(), BatchFault> {
    if ids.len() == 0 {
        return Err(BatchFault::Empty);
    }
    let mut seen = BTreeSet::new();
    for id in ids {
        if !seen.insert(fold_id(id)) {
            return Err(BatchFault::Twice(id.to_owned()));
        }
    }
    Ok(())
}

/// Checks the plan that a batch would lead to, gives dependencies the spelling
/// of the task they name, and numbers the places.
fn settle_plan(tasks: &mut [Task]) -> Result<(), BatchFault> {
    if tasks.len() > TASKS_MAX {
        return Err(BatchFault::TooMany { total: tasks.len(), limit: TASKS_MAX });
    }
    let spelled: Vec<Vec<String>> = {
        let plan = Plan::new(tasks);
        tasks.iter().map(|task| spell(task, tasks, &plan)).collect::<Result<_, _>>()?
    };
    for (place, (task, depends_on)) in tasks.iter_mut().zip(spelled).enumerate() {
        task.depends_on = depends_on;
        // Bounded by the check above.
        task.position = place as u32;
    }
    match Plan::new(tasks).cycle() {
        Some(members) => Err(BatchFault::Cycle(members)),
        None => Ok(()),
    }
}

fn spell(task: &Task, tasks: &[Task], plan: &Plan) -> Result<Vec<String>, BatchFault> {
    let mut spelled: Vec<String> = Vec::with_capacity(task.depends_on.len());
    for id in &task.depends_on {
        if same_id(id, &task.taskid) {
            return Err(BatchFault::OnItself(task.taskid.clone()));
        }
        let Some(at) = plan.find(id) else {
            return Err(BatchFault::UnknownDependency {
                taskid: task.taskid.clone(),
                dependency: id.clone(),
            });
        };
        let name = &tasks[at].taskid;
        if !spelled.contains(name) {
            spelled.push(name.clone());
        }
    }
    Ok(spelled)
}

arguments! {
    /// Arguments of `tasks_derive`.
    pub struct Derive {
        slug: Slug = "loopSlug", "";
        tasks: Vec<Planned> = "tasks", "In plan order.";
    }
}

/// Creates or updates the tasks of the plan.
pub fn derive(args: Derive, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    check_ids(args.tasks.iter().map(|t| t.taskid.0.as_str()))?;
    let now = open.now;
    let mut tasks = open.state.tasks.clone();
    let (mut created, mut updated, mut unchanged) = (Vec::new(), Vec::new(), Vec::new());
    let stored = tasks.len();
    let mut touched = Vec::new();
    for planned in args.tasks {
        let entry = Entry::from(planned);
        match tasks[..stored].iter().position(|t| same_id(&t.taskid, &entry.taskid)) {
            Some(at) => {
                touched.push(at);
                entry.write(&mut tasks[at]);
            }
            None => {
                created.push(entry.taskid.clone());
                tasks.push(entry.into_task(None, now));
            }
        }
    }
    settle_plan(&mut tasks)?;
    for at in touched {
        let id = tasks[at].taskid.clone();
        if tasks[at] == open.state.tasks[at] {
            unchanged.push(id);
        } else {
            tasks[at].updated_at = tasks[at].updated_at.max(now);
            updated.push(id);
        }
    }
    let reply = Reply::new()
        .with("created", created.clone())
        .with("updated", updated.clone())
        .with("unchanged", unchanged);
    if created.is_empty() && updated.is_empty() {
        return open.done(reply);
    }
    open.replace_tasks(tasks);
    let ids = [created, updated].concat();
    let event = Event { note: Some(ids.join(", ")), ..open.event(name::TASKS_DERIVE) };
    open.record(event);
    open.done(reply)
}

arguments! {
    /// Arguments of `tasks_append`.
    pub struct Append {
        slug: Slug = "loopSlug", "";
        kind: Kind = "kind", "";
        tasks: Vec<Added> = "tasks", "taskid left out: the next free T-number.";
    }
}

/// Adds tasks at the end of the plan.
pub fn append(args: Append, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let given = args.tasks.iter().filter_map(|t| t.taskid.as_ref().map(|id| id.0.as_str()));
    let known = open.state.tasks.iter().map(|t| t.taskid.as_str());
    let mut number = plan::next_number(known.chain(given));
    let entries: Vec<Entry> = args
        .tasks
        .into_iter()
        .map(|mut task| {
            let id = task.taskid.take().map_or_else(
                || {
                    let id = format!("T{number}");
                    number = number.saturating_add(1);
                    id
                },
                |id| id.0,
            );
            task.with_id(id)
        })
        .collect();
    let kind = Some(args.kind.word().to_owned());
    let mut tasks = open.state.tasks.clone();
    let created = insert(&mut tasks, entries, stored_len(&open), kind, open.now, |_| ())?;
    open.replace_tasks(tasks);
    let event = Event { note: Some(created.join(", ")), ..open.event(name::TASKS_APPEND) };
    open.record(event);
    open.done(Reply::new().with("created", created))
}

fn stored_len(open: &OpenLoop) -> usize {
    open.state.tasks.len()
}

/// Inserts new tasks from a place on and checks the plan that results.
fn insert(
    tasks: &mut Vec<Task>,
    entries: Vec<Entry>,
    place: usize,
    kind: Option<String>,
    now: i64,
    finish: impl Fn(&mut Task),
) -> Result<Vec<String>, BatchFault> {
    check_ids(entries.iter().map(|e| e.taskid.as_str()))?;
    let created: Vec<String> = entries.iter().map(|e| e.taskid.clone()).collect();
    {
        let known = Plan::new(tasks);
        if let Some(taken) = created.iter().find(|id| known.find(id).is_some()) {
            return Err(BatchFault::Exists(taken.clone()));
        }
    }
    let new = entries.into_iter().map(|entry| {
        let mut task = entry.into_task(kind.clone(), now);
        finish(&mut task);
        task
    });
    tasks.splice(place..place, new);
    settle_plan(tasks)?;
    Ok(created)
}

arguments! {
    /// Arguments of `tasks_split`.
    pub struct Split {
        slug: Slug = "loopSlug", "";
        taskid: TaskId = "taskid", "";
        subtasks: Vec<Added> = "subtasks", "taskid left out: T3a, T3b, … for T3.";
    }
}

/// Replaces a task by subtasks.
pub fn split(args: Split, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let original = open.task(&args.taskid.0)?;
    let row = open.state.tasks[original].clone();
    let status = status_of(&row);
    if status.terminal() || status == Status::Merged {
        return Err(Refusal::NotSplittable { taskid: row.taskid, status }.into());
    }

    let mut taken: BTreeSet<String> = open.state.tasks.iter().map(|t| fold_id(&t.taskid)).collect();
    taken.extend(args.subtasks.iter().filter_map(|t| t.taskid.as_ref()).map(|id| fold_id(&id.0)));
    let mut entries = Vec::with_capacity(args.subtasks.len());
    let mut n = 0;
    for mut subtask in args.subtasks {
        let id = match subtask.taskid.take() {
            Some(id) => id.0,
            None => loop {
                let id = format!("{}{}", row.taskid, plan::suffix(n));
                n += 1;
                if id.len() > NAME_MAX {
                    return Err(BatchFault::NoId(id).into());
                }
                if taken.insert(fold_id(&id)) {
                    break id;
                }
            },
        };
        entries.push(subtask.with_id(id));
    }

    let mut tasks = open.state.tasks.clone();
    tasks[original].status = Status::Superseded.word().to_owned();
    tasks[original].superseded_by = entries.iter().map(|e| e.taskid.clone()).collect();
    tasks[original].updated_at = row.updated_at.max(open.now);
    let created = insert(&mut tasks, entries, original + 1, row.kind.clone(), open.now, |task| {
        // The original's own come first; the plan drops doubles.
        task.depends_on = [row.depends_on.clone(), std::mem::take(&mut task.depends_on)].concat();
        if task.tech.is_none() {
            task.tech.clone_from(&row.tech);
        }
    })?;
    open.replace_tasks(tasks);
    let event = Event {
        task: Some(row.taskid.clone()),
        from: Some(row.status.clone()),
        to: Some(Status::Superseded.word().to_owned()),
        note: Some(created.join(", ")),
        ..open.event(name::TASKS_SPLIT)
    };
    open.record(event);
    open.settle(original);
    open.done(Reply::new().with("superseded", row.taskid).with("created", created))
}

arguments! {
    /// Arguments of `task_setStatus`.
    pub struct SetStatus {
        slug: Slug = "loopSlug", "";
        taskid: TaskId = "taskid", "";
        status: Status = "status", "";
        evidence: Option<String> = "evidence", "What was checked and what came out; for merged the merge SHA.";
        issue: Option<Reference> = "issue", "";
        pr: Option<Reference> = "pr", "";
        branch: Option<String> = "branch", "";
    }
}

/// What a status call brings along beside the status.
struct Brought {
    evidence: Option<String>,
    issue: Option<String>,
    pr: Option<String>,
    branch: Option<String>,
}

impl Brought {
    fn is_nothing(&self) -> bool {
        self.evidence.is_none() && self.issue.is_none() && self.pr.is_none() && self.branch.is_none()
    }

    /// Writes it over the task and returns whether anything changed.
    fn write(&self, task: &mut Task) -> bool {
        let before = (task.last_evidence.clone(), task.issue.clone(), task.pr.clone(), task.branch.clone());
        let fields = [
            (&mut task.last_evidence, &self.evidence),
            (&mut task.issue, &self.issue),
            (&mut task.pr, &self.pr),
            (&mut task.branch, &self.branch),
        ];
        for (place, value) in fields {
            if value.is_some() {
                place.clone_from(value);
            }
        }
        before != (task.last_evidence.clone(), task.issue.clone(), task.pr.clone(), task.branch.clone())
    }
}

/// Whether a text proves anything: it says something, and not that there is
/// nothing.
fn proves(evidence: &str) -> bool {
    !is_blank(evidence) && !is_absent(evidence)
}

/// Moves a task.
pub fn set_status(args: SetStatus, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = open.task(&args.taskid.0)?;
    let (mode, to) = (open.mode(), args.status);
    let (taskid, from) = (open.state.tasks[task].taskid.clone(), status_of(&open.state.tasks[task]));
    let brought = Brought {
        evidence: args.evidence.filter(|e| proves(e)),
        issue: present(args.issue.map(|r| r.0)),
        pr: present(args.pr.map(|r| r.0)),
        branch: present(args.branch),
    };

    if from == to {
        return stay(open, task, &brought);
    }
    if to.in_flight()
        && let Some(stranded) = in_the_way(&open.state.tasks, task)
    {
        return Err(open.refuse_in_flight(taskid, stranded, Some(to)));
    }
    let hops = match check_move(mode, from, to) {
        Ok(hops) => hops,
        Err(illegal) => {
            let refusal = match illegal {
                IllegalMove::OnlyThrough(tool) => Refusal::OnlyThrough { taskid, to, tool },
                IllegalMove::NoSuchMove(path) => Refusal::Illegal { taskid, from, to, path },
            };
            return Err(refuse_move(open, task, from, to, refusal));
        }
    };
    if to.needs_evidence() && brought.evidence.is_none() {
        let refusal = Refusal::NoEvidence { taskid, what: to.word(), argument: "evidence" };
        return Err(open.refuse_and_latch(task, Some(to), refusal));
    }

    let mut at = from;
    let auto = hops.len() > 1;
    for (i, hop) in hops.iter().enumerate() {
        let last = i + 1 == hops.len();
        let event = Event {
            task: Some(taskid.clone()),
            from: Some(at.word().to_owned()),
            to: Some(hop.word().to_owned()),
            ..open.event(if last { name::TASK_SET_STATUS } else { name::TASK_SET_STATUS_AUTO })
        };
        let event = if last {
            Event {
                evidence: brought.evidence.clone(),
                issue: brought.issue.clone(),
                pr: brought.pr.clone(),
                branch: brought.branch.clone(),
                ..event
            }
        } else {
            event
        };
        open.record(event);
        at = *hop;
    }
    let row = open.task_mut(task);
    brought.write(row);
    row.status = to.word().to_owned();
    open.settle(task);
    let next = open.owed_next(task);
    open.done(
        Reply::new()
            .with("taskid", taskid)
            .with("from", from.word())
            .with("to", to.word())
            .with_some("auto", auto.then(|| hops[0].word()))
            .with("next", next),
    )
}

/// A status set to the value it has: new evidence is kept, no move recorded.
fn stay(mut open: OpenLoop, task: usize, brought: &Brought) -> Done {
    let word = open.state.tasks[task].status.clone();
    let taskid = open.state.tasks[task].taskid.clone();
    let mut row = open.state.tasks[task].clone();
    let changed = !brought.is_nothing() && brought.write(&mut row);
    if changed {
        *open.task_mut(task) = row;
        let now = open.now;
        let row = open.task_mut(task);
        row.updated_at = row.updated_at.max(now);
        let event = Event {
            task: Some(taskid.clone()),
            from: Some(word.clone()),
            to: Some(word.clone()),
            evidence: brought.evidence.clone(),
            issue: brought.issue.clone(),
            pr: brought.pr.clone(),
            branch: brought.branch.clone(),
            ..open.event(name::TASK_SET_STATUS)
        };
        open.record(event);
    }
    let next = open.owed_next(task);
    open.done(
        Reply::new()
            .with("taskid", taskid)
            .with("from", word.clone())
            .with("to", word)
            .flag("unchanged", !changed)
            .with("next", next),
    )
}

/// A refused move latches, unless the task can never move again.
fn refuse_move(open: OpenLoop, task: usize, from: Status, to: Status, refusal: Refusal) -> crate::desk::Halt {
    if from.terminal() { refusal.into() } else { open.refuse_and_latch(task, Some(to), refusal) }
}

arguments! {
    /// Arguments of `task_bumpCounter`.
    pub struct BumpCounter {
        slug: Slug = "loopSlug", "";
        taskid: TaskId = "taskid", "";
        counter: TaskCounter = "counter", "";
        by: Option<i64> = "by", "Default 1; may be negative.";
    }
}

/// Adds to a counter of a task.
pub fn bump_counter(args: BumpCounter, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = open.task(&args.taskid.0)?;
    let row = open.task_mut(task);
    let taskid = row.taskid.clone();
    let place = args.counter.of(row);
    let before = *place;
    *place = bump(before, args.by.unwrap_or(1));
    let value = *place;
    let event = counter_event(&open, Some(taskid.clone()), args.counter.word(), before, value);
    open.record(event);
    open.settle(task);
    open.done(
        Reply::new()
            .with("taskid", taskid)
            .with("counter", args.counter.word())
            .with("value", value)
            .with("capExceeded", value > args.counter.cap()),
    )
}

arguments! {
    /// Arguments of `task_complete`.
    pub struct Complete {
        slug: Slug = "loopSlug", "";
        taskid: TaskId = "taskid", "";
        evidence: String = "mergeEvidence", "The merge SHA.";
    }
}

/// Completes a task.
pub fn complete(args: Complete, desk: &mut Desk) -> Done {
    let mut open = desk.open(&args.slug.0)?;
    let task = open.find_task(&args.taskid.0)?;
    let mode: Mode = open.mode();
    let row = &open.state.tasks[task];
    let (taskid, from) = (row.taskid.clone(), status_of(row));
    if from == Status::Complete {
        let reply = completed(&open, &taskid).with("already", true);
        return open.done(reply);
    }
    open.refuse_when_latched(Some(task))?;
    if let Some((dependency, status)) = Plan::new(&open.state.tasks).first_unmet(task) {
        return Err(Refusal::Unmet { taskid, dependency, status: status.to_owned() }.into());
    }
    if !completable_from(mode).any(|s| s == from) {
        let refusal = Refusal::NotMerged {
            taskid,
            status: from,
            from: completable_from(mode).collect(),
            owed: open.owed(task).action,
        };
        return Err(refuse_move(open, task, from, Status::Complete, refusal));
    }
    if !proves(&args.evidence) {
        let refusal =
            Refusal::NoEvidence { taskid, what: Status::Complete.word(), argument: "mergeEvidence" };
        return Err(open.refuse_and_latch(task, Some(Status::Complete), refusal));
    }

    let event = Event {
        task: Some(taskid.clone()),
        from: Some(from.word().to_owned()),
        to: Some(Status::Complete.word().to_owned()),
        evidence: Some(args.evidence.clone()),
        ..open.event(name::TASK_COMPLETE)
    };
    open.record(event);
    let now = open.now;
    let row = open.task_mut(task);
    row.status = Status::Complete.word().to_owned();
    row.last_evidence = Some(args.evidence);
    row.completed_at = Some(now.max(row.created_at));
    open.settle(task);
    let of_task = |id: &Option<String>| id.as_ref().is_some_and(|id| same_id(id, &taskid));
    if open.state.open_step.as_ref().is_some_and(|s| of_task(&s.task)) {
        open.close_step(EndedBy::AutoComplete);
    }
    if open.row().now.as_ref().is_some_and(|n| of_task(&n.task)) {
        open.row_mut().now = None;
    }
    let reply = completed(&open, &taskid);
    open.done(reply)
}

fn completed(open: &OpenLoop, taskid: &str) -> Reply {
    let remaining = open.state.tasks.iter().filter(|t| !status_of(t).closed()).count();
    Reply::new()
        .with("taskid", taskid)
        .with("status", Status::Complete.word())
        .with("remaining", remaining)
        .with("next", open.upcoming())
}

impl OpenLoop {
    /// What comes after a call on this task: what it owes, or what the loop does
    /// once it is closed.
    fn owed_next(&self, task: usize) -> String {
        if status_of(&self.state.tasks[task]).closed() { self.upcoming() } else { self.owed(task).action }
    }

    /// The next thing to do in the loop, in one line.
    fn upcoming(&self) -> String {
        let tasks = &self.state.tasks;
        let step = |i: usize| format!("{}: {}", tasks[i].taskid, self.owed(i).action);
        let plan = Plan::new(tasks);
        let open = |i: &usize| !status_of(&tasks[*i]).closed();
        let can_move = |i: &usize| plan.first_unmet(*i).is_none();
        let in_flight = (0..tasks.len()).filter(|i| status_of(&tasks[*i]).in_flight());
        if let Some(i) = in_flight.clone().find(can_move) {
            return step(i);
        }
        if let Some(i) = (0..tasks.len()).filter(open).find(can_move) {
            return step(i);
        }
        match (0..tasks.len()).find(open) {
            None => {
                "every task is closed: go on with the phases after the build, then loop_finish".to_owned()
            }
            Some(i) => {
                let waits: Vec<_> =
                    plan.all_unmet(i).into_iter().map(|(id, status)| format!("{id} ({status})")).collect();
                format!("ESCALATE: no task can move; {} waits for {}", tasks[i].taskid, waits.join(", "))
            }
        }
    }
}
