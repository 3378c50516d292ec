//! What the parts hand in to be counted, and what becomes of it: totals with bounded labels.

use std::collections::{BTreeMap, BTreeSet};

use super::buckets::{Buckets, Latency};
use super::labels::{Labels, OTHER, UNREAD};
use crate::audit::{Histogram, Kind, Measured};
use crate::outcome::{DeliveryState, Id, Outcome, SourceName};
use crate::store::totals::Total;

/// Names of the stored totals; a name that was released never changes.
pub(super) mod name {
    /// Labels: service, env, outcome.
    pub(in crate::metrics) const OUTCOMES: &str = "outcomes";
    /// Labels: `check` or `response`, service, env, number of the bucket.
    pub(in crate::metrics) const LATENCY_BUCKET: &str = "latency_bucket";
    /// Labels: `check` or `response`, service, env.
    pub(in crate::metrics) const LATENCY_SUM_US: &str = "latency_sum_us";
    /// Labels: result.
    pub(in crate::metrics) const INGEST_EVENTS: &str = "ingest_events";
    /// Labels: reason.
    pub(in crate::metrics) const REJECTED_EVENTS: &str = "rejected_events";
    /// No labels.
    pub(in crate::metrics) const UNKNOWN_FIELDS: &str = "unknown_fields";
    /// No labels.
    pub(in crate::metrics) const LABEL_OVERFLOW: &str = "label_overflow";
    /// Labels: kind, service, env.
    pub(in crate::metrics) const FINDINGS: &str = "findings";
    /// Labels: check.
    pub(in crate::metrics) const AUDIT_SKIPPED: &str = "audit_skipped";
    /// Labels: service, env, state before, state after.
    pub(in crate::metrics) const TRANSITIONS: &str = "transitions";
    /// Labels: service, env, number of the bucket.
    pub(in crate::metrics) const REPLAY_DISTANCE_BUCKET: &str = "replay_distance_bucket";
    /// Labels: service, env.
    pub(in crate::metrics) const REPLAY_DISTANCE_SUM: &str = "replay_distance_sum";
    /// Labels: service, env, number of the bucket.
    pub(in crate::metrics) const LATE_BUCKET: &str = "late_bucket";
    /// Labels: service, env.
    pub(in crate::metrics) const LATE_SUM_US: &str = "late_sum_us";
    /// Labels: service, env, number of the bucket.
    pub(in crate::metrics) const LATE_GAMES_BUCKET: &str = "late_games_bucket";
    /// Labels: service, env.
    pub(in crate::metrics) const LATE_GAMES_SUM: &str = "late_games_sum";
    /// Labels: receiver, result.
    pub(in crate::metrics) const NOTIFICATIONS: &str = "notifications";
    /// Labels: what.
    pub(in crate::metrics) const REMOVED_ROWS: &str = "removed_rows";
}

/// What one commit of the writer holds. An `evicted` carried by an acceptance counts as an
/// outcome of its own.
#[derive(Clone, Debug, Default)]
pub struct Committed {
    /// By service, env and outcome.
    pub outcomes: BTreeMap<(Id, Id, Outcome), u64>,
    /// By service, env, and states before and after.
    pub transitions: BTreeMap<(Id, Id, (DeliveryState, DeliveryState)), u64>,
    /// By service and env.
    pub latencies: BTreeMap<(Id, Id, Latency), Buckets>,
    /// Events that are new.
    pub written: u64,
    /// Events that were there already.
    pub repeated: u64,
    /// Services and envs whose sources gave a sign of life.
    pub heard: BTreeSet<(Id, Id)>,
    /// Rejected events by error code, and by sender where that could be read.
    pub rejected: BTreeMap<(String, Option<(Id, Id)>), u64>,
    /// Fields that nobody knows: ignored.
    pub unknown_fields: u64,
}

impl Committed {
    /// Counts one rejected event.
    pub fn reject(&mut self, code: &str, from: Option<&SourceName>) {
        let sender = from.map(|from| (from.service.clone(), from.env.clone()));
        *self.rejected.entry((code.to_owned(), sender)).or_default() += 1;
    }
}

/// What one commit of the judge holds.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// Rows that became confirmed, by kind, service and env (as in the finding: may be empty).
    pub confirmed: BTreeMap<(Kind, String, String), u64>,
    /// Checks that were skipped because the order or the evidence was not known, by name.
    pub skipped: BTreeMap<String, u64>,
    /// What the window advisor measured, with service and env.
    pub measured: Vec<(String, String, Measured)>,
}

/// What a commit adds to the stored totals: to be written by that commit, and handed back to
/// [`super::Metrics`] after it.
#[derive(Clone, Debug, Default)]
#[must_use = "a commit that is not handed back to the metrics is not counted"]
pub struct Counted {
    pub(super) totals: Vec<Total>,
    pub(super) rejects: Vec<((String, String), u64)>,
}

impl Counted {
    /// What the transaction must add with `store::totals::add`.
    pub fn totals(&self) -> &[Total] {
        &self.totals
    }

    fn add(&mut self, name: &str, labels: &[&str], value: u64) {
        if value > 0 {
            let value = i64::try_from(value).unwrap_or(i64::MAX);
            let labels = labels.iter().map(ToString::to_string).collect();
            self.totals.push(Total { name: name.into(), labels, value });
        }
    }

