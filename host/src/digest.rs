//! Digests of contents.

use sha2::{Digest as _, Sha256};

/// Returns the SHA-256 of a content in lower-case hexadecimal digits.
pub fn digest(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// Returns bytes in lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
