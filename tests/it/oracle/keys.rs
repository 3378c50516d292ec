//! What was said of one settlement does not go together, or comes again and again: `stuck_claim`,
//! `retry_storm`, `outcome_flip`, `signature_reused`, `ambiguous_equal`.

use std::collections::BTreeSet;

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{Amounts, Effect, Event, Id, Outcome, Reason};

use super::blocks;
use super::verdict::{Verdict, Verdicts};
use super::world::{Coverage, Key, World, before, key_of};

/// So many refusals are many.
const BLOCKS_MANY: usize = 3;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let acceptances = world.acceptances();
    for (key, blocks) in world.of_outcome(Outcome::ReplayBlocked) {
        let accepted = acceptances.get(&key).map_or(&[][..], Vec::as_slice);
        if blocks.len() >= BLOCKS_MANY {
            often(world, &key, &blocks, accepted, verdicts);
        }
        flip(world, &key, &blocks, accepted, verdicts);
        ambiguous(world, &key, &blocks, accepted, verdicts);
    }
    for (key, accepted) in acceptances {
        reused(world, &key, &accepted, verdicts);
    }
}

fn failed(event: &Event) -> bool {
    event.effect == Some(Effect::Failed)
}

fn evictions<'a>(world: &'a World, key: &Key) -> Vec<&'a Event> {
    let evictions = world.evictions().into_iter();
    evictions.filter(|(event, one)| key_of(event, one) == *key).map(|(event, _)| event).collect()
}

/// Of a key never accepted; or of one that was, which is harmless unless nothing of it was booked.
/// What was evicted was accepted.
fn often(
    world: &World,
    key: &Key,
    blocks: &[&Event],
    accepted: &[&Event],
    verdicts: &mut Verdicts,
) {
    let count = blocks.len() as u64;
    if !accepted.is_empty() || !evictions(world, key).is_empty() {
        if accepted.is_empty() || !accepted.iter().all(|it| failed(it)) {
            let verdict = Verdict::of(Kind::RetryStorm, key, Severity::Info);
            verdicts.key(Verdict { count, ..verdict });
        }
        return;
    }
    // As sure as the block that is false: where somebody was blind, only good to know.
    let Some(coverage) = blocks::coverage_of_first(world, key, blocks, verdicts) else { return };
    let proven = blocks.iter().any(|block| blocks::is_proven(world, block));
    let unheard = coverage == Coverage::Blind && !proven;
    let severity = if unheard { Severity::Info } else { Severity::Warning };
    let of_blocks = (Kind::FalseBlock, format!("{key:?}"));
    let known = world.lasting && !verdicts.unsure.contains(&of_blocks);
    let verdict = Verdict::of(Kind::StuckClaim, key, severity);
    let severity = verdict.severity.filter(|_| known);
    verdicts.key(Verdict { count, severity, ..verdict });
}

/// Blocked first, accepted later, in whatever order that is possible. What only says "come again"
/// contradicts nothing.
fn flip(world: &World, key: &Key, blocks: &[&Event], accepted: &[&Event], verdicts: &mut Verdicts) {
    let refusals: Vec<&&Event> = blocks
        .iter()
        .filter(|it| !matches!(it.reason, Some(Reason::InProgress | Reason::GuardDown)))
        .collect();
    let evictions = evictions(world, key);
    let mut booked = accepted.iter().chain(&evictions);
    let refused_before = |one: &&Event| refusals.iter().any(|block| before(block, one));
    if !accepted.is_empty() && booked.all(refused_before) {
        verdicts.key(Verdict::of(Kind::OutcomeFlip, key, Severity::Info));
    }
}

/// Blocked with a ref that differs from the ref of every acceptance. Where one names no ref,
/// nobody can tell; where nothing was booked, it is told as that.
fn ambiguous(
    world: &World,
    key: &Key,
    blocks: &[&Event],
    accepted: &[&Event],
    verdicts: &mut Verdicts,
) {
    let named: BTreeSet<Option<&Id>> = accepted.iter().map(|it| it.reference.as_ref()).collect();
    if accepted.iter().all(|it| failed(it)) || named.contains(&None) {
        return;
    }
    let others: Vec<&&Event> = blocks
        .iter()
        .filter(|it| it.reference.is_some() && !named.contains(&it.reference.as_ref()))
        .collect();
    let refs: BTreeSet<Option<&Id>> = others.iter().map(|it| it.reference.as_ref()).collect();
    if refs.is_empty() {
        return;
    }
    // Whether the one with that ref may have been booked unheard.
    let heard = others
        .iter()
        .flat_map(|it| world.coverage(&key.ledger, it.occurred_us - world.rules.horizon_us, it));
    let blind: BTreeSet<bool> = heard.map(|it| it == Coverage::Blind).collect();
    let severity = if blind.contains(&true) { Severity::Info } else { Severity::Warning };
    let known = blind.len() == 1 && world.lasting;
    let amounts = refs.iter().map(|_| Amounts::at_risk(world.net(key)));
    let amounts = amounts.fold(Amounts::default(), Amounts::plus);
    let verdict = Verdict::of(Kind::AmbiguousEqual, key, severity);
    let severity = verdict.severity.filter(|_| known);
    verdicts.key(Verdict { count: refs.len() as u64, amounts, severity, ..verdict });
}

/// Accepted anew when a signature may be used again: further than that from the beginning of the
/// use before. One ref is one booking, however late.
fn reused(world: &World, key: &Key, accepted: &[&Event], verdicts: &mut Verdicts) {
    let moved: Vec<&Event> = accepted
        .iter()
        .filter(|it| !matches!(it.effect, Some(Effect::Failed | Effect::Unknown)))
        .copied()
        .collect();
    let uses = world.uses(&moved).len();
    if uses > 1 {
        let verdict = Verdict::of(Kind::SignatureReused, key, Severity::Info);
        verdicts.key(Verdict { count: uses as u64 - 1, ..verdict });
    }
}
