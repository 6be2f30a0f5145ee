//! SHA-256 in the form that is stored and shown.

use sha2::{Digest, Sha256};
use std::fmt::Write;

/// Returns the digest in 64 lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing into a string does not fail.
        let _ = write!(hex, "{byte:02x}");
    }
    hex
}
