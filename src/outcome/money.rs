//! Money: signed minor units of a ledger, never floats, never netted against each other.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Error};

/// The amount of one settlement. Positive is paid to the player, negative is taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Net(pub i64);

impl fmt::Display for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Serialize for Net {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(&self.0)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Net {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return i64::deserialize(deserializer).map(Self);
        }
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map(Self).map_err(D::Error::custom)
    }
}

/// What wrong bookings come to. The four are separate problems: -40 and +100 are not 60.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amounts {
    /// Paid to players more often than once.
    pub overpaid: i128,
    /// Taken from players more often than once.
    pub overcharged: i128,
    /// Owed to players and never paid.
    pub underpaid: i128,
    /// Owed by players and never taken.
    pub undercharged: i128,
    /// What a further mistake could move: nothing is lost yet.
    pub exposure: i128,
}

impl Amounts {
    /// An acceptance too many.
    pub fn surplus(net: Net) -> Self {
        let amount = i128::from(net.0);
        Self { overpaid: amount.max(0), overcharged: (-amount).max(0), ..Self::default() }
    }

    /// An acceptance that is missing.
    pub fn missing(net: Net) -> Self {
        let amount = i128::from(net.0);
        Self { underpaid: amount.max(0), undercharged: (-amount).max(0), ..Self::default() }
    }

    /// An amount at risk.
    pub fn at_risk(net: Net) -> Self {
        Self { exposure: i128::from(net.0).abs(), ..Self::default() }
    }

    /// So many of it.
    pub fn times(self, count: usize) -> Self {
        std::iter::repeat_n(self, count).fold(Self::default(), Self::plus)
    }

    /// The sum, part by part.
    pub fn plus(self, other: Self) -> Self {
        Self {
            overpaid: self.overpaid + other.overpaid,
            overcharged: self.overcharged + other.overcharged,
            underpaid: self.underpaid + other.underpaid,
            undercharged: self.undercharged + other.undercharged,
            exposure: self.exposure + other.exposure,
        }
    }

    /// The difference, part by part.
    pub fn minus(self, other: Self) -> Self {
        Self {
            overpaid: self.overpaid - other.overpaid,
            overcharged: self.overcharged - other.overcharged,
            underpaid: self.underpaid - other.underpaid,
            undercharged: self.undercharged - other.undercharged,
            exposure: self.exposure - other.exposure,
        }
    }
}

/// For programs.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Amounts")]
struct Packed {
    overpaid: i128,
    overcharged: i128,
    underpaid: i128,
    undercharged: i128,
    exposure: i128,
}

/// On the wire and in findings: decimal strings, since 128 bits fit no JSON number.
#[derive(Serialize, Deserialize)]
struct AmountsText {
    overpaid: String,
    overcharged: String,
    underpaid: String,
    undercharged: String,
    exposure: String,
}

impl Serialize for Amounts {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if !serializer.is_human_readable() {
            return Packed::serialize(self, serializer);
        }
        AmountsText {
            overpaid: self.overpaid.to_string(),
            overcharged: self.overcharged.to_string(),
            underpaid: self.underpaid.to_string(),
            undercharged: self.undercharged.to_string(),
            exposure: self.exposure.to_string(),
        }
        .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Amounts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if !deserializer.is_human_readable() {
            return Packed::deserialize(deserializer);
        }
        let text = AmountsText::deserialize(deserializer)?;
        let read = |amount: &str| amount.parse().map_err(D::Error::custom);
        Ok(Self {
            overpaid: read(&text.overpaid)?,
            overcharged: read(&text.overcharged)?,
            underpaid: read(&text.underpaid)?,
            undercharged: read(&text.undercharged)?,
            exposure: read(&text.exposure)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_are_never_netted() {
        let sum = Amounts::surplus(Net(100)).plus(Amounts::surplus(Net(-40)));
        assert_eq!((sum.overpaid, sum.overcharged), (100, 40));
    }

    #[test]
    fn sums_beyond_64_bits_are_exact() {
        let mut sum = Amounts::default();
        for _ in 0..3 {
            sum = sum.plus(Amounts::surplus(Net(i64::MAX)));
        }
        for _ in 0..2 {
            sum = sum.plus(Amounts::surplus(Net(i64::MIN)));
        }
        assert_eq!(sum.overpaid, 3 * i128::from(i64::MAX));
        assert_eq!(sum.overcharged, 1 << 64);
        let text = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Amounts>(&text).unwrap(), sum);
    }
}
