//! `live_eviction`: which evictions leave a settlement without protection.

use super::*;
use crate::audit::Severity;

/// Two games of two settlements each in a window of `cap`; the next acceptance evicts the first.
fn two_games(cap: u64) -> World {
    let mut world = World::new();
    for (seq, signature) in ["A/1/5", "A/1/10F", "B/1/5"].into_iter().enumerate() {
        let who = format!("a 1#{}", seq + 1);
        let len = (seq as u64 + 1).min(cap);
        world.hear(told(seq as f64, &who, "p", signature, "processed").window(len, cap));
    }
    world
}

#[test]
fn a_window_of_three_lets_a_live_signature_go() {
    let mut world = two_games(3);
    let final_b = told(4.0, "a 1#4", "p", "B/1/8F", "processed").window(3, 3).evicts("A/1/5");
    world.hear(final_b);
    assert_eq!(world.only(Kind::LiveEviction).state, State::Suspected);
    world.wait_until(6.0);
    let finding = world.only(Kind::LiveEviction);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
    assert_eq!((finding.count, finding.players, finding.amounts.exposure), (1, 1, 5));
    assert_eq!(finding.cause, "undersized");
    assert_eq!(finding.witnesses[0].role, "evicted");
}

#[test]
fn a_signature_of_an_older_game_may_go() {
    let mut world = two_games(3);
    world.hear(told(4.0, "a 1#4", "p", "C/1/8F", "processed").window(3, 3).evicts("A/1/5"));
    world.wait_until(10.0);
    world.assert_quiet();
}

#[test]
fn an_eviction_by_itself_is_judged_by_the_acceptance_that_follows_it() {
    for (next, live) in [("B/1/8F", true), ("C/1/8F", false)] {
        let mut world = two_games(3);
        world.hear(told(4.0, "a 1#4", "p", "A/1/5", "evicted").window(2, 3));
        world.hear(told(4.0, "a 1#5", "p", next, "processed").window(3, 3));
        world.wait_until(10.0);
        assert_eq!(world.open(Kind::LiveEviction).len(), usize::from(live), "{next}");
    }
}

#[test]
fn a_pushing_acceptance_that_comes_late_takes_it_back() {
    let mut world = two_games(3);
    world.hear(told(4.0, "a 1#4", "p", "A/1/5", "evicted").window(2, 3));
    world.wait_until(10.0);
    assert_eq!(world.only(Kind::LiveEviction).state, State::Confirmed);
    world.hear(told(4.0, "a 1#5", "p", "C/1/8F", "processed").window(3, 3));
    world.assert_quiet();
    assert_eq!(world.all(Kind::LiveEviction)[0].amounts.exposure, 0);
}

#[test]
fn a_verdict_outlives_the_memory_of_its_games_and_of_its_pusher() {
    for inline in [true, false] {
        let mut world = two_games(3);
        let mut seq = 4;
        let mut hear = |at: f64, signature: &str, outcome: &str, evicts: Option<&str>| {
            let who = format!("a 1#{seq}");
            seq += 1;
            let told = told(at, &who, "p", signature, outcome).window(3, 3);
            world.hear(match evicts {
                Some(evicted) => told.evicts(evicted),
                None => told,
            });
        };
        if inline {
            hear(4.0, "B/1/8F", "processed", Some("A/1/5"));
        } else {
            hear(4.0, "A/1/5", "evicted", None);
            hear(4.0, "B/1/8F", "processed", None);
        }
        for round in 2..40 {
            hear(10.0 * f64::from(round), &format!("C/{round}/5"), "processed", None);
        }
        world.wait_until(500.0);
        let finding = world.only(Kind::LiveEviction);
        assert_eq!((finding.state, finding.count), (State::Confirmed, 1), "inline: {inline}");
    }
}

#[test]
fn without_numbers_the_pushing_acceptance_is_near() {
    for (at, live) in [(5.9, false), (6.1, true)] {
        let mut world = World::new();
        for (at, signature) in [(0.0, "A/1/5"), (1.0, "B/1/5")] {
            world.hear(told(at, "a", "p", signature, "processed").window(2, 2));
        }
        world.hear(told(4.0, "a", "p", "A/1/5", "evicted").window(1, 2));
        world.hear(told(at, "a", "p", "C/1/5", "processed").window(2, 2));
        world.wait_until(20.0);
        assert_eq!(world.open(Kind::LiveEviction).len(), usize::from(live), "{at}");
    }
}

#[test]
fn what_did_not_fall_out_for_want_of_room_has_no_pusher() {
    for reason in ["ttl", "reaper", "memory", "restart", "ack"] {
        let mut world = two_games(3);
        let evicted = told(4.0, "a 1#4", "p", "A/1/5", "evicted").window(2, 3);
        world.hear(evicted.with("reason", reason));
        world.hear(told(4.0, "a 1#5", "p", "C/1/8F", "processed").window(3, 3));
        world.wait_until(10.0);
        assert_eq!(world.only(Kind::LiveEviction).cause, reason);
    }
}

