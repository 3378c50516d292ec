//! `window_lost`, `undersized_window`: what a guard must be able to hold, and must not lose.

use super::*;
use crate::audit::{OrderKnown, Severity};

/// Events of `p` at source `a`, boot 1: (signature, outcome, len, cap), a minute apart.
fn said(list: &[(&str, &str, u64, u64)]) -> World {
    let mut world = World::new();
    for (i, (signature, outcome, len, cap)) in list.iter().enumerate() {
        let who = format!("a 1#{}", i + 1);
        world.hear(told(60.0 * i as f64, &who, "p", signature, outcome).window(*len, *cap));
    }
    world.wait_until(60.0 * list.len() as f64);
    world
}

/// The causes by which something is lost.
fn causes(world: &World) -> Vec<String> {
    world.open(Kind::WindowLost).iter().map(|row| row.cause.clone()).collect()
}

#[test]
fn a_window_that_holds_less_than_before_has_lost_something() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(4, 4));
    world.hear(told(10.0, "a 1#2", "p", "B/1/5", "processed").window(2, 4));
    assert_eq!(world.only(Kind::WindowLost).state, State::Suspected);
    world.wait_until(12.0);
    let finding = world.only(Kind::WindowLost);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
    assert_eq!((finding.count, finding.players), (1, 1));
    assert_eq!((finding.cause.as_str(), finding.order), ("cleared", OrderKnown::Proven));
    assert_eq!(finding.source.as_ref().map(Id::as_str), Some("a"));
    let roles: Vec<_> = finding.witnesses.iter().map(|w| w.role.as_str()).collect();
    assert_eq!(roles, ["window_before", "lost"]);
    let text = finding.witnesses[1].text.as_deref();
    assert_eq!(text, Some("it holds 2 and should hold 4"));
}

#[test]
fn each_loss_is_counted_once_and_each_player_too() {
    let mut world = World::new();
    let mut seq = 0;
    for player in ["p", "q"] {
        for (i, len) in [4, 1, 2, 1, 2].into_iter().enumerate() {
            seq += 1;
            let signature = format!("A/{i}/5F");
            let who = format!("a 1#{seq}");
            world.hear(told(seq as f64, &who, player, &signature, "processed").window(len, 4));
        }
    }
    world.wait_until(60.0);
    let finding = world.only(Kind::WindowLost);
    assert_eq!((finding.count, finding.players), (4, 2));
    assert_eq!(finding.witnesses.len(), 8);
}

#[test]
fn a_window_that_holds_what_it_should_is_silent() {
    said(&[
        ("A/1/5", "processed", 1, 2),
        ("A/1/6F", "processed", 2, 2),
        ("A/1/5", "replay_blocked", 2, 2),
        ("B/1/5", "unknown", 2, 2),
        ("A/1/5", "evicted", 1, 2),
        ("C/1/5", "processed", 2, 2),
        // In place of an older one, without a word of it.
        ("D/1/5F", "processed", 2, 2),
    ]);
    for list in [
        // The same signature again adds nothing.
        &[("A/1/5", "processed", 1, 4), ("A/1/5", "processed", 1, 4)][..],
        &[("A/1/5", "unknown", 1, 4), ("A/1/5", "processed", 1, 4)],
        &[("A/1/5", "replay_blocked", 1, 4), ("A/1/5", "processed", 1, 4)],
        // More than it may hold is taken as it is.
        &[("A/1/5", "processed", 9, 4), ("B/1/5", "processed", 4, 4)],
        // A larger capacity.
        &[("A/1/5", "processed", 2, 2), ("B/1/5", "processed", 2, 4)],
    ] {
        let world = said(list);
        assert_eq!(causes(&world), [""; 0], "{list:?}");
    }
}

#[test]
fn a_block_that_clears_the_window_is_the_cause() {
    let world = said(&[
        ("A/1/5", "processed", 1, 4),
        ("B/1/5", "processed", 2, 4),
        ("A/1/5", "replay_blocked", 1, 4),
        ("C/1/5", "processed", 2, 4),
    ]);
    assert_eq!(causes(&world), ["on_block"]);
    assert_eq!(world.only(Kind::WindowLost).count, 1);
}

#[test]
fn after_a_long_idle_time_it_is_lost_by_age() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(3, 4));
    world.hear(told(300.0, "a 1#2", "p", "B/1/5", "processed").window(1, 4));
    world.wait_until(400.0);
    assert_eq!(causes(&world), ["ttl"]);
}

