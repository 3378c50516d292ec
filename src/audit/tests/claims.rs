//! `stuck_claim`, `retry_storm`, `replica_disagreement`, `outcome_flip`, `ambiguous_equal`.

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

fn blocked(at: f64, who: &str) -> Told {
    told(at, who, "p", KEY, "replay_blocked")
}

#[test]
fn three_refusals_of_what_was_never_accepted_are_a_stuck_claim() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(blocked(50.0, "a 1#3"));
    assert!(world.open(Kind::StuckClaim).is_empty());
    world.hear(blocked(3_610.0, "a 1#4"));
    world.heartbeat(3_700.0, "a", "1", 4);
    let finding = world.only(Kind::StuckClaim);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
    assert_eq!((finding.count, finding.last_us - finding.first_us), (3, 3_600_000_000));
    assert_eq!(finding.witnesses[0].text.as_deref(), Some("refused 3 times within 3600 s"));
    // The amount is in the row of the false block.
    assert_eq!(finding.amounts, Default::default());
    assert_eq!(world.only(Kind::FalseBlock).amounts.underpaid, 70);
}

#[test]
fn an_acceptance_frees_a_claim() {
    let mut world = watched();
    for seq in 2..5_u32 {
        world.hear(blocked(f64::from(seq), &format!("a 1#{seq}")));
    }
    world.hear(accepted(100.0, "a 1#5"));
    world.heartbeat(200.0, "a", "1", 5);
    assert!(world.open(Kind::StuckClaim).is_empty());
}

#[test]
fn where_somebody_was_blind_a_stuck_claim_is_only_good_to_know() {
    let mut world = watched();
    for seq in 3..6_u32 {
        world.hear(blocked(f64::from(seq), &format!("a 1#{seq}")));
    }
    world.give_up("a", "1", 2, 2);
    world.heartbeat(200.0, "a", "1", 5);
    let finding = world.only(Kind::StuckClaim);
    assert_eq!((finding.coverage, finding.severity), (Coverage::Blind, Severity::Info));
}

#[test]
fn a_claim_in_progress_is_given_time() {
    let mut world = watched();
    for seq in 2..6_u32 {
        let who = format!("a 1#{seq}");
        world.hear(blocked(f64::from(seq), &who).with("reason", "in_progress"));
    }
    world.heartbeat(500.0, "a", "1", 5);
    assert_eq!(world.only(Kind::StuckClaim).state, State::Suspected);
    world.hear(accepted(501.0, "a 1#6"));
    world.heartbeat(900.0, "a", "1", 6);
    assert!(world.all(Kind::StuckClaim).is_empty());
}

#[test]
fn replays_of_what_was_accepted_are_a_storm_and_harmless() {
    let mut world = watched();
    world.hear(accepted(9.0, "a 1#2"));
    world.hear(blocked(10.0, "a 1#3"));
    world.hear(blocked(11.0, "a 1#4"));
    assert!(world.rows.is_empty());
    world.hear(blocked(12.0, "a 1#5"));
    let finding = world.only(Kind::RetryStorm);
    assert_eq!((finding.severity, finding.count), (Severity::Info, 3));
    assert!(world.open(Kind::StuckClaim).is_empty());
}

#[test]
fn what_was_evicted_was_accepted() {
    let mut world = watched();
    world.hear(told(9.0, "a 1#2", "p", KEY, "evicted"));
    for seq in 3..6_u32 {
        world.hear(blocked(f64::from(seq) + 10.0, &format!("a 1#{seq}")));
    }
    world.heartbeat(100.0, "a", "1", 5);
    assert!(world.open(Kind::StuckClaim).is_empty());
    assert_eq!(world.open(Kind::RetryStorm).len(), 1);
}

#[test]
fn replays_of_what_failed_are_not_harmless() {
    let mut world = watched();
    world.hear(accepted(9.0, "a 1#2").with("effect", "failed"));
    for seq in 3..6_u32 {
        world.hear(blocked(f64::from(seq) + 10.0, &format!("a 1#{seq}")));
    }
    assert!(world.open(Kind::RetryStorm).is_empty());
    assert_eq!(world.open(Kind::BlockAfterFailedEffect).len(), 1);
}

