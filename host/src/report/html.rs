//! The page around all parts, and how text gets into it.
//!
//! Every value goes through the templates' escaping. What users wrote goes through
//! [`name`] or [`prose`] before, so that nothing in it hides or reorders its neighbours, and no text
//! is without an end. The page asks for nothing: its policy forbids scripts and every
//! address, should anything ever get past the escaping.

use maud::{DOCTYPE, Markup, PreEscaped, Render, html};

use super::figures::{Times, duration, moment};
use super::tone::{Tone, tone};
use crate::plain;
use crate::time::timestamp;

/// The style sheet.
const STYLE: &str = include_str!("style.css");

/// What the page may do: show itself.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; \
                      form-action 'none'";

/// The most characters of a text that a page shows.
pub(super) const LONG: usize = 1_500;

/// The most characters of a name or a title.
pub(super) const SHORT: usize = 160;

/// A part of a page with its heading, which the page's list of contents has too.
pub(super) struct Part {
    pub id: &'static str,
    pub title: &'static str,
    /// How many there are, where the part is a list.
    pub count: Option<u64>,
    pub body: Markup,
}

/// A whole page.
pub(super) fn page(title: &str, head: Markup, parts: &[Part], foot: Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(GENERATOR);
                title { (clipped(title, SHORT)) }
                link rel="icon" href="data:,";
                style { (PreEscaped(STYLE)) }
            }
            body {
                a.skip href="#content" { "Skip to the content" }
                header.top { (head) }
                @if parts.len() > 1 {
                    nav.contents aria-label="Contents" {
                        ul { @for part in parts {
                            li { a href={ "#" (part.id) } { (part.title) } }
                        } }
                    }
                }
                main id="content" {
                    @for part in parts {
                        section id=(part.id) aria-labelledby={ (part.id) "-title" } {
                            h2 id={ (part.id) "-title" } {
                                (part.title)
                                @if let Some(count) = part.count { " " span.count { (grouped(count)) } }
                            }
                            (part.body)
                        }
                    }
                }
                footer { (foot) }
            }
        }
    };
    page.into_string()
}

/// By this a page is known as one of ours.
const GENERATOR: &str = "loop-state-mcp report";

/// The last line of a page.
pub(super) fn foot(at: i64, version: &str) -> Markup {
    html! {
        p { "Drawn " (when(at)) " UTC by loop-state-mcp " (version) ". The database is the truth; this page is a copy of one moment." }
    }
}

/// A text of users on one line, cut where it is too long, with what was left out.
pub(super) struct Clipped<'a>(&'a str, usize);

pub(super) fn clipped(text: &str, max: usize) -> Clipped<'_> {
    Clipped(text, max)
}

impl Render for Clipped<'_> {
    fn render_to(&self, out: &mut String) {
        let Clipped(text, max) = *self;
        let end = text.char_indices().nth(max).map_or(text.len(), |(at, _)| at);
        plain::line(&text[..end]).render_to(out);
        if end < text.len() {
            out.push('…');
        }
    }
}

/// A text of users, apart from its neighbours whichever way it runs.
pub(super) fn name(text: &str) -> Markup {
    html! { bdi { (clipped(text, SHORT)) } }
}

/// A longer text of users with its lines, cut where it is too long; says what is left out.
pub(super) fn prose(text: &str) -> Markup {
    let end = text.char_indices().nth(LONG).map_or(text.len(), |(at, _)| at);
    let more = text[end..].chars().count();
    html! {
        span.prose dir="auto" { (plain::block(&text[..end])) }
        @if more > 0 { " " span.more { "… " (grouped(more as u64)) " more characters" } }
    }
}

/// A status with its look.
pub(super) fn status(word: &str) -> Markup {
    pill(tone(word), &html! { (clipped(word, 40)) })
}

/// A word with a look.
pub(super) fn pill(tone: Tone, word: &Markup) -> Markup {
    html! {
        span class={ "pill " (tone.name()) } {
            span.sign aria-hidden="true" { (tone.sign()) } " " (word)
        }
    }
}

/// A moment that machines read as well.
pub(super) fn when(at: i64) -> Markup {
    html! { time datetime=(timestamp(at)) { (moment(at)) } }
}

/// A number with its thousands apart.
pub(super) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            out.push('\u{a0}');
        }
        out.push(digit);
    }
    out
}

/// A number and the word for its unit.
pub(super) fn counted(number: u64, one: &str, many: &str) -> String {
    format!("{} {}", grouped(number), if number == 1 { one } else { many })
}

/// Says how much of a list is not on the page.
pub(super) fn left_out(more: u64, one: &str, many: &str, rest: &str) -> Markup {
    html! {
        @if more > 0 { p.note { (counted(more, one, many)) " " (rest) } }
    }
}

/// Something that may be wider than the screen, reached by keyboard too.
pub(super) fn wide(label: &str, body: Markup) -> Markup {
    html! { div.wide role="region" aria-label=(label) tabindex="0" { (body) } }
}

/// A bar as long as its share of `longest`, in parts with their own look.
pub(super) fn bar(times: &Times, longest: u64) -> Markup {
    let width = |part: u64| format!("width:{:.2}%", percent(part, longest));
    html! {
        span.bar aria-hidden="true" {
            @for (part, class) in [
                (times.agent, "agent"), (times.orchestrator, "rest"), (times.unattributed, "unknown"),
            ] {
                @if part > 0 { span class=(class) style=(width(part)) {} }
            }
        }
    }
}

pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { (part as f64 * 100.0 / whole as f64).min(100.0) }
}

/// What the parts of bars mean.
pub(super) fn bar_key() -> Markup {
    html! {
        ul.key aria-label="What the bars show" {
            li { span.swatch.agent aria-hidden="true" {} " agent: start to return" }
            li { span.swatch.rest aria-hidden="true" {} " orchestrator: return to end" }
            li { span.swatch.unknown aria-hidden="true" {} " the agent did not report back" }
        }
    }
}

/// A duration in a cell.
pub(super) fn took(ms: u64) -> Markup {
    html! { @if ms == 0 { span.nil { "–" } } @else { (duration(ms).replace(' ', "\u{a0}")) } }
}

/// A bar of all statuses by their counts, the last status first; the counts stand in
/// words elsewhere.
pub(super) fn shares<'a>(counts: impl DoubleEndedIterator<Item = (&'a str, u64)> + Clone) -> Markup {
    let all: u64 = counts.clone().map(|(_, count)| count).sum();
    html! {
        span.shares aria-hidden="true" {
            @for (word, count) in counts.rev() {
                span class=(tone(word).name()) style={ "width:" (format!("{:.3}%", percent(count, all))) } {}
            }
        }
    }
}
