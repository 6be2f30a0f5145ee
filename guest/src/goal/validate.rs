//! What a configuration has to keep beyond its form: names that are unique and
//! exist, graphs without cycles, checks that can be decided.

use super::config::{Check, Config, Detector, OVERALL};
use super::evidence::relative;
use super::pattern::{MAX_TOGETHER, Pattern};
use super::problem::{EntryPlace, Problem};
use super::reader::{Reader, Word};
use crate::arguments::excerpt;
use crate::plan::cycles;
use crate::text::{is_blank, nearest};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::hash::{BuildHasherDefault, DefaultHasher};

/// How many unknown names get a guess at what was meant.
const GUESSES: usize = 20;

/// What was found out of a configuration.
pub struct Findings {
    /// What is wrong.
    pub errors: Vec<Problem>,
    /// What works, but hardly as it was meant.
    pub warnings: Vec<Problem>,
    /// What each node waits for, by index, in the order it is written.
    pub before: Vec<Vec<usize>>,
}

/// Looks at all that goes beyond the form.
pub fn validate(config: &Config) -> Findings {
    let mut errors = Reader::default();
    let mut warnings = Reader::default();
    let goals: Vec<_> = config
        .goals
        .iter()
        .map(|goal| Item { path: &goal.path, key: "name", name: &goal.name, depends_on: &goal.depends_on })
        .collect();
    for goal in config.goals.iter().filter(|goal| goal.name.text == OVERALL) {
        errors.problem(
            format_args!("{}.name", goal.path),
            goal.name.line,
            format!("is `{OVERALL}`, which stands for the whole loop; name the goal otherwise"),
        );
    }
    graph(&mut errors, "goal", &goals);
    let nodes: Vec<_> = config
        .graph
        .nodes
        .iter()
        .map(|node| Item { path: &node.path, key: "id", name: &node.id, depends_on: &node.depends_on })
        .collect();
    let before = graph(&mut errors, "node", &nodes);
    if !config.graph.nodes.iter().map(|node| node.weight).sum::<f64>().is_finite() {
        errors.problem(
            format_args!("{}.nodes", config.graph.path),
            config.graph.line,
            "have weights that add up to more than a number holds",
        );
    }

    let targets = config.targets();
    let mut known = Known::new(targets);
    for check in &config.checks {
        known.demand(&mut errors, format_args!("{}.target", check.path), &check.target);
    }
    for success in &config.success {
        known.demand(&mut errors, format_args!("{}.target", success.path), &success.target);
    }
    let named = config.checks.iter().map(|check| (&check.path, &check.target, &check.name));
    once(&mut errors, "check", named);
    let named = config.success.iter().map(|success| (&success.path, &success.target, &success.name));
    once(&mut errors, "success scenario", named);
    detectors(config, &mut errors, &mut warnings);

    for goal in config.goals.iter().filter(|goal| !config.has_blocking(&goal.name.text)) {
        warnings.problem(
            &goal.path,
            goal.name.line,
            format!("`{}` has no blocking check, so it can never be satisfied", excerpt(&goal.name.text)),
        );
    }
    for node in &config.graph.nodes {
        for (i, goal) in node.goals.iter().enumerate().filter(|(_, goal)| !known.holds(&goal.text)) {
            let message = format!("`{}` is no goal", excerpt(&goal.text));
            warnings.problem(format_args!("{}.goals[{i}]", node.path), goal.line, message);
        }
    }
    Findings { errors: errors.problems, warnings: warnings.problems, before }
}

/// A goal or node as far as names and edges go.
struct Item<'a> {
    path: &'a EntryPlace,
    /// The field that names it.
    key: &'static str,
    name: &'a Word,
    depends_on: &'a [Word],
}

/// Returns what each item waits for, by index.
fn graph(errors: &mut Reader, what: &str, items: &[Item]) -> Vec<Vec<usize>> {
    // Hashed with fixed keys, so that equal configurations take equal ways.
    let mut by_name: HashMap<&str, usize, BuildHasherDefault<DefaultHasher>> = HashMap::default();
    for (i, item) in items.iter().enumerate() {
        // A blank name was named as a problem already.
        if is_blank(&item.name.text) {
            continue;
        }
        match by_name.get(item.name.text.as_str()).and_then(|first| items.get(*first)) {
            None => {
                by_name.insert(&item.name.text, i);
            }
            Some(first) => errors.problem(
                format_args!("{}.{}", item.path, item.key),
                item.name.line,
                format!(
                    "`{}` is the {what} of line {} already; each {what} has its own {}",
                    excerpt(&item.name.text),
                    first.name.line,
                    item.key
                ),
            ),
        }
    }
    // Most graphs have no unknown names to find a near one for.
    let mut known = None;
    let mut edges: Vec<Vec<usize>> = vec![Vec::new(); items.len()];
    for ((i, item), out) in items.iter().enumerate().zip(&mut edges) {
        for (n, dependency) in item.depends_on.iter().enumerate() {
            let path = || format!("{}.depends_on[{n}]", item.path);
            match by_name.get(dependency.text.as_str()) {
                // Named as a problem already.
                _ if is_blank(&dependency.text) => {}
                _ if dependency.text == item.name.text => {
                    errors.problem(
                        path(),
                        dependency.line,
                        format!("is the {what} itself; it cannot wait for itself"),
                    );
                }
                Some(on) if *on != i => out.push(*on),
                Some(_) => {}
                None => known.get_or_insert_with(|| Known::new(by_name.keys().copied())).unknown(
                    errors,
                    path(),
                    dependency,
                    what,
                ),
            }
        }
    }
    for cycle in cycles(items.len(), |i| edges.get(i).into_iter().flatten().copied()) {
        let members: Vec<_> = cycle.iter().filter_map(|i| items.get(*i)).collect();
        let Some(first) = members.first() else { continue };
        let names: Vec<_> = members.iter().chain([first]).map(|item| excerpt(&item.name.text)).collect();
        errors.problem(
            format_args!("{}.depends_on", first.path),
            first.depends_on.first().map_or(first.name.line, |dependency| dependency.line),
            format!("closes a cycle: {}; take one of these dependencies out", names.join(" → ")),
        );
    }
    edges
}

