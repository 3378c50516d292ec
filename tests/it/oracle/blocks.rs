//! `false_block` and `unverifiable_block`.

use std::collections::BTreeMap;

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{
    Amounts, Effect, Event, GuardMode, Outcome, Reason, Window, WindowScope,
};

use super::verdict::{Verdict, Verdicts};
use super::world::{Coverage, Key, SKEW_US, World, before, identity, key_of};

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    for (key, blocks) in world.of_outcome(Outcome::ReplayBlocked) {
        let traced = world.evictions().iter().any(|(event, sig)| key_of(event, sig) == key);
        if traced || world.acceptances().contains_key(&key) {
            continue;
        }
        let unknowns = world.of_outcome(Outcome::Unknown).remove(&key).unwrap_or_default();
        // A block after an unknown is never one; nor is one of which that is not known.
        let before_all = |block: &&&Event| unknowns.iter().all(|unknown| before(block, unknown));
        let sure: Vec<&Event> = blocks.iter().filter(before_all).copied().collect();
        let Some(worst) = coverage_of_first(world, &key, &blocks, verdicts) else { continue };
        if sure.is_empty() {
            continue;
        }
        let proven = blocks.iter().any(|block| is_proven(world, block));
        let (kind, severity) = match (proven, worst) {
            (true, _) | (false, Coverage::Full) => (Kind::FalseBlock, Severity::Critical),
            (false, Coverage::Assumed) => (Kind::FalseBlock, Severity::Warning),
            (false, Coverage::Blind) => (Kind::UnverifiableBlock, Severity::Warning),
        };
        if kind == Kind::UnverifiableBlock && !world.lasting {
            verdicts.unsure(Kind::FalseBlock, &key);
            verdicts.unsure(Kind::UnverifiableBlock, &key);
        }
        let net = world.net(&key);
        let amounts = match kind {
            Kind::FalseBlock => Amounts::missing(net),
            _ => Amounts::at_risk(net),
        };
        let count = blocks.len() as u64;
        // Who is watched only later was thought to prove nothing until then.
        let shared = blocks.iter().any(|block| block.guard_mode == Some(GuardMode::Shared));
        let severity = (world.lasting || (proven && !shared)).then_some(severity);
        let verdict = Verdict::of(kind, &key, Severity::Warning);
        verdicts.key(Verdict { count, amounts, severity, ..verdict });
    }
}

/// A key once blocked while somebody was blind stays unverifiable: its first block decides. Which
/// one that is may not be known.
pub fn coverage_of_first(
    world: &World,
    key: &Key,
    blocks: &[&Event],
    verdicts: &mut Verdicts,
) -> Option<Coverage> {
    let may_be_first = |block: &&&Event| !blocks.iter().any(|other| before(other, block));
    let all: Vec<Coverage> = blocks
        .iter()
        .filter(may_be_first)
        .flat_map(|block| {
            let from_us = block.occurred_us - world.rules.horizon_us;
            let holds_something = block.window.is_some_and(|window| window.len > 0);
            let least = if holds_something { Coverage::Assumed } else { Coverage::Full };
            world.coverage(&key.ledger, from_us, block).map(|heard| heard.max(least))
        })
        .collect();
    let first = *all.first()?;
    if all.iter().any(|coverage| *coverage != first) {
        verdicts.unsure(Kind::FalseBlock, key);
        verdicts.unsure(Kind::UnverifiableBlock, key);
    }
    Some(first)
}

/// Its window is known, and so does not hold a key that nobody ever accepted.
pub fn is_proven(world: &World, block: &Event) -> bool {
    matches!(block.reason, None | Some(Reason::Replay))
        && block.window.is_some_and(|window| {
            window.len == 0
                || match block.guard_mode {
                    Some(GuardMode::Shared) => is_pooled(world, block, window),
                    _ => is_known(world, block, window),
                }
        })
}

/// Whether all who put something in the window that they share were heard for so long before a
/// block that as many signatures are known to be in it as it reports.
fn is_pooled(world: &World, block: &Event, window: Window) -> bool {
    if window.scope != WindowScope::Player {
        return false;
    }
    let of_window = |event: &&Event| {
        event.player == block.player
            && event.ledger() == block.ledger()
            && event.window.is_none_or(|other| other.scope == window.scope)
    };
    let told: Vec<&Event> = world.events.iter().filter(of_window).collect();
    let perhaps_left = |identity: &str| {
        told.iter().any(|event| {
            let by_itself = event.outcome == Outcome::Evicted;
            let fell = event.evicted.iter().chain(by_itself.then_some(&event.signature));
            !before(block, event) && fell.into_iter().any(|one| self::identity(one) == identity)
        })
    };
    let mut held: BTreeMap<String, i64> = BTreeMap::new();
    for event in &told {
        let own = identity(&event.signature);
        let entered = event.is_acceptance()
            && event.guard_mode == Some(GuardMode::Shared)
            && !matches!(event.effect, Some(Effect::Failed | Effect::Unknown));
        if entered && before(event, block) && !perhaps_left(&own) {
            let newest_us = held.entry(own).or_insert(i64::MIN);
            *newest_us = event.occurred_us.max(*newest_us);
        }
    }
    let mut entered_us: Vec<i64> = held.into_values().collect();
    entered_us.sort_by_key(|at_us| std::cmp::Reverse(*at_us));
    let oldest = usize::try_from(window.len).ok().and_then(|len| entered_us.get(len - 1));
    oldest.is_some_and(|at_us| {
        let heard = world.coverage(&block.ledger(), at_us - SKEW_US, block);
        heard == [Coverage::Full; 2]
    })
}

/// Whether as many signatures are known to be in the window as it reports.
fn is_known(world: &World, block: &Event, window: Window) -> bool {
    let Some((boot, seq)) = block.sequence() else { return false };
    let others_wrote = world.events.iter().any(|event| {
        // What was evicted was accepted once.
        (event.is_acceptance() || event.outcome == Outcome::Evicted)
            && event.from != block.from
            && event.player == block.player
            && event.ledger() == block.ledger()
    });
    let own = match block.guard_mode {
        Some(GuardMode::Local) => true,
        None => !others_wrote,
        Some(GuardMode::Shared | GuardMode::Off) => false,
    };
    if !own || window.scope != WindowScope::Player || window.len > window.cap.max(1) {
        return false;
    }
    let mut told = Vec::new();
    for event in world.back_from(block, boot, seq) {
        let other_window = event.window.is_some_and(|other| other.scope != window.scope)
            || event.player != block.player
            || event.ledger() != block.ledger();
        if other_window {
            continue;
        }
        if event.is_acceptance() && matches!(event.effect, Some(Effect::Failed | Effect::Unknown)) {
            return false;
        }
        told.insert(0, event);
        if replayed(&told, window.cap) == window.len {
            return true;
        }
    }
    false
}

/// How many signatures a window holds after these, oldest first, if it was empty before.
fn replayed(told: &[&Event], cap: u64) -> u64 {
    let mut held: Vec<String> = Vec::new();
    for event in told {
        let own = identity(&event.signature);
        if event.outcome == Outcome::Evicted {
            held.retain(|one| *one != own);
        } else if event.is_acceptance() {
            let fell: Vec<String> = event.evicted.iter().map(identity).collect();
            held.retain(|one| !fell.contains(one) && *one != own);
            held.push(own);
            while held.len() as u64 > cap.max(1) {
                held.remove(0);
            }
        }
    }
    held.len() as u64
}
