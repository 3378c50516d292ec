//! What can go wrong, by name, with start and length.

use std::str::FromStr;

/// A mistake of a guard, or a loss of what it told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The windows of the service hold three signatures.
    WindowOf3,
    /// The first source restarts with an empty memory, at once and every
    /// [`FaultKind::RESTART_EVERY_US`].
    RestartEmpty,
    /// Copies of a delivery reach the other source of the service, which has a memory of its own.
    TwoGuards,
    /// What the first source decides is not told; its numbers show the hole.
    LostTelemetry,
    /// What the first source decides is not told, then it crashes without a goodbye. It comes
    /// back with its memory, so it rightly blocks what nobody else saw accepted.
    Crash,
}

impl FaultKind {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::WindowOf3, Self::RestartEmpty, Self::TwoGuards, Self::LostTelemetry, Self::Crash];

    /// Between two restarts with an empty memory.
    pub const RESTART_EVERY_US: i64 = 30_000_000;

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::WindowOf3 => "window-of-3",
            Self::RestartEmpty => "restart-empty",
            Self::TwoGuards => "two-guards",
            Self::LostTelemetry => "lost-telemetry",
            Self::Crash => "crash",
        }
    }
}

/// A fault of one service, for a while of game time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// When, after the start of the simulation.
    pub start_us: i64,
    /// For how long.
    pub length_us: i64,
    /// Which service, as an index into the world's.
    pub service: usize,
}

impl Fault {
    /// Whether it is on at this moment after the start.
    pub fn is_on(&self, after_us: i64) -> bool {
        (self.start_us..self.start_us + self.length_us).contains(&after_us)
    }
}

/// Why a text is no [`Fault`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no fault; write NAME@START+LENGTH as in window-of-3@60s+2m, with NAME one of \
     window-of-3, restart-empty, two-guards, lost-telemetry, crash; append /1 or /2 for the second \
     or third service"
)]
pub struct FaultError(String);

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse(text).ok_or_else(|| FaultError(text.into()))
    }
}

fn parse(text: &str) -> Option<Fault> {
    let (name, times) = text.split_once('@')?;
    let kind = FaultKind::ALL.into_iter().find(|kind| kind.as_str() == name)?;
    let (times, service) = times.split_once('/').unwrap_or((times, "0"));
    let (start, length) = times.split_once('+')?;
    let service = service.parse().ok().filter(|&service| service < super::SERVICES.len())?;
    Some(Fault {
        kind,
        start_us: parse_span_us(start)?,
        length_us: parse_span_us(length)?,
        service,
    })
}

/// Reads a span of time: `90s`, `2m`, `1h`.
pub fn parse_span_us(text: &str) -> Option<i64> {
    let unit_at = text.len().checked_sub(1)?;
    let (number, unit) = text.split_at_checked(unit_at)?;
    let unit_us = match unit {
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        _ => return None,
    };
    let number: u32 = number.parse().ok()?;
    i64::from(number).checked_mul(unit_us)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_has_a_name_a_start_and_a_length() {
        let fault: Fault = "window-of-3@60s+2m/1".parse().unwrap();
        assert_eq!(fault.kind, FaultKind::WindowOf3);
        assert_eq!((fault.start_us, fault.length_us, fault.service), (60_000_000, 120_000_000, 1));
        assert!(fault.is_on(60_000_000) && !fault.is_on(180_000_000) && !fault.is_on(59_999_999));
    }

    #[test]
    fn each_name_is_read_back() {
        for kind in FaultKind::ALL {
            let fault: Fault = format!("{}@0s+1h", kind.as_str()).parse().unwrap();
            assert_eq!((fault.kind, fault.service), (kind, 0));
        }
    }

    #[test]
    fn what_is_no_fault_is_told_how_to_write_one() {
        for bad in ["", "crash", "crash@1s", "crash@1+2", "nap@1s+1s", "crash@1s+1s/9", "crash@é+é"]
        {
            let error = bad.parse::<Fault>().unwrap_err();
            assert!(error.to_string().contains("NAME@START+LENGTH"), "{bad}");
        }
    }
}
