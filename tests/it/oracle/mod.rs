//! An oracle for the audit: a slow, plain checker of whole streams, written from the words of the
//! rules and sharing no code with `src/audit`. Where the two disagree, one of them is wrong, and
//! the test prints the smallest stream that shows it.
//!
//! `DEDUPWATCH_ORACLE_SEED=first` and `DEDUPWATCH_ORACLE_STREAMS=n` try other streams by hand;
//! `DEDUPWATCH_ORACLE_COUNTS=1` prints how often each kind occurs (with `--nocapture`).

mod blocks;
mod clocks;
mod dice;
mod evictions;
mod extras;
mod fates;
mod guard;
mod guards;
mod keys;
mod leaks;
mod messages;
mod money;
mod moves;
mod noise;
mod order;
mod others;
mod panes;
mod refs;
mod shrink;
mod sides;
mod sizes;
mod sources;
mod state;
mod stream;
mod survey;
mod ticks;
mod verdict;
mod windows;
mod world;
mod wraps;

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Audit, Finding, Kind, Settings};
use dedupwatch::outcome::{KeyedHash, Record, ReuseAfter};

use crate::cases::fold;
use dice::Dice;
use stream::{Stream, lines, records};
use verdict::Verdicts;
use world::{Rules, World};

/// When the streams begin.
pub const BEGIN_US: i64 = 1_800_000_000_000_000;
/// All in all; the tests of guards and of noise try half of them each.
const STREAMS: u64 = 10_000;
/// More, for clocks alone.
const CLOCKS: u64 = 2_000;
/// And for windows alone.
const WINDOWS: u64 = 2_000;

fn settings() -> Settings {
    let reuse_after = ReuseAfter { default_us: 150_000_000, of_us: BTreeMap::new() };
    Settings { warmup_us: 0, horizon_us: 300_000_000, reuse_after, ..Settings::default() }
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
        reuse_after_us: settings.reuse_after.default_us,
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
    clocks::judge(&world, &mut verdicts);
    moves::judge(&world, &mut verdicts);
    sides::judge(&world, &mut verdicts);
    wraps::judge(&world, &mut verdicts);
    keys::judge(&world, &mut verdicts);
    refs::judge(&world, &mut verdicts);
    messages::judge(&world, &mut verdicts);
    state::judge(&world, &mut verdicts);
    fates::judge(&world, &mut verdicts);
    windows::judge(&world, &mut verdicts);
    sizes::judge(&world, &mut verdicts);
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

/// Prints in how many streams each kind is found, and in how many it can't be said.
fn count(make: fn(&mut Dice) -> Stream, first: u64, streams: u64) {
    let mut counts: BTreeMap<&str, [u64; 2]> = BTreeMap::new();
    for seed in first..first + streams {
        let verdicts = oracle(&records(&make(&mut Dice::new(seed))));
        let said: BTreeSet<Kind> = verdicts.said.keys().map(|(kind, _)| *kind).collect();
        let unsure: BTreeSet<Kind> = verdicts.unsure.iter().map(|(kind, _)| *kind).collect();
        said.iter().for_each(|kind| counts.entry(kind.as_str()).or_default()[0] += 1);
        unsure.iter().for_each(|kind| counts.entry(kind.as_str()).or_default()[1] += 1);
    }
    println!("of {streams} streams, found and unsure: {counts:#?}");
}

/// Tries many streams; a failure prints the smallest stream of each sort of difference.
fn agree_on(
    streams: u64,
    make: fn(&mut Dice) -> Stream,
    differences: fn(&Stream, u64) -> Differences,
) {
    let first = number("DEDUPWATCH_ORACLE_SEED", 0);
    let streams = number("DEDUPWATCH_ORACLE_STREAMS", streams);
    let mut wrong: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    if number("DEDUPWATCH_ORACLE_COUNTS", 0) > 0 {
        count(make, first, streams);
    }
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
    agree_on(STREAMS / 2, guards::stream, differences);
}

/// What is not said of clocks hangs on how far they were measured to be off at each time.
fn differences_of_clocks(stream: &Stream, seed: u64) -> Differences {
    let about = [
        Kind::ClockRollback,
        Kind::ClockSkew,
        Kind::TelemetryGap,
        Kind::IdentityConflict,
        Kind::RejectedEvidence,
        Kind::IllegalTransition,
        Kind::CounterWrap,
    ];
    let is_about = |sort: &String| about.iter().any(|kind| sort.starts_with(kind.as_str()));
    differences(stream, seed).into_iter().filter(|(sort, _)| is_about(sort)).collect()
}

#[test]
fn agrees_on_clocks_and_moves() {
    agree_on(CLOCKS, ticks::stream, differences_of_clocks);
}

#[test]
fn agrees_on_windows_that_lose() {
    agree_on(WINDOWS, panes::stream, differences);
}

#[test]
fn agrees_on_noise() {
    agree_on(STREAMS / 2, noise::stream, differences);
}
