//! How far a source's clock is from the collector's.
//!
//! The least (receipt - heartbeat) over ten minutes: the network only ever adds. A difference
//! that moves is no clock that is wrong but one that runs at another speed (a simulation, a
//! stopped machine): it corrects nothing.

use serde::{Deserialize, Serialize};

const MINUTE_US: i64 = 60_000_000;
/// Minutes looked back.
const MINUTES: i64 = 10;
/// Heartbeats needed (audit.md).
const HEARTBEATS_MIN: u32 = 12;
/// How much the least of one minute may differ from that of another.
const STEADY_US: i64 = 1_000_000;

/// The least differences by minute of receipt.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Offsets {
    minutes: Vec<Minute>,
    /// What follows from them: asked for of every open source with every record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    measured_us: Option<i64>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Minute {
    minute: i64,
    least_us: i64,
    count: u32,
    first_us: i64,
    last_us: i64,
}

impl Offsets {
    /// Takes the times of one heartbeat.
    pub(super) fn add(&mut self, received_us: i64, at_us: i64) {
        let minute = received_us.div_euclid(MINUTE_US);
        let offset_us = received_us.saturating_sub(at_us);
        self.minutes.retain(|old| old.minute > minute - MINUTES);
        match self.minutes.iter_mut().find(|old| old.minute == minute) {
            Some(old) => {
                old.least_us = old.least_us.min(offset_us);
                old.count = old.count.saturating_add(1);
                old.last_us = old.last_us.max(received_us);
            }
            None => self.minutes.push(Minute {
                minute,
                least_us: offset_us,
                count: 1,
                first_us: received_us,
                last_us: received_us,
            }),
        }
        self.measured_us = self.measure();
    }

    /// The difference, once enough heartbeats over a minute agree on it.
    pub(super) fn measured_us(&self) -> Option<i64> {
        self.measured_us
    }

    fn measure(&self) -> Option<i64> {
        let count: u32 = self.minutes.iter().map(|minute| minute.count).sum();
        let first_us = self.minutes.iter().map(|minute| minute.first_us).min()?;
        let last_us = self.minutes.iter().map(|minute| minute.last_us).max()?;
        let least_us = self.minutes.iter().map(|minute| minute.least_us).min()?;
        let most_us = self.minutes.iter().map(|minute| minute.least_us).max()?;
        let enough = count >= HEARTBEATS_MIN && last_us - first_us >= MINUTE_US;
        (enough && most_us - least_us <= STEADY_US).then_some(least_us)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beats(count: i64, every_us: i64, offset_us: impl Fn(i64) -> i64) -> Option<i64> {
        let mut offsets = Offsets::default();
        for i in 0..count {
            offsets.add(i * every_us, i * every_us - offset_us(i));
        }
        offsets.measured_us()
    }

    #[test]
    fn the_least_difference_counts_since_the_network_only_adds() {
        assert_eq!(beats(20, 5_000_000, |i| 300_000 + (i % 3) * 40_000), Some(300_000));
    }

    #[test]
    fn a_few_heartbeats_say_nothing() {
        assert_eq!(beats(11, 10_000_000, |_| 5), None);
        assert_eq!(beats(20, 1_000_000, |_| 5), None);
    }

    #[test]
    fn a_clock_at_another_speed_is_not_corrected() {
        assert_eq!(beats(60, 5_000_000, |i| i * 4_000_000), None);
    }
}
