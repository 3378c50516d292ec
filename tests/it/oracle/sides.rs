//! Two sources whose words do not go together: `replica_disagreement`, `cap_mismatch`,
//! `two_writers`.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{Event, GuardMode, Outcome, Reason, SourceName};

use super::verdict::{Verdict, Verdicts};
use super::world::{SKEW_US, World, before};

/// So many capacities of one source are kept: a bound of the product.
const CAPS_MAX: usize = 8;
/// So many acceptances and evictions of one player are kept: a bound of the product.
const RECENT_MAX: usize = 16;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    disagreements(world, verdicts);
    capacities(world, verdicts);
    writers(world, verdicts);
}

/// One source blocks what another accepts. A block after an acceptance is right; one before it is
/// not, and where the order of the two is not known they still disagree if the settlement had been
/// accepted before both. A block that only says "come again" contradicts nothing.
fn disagreements(world: &World, verdicts: &mut Verdicts) {
    let mut acceptances = world.acceptances();
    for (key, blocks) in world.of_outcome(Outcome::ReplayBlocked) {
        let accepted = acceptances.remove(&key).unwrap_or_default();
        let refusals = blocks
            .iter()
            .filter(|block| !matches!(block.reason, Some(Reason::InProgress | Reason::GuardDown)));
        let contradicts = |block: &Event, accepted_by: &Event| {
            let known_before = |it: &Event| before(it, block) && before(it, accepted_by);
            block.from != accepted_by.from
                && !before(accepted_by, block)
                && (before(block, accepted_by) || accepted.iter().any(|it| known_before(it)))
        };
        let found = refusals
            .flat_map(|block| accepted.iter().map(move |it| (*block, *it)))
            .any(|(block, it)| contradicts(block, it));
        if found {
            verdicts.key(Verdict::of(Kind::ReplicaDisagreement, &key, Severity::Info));
        }
    }
}

/// Sources of one service tell windows for the same of different capacity: how many capacities
/// there are beside one.
fn capacities(world: &World, verdicts: &mut Verdicts) {
    let mut told: BTreeMap<_, BTreeMap<_, BTreeMap<&SourceName, BTreeSet<u64>>>> = BTreeMap::new();
    let mut many: BTreeMap<&SourceName, BTreeSet<_>> = BTreeMap::new();
    for event in &world.events {
        let Some(window) = event.window else { continue };
        let service = (event.from.service.to_string(), event.from.env.to_string());
        let by_scope = told.entry(service).or_default().entry(window.scope).or_default();
        by_scope.entry(&event.from).or_default().insert(window.cap);
        many.entry(&event.from).or_default().insert((window.scope, window.cap));
    }
    for (service, by_scope) in told {
        let others = by_scope.values().map(|by_source| {
            let caps: BTreeSet<&u64> = by_source.values().flatten().collect();
            if by_source.len() > 1 { caps.len() as u64 - 1 } else { 0 }
        });
        let count = others.sum();
        if many.values().any(|caps| caps.len() > CAPS_MAX) {
            verdicts.unsure(Kind::CapMismatch, &service);
        }
        if count > 0 {
            let verdict = Verdict::of(Kind::CapMismatch, &service, Severity::Info);
            verdicts.key(Verdict { count, ..verdict });
        }
    }
}

/// Two sources with private guards accept for one player within a second: each two of them.
fn writers(world: &World, verdicts: &mut Verdicts) {
    let mut by_player: BTreeMap<_, Vec<&Event>> = BTreeMap::new();
    for event in &world.events {
        by_player.entry((event.ledger(), event.player.clone())).or_default().push(event);
    }
    for (place, events) in by_player {
        let private: Vec<&&Event> = events
            .iter()
            .filter(|it| it.is_acceptance() && it.guard_mode == Some(GuardMode::Local))
            .collect();
        let at_once = |one: &Event, other: &Event| {
            one.from != other.from && (one.occurred_us - other.occurred_us).abs() <= SKEW_US
        };
        let pairs = private.iter().enumerate().flat_map(|(at, one)| {
            private[at + 1..].iter().filter(|other| at_once(one, other)).map(move |it| (one, it))
        });
        let pairs: Vec<_> = pairs.collect();
        if pairs.iter().any(|(one, other)| is_forgotten(&events, one, other)) {
            verdicts.unsure(Kind::TwoWriters, &place);
        }
        let count = pairs.len() as u64;
        if count > 0 {
            let verdict = Verdict::of(Kind::TwoWriters, &place, Severity::Info);
            verdicts.key(Verdict { count, ..verdict });
        }
    }
}

/// Whether so much was told that was later than the first of the two, before the second was
/// received, that the first may be remembered no more.
fn is_forgotten(received: &[&Event], first: &Event, second: &Event) -> bool {
    let upto = received.iter().position(|it| *it == second).unwrap_or(0);
    let later = received[..=upto].iter().filter(|it| {
        (it.is_acceptance() || it.outcome == Outcome::Evicted)
            && it.occurred_us >= first.occurred_us
            && **it != first
    });
    later.count() >= RECENT_MAX
}
