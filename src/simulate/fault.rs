//! What can go wrong, by name, with start and length.

use std::str::FromStr;

/// A mistake of a guard, of what is before or behind it, or a loss of what it told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
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
    /// The newest round seen is kept once for all players: whoever played fewer is refused.
    OneCounter,
    /// A watermark of the newest game drops what is late as `stale`.
    OrderMark,
    /// A block moves its signature to the newest place, and so another one out too soon.
    RefreshOnBlock,
    /// The guard is off: everything is accepted, nothing is remembered.
    GuardOff,
    /// The money of some acceptances does not move; half of them are taken back and tried again.
    EffectFailed,
    /// Some outcomes are `unknown`; half of them are tried again.
    Unknown,
    /// Some money goes to the book of another room.
    CrossRoom,
    /// Some messages get the id of another one.
    CollidingIds,
    /// The clock of the first source is 2 s behind.
    ClockBack,
    /// Players are handed over to the other source, which knows nothing of them; then back.
    Handover,
    /// Both sources restart by a deploy that cuts their windows to two signatures; then back.
    LowerCapacity,
    /// Some deliveries reach both sources 5 ms apart.
    Race,
    /// Some settlements come twice honestly, told apart by their ref alone. Every fourth player's
    /// guard goes by the ref; the others' block the second one.
    EqualSettlements,
    /// Of players whose guard goes by the ref: bookings are reversed, duplicates made good; some
    /// that were undone are booked again by the other source.
    Reversals,
    /// Some retries come under another signature, with the same ref.
    RenamedRetries,
    /// State versions that fall back, and versions with two contents.
    OldState,
}

/// Each with its name on the command line, and what it is there.
const NAMES: [(FaultKind, &str, &str); 21] = [
    (FaultKind::WindowOf3, "window-of-3", "windows hold three signatures"),
    (FaultKind::RestartEmpty, "restart-empty", "restarts with empty memory, every 30 s"),
    (FaultKind::TwoGuards, "two-guards", "copies reach another source's private memory"),
    (FaultKind::LostTelemetry, "lost-telemetry", "what the first source decides is not told"),
    (FaultKind::Crash, "crash", "not told, then a crash; it comes back with its memory"),
    (FaultKind::OneCounter, "one-counter", "one counter of rounds for all players"),
    (FaultKind::OrderMark, "order-mark", "late settlements are dropped as stale"),
    (FaultKind::RefreshOnBlock, "refresh-on-block", "a block moves its signature to the newest"),
    (FaultKind::GuardOff, "guard-off", "all is accepted, nothing remembered"),
    (FaultKind::EffectFailed, "effect-failed", "accepted, and the money does not move"),
    (FaultKind::Unknown, "unknown", "outcomes that say neither"),
    (FaultKind::CrossRoom, "cross-room", "money goes to another room's book"),
    (FaultKind::CollidingIds, "colliding-ids", "messages with the id of another one"),
    (FaultKind::ClockBack, "clock-back", "the first source's clock is 2 s behind"),
    (FaultKind::Handover, "handover", "players move to the other source without their windows"),
    (FaultKind::LowerCapacity, "lower-capacity", "a deploy cuts windows to two signatures"),
    (FaultKind::Race, "race", "deliveries reach two sources 5 ms apart"),
    (FaultKind::EqualSettlements, "equal-settlements", "equal ones, told apart by their ref"),
    (FaultKind::Reversals, "reversals", "bookings undone, duplicates too; some come again"),
    (FaultKind::RenamedRetries, "renamed-retries", "a retry under another signature"),
    (FaultKind::OldState, "old-state", "state versions that fall back or have two contents"),
];

impl FaultKind {
    /// Between two restarts with an empty memory.
    pub const RESTART_EVERY_US: i64 = 30_000_000;

    /// All of them.
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(kind, _, _)| *kind)
    }

    /// Its name on the command line.
    pub fn as_str(self) -> &'static str {
        NAMES.iter().find(|(kind, _, _)| *kind == self).map_or("", |(_, name, _)| name)
    }

    /// The findings that show it.
    pub fn known_for(self) -> &'static [&'static str] {
        match self {
            Self::WindowOf3 => &["live_eviction", "duplicate_leak", "undersized_window"],
            Self::RestartEmpty => &["duplicate_leak", "window_lost"],
            Self::TwoGuards | Self::Handover => &["duplicate_leak"],
            Self::LostTelemetry => &["telemetry_gap"],
            Self::Crash => &["unverifiable_block"],
            Self::OneCounter | Self::OrderMark => &["false_block"],
            Self::RefreshOnBlock => &["live_eviction"],
            Self::GuardOff => &["guard_bypass", "duplicate_leak"],
            Self::EffectFailed => &["accept_without_effect", "block_after_failed_effect"],
            Self::Unknown => &["indeterminate_outcome"],
            Self::CrossRoom => &["cross_room_booking"],
            Self::CollidingIds => &["id_collision"],
            Self::ClockBack => &["clock_rollback"],
            Self::LowerCapacity => &["window_lost", "undersized_window", "live_eviction"],
            Self::Race => &["duplicate_leak", "two_writers"],
            Self::EqualSettlements => &["ambiguous_equal"],
            Self::Reversals => &["duplicate_leak"],
            Self::RenamedRetries => &["missed_duplicate"],
            Self::OldState => &["version_regression", "torn_state"],
        }
    }

    /// What it is, in a few words.
    pub fn about(self) -> &'static str {
        NAMES.iter().find(|(kind, _, _)| *kind == self).map_or("", |(_, _, about)| about)
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

