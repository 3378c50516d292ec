//! What a group counts: outcomes and latencies by minute of occurrence for the pages, and in all
//! for the counters.

use std::collections::BTreeMap;

use crate::limits;
use crate::metrics::{Buckets, Committed, Latency};
use crate::outcome::{DeliveryState, Event, Id, Outcome, SourceName, Transition};
use crate::store::rollups::{LatencyCount, OutcomeCount, Rollups};
use crate::store::transitions::TransitionCount;

/// The counts of one group.
#[derive(Debug, Default)]
pub(super) struct Tally {
    /// For the counters.
    pub(super) committed: Committed,
    outcomes: BTreeMap<(Id, Id, i64, Outcome), u64>,
    latencies: BTreeMap<(Id, Id, i64, Latency), Buckets>,
    moves: BTreeMap<(Id, Id, i64, (DeliveryState, DeliveryState)), u64>,
}

impl Tally {
    /// An event is new. What it evicts counts as outcomes too.
    pub(super) fn write(&mut self, event: &Event) {
        self.committed.written += 1;
        self.outcome(event, event.outcome, 1);
        if !event.evicted.is_empty() {
            self.outcome(event, Outcome::Evicted, event.evicted.len() as u64);
        }
        if let Some(us) = event.check_us {
            self.latency(event, Latency::Check, us);
        }
        if let Some(us) = event.response_us {
            self.latency(event, Latency::Response, us);
        }
    }

    /// A transition is new.
    pub(super) fn move_on(&mut self, transition: &Transition) {
        self.committed.written += 1;
        let (service, env, minute) = place(&transition.from, transition.at_us);
        let states = (transition.left, transition.entered);
        let total = (service.clone(), env.clone(), states);
        *self.committed.transitions.entry(total).or_default() += 1;
        *self.moves.entry((service, env, minute, states)).or_default() += 1;
    }

    /// A source gave a sign of life.
    pub(super) fn hear(&mut self, from: &SourceName) {
        let place = (from.service.clone(), from.env.clone());
        self.committed.heard.insert(place);
    }

    /// An event was there before.
    pub(super) fn repeat(&mut self) {
        self.committed.repeated += 1;
    }

    /// An event was not taken.
    pub(super) fn reject(&mut self, code: &str, from: Option<&SourceName>) {
        self.committed.reject(code, from);
    }

    fn outcome(&mut self, event: &Event, outcome: Outcome, count: u64) {
        let (service, env, minute) = place(&event.from, event.occurred_us);
        let total = (service.clone(), env.clone(), outcome);
        *self.committed.outcomes.entry(total).or_default() += count;
        *self.outcomes.entry((service, env, minute, outcome)).or_default() += count;
    }

    fn latency(&mut self, event: &Event, latency: Latency, us: u64) {
        let (service, env, minute) = place(&event.from, event.occurred_us);
        let total = (service.clone(), env.clone(), latency);
        self.committed.latencies.entry(total).or_default().observe(us);
        self.latencies.entry((service, env, minute, latency)).or_default().observe(us);
    }

    /// The rows by minute.
    pub(super) fn rollups(&self) -> Rollups {
        let outcomes = self.outcomes.iter().map(|((service, env, minute, outcome), count)| {
            let (service, env) = (service.clone(), env.clone());
            OutcomeCount { service, env, minute: *minute, outcome: *outcome, count: *count }
        });
        let latencies =
            self.latencies.iter().map(|((service, env, minute, latency), buckets)| LatencyCount {
                service: service.clone(),
                env: env.clone(),
                minute: *minute,
                metric: latency.as_str(),
                buckets: buckets.counts().to_vec(),
                sum_us: buckets.sum_us(),
            });
        let moves = self.moves.iter().map(|((service, env, minute, (left, entered)), count)| {
            let (service, env, minute) = (service.clone(), env.clone(), *minute);
            TransitionCount { service, env, minute, left: *left, entered: *entered, count: *count }
        });
        Rollups {
            outcomes: outcomes.collect(),
            latencies: latencies.collect(),
            transitions: moves.collect(),
        }
    }
}

fn place(from: &SourceName, at_us: i64) -> (Id, Id, i64) {
    (from.service.clone(), from.env.clone(), at_us.div_euclid(limits::MINUTE_US))
}
