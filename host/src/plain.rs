//! Text from users on a terminal: nothing in it acts on the terminal, hides, or
//! reorders its neighbours.
//!
//! What would do so is shown by a symbol, as the views show it, so that a person sees
//! the same in both places.

use std::fmt::Write;

use unicode_width::UnicodeWidthStr;

/// Whether a character is shown by a symbol: controls, line and paragraph separators,
/// direction marks, zero-width and filler characters, tags.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

fn push_symbol(out: &mut String, c: char) {
    match c {
        '\n' => out.push('⏎'),
        '\u{7f}' => out.push('␡'),
        // The block Control Pictures mirrors ASCII's controls.
        '\0'..='\u{1f}' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        c => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{{U+{:04X}}}", u32::from(c));
        }
    }
}

fn push(out: &mut String, text: &str) {
    for c in text.chars() {
        if is_hidden(c) { push_symbol(out, c) } else { out.push(c) }
    }
}

/// The text on one line.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push(&mut out, text);
    out
}

/// The text with its lines and tabs.
pub fn block(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (body, end) = match line.strip_suffix("\r\n").or_else(|| line.strip_suffix('\n')) {
            Some(body) => (body, "\n"),
            None => (line, ""),
        };
        for (i, part) in body.split('\t').enumerate() {
            if i > 0 {
                out.push('\t');
            }
            push(&mut out, part);
        }
        out.push_str(end);
    }
    out
}

/// The cells that a line takes on a terminal.
pub fn width(line: &str) -> usize {
    line.width()
}

/// Where to cut `line` so that what is before takes at most `room` cells.
///
/// Never between a character and what only changes how it looks.
pub fn cut(line: &str, room: usize) -> usize {
    let mut fits = 0;
    let mut last = 0;
    // A character takes two cells at most, and a run of those that take none is no text.
    for (at, c) in line.char_indices().take(room.saturating_mul(8).saturating_add(1)) {
        let end = at + c.len_utf8();
        let taken = line[..end].width();
        if taken > room {
            return last;
        }
        // What follows may still belong to the same picture, and change its width.
        if taken > fits || last == 0 {
            fits = taken;
        }
        let joins = c == '\u{200d}' || line[end..].starts_with(['\u{200d}', '\u{fe0f}', '\u{fe0e}']);
        if !joins {
            last = end;
        }
    }
    last
}

/// The line, or its beginning and `…` where it takes more than `room` cells.
pub fn fit(line: &str, room: usize) -> String {
    if width(line) <= room {
        return line.to_owned();
    }
    let mut shown = line[..cut(line, room.saturating_sub(1))].trim_end().to_owned();
    shown.push('…');
    shown
}

/// The line broken into lines of at most `room` cells, between words where that goes.
pub fn wrap(line: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut lines = Vec::new();
    let mut rest = line.trim_end();
    while width(rest) > room {
        // At least one character, however wide.
        let first = rest.chars().next().map_or(0, char::len_utf8);
        let end = cut(rest, room).max(first);
        let end = if rest[end..].starts_with(' ') {
            end
        } else {
            rest[..end].rfind(' ').filter(|at| !rest[..*at].trim().is_empty()).unwrap_or(end)
        };
        lines.push(rest[..end].trim_end().to_owned());
        rest = rest[end..].trim_start_matches(' ');
    }
    lines.push(rest.to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nothing_acts_on_the_terminal() {
        let table = [
            ("add_oauth v1.2 (fix)", "add_oauth v1.2 (fix)"),
            ("\u{1b}[2J\u{0}\u{7f}\u{9b}31m", "␛[2J␀␡{U+009B}31m"),
            ("one\r\ntwo\tthree", "one␍⏎two␉three"),
            ("a\u{202e}b\u{200b}c\u{2028}", "a{U+202E}b{U+200B}c{U+2028}"),
            ("Größe 👨‍👩‍👧 日本", "Größe 👨‍👩‍👧 日本"),
        ];
        for (text, shown) in table {
            assert_eq!(line(text), shown, "{text:?}");
        }
        assert_eq!(block("a\tb\r\n\u{1b}c\rd\n\ne"), "a\tb\n␛c␍d\n\ne");
    }

    #[test]
    fn lines_fit() {
        let table = [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("a b c", 3, "a…"),
        ];
        for (text, room, shown) in table {
            assert_eq!(fit(text, room), shown, "{text:?} {room}");
        }
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(wrap("", 3), [""]);
        assert_eq!(wrap("日本語", 2), ["日", "本", "語"]);
    }

    proptest! {
        #[test]
        fn no_text_breaks_a_line(text in "\\PC{0,40}|.{0,40}|(👨‍👩‍👧|❤️|a|日| |\u{301}){0,20}", room in 2_usize..30) {
            let shown = line(&text);
            prop_assert!(!shown.chars().any(is_hidden));
            prop_assert!(width(&fit(&shown, room)) <= room);
            for line in wrap(&shown, room) {
                prop_assert!(width(&line) <= room, "{line:?}");
            }
            let kept: String = wrap(&shown, room).concat().split_whitespace().collect();
            prop_assert_eq!(kept, shown.split_whitespace().collect::<String>());
        }
    }
}
