//! What a command prints for people: lines, fields and tables that fit the terminal.

use serde_json::Value;

use super::plain;

/// Cells between two columns.
const GAP: &str = "  ";

/// The fewest cells that a column of free text is squeezed into.
const SQUEEZED: usize = 10;

/// A page under construction.
#[derive(Debug, Default)]
pub struct Page {
    parts: Vec<Part>,
}

#[derive(Debug)]
enum Part {
    Line(String),
    Fields(Vec<(String, String)>),
    Table(Table),
}

impl Page {
    /// A page of one line.
    pub fn of(line: impl AsRef<str>) -> Page {
        Page::default().line(line)
    }

    /// Adds a line; wrapped where it is too long.
    pub fn line(mut self, line: impl AsRef<str>) -> Page {
        self.parts.push(Part::Line(plain::line(line.as_ref())));
        self
    }

    /// Adds names and values, one a line.
    pub fn fields(mut self, fields: impl IntoIterator<Item = (impl Into<String>, String)>) -> Page {
        let fields = fields.into_iter().map(|(name, value)| (name.into(), plain::line(&value)));
        self.parts.push(Part::Fields(fields.collect()));
        self
    }

    /// Adds a table, or `otherwise` when it has no rows.
    pub fn table(mut self, table: Table, otherwise: &str) -> Page {
        if table.rows.is_empty() {
            return self.line(otherwise);
        }
        self.parts.push(Part::Table(table));
        self
    }

    /// The page for a terminal of `room` columns; without a limit for `None`.
    pub fn render(&self, room: Option<usize>) -> String {
        let room = room.map(|room| room.max(20));
        let mut lines = Vec::new();
        for part in &self.parts {
            match part {
                Part::Line(line) => lines.extend(wrapped(line, room)),
                Part::Fields(fields) => push_fields(&mut lines, fields, room),
                Part::Table(table) => table.push(&mut lines, room),
            }
        }
        let mut out = String::new();
        for line in lines {
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

fn wrapped(line: &str, room: Option<usize>) -> Vec<String> {
    match room {
        Some(room) => plain::wrap(line, room),
        None => vec![line.to_owned()],
    }
}

/// Names in a column of their own, values beside them, or below where it is narrow.
fn push_fields(lines: &mut Vec<String>, fields: &[(String, String)], room: Option<usize>) {
    let names = fields.iter().map(|(name, _)| plain::width(name)).max().unwrap_or(0);
    for (name, value) in fields {
        let beside = names + GAP.len();
        let left = room.map(|room| room.saturating_sub(beside));
        if left.is_some_and(|left| left < plain::width(value).min(2 * SQUEEZED)) {
            lines.push(name.clone());
            let values = wrapped(value, room.map(|room| room.saturating_sub(GAP.len())));
            lines.extend(values.iter().map(|line| format!("{GAP}{line}")));
            continue;
        }
        for (i, line) in wrapped(value, left).iter().enumerate() {
            lines.push(if i == 0 { padded(name, beside, false) + line } else { " ".repeat(beside) + line });
        }
    }
}

fn padded(text: &str, room: usize, right: bool) -> String {
    let pad = " ".repeat(room.saturating_sub(plain::width(text)));
    if right { pad + text } else { text.to_owned() + &pad }
}

/// How a column takes its room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// As wide as its widest cell: names to be copied.
    Whole(&'static str),
    /// Free text, cut where there is no room.
    Text(&'static str),
    /// Numbers, to the right.
    Number(&'static str),
}

impl Column {
    fn title(self) -> &'static str {
        let (Column::Whole(title) | Column::Text(title) | Column::Number(title)) = self;
        title
    }
}

/// Rows under titles; where they cannot be made to fit, each row as fields.
#[derive(Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table without rows.
    pub fn new(columns: &[Column]) -> Table {
        Table { columns: columns.to_vec(), rows: Vec::new() }
    }

    /// Adds a row; a cell for each column.
    pub fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().map(|cell| plain::line(&cell)).collect());
    }

    /// The same without the columns that no row fills.
    pub fn without_empty(self) -> Table {
        let Table { columns, rows } = self;
        let filled = |i: &usize| rows.iter().any(|row| row.get(*i).is_some_and(|cell| !cell.is_empty()));
        let kept: Vec<usize> = (0..columns.len()).filter(filled).collect();
        let keep = |row: Vec<String>| -> Vec<String> {
            let filled = row.into_iter().enumerate().filter(|(i, _)| kept.contains(i));
            filled.map(|(_, cell)| cell).collect()
        };
        Table {
            columns: kept.iter().filter_map(|i| columns.get(*i).copied()).collect(),
            rows: rows.into_iter().map(keep).collect(),
        }
    }

    /// How wide each column is drawn; `None` when they do not fit.
    fn widths(&self, room: Option<usize>) -> Option<Vec<usize>> {
        let cells = |i: usize| self.rows.iter().filter_map(move |row| row.get(i));
        let mut widths: Vec<usize> = (self.columns.iter().enumerate())
            .map(|(i, column)| {
                let cells = cells(i).map(|cell| plain::width(cell));
                cells.chain([plain::width(column.title())]).max().unwrap_or(0)
            })
            .collect();
        let Some(room) = room else { return Some(widths) };
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let mut over = (widths.iter().sum::<usize>() + gaps).saturating_sub(room);
        while over > 0 {
            // The widest of those that can give way.
            let least = |column: &Column| SQUEEZED.max(plain::width(column.title()));
            let (_, width) = (self.columns.iter().zip(&mut widths))
                .filter(|(column, width)| matches!(column, Column::Text(_)) && **width > least(column))
                .max_by_key(|(_, width)| **width)?;
            *width -= 1;
            over -= 1;
        }
        Some(widths)
    }

    fn push(&self, lines: &mut Vec<String>, room: Option<usize>) {
        let Some(widths) = self.widths(room) else {
            for (i, row) in self.rows.iter().enumerate() {
                if i > 0 {
                    lines.push(String::new());
                }
                let filled = self.columns.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
                let fields: Vec<_> =
                    filled.map(|(column, cell)| (column.title().to_lowercase(), cell.clone())).collect();
                push_fields(lines, &fields, room);
            }
            return;
        };
        let titles = self.columns.iter().map(|column| column.title().to_owned()).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            let cells = self.columns.iter().zip(row).zip(&widths).map(|((column, cell), width)| {
                padded(&plain::fit(cell, *width), *width, matches!(column, Column::Number(_)))
            });
            lines.push(cells.collect::<Vec<_>>().join(GAP));
        }
    }
}

