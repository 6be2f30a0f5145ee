//! The lines of each part.

use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use super::draw::{BOLD, Look, SOFT, pad};
use super::steps;
use super::view::Tab;
use crate::contract::model::{Event, Task};
use crate::plain;
use crate::report::{
    LoopRecords, Overview, Times, Tone, by_agent, by_phase, by_task, duration, moment, tone, waves,
};

/// The most characters of a text that are wrapped into lines.
const LONG: usize = 1_000;

type Lines = Vec<Line<'static>>;

/// The lines of a part of a loop, for this many cells.
pub(super) fn of_loop(records: &LoopRecords, tab: Tab, look: Look, width: usize) -> Lines {
    match tab {
        Tab::Now => now(records, look, width),
        Tab::Tasks => tasks(records, look, width),
        Tab::Waves => in_waves(records, look, width),
        Tab::Steps => steps::lines(records, look, width),
        Tab::Times => times(records, width),
        Tab::Events => events(records, look, width, usize::MAX),
        Tab::Lessons => lessons(records, width),
        Tab::Goals => goals(records, look, width),
    }
}

/// The lines of a list of loops, two for each.
pub(super) fn of_list(overview: &Overview, chosen: usize, look: Look, width: usize) -> Lines {
    let mut lines = Lines::new();
    for (place, row) in overview.loops.iter().enumerate() {
        let summary = &row.summary;
        let status = look.status(&summary.status);
        let rest = width.saturating_sub(plain::width(&status.content) + 3);
        let name = plain::fit(&plain::line(&format!("{} · {}", summary.slug, summary.title)), rest);
        let (mark, style) = if place == chosen {
            ("▶ ", BOLD.add_modifier(Modifier::REVERSED))
        } else {
            ("  ", Style::new())
        };
        lines.push(Line::from(vec![
            Span::raw(mark),
            Span::styled(pad(&name, rest), style),
            Span::raw(" "),
            status,
        ]));
        let counts: Vec<String> = overview
            .in_order(&summary.tasks)
            .iter()
            .map(|(word, count)| format!("{count} {}", plain::line(word)))
            .collect();
        let counts = if counts.is_empty() { "no tasks yet".to_owned() } else { counts.join(", ") };
        let text = format!("  {} · {} · {counts}", plain::line(&summary.phase), moment(summary.updated_at));
        lines.push(Line::styled(plain::fit(&text, width), SOFT));
    }
    if lines.is_empty() {
        lines.push(Line::raw("This project has no loop yet."));
    }
    lines
}

/// A text of users in lines, `indent` cells from the left.
fn wrapped(text: &str, indent: usize, width: usize, style: Style) -> Lines {
    let end = text.char_indices().nth(LONG).map_or(text.len(), |(at, _)| at);
    let mut shown = plain::line(&text[..end]);
    if end < text.len() {
        shown.push_str(&format!("… {} more characters", text[end..].chars().count()));
    }
    let lines = plain::wrap(&shown, width.saturating_sub(indent));
    lines.into_iter().map(|line| Line::styled(format!("{}{line}", " ".repeat(indent)), style)).collect()
}

fn heading(lines: &mut Lines, text: &str) {
    if !lines.is_empty() {
        lines.push(Line::default());
    }
    lines.push(Line::styled(text.to_owned(), BOLD));
}

fn now(records: &LoopRecords, look: Look, width: usize) -> Lines {
    let state = &records.state;
    let the_loop = &state.loop_;
    let mut lines = Lines::new();
    if let Some(question) = &the_loop.awaiting_user {
        lines.extend(wrapped(
            &format!("◆ Waiting for the user: {question}"),
            0,
            width,
            look.tone(Tone::Waiting),
        ));
    }
    if let Some(block) = &the_loop.blocked {
        let text = format!("✗ Refused: {} on {}: {}", block.op, block.task, block.reason);
        lines.extend(wrapped(&text, 0, width, look.tone(Tone::Bad)));
    }
    match &the_loop.now {
        Some(now) => {
            let since = u64::try_from(records.at.saturating_sub(now.since)).unwrap_or(0);
            let task = now.task.as_ref().map(|task| format!(" on {task}")).unwrap_or_default();
            let text = format!("● {} · {}{task}, for {}", now.agent, now.step, duration(since));
            lines.extend(wrapped(&text, 0, width, look.tone(Tone::Active)));
            let title = |id: &String| state.tasks.iter().find(|task| task.taskid == *id);
            if let Some(task) = now.task.as_ref().and_then(title) {
                lines.push(Line::raw(plain::fit(&format!("  {}", plain::line(&task.title)), width)));
            }
        }
        None => lines.push(Line::styled("Nothing is in hand.", SOFT)),
    }
    heading(&mut lines, "Phases");
    lines.extend(flow(
        state.phases.iter().map(|phase| {
            let look_of = tone(&phase.status);
            let here = if phase.phase == the_loop.phase { BOLD } else { Style::new() };
            let text = format!("{} {}", look_of.sign(), plain::line(&phase.phase));
            Span::styled(text, look.tone(look_of).patch(here))
        }),
        width,
    ));
    heading(&mut lines, "Tasks");
    lines.extend(flow(
        records.board().into_iter().map(|(word, tasks)| {
            let look_of = tone(word);
            Span::styled(
                format!("{} {} {}", look_of.sign(), tasks.len(), plain::line(word)),
                look.tone(look_of),
            )
        }),
        width,
    ));
    heading(&mut lines, "Newest events");
    lines.extend(events(records, look, width, 12));
    lines
}

