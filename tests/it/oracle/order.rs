//! Order and cutting do not matter: the same things told in another order, cut otherwise, repeated
//! and late by less than what is waited for, come to the same findings.

use std::collections::BTreeMap;

use dedupwatch::audit::{Coverage, Finding, Severity, State};
use dedupwatch::outcome::{Amounts, Event, Id, Outcome, Transition};

use super::dice::Dice;
use super::stream::{Entry, Said, Stream, lines, records};
use super::world::World;
use super::{CLOCKS, STREAMS, agree_on, findings, rules};

/// No event is later than this by another way: all are there before any grace is over.
const LATE_US: i64 = 1_400_000;
/// So much of a player's windows is remembered: a bound of the product.
const REMEMBERED: usize = 16;

/// Whether an event was told with another content too: the one that is received first is taken, so
/// that for these the order does matter.
fn is_contested(stream: &Stream, event: &Event) -> bool {
    stream.iter().any(|entry| match &entry.said {
        Said::Event(other) => {
            let same = other.from == event.from
                && match (other.sequence(), event.sequence()) {
                    (None, None) => other.event_id == event.event_id,
                    (one, two) => one == two,
                };
            same && **other != *event
        }
        _ => false,
    })
}

/// As [`is_contested`], of a move of a delivery.
fn is_contested_move(stream: &Stream, moved: &Transition) -> bool {
    stream.iter().any(|entry| match &entry.said {
        Said::Moved(other) => {
            let same = other.from == moved.from
                && (other.sequence(), &other.event_id) == (moved.sequence(), &moved.event_id);
            same && **other != *moved
        }
        _ => false,
    })
}

/// The same, told otherwise.
fn told_otherwise(stream: &Stream, dice: &mut Dice) -> Stream {
    let (mut other, mut as_it_was) = (Vec::new(), Vec::new());
    for entry in stream {
        let Entry { received_us, said } = entry.clone();
        let contested = match &said {
            Said::Event(event) => is_contested(stream, event),
            Said::Moved(moved) => is_contested_move(stream, moved),
            _ => false,
        };
        if contested {
            as_it_was.push(Entry { received_us, said });
            continue;
        }
        let late_us = match &said {
            Said::Event(event) => {
                let room_us = event.occurred_us + LATE_US - received_us;
                dice.between(0, room_us.max(0))
            }
            Said::Moved(_) => dice.between(0, LATE_US),
            _ => 0,
        };
        if matches!(said, Said::Event(_) | Said::Moved(_)) && dice.chance(20) {
            let again_us = received_us + late_us + dice.between(0, 3_000_000);
            other.push(Entry { received_us: again_us, said: said.clone() });
        }
        other.push(Entry { received_us: received_us + late_us, said });
    }
    for at in (1..other.len()).rev() {
        other.swap(at, dice.index(at + 1));
    }
    other.extend(as_it_was);
    other
}

/// What must not depend on how it was told. Not so which of several are shown as witnesses, nor
/// rows that were closed on the way.
#[derive(Debug, PartialEq)]
struct Told {
    state: State,
    cause: String,
    severity: Severity,
    coverage: Coverage,
    count: u64,
    amounts: Amounts,
}

fn said(stream: &Stream) -> BTreeMap<String, Told> {
    let open = findings(&records(stream)).into_iter();
    let open = open.filter(|finding| finding.state != State::Closed);
    let told = open.map(|finding| {
        let place = format!("{} {:?}", finding.kind.as_str(), finding.subject);
        let Finding { state, cause, severity, coverage, count, amounts, .. } = finding;
        (place, Told { state, cause, severity, coverage, count, amounts })
    });
    told.collect()
}

/// Whether so much was told of a player that not all of it is remembered; then it matters what was
/// forgotten first.
fn is_long(stream: &Stream) -> bool {
    let mut told: BTreeMap<(String, &Id), usize> = BTreeMap::new();
    for entry in stream {
        if let Said::Event(event) = &entry.said {
            *told.entry((event.ledger(), &event.player)).or_default() += 1;
        }
    }
    told.values().any(|told| *told > REMEMBERED)
}

/// Whether an eviction was told by a source that nobody watches: what pushed it out, seconds later
/// and late, may come when it is judged.
fn is_pushed_late(stream: &Stream) -> bool {
    let watched = |event: &Event| {
        stream.iter().any(|entry| match &entry.said {
            Said::Heartbeat(heartbeat) => heartbeat.from == event.from,
            _ => false,
        })
    };
    stream.iter().any(|entry| match &entry.said {
        Said::Event(event) => event.outcome == Outcome::Evicted && !watched(event),
        _ => false,
    })
}

fn differences(stream: &Stream, seed: u64) -> BTreeMap<String, Vec<String>> {
    let other = told_otherwise(stream, &mut Dice::new(!seed));
    // Where a verdict rightly stands that was made on what was not lasting, time of receipt counts.
    let lasting = |stream: &Stream| World::new(rules(), &records(stream)).lasting;
    if !lasting(stream) || !lasting(&other) {
        return BTreeMap::new();
    }
    let (one, two) = (said(stream), said(&other));
    let mut differences = BTreeMap::new();
    let compares = |place: &&String| {
        let of_windows = ["window_lost ", "undersized_window "];
        let of_window = of_windows.iter().any(|kind| place.starts_with(kind));
        let of_eviction = place.starts_with("live_eviction ");
        !((of_window && is_long(stream)) || (of_eviction && is_pushed_late(stream)))
    };
    let places = one.keys().chain(two.keys()).filter(compares);
    let places = places.filter(|place| one.get(*place) != two.get(*place));
    for place in places {
        let kind = place.split(' ').next().unwrap_or_default().to_owned();
        let both = format!("{:?}\n{:?}\n{}", one.get(place), two.get(place), lines(&other));
        differences.insert(kind, vec![both]);
    }
    differences
}

#[test]
fn order_and_cutting_make_no_difference_to_guards_that_behave() {
    agree_on(STREAMS / 2, super::guards::stream, differences);
}

#[test]
fn order_and_cutting_make_no_difference_to_noise() {
    agree_on(STREAMS / 2, super::noise::stream, differences);
}

#[test]
fn order_and_cutting_make_no_difference_to_clocks_and_moves() {
    agree_on(CLOCKS, super::ticks::stream, differences);
}
