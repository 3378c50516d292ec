//! Latencies, counted by `limits::LATENCY_BUCKETS_US`: sums of them are exact, whatever was
//! grouped how.

use crate::limits::{LATENCY_BUCKETS_US, LATENCY_US_MAX};

/// The bounded buckets and the one without an upper bound.
pub const BUCKETS: usize = LATENCY_BUCKETS_US.len() + 1;

/// A latency that events carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Latency {
    /// `check_us`: how long the guard took.
    Check,
    /// `response_us`: how long the whole answer took.
    Response,
}

impl Latency {
    /// Its name in the store.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Response => "response",
        }
    }
}

/// How many latencies fell into which bucket (not cumulative), and their sum.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    counts: [u64; BUCKETS],
    sum_us: u64,
}

impl Buckets {
    /// Adds one latency, in microseconds. Beyond [`LATENCY_US_MAX`] it counts as that.
    pub fn observe(&mut self, us: u64) {
        let us = us.min(LATENCY_US_MAX);
        let place = LATENCY_BUCKETS_US.partition_point(|upper| *upper < us);
        if let Some(count) = self.counts.get_mut(place) {
            *count += 1;
        }
        self.sum_us = self.sum_us.saturating_add(us);
    }

    /// The counts, in the order of the bounds.
    pub fn counts(&self) -> &[u64; BUCKETS] {
        &self.counts
    }

    /// The sum of all, in microseconds.
    pub fn sum_us(&self) -> u64 {
        self.sum_us
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upper_bound_belongs_to_its_bucket() {
        let mut buckets = Buckets::default();
        for us in [0, 10, 11, 5_000_000, 5_000_001, u64::MAX] {
            buckets.observe(us);
        }
        assert_eq!(buckets.counts()[0], 2);
        assert_eq!(buckets.counts()[1], 1);
        assert_eq!(buckets.counts()[BUCKETS - 2], 1);
        assert_eq!(buckets.counts()[BUCKETS - 1], 2);
        assert_eq!(buckets.sum_us(), 21 + 10_000_001 + LATENCY_US_MAX);
    }
}
