//! `duplicate_leak`: what stands too often, and why.

use super::*;
use crate::audit::{OrderKnown, Severity};

fn accepted(at: f64, who: &str) -> Told {
    told(at, who, "p", "r/1/10F", "processed")
}

/// What two acceptances of one settlement come to.
fn pair(first: Told, again: Told) -> World {
    let mut world = World::new();
    world.hear(first);
    world.hear(again);
    world
}

#[test]
fn a_second_acceptance_is_a_leak_at_once() {
    let world = pair(accepted(0.0, "a 1#1"), accepted(5.0, "a 1#2"));
    let leak = world.only(Kind::DuplicateLeak);
    assert_eq!((leak.state, leak.severity), (State::Confirmed, Severity::Critical));
    assert_eq!((leak.count, leak.amounts.overpaid, leak.amounts.overcharged), (1, 10, 0));
    let roles: Vec<_> = leak.witnesses.iter().map(|witness| witness.role.as_str()).collect();
    assert_eq!(roles, ["accepted", "accepted_again"]);
    assert_eq!(leak.order, OrderKnown::Proven);
}

#[test]
fn every_acceptance_beyond_the_first_counts() {
    let mut world = pair(accepted(0.0, "a 1#1"), accepted(5.0, "a 1#2"));
    world.hear(accepted(9.0, "a 1#3"));
    let leak = world.only(Kind::DuplicateLeak);
    assert_eq!((leak.count, leak.amounts.overpaid), (2, 20));
    assert_eq!(world.gained[&leak.id].len(), 2);
}

#[test]
fn taken_twice_is_overcharged() {
    let taken = |at, who: &str| told(at, who, "p", "r/1/-40F", "processed");
    let world = pair(taken(0.0, "a 1#1"), taken(5.0, "a 1#2"));
    let amounts = world.only(Kind::DuplicateLeak).amounts;
    assert_eq!((amounts.overpaid, amounts.overcharged), (0, 40));
}

#[test]
fn nothing_moved_twice_is_only_good_to_know() {
    let zero = |at, who: &str| told(at, who, "p", "r/1/0F", "processed");
    let world = pair(zero(0.0, "a 1#1"), zero(5.0, "a 1#2"));
    assert_eq!(world.only(Kind::DuplicateLeak).severity, Severity::Info);
}

#[test]
fn each_part_of_the_key_tells_settlements_apart() {
    for other in ["s/1/10F", "r/2/10F", "r/1/11F", "r/1/10", "=r/10"] {
        let other = told(5.0, "a 1#2", "p", other, "processed");
        pair(accepted(0.0, "a 1#1"), other).assert_quiet();
    }
    pair(accepted(0.0, "a 1#1"), told(5.0, "a 1#2", "q", "r/1/10F", "processed")).assert_quiet();
    pair(accepted(0.0, "a 1#1"), accepted(5.0, "a 1#2").with("ledger", "chips")).assert_quiet();
    pair(accepted(0.0, "a 1#1"), accepted(5.0, "a 1#2").with("env", "test")).assert_quiet();
    let mut session = accepted(5.0, "a 1#2");
    session.0["signature"]["session"] = "day-2".into();
    pair(accepted(0.0, "a 1#1"), session).assert_quiet();
}

#[test]
fn the_amount_is_no_part_of_an_opaque_key() {
    let key = |at, who: &str, text: &str| told(at, who, "p", text, "processed");
    let world = pair(key(0.0, "a 1#1", "=k/50"), key(5.0, "a 1#2", "=k/70"));
    assert_eq!(world.only(Kind::DuplicateLeak).amounts.overpaid, 70);
}

