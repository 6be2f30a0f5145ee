//! The gate: whether a target is reached, derived from evidence each time it is
//! asked.
//!
//! What the host read counts before what the caller says, and what could not be
//! looked at is told apart from what failed.

use super::config::{Check, Config, Detector, Op, Role};
use super::evidence::{
    Claims, Episode, Evidence, FileFact, MAX_TEXT, METRICS, Script, ScriptRun, artifact_paths,
    evidence_sha256, fold_provider, is_about, relative,
};
use super::metrics::Metrics;
use super::pattern::{MAX_STEPS, Pattern, Search};
use crate::arguments::excerpt;
use crate::status::words;
use std::fmt;

words! {
    /// How a check came out.
    Outcome {
        Passed = "passed",
        Failed = "failed",
        /// It could not be decided.
        Unavailable = "unavailable",
    }
}

words! {
    /// Who supplied what a check rests on.
    Source {
        Disk = "disk",
        Script = "script",
        Caller = "caller",
        Episodes = "episodes",
    }
}

/// How a gate is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The ruling is kept: what only the caller says does not count.
    pub recorded: bool,
}

/// A ruling on one target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub target: String,
    pub satisfied: bool,
    pub passed: usize,
    /// All that did not pass.
    pub failed: usize,
    pub total: usize,
    pub reason: String,
    pub checks: Vec<CheckResult>,
    pub config_sha256: String,
    pub evidence_sha256: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckResult {
    pub name: String,
    /// The check's statement.
    pub text: String,
    pub blocking: bool,
    pub outcome: Outcome,
    /// What was found, in words.
    pub evidence: String,
    pub source: Source,
}

impl CheckResult {
    pub fn passed(&self) -> bool {
        self.outcome == Outcome::Passed
    }
}

/// The configuration has no such target.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget {
    pub target: String,
    pub targets: Vec<String>,
}

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Of a thousand goals, as many as one would read.
        const SHOWN: usize = 50;
        let shown: Vec<_> = self.targets.iter().take(SHOWN).map(|target| excerpt(target)).collect();
        write!(
            f,
            "`{}` is no target of this configuration; it has {}",
            excerpt(&self.target),
            shown.join(", ")
        )?;
        match self.targets.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

/// Says whether the configuration has the target.
pub fn target(config: &Config, target: &str) -> Result<(), UnknownTarget> {
    let targets = config.targets();
    if targets.contains(&target) {
        return Ok(());
    }
    // `overall` last would be cut off first.
    let targets =
        targets.into_iter().rev().take(1).chain(config.goals.iter().map(|goal| goal.name.text.as_str()));
    Err(UnknownTarget { target: target.to_owned(), targets: targets.map(str::to_owned).collect() })
}

/// What one detector says.
struct Said {
    outcome: Outcome,
    evidence: String,
    source: Source,
}

impl Said {
    fn new(passed: bool, source: Source, evidence: impl Into<String>) -> Said {
        let outcome = if passed { Outcome::Passed } else { Outcome::Failed };
        Said { outcome, evidence: evidence.into(), source }
    }

    fn unavailable(source: Source, evidence: impl Into<String>) -> Said {
        Said { outcome: Outcome::Unavailable, evidence: evidence.into(), source }
    }
}

