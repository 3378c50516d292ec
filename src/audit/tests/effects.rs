//! `accept_without_effect`, `block_after_failed_effect`, and follow-ups that tell a fate later.

use super::*;
use crate::audit::{Coverage, Severity};

const KEY: &str = "r/1/70F";

/// A world in which source `a` is watched and has been heard without a hole.
fn watched() -> World {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "r/0/5F", "processed"));
    world.heartbeat(0.0, "a", "1", 1);
    world
}

fn accepted(at: f64, who: &str) -> Told {
    told(at, who, "p", KEY, "processed")
}

fn failed(at: f64, who: &str) -> Told {
    accepted(at, who).with("effect", "failed")
}

fn blocked(at: f64, who: &str) -> Told {
    told(at, who, "p", KEY, "replay_blocked")
}

/// What became of the acceptance.
fn report(at: f64, who: &str, effect: &str) -> Told {
    told(at, who, "p", KEY, "effect_reported").with("effect", effect)
}

#[test]
fn money_that_did_not_move_is_missing_once_the_grace_is_over() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    assert_eq!(world.only(Kind::AcceptWithoutEffect).state, State::Suspected);
    world.heartbeat(39.9, "a", "1", 2);
    assert_eq!(world.only(Kind::AcceptWithoutEffect).state, State::Suspected);
    world.heartbeat(40.0, "a", "1", 2);
    let finding = world.only(Kind::AcceptWithoutEffect);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Critical));
    assert_eq!((finding.coverage, finding.amounts.underpaid), (Coverage::Full, 70));
    assert!(world.open(Kind::BlockAfterFailedEffect).is_empty());
}

#[test]
fn an_acceptance_that_stands_makes_it_good_before_or_after() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    world.hear(accepted(12.0, "a 1#3").with("effect", "applied"));
    world.heartbeat(90.0, "a", "1", 3);
    assert!(world.rows.is_empty(), "a retry within the grace leaves no trace");

    let mut world = watched();
    world.hear(accepted(9.0, "a 1#2"));
    world.hear(failed(10.0, "a 1#3"));
    world.heartbeat(90.0, "a", "1", 3);
    world.assert_quiet();

    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    world.heartbeat(90.0, "a", "1", 2);
    world.hear(accepted(5_000.0, "a 1#3"));
    world.assert_quiet();
    let closed = world.all(Kind::AcceptWithoutEffect)[0];
    assert_eq!(closed.closed_because.as_deref(), Some("made_good"));
    assert_eq!(closed.amounts.underpaid, 0);
}

#[test]
fn an_acceptance_of_another_settlement_makes_nothing_good() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    world.hear(told(11.0, "a 1#3", "p", "r/1/71F", "processed"));
    world.heartbeat(90.0, "a", "1", 3);
    assert_eq!(world.only(Kind::AcceptWithoutEffect).amounts.underpaid, 70);
}

#[test]
fn a_block_after_it_is_said_too_and_the_amount_once() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    world.hear(blocked(11.0, "a 1#3").window(2, 4));
    world.hear(blocked(12.0, "a 1#4").window(2, 4));
    world.heartbeat(90.0, "a", "1", 4);
    let finding = world.only(Kind::BlockAfterFailedEffect);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Critical));
    assert_eq!((finding.count, finding.amounts), (2, Default::default()));
    assert_eq!(world.only(Kind::AcceptWithoutEffect).amounts.underpaid, 70);
    assert!(world.open(Kind::FalseBlock).is_empty());
}

#[test]
fn an_amount_is_missing_once_however_often_it_failed() {
    let mut world = watched();
    for n in 2..7_u32 {
        world.hear(failed(f64::from(n) * 10.0, &format!("a 1#{n}")));
    }
    world.heartbeat(100.0, "a", "1", 6);
    let finding = world.only(Kind::AcceptWithoutEffect);
    assert_eq!((finding.count, finding.amounts.underpaid), (5, 70));
}

