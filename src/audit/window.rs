//! What a guard's window can't have held.
//!
//! A window is known where its source's numbers have no hole from the entry of its oldest
//! signature on, and as many signatures are known as the guard reported. Then a key that isn't
//! among them was not in the window, whatever other sources missed.

use super::facts::Block;
use super::player::{PlayerFacts, Recent};
use super::source::Sources;
use crate::outcome::{GuardMode, Window, WindowScope};

/// Whether the window of a block is known, and the key not in it.
pub(super) fn can_not_hold(
    sources: &Sources,
    player: &PlayerFacts,
    block: &Block,
    signature: i64,
) -> bool {
    let Some(window) = block.window else { return false };
    if window.len == 0 {
        return true;
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
                && stretch
                    .first()
                    .and_then(|oldest| oldest.at.sequence)
                    .is_some_and(|oldest| sources.whole_between(block.at.source, oldest, at))
        })
    })
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
fn known(stretch: &[&Recent], window: Window) -> Option<Vec<i64>> {
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
