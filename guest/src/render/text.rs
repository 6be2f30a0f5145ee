//! The forms in which text from users may stand inside a page.
//!
//! Two of them: [`inline`] for text within a line and [`block`] for text that
//! keeps its lines. Either way a Markdown parser finds the text and nothing
//! else, and characters that would be invisible, reorder their neighbours or act
//! on a terminal are shown as symbols. Plain text such as `add_oauth v1.2 (fix)`
//! is left as it is, for pages are read raw as well.

use std::fmt::Write;

/// Whether a character is shown by a symbol wherever it stands.
///
/// Controls, line and paragraph separators, direction marks, zero-width and
/// filler characters, tags.
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}'
        | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{fffe}' | '\u{ffff}'
        | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// The two joiners: they shape emoji and several scripts.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{200c}' | '\u{200d}')
}

fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}')
}

/// Whether the character `c` at byte `at` of `text` is shown by a symbol.
///
/// Joiners and variation selectors have a use next to the characters they were
/// made for, and are left alone there; elsewhere they only disguise.
fn is_shown(text: &str, at: usize, c: char) -> bool {
    let visible = |c: &char| !is_hidden(*c) && !is_joiner(*c) && !c.is_whitespace();
    if is_joiner(c) {
        // No script below U+0600 joins.
        let joins = |c: Option<char>| c.filter(visible).is_some_and(|c| c >= '\u{600}');
        !joins(text[..at].chars().next_back()) || !joins(text[at + c.len_utf8()..].chars().next())
    } else if is_variation_selector(c) {
        let before = text[..at].chars().next_back().filter(visible);
        !before.is_some_and(|c| !is_variation_selector(c) && !c.is_ascii_alphabetic())
    } else {
        is_hidden(c)
    }
}

/// Appends the symbol of a character that is not to act as itself.
fn push_symbol(out: &mut String, c: char) {
    match c {
        '\n' => out.push('⏎'),
        '\u{7f}' => out.push('␡'),
        // The block Control Pictures mirrors ASCII's controls and blank.
        '\0'..=' ' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        c => {
            // Writing to a string cannot fail.
            let _ = write!(out, "{{U+{:04X}}}", u32::from(c));
        }
    }
}

/// What stands for a text that has nothing to see.
const BLANK: &str = "\"\"";

/// Appends user text as part of one line.
///
/// A CommonMark or GFM parser reads it as text and nothing else. The caller
/// puts it after words of its own on the line, and nothing but a blank, a comma,
/// a colon, `**` or the line's end after it. Blanks at the ends are shown; a text
/// of blanks alone is `""`.
pub(super) fn inline(out: &mut String, text: &str) {
    let core = text.trim();
    if core.is_empty() {
        out.push_str(BLANK);
        return;
    }
    let start = text.len() - text.trim_start().len();
    text[..start].chars().for_each(|c| push_symbol(out, c));
    Inline::new(core).push(out);
    text[start + core.len()..].chars().for_each(|c| push_symbol(out, c));
}

/// Appends user text as [`inline`] does, as the first thing in a list item.
pub(super) fn inline_first(out: &mut String, text: &str) {
    let start = out.len();
    inline(out, text);
    // Where the mark stands that would start a block inside the item.
    let written = &out.as_bytes()[start..];
    let digits = written.iter().take_while(|b| b.is_ascii_digit()).count();
    let mark: &[u8] = if digits == 0 { b"-+>#=" } else { b".)" };
    if written.get(digits).is_some_and(|b| mark.contains(b)) {
        out.insert(start + digits, '\\');
    }
}

/// Bytes at which [`Inline::push`] has to look closer.
const SPECIAL: [bool; 256] = {
    let mut special = [false; 256];
    let mut b = 0;
    while b < 256 {
        special[b] = b < 0x20 || b >= 0x7f;
        b += 1;
    }
    let marks = b"\\`*[<|~_&#:w";
    let mut i = 0;
    while i < marks.len() {
        special[marks[i] as usize] = true;
        i += 1;
    }
    special
};

/// One text on its way into a line; not blank at either end.
struct Inline<'a> {
    text: &'a str,
    bytes: &'a [u8],
    /// Where the `#`s start that would close a heading; the length if nowhere.
    closing: usize,
    /// The last backslash needed in the part scanned for it so far.
    last_escape: usize,
    /// Where that part ends.
    scanned: usize,
}