    pub(super) fn of_committed(committed: &Committed, labels: &mut Labels) -> Self {
        let mut counted = Self::default();
        let told = committed.outcomes.keys().map(|(service, env, _)| (service, env));
        let told = told.chain(committed.transitions.keys().map(|(service, env, _)| (service, env)));
        for (service, env) in told.chain(committed.heard.iter().map(|(s, e)| (s, e))) {
            labels.admit(service.as_str(), env.as_str());
        }
        counted.add_outcomes(committed, labels);
        for ((service, env, latency), buckets) in &committed.latencies {
            let (service, env) = (labels.service(service.as_str()), labels.env(env.as_str()));
            let latency = latency.as_str();
            for (place, count) in buckets.counts().iter().enumerate() {
                let place = place.to_string();
                counted.add(name::LATENCY_BUCKET, &[latency, &service, &env, &place], *count);
            }
            counted.add(name::LATENCY_SUM_US, &[latency, &service, &env], buckets.sum_us());
        }
        counted.add(name::INGEST_EVENTS, &["written"], committed.written);
        counted.add(name::INGEST_EVENTS, &["repeated"], committed.repeated);
        counted.add(name::INGEST_EVENTS, &["rejected"], committed.rejected.values().sum());
        counted.add(name::UNKNOWN_FIELDS, &[], committed.unknown_fields);
        counted.add_rejected(committed);
        counted
    }

    fn add_outcomes(&mut self, committed: &Committed, labels: &Labels) {
        let mut overflow = 0;
        for ((service, env, outcome), count) in &committed.outcomes {
            let place = Place::of(service, env, labels);
            let values = [&*place.service, &*place.env, outcome.as_str()];
            self.add(name::OUTCOMES, &values, *count);
            overflow += if place.is_shared { *count } else { 0 };
        }
        for ((service, env, (left, entered)), count) in &committed.transitions {
            let place = Place::of(service, env, labels);
            let values = [&*place.service, &*place.env, left.as_str(), entered.as_str()];
            self.add(name::TRANSITIONS, &values, *count);
            overflow += if place.is_shared { *count } else { 0 };
        }
        self.add(name::LABEL_OVERFLOW, &[], overflow);
    }

    fn add_rejected(&mut self, committed: &Committed) {
        for ((code, sender), count) in &committed.rejected {
            self.add(name::REJECTED_EVENTS, &[code], *count);
            let sender = match sender {
                Some((service, env)) => (service.to_string(), env.to_string()),
                None => (UNREAD.to_owned(), UNREAD.to_owned()),
            };
            self.rejects.push((sender, *count));
        }
    }

    pub(super) fn of_judged(judged: &Judged, labels: &Labels) -> Self {
        let mut counted = Self::default();
        for ((kind, service, env), count) in &judged.confirmed {
            let (service, env) = (labels.service(service), labels.env(env));
            counted.add(name::FINDINGS, &[kind.as_str(), &service, &env], *count);
        }
        for (check, count) in &judged.skipped {
            counted.add(name::AUDIT_SKIPPED, &[check], *count);
        }
        for (service, env, measured) in &judged.measured {
            let (service, env) = (labels.service(service), labels.env(env));
            let of = [
                (name::REPLAY_DISTANCE_BUCKET, name::REPLAY_DISTANCE_SUM, &measured.distances),
                (name::LATE_BUCKET, name::LATE_SUM_US, &measured.late_us),
                (name::LATE_GAMES_BUCKET, name::LATE_GAMES_SUM, &measured.late_games),
            ];
            for (buckets, sum, histogram) in of {
                counted.add_histogram((buckets, sum), (&service, &env), histogram);
            }
        }
        counted
    }

    fn add_histogram(
        &mut self,
        (buckets, sum): (&str, &str),
        (service, env): (&str, &str),
        histogram: &Histogram,
    ) {
        for (place, count) in histogram.counts.iter().enumerate() {
            self.add(buckets, &[service, env, &place.to_string()], *count);
        }
        self.add(sum, &[service, env], histogram.sum);
    }

    pub(super) fn of_notified(receiver: &str, result: &str, attempts: u64) -> Self {
        let mut counted = Self::default();
        counted.add(name::NOTIFICATIONS, &[receiver, result], attempts);
        counted
    }

    /// What so many rows of one sort that are removed add.
    pub(super) fn of_removed(what: &str, rows: u64) -> Self {
        let mut counted = Self::default();
        counted.add(name::REMOVED_ROWS, &[what], rows);
        counted
    }
}

/// The label values of a service and an env.
struct Place {
    service: String,
    env: String,
    /// Whether one of them stands for several names.
    is_shared: bool,
}

impl Place {
    fn of(service: &Id, env: &Id, labels: &Labels) -> Self {
        let label = (labels.service(service.as_str()), labels.env(env.as_str()));
        let lost = |label: &str, name: &Id| label == OTHER && name.as_str() != OTHER;
        let is_shared = lost(&label.0, service) || lost(&label.1, env);
        Self { service: label.0, env: label.1, is_shared }
    }
}
