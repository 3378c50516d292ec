//! `clock_rollback` and `clock_skew`.

use std::collections::BTreeMap;

use dedupwatch::audit::{Kind, Severity};

use super::sources::Source;
use super::verdict::{Verdict, Verdicts};
use super::world::World;

/// A fall of less is good to know, and no more.
const SET_BACK_US: i64 = 1_000_000;
/// A clock that is further off is skewed.
const SKEWED_US: i64 = 60_000_000;
/// Over how long a clock is measured, by how many heartbeats that are how far apart.
const MEASURED_US: i64 = 600_000_000;
const HEARTBEATS_MIN: usize = 12;
const MINUTE_US: i64 = 60_000_000;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    for (from, source) in &world.sources {
        let mut counts: BTreeMap<(&str, Severity), u64> = BTreeMap::new();
        for by_us in falls(source) {
            let sort = if by_us < SET_BACK_US {
                ("jitter", Severity::Info)
            } else {
                ("set_back", Severity::Warning)
            };
            *counts.entry(sort).or_default() += 1;
        }
        for ((cause, severity), count) in counts {
            let verdict = Verdict::of(Kind::ClockRollback, &(from, cause), severity);
            verdicts.key(Verdict { count, ..verdict });
        }
        let answers = [true, false].map(|steady| [9, 10].map(|n| is_skewed(source, n, steady)));
        let skewed = answers[0][0];
        if answers.as_flattened().iter().any(|answer| *answer != skewed) {
            verdicts.unsure(Kind::ClockSkew, &(from, "clock"));
        }
        if skewed {
            verdicts.key(Verdict::of(Kind::ClockSkew, &(from, "clock"), Severity::Warning));
        }
    }
}

/// By how much its stamps fell from each number to the next that came, into a newer run only
/// where the one before it had ended when the newer was first heard.
fn falls(source: &Source) -> Vec<i64> {
    let mut falls = Vec::new();
    let mut last_us: Option<i64> = None;
    for run in source.runs.values() {
        last_us = last_us.filter(|_| run.after_goodbye && !run.out_of_order);
        for at_us in run.times.values() {
            let fell_us = last_us.map_or(0, |last_us| last_us - at_us);
            falls.extend((fell_us > 0).then_some(fell_us));
            last_us = Some(*at_us);
        }
        last_us = last_us.filter(|_| run.said_goodbye());
    }
    falls
}

/// Whether its clock was far off when it was last measured: over so many minutes, and with
/// `steady` only if it stayed so far off from minute to minute. By minutes, since of the tenth
/// minute back only a part may be looked at.
fn is_skewed(source: &Source, minutes: i64, steady: bool) -> bool {
    let mut skewed = false;
    for (at, (now_us, _)) in source.beats.iter().enumerate() {
        let since_us = now_us - MEASURED_US / 10 * minutes;
        let told = source.beats[..=at].iter().filter(|(received_us, _)| *received_us > since_us);
        let told: Vec<(i64, i64)> = told.copied().collect();
        let spread_us = now_us - told[0].0;
        if told.len() < HEARTBEATS_MIN || spread_us < MINUTE_US {
            continue;
        }
        let mut least: BTreeMap<i64, i64> = BTreeMap::new();
        for (received_us, at_us) in &told {
            let least_us = least.entry(received_us / MINUTE_US).or_insert(i64::MAX);
            *least_us = (received_us - at_us).min(*least_us);
        }
        let least_us = *least.values().min().unwrap();
        let moves = least.values().any(|minute_us| minute_us - least_us > SET_BACK_US);
        if !(steady && moves) {
            skewed = least_us.abs() > SKEWED_US;
        }
    }
    skewed
}