#[test]
fn a_restart_that_forgets_is_lost_one_that_remembers_is_not() {
    for (len, cap, cause) in [
        (1, 4, Some("restart")),
        (3, 4, None),
        // All that a smaller window has room for.
        (2, 2, Some("cap_changed")),
        (1, 2, Some("restart")),
        // Not all: a run that ended without a word may have told why.
        (2, 4, None),
    ] {
        let mut world = World::new();
        world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(2, 4));
        world.hear(told(9.0, "a 2#1", "p", "B/1/5", "processed").window(len, cap));
        world.wait_until(60.0);
        assert_eq!(causes(&world), Vec::from_iter(cause), "{len} of {cap}");
    }
}

#[test]
fn after_a_goodbye_nothing_can_have_been_missed() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(3, 4));
    world.goodbye(1.0, "a", "1", 1);
    world.hear(told(9.0, "a 2#1", "p", "B/1/5", "processed").window(2, 4));
    world.heartbeat(20.0, "a", "2", 1);
    assert_eq!(causes(&world), ["restart"]);
}

#[test]
fn a_restart_forgets_one_even_if_the_same_comes_again() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(1, 4));
    world.hear(told(9.0, "a 2#1", "p", "A/1/5", "processed").window(1, 4));
    world.wait_until(60.0);
    assert_eq!(causes(&world), ["restart"]);
}

#[test]
fn a_block_after_a_restart_with_memory_kept_is_silent() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(1, 4));
    world.hear(told(9.0, "a 2#1", "p", "A/1/5", "replay_blocked").window(1, 4));
    world.wait_until(60.0);
    world.assert_quiet();
}

#[test]
fn an_effect_that_failed_may_give_its_place_back_at_any_time() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(1, 4));
    let failed = told(10.0, "a 1#2", "p", "B/1/5", "processed").window(2, 4);
    world.hear(failed.with("effect", "failed"));
    world.hear(told(20.0, "a 1#3", "p", "C/1/5", "processed").window(3, 4));
    world.hear(told(30.0, "a 1#4", "p", "D/1/5", "processed").window(3, 4));
    world.wait_until(60.0);
    assert_eq!(causes(&world), [""; 0]);
    // But not two places.
    world.hear(told(70.0, "a 1#5", "p", "E/1/5", "processed").window(2, 4));
    world.wait_until(90.0);
    assert_eq!(causes(&world), ["cleared"]);
}

#[test]
fn inline_evictions_take_their_number() {
    let evicted = serde_json::json!([
        {"room": "A", "round": "1", "net": "1", "final": false},
        {"room": "A", "round": "2", "net": "2", "final": false},
    ]);
    for (len, lost) in [(3, false), (2, true)] {
        let mut world = World::new();
        world.hear(told(0.0, "a 1#1", "p", "A/3/5", "processed").window(4, 4));
        let next = told(10.0, "a 1#2", "p", "B/1/5", "processed").window(len, 4);
        world.hear(next.with("evicted", evicted.clone()));
        world.wait_until(60.0);
        assert_eq!(!world.open(Kind::WindowLost).is_empty(), lost, "{len}");
    }
}

#[test]
fn two_evictions_in_a_row_are_one_too_many() {
    let begin = [("A/1/5", "processed", 3, 4), ("A/1/6F", "processed", 4, 4)];
    let evictions =
        [("A/1/5", "evicted", 3, 4), ("A/1/6F", "evicted", 2, 4), ("A/0/1F", "evicted", 1, 4)];
    let world = said(&[&begin[..], &evictions].concat());
    let finding = world.only(Kind::WindowLost);
    assert_eq!((finding.count, finding.cause.as_str()), (1, "cleared"));
    for reason in ["ttl", "reaper", "ack"] {
        let mut world = said(&begin);
        for (i, (signature, outcome, len, cap)) in evictions.iter().enumerate() {
            let at = 200.0 + i as f64;
            let who = format!("a 1#{}", 3 + i);
            let event = told(at, &who, "p", signature, outcome).window(*len, *cap);
            world.hear(event.with("reason", reason));
        }
        world.wait_until(300.0);
        assert_eq!(causes(&world), [""; 0], "{reason}");
    }
    // A window that became smaller makes room for one more.
    let world = said(&[
        ("A/1/5", "processed", 4, 4),
        ("A/1/6F", "evicted", 3, 2),
        ("A/1/5", "evicted", 2, 2),
        ("A/0/1F", "evicted", 1, 2),
        ("B/0/1F", "processed", 2, 2),
    ]);
    assert_eq!(causes(&world), [""; 0]);
}

