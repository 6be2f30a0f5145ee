//! What loads, and what is said about what does not.

use super::{config, problems, read};
use crate::goal::config::{Concurrency, Detector, Op, Role, Tier};

const FULL: &str = include_str!("full.yaml");
const FLAT: &str = include_str!("flat.yaml");

#[test]
fn a_configuration_with_every_field_loads() {
    let config = config(FULL);
    assert_eq!((config.name.as_str(), config.version.as_deref()), ("release-notes", Some("0.2.0")));
    assert_eq!(config.targets(), ["collected", "written", "overall"]);
    assert_eq!(config.goals[1].depends_on[0].text, "collected");
    assert_eq!(config.goals[1].priority, Some(2));
    assert_eq!(config.success[0].threshold, Some(1.0));
    let detectors: Vec<_> = config.checks.iter().map(|check| check.detector.clone()).collect();
    assert_eq!(
        detectors,
        [
            Detector::FileExists { path: "out/changes.json".into(), non_empty: true },
            Detector::Threshold { metric: "covered".into(), op: Op::Gte, value: 0.95 },
            Detector::RegexMatch { artifact: "notes".into(), pattern: r"\d{4}-\d{2}-\d{2}".into() },
            Detector::FileExists { path: "out/notes.md".into(), non_empty: false },
            Detector::Judge { standard: "the style guide".into(), min_score: Some(7.0) },
            Detector::Script {
                command: "./links.sh".into(),
                args: vec!["--all".into(), "out/notes.md".into()],
                expect_exit: 0
            },
        ]
    );
    assert_eq!(config.checks.iter().filter(|check| !check.blocking).count(), 1);
    let node = &config.graph.nodes[0];
    assert_eq!(
        (node.id.text.as_str(), node.role, node.tier, node.weight),
        ("collect", Role::Researcher, Tier::Cheap, 2.0)
    );
    assert_eq!(config.graph.nodes[1].instruction, "Write the notes.\nOne line a change.\n");
    assert_eq!(config.graph.concurrency, Concurrency::Auto { cap: 4, min_marginal_gain: 0.05 });
    assert_eq!(config.warnings, []);
    assert!(
        config.opaque.contains(&"safety.gates".to_owned()) && config.opaque.contains(&"features".to_owned())
    );
    assert!(!config.opaque.contains(&"safety.alerts".to_owned()), "an empty section says nothing");
}

#[test]
fn sections_load_from_their_old_places() {
    let config = config(FLAT);
    assert_eq!(config.version.as_deref(), Some("0.1.0"), "what has two dots is no number");
    assert_eq!(config.goals[0].path.to_string(), "goals[0]");
    assert_eq!(config.checks[0].path.to_string(), "validations[0]");
    assert_eq!(config.graph.nodes[0].path.to_string(), "graph.nodes[0]");
    assert_eq!(config.warnings, []);
}

/// JSON is the same tree with the same places.
#[test]
fn json_reads_as_yaml_does() {
    let json = "{\n\t\"name\": \"j\\ud83d\\ude00 \\\"q\\\"\",\n\t\"graph\": {\"nodes\": [\n\t\t{\"id\": \"a\", \"role\": \"builder\", \"instruction\": \"tab\\tinside\", \"weight\": 1e1}]}\n}";
    let config = config(json);
    assert_eq!(config.name, "j😀 \"q\"");
    assert_eq!(config.graph.nodes[0].id.line, 4);
    assert_eq!(config.graph.nodes[0].instruction, "tab\tinside");
    assert_eq!(config.graph.nodes[0].weight, 10.0);
}

