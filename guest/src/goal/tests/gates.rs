//! Rulings: each detector on each kind of evidence.

use super::{config, disk, file};
use crate::goal::answer;
use crate::goal::config::{Config, Role};
use crate::goal::evidence::{
    Claims, Episode, Evidence, FileFact, Judgment, METRICS, Need, Script, ScriptRun, audit_needs, needs,
    relative,
};
use crate::goal::gate::{CheckResult, Options, Outcome, Source, Verdict, evaluate};
use proptest::prelude::*;
use serde_json::json;

/// A configuration whose goal `g` has one blocking check with this detector.
fn with(detector: &str) -> Config {
    config(&format!(
        "name: c\ngoals: [{{name: g, description: d}}]\nvalidations:\n  - {{target: overall, name: notes, mode: objective, statement: s, detector: {{type: file_exists, path: ./out//notes.md}}}}\n  - {{target: g, name: c, mode: objective, statement: the statement, detector: {detector}}}\n"
    ))
}

fn rule(config: &Config, evidence: &Evidence, claims: &Claims, recorded: bool) -> Verdict {
    evaluate(config, "g", evidence, claims, Options { recorded }).unwrap()
}

fn only(config: &Config, evidence: &Evidence) -> CheckResult {
    rule(config, evidence, &Claims::default(), false).checks.remove(0)
}

fn claims(metrics: serde_json::Value, artifacts: serde_json::Value) -> Claims {
    Claims::read(Some(&metrics), Some(&artifacts)).unwrap()
}

fn fact(path: &str, fact: FileFact) -> Evidence {
    Evidence { files: [(path.to_owned(), fact)].into(), ..Evidence::default() }
}

#[test]
fn each_kind_of_file_has_its_outcome() {
    let there = with("{type: file_exists, path: a/b.txt}");
    let filled = with("{type: file_exists, path: a/b.txt, non_empty: true}");
    let found = with("{type: regex_match, artifact: a/b.txt, pattern: x+}");
    use Outcome::{Failed, Passed, Unavailable};
    let table = [
        (FileFact::Absent, [Failed, Failed, Unavailable], "not there"),
        (FileFact::NotAFile, [Failed, Failed, Unavailable], "no file"),
        (FileFact::Outside, [Unavailable; 3], "leads out of the working folder"),
        (FileFact::Unreadable { reason: "denied".into() }, [Unavailable; 3], "denied"),
        (FileFact::TooLarge { bytes: 9_000_000 }, [Passed, Passed, Unavailable], "9000000 bytes"),
        (file(""), [Passed, Failed, Failed], ""),
        (file("axx"), [Passed, Passed, Passed], ""),
        (file("ax\u{0}"), [Passed, Passed, Passed], ""),
        (file("none"), [Passed, Passed, Failed], ""),
    ];
    for (found_there, outcomes, words) in table {
        let evidence = fact("a/b.txt", found_there.clone());
        let got = [&there, &filled, &found].map(|config| only(config, &evidence));
        assert_eq!(got.each_ref().map(|check| check.outcome), outcomes, "{found_there:?}");
        assert!(got[0].evidence.contains(words) && got[0].source == Source::Disk, "{}", got[0].evidence);
    }
    assert_eq!(
        only(&there, &Evidence::default()).outcome,
        Unavailable,
        "what was not looked at did not fail"
    );
}

#[test]
fn paths_stay_below_the_working_folder() {
    for (path, wanted) in [
        ("a", "a"),
        ("./a/./b//c", "a/b/c"),
        ("..a/b..", "..a/b.."),
        ("a b", "a b"),
        ("a/", "a"),
        (".env", ".env"),
    ] {
        assert_eq!(relative(path).as_deref(), Ok(wanted), "{path}");
    }
    for path in [
        "",
        ".",
        "./",
        "/a",
        "//a",
        "..",
        "a/..",
        "a/../../b",
        "\\a",
        "a\\..\\b",
        "C:\\a",
        "c:a",
        "a\nb",
        "a\u{0}",
    ] {
        assert!(relative(path).is_err(), "{path:?}");
    }
    for detector in
        ["{type: file_exists, path: ../x}", "{type: regex_match, artifact: /etc/passwd, pattern: root}"]
    {
        let config = with(detector);
        assert_eq!(needs(&config, "g"), [], "nothing is asked for");
        let sent = claims(json!({}), json!({"/etc/passwd": "root"}));
        let check = rule(&config, &Evidence::default(), &sent, false).checks.remove(0);
        assert_eq!(check.outcome, Outcome::Unavailable);
        assert!(check.evidence.contains("below the working folder"), "{}", check.evidence);
    }
}

