//! The contract as it is published: its files, and the examples of its README, which are
//! run as they stand there.

use std::path::{Path, PathBuf};

/// The example of `wit/README.md` whose code block begins with this line.
///
/// # Panics
///
/// When there is none.
#[must_use]
pub fn example(first_line: &str) -> String {
    let path = contract().join("README.md");
    let readme = std::fs::read_to_string(&path).expect("the contract's README");
    let blocks = readme.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let found = blocks.map(|(_, code)| code).find(|code| code.lines().next() == Some(first_line));
    found.unwrap_or_else(|| panic!("{} has no example {first_line:?}", path.display())).to_owned()
}

/// The folder `wit/`.
#[must_use]
pub fn contract() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")
}
