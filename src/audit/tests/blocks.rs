//! `false_block`, `unverifiable_block`, `indeterminate_outcome`: what can be known of what was not
//! booked.

use super::*;
use crate::audit::{Coverage, Severity};

/// A world in which source `a` is watched and has been heard without a hole.
fn watched() -> World {
    let mut world = World::new();
    world.hear(told(0.0, "a 1#1", "p", "r/0/5F", "processed"));
    world.heartbeat(0.0, "a", "1", 1);
    world
}

fn blocked(at: f64, who: &str) -> Told {
    told(at, who, "p", "r/1/70F", "replay_blocked")
}

#[test]
fn a_block_of_what_was_never_booked_is_false_once_its_grace_is_over() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    assert_eq!(world.only(Kind::FalseBlock).state, State::Suspected);
    world.heartbeat(39.9, "a", "1", 2);
    assert_eq!(world.only(Kind::FalseBlock).state, State::Suspected);
    world.heartbeat(40.0, "a", "1", 2);
    let finding = world.only(Kind::FalseBlock);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Critical));
    assert_eq!((finding.coverage, finding.amounts.underpaid), (Coverage::Full, 70));
}

#[test]
fn an_amount_is_missing_once_not_for_each_block() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(blocked(11.0, "a 1#3"));
    let finding = world.only(Kind::FalseBlock);
    assert_eq!((finding.count, finding.amounts.underpaid), (2, 70));
}

#[test]
fn an_unknown_of_any_source_that_may_be_before_a_block_explains_it() {
    for (at, explains) in [(10.5, true), (12.0, false)] {
        let mut world = watched();
        world.hear(blocked(10.0, "a 1#2"));
        world.hear(told(10.2, "a 1#3", "p", "r/1/70F", "unknown"));
        world.hear(told(at, "b 1#1", "p", "r/1/70F", "unknown"));
        assert_eq!(world.open(Kind::FalseBlock).is_empty(), explains, "{at}");
    }
}

#[test]
fn the_amount_of_an_opaque_key_does_not_hang_on_what_was_heard_first() {
    for nets in [[5, 7], [7, 5]] {
        let mut world = watched();
        for (i, net) in nets.into_iter().enumerate() {
            let who = format!("a 1#{}", 2 + i);
            world.hear(told(10.0, &who, "p", &format!("=k/{net}"), "replay_blocked"));
        }
        let finding = world.only(Kind::FalseBlock);
        assert_eq!((finding.count, finding.amounts.underpaid), (2, 7));
    }
}

#[test]
fn the_first_acceptance_says_the_amount_of_an_opaque_key() {
    let accepted = |at, who: &str, net: i64| {
        told(at, who, "p", &format!("=k/{net}"), "processed").with("effect", "failed")
    };
    for both in [[(10.0, "a 1#2", 5), (11.0, "a 1#3", 7)], [(11.0, "a 1#3", 7), (10.0, "a 1#2", 5)]]
    {
        let mut world = watched();
        both.into_iter().for_each(|(at, who, net)| world.hear(accepted(at, who, net)));
        assert_eq!(world.only(Kind::AcceptWithoutEffect).amounts.underpaid, 5);
    }
}

#[test]
fn what_was_to_be_taken_is_undercharged() {
    let mut world = watched();
    world.hear(told(10.0, "a 1#2", "p", "r/1/-70F", "replay_blocked"));
    let amounts = world.only(Kind::FalseBlock).amounts;
    assert_eq!((amounts.underpaid, amounts.undercharged), (0, 70));
}

#[test]
fn an_acceptance_closes_it_however_late() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.heartbeat(50.0, "a", "1", 2);
    world.hear(told(5_000.0, "a 1#3", "p", "r/1/70F", "processed"));
    assert!(world.open(Kind::FalseBlock).is_empty());
    let closed = world.all(Kind::FalseBlock)[0];
    assert_eq!(closed.closed_because.as_deref(), Some("accepted"));
}

#[test]
fn a_suspicion_that_is_disproved_leaves_no_trace() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2"));
    world.hear(told(9.0, "b 1#1", "p", "r/1/70F", "processed"));
    assert!(world.rows.is_empty());
}