#[test]
fn a_window_for_each_room_is_compared_by_room() {
    let in_room = |at: f64, who: &str, signature: &str, len: u64| {
        let window = serde_json::json!({"len": len, "cap": 4, "scope": "room"});
        told(at, who, "p", signature, "processed").with("window", window)
    };
    let mut world = World::new();
    world.hear(in_room(0.0, "a 1#1", "A/1/5", 3));
    world.hear(in_room(10.0, "a 1#2", "B/1/5", 1));
    world.hear(in_room(20.0, "a 1#3", "=key/5", 1));
    world.wait_until(60.0);
    world.assert_quiet();
    world.hear(in_room(70.0, "a 1#4", "A/2/5", 2));
    world.wait_until(90.0);
    assert_eq!(causes(&world), ["cleared"]);
}

#[test]
fn only_guards_that_forget_the_oldest_are_compared() {
    for (guard, lost) in [("signature_window", true), ("order_mark", false)] {
        let mut world = World::new();
        for (seq, len) in [(1, 4), (2, 1)] {
            let signature = format!("A/{seq}/5");
            let who = format!("a 1#{seq}");
            let event = told(seq as f64, &who, "p", &signature, "processed").window(len, 4);
            world.hear(event.with("guard", guard));
        }
        world.wait_until(60.0);
        assert_eq!(!world.open(Kind::WindowLost).is_empty(), lost, "{guard}");
    }
}

#[test]
fn what_is_unheard_between_is_waited_for() {
    let p1 = || told(0.0, "a 1#1", "p", "A/1/5", "processed").window(3, 4);
    let p2 = || told(10.0, "a 1#2", "p", "A/0/5", "evicted").with("reason", "ttl").window(2, 4);
    let p3 = || told(20.0, "a 1#3", "p", "B/1/5", "processed").window(3, 4);
    let q2 = || told(10.0, "a 1#2", "q", "A/0/5", "processed").window(1, 4);
    for (second, lost) in [(None, false), (Some(p2()), false), (Some(q2()), true)] {
        let mut world = World::new();
        world.hear(p1());
        world.hear(p3());
        assert_eq!(causes(&world), [""; 0]);
        world.give_up("a", "1", 2, 2);
        world.wait_until(60.0);
        assert_eq!(causes(&world), [""; 0]);
        assert_eq!(world.skipped()["window_lost_blind"], 1);
        if let Some(second) = second {
            world.hear(second);
        }
        world.wait_until(90.0);
        assert_eq!(!causes(&world).is_empty(), lost);
    }
}

#[test]
fn by_clock_alone_only_what_stands_apart_is_in_order() {
    for (at, lost) in [(10.5, false), (12.0, true)] {
        let mut world = World::new();
        world.hear(told(0.0, "a", "p", "A/1/5", "processed").window(3, 4));
        world.hear(told(10.0, "a", "p", "B/1/5", "processed").window(1, 4));
        world.hear(told(at, "a", "p", "C/1/5", "processed").window(2, 4));
        world.wait_until(60.0);
        assert_eq!(!causes(&world).is_empty(), lost, "{at}");
    }
}

#[test]
fn numbers_that_were_not_given_under_the_lock_are_not_in_order() {
    let mut world = World::new();
    for (seq, len) in [(1, 1), (2, 3), (3, 2), (4, 4)] {
        let signature = format!("A/{seq}/5");
        let at = seq as f64 * 0.01;
        let who = format!("a 1#{seq}");
        world.hear(told(at, &who, "p", &signature, "processed").window(len, 4));
    }
    world.wait_until(60.0);
    assert_eq!(causes(&world), [""; 0]);
    assert_eq!(world.skipped()["window_lost_order"], 1);
}