#[test]
fn a_late_third_game_takes_a_place() {
    let mut world = World::new();
    for (seq, signature, outcome) in [
        (1, "a/0/1", "processed"),
        (2, "b/1/11", "processed"),
        (3, "b/1/12F", "processed"),
        (4, "c/2/21", "processed"),
    ] {
        let who = format!("a 1#{seq}");
        world.hear(told(seq as f64, &who, "p", signature, outcome).window(seq, 4));
    }
    let late = told(5.0, "a 1#5", "p", "a/0/2F", "late_accepted").window(4, 4).evicts("a/0/1");
    world.hear(late);
    world.wait_until(8.0);
    world.assert_quiet();
    let next = told(9.0, "a 1#6", "p", "c/2/22F", "processed").window(4, 4).evicts("b/1/11");
    world.hear(next);
    world.wait_until(12.0);
    assert_eq!(world.only(Kind::LiveEviction).cause, "late_third_game");
}

#[test]
fn an_early_eviction_says_that_the_window_was_not_full() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed").window(1, 4));
    world.hear(told(1.0, "a 1#2", "p", "A/1/5", "evicted").window(0, 4));
    world.wait_until(10.0);
    assert_eq!(world.only(Kind::LiveEviction).cause, "not_full");
}

#[test]
fn an_opaque_key_is_live_for_a_time() {
    for (at, live) in [(299.0, true), (300.0, false)] {
        let mut world = World::new();
        world.hear(told(0.0, "a 1#1", "p", "=k/5", "processed").window(1, 1));
        let next = told(at, "a 1#2", "p", "=l/5", "processed").window(1, 1).evicts("=k/5");
        world.hear(next);
        world.wait_until(at + 10.0);
        assert_eq!(world.open(Kind::LiveEviction).len(), usize::from(live), "{at}");
    }
}

#[test]
fn an_opaque_key_is_live_whatever_was_missed_since() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "=k/5", "processed").window(1, 1));
    world.hear(told(6.0, "a 1#4", "p", "=l/5", "processed").window(1, 1).evicts("=k/5"));
    world.give_up("a", "1", 2, 3);
    world.wait_until(60.0);
    assert_eq!(world.open(Kind::LiveEviction).len(), 1);
}

#[test]
fn nothing_is_said_while_a_source_was_blind_since_the_game_began() {
    let mut world = two_games(3);
    let next = told(6.0, "a 1#6", "p", "B/1/8F", "processed").window(3, 3).evicts("A/1/5");
    world.hear(next);
    world.give_up("a", "1", 4, 5);
    world.wait_until(20.0);
    assert!(world.open(Kind::LiveEviction).is_empty());
    world.wait_until(60.0);
    assert!(world.open(Kind::LiveEviction).is_empty());
    assert_eq!(world.skipped()["live_eviction_blind"], 1);
}

#[test]
fn what_was_never_accepted_is_counted_and_judged_when_it_is() {
    let mut world = World::new();
    world.hear(told(0.0, "a", "p", "A/1/5", "evicted").window(0, 4));
    world.wait_until(5.0);
    world.assert_quiet();
    assert_eq!(world.skipped()["live_eviction_never_accepted"], 1);
    world.hear(told(10.0, "a 1#1", "p", "A/1/5", "processed").window(1, 4));
    world.wait_until(20.0);
    assert_eq!(world.open(Kind::LiveEviction).len(), 1);
}

#[test]
fn an_unknown_order_of_games_is_counted_not_guessed() {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed"));
    world.hear(told(0.5, "b 1#1", "p", "B/1/5", "processed"));
    world.hear(told(0.7, "b 1#2", "p", "C/1/5", "processed"));
    world.hear(told(30.0, "a 1#2", "p", "A/1/5", "evicted").with("reason", "ttl"));
    world.wait_until(40.0);
    assert!(world.open(Kind::LiveEviction).is_empty());
    assert_eq!(world.skipped()["live_eviction_order"], 1);
}

#[test]
fn more_than_one_in_a_hundred_and_ten_is_critical() {
    for (extra, severity) in [(0, Severity::Critical), (1_000, Severity::Warning)] {
        let mut world = World::new();
        let mut seq = 0;
        let mut next = |told: &dyn Fn(&str) -> Told| {
            seq += 1;
            told(&format!("a 1#{seq}"))
        };
        for i in 0..extra {
            let signature = format!("x/{i}/1F");
            world.hear(next(&|who| told(1.0, who, &format!("q{i}"), &signature, "processed")));
        }
        for i in 0..10 {
            let player = format!("p{i}");
            world.hear(next(&|who| told(2.0, who, &player, "A/1/5", "processed").window(1, 1)));
            world.hear(next(&|who| {
                told(3.0, who, &player, "A/1/6F", "processed").window(1, 1).evicts("A/1/5")
            }));
        }
        world.wait_until(10.0);
        let finding = world.only(Kind::LiveEviction);
        assert_eq!((finding.count, finding.players, finding.severity), (10, 10, severity));
        assert_eq!(finding.amounts.exposure, 50);
    }
}