#[test]
fn a_block_beside_an_acceptance_that_stands_is_no_matter() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    world.hear(accepted(11.0, "a 1#3"));
    world.hear(blocked(12.0, "a 1#4"));
    world.heartbeat(90.0, "a", "1", 4);
    world.assert_quiet();
}

#[test]
fn what_may_have_been_booked_unheard_is_a_warning_and_at_risk() {
    let blind = |world: &mut World| world.hear(told(9.0, "a 1#3", "q", "x/1/1", "processed"));
    let evicted = |world: &mut World| world.hear(told(9.0, "a 1#2", "p", KEY, "evicted"));
    let undecided = |world: &mut World| world.hear(told(9.0, "a 1#2", "p", KEY, "unknown"));
    let before: [&dyn Fn(&mut World); 3] = [&blind, &evicted, &undecided];
    for before in before {
        let mut world = watched();
        before(&mut world);
        world.hear(failed(10.0, "a 1#4"));
        world.hear(blocked(11.0, "a 1#5"));
        world.give_up("a", "1", 2, 3);
        world.heartbeat(90.0, "a", "1", 5);
        let finding = world.only(Kind::AcceptWithoutEffect);
        assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
        assert_eq!((finding.amounts.underpaid, finding.amounts.exposure), (0, 70));
        assert_eq!(world.only(Kind::BlockAfterFailedEffect).severity, Severity::Warning);
    }
}

#[test]
fn a_hole_that_fills_makes_it_certain() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#3"));
    world.give_up("a", "1", 2, 2);
    world.heartbeat(90.0, "a", "1", 3);
    assert_eq!(world.only(Kind::AcceptWithoutEffect).severity, Severity::Warning);
    world.hear(told(9.0, "a 1#2", "q", "x/1/1", "processed"));
    let finding = world.only(Kind::AcceptWithoutEffect);
    assert_eq!((finding.severity, finding.amounts.underpaid), (Severity::Critical, 70));
}

#[test]
fn a_retry_that_may_be_in_a_hole_of_another_source_makes_it_a_warning() {
    let mut world = watched();
    world.heartbeat(0.0, "b", "1", 0);
    world.hear(told(13.0, "b 1#1", "q", "x/1/1", "processed"));
    world.hear(failed(10.0, "a 1#2"));
    world.hear(told(15.0, "b 1#3", "q", "x/1/2", "processed"));
    world.give_up("b", "1", 2, 2);
    world.heartbeat(90.0, "a", "1", 2);
    world.heartbeat(90.0, "b", "1", 3);
    assert_eq!(world.only(Kind::AcceptWithoutEffect).severity, Severity::Warning);
}

#[test]
fn an_eviction_after_it_is_its_own_trace() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    world.hear(told(11.0, "a 1#3", "p", KEY, "evicted"));
    world.heartbeat(90.0, "a", "1", 3);
    assert_eq!(world.only(Kind::AcceptWithoutEffect).severity, Severity::Critical);
}

#[test]
fn sources_that_prove_nothing_make_it_a_warning_of_a_missing_amount() {
    let mut world = watched();
    world.hear(told(5.0, "b 1#1", "q", "r/0/5F", "processed"));
    world.hear(failed(10.0, "a 1#2"));
    world.heartbeat(60.0, "a", "1", 2);
    let finding = world.only(Kind::AcceptWithoutEffect);
    assert_eq!((finding.coverage, finding.severity), (Coverage::Assumed, Severity::Warning));
    assert_eq!(finding.amounts.underpaid, 70);
}

#[test]
fn a_backlog_is_given_its_grace_from_when_it_was_heard() {
    let mut world = World::new();
    world.received_us = seconds(1_000.0);
    world.hear(failed(10.0, "a 1#1"));
    assert_eq!(world.only(Kind::AcceptWithoutEffect).state, State::Suspected);
    world.hear(accepted(11.0, "a 1#2"));
    assert!(world.rows.is_empty());
}

