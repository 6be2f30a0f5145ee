//! The order that dependencies give to tasks.

use std::collections::HashMap;

use crate::contract::model::Task;

/// Tasks in waves: each depends only on tasks of earlier waves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Waves {
    /// The wave of each task, from 0, in the order of the tasks.
    pub of: Vec<usize>,
    /// For each task the places of those that it depends on, unknown names left out.
    pub needs: Vec<Vec<usize>>,
    /// How many waves there are.
    pub count: usize,
    /// Names that no task has, with the task that depends on them.
    pub unknown: usize,
}

/// Puts tasks in waves. Tasks in a circle, which the logic refuses, come after all others.
pub fn waves(tasks: &[Task]) -> Waves {
    let places: HashMap<&str, usize> =
        tasks.iter().enumerate().map(|(place, task)| (task.taskid.as_str(), place)).collect();
    let mut unknown = 0;
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(tasks.len());
    for (place, task) in tasks.iter().enumerate() {
        let mut found: Vec<usize> = Vec::new();
        for name in &task.depends_on {
            match places.get(name.as_str()) {
                Some(need) if *need != place && !found.contains(need) => found.push(*need),
                Some(_) => {}
                None => unknown += 1,
            }
        }
        needs.push(found);
    }
    let mut needed_by: Vec<Vec<usize>> = vec![Vec::new(); tasks.len()];
    let mut open: Vec<usize> = needs.iter().map(Vec::len).collect();
    for (place, needs) in needs.iter().enumerate() {
        for need in needs {
            needed_by[*need].push(place);
        }
    }
    let mut of = vec![usize::MAX; tasks.len()];
    let mut wave: Vec<usize> = (0..tasks.len()).filter(|place| open[*place] == 0).collect();
    let mut count = 0;
    while !wave.is_empty() {
        let mut next = Vec::new();
        for place in wave {
            of[place] = count;
            for after in &needed_by[place] {
                open[*after] -= 1;
                if open[*after] == 0 {
                    next.push(*after);
                }
            }
        }
        count += 1;
        wave = next;
    }
    if of.contains(&usize::MAX) {
        of.iter_mut().filter(|wave| **wave == usize::MAX).for_each(|wave| *wave = count);
        count += 1;
    }
    Waves { of, needs, count, unknown }
}
