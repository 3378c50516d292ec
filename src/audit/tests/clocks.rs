//! Clocks that are set back, that jitter, that are far off.

use super::*;
use crate::audit::Severity;

fn event(at: f64, who: &str) -> Told {
    told(at, who, &format!("p{who}"), "r/1/1F", "processed")
}

/// The rows of falls: info and warning, with their counts.
fn falls(world: &World) -> (u64, u64) {
    let count = |severity| {
        let rows = world.open(Kind::ClockRollback).into_iter();
        rows.filter(|row| row.severity == severity).map(|row| row.count).sum()
    };
    (count(Severity::Info), count(Severity::Warning))
}

/// What stamps of the numbers of one run come to, in three orders of arrival.
fn of(stamps: &[f64]) -> (u64, u64) {
    let numbered: Vec<(usize, f64)> = stamps.iter().copied().enumerate().collect();
    let mut backwards = numbered.clone();
    backwards.reverse();
    let (even, odd): (Vec<_>, Vec<_>) = numbered.iter().partition(|(i, _)| i % 2 == 0);
    let both = [even, odd].concat();
    let counts = [numbered, backwards, both].map(|events| {
        let mut world = World::new();
        for (i, at) in events {
            world.hear(event(at, &format!("a 1#{}", i + 1)));
        }
        world.wait_until(200.0);
        falls(&world)
    });
    assert!(counts.iter().all(|count| *count == counts[0]), "{counts:?}");
    counts[0]
}

#[test]
fn stamps_that_fall_by_a_second_or_more_are_a_clock_set_back() {
    assert_eq!(of(&[10.0, 11.0, 12.0, 10.9, 11.5]), (0, 1));
    assert_eq!(of(&[10.0, 9.0, 8.0, 9.0]), (0, 2));
    assert_eq!(of(&[10.0, 9.000_001]), (1, 0));
}

#[test]
fn jitter_is_only_good_to_know() {
    assert_eq!(of(&[10.0, 10.002, 10.001, 10.004, 10.003]), (2, 0));
    assert_eq!(of(&[10.0, 10.0, 10.1]), (0, 0));
}

#[test]
fn its_row_says_where_and_by_how_much() {
    let mut world = World::new();
    world.hear(event(10.0, "a 1#1"));
    world.hear(event(8.5, "a 1#2"));
    world.hear(event(6.0, "a 1#3"));
    world.wait_until(12.0);
    let finding = world.only(Kind::ClockRollback);
    assert_eq!((finding.cause.as_str(), finding.count), ("set_back", 2));
    assert_eq!((finding.first_us, finding.last_us), (seconds(6.0), seconds(8.5)));
    let witness = &finding.witnesses[0];
    assert_eq!((witness.seq, witness.role.as_str()), (Some(3), "clock_fell"));
    let text = "number 3 is stamped 2.500000 s before the one before it";
    assert_eq!(witness.text.as_deref(), Some(text));
}

#[test]
fn sources_without_numbers_and_other_sources_are_not_compared() {
    let mut world = World::new();
    world.hear(event(10.0, "a 1#1"));
    world.hear(event(5.0, "b 1#1"));
    world.hear(told(20.0, "c", "p", "r/1/1F", "processed"));
    world.hear(told(10.0, "c", "q", "r/2/1F", "processed"));
    world.wait_until(100.0);
    assert_eq!(falls(&world), (0, 0));
}

#[test]
fn over_a_hole_it_is_told_when_the_hole_is_given_up() {
    let mut world = World::new();
    world.hear(event(10.0, "a 1#1"));
    world.hear(event(8.0, "a 1#4"));
    world.wait_until(41.0);
    assert_eq!(falls(&world), (0, 0));
    world.give_up("a", "1", 2, 3);
    world.wait_until(43.0);
    assert_eq!(falls(&world), (0, 1));
    // What comes after all says that it fell in two halves.
    world.hear(event(9.4, "a 1#2"));
    world.hear(event(8.7, "a 1#3"));
    world.wait_until(45.0);
    assert_eq!(falls(&world), (3, 0));
}

#[test]
fn over_a_refused_number_it_is_told_whichever_came_last() {
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let mut world = World::new();
        world.hear(event(9.0, "a 0#1"));
        for seq in order {
            match seq {
                1 => world.hear(event(20.0, "a 1#1")),
                2 => world.refuse("a", "1", 2),
                _ => world.hear(event(10.0, "a 1#3")),
            }
        }
        world.wait_until(30.0);
        assert_eq!(falls(&world), (0, 1), "{order:?}");
    }
}

#[test]
fn over_a_restart_it_counts_only_if_the_older_run_was_over() {
    let restart = |goodbye: bool, at: f64| {
        let mut world = World::new();
        world.heartbeat(9.0, "a", "1", 0);
        world.hear(event(10.0, "a 1#1"));
        if goodbye {
            world.goodbye(10.0, "a", "1", 1);
        }
        world.hear(event(at, "a 2#1"));
        world.wait_until(30.0);
        falls(&world)
    };
    assert_eq!(restart(true, 8.0), (0, 1));
    assert_eq!(restart(true, 10.0), (0, 0));
    assert_eq!(restart(false, 8.0), (0, 0), "it may still have been running");
}

#[test]
fn over_a_restart_holes_are_given_up_too() {
    for (tail, begin) in [(true, false), (false, true), (true, true)] {
        let mut world = World::new();
        world.hear(event(20.0, "a 1#1"));
        world.goodbye(21.0, "a", "1", 1 + u64::from(tail));
        world.hear(event(10.0, &format!("a 2#{}", 1 + u64::from(begin))));
        world.wait_until(30.0);
        assert_eq!(falls(&world), (0, 0));
        if tail {
            world.give_up("a", "1", 2, 2);
        }
        if begin {
            world.give_up("a", "2", 1, 1);
        }
        world.wait_until(60.0);
        assert_eq!(falls(&world), (0, 1), "{tail} {begin}");
    }
}

