//! Whatever a state holds, parsers find in its views exactly what it has.

use super::fixtures::{CREATED, fresh, hostile, rich, task};
use super::reading::{Found, bold, header, visible, visible_lines, with_gfm, with_pulldown};
use crate::model::{Block, Event, Loop, LoopState, Memory, NowPointer, Phase, Task};
use crate::render::{lessons_page, log_lines, loop_page, timestamp};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde_json::{Value, json};

/// What a parser should find in a loop's page.
fn expected_loop_page(state: &LoopState) -> Vec<Found> {
    let l = &state.loop_;
    let heading = |text: &str| Found::Heading(2, text.to_owned());
    let field = |key: &str, value: &str| Found::Item(None, format!("{key}: {}", visible(value)));
    let mut page = vec![Found::Heading(1, format!("Loop — {}", visible(&l.title))), heading("Loop")];
    if let Some(question) = &l.awaiting_user {
        page.push(Found::Quote(format!("{} {}", bold("Waiting for the user:"), visible(question))));
    }
    if let Some(block) = &l.blocked {
        page.push(Found::Quote(format!(
            "{} {} {} {} {} {}",
            bold("Refused:"),
            visible(&block.op),
            bold("on task"),
            visible(&block.task),
            bold("because"),
            visible(&block.reason),
        )));
    }
    page.push(field("slug", &l.slug));
    page.push(field("goal", &l.goal));
    page.push(field("mode", &l.mode));
    page.push(field("status", &l.status));
    page.push(field("phase", &l.phase));
    let optional = |key: &str, value: &Option<String>| value.as_ref().map(|value| field(key, value));
    page.extend(optional("default_branch", &l.default_branch));
    page.extend(optional("branch_mode", &l.branch_mode));
    page.extend(optional("feature_branch", &l.feature_branch));
    page.extend(optional("legal", &l.legal));
    page.extend(optional("memory_harvest", &l.memory_harvest));
    page.extend(optional("docs_sync", &l.docs_sync));
    page.extend(optional("deferred_gate", &l.deferred_gate));
    page.extend(optional("qa_report", &l.qa_report));
    let findings: Vec<String> = l
        .f_unresolved_pr
        .map(|n| format!("f_unresolved_pr {n}"))
        .into_iter()
        .chain(l.f_security_deferred.map(|n| format!("f_security_deferred {n}")))
        .collect();
    if !findings.is_empty() {
        page.push(field("findings", &findings.join(", ")));
    }
    page.push(field(
        "counters",
        &format!(
            "total_failed_gates {}, splits_done {}, qa_rounds {}",
            l.total_failed_gates, l.splits_done, l.qa_rounds
        ),
    ));
    page.extend(optional("project_key", &l.project_key));
    page.push(field("mcp_version", l.mcp_version.as_deref().unwrap_or("unknown")));
    page.push(field("created", &timestamp(l.created_at)));
    page.push(field("updated", &timestamp(l.updated_at)));

    page.push(heading("Now"));
    match &l.now {
        None => page.push(Found::Paragraph("idle".to_owned())),
        Some(now) => page.extend([
            field("task", now.task.as_deref().unwrap_or("-")),
            field("agent", &now.agent),
            field("step", &now.step),
            field("since", &timestamp(now.since)),
        ]),
    }

    page.push(heading("Phases"));
    if state.phases.is_empty() {
        page.push(Found::Paragraph("no phases".to_owned()));
    }
    for phase in &state.phases {
        page.push(field(&visible(&phase.phase), &phase.status));
    }

    page.push(heading("Tasks"));
    page.push(Found::Paragraph(expected_rollup(&state.tasks)));
    for task in &state.tasks {
        let mut text =
            format!("{}: {} — {}", visible(&task.taskid), visible(&task.title), bold(&visible(&task.status)));
        let mut part = |name: &str, value: String| text.push_str(&format!(" · {name} {value}"));
        if let Some(tech) = &task.tech {
            part("tech", visible(tech));
        }
        if !task.depends_on.is_empty() {
            let names: Vec<_> = task.depends_on.iter().map(|name| visible(name)).collect();
            part("depends_on", names.join(", "));
        }
        for (name, value) in [("issue", &task.issue), ("pr", &task.pr), ("branch", &task.branch)] {
            if let Some(value) = value {
                part(name, visible(value));
            }
        }
        for (name, count) in [
            ("retries", task.retries),
            ("security_rounds", task.security_rounds),
            ("review_rounds", task.review_rounds),
        ] {
            if count != 0 {
                part(name, count.to_string());
            }
        }
        page.push(Found::Item(Some(task.status == "complete"), text));
    }
    page
}

