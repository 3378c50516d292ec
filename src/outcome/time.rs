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

/// Reads RFC 3339; finer digits than microseconds are cut off.
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