impl<'a> Inline<'a> {
    fn new(text: &'a str) -> Self {
        let head = text.trim_end_matches('#');
        Inline {
            text,
            bytes: text.as_bytes(),
            closing: if head.is_empty() || head.ends_with(' ') { head.len() } else { text.len() },
            last_escape: 0,
            scanned: 0,
        }
    }

    fn push(mut self, out: &mut String) {
        let mut plain = 0;
        let mut at = 0;
        while let Some(&b) = self.bytes.get(at) {
            if !SPECIAL[usize::from(b)] {
                at += 1;
                continue;
            }
            if !(0x20..0x7f).contains(&b) {
                let Some(c) = self.text[at..].chars().next() else {
                    break;
                };
                let next = at + c.len_utf8();
                if is_shown(self.text, at, c) {
                    out.push_str(&self.text[plain..at]);
                    push_symbol(out, c);
                    plain = next;
                }
                at = next;
                continue;
            }
            // The byte before which a backslash goes, if any.
            let escape = match b {
                b':' if self.bytes[at..].starts_with(b"://") && self.breaks_link(at) => Some(at),
                b'w' if self.bytes[at..].starts_with(b"www.") && self.breaks_link(at) => Some(at + 3),
                _ if self.needs_escape(at) => Some(at),
                _ => None,
            };
            if let Some(mark) = escape {
                out.push_str(&self.text[plain..mark]);
                out.push('\\');
                plain = mark;
                at = mark;
            }
            at += 1;
        }
        out.push_str(&self.text[plain..]);
    }

    /// Whether the ASCII character at `at` could start or end a construct.
    fn needs_escape(&self, at: usize) -> bool {
        let next = self.bytes.get(at + 1).copied();
        match self.bytes[at] {
            b'`' | b'*' | b'[' | b'|' | b'~' => true,
            // A backslash is itself unless punctuation follows, in the text or
            // in what stands for a hidden character.
            b'\\' => !next.is_some_and(|b| b.is_ascii_alphanumeric() || b == b' '),
            b'<' => next != Some(b' '),
            // Only inside a word is it certain that no emphasis starts or ends.
            // Beyond ASCII, parsers differ in what belongs to a word.
            b'_' => {
                let before = at.checked_sub(1).map(|before| self.bytes[before]);
                !(before.is_some_and(|b| b.is_ascii_alphanumeric())
                    && next.is_some_and(|b| b.is_ascii_alphanumeric()))
            }
            b'&' => starts_entity(&self.bytes[at + 1..]),
            b'#' => at >= self.closing,
            _ => false,
        }
    }

    /// Whether an address starting at `at` must not become a link by itself.
    ///
    /// GFM links bare addresses and shows what it linked as it stands in the
    /// source, so that a backslash in it would be seen. Such an address is
    /// broken by one more backslash; others stay links.
    fn breaks_link(&mut self, at: usize) -> bool {
        if at >= self.scanned {
            let length = self.bytes[at..].iter().position(|b| *b == b' ');
            self.scanned = length.map_or(self.bytes.len(), |length| at + length);
            self.last_escape = (at..self.scanned).rfind(|at| self.needs_escape(*at)).unwrap_or(0);
        }
        self.last_escape > at
    }
}

/// Whether a `&` before this is the start of a character reference.
fn starts_entity(rest: &[u8]) -> bool {
    // The longest name has 31 letters.
    let body = &rest[usize::from(rest.first() == Some(&b'#'))..];
    let length = body.iter().take(40).take_while(|b| b.is_ascii_alphanumeric()).count();
    length > 0 && body.get(length) == Some(&b';')
}

/// Appends user text as a fenced block, each line after `indent`.
///
/// A fence longer than any run of backticks inside keeps every line as it was
/// written, without escapes to read around. Hidden characters are shown, except
/// tabs and the ends of lines (`\n` or `\r\n`). A text of blanks alone is `""`.
pub(super) fn block(out: &mut String, indent: &str, text: &str) {
    let text = if text.trim().is_empty() { BLANK } else { text };
    let fence = text.split(|c| c != '`').map(str::len).max().unwrap_or(0).max(2) + 1;
    let push_fence = |out: &mut String| {
        out.push_str(indent);
        out.extend(std::iter::repeat_n('`', fence));
        out.push('\n');
    };
    push_fence(out);
    for line in text.split_inclusive('\n').chain(text.ends_with('\n').then_some("")) {
        let line = line.strip_suffix("\r\n").or(line.strip_suffix('\n')).unwrap_or(line);
        if !line.is_empty() {
            out.push_str(indent);
            push_line(out, line);
        }
        out.push('\n');
    }
    push_fence(out);
}

