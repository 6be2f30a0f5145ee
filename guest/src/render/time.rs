//! Points in time as text: UTC, RFC 3339, milliseconds.

use jiff::{Timestamp, civil::DateTime, tz::Offset};
use std::fmt::Write;

/// The first moment of the year 0: RFC 3339 has no earlier ones.
const FIRST_MS: i64 = -62_167_219_200_000;

/// Returns `ms` (milliseconds since the Unix epoch) as RFC 3339 in UTC, such as
/// `2026-08-18T09:12:00.000Z`.
///
/// Times outside the years 0 to 9999 are held at the nearer end of that range
/// (the upper end is jiff's, on 9999-12-30).
pub fn timestamp(ms: i64) -> String {
    let mut out = String::with_capacity(24);
    push_timestamp(&mut out, ms);
    out
}

/// Appends what [`timestamp`] returns.
pub(super) fn push_timestamp(out: &mut String, ms: i64) {
    let at = civil(ms);
    push_date(out, at);
    out.push('T');
    push_clock(out, at);
}

/// Returns the calendar date and time of day in UTC, held as in [`timestamp`].
pub(super) fn civil(ms: i64) -> DateTime {
    let at = Timestamp::from_millisecond(ms.max(FIRST_MS)).unwrap_or(Timestamp::MAX);
    Offset::UTC.to_datetime(at)
}

/// Appends the date, such as `2026-08-18`.
pub(super) fn push_date(out: &mut String, at: DateTime) {
    // Writing to a string cannot fail.
    let _ = write!(out, "{:04}-{:02}-{:02}", at.year(), at.month(), at.day());
}

/// Appends the time of day, such as `09:12:00.000Z`.
pub(super) fn push_clock(out: &mut String, at: DateTime) {
    let _ = write!(out, "{:02}:{:02}:{:02}.{:03}Z", at.hour(), at.minute(), at.second(), at.millisecond());
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn times_are_utc_with_milliseconds_and_held_in_range() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_787_044_320_000, "2026-08-18T09:12:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (1_709_164_800_001, "2024-02-29T00:00:00.001Z"),
            (super::FIRST_MS, "0000-01-01T00:00:00.000Z"),
            (super::FIRST_MS - 1, "0000-01-01T00:00:00.000Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-30T22:00:00.999Z"),
        ] {
            assert_eq!(timestamp(ms), text, "{ms}");
        }
    }
}
