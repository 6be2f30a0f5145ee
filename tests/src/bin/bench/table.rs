//! The table: what was measured, against what, and whether that is good enough.

use std::fmt;
use std::time::Duration;

/// One line.
#[derive(Clone)]
pub struct Row {
    cells: [String; 6],
}

impl Row {
    /// A measurement by itself.
    pub fn new(what: String, measured: String) -> Row {
        let none = String::new;
        Row { cells: [what, measured, none(), none(), none(), none()] }
    }

    /// Adds a bound on the measurement, and whether it holds.
    pub fn goal(mut self, goal: String, holds: bool) -> Row {
        self.cells[4] = goal;
        self.cells[5] = if holds { "met" } else { "MISSED" }.to_owned();
        self
    }

    /// Adds what it is compared with.
    pub fn beside(mut self, measured: Duration, floor: Duration) -> Row {
        self.cells[2] = format!("{} µs", floor.as_micros());
        self.cells[3] = format!("{:.2} ×", ratio(measured, floor));
        self
    }

    /// Adds what it is compared with, and how many times as much it may be.
    pub fn floor(self, measured: Duration, floor: Duration, times: f64) -> Row {
        let holds = ratio(measured, floor) <= times;
        self.beside(measured, floor).goal(format!("≤ {times} ×"), holds)
    }
}

fn ratio(measured: Duration, floor: Duration) -> f64 {
    measured.as_secs_f64() / floor.as_secs_f64()
}

/// All lines, in the order they were added.
#[derive(Default)]
pub struct Table {
    rows: Vec<Row>,
}

impl Table {
    /// Adds a line.
    pub fn add(&mut self, row: Row) {
        self.rows.push(row);
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["", "measured", "floor", "ratio", "goal", ""].map(str::to_owned);
        let lines = || std::iter::once(&head).chain(self.rows.iter().map(|row| &row.cells));
        let mut widths = [0; 6];
        for line in lines() {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for line in lines() {
            write!(f, "{:<width$}", line[0], width = widths[0])?;
            for (cell, width) in line.iter().zip(widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}