#[test]
fn while_one_effect_is_not_known_nothing_is_certain() {
    let mut world = watched();
    world.hear(failed(10.0, "a 1#2"));
    world.hear(accepted(11.0, "a 1#3").with("effect", "unknown"));
    world.hear(blocked(12.0, "a 1#4"));
    world.heartbeat(90.0, "a", "1", 4);
    assert!(world.open(Kind::AcceptWithoutEffect).is_empty());
    assert!(world.open(Kind::BlockAfterFailedEffect).is_empty());
    assert_eq!(world.open(Kind::IndeterminateOutcome).len(), 1);
}

#[test]
fn a_follow_up_opens_what_failed() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(blocked(11.0, "a 1#3"));
    world.assert_quiet();
    world.hear(report(500.0, "a 1#4", "failed"));
    assert_eq!(world.only(Kind::AcceptWithoutEffect).state, State::Suspected);
    world.heartbeat(529.0, "a", "1", 4);
    assert_eq!(world.only(Kind::AcceptWithoutEffect).state, State::Suspected);
    world.heartbeat(530.0, "a", "1", 4);
    let finding = world.only(Kind::AcceptWithoutEffect);
    assert_eq!((finding.state, finding.amounts.underpaid), (State::Confirmed, 70));
    let roles: Vec<_> = finding.witnesses.iter().map(|witness| witness.role.as_str()).collect();
    assert_eq!(roles, ["accepted", "effect_reported"]);
    assert_eq!(world.open(Kind::BlockAfterFailedEffect).len(), 1);
}

#[test]
fn a_follow_up_closes_what_was_not_known() {
    for effect in ["applied", "failed"] {
        let mut world = watched();
        world.hear(accepted(10.0, "a 1#2").with("effect", "unknown"));
        world.heartbeat(700.0, "a", "1", 2);
        assert_eq!(world.open(Kind::IndeterminateOutcome).len(), 1);
        world.hear(report(701.0, "a 1#3", effect));
        assert!(world.open(Kind::IndeterminateOutcome).is_empty());
        let closed = world.all(Kind::IndeterminateOutcome)[0];
        assert_eq!(closed.closed_because.as_deref(), Some("effect_reported"));
        let without = world.open(Kind::AcceptWithoutEffect).len();
        assert_eq!(without, usize::from(effect == "failed"));
    }
}

#[test]
fn a_surplus_that_turns_out_failed_is_made_good() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(accepted(20.0, "a 1#3"));
    assert_eq!(world.open(Kind::DuplicateLeak).len(), 1);
    world.hear(report(21.0, "a 1#4", "failed"));
    world.assert_quiet();
    let closed = world.all(Kind::DuplicateLeak)[0];
    assert_eq!(closed.closed_because.as_deref(), Some("made_good"));
}

#[test]
fn the_latest_follow_up_wins() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(report(30.0, "a 1#4", "applied"));
    world.hear(report(20.0, "a 1#3", "failed"));
    world.heartbeat(90.0, "a", "1", 4);
    world.assert_quiet();
    world.hear(report(100.0, "a 1#5", "failed"));
    world.heartbeat(190.0, "a", "1", 5);
    assert_eq!(world.open(Kind::AcceptWithoutEffect).len(), 1);
}

#[test]
fn follow_ups_that_differ_in_an_unknown_order_are_counted_and_not_believed() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(report(20.0, "b", "failed"));
    world.hear(report(20.3, "c", "applied"));
    world.heartbeat(90.0, "a", "1", 2);
    world.assert_quiet();
    assert_eq!(world.skipped()["effect_reported"], 1);
}