/// Every fault, with its service and its part of the game in hundredths: apart from one another
/// in service or time, and losses late, since they make what comes after them unknowable (see
/// [`LOSS_LAST_US`]).
const ALL: [(FaultKind, usize, i64, i64); 21] = [
    (FaultKind::GuardOff, 0, 2, 8),
    (FaultKind::TwoGuards, 0, 14, 10),
    (FaultKind::Handover, 0, 28, 10),
    (FaultKind::Race, 0, 42, 8),
    (FaultKind::RefreshOnBlock, 0, 54, 14),
    (FaultKind::CrossRoom, 0, 70, 6),
    (FaultKind::RenamedRetries, 0, 78, 8),
    (FaultKind::CollidingIds, 0, 88, 8),
    (FaultKind::OneCounter, 1, 2, 6),
    (FaultKind::LowerCapacity, 1, 12, 14),
    (FaultKind::OrderMark, 1, 30, 12),
    (FaultKind::EqualSettlements, 1, 44, 10),
    (FaultKind::Reversals, 1, 56, 10),
    (FaultKind::ClockBack, 1, 68, 8),
    (FaultKind::OldState, 1, 78, 8),
    (FaultKind::LostTelemetry, 1, 88, 8),
    (FaultKind::EffectFailed, 2, 2, 10),
    (FaultKind::Unknown, 2, 15, 10),
    (FaultKind::RestartEmpty, 2, 28, 14),
    (FaultKind::WindowOf3, 2, 48, 24),
    (FaultKind::Crash, 2, 88, 8),
];

/// Losses begin so long before the end at most: what was lost is still in the windows then. In
/// the next games it falls out, and that tells of it.
const LOSS_LAST_US: i64 = 24_000_000;
/// Losses end so long after they began at most: the rest of the game shows them.
const LOSS_US: i64 = 10_000_000;

impl Fault {
    /// Whether it is on at this moment after the start.
    pub fn is_on(&self, after_us: i64) -> bool {
        (self.start_us..self.start_us + self.length_us).contains(&after_us)
    }

    /// Every fault, spread over the services and a game of this length.
    pub fn all(length_us_in_all: i64) -> Vec<Self> {
        let part_us = length_us_in_all / 100;
        let fault = |&(kind, service, start, length): &(FaultKind, usize, i64, i64)| {
            let fault =
                Self { kind, start_us: start * part_us, length_us: length * part_us, service };
            match kind {
                FaultKind::LostTelemetry | FaultKind::Crash => Self {
                    start_us: fault.start_us.max(length_us_in_all - LOSS_LAST_US),
                    length_us: fault.length_us.min(LOSS_US),
                    ..fault
                },
                _ => fault,
            }
        };
        ALL.iter().map(fault).collect()
    }
}

/// Why a text is no [`Fault`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no fault; write NAME@START+LENGTH as in window-of-3@60s+2m, with NAME one of \
     {names}; append /1 or /2 for the second or third service", names = names()
)]
pub struct FaultError(String);

fn names() -> String {
    let names: Vec<_> = NAMES.iter().map(|(_, name, _)| *name).collect();
    names.join(", ")
}

impl FromStr for Fault {
    type Err = FaultError;

    fn from_str(text: &str) -> Result<Self, FaultError> {
        parse(text).ok_or_else(|| FaultError(text.into()))
    }
}

fn parse(text: &str) -> Option<Fault> {
    let (name, times) = text.split_once('@')?;
    let kind = FaultKind::all().find(|kind| kind.as_str() == name)?;
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
        for kind in FaultKind::all() {
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

    #[test]
    fn all_are_in_the_plan_within_the_game() {
        for length_us in [60_000_000, 600_000_000, 3_600_000_000] {
            let all = Fault::all(length_us);
            for kind in FaultKind::all() {
                assert!(all.iter().any(|fault| fault.kind == kind), "{kind:?}");
                assert!(!kind.about().is_empty());
            }
            assert!(all.iter().all(|fault| fault.start_us + fault.length_us < length_us));
            for (at, fault) in all.iter().enumerate() {
                let before = all.iter().take(at).filter(|it| it.service == fault.service);
                assert!(before.into_iter().all(|it| it.start_us + it.length_us <= fault.start_us));
            }
        }
    }
}
