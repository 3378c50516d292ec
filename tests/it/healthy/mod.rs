//! Healthy guards stay silent: fleets of many sorts, with real windows and all that befalls healthy
//! ones (threads, batches, retries, clocks that differ, deploys, a collector that comes late or is
//! away), and what may be said of them at any moment.
//!
//! `DEDUPWATCH_HEALTHY_SEED=first` and `DEDUPWATCH_HEALTHY_FLEETS=n` try other fleets by hand.

mod collector;
mod dice;
mod line;
mod plan;
mod pods;
mod script;
mod shrink;
mod verdict;
mod week;
mod world;

use std::collections::BTreeMap;

use self::plan::Plan;
use self::script::Step;
use self::verdict::{Seen, Wrong};

const SECOND_US: i64 = 1_000_000;
/// When the fleets begin.
const BEGIN_US: i64 = 1_800_000_000 * SECOND_US;
/// How much later a message comes again.
const COPY_US_MAX: i64 = 90 * SECOND_US;
/// Fleets of one run.
const FLEETS: u64 = 300;

/// What is wrong about a fleet, if it is a healthy one.
fn judge(plan: &Plan, steps: &[Step]) -> Option<(Wrong, Seen)> {
    let play = world::play(plan, steps);
    if play.unhealthy {
        return None;
    }
    let records = collector::records(plan, &line::entries(plan, &play.said));
    Some(verdict::judge(plan, &play, &records))
}

#[expect(clippy::disallowed_methods, reason = "for people who look for more by hand")]
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// All that went wrong, each with the smallest fleet that shows it.
fn told(wrong: BTreeMap<String, Vec<u64>>) -> String {
    let one = |(sort, seeds): (String, Vec<u64>)| {
        let plan = Plan::new(seeds[0]);
        let shows = |steps: &[Step]| {
            judge(&plan, steps).is_some_and(|(wrong, _)| wrong.contains_key(&sort))
        };
        let steps = shrink::smallest(script::script(&plan), &shows);
        let lines = shrink::lines(&plan, &steps);
        let finding = &judge(&plan, &steps).unwrap().0[&sort];
        format!("{sort}: seeds {seeds:?}\n{plan:?}\n{steps:#?}\n{lines}{finding}\n")
    };
    wrong.into_iter().map(one).collect::<Vec<_>>().join("\n")
}

#[test]
fn healthy_fleets_are_met_with_silence() {
    let first = number("DEDUPWATCH_HEALTHY_SEED", 0);
    let fleets = number("DEDUPWATCH_HEALTHY_FLEETS", FLEETS);
    let mut wrong: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    let mut all = Seen::default();
    for seed in first..first + fleets {
        let plan = Plan::new(seed);
        let healthy = judge(&plan, &script::script(&plan));
        let (found, seen) = healthy.unwrap_or_else(|| panic!("{plan:?} is not healthy"));
        all.add(seen);
        found.into_keys().for_each(|sort| wrong.entry(sort).or_default().push(seed));
    }
    println!("{all:?} {wrong:?}");
    assert!(wrong.is_empty(), "of {fleets} fleets\n{}", told(wrong));
    assert!(all.blocks > 10 * fleets && all.unverifiable > fleets / 10, "{all:?}");
}