#[test]
fn plain_scalars_follow_the_core_schema() {
    for (weight, wanted) in
        [("2", 2.0), ("+2.5", 2.5), (".5", 0.5), ("1.", 1.0), ("1e3", 1000.0), ("0x10", 16.0), ("0o17", 15.0)]
    {
        let text = format!(
            "name: w\ngraph: {{nodes: [{{id: a, role: builder, instruction: x, weight: {weight}}}]}}"
        );
        assert_eq!(config(&text).graph.nodes[0].weight, wanted, "{weight}");
    }
    for weight in [
        ".nan", ".inf", "-.inf", "1e999", "0", "-0.0", "-1", "\"2\"", "1_000", "0b1", "two", "true", "1e",
        "[]",
    ] {
        let text = format!(
            "name: w\ngraph: {{nodes: [{{id: a, role: builder, instruction: x, weight: {weight}}}]}}"
        );
        let said = problems(&text);
        assert!(said.starts_with("graph.nodes[0].weight (line 2): "), "{weight}: {said}");
    }
    for (name, text) in [
        ("\"true\"", "true"),
        ("'12'", "12"),
        ("!!str 12", "12"),
        ("! 12", "12"),
        ("yes", "yes"),
        ("1.2.3", "1.2.3"),
    ] {
        assert_eq!(config(&format!("name: {name}")).name, text);
    }
}

