//! The window advisor: how long the windows of a service have to be, before one is too short.
//!
//! The required capacity is the largest of (i) replay distance + 1, over replays that were blocked
//! or leaked, the distance being the number of other signatures accepted between; (ii) at each
//! acceptance, the signatures accepted from the first acceptance of the oldest live one on. Both
//! count what went into *one* window: that of the source, or of all sources that share one; of the
//! room, where windows are for rooms. What is not known is not counted, so a measure is never too
//! high; it waits until nothing can come that makes it lower, and no row is written for an
//! acceptance that says nothing new.

use super::advice::{Advice, Measured, Need, WAITING_MAX, Why};
use super::facts::{Acceptance, Block};
use super::fold::Told;
use super::kind::Kind;
use super::measure::{Found, Known, Measure, What, is_certain, is_heard, measure};
use super::order::{Moment, is_before};
use super::player::PlayerFacts;
use super::row::Row;
use super::state::Audit;
use super::table::PlayerKey;
use crate::outcome::{Effect, GuardMode, Outcome, Reason, WindowScope};

/// Measures of a player that wait for evidence; beyond, the oldest are left out.
const UNMEASURED_MAX: usize = 16;

impl Audit {
    /// The blocks of a key that is now accepted for the first time, as far as it is known.
    pub(super) fn refused_before(&self, told: &Told<'_>) -> Vec<Block> {
        let facts = self.facts.signatures.get((told.player, told.signature));
        let blocks = facts
            .filter(|facts| told.event.is_acceptance() && facts.accepted.is_empty())
            .and_then(|facts| facts.blocks.as_ref());
        blocks.map_or_else(Vec::new, |blocks| {
            std::iter::once(&blocks.first).chain(&blocks.newest).cloned().collect()
        })
    }

    /// Measures what an event says about its window. `refused`: blocks of its key that came before
    /// the acceptance that they repeat.
    pub(super) fn advise_on(&mut self, told: &Told<'_>, refused: &[Block]) {
        let event = told.event;
        let says_nothing = [Outcome::Evicted, Outcome::Unknown, Outcome::EffectReported];
        if says_nothing.contains(&event.outcome) {
            return;
        }
        if let Some(window) = event.window.filter(|window| window.scope != WindowScope::Source) {
            let (service, env) = (event.from.service.as_str(), event.from.env.as_str());
            self.hear_capacity(service, env, told.at.at_us, window.cap);
        }
        let of = |what, at: &Moment| Measure {
            what,
            at: at.clone(),
            received_us: self.received_us,
            signature: told.signature,
            game: event.signature.game().map(|game| game.hash(&self.hash)),
            room: self.room_hash(&event.signature),
            window: event.window,
            mode: event.guard_mode,
            first: None,
        };
        let mut all = Vec::new();
        if !event.is_acceptance() {
            if is_by_window(event.reason) {
                all.push(of(What::Replay { leaked: false }, &told.at));
            }
        } else if !matches!(event.effect, Some(Effect::Failed | Effect::Unknown)) {
            all.push(of(What::Live, &told.at));
            if event.outcome == Outcome::LateAccepted {
                all.push(of(What::Late, &told.at));
            }
            let leaked = self.leaked(told).map(|at| of(What::Replay { leaked: true }, &at));
            all.extend(leaked);
            for block in refused.iter().filter(|block| is_by_window(block.reason)) {
                let (window, mode) = (block.window, block.mode);
                let replay = of(What::Replay { leaked: false }, &block.at);
                all.push(Measure { window, mode, ..replay });
            }
        }
        for of in all {
            let first = self.repeated(told, &of);
            if !matches!(of.what, What::Replay { .. }) || first.is_some() {
                self.advise(told.player, Measure { first, ..of });
            }
        }
    }

    /// The acceptance that leaked, if this one makes one: itself, or the next one where it came
    /// late.
    fn leaked(&self, told: &Told<'_>) -> Option<Moment> {
        let facts = self.facts.signatures.get((told.player, told.signature))?;
        let leaks = |row: &Row| row.is_open() && row.finding.kind == Kind::DuplicateLeak;
        if facts.accepted.len() < 2 || !facts.rows.iter().any(leaks) {
            return None;
        }
        let here = facts.accepted.iter().position(|accepted| accepted.at == told.at)?;
        facts.accepted.get(here.max(1)).map(|accepted| accepted.at.clone())
    }

    /// The acceptance by the same window that a replay repeats.
    fn repeated(&self, told: &Told<'_>, of: &Measure) -> Option<Moment> {
        if !matches!(of.what, What::Replay { .. }) {
            return None;
        }
        let facts = self.facts.signatures.get((told.player, told.signature))?;
        let shared = Some(GuardMode::Shared);
        let same = |accepted: &&Acceptance| {
            (accepted.at.source == of.at.source || (accepted.mode == shared && of.mode == shared))
                && accepted.stands()
                && is_before(&self.sources, &accepted.at, &of.at)
        };
        let last = facts.accepted.iter().filter(same).max_by(|a, b| a.at.list_order(&b.at));
        last.map(|accepted| accepted.at.clone())
    }

