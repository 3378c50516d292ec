//! An oracle for the audit: a slow, plain checker of whole streams, written from the words of the
//! rules and sharing no code with `src/audit`. Where the two disagree, one of them is wrong, and
//! the test prints the smallest stream that shows it.
//!
//! `DEDUPWATCH_ORACLE_SEED=first` and `DEDUPWATCH_ORACLE_STREAMS=n` try other streams by hand.

mod blocks;
mod dice;
mod evictions;
mod guard;
mod guards;
mod leaks;
mod money;
mod noise;
mod order;
mod others;
mod shrink;
mod sources;
mod stream;
mod verdict;
mod world;

use std::collections::BTreeMap;

use dedupwatch::audit::{Audit, Finding, Settings};
use dedupwatch::outcome::{KeyedHash, Record};

use crate::cases::fold;
use dice::Dice;
use stream::{Stream, lines, records};
use verdict::Verdicts;
use world::{Rules, World};

/// When the streams begin.
pub const BEGIN_US: i64 = 1_800_000_000_000_000;
/// All in all; each test tries half of them.
const STREAMS: u64 = 10_000;

fn settings() -> Settings {
    Settings { warmup_us: 0, horizon_us: 300_000_000, ..Settings::default() }
}

fn findings(records: &[Record]) -> Vec<Finding> {
    let mut audit = Audit::in_memory(settings(), KeyedHash::new([9; 16]));
    let mut rows = BTreeMap::new();
    for record in records {
        fold(&mut audit, &mut rows, record);
    }
    rows.into_values().collect()
}

fn rules() -> Rules {
    let settings = settings();
    Rules {
        horizon_us: settings.horizon_us,
        live_games: usize::try_from(settings.live_games).unwrap(),
        live_for_us: settings.live_for_us,
    }
}

fn oracle(records: &[Record]) -> Verdicts {
    let world = World::new(rules(), records);
    let mut verdicts = Verdicts::default();
    leaks::judge(&world, &mut verdicts);
    blocks::judge(&world, &mut verdicts);
    evictions::judge(&world, &mut verdicts);
    money::judge(&world, &mut verdicts);
    others::judge(&world, &mut verdicts);
    verdicts
}

/// Sorts of differences, each with both sides.
type Differences = BTreeMap<String, Vec<String>>;

fn differences(stream: &Stream, _: u64) -> Differences {
    let records = records(stream);
    oracle(&records).differences(&Verdicts::of(findings(&records).into_iter()))
}

#[expect(clippy::disallowed_methods, reason = "other streams are tried by hand")]
fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Tries many streams; a failure prints the smallest stream of each sort of difference.
fn agree_on(make: fn(&mut Dice) -> Stream, differences: fn(&Stream, u64) -> Differences) {
    let first = number("DEDUPWATCH_ORACLE_SEED", 0);
    let streams = number("DEDUPWATCH_ORACLE_STREAMS", STREAMS / 2);
    let mut wrong: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for seed in first..first + streams {
        for sort in differences(&make(&mut Dice::new(seed)), seed).into_keys() {
            wrong.entry(sort).or_default().push(seed);
        }
    }
    let told = wrong.iter().map(|(sort, seeds)| {
        let stream = make(&mut Dice::new(seeds[0]));
        let shows = |stream: &Stream| differences(stream, seeds[0]).contains_key(sort);
        let smallest = shrink::smallest(stream, &shows);
        let both = differences(&smallest, seeds[0])[sort].join("\n");
        let lines = lines(&smallest);
        format!("{sort}: {} differ, first with seed {}:\n{lines}{both}\n", seeds.len(), seeds[0])
    });
    let told: Vec<String> = told.collect();
    assert!(told.is_empty(), "of {streams} streams\n{}", told.join("\n"));
}

#[test]
fn agrees_on_guards_that_behave_and_their_faults() {
    agree_on(guards::stream, differences);
}

#[test]
fn agrees_on_noise() {
    agree_on(noise::stream, differences);
}
