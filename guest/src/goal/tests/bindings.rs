//! The ledger's chain, what recording adds to it, and what the audit says.

use super::{disk, file};
use crate::digest::sha256;
use crate::goal::answer;
use crate::goal::binding::{Bound, Pin, findings};
use crate::goal::config::Config;
use crate::goal::evidence::{Claims, Evidence};
use crate::goal::gate::{Options, Verdict, evaluate};
use crate::goal::ledger::{Break, Broken, Draft, Kind, Tip, append, record, verify};
use crate::model::{GoalState, LedgerEntry};
use proptest::prelude::*;

const TEXT: &str = "name: c\nvalidations:\n  - {target: overall, name: a, mode: objective, statement: s, detector: {type: file_exists, path: f}}\n";

fn rule(config: &Config, evidence: &Evidence) -> Verdict {
    evaluate(config, "overall", evidence, &Claims::default(), Options { recorded: true }).unwrap()
}

fn chain(n: u32) -> Vec<LedgerEntry> {
    let mut tip = Tip::genesis();
    (0..n)
        .map(|i| {
            let at = i64::from(i);
            let mut draft = Draft::new(at, Kind::ALL[i as usize % Kind::ALL.len()], i, format!("entry {i}"));
            draft.cost_usd = (i % 3 == 0).then_some(0.1 * f64::from(i));
            draft.node_id = (i % 2 == 0).then(|| format!("n{i}"));
            append(&mut tip, draft)
        })
        .collect()
}

