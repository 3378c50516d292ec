//! `cap_mismatch`: sources of one service tell windows of different capacity.

use super::finding::{Subject, Witness};
use super::fold::Told;
use super::group::Occurrence;
use super::kind::Kind;
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
        let from = &told.event.from;
        let same = self.sources.iter().filter(|source| {
            let name = &source.name;
            name.service == from.service && name.env == from.env && name.source != from.source
        });
        let caps = same.flat_map(|source| &source.caps);
        caps.filter(|(of, _)| *of == scope).map(|(_, cap)| *cap).collect()
    }

    /// How many capacities there are in the service beside the first of each scope.
    fn differing_caps(&self, told: &Told<'_>) -> u64 {
        let own = self.sources.get(told.at.source).map(|source| source.caps.clone());
        let own = own.unwrap_or_default();
        let scopes = [WindowScope::Player, WindowScope::Room, WindowScope::Source];
        let of_scope = |scope: WindowScope| {
            let mine = own.iter().filter(|(of, _)| *of == scope).map(|(_, cap)| *cap);
            let all: std::collections::BTreeSet<u64> =
                self.other_caps(told, scope).into_iter().chain(mine).collect();
            (all.len() as u64).saturating_sub(1)
        };
        scopes.into_iter().map(of_scope).sum()
    }
}