#[test]
fn an_artifact_goes_by_path_before_stem() {
    let config = with("{type: regex_match, artifact: notes, pattern: 'v\\d'}");
    let text = |path: &str| Need::Text { path: path.into() };
    assert_eq!(needs(&config, "g"), [text("notes"), text("out/notes.md")]);
    let by = |files: &[(&str, &str)]| only(&config, &disk(&config, "g", files)).outcome;
    assert_eq!(by(&[("out/notes.md", "v1")]), Outcome::Passed);
    assert_eq!(by(&[("notes", "none"), ("out/notes.md", "v1")]), Outcome::Failed, "the path goes first");
    assert_eq!(by(&[]), Outcome::Unavailable);
    let mut evidence = disk(&config, "g", &[("out/notes.md", "v1")]);
    evidence.files.insert("notes".into(), FileFact::NotAFile);
    assert_eq!(only(&config, &evidence).outcome, Outcome::Passed, "a folder is no artifact");
    evidence.files.insert("notes".into(), FileFact::Outside);
    assert_eq!(
        only(&config, &evidence).outcome,
        Outcome::Unavailable,
        "a link that leaves is not passed over"
    );
}

#[test]
fn disk_wins_over_the_caller_and_records_count_disk_alone() {
    let metric = with("{type: threshold, metric: m, op: gte, value: 10}");
    let artifact = with("{type: regex_match, artifact: notes, pattern: ok}");
    let sent = claims(json!({"m": 10}), json!({"notes": "ok"}));
    let disk_metric = |text: &str| disk(&metric, "g", &[(METRICS, text)]);
    use Outcome::{Failed, Passed, Unavailable};
    let table = [
        (&metric, disk_metric("{\"m\": 9}"), (Failed, Source::Disk), (Failed, Source::Disk)),
        (&metric, disk_metric("{\"m\": 11}"), (Passed, Source::Disk), (Passed, Source::Disk)),
        (&metric, disk_metric("{\"other\": 9}"), (Passed, Source::Caller), (Unavailable, Source::Caller)),
        (&metric, disk(&metric, "g", &[]), (Passed, Source::Caller), (Unavailable, Source::Caller)),
        (&metric, disk_metric("{\"m\": \"11\"}"), (Unavailable, Source::Disk), (Unavailable, Source::Disk)),
        (&metric, disk_metric("{\"m\": null}"), (Unavailable, Source::Disk), (Unavailable, Source::Disk)),
        (
            &metric,
            disk_metric("{\"m\": 11, \"m\": 12}"),
            (Unavailable, Source::Disk),
            (Unavailable, Source::Disk),
        ),
        (&metric, disk_metric("{\"m\": 1e999}"), (Unavailable, Source::Disk), (Unavailable, Source::Disk)),
        (&metric, disk_metric("[11]"), (Unavailable, Source::Disk), (Unavailable, Source::Disk)),
        (&metric, disk_metric("{\"m\": 11"), (Unavailable, Source::Disk), (Unavailable, Source::Disk)),
        (
            &metric,
            disk_metric("{\"m\": 11, \"deep\": {\"m\": 1}}"),
            (Passed, Source::Disk),
            (Passed, Source::Disk),
        ),
        (
            &artifact,
            disk(&artifact, "g", &[("out/notes.md", "no")]),
            (Failed, Source::Disk),
            (Failed, Source::Disk),
        ),
        (&artifact, disk(&artifact, "g", &[]), (Passed, Source::Caller), (Unavailable, Source::Caller)),
    ];
    for (config, evidence, asked, recorded) in table {
        for (is_recorded, wanted) in [(false, asked), (true, recorded)] {
            let verdict = rule(config, &evidence, &sent, is_recorded);
            let check = &verdict.checks[0];
            assert_eq!((check.outcome, check.source), wanted, "{evidence:?} recorded {is_recorded}");
            assert_eq!(verdict.satisfied, check.passed());
            assert_eq!((verdict.passed + verdict.failed, verdict.total), (1, 1));
        }
    }
}

