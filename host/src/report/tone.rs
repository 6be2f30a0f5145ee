//! How a status looks.

/// The look of a word. It is always shown beside the word, never in place of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// Nothing about it stands out.
    Plain,
    /// Something goes on.
    Active,
    /// It waits for someone.
    Waiting,
    /// It came out well.
    Good,
    /// It came out badly.
    Bad,
    /// It is set aside.
    Aside,
}

impl Tone {
    /// A name for style sheets.
    pub fn name(self) -> &'static str {
        match self {
            Tone::Plain => "plain",
            Tone::Active => "active",
            Tone::Waiting => "waiting",
            Tone::Good => "good",
            Tone::Bad => "bad",
            Tone::Aside => "aside",
        }
    }

    /// A sign of one cell, for those who do not see colours.
    pub fn sign(self) -> char {
        match self {
            Tone::Plain => '○',
            Tone::Active => '●',
            Tone::Waiting => '◆',
            Tone::Good => '✓',
            Tone::Bad => '✗',
            Tone::Aside => '–',
        }
    }

    /// Whether nothing is left to do about it.
    pub fn is_closed(self) -> bool {
        matches!(self, Tone::Good | Tone::Aside)
    }
}

/// The words that are common enough to have a look of their own.
///
/// A replaced logic may use others: they look plain, and nothing else depends on it.
const WORDS: &[(Tone, &[&str])] = &[
    (Tone::Good, &["complete", "completed", "done", "finished", "passed", "satisfied"]),
    (Tone::Bad, &["failed", "blocked", "rejected", "failure"]),
    (Tone::Waiting, &["changes-requested", "in-review", "review", "waiting", "paused"]),
    (
        Tone::Active,
        &[
            "active",
            "in-progress",
            "doing",
            "running",
            "issue-open",
            "verified",
            "secure",
            "pr-open",
            "merged",
        ],
    ),
    (Tone::Aside, &["skipped", "left-open", "superseded", "aborted", "not-needed", "cancelled", "deferred"]),
];

/// The look of a status.
pub fn tone(word: &str) -> Tone {
    WORDS.iter().find(|(_, words)| words.contains(&word)).map_or(Tone::Plain, |(tone, _)| *tone)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::logic::Logic;

    /// The words are the built-in logic's to change; whoever does is told here.
    #[test]
    fn every_status_of_the_built_in_logic_has_a_look() {
        let tools = Logic::embedded().tools().expect("it answers");
        let mut seen = 0;
        for tool in ["task_setStatus", "loop_setPhaseStatus", "loop_finish"] {
            let tool = tools.iter().find(|found| found.name == tool).expect("it is there");
            let schema: Value = serde_json::from_str(&tool.input_schema).expect("a schema");
            for word in schema["properties"]["status"]["enum"].as_array().expect("a closed set") {
                let word = word.as_str().expect("text");
                // What has not begun yet does not stand out.
                assert_eq!(tone(word) == Tone::Plain, word == "pending", "{word}");
                seen += 1;
            }
        }
        assert!(seen > 10, "{seen} words");
    }
}
