//! Batches of tasks: the plan, what is appended to it, and splits. Each is taken
//! whole or not at all.

use crate::arguments::{Reference, Said, Slug, TaskId, arguments};
use crate::desk::{Desk, Done};
use crate::model::{Event, Task};
use crate::plan::{self, Plan, fold_id, same_id, status_of};
use crate::refusal::{BatchFault, Refusal};
use crate::reply::Reply;
use crate::status::{Status, words};
use crate::text::{NAME_MAX, present};
use crate::timeline::name;
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
    let created = insert(&mut tasks, entries, open.state.tasks.len(), kind, open.now, |_| ())?;
    open.replace_tasks(tasks);
    let event = Event { note: Some(created.join(", ")), ..open.event(name::TASKS_APPEND) };
    open.record(event);
    open.done(Reply::new().with("created", created))
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
