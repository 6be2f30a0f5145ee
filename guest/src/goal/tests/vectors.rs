//! The recorded answers of the published implementation.

use super::{config, disk, read};
use crate::goal::evidence::Claims;
use crate::goal::gate::{Options, evaluate};
use crate::goal::{answer, plan::plan};
use serde_json::{Map, Value};

const VECTORS: &str = include_str!("../../../../tests/vectors/goals.jsonl");

#[test]
fn plans_and_gates_agree_with_the_recorded_answers() {
    let mut seen = 0;
    for line in VECTORS.lines() {
        let case: Map<String, Value> = serde_json::from_str(line).unwrap();
        let text = case["config"].as_str().unwrap();
        if case.get("error") == Some(&Value::Bool(true)) {
            assert!(read(text.as_bytes()).is_err(), "{} is refused", case["case"]);
        } else if case["tool"] == "loopsmith_plan" {
            plan_agrees(&case, text);
        } else {
            gate_agrees(&case, text);
        }
        seen += 1;
    }
    assert_eq!(seen, 37);
}

fn plan_agrees(case: &Map<String, Value>, text: &str) {
    let config = config(text);
    let got = answer::plan(&plan(&config), &[]).into_value();
    for (key, wanted) in case["expect"].as_object().unwrap() {
        let got = &got[key];
        match wanted.as_f64() {
            Some(number) => {
                let off = (got.as_f64().unwrap() - number).abs();
                assert!(off <= 1e-9, "{} {key}: {got}, not {wanted}", case["case"]);
            }
            None => assert_eq!(got, wanted, "{} {key}", case["case"]),
        }
    }
}

fn gate_agrees(case: &Map<String, Value>, text: &str) {
    let config = config(text);
    let target = case["target"].as_str().unwrap();
    let files: Vec<_> = case["files"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str().unwrap()))
        .collect();
    let evidence = disk(&config, target, &files);
    let claims = Claims::read(case.get("metrics"), case.get("artifacts")).unwrap();
    let got = evaluate(&config, target, &evidence, &claims, Options::default()).unwrap();
    let got = answer::verdict(&got, &[]).into_value();
    let wanted = case["expect"].as_object().unwrap();
    for (key, wanted) in wanted.iter().filter(|(key, _)| *key != "checks") {
        assert_eq!(&got[key], wanted, "{} {key}", case["case"]);
    }
    let checks = got["checks"].as_array().unwrap();
    let outcomes: Map<String, Value> = checks
        .iter()
        .map(|check| (check["name"].as_str().unwrap().to_owned(), check["passed"].clone()))
        .collect();
    assert_eq!(Value::from(outcomes), wanted["checks"], "{}", case["case"]);
}
