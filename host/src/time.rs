//! Times as the tools show them.

use jiff::{Timestamp, tz::Offset};

/// The first moment of the year 0: RFC 3339 has no earlier ones.
const FIRST_MS: i64 = -62_167_219_200_000;

/// Milliseconds since the Unix epoch as RFC 3339 in UTC, such as
/// `2026-08-18T09:12:00.000Z`, held at the nearer end of the years 0 to 9999.
pub fn timestamp(ms: i64) -> String {
    let at = Timestamp::from_millisecond(ms.max(FIRST_MS)).unwrap_or(Timestamp::MAX);
    let at = Offset::UTC.to_datetime(at);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z",
        at.year(),
        at.month(),
        at.day(),
        at.hour(),
        at.minute(),
        at.second(),
        at.millisecond()
    )
}

#[cfg(test)]
mod tests {
    use super::timestamp;

    #[test]
    fn times_are_utc_and_held_in_range() {
        let table = [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_787_044_320_000, "2026-08-18T09:12:00.000Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
            (i64::MAX, "9999-12-30T22:00:00.999Z"),
        ];
        for (ms, text) in table {
            assert_eq!(timestamp(ms), text, "{ms}");
        }
    }
}