#[test]
fn threads_that_number_what_they_did_crosswise_lose_nothing() {
    let processed = |list: &[u64]| list.iter().map(|len| ("processed", *len)).collect::<Vec<_>>();
    for (list, apart, lost) in [
        // The first two of a player, with nothing before nor after.
        (processed(&[2, 1]), 0.01, 0),
        (processed(&[2, 1]), 2.0, 1),
        (processed(&[1, 3, 2]), 0.01, 0),
        // Three threads.
        (processed(&[3, 2, 1]), 0.01, 0),
        (processed(&[3, 1, 2, 4]), 0.01, 0),
        // In no order is this right.
        (processed(&[2, 3, 2, 3]), 0.01, 1),
        (processed(&[4, 1]), 0.01, 1),
        // A refusal between the two words of an acceptance.
        (vec![("evicted", 3), ("processed", 4), ("replay_blocked", 3)], 0.01, 0),
        (vec![("evicted", 3), ("processed", 4), ("replay_blocked", 2)], 0.01, 1),
    ] {
        let mut world = World::new();
        for (i, (outcome, len)) in list.iter().enumerate() {
            let signature = format!("A/{i}/5");
            let who = format!("a 1#{}", i + 1);
            let at = 1.0 + apart * i as f64;
            world.hear(told(at, &who, "p", &signature, outcome).window(*len, 4));
        }
        world.wait_until(60.0);
        assert_eq!(causes(&world).len(), lost, "{list:?} {apart}");
    }
}

#[test]
fn what_comes_after_threads_shows_that_they_did_not_cross() {
    let mut world = World::new();
    for (at, who, signature, len) in
        [(1.0, "a 1#1", "A/1/5", 2), (1.01, "a 1#2", "B/1/5", 1), (9.0, "a 1#3", "C/1/5", 2)]
    {
        world.hear(told(at, who, "p", signature, "processed").window(len, 4));
    }
    world.wait_until(60.0);
    assert_eq!(causes(&world), ["cleared"]);
}

#[test]
fn a_refusal_between_two_evictions_makes_no_difference() {
    let event = |i: usize| match i {
        0 => told(1.0, "a 1#1", "p", "A/1/5", "processed").window(4, 4),
        1 => told(3.0, "a 1#2", "p", "A/1/5", "evicted").window(3, 4),
        2 => told(5.0, "a 1#3", "p", "B/1/5", "replay_blocked").window(3, 4),
        3 => told(7.0, "a 1#4", "p", "B/1/5", "evicted").window(2, 4),
        _ => told(9.0, "a 1#5", "p", "C/1/5", "processed").window(3, 4),
    };
    for order in orders() {
        assert_eq!(in_order(&order, &event), [("cleared".into(), 1, 1)], "{order:?}");
    }
}

#[test]
fn an_eviction_that_told_no_window_still_took_something() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(3, 4));
    world.hear(told(5.0, "a 1#2", "p", "A/0/5", "evicted").with("reason", "ttl"));
    world.hear(told(10.0, "a 1#3", "p", "B/1/5", "processed").window(3, 4));
    world.wait_until(60.0);
    assert_eq!(causes(&world), [""; 0]);
}

/// Every order in which five events can arrive.
fn orders() -> Vec<Vec<usize>> {
    let mut all = vec![vec![]];
    for n in 0..5 {
        all = all
            .into_iter()
            .flat_map(|order: Vec<usize>| {
                (0..=n).map(move |place| {
                    let mut order = order.clone();
                    order.insert(place, n);
                    order
                })
            })
            .collect();
    }
    all
}

fn in_order(order: &[usize], events: &dyn Fn(usize) -> Told) -> Vec<(String, u64, u64)> {
    let mut world = World::new();
    for i in order {
        world.hear(events(*i));
    }
    world.wait_until(1_000.0);
    let mut found: Vec<_> = [Kind::WindowLost, Kind::UndersizedWindow]
        .into_iter()
        .flat_map(|kind| world.open(kind))
        .map(|row| (row.cause.clone(), row.count, row.players))
        .collect();
    found.sort();
    found
}