#[test]
fn an_eviction_is_the_trace_of_an_acceptance() {
    let mut world = watched();
    world.hear(told(9.0, "a 1#2", "p", "r/1/70F", "evicted"));
    world.hear(blocked(10.0, "a 1#3"));
    world.heartbeat(100.0, "a", "1", 3);
    assert!(world.open(Kind::FalseBlock).is_empty());
}

#[test]
fn a_block_after_an_unknown_is_never_false() {
    let mut world = watched();
    world.hear(told(9.0, "a 1#2", "p", "r/1/70F", "unknown"));
    world.hear(blocked(10.0, "a 1#3"));
    world.heartbeat(100.0, "a", "1", 3);
    assert!(world.open(Kind::FalseBlock).is_empty());
    assert_eq!(world.open(Kind::IndeterminateOutcome).len(), 1);
}

#[test]
fn sources_that_prove_nothing_make_it_a_warning() {
    for who in ["b 1#1", "b"] {
        let mut world = watched();
        world.hear(told(5.0, who, "q", "r/0/5F", "processed"));
        world.hear(blocked(10.0, "a 1#2"));
        world.heartbeat(60.0, "a", "1", 2);
        let finding = world.only(Kind::FalseBlock);
        assert_eq!((finding.coverage, finding.severity), (Coverage::Assumed, Severity::Warning));
    }
}

#[test]
fn a_source_not_seen_within_the_horizon_does_not_matter() {
    let mut world = watched();
    world.hear(told(5.0, "b 1#1", "q", "r/0/5F", "processed"));
    world.hear(blocked(7_206.0, "a 1#2"));
    world.heartbeat(7_260.0, "a", "1", 2);
    assert_eq!(world.only(Kind::FalseBlock).coverage, Coverage::Full);
}

#[test]
fn a_window_that_holds_something_unknown_makes_it_a_warning() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#2").window(1, 4).with("guard_mode", "shared"));
    world.heartbeat(60.0, "a", "1", 2);
    assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Warning);
}

/// Three acceptances of `p` at `a`, then a block with this window; a source that proves nothing
/// besides.
fn with_window(mode: Option<&str>, len: u64, other: Option<&str>) -> World {
    let mut world = watched();
    world.hear(told(1.0, "b 1#1", "q", "r/0/5F", "processed"));
    for (seq, round) in [(2, 7), (3, 8), (4, 9)] {
        let signature = format!("r/{round}/1F");
        world.hear(told(seq as f64, &format!("a 1#{seq}"), "p", &signature, "processed"));
    }
    if let Some(other) = other {
        world.hear(told(5.0, "b 1#2", "p", other, "processed"));
    }
    let mut block = blocked(10.0, "a 1#5").window(len, 4);
    if let Some(mode) = mode {
        block = block.with("guard_mode", mode);
    }
    world.hear(block);
    world.heartbeat(60.0, "a", "1", 5);
    world
}

#[test]
fn a_known_window_proves_it_whatever_others_missed() {
    // 4 known: that of `watched` and three.
    for (mode, other) in [(Some("local"), None), (None, None), (Some("local"), Some("r/5/1F"))] {
        let world = with_window(mode, 4, other);
        let finding = world.only(Kind::FalseBlock);
        assert_eq!(
            (finding.severity, finding.cause.as_str()),
            (Severity::Critical, "not_in_window")
        );
    }
}

#[test]
fn an_empty_window_holds_nothing() {
    assert_eq!(with_window(Some("shared"), 0, None).only(Kind::FalseBlock).cause, "not_in_window");
}

#[test]
fn a_window_proves_nothing_where_it_is_not_all_known() {
    let shared = with_window(Some("shared"), 4, None);
    let another_wrote = with_window(None, 4, Some("r/5/1F"));
    for world in [shared, another_wrote] {
        assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Warning);
    }
}

#[test]
fn a_hole_in_the_numbers_hides_what_the_window_holds() {
    let mut world = watched();
    world.hear(told(2.0, "a 1#2", "p", "r/7/1F", "processed"));
    world.hear(blocked(10.0, "a 1#4").window(2, 4));
    world.heartbeat(11.0, "a", "1", 4);
    world.give_up("a", "1", 3, 3);
    world.heartbeat(60.0, "a", "1", 4);
    assert_eq!(world.only(Kind::UnverifiableBlock).state, State::Confirmed);
    assert!(world.open(Kind::FalseBlock).is_empty());
}

