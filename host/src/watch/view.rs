//! What is looked at, and what a key does about it.

use crate::report::{LoopRecords, Overview};

/// What there is to see.
#[derive(Clone, Debug)]
pub enum Shown {
    /// One loop.
    Loop(Box<LoopRecords>),
    /// The loops of the project.
    Overview(Overview),
    /// The loop was deleted or archived meanwhile.
    Gone(String),
}

/// A part of a loop's view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tab {
    /// Where it stands.
    #[default]
    Now,
    /// The tasks by status.
    Tasks,
    /// The tasks by the waves of their dependencies.
    Waves,
    /// The steps in time.
    Steps,
    /// What they took.
    Times,
    /// The timeline.
    Events,
    /// The lessons.
    Lessons,
    /// The goals.
    Goals,
}

impl Tab {
    /// All of them, in the order of their numbers.
    pub const ALL: [Tab; 8] =
        [Tab::Now, Tab::Tasks, Tab::Waves, Tab::Steps, Tab::Times, Tab::Events, Tab::Lessons, Tab::Goals];

    /// What it is called on the screen.
    pub fn title(self) -> &'static str {
        match self {
            Tab::Now => "Now",
            Tab::Tasks => "Tasks",
            Tab::Waves => "Waves",
            Tab::Steps => "Steps",
            Tab::Times => "Times",
            Tab::Events => "Events",
            Tab::Lessons => "Lessons",
            Tab::Goals => "Goals",
        }
    }

    fn place(self) -> usize {
        Tab::ALL.iter().position(|tab| *tab == self).unwrap_or(0)
    }
}

/// A key that means something here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// Ends it.
    Quit,
    /// One step back: to the list where there is one, else out.
    Back,
    /// Opens what is chosen.
    Enter,
    /// One line up.
    Up,
    /// One line down.
    Down,
    /// A screen up.
    PageUp,
    /// A screen down.
    PageDown,
    /// To the beginning.
    Home,
    /// To the end.
    End,
    /// The part before.
    Left,
    /// The next part.
    Right,
    /// A part by its number, from 1.
    Number(usize),
}

/// What follows from a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The view may have changed.
    Stay,
    /// It is over.
    Quit,
    /// The loop of this place in the list is wanted.
    Open(usize),
    /// The list is wanted.
    Back,
}

/// Which part is looked at, and from where.
#[derive(Clone, Copy, Debug, Default)]
pub struct View {
    /// The part of a loop.
    pub tab: Tab,
    /// The lines above the first one that is shown.
    pub scroll: usize,
    /// The place that is chosen in the list.
    pub chosen: usize,
    /// There is a list to go back to.
    pub from_list: bool,
}

impl View {
    /// Takes a key. `lines` is how many lines there are, `room` how many are seen.
    pub fn key(&mut self, key: Key, shown: &Shown, lines: usize, room: usize) -> Outcome {
        let last = lines.saturating_sub(room);
        match (key, shown) {
            (Key::Quit, _) => return Outcome::Quit,
            (Key::Back, _) => return if self.from_list { Outcome::Back } else { Outcome::Quit },
            (key, Shown::Overview(overview)) => return self.choose(key, overview.loops.len(), room),
            (Key::Left, _) => self.turn(Tab::ALL.len() - 1),
            (Key::Right | Key::Enter, _) => self.turn(1),
            (Key::Number(number), _) => {
                if let Some(tab) = number.checked_sub(1).and_then(|place| Tab::ALL.get(place)) {
                    (self.tab, self.scroll) = (*tab, 0);
                }
            }
            (Key::Up, _) => self.scroll = self.scroll.min(last).saturating_sub(1),
            (Key::Down, _) => self.scroll = (self.scroll + 1).min(last),
            (Key::PageUp, _) => self.scroll = self.scroll.min(last).saturating_sub(room.max(1)),
            (Key::PageDown, _) => self.scroll = (self.scroll + room.max(1)).min(last),
            (Key::Home, _) => self.scroll = 0,
            (Key::End, _) => self.scroll = last,
        }
        Outcome::Stay
    }

    fn turn(&mut self, by: usize) {
        self.tab = Tab::ALL[(self.tab.place() + by) % Tab::ALL.len()];
        self.scroll = 0;
    }

    fn choose(&mut self, key: Key, loops: usize, room: usize) -> Outcome {
        let last = loops.saturating_sub(1);
        self.chosen = match key {
            Key::Up => self.chosen.saturating_sub(1),
            Key::Down => self.chosen + 1,
            Key::PageUp => self.chosen.saturating_sub(room.max(1)),
            Key::PageDown => self.chosen + room.max(1),
            Key::Home => 0,
            Key::End => last,
            Key::Enter | Key::Right if loops > 0 => return Outcome::Open(self.chosen.min(last)),
            _ => self.chosen,
        }
        .min(last);
        Outcome::Stay
    }
}
