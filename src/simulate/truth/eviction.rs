//! Windows that let go of what could still come back.

use std::collections::BTreeMap;

use super::{Expected, PlayerOf, Told, Truth, TruthSettings};
use crate::outcome::{Boot, Game, Id, Outcome, Signature, SourceName};

/// The games of each player, each with its acceptances.
pub(super) type Games<'a> = BTreeMap<PlayerOf<'a>, BTreeMap<&'a Game, Vec<&'a Told>>>;

impl Truth {
    pub(super) fn live_evictions(&self, settings: &TruthSettings, expected: &mut Expected) {
        let games = self.games();
        for (pushing, gone) in self.evictions() {
            match self.liveness(&games, pushing, gone, settings) {
                Some(false) => {}
                Some(true) => expected.count("live_eviction", pushing.source(), 1, 1),
                None => expected.count("live_eviction", pushing.source(), 0, 1),
            }
        }
    }

    /// Each eviction with the acceptance that caused it: the one that carries it, or the next one
    /// in that window.
    fn evictions(&self) -> Vec<(&Told, &Signature)> {
        let mut apart: BTreeMap<(&SourceName, Boot, &Id), Vec<&Signature>> = BTreeMap::new();
        let mut evictions = Vec::new();
        for told in &self.told {
            let window = (&told.event.from, told.boot, &told.event.player);
            if told.event.outcome == Outcome::Evicted {
                apart.entry(window).or_default().push(&told.event.signature);
            } else if told.event.is_acceptance() {
                let before = apart.remove(&window).into_iter().flatten();
                let inline = told.event.evicted.iter();
                evictions.extend(before.chain(inline).map(|gone| (told, gone)));
            }
        }
        evictions
    }

    /// The games of each player, each with its acceptances.
    pub(super) fn games(&self) -> Games<'_> {
        let mut games: Games<'_> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            if let Some(game) = told.event.signature.game() {
                let player = (told.event.ledger(), &told.event.player);
                games.entry(player).or_default().entry(game).or_default().push(told);
            }
        }
        games
    }

    /// Whether an evicted signature was of one of the player's newest games; `None` where that
    /// can't be known from what was told.
    fn liveness(
        &self,
        games: &Games<'_>,
        pushing: &Told,
        gone: &Signature,
        settings: &TruthSettings,
    ) -> Option<bool> {
        let ledger = pushing.event.ledger();
        let at_us = pushing.event.occurred_us;
        let of_player = games.get(&(ledger.clone(), &pushing.event.player));
        let Some((of_player, own)) =
            of_player.and_then(|games| Some((games, games.get(gone.game()?)?)))
        else {
            return Some(false); // never seen accepted: nothing to be live
        };
        if !own.iter().any(|told| told.event.signature == *gone) {
            return Some(false);
        }
        let (mut surely_newer, mut perhaps_newer) = (0, 0);
        for (_, other) in of_player.iter().filter(|(game, _)| Some(**game) != gone.game()) {
            let (surely, perhaps) = is_newer(other, own, pushing);
            surely_newer += usize::from(surely);
            perhaps_newer += usize::from(perhaps);
        }
        if surely_newer >= settings.live_games {
            return Some(false);
        }
        let began_us = own.iter().map(|told| told.event.occurred_us).min().unwrap_or(at_us);
        let accepted_before =
            own.iter().any(|told| told.order < pushing.order && told.event.signature == *gone);
        let seen = accepted_before
            && !self.was_blind(&ledger, (began_us, at_us))
            && !self.warms_up(&ledger, began_us, settings);
        (seen && perhaps_newer < settings.live_games).then_some(true)
    }
}

/// Whether a game is surely, or perhaps, newer than another, as of an acceptance. Newest by first
/// `processed`; games known only by late acceptances rank behind those.
pub(super) fn is_newer(game: &[&Told], than: &[&Told], as_of: &Told) -> (bool, bool) {
    let processed = || game.iter().filter(|told| told.is_processed());
    let than_processed = || than.iter().filter(|told| told.is_processed());
    let begun = |surely: bool| {
        processed().any(|told| {
            let (before, perhaps) = told.before(as_of);
            told.order == as_of.order || if surely { before } else { perhaps }
        })
    };
    let ranks_behind = than_processed().next().is_none();
    let began_later =
        than_processed().any(|first| processed().all(|told| first.surely_before(told)));
    let began_earlier =
        processed().any(|first| than_processed().all(|told| first.surely_before(told)));
    let surely = begun(true) && (ranks_behind || began_later);
    let perhaps = match processed().next() {
        Some(_) => begun(false) && (ranks_behind || !began_earlier),
        None => ranks_behind,
    };
    (surely, perhaps)
}