/// Appends one line of a block.
fn push_line(out: &mut String, line: &str) {
    let mut plain = 0;
    for (at, c) in line.char_indices() {
        if c != '\t' && is_shown(line, at, c) {
            out.push_str(&line[plain..at]);
            push_symbol(out, c);
            plain = at + c.len_utf8();
        }
    }
    out.push_str(&line[plain..]);
}

#[cfg(test)]
mod tests {
    use super::{block, inline, inline_first};

    /// What stands in the file, for texts that people write and texts that
    /// attack; that a parser reads the visible form back is a property.
    #[test]
    fn inline_stays_readable() {
        for (text, raw) in [
            ("add_oauth v1.2 (fix)", "add_oauth v1.2 (fix)"),
            ("fixes #12, see a-b + c = d!", "fixes #12, see a-b + c = d!"),
            ("C:\\dir\\x", "C:\\dir\\x"),
            ("R&D; a < b && c > d", "R\\&D; a < b && c > d"),
            ("Größe größer", "Größe größer"),
            ("https://a.b/c_d?e=1&f=2", "https://a.b/c_d?e=1&f=2"),
            ("https://a.b/c*", "https\\://a.b/c\\*"),
            ("www.a.b/~c", "www\\.a.b/\\~c"),
            ("a | b | c", "a \\| b \\| c"),
            ("x \\| y", "x \\\\\\| y"),
            ("ends with \\", "ends with \\\\"),
            ("`a|b`", "\\`a\\|b\\`"),
            ("one\ntwo\r\nthree\rfour", "one⏎two␍⏎three␍four"),
            ("- [x] done", "- \\[x] done"),
            ("__init__", "\\_\\_init\\_\\_"),
            ("<b> &amp; <!--", "\\<b> \\&amp; \\<!--"),
            ("title ##", "title \\#\\#"),
            ("##", "\\#\\#"),
            ("C#", "C#"),
            (" a  b ", "␠a  b␠"),
            ("", "\"\""),
            (" \n\t\u{3000}", "\"\""),
            ("\u{1b}[2J\u{0}\u{7f}\u{9b}", "␛\\[2J␀␡{U+009B}"),
            ("a\u{202e}b\u{200b}c", "a{U+202E}b{U+200B}c"),
            ("👨‍👩‍👧 🇨🇿 ❤️", "👨‍👩‍👧 🇨🇿 ❤️"),
            ("ad\u{200d}min\u{fe0f}", "ad{U+200D}min{U+FE0F}"),
        ] {
            let mut out = String::new();
            inline(&mut out, text);
            assert_eq!(out, raw, "{text:?}");
        }
    }

    #[test]
    fn nothing_starts_a_block_inside_an_item() {
        for (text, raw) in [
            ("build", "build"),
            ("2fa", "2fa"),
            ("- x", "\\- x"),
            ("> x", "\\> x"),
            ("# x", "\\# x"),
            ("##", "\\#\\#"),
            ("1. x", "1\\. x"),
            ("12) x", "12\\) x"),
        ] {
            let mut out = "- ".to_owned();
            inline_first(&mut out, text);
            assert_eq!(out, format!("- {raw}"), "{text:?}");
        }
    }

    #[test]
    fn blocks_keep_their_lines() {
        for (text, raw) in [
            ("one\n  two\n\nthree", "  ```\n  one\n    two\n\n  three\n  ```\n"),
            ("```sh\nx\n````", "  `````\n  ```sh\n  x\n  ````\n  `````\n"),
            ("a\r\nb\rc\n", "  ```\n  a\n  b␍c\n\n  ```\n"),
            ("\ta\u{1b}", "  ```\n  \ta␛\n  ```\n"),
            (" \n", "  ```\n  \"\"\n  ```\n"),
        ] {
            let mut out = String::new();
            block(&mut out, "  ", text);
            assert_eq!(out, raw, "{text:?}");
        }
    }
}
