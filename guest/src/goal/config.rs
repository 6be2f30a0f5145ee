//! A goal configuration: goals, the checks that decide on them, and the graph of
//! the work.
//!
//! The format is loopsmith's. Sections that neither plan nor gate use are accepted
//! where they belong and not looked into, so that real configurations load.

use super::problem::{EntryPlace, Place, Problem, Rejected};
use super::reader::{Fields, Reader, Word};
use super::tree::{self, Data, Value};
use super::validate;
use crate::status::words;
use std::rc::Rc;

/// The target that stands for the whole loop.
pub const OVERALL: &str = "overall";

words! {
    /// What a node does in the loop, and who writes an episode.
    Role {
        Builder = "builder",
        Judge = "judge",
        Manager = "manager",
        Adversary = "adversary",
        Researcher = "researcher",
    }
}

words! {
    /// How strong a provider a node asks for.
    Tier {
        Cheap = "cheap",
        Standard = "standard",
        Strong = "strong",
    }
}

words! {
    /// How a statement is meant.
    Mode {
        Subjective = "subjective",
        Objective = "objective",
        Percentage = "percentage",
    }
}

words! {
    /// How a metric is compared with its threshold.
    Op {
        Gt = "gt",
        Gte = "gte",
        Lt = "lt",
        Lte = "lte",
        Eq = "eq",
    }
}

/// A configuration without problems.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub name: String,
    pub version: Option<String>,
    pub description: Option<String>,
    pub goals: Vec<Goal>,
    pub checks: Vec<Check>,
    pub success: Vec<Success>,
    pub graph: Graph,
    /// The paths of the filled sections that were not looked into.
    pub opaque: Vec<String>,
    /// What works, but hardly as it was meant.
    pub warnings: Vec<Problem>,
    /// The digest of the text.
    pub sha256: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Goal {
    pub path: EntryPlace,
    pub name: Word,
    pub description: String,
    pub depends_on: Vec<Word>,
    pub priority: Option<u32>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    pub path: EntryPlace,
    pub target: Word,
    pub name: Word,
    pub mode: Mode,
    pub statement: String,
    pub detector: Detector,
    /// Where the detector stands.
    pub detector_line: u32,
    pub blocking: bool,
}

/// What decides a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Detector {
    Script { command: String, args: Vec<String>, expect_exit: i32 },
    FileExists { path: String, non_empty: bool },
    RegexMatch { artifact: String, pattern: String },
    Threshold { metric: String, op: Op, value: f64 },
    Judge { standard: String, min_score: Option<f64> },
}

#[derive(Clone, Debug, PartialEq)]
pub struct Success {
    pub path: EntryPlace,
    pub target: Word,
    pub name: Word,
    pub mode: Mode,
    pub statement: String,
    pub threshold: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    /// Where the graph stands in the text.
    pub path: String,
    pub line: u32,
    pub nodes: Vec<Node>,
    /// What each node waits for, by index, in the order it is written.
    pub before: Vec<Vec<usize>>,
    pub concurrency: Concurrency,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    pub path: EntryPlace,
    pub id: Word,
    pub role: Role,
    pub instruction: String,
    pub depends_on: Vec<Word>,
    pub goals: Vec<Word>,
    pub tier: Tier,
    pub provider: Option<String>,
    pub skills: Vec<String>,
    pub stage: Option<String>,
    pub weight: f64,
}

/// How many nodes may run at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Concurrency {
    Sequential,
    Fixed { max_parallel: u32 },
    Auto { cap: u32, min_marginal_gain: f64 },
}

impl Default for Concurrency {
    fn default() -> Concurrency {
        Concurrency::Auto { cap: 16, min_marginal_gain: 0.05 }
    }
}

