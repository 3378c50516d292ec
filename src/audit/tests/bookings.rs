//! `cross_room_booking`, `guard_bypass`, `signature_reused`: where money went, and past whom.

use super::*;
use crate::audit::{ReuseAfter, Severity};

const DAY: f64 = 86_400.0;

fn accepted(at: f64, who: &str) -> Told {
    told(at, who, "p", "r/1/70F", "processed")
}

#[test]
fn money_in_another_rooms_book_is_at_risk() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("booked_room", "s"));
    let finding = world.only(Kind::CrossRoomBooking);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Critical));
    assert_eq!((finding.count, finding.amounts.exposure), (1, 70));
    assert_eq!(finding.witnesses[0].text.as_deref(), Some("booked in room s"));
}

#[test]
fn its_own_room_and_no_room_are_no_matter() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("booked_room", "r"));
    world.hear(told(1.0, "a 1#2", "p", "=key/5", "processed").with("booked_room", "s"));
    world.assert_quiet();
}

#[test]
fn what_failed_moved_nobodys_money() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("booked_room", "s").with("effect", "failed"));
    world.hear(accepted(1.0, "a 1#2"));
    world.assert_quiet();
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("booked_room", "s"));
    world.hear(told(5.0, "a 1#2", "p", "r/1/70F", "effect_reported").with("effect", "failed"));
    assert!(world.open(Kind::CrossRoomBooking).is_empty());
}

fn off(at: f64, who: &str, signature: &str) -> Told {
    told(at, who, "p", signature, "processed").with("guard_mode", "off")
}

#[test]
fn acceptances_past_the_guard_are_one_row_with_their_sum() {
    let mut world = World::new();
    world.hear(off(0.0, "a 1#1", "r/1/70F"));
    world.hear(off(1.0, "a 1#2", "r/2/-30F"));
    world.hear(off(2.0, "a 1#3", "r/1/70F"));
    let finding = world.only(Kind::GuardBypass);
    assert_eq!((finding.state, finding.severity), (State::Confirmed, Severity::Warning));
    assert_eq!((finding.count, finding.players, finding.amounts.exposure), (3, 1, 170));
    assert_eq!(world.only(Kind::DuplicateLeak).cause, "guard_off");
}

#[test]
fn ledgers_have_rows_of_their_own() {
    let mut world = World::new();
    world.hear(off(0.0, "a 1#1", "r/1/70F"));
    world.hear(off(1.0, "a 1#2", "r/2/30F").with("ledger", "chips"));
    world.hear(off(1.0, "b 1#1", "r/3/30F"));
    let mut rows: Vec<_> =
        world.open(Kind::GuardBypass).iter().map(|row| row.ledger.clone()).collect();
    rows.sort();
    assert_eq!(rows, [Some("chips".into()), Some("settle".into()), Some("settle".into())]);
}

#[test]
fn past_the_guard_counts_only_what_moved() {
    let mut world = World::new();
    world.hear(off(0.0, "a 1#1", "r/1/70F").with("effect", "failed"));
    world.hear(told(0.5, "a 1#2", "p", "r/9/1", "replay_blocked").with("guard_mode", "off"));
    assert!(world.open(Kind::GuardBypass).is_empty());
    world.hear(off(1.0, "a 1#3", "r/2/30F"));
    world.hear(off(2.0, "a 1#4", "r/3/40F"));
    let fate = |at, who: &str, signature: &str, effect: &str| {
        told(at, who, "p", signature, "effect_reported").with("effect", effect)
    };
    world.hear(fate(3.0, "a 1#5", "r/2/30F", "failed"));
    let finding = world.only(Kind::GuardBypass);
    assert_eq!((finding.count, finding.amounts.exposure), (1, 40));
    world.hear(fate(4.0, "a 1#6", "r/2/30F", "applied"));
    assert_eq!(world.only(Kind::GuardBypass).amounts.exposure, 70);
    world.hear(fate(5.0, "a 1#7", "r/2/30F", "failed"));
    world.hear(fate(6.0, "a 1#8", "r/3/40F", "failed"));
    assert!(world.open(Kind::GuardBypass).is_empty());
}

