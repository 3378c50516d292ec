//! What grows without end in bad input, and must not grow in memory.

use super::*;
use crate::audit::state::READY_MAX;
use crate::audit::waits::{WATCHED_MAX, Wait, Waiting, Waits};

fn follow_up(at: f64, seq: u64, effect: &str) -> Told {
    let who = format!("a 1#{seq}");
    told(at, &who, "p", "r/1/5F", "effect_reported").with("effect", effect)
}

#[test]
fn a_row_that_opens_and_closes_for_ever_takes_no_more_room() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "r/1/5F", "processed"));
    world.hear(told(5.0, "a 1#2", "p", "r/1/5F", "processed"));
    for n in 0..100_u32 {
        let (at, seq) = (f64::from(10 + n), u64::from(3 + 2 * n));
        world.hear(follow_up(at, seq, "failed"));
        assert!(world.open(Kind::DuplicateLeak).is_empty());
        world.hear(follow_up(at + 0.5, seq + 1, "applied"));
        let leak = world.only(Kind::DuplicateLeak);
        assert_eq!((leak.ordinal, leak.count, leak.amounts.overpaid), (n + 2, 1, 5));
    }
    assert_eq!(world.all(Kind::DuplicateLeak).len(), 101, "each row is told");
    let player = world.audit.player_key("settle", &id("p"));
    let signature = told(0.0, "a 1#1", "p", "r/1/5F", "processed").event().signature;
    let key = (player, signature.hash(&world.audit.hash));
    let rows = &world.audit.facts.signatures.get(key).unwrap().rows;
    let leaks = rows.iter().filter(|row| row.finding.kind == Kind::DuplicateLeak);
    assert_eq!(leaks.count(), 2, "the newest, and the one it counts from");
}

#[test]
fn a_suspicion_that_is_withdrawn_leaves_the_closed_row_before_it_alone() {
    let state = |at: f64, seq: u64, round: u64, version: u64| {
        let told = told(at, &format!("a 1#{seq}"), "p", &format!("r/{round}/5F"), "processed");
        told.with("state_version", version)
    };
    let mut world = World::new();
    world.hear(state(0.0, 1, 1, 5));
    world.hear(state(1.0, 2, 2, 3));
    world.wait_until(60.0);
    world.close(Kind::VersionRegression);
    world.hear(state(70.0, 4, 4, 2));
    assert_eq!(world.only(Kind::VersionRegression).state, State::Suspected);
    // Its first acceptance comes late, and tells a version that had not fallen.
    world.hear(state(69.0, 3, 4, 4));
    assert!(world.open(Kind::VersionRegression).is_empty());
    world.hear(state(71.0, 5, 5, 1));
    world.wait_until(140.0);
    let rows = world.all(Kind::VersionRegression);
    let told: Vec<_> = rows.iter().map(|row| (row.ordinal, row.count, row.state)).collect();
    assert_eq!(told, [(1, 1, State::Closed), (2, 1, State::Confirmed)]);
}

fn of_hole(n: usize, due_us: Option<i64>) -> Waiting {
    // The hash of a newer one is no larger.
    let key = i64::try_from(n).unwrap().wrapping_mul(0x9E37_79B9_7F4A_7C15_u64.cast_signed());
    Waiting::new(Wait::Key(1, key), Some("settle".into()), due_us, true)
}

#[test]
fn of_those_that_wait_for_a_hole_the_oldest_wait_no_more() {
    let mut waits = Waits::default();
    for n in 0..WATCHED_MAX + 10 {
        // Every other one waits for time as well.
        waits.set(of_hole(n, (n % 2 == 0).then_some(7)));
    }
    assert_eq!(waits.for_hole("settle").count(), WATCHED_MAX);
    assert_eq!(waits.len(), WATCHED_MAX + 5);
    let waits_for_hole =
        |waits: &Waits, n| waits.for_hole("settle").any(|wait| *wait == of_hole(n, None).wait);
    for n in 0..10 {
        assert!(!waits_for_hole(&waits, n), "{n}");
        assert_eq!(waits.has(&of_hole(n, None).wait), n % 2 == 0, "{n}");
    }
    // One that is judged again is not newer by that.
    waits.set(of_hole(10, Some(9)));
    // In whatever order the store gives them back.
    let mut restored = Waits::default();
    let stored: Vec<Waiting> = waits
        .take_changed()
        .into_iter()
        .filter_map(|(_, waiting)| {
            serde_json::from_str(&serde_json::to_string(waiting?).unwrap()).unwrap()
        })
        .collect();
    stored.into_iter().rev().for_each(|waiting| restored.restore(waiting));
    for waits in [&mut waits, &mut restored] {
        waits.set(of_hole(WATCHED_MAX + 10, None));
        assert_eq!(waits.for_hole("settle").count(), WATCHED_MAX);
        assert!(!waits_for_hole(waits, 10) && waits_for_hole(waits, 11));
    }
}

#[test]
fn what_is_to_be_looked_at_again_is_looked_at_in_bounded_parts() {
    let mut world = World::new();
    world.wait_until(0.0);
    for n in 0..2 * READY_MAX + 1 {
        let key = i64::try_from(n).unwrap();
        world.audit.waits.set(Waiting::new(Wait::Key(1, key), None, Some(0), false));
        world.audit.recheck.insert(Wait::Key(2, key));
    }
    let mut parts = 0;
    while let ready = world.audit.ready()
        && !ready.is_empty()
    {
        assert!(ready.len() <= READY_MAX);
        // Nothing is known of these; so they are let go of by hand.
        for wait in &ready {
            world.audit.recheck.remove(wait);
            world.audit.waits.clear(wait);
        }
        parts += 1;
    }
    assert_eq!(parts, 5);
    assert!(world.audit.waits.is_empty());
}