/// The bundles, and in each the section that is read, with the sections that are not.
const BUNDLES: &[(&str, &[&str], &[&str])] = &[
    ("intent", &["goals", "success"], &["background", "information", "prerequisites", "pre_execution"]),
    (
        "execution",
        &["graph"],
        &[
            "providers",
            "phases",
            "execution_guidelines",
            "default_skills",
            "skills",
            "memory",
            "context",
            "triggers",
            "schedules",
        ],
    ),
    (
        "safety",
        &["checks"],
        &["gates", "stop_gates", "limits", "constraints", "recovery", "protected", "alerts"],
    ),
];

/// Sections of the top level that are not looked into.
const TOP: &[&str] = &["evolution", "environment", "features"];

/// Where sections stood before there were bundles, and where they stand now.
const MOVED: &[(&str, &[&str])] = &[
    ("goals", &["intent", "goals"]),
    ("success", &["intent", "success"]),
    ("information", &["intent", "background"]),
    ("pre_execution", &["intent", "prerequisites"]),
    ("validations", &["safety", "checks"]),
    ("stop_gates", &["safety", "gates", "stop"]),
    ("constraints", &["safety", "limits"]),
    ("graph", &["execution", "graph"]),
    ("providers", &["execution", "providers"]),
    ("execution_guidelines", &["execution", "phases"]),
    ("default_skills", &["execution", "default_skills"]),
    ("skills", &["execution", "skills"]),
    ("context", &["execution", "memory"]),
    ("schedules", &["execution", "triggers", "triggers"]),
];

impl Config {
    /// Reads and validates a configuration of this digest.
    pub fn read(bytes: &[u8], sha256: &str) -> Result<Config, Rejected> {
        let root = tree::read(bytes).map_err(Rejected::new)?;
        let mut reader = Reader::default();
        let config = reader.config(&root, sha256.to_owned());
        let mut problems = reader.problems;
        let Some(mut config) = config else { return Err(Rejected::new(problems)) };
        let found = validate::validate(&config);
        problems.extend(found.errors);
        if !problems.is_empty() {
            return Err(Rejected::new(problems));
        }
        config.warnings = found.warnings;
        config.graph.before = found.before;
        Ok(config)
    }

    /// The targets that a gate can be asked for: the goals, then `overall`.
    pub fn targets(&self) -> Vec<&str> {
        self.goals.iter().map(|goal| goal.name.text.as_str()).chain([OVERALL]).collect()
    }

    /// The checks of a target, in order.
    pub fn checks_of<'a>(&'a self, target: &'a str) -> impl Iterator<Item = &'a Check> {
        self.checks.iter().filter(move |check| check.target.text == target)
    }

    /// Whether any check holds the gate of this target shut.
    pub fn has_blocking(&self, target: &str) -> bool {
        self.checks_of(target).any(|check| check.blocking)
    }
}

/// The value at a path of keys.
fn find<'a>(root: &'a Value<'a>, keys: &[&str]) -> Option<&'a Value<'a>> {
    keys.iter().try_fold(root, |value, key| match &value.data {
        Data::Map(entries) => entries.iter().find(|entry| entry.key == *key).map(|entry| &entry.value),
        _ => None,
    })
}

fn filled<'a>(root: &'a Value<'a>, keys: &[&str]) -> Option<&'a Value<'a>> {
    find(root, keys).filter(|value| !value.is_empty())
}

