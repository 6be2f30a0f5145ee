//! Pages whatever the records hold.

use proptest::prelude::*;

use super::samples::{START, at_work, empty, event, overview, step, task};
use super::*;

/// What no page may have, whoever wrote its texts.
#[track_caller]
fn assert_harmless(page: &str) {
    let body = page.split_once("</style>").expect("a style sheet").1;
    for bad in ["<script", "<img", "javascript:", "src=", "\u{1b}", "\u{202e}", "\u{200b}"] {
        assert!(!body.contains(bad), "{bad:?} is on the page");
    }
    let fetched = body.replace("http://www.w3.org/2000/svg", "");
    assert!(!fetched.contains("href=\"http") && !fetched.contains("url(http"), "it leads elsewhere");
    for (open, close) in
        [("<section", "</section>"), ("<li", "</li>"), ("<svg", "</svg>"), ("<table", "</table>")]
    {
        let count = |tag: &str| body.matches(tag).count();
        let opened = count(open) - if open == "<li" { count("<link") } else { 0 };
        assert_eq!(opened, count(close), "{open}");
    }
}

#[test]
fn a_loop_at_work_is_all_there() {
    let page = loop_page(&at_work());
    assert_harmless(&page);
    for text in [
        "<h1><bdi>Sign in with OAuth</bdi></h1>",
        "Dependency graph",
        "4 tasks in 3 waves",
        "1 task depends on nothing",
        "Steps in time",
        "still open",
        "2 of 5",
        "not satisfied",
        "the tests did not run",
        "goal_failed",
        "Back off for a minute.",
        "it compiles",
        "prefers-color-scheme",
        "1 steps ended without a return",
    ] {
        assert!(page.contains(text), "{text:?} is missing");
    }
    assert_eq!(page, loop_page(&at_work()), "equal records, equal bytes");
}

#[test]
fn nothing_at_all_is_a_page_too() {
    let page = loop_page(&empty());
    assert_harmless(&page);
    for text in ["no tasks yet", "No step was recorded", "Nothing has happened yet"] {
        assert!(page.contains(text), "{text:?} is missing");
    }
    assert!(!page.contains("id=\"graph\"") && !page.contains("id=\"goals\""));
    assert_harmless(&overview_page(&overview()));
    let none = Overview { loops: Vec::new(), all: 0, ..overview() };
    assert!(overview_page(&none).contains("No loop is at work."));
}

#[test]
fn what_is_too_much_is_counted() {
    let mut records = at_work();
    records.state.tasks = (0..1_000)
        .map(|n| {
            let before = format!("T{}", n - 1);
            let needs: &[&str] = if n % 400 == 0 { &[] } else { &[before.as_str()] };
            task(&format!("T{n}"), "a task", "pending", needs)
        })
        .collect();
    records.events.rows = (4_501..=5_000).map(|n| event(n, "note", &"x".repeat(10_000))).collect();
    records.events.all = 5_000;
    records.steps.rows = (0..3_000)
        .map(|n| step(n, &format!("agent-{}", n % 40), n as i64 * 3, Some(n as i64 * 3 + 2)))
        .collect();
    records.steps.all = 4_000;
    let page = loop_page(&records);
    assert_harmless(&page);
    for text in [
        "8\u{a0}500 more characters",
        "4\u{a0}500 older events are not on this page",
        "2\u{a0}000 older steps are not drawn",
        "17 more agents",
        "700 further tasks are not drawn",
        "600 further tasks of this status",
        "1\u{a0}000 older steps are not in the table by agent",
    ] {
        assert!(page.contains(text), "{text:?} is missing");
    }
    assert!(page.len() < 3_000_000, "{}", page.len());
}

#[test]
fn a_circle_of_tasks_is_drawn_as_far_as_it_goes() {
    let tasks = [
        task("A", "", "pending", &[]),
        task("B", "", "pending", &["A", "A", "gone", "B"]),
        task("C", "", "pending", &["D", "B"]),
        task("D", "", "pending", &["C"]),
    ];
    let found = waves(&tasks);
    assert_eq!((found.of.as_slice(), found.count, found.unknown), ([0, 1, 2, 2].as_slice(), 3, 1));
    let mut records = empty();
    records.state.tasks = tasks.to_vec();
    let page = loop_page(&records);
    assert_harmless(&page);
    assert!(
        page.contains("2 dependencies are not drawn") && page.contains("a task that the loop does not have")
    );
}

#[test]
fn statuses_come_in_the_order_of_the_logic() {
    let records = at_work();
    let order: Vec<&str> = records.board().into_iter().map(|(word, _)| word).collect();
    assert_eq!(order, ["pending", "in-progress", "complete", "skipped"]);
    // One that the logic does not tell leaves the plan's order.
    let mut records = at_work();
    records.state.tasks[1].status = "brewing".into();
    let order: Vec<&str> = records.board().into_iter().map(|(word, _)| word).collect();
    assert_eq!(order, ["complete", "brewing", "pending", "skipped"]);
}

#[test]
fn durations_read_well() {
    let table = [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_250, "1.2 s"),
        (59_999, "59 s"),
        (61_000, "1 min 1 s"),
        (3_600_000, "1 h"),
        (90 * 3_600_000, "3 d 18 h"),
    ];
    for (ms, text) in table {
        assert_eq!(duration(ms), text, "{ms}");
    }
    assert_eq!(moment(START), "2026-08-18 09:12");
}

proptest! {
    #[test]
    fn no_text_gets_out_of_its_place(text in "\\PC{0,30}|.{0,30}|(<script>|</bdi>|\"|'|&|<!--|\u{202e}|\u{200b}|\u{1b}){0,12}") {
        let mut records = at_work();
        let state = &mut records.state;
        state.loop_.title.clone_from(&text);
        state.loop_.goal.clone_from(&text);
        state.loop_.awaiting_user = Some(text.clone());
        for task in &mut state.tasks {
            task.title.clone_from(&text);
            task.status.clone_from(&text);
            task.branch = Some(text.clone());
            task.description = Some(text.clone());
        }
        records.events.rows[0].note = Some(text.clone());
        records.events.rows[0].event.clone_from(&text);
        records.steps.rows[0].agent.clone_from(&text);
        records.lessons.rows[0].note = text;
        assert_harmless(&loop_page(&records));
    }
}
