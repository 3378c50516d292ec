//! The window advisor: how long a window has to be, measured before it is too short.

use super::*;
use crate::audit::{Advice, Measured, Why};
use crate::outcome::WindowScope;

impl World {
    fn advice(&mut self) -> Advice {
        self.audit.advices["settle"]["prod"].clone()
    }

    /// Required, and whether it warns.
    fn required(&mut self) -> (u64, bool) {
        let advice = self.advice();
        (advice.required().map_or(0, |need| need.capacity), advice.is_too_small())
    }

    fn measured(&mut self) -> Measured {
        let mut all = Measured::default();
        self.audit.take_measured().values().for_each(|measured| all.add(measured));
        all
    }

    /// Acceptances of one source, one a second: "room/round/net"; "~" before a late one, "-"
    /// before a block.
    fn play(&mut self, cap: u64, signatures: &[&str]) {
        for (n, signature) in signatures.iter().enumerate() {
            self.hear(played(n, cap, signature));
        }
        self.wait_until(signatures.len() as f64 + 100.0);
    }
}

fn played(n: usize, cap: u64, signature: &str) -> Told {
    let who = format!("a 1#{}", n + 1);
    let (signature, outcome) = match (signature.strip_prefix('~'), signature.strip_prefix('-')) {
        (Some(late), _) => (late, "late_accepted"),
        (_, Some(blocked)) => (blocked, "replay_blocked"),
        _ => (signature, "processed"),
    };
    told(n as f64, &who, "p", signature, outcome).window(cap.min(n as u64 + 1), cap)
}

const TWO_GAMES: [&str; 6] = ["A/1/5", "A/1/9F", "A/2/5", "A/2/9F", "A/3/5", "A/3/9F"];

#[test]
fn two_settlements_of_two_games_need_four() {
    for (cap, warns) in [(3, true), (4, false), (8, false)] {
        let mut world = World::new();
        world.play(cap, &TWO_GAMES);
        assert_eq!(world.required(), (4, warns), "{cap}");
        let text = world.advice().derivation();
        assert_eq!(text, format!("2 settlements x 2 games = 4: 4 needed, capacity {cap}."));
    }
}

#[test]
fn a_late_final_takes_a_place() {
    let mut world = World::new();
    let games = ["A/1/5", "B/1/5", "~A/1/9F", "C/1/5", "~B/1/9F", "C/1/9F"];
    world.play(4, &games);
    // B/1/5 is the oldest live one at C's final: B, A's final, C, B's final, C's final.
    assert_eq!(world.required(), (5, true));
    let text = world.advice().derivation();
    let wanted = "2 settlements x 2 games = 4, but finals came up to 1 game late: 5 needed, \
                  capacity 4.";
    assert_eq!(text, wanted);
    let measured = world.measured();
    assert_eq!((measured.late_games.total(), measured.late_games.counts[1]), (2, 2));
    assert_eq!((measured.late_us.total(), measured.late_us.sum), (2, 2_000_000 + 3_000_000));
}

#[test]
fn a_replay_needs_one_place_more_than_its_distance() {
    let mut world = World::new();
    world.play(8, &["A/1/5", "A/2/5", "A/2/9F", "A/3/5", "A/4/5", "-A/1/5"]);
    assert_eq!(world.required(), (5, false));
    assert!(matches!(world.advice().required().unwrap().why, Why::Replay { others: 4, .. }));
    assert_eq!(world.measured().distances.counts[4], 1);
    assert_eq!(world.advice().caught(), (1, 0), "not in the last place");
}

#[test]
fn a_replay_of_a_game_that_is_over_in_the_last_place_is_luck() {
    let mut world = World::new();
    world.play(4, &["A/1/5", "A/2/5", "A/3/5", "A/4/5", "-A/1/5"]);
    assert_eq!(world.required(), (4, true));
    assert_eq!(world.advice().caught(), (1, 1));
    assert!(world.advice().derivation().ends_with("by luck."), "{}", world.advice().derivation());
}

#[test]
fn a_live_one_in_the_last_place_is_none() {
    let mut world = World::new();
    world.play(4, &["A/1/5", "A/1/9F", "A/2/5", "A/2/9F", "-A/1/5"]);
    assert_eq!(world.required(), (4, false));
    assert_eq!(world.advice().caught(), (0, 0));
}

#[test]
fn a_replay_that_leaked_tells_what_would_have_stopped_it() {
    let mut world = World::new();
    world.play(4, &["A/1/5", "A/2/5", "A/3/5", "A/4/5", "A/5/5", "A/6/5", "A/1/5"]);
    assert_eq!(world.required(), (6, true));
    let text = world.advice().derivation();
    let wanted = "a replay came after 5 other settlements and was booked again: 6 needed, \
                  capacity 4.";
    assert_eq!(text, wanted);
}