impl Reader {
    fn config(&mut self, root: &Value, sha256: String) -> Option<Config> {
        let mut accepted = vec!["name", "version", "description"];
        accepted.extend(BUNDLES.iter().map(|(bundle, ..)| *bundle));
        accepted.extend(MOVED.iter().map(|(old, _)| *old));
        for name in BUNDLES.iter().flat_map(|(_, _, opaque)| *opaque).chain(TOP) {
            if !accepted.contains(name) {
                accepted.push(name);
            }
        }
        let top = self.fields(root, Place::of(""), "a goal configuration", &accepted)?;
        let mut opaque: Vec<String> = Vec::new();
        for (bundle, read, unread) in BUNDLES {
            let Some(value) = top.get(bundle) else { continue };
            let names: Vec<_> = read.iter().chain(*unread).copied().collect();
            let Some(fields) = self.fields(value, Place::of(bundle), format_args!("`{bundle}`"), &names)
            else {
                continue;
            };
            opaque.extend(
                fields.names().filter(|name| unread.contains(name)).map(|name| fields.at(name).to_string()),
            );
        }
        opaque.extend(
            top.names()
                .filter(|name| {
                    TOP.contains(name) || BUNDLES.iter().any(|(_, _, unread)| unread.contains(name))
                })
                .map(str::to_owned),
        );
        self.twice(root);

        let goals = self.section(root, "goals", Reader::goal);
        let checks = self.section(root, "validations", Reader::check);
        let success = self.section(root, "success", Reader::success);
        let (graph, path) = section(root, "graph");
        Some(Config {
            name: self.name(&top, "name").text,
            version: self.optional_text(&top, "version"),
            description: self.optional_text(&top, "description"),
            goals,
            checks,
            success,
            graph: self.graph(graph, path),
            opaque,
            warnings: Vec::new(),
            sha256,
        })
    }

    /// The entries of a section, as far as they are entries.
    fn section<T>(
        &mut self,
        root: &Value,
        old: &str,
        read: impl Fn(&mut Reader, &Value, Place, EntryPlace) -> Option<T>,
    ) -> Vec<T> {
        let (value, path) = section(root, old);
        value.map(|value| self.entries(value, &path, read)).unwrap_or_default()
    }

    /// The entries of the list at a path, as far as they are entries.
    fn entries<T>(
        &mut self,
        value: &Value,
        path: &str,
        read: impl Fn(&mut Reader, &Value, Place, EntryPlace) -> Option<T>,
    ) -> Vec<T> {
        let (list, kept) = (Place::of(path), Rc::from(path));
        let items = self.items(value, list).iter().enumerate();
        items.filter_map(|(i, item)| read(self, item, list.index(i), EntryPlace::new(&kept, i))).collect()
    }

    /// Names sections that are filled at two places, of which one would be lost.
    fn twice(&mut self, root: &Value) {
        let moved = MOVED.iter().map(|(old, now)| (*old, now.to_vec()));
        let same = BUNDLES.iter().flat_map(|(bundle, _, unread)| {
            unread.iter().map(|name| (*name, vec![*bundle, *name])).collect::<Vec<_>>()
        });
        for (old, now) in moved.chain(same.filter(|(name, now)| !MOVED.contains(&(*name, now.as_slice())))) {
            if let (Some(first), Some(second)) = (filled(root, &[old]), filled(root, &now)) {
                self.problem(
                    old,
                    first.line,
                    format!(
                        "is filled, and so is `{}` (line {}), where it belongs; keep that one",
                        now.join("."),
                        second.line
                    ),
                );
            }
        }
    }

    fn goal(&mut self, value: &Value, place: Place, path: EntryPlace) -> Option<Goal> {
        let fields =
            self.fields(value, place, "a goal", &["name", "description", "depends_on", "priority"])?;
        Some(Goal {
            name: self.name(&fields, "name"),
            description: self.text(&fields, "description").text,
            depends_on: self.names(&fields, "depends_on"),
            priority: self.whole(&fields, "priority", 0, u32::MAX).and_then(|n| u32::try_from(n).ok()),
            path,
        })
    }

    fn check(&mut self, value: &Value, place: Place, path: EntryPlace) -> Option<Check> {
        let accepted = ["target", "name", "mode", "statement", "detector", "blocking"];
        let fields = self.fields(value, place, "a check", &accepted)?;
        let target = self.name(&fields, "target");
        let name = self.name(&fields, "name");
        let mode = self.required_one_of(&fields, "mode", Mode::parse, Mode::WORDS);
        let statement = self.text(&fields, "statement").text;
        let blocking = self.flag(&fields, "blocking", true);
        let value = fields.get("detector");
        let detector = match value {
            Some(value) => self.detector(value, fields.at("detector")),
            None => {
                let message = "is missing; it is what decides the check";
                self.problem(fields.at("detector"), fields.line, message);
                None
            }
        };
        Some(Check {
            target,
            name,
            // Where these were wrong a problem is noted, so the check is never used;
            // what else is wrong with it still comes to light.
            mode: mode.unwrap_or(Mode::Objective),
            detector: detector.unwrap_or(Detector::Judge { standard: String::new(), min_score: None }),
            statement,
            detector_line: value.map_or(fields.line, |value| value.line),
            blocking,
            path,
        })
    }