#[test]
fn thresholds_compare_as_written() {
    let table = [
        ("gt", 10.0, 10.0, false),
        ("gt", 10.1, 10.0, true),
        ("gte", 10.0, 10.0, true),
        ("gte", 9.9, 10.0, false),
        ("lt", 10.0, 10.0, false),
        ("lt", 9.9, 10.0, true),
        ("lte", 10.0, 10.0, true),
        ("lte", 10.1, 10.0, false),
        ("eq", 0.1 + 0.2, 0.3, true),
        ("eq", 1e12 + 100.0, 1e12, true),
        ("eq", 1e12 + 10_000.0, 1e12, false),
        ("eq", 1e-10, 0.0, true),
        ("eq", 1e-8, 0.0, false),
        ("eq", -1.0, 1.0, false),
        ("eq", f64::MAX, -f64::MAX, false),
    ];
    for (op, actual, value, wanted) in table {
        let config = with(&format!("{{type: threshold, metric: m, op: {op}, value: {value:?}}}"));
        let evidence = disk(&config, "g", &[(METRICS, &json!({"m": actual}).to_string())]);
        assert_eq!(only(&config, &evidence).passed(), wanted, "{actual} {op} {value}");
    }
}

#[test]
fn callers_send_numbers_and_texts() {
    let sent = claims(json!({"a": 1, "b": " 2.5 ", "c": "-1e3"}), json!({"t": "x"}));
    assert_eq!(sent.metrics.into_values().collect::<Vec<_>>(), [1.0, 2.5, -1000.0]);
    let metrics = json!({"a": "ten", "b": true, "c": "inf", "d": null, "e": [1], "f": "NaN"});
    let faults = Claims::read(Some(&metrics), Some(&json!({"t": 5}))).unwrap_err();
    let said: Vec<_> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        said,
        [
            "`metrics.a` takes a finite number, not this text",
            "`metrics.b` takes a finite number, not true or false",
            "`metrics.c` takes a finite number, not this text",
            "`metrics.d` takes a finite number, not null",
            "`metrics.e` takes a finite number, not a list",
            "`metrics.f` takes a finite number, not this text",
            "`artifacts.t` takes the artifact's text, not that number",
        ]
    );
    assert!(Claims::read(Some(&json!("{}")), None).is_err());
    assert_eq!(Claims::read(Some(&json!(null)), None), Ok(Claims::default()));
}

#[test]
fn scripts_that_cannot_run_do_not_fail() {
    let config = with("{type: script, command: make, args: [check], expect_exit: 3}");
    let script = Script { command: "make".into(), args: vec!["check".into()] };
    assert_eq!(needs(&config, "g"), [Need::Script(script.clone())]);
    let table = [
        (
            Some(ScriptRun::Exit { code: 3, note: "fine\n".into() }),
            Outcome::Passed,
            "exited with 3; it ended with: fine",
        ),
        (
            Some(ScriptRun::Exit { code: 0, note: String::new() }),
            Outcome::Failed,
            "`make` exited with 0, not 3",
        ),
        (Some(ScriptRun::Signal { number: 11 }), Outcome::Failed, "signal 11"),
        (
            Some(ScriptRun::Unavailable { reason: "start the server with --allow-scripts".into() }),
            Outcome::Unavailable,
            "--allow-scripts",
        ),
        (None, Outcome::Unavailable, "was not run"),
    ];
    for (run, outcome, words) in table {
        let scripts = run.into_iter().map(|run| (script.clone(), run)).collect();
        let check = only(&config, &Evidence { scripts, ..Evidence::default() });
        assert_eq!((check.outcome, check.source), (outcome, Source::Script));
        assert!(check.evidence.contains(words), "{}", check.evidence);
    }
}

fn episode(seq: u64, provider: &str, role: Role, judgment: Option<(&str, bool, Option<f64>)>) -> Episode {
    let judgment = judgment.map(|(check, pass, score)| Judgment { check: check.into(), pass, score });
    Episode { seq, node_id: format!("n{seq}"), provider_id: provider.into(), role, judgment }
}