fn expected_rollup(tasks: &[Task]) -> String {
    let known = [
        "superseded",
        "skipped",
        "complete",
        "blocked",
        "failed",
        "merged",
        "changes-requested",
        "in-review",
        "pr-open",
        "secure",
        "verified",
        "in-progress",
        "issue-open",
        "pending",
    ];
    let mut foreign: Vec<_> =
        tasks.iter().map(|task| task.status.as_str()).filter(|s| !known.contains(s)).collect();
    foreign.sort_unstable();
    foreign.dedup();
    let counts: Vec<_> = known
        .into_iter()
        .chain(foreign)
        .map(|status| (status, tasks.iter().filter(|task| task.status == status).count()))
        .filter(|(_, count)| *count > 0)
        .map(|(status, count)| format!("{count} {}", visible(status)))
        .collect();
    match tasks.len() {
        0 => "no tasks yet".to_owned(),
        1 => format!("1 task: {}", counts.join(", ")),
        n => format!("{n} tasks: {}", counts.join(", ")),
    }
}

/// What a parser should find in the lessons' page of lessons in order of time.
fn expected_lessons_page(l: &Loop, lessons: &[Memory]) -> Vec<Found> {
    let mut page = vec![Found::Heading(1, format!("Lessons — {}", visible(&l.title)))];
    if lessons.is_empty() {
        page.push(Found::Paragraph("no lessons yet".to_owned()));
    }
    let mut days: Vec<String> = lessons.iter().map(|lesson| timestamp(lesson.at)[..10].to_owned()).collect();
    days.sort_unstable();
    days.dedup();
    for day in days {
        page.push(Found::Heading(2, day.clone()));
        for lesson in lessons.iter().filter(|lesson| timestamp(lesson.at).starts_with(&day)) {
            let mut text = format!("{} · {}", &timestamp(lesson.at)[11..], bold(&visible(&lesson.agent)));
            if let Some(task) = &lesson.task {
                text.push_str(&format!(" · {}", visible(task)));
            }
            page.push(Found::Item(None, text));
            page.push(Found::Code(visible_lines(&lesson.note)));
        }
    }
    page
}

fn check_page(page: &str, header_pairs: &[(&str, String)], expected: &[Found]) {
    assert!(page.ends_with('\n') && !page.ends_with("\n\n"), "one final newline");
    assert!(!page.contains('\r'));
    let (pairs, body) = header(page);
    let pairs: Vec<_> = pairs.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    assert_eq!(pairs, header_pairs, "{page}");
    assert_eq!(with_pulldown(body), expected, "pulldown-cmark reads\n{page}");
    assert_eq!(with_gfm(body), expected, "the GFM parser reads\n{page}");
}

fn check_loop_page(state: &LoopState, version: &str) {
    let l = &state.loop_;
    let page = loop_page(state, version);
    assert_eq!(page, loop_page(&state.clone(), version));
    let pairs = [
        ("type", "loop".to_owned()),
        ("loop", l.slug.clone()),
        ("id", l.id.clone()),
        ("generated", timestamp(l.created_at)),
        ("updated", timestamp(l.updated_at)),
        ("mcp", version.to_owned()),
    ];
    check_page(&page, &pairs, &expected_loop_page(state));
}

fn check_lessons_page(l: &Loop, lessons: &[Memory], version: &str) {
    let page = lessons_page(l, lessons, version);
    assert_eq!(page, lessons_page(&l.clone(), lessons, version));
    let updated = lessons.iter().map(|lesson| lesson.at).max().unwrap_or(l.created_at);
    let pairs = [
        ("type", "memory".to_owned()),
        ("loop", l.slug.clone()),
        ("generated", timestamp(l.created_at)),
        ("updated", timestamp(updated)),
        ("mcp", version.to_owned()),
    ];
    check_page(&page, &pairs, &expected_lessons_page(l, lessons));
}

fn check_log(events: &[Event]) {
    let text = log_lines(events);
    assert!(text.is_empty() || text.ends_with('\n'));
    // Every character that some reader takes for the end of a line.
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines: Vec<_> = text.split_terminator(ends).collect();
    assert_eq!(lines.len(), events.len(), "{text}");
    for (line, event) in lines.into_iter().zip(events) {
        let mut expected = json!({
            "seq": event.seq, "at": timestamp(event.at), "event": event.event, "phase": event.phase,
            "task": event.task, "from": event.from, "to": event.to, "agent": event.agent, "note": event.note,
        });
        for (key, value) in [
            ("evidence", &event.evidence),
            ("issue", &event.issue),
            ("pr", &event.pr),
            ("branch", &event.branch),
        ] {
            if let Some(value) = value {
                expected[key] = json!(value);
            }
        }
        let read: Value = serde_json::from_str(line).unwrap();
        assert_eq!(read, expected);
        // Both keep the order of their keys.
        let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(keys(&read), keys(&expected));
        assert!(!line.chars().any(crate::render::text::is_hidden), "{line:?}");
    }
}

fn status() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => prop::sample::select(vec!["pending", "in-review", "complete", "superseded"]).prop_map(str::to_owned),
        1 => hostile(),
    ]
}