#[test]
fn blocked_first_and_accepted_later_is_a_flip() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(accepted(15.0, "a 1#3"));
    assert_eq!(world.only(Kind::OutcomeFlip).severity, Severity::Info);
    assert!(world.open(Kind::ReplicaDisagreement).is_empty());
}

#[test]
fn what_goes_together_is_no_flip() {
    // Accepted, then refused.
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#3"));
    world.hear(accepted(9.0, "a 1#2"));
    assert!(world.open(Kind::OutcomeFlip).is_empty());
    // Told to come again, and it did.
    for reason in ["in_progress", "guard_down"] {
        let mut world = watched();
        world.hear(blocked(10.0, "a 1#2").with("reason", reason));
        world.hear(accepted(15.0, "a 1#3"));
        world.assert_quiet();
    }
    // Evicted before: it was accepted before.
    let mut world = watched();
    world.hear(told(9.0, "a 1#2", "p", KEY, "evicted"));
    world.hear(blocked(10.0, "a 1#3"));
    world.hear(accepted(15.0, "a 1#4"));
    assert!(world.open(Kind::OutcomeFlip).is_empty());
}

#[test]
fn a_flip_behind_a_claim_in_progress_is_seen() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2").with("reason", "in_progress"));
    world.hear(blocked(11.0, "a 1#3").with("reason", "stale"));
    world.hear(accepted(15.0, "a 1#4"));
    assert_eq!(world.open(Kind::OutcomeFlip).len(), 1);
}

#[test]
fn a_flip_whose_order_is_not_known_is_counted() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(accepted(10.4, "b 1#1"));
    world.assert_quiet();
    let skipped = world.skipped();
    assert_eq!((skipped["outcome_flip"], skipped["replica_disagreement"]), (1, 1));
}

#[test]
fn a_flip_is_known_by_any_block_that_was_surely_before() {
    let mut world = watched();
    world.hear(blocked(9.9, "b 1#1"));
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(accepted(10.4, "a 1#3"));
    assert_eq!(world.open(Kind::OutcomeFlip).len(), 1);
    // Each acceptance has one before it, though no block is surely before both.
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(accepted(10.1, "a 1#3"));
    world.hear(blocked(10.2, "b 1#1"));
    world.hear(accepted(10.3, "b 1#2"));
    assert_eq!(world.open(Kind::OutcomeFlip).len(), 1);
    world.hear(accepted(10.2, "c 1#1"));
    assert!(world.open(Kind::OutcomeFlip).is_empty());
    assert_eq!(world.skipped()["outcome_flip"], 1);
}

#[test]
fn one_source_blocks_what_another_accepts() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(accepted(15.0, "b 1#1"));
    assert_eq!(world.only(Kind::ReplicaDisagreement).severity, Severity::Info);
    // At about the same time, although it was booked long before.
    let mut world = watched();
    world.hear(accepted(2.0, "a 1#2"));
    world.hear(blocked(10.0, "a 1#3"));
    world.hear(accepted(10.0, "b 1#1"));
    assert_eq!(world.open(Kind::ReplicaDisagreement).len(), 1);
}

#[test]
fn a_race_of_two_is_no_disagreement_about_the_block_that_follows() {
    // Whichever of the two was first, `a` may refuse what it has booked itself.
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(accepted(10.1, "b 1#1"));
    world.hear(blocked(10.2, "a 1#3"));
    assert!(world.open(Kind::ReplicaDisagreement).is_empty());
    assert_eq!(world.skipped()["replica_disagreement"], 1);
}

#[test]
fn another_source_that_blocks_a_replay_agrees() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2"));
    world.hear(blocked(15.0, "b 1#1"));
    world.hear(blocked(16.0, "a 1#3"));
    world.assert_quiet();
    assert!(world.skipped().is_empty());
}

fn two_refs(first: &str, other: &str) -> World {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#2").with("ref", first));
    world.hear(blocked(11.0, "a 1#3").with("ref", first));
    world.hear(blocked(12.0, "a 1#4").with("ref", other));
    world.heartbeat(60.0, "a", "1", 4);
    world
}

#[test]
fn a_block_under_another_ref_is_for_a_person() {
    let world = two_refs("h1", "h2");
    let finding = world.only(Kind::AmbiguousEqual);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
    assert_eq!((finding.count, finding.amounts.exposure), (1, 70));
}