/// Words side by side, in as many lines as it takes.
fn flow(words: impl Iterator<Item = Span<'static>>, width: usize) -> Lines {
    let mut lines: Lines = Vec::new();
    let mut line: Vec<Span<'static>> = Vec::new();
    let mut taken = 0;
    for mut word in words {
        word.content = plain::fit(&word.content, width).into();
        let wide = plain::width(&word.content);
        if taken > 0 && taken + 2 + wide > width {
            lines.push(Line::from(std::mem::take(&mut line)));
            taken = 0;
        }
        if taken > 0 {
            line.push(Span::raw("  "));
            taken += 2;
        }
        taken += wide;
        line.push(word);
    }
    if !line.is_empty() {
        lines.push(Line::from(line));
    }
    lines
}

fn one_task(task: &Task, look: Look, width: usize, in_hand: bool) -> Line<'static> {
    let look_of = tone(&task.status);
    let id = plain::fit(&plain::line(&task.taskid), width / 3);
    let status = plain::fit(&plain::line(&task.status), width / 3);
    let beside = plain::width(&id) + plain::width(&status) + 6;
    let title = plain::fit(&plain::line(&task.title), width.saturating_sub(beside));
    let style = if in_hand { BOLD } else { Style::new() };
    Line::from(vec![
        Span::styled(format!("{} ", look_of.sign()), look.tone(look_of)),
        Span::styled(format!("{id} "), BOLD),
        Span::styled(format!("{status}  "), look.tone(look_of)),
        Span::styled(title, style),
    ])
}

fn tasks(records: &LoopRecords, look: Look, width: usize) -> Lines {
    let mut lines = Lines::new();
    for (word, tasks) in records.board() {
        heading(
            &mut lines,
            &format!("{} ({})", plain::fit(&plain::line(word), width.saturating_sub(8)), tasks.len()),
        );
        for task in tasks {
            lines.push(one_task(task, look, width, records.in_hand() == Some(task.taskid.as_str())));
        }
    }
    or_else(lines, "It has no tasks yet.")
}

fn in_waves(records: &LoopRecords, look: Look, width: usize) -> Lines {
    let tasks = &records.state.tasks;
    let waves = waves(tasks);
    let mut lines = Lines::new();
    for wave in 0..waves.count {
        heading(&mut lines, &format!("Wave {}", wave + 1));
        for (place, task) in tasks.iter().enumerate().filter(|(place, _)| waves.of[*place] == wave) {
            lines.push(one_task(task, look, width, records.in_hand() == Some(task.taskid.as_str())));
            if !waves.needs[place].is_empty() {
                let needs: Vec<String> =
                    waves.needs[place].iter().map(|need| plain::line(&tasks[*need].taskid)).collect();
                lines.push(Line::styled(plain::fit(&format!("    after {}", needs.join(", ")), width), SOFT));
            }
        }
    }
    or_else(lines, "It has no tasks yet.")
}

fn times(records: &LoopRecords, width: usize) -> Lines {
    let mut lines = Lines::new();
    let totals = &records.state.totals;
    let phases =
        by_phase(totals).into_iter().map(|(phase, times)| (phase.to_owned(), times)).collect::<Vec<_>>();
    let agents =
        by_agent(&records.steps).into_iter().map(|(agent, times)| (agent.to_owned(), times)).collect();
    let tasks = by_task(totals)
        .into_iter()
        .map(|(task, times)| (task.unwrap_or("the loop").to_owned(), times))
        .collect();
    let newest = match records.steps.left_out() {
        0 => String::new(),
        _ => format!(", newest {} steps", records.steps.rows.len()),
    };
    for (title, rows) in [
        ("By phase".to_owned(), phases),
        (format!("By agent{newest}"), agents),
        ("By task".to_owned(), tasks),
    ] {
        if rows.is_empty() {
            continue;
        }
        heading(&mut lines, &title);
        table(&mut lines, &rows, width);
    }
    or_else(lines, "No step was recorded.")
}

