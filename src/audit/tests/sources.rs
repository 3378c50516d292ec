//! Gaps, conflicts, refusals; and when a source counts as blind.

use super::*;
use crate::audit::Severity;

fn event(at: f64, who: &str) -> Told {
    told(at, who, &format!("p{at}"), "r/1/1F", "processed")
}

#[test]
fn a_gap_is_known_until_it_fills() {
    let mut world = World::new();
    world.hear(event(0.0, "a 1#1"));
    world.hear(event(9.0, "a 1#5"));
    world.assert_quiet();
    world.wait_until(40.0);
    world.give_up("a", "1", 2, 4);
    let gap = world.only(Kind::TelemetryGap);
    assert_eq!((gap.count, gap.state, gap.severity), (3, State::Confirmed, Severity::Info));
    world.hear(event(3.0, "a 1#3"));
    world.hear(event(4.0, "a 1#4"));
    world.hear(event(2.0, "a 1#2"));
    world.assert_quiet();
    assert_eq!(world.all(Kind::TelemetryGap)[0].closed_because.as_deref(), Some("filled"));
}

#[test]
fn a_gap_that_stays_is_a_warning_after_ten_minutes() {
    let mut world = World::new();
    world.hear(event(0.0, "a 1#2"));
    world.give_up("a", "1", 1, 1);
    world.wait_until(599.0);
    assert_eq!(world.only(Kind::TelemetryGap).severity, Severity::Info);
    world.wait_until(600.0);
    assert_eq!(world.only(Kind::TelemetryGap).severity, Severity::Warning);
}

#[test]
fn two_contents_of_one_identity_are_a_conflict_ten_are_two_processes() {
    let mut world = World::new();
    world.hear(event(0.0, "a 1#1"));
    for i in 0..9 {
        world.conflict(event(1.0 + f64::from(i), "a 1#1"));
    }
    assert_eq!(world.only(Kind::IdentityConflict).severity, Severity::Warning);
    world.conflict(event(10.0, "a 1#1"));
    let finding = world.only(Kind::IdentityConflict);
    assert_eq!((finding.count, finding.severity), (10, Severity::Critical));
}

#[test]
fn conflicts_over_a_longer_time_are_a_warning() {
    let mut world = World::new();
    for i in 0..20 {
        world.wait_until(f64::from(i) * 7.0);
        world.conflict(event(0.0, "a 1#1"));
    }
    assert_eq!(world.only(Kind::IdentityConflict).severity, Severity::Warning);
}

#[test]
fn refused_outcomes_are_evidence_that_is_missing() {
    let mut world = World::new();
    world.hear(event(0.0, "a 1#1"));
    world.refuse("a", "1", 2);
    let finding = world.only(Kind::RejectedEvidence);
    assert_eq!((finding.count, finding.severity), (1, Severity::Warning));
    assert_eq!(finding.cause, "bad_value");
    world.hear(told(0.0, "a 1#3", "p", "r/1/70F", "replay_blocked"));
    assert_eq!(world.open(Kind::UnverifiableBlock).len(), 1, "blind at the refused number");
    world.hear(event(0.0, "a 1#2"));
    assert_eq!(world.open(Kind::UnverifiableBlock).len(), 0, "mended");
}

#[test]
fn rows_about_sources_close_as_quiet() {
    let mut world = World::new();
    world.refuse("a", "1", 2);
    world.wait_until(86_399.0);
    assert_eq!(world.open(Kind::RejectedEvidence).len(), 1);
    world.wait_until(86_400.0);
    assert_eq!(world.all(Kind::RejectedEvidence)[0].closed_because.as_deref(), Some("quiet"));
    world.refuse("a", "1", 3);
    let again = world.only(Kind::RejectedEvidence);
    assert_eq!((again.ordinal, again.count), (2, 1));
}

/// The collector waits for no number of a source that it knows by its refusals alone, nor from 1
/// on if it has forgotten the source: it would never say that it gave them up.
#[test]
fn what_the_collector_does_not_wait_for_holds_up_no_verdict() {
    let block = |at, seq| told(at, &format!("a 2#{seq}"), "p", "never/1/70F", "replay_blocked");
    let late = (14 * 86_400 + 1) as f64;
    for (refused, at) in [(true, 1.0), (false, late)] {
        let mut world = World::new();
        if refused {
            world.refuse("a", "2", 1);
        } else {
            world.hear(event(0.0, "a 1#1"));
        }
        world.hear(event(at, "a 2#3"));
        world.heartbeat(at + 1.0, "a", "2", 3);
        world.hear(block(at + 2.0, 4));
        world.heartbeat(at + 600.0, "a", "2", 4);
        let rows = &world.rows;
        assert!(
            rows.values()
                .any(|row| row.kind == Kind::UnverifiableBlock && row.state == State::Confirmed),
            "{rows:#?}"
        );
    }
}

/// Which verdict a block of `p` by the watched source `a` gets at this time.
fn verdict(world: &mut World, at: f64, seq: u64) -> Option<Kind> {
    world.hear(told(at, &format!("a 1#{seq}"), "p", "never/1/70F", "replay_blocked"));
    let kinds = [Kind::FalseBlock, Kind::UnverifiableBlock];
    kinds.into_iter().find(|kind| !world.open(*kind).is_empty())
}