#[test]
fn a_judge_is_independent_of_every_builder() {
    let config = with("{type: judge, standard: the style guide, min_score: 7}");
    assert_eq!(needs(&config, "g"), [Need::Episodes]);
    let build = |provider: &str| episode(1, provider, Role::Builder, None);
    let judge = |provider: &str, said| episode(2, provider, Role::Judge, Some(said));
    let good = ("c", true, Some(7.0));
    let table: &[(&[Episode], bool, &str)] = &[
        (&[], false, "no judgment of `c`"),
        (&[build("a")], false, "no judgment of `c`"),
        (&[judge("b", good)], false, "no builder episode"),
        (&[build("a"), judge("b", good)], true, "independent judgments (1) pass against: the style guide"),
        (&[build("a"), judge("a", good)], false, "judgment 2 is by `a`, which also built"),
        (&[build("a"), judge(" A ", good)], false, "which also built"),
        (&[build("a"), build("b"), judge("b", good)], false, "which also built"),
        (&[build("a"), judge("b", good), build("b")], false, "which also built"),
        (&[build("a"), judge("b", ("c", false, Some(9.0)))], false, "does not pass"),
        (&[build("a"), judge("b", ("c", true, Some(6.9)))], false, "scores 6.9, below 7"),
        (&[build("a"), judge("b", ("c", true, Some(f64::NAN)))], false, "scores NaN"),
        (&[build("a"), judge("b", ("c", true, None))], false, "has no score"),
        (&[build("a"), judge("b", good), judge("d", ("c", false, Some(9.0)))], false, "by `d` does not pass"),
        (&[build("a"), judge("b", ("other", true, Some(9.0)))], false, "no judgment of `c`"),
        (&[build("a"), judge("b", ("g/c", true, Some(9.0)))], true, ""),
        (&[build("a"), judge("b", ("overall/c", true, Some(9.0)))], false, "no judgment of `c`"),
        (&[build("a"), episode(2, "b", Role::Builder, Some(good))], false, "no judgment of `c`"),
        (&[episode(1, "a", Role::Manager, None), judge("b", good)], false, "no builder episode"),
    ];
    for (episodes, passes, words) in table {
        let evidence = Evidence { episodes: Some(episodes.to_vec()), ..Evidence::default() };
        let check = only(&config, &evidence);
        let outcome = if *passes { Outcome::Passed } else { Outcome::Failed };
        assert_eq!((check.outcome, check.source), (outcome, Source::Episodes), "{episodes:?}");
        assert!(check.evidence.contains(words), "{}", check.evidence);
    }
    assert_eq!(only(&config, &Evidence::default()).outcome, Outcome::Unavailable, "no run, no judgment");
}

#[test]
fn a_target_needs_a_blocking_check_and_all_of_them() {
    let check = |name: &str, target: &str, blocking: bool| {
        format!(
            "  - {{target: {target}, name: {name}, mode: objective, statement: s, blocking: {blocking}, detector: {{type: file_exists, path: {name}}}}}\n"
        )
    };
    let text = [
        "name: c\ngoals: [{name: g, description: d}]\nvalidations:\n",
        &check("a", "g", true),
        &check("b", "g", true),
        &check("c", "g", false),
        &check("d", "overall", false),
    ]
    .concat();
    let config = config(&text);
    let by = |files: &[(&str, &str)]| rule(&config, &disk(&config, "g", files), &Claims::default(), true);
    let verdict = by(&[("a", ""), ("b", "")]);
    assert_eq!((verdict.satisfied, verdict.passed, verdict.failed, verdict.total), (true, 2, 1, 3));
    assert_eq!(verdict.reason, "all blocking checks passed (2); 1 that do not block did not pass");
    let mut evidence = disk(&config, "g", &[("c", "")]);
    evidence.files.insert("b".into(), FileFact::Outside);
    let verdict = rule(&config, &evidence, &Claims::default(), true);
    assert_eq!((verdict.satisfied, verdict.passed, verdict.failed), (false, 1, 2));
    assert_eq!(verdict.reason, "2 of 2 blocking checks did not pass; failed: a; unavailable: b");
    let whole = evaluate(
        &config,
        "overall",
        &disk(&config, "overall", &[("d", "")]),
        &Claims::default(),
        Options::default(),
    );
    let whole = whole.unwrap();
    assert!(!whole.satisfied && whole.reason.starts_with("no blocking check has the target `overall`"));
    let unknown =
        evaluate(&config, "h", &Evidence::default(), &Claims::default(), Options::default()).unwrap_err();
    assert_eq!(unknown.to_string(), "`h` is no target of this configuration; it has overall, g");
}

#[test]
fn an_answer_has_its_fields_in_order() {
    let config = with("{type: file_exists, path: a}");
    let verdict = rule(&config, &disk(&config, "g", &[("a", "x")]), &Claims::default(), false);
    let text = answer::verdict(&verdict, &[]).finish(Vec::new());
    let wanted = format!(
        "{{\"target\":\"g\",\"satisfied\":true,\"passed\":1,\"failed\":0,\"total\":1,\"reason\":\"all blocking checks passed (1)\",\"checks\":[{{\"name\":\"c\",\"text\":\"the statement\",\"blocking\":true,\"passed\":true,\"outcome\":\"passed\",\"evidence\":\"a is there (1 bytes)\",\"source\":\"disk\"}}],\"config_sha256\":\"{}\",\"evidence_sha256\":\"{}\"}}",
        config.sha256, verdict.evidence_sha256
    );
    assert_eq!(text, wanted);
}

