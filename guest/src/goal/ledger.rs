//! The ledger of a run: what happened, each entry sealed with the one before it.
//!
//! An entry's hash is SHA-256 over the previous hash, a line break, and the entry as
//! a compact JSON array `[seq, at, kind, iteration, detail, node_id, tokens,
//! cost_usd]`. Before the first entry stands a fixed genesis. Who edits, drops or moves an entry has to
//! recompute all hashes after it, and the last one is what others have seen.

use super::gate::Verdict;
use crate::digest::sha256;
use crate::model::{GoalState, LedgerEntry};
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

/// Returns whether a text can name a run: 1 to 200 characters, none of them a control
/// character.
pub fn is_run_id(text: &str) -> bool {
    (1..=200).contains(&text.chars().count()) && !text.chars().any(char::is_control)
}

/// The place in a chain that the next entry follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tip {
    pub seq: u64,
    pub hash: String,
}

impl Tip {
    /// The place before a run's first entry.
    ///
    /// It does not name the run: a loop that is restored under another slug keeps its
    /// ledger.
    pub fn genesis() -> Tip {
        Tip { seq: 0, hash: sha256(b"[\"loop-state ledger\",1]") }
    }
}

/// What the caller gives of an entry; its number and hash follow from the chain.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    pub at: i64,
    pub kind: Kind,
    pub iteration: u32,
    pub detail: String,
    pub node_id: Option<String>,
    pub tokens: Option<u64>,
    pub cost_usd: Option<f64>,
}

impl Draft {
    /// An entry that tells no more than this.
    pub fn new(at: i64, kind: Kind, iteration: u32, detail: impl Into<String>) -> Draft {
        Draft { at, kind, iteration, detail: detail.into(), node_id: None, tokens: None, cost_usd: None }
    }
}

/// Seals an entry and moves the tip on.
pub fn append(tip: &mut Tip, draft: Draft) -> LedgerEntry {
    let mut entry = LedgerEntry {
        seq: tip.seq.saturating_add(1),
        at: draft.at,
        kind: draft.kind.word().to_owned(),
        iteration: draft.iteration,
        detail: draft.detail,
        node_id: draft.node_id,
        tokens: draft.tokens,
        cost_usd: draft.cost_usd,
        hash: String::new(),
    };
    entry.hash = seal(&tip.hash, &entry);
    *tip = Tip { seq: entry.seq, hash: entry.hash.clone() };
    entry
}

/// The hash of an entry after a previous hash.
pub fn seal(previous: &str, entry: &LedgerEntry) -> String {
    let LedgerEntry { seq, at, kind, iteration, detail, node_id, tokens, cost_usd, hash: _ } = entry;
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
pub fn verify<'a>(from: Tip, entries: impl IntoIterator<Item = &'a LedgerEntry>) -> Result<Tip, Broken> {
    let mut tip = from;
    for entry in entries {
        let expected = tip.seq.saturating_add(1);
        if entry.seq != expected {
            return Err(Broken { seq: entry.seq, why: Break::Gap { expected } });
        }
        if seal(&tip.hash, entry) != entry.hash {
            return Err(Broken { seq: entry.seq, why: Break::Changed });
        }
        tip = Tip { seq: entry.seq, hash: entry.hash.clone() };
    }
    Ok(tip)
}

/// What recording a ruling stores: the state and its entries. Only a verdict makes
/// one, and only the gate makes verdicts.
pub fn record(
    previous: Option<&GoalState>,
    verdict: &Verdict,
    workdir: &str,
    at: i64,
) -> (GoalState, Vec<Draft>) {
    let iteration = previous.map_or(0, |state| state.iteration).saturating_add(1);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
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
        workdir: workdir.to_owned(),
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