    fn detector(&mut self, value: &Value, place: Place) -> Option<Detector> {
        const TYPES: [(&str, &[&str]); 5] = [
            ("script", &["type", "command", "args", "expect_exit"]),
            ("file_exists", &["type", "path", "non_empty"]),
            ("regex_match", &["type", "artifact", "pattern"]),
            ("threshold", &["type", "metric", "op", "value"]),
            ("judge", &["type", "standard", "min_score"]),
        ];
        let known = TYPES.map(|(name, _)| name);
        // The type first: it says which other fields there are.
        let Data::Map(entries) = &value.data else {
            return self.fields(value, place, "a detector", &["type"]).and(None);
        };
        let said = entries.iter().find(|entry| entry.key == "type").map(|entry| &entry.value.data);
        let Some((kind, accepted)) =
            TYPES.iter().find(|(name, _)| matches!(said, Some(Data::Text(said)) if said == name))
        else {
            let fields = Fields::open(place, value.line, entries);
            return self.required_one_of(&fields, "type", |_| None, &known);
        };
        let fields = self.fields(value, place, format_args!("a `{kind}` detector"), accepted)?;
        Some(match *kind {
            "script" => Detector::Script {
                command: self.name(&fields, "command").text,
                args: self.texts(&fields, "args").into_iter().map(|word| word.text).collect(),
                expect_exit: self
                    .whole(&fields, "expect_exit", i32::MIN, i32::MAX.unsigned_abs())
                    .and_then(|exit| i32::try_from(exit).ok())
                    .unwrap_or(0),
            },
            "file_exists" => Detector::FileExists {
                path: self.name(&fields, "path").text,
                non_empty: self.flag(&fields, "non_empty", false),
            },
            "regex_match" => Detector::RegexMatch {
                artifact: self.name(&fields, "artifact").text,
                pattern: self.text(&fields, "pattern").text,
            },
            "threshold" => {
                let op = self.required_one_of(&fields, "op", Op::parse, Op::WORDS);
                Detector::Threshold {
                    metric: self.name(&fields, "metric").text,
                    value: self.required_number(&fields, "value"),
                    op: op?,
                }
            }
            _ => Detector::Judge {
                standard: self.name(&fields, "standard").text,
                min_score: self.number(&fields, "min_score"),
            },
        })
    }

    fn success(&mut self, value: &Value, place: Place, path: EntryPlace) -> Option<Success> {
        let accepted = ["target", "name", "mode", "statement", "threshold"];
        let fields = self.fields(value, place, "a success scenario", &accepted)?;
        let target = self.name(&fields, "target");
        let name = self.name(&fields, "name");
        let mode = self.required_one_of(&fields, "mode", Mode::parse, Mode::WORDS);
        let statement = self.text(&fields, "statement").text;
        let threshold = self.number(&fields, "threshold");
        // Where the mode was wrong a problem is noted.
        let mode = mode.unwrap_or(Mode::Objective);
        Some(Success { target, name, mode, statement, threshold, path })
    }

    fn graph(&mut self, value: Option<&Value>, path: String) -> Graph {
        let mut graph = Graph {
            path: path.clone(),
            line: 1,
            nodes: Vec::new(),
            before: Vec::new(),
            concurrency: Concurrency::default(),
        };
        let Some(value) = value.filter(|value| value.data != Data::Null) else { return graph };
        let accepted = ["nodes", "concurrency", "join", "container_image"];
        let Some(fields) = self.fields(value, Place::of(&path), "the graph", &accepted) else { return graph };
        graph.line = fields.line;
        if let Some(value) = fields.get("nodes") {
            graph.nodes = self.entries(value, &fields.at("nodes").to_string(), Reader::node);
        }
        if let Some(value) = fields.get("concurrency") {
            graph.concurrency = self.concurrency(value, fields.at("concurrency")).unwrap_or_default();
        }
        graph
    }

