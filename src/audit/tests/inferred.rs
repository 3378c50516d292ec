//! `live_eviction` of guards that tell their windows and never an eviction.

use super::*;
use crate::audit::OrderKnown;

/// Acceptances of one source, by turns with their windows of `cap`: none tells an eviction.
fn told_of(signatures: &[&str], cap: u64) -> World {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    for (i, signature) in signatures.iter().enumerate() {
        world.hear(accepted(i as u64 + 1, signature, cap));
    }
    world
}

fn accepted(seq: u64, signature: &str, cap: u64) -> Told {
    let who = format!("a 1#{seq}");
    told(seq as f64, &who, "p", signature, "processed").window(seq.min(cap), cap)
}

fn end(world: &mut World, last: u64) {
    world.heartbeat(40.0, "a", "1", last);
}

const TWO_GAMES: [&str; 4] = ["A/1/5", "A/1/10F", "B/1/5", "B/1/8F"];

#[test]
fn what_enters_a_full_window_pushes_the_oldest_out() {
    let mut world = told_of(&TWO_GAMES, 3);
    world.assert_quiet();
    end(&mut world, 4);
    let finding = world.only(Kind::LiveEviction);
    assert_eq!((finding.state, finding.order), (State::Confirmed, OrderKnown::Assumed));
    assert_eq!((finding.cause.as_str(), finding.amounts.exposure), ("undersized", 5));
    let witness = &finding.witnesses[0];
    assert_eq!((witness.role.as_str(), witness.outcome), ("eviction_inferred", None));
    assert_eq!(witness.signature.as_ref().unwrap().net().0, 5);
}

#[test]
fn a_window_that_is_large_enough_lets_nothing_go() {
    let mut world = told_of(&TWO_GAMES, 4);
    end(&mut world, 4);
    assert!(world.open(Kind::LiveEviction).is_empty());
}

#[test]
fn what_is_of_an_older_game_may_go() {
    let mut world = told_of(&["A/1/5", "A/1/6F", "B/1/5", "B/1/6F", "C/1/5", "C/1/6F"], 4);
    end(&mut world, 6);
    assert!(world.open(Kind::LiveEviction).is_empty());
}

#[test]
fn nothing_is_inferred_of_a_service_that_tells_evictions() {
    let mut world = told_of(&TWO_GAMES, 3);
    let other = told(4.5, "b 1#1", "q", "A/1/5", "processed").evicts("A/9/5");
    world.hear(other);
    end(&mut world, 4);
    assert!(world.open(Kind::LiveEviction).iter().all(|row| row.source.is_none()
        || row.witnesses.iter().all(|witness| witness.role != "eviction_inferred")));
}

#[test]
fn nothing_is_inferred_of_a_shared_window_or_one_with_a_hole() {
    for (mode, skip) in [("shared", None), ("local", Some(3)), ("local", None)] {
        let mut world = World::new();
        world.heartbeat(0.0, "a", "1", 0);
        for (i, signature) in TWO_GAMES.iter().enumerate() {
            let seq = i as u64 + 1;
            if Some(seq) != skip {
                world.hear(accepted(seq, signature, 3).with("guard_mode", mode));
            }
        }
        if let Some(seq) = skip {
            world.give_up("a", "1", seq, seq);
        }
        end(&mut world, 4);
        let expected = usize::from(mode == "local" && skip.is_none());
        assert_eq!(world.open(Kind::LiveEviction).len(), expected, "{mode} {skip:?}");
    }
}

#[test]
fn a_replay_that_is_accepted_again_pushes_nothing_out() {
    let mut world = told_of(&["A/1/5", "A/1/6", "A/1/7"], 3);
    world.hear(told(4.0, "a 1#4", "p", "A/1/6", "processed").window(3, 3));
    end(&mut world, 4);
    assert!(world.open(Kind::LiveEviction).is_empty());
}

#[test]
fn the_order_of_arrival_makes_no_difference() {
    for order in [[4_usize, 3, 2, 1], [2, 4, 1, 3], [1, 2, 3, 4]] {
        let mut world = World::new();
        world.heartbeat(0.0, "a", "1", 0);
        for seq in order {
            world.hear(accepted(seq as u64, TWO_GAMES[seq - 1], 3));
        }
        end(&mut world, 4);
        assert_eq!(world.only(Kind::LiveEviction).amounts.exposure, 5, "{order:?}");
    }
}
