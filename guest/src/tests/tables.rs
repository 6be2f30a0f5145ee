//! The tables, whole: a change of a rule shows in a diff.

use crate::owed::{TECH_TAGS, next_step};
use crate::status::{IllegalMove, Mode, Status, check_move, targets};
use expect_test::{expect, expect_file};
use serde_json::Value;
use std::fmt::Write;

fn words(statuses: impl IntoIterator<Item = Status>) -> String {
    statuses.into_iter().map(Status::word).collect::<Vec<_>>().join(", ")
}

fn table(mode: Mode) -> String {
    let mut out = String::new();
    for from in Status::ALL {
        writeln!(out, "{} -> {}", from.word(), words(targets(mode, *from))).expect("a String takes it");
    }
    out
}

#[test]
fn transitions() {
    expect![[r#"
        pending -> issue-open, in-progress, blocked, skipped
        issue-open -> in-progress, failed, blocked, skipped
        in-progress -> verified, failed, blocked, skipped
        verified -> secure, in-progress, failed, blocked, skipped
        secure -> pr-open, in-progress, failed, blocked, skipped
        pr-open -> in-review, changes-requested, failed, blocked, skipped
        in-review -> merged, changes-requested, failed, blocked, skipped
        changes-requested -> in-progress, failed, blocked, skipped
        merged -> complete
        failed -> issue-open, in-progress, blocked, skipped
        blocked -> pending, issue-open, in-progress, failed, skipped
        complete -> 
        skipped -> pending
        superseded -> 
    "#]]
    .assert_eq(&table(Mode::Standard));
    assert_eq!(table(Mode::Simple), table(Mode::Standard));
}

/// The published table, as data, is the one in force.
#[test]
fn transitions_are_the_published_ones() {
    let published: Value =
        serde_json::from_str(include_str!("transitions.json")).expect("the vector is JSON");
    let list = |v: &Value| -> Vec<String> {
        v.as_array().expect("a list").iter().map(|s| s.as_str().expect("a word").to_owned()).collect()
    };
    let ours = |mode, from| targets(mode, from).map(|s| s.word().to_owned()).collect::<Vec<_>>();
    assert_eq!(published["strict"].as_object().map(|o| o.len()), Some(Status::ALL.len()));
    for from in Status::ALL {
        let strict = list(&published["strict"][from.word()]);
        for mode in Mode::ALL {
            let added = published["overrides"][mode.word()].get(from.word()).map(list).unwrap_or_default();
            assert_eq!(ours(*mode, *from), [strict.clone(), added].concat(), "{from:?} in {mode:?}");
        }
        let only = published["only_through"].get(from.word()).and_then(Value::as_str);
        assert_eq!(from.only_through(), only);
        assert_eq!(
            from.needs_evidence(),
            list(&published["needs_evidence"]).contains(&from.word().to_owned())
        );
        assert_eq!(from.in_flight(), list(&published["in_flight"]).contains(&from.word().to_owned()));
    }
    assert_eq!(published["auto_insert"], crate::status::AUTO_INSERT.word());
}

/// Every pair of statuses in every mode: what `task_setStatus` makes of it.
#[test]
fn every_move() {
    let mut out = String::new();
    for mode in Mode::ALL {
        writeln!(out, "# {}", mode.word()).expect("a String takes it");
        for from in Status::ALL {
            for to in Status::ALL {
                let verdict = match check_move(*mode, *from, *to) {
                    Ok(hops) if hops.is_empty() => "stays".to_owned(),
                    Ok(hops) => format!("records {}", words(hops)),
                    Err(IllegalMove::OnlyThrough(tool)) => format!("only {tool}"),
                    Err(IllegalMove::NoSuchMove(None)) => "never".to_owned(),
                    Err(IllegalMove::NoSuchMove(Some(path))) => format!("by {}", words(path)),
                };
                writeln!(out, "{} -> {}: {verdict}", from.word(), to.word()).expect("a String takes it");
            }
        }
    }
    expect_file!["moves.txt"].assert_eq(&out);
}

/// The step owed, for every status, mode, kind of tag and count of retries.
#[test]
fn every_owed_step() {
    let mut out = String::new();
    for mode in [Mode::Standard, Mode::Poc] {
        for (tech, retries) in [(Some(" Rust "), 0), (None, 2), (Some("cobol"), 3), (Some("rust"), 3)] {
            writeln!(out, "# {}, tech {tech:?}, retries {retries}", mode.word()).expect("a String takes it");
            for status in Status::ALL {
                let owed = next_step(mode, *status, tech, retries);
                let who = owed.agent.as_deref().unwrap_or("-");
                writeln!(out, "{}: {} [{who}] {}", status.word(), owed.point, owed.action)
                    .expect("a String takes it");
            }
        }
    }
    expect_file!["owed.txt"].assert_eq(&out);
}

#[test]
fn each_tag_has_its_engineer() {
    for tag in TECH_TAGS {
        let owed = next_step(Mode::Standard, Status::InProgress, Some(tag), 0);
        assert_eq!(owed.agent, Some(format!("{tag}-engineer-loop")));
    }
}
