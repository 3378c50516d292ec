//! Times as microseconds since 1970, UTC; as RFC 3339 outside.

use chrono::{DateTime, SecondsFormat};

/// Writes a time as RFC 3339 with six digits of the second.
///
/// ```
/// assert_eq!(dedupwatch::outcome::format_us(1), "1970-01-01T00:00:00.000001Z");
/// ```
pub fn format_us(at_us: i64) -> String {
    match DateTime::from_timestamp_micros(at_us) {
        Some(time) => time.to_rfc3339_opts(SecondsFormat::Micros, true),
        None => format!("{at_us} us"),
    }
}

/// The last microsecond of 9999.
const YEAR_9999_END_US: i64 = 253_402_300_799_999_999;

/// Whether the text of a time reads back as the same time: what is not so must not get into the
/// log, since the log could not be read any more. RFC 3339 has years of four digits, and its
/// offsets lead over both ends; before 1970 there is nothing that a sender could mean.
pub fn reads_back(at_us: i64) -> bool {
    (0..=YEAR_9999_END_US).contains(&at_us)
}

/// Reads RFC 3339; finer digits than microseconds are cut off. May not read back, see
/// [`reads_back`].
pub fn parse_us(text: &str) -> Option<i64> {
    DateTime::parse_from_rfc3339(text).ok().map(|time| time.timestamp_micros())
}

/// For `#[serde(with)]`: a field `..._us` inside, RFC 3339 on the wire.
pub mod rfc3339 {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    /// Writes microseconds as RFC 3339.
    pub fn serialize<S: Serializer>(at_us: &i64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&super::format_us(*at_us))
    }

    /// Reads RFC 3339 as microseconds.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i64, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        super::parse_us(&text).ok_or_else(|| D::Error::custom("not an RFC 3339 time"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_of_a_time_that_reads_back_is_the_same_time() {
        for at_us in [0, 1, 1_796_040_000_000_000, YEAR_9999_END_US] {
            assert!(reads_back(at_us));
            assert_eq!(parse_us(&format_us(at_us)), Some(at_us));
        }
        for text in ["0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"] {
            let at_us = parse_us(text).unwrap();
            assert_eq!(parse_us(&format_us(at_us)), None, "the reason for it");
            assert!(!reads_back(at_us), "{text}");
        }
    }
}