/// Wall and agent time of each row, and a bar where there is room for one.
fn table(lines: &mut Lines, rows: &[(String, Times)], width: usize) {
    const FIGURES: usize = 15;
    let names = rows.iter().map(|(name, _)| plain::width(&plain::line(name))).max().unwrap_or(0);
    let names = names.clamp(6, (width / 3).max(6));
    let cells = width.saturating_sub(names + 2 * FIGURES + 1);
    let longest = rows.iter().map(|(_, times)| times.wall).max().unwrap_or(0).max(1);
    let head = format!("{} {:>FIGURES$}{:>FIGURES$}", pad("", names), "agent", "of wall");
    lines.push(Line::styled(plain::fit(&head, width), SOFT));
    for (name, times) in rows {
        let name = pad(&plain::fit(&plain::line(name), names), names);
        let figures = format!("{name} {:>FIGURES$}{:>FIGURES$}", duration(times.agent), duration(times.wall));
        let mut spans = vec![Span::raw(figures)];
        if cells > 8 {
            let part = |ms: u64| usize::try_from(ms * (cells as u64 - 2) / longest).unwrap_or(0);
            let (agent, wall) = (part(times.agent.min(longest)), part(times.wall.min(longest)));
            spans.push(Span::raw(format!(
                "  {}{}",
                "█".repeat(agent),
                "░".repeat(wall.saturating_sub(agent))
            )));
        }
        lines.push(Line::from(spans));
    }
}

fn events(records: &LoopRecords, look: Look, width: usize, limit: usize) -> Lines {
    let mut lines = Lines::new();
    for event in records.events.rows.iter().rev().take(limit) {
        lines.extend(one_event(event, look, width));
    }
    let more = records.events.left_out();
    if limit == usize::MAX && more > 0 {
        lines.push(Line::styled(format!("{more} older events are not shown"), SOFT));
    }
    or_else(lines, "Nothing has happened yet.")
}

fn one_event(event: &Event, look: Look, width: usize) -> Lines {
    let at = moment(event.at).split_off(5);
    let mut spans = vec![Span::styled(format!("{at} "), SOFT), Span::styled(plain::line(&event.event), BOLD)];
    if let Some(task) = &event.task {
        spans.push(Span::raw(format!(" {}", plain::line(task))));
    }
    if let Some(from) = &event.from {
        spans.push(Span::raw(format!(" {} →", plain::line(from))));
    }
    if let Some(to) = &event.to {
        spans.push(Span::raw(" "));
        spans.push(look.status(to));
    }
    if let Some(agent) = &event.agent {
        spans.push(Span::styled(format!(" {}", plain::line(agent)), SOFT));
    }
    let mut lines = flow_tight(spans, width);
    for text in [&event.note, &event.evidence].into_iter().flatten() {
        let text = plain::fit(
            &plain::line(text.get(..text.floor_char_boundary(400)).unwrap_or_default()),
            width.saturating_sub(4),
        );
        lines.push(Line::raw(format!("    {text}")));
    }
    lines
}

/// Spans one after the other; what does not fit is cut.
fn flow_tight(spans: Vec<Span<'static>>, width: usize) -> Lines {
    let mut left = width;
    let mut kept = Vec::new();
    for mut span in spans {
        let shown = plain::fit(&span.content, left);
        left = left.saturating_sub(plain::width(&shown));
        span.content = shown.into();
        kept.push(span);
        if left == 0 {
            break;
        }
    }
    vec![Line::from(kept)]
}

fn lessons(records: &LoopRecords, width: usize) -> Lines {
    let mut lines = Lines::new();
    for lesson in records.lessons.rows.iter().rev() {
        let task = lesson.task.as_ref().map(|task| format!(" · {task}")).unwrap_or_default();
        heading(
            &mut lines,
            &plain::fit(&plain::line(&format!("{} · {}{task}", moment(lesson.at), lesson.agent)), width),
        );
        lines.extend(wrapped(&lesson.note, 2, width, Style::new()));
    }
    if records.lessons.left_out() > 0 {
        lines.push(Line::styled(format!("{} older lessons are not shown", records.lessons.left_out()), SOFT));
    }
    or_else(lines, "No lesson was kept.")
}

fn goals(records: &LoopRecords, look: Look, width: usize) -> Lines {
    let mut lines = Lines::new();
    if let Some(file) = &records.state.loop_.goal_config {
        lines.extend(wrapped(&format!("Bound to {file}"), 0, width, SOFT));
    }
    for goal in &records.state.goals {
        let (look_of, word) =
            if goal.satisfied { (Tone::Good, "satisfied") } else { (Tone::Bad, "not satisfied") };
        let text = format!(
            "{} {}: {word}, {} of {}, iteration {}",
            look_of.sign(),
            goal.target,
            goal.passed,
            goal.total,
            goal.iteration
        );
        lines.extend(wrapped(&text, 0, width, look.tone(look_of)));
        lines.extend(wrapped(&goal.reason, 2, width, Style::new()));
    }
    if !records.ledger.rows.is_empty() {
        heading(&mut lines, &format!("Ledger ({})", records.ledger.all));
        for entry in records.ledger.rows.iter().rev() {
            let text = format!("{} {}: {}", moment(entry.at).split_off(5), entry.kind, entry.detail);
            lines.push(Line::raw(plain::fit(&plain::line(&text), width)));
        }
    }
    or_else(lines, "No goals are bound to it, and no ruling was recorded.")
}

fn or_else(lines: Lines, otherwise: &str) -> Lines {
    if lines.is_empty() { vec![Line::styled(otherwise.to_owned(), SOFT)] } else { lines }
}