#[test]
fn the_order_of_arrival_makes_no_difference() {
    let losses = |i: usize| match i {
        0 => told(1.0, "a 1#1", "p", "A/1/5", "processed").window(4, 4),
        1 => told(2.0, "a 1#2", "p", "B/1/5", "processed").window(2, 4),
        2 => told(3.0, "a 1#3", "p", "B/1/5", "replay_blocked").window(1, 4),
        3 => told(4.0, "a 1#4", "p", "C/1/5", "processed").window(2, 4),
        _ => told(5.0, "a 1#5", "p", "B/1/5", "processed").window(2, 4),
    };
    let evictions = |i: usize| match i {
        0 => told(1.0, "a 1#1", "p", "A/1/5", "processed").window(4, 4),
        1 => told(2.0, "a 1#2", "p", "A/1/5", "evicted").window(3, 4),
        2 => told(3.0, "a 1#3", "p", "C/1/5", "processed").window(4, 4),
        3 => told(4.0, "a 1#4", "p", "C/1/5", "evicted").window(3, 4),
        _ => told(5.0, "a 1#5", "p", "D/1/5", "evicted").window(2, 4),
    };
    let games = |i: usize| match i {
        0 => told(1.0, "a 1#1", "p", "A/1/5", "processed").window(3, 3),
        1 => told(2.0, "a 1#2", "p", "A/1/6F", "processed").window(3, 3),
        2 => told(3.0, "a 1#3", "p", "B/1/5", "processed").window(3, 3),
        3 => told(4.0, "a 1#4", "p", "C/1/5", "processed").window(3, 3),
        _ => told(5.0, "a 1#5", "p", "C/1/6F", "processed").window(3, 3),
    };
    let lost: Vec<_> = [("cleared", 1, 1), ("on_block", 1, 1)]
        .map(|(cause, count, players)| (cause.to_owned(), count, players))
        .into();
    for order in orders() {
        assert_eq!(in_order(&order, &losses), lost, "{order:?}");
        assert_eq!(in_order(&order, &evictions), [("cleared".into(), 1, 1)], "{order:?}");
        assert_eq!(in_order(&order, &games), [], "{order:?}");
    }
}

#[test]
fn a_window_smaller_than_the_two_newest_games_is_undersized() {
    let mut world = World::new();
    for (seq, signature) in [(1, "A/1/5"), (2, "A/1/6F"), (3, "B/1/5"), (4, "B/1/6F")] {
        let who = format!("a 1#{seq}");
        let len = u64::min(seq, 3);
        world.hear(told(seq as f64, &who, "p", signature, "processed").window(len, 3));
    }
    assert!(world.open(Kind::UndersizedWindow).is_empty(), "a game may still come between");
    world.wait_until(10.0);
    let finding = world.only(Kind::UndersizedWindow);
    assert_eq!((finding.count, finding.players), (1, 1));
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
}

#[test]
fn a_window_that_holds_the_two_newest_games_is_not() {
    let list = |failed: bool, scope: &str, last: &str| {
        let mut world = World::new();
        for (seq, signature) in [(1, "A/1/5"), (2, "A/1/6F"), (3, "B/1/5"), (4, last)] {
            let who = format!("a 1#{seq}");
            let window = serde_json::json!({"len": u64::min(seq, 3), "cap": 3, "scope": scope});
            let event = told(seq as f64, &who, "p", signature, "processed");
            let effect = if failed && seq == 4 { "failed" } else { "applied" };
            world.hear(event.with("window", window).with("effect", effect));
        }
        world.wait_until(10.0);
        world.open(Kind::UndersizedWindow).len()
    };
    assert_eq!(list(false, "player", "B/1/6F"), 1);
    assert_eq!(list(false, "player", "C/1/5"), 0, "a third game is not live with the first");
    assert_eq!(list(false, "room", "B/1/6F"), 0, "each room has a window of its own");
    assert_eq!(list(true, "player", "B/1/6F"), 0, "it gave its place back");
}

#[test]
fn a_game_that_told_no_window_counts_whenever_it_is_heard() {
    for backwards in [false, true] {
        let mut both = [
            told(1.0, "a 1#1", "p", "A/1/5", "processed"),
            told(2.0, "a 1#2", "p", "B/1/5", "processed").window(1, 1),
        ];
        if backwards {
            both.reverse();
        }
        let mut world = World::new();
        world.heartbeat(0.0, "a", "1", 0);
        both.into_iter().for_each(|event| world.hear(event));
        world.heartbeat(10.0, "a", "1", 2);
        assert_eq!(world.open(Kind::UndersizedWindow).len(), 1, "{backwards}");
    }
}

#[test]
fn what_passed_the_guard_by_hides_no_loss() {
    for backwards in [false, true] {
        let mut last = [
            told(2.0, "a 1#2", "p", "B/1/5", "processed").window(3, 1).with("guard_mode", "off"),
            told(3.0, "a 1#3", "p", "C/1/5", "processed").window(1, 3),
        ];
        if backwards {
            last.reverse();
        }
        let mut world = World::new();
        world.hear(told(1.0, "a 1#1", "p", "A/1/5", "processed").window(3, 3));
        last.into_iter().for_each(|event| world.hear(event));
        world.wait_until(20.0);
        assert_eq!(causes(&world), ["cleared"], "{backwards}");
    }
}

