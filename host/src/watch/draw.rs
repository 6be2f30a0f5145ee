//! The frame: head, parts, body, keys.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

use super::body;
use super::view::{Shown, Tab, View};
use crate::plain;
use crate::report::{LoopRecords, Overview, Tone, moment, tone};
use crate::time::timestamp;

/// How things may look.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Colours may be used; everything is said in words as well.
    pub colour: bool,
}

impl Look {
    /// The style of a tone.
    pub(super) fn tone(self, tone: Tone) -> Style {
        let plain = Style::new();
        match tone {
            _ if !self.colour => plain,
            Tone::Plain => plain,
            Tone::Active => plain.fg(Color::Cyan),
            Tone::Waiting => plain.fg(Color::Yellow),
            Tone::Good => plain.fg(Color::Green),
            Tone::Bad => plain.fg(Color::Red),
            Tone::Aside => plain.add_modifier(Modifier::DIM),
        }
    }

    /// A status with its sign.
    pub(super) fn status(self, word: &str) -> Span<'static> {
        let look = tone(word);
        Span::styled(format!("{} {}", look.sign(), plain::line(word)), self.tone(look))
    }
}

pub(super) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const SOFT: Style = Style::new().add_modifier(Modifier::DIM);

/// Draws what is shown into `area`, and returns how many lines the body has and how many
/// of them are seen. `trouble` is what went wrong at the last reading.
pub fn draw(
    shown: &Shown,
    view: &View,
    trouble: Option<&str>,
    look: Look,
    area: Rect,
    to: &mut Buffer,
) -> (usize, usize) {
    let width = usize::from(area.width);
    let mut head = match shown {
        Shown::Loop(records) => loop_head(records, view, look, width),
        Shown::Overview(overview) => list_head(overview),
        Shown::Gone(what) => vec![Line::styled(plain::fit(&plain::line(what), width), BOLD)],
    };
    if let Some(trouble) = trouble {
        let text = plain::fit(&plain::line(&format!("! {trouble}")), width);
        head.push(Line::styled(text, look.tone(Tone::Bad)));
    }
    let height = usize::from(area.height);
    // The keys are the last that gives way: they say how to get out.
    let foot = usize::from(height > 1);
    let head_rows = head.len().min(height.saturating_sub(foot + 1));
    let room = height.saturating_sub(head_rows + foot);
    for (row, line) in head.iter().take(head_rows).enumerate() {
        put(to, area, row, line);
    }
    let lines = match shown {
        Shown::Loop(records) => body::of_loop(records, view.tab, look, width),
        Shown::Overview(overview) => body::of_list(overview, view.chosen, look, width),
        Shown::Gone(_) => vec![Line::raw("It was deleted or archived meanwhile.")],
    };
    let last = lines.len().saturating_sub(room);
    let scroll = match shown {
        // What is chosen stays in sight.
        Shown::Overview(_) => (2 * view.chosen + 2).saturating_sub(room).min(last),
        _ => view.scroll.min(last),
    };
    for (row, line) in lines.iter().skip(scroll).take(room).enumerate() {
        put(to, area, head_rows + row, line);
    }
    if foot > 0 {
        let more = lines.len().saturating_sub(scroll + room);
        put(to, area, height - 1, &keys(shown, view, more, width));
    }
    (lines.len(), room)
}

fn put(to: &mut Buffer, area: Rect, row: usize, line: &Line<'_>) {
    let y = area.y.saturating_add(u16::try_from(row).unwrap_or(u16::MAX));
    if y < area.bottom() {
        to.set_line(area.x, y, line, area.width);
    }
}

