//! Regular expressions as Rust's `regex` reads them, with a bound on what a hostile
//! one can cost.
//!
//! The crate `regex` cannot stop a search that takes too long, so this uses the
//! automata below it: a lazy DFA, linear in the text, that gives up when its cache
//! thrashes, and then a simulation whose steps are counted beforehand.

use regex_automata::hybrid::dfa::DFA;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Compiler, Config, NFA, WhichCaptures};
use regex_automata::util::syntax;
use regex_automata::{Input, hybrid};

/// The longest pattern, in bytes.
pub const MAX_PATTERN: usize = 2000;

/// How many bytes a compiled pattern may take.
const MAX_COMPILED: usize = 1 << 20;

/// How many bytes all patterns of a configuration may take when they are compiled.
pub const MAX_TOGETHER: usize = 16 << 20;

/// How deep a pattern may nest.
const MAX_NESTING: u32 = 100;

/// How many steps the simulations of one ruling may take together: a few seconds
/// inside the sandbox at the very worst.
pub const MAX_STEPS: usize = 200_000_000;

/// What the lazy DFA may keep, in bytes.
const CACHE: usize = 2 << 20;

/// How often the lazy DFA may start over before it gives up.
const CACHE_CLEARS: usize = 4;

/// A pattern that compiles.
#[derive(Debug)]
pub struct Pattern {
    nfa: NFA,
}

/// What a search says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Search {
    Found,
    NotFound,
    /// It would take longer than a check may.
    TooCostly,
}

impl Pattern {
    /// Compiles a pattern; the error says why not, in one line.
    pub fn new(pattern: &str) -> Result<Pattern, String> {
        if pattern.len() > MAX_PATTERN {
            return Err(format!("has {} bytes; a pattern has at most {MAX_PATTERN}", pattern.len()));
        }
        let syntax = syntax::Config::new().nest_limit(MAX_NESTING);
        let hir = syntax::parse_with(pattern, &syntax)
            .map_err(|error| format!("does not compile: {}", last_line(&error.to_string())))?;
        let config = Config::new()
            .nfa_size_limit(Some(MAX_COMPILED))
            .which_captures(WhichCaptures::None)
            .shrink(false);
        let nfa = Compiler::new().configure(config).build_from_hir(&hir).map_err(|error| {
            match error.size_limit() {
                Some(_) => format!("takes more than {} KiB when compiled", MAX_COMPILED >> 10),
                None => format!("does not compile: {}", last_line(&error.to_string())),
            }
        })?;
        Ok(Pattern { nfa })
    }

    /// The bytes that it takes.
    pub fn size(&self) -> usize {
        self.nfa.memory_usage()
    }

    /// Looks for the pattern anywhere in the text; `steps` is what is left of
    /// [`MAX_STEPS`].
    pub fn search(&self, text: &[u8], steps: &mut usize) -> Search {
        if let Some(found) = self.lazily(text) {
            return if found { Search::Found } else { Search::NotFound };
        }
        // As if every state were alive at every byte, which is the worst there is.
        let needed = text.len().saturating_mul(self.nfa.states().len());
        let Some(left) = steps.checked_sub(needed) else { return Search::TooCostly };
        *steps = left;
        let Ok(machine) = PikeVM::builder().build_from_nfa(self.nfa.clone()) else {
            return Search::TooCostly;
        };
        if machine.is_match(&mut machine.create_cache(), text) { Search::Found } else { Search::NotFound }
    }

    /// The lazy DFA's answer, unless it gives up or the pattern is not for it.
    fn lazily(&self, text: &[u8]) -> Option<bool> {
        let config = DFA::config()
            // Right for ASCII; it gives up where other text comes.
            .unicode_word_boundary(true)
            .cache_capacity(CACHE)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(CACHE_CLEARS));
        let dfa = DFA::builder().configure(config).build_from_nfa(self.nfa.clone()).ok()?;
        let mut cache = hybrid::dfa::Cache::new(&dfa);
        let found = dfa.try_search_fwd(&mut cache, &Input::new(text).earliest(true)).ok()?;
        Some(found.is_some())
    }
}

/// The sentence of a many-lined error: the rest of it draws the pattern.
fn last_line(error: &str) -> &str {
    let line = error.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or(error);
    line.strip_prefix("error: ").unwrap_or(line)
}
