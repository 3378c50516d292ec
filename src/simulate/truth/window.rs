//! Windows that hold less than they should, and windows that are too small.

use std::collections::{BTreeMap, BTreeSet};

use super::{Expected, PlayerOf, Told, Truth, TruthSettings, Wanted};
use crate::outcome::{Boot, Game, Id, Outcome, Signature, SourceName, Window};

/// What was last told of a window.
struct Last<'a> {
    window: Window,
    boot: Boot,
    order: usize,
    outcome: Outcome,
    /// Of the last that was no eviction: a lower one pushes out more than one at a time.
    cap: u64,
    /// It may have given its place back.
    unsure: bool,
    known: BTreeSet<&'a Signature>,
}

/// A player's newest games, newest last, each with what was accepted of it.
type Newest<'a> = Vec<(&'a Game, BTreeSet<&'a Signature>)>;

impl Truth {
    pub(super) fn windows(&self, settings: &TruthSettings, expected: &mut Expected) {
        self.lost_windows(expected);
        self.small_windows(settings, expected);
    }

    fn lost_windows(&self, expected: &mut Expected) {
        let mut windows: BTreeMap<(&SourceName, String, &Id), Last<'_>> = BTreeMap::new();
        for told in &self.told {
            let event = &told.event;
            let Some(window) = event.window else { continue };
            let of = (&event.from, event.ledger(), &event.player);
            let last = windows.remove(&of);
            let whole = last
                .as_ref()
                .is_some_and(|last| self.is_whole(&event.from, last.order, told.order));
            let lost = last.as_ref().map_or(0, |last| last.lost(told, window));
            if lost > 0 {
                let wanted = if whole { Wanted::some() } else { Wanted::perhaps() };
                let about = told.source();
                let surely = expected.get("window_lost", &about).is_some_and(|it| it.least > 0);
                if !surely {
                    expected.add("window_lost", about, wanted);
                }
            }
            let cap = match &last {
                Some(last) if event.outcome == Outcome::Evicted => last.cap,
                _ => window.cap,
            };
            let mut known = last.map(|last| last.known).unwrap_or_default();
            known.insert(&event.signature);
            let (boot, order, outcome) = (told.boot, told.order, event.outcome);
            let unsure = event.is_acceptance() && !told.stands();
            windows.insert(of, Last { window, boot, order, outcome, cap, unsure, known });
        }
    }

    /// Acceptances while a player's newest games had more settlements than the window has places.
    fn small_windows(&self, settings: &TruthSettings, expected: &mut Expected) {
        let mut players: BTreeMap<PlayerOf<'_>, Newest<'_>> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            let event = &told.event;
            let Some(game) = event.signature.game() else { continue };
            let games = players.entry((event.ledger(), &event.player)).or_default();
            match games.iter_mut().find(|(other, _)| *other == game) {
                Some((_, settlements)) => drop(settlements.insert(&event.signature)),
                None if told.is_processed() => games.push((game, [&event.signature].into())),
                None => games.insert(0, (game, [&event.signature].into())),
            }
            let old = games.len().saturating_sub(settings.live_games.max(8));
            games.drain(..old);
            let newest = games.iter().rev().take(settings.live_games);
            let needed = newest.map(|(_, settlements)| settlements.len() as u64).sum::<u64>();
            if event.window.is_some_and(|window| needed > window.cap) {
                expected.add("undersized_window", told.source(), Wanted::some());
            }
        }
    }
}

impl Last<'_> {
    /// Signatures that the window should hold and does not.
    fn lost(&self, told: &Told, now: Window) -> u64 {
        let event = &told.event;
        let before = self.window.len.saturating_sub(u64::from(self.unsure));
        let fell = event.evicted.len() as u64;
        let known = self.known.contains(&event.signature);
        let should = match event.outcome {
            Outcome::Evicted => before.saturating_sub(1),
            Outcome::ReplayBlocked | Outcome::Unknown => before,
            _ if self.boot != told.boot && now.len == 1 && now.cap >= 2 => before.max(2),
            _ if fell > 0 => (before + 1).saturating_sub(fell),
            _ if known => before,
            _ => (before + 1).min(self.window.cap),
        };
        // What was pushed out comes before the acceptance that pushed.
        let twice = event.outcome == Outcome::Evicted && self.outcome == Outcome::Evicted;
        should.saturating_sub(now.len) + u64::from(twice && now.cap >= self.cap)
    }
}