/// Rules on a target.
pub fn evaluate(
    config: &Config,
    name: &str,
    evidence: &Evidence,
    claims: &Claims,
    options: Options,
) -> Result<Verdict, UnknownTarget> {
    target(config, name)?;
    let wanted = config.checks_of(name).filter_map(|check| match &check.detector {
        Detector::Threshold { metric, .. } => Some(metric.as_str()),
        _ => None,
    });
    let metrics = Metrics::new(evidence.files.get(METRICS), &wanted.collect());
    let mut gate =
        Gate { config, evidence, claims, options, metrics, used: Claims::default(), steps: MAX_STEPS };
    let checks: Vec<_> = config
        .checks_of(name)
        .map(|check| {
            let said = gate.decide(check);
            CheckResult {
                name: check.name.text.clone(),
                text: check.statement.clone(),
                blocking: check.blocking,
                outcome: said.outcome,
                evidence: said.evidence,
                source: said.source,
            }
        })
        .collect();
    let total = checks.len();
    let passed = checks.iter().filter(|check| check.passed()).count();
    let (satisfied, reason) = sum_up(name, &checks);
    Ok(Verdict {
        target: name.to_owned(),
        satisfied,
        passed,
        failed: total - passed,
        total,
        reason,
        config_sha256: config.sha256.clone(),
        evidence_sha256: evidence_sha256(config, name, evidence, &gate.used),
        checks,
    })
}

/// Whether all that has to pass passed, and why not.
fn sum_up(target: &str, checks: &[CheckResult]) -> (bool, String) {
    let blocking = checks.iter().filter(|check| check.blocking).count();
    if blocking == 0 {
        return (
            false,
            format!("no blocking check has the target `{}`, so nothing can satisfy it", excerpt(target)),
        );
    }
    let named = |outcome: Outcome| -> Vec<String> {
        checks.iter().filter(|c| c.blocking && c.outcome == outcome).map(|c| excerpt(&c.name)).collect()
    };
    let (failed, unavailable) = (named(Outcome::Failed), named(Outcome::Unavailable));
    if failed.is_empty() && unavailable.is_empty() {
        let advisory = checks.iter().filter(|check| !check.blocking && !check.passed()).count();
        let rest = match advisory {
            0 => String::new(),
            n => format!("; {n} that do not block did not pass"),
        };
        return (true, format!("all blocking checks passed ({blocking}){rest}"));
    }
    let mut parts = Vec::new();
    if !failed.is_empty() {
        parts.push(format!("failed: {}", list(&failed)));
    }
    if !unavailable.is_empty() {
        parts.push(format!("unavailable: {}", list(&unavailable)));
    }
    let open = failed.len() + unavailable.len();
    (false, format!("{open} of {blocking} blocking checks did not pass; {}", parts.join("; ")))
}

fn list(names: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = names.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

struct Gate<'a> {
    config: &'a Config,
    evidence: &'a Evidence,
    claims: &'a Claims,
    options: Options,
    metrics: Metrics,
    /// The claims that counted.
    used: Claims,
    /// What is left of the effort that patterns may take.
    steps: usize,
}

