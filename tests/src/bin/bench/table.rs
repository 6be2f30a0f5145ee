//! The tables: what was measured, against what, and whether that is good enough.
//!
//! They are Markdown whose columns are aligned, for people with and without a viewer.

use std::fmt;
use std::time::Duration;

/// What matters of many times.
#[derive(Clone, Copy)]
pub struct Spread {
    pub p50: Duration,
    pub p99: Duration,
}

impl Spread {
    /// Sorts out the times.
    pub fn of(mut times: Vec<Duration>) -> Spread {
        times.sort();
        let at = |share: usize| times[(times.len() * share / 100).min(times.len() - 1)];
        Spread { p50: at(50), p99: at(99) }
    }
}

/// One line of the table against the floor.
#[derive(Clone, Default)]
pub struct Row {
    what: String,
    measured: String,
    p99: String,
    floor: String,
    ratio: String,
    goal: String,
    verdict: String,
}

impl Row {
    /// A measurement that is no time.
    pub fn new(what: impl Into<String>, measured: String) -> Row {
        Row { what: what.into(), measured, ..Row::default() }
    }

    /// A time that many calls took.
    pub fn times(what: impl Into<String>, spread: Spread) -> Row {
        Row { p99: time(spread.p99), ..Row::new(what, time(spread.p50)) }
    }

    /// Adds a bound on the measurement, and whether it holds.
    pub fn goal(mut self, goal: impl Into<String>, holds: bool) -> Row {
        self.goal = goal.into();
        self.verdict = if holds { "met" } else { "MISSED" }.to_owned();
        self
    }

    /// Adds what it is compared with: the two as numbers, and the other as it reads.
    pub fn beside(mut self, measured: f64, floor: f64, reads: String) -> Row {
        self.floor = reads;
        self.ratio = format!("{:.2} ×", measured / floor);
        self
    }

    /// Adds a time that it is compared with.
    pub fn beside_time(self, measured: Duration, floor: Duration) -> Row {
        self.beside(measured.as_secs_f64(), floor.as_secs_f64(), time(floor))
    }

    /// Adds a time that it is compared with, and how many times as much it may be.
    pub fn floor(self, measured: Duration, floor: Duration, times: f64) -> Row {
        let holds = measured.as_secs_f64() / floor.as_secs_f64() <= times;
        self.beside_time(measured, floor).goal(format!("≤ {times} ×"), holds)
    }

    fn cells(&self) -> Vec<String> {
        let cells =
            [&self.what, &self.measured, &self.p99, &self.floor, &self.ratio, &self.goal, &self.verdict];
        cells.map(String::clone).to_vec()
    }
}

/// All lines, in the order they were added.
pub struct Table {
    head: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// The table against the floor.
    pub fn of_rows() -> Table {
        Table::new(&["", "p50, or size", "p99", "floor", "ratio", "goal", ""])
    }

    /// An empty table.
    pub fn new(head: &[&str]) -> Table {
        Table { head: head.iter().map(|cell| (*cell).to_owned()).collect(), rows: Vec::new() }
    }

    /// Adds a line of the table against the floor.
    pub fn add(&mut self, row: Row) {
        self.rows.push(row.cells());
    }

    /// Adds a line.
    pub fn line(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.head.len(), "{cells:?}");
        self.rows.push(cells);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = || std::iter::once(&self.head).chain(&self.rows);
        let mut widths = vec![3; self.head.len()];
        for line in lines() {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for (number, line) in lines().enumerate() {
            for (column, (cell, &width)) in line.iter().zip(&widths).enumerate() {
                match column {
                    0 => write!(f, "| {cell:<width$} |")?,
                    _ => write!(f, " {cell:>width$} |")?,
                }
            }
            writeln!(f)?;
            if number == 0 {
                for (column, width) in widths.iter().enumerate() {
                    match column {
                        0 => write!(f, "|-{:-<width$}-|", "")?,
                        _ => write!(f, "-{:-<width$}:|", "")?,
                    }
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// A time as people read it.
pub fn time(time: Duration) -> String {
    let micros = time.as_secs_f64() * 1e6;
    match micros {
        ..9_999.5 => format!("{micros:.0} µs"),
        ..999_950.0 => format!("{:.1} ms", micros / 1e3),
        _ => format!("{:.2} s", micros / 1e6),
    }
}

/// A number of bytes as people read it.
pub fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", bytes as f64 / 1e6)
}
