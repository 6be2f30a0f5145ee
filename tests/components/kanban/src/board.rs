//! The rules: columns in their order, limits, and where a card may go.

use crate::bindings::exports::loop_state::logic::model;

/// In board order.
pub const COLUMNS: [&str; 4] = ["todo", "doing", "review", "done"];

/// What a column without a limit has for one.
pub const UNLIMITED: &str = "none";

/// Which way a card goes, one column at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Way {
    Forward,
    Back,
}

/// A board with its cards, as it is stored.
pub struct Board<'a> {
    state: &'a model::LoopState,
}

impl<'a> Board<'a> {
    pub fn of(state: &'a model::LoopState) -> Self {
        Board { state }
    }

    pub fn name(&self) -> &'a str {
        &self.state.loop_.slug
    }

    pub fn is_closed(&self) -> bool {
        self.state.loop_.finished_at.is_some()
    }

    /// How many cards a column may hold.
    pub fn limit(&self, column: &str) -> Option<usize> {
        let stored = self.state.phases.iter().find(|phase| phase.phase == column)?;
        stored.status.parse().ok()
    }

    /// The cards of a column, in the order they were added.
    pub fn cards(&self, column: &str) -> impl Iterator<Item = &'a model::Task> {
        self.state.tasks.iter().filter(move |card| card.status == column)
    }

    /// Cards in columns that no board has.
    pub fn elsewhere(&self) -> impl Iterator<Item = &'a model::Task> {
        self.state.tasks.iter().filter(|card| !COLUMNS.contains(&card.status.as_str()))
    }

    pub fn card(&self, id: &str) -> Result<&'a model::Task, String> {
        let found = self.state.tasks.iter().find(|card| card.taskid.eq_ignore_ascii_case(id));
        found.ok_or_else(|| {
            format!("board {} has no card {id:?}; board_show lists the cards it has", self.name())
        })
    }

    /// Refuses what a closed board does not take.
    pub fn check_open(&self) -> Result<(), String> {
        if self.is_closed() {
            return Err(format!("board {} is closed; board_init under another name opens one", self.name()));
        }
        Ok(())
    }

    /// The column that a card comes to.
    pub fn next(&self, card: &model::Task, way: Way) -> Result<&'static str, String> {
        let (id, column) = (&card.taskid, &card.status);
        let at = COLUMNS.iter().position(|known| known == column);
        let at = at.ok_or_else(|| format!("card {id} is in {column}, which is no column of a board"))?;
        let to = match way {
            Way::Forward => COLUMNS.get(at + 1),
            Way::Back => at.checked_sub(1).map(|before| &COLUMNS[before]),
        };
        let to = *to.ok_or_else(|| match way {
            Way::Forward => format!("card {id} is in {column}, the last column; move it back or leave it"),
            Way::Back => format!("card {id} is in {column}, the first column; there is nothing before it"),
        })?;
        let held = self.cards(to).count();
        match self.limit(to) {
            Some(limit) if held >= limit => {
                let there: Vec<_> = self.cards(to).map(|card| card.taskid.as_str()).collect();
                Err(format!(
                    "{to} holds {held} of {limit} cards ({}); move one of them on before {id}",
                    there.join(", ")
                ))
            }
            _ => Ok(to),
        }
    }

    /// Refuses to close a board with cards that are not done.
    pub fn check_done(&self) -> Result<(), String> {
        let open: Vec<_> = self.state.tasks.iter().filter(|card| card.status != "done").collect();
        if open.is_empty() {
            return Ok(());
        }
        let open: Vec<_> = open.iter().map(|card| format!("{} in {}", card.taskid, card.status)).collect();
        Err(format!("board {} has cards that are not done: {}", self.name(), open.join(", ")))
    }
}
