//! The tasks of a loop as a graph: who waits for whom, and what is met.
//!
//! A task waits for its `depends_on`; a superseded one stands for its
//! replacements. Walks keep their own stack, so a chain of any length is safe.

use crate::model::Task;
use crate::status::Status;
use std::collections::BTreeMap;

/// A status as it is stored; one that this logic does not know counts as blocked,
/// which is the only status that asks a person.
pub fn status_of(task: &Task) -> Status {
    Status::parse(&task.status).unwrap_or(Status::Blocked)
}

/// The tasks of a loop, found by id without regard to case.
pub struct Plan<'a> {
    tasks: &'a [Task],
    by_id: BTreeMap<String, usize>,
}

/// The form under which two spellings of an id are the same.
pub fn fold_id(taskid: &str) -> String {
    taskid.trim().to_ascii_lowercase()
}

/// Returns whether two spellings name the same task.
pub fn same_id(a: &str, b: &str) -> bool {
    a.trim().eq_ignore_ascii_case(b.trim())
}

impl<'a> Plan<'a> {
    /// Indexes the tasks.
    pub fn new(tasks: &'a [Task]) -> Plan<'a> {
        let by_id = tasks.iter().enumerate().map(|(i, t)| (fold_id(&t.taskid), i)).collect();
        Plan { tasks, by_id }
    }

    /// Finds a task by its id.
    pub fn find(&self, taskid: &str) -> Option<usize> {
        self.by_id.get(&fold_id(taskid)).copied()
    }

    /// The ids that a task waits for: its dependencies, or its replacements.
    fn waits_for(&self, task: usize) -> &'a [String] {
        let task = &self.tasks[task];
        if status_of(task) == Status::Superseded { &task.superseded_by } else { &task.depends_on }
    }

    /// Returns the first dependency of the task that is not met, with its status;
    /// a name that no task has reads `missing`.
    pub fn first_unmet(&self, task: usize) -> Option<(String, &'static str)> {
        self.tasks[task].depends_on.iter().find_map(|id| self.unmet(id))
    }

    /// Returns every dependency of the task that is not met, in order.
    pub fn all_unmet(&self, task: usize) -> Vec<(String, &'static str)> {
        self.tasks[task].depends_on.iter().filter_map(|id| self.unmet(id)).collect()
    }

    /// Returns the id and status of the task when as a dependency it is not met.
    fn unmet(&self, id: &str) -> Option<(String, &'static str)> {
        let Some(at) = self.find(id) else {
            return Some((id.to_owned(), "missing"));
        };
        let mut seen = vec![false; self.tasks.len()];
        let mut stack = vec![at];
        while let Some(i) = stack.pop() {
            if std::mem::replace(&mut seen[i], true) {
                continue;
            }
            match status_of(&self.tasks[i]) {
                Status::Complete | Status::Skipped => {}
                Status::Superseded => {
                    for replacement in &self.tasks[i].superseded_by {
                        match self.find(replacement) {
                            Some(r) => stack.push(r),
                            None => return Some((replacement.clone(), "missing")),
                        }
                    }
                }
                _ => {
                    return Some((self.tasks[at].taskid.clone(), status_of(&self.tasks[at]).word()));
                }
            }
        }
        None
    }

    /// Returns whether `task` waits for `other`, directly or through others.
    pub fn depends_on(&self, task: usize, other: usize) -> bool {
        let mut seen = vec![false; self.tasks.len()];
        let mut stack = vec![task];
        while let Some(i) = stack.pop() {
            if std::mem::replace(&mut seen[i], true) {
                continue;
            }
            if i == other && i != task {
                return true;
            }
            stack.extend(self.waits_for(i).iter().filter_map(|id| self.find(id)));
        }
        false
    }

    /// Returns the members of a cycle in the order they wait for each other,
    /// without what merely leads into it; `None` when there is none.
    pub fn cycle(&self) -> Option<Vec<String>> {
        let edges =
            |task| self.waits_for(task).iter().filter_map(|id| self.find(id)).collect::<Vec<_>>().into_iter();
        let first = cycles(self.tasks.len(), edges).into_iter().next()?;
        Some(first.into_iter().map(|task| self.tasks[task].taskid.clone()).collect())
    }
}

/// Returns cycles of a graph of `count` nodes that share no member, each with its
/// members in the order they wait for each other and without what merely leads
/// into it. None comes back only when there is none.
pub fn cycles<I: Iterator<Item = usize>>(count: usize, edges: impl Fn(usize) -> I) -> Vec<Vec<usize>> {
    #[derive(Clone, Copy, PartialEq)]
    enum Mark {
        New,
        /// On the path that is walked, with the place on it.
        OnPath(usize),
        Done,
    }
    let mut marks = vec![Mark::New; count];
    let mut in_cycle = vec![false; count];
    let mut found = Vec::new();
    for start in 0..count {
        if marks[start] != Mark::New {
            continue;
        }
        // Each entry: a node on the path, and its edges that were not walked yet.
        let mut path = vec![(start, edges(start))];
        marks[start] = Mark::OnPath(0);
        while let Some((node, rest)) = path.last_mut() {
            let Some(next) = rest.next() else {
                marks[*node] = Mark::Done;
                path.pop();
                continue;
            };
            match marks[next] {
                Mark::Done => {}
                Mark::New => {
                    marks[next] = Mark::OnPath(path.len());
                    path.push((next, edges(next)));
                }
                Mark::OnPath(from) => {
                    if path[from..].iter().all(|(member, _)| !in_cycle[*member]) {
                        let members: Vec<_> = path[from..].iter().map(|(member, _)| *member).collect();
                        members.iter().for_each(|member| in_cycle[*member] = true);
                        found.push(members);
                    }
                }
            }
        }
    }
    found
}

/// Returns the task in flight that stands in the way of starting `task`.
///
/// None stands in the way of a task that is itself in flight, nor of one that a
/// task in flight waits for: without it that one could never complete.
pub fn in_the_way(tasks: &[Task], task: usize) -> Option<usize> {
    if status_of(&tasks[task]).in_flight() {
        return None;
    }
    let stranded = (0..tasks.len()).filter(|i| *i != task && status_of(&tasks[*i]).in_flight());
    let mut first = None;
    let mut plan = None;
    for other in stranded {
        let plan = plan.get_or_insert_with(|| Plan::new(tasks));
        if plan.depends_on(other, task) {
            return None;
        }
        first = first.or(Some(other));
    }
    first
}

/// Returns the number of the next task of the sequence `T1`, `T2`, …: one above
/// the highest that any id starts with.
pub fn next_number<'a>(taskids: impl Iterator<Item = &'a str>) -> u64 {
    taskids.filter_map(sequence_number).max().unwrap_or(0).saturating_add(1)
}

/// The number in `T12`, also with something after it (`T12a`).
fn sequence_number(taskid: &str) -> Option<u64> {
    let rest = taskid.strip_prefix(['T', 't'])?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    rest[..digits].parse().ok()
}

/// Returns the nth suffix of replacements: `a` … `z`, `aa`, `ab`, …
pub fn suffix(mut n: usize) -> String {
    let mut letters = Vec::new();
    loop {
        // The remainder is below 26, so the sum stays a letter.
        letters.push(b'a' + (n % 26) as u8);
        if n < 26 {
            break;
        }
        n = n / 26 - 1;
    }
    letters.iter().rev().map(|b| char::from(*b)).collect()
}