#[test]
fn a_hole_that_fills_is_judged_again() {
    for (filler, kind) in [("q", Some(Kind::FalseBlock)), ("p", None)] {
        let mut world = watched();
        world.hear(blocked(10.0, "a 1#3"));
        world.heartbeat(11.0, "a", "1", 3);
        world.give_up("a", "1", 2, 2);
        world.heartbeat(60.0, "a", "1", 3);
        let finding = world.only(Kind::UnverifiableBlock);
        assert_eq!((finding.severity, finding.amounts.underpaid), (Severity::Info, 0));
        world.hear(told(5.0, "a 1#2", filler, "r/1/70F", "processed"));
        assert!(world.open(Kind::UnverifiableBlock).is_empty());
        let open: Vec<_> = world.open(Kind::FalseBlock).iter().map(|row| row.kind).collect();
        assert_eq!(open, kind.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn what_stays_unverifiable_is_a_warning_after_ten_minutes() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#3"));
    world.give_up("a", "1", 2, 2);
    world.heartbeat(609.0, "a", "1", 3);
    assert_eq!(world.only(Kind::UnverifiableBlock).severity, Severity::Info);
    world.heartbeat(610.0, "a", "1", 3);
    let finding = world.only(Kind::UnverifiableBlock);
    assert_eq!((finding.severity, finding.amounts.exposure), (Severity::Warning, 70));
    assert_eq!(finding.amounts.underpaid, 0);
}

#[test]
fn what_a_backlog_brings_is_unverifiable_for_ten_minutes_from_then() {
    let mut world = watched();
    world.heartbeat(700.0, "a", "1", 3);
    world.hear(blocked(10.0, "a 1#3"));
    world.give_up("a", "1", 2, 2);
    world.heartbeat(1_299.0, "a", "1", 3);
    assert_eq!(world.only(Kind::UnverifiableBlock).severity, Severity::Info);
    world.heartbeat(1_300.0, "a", "1", 3);
    assert_eq!(world.only(Kind::UnverifiableBlock).severity, Severity::Warning);
}

#[test]
fn a_key_blocked_while_blind_stays_unverifiable() {
    let mut world = watched();
    world.hear(blocked(10.0, "a 1#3"));
    world.give_up("a", "1", 2, 2);
    world.hear(blocked(20_000.0, "a 1#4"));
    world.heartbeat(20_100.0, "a", "1", 4);
    assert_eq!(world.only(Kind::UnverifiableBlock).count, 2);
    assert!(world.open(Kind::FalseBlock).is_empty());
}

#[test]
fn a_new_ledger_is_blind_while_it_warms_up() {
    let mut world = World::with(Settings { warmup_us: 100_000_000, ..settings() });
    world.heartbeat(0.0, "a", "1", 0);
    world.hear(told(0.0, "a 1#1", "p", "r/0/5F", "processed"));
    world.hear(blocked(99.0, "a 1#2"));
    world.hear(told(100.0, "a 1#3", "p", "r/2/70F", "replay_blocked"));
    world.heartbeat(200.0, "a", "1", 3);
    assert_eq!(world.only(Kind::UnverifiableBlock).first_us, seconds(99.0));
    assert_eq!(world.only(Kind::FalseBlock).first_us, seconds(100.0));
}

#[test]
fn blocks_that_are_not_about_the_window_wait_ten_minutes() {
    for reason in ["in_progress", "guard_down", "stale", "too_old"] {
        let mut world = watched();
        world.hear(blocked(10.0, "a 1#2").with("reason", reason));
        world.heartbeat(609.0, "a", "1", 2);
        assert_eq!(world.only(Kind::FalseBlock).state, State::Suspected);
        world.heartbeat(610.0, "a", "1", 2);
        let finding = world.only(Kind::FalseBlock);
        assert_eq!((finding.state, finding.cause.as_str()), (State::Confirmed, reason));
    }
}

#[test]
fn a_slow_source_holds_the_verdict_back() {
    let mut world = watched();
    world.heartbeat(0.0, "b", "1", 0);
    world.hear(blocked(10.0, "a 1#2"));
    world.heartbeat(500.0, "a", "1", 2);
    assert_eq!(world.only(Kind::FalseBlock).state, State::Suspected);
    // It had accepted the settlement all along.
    world.hear(told(9.0, "b 1#1", "p", "r/1/70F", "processed"));
    assert!(world.rows.is_empty());
}

#[test]
fn an_unknown_outcome_is_confirmed_after_ten_minutes() {
    let mut world = watched();
    world.hear(told(10.0, "a 1#2", "p", "r/1/70F", "unknown"));
    world.heartbeat(609.0, "a", "1", 2);
    assert_eq!(world.only(Kind::IndeterminateOutcome).state, State::Suspected);
    world.heartbeat(610.0, "a", "1", 2);
    let finding = world.only(Kind::IndeterminateOutcome);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
}

#[test]
fn an_acceptance_closes_only_what_was_held_back() {
    for (reason, open) in [(Some("held"), 0), (Some("in_progress"), 0), (None, 1)] {
        let mut world = watched();
        let mut unknown = told(10.0, "a 1#2", "p", "r/1/70F", "unknown");
        if let Some(reason) = reason {
            unknown = unknown.with("reason", reason);
        }
        world.hear(unknown);
        world.hear(told(11.0, "a 1#3", "p", "r/1/70F", "processed"));
        assert_eq!(world.open(Kind::IndeterminateOutcome).len(), open, "{reason:?}");
        for finding in world.open(Kind::IndeterminateOutcome) {
            assert_eq!(finding.cause, "possibly_twice");
        }
    }
}

#[test]
fn an_effect_that_nobody_knows_is_indeterminate() {
    let mut world = watched();
    world.hear(told(10.0, "a 1#2", "p", "r/1/70F", "processed").with("effect", "unknown"));
    assert_eq!(world.only(Kind::IndeterminateOutcome).cause, "effect_unknown");
    world.hear(told(20.0, "a 1#3", "p", "r/1/70F", "processed").with("effect", "applied"));
    assert_eq!(world.only(Kind::IndeterminateOutcome).cause, "possibly_twice");
}

#[test]
fn what_is_lost_after_a_block_says_nothing_of_it() {
    for refused in [false, true] {
        let mut world = watched();
        world.hear(blocked(10.0, "a 1#2"));
        if refused {
            world.refuse("a", "1", 3);
        }
        world.hear(told(11.0, "a 1#4", "p", "r/2/5F", "processed"));
        world.give_up("a", "1", 3, 3);
        world.heartbeat(60.0, "a", "1", 4);
        assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Critical);
    }
}

#[test]
fn what_was_held_and_then_accepted_is_known_even_if_no_money_moved() {
    let mut world = watched();
    world.hear(told(10.0, "a 1#2", "p", "r/1/70F", "unknown").with("reason", "held"));
    world.hear(told(12.0, "a 1#3", "p", "r/1/70F", "processed").with("effect", "failed"));
    world.heartbeat(700.0, "a", "1", 3);
    assert!(world.open(Kind::IndeterminateOutcome).is_empty());
}

#[test]
fn a_window_proves_nothing_once_something_in_it_turned_out_failed() {
    let fate = || told(300.0, "a 1#4", "p", "r/1/5", "effect_reported").with("effect", "failed");
    let said = |mode: &str| {
        let mut world = World::new();
        world.heartbeat(0.0, "a", "1", 0);
        world.hear(told(1.0, "a 1#1", "p", "r/1/5", "processed").with("guard_mode", mode));
        world.hear(told(2.0, "a 1#2", "p", "r/2/5", "processed").with("guard_mode", mode));
        let event = told(10.0, "a 1#3", "p", "r/9/7", "replay_blocked").window(2, 4);
        world.hear(event.with("guard_mode", mode));
        world.heartbeat(100.0, "a", "1", 3);
        world
    };
    for mode in ["local", "shared"] {
        let mut world = said(mode);
        let finding = world.only(Kind::FalseBlock);
        assert_eq!(
            (finding.severity, finding.cause.as_str()),
            (Severity::Critical, "not_in_window")
        );
        world.hear(fate());
        world.heartbeat(400.0, "a", "1", 4);
        assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Warning, "{mode}");
        // Booked after all.
        let applied = told(401.0, "a 1#5", "p", "r/1/5", "effect_reported");
        world.hear(applied.with("effect", "applied"));
        world.heartbeat(500.0, "a", "1", 5);
        assert_eq!(world.only(Kind::FalseBlock).severity, Severity::Critical, "{mode}");
    }
}