    fn node(&mut self, value: &Value, place: Place, path: EntryPlace) -> Option<Node> {
        let accepted = [
            "id",
            "role",
            "instruction",
            "depends_on",
            "goals",
            "tier",
            "provider",
            "skills",
            "stage",
            "weight",
            "isolation",
            "isolated",
        ];
        let fields = self.fields(value, place, "a node", &accepted)?;
        self.flag(&fields, "isolated", false);
        let id = self.name(&fields, "id");
        let role = self.required_one_of(&fields, "role", Role::parse, Role::WORDS);
        let tier = self.one_of(&fields, "tier", Tier::parse, Tier::WORDS);
        let weight = self.number(&fields, "weight");
        if let (Some(weight), Some(value)) = (weight, fields.get("weight"))
            && weight <= 0.0
        {
            self.problem(fields.at("weight"), value.line, format!("is {weight}; a weight is above 0"));
        }
        Some(Node {
            id,
            // Its problem is noted; the rest of the node still is looked at.
            role: role.unwrap_or(Role::Builder),
            instruction: self.text(&fields, "instruction").text,
            depends_on: self.names(&fields, "depends_on"),
            goals: self.names(&fields, "goals"),
            tier: tier.unwrap_or(Tier::Standard),
            provider: self.optional_text(&fields, "provider"),
            skills: self.texts(&fields, "skills").into_iter().map(|word| word.text).collect(),
            stage: self.optional_text(&fields, "stage"),
            weight: weight.filter(|weight| *weight > 0.0).unwrap_or(1.0),
            path,
        })
    }

    fn concurrency(&mut self, value: &Value, place: Place) -> Option<Concurrency> {
        let all = ["mode", "max_parallel", "cap", "min_marginal_gain"];
        let fields = self.fields(value, place, "`concurrency`", &all)?;
        let modes = ["sequential", "fixed", "auto"];
        let pick = |word: &str| modes.iter().copied().find(|mode| *mode == word);
        let mode = self.required_one_of(&fields, "mode", pick, &modes)?;
        let own: &[&str] = match mode {
            "fixed" => &["mode", "max_parallel"],
            "auto" => &["mode", "cap", "min_marginal_gain"],
            _ => &["mode"],
        };
        for name in all.iter().filter(|name| !own.contains(name)) {
            if let Some(value) = fields.get(name) {
                self.problem(fields.at(name), value.line, format!("says nothing in mode `{mode}`"));
            }
        }
        let mut count = |key: &str| {
            let n = self.whole(&fields, key, 1, u32::MAX)?;
            u32::try_from(n).ok()
        };
        Some(match mode {
            "sequential" => Concurrency::Sequential,
            "fixed" => {
                let max_parallel = count("max_parallel").unwrap_or(1);
                if fields.get("max_parallel").is_none() {
                    self.problem(fields.at("max_parallel"), fields.line, "is missing");
                }
                Concurrency::Fixed { max_parallel }
            }
            _ => {
                let cap = count("cap").unwrap_or(16);
                let min_marginal_gain = self.number(&fields, "min_marginal_gain").unwrap_or(0.05);
                Concurrency::Auto { cap, min_marginal_gain }
            }
        })
    }
}

/// A section that is read, by its old name, and the path where it stands: the new
/// place unless only the old one is filled.
fn section<'a>(root: &'a Value<'a>, old: &str) -> (Option<&'a Value<'a>>, String) {
    let now = MOVED.iter().find(|(name, _)| *name == old).map_or(&[][..], |(_, now)| *now);
    match (filled(root, now), filled(root, &[old])) {
        (None, Some(value)) => (Some(value), old.to_owned()),
        (value, _) => (value, now.join(".")),
    }
}