fn two_watched() -> World {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.heartbeat(0.0, "b", "1", 0);
    world.hear(event(0.0, "a 1#1"));
    world.hear(event(100.0, "b 1#1"));
    world
}

#[test]
fn a_boot_without_goodbye_leaves_a_blind_tail() {
    let mut world = two_watched();
    world.hear(event(130.0, "b 2#1"));
    assert_eq!(verdict(&mut world, 140.0, 2), Some(Kind::UnverifiableBlock));
    let mut world = two_watched();
    world.goodbye(101.0, "b", "1", 1);
    world.hear(event(130.0, "b 2#1"));
    assert_eq!(verdict(&mut world, 140.0, 2), Some(Kind::FalseBlock));
}

#[test]
fn what_is_beyond_the_horizon_is_not_blind() {
    let mut world = two_watched();
    world.hear(event(130.0, "b 2#1"));
    assert_eq!(verdict(&mut world, 7_332.0, 2), Some(Kind::FalseBlock));
}

#[test]
fn a_silent_source_is_blind_until_it_goes_on() {
    let mut world = two_watched();
    world.wait_until(170.0);
    world.silent("b", "1");
    assert_eq!(verdict(&mut world, 165.0, 2), Some(Kind::UnverifiableBlock));
    world.hear(event(171.0, "b 1#2"));
    assert!(world.open(Kind::UnverifiableBlock).is_empty());
    assert_eq!(world.open(Kind::FalseBlock).len(), 1);
}

#[test]
fn a_silent_source_is_waited_for_no_more() {
    let mut world = two_watched();
    world.wait_until(170.0);
    world.silent("b", "1");
    assert_eq!(verdict(&mut world, 165.0, 2), Some(Kind::UnverifiableBlock));
    world.heartbeat(195.0, "a", "1", 2);
    assert_eq!(world.only(Kind::UnverifiableBlock).state, State::Confirmed);
}

#[test]
fn a_first_number_that_is_not_one_is_blind_before_it() {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(event(0.0, "a 1#1"));
    world.hear(event(100.0, "b 1#7"));
    assert_eq!(verdict(&mut world, 99.0, 2), Some(Kind::UnverifiableBlock));
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(event(0.0, "a 1#1"));
    world.hear(event(100.0, "b 1#7"));
    assert_eq!(verdict(&mut world, 38.0, 2), Some(Kind::FalseBlock), "60 s before, and the skew");
}

#[test]
fn a_tail_that_a_heartbeat_shows_is_blind() {
    let mut world = two_watched();
    world.heartbeat(105.0, "b", "1", 3);
    assert_eq!(verdict(&mut world, 104.0, 2), Some(Kind::UnverifiableBlock));
    world.hear(event(101.0, "b 1#2"));
    world.hear(event(102.0, "b 1#3"));
    assert!(world.open(Kind::UnverifiableBlock).is_empty());
}

#[test]
fn blind_times_of_others_are_widened_by_the_skew() {
    for (at, kind) in [(98.5, Kind::FalseBlock), (99.5, Kind::UnverifiableBlock)] {
        let mut world = two_watched();
        world.heartbeat(105.0, "b", "1", 3);
        assert_eq!(verdict(&mut world, at, 2), Some(kind), "{at}");
    }
}

#[test]
fn ticks_are_asked_for_where_no_heartbeat_brings_time() {
    let mut world = World::new();
    world.hear(told(10.0, "a 1#1", "p", "r/1/70F", "replay_blocked"));
    assert_eq!(world.audit.tick_due_us(), Some(seconds(40.0)));
    world.heartbeat(11.0, "a", "1", 1);
    assert_eq!(world.audit.tick_due_us(), None);
}

#[test]
fn holes_without_end_are_bounded_and_stay_blind() {
    let mut world = two_watched();
    for i in 1..=5_000_u64 {
        world.hear(event(100.0 + i as f64 / 1e3, &format!("b 1#{}", 2 * i + 1)));
    }
    world.give_up("b", "1", 2, 10_000);
    let source = world.audit.sources.named(&named("b")).unwrap();
    assert!(source.blind().len() <= 4_097);
    assert_eq!(world.only(Kind::TelemetryGap).count, 5_000);
    world.heartbeat(110.0, "b", "1", 10_001);
    assert_eq!(verdict(&mut world, 101.0, 2), Some(Kind::UnverifiableBlock));
}

#[test]
fn many_undecided_blocks_are_judged_again_within_a_second_of_a_fill() {
    let mut world = two_watched();
    world.heartbeat(105.0, "b", "1", 3);
    for seq in 2..=201 {
        let signature = format!("never/{seq}/70F");
        world.hear(told(104.0, &format!("a 1#{seq}"), "p", &signature, "replay_blocked"));
    }
    assert_eq!(world.open(Kind::UnverifiableBlock).len(), 200);
    world.hear(event(101.0, "b 1#2"));
    world.hear(event(102.0, "b 1#3"));
    world.wait_until(106.0);
    assert_eq!(world.open(Kind::UnverifiableBlock).len(), 0);
    assert_eq!(world.open(Kind::FalseBlock).len(), 200);
}

