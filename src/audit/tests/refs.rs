//! `missed_duplicate`: one intended booking under several signatures.

use super::*;
use crate::audit::Severity;

fn booked(at: f64, who: &str, signature: &str) -> Told {
    told(at, who, "p", signature, "processed").with("ref", "s1")
}

fn reversed(at: f64, who: &str, signature: &str) -> Told {
    let event = told(at, who, "p", signature, "processed");
    event.with("reversal_of", "s1").with("ref", format!("void-{at}"))
}

/// What the events come to, in this order of arrival and in the opposite one.
fn found(events: impl Fn() -> Vec<Told>) -> Option<u64> {
    let mut backwards = events();
    backwards.reverse();
    let counts = [events(), backwards].map(|events| {
        let mut world = World::new();
        events.into_iter().for_each(|event| world.hear(event));
        world.wait_until(1_000.0);
        let open = world.open(Kind::MissedDuplicate);
        assert!(open.iter().all(|row| row.state == State::Confirmed));
        open.first().map(|row| row.count)
    });
    assert_eq!(counts[0], counts[1], "the order of arrival");
    counts[0]
}

#[test]
fn one_ref_under_several_signatures_is_booked_several_times() {
    let events = || {
        vec![
            booked(0.0, "a 1#1", "r/1/50F"),
            booked(90.0, "a 1#2", "r/2/50F"),
            booked(200.0, "a 1#3", "r/3/50F"),
        ]
    };
    assert_eq!(found(events), Some(2));
    let mut world = World::new();
    events().into_iter().for_each(|event| world.hear(event));
    assert_eq!(world.only(Kind::MissedDuplicate).state, State::Suspected);
    world.wait_until(230.0);
    let finding = world.only(Kind::MissedDuplicate);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
    assert_eq!((finding.amounts.exposure, finding.amounts.overpaid), (100, 0));
    assert_eq!(finding.player, Some(id("p")));
    let signatures: Vec<_> = finding.witnesses.iter().flat_map(|w| &w.signature).collect();
    assert_eq!(signatures.len(), 3);
}

#[test]
fn other_nets_players_and_refs_are_other_bookings() {
    let first = || booked(0.0, "a 1#1", "r/1/50F");
    assert_eq!(found(|| vec![first(), booked(9.0, "a 1#2", "r/1/51F")]), None);
    let other = || told(9.0, "a 1#2", "q", "r/2/50F", "processed").with("ref", "s1");
    assert_eq!(found(|| vec![first(), other()]), None);
    assert_eq!(found(|| vec![first(), booked(9.0, "a 1#2", "r/2/50F").with("ref", "s2")]), None);
    assert_eq!(found(|| vec![first(), booked(9.0, "a 1#2", "r/2/50F").with("ref", "S1")]), None);
}

#[test]
fn one_signature_twice_is_a_leak_and_no_missed_duplicate() {
    assert_eq!(
        found(|| vec![booked(0.0, "a 1#1", "r/1/50F"), booked(9.0, "a 1#2", "r/1/50F")]),
        None
    );
}

#[test]
fn what_was_blocked_or_failed_is_no_booking() {
    let first = || booked(0.0, "a 1#1", "r/1/50F");
    let blocked = || told(9.0, "a 1#2", "p", "r/2/50F", "replay_blocked").with("ref", "s1");
    assert_eq!(found(|| vec![first(), blocked()]), None);
    for effect in ["failed", "unknown"] {
        let moved = || booked(9.0, "a 1#2", "r/2/50F").with("effect", effect);
        assert_eq!(found(|| vec![first(), moved()]), None);
    }
}

#[test]
fn what_was_reversed_is_no_booking() {
    let again = || {
        vec![
            booked(0.0, "a 1#1", "r/1/50F"),
            reversed(5.0, "a 1#2", "r/1/-50F"),
            booked(9.0, "a 1#3", "r/2/50F"),
        ]
    };
    assert_eq!(found(again), None);
    let both = || {
        vec![
            booked(0.0, "a 1#1", "r/1/50F"),
            booked(5.0, "a 1#2", "r/2/50F"),
            reversed(9.0, "a 1#3", "r/1/-50F"),
        ]
    };
    assert_eq!(found(both), None);
    let one_of_three = || {
        let mut events = both();
        events.push(booked(20.0, "a 1#4", "r/3/50F"));
        events
    };
    assert_eq!(found(one_of_three), Some(1));
}

#[test]
fn a_reversal_of_another_amount_or_that_failed_undoes_nothing() {
    for (signature, effect) in [("r/1/-49F", "applied"), ("r/1/-50F", "failed")] {
        let events = || {
            vec![
                booked(0.0, "a 1#1", "r/1/50F"),
                booked(5.0, "a 1#2", "r/2/50F"),
                reversed(9.0, "a 1#3", signature).with("effect", effect),
            ]
        };
        assert_eq!(found(events), Some(1));
    }
}

#[test]
fn a_reversal_before_both_undoes_neither() {
    let events = || {
        vec![
            reversed(1.0, "a 1#1", "r/1/-50F"),
            booked(5.0, "a 1#2", "r/1/50F"),
            booked(9.0, "a 1#3", "r/2/50F"),
        ]
    };
    assert_eq!(found(events), Some(1));
}

#[test]
fn where_the_order_of_a_reversal_is_not_known_it_is_skipped() {
    let events = || {
        vec![
            booked(0.0, "a 1#1", "r/1/50F"),
            booked(5.0, "a 1#2", "r/2/50F"),
            reversed(5.2, "b 1#1", "r/2/-50F"),
        ]
    };
    assert_eq!(found(events), None);
    let mut world = World::new();
    events().into_iter().for_each(|event| world.hear(event));
    assert_eq!(world.skipped().get("missed_duplicate"), None, "the first was surely before");
    let mut world = World::new();
    world.hear(booked(5.0, "a 1#1", "r/1/50F"));
    world.hear(booked(5.1, "a 1#2", "r/2/50F"));
    world.hear(reversed(5.2, "b 1#1", "r/2/-50F"));
    assert!(world.open(Kind::MissedDuplicate).is_empty());
    assert_eq!(world.skipped().get("missed_duplicate"), Some(&1));
}

#[test]
fn a_reversal_that_comes_late_closes_it() {
    let mut world = World::new();
    world.hear(booked(0.0, "a 1#1", "r/1/50F"));
    world.hear(booked(5.0, "a 1#2", "r/2/50F"));
    world.wait_until(100.0);
    world.hear(reversed(9.0, "a 1#3", "r/2/-50F"));
    let closed = world.all(Kind::MissedDuplicate);
    assert_eq!(closed[0].closed_because.as_deref(), Some("made_good"));
}

#[test]
fn a_ref_for_everything_is_bounded() {
    let events = || -> Vec<Told> {
        (1..=80).map(|i| booked(f64::from(i), &format!("a 1#{i}"), &format!("r/{i}/50F"))).collect()
    };
    assert_eq!(found(events), Some(63));
}

#[test]
fn a_person_may_close_it() {
    let mut world = World::new();
    world.hear(booked(0.0, "a 1#1", "r/1/50F"));
    world.hear(booked(5.0, "a 1#2", "r/2/50F"));
    world.close(Kind::MissedDuplicate);
    world.hear(booked(6.0, "a 1#3", "r/3/50F"));
    let again = world.only(Kind::MissedDuplicate);
    assert_eq!((again.ordinal, again.count, again.amounts.exposure), (2, 1, 50));
}
