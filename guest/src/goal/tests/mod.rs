//! The goals feature without any host.

mod bindings;
mod configs;
mod gates;
mod hostile;
mod plans;
mod vectors;

use super::config::Config;
use super::evidence::{Evidence, FileFact};
use super::problem::Rejected;
use crate::digest::sha256;

/// Reads a configuration as the host hands it over.
pub(super) fn read(text: &[u8]) -> Result<Config, Rejected> {
    Config::read(text, &sha256(text))
}

/// A configuration that has to be right.
pub(super) fn config(text: &str) -> Config {
    read(text.as_bytes()).unwrap_or_else(|rejected| panic!("{rejected}\n{text}"))
}

/// The problems of a configuration, one a line.
pub(super) fn problems(text: &str) -> String {
    match read(text.as_bytes()) {
        Ok(_) => String::new(),
        Err(rejected) => rejected.to_string(),
    }
}

/// What a host finds at a path that holds this text.
pub(super) fn file(text: &str) -> FileFact {
    FileFact::File {
        bytes: text.len() as u64,
        sha256: sha256(text.as_bytes()),
        text: Some(text.as_bytes().to_vec()),
    }
}

/// What a host finds that has these files and no others.
pub(super) fn disk(config: &Config, target: &str, files: &[(&str, &str)]) -> Evidence {
    use super::evidence::{Need, needs};
    let mut evidence = Evidence::default();
    for need in needs(config, target) {
        let (Need::File { path } | Need::Text { path }) = need else { continue };
        let fact =
            files.iter().find(|(name, _)| *name == path).map_or(FileFact::Absent, |(_, text)| file(text));
        evidence.files.insert(path, fact);
    }
    evidence
}