#[test]
fn a_ledger_is_sealed_from_its_genesis() {
    let entries = chain(5);
    assert_eq!(entries.iter().map(|sealed| sealed.seq).collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    let tip = verify(Tip::genesis(), &entries).unwrap();
    assert_eq!(tip, Tip { seq: 5, hash: entries[4].hash.clone() });
    let half = verify(Tip::genesis(), &entries[..2]).unwrap();
    assert_eq!(verify(half, &entries[2..]), Ok(tip), "a tail verifies after its tip");
    // The form is fixed: what is stored stays verifiable.
    let by_hand = format!(
        "{}\n[1,0,\"run_started\",0,\"entry 0\",\"n0\",null,0.0]",
        sha256(b"[\"loop-state ledger\",1]")
    );
    assert_eq!(entries[0].hash, sha256(by_hand.as_bytes()));
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

proptest! {
    /// Any one edit is found at the entry where it was made, or right after it.
    #[test]
    fn every_edit_shows(n in 2..20_u32, at in any::<prop::sample::Index>(), edit in 0..9_u8) {
        let mut entries = chain(n);
        let i = at.index(entries.len());
        let entry = &mut entries[i];
        match edit {
            0 => entry.at += 1,
            1 => entry.kind = "goal_satisfied ".into(),
            2 => entry.iteration += 1,
            3 => entry.detail.push('.'),
            4 => entry.node_id = Some("other".into()),
            5 => entry.tokens = Some(1),
            6 => entry.cost_usd = Some(5.5),
            7 => entry.hash = "0".repeat(64),
            _ => { entries.remove(i); }
        }
        let seq = i as u64 + 1;
        let result = verify(Tip::genesis(), &entries);
        match edit {
            // What is cut off at the end is not seen here but by who knows the tip.
            8 if seq == u64::from(n) => prop_assert_eq!(result.unwrap().seq, seq - 1),
            8 => prop_assert_eq!(result, Err(Broken { seq: seq + 1, why: Break::Gap { expected: seq } })),
            _ => prop_assert_eq!(result, Err(Broken { seq, why: Break::Changed })),
        }
    }
}

#[test]
fn recording_tells_changes_of_the_ruling() {
    let config = super::config(TEXT);
    let yes = rule(&config, &disk(&config, "overall", &[("f", "x")]));
    let no = rule(&config, &disk(&config, "overall", &[]));
    let mut state: Option<GoalState> = None;
    let mut told = Vec::new();
    for (at, verdict) in [&no, &yes, &yes, &no].into_iter().enumerate() {
        let (next, drafts) = record(state.as_ref(), verdict, "", at as i64);
        assert_eq!((next.iteration, next.updated_at), (at as u32 + 1, at as i64));
        assert!(drafts.iter().all(|draft| draft.iteration == next.iteration));
        told.push(drafts.iter().map(|draft| draft.kind.word()).collect::<Vec<_>>());
        state = Some(next);
    }
    assert_eq!(
        told,
        [
            vec!["gate_evaluated"],
            vec!["gate_evaluated", "goal_satisfied"],
            vec!["gate_evaluated"],
            vec!["gate_evaluated", "goal_revoked"],
        ]
    );
    let state = state.unwrap();
    let many: Vec<_> = (0..500).map(|i| GoalState { target: format!("g{i}"), ..state.clone() }).collect();
    let answered = answer::goal_states(&many).into_value();
    let answered = answered.as_object().unwrap();
    assert_eq!(answered["more"], 501 - answered.len(), "what does not fit is counted");
    assert!(serde_json::to_string(answered).unwrap().len() <= crate::reply::WIDE.answer);
    let shown = answer::goal_states(&[state]).finish(Vec::new());
    assert!(
        shown.starts_with(
            "{\"overall\":{\"satisfied\":false,\"passed\":0,\"failed\":1,\"total\":1,\"reason\":"
        ),
        "{shown}"
    );
    let entry = answer::ledger_entry(&chain(1)[0]).to_string();
    assert!(entry.starts_with("{\"seq\":1,\"at\":\"1970-01-01T00:00:00.000Z\",\"kind\":\"run_started\",\"iteration\":0,\"detail\":\"entry 0\",\"node_id\":\"n0\",\"cost_usd\":0.0,\"hash\":\""), "{entry}");
}

#[test]
fn a_loop_ends_only_on_a_ruling_that_still_holds() {
    let config = super::config(TEXT);
    let pin = Pin { path: "goals.yaml".into(), sha256: config.sha256.clone() };
    let there = disk(&config, "overall", &[("f", "x")]);
    let gone = disk(&config, "overall", &[]);
    let good = record(None, &rule(&config, &there), "", 1).0;
    let bad = record(None, &rule(&config, &gone), "", 1).0;
    let under = |other: &str| GoalState { config_sha256: sha256(other.as_bytes()), ..good.clone() };
    let mut edited = there.clone();
    edited.files.insert("f".into(), file("y"));
    let bound = |text: &str| Bound::read(text.as_bytes(), sha256(text.as_bytes()));
    let same = || bound(TEXT);
    let other = || bound("name: other");
    let broken = || bound("nam: x");
    let missing = || Bound::Missing("no such file".into());
    let unguarded = || bound(&TEXT.replace("objective", "objective, blocking: false"));
    let loose = Pin {
        path: "goals.yaml".into(),
        sha256: match unguarded() {
            Bound::Read(c) => c.sha256.clone(),
            _ => unreachable!(),
        },
    };
    type Case<'a> = (&'a Pin, Bound, Option<&'a GoalState>, &'a Evidence, &'a [&'a str]);
    let table: Vec<Case> = vec![
        (&pin, same(), Some(&good), &there, &[]),
        (&pin, same(), None, &there, &["goal-unchecked"]),
        (&pin, same(), Some(&bad), &gone, &["goal-unsatisfied"]),
        (&pin, same(), Some(&bad), &there, &["goal-unsatisfied", "goal-stale"]),
        (&pin, same(), Some(&good), &edited, &["goal-stale"]),
        (&pin, same(), Some(&good), &gone, &["goal-stale"]),
        (&pin, other(), Some(&good), &there, &["goal-config-changed"]),
        (&pin, broken(), Some(&good), &there, &["goal-config-changed"]),
        (&pin, missing(), Some(&good), &there, &["goal-config-changed"]),
        (&pin, missing(), None, &there, &["goal-config-changed", "goal-unchecked"]),
        (&loose, unguarded(), Some(&good), &there, &["goal-unchecked"]),
    ];
    for (pin, bound, ruling, evidence, codes) in table {
        let found = findings(pin, &bound, ruling, evidence);
        assert_eq!(found.iter().map(|finding| finding.code).collect::<Vec<_>>(), codes, "{bound:?}");
        assert!(found.iter().all(|finding| !finding.message.is_empty() && !finding.fix.is_empty()));
    }
    let stale = under("name: before");
    let found = findings(&pin, &same(), Some(&stale), &there);
    assert_eq!(found.len(), 1);
    assert!(
        found[0].code == "goal-unchecked" && found[0].message.contains("another configuration"),
        "{found:?}"
    );
}
