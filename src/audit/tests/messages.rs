//! `id_collision`: one id, two messages; and how much of one message looks like that.

use super::*;
use crate::audit::Severity;

/// A seat of a table, settled by the message `m`.
fn seat(at: f64, who: &str, player: &str, room: &str) -> Told {
    told(at, who, player, &format!("{room}/1/10F"), "processed").with("message_id", "m")
}

fn blocked(at: f64, who: &str, player: &str, room: &str) -> Told {
    let event = told(at, who, player, &format!("{room}/1/10F"), "replay_blocked");
    event.with("message_id", "m")
}

/// Hears these in this order, and in the opposite one.
fn both_ways(events: impl Fn() -> Vec<Told>) -> [World; 2] {
    let mut backwards = events();
    backwards.reverse();
    [events(), backwards].map(|events| {
        let mut world = World::new();
        for event in events {
            world.hear(event);
        }
        let end_us = world.received_us;
        world.received_us = end_us + 31_000_000;
        world.fold(Body::Tick);
        world
    })
}

fn collisions(events: impl Fn() -> Vec<Told>) -> Option<u64> {
    let counts = both_ways(events).map(|world| {
        let open = world.open(Kind::IdCollision);
        assert!(open.len() < 2);
        assert!(open.iter().all(|row| row.state == State::Confirmed), "{open:#?}");
        open.first().map(|row| row.count)
    });
    assert_eq!(counts[0], counts[1], "the order of arrival");
    counts[0]
}

#[test]
fn one_id_for_two_messages_is_a_collision() {
    let events = || vec![seat(0.0, "a 1#1", "p", "r"), seat(9.0, "a 1#2", "q", "s")];
    let [world, _] = both_ways(events);
    let finding = world.only(Kind::IdCollision);
    assert_eq!((finding.severity, finding.count), (Severity::Critical, 1));
    assert_eq!((finding.cause.as_str(), finding.players), ("one_source", 2));
    assert_eq!(finding.ledger.as_deref(), Some("settle"));
    let players: Vec<_> = finding.witnesses.iter().flat_map(|w| &w.player).collect();
    assert_eq!(players, [&id("p"), &id("q")]);
    assert_eq!(collisions(events), Some(1));
}

#[test]
fn two_sources_at_one_moment_are_two_deliveries() {
    let events = || vec![seat(0.0, "a", "p", "r"), seat(0.0, "b", "q", "r")];
    assert_eq!(collisions(events), Some(1));
    assert_eq!(both_ways(events)[0].only(Kind::IdCollision).cause, "two_sources");
}

#[test]
fn three_messages_under_one_id_are_two_too_many() {
    let events = || {
        vec![
            seat(0.0, "a 1#1", "p", "r"),
            seat(9.0, "a 1#2", "q", "r"),
            seat(19.0, "a 1#3", "o", "r"),
        ]
    };
    assert_eq!(collisions(events), Some(2));
}

#[test]
fn one_message_may_settle_a_whole_table() {
    let seats = || -> Vec<Told> {
        (1..=6)
            .map(|i| seat(f64::from(i) * 0.9, &format!("a 1#{i}"), &format!("p{i}"), "t"))
            .collect()
    };
    assert_eq!(collisions(seats), None);
}

#[test]
fn it_may_be_delivered_again_elsewhere_in_part_and_more_of_it() {
    let events = || {
        vec![
            seat(0.0, "a 1#1", "p", "t"),
            seat(0.1, "a 1#2", "q", "t"),
            blocked(5.0, "b 1#1", "q", "t"),
            seat(5.1, "b 1#2", "o", "t"),
            blocked(9.0, "c 1#1", "o", "t"),
        ]
    };
    assert_eq!(collisions(events), None);
}

#[test]
fn deliveries_may_be_joined_by_others() {
    let apart = || vec![seat(0.0, "a 1#1", "p", "t"), seat(5.0, "b 1#1", "q", "t")];
    assert_eq!(collisions(apart), Some(1));
    let joined = || {
        let mut events = apart();
        events.push(blocked(9.0, "c 1#1", "p", "t"));
        events.push(blocked(9.5, "c 1#2", "q", "t"));
        events
    };
    assert_eq!(collisions(joined), None);
}

#[test]
fn a_player_in_two_rooms_is_two_settlements() {
    let events = || vec![seat(0.0, "a 1#1", "p", "r"), seat(9.0, "a 1#2", "p", "s")];
    assert_eq!(collisions(events), Some(1));
}

#[test]
fn a_second_apart_is_another_delivery() {
    let two = |gap: f64| move || vec![seat(0.0, "a", "p", "t"), seat(gap, "a", "q", "t")];
    assert_eq!(collisions(two(0.999_999)), None);
    assert_eq!(collisions(two(1.0)), Some(1));
}

#[test]
fn a_clock_set_back_cuts_only_where_another_message_lies_between() {
    let two = |next: u64| {
        move || {
            let second = format!("a 1#{next}");
            let between: Vec<Told> = (2..next)
                .map(|seq| told(10.0, &format!("a 1#{seq}"), "z", "x/1/1F", "evicted"))
                .collect();
            let mut events = vec![seat(10.0, "a 1#1", "p", "t"), seat(8.0, &second, "q", "t")];
            events.extend(between);
            events
        }
    };
    assert_eq!(collisions(two(2)), None);
    assert_eq!(collisions(two(3)), None, "an eviction of its own may lie between");
    assert_eq!(collisions(two(4)), Some(1));
}

