//! `undersized_window`: a window is smaller than a player's two newest games.
//!
//! Asked as of each acceptance that told its window: how many signatures of the games that were
//! live then had been accepted by then. What may have given its place back (an effect that failed
//! or is not known) needs none.

use super::finding::OrderKnown;
use super::order::{Moment, order};
use super::player::{GameFacts, PlayerFacts, Recent};
use super::rule::Context;
use crate::outcome::{GuardMode, WindowScope};

/// An acceptance whose window could not hold the games that were live.
pub(super) struct TooMany {
    pub(super) at: Moment,
    pub(super) needed: usize,
    pub(super) order: OrderKnown,
}

/// What is to be said of the acceptance.
pub(super) enum Standing {
    /// It holds them.
    Fine,
    /// It does not.
    TooMany(TooMany),
    /// That is not known, for this reason.
    Unknown(&'static str),
}

impl PlayerFacts {
    /// Looks whether live games may be too many for a window, as of `at` or of what came after:
    /// cheap, since it is asked of every acceptance with a window.
    pub(super) fn look_for_too_many(&mut self, live_games: u32, at: &Moment, received_us: i64) {
        let too_many = self
            .recent
            .iter()
            .rev()
            .take_while(|recent| recent.at.list_order(at).is_ge())
            .any(|recent| is_about(recent) && self.most(live_games, recent) > cap(recent));
        if too_many {
            self.too_many = Some(received_us);
        }
    }

    /// The most signatures that the games can have which were live as of an acceptance.
    fn most(&self, live_games: u32, recent: &Recent) -> u64 {
        let begun = |game: &&GameFacts| game.accepted.at_us <= recent.at.at_us;
        let rank = |game: &GameFacts| {
            let processed = game.processed.as_ref().filter(|first| first.at_us <= recent.at.at_us);
            let first = processed.unwrap_or(&game.accepted);
            (processed.is_some(), first.at_us, first.position)
        };
        let newer = |game: &GameFacts| {
            let others = self.games.iter().filter(begun);
            others.filter(|other| rank(other) > rank(game)).count()
        };
        let live = self.games.iter().filter(begun);
        let live = live.filter(|game| newer(game) < live_games as usize);
        live.map(|game| game.signatures.len() as u64).sum()
    }
}

/// Whether the rule is about this acceptance.
pub(super) fn is_about(recent: &Recent) -> bool {
    recent.entered
        && !recent.other_guard
        && recent.mode != Some(GuardMode::Off)
        && recent.window.is_some_and(|window| window.scope == WindowScope::Player)
}

fn cap(recent: &Recent) -> u64 {
    recent.window.map_or(u64::MAX, |window| window.cap)
}

/// Judges one acceptance.
pub(super) fn judge(context: Context<'_>, player: &PlayerFacts, recent: &Recent) -> Standing {
    if !is_about(recent) || player.most(context.settings.live_games, recent) <= cap(recent) {
        return Standing::Fine;
    }
    let as_of = &recent.at;
    let live = super::eviction::newest_games(context, player, as_of);
    let Some(oldest) = live.last() else { return Standing::Fine };
    let mut known = OrderKnown::Proven;
    for other in player.games.iter().filter(|other| !live.contains(other)) {
        match super::eviction::is_newer(context.sources, other, oldest, as_of) {
            Some((false, how)) => known = known.max(how),
            Some((true, _)) | None => return Standing::Unknown("undersized_window_order"),
        }
    }
    let mut needed = 0;
    for signature in live.iter().flat_map(|game| &game.signatures) {
        let entries = player.recent.iter().filter(|r| r.entered && r.signature == *signature);
        let by_then = |entry: &&Recent| {
            order(context.sources, &entry.at, as_of).is_some_and(|(order, _)| order.is_le())
        };
        // Of what is not among the newest, it is only known that it was before them.
        let forgotten = entries.clone().next().is_none();
        needed += usize::from(forgotten || !entries.filter(by_then).all(|entry| entry.unsure));
    }
    if needed as u64 <= cap(recent) {
        return Standing::Fine;
    }
    let began_us = live.iter().map(|game| game.accepted.at_us).min().unwrap_or(as_of.at_us);
    let began_us = began_us.min(as_of.at_us);
    if context.ledger.blind(context.sources, began_us, as_of).is_some() {
        return Standing::Unknown("undersized_window_blind");
    }
    Standing::TooMany(TooMany { at: as_of.clone(), needed, order: known })
}
