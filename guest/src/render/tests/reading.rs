//! What parsers find in a page, and the visible form of a text.

use markdown::mdast::Node;
use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag, TagEnd};
use saphyr::{LoadableYamlNode, Yaml};

/// One block of a page. Bold text stands between U+0001 and U+0002, which no
/// visible text contains.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    Heading(usize, String),
    Paragraph(String),
    Quote(String),
    Item(Option<bool>, String),
    /// A fenced block, always inside a list item.
    Code(String),
}

pub fn bold(text: &str) -> String {
    format!("\u{1}{text}\u{2}")
}

/// Splits a page into its header's pairs, as a YAML parser reads them, and the
/// Markdown after it.
pub fn header(page: &str) -> (Vec<(String, String)>, &str) {
    let rest = page.strip_prefix("---\n").expect("a header");
    let (head, body) = rest.split_once("\n---\n").expect("a closed header");
    let docs = Yaml::load_from_str(head).expect("YAML");
    assert_eq!(docs.len(), 1, "{head}");
    let pairs = docs[0].as_mapping().expect("a mapping").iter();
    let string = |value: &Yaml| value.as_str().expect("a string").to_owned();
    (pairs.map(|(key, value)| (string(key), string(value))).collect(), body)
}

/// Reads a body with pulldown-cmark and refuses whatever our pages do not use.
pub fn with_pulldown(body: &str) -> Vec<Found> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_FOOTNOTES;
    let mut found = Vec::new();
    let mut text = String::new();
    let mut tick = None;
    let (mut quoted, mut item) = (false, false);
    for event in Parser::new_ext(body, options) {
        match event {
            Event::Start(Tag::Heading { id: None, .. } | Tag::Paragraph | Tag::List(None)) => {}
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) if info.is_empty() && item => {
                text.clear();
            }
            Event::Start(Tag::BlockQuote(None)) => quoted = true,
            Event::Start(Tag::Item) => item = true,
            Event::Start(Tag::Strong) => text.push('\u{1}'),
            Event::End(TagEnd::Strong) => text.push('\u{2}'),
            Event::Text(piece) => text.push_str(&piece),
            Event::TaskListMarker(ticked) => tick = Some(ticked),
            Event::End(TagEnd::Heading(level)) => {
                found.push(Found::Heading(level as usize, std::mem::take(&mut text)));
            }
            Event::End(TagEnd::Paragraph) => {
                let text = std::mem::take(&mut text);
                found.push(match (quoted, item) {
                    (true, false) => Found::Quote(text),
                    (false, true) => Found::Item(tick.take(), text),
                    (false, false) => Found::Paragraph(text),
                    (true, true) => panic!("a quote in a list: {text}"),
                });
            }
            Event::End(TagEnd::Item) => {
                if !text.is_empty() {
                    found.push(Found::Item(tick.take(), std::mem::take(&mut text)));
                }
                item = false;
            }
            Event::End(TagEnd::CodeBlock) => found.push(Found::Code(std::mem::take(&mut text))),
            Event::End(TagEnd::BlockQuote(None)) => quoted = false,
            Event::End(TagEnd::List(false)) => {}
            other => panic!("{other:?} in\n{body}"),
        }
    }
    found
}

/// Reads a body with another parser and all of GFM, bare links included.
pub fn with_gfm(body: &str) -> Vec<Found> {
    let root = markdown::to_mdast(body, &markdown::ParseOptions::gfm()).expect("Markdown has no errors");
    let mut found = Vec::new();
    blocks(&root, &mut found);
    found
}

fn blocks(parent: &Node, found: &mut Vec<Found>) {
    for node in parent.children().into_iter().flatten() {
        match node {
            Node::Heading(heading) => found.push(Found::Heading(heading.depth.into(), inlines(node))),
            Node::Paragraph(_) => found.push(match parent {
                Node::Blockquote(_) => Found::Quote(inlines(node)),
                Node::ListItem(item) => Found::Item(item.checked, inlines(node)),
                _ => Found::Paragraph(inlines(node)),
            }),
            Node::Code(code) => {
                assert!(code.lang.is_none() && code.meta.is_none(), "{code:?}");
                found.push(Found::Code(format!("{}\n", code.value)));
            }
            Node::List(list) => {
                assert!(!list.ordered);
                blocks(node, found);
            }
            Node::Blockquote(_) | Node::ListItem(_) => blocks(node, found),
            other => panic!("unexpected {other:?}"),
        }
    }
}

fn inlines(node: &Node) -> String {
    let mut text = String::new();
    for child in node.children().into_iter().flatten() {
        match child {
            Node::Text(piece) => text.push_str(&piece.value),
            Node::Strong(_) => text.push_str(&bold(&inlines(child))),
            // A bare address may be a link, as long as it shows itself.
            Node::Link(link) => {
                let shown = inlines(child);
                assert!(link.url.ends_with(&shown), "{link:?} shows {shown}");
                text.push_str(&shown);
            }
            other => panic!("unexpected {other:?}"),
        }
    }
    text
}

/// The visible form of a text within a line, stated anew as a plain rule a
/// character.
pub fn visible(text: &str) -> String {
    if text.chars().all(char::is_whitespace) {
        return "\"\"".to_owned();
    }
    let chars: Vec<char> = text.chars().collect();
    let first = chars.iter().position(|c| !c.is_whitespace()).unwrap();
    let last = chars.iter().rposition(|c| !c.is_whitespace()).unwrap();
    let shown = |place: usize| {
        let c = chars[place];
        if c.is_whitespace() && !(first..=last).contains(&place) {
            symbol(c)
        } else {
            in_context(&chars, place)
        }
    };
    (0..chars.len()).map(shown).collect()
}

/// The visible form of the lines of a text.
pub fn visible_lines(text: &str) -> String {
    if text.chars().all(char::is_whitespace) {
        return "\"\"\n".to_owned();
    }
    let text = text.replace("\r\n", "\n");
    let line = |line: &str| {
        let chars: Vec<char> = line.chars().collect();
        let shown = |place: usize| {
            if chars[place] == '\t' { "\t".to_owned() } else { in_context(&chars, place) }
        };
        (0..chars.len()).map(shown).collect::<String>() + "\n"
    };
    text.split('\n').map(line).collect()
}

fn symbol(c: char) -> String {
    match c {
        ' ' => "␠".to_owned(),
        '\n' => "⏎".to_owned(),
        '\u{7f}' => "␡".to_owned(),
        c if c < ' ' => char::from_u32(0x2400 + c as u32).unwrap().to_string(),
        c => format!("{{U+{:04X}}}", c as u32),
    }
}

fn in_context(chars: &[char], place: usize) -> String {
    let c = chars[place];
    let neighbour = |place: Option<usize>| {
        place.and_then(|place| chars.get(place)).copied().filter(|c| {
            !c.is_whitespace()
                && !crate::render::text::is_hidden(*c)
                && !('\u{200c}'..='\u{200d}').contains(c)
        })
    };
    let before = neighbour(place.checked_sub(1));
    let keep = match c {
        '\u{200c}' | '\u{200d}' => before >= Some('\u{600}') && neighbour(Some(place + 1)) >= Some('\u{600}'),
        '\u{fe00}'..='\u{fe0f}' => {
            before.is_some_and(|c| !('\u{fe00}'..='\u{fe0f}').contains(&c) && !c.is_ascii_alphabetic())
        }
        c => !crate::render::text::is_hidden(c),
    };
    if keep { c.to_string() } else { symbol(c) }
}