#[test]
fn further_back_than_is_remembered_is_said_to_be_more() {
    let mut world = World::new();
    let games: Vec<String> = (1..40).map(|round| format!("A/{round}/5")).collect();
    let mut all: Vec<&str> = games.iter().map(String::as_str).collect();
    all.push("-A/1/5");
    world.play(100, &all);
    let need = world.advice().required().unwrap();
    assert!(need.more, "{need:?}");
    assert!(world.advice().derivation().starts_with("a replay came after more than "));
    assert_eq!(*world.measured().distances.counts.last().unwrap(), 1);
}

#[test]
fn the_order_of_arrival_makes_no_difference() {
    let games = ["A/1/5", "B/1/5", "~A/1/9F", "C/1/5", "~B/1/9F", "C/1/9F", "-B/1/5", "D/1/5"];
    let mut orders = vec![(0..8).collect::<Vec<_>>(), (0..8).rev().collect()];
    orders.push(vec![3, 0, 6, 1, 7, 2, 5, 4]);
    orders.push(vec![1, 2, 3, 4, 5, 6, 0, 7]);
    let (mut seen, mut waited) = (Vec::new(), false);
    for order in orders {
        let mut world = World::new();
        for n in order {
            world.hear(played(n, 4, games[n]));
        }
        waited |= world.advice().waiting > 0;
        world.wait_until(200.0);
        assert_eq!(world.advice().waiting, 0);
        seen.push((world.advice().required(), world.advice().caught(), world.measured()));
    }
    assert!(waited, "something waits for its time");
    for other in &seen[1..] {
        assert_eq!(seen[0].0, other.0);
        assert_eq!(seen[0].1, other.1);
        assert_eq!(seen[0].2.distances, other.2.distances);
    }
}

#[test]
fn a_hole_does_not_make_a_need() {
    let mut world = World::new();
    // The first settlement of C is not heard: B would look live for longer than it was.
    for (n, signature) in ["A/1/5", "B/1/5", "~A/1/9F"].into_iter().enumerate() {
        world.hear(played(n, 4, signature));
    }
    for (n, signature) in [(4, "D/1/5"), (5, "~B/1/9F"), (6, "D/1/9F"), (7, "E/1/5")] {
        world.hear(played(n, 4, signature));
    }
    world.give_up("a", "1", 4, 4);
    world.wait_until(200.0);
    let (required, warns) = world.required();
    assert!(required <= 3 && !warns, "{required}");
}

#[test]
fn windows_of_their_own_are_not_added_up() {
    let mut world = World::new();
    let mut at = 0.0;
    for seq in 1..=4 {
        for source in ["a", "b"] {
            let signature = format!("{source}/{seq}/5");
            let who = format!("{source} 1#{seq}");
            let told = told(at, &who, "p", &signature, "processed");
            world.hear(told.with("guard_mode", "local").window(1, 1));
            at += 5.0;
        }
    }
    world.heartbeat(at, "a", "1", 4);
    world.heartbeat(at, "b", "1", 4);
    world.wait_until(at + 100.0);
    assert_eq!(world.required().0, 1, "one settlement of a live game in each");
}

#[test]
fn a_replay_is_measured_at_its_own_window_or_at_a_shared_one() {
    for (mode, other, replays) in
        [("shared", "shared", 1), ("local", "local", 0), ("shared", "local", 0)]
    {
        let mut world = World::new();
        for (n, signature) in (1..).zip(["A/1/5", "A/2/5", "A/3/5"]) {
            let told = told(f64::from(n), &format!("a 1#{n}"), "p", signature, "processed");
            world.hear(told.with("guard_mode", mode));
        }
        let replay = told(4.0, "b 1#1", "p", "A/1/5", "replay_blocked");
        world.hear(replay.with("guard_mode", other).window(3, 4));
        for at in [5.0, 100.0] {
            world.heartbeat(at, "a", "1", 3);
            world.heartbeat(at, "b", "1", 1);
        }
        let measured: u64 = world.measured().distances.counts.iter().sum();
        assert_eq!(measured, replays, "{mode} {other}");
    }
}

#[test]
fn only_windows_of_one_player_are_measured() {
    for (mode, scope, measured) in
        [("local", "player", true), ("off", "player", false), ("local", "source", false)]
    {
        let mut world = World::new();
        for (n, signature) in (1..).zip(["A/1/5", "A/2/5", "-A/1/5"]) {
            let told = played(n, 4, signature).with("guard_mode", mode);
            let window = serde_json::json!({"len": n, "cap": 4, "scope": scope});
            world.hear(told.with("window", window));
        }
        world.wait_until(100.0);
        let mut advices = world.audit.advices.values().flat_map(BTreeMap::values);
        let is_measured = advices.any(|advice| advice.required().is_some());
        assert_eq!(is_measured, measured, "{mode} {scope}");
    }
}

