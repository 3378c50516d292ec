//! What a guard's window can't have held.
//!
//! A window is known where its source's numbers have no hole from the entry of its oldest
//! signature on, and as many signatures are known as the guard reported. Then a key that isn't
//! among them was not in the window, whatever other sources missed. A window that several sources
//! share is known from when all of them were heard.

use super::block;
use super::facts::Block;
use super::finding::Coverage;
use super::order::{Moment, SKEW_US, is_before};
use super::player::{PlayerFacts, Recent};
use super::rule::Context;
use crate::outcome::{GuardMode, Window, WindowScope};

/// Whether the window of a block is known, and the key not in it.
pub(super) fn can_not_hold(
    context: Context<'_>,
    player: &PlayerFacts,
    block: &Block,
    signature: i64,
) -> bool {
    let Some(window) = block.window else { return false };
    if window.len == 0 {
        return true;
    }
    if block.mode == Some(GuardMode::Shared) {
        return pooled(context, player, block, window, signature);
    }
    if !is_known(player, block) || window.scope != WindowScope::Player {
        return false;
    }
    let Some(at) = block.at.sequence else { return false };
    let before: Vec<&Recent> = player
        .recent
        .iter()
        .filter(|recent| {
            recent.at.source == block.at.source
                && recent.scope().is_none_or(|scope| scope == window.scope)
                && recent.at.sequence.is_some_and(|sequence| sequence < at)
        })
        .collect();
    (0..before.len()).rev().filter_map(|start| before.get(start..)).any(|stretch| {
        known(stretch, window).is_some_and(|known| {
            !known.contains(&signature)
                && stretch.first().and_then(|oldest| oldest.at.sequence).is_some_and(|oldest| {
                    context.sources.whole_between(block.at.source, oldest, at)
                })
        })
    })
}

/// Whether the shared window of a block is known, and the key not in it: from some moment on all
/// sources were heard, and what they put in since and took out no more is all that it holds.
fn pooled(
    context: Context<'_>,
    player: &PlayerFacts,
    block: &Block,
    window: Window,
    signature: i64,
) -> bool {
    let sources = context.sources;
    // What others said before it may still be on its way.
    if window.scope != WindowScope::Player || !block::is_grace_over(context, block) {
        return false;
    }
    let Some(own) = sources.name(block.at.source) else { return false };
    let same = |recent: &&Recent| {
        let name = sources.name(recent.at.source);
        recent.scope().is_none_or(|scope| scope == window.scope)
            && name.is_some_and(|name| name.service == own.service && name.env == own.env)
    };
    let at_us = |at: &Moment| at.at_us.saturating_add(sources.offset_us(at.source).unwrap_or(0));
    let mut entered: Vec<&Recent> = player
        .recent
        .iter()
        .filter(same)
        .filter(|recent| recent.entered && !recent.unsure)
        .filter(|recent| recent.mode == Some(GuardMode::Shared))
        .filter(|recent| is_before(sources, &recent.at, &block.at))
        .collect();
    entered.sort_by_key(|recent| std::cmp::Reverse(at_us(&recent.at)));
    let perhaps_left = |signature: i64| {
        player.recent.iter().filter(same).any(|recent| {
            let left = (!recent.entered && recent.signature == signature)
                || recent.left.contains(&signature);
            left && !is_before(sources, &block.at, &recent.at)
        })
    };
    let mut known: Vec<i64> = Vec::new();
    for recent in entered {
        if !known.contains(&recent.signature) && !perhaps_left(recent.signature) {
            known.push(recent.signature);
        }
        if known.len() as u64 >= window.len {
            // By the clock of the block's source; clocks of two sources may differ.
            let ahead_us = sources.offset_us(block.at.source).unwrap_or(0);
            let from_us = at_us(&recent.at).saturating_sub(ahead_us).saturating_sub(SKEW_US);
            let heard = context.ledger.heard(sources, from_us, &block.at);
            return heard == Coverage::Full && !known.contains(&signature);
        }
    }
    false
}

/// Whether nobody else writes to the window of a block: it is empty, the instance's own, or
/// undeclared where nobody else wrote for that player.
pub(super) fn is_known(player: &PlayerFacts, block: &Block) -> bool {
    let alone = || player.writers.iter().all(|writer| *writer == block.at.source);
    let is_empty = block.window.is_some_and(|window| window.len == 0);
    is_empty
        || match block.mode {
            Some(GuardMode::Local) => true,
            None => alone(),
            Some(GuardMode::Shared | GuardMode::Off) => false,
        }
}

/// What the window holds after a stretch without a hole; `None` if that is not all.
pub(super) fn known(stretch: &[&Recent], window: Window) -> Option<Vec<i64>> {
    let mut known: Vec<i64> = Vec::new();
    for recent in stretch {
        if recent.unsure {
            return None;
        }
        known.retain(|held| !recent.left.contains(held));
        if recent.entered && !known.contains(&recent.signature) {
            known.push(recent.signature);
        } else if !recent.entered {
            known.retain(|held| *held != recent.signature);
        }
        while known.len() as u64 > window.cap.max(1) {
            known.remove(0);
        }
    }
    (known.len() as u64 == window.len).then_some(known)
}
