//! Money that did not move, or moved elsewhere or unprotected: `accept_without_effect`,
//! `block_after_failed_effect`, `cross_room_booking`, `guard_bypass`.

use std::collections::BTreeMap;

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{Amounts, Effect, Event, GuardMode, Outcome, Reason};

use super::verdict::{Verdict, Verdicts};
use super::world::{Coverage, Key, SKEW_US, World, before, key_of};

/// How long it may still be made good (`block_grace`).
const GRACE_US: i64 = 30_000_000;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    for (key, acceptances) in world.acceptances() {
        failed(world, &key, &acceptances, verdicts);
        elsewhere(&key, &acceptances, verdicts);
    }
    unprotected(world, verdicts);
}

/// Every acceptance failed, and nothing made that good.
fn failed(world: &World, key: &Key, all: &[&Event], verdicts: &mut Verdicts) {
    if all.iter().any(|it| it.effect != Some(Effect::Failed)) {
        return;
    }
    let firsts = all.iter().filter(|one| !all.iter().any(|it| before(it, one)));
    let firsts: Vec<&Event> = firsts.copied().collect();
    let perhaps_evicted = |first: &Event| {
        let mut evictions = world.evictions().into_iter();
        evictions.any(|(event, one)| {
            key_of(event, one) == *key && event != first && !before(first, event)
        })
    };
    let unknowns = world.of_outcome(Outcome::Unknown).remove(key).unwrap_or_default();
    let undecided =
        unknowns.iter().any(|it| !matches!(it.reason, Some(Reason::Held | Reason::InProgress)));
    let mut answers: Vec<(bool, Coverage)> = Vec::new();
    for first in firsts {
        let perhaps_booked = undecided || perhaps_evicted(first);
        let fate = world.fates.of(first);
        let by_then = Event {
            occurred_us: fate.occurred_us + GRACE_US,
            boot: None,
            seq: None,
            ..fate.clone()
        };
        // What is not heard of others by then, within what clocks may differ, shows later.
        let just_before = Event { occurred_us: by_then.occurred_us - SKEW_US, ..by_then.clone() };
        let at = [first, &by_then, &just_before].map(|event| {
            world.coverage(&key.ledger, event.occurred_us - world.rules.horizon_us, event)
        });
        for i in [0, 1] {
            answers.extend([1, 2].map(|j| (perhaps_booked, at[0][i].max(at[j][i]))));
        }
    }
    let (perhaps_booked, coverage) = answers[0];
    let sure = world.lasting && answers.iter().all(|answer| *answer == answers[0]);
    let certain = coverage == Coverage::Full && !perhaps_booked;
    let severity = if certain { Severity::Critical } else { Severity::Warning };
    let net = world.net(key);
    let amounts = if perhaps_booked || coverage == Coverage::Blind {
        Amounts::at_risk(net)
    } else {
        Amounts::missing(net)
    };
    let verdict = Verdict::of(Kind::AcceptWithoutEffect, key, severity);
    verdicts.key(Verdict { count: all.len() as u64, amounts, ..verdict });
    let blocks = world.of_outcome(Outcome::ReplayBlocked).remove(key).unwrap_or_default();
    if !blocks.is_empty() {
        let verdict = Verdict::of(Kind::BlockAfterFailedEffect, key, severity);
        verdicts.key(Verdict { count: blocks.len() as u64, ..verdict });
    }
    if !sure {
        verdicts.unsure(Kind::AcceptWithoutEffect, key);
        verdicts.unsure(Kind::BlockAfterFailedEffect, key);
    }
}

/// Booked in another room than the signature's.
fn elsewhere(key: &Key, all: &[&Event], verdicts: &mut Verdicts) {
    let moved = all.iter().filter(|it| {
        let room = it.signature.room();
        it.booked_room.is_some()
            && room.is_some()
            && it.booked_room.as_ref() != room
            && !matches!(it.effect, Some(Effect::Failed | Effect::Unknown))
    });
    let nets: Vec<Amounts> = moved.map(|it| Amounts::at_risk(it.signature.net())).collect();
    if !nets.is_empty() {
        let verdict = Verdict::of(Kind::CrossRoomBooking, key, Severity::Critical);
        let count = nets.len() as u64;
        let amounts = nets.into_iter().fold(Amounts::default(), Amounts::plus);
        verdicts.key(Verdict { count, amounts, ..verdict });
    }
}

/// Accepted while the guard was off.
fn unprotected(world: &World, verdicts: &mut Verdicts) {
    let mut sums: BTreeMap<_, (u64, Amounts)> = BTreeMap::new();
    for event in &world.events {
        let moved = event.is_acceptance() && event.effect != Some(Effect::Failed);
        if moved && event.guard_mode == Some(GuardMode::Off) {
            let (count, amounts) = sums.entry((event.from.clone(), "guard_off")).or_default();
            *count += 1;
            *amounts = amounts.plus(Amounts::at_risk(event.signature.net()));
        }
    }
    for (place, (count, amounts)) in sums {
        let verdict = Verdict::of(Kind::GuardBypass, &place, Severity::Warning);
        verdicts.key(Verdict { count, amounts, ..verdict });
    }
}
