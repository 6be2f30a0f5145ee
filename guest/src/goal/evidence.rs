//! What a gate may rest on, as plain data: what it asks the host for, what the host
//! answers, and what the caller claims.

use super::config::{Config, Detector, OVERALL, Role};
use crate::arguments::excerpt;
use crate::digest::sha256;
use crate::reply::json_text;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;

/// The file that metrics are read from, below the working folder.
pub const METRICS: &str = "metrics.json";

/// The largest text that a check looks through, in bytes.
pub const MAX_TEXT: u64 = 8 << 20;

/// One thing that the host has to look up before a target can be decided. All paths
/// are relative to the working folder, in the form of [`relative`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// Whether the file is there, its size and digest.
    File { path: String },
    /// The same with its content, up to [`MAX_TEXT`].
    Text { path: String },
    /// How a program ends that is run in the working folder, without a shell.
    Script(Script),
    /// The run's episodes whose role is builder or judge.
    Episodes,
}

/// A program with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Script {
    pub command: String,
    pub args: Vec<String>,
}

/// What was found at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FileFact {
    Absent,
    /// A folder or another thing without content of its own.
    NotAFile,
    /// A symbolic link on the way leads out of the working folder or the project.
    Outside,
    /// There, and larger than [`MAX_TEXT`]: neither looked through nor digested,
    /// whichever way it was asked for.
    TooLarge {
        bytes: u64,
    },
    /// There, but it could not be read.
    Unreadable {
        reason: String,
    },
    File {
        bytes: u64,
        /// In the form of [`sha256`].
        sha256: String,
        /// The content, where [`Need::Text`] asked for it.
        text: Option<Vec<u8>>,
    },
}

/// How a program ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScriptRun {
    /// With an exit code; `note` is the last line that it printed, if any.
    Exit { code: i32, note: String },
    /// By a signal that the host did not send.
    Signal { number: i32 },
    /// It did not run to its end: not allowed, not found, out of time.
    Unavailable { reason: String },
}

/// What someone recorded about a piece of work or a judgment on it.
#[derive(Clone, Debug, PartialEq)]
pub struct Episode {
    pub seq: u64,
    pub node_id: String,
    pub provider_id: String,
    pub role: Role,
    pub judgment: Option<Judgment>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Judgment {
    /// The check by its name, or as `target/name`.
    pub check: String,
    pub pass: bool,
    pub score: Option<f64>,
}

/// What the host found out. What it was not asked for is not looked at.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    pub files: BTreeMap<String, FileFact>,
    pub scripts: BTreeMap<Script, ScriptRun>,
    /// `None` when no run is named.
    pub episodes: Option<Vec<Episode>>,
}

/// What the caller sent along: counts only where the host finds nothing, and never
/// in a ruling that is recorded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Claims {
    pub metrics: BTreeMap<String, f64>,
    pub artifacts: BTreeMap<String, String>,
}

/// What a caller sent that is no metric or artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimFault {
    /// `metrics`, or `metrics.p99_ms`.
    pub path: String,
    pub takes: &'static str,
    pub got: &'static str,
}

