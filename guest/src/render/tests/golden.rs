//! What the views look like. Run with `UPDATE_EXPECT=1` after a change that is
//! meant, and read the difference.

use super::{event, fresh, lessons, many_tasks, rich};
use crate::model::Event;
use crate::render::log::push_log_line;
use crate::render::{all, lessons_page, log_lines, loop_page};
use crate::views::Content;
use expect_test::expect_file;

#[test]
fn loop_page_of_a_fresh_loop() {
    expect_file!["../../../tests/golden/fresh.loop.md"].assert_eq(&loop_page(&fresh(), "0.1.0"));
}

#[test]
fn loop_page_of_a_rich_loop() {
    expect_file!["../../../tests/golden/rich.loop.md"].assert_eq(&loop_page(&rich(), "0.2.0"));
}

#[test]
fn loop_page_of_200_tasks() {
    expect_file!["../../../tests/golden/200-tasks.loop.md"].assert_eq(&loop_page(&many_tasks(200), "0.1.0"));
}

#[test]
fn lessons_of_several_days() {
    expect_file!["../../../tests/golden/days.memory.md"].assert_eq(&lessons_page(
        &rich().loop_,
        &lessons(),
        "0.2.0",
    ));
}

#[test]
fn lessons_of_a_fresh_loop() {
    expect_file!["../../../tests/golden/fresh.memory.md"].assert_eq(&lessons_page(
        &fresh().loop_,
        &[],
        "0.1.0",
    ));
}

#[test]
fn log_of_events_with_all_and_with_no_optional_fields() {
    let bare = Event {
        phase: None,
        task: None,
        from: None,
        to: None,
        agent: None,
        note: None,
        evidence: None,
        issue: None,
        pr: None,
        branch: None,
        ..event(2, "")
    };
    let loud = event(3, "line\u{2028}sep\u{85}next\n\u{1b}[2J\u{9b}\u{202e}\u{e0041}\u{7f} \"q\" \\ 👨‍👩‍👧");
    let lines = log_lines(&[event(1, "plain"), bare, loud]);
    expect_file!["../../../tests/golden/events.jsonl"].assert_eq(&lines);
}

#[test]
fn lines_of_a_log_add_up() {
    let mut out = String::new();
    for seq in 1..4 {
        push_log_line(&mut out, &event(seq, "x"));
    }
    assert_eq!(out, log_lines(&[event(1, "x"), event(2, "x"), event(3, "x")]));
}

#[test]
fn all_views_of_a_loop_and_none_of_a_pruned_log() {
    let mut state = rich();
    let set = all(&state, &lessons(), "0.2.0");
    let paths =
        |set: &crate::views::ViewSet| set.views.iter().map(|view| view.path.clone()).collect::<Vec<_>>();
    assert_eq!(paths(&set), ["loop.md", "memory.md", "events.jsonl"]);
    assert_eq!(
        (set.loop_id, set.slug, set.project_root),
        (state.loop_.id.clone(), "add-oauth".to_owned(), "/repo".to_owned())
    );
    assert_eq!(set.revision, 1);
    let [Content::Whole(page), Content::Whole(lessons_text), Content::Log(log)] =
        [&set.views[0].content, &set.views[1].content, &set.views[2].content]
    else {
        panic!("{:?}", set.views)
    };
    assert_eq!(*page, loop_page(&state, "0.2.0"));
    assert_eq!(*lessons_text, lessons_page(&state.loop_, &lessons(), "0.2.0"));
    assert_eq!((log.seq, log.bytes, log.lines.as_str(), log.rebuild), (1, 140, "", true));

    state.loop_.pruned_at = Some(0);
    assert_eq!(paths(&all(&state, &lessons(), "0.2.0")), ["loop.md", "memory.md"]);
}
