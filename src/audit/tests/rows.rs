//! Rows: how they close, follow one another, and add up.

use super::*;

fn accepted(at: f64, seq: u64) -> Told {
    told(at, &format!("a 1#{seq}"), "p", "r/1/10F", "processed")
}

#[test]
fn what_happens_after_a_person_closed_it_counts_from_there() {
    let mut world = World::new();
    (1..=3).for_each(|seq| world.hear(accepted(seq as f64, seq)));
    world.close(Kind::DuplicateLeak);
    world.assert_quiet();
    let closed = world.all(Kind::DuplicateLeak)[0];
    assert_eq!(closed.closed_because.as_deref(), Some("known: paid back"));
    assert_eq!((closed.count, closed.amounts.overpaid), (2, 20));
    world.hear(accepted(9.0, 4));
    let again = world.only(Kind::DuplicateLeak);
    assert_eq!((again.ordinal, again.count, again.amounts.overpaid), (2, 1, 10));
    let sum: i128 = world.all(Kind::DuplicateLeak).iter().map(|row| row.amounts.overpaid).sum();
    assert_eq!(sum, 30);
}

#[test]
fn a_person_can_close_a_row_about_a_source() {
    let mut world = World::new();
    world.refuse("a", "1", 2);
    world.close(Kind::RejectedEvidence);
    world.assert_quiet();
    world.refuse("a", "1", 3);
    assert_eq!(world.only(Kind::RejectedEvidence).ordinal, 2);
}

#[test]
fn sums_are_those_of_the_open_rows() {
    let mut world = World::new();
    (1..=3).for_each(|seq| world.hear(accepted(seq as f64, seq)));
    world.hear(told(9.0, "a 1#4", "q", "r/1/-7F", "processed"));
    world.hear(told(10.0, "a 1#5", "q", "r/1/-7F", "processed"));
    let sums = |world: &World| {
        let all = world.audit.book.sums().iter();
        let mut leaks = all.filter(|(key, _)| key.0 == Kind::DuplicateLeak);
        leaks.next_back().map(|(_, sums)| *sums).unwrap()
    };
    let two = sums(&world);
    assert_eq!((two.confirmed_ever, two.open_confirmed), (2, 2));
    assert_eq!((two.amounts.overpaid, two.amounts.overcharged), (20, 7));
    let of_q = world.open(Kind::DuplicateLeak).into_iter().find(|row| row.amounts.overcharged > 0);
    let of_q = of_q.unwrap().clone();
    world.audit.load_finding(of_q.clone());
    let closed = Closed { finding: of_q.id, reason: "known".into(), note: String::new() };
    world.fold(Body::Closed(closed));
    let one = sums(&world);
    assert_eq!((one.confirmed_ever, one.open_confirmed), (2, 1));
    assert_eq!((one.amounts.overpaid, one.amounts.overcharged), (20, 0));
}

#[test]
fn beyond_a_thousand_rows_a_minute_one_row_tells_the_rest() {
    let mut world = World::new();
    for i in 0..1_500_u64 {
        let player = format!("p{i}");
        for (seq, at) in [(2 * i + 1, 0.0), (2 * i + 2, 5.0)] {
            world.hear(told(at, &format!("a 1#{seq}"), &player, "r/1/10F", "processed"));
        }
    }
    let open = world.open(Kind::DuplicateLeak);
    assert_eq!(open.len(), 1_001);
    let more = open.iter().find(|row| row.cause == "more").unwrap();
    assert_eq!((more.count, more.amounts.overpaid), (500, 5_000));
    let sum: i128 = open.iter().map(|row| row.amounts.overpaid).sum();
    assert_eq!(sum, 15_000);
}

#[test]
fn what_is_suspected_for_a_moment_opens_no_row() {
    let mut world = World::new();
    let mut seq = 0;
    let mut hear = |player: u64, signature: &str, outcome: &str| {
        seq += 1;
        let (who, player) = (format!("a 1#{seq}"), format!("p{player}"));
        world.hear(told(1.0, &who, &player, signature, outcome).window(2, 2));
    };
    for player in 0..1_001 {
        hear(player, "A/1/5", "processed");
        hear(player, "B/1/5", "processed");
        hear(player, "A/1/5", "evicted");
        hear(player, "C/1/5", "processed");
    }
    hear(0, "B/1/5", "evicted");
    hear(0, "C/1/8F", "processed");
    assert_eq!(world.only(Kind::LiveEviction).cause, "undersized");
}

#[test]
fn the_row_more_gives_back_what_is_made_good() {
    let mut world = World::new();
    for i in 0..1_001_u64 {
        let player = format!("p{i}");
        for (seq, at) in [(2 * i + 1, 0.0), (2 * i + 2, 5.0)] {
            let who = format!("a 1#{seq}");
            world.hear(told(at, &who, &player, "r/1/10F", "processed").with("ref", "s"));
        }
    }
    let void = told(9.0, "a 1#9000", "p1000", "r/1/-10F", "processed").with("reversal_of", "s");
    world.hear(void);
    let open = world.open(Kind::DuplicateLeak);
    assert_eq!((open.len(), open.iter().filter(|row| row.cause == "more").count()), (1_000, 0));
}