#[test]
fn a_block_for_another_reason_says_nothing_of_the_window() {
    for (reason, replays) in [("replay", 1), ("stale", 0)] {
        let mut world = World::new();
        world.hear(played(0, 4, "A/1/5"));
        world.hear(played(1, 4, "-A/1/5").with("reason", reason));
        world.wait_until(100.0);
        assert_eq!(world.measured().distances.counts.iter().sum::<u64>(), replays, "{reason}");
    }
}

#[test]
fn windows_for_rooms_hold_what_is_of_their_room() {
    let mut world = World::new();
    for (n, signature) in ["A/1/5", "B/1/5", "A/1/9F", "B/1/9F"].into_iter().enumerate() {
        let mut event = played(n, 2, signature);
        event.0["window"] = serde_json::json!({"len": 1, "cap": 2, "scope": "room"});
        world.hear(event);
    }
    world.wait_until(100.0);
    assert_eq!(world.required(), (2, false));
    assert_eq!(WindowScope::default(), WindowScope::Player);
}

#[test]
fn what_became_of_an_acceptance_is_no_replay_of_it() {
    let mut world = World::new();
    world.play(4, &TWO_GAMES);
    let before = world.required();
    let late = told(200.0, "a 1#7", "p", "A/1/5", "effect_reported").with("effect", "applied");
    world.hear(late);
    world.wait_until(400.0);
    assert_eq!(world.required(), before);
}

#[test]
fn a_block_that_was_heard_before_what_it_repeats_is_measured_by_its_own_window() {
    let mut world = World::new();
    let all = ["A/1/5", "A/2/5", "A/3/5", "A/4/5", "-A/1/5"];
    for (n, signature) in all.iter().enumerate().skip(1) {
        world.hear(played(n, 4, signature));
    }
    world.hear(played(0, 8, all[0]));
    world.wait_until(100.0);
    assert_eq!(world.advice().caught(), (1, 1), "in the last place of four");

    for (blocks, replays) in [("shared", 1), ("local", 0)] {
        let mut world = World::new();
        let replay = told(4.0, "b 1#1", "p", "A/1/5", "replay_blocked");
        world.hear(replay.with("guard_mode", blocks).window(3, 4));
        for (n, signature) in (1..).zip(["A/1/5", "A/2/5", "A/3/5"]) {
            let told = told(f64::from(n), &format!("a 1#{n}"), "p", signature, "processed");
            world.hear(told.with("guard_mode", "shared"));
        }
        for at in [5.0, 100.0] {
            world.heartbeat(at, "a", "1", 3);
            world.heartbeat(at, "b", "1", 1);
        }
        assert_eq!(world.measured().distances.total(), replays, "{blocks}");
    }
}

#[test]
fn each_acceptance_that_leaked_is_measured_from_the_one_before_it() {
    let mut world = World::new();
    world.lasts = true;
    world.play(8, &["A/1/5", "A/2/5", "A/1/5", "A/3/5", "A/4/5", "A/1/5"]);
    let distances = world.measured().distances;
    assert_eq!((distances.total(), distances.counts[1], distances.counts[2]), (2, 1, 1));
}

#[test]
fn equal_settlements_that_are_two_are_no_replays() {
    let mut world = World::new();
    world.lasts = true;
    for (n, reference) in [(0, "r1"), (1, "r2")] {
        world.hear(played(n, 8, "A/1/5").with("ref", reference));
    }
    for n in 2..5 {
        world.hear(played(n, 8, "-A/1/5").with("ref", "r1"));
    }
    world.hear(played(5, 8, "A/1/5").with("ref", "r3"));
    world.wait_until(200.0);
    assert!(world.open(Kind::DuplicateLeak).is_empty());
    assert_eq!(world.measured().distances.total(), 3, "the blocks alone");
}

#[test]
fn what_one_whole_source_tells_is_measured_at_once() {
    for (mode, at_once) in [("local", 1), ("shared", 0)] {
        let mut world = World::new();
        world.lasts = true;
        for (n, signature) in ["A/1/5", "A/2/5", "-A/1/5"].into_iter().enumerate() {
            world.hear(played(n, 4, signature).with("guard_mode", mode));
        }
        assert_eq!(world.measured().distances.total(), at_once, "{mode}");
        world.wait_until(100.0);
        assert_eq!(world.measured().distances.total(), 1 - at_once, "{mode}");
    }
    let mut world = World::new();
    for (n, signature) in ["A/1/5", "B/1/5", "~A/1/9F"].into_iter().enumerate() {
        world.hear(played(n, 4, signature));
    }
    assert_eq!(world.advice().late_games(), 1);
}

#[test]
fn an_opaque_key_is_live_for_a_time() {
    let mut world = World::with(Settings { live_for_us: 2_000_000, ..settings() });
    world.play(4, &["=k1/5", "=k2/5", "=k3/5", "=k4/5"]);
    assert_eq!(world.required(), (2, false), "the one two seconds before is over");
}