prop_compose! {
    fn any_task()(
        taskid in hostile(),
        title in hostile(),
        status in status(),
        tech in option::of(hostile()),
        depends_on in vec(hostile(), 0..3),
        issue in option::of(hostile()),
        pr in option::of(hostile()),
        branch in option::of(hostile()),
        counters in any::<[u32; 3]>(),
    ) -> Task {
        Task {
            tech,
            depends_on,
            issue,
            pr,
            branch,
            retries: counters[0] % 3,
            security_rounds: counters[1] % 3,
            review_rounds: counters[2],
            ..task(0, &taskid, &title, &status)
        }
    }
}

prop_compose! {
    fn any_state()(
        texts in vec(hostile(), 8),
        fields in vec(option::of(hostile()), 12),
        findings in option::of((any::<u32>(), option::of(any::<u32>()))),
        blocked in option::of((hostile(), hostile(), hostile())),
        now in option::of((option::of(hostile()), hostile(), hostile(), any::<i64>())),
        phases in vec((hostile(), hostile()), 0..4),
        tasks in vec(any_task(), 0..4),
        times in any::<(i64, i64)>(),
    ) -> LoopState {
        let mut state = fresh();
        let mut fields = fields.into_iter();
        let mut texts = texts.into_iter();
        let l = &mut state.loop_;
        for text in [&mut l.id, &mut l.slug, &mut l.title, &mut l.goal, &mut l.mode, &mut l.status, &mut l.phase] {
            *text = texts.next().unwrap();
        }
        for field in [
            &mut l.project_key, &mut l.default_branch, &mut l.branch_mode, &mut l.feature_branch, &mut l.legal,
            &mut l.memory_harvest, &mut l.docs_sync, &mut l.deferred_gate, &mut l.qa_report, &mut l.awaiting_user,
            &mut l.mcp_version,
        ] {
            *field = fields.next().unwrap();
        }
        l.f_unresolved_pr = findings.map(|(count, _)| count);
        l.f_security_deferred = findings.and_then(|(_, count)| count);
        l.blocked = blocked.map(|(op, task, reason)| Block { op, task, reason });
        l.now = now.map(|(task, agent, step, since)| NowPointer { task, agent, step, since });
        (l.created_at, l.updated_at) = times;
        state.phases = phases
            .into_iter()
            .map(|(phase, status)| Phase { phase, status, updated_at: 0 })
            .collect();
        state.tasks = tasks;
        state
    }
}

prop_compose! {
    fn any_lesson()(
        days in 0_i64..3,
        ms in 0_i64..86_400_000,
        agent in hostile(),
        task in option::of(hostile()),
        note in vec(hostile(), 0..4),
    ) -> Memory {
        Memory { seq: 1, at: CREATED + days * 86_400_000 + ms, agent, task, note: note.concat() }
    }
}

prop_compose! {
    fn any_event()(
        seq in any::<u64>(),
        at in any::<i64>(),
        event in hostile(),
        fields in vec(option::of(hostile()), 10),
    ) -> Event {
        let mut fields = fields.into_iter();
        let mut field = || fields.next().unwrap();
        Event {
            seq, at, event,
            phase: field(), task: field(), from: field(), to: field(), agent: field(), note: field(),
            evidence: field(), issue: field(), pr: field(), branch: field(),
        }
    }
}

proptest! {
    #[test]
    fn loop_pages_hold_exactly_the_state(state in any_state(), version in hostile()) {
        check_loop_page(&state, &version);
    }

    #[test]
    fn lessons_pages_hold_exactly_the_lessons(title in hostile(), lessons in vec(any_lesson(), 0..6)) {
        let mut l = fresh().loop_;
        l.title = title;
        check_lessons_page(&l, &lessons, "0.1.0");
    }

    #[test]
    fn log_lines_hold_exactly_the_events(events in vec(any_event(), 0..5)) {
        check_log(&events);
    }
}

/// Every kind of repetition that could make a parser or the renderer slow, or
/// pile up into a construct.
#[test]
fn hundred_kilobytes_of_one_thing_stay_text() {
    for piece in [
        "x",
        "`",
        "*",
        "_",
        "a_",
        "[",
        "![",
        "](",
        "<",
        "<a",
        "&",
        "&a",
        "|",
        "~",
        "\\",
        "#",
        " #",
        "- ",
        "> ",
        "\n",
        "a\n",
        "\r\n",
        "---\n",
        "http://",
        "www.",
        ":",
        "a@b.c",
        "<!--",
        "\0",
        "\u{202e}",
        "e\u{301}",
        "👨‍👩‍👧",
        "\u{200d}",
    ] {
        let long = piece.repeat(100_000 / piece.len());
        let mut state = rich();
        state.loop_.title = long.clone();
        state.loop_.goal = long.clone();
        state.loop_.awaiting_user = Some(long.clone());
        state.tasks[2].title = long.clone();
        check_loop_page(&state, "0.1.0");
        let lesson = Memory { seq: 1, at: CREATED, agent: "a".to_owned(), task: None, note: long.clone() };
        check_lessons_page(&state.loop_, &[lesson], "0.1.0");
        check_log(&[super::event(1, &long)]);
    }
}