#[test]
fn each_other_ref_counts_once() {
    let mut world = two_refs("h1", "h2");
    world.hear(blocked(61.0, "a 1#5").with("ref", "h2"));
    world.hear(blocked(62.0, "a 1#6").with("ref", "h3"));
    let finding = world.only(Kind::AmbiguousEqual);
    assert_eq!((finding.count, finding.amounts.exposure), (2, 140));
}

#[test]
fn a_block_under_the_same_ref_is_a_replay() {
    two_refs("h1", "h1").assert_quiet();
}

#[test]
fn without_a_ref_nobody_can_tell() {
    for (one, other) in [(None, Some("h2")), (Some("h1"), None)] {
        let mut world = watched();
        let by = |told: Told, name: Option<&str>| match name {
            Some(name) => told.with("ref", name),
            None => told,
        };
        world.hear(by(accepted(10.0, "a 1#2"), one));
        world.hear(by(blocked(12.0, "a 1#3"), other));
        world.heartbeat(60.0, "a", "1", 3);
        world.assert_quiet();
    }
}

#[test]
fn accepted_under_that_ref_it_is_answered() {
    let mut world = two_refs("h1", "h2");
    world.hear(accepted(61.0, "a 1#5").with("ref", "h2"));
    assert!(world.open(Kind::AmbiguousEqual).is_empty());
    assert!(world.open(Kind::DuplicateLeak).is_empty());
}

#[test]
fn where_somebody_was_blind_another_ref_is_only_good_to_know() {
    let mut world = watched();
    world.hear(accepted(10.0, "a 1#3").with("ref", "h1"));
    world.hear(blocked(12.0, "a 1#4").with("ref", "h2"));
    world.give_up("a", "1", 2, 2);
    world.heartbeat(60.0, "a", "1", 4);
    assert_eq!(world.only(Kind::AmbiguousEqual).severity, Severity::Info);
    world.hear(told(9.0, "a 1#2", "p", KEY, "processed").with("ref", "h2"));
    assert!(world.open(Kind::AmbiguousEqual).is_empty());
}

#[test]
fn the_first_of_each_sort_of_block_is_kept_whatever_came_first() {
    let told = |n: u32| {
        let who = format!("{} 1#{}", if n.is_multiple_of(2) { "a" } else { "b" }, n / 2 + 10);
        blocked(f64::from(n) * 10.0, &who).with("ref", format!("h{}", n % 7))
    };
    let sorts = |order: &[u32]| {
        let mut world = watched();
        world.received_us = seconds(1_000.0);
        order.iter().for_each(|n| world.hear(told(*n)));
        let mut facts = world.audit.facts.signatures.values();
        let blocks = facts.find_map(|facts| facts.blocks.clone()).unwrap();
        let times: Vec<_> = blocks.sorts().map(|block| block.at.at_us).collect();
        times
    };
    let order: Vec<u32> = (1..40).collect();
    let expected = sorts(&order);
    assert_eq!(expected.len(), 9);
    assert!(expected.is_sorted());
    let backwards: Vec<u32> = order.iter().rev().copied().collect();
    assert_eq!(sorts(&backwards), expected);
    let mixed: Vec<u32> = (0..39).map(|n| n * 17 % 39 + 1).collect();
    assert_eq!(sorts(&mixed), expected);
}

#[test]
fn a_stuck_claim_is_as_sure_as_others_were_heard() {
    let mut world = watched();
    world.heartbeat(0.0, "b", "1", 0);
    world.hear(told(5.0, "b 1#1", "q", "r/0/5F", "processed"));
    world.heartbeat(8.0, "b", "1", 2);
    world.give_up("b", "1", 2, 2);
    for seq in 2..5_u32 {
        world.hear(blocked(10.0 + f64::from(seq), &format!("a 1#{seq}")));
    }
    for at in [20.0, 400.0] {
        world.heartbeat(at, "a", "1", 4);
        world.heartbeat(at, "b", "1", 2);
    }
    assert_eq!(world.only(Kind::StuckClaim).severity, Severity::Info);
    world.hear(told(6.0, "b 1#2", "q", "r/1/5F", "processed"));
    let finding = world.only(Kind::StuckClaim);
    assert_eq!((finding.severity, finding.coverage), (Severity::Warning, Coverage::Full));
}