#[test]
fn a_run_between_that_is_heard_later_had_not_ended() {
    let mut world = World::new();
    world.hear(event(20.0, "a 1#1"));
    world.goodbye(21.0, "a", "1", 1);
    world.hear(event(22.0, "a 3#1"));
    world.hear(event(21.0, "a 2#1"));
    world.hear(event(40.0, "a 2#2"));
    world.goodbye(41.0, "a", "2", 2);
    world.hear(event(23.0, "a 3#2"));
    world.give_up("a", "3", 3, 3);
    world.wait_until(60.0);
    assert_eq!(falls(&world), (0, 0));
}

#[test]
fn a_run_that_settled_nothing_hides_no_fall() {
    for (goodbye, count) in [(true, 1), (false, 0)] {
        let mut world = World::new();
        world.hear(event(20.0, "a 1#1"));
        world.goodbye(21.0, "a", "1", 1);
        world.heartbeat(22.0, "a", "2", 0);
        if goodbye {
            world.goodbye(23.0, "a", "2", 0);
        }
        world.hear(event(10.0, "a 3#1"));
        world.wait_until(60.0);
        assert_eq!(falls(&world), (0, count), "{goodbye}");
    }
}

#[test]
fn a_run_that_says_goodbye_later_was_not_over() {
    let mut world = World::new();
    world.hear(event(10.0, "a 1#1"));
    world.hear(event(8.0, "a 2#1"));
    world.goodbye(11.0, "a", "1", 1);
    world.wait_until(30.0);
    assert_eq!(falls(&world), (0, 0));
}

#[test]
fn falls_of_runs_that_are_forgotten_stay_counted() {
    let mut world = World::new();
    for boot in 1..=600_u32 {
        let at = f64::from(boot) * 10.0;
        world.hear(event(at, &format!("a {boot}#1")));
        world.hear(event(at - 2.0, &format!("a {boot}#2")));
        world.goodbye(at + 1.0, "a", &boot.to_string(), 2);
    }
    world.wait_until(7_000.0);
    assert_eq!(falls(&world), (0, 600));
}

#[test]
fn jitter_is_told_once_a_second_at_most() {
    let mut world = World::new();
    for i in 0..1_000_u32 {
        let at = 10.0 + f64::from(i) / 1e3 - f64::from(i % 2) / 500.0;
        world.hear(event(at, &format!("a 1#{}", i + 1)));
    }
    world.wait_until(20.0);
    assert_eq!(falls(&world), (500, 0));
    let row = world.only(Kind::ClockRollback).id.clone();
    assert!(world.gained[&row].len() <= 3, "{:?}", world.gained[&row]);
}

/// Heartbeats every 5 s whose clock is so far off.
fn beats(world: &mut World, from: f64, to: f64, off: f64) {
    let mut at = from;
    while at < to {
        world.received_us = seconds(at);
        let received_us = world.received_us;
        world.heartbeat(at + off, "a", "1", 0);
        world.received_us = received_us;
        at += 5.0;
    }
}

#[test]
fn a_clock_that_is_far_off_is_skewed_until_it_is_right_again() {
    for off in [-61.0, -59.0] {
        let mut world = World::new();
        beats(&mut world, 100.0, 200.0, off);
        assert_eq!(world.open(Kind::ClockSkew).len(), usize::from(off < -60.0), "{off}");
    }
    let mut world = World::new();
    beats(&mut world, 100.0, 200.0, -75.0);
    let finding = world.only(Kind::ClockSkew);
    assert_eq!((finding.severity, finding.count), (Severity::Warning, 1));
    let text = "its clock is 75.000000 s behind the collector's";
    assert_eq!(finding.witnesses[0].text.as_deref(), Some(text));
    beats(&mut world, 200.0, 1_000.0, 0.0);
    assert!(world.open(Kind::ClockSkew).is_empty());
    assert_eq!(world.all(Kind::ClockSkew)[0].closed_because.as_deref(), Some("made_good"));
    beats(&mut world, 1_000.0, 2_000.0, -75.0);
    let again = world.only(Kind::ClockSkew);
    assert_eq!((again.ordinal, again.count), (2, 1));
}

#[test]
fn a_clock_that_stays_skewed_is_not_quiet_one_that_is_gone_is() {
    let mut world = World::new();
    let mut at = 100.0;
    while at < 100_000.0 {
        beats(&mut world, at, at + 70.0, -75.0);
        at += 300.0;
    }
    assert_eq!(world.open(Kind::ClockSkew).len(), 1);
    world.wait_until(190_000.0);
    assert_eq!(world.all(Kind::ClockSkew)[0].closed_because.as_deref(), Some("quiet"));
}

#[test]
fn a_fall_over_a_hole_is_told_when_all_of_it_is_given_up() {
    for (back, falls) in [(5.0, true), (10.0, false), (11.0, false)] {
        let mut world = World::new();
        for (at, seq) in [(10.0, 1), (back, 9)] {
            world.hear(told(at, &format!("a 1#{seq}"), "p", &format!("r/{seq}/5"), "processed"));
        }
        let fell = |world: &World| !world.open(Kind::ClockRollback).is_empty();
        world.give_up("a", "1", 2, 5);
        world.wait_until(20.0);
        assert!(!fell(&world), "6 to 8 may yet come");
        world.give_up("a", "1", 6, 8);
        world.wait_until(30.0);
        assert_eq!(fell(&world), falls, "{back}");
    }
}
