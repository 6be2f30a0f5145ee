//! What speaks against a loop's end that has a goal configuration bound to it.

use super::config::{Config, OVERALL};
use super::evidence::{Claims, Evidence, evidence_sha256};
use crate::arguments::excerpt;
use crate::model::GoalState;

/// The configuration that a loop was bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    pub path: String,
    pub sha256: String,
}

/// What stands at the pinned path now.
#[derive(Clone, Debug)]
pub enum Bound {
    Read(Box<Config>),
    /// It is there with this digest and cannot be used.
    Rejected {
        sha256: String,
    },
    /// It could not be read; why.
    Missing(String),
}

impl Bound {
    /// Reads a configuration's text, which has this digest.
    pub fn read(bytes: &[u8], sha256: String) -> Bound {
        match Config::read(bytes, &sha256) {
            Ok(config) => Bound::Read(Box::new(config)),
            Err(_) => Bound::Rejected { sha256 },
        }
    }
}

/// One reason against the end, for the audit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub code: &'static str,
    pub message: String,
    pub fix: String,
}

/// Returns the findings on a bound configuration; none when the recorded ruling of
/// `overall` is satisfied, under the pinned configuration, and its evidence still is
/// what it was. `evidence` answers [`super::evidence::audit_needs`].
pub fn findings(pin: &Pin, bound: &Bound, ruling: Option<&GoalState>, evidence: &Evidence) -> Vec<Finding> {
    let path = excerpt(&pin.path);
    let again = || format!("evaluate the gate of `{OVERALL}` with {path} and the loop's run_id");
    let mut findings = Vec::new();
    let mut add = |code, message: String, fix: String| findings.push(Finding { code, message, fix });
    let now = match bound {
        Bound::Read(config) => Some(&config.sha256),
        Bound::Rejected { sha256 } => Some(sha256),
        Bound::Missing(_) => None,
    };
    let changed = match bound {
        _ if now == Some(&pin.sha256) => None,
        Bound::Missing(why) => {
            Some(format!("the bound configuration {path} cannot be read: {}", excerpt(why)))
        }
        _ => Some(format!("the bound configuration {path} is not the one that was pinned")),
    };
    if let Some(message) = &changed {
        let fix = "put the pinned text back, or bind the new one with loop_setField goal_config".to_owned();
        add("goal-config-changed", message.clone(), fix);
    }
    let config = match bound {
        Bound::Read(config) if changed.is_none() => Some(config),
        _ => None,
    };
    match ruling {
        _ if config.is_some_and(|config| !config.has_blocking(OVERALL)) => add(
            "goal-unchecked",
            format!("{path} has no blocking check with the target `{OVERALL}`"),
            "add one to the configuration, bind it again, and evaluate the gate".to_owned(),
        ),
        None => add("goal-unchecked", format!("`{OVERALL}` of {path} has no recorded ruling"), again()),
        Some(ruling) if ruling.config_sha256 != pin.sha256 => add(
            "goal-unchecked",
            format!(
                "the recorded ruling of `{OVERALL}` was made under another configuration than the pinned {path}"
            ),
            again(),
        ),
        Some(ruling) if !ruling.workdir.is_empty() => add(
            "goal-unchecked",
            format!(
                "the recorded ruling of `{OVERALL}` rests on what lies in {}, and a bound loop's evidence lies in \
                 the project root",
                excerpt(&ruling.workdir)
            ),
            again(),
        ),
        Some(ruling) => {
            if !ruling.satisfied {
                add("goal-unsatisfied", format!("`{OVERALL}` is not satisfied: {}", ruling.reason), again());
            }
            if let Some(config) = config
                && evidence_sha256(config, OVERALL, evidence, &Claims::default()) != ruling.evidence_sha256
            {
                let message =
                    format!("what the ruling of `{OVERALL}` rests on has changed since it was made");
                add("goal-stale", message, again());
            }
        }
    }
    findings
}