#[test]
fn acceptances_beyond_those_kept_count_past_the_guard() {
    let mut world = World::new();
    for seq in 1..=100_u32 {
        world.hear(off(f64::from(seq), &format!("a 1#{seq}"), "r/1/1F"));
    }
    let finding = world.only(Kind::GuardBypass);
    assert_eq!((finding.count, finding.amounts.exposure), (100, 100));
}

#[test]
fn a_signature_that_comes_again_after_its_time_is_a_new_use() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1"));
    world.hear(accepted(90.1 * DAY, "a 1#2"));
    assert!(world.open(Kind::DuplicateLeak).is_empty());
    let finding = world.only(Kind::SignatureReused);
    assert_eq!((finding.severity, finding.count), (Severity::Info, 1));
    // A replay of the second use is a leak as ever.
    world.hear(accepted(90.2 * DAY, "a 1#3"));
    assert_eq!(world.only(Kind::DuplicateLeak).amounts.overpaid, 70);
    assert_eq!(world.only(Kind::SignatureReused).count, 1);
}

#[test]
fn within_its_time_it_is_a_leak() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1"));
    world.hear(accepted(90.0 * DAY, "a 1#2"));
    assert_eq!(world.only(Kind::DuplicateLeak).amounts.overpaid, 70);
    assert!(world.open(Kind::SignatureReused).is_empty());
}

#[test]
fn one_ref_is_one_booking_however_late() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("ref", "h1"));
    world.hear(accepted(100.0 * DAY, "a 1#2").with("ref", "h1"));
    assert_eq!(world.only(Kind::DuplicateLeak).amounts.overpaid, 70);
    assert!(world.open(Kind::SignatureReused).is_empty());
}

#[test]
fn a_ref_of_an_old_use_is_not_beside_a_new_one() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("ref", "h1"));
    world.hear(accepted(100.0 * DAY, "a 1#2"));
    assert!(world.open(Kind::DuplicateLeak).is_empty());
    world.hear(accepted(101.0 * DAY, "a 1#3"));
    assert_eq!(world.only(Kind::DuplicateLeak).count, 1);
}

#[test]
fn a_ledger_may_say_another_time() {
    let reuse_after = ReuseAfter {
        default_us: 90 * 86_400_000_000,
        of_us: [("chips".to_owned(), 86_400_000_000)].into(),
    };
    let mut world = World::with(Settings { reuse_after, ..settings() });
    for (seq, ledger) in [(1, "chips"), (3, "gold")] {
        let at = |seq| format!("a 1#{seq}");
        world.hear(accepted(0.0, &at(seq)).with("ledger", ledger));
        world.hear(accepted(2.0 * DAY, &at(seq + 1)).with("ledger", ledger));
    }
    assert_eq!(world.only(Kind::DuplicateLeak).ledger.as_deref(), Some("gold"));
    assert_eq!(world.only(Kind::SignatureReused).ledger.as_deref(), Some("chips"));
}

#[test]
fn what_failed_was_no_use() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("effect", "failed"));
    world.hear(accepted(100.0 * DAY, "a 1#2"));
    assert!(world.open(Kind::SignatureReused).is_empty());
}

/// The path of nearly all settlements: no rule runs, nothing is kept beyond the acceptance.
#[test]
fn the_plain_path_stays_plain() {
    let mut world = World::new();
    world.hear(accepted(0.0, "a 1#1").with("effect", "applied").with("booked_room", "r"));
    world.hear(told(1.0, "a 1#2", "p", "r/1/70F", "replay_blocked"));
    let facts: Vec<_> = world.audit.facts.signatures.values().collect();
    assert_eq!(facts.len(), 1);
    assert!(facts[0].is_plain());
    assert!(facts[0].accepted[0].rare.is_none());
}