#[test]
fn a_reversal_is_of_its_own_game_whichever_booking_was_heard_first() {
    let booked = |at, who: &str, signature: &str| told(at, who, "p", signature, "processed");
    let events = || {
        vec![
            booked(0.0, "a 1#1", "r/1/10F").with("ref", "y"),
            booked(5.0, "a 1#2", "r/1/10F"),
            booked(9.0, "a 1#3", "s/1/-10F").with("reversal_of", "y"),
            booked(8.0, "b 1#1", "s/1/10F").with("ref", "y"),
        ]
    };
    for backwards in [false, true] {
        let mut events = events();
        if backwards {
            events.reverse();
        }
        let mut world = World::new();
        events.into_iter().for_each(|event| world.hear(event));
        assert_eq!(world.only(Kind::DuplicateLeak).amounts.overpaid, 10, "{backwards}");
    }
}

#[test]
fn an_effect_that_failed_never_stands() {
    pair(accepted(0.0, "a 1#1").with("effect", "failed"), accepted(5.0, "a 1#2")).assert_quiet();
}

#[test]
fn an_effect_that_nobody_knows_is_no_certain_surplus() {
    let world = pair(accepted(0.0, "a 1#1"), accepted(5.0, "a 1#2").with("effect", "unknown"));
    assert!(world.open(Kind::DuplicateLeak).is_empty());
}

#[test]
fn different_refs_are_honest_equal_settlements() {
    let by = |at, who: &str, name: &str| accepted(at, who).with("ref", name);
    let mut world = pair(by(0.0, "a 1#1", "h1"), by(1.0, "a 1#2", "h2"));
    world.assert_quiet();
    world.hear(by(2.0, "a 1#3", "h2"));
    assert_eq!(world.only(Kind::DuplicateLeak).amounts.overpaid, 10);
}

#[test]
fn without_ref_none_may_stand_beside_one_with() {
    let world = pair(accepted(0.0, "a 1#1").with("ref", "h1"), accepted(1.0, "a 1#2"));
    assert_eq!(world.only(Kind::DuplicateLeak).count, 1);
}

fn reversal(at: f64, who: &str, of: &str) -> Told {
    told(at, who, "p", "r/1/-10F", "processed")
        .with("ref", format!("void-{of}-{at}"))
        .with("reversal_of", of)
}

#[test]
fn a_reversal_makes_one_good() {
    let by = |at, who: &str| accepted(at, who).with("ref", "s1");
    let mut world = pair(by(0.0, "a 1#1"), by(2.0, "a 1#2"));
    world.hear(reversal(60.0, "a 1#3", "s1"));
    world.assert_quiet();
    let leak = world.all(Kind::DuplicateLeak)[0];
    assert_eq!(leak.closed_because.as_deref(), Some("made_good"));
    assert_eq!(leak.amounts.overpaid, 0);
    assert_eq!(leak.amounts_before_closing.map(|amounts| amounts.overpaid), Some(10));
}

#[test]
fn a_voided_ref_may_not_stand_again() {
    let by = |at, who: &str| accepted(at, who).with("ref", "s1");
    let mut world = pair(by(0.0, "a 1#1"), reversal(5.0, "a 1#2", "s1"));
    world.assert_quiet();
    world.hear(by(9.0, "a 1#3"));
    assert_eq!(world.only(Kind::DuplicateLeak).count, 1);
}

#[test]
fn a_reversal_undoes_only_what_is_before_it() {
    let by = |at, who: &str| accepted(at, who).with("ref", "s1");
    let mut world = World::new();
    // Heard first, but numbered last: the order of receipt is no order.
    world.hear(reversal(9.0, "a 1#3", "s1"));
    world.hear(by(0.0, "a 1#1"));
    world.hear(by(5.0, "a 1#2"));
    world.assert_quiet();
}

#[test]
fn an_unknown_order_gives_the_least_surplus_and_is_counted() {
    let by = |at, who: &str| accepted(at, who).with("ref", "s1");
    let mut world = World::new();
    world.hear(by(0.0, "a 1#1"));
    world.hear(reversal(5.0, "b 1#1", "s1"));
    world.hear(by(5.3, "a 1#2"));
    world.assert_quiet();
    assert_eq!(world.skipped()["duplicate_leak"], 1);
}