#[test]
fn it_tells_the_fate_of_the_newest_before_it_of_its_own_source() {
    // By the clocks, b's is the newest before it; but a speaks of its own.
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(accepted(15.0, "b 1#1").with("effect", "unknown"));
    world.hear(report(20.0, "a 1#3", "failed"));
    world.heartbeat(90.0, "a", "1", 3);
    assert!(world.open(Kind::DuplicateLeak).is_empty());
    world.hear(report(95.0, "b 1#2", "failed"));
    world.heartbeat(190.0, "a", "1", 3);
    assert_eq!(world.only(Kind::AcceptWithoutEffect).count, 2);
}

#[test]
fn a_ref_names_the_acceptance() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2").with("ref", "h1"));
    world.hear(accepted(11.0, "a 1#3").with("ref", "h2"));
    world.hear(accepted(12.0, "a 1#4").with("ref", "h1"));
    assert_eq!(world.only(Kind::DuplicateLeak).count, 1);
    // Of somebody else, without order to them: one fits.
    world.hear(report(11.2, "ledger", "failed").with("ref", "h2"));
    assert_eq!(world.only(Kind::DuplicateLeak).count, 1);
    world.hear(report(13.0, "a 1#5", "failed").with("ref", "h1"));
    world.assert_quiet();
    // A ref that nobody accepted tells of nobody.
    world.hear(report(14.0, "a 1#6", "failed").with("ref", "h3"));
    world.assert_quiet();
    assert!(world.skipped().is_empty());
}

#[test]
fn where_several_fit_without_order_it_is_counted() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(accepted(20.0, "b 1#1"));
    world.hear(report(20.3, "ledger", "failed"));
    world.heartbeat(90.0, "a", "1", 2);
    assert_eq!(world.only(Kind::DuplicateLeak).count, 1);
    assert_eq!(world.skipped()["effect_reported"], 1);
}

#[test]
fn a_follow_up_before_an_acceptance_does_not_tell_its_fate() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#4"));
    world.hear(report(9.0, "a 1#3", "failed"));
    world.hear(told(8.0, "a 1#2", "q", "x/1/1", "processed"));
    world.heartbeat(90.0, "a", "1", 4);
    world.assert_quiet();
}

#[test]
fn a_follow_up_of_what_was_never_accepted_waits() {
    let mut world = watched();
    world.hear(report(20.0, "a 1#3", "failed"));
    world.heartbeat(100.0, "a", "1", 3);
    assert!(world.rows.is_empty());
    world.hear(accepted(10.0, "a 1#2"));
    world.heartbeat(200.0, "a", "1", 3);
    assert_eq!(world.open(Kind::AcceptWithoutEffect).len(), 1);
}

#[test]
fn a_follow_up_is_no_acceptance_for_a_block() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(report(11.0, "a 1#3", "applied"));
    world.heartbeat(90.0, "a", "1", 3);
    assert_eq!(world.open(Kind::FalseBlock).len(), 1);
}

#[test]
fn a_reversal_that_turns_out_failed_undoes_nothing() {
    let mut world = watched();
    let by = |at, who: &str| accepted(at, who).with("ref", "s1");
    let undo =
        |at, who: &str, outcome: &str| told(at, who, "p", "r/1/-70F", outcome).with("ref", "u1");
    world.hear(by(10.0, "a 1#2"));
    world.hear(by(11.0, "a 1#3"));
    world.hear(undo(20.0, "a 1#4", "processed").with("reversal_of", "s1"));
    world.assert_quiet();
    world.hear(undo(21.0, "a 1#5", "effect_reported").with("effect", "failed"));
    assert_eq!(world.only(Kind::DuplicateLeak).count, 1);
    world.hear(undo(22.0, "a 1#6", "effect_reported").with("effect", "applied"));
    assert!(world.open(Kind::DuplicateLeak).is_empty());
}

