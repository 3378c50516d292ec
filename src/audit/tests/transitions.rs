//! `illegal_transition`: what each move says by itself.

use super::*;
use crate::audit::{Severity, Subject};
use crate::outcome::{DeliveryState, Transition};

/// A move of source `a`, boot 1, ten seconds after the start.
fn moved(seq: u64, trace: &str, left: &str, entered: &str) -> Transition {
    let transition = serde_json::json!({
        "service": "settle", "env": "prod", "source": "a", "boot": "1", "seq": seq,
        "trace_id": trace, "key": "k-1", "from": left, "to": entered, "reason": "late",
        "at": format_us(seconds(10.0)),
    });
    serde_json::from_value(transition).unwrap()
}

fn tell(world: &mut World, transition: Transition) {
    world.fold(Body::Transition(Box::new(transition)));
}

#[test]
fn forward_moves_are_nothing_and_touch_nothing() {
    let mut world = World { lasts: true, ..World::new() };
    for (seq, (left, entered)) in (1..).zip([
        ("received", "checking"),
        ("checking", "accepted"),
        ("received", "refused"),
        ("checking", "refused"),
        ("received", "accepted"),
    ]) {
        tell(&mut world, moved(seq, "t-1", left, entered));
    }
    world.assert_quiet();
    assert!(world.rows.is_empty());
    assert_eq!(world.audit.sources.take_changed().len(), 0);
}

#[test]
fn every_other_move_is_found() {
    for left in DeliveryState::ALL {
        for entered in DeliveryState::ALL {
            let told = moved(1, "t-1", left.as_str(), entered.as_str());
            let is_legal = told.is_legal();
            let mut world = World::new();
            tell(&mut world, told);
            assert_eq!(world.open(Kind::IllegalTransition).len(), usize::from(!is_legal));
        }
    }
}

#[test]
fn a_row_for_each_source_and_pair_of_states_with_its_evidence() {
    let mut world = World::new();
    tell(&mut world, moved(1, "t-1", "accepted", "checking"));
    tell(&mut world, moved(2, "t-2", "accepted", "checking"));
    let row = world.only(Kind::IllegalTransition);
    assert_eq!((row.count, row.state, row.severity), (2, State::Confirmed, Severity::Warning));
    assert_eq!((&*row.cause, row.source.clone()), ("accepted_to_checking", Some(id("a"))));
    let cause = "accepted_to_checking".into();
    assert_eq!(row.subject, Subject::Source { from: Some(named("a")), ledger: None, cause });
    let witness = &row.witnesses[1];
    assert_eq!((witness.seq, witness.trace_id.clone()), (Some(2), Some(id("t-2"))));
    let text = witness.text.as_deref().unwrap();
    assert_eq!(text, "key k-1 went from accepted to checking: late");
    tell(&mut world, moved(3, "t-3", "refused", "accepted"));
    assert_eq!(world.open(Kind::IllegalTransition).len(), 2);
    world.wait_until(25.0 * 3_600.0);
    world.assert_quiet();
}

#[test]
fn the_order_of_arrival_makes_no_difference() {
    let told = [
        moved(1, "t-1", "received", "checking"),
        moved(2, "t-1", "checking", "accepted"),
        moved(3, "t-1", "accepted", "checking"),
        moved(4, "t-1", "checking", "refused"),
    ];
    let mut found = Vec::new();
    for turned in 0..told.len() {
        let mut world = World::new();
        for at in 0..told.len() {
            tell(&mut world, told[(at + turned) % told.len()].clone());
        }
        let row = world.only(Kind::IllegalTransition);
        found.push((row.id.clone(), row.count, row.cause.clone()));
    }
    assert!(found.windows(2).all(|two| two[0] == two[1]), "{found:?}");
}

#[test]
fn other_content_of_a_known_transition_is_a_conflict() {
    let mut world = World::new();
    let other = moved(7, "t-1", "received", "checking");
    world.fold(Body::TransitionConflict(Box::new(other.clone())));
    let row = world.only(Kind::IdentityConflict);
    assert!(matches!(row.subject, Subject::Boot { .. }));
    let text = row.witnesses[0].text.as_deref().unwrap();
    assert!(text.starts_with("the transition of seq 7 came again"), "{text}");
    let unnumbered = Transition { boot: None, seq: None, event_id: Some(id("e")), ..other };
    world.fold(Body::TransitionConflict(Box::new(unnumbered)));
    assert_eq!(world.open(Kind::IdentityConflict).len(), 2);
    assert!(world.open(Kind::IllegalTransition).is_empty(), "it was not taken");
}
