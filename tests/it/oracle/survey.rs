//! That the streams hold what the oracle judges: each kind is said in many of them, and seldom is
//! it unsure.

use std::collections::BTreeMap;

use dedupwatch::audit::Kind;

use super::dice::Dice;
use super::stream::records;
use super::verdict::COVERED;
use super::{guards, noise, number, oracle, panes, ticks};

/// Streams of each sort that are looked at.
const STREAMS: u64 = 600;
/// In so many of them each kind is said.
const SAID_MIN: usize = 20;
/// No more than so many of 100 verdicts of a kind are unsure; of these more, since time of receipt
/// decides them wherever something that was believed turned out otherwise, or since noise tells
/// more of a window than is remembered.
const UNSURE_MAX: usize = 5;
const BY_RECEIPT: [Kind; 6] = [
    Kind::UnverifiableBlock,
    Kind::LiveEviction,
    Kind::AcceptWithoutEffect,
    Kind::BlockAfterFailedEffect,
    Kind::WindowLost,
    Kind::UndersizedWindow,
];
const UNSURE_BY_RECEIPT_MAX: usize = 90;

#[test]
fn each_kind_is_said_in_many_streams_and_seldom_unsure() {
    let (mut said, mut unsure) = (BTreeMap::new(), BTreeMap::new());
    let first = number("DEDUPWATCH_ORACLE_SEED", 0);
    for seed in first..first + STREAMS {
        for make in [guards::stream, noise::stream, ticks::stream, panes::stream] {
            let verdicts = oracle(&records(&make(&mut Dice::new(seed))));
            let places = |kind, sure: bool| {
                let said = verdicts.said.keys().filter(move |(one, _)| *one == kind);
                said.filter(|place| verdicts.unsure.contains(place) != sure).count()
            };
            for kind in COVERED {
                *said.entry(kind).or_insert(0) += usize::from(places(kind, true) > 0);
                let counts: &mut (usize, usize) = unsure.entry(kind).or_default();
                *counts = (counts.0 + places(kind, false), counts.1 + places(kind, true));
            }
        }
    }
    let told: Vec<String> = COVERED
        .iter()
        .filter(|kind| {
            let (unsure, sure) = unsure[kind];
            let by_receipt = BY_RECEIPT.contains(kind);
            let most = if by_receipt { UNSURE_BY_RECEIPT_MAX } else { UNSURE_MAX };
            said[kind] < SAID_MIN || unsure * 100 > most * (unsure + sure)
        })
        .map(|kind| format!("{}: in {} streams, {:?}", kind.as_str(), said[kind], unsure[kind]))
        .collect();
    assert!(told.is_empty(), "said too seldom or unsure too often:\n{}", told.join("\n"));
}
