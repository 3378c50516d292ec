//! Versions of a room's state: that go back, that have two contents, that go round.

use super::*;
use crate::audit::Severity;

/// A settlement in the room `r` that tells a version; the round makes it another settlement.
fn state(at: f64, who: &str, round: u32, version: u64) -> Told {
    let signature = format!("r/{round}/10");
    told(at, who, "p", &signature, "processed").with("state_version", version)
}

fn torn(at: f64, who: &str, round: u32, version: u64, content: &str) -> Told {
    state(at, who, round, version).with("state_hash", content)
}

/// How many of each kind, in this order of arrival and in the opposite one.
fn found(events: impl Fn() -> Vec<Told>) -> [u64; 3] {
    let mut backwards = events();
    backwards.reverse();
    let counts = [events(), backwards].map(|events| {
        let mut world = World::new();
        events.into_iter().for_each(|event| world.hear(event));
        world.wait_until(1_000.0);
        [Kind::VersionRegression, Kind::TornState, Kind::CounterWrap].map(|kind| {
            let open = world.open(kind);
            assert!(open.iter().all(|row| row.state == State::Confirmed));
            open.first().map_or(0, |row| row.count)
        })
    });
    assert_eq!(counts[0], counts[1], "the order of arrival");
    counts[0]
}

#[test]
fn a_version_below_the_one_before_it_is_a_regression() {
    let events = || vec![state(0.0, "a 1#1", 1, 6), state(1.0, "a 1#2", 2, 5)];
    assert_eq!(found(events), [1, 0, 0]);
    let mut world = World::new();
    events().into_iter().for_each(|event| world.hear(event));
    assert_eq!(world.only(Kind::VersionRegression).state, State::Suspected);
    world.wait_until(31.0);
    let finding = world.only(Kind::VersionRegression);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
    assert_eq!((finding.player.as_ref(), finding.witnesses.len()), (Some(&id("p")), 2));
    assert_eq!(finding.witnesses[1].text.as_deref(), Some("state version 5"));
}

#[test]
fn each_time_it_goes_back_counts_once() {
    let versions = [6, 5, 6, 7, 3, 3, 4];
    let events = || -> Vec<Told> {
        let state =
            |(i, version): (u32, u64)| state(f64::from(i), &format!("a 1#{}", i + 1), i, version);
        (0..).zip(versions).map(state).collect()
    };
    assert_eq!(found(events), [2, 0, 0]);
}

#[test]
fn rooms_and_sessions_count_for_themselves() {
    let other = |signature: serde_json::Value| {
        move || {
            let mut event = state(9.0, "a 1#2", 2, 3);
            event.0["signature"] = signature.clone();
            vec![state(0.0, "a 1#1", 1, 57), event]
        }
    };
    let signature = |room: &str, session: Option<&str>| {
        let mut signature =
            serde_json::json!({"room": room, "round": "2", "net": "10", "final": false});
        if let Some(session) = session {
            signature["session"] = session.into();
        }
        signature
    };
    assert_eq!(found(other(signature("s", None))), [0, 0, 0]);
    assert_eq!(found(other(signature("r", Some("x")))), [0, 0, 0]);
    assert_eq!(found(other(signature("r", None)))[0], 1);
    let player = || told(9.0, "a 1#2", "q", "r/2/10", "processed").with("state_version", 3);
    assert_eq!(found(|| vec![state(0.0, "a 1#1", 1, 57), player()]), [0, 0, 0]);
}

#[test]
fn games_without_a_room_and_opaque_keys_tell_no_version() {
    for signature in ["/1/10", "=k1/10"] {
        let other = signature.replace('1', "2");
        let events = || {
            let tell = |at, who: &str, signature: &str, version: u64| {
                told(at, who, "p", signature, "processed").with("state_version", version)
            };
            vec![tell(0.0, "a 1#1", signature, 6), tell(9.0, "a 1#2", &other, 5)]
        };
        assert_eq!(found(events), [0, 0, 0]);
    }
}

