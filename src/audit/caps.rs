//! `cap_mismatch`: sources of one service tell windows of different capacity.

use std::collections::BTreeSet;

use super::finding::{Subject, Witness};
use super::fold::Told;
use super::group::Occurrence;
use super::kind::Kind;
use super::source::Source;
use super::state::Audit;
use super::witness;
use crate::outcome::{Amounts, WindowScope};

/// Capacities of one source kept: the smallest. One has one, and another with a deploy.
const CAPS_MAX: usize = 8;

impl Audit {
    /// Takes the capacity that an event tells; compared only where it is news of its source.
    pub(super) fn take_capacity(&mut self, told: &Told<'_>) {
        let Some(window) = told.event.window else { return };
        let from = &told.event.from;
        let Some(own) = self.sources.entry(from, told.at.at_us) else { return };
        let mine = (window.scope, window.cap);
        if !own.caps.insert(mine) {
            return;
        }
        if own.caps.len() > CAPS_MAX && own.caps.pop_last() == Some(mine) {
            return;
        }
        let others = self.other_caps(told, window.scope);
        let Some(other) = others.iter().copied().find(|other| *other != window.cap) else { return };
        let text = format!("a window of {}; another source of the service has {other}", window.cap);
        let witness = witness::plain("capacity", told.at.position, told.at.at_us, from, Some(text));
        let witnesses = vec![Witness { window: Some(window), ..witness }];
        let occurrence =
            Occurrence { at_us: told.at.at_us, amounts: Amounts::default(), witnesses };
        let (service, env) = (from.service.to_string(), from.env.to_string());
        let cause = Kind::CapMismatch.as_str().to_owned();
        let subject =
            Subject::Service { service: service.clone(), env: env.clone(), cause: cause.clone() };
        let differ = self.differing_caps(told);
        let received_us = self.received_us;
        self.group(Kind::CapMismatch, subject, &cause, (service, env, None), |group| {
            group.set(differ, Some(occurrence), received_us);
        });
    }

    /// Capacities that other sources of the service told of windows for the same.
    fn other_caps(&self, told: &Told<'_>, scope: WindowScope) -> Vec<u64> {
        let others = self.of_service(told).filter(|source| source.id != told.at.source);
        others.flat_map(|source| source.caps_of(scope)).collect()
    }

    fn of_service(&self, told: &Told<'_>) -> impl Iterator<Item = &Source> {
        let from = &told.event.from;
        self.sources
            .iter()
            .filter(|source| source.name.service == from.service && source.name.env == from.env)
    }

    /// How many capacities there are in the service beside the first of each scope; one source
    /// by itself may change its own.
    fn differing_caps(&self, told: &Told<'_>) -> u64 {
        let scopes = [WindowScope::Player, WindowScope::Room, WindowScope::Source];
        let of_scope = |scope: WindowScope| {
            let telling = |source: &&Source| source.caps_of(scope).next().is_some();
            let sources: Vec<&Source> = self.of_service(told).filter(telling).collect();
            let caps = sources.iter().flat_map(|source| source.caps_of(scope));
            let caps: BTreeSet<u64> = caps.filter(|_| sources.len() > 1).collect();
            (caps.len() as u64).saturating_sub(1)
        };
        scopes.into_iter().map(of_scope).sum()
    }
}

impl Source {
    fn caps_of(&self, scope: WindowScope) -> impl Iterator<Item = u64> {
        self.caps.iter().filter(move |(of, _)| *of == scope).map(|(_, cap)| *cap)
    }
}