/// One change of the evidence at a time, and whether the digest tells.
#[test]
fn the_evidence_digest_follows_what_was_used() {
    let text = "name: c\ngoals: [{name: g, description: d}]\nvalidations:\n  - {target: g, name: f, mode: objective, statement: s, detector: {type: file_exists, path: f}}\n  - {target: g, name: r, mode: objective, statement: s, detector: {type: regex_match, artifact: f, pattern: x}}\n  - {target: g, name: m, mode: objective, statement: s, detector: {type: threshold, metric: m, op: gt, value: 0}}\n  - {target: g, name: s, mode: objective, statement: s, detector: {type: script, command: x}}\n  - {target: g, name: j, mode: objective, statement: s, detector: {type: judge, standard: s}}\n";
    let config = config(text);
    let mut base = disk(&config, "g", &[("f", "x"), (METRICS, "{\"m\": 1}")]);
    let script = Script { command: "x".into(), args: Vec::new() };
    base.scripts.insert(script.clone(), ScriptRun::Exit { code: 0, note: String::new() });
    base.episodes = Some(vec![
        episode(1, "a", Role::Builder, None),
        episode(2, "b", Role::Judge, Some(("j", true, None))),
    ]);
    let digest =
        |evidence: &Evidence, claims: &Claims| rule(&config, evidence, claims, false).evidence_sha256;
    let none = Claims::default();
    let first = digest(&base, &none);
    let changed = |change: &dyn Fn(&mut Evidence)| {
        let mut evidence = base.clone();
        change(&mut evidence);
        digest(&evidence, &none) != first
    };
    assert!(changed(&|e| drop(e.files.insert("f".into(), file("y")))));
    assert!(changed(&|e| drop(e.files.insert("f".into(), FileFact::Absent))));
    assert!(changed(&|e| drop(e.files.insert(METRICS.into(), file("{\"m\": 1.0}")))));
    assert!(changed(&|e| drop(e.files.insert(METRICS.into(), FileFact::Absent))));
    let push = |e: &mut Evidence, episode| e.episodes.as_mut().unwrap().push(episode);
    assert!(changed(&|e| push(e, episode(3, "c", Role::Builder, None))));
    assert!(changed(&|e| push(e, episode(3, "c", Role::Judge, Some(("j", false, None))))));
    assert!(!changed(&|e| push(e, episode(3, "a", Role::Builder, None))), "a builder that was there");
    assert!(!changed(&|e| push(e, episode(3, "c", Role::Judge, Some(("other", false, None))))));
    assert!(!changed(&|e| drop(e.files.insert("unrelated".into(), file("y")))));
    assert!(
        !changed(&|e| drop(e.scripts.insert(script.clone(), ScriptRun::Signal { number: 9 }))),
        "the audit runs none"
    );
    // Without the contents the digest is the same: the audit does not read them.
    assert!(!changed(&|e| {
        for fact in e.files.values_mut() {
            if let FileFact::File { text, .. } = fact {
                *text = None;
            }
        }
    }));
    let mut bare = base.clone();
    bare.files.insert(METRICS.into(), FileFact::Absent);
    let claimed = claims(json!({"m": 1, "unused": 1}), json!({}));
    let other = claims(json!({"m": 2, "unused": 1}), json!({}));
    assert_ne!(digest(&bare, &claimed), digest(&bare, &none), "a claim that counted");
    assert_ne!(digest(&bare, &claimed), digest(&bare, &other));
    assert_eq!(digest(&base, &claimed), first, "a claim that did not");
}

#[test]
fn the_audit_asks_for_no_content_and_no_script() {
    let config = config(
        "name: c\nvalidations:\n  - {target: overall, name: a, mode: objective, statement: s, detector: {type: regex_match, artifact: f, pattern: x}}\n  - {target: overall, name: b, mode: objective, statement: s, detector: {type: script, command: x}}\n  - {target: overall, name: c, mode: objective, statement: s, detector: {type: judge, standard: s}}\n",
    );
    assert_eq!(audit_needs(&config), [Need::File { path: "f".into() }, Need::Episodes]);
}

proptest! {
    /// Whatever a file holds, a pattern's answer is the one of a plain search.
    #[test]
    fn plain_patterns_find_what_is_there(before in "[a-z \\n]{0,50}", word in "[a-z]{1,8}", after in "\\PC{0,50}", there: bool) {
        let config = with(&format!("{{type: regex_match, artifact: t, pattern: 'Q{word}\\b'}}"));
        let text = if there { format!("{before}Q{word} {after}") } else { format!("{before}{after}").replace('Q', "") };
        let evidence = disk(&config, "g", &[("t", &text)]);
        prop_assert_eq!(only(&config, &evidence).passed(), there);
    }
}