#[test]
fn what_is_late_comes_again_or_did_not_happen_tells_its_own_time() {
    let newest = || vec![state(0.0, "a 1#1", 1, 5), state(5.0, "a 1#2", 2, 6)];
    let with = |event: fn() -> Told| {
        move || {
            let mut events = newest();
            events.push(event());
            events
        }
    };
    let late = || state(9.0, "a 1#3", 3, 4).with("outcome", "late_accepted");
    let again = || state(9.0, "a 1#3", 1, 5);
    let failed = || state(9.0, "a 1#3", 3, 4).with("effect", "failed");
    let blocked = || state(9.0, "a 1#3", 3, 4).with("outcome", "replay_blocked");
    for event in [late, again, failed, blocked] as [fn() -> Told; 4] {
        assert_eq!(found(with(event)), [0, 0, 0]);
    }
    assert_eq!(found(with(|| state(9.0, "a 1#3", 3, 4)))[0], 1);
}

#[test]
fn only_the_first_acceptance_counts_also_where_it_told_no_version() {
    let events = || {
        vec![
            told(0.0, "a 1#1", "p", "r/1/10", "processed"),
            state(5.0, "a 1#2", 2, 6),
            state(9.0, "a 1#3", 1, 5),
        ]
    };
    assert_eq!(found(events), [0, 0, 0]);
}

/// What became of the settlement of a round.
fn fate(at: f64, who: &str, round: u32, effect: &str) -> Told {
    told(at, who, "p", &format!("r/{round}/10"), "effect_reported").with("effect", effect)
}

#[test]
fn a_settlement_tells_by_its_first_acceptance_also_where_that_failed() {
    for effect in ["failed", "unknown"] {
        let events = || {
            vec![
                told(0.0, "a 1#1", "p", "r/1/10", "processed").with("effect", effect),
                state(5.0, "a 1#2", 2, 6),
                state(9.0, "a 1#3", 1, 5),
            ]
        };
        assert_eq!(found(events), [0, 0, 0]);
    }
}

#[test]
fn what_became_of_it_decides_whether_it_tells() {
    let events = |fates: &'static [(&str, &str)]| {
        move || {
            let mut events = vec![state(0.0, "a 1#1", 1, 6), state(5.0, "a 1#4", 2, 5)];
            let fate = |(who, effect): &(&str, &str)| {
                let at = if *who == "a 1#2" { 1.0 } else { 2.0 };
                fate(at, who, 1, effect)
            };
            events.extend(fates.iter().map(fate));
            events
        }
    };
    assert_eq!(found(events(&[("a 1#2", "failed")])), [0, 0, 0]);
    assert_eq!(found(events(&[("a 1#2", "unknown")])), [0, 0, 0]);
    assert_eq!(found(events(&[("a 1#2", "failed"), ("a 1#3", "applied")])), [1, 0, 0]);
    assert_eq!(found(events(&[("a 1#2", "applied"), ("a 1#3", "failed")])), [0, 0, 0]);
}

#[test]
fn where_it_is_not_known_which_acceptance_was_the_first_it_tells_nothing() {
    let events = |gap: f64| {
        move || {
            vec![
                state(0.0, "a 1#1", 1, 6),
                state(9.0, "a 1#2", 2, 5),
                told(9.0 + gap, "b 1#1", "p", "r/2/10", "processed"),
            ]
        }
    };
    assert_eq!(found(events(0.5)), [0, 0, 0]);
    assert_eq!(found(events(1.5)), [1, 0, 0]);
}

