//! Digests of texts.

use sha2::{Digest, Sha256};

/// The SHA-256 of some bytes, in lower-case hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut hex = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        for nibble in [byte >> 4, byte & 0xf] {
            hex.push(char::from(DIGITS[usize::from(nibble)]));
        }
    }
    hex
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_digest_of_nothing() {
        // FIPS 180-4's example of the empty message.
        let expected = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(super::sha256(b""), expected);
    }
}