/// A configuration with one thing wrong, and what is said: everything up to `…`.
#[test]
fn each_problem_is_named_with_path_and_line() {
    const GOAL: &str = "name: c\ngoals:\n  - {name: g, description: d}\n";
    const CHECK: &str = "validations:\n  - {target: g, name: c, mode: objective, statement: s, detector: ";
    const NODES: &str = "name: c\ngraph:\n  nodes:\n";
    let goal = |rest: &str| format!("{GOAL}{rest}");
    let check = |detector: &str| format!("{GOAL}{CHECK}{detector}}}\n");
    let nodes = |rest: &str| format!("{NODES}{rest}");
    let node = |rest: &str| format!("{NODES}    - {{id: a, role: builder, instruction: x{rest}}}\n");
    let table: &[(String, &str)] = &[
        ("".into(), "the configuration: is empty"),
        ("# only a comment".into(), "the configuration: is empty"),
        ("just text".into(), "the configuration (line 1): takes a goal configuration: a map with name"),
        ("- a".into(), "the configuration (line 1): takes a goal configuration: a map with name"),
        ("description: d".into(), "name (line 1): is missing"),
        ("name: ''".into(), "name (line 1): is empty"),
        ("name: 5".into(), "name (line 1): takes text, not a number; quotes make it text"),
        ("name: \"a\\nb\"".into(), "name (line 1): holds a control character"),
        ("name: a\nversion: 1.0".into(), "version (line 2): takes text, not a number; quotes"),
        ("name: a\nname: b".into(), "name (line 2): stands here a second time"),
        ("name: a\nmemory: {x: 1,\n  x: 2}".into(), "memory.x (line 3): stands here a second time"),
        (
            "name: a\ngoal: []".into(),
            "goal (line 2): is no field of a goal configuration; it takes name, version",
        ),
        (
            "name: a\nsafety: {chekcs: []}".into(),
            "safety.chekcs (line 2): is no field of `safety`; it takes checks, gates, stop_gates, limits, constraints, recovery, protected, alerts (`checks`?)",
        ),
        ("name: a\nintent: [1]".into(), "intent (line 2): takes `intent`: a map with goals"),
        ("name: a\n---\nname: b".into(), "the configuration (line 2): a second document begins here"),
        ("name: [a".into(), "the configuration (line 1): cannot be read: "),
        ("name: \tx\n\tb: 1".into(), "the configuration (line 1): cannot be read: "),
        ("name: *x".into(), "the configuration (line 1): cannot be read: "),
        ("name: &x\n  a: *x".into(), "name.a (line 2): an alias stands inside what it refers to"),
        ("name: !py/object x".into(), "name (line 1): the tag `!py/object` has no meaning here"),
        ("[a, b]: c".into(), "the configuration (line 1): a key is text, not a list or map"),
        ("name: a\0b".into(), "the configuration (line 1): holds a control character"),
        (
            goal("intent:\n  goals:\n    - {name: h, description: d}\n"),
            "goals (line 3): is filled, and so is `intent.goals` (line 6), where it belongs",
        ),
        (
            "name: a\nstop_gates: {a: 1}\nsafety: {gates: {stop: {a: 1}}}".into(),
            "stop_gates (line 2): is filled, and so is `safety.gates.stop` (line 3)",
        ),
        (
            "name: a\nmemory: {a: 1}\nexecution: {memory: {a: 1}}".into(),
            "memory (line 2): is filled, and so is `execution.memory`",
        ),
        ("name: a\ngoals: {a: 1}".into(), "goals (line 2): takes a list, not a map"),
        ("name: a\ngoals: [x]".into(), "goals[0] (line 2): takes a goal: a map with name, description"),
        ("name: a\ngoals:\n- {name: g}".into(), "goals[0].description (line 3): is missing"),
        (goal("  - {name: g, description: d}"), "goals[1].name (line 4): `g` is the goal of line 3 already"),
        (goal("  - {name: '\u{200b}', description: d}"), "goals[1].name (line 4): is empty"),
        (
            goal("  - {name: overall, description: d}"),
            "goals[1].name (line 4): is `overall`, which stands for the whole loop",
        ),
        (
            goal("  - name: h\n    description: d\n    depends_on:\n      - g\n      - gg"),
            "goals[1].depends_on[1] (line 8): `gg` is no goal of this configuration",
        ),
        (
            goal("  - {name: h, description: d, depends_on: [h]}"),
            "goals[1].depends_on[0] (line 4): is the goal itself",
        ),
        (
            goal(
                "  - {name: h, description: d, depends_on: [i]}\n  - {name: i, description: d, depends_on: [h]}",
            ),
            "goals[1].depends_on (line 4): closes a cycle: h → i → h",
        ),
        (
            goal("  - {name: h, description: d, depends_on: g}"),
            "goals[1].depends_on (line 4): takes a list, not text",
        ),
        (
            goal("  - {name: h, description: d, depends_on: ['']}"),
            "goals[1].depends_on[0] (line 4): is empty",
        ),
        (
            goal("  - {name: h, description: d, depends_on: [1]}"),
            "goals[1].depends_on[0] (line 4): takes text, not a number",
        ),
        (
            goal("  - {name: h, description: d, priority: -1}"),
            "goals[1].priority (line 4): takes a whole number from 0 to 4294967295, not -1",
        ),
        (
            goal("  - {name: h, description: d, priority: 1.5}"),
            "goals[1].priority (line 4): takes a whole number",
        ),
        (
            goal("success:\n  - {target: f, name: s, mode: objective, statement: s}"),
            "success[0].target (line 5): `f` is no target of this configuration; a target is a goal's name or `overall`",
        ),
        (
            check("{type: file_exists, path: p}").replace("target: g", "target: x"),
            "validations[0].target (line 5): `x` is no target",
        ),
        (
            check("{type: file_exists, path: p}").replace("objective", "hard"),
            "validations[0].mode (line 5): is `hard`; it takes subjective, objective, percentage",
        ),
        (
            check("{type: file_exists, path: p}").replace("name: c,", "name: ' ',"),
            "validations[0].name (line 5): is empty",
        ),
        (
            check("{type: file_exists, path: p}")
                + "  - {target: g, name: c, mode: objective, statement: s, detector: {type: file_exists, path: q}}",
            "validations[1].name (line 6): `c` is the check of line 5 already",
        ),
        (
            check("{type: file_exists, path: p}").replace("}}", "}, blocking: 'no'}"),
            "validations[0].blocking (line 5): takes true or false, not text",
        ),
        (check("{type: script, command: ' '}"), "validations[0].detector.command (line 5): is empty"),
        (check("{type: script}"), "validations[0].detector.command (line 5): is missing"),
        (
            check("{type: script, command: c, expect_exit: 1.5}"),
            "validations[0].detector.expect_exit (line 5): takes a whole number",
        ),
        (
            check("{type: script, command: c, cmd: c}"),
            "validations[0].detector.cmd (line 5): is no field of a `script` detector; it takes type, command, args, expect_exit",
        ),
        (
            check("{type: file_exist, path: p}"),
            "validations[0].detector.type (line 5): is `file_exist`; it takes script, file_exists, regex_match, threshold, judge (`file_exists`?)",
        ),
        (check("{path: p}"), "validations[0].detector.type (line 5): is missing; it takes script"),
        (check("ls"), "validations[0].detector (line 5): takes a detector: a map with type"),
        (check("null"), "validations[0].detector (line 5): is missing"),
        (
            check("{type: regex_match, artifact: a, pattern: '(['}"),
            "validations[0].detector.pattern (line 5): does not compile: unclosed character class",
        ),
        (
            check("{type: regex_match, artifact: a, pattern: '(a{1000}){1000}'}"),
            "validations[0].detector.pattern (line 5): takes more than 1024 KiB",
        ),
        (
            check(&format!("{{type: regex_match, artifact: a, pattern: '{}'}}", "a".repeat(2001))),
            "validations[0].detector.pattern (line 5): has 2001 bytes",
        ),
        (
            check("{type: threshold, metric: m, op: ge, value: 1}"),
            "validations[0].detector.op (line 5): is `ge`; it takes gt, gte, lt, lte, eq",
        ),
        (
            check("{type: threshold, metric: m, op: gt, value: .inf}"),
            "validations[0].detector.value (line 5): takes a finite number, not infinity",
        ),
        (check("{type: threshold, metric: m, op: gt}"), "validations[0].detector.value (line 5): is missing"),
        (
            check("{type: judge, standard: s, min_score: high}"),
            "validations[0].detector.min_score (line 5): takes a number, not text",
        ),
        (check("{type: judge}"), "validations[0].detector.standard (line 5): is missing"),
        (
            node(", cost: 3"),
            "graph.nodes[0].cost (line 4): is no field of a node; it takes id, role, instruction",
        ),
        (
            node("").replace("builder", "bulider"),
            "graph.nodes[0].role (line 4): is `bulider`; it takes builder, judge, manager, adversary, researcher (`builder`?)",
        ),
        (node(", tier: huge"), "graph.nodes[0].tier (line 4): is `huge`; it takes cheap, standard, strong"),
        (node(", isolated: 1"), "graph.nodes[0].isolated (line 4): takes true or false"),
        (node(", weight: .nan"), "graph.nodes[0].weight (line 4): takes a finite number, not NaN"),
        (node(", weight: 0"), "graph.nodes[0].weight (line 4): is 0; a weight is above 0"),
        (
            nodes(
                "    - {id: a, role: judge, instruction: x, weight: 1e308}\n    - {id: b, role: judge, instruction: x, weight: 1e308}",
            ),
            "graph.nodes (line 3): have weights that add up to more",
        ),
        (node("").replace("id: a, ", ""), "graph.nodes[0].id (line 4): is missing"),
        (
            node("") + "    - {id: a, role: judge, instruction: x}",
            "graph.nodes[1].id (line 5): `a` is the node of line 4 already; each node has its own id",
        ),
        (
            node(", depends_on: [ghost]"),
            "graph.nodes[0].depends_on[0] (line 4): `ghost` is no node of this configuration",
        ),
        (node(", depends_on: [a]"), "graph.nodes[0].depends_on[0] (line 4): is the node itself"),
        (
            node("") + "  concurrency: {mode: fixed, max_parallel: 0}",
            "graph.concurrency.max_parallel (line 5): takes a whole number from 1 to 4294967295, not 0",
        ),
        (node("") + "  concurrency: {mode: fixed}", "graph.concurrency.max_parallel (line 5): is missing"),
        (
            node("") + "  concurrency: {mode: sequential, cap: 2}",
            "graph.concurrency.cap (line 5): says nothing in mode `sequential`",
        ),
        (
            node("") + "  concurrency: {mode: wide}",
            "graph.concurrency.mode (line 5): is `wide`; it takes sequential, fixed, auto",
        ),
        (
            node("") + "  concurrency: {mode: auto, min_marginal_gain: .nan}",
            "graph.concurrency.min_marginal_gain (line 5): takes a finite number",
        ),
        (
            node("") + "  concurency: {mode: auto}",
            "graph.concurency (line 5): is no field of the graph; it takes nodes, concurrency, join, container_image (`concurrency`?)",
        ),
    ];
    let wrong: Vec<_> = table
        .iter()
        .map(|(text, wanted)| (text, wanted, problems(text)))
        .filter(|(_, wanted, said)| !said.starts_with(*wanted) || said.lines().count() != 1)
        .map(|(text, wanted, said)| format!("{text}\nsays   {said}\nwanted {wanted}\n"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn all_problems_stand_in_one_answer() {
    let text = "nam: x\ngoals:\n  - {name: g, description: d, depends_on: [h]}\nvalidations:\n  - {target: q, name: c, mode: loud, statement: s, detector: {type: scrip}}\ngraph:\n  nodes:\n    - {id: a, role: builder, instruction: x, weight: -1, depends_on: [b]}\n";
    let said = problems(text);
    let places: Vec<_> = said.lines().map(|line| line.split(':').next().unwrap()).collect();
    assert_eq!(
        places,
        [
            "nam (line 1)",
            "name (line 1)",
            "goals[0].depends_on[0] (line 3)",
            "validations[0].mode (line 5)",
            "validations[0].detector.type (line 5)",
            "validations[0].target (line 5)",
            "graph.nodes[0].weight (line 8)",
            "graph.nodes[0].depends_on[0] (line 8)",
        ]
    );
}

#[test]
fn a_cycle_names_its_members_and_nothing_downstream() {
    let node = |id: &str, on: &str| {
        format!("    - {{id: {id}, role: builder, instruction: x, depends_on: [{on}]}}\n")
    };
    let text = [
        "name: c\nexecution:\n  graph:\n   nodes:\n".to_owned(),
        node("after", "a"),
        node("top", ""),
        node("a", "top, b"),
        node("b", "c"),
        node("c", "a"),
        node("x", "y"),
        node("y", "x, a"),
    ]
    .concat();
    let said = problems(&text);
    assert_eq!(
        said.lines().map(|line| line.split(';').next().unwrap()).collect::<Vec<_>>(),
        [
            "execution.graph.nodes[2].depends_on (line 7): closes a cycle: a → b → c → a",
            "execution.graph.nodes[5].depends_on (line 10): closes a cycle: x → y → x",
        ]
    );
}

#[test]
fn many_problems_are_counted() {
    let items = (0..500).map(|i| format!("  - {{name: g{i}}}\n")).collect::<String>();
    let rejected = read(format!("name: n\ngoals:\n{items}").as_bytes()).unwrap_err();
    assert_eq!((rejected.problems.len(), rejected.more), (100, 400));
    assert!(rejected.to_string().ends_with("… and 400 more"));
}

#[test]
fn warnings_do_not_refuse() {
    let text = "name: w\ngoals:\n  - {name: g, description: d}\nvalidations:\n  - {target: g, name: up, mode: objective, statement: s, blocking: false, detector: {type: file_exists, path: ../x}}\n  - {target: g, name: j, mode: objective, statement: s, blocking: false, detector: {type: judge, standard: s}}\n  - {target: overall, name: j, mode: objective, statement: s, detector: {type: judge, standard: s}}\ngraph:\n  nodes:\n    - {id: a, role: builder, instruction: x, goals: [g, gone]}\n";
    let warnings: Vec<_> = config(text).warnings.iter().map(ToString::to_string).collect();
    let starts = [
        "validations[0].detector.path (line 5): the path has `..` in it",
        "validations[2].name (line 7): names a judge check like line 6 does",
        "goals[0] (line 3): `g` has no blocking check",
        "graph.nodes[0].goals[1] (line 10): `gone` is no goal",
    ];
    assert_eq!(warnings.len(), starts.len(), "{warnings:#?}");
    for (warning, start) in warnings.iter().zip(starts) {
        assert!(warning.starts_with(start), "{warning}");
    }
}