    /// Takes the capacity that an event tells.
    pub(super) fn hear_capacity(&mut self, service: &str, env: &str, at_us: i64, capacity: u64) {
        if self.advice(service, env).hear_capacity(at_us, capacity) {
            self.advice_changed(service, env);
        }
    }

    /// Measures an event now, or when it can be.
    pub(super) fn advise(&mut self, player: PlayerKey, of: Measure) {
        let Some(facts) = self.facts.players.get(player) else { return };
        if of.scope() == WindowScope::Source || of.mode == Some(GuardMode::Off) {
            return;
        }
        let known = Known { sources: &self.sources, settings: &self.settings, player: facts };
        let Some(result) = measure(known, &of) else { return };
        if is_certain(known, &of, &result) {
            return self.measured(&of, &result);
        }
        if let Found::Live(need) = &result {
            let Some(name) = self.sources.name(of.at.source).cloned() else { return };
            let advice = self.advice(name.service.as_str(), name.env.as_str());
            if !advice.is_new(of.at.at_us, need.capacity) || advice.waiting >= WAITING_MAX {
                return;
            }
            advice.waiting += 1;
            self.advice_changed(name.service.as_str(), name.env.as_str());
        }
        let Some(facts) = self.facts.players.get_mut(player) else { return };
        facts.unmeasured.push(of);
        if facts.unmeasured.len() > UNMEASURED_MAX {
            let oldest = facts.unmeasured.remove(0);
            self.stop_waiting(&oldest);
            self.skip("window_advisor_too_many");
        }
    }

    /// Measures those of a player whose time has come. Returns when to look again.
    pub(super) fn advise_again(&mut self, facts: &mut PlayerFacts) -> Option<i64> {
        let mut due_us: Option<i64> = None;
        let mut kept = Vec::new();
        for of in std::mem::take(&mut facts.unmeasured) {
            let Some(context) = self.context(&facts.ledger) else { continue };
            let since_us = context.since_us(&of.at, of.received_us);
            let grace_us = since_us.saturating_add(context.settings.eviction_grace_us);
            if context.watermark_us < grace_us {
                due_us = Some(due_us.map_or(grace_us, |due_us: i64| due_us.min(grace_us)));
                kept.push(of);
                continue;
            }
            let result = measure(Known::of(context, facts), &of);
            let heard = of.what != What::Live || is_heard(context, facts, &of);
            self.stop_waiting(&of);
            match result {
                Some(result) if heard => self.measured(&of, &result),
                Some(_) => self.skip("window_advisor_blind"),
                None => {}
            }
        }
        facts.unmeasured = kept;
        due_us
    }

    fn stop_waiting(&mut self, of: &Measure) {
        if of.what != What::Live {
            return;
        }
        let Some(name) = self.sources.name(of.at.source).cloned() else { return };
        let advice = self.advice(name.service.as_str(), name.env.as_str());
        advice.waiting = advice.waiting.saturating_sub(1);
        self.advice_changed(name.service.as_str(), name.env.as_str());
    }

    fn measured(&mut self, of: &Measure, result: &Found) {
        let Some(name) = self.sources.name(of.at.source).cloned() else { return };
        let (service, env) = (name.service.as_str(), name.env.as_str());
        let (at_us, received_us) = (of.at.at_us, self.received_us);
        match *result {
            Found::Live(need) => self.advice(service, env).need(at_us, need, received_us),
            Found::Replay { others: (others, more), is_live } => {
                self.histograms(service, env, at_us).replay(others, more);
                let leaked = of.what == What::Replay { leaked: true };
                let capacity = others.saturating_add(1);
                let why = Why::Replay { others, leaked };
                let advice = self.advice(service, env);
                let is_new = advice.is_new(at_us, capacity) || more;
                if is_new {
                    advice.need(at_us, Need { capacity, more, why }, received_us);
                }
                if !is_live && !leaked {
                    let cap = of.window.map(|window| window.cap);
                    advice.not_live(at_us, cap.filter(|cap| *cap <= capacity), received_us);
                } else if !is_new {
                    return;
                }
            }
            Found::Late { late_us, games } => {
                self.histograms(service, env, at_us).late(late_us, games);
                if !self.advice(service, env).late(at_us, games) {
                    return;
                }
            }
        }
        self.advice_changed(service, env);
    }

    fn histograms(&mut self, service: &str, env: &str, at_us: i64) -> &mut Measured {
        let minute = at_us.div_euclid(60_000_000);
        self.measured.entry((service.to_owned(), env.to_owned(), minute)).or_default()
    }

    pub(super) fn advice(&mut self, service: &str, env: &str) -> &mut Advice {
        if !self.advices.get(service).is_some_and(|envs| envs.contains_key(env)) {
            let envs = self.advices.entry(service.to_owned()).or_default();
            envs.insert(env.to_owned(), Advice::new(service, env));
        }
        let envs = self.advices.entry(service.to_owned()).or_default();
        envs.entry(env.to_owned()).or_default()
    }

    fn advice_changed(&mut self, service: &str, env: &str) {
        self.advices_changed.insert((service.to_owned(), env.to_owned()));
    }
}

/// Whether a block says that the window held the signature.
fn is_by_window(reason: Option<Reason>) -> bool {
    matches!(reason, None | Some(Reason::Replay))
}