impl Gate<'_> {
    fn decide(&mut self, check: &Check) -> Said {
        match &check.detector {
            Detector::Script { command, args, expect_exit } => self.script(command, args, *expect_exit),
            Detector::FileExists { path, non_empty } => self.file_exists(path, *non_empty),
            Detector::RegexMatch { artifact, pattern } => self.regex_match(artifact, pattern),
            Detector::Threshold { metric, op, value } => self.threshold(metric, *op, *value),
            Detector::Judge { standard, min_score } => {
                let episodes = self.evidence.episodes.as_deref();
                judge(episodes, &check.target.text, &check.name.text, standard, *min_score)
            }
        }
    }

    fn script(&self, command: &str, args: &[String], expect: i32) -> Said {
        let script = Script { command: command.to_owned(), args: args.to_vec() };
        let shown = excerpt(command);
        match self.evidence.scripts.get(&script) {
            Some(ScriptRun::Exit { code, note }) => {
                let note = match excerpt(note.trim()) {
                    note if note.is_empty() => note,
                    note => format!("; it ended with: {note}"),
                };
                let wanted = if *code == expect { String::new() } else { format!(", not {expect}") };
                Said::new(
                    *code == expect,
                    Source::Script,
                    format!("`{shown}` exited with {code}{wanted}{note}"),
                )
            }
            Some(ScriptRun::Signal { number }) => {
                Said::new(false, Source::Script, format!("`{shown}` was ended by signal {number}"))
            }
            Some(ScriptRun::Unavailable { reason }) => {
                Said::unavailable(Source::Script, format!("`{shown}` did not run to its end: {reason}"))
            }
            None => Said::unavailable(Source::Script, format!("`{shown}` was not run")),
        }
    }

    fn file_exists(&self, path: &str, non_empty: bool) -> Said {
        let path = match relative(path) {
            Ok(path) => path,
            Err(fault) => return Said::unavailable(Source::Disk, format!("{}: {fault}", excerpt(path))),
        };
        let there = |bytes: u64| {
            let empty = non_empty && bytes == 0;
            let size =
                if empty { "is there, but empty".to_owned() } else { format!("is there ({bytes} bytes)") };
            Said::new(!empty, Source::Disk, format!("{path} {size}"))
        };
        match self.evidence.files.get(&path) {
            Some(FileFact::File { bytes, .. } | FileFact::TooLarge { bytes }) => there(*bytes),
            Some(FileFact::Absent) => Said::new(false, Source::Disk, format!("{path} is not there")),
            Some(FileFact::NotAFile) => {
                Said::new(false, Source::Disk, format!("{path} is there, but is no file"))
            }
            fact => Said::unavailable(Source::Disk, unread(&path, fact)),
        }
    }

    fn regex_match(&mut self, artifact: &str, pattern: &str) -> Said {
        let paths = match artifact_paths(self.config, artifact) {
            Ok(paths) => paths,
            Err(fault) => return Said::unavailable(Source::Disk, format!("{}: {fault}", excerpt(artifact))),
        };
        for path in &paths {
            match self.evidence.files.get(path) {
                Some(FileFact::Absent | FileFact::NotAFile) => {}
                Some(FileFact::File { text: Some(text), .. }) => {
                    return search(pattern, text, Source::Disk, path, &mut self.steps);
                }
                fact => return Said::unavailable(Source::Disk, unread(path, fact)),
            }
        }
        let looked = paths.join(" or ");
        let Some(text) = self.claims.artifacts.get(artifact) else {
            return Said::unavailable(
                Source::Disk,
                format!("there is no artifact `{}` to look through: no file {looked}", excerpt(artifact)),
            );
        };
        if self.options.recorded {
            return Said::unavailable(
                Source::Caller,
                format!(
                    "only the caller sent `{}`, which a recorded ruling does not count; write {looked}",
                    excerpt(artifact)
                ),
            );
        }
        let said = search(pattern, text.as_bytes(), Source::Caller, artifact, &mut self.steps);
        self.used.artifacts.insert(artifact.to_owned(), text.clone());
        said
    }

    fn threshold(&mut self, metric: &str, op: Op, value: f64) -> Said {
        let shown = excerpt(metric);
        match self.metrics.get(metric) {
            Ok(Some(actual)) => return compare(&shown, actual, op, value, Source::Disk),
            Ok(None) => {}
            Err(why) => return Said::unavailable(Source::Disk, why),
        }
        let Some(actual) = self.claims.metrics.get(metric).copied() else {
            return Said::unavailable(Source::Disk, format!("the metric `{shown}` is not in {METRICS}"));
        };
        if self.options.recorded {
            return Said::unavailable(
                Source::Caller,
                format!(
                    "only the caller sent `{shown}`, which a recorded ruling does not count; write it to {METRICS}"
                ),
            );
        }
        self.used.metrics.insert(metric.to_owned(), actual);
        compare(&shown, actual, op, value, Source::Caller)
    }
}

/// Why a file could not be looked at.
fn unread(path: &str, fact: Option<&FileFact>) -> String {
    match fact {
        Some(FileFact::Outside) => {
            format!("{path} leads out of the working folder, where the gate does not read")
        }
        Some(FileFact::TooLarge { bytes }) => {
            format!("{path} has {bytes} bytes; up to {MAX_TEXT} are looked through")
        }
        Some(FileFact::Unreadable { reason }) => format!("{path} cannot be read: {}", excerpt(reason)),
        Some(FileFact::Absent) => format!("{path} is not there"),
        Some(FileFact::NotAFile) => format!("{path} is no file"),
        Some(FileFact::File { .. }) | None => format!("{path} was not read"),
    }
}