#[test]
fn sources_of_a_service_with_different_capacities_are_told_once_for_each() {
    for order in [[0, 1, 2, 3], [3, 1, 0, 2]] {
        let mut world = World::new();
        let told = [("a 1#1", 4), ("b 1#1", 8), ("a 1#2", 4), ("c 1#1", 4)];
        for i in order {
            let (who, cap) = told[i];
            let signature = format!("r/{i}/5");
            world.hear(super::told(i as f64, who, "p", &signature, "processed").window(1, cap));
        }
        let finding = world.only(Kind::CapMismatch);
        assert_eq!((finding.severity, finding.count), (Severity::Info, 1), "{order:?}");
    }
    let mut world = World::new();
    for (seq, cap) in [(1, 4), (2, 8)] {
        let who = format!("a 1#{seq}");
        let signature = format!("r/{seq}/5");
        world.hear(told(seq as f64, &who, "p", &signature, "processed").window(1, cap));
    }
    assert!(world.open(Kind::CapMismatch).is_empty(), "one source is not two");
    for (who, cap) in [("b 1#1", 1), ("c 1#1", 2)] {
        let window = serde_json::json!({"len": 1, "cap": cap, "scope": "room"});
        world.hear(told(9.0, who, "p", "r/9/5", "processed").with("window", window));
    }
    assert_eq!(world.only(Kind::CapMismatch).count, 1, "one of rooms, none of players");
}

#[test]
fn a_game_that_began_in_turn_later_was_not_yet_the_newest() {
    // As of `C/1`, `B/1` is known by a late acceptance alone, and `A/1` is live.
    let mut world = World::new();
    world.hear(told(1.0, "a 1#1", "p", "A/1/5", "processed").window(1, 1));
    world.hear(told(2.0, "a 1#2", "p", "B/1/5", "late_accepted").window(1, 2));
    world.hear(told(3.0, "a 1#3", "p", "C/1/5", "processed").window(1, 1));
    world.hear(told(4.0, "a 1#4", "p", "B/1/6", "processed"));
    world.wait_until(60.0);
    assert_eq!(world.only(Kind::UndersizedWindow).count, 1);
}

#[test]
fn a_refusal_that_says_the_same_is_news_after_what_told_no_window() {
    let event = |i: usize| match i {
        0 => told(1.0, "a 1#1", "p", "A/1/5", "processed").window(4, 4),
        1 => told(2.0, "a 1#2", "p", "B/1/5", "processed"),
        2 => told(3.0, "a 1#3", "p", "B/1/5", "replay_blocked").window(4, 4),
        _ => told(4.0, "a 1#4", "p", "B/1/5", "replay_blocked").window(3, 4),
    };
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [0, 2, 1, 3], [2, 0, 1, 3]] {
        let mut world = World::new();
        for i in order {
            world.hear(event(i));
        }
        world.wait_until(60.0);
        assert_eq!(causes(&world), ["on_block"], "{order:?}");
    }
}

#[test]
fn what_comes_again_leaves_a_window_that_holds_too_many() {
    let world = said(&[
        ("A/1/5", "replay_blocked", 3, 1),
        ("B/1/5", "processed", 3, 1),
        ("A/1/5", "processed", 1, 1),
    ]);
    assert_eq!(causes(&world), ["cleared"]);
}

#[test]
fn what_stood_only_later_needed_no_place_then() {
    let mut world = World::new();
    world.hear(told(1.0, "a 1#1", "p", "A/1/5", "processed"));
    let unknown = told(3.0, "a 1#2", "p", "B/1/5", "processed").window(1, 1);
    world.hear(unknown.with("effect", "unknown"));
    world.hear(told(3.5, "a 1#3", "p", "B/1/5", "processed"));
    world.wait_until(60.0);
    assert!(world.open(Kind::UndersizedWindow).is_empty());
}

#[test]
fn what_turns_out_to_have_been_booked_gave_no_place_back() {
    let mut world = World::new();
    let failed = told(1.0, "a 1#1", "p", "A/1/5", "processed").window(4, 4);
    world.hear(failed.with("effect", "failed"));
    world.hear(told(10.0, "a 1#2", "p", "B/1/5", "evicted").window(2, 4));
    world.wait_until(30.0);
    assert_eq!(causes(&world), [""; 0]);
    let report = told(31.0, "a 1#3", "p", "A/1/5", "effect_reported");
    world.hear(report.with("effect", "applied"));
    world.wait_until(60.0);
    assert_eq!(causes(&world), ["cleared"]);
}
