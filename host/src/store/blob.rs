//! Contents as they are stored: gzipped, with length and digest of what went in.

use std::io::{Read as _, Write as _};

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use thiserror::Error;

use crate::digest::digest;

/// The longest file that is stored or read back, in bytes: a wall behind what a logic allows.
pub const FILE_MAX: u64 = 64 << 20;

/// The longest content of any kind, in bytes: what SQLite holds in one value.
pub(super) const CONTENT_MAX: u64 = 1_000_000_000;

/// A content, packed for the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed {
    /// Length of the content.
    pub bytes: u64,
    /// Of the content, in lower-case hexadecimal digits.
    pub sha256: String,
    /// The content as one gzip member.
    pub gzip: Vec<u8>,
}

/// Why stored bytes are not the content that they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BlobFault {
    /// A length that nothing here is stored with.
    #[error("it is said to have {0} bytes, which is more than anything stored has")]
    Oversized(u64),
    /// The bytes cannot be decompressed.
    #[error("it is not a gzip stream")]
    NotGzip,
    /// More comes out than was stored.
    #[error("it has more than the recorded {0} bytes")]
    Longer(u64),
    /// Less comes out than was stored.
    #[error("it has {found} bytes, and {recorded} are recorded")]
    Shorter {
        /// What came out.
        found: u64,
        /// What should.
        recorded: u64,
    },
    /// Something follows the content.
    #[error("something follows its gzip stream")]
    Trailing,
    /// The bytes are others than were stored.
    #[error("its SHA-256 is not the recorded one")]
    Digest,
    /// A text that is none.
    #[error("it is not UTF-8 text")]
    NotText,
}

/// Packs a content; equal contents give equal bytes.
pub fn pack(content: &[u8]) -> Packed {
    // Neither time nor platform goes into the header.
    let mut encoder = GzBuilder::new().operating_system(255).write(Vec::new(), Compression::default());
    let packed = encoder.write_all(content).and_then(|()| encoder.finish());
    Packed {
        bytes: u64::try_from(content.len()).unwrap_or(u64::MAX),
        sha256: digest(content),
        gzip: packed.expect("memory takes every write"),
    }
}

/// Returns the content that was packed, after comparing it with its length and digest.
///
/// Never holds more than `bytes` and one, whatever the stream would become.
///
/// # Errors
/// Whatever differs.
pub fn unpack(gzip: &[u8], bytes: u64, sha256: &str) -> Result<Vec<u8>, BlobFault> {
    unpack_up_to(CONTENT_MAX, gzip, bytes, sha256)
}

pub(super) fn unpack_up_to(limit: u64, gzip: &[u8], bytes: u64, sha256: &str) -> Result<Vec<u8>, BlobFault> {
    if bytes > limit {
        return Err(BlobFault::Oversized(bytes));
    }
    let mut content = Vec::new();
    // One byte more than fits: reading on to the end is what checks the stream's own sum.
    let mut decoder = GzDecoder::new(gzip).take(bytes + 1);
    decoder.read_to_end(&mut content).map_err(|_| BlobFault::NotGzip)?;
    let found = u64::try_from(content.len()).unwrap_or(u64::MAX);
    if found > bytes {
        return Err(BlobFault::Longer(bytes));
    }
    if found < bytes {
        return Err(BlobFault::Shorter { found, recorded: bytes });
    }
    if !decoder.into_inner().into_inner().is_empty() {
        return Err(BlobFault::Trailing);
    }
    if digest(&content) != sha256 {
        return Err(BlobFault::Digest);
    }
    Ok(content)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_comes_out(content in proptest::collection::vec(any::<u8>(), 0..5000)) {
            let packed = pack(&content);
            prop_assert_eq!(&packed, &pack(&content));
            prop_assert_eq!(unpack(&packed.gzip, packed.bytes, &packed.sha256), Ok(content));
        }

        #[test]
        fn no_changed_bit_changes_the_content(content in "[a-d]{0,200}", at: prop::sample::Index, bit in 0..8_u32) {
            let packed = pack(content.as_bytes());
            let mut gzip = packed.gzip.clone();
            let at = at.index(gzip.len());
            gzip[at] ^= 1 << bit;
            // Some bits mean nothing to the content: the time, the padding of the last byte.
            if let Ok(found) = unpack(&gzip, packed.bytes, &packed.sha256) {
                prop_assert_eq!(found, content.as_bytes());
            }
        }
    }

    #[test]
    fn the_header_says_nothing_about_here_and_now() {
        assert_eq!(pack(b"x").gzip[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
    }

    #[test]
    fn whatever_differs_is_told() {
        let Packed { bytes, sha256, gzip } = pack(b"content");
        let twice = [&gzip[..], &gzip].concat();
        let trailing = [&gzip[..], b"\0"].concat();
        let other = pack(b"another").sha256;
        let table: [(&[u8], u64, &str, BlobFault); 10] = [
            (&gzip, bytes - 1, &sha256, BlobFault::Longer(6)),
            (&gzip, 0, &sha256, BlobFault::Longer(0)),
            (&gzip, bytes + 1, &sha256, BlobFault::Shorter { found: 7, recorded: 8 }),
            (&gzip, u64::MAX, &sha256, BlobFault::Oversized(u64::MAX)),
            (&gzip, bytes, &other, BlobFault::Digest),
            (&gzip, bytes, "", BlobFault::Digest),
            (&twice, bytes, &sha256, BlobFault::Trailing),
            (&trailing, bytes, &sha256, BlobFault::Trailing),
            (&gzip[..gzip.len() - 1], bytes, &sha256, BlobFault::NotGzip),
            (b"", 0, &sha256, BlobFault::NotGzip),
        ];
        for (gzip, bytes, sha256, expected) in table {
            assert_eq!(unpack(gzip, bytes, sha256), Err(expected));
        }
    }

    #[test]
    fn a_bomb_stops_at_the_recorded_length() {
        let bomb = pack(&vec![0; 256 << 20]);
        assert!(bomb.gzip.len() < 1 << 20);
        let (found, before) = (unpack(&bomb.gzip, 10, &bomb.sha256), bomb.bytes);
        assert_eq!(found, Err(BlobFault::Longer(10)));
        assert_eq!(
            unpack_up_to(FILE_MAX, &bomb.gzip, before, &bomb.sha256),
            Err(BlobFault::Oversized(before))
        );
    }
}