#[test]
fn a_reversal_that_failed_undoes_nothing() {
    let by = |at, who: &str| accepted(at, who).with("ref", "s1");
    let mut world = pair(by(0.0, "a 1#1"), by(2.0, "a 1#2"));
    world.hear(reversal(60.0, "a 1#3", "s1").with("effect", "failed"));
    assert_eq!(world.open(Kind::DuplicateLeak).len(), 1);
}

#[test]
fn a_reversal_of_another_amount_undoes_nothing() {
    let by = |at, who: &str| accepted(at, who).with("ref", "s1");
    let mut world = pair(by(0.0, "a 1#1"), by(2.0, "a 1#2"));
    let part = told(60.0, "a 1#3", "p", "r/1/-4F", "processed").with("reversal_of", "s1");
    world.hear(part);
    assert_eq!(world.open(Kind::DuplicateLeak).len(), 1);
}

fn cause(first: Told, again: Told) -> String {
    pair(first, again).only(Kind::DuplicateLeak).cause.clone()
}

#[test]
fn the_cause_is_the_first_that_holds() {
    let first = || accepted(0.0, "a 1#1");
    assert_eq!(cause(first(), accepted(5.0, "a 1#2")), "unknown");
    assert_eq!(cause(first(), accepted(5.0, "b 1#1")), "split");
    assert_eq!(cause(first(), accepted(0.9, "b 1#1")), "race");
    assert_eq!(cause(first(), accepted(1.0, "b 1#1")), "split");
    assert_eq!(cause(first(), accepted(5.0, "a 2#1")), "restart");
    assert_eq!(cause(first(), accepted(0.5, "a 2#1")), "restart");
    assert_eq!(cause(first(), accepted(5.0, "a 2#1").with("guard_mode", "off")), "guard_off");
    let mut world = World::new();
    world.hear(first());
    world.hear(told(3.0, "a 1#2", "p", "r/1/10F", "evicted"));
    world.hear(accepted(5.0, "a 2#1"));
    assert_eq!(world.only(Kind::DuplicateLeak).cause, "evicted");
}

#[test]
fn the_order_of_receipt_makes_no_difference() {
    let events = || [accepted(0.0, "a 1#1"), accepted(5.0, "b 1#1"), accepted(9.0, "a 1#2")];
    let rows = |order: [usize; 3]| {
        let mut world = World::new();
        let mut events = events().map(Some);
        order.into_iter().for_each(|i| world.hear(events[i].take().unwrap()));
        let leak = world.only(Kind::DuplicateLeak);
        let times: Vec<_> = leak.witnesses.iter().map(|w| w.occurred_us).collect();
        (leak.id.clone(), leak.count, leak.amounts, leak.cause.clone(), times)
    };
    let expected = rows([0, 1, 2]);
    for order in [[0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
        assert_eq!(rows(order), expected, "{order:?}");
    }
}

#[test]
fn acceptances_beyond_those_kept_are_counted() {
    let mut world = World::new();
    for seq in 1..=100 {
        world.hear(accepted(seq as f64, &format!("a 1#{seq}")));
    }
    let leak = world.only(Kind::DuplicateLeak);
    assert_eq!((leak.count, leak.amounts.overpaid), (99, 990));
}

#[test]
fn a_surplus_is_shown_beside_another_acceptance_never_beside_itself() {
    let told_by = |leak: &Finding| {
        let seqs: Vec<_> = leak.witnesses.iter().map(|witness| witness.seq).collect();
        (leak.cause.clone(), seqs)
    };
    let world = pair(accepted(0.0, "a 1#1"), accepted(60.0, "a 1#2").with("ref", "x"));
    let said = told_by(world.only(Kind::DuplicateLeak));
    assert_eq!(said, ("unknown".into(), vec![Some(2), Some(1)]), "the ref is outside the contract");

    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("ref", "x"));
    world.hear(told(60.0, "a 1#2", "p", "r/1/-10F", "processed").with("reversal_of", "x"));
    world.hear(accepted(120.0, "a 1#3").with("ref", "x"));
    let said = told_by(world.only(Kind::DuplicateLeak));
    assert_eq!(said, ("unknown".into(), vec![Some(1), Some(3)]), "the ref was voided");
}