#[test]
fn amounts_of_two_ledgers_are_two_rows() {
    let mut world = World::new();
    for (seq, ledger) in [(1, "chips"), (3, "cash")] {
        let by = |seq: u64, signature: &str| {
            told(seq as f64, &format!("a 1#{seq}"), "p", signature, "processed")
                .window(1, 1)
                .with("ledger", ledger)
        };
        world.hear(by(seq, "A/1/5"));
        world.hear(by(seq + 1, "A/1/6F").evicts("A/1/5"));
    }
    world.wait_until(20.0);
    let rows = world.open(Kind::LiveEviction);
    let mut told: Vec<_> =
        rows.iter().map(|row| (row.ledger.clone().unwrap(), row.amounts.exposure)).collect();
    told.sort();
    assert_eq!(told, [("cash".to_owned(), 5), ("chips".to_owned(), 5)]);
}

#[test]
fn a_replay_of_a_game_long_forgotten_begins_no_game() {
    let mut world = World::new();
    for game in 1..=12 {
        let signature = format!("A/{game}/5");
        world.hear(told(game as f64, &format!("a 1#{game}"), "p", &signature, "processed"));
    }
    world.hear(told(20.0, "a 1#13", "p", "A/1/5", "processed"));
    world.hear(told(30.0, "a 1#14", "p", "A/11/5", "evicted").with("reason", "ttl"));
    world.wait_until(40.0);
    assert_eq!(world.only(Kind::LiveEviction).count, 1, "the games 11 and 12 are the newest");
}

#[test]
fn in_a_window_for_all_players_the_very_next_number_pushed_it_out() {
    for (pushed_by, live) in [(4, false), (5, true)] {
        let mut world = World::new();
        world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed"));
        world.hear(told(1.0, "a 1#2", "p", "A/2/5", "processed"));
        let window = serde_json::json!({"len": 2, "cap": 3, "scope": "source"});
        world.hear(told(2.0, "a 1#3", "p", "A/1/5", "evicted").with("window", window));
        if live {
            world.hear(told(2.0, "a 1#4", "q", "B/1/5", "processed"));
        }
        world.hear(told(2.0, &format!("a 1#{pushed_by}"), "p", "A/3/5", "processed"));
        world.wait_until(40.0);
        assert_eq!(world.open(Kind::LiveEviction).len(), usize::from(live));
    }
}

#[test]
fn an_acceptance_that_comes_after_its_eviction_waits_for_the_hole_before_it() {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "evicted").with("reason", "ttl"));
    world.hear(told(10.0, "a 1#2", "p", "B/1/5", "processed"));
    world.hear(told(30.0, "a 1#4", "p", "A/1/5", "processed"));
    world.hear(told(20.0, "a 1#3", "q", "B/1/5", "processed"));
    world.heartbeat(40.0, "a", "1", 4);
    assert_eq!(world.only(Kind::LiveEviction).state, State::Confirmed);
}

#[test]
fn an_eviction_whose_next_number_is_lost_is_skipped() {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed"));
    world.hear(told(10.0, "a 1#2", "p", "A/1/5", "evicted"));
    world.hear(told(11.0, "a 1#4", "q", "A/1/5", "processed"));
    world.give_up("a", "1", 3, 3);
    world.heartbeat(60.0, "a", "1", 4);
    assert!(world.open(Kind::LiveEviction).is_empty(), "3 may have begun the game after next");
    assert_eq!(world.skipped()["live_eviction_blind"], 1);
}

#[test]
fn a_goodbye_that_overtakes_the_last_event_costs_no_verdict() {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.heartbeat(0.0, "b", "1", 0);
    world.hear(told(0.0, "a 1#1", "p", "A/1/5", "processed"));
    world.hear(told(10.0, "a 1#2", "p", "A/1/5", "evicted").with("reason", "ttl"));
    world.goodbye(20.0, "b", "1", 1);
    world.heartbeat(21.0, "a", "1", 2);
    assert_eq!(world.only(Kind::LiveEviction).state, State::Suspected, "b is waited for");
    world.hear(told(19.0, "b 1#1", "q", "A/1/5", "processed"));
    assert_eq!(world.only(Kind::LiveEviction).state, State::Confirmed);
}

#[test]
fn what_is_disproved_does_not_count_for_the_share_that_is_critical() {
    let mut world = World::new();
    let mut seq = 0;
    for i in 0..10 {
        let mut tell = |world: &mut World, after: f64, signature: &str, outcome: &str| {
            seq += 1;
            let (who, player) = (format!("a 1#{seq}"), format!("p{i}"));
            let at = f64::from(i) * 60.0 + after;
            world.hear(told(at, &who, &player, signature, outcome));
        };
        tell(&mut world, 1.0, "A/1/5", "processed");
        tell(&mut world, 2.0, "A/2/5", "processed");
        tell(&mut world, 3.0, "A/1/5", "evicted");
        world.wait_until(f64::from(i) * 60.0 + 20.0);
        if i < 5 {
            tell(&mut world, 21.0, "A/3/5", "processed");
        }
    }
    let finding = world.only(Kind::LiveEviction);
    assert_eq!((finding.count, finding.severity), (5, crate::audit::Severity::Warning));
}