fn search(pattern: &str, text: &[u8], source: Source, what: &str, steps: &mut usize) -> Said {
    let what = excerpt(what);
    if text.len() as u64 > MAX_TEXT {
        return Said::unavailable(
            source,
            format!("{what} has {} bytes; up to {MAX_TEXT} are looked through", text.len()),
        );
    }
    match Pattern::new(pattern).map(|pattern| pattern.search(text, steps)) {
        Ok(Search::Found) => Said::new(true, source, format!("the pattern is found in {what}")),
        Ok(Search::NotFound) => Said::new(false, source, format!("the pattern is not found in {what}")),
        Ok(Search::TooCostly) => Said::unavailable(
            source,
            format!("looking for the pattern in {what} takes too long; make it simpler"),
        ),
        Err(why) => Said::unavailable(source, format!("the pattern {why}")),
    }
}

fn compare(metric: &str, actual: f64, op: Op, value: f64, source: Source) -> Said {
    let (passed, sign) = match op {
        Op::Gt => (actual > value, ">"),
        Op::Gte => (actual >= value, ">="),
        Op::Lt => (actual < value, "<"),
        Op::Lte => (actual <= value, "<="),
        Op::Eq => (is_equal(actual, value), "="),
    };
    Said::new(passed, source, format!("{metric} is {actual}; it has to be {sign} {value}"))
}

/// Equal within 1e-9 of the larger one, and within 1e-9 near zero.
fn is_equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0)
}

/// What the judgments of a run say about a check: there is one, each is by a provider
/// that built nothing in this run, each passes, and each reaches the score.
fn judge(
    episodes: Option<&[Episode]>,
    target: &str,
    check: &str,
    standard: &str,
    min_score: Option<f64>,
) -> Said {
    let Some(episodes) = episodes else {
        return Said::unavailable(
            Source::Episodes,
            "a judge check rests on the episodes of a run; name it with run_id",
        );
    };
    let fail = |evidence: String| Said::new(false, Source::Episodes, evidence);
    let builders: Vec<_> = episodes
        .iter()
        .filter(|episode| episode.role == Role::Builder)
        .map(|episode| fold_provider(&episode.provider_id))
        .collect();
    let judgments: Vec<_> = episodes
        .iter()
        .filter(|episode| episode.role == Role::Judge)
        .filter_map(|episode| episode.judgment.as_ref().map(|judgment| (episode, judgment)))
        .filter(|(_, judgment)| is_about(judgment, target, check))
        .collect();
    if judgments.is_empty() {
        return fail(format!("the run has no judgment of `{}`", excerpt(check)));
    }
    if builders.is_empty() {
        return fail(
            "the run has no builder episode, so nothing shows that the judge is independent".to_owned(),
        );
    }
    for (episode, judgment) in &judgments {
        let provider = excerpt(&episode.provider_id);
        let seq = episode.seq;
        if builders.contains(&fold_provider(&episode.provider_id)) {
            return fail(format!("judgment {seq} is by `{provider}`, which also built in this run"));
        }
        if !judgment.pass {
            return fail(format!("judgment {seq} by `{provider}` does not pass"));
        }
        match (min_score, judgment.score) {
            (Some(min), Some(score)) if score.is_nan() || score < min => {
                return fail(format!("judgment {seq} by `{provider}` scores {score}, below {min}"));
            }
            (Some(min), None) => {
                return fail(format!("judgment {seq} by `{provider}` has no score; it has to reach {min}"));
            }
            _ => {}
        }
    }
    let standard = excerpt(standard);
    Said::new(
        true,
        Source::Episodes,
        format!("independent judgments ({}) pass against: {standard}", judgments.len()),
    )
}
