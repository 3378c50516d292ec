//! Windows that several sources share: what their words together prove, and what they don't.

use super::*;
use crate::audit::{Coverage, Severity};

fn shared(at: f64, who: &str, signature: &str, outcome: &str, len: u64) -> Told {
    told(at, who, "p", signature, outcome).window(len, 4).with("guard_mode", "shared")
}

/// Two watched sources, of which `b` lost a number long before; then three acceptances by turns
/// and a block whose window holds `len`.
fn blocked_with(len: u64, hole: bool) -> World {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "q", "r/0/5F", "processed"));
    world.hear(told(0.0, "b 1#1", "q", "r/0/6F", "processed"));
    world.hear(told(2.0, "b 1#3", "q", "r/0/7F", "processed"));
    world.give_up("b", "1", 2, 2);
    world.heartbeat(3.0, "a", "1", 1);
    world.heartbeat(3.0, "b", "1", 3);
    world.hear(shared(100.0, "a 1#2", "r/1/5", "processed", 2));
    world.hear(shared(110.0, "b 1#4", "r/1/6F", "processed", 3));
    let next = if hole { 4 } else { 3 };
    world.hear(shared(120.0, &format!("a 1#{next}"), "r/2/5", "processed", 4));
    world.hear(shared(130.0, "b 1#5", "r/9/70F", "replay_blocked", len));
    if hole {
        world.give_up("a", "1", 3, 3);
    }
    world.heartbeat(200.0, "a", "1", next);
    world.heartbeat(200.0, "b", "1", 5);
    world
}

#[test]
fn all_sources_together_show_what_a_shared_window_holds() {
    let world = blocked_with(3, false);
    let finding = world.only(Kind::FalseBlock);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Critical));
    assert_eq!((finding.cause.as_str(), finding.amounts.underpaid), ("not_in_window", 70));
    assert_eq!(finding.coverage, Coverage::Blind);
    assert_eq!(finding.witnesses[0].text, None, "what was not heard of does not matter");
}

#[test]
fn a_later_block_may_show_what_the_first_did_not() {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(shared(10.0, "a 1#1", "r/9/70F", "replay_blocked", 3));
    world.hear(shared(20.0, "a 1#2", "r/1/5", "processed", 1));
    world.heartbeat(100.0, "a", "1", 2);
    assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Warning);
    world.hear(shared(101.0, "a 1#3", "r/9/70F", "replay_blocked", 1));
    world.heartbeat(140.0, "a", "1", 3);
    assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Critical);
}

#[test]
fn a_shared_window_that_holds_more_than_is_known_proves_nothing() {
    let world = blocked_with(4, false);
    assert!(world.open(Kind::FalseBlock).is_empty());
    assert_eq!(world.open(Kind::UnverifiableBlock).len(), 1);
}

#[test]
fn a_shared_window_is_not_known_while_somebody_was_blind() {
    let world = blocked_with(3, true);
    assert!(world.open(Kind::FalseBlock).is_empty());
    assert_eq!(world.open(Kind::UnverifiableBlock).len(), 1);
}

/// An acceptance at `a`, then this at `b`, then an acceptance at `a`; both watched.
fn losses(between: Option<Told>, len: u64) -> (usize, BTreeMap<&'static str, u64>) {
    let mut world = World::new();
    for source in ["a", "b"] {
        world.heartbeat(0.0, source, "1", 0);
    }
    world.hear(shared(10.0, "a 1#1", "r/1/5", "processed", 4));
    let last = u64::from(between.is_some());
    if let Some(between) = between {
        world.hear(between);
    }
    world.hear(shared(30.0, "a 1#2", "r/2/5", "processed", len));
    for source in [("a", 2), ("b", last)] {
        world.heartbeat(60.0, source.0, "1", source.1);
    }
    (world.open(Kind::WindowLost).len(), world.skipped())
}

#[test]
fn what_another_source_took_out_is_allowed_for() {
    let evicted = || shared(20.0, "b 1#1", "r/0/5", "evicted", 3).with("reason", "ttl");
    assert_eq!(losses(None, 4).0, 0);
    assert_eq!(losses(None, 2).0, 1, "nobody took anything");
    let (lost, skipped) = losses(Some(evicted()), 3);
    assert_eq!((lost, skipped["window_lost_shared"]), (0, 1));
    assert_eq!(losses(Some(evicted()), 1).0, 1, "one is allowed for, not three");
}

#[test]
fn while_another_source_was_blind_nothing_is_lost() {
    let mut world = World::new();
    for source in ["a", "b"] {
        world.heartbeat(0.0, source, "1", 0);
    }
    world.hear(shared(10.0, "a 1#1", "r/1/5", "processed", 4));
    world.hear(told(25.0, "b 1#2", "q", "r/1/5", "processed"));
    world.give_up("b", "1", 1, 1);
    world.hear(shared(30.0, "a 1#2", "r/2/5", "processed", 2));
    world.heartbeat(60.0, "a", "1", 2);
    world.heartbeat(60.0, "b", "1", 2);
    assert!(world.open(Kind::WindowLost).is_empty());
    assert_eq!(world.skipped()["window_lost_blind"], 1);
}

#[test]
fn two_sources_with_private_guards_that_accept_at_once_are_told() {
    for (mode, at, count) in [("local", 11.0, 1), ("shared", 11.0, 0), ("local", 11.1, 0)] {
        let mut world = World::new();
        for (who, at, signature) in [("a 1#1", 10.0, "r/1/5"), ("b 1#1", at, "r/2/5")] {
            let event = told(at, who, "p", signature, "processed").with("guard_mode", mode);
            world.hear(event);
        }
        assert_eq!(world.open(Kind::TwoWriters).len(), count, "{mode} {at}");
    }
}

#[test]
fn two_writers_are_counted_in_one_row_of_the_player() {
    let mut world = World::new();
    for i in 0..3 {
        for who in ["a", "b"] {
            let at = 10.0 * f64::from(i + 1);
            let event =
                told(at, &format!("{who} 1#{}", i + 1), "p", &format!("{who}/{i}/5"), "processed");
            world.hear(event.with("guard_mode", "local"));
        }
    }
    let finding = world.only(Kind::TwoWriters);
    assert_eq!((finding.count, finding.severity), (3, Severity::Info));
    assert_eq!(finding.witnesses.len(), 6);
    world.close(Kind::TwoWriters);
    world.assert_quiet();
    for who in ["a", "b"] {
        let event = told(50.0, &format!("{who} 1#4"), "p", &format!("{who}/9/5"), "processed");
        world.hear(event.with("guard_mode", "local"));
    }
    assert_eq!(world.only(Kind::TwoWriters).count, 1);
}