#[test]
fn two_contents_of_one_version_need_no_order() {
    let events = || vec![torn(0.0, "a 1#1", 1, 7, "x"), torn(0.0, "b 1#1", 2, 7, "y")];
    assert_eq!(found(events), [0, 1, 0]);
    let same = || vec![torn(0.0, "a 1#1", 1, 7, "x"), torn(1.0, "a 1#2", 2, 7, "x")];
    assert_eq!(found(same), [0, 0, 0]);
    let untold = || vec![torn(0.0, "a 1#1", 1, 7, "x"), state(1.0, "a 1#2", 2, 7)];
    assert_eq!(found(untold), [0, 0, 0]);
    let three = || {
        vec![
            torn(0.0, "a 1#1", 1, 7, "x"),
            torn(1.0, "a 1#2", 2, 7, "y"),
            torn(2.0, "a 1#3", 3, 7, "x"),
        ]
    };
    assert_eq!(found(three), [0, 1, 0]);
}

#[test]
fn a_counter_that_goes_round_is_told_beside_it() {
    let two = |last: u64, next: u64| {
        move || vec![state(0.0, "a 1#1", 1, last), state(1.0, "a 1#2", 2, next)]
    };
    for last in [255, 65_535, u64::from(u32::MAX), u64::MAX] {
        assert_eq!(found(two(last, 0)), [1, 0, 1], "{last}");
    }
    for last in [127, 254, 256, 65_534] {
        assert_eq!(found(two(last, 0)), [1, 0, 0], "{last}");
    }
    assert_eq!(found(two(255, 256)), [0, 0, 0]);
}

#[test]
fn where_the_order_is_not_known_it_is_skipped() {
    let two = |gap: f64| move || vec![state(0.0, "a 1#1", 1, 6), state(gap, "b 1#1", 2, 5)];
    assert_eq!(found(two(0.5)), [0, 0, 0]);
    assert_eq!(found(two(1.5)), [1, 0, 0]);
    let mut world = World::new();
    two(0.5)().into_iter().for_each(|event| world.hear(event));
    assert_eq!(world.skipped().get("version_regression"), Some(&1));
    // 3 is below whatever was before it; 4 only if it was not 3.
    let events = || {
        vec![
            state(0.0, "a 1#1", 1, 9),
            state(5.0, "a 1#2", 2, 4),
            state(5.1, "b 1#1", 3, 3),
            state(5.2, "b 1#2", 4, 8),
        ]
    };
    assert_eq!(found(events), [1, 0, 0]);
}

#[test]
fn a_first_acceptance_that_comes_late_disproves_it() {
    let mut world = World::new();
    world.hear(state(5.0, "a 1#2", 2, 6));
    world.hear(state(9.0, "a 1#3", 1, 5));
    assert_eq!(world.open(Kind::VersionRegression).len(), 1);
    world.hear(state(0.0, "a 1#1", 1, 5));
    assert!(world.open(Kind::VersionRegression).is_empty());
}

#[test]
fn what_the_facts_let_go_of_stays_counted_with_its_evidence() {
    let mut world = World::new();
    world.hear(state(0.0, "a 1#1", 0, 6));
    for i in 1..40_u32 {
        world.hear(state(f64::from(i), &format!("a 1#{}", i + 1), i, u64::from(i) + 4));
    }
    world.wait_until(100.0);
    let finding = world.only(Kind::VersionRegression);
    assert_eq!((finding.count, finding.state), (1, State::Confirmed));
    assert_eq!((finding.witnesses.len(), finding.first_us), (2, seconds(0.0)));
    let stored: Vec<_> = world.audit.facts.rooms.values().collect();
    assert!(postcard::to_allocvec(stored[0]).unwrap().len() < 1_024);
}

#[test]
fn its_row_closes_as_quiet() {
    let mut world = World::new();
    world.hear(state(0.0, "a 1#1", 1, 6));
    world.hear(state(1.0, "a 1#2", 2, 5));
    world.wait_until(31.0);
    world.wait_until(31.0 + 86_400.0);
    let closed = world.all(Kind::VersionRegression);
    assert_eq!(closed[0].closed_because.as_deref(), Some("quiet"));
}