#[test]
fn neither_evictions_nor_what_nobody_decided_are_deliveries() {
    for outcome in ["evicted", "unknown"] {
        let other = || told(9.0, "a 1#2", "q", "s/1/1F", outcome).with("message_id", "m");
        assert_eq!(collisions(|| vec![seat(0.0, "a 1#1", "p", "r"), other()]), None);
    }
}

#[test]
fn another_ledger_has_ids_of_its_own() {
    let other = || seat(9.0, "a 1#2", "q", "s").with("ledger", "chips");
    assert_eq!(collisions(|| vec![seat(0.0, "a 1#1", "p", "r"), other()]), None);
}

#[test]
fn it_is_suspected_until_the_rest_of_a_delivery_had_time_to_come() {
    let mut world = World::new();
    world.hear(seat(0.0, "a 1#1", "p", "t"));
    world.hear(seat(5.0, "b 1#1", "q", "t"));
    assert_eq!(world.only(Kind::IdCollision).state, State::Suspected);
    world.wait_until(34.9);
    assert_eq!(world.only(Kind::IdCollision).state, State::Suspected);
    world.hear(blocked(5.5, "b 1#2", "p", "t"));
    assert!(world.rows.is_empty(), "withdrawn, never confirmed");
}

#[test]
fn deliveries_that_go_on_do_not_put_it_off() {
    let mut world = World::new();
    world.hear(seat(0.0, "a 1#1", "p", "t"));
    world.hear(seat(5.0, "b 1#1", "q", "t"));
    for i in 1..=4_u32 {
        let at = 5.0 + f64::from(i) * 8.0;
        world.hear(blocked(at, &format!("b 1#{}", i + 1), "q", "t"));
    }
    assert_eq!(world.only(Kind::IdCollision).state, State::Confirmed);
}

#[test]
fn a_delivery_with_a_hole_beside_it_proves_nothing() {
    let mut world = World::new();
    world.hear(seat(0.0, "a 1#1", "p", "t"));
    world.hear(seat(9.0, "b 1#1", "q", "t"));
    world.hear(told(9.2, "b 1#3", "z", "x/1/1F", "processed"));
    world.wait_until(60.0);
    assert!(world.open(Kind::IdCollision).is_empty());
    assert_eq!(world.skipped().get("id_collision"), Some(&1));
    world.hear(told(9.1, "b 1#2", "y", "x/1/1F", "processed"));
    world.wait_until(62.0);
    assert_eq!(world.only(Kind::IdCollision).count, 1);
}

#[test]
fn a_hole_that_fills_with_the_missing_seat_leaves_nothing() {
    let mut world = World::new();
    world.hear(seat(0.0, "a 1#1", "p", "t"));
    world.hear(seat(9.0, "b 1#1", "q", "t"));
    world.hear(told(9.2, "b 1#3", "z", "x/1/1F", "processed"));
    world.wait_until(60.0);
    world.hear(blocked(9.1, "b 1#2", "p", "t"));
    world.wait_until(100.0);
    assert!(world.rows.is_empty(), "{:#?}", world.rows);
}

#[test]
fn a_message_that_never_ends_is_bounded_and_cries_no_wolf() {
    let storm = || -> Vec<Told> {
        let delivery = |i: u32| {
            let at = f64::from(i) * 10.0;
            let [one, two] = [2 * i + 1, 2 * i + 2].map(|seq| format!("a 1#{seq}"));
            [blocked(at, &one, "p", "t"), seat(at + 0.1, &two, &format!("q{i}"), "t")]
        };
        (0..200).flat_map(delivery).collect()
    };
    assert_eq!(collisions(storm), None);
    let mut world = World::new();
    storm().into_iter().for_each(|event| world.hear(event));
    let stored: Vec<_> = world.audit.facts.messages.values().collect();
    assert!(postcard::to_allocvec(stored[0]).unwrap().len() < 8_192);
}

#[test]
fn its_row_closes_as_quiet_and_the_next_message_opens_another() {
    let mut world = World::new();
    world.hear(seat(0.0, "a 1#1", "p", "r"));
    world.hear(seat(9.0, "a 1#2", "q", "s"));
    world.wait_until(39.0);
    world.wait_until(39.0 + 86_399.0);
    assert_eq!(world.open(Kind::IdCollision).len(), 1);
    world.wait_until(39.0 + 86_400.0);
    assert_eq!(world.all(Kind::IdCollision)[0].closed_because.as_deref(), Some("quiet"));
    world.hear(seat(86_500.0, "a 1#3", "o", "u"));
    world.wait_until(86_600.0);
    let again = world.only(Kind::IdCollision);
    assert_eq!((again.ordinal, again.count, again.state), (2, 1, State::Confirmed));
}

#[test]
fn a_person_may_close_it() {
    let mut world = World::new();
    world.hear(seat(0.0, "a 1#1", "p", "r"));
    world.hear(seat(9.0, "a 1#2", "q", "s"));
    world.wait_until(60.0);
    world.close(Kind::IdCollision);
    world.hear(blocked(70.0, "a 1#3", "q", "s"));
    world.wait_until(200.0);
    assert!(world.open(Kind::IdCollision).is_empty());
    world.hear(seat(210.0, "a 1#4", "o", "s"));
    world.wait_until(300.0);
    assert_eq!(world.only(Kind::IdCollision).count, 1);
}

#[test]
fn numbers_next_to_one_another_join_only_what_a_clock_set_back() {
    let two =
        |gap: f64| move || vec![seat(10.0, "a 1#1", "p", "t"), seat(10.0 + gap, "a 1#2", "q", "t")];
    assert_eq!(collisions(two(0.999_999)), None);
    assert_eq!(collisions(two(1.0)), Some(1));
    assert_eq!(collisions(two(-1.0)), None);
}
