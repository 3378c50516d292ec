//! Rates over time: one small chart for each outcome, each with a scale of its own. In one common
//! chart the few evictions would vanish below the many acceptances.
//!
//! A minute in which nothing at all was heard is a gap and not a zero: it is drawn as a band.

use std::fmt::Write;

use crate::limits::MINUTE_US;
use crate::outcome::Outcome;
use crate::store::MinuteCount;
use crate::web::format::{Moment, number, several};
use crate::web::summary::RATE_MINUTES;

/// Height of a chart in its own units; a minute is one unit wide.
const HEIGHT: f64 = 20.0;
/// A count that is not zero never looks like zero.
const LEAST_HEIGHT: f64 = 0.8;

/// What guards decide. What became of it later (`effect_reported`) is no outcome of a delivery.
pub(super) const SHOWN: [Outcome; 5] = [
    Outcome::Processed,
    Outcome::LateAccepted,
    Outcome::ReplayBlocked,
    Outcome::Evicted,
    Outcome::Unknown,
];

/// The chart of one outcome.
pub(super) struct Chart {
    /// Which outcome.
    pub(super) outcome: &'static str,
    /// In words.
    pub(super) name: &'static str,
    /// The bars, as an SVG path.
    pub(super) bars: String,
    /// The minutes without data, as an SVG path.
    pub(super) gaps: String,
    /// In all.
    pub(super) total: String,
    /// Most in one minute.
    pub(super) peak: String,
    /// For who can't see it.
    pub(super) description: String,
}

/// The same numbers as a table.
pub(super) struct RateRow {
    /// The minute.
    pub(super) minute: Moment,
    /// By outcome in the order of the charts; empty where nothing was heard.
    pub(super) counts: Vec<String>,
}

/// The charts and their table.
pub(super) struct Rates {
    /// One for each outcome.
    pub(super) charts: Vec<Chart>,
    /// Newest minute first.
    pub(super) rows: Vec<RateRow>,
    /// Whether any minute has data.
    pub(super) any: bool,
    /// Width of a chart in its own units.
    pub(super) width: i64,
}

/// The first and last minute of the charts at this moment.
pub(super) fn minutes(now_us: i64) -> (i64, i64) {
    let last = now_us.div_euclid(MINUTE_US);
    (last - RATE_MINUTES + 1, last)
}

/// The charts of these counts.
pub(super) fn rates(counts: &[MinuteCount], now_us: i64) -> Rates {
    let (first, last) = minutes(now_us);
    let heard = |minute| counts.iter().any(|row| row.minute == minute);
    let of = |minute, outcome: Outcome| {
        let same = |row: &&MinuteCount| row.minute == minute && row.outcome == outcome.as_str();
        heard(minute).then(|| counts.iter().find(same).map_or(0, |row| row.count))
    };
    let series = |outcome| (first..=last).map(|minute| of(minute, outcome)).collect::<Vec<_>>();
    let row = |minute: i64| RateRow {
        minute: Moment::new(minute * MINUTE_US, now_us),
        counts: SHOWN.iter().filter_map(|outcome| of(minute, *outcome)).map(number).collect(),
    };
    Rates {
        charts: SHOWN.iter().map(|outcome| chart(*outcome, &series(*outcome))).collect(),
        rows: (first..=last).rev().map(row).collect(),
        any: !counts.is_empty(),
        width: RATE_MINUTES,
    }
}

fn chart(outcome: Outcome, series: &[Option<i64>]) -> Chart {
    let heard: Vec<i64> = series.iter().flatten().copied().collect();
    let (total, peak) = (heard.iter().sum::<i64>(), heard.iter().copied().max().unwrap_or(0));
    let missing = series.len() - heard.len();
    let gaps = match missing {
        0 => String::new(),
        _ => format!(" Nothing was heard in {}.", several(missing as i64, "minute", "minutes")),
    };
    Chart {
        outcome: outcome.as_str(),
        name: name(outcome),
        bars: bars(series, peak),
        gaps: bands(series),
        total: number(total),
        peak: number(peak),
        description: format!(
            "{} in the last {RATE_MINUTES} minutes, at most {} in one minute.{gaps}",
            number(total),
            number(peak)
        ),
    }
}

/// An outcome in words.
pub(super) fn name(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Processed => "Accepted",
        Outcome::LateAccepted => "Accepted late",
        Outcome::ReplayBlocked => "Replays blocked",
        Outcome::Evicted => "Evicted",
        Outcome::Unknown => "Unknown",
        Outcome::EffectReported => "Effects reported",
    }
}

#[expect(clippy::cast_precision_loss, reason = "a bar's height needs no more than a pixel")]
fn bars(series: &[Option<i64>], peak: i64) -> String {
    let mut path = String::new();
    for (x, count) in series.iter().enumerate() {
        let Some(count) = count.filter(|count| *count > 0) else { continue };
        let height = (count as f64 / peak as f64 * HEIGHT).max(LEAST_HEIGHT);
        // Writing into a String can't fail.
        let _ = write!(path, "M{x}.1 20v-{height:.2}h.8v{height:.2}z");
    }
    path
}

fn bands(series: &[Option<i64>]) -> String {
    let mut path = String::new();
    for (x, _) in series.iter().enumerate().filter(|(_, count)| count.is_none()) {
        let _ = write!(path, "M{x} 0h1v20h-1z");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_without_data_is_a_gap_and_not_a_zero() {
        let now_us = 100 * MINUTE_US + 5;
        let counts = [
            MinuteCount { minute: 99, outcome: "processed".into(), count: 40 },
            MinuteCount { minute: 100, outcome: "evicted".into(), count: 1 },
        ];
        let rates = rates(&counts, now_us);
        let processed = &rates.charts[0];
        assert_eq!(processed.bars, "M58.1 20v-20.00h.8v20.00z");
        assert_eq!(processed.gaps.matches('M').count(), 58);
        assert!(processed.description.contains("Nothing was heard in 58 minutes"));
        assert_eq!(rates.rows[0].counts, ["0", "0", "0", "1", "0"]);
        assert_eq!(rates.rows[2].counts, [""; 0], "nothing was heard");
    }

    #[test]
    fn a_small_count_beside_a_large_one_is_still_seen() {
        let path = bars(&[Some(1_000_000), Some(1), Some(0)], 1_000_000);
        assert_eq!(path, "M0.1 20v-20.00h.8v20.00zM1.1 20v-0.80h.8v0.80z");
    }
}