#[test]
fn where_time_is_that_of_receipt_a_backlog_has_its_grace_too() {
    let mut world = World::new();
    world.hear(event(0.0, "a 1#1"));
    world.wait_until(600.0);
    world.hear(told(10.0, "b 1#1", "p", "r/1/70F", "replay_blocked"));
    assert_eq!(world.only(Kind::FalseBlock).state, State::Suspected);
    world.hear(told(9.0, "a 1#2", "p", "r/1/70F", "processed"));
    assert!(world.rows.is_empty());
}

#[test]
fn what_a_first_boot_did_before_it_was_heard_is_not_waited_for() {
    let mut world = World::new();
    world.heartbeat(0.0, "b", "5", 900);
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(event(0.0, "a 1#1"));
    world.heartbeat(7_300.0, "b", "5", 900);
    assert_eq!(verdict(&mut world, 7_202.0, 2), Some(Kind::FalseBlock), "the horizon is over");
    world.heartbeat(7_300.0, "a", "1", 2);
    assert_eq!(world.only(Kind::FalseBlock).state, State::Confirmed);
}

#[test]
fn an_older_boot_that_is_heard_last_is_not_waited_for_either() {
    let mut world = World::new();
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(event(0.0, "a 1#1"));
    world.heartbeat(150.0, "b", "2", 0);
    world.hear(event(140.0, "b 1#7"));
    world.hear(told(200.0, "a 1#2", "p", "never/1/70F", "replay_blocked"));
    world.heartbeat(8_000.0, "a", "1", 2);
    world.heartbeat(8_000.0, "b", "2", 0);
    assert_eq!(world.only(Kind::UnverifiableBlock).state, State::Confirmed);
}

#[test]
fn a_hole_that_nobody_gives_up_holds_verdicts_up_for_an_hour_at_most() {
    let mut world = two_watched();
    world.hear(event(100.5, "b 1#3"));
    assert_eq!(verdict(&mut world, 140.0, 2), Some(Kind::UnverifiableBlock));
    let state_at = |world: &mut World, at: f64| {
        world.heartbeat(at, "a", "1", 2);
        world.heartbeat(at, "b", "1", 3);
        world.only(Kind::UnverifiableBlock).state
    };
    assert_eq!(state_at(&mut world, 3_769.0), State::Suspected);
    assert_eq!(state_at(&mut world, 3_770.0), State::Confirmed);
}

#[test]
fn a_hole_that_fills_in_part_counts_what_is_still_missing() {
    for fills in [2, 3, 4] {
        let mut world = World::new();
        world.hear(event(0.0, "a 1#1"));
        world.hear(event(10.0, "a 1#5"));
        world.give_up("a", "1", 2, 4);
        assert_eq!(world.only(Kind::TelemetryGap).count, 3);
        world.hear(event(5.0, &format!("a 1#{fills}")));
        assert_eq!(world.only(Kind::TelemetryGap).count, 2, "{fills} came");
    }
}

#[test]
fn a_hole_that_fills_in_part_lets_a_block_be_judged_again() {
    let mut world = two_watched();
    world.heartbeat(130.0, "b", "1", 3);
    world.give_up("b", "1", 2, 3);
    assert_eq!(verdict(&mut world, 110.0, 2), Some(Kind::UnverifiableBlock));
    world.heartbeat(200.0, "a", "1", 2);
    world.hear(event(115.0, "b 1#2"));
    assert_eq!(world.open(Kind::FalseBlock).len(), 1, "only what came after it is missing");
}

#[test]
fn what_a_first_boot_gave_out_after_an_overtaken_heartbeat_is_waited_for() {
    for overtaken in [false, true] {
        let mut world = World::new();
        let mut telling: [&dyn Fn(&mut World); 2] =
            [&|world| world.heartbeat(0.0, "a", "1", 2), &|world| world.hear(event(1.0, "a 1#5"))];
        if overtaken {
            telling.reverse();
        }
        telling.iter().for_each(|tell| tell(&mut world));
        let source = world.audit.sources.iter().next().unwrap();
        assert_eq!(source.blind().len(), 2, "before it was heard, and at 3 and 4");
    }
}

#[test]
fn a_hole_that_is_forgotten_counts_what_nobody_spoke_of() {
    let mut world = World::new();
    world.lasts = true;
    world.hear(event(0.0, "a 1#1"));
    world.hear(event(1.0, "a 1#10"));
    world.give_up("a", "1", 3, 5);
    world.refuse("a", "1", 7);
    assert_eq!(world.only(Kind::TelemetryGap).count, 3);
    for n in 0..4_095 {
        world.hear(event(2.0, &format!("a 1#{}", 12 + 2 * n)));
    }
    world.give_up("a", "1", 11, 11);
    let count = world.only(Kind::TelemetryGap).count;
    assert_eq!(count, 3 + 4 + 1, "2, 6, 8 and 9 are known no more; 11 was given up");
}
