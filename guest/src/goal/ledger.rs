//! The ledger of a run: what happened, each entry sealed with the one before it.
//!
//! An entry's hash is SHA-256 over the previous hash, a line break, and the entry as
//! a compact JSON array `[seq, at, kind, iteration, detail, node_id, tokens,
//! cost_usd]`. Before the first entry stands the genesis of the run, so entries
//! cannot be moved to another run either. Who edits, drops or moves an entry has to
//! recompute all hashes after it, and the last one is what others have seen.

use super::digest::sha256;
use super::gate::Verdict;
use crate::status::words;
use serde_json::json;
use std::fmt;

words! {
    /// What an entry tells.
    Kind {
        RunStarted = "run_started",
        NodeDispatched = "node_dispatched",
        NodeSucceeded = "node_succeeded",
        NodeFailed = "node_failed",
        GateEvaluated = "gate_evaluated",
        GoalSatisfied = "goal_satisfied",
        GoalRevoked = "goal_revoked",
        RunFinished = "run_finished",
    }
}

/// An entry without its seal.
#[derive(Clone, Debug, PartialEq)]
pub struct Entry {
    /// From 1, without gaps.
    pub seq: u64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The word of a [`Kind`]; kept as it is stored, so that a ledger of a later
    /// version still can be verified.
    pub kind: String,
    pub iteration: u64,
    pub detail: String,
    pub node_id: Option<String>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}

/// An entry with its hash.
#[derive(Clone, Debug, PartialEq)]
pub struct Sealed {
    pub entry: Entry,
    pub hash: String,
}

/// The place in a chain that the next entry follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    pub seq: u64,
    pub hash: String,
}

impl Tip {
    /// The place before a run's first entry.
    pub fn genesis(run_id: &str) -> Tip {
        Tip { seq: 0, hash: sha256(json!(["loop-state ledger", 1, run_id]).to_string().as_bytes()) }
    }
}

/// What the caller gives of an entry; its number and hash follow from the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub at: i64,
    pub kind: Kind,
    pub iteration: u64,
    pub detail: String,
    pub node_id: Option<String>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}

impl Draft {
    /// An entry that tells no more than this.
    pub fn new(at: i64, kind: Kind, iteration: u64, detail: impl Into<String>) -> Draft {
        Draft { at, kind, iteration, detail: detail.into(), node_id: None, tokens: None, cost_usd: None }
    }
}

/// Seals an entry and moves the tip on.
pub fn append(tip: &mut Tip, draft: Draft) -> Sealed {
    let entry = Entry {
        seq: tip.seq.saturating_add(1),
        at: draft.at,
        kind: draft.kind.word().to_owned(),
        iteration: draft.iteration,
        detail: draft.detail,
        node_id: draft.node_id,
        tokens: draft.tokens,
        cost_usd: draft.cost_usd,
    };
    let hash = seal(&tip.hash, &entry);
    *tip = Tip { seq: entry.seq, hash: hash.clone() };
    Sealed { entry, hash }
}

/// The hash of an entry after a previous hash.
pub fn seal(previous: &str, entry: &Entry) -> String {
    let Entry { seq, at, kind, iteration, detail, node_id, tokens, cost_usd } = entry;
    let canonical = json!([seq, at, kind, iteration, detail, node_id, tokens, cost_usd]);
    sha256(format!("{previous}\n{canonical}").as_bytes())
}

/// Where a chain is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    /// The first entry that does not fit.
    pub seq: u64,
    pub why: Break,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// The entries before it are not all there, or one is there twice.
    Gap { expected: u64 },
    /// It is not what was sealed, or the one before it is not.
    Changed,
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seq = self.seq;
        match self.why {
            Break::Gap { expected } => write!(f, "entry {seq} stands where entry {expected} belongs"),
            Break::Changed => write!(f, "entry {seq} is not what was sealed, or not after what it followed"),
        }
    }
}

/// Checks entries that follow a tip, and returns where they lead.
pub fn verify<'a>(from: Tip, entries: impl IntoIterator<Item = &'a Sealed>) -> Result<Tip, Broken> {
    let mut tip = from;
    for Sealed { entry, hash } in entries {
        let expected = tip.seq.saturating_add(1);
        if entry.seq != expected {
            return Err(Broken { seq: entry.seq, why: Break::Gap { expected } });
        }
        if seal(&tip.hash, entry) != *hash {
            return Err(Broken { seq: entry.seq, why: Break::Changed });
        }
        tip = Tip { seq: entry.seq, hash: hash.clone() };
    }
    Ok(tip)
}

/// The recorded ruling on a target, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GoalState {
    pub target: String,
    pub satisfied: bool,
    pub passed: u64,
    pub failed: u64,
    pub total: u64,
    pub reason: String,
    /// How many rulings on the target were recorded, this one included.
    pub iteration: u64,
    pub config_sha256: String,
    pub evidence_sha256: String,
    /// Milliseconds since 1970.
    pub updated_at: i64,
}

/// What recording a ruling stores: the state and its entries. Only a verdict makes
/// one, and only the gate makes verdicts.
pub fn record(previous: Option<&GoalState>, verdict: &Verdict, at: i64) -> (GoalState, Vec<Draft>) {
    let iteration = previous.map_or(0, |state| state.iteration).saturating_add(1);
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let state = GoalState {
        target: verdict.target.clone(),
        satisfied: verdict.satisfied,
        passed: count(verdict.passed),
        failed: count(verdict.failed),
        total: count(verdict.total),
        reason: verdict.reason.clone(),
        iteration,
        config_sha256: verdict.config_sha256.clone(),
        evidence_sha256: verdict.evidence_sha256.clone(),
        updated_at: at,
    };
    let stands = if verdict.satisfied { "satisfied" } else { "not satisfied" };
    let detail = format!("{}: {stands}; {}", verdict.target, verdict.reason);
    let mut drafts = vec![Draft::new(at, Kind::GateEvaluated, iteration, detail)];
    let was = previous.is_some_and(|state| state.satisfied);
    let change = match (was, verdict.satisfied) {
        (false, true) => Some(Kind::GoalSatisfied),
        (true, false) => Some(Kind::GoalRevoked),
        _ => None,
    };
    drafts.extend(change.map(|kind| Draft::new(at, kind, iteration, verdict.target.clone())));
    (state, drafts)
}
