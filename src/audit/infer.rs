//! Evictions that a guard does not tell, inferred by replaying its window: first in, first out.
//!
//! A guard that tells its window and never an eviction still evicts: what enters a full window
//! pushes the oldest out. Inferred once all that belongs before it had its time to come, only of a
//! private window whose contents are known without a hole, and only while no source of the service
//! tells evictions.

use serde::{Deserialize, Serialize};

use super::eviction::Eviction;
use super::order::Moment;
use super::player::{PlayerFacts, Recent};
use super::rule::Context;
use super::source::{SourceId, Sources};
use super::state::Audit;
use super::table::PlayerKey;
use super::window;
use crate::outcome::{Event, GuardMode, Window, WindowScope};

/// Acceptances into full windows that wait for their grace; as many as are remembered.
pub(super) const UNTOLD_MAX: usize = super::player::RECENT_MAX;

/// An acceptance into a full window that told of no eviction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Untold {
    pub(super) at: Moment,
    pub(super) received_us: i64,
}

/// Whether an acceptance may have pushed something out of its window without telling.
pub(super) fn may_have_evicted(event: &Event) -> bool {
    let is_full = |window: Window| window.cap > 0 && window.len >= window.cap;
    event.evicted.is_empty()
        && event.window.is_some_and(is_full)
        && !matches!(event.guard_mode, Some(GuardMode::Shared | GuardMode::Off))
}

impl PlayerFacts {
    /// What an acceptance pushed out of its window, where that is known.
    pub(super) fn pushed_out(&self, sources: &Sources, at: &Moment) -> Option<&Recent> {
        let accepted = self.recent.iter().find(|recent| recent.entered && recent.at == *at)?;
        let scope = accepted.scope().filter(|scope| *scope != WindowScope::Source)?;
        let alone = self.writers.iter().all(|writer| *writer == at.source);
        if accepted.mode != Some(GuardMode::Local) && !alone {
            return None;
        }
        let (own, until) = (at.source, at.sequence?);
        let mut before: Vec<(_, &Recent)> = self
            .recent
            .iter()
            .filter(|recent| recent.at.source == own && recent.scope() == Some(scope))
            .filter(|recent| scope != WindowScope::Room || recent.room == accepted.room)
            .filter_map(|recent| recent.at.sequence.map(|sequence| (sequence, recent)))
            .filter(|(sequence, _)| sequence.0 == until.0 && *sequence < until)
            .collect();
        before.sort_by_key(|(sequence, _)| *sequence);
        let full = before.last().and_then(|(_, newest)| newest.window)?;
        if full.len < full.cap || accepted.window.is_none_or(|window| window.cap != full.cap) {
            return None;
        }
        let stretch: Vec<&Recent> = before.iter().map(|(_, recent)| *recent).collect();
        let held = (0..stretch.len()).rev().find_map(|start| {
            let held = window::known(stretch.get(start..)?, full)?;
            let oldest = stretch.get(start)?.at.sequence?;
            sources.whole_between(own, oldest, until).then_some(held)
        })?;
        let oldest = held.first().filter(|_| !held.contains(&accepted.signature))?;
        stretch.into_iter().find(|recent| recent.entered && recent.signature == *oldest)
    }
}

impl Audit {
    /// Judges the acceptances of a player that may have pushed something out without telling.
    /// Returns when to look again.
    pub(super) fn settle_untold(
        &mut self,
        key: PlayerKey,
        player: &mut PlayerFacts,
    ) -> Option<i64> {
        let mut due_us: Option<i64> = None;
        let mut kept = Vec::new();
        for untold in std::mem::take(&mut player.untold) {
            let Some(context) = self.context(&player.ledger) else { continue };
            let since_us = context.since_us(&untold.at, untold.received_us);
            let grace_us = since_us.saturating_add(context.settings.eviction_grace_us);
            if context.watermark_us < grace_us {
                due_us = Some(due_us.map_or(grace_us, |due_us: i64| due_us.min(grace_us)));
                kept.push(untold);
                continue;
            }
            if tells_evictions(context, untold.at.source) {
                continue;
            }
            let Some(eviction) = self.inferred(key, player, untold) else { continue };
            if let Some(oldest) = player.watch(eviction) {
                self.let_go(player, &oldest);
            }
        }
        player.untold = kept;
        due_us
    }

    fn inferred(&self, key: PlayerKey, player: &PlayerFacts, of: Untold) -> Option<Eviction> {
        let out = player.pushed_out(&self.sources, &of.at)?;
        let accepted = player.recent.iter().find(|recent| recent.at == of.at)?;
        let facts = self.facts.signatures.get((key, out.signature))?;
        Some(Eviction {
            at: of.at,
            hash: out.signature,
            signature: facts.signature.clone(),
            game: out.game,
            room: out.room,
            inline: true,
            inferred: true,
            reason: None,
            window: accepted.window,
            received_us: of.received_us,
            accepted: facts.accepted.first().map(|accepted| accepted.at.clone()),
            pushed: None,
            counted: None,
            skipped: false,
        })
    }
}

/// Whether the guards of the source's service tell evictions.
fn tells_evictions(context: Context<'_>, source: SourceId) -> bool {
    let Some(own) = context.sources.name(source) else { return false };
    let same = |id: &SourceId| {
        let other = context.sources.get(*id)?;
        let is_same = other.name.service == own.service && other.name.env == own.env;
        Some(is_same && other.tells_evictions)
    };
    context.ledger.sources.iter().any(|id| same(id) == Some(true))
}
