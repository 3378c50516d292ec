//! Who speaks, and which run of it: sources and boots.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

use super::{Id, format_us, parse_us, reads_back};

/// One guard instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct SourceName {
    /// The settlement service.
    pub service: Id,
    /// Where it runs; `prod` unless said.
    pub env: Id,
    /// The instance.
    pub source: Id,
}

/// One run of a source: its start time, or a rising integer. One sort per source; boots of a
/// source are ordered by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Boot {
    /// A rising integer.
    Number(u64),
    /// The start time.
    Started {
        /// Microseconds, UTC.
        at_us: i64,
    },
}

/// Why a text is no [`Boot`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "is neither an RFC 3339 time from 1970 to 9999 nor an integer from 0 to 9223372036854775807"
)]
pub struct BootError;

impl Boot {
    /// Reads a boot from outside.
    pub fn parse(text: &str) -> Result<Self, BootError> {
        if let Ok(number) = text.parse::<i64>() {
            let number = u64::try_from(number).map_err(|_| BootError)?;
            return if text.starts_with('+') { Err(BootError) } else { Ok(Self::Number(number)) };
        }
        let at_us = parse_us(text).filter(|at_us| reads_back(*at_us)).ok_or(BootError)?;
        Ok(Self::Started { at_us })
    }

    /// Whether both are times or both are numbers.
    pub fn same_sort(self, other: Self) -> bool {
        std::mem::discriminant(&self) == std::mem::discriminant(&other)
    }
}

impl fmt::Display for Boot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Started { at_us } => f.write_str(&format_us(*at_us)),
        }
    }
}

impl Serialize for Boot {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Boot {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boot_is_a_time_or_a_number() {
        assert_eq!(Boot::parse("7"), Ok(Boot::Number(7)));
        assert_eq!(Boot::parse("1970-01-01T00:00:01Z"), Ok(Boot::Started { at_us: 1_000_000 }));
        for bad in ["", "-1", "+1", "1.5", "today", "9223372036854775808"] {
            assert_eq!(Boot::parse(bad), Err(BootError), "{bad}");
        }
    }

    #[test]
    fn a_time_at_the_edge_of_the_calendar_is_no_boot() {
        for bad in [
            "0000-01-01T00:00:00+23:59",
            "1969-12-31T23:59:59.999999Z",
            "9999-12-31T23:59:59-23:59",
            "9999-12-31T23:59:60Z",
        ] {
            assert_eq!(Boot::parse(bad), Err(BootError), "{bad}");
        }
    }

    #[test]
    fn the_text_reads_back_as_the_same_boot() {
        for text in [
            "0",
            "9223372036854775807",
            "2026-11-30T08:00:00.000001Z",
            "1970-01-01T00:00:00Z",
            "9999-12-31T23:59:59.999999Z",
        ] {
            let boot = Boot::parse(text).unwrap();
            assert_eq!(Boot::parse(&boot.to_string()), Ok(boot));
        }
    }
}