#[test]
fn a_window_whose_entry_may_have_gone_back_proves_nothing() {
    let mut world = watched();
    // Nobody else is watched, so that only the window could prove it.
    world.hear(told(1.0, "b 1#1", "q", "r/0/5F", "processed"));
    let local = |told: Told| told.with("guard_mode", "local");
    world.hear(local(told(2.0, "a 1#2", "p", "r/2/1", "processed").window(2, 4)));
    world.hear(told(3.0, "a 1#3", "p", "r/2/1", "effect_reported").with("effect", "failed"));
    world.hear(local(blocked(10.0, "a 1#4").window(2, 4)));
    world.heartbeat(90.0, "a", "1", 4);
    assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Warning);
}

#[test]
fn the_order_of_receipt_makes_no_difference() {
    let events = || {
        [
            accepted(10.0, "a 1#2"),
            blocked(11.0, "a 1#3"),
            report(15.0, "a 1#4", "failed"),
            accepted(20.0, "b 1#1"),
            report(25.0, "b 1#2", "failed"),
        ]
    };
    let rows = |first: usize| {
        let mut world = watched();
        world.received_us = seconds(26.0);
        let mut events = events();
        events.rotate_left(first);
        events.into_iter().for_each(|event| world.hear(event));
        world.heartbeat(90.0, "a", "1", 4);
        let open: Vec<_> = world.rows.values().filter(|row| row.state != State::Closed).collect();
        open.iter().map(|row| (row.kind, row.count, row.amounts, row.severity)).collect::<Vec<_>>()
    };
    let expected = rows(0);
    assert_eq!(expected.len(), 3, "{expected:?}");
    for first in 1..5 {
        assert_eq!(rows(first), expected, "{first}");
    }
}

#[test]
fn follow_ups_are_bounded() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    for seq in 3..200_u32 {
        let effect = if seq % 2 == 0 { "failed" } else { "applied" };
        world.hear(report(f64::from(seq) + 10.0, &format!("a 1#{seq}"), effect));
    }
    world.heartbeat(900.0, "a", "1", 199);
    world.assert_quiet();
    let kept = world.audit.facts.signatures.values().filter_map(|facts| facts.reports.as_ref());
    assert_eq!(kept.map(|reports| reports.newest.len()).max(), Some(128));
}

/// So many deliveries, a second apart, each followed by what became of it.
fn retried(times: u64, fates: &[&str]) -> World {
    let mut world = watched();
    let mut seq = 1;
    for i in 0..times {
        let mut who = || {
            seq += 1;
            format!("a 1#{seq}")
        };
        let at = 10.0 + i as f64;
        world.hear(accepted(at, &who()));
        for (j, fate) in fates.iter().enumerate() {
            world.hear(report(at + 0.1 * (j + 1) as f64, &who(), fate));
        }
    }
    world.heartbeat(1_000.0, "a", "1", seq);
    world
}

#[test]
fn what_failed_again_and_again_is_missing_once_and_never_a_leak() {
    for (times, fates) in [(20, &["failed"][..]), (40, &["unknown", "failed"]), (100, &["failed"])]
    {
        let world = retried(times, fates);
        assert!(world.open(Kind::DuplicateLeak).is_empty(), "{times} {fates:?}");
        let finding = world.only(Kind::AcceptWithoutEffect);
        assert_eq!((finding.state, finding.amounts.underpaid), (State::Confirmed, 70), "{times}");
    }
}

#[test]
fn a_follow_up_of_no_acceptance_is_counted_once_nothing_can_come() {
    let mut world = watched();
    world.hear(report(10.0, "a 1#2", "failed"));
    world.heartbeat(39.0, "a", "1", 2);
    assert!(world.skipped().is_empty());
    world.heartbeat(40.0, "a", "1", 2);
    assert_eq!(world.skipped()["effect_reported_unmatched"], 1);
    let mut world = watched();
    world.hear(report(10.0, "a 1#3", "applied"));
    world.hear(accepted(9.0, "a 1#2"));
    world.heartbeat(60.0, "a", "1", 3);
    assert!(world.skipped().is_empty());
}
