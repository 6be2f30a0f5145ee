//! Leaves the text of a panic where the host finds it.
//!
//! A component that imports nothing cannot say anything while it dies: a panic
//! ends in an instruction that traps. So the panic hook writes a record into the
//! component's own memory, and the host looks through the memory of a component
//! that trapped. The record's form is the whole agreement between the two, so it
//! is written down once, here; the host includes this file for its reader.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | [`MARK`] |
//! | 4 | length of the text in bytes, little-endian |
//! | 4 | [`checksum`] of the text, little-endian |
//! | length | the text, UTF-8: `file:line:column: message` |
//!
//! The mark alone also stands among the program's constants; the checksum tells
//! the record from it.

/// What a record begins with.
pub const MARK: [u8; 16] = *b"\x00loop-state:died";

/// The most bytes of text that a record holds; longer ones are cut.
pub const MAX_TEXT: usize = 2048;

/// The bytes before a record's text.
pub const HEADER: usize = MARK.len() + 8;

/// FNV-1a over the text; tells a record from bytes that happen to look like one.
pub const fn checksum(text: &[u8]) -> u32 {
    let mut sum = 0x811c_9dc5_u32;
    let mut at = 0;
    while at < text.len() {
        sum = (sum ^ text[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    sum
}

/// Lays out a record for a text, cut to [`MAX_TEXT`].
pub fn record(text: &str) -> Vec<u8> {
    let text = &text.as_bytes()[..text.floor_char_boundary(MAX_TEXT)];
    let mut record = Vec::with_capacity(HEADER + text.len());
    record.extend_from_slice(&MARK);
    // MAX_TEXT fits in 32 bits.
    record.extend_from_slice(&(text.len() as u32).to_le_bytes());
    record.extend_from_slice(&checksum(text).to_le_bytes());
    record.extend_from_slice(text);
    record
}

/// Sees to it that a panic from now on leaves its record.
///
/// Meant for the first line of every exported function; all but the first call
/// return at once.
#[cfg(target_family = "wasm")]
pub fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        std::panic::set_hook(Box::new(|panic| {
            let message = panic.payload_as_str().unwrap_or("a panic without a message");
            let text = match panic.location() {
                Some(place) => format!("{place}: {message}"),
                None => message.to_owned(),
            };
            // Leaked, and passed through a black box: the optimiser may not
            // conclude that nobody reads it.
            std::hint::black_box(record(&text).leak());
        }));
    });
}

/// A panic of a native build is reported by the test that runs it.
#[cfg(not(target_family = "wasm"))]
pub fn install() {}
