//! Randomness that can be repeated: everything follows from one number, which is
//! told when the test that drew from it fails.

/// The variable that fixes the number.
const SEED: &str = "LOOP_STATE_SEED";

/// The variable that asks for the long runs.
const SOAK: &str = "LOOP_STATE_SOAK";

/// Returns `long` when `LOOP_STATE_SOAK` asks for the long runs, else `short`.
#[must_use]
pub fn rounds(short: u64, long: u64) -> u64 {
    if is_soak() { long } else { short }
}

fn is_soak() -> bool {
    std::env::var_os(SOAK).is_some_and(|value| !value.is_empty() && value != "0")
}

/// A source of random numbers (SplitMix64).
pub struct Chance {
    seed: u64,
    state: u64,
}

impl Chance {
    /// Starts from `LOOP_STATE_SEED`; without it, the long runs start elsewhere each
    /// time and the short ones always at the same number.
    #[must_use]
    pub fn new() -> Chance {
        let given = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let seed = given.unwrap_or_else(|| {
            let since = std::time::UNIX_EPOCH.elapsed().map_or(0, |d| d.as_nanos() as u64);
            if is_soak() { since } else { 1 }
        });
        Chance { seed, state: seed }
    }

    /// Another source that follows from this one.
    #[must_use]
    pub fn fork(&mut self) -> Chance {
        Chance { seed: self.seed, state: self.next() }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number from 0 to below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// One of the items, of which there is at least one.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }
}

impl Default for Chance {
    fn default() -> Chance {
        Chance::new()
    }
}

impl Drop for Chance {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to repeat this run: {SEED}={}", self.seed);
        }
    }
}