/// Names that exist.
struct Known<'a> {
    /// Sorted.
    names: Vec<&'a str>,
    guesses: usize,
}

impl<'a> Known<'a> {
    fn new(names: impl IntoIterator<Item = &'a str>) -> Known<'a> {
        let mut names: Vec<_> = names.into_iter().collect();
        names.sort_unstable();
        Known { names, guesses: GUESSES }
    }

    fn holds(&self, name: &str) -> bool {
        self.names.binary_search(&name).is_ok()
    }

    /// Demands that a target exists.
    fn demand(&mut self, errors: &mut Reader, path: impl Display, target: &Word) {
        if !is_blank(&target.text) && !self.holds(&target.text) {
            self.unknown(errors, path, target, "target");
        }
    }

    fn unknown(&mut self, errors: &mut Reader, path: impl Display, name: &Word, what: &str) {
        let mut message = format!("`{}` is no {what} of this configuration", excerpt(&name.text));
        if what == "target" {
            message.push_str(&format!("; a target is a goal's name or `{OVERALL}`"));
        }
        if self.guesses > 0 {
            self.guesses -= 1;
            if let Some(near) = nearest(&name.text, self.names.iter().copied()).first() {
                message.push_str(&format!(" (`{}`?)", excerpt(near)));
            }
        }
        errors.problem(path, name.line, message);
    }
}

/// Demands that no target has two of a name.
fn once<'a>(
    errors: &mut Reader,
    what: &str,
    named: impl Iterator<Item = (&'a EntryPlace, &'a Word, &'a Word)>,
) {
    let mut lines = BTreeMap::new();
    for (path, target, name) in named {
        if is_blank(&name.text) {
            continue;
        }
        if let Some(first) = lines.insert((&target.text, &name.text), name.line) {
            errors.problem(
                format!("{path}.name"),
                name.line,
                format!(
                    "`{}` is the {what} of line {first} already; `{}` has one of a name",
                    excerpt(&name.text),
                    excerpt(&target.text)
                ),
            );
        }
    }
}

fn detectors(config: &Config, errors: &mut Reader, warnings: &mut Reader) {
    let mut compiled = 0_usize;
    let mut judged: BTreeMap<&str, u32> = BTreeMap::new();
    for check in &config.checks {
        match &check.detector {
            Detector::RegexMatch { artifact, pattern } => {
                let path = format!("{}.detector.pattern", check.path);
                if compiled > MAX_TOGETHER {
                    let message = format!(
                        "is one too many: the patterns before it take {} MiB together",
                        MAX_TOGETHER >> 20
                    );
                    errors.problem(path, check.detector_line, message);
                    continue;
                }
                match Pattern::new(pattern) {
                    Ok(pattern) => compiled += pattern.size(),
                    Err(why) => {
                        // It may have cost as much as one may before it failed.
                        compiled += MAX_TOGETHER / 64;
                        errors.problem(path, check.detector_line, why);
                    }
                }
                unreadable(check, artifact, "artifact", warnings);
            }
            Detector::FileExists { path, .. } => unreadable(check, path, "path", warnings),
            Detector::Judge { .. } => {
                if let Some(first) = judged.insert(&check.name.text, check.name.line) {
                    warnings.problem(
                        format_args!("{}.name", check.path),
                        check.name.line,
                        format!(
                            "names a judge check like line {first} does; a judgment of `{}` counts for both, \
                             one of `{}/{}` for this",
                            excerpt(&check.name.text),
                            excerpt(&check.target.text),
                            excerpt(&check.name.text)
                        ),
                    );
                }
            }
            _ => {}
        }
    }
}

/// Warns of a path that the gate will not follow.
fn unreadable(check: &Check, path: &str, key: &str, warnings: &mut Reader) {
    if let Err(why) = relative(path) {
        let path = format!("{}.detector.{key}", check.path);
        warnings.problem(path, check.detector_line, format!("{why}, so the check will be unavailable"));
    }
}