fn loop_head(records: &LoopRecords, view: &View, look: Look, width: usize) -> Vec<Line<'static>> {
    let the_loop = &records.state.loop_;
    let status = look.status(&the_loop.status);
    let rest = width.saturating_sub(plain::width(&status.content) + 1);
    let name = plain::line(&format!("{} · {}", the_loop.slug, the_loop.title));
    let first = Line::from(vec![Span::styled(pad(&plain::fit(&name, rest), rest + 1), BOLD), status]);
    let board = records.board();
    let closed: usize =
        board.iter().filter(|(word, _)| tone(word).is_closed()).map(|(_, tasks)| tasks.len()).sum();
    let all = records.state.tasks.len();
    let counts = format!(" {closed}/{all} closed · phase {}", plain::line(&the_loop.phase));
    let cells = width.saturating_sub(plain::width(&counts)).min(30);
    let mut second = bar(&board, all, cells, look);
    second.push(Span::raw(counts));
    vec![first, Line::from(second), tabs(view.tab, width), Line::default()]
}

/// A bar of the tasks by status.
fn bar<T>(board: &[(&str, Vec<T>)], all: usize, cells: usize, look: Look) -> Vec<Span<'static>> {
    if cells < 8 || all == 0 {
        return Vec::new();
    }
    let mut spans = Vec::new();
    let (mut before, mut drawn) = (0, 0);
    for (word, tasks) in board.iter().rev() {
        before += tasks.len();
        let until = before * cells / all;
        let sign = match tone(word) {
            Tone::Good => "█",
            Tone::Plain => "·",
            Tone::Aside => "─",
            _ => "▓",
        };
        spans.push(Span::styled(sign.repeat(until - drawn), look.tone(tone(word))));
        drawn = until;
    }
    spans
}

fn tabs(current: Tab, width: usize) -> Line<'static> {
    let titled = |tab: Tab, place: usize, short: bool| match (short, tab == current) {
        (_, true) => {
            Span::styled(format!(" {} {} ", place + 1, tab.title()), BOLD.add_modifier(Modifier::REVERSED))
        }
        (false, false) => Span::raw(format!(" {} {} ", place + 1, tab.title())),
        (true, false) => Span::raw(format!(" {} ", place + 1)),
    };
    let line = |short| {
        Line::from(Tab::ALL.iter().enumerate().map(|(n, tab)| titled(*tab, n, short)).collect::<Vec<_>>())
    };
    let whole = line(false);
    if whole.width() <= width { whole } else { line(true) }
}

fn list_head(overview: &Overview) -> Vec<Line<'static>> {
    let at_work = overview.loops.iter().filter(|row| !row.finished).count();
    vec![
        Line::styled(plain::line(&overview.project), BOLD),
        Line::styled(format!("{at_work} at work, {} in all · {}", overview.all, moment(overview.at)), SOFT),
        Line::default(),
    ]
}

/// What the keys do, as much of it as fits.
fn keys(shown: &Shown, view: &View, more: usize, width: usize) -> Line<'static> {
    let out = if view.from_list { "Esc list  q quit" } else { "q quit" };
    let more = if more > 0 { format!("  ({more} more lines)") } else { String::new() };
    let at = match shown {
        Shown::Loop(records) => {
            timestamp(records.at).get(11..19).map(|at| format!("  {at} UTC")).unwrap_or_default()
        }
        _ => String::new(),
    };
    let choices = match shown {
        Shown::Overview(_) => vec![format!("{out}  ↑↓ choose  Enter open{more}"), format!("{out}  ↑↓ Enter")],
        _ => vec![
            format!("{out}  ←→ 1-8 part  ↑↓ PgUp PgDn scroll{more}{at}"),
            format!("{out}  ←→ part  ↑↓ scroll{more}"),
            format!("{out}  ←→ ↑↓{more}"),
            format!("{out}  ←→ ↑↓"),
        ],
    };
    let fits = choices.iter().find(|text| plain::width(text) <= width).or(choices.last());
    Line::styled(fits.cloned().unwrap_or_default(), SOFT)
}

/// The text with spaces after it, `room` cells in all.
pub(super) fn pad(text: &str, room: usize) -> String {
    format!("{text}{}", " ".repeat(room.saturating_sub(plain::width(text))))
}