#[test]
fn ids_are_the_same_after_a_rebuild_and_differ_by_row() {
    let run = || {
        let mut world = World::new();
        (1..=2).for_each(|seq| world.hear(accepted(seq as f64, seq)));
        world.close(Kind::DuplicateLeak);
        world.hear(accepted(9.0, 3));
        world.all(Kind::DuplicateLeak).iter().map(|row| row.id.clone()).collect::<Vec<_>>()
    };
    let ids = run();
    assert_eq!(ids, run());
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn a_row_more_that_a_person_closed_is_followed_by_another() {
    let mut world = World::new();
    let leak = |world: &mut World, i: u64| {
        for (seq, at) in [(2 * i + 1, 0.0), (2 * i + 2, 5.0)] {
            let player = format!("p{i}");
            world.hear(told(at, &format!("a 1#{seq}"), &player, "r/1/10F", "processed"));
        }
    };
    (0..1_002).for_each(|i| leak(&mut world, i));
    let more = |world: &World| {
        let more = world.rows.values().filter(|row| row.cause == "more");
        let mut rows: Vec<_> = more.map(|row| (row.ordinal, row.state, row.count)).collect();
        rows.sort();
        rows
    };
    assert_eq!(more(&world), [(1, State::Confirmed, 2)]);
    let row = world.rows.values().find(|row| row.cause == "more").unwrap().clone();
    world.audit.load_finding(row.clone());
    let closed = Closed { finding: row.id, reason: "known".into(), note: String::new() };
    world.fold(Body::Closed(closed));
    leak(&mut world, 1_002);
    assert_eq!(more(&world), [(1, State::Closed, 2), (2, State::Confirmed, 1)]);
    let sums: u64 = world.audit.book.sums().values().map(|sums| sums.open_confirmed).sum();
    assert_eq!(sums, 1_001);
    let suspected: u64 = world.audit.book.sums().values().map(|sums| sums.open_suspected).sum();
    assert_eq!(suspected, 0);
}

#[test]
fn what_is_confirmed_is_counted_once_for_each_row() {
    let mut world = World::new();
    world.lasts = true;
    let confirmed = |world: &mut World| {
        let all = world.audit.book.take_confirmed();
        all.get(&(Kind::DuplicateLeak, "settle".into(), "prod".into())).copied()
    };
    (1..=2).for_each(|seq| world.hear(accepted(seq as f64, seq)));
    assert_eq!(confirmed(&mut world), Some(1));
    world.hear(accepted(3.0, 3));
    assert_eq!(world.only(Kind::DuplicateLeak).count, 2);
    assert_eq!(confirmed(&mut world), None, "more of the same row");
    for (seq, player) in [(4, "q"), (5, "q"), (6, "s"), (7, "s")] {
        world.hear(told(9.0, &format!("a 1#{seq}"), player, "r/1/10F", "processed"));
    }
    assert_eq!(confirmed(&mut world), Some(2));
}

#[test]
fn a_person_closes_one_row_and_no_other_of_its_subject() {
    let mut world = World::new();
    (1..=2).for_each(|seq| world.hear(accepted(seq as f64, seq)));
    (3..=5_u32).for_each(|seq| {
        world.hear(told(f64::from(seq), &format!("a 1#{seq}"), "p", "r/1/10F", "replay_blocked"));
    });
    world.heartbeat(6.0, "a", "1", 5);
    world.heartbeat(600.0, "a", "1", 5);
    assert_eq!(world.open(Kind::DuplicateLeak).len(), 1);
    world.close(Kind::RetryStorm);
    assert!(world.open(Kind::RetryStorm).is_empty());
    assert_eq!(world.open(Kind::DuplicateLeak).len(), 1);
}

#[test]
fn a_row_grows_when_it_counts_more_and_not_when_it_tells_more() {
    let mut world = World::new();
    (1..=2).for_each(|seq| world.hear(accepted(seq as f64, seq)));
    let told = told(30.0, "a 1#3", "p", "r/1/10F", "effect_reported").with("effect", "applied");
    world.hear(told);
    let leak = world.only(Kind::DuplicateLeak);
    assert!(leak.witnesses.iter().any(|witness| witness.effect.is_some()), "it tells more");
    assert_eq!(world.gained[&leak.id], BTreeSet::from([seconds(2.0)]));
}

#[test]
fn a_row_grows_when_it_is_confirmed_and_not_while_it_is_suspected() {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(told(1.0, "a 1#1", "q", "r/1/10F", "processed"));
    world.hear(told(2.0, "a 1#2", "p", "r/1/10F", "replay_blocked"));
    let id = world.only(Kind::FalseBlock).id.clone();
    assert_eq!(world.only(Kind::FalseBlock).state, State::Suspected);
    assert!(!world.gained.contains_key(&id) || world.gained[&id].is_empty());
    world.heartbeat(600.0, "a", "1", 2);
    assert_eq!(world.only(Kind::FalseBlock).state, State::Confirmed);
    assert_eq!(world.gained[&id], BTreeSet::from([seconds(600.0)]));
}