/// A value of an answer as one reads it.
pub fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::Bool(on) => if *on { "yes" } else { "no" }.to_owned(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => minutes(text).unwrap_or_else(|| text.clone()),
        Value::Array(items) => items.iter().map(cell).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            let entries: Vec<_> = map.iter().map(|(key, value)| format!("{key} {}", cell(value))).collect();
            entries.join(", ")
        }
    }
}

/// A time of an answer, `2026-11-30T19:05:07.123Z`, up to its minutes; `None` for any
/// other text.
fn minutes(text: &str) -> Option<String> {
    const SHAPE: &[u8] = b"0000-00-00T00:00:00.000Z";
    let bytes = text.as_bytes();
    let shaped =
        |(byte, shape): (&u8, &u8)| if *shape == b'0' { byte.is_ascii_digit() } else { byte == shape };
    (bytes.len() == SHAPE.len() && bytes.iter().zip(SHAPE).all(shaped)).then(|| format!("{}Z", &text[..16]))
}

/// A number of bytes as one reads it.
pub fn size(value: &Value) -> String {
    let Some(bytes) = value.as_u64() else { return cell(value) };
    let units = ["B", "KiB", "MiB", "GiB"];
    let mut unit = 0;
    let mut shown = bytes as f64;
    while shown >= 1_024.0 && unit + 1 < units.len() {
        shown /= 1_024.0;
        unit += 1;
    }
    if unit == 0 { format!("{bytes} B") } else { format!("{shown:.1} {}", units[unit]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn sample() -> Table {
        let mut table = Table::new(&[Column::Whole("SLUG"), Column::Number("TASKS"), Column::Text("TITLE")]);
        table.row(["demo".to_owned(), "3".to_owned(), "a title that is rather long".to_owned()]);
        table.row(["wide-日本".to_owned(), "12".to_owned(), "\u{1b}[31m".to_owned()]);
        table
    }

    #[test]
    fn tables_give_way() {
        let table: &[(Option<usize>, &str)] = &[
            (
                None,
                "SLUG       TASKS  TITLE\n\
                 demo           3  a title that is rather long\n\
                 wide-日本     12  ␛[31m\n",
            ),
            (
                Some(30),
                "SLUG       TASKS  TITLE\n\
                 demo           3  a title tha…\n\
                 wide-日本     12  ␛[31m\n",
            ),
            (
                Some(20),
                "slug   demo\n\
                 tasks  3\n\
                 title\n\
                 \x20 a title that is\n\
                 \x20 rather long\n\
                 \n\
                 slug   wide-日本\n\
                 tasks  12\n\
                 title  ␛[31m\n",
            ),
        ];
        for (room, shown) in table {
            assert_eq!(Page::default().table(sample(), "none").render(*room), *shown, "{room:?}");
        }
        let empty = Table::new(&[Column::Text("TITLE")]);
        assert_eq!(Page::default().table(empty, "nothing here").render(None), "nothing here\n");
    }

    #[test]
    fn values_read_well() {
        let table = [
            (json!(null), ""),
            (json!(true), "yes"),
            (json!("2026-11-30T19:05:07.123Z"), "2026-11-30T19:05Z"),
            (json!("2026-11-30T19:05:07.123+"), "2026-11-30T19:05:07.123+"),
            (json!(["a", 1]), "a, 1"),
            (json!({ "a": 1, "b": "c" }), "a 1, b c"),
        ];
        for (value, shown) in table {
            assert_eq!(cell(&value), shown);
        }
        for (bytes, shown) in [(0, "0 B"), (1_023, "1023 B"), (1_536, "1.5 KiB"), (5_u64 << 30, "5.0 GiB")] {
            assert_eq!(size(&json!(bytes)), shown);
        }
    }

    proptest! {
        #[test]
        fn every_line_fits(cells in proptest::collection::vec(".{0,60}", 3), room in 20_usize..120) {
            let mut table = sample();
            table.row(cells.clone());
            let fields = cells.iter().map(|cell| ("name", cell.clone()));
            let page = Page::of(&cells[0]).fields(fields).table(table, "none").render(Some(room));
            for line in page.lines() {
                prop_assert!(plain::width(line) <= room, "{line:?}");
            }
        }
    }
}