impl fmt::Display for ClaimFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` takes {}, not {}", excerpt(&self.path), self.takes, self.got)
    }
}

impl Claims {
    /// Reads the arguments `metrics` and `artifacts`; a number in quotes counts as
    /// the number, and everything of another type is named.
    pub fn read(metrics: Option<&Value>, artifacts: Option<&Value>) -> Result<Claims, Vec<ClaimFault>> {
        let mut claims = Claims::default();
        let mut faults = Vec::new();
        let mut entries =
            |name: &str,
             value: Option<&Value>,
             each: &mut dyn FnMut(&str, &Value) -> Option<&'static str>| {
                match value {
                    None | Some(Value::Null) => {}
                    Some(Value::Object(map)) => {
                        for (key, value) in map {
                            if let Some(takes) = each(key, value) {
                                faults.push(ClaimFault {
                                    path: format!("{name}.{key}"),
                                    takes,
                                    got: kind(value),
                                });
                            }
                        }
                    }
                    Some(other) => {
                        faults.push(ClaimFault {
                            path: name.to_owned(),
                            takes: "an object",
                            got: kind(other),
                        });
                    }
                }
            };
        entries("metrics", metrics, &mut |key, value| match claimed_number(value) {
            Some(number) => {
                claims.metrics.insert(key.to_owned(), number);
                None
            }
            None => Some("a finite number"),
        });
        entries("artifacts", artifacts, &mut |key, value| match value {
            Value::String(text) => {
                claims.artifacts.insert(key.to_owned(), text.clone());
                None
            }
            _ => Some("the artifact's text"),
        });
        if faults.is_empty() { Ok(claims) } else { Err(faults) }
    }
}

fn claimed_number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| number.is_finite())
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "that number",
        Value::String(_) => "this text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Why the gate does not follow a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathFault {
    Empty,
    Absolute,
    Upwards,
    Control,
}

impl fmt::Display for PathFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            PathFault::Empty => "the path is empty",
            PathFault::Absolute => "the path is absolute and the gate reads below the working folder",
            PathFault::Upwards => "the path has `..` in it and the gate reads below the working folder",
            PathFault::Control => "the path holds a control character",
        })
    }
}

/// Returns a path below the working folder in the one form that evidence goes by:
/// without `.` and doubled slashes.
pub fn relative(path: &str) -> Result<String, PathFault> {
    let bytes = path.as_bytes();
    let drive = matches!(bytes, [letter, b':', ..] if letter.is_ascii_alphabetic());
    if drive || path.starts_with(['/', '\\']) {
        return Err(PathFault::Absolute);
    }
    if path.chars().any(char::is_control) {
        return Err(PathFault::Control);
    }
    // A backslash is a separator where Windows reads the path.
    if path.split(['/', '\\']).any(|part| part == "..") {
        return Err(PathFault::Upwards);
    }
    let parts: Vec<_> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    if parts.is_empty() { Err(PathFault::Empty) } else { Ok(parts.join("/")) }
}

/// Where an artifact may lie: the paths to try, first one first.
pub fn artifact_paths(config: &Config, artifact: &str) -> Result<Vec<String>, PathFault> {
    let mut paths = vec![relative(artifact)?];
    let named = config.checks.iter().find_map(|check| match &check.detector {
        // Most paths do not even hold the name, and are not put into form for nothing.
        Detector::FileExists { path, .. } if path.contains(artifact) => {
            relative(path).ok().filter(|path| stem(path) == artifact)
        }
        _ => None,
    });
    paths.extend(named.filter(|path| !paths.contains(path)));
    Ok(paths)
}

/// A file's name without its last extension.
fn stem(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    }
}

/// Returns whether a judgment is about a check.
pub fn is_about(judgment: &Judgment, target: &str, check: &str) -> bool {
    judgment.check == check
        || judgment
            .check
            .strip_prefix(target)
            .and_then(|rest| rest.strip_prefix('/'))
            .is_some_and(|name| name == check)
}

/// The form under which two spellings of a provider are the same: whoever judges
/// must not become another by a capital letter.
pub fn fold_provider(provider: &str) -> String {
    provider.trim().to_lowercase()
}

/// What has to be looked up for a target, each thing once.
pub fn needs(config: &Config, target: &str) -> Vec<Need> {
    let mut texts: Vec<String> = Vec::new();
    let mut files: Vec<String> = Vec::new();
    let mut scripts: Vec<Script> = Vec::new();
    let mut episodes = false;
    let add = |list: &mut Vec<String>, path: String| {
        if !list.contains(&path) {
            list.push(path);
        }
    };
    for check in config.checks_of(target) {
        match &check.detector {
            Detector::FileExists { path, .. } => {
                if let Ok(path) = relative(path) {
                    add(&mut files, path);
                }
            }
            Detector::RegexMatch { artifact, .. } => {
                for path in artifact_paths(config, artifact).unwrap_or_default() {
                    add(&mut texts, path);
                }
            }
            Detector::Threshold { .. } => add(&mut texts, METRICS.to_owned()),
            Detector::Script { command, args, .. } => {
                let script = Script { command: command.clone(), args: args.clone() };
                if !scripts.contains(&script) {
                    scripts.push(script);
                }
            }
            Detector::Judge { .. } => episodes = true,
        }
    }
    files.retain(|path| !texts.contains(path));
    let mut needs: Vec<Need> = files.into_iter().map(|path| Need::File { path }).collect();
    needs.extend(texts.into_iter().map(|path| Need::Text { path }));
    needs.extend(scripts.into_iter().map(Need::Script));
    needs.extend(episodes.then_some(Need::Episodes));
    needs
}

/// What has to be looked up to tell whether a recorded ruling of `overall` still
/// rests on the same evidence: contents are not needed, and no script is run.
pub fn audit_needs(config: &Config) -> Vec<Need> {
    needs(config, OVERALL)
        .into_iter()
        .filter_map(|need| match need {
            Need::Text { path } => Some(Need::File { path }),
            Need::Script(_) => None,
            other => Some(other),
        })
        .collect()
}

/// Returns the digest of the evidence that a ruling of the target rests on.
///
/// It covers, one JSON array a line and in this order: the target; each file that
/// the target's checks look at, by path, with what was found there, its size and
/// digest (`metrics.json` included); each script by command line; each judgment of
/// the target's judge checks and the providers of all builders; and the claims that
/// counted. How a script ended is no part of it: the audit takes this digest anew
/// without running anything. The content of a file enters by its digest alone, so
/// the host need not send it again.
pub fn evidence_sha256(config: &Config, target: &str, evidence: &Evidence, claims: &Claims) -> String {
    let mut text = String::new();
    let mut line = |value: Value| {
        text.push_str(&json_text(&value));
        text.push('\n');
    };
    line(json!(["evidence", 1, target]));
    let mut files = Vec::new();
    let mut scripts = Vec::new();
    for need in needs(config, target) {
        match need {
            Need::File { path } | Need::Text { path } => files.push(path),
            Need::Script(script) => scripts.push(script),
            Need::Episodes => {}
        }
    }
    // A file that more checks look at, or in another way, is the same file.
    files.sort();
    for path in files {
        let (found, bytes, digest) = match evidence.files.get(&path) {
            Some(FileFact::File { bytes, sha256, .. }) => ("file", Some(*bytes), Some(sha256.as_str())),
            Some(FileFact::TooLarge { bytes }) => ("too-large", Some(*bytes), None),
            Some(FileFact::Absent) => ("absent", None, None),
            Some(FileFact::NotAFile) => ("no-file", None, None),
            Some(FileFact::Outside) => ("outside", None, None),
            Some(FileFact::Unreadable { .. }) => ("unreadable", None, None),
            None => ("unknown", None, None),
        };
        line(json!(["file", path, found, bytes, digest]));
    }
    for script in scripts {
        line(json!(["script", script.command, script.args]));
    }
    let judged: Vec<_> =
        config.checks_of(target).filter(|check| matches!(check.detector, Detector::Judge { .. })).collect();
    if let (false, Some(episodes)) = (judged.is_empty(), &evidence.episodes) {
        let mut builders: Vec<_> = episodes
            .iter()
            .filter(|episode| episode.role == Role::Builder)
            .map(|episode| fold_provider(&episode.provider_id))
            .collect();
        builders.sort();
        builders.dedup();
        line(json!(["builders", builders]));
        for episode in episodes.iter().filter(|episode| episode.role == Role::Judge) {
            let Some(judgment) = &episode.judgment else { continue };
            if judged.iter().any(|check| is_about(judgment, target, &check.name.text)) {
                line(json!([
                    "judgment",
                    episode.seq,
                    episode.node_id,
                    episode.provider_id,
                    judgment.check,
                    judgment.pass,
                    judgment.score,
                ]));
            }
        }
    }
    for (name, number) in &claims.metrics {
        line(json!(["metric", name, number]));
    }
    for (name, artifact) in &claims.artifacts {
        line(json!(["artifact", name, sha256(artifact.as_bytes())]));
    }
    sha256(text.as_bytes())
}
