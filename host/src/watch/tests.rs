//! Frames from records.

use std::path::Path;

use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::layout::Rect;

use super::*;
use crate::report::samples::{at_work, empty, overview};

fn frame(shown: &Shown, view: &View, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a terminal");
    let look = Look { colour: true };
    let drawn = terminal.draw(|frame| {
        let area: Rect = frame.area();
        draw(shown, view, None, look, area, frame.buffer_mut());
    });
    let buffer = drawn.expect("a frame").buffer.clone();
    let rows = buffer.content.chunks(usize::from(width));
    rows.map(|row| row.iter().map(|cell| cell.symbol()).collect::<String>().trim_end().to_owned()).collect()
}

fn on(tab: Tab) -> View {
    View { tab, ..View::default() }
}

/// Compares a frame with its file in `frames/`, which `UPDATE_EXPECT=1` writes anew.
#[track_caller]
fn shows(name: &str, shown: &Shown, view: &View, width: u16, height: u16) {
    let drawn = frame(shown, view, width, height).join("\n") + "\n";
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/watch/frames").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&file, &drawn).expect("a frame");
    }
    let expected = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(drawn, expected, "{}:\n{drawn}", file.display());
}

#[test]
fn frames_of_a_loop_and_of_a_list() {
    let a_loop = Shown::Loop(Box::new(at_work()));
    for tab in Tab::ALL {
        let name = tab.title().to_lowercase();
        shows(&name, &a_loop, &on(tab), 72, 20);
        shows(&format!("{name}-small"), &a_loop, &on(tab), 40, 10);
    }
    let list = Shown::Overview(overview());
    shows("list", &list, &View { chosen: 1, ..View::default() }, 60, 9);
    shows("gone", &Shown::Gone("Loop 9a1c is gone".to_owned()), &on(Tab::Now), 40, 10);
}

#[test]
fn keys_turn_scroll_choose_and_leave() {
    let a_loop = Shown::Loop(Box::new(empty()));
    let list = Shown::Overview(overview());
    let mut view = View::default();
    let mut press = |key, shown: &Shown| view.key(key, shown, 30, 10);
    // The key, what is shown, and what follows.
    let table = [
        (Key::Right, &a_loop, Outcome::Stay),
        (Key::Down, &a_loop, Outcome::Stay),
        (Key::PageDown, &a_loop, Outcome::Stay),
        (Key::PageDown, &a_loop, Outcome::Stay),
        (Key::Up, &a_loop, Outcome::Stay),
        (Key::Down, &list, Outcome::Stay),
        (Key::Down, &list, Outcome::Stay),
        (Key::Enter, &list, Outcome::Open(1)),
        (Key::Quit, &list, Outcome::Quit),
        (Key::Back, &a_loop, Outcome::Quit),
    ];
    for (key, shown, outcome) in table {
        assert_eq!(press(key, shown), outcome, "{key:?}");
    }
    assert_eq!((view.tab, view.scroll, view.chosen), (Tab::Tasks, 19, 1));
    view.from_list = true;
    assert_eq!(view.key(Key::Back, &a_loop, 0, 0), Outcome::Back);
    view.key(Key::Number(8), &a_loop, 0, 0);
    view.key(Key::Number(9), &a_loop, 0, 0);
    assert_eq!((view.tab, view.scroll), (Tab::Goals, 0));
    view.key(Key::Right, &a_loop, 0, 0);
    assert_eq!(view.tab, Tab::Now);
}

proptest! {
    #[test]
    fn every_size_and_text_can_be_drawn(
        width in 1_u16..90, height in 1_u16..30, tab in 0_usize..8, scroll in 0_usize..50,
        text in "\\PC{0,40}|.{0,40}|(👨‍👩‍👧|日|\u{202e}|\u{1b}|a){0,30}",
    ) {
        let mut records = at_work();
        records.state.loop_.title.clone_from(&text);
        records.state.loop_.awaiting_user = Some(text.clone());
        records.state.tasks[0].title.clone_from(&text);
        records.state.tasks[1].status.clone_from(&text);
        records.events.rows[0].note = Some(text.clone());
        records.steps.rows[0].agent.clone_from(&text);
        records.lessons.rows[0].note.clone_from(&text);
        let view = View { tab: Tab::ALL[tab], scroll, ..View::default() };
        let rows = frame(&Shown::Loop(Box::new(records)), &view, width, height);
        let acts = rows.concat().contains(['\u{1b}', '\u{202e}']);
        prop_assert!(!acts, "{rows:?}");
        let mut list = overview();
        list.loops[0].summary.title = text.clone();
        frame(&Shown::Overview(list), &View { chosen: scroll, ..View::default() }, width, height);
        frame(&Shown::Gone(text), &view, width, height);
    }
}
