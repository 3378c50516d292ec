//! Every metric that is made of stored totals or gauges: its name, its labels, its help. The
//! crate's own counters and histograms begin at 0, so they can't go on after a restart.

use prometheus::proto::{
    Bucket, Counter, Gauge, Histogram, LabelPair, Metric, MetricFamily, MetricType,
};

use super::State;
use super::buckets::Latency;
use super::count::name;
use super::samples::{self, Samples, Value, approximate, one, seconds, stored};
use crate::audit::{DISTANCES, LATE_GAMES, LATE_SECONDS};
use crate::vitals::Vitals;

/// A metric as it is announced.
pub(super) struct Spec {
    pub(super) name: &'static str,
    pub(super) help: &'static str,
    pub(super) labels: &'static [&'static str],
    sort: MetricType,
    samples: fn(&mut State, &Vitals) -> Samples,
}

const COUNTER: MetricType = MetricType::COUNTER;
const GAUGE: MetricType = MetricType::GAUGE;
const HISTOGRAM: MetricType = MetricType::HISTOGRAM;

/// All of them, as the README lists them.
pub(super) const SPECS: [Spec; 31] = [
    Spec {
        name: "dedup_outcomes_total",
        help: "Outcomes that guards reported, each counted once however often it was sent.",
        labels: &["service", "env", "outcome"],
        sort: COUNTER,
        samples: |state, _| samples::outcomes(state),
    },
    Spec {
        name: "dedup_transitions_total",
        help: "Moves of deliveries between states, each counted once however often it was sent; \
               those that are not legal too.",
        labels: &["service", "env", "from", "to"],
        sort: COUNTER,
        samples: |state, _| samples::transitions(state),
    },
    Spec {
        name: "dedup_check_duration_seconds",
        help: "How long guards took to decide, in seconds, as reported in check_us.",
        labels: &["service", "env"],
        sort: HISTOGRAM,
        samples: |state, _| samples::latencies(state, Latency::Check),
    },
    Spec {
        name: "dedup_response_duration_seconds",
        help: "How long settlement services took to answer, in seconds, as reported in \
               response_us.",
        labels: &["service", "env"],
        sort: HISTOGRAM,
        samples: |state, _| samples::latencies(state, Latency::Response),
    },
    Spec {
        name: "dedup_window_capacity",
        help: "The smallest capacity that guards told in the last 15 min, in signatures.",
        labels: &["service"],
        sort: GAUGE,
        samples: |state, _| samples::capacity(state),
    },
    Spec {
        name: "dedup_window_required_capacity",
        help: "The capacity that windows would have needed in the last 7 days, in signatures.",
        labels: &["service"],
        sort: GAUGE,
        samples: |state, _| samples::required(state),
    },
    Spec {
        name: "dedup_replay_distance",
        help: "How many other settlements of the player a window had accepted since the one that \
               was replayed; beyond the bounds is further back than is remembered.",
        labels: &["service", "env"],
        sort: HISTOGRAM,
        samples: |state, _| {
            let names = (name::REPLAY_DISTANCE_BUCKET, name::REPLAY_DISTANCE_SUM);
            samples::measured(state, names, &DISTANCES, 1.0)
        },
    },
    Spec {
        name: "dedup_late_seconds",
        help: "How long after its game's first acceptance a late acceptance came, in seconds.",
        labels: &["service", "env"],
        sort: HISTOGRAM,
        samples: |state, _| {
            let names = (name::LATE_BUCKET, name::LATE_SUM_US);
            samples::measured(state, names, &LATE_SECONDS, 1e6)
        },
    },
    Spec {
        name: "dedup_late_games",
        help: "How many games of the player had begun since, when a late acceptance came.",
        labels: &["service", "env"],
        sort: HISTOGRAM,
        samples: |state, _| {
            let names = (name::LATE_GAMES_BUCKET, name::LATE_GAMES_SUM);
            samples::measured(state, names, &LATE_GAMES, 1.0)
        },
    },
    Spec {
        name: "dedup_findings_total",
        help: "Findings of the audit that became confirmed, in rows.",
        labels: &["kind", "service", "env"],
        sort: COUNTER,
        samples: |state, _| samples::findings(state),
    },
    Spec {
        name: "dedup_open_findings",
        help: "Confirmed findings that are open, in rows.",
        labels: &["kind", "service"],
        sort: GAUGE,
        samples: |state, _| samples::open_findings(state),
    },
    Spec {
        name: "dedup_overpaid_minor_units",
        help: "Paid to players more often than once, confirmed and open, in minor units of the \
               ledger.",
        labels: &["service", "ledger"],
        sort: GAUGE,
        samples: |state, _| samples::amounts(state, |amounts| amounts.overpaid),
    },
    Spec {
        name: "dedup_overcharged_minor_units",
        help: "Taken from players more often than once, confirmed and open, in minor units of \
               the ledger.",
        labels: &["service", "ledger"],
        sort: GAUGE,
        samples: |state, _| samples::amounts(state, |amounts| amounts.overcharged),
    },
    Spec {
        name: "dedup_underpaid_minor_units",
        help: "Owed to players and never paid, confirmed and open, in minor units of the ledger.",
        labels: &["service", "ledger"],
        sort: GAUGE,
        samples: |state, _| samples::amounts(state, |amounts| amounts.underpaid),
    },
    Spec {
        name: "dedup_undercharged_minor_units",
        help: "Owed by players and never taken, confirmed and open, in minor units of the ledger.",
        labels: &["service", "ledger"],
        sort: GAUGE,
        samples: |state, _| samples::amounts(state, |amounts| amounts.undercharged),
    },
    Spec {
        name: "dedup_sources",
        help: "Guard instances by state: open, silent (watched and not heard) or closed (said \
               goodbye).",
        labels: &["service", "env", "state"],
        sort: GAUGE,
        samples: |state, _| samples::sources(state),
    },
    Spec {
        name: "dedup_source_last_push_timestamp_seconds",
        help: "When a source of the service was last heard, in seconds since 1970.",
        labels: &["service"],
        sort: GAUGE,
        samples: |state, _| samples::last_push(state),
    },
    Spec {
        name: "dedup_alerts",
        help: "Alerts by state: pending, firing or resolved.",
        labels: &["alertname", "service", "env", "state"],
        sort: GAUGE,
        samples: |state, _| samples::alerts(state),
    },
    Spec {
        name: "dedupwatch_ingest_events_total",
        help: "Outcomes and transitions received, by what became of them: written, repeated or \
               rejected.",
        labels: &["result"],
        sort: COUNTER,
        samples: |state, _| {
            samples::from_zero(state, name::INGEST_EVENTS, &["written", "repeated", "rejected"])
        },
    },
    Spec {
        name: "dedupwatch_rejected_events_total",
        help: "Outcomes, transitions and heartbeats rejected, by the error code that the \
               sender was told.",
        labels: &["reason"],
        sort: COUNTER,
        samples: |state, _| stored(state, name::REJECTED_EVENTS),
    },
    Spec {
        name: "dedupwatch_unknown_fields_total",
        help: "Fields of outcomes, transitions and heartbeats that nobody knows: ignored.",
        labels: &[],
        sort: COUNTER,
        samples: |state, _| {
            let unknown = stored(state, name::UNKNOWN_FIELDS);
            if unknown.is_empty() { one(0.0) } else { unknown }
        },
    },
    Spec {
        name: "dedupwatch_queue_events",
        help: "Events that wait for the writer.",
        labels: &[],
        sort: GAUGE,
        samples: |_, vitals| one(approximate(vitals.queue_events())),
    },
    Spec {
        name: "dedupwatch_audit_lag_seconds",
        help: "How far the audit is behind the log, in seconds of receipt.",
        labels: &[],
        sort: GAUGE,
        samples: |_, vitals| one(seconds(vitals.audit_lag_us())),
    },
    Spec {
        name: "dedupwatch_audit_skipped_total",
        help: "Checks that the audit skipped because order or evidence was not known.",
        labels: &["check"],
        sort: COUNTER,
        samples: |state, _| stored(state, name::AUDIT_SKIPPED),
    },
    Spec {
        name: "dedupwatch_label_overflow_total",
        help: "Outcomes and transitions counted under the label value other: too many services \
               or envs.",
        labels: &[],
        sort: COUNTER,
        samples: |state, _| {
            let overflow = stored(state, name::LABEL_OVERFLOW);
            if overflow.is_empty() { one(0.0) } else { overflow }
        },
    },
    Spec {
        name: "dedupwatch_notifications_total",
        help: "Attempts to notify a receiver by result: delivered, failed (tried again) or \
               given_up.",
        labels: &["receiver", "result"],
        sort: COUNTER,
        samples: |state, _| stored(state, name::NOTIFICATIONS),
    },
    Spec {
        name: "dedupwatch_database_bytes",
        help: "How much the database and its base hold, in bytes; what is free in them is written \
               to again.",
        labels: &[],
        sort: GAUGE,
        samples: |_, vitals| samples::once(vitals.database_bytes().map(approximate)),
    },
    Spec {
        name: "dedupwatch_database_cap_bytes",
        help: "How much they may hold before the oldest days of the log go, in bytes.",
        labels: &[],
        sort: GAUGE,
        samples: |_, vitals| samples::once(vitals.disk_cap_bytes().map(approximate)),
    },
    Spec {
        name: "dedupwatch_removed_rows_total",
        help: "Rows removed for their age or for the cap: records of the log, or minutes.",
        labels: &["what"],
        sort: COUNTER,
        samples: |state, _| samples::from_zero(state, name::REMOVED_ROWS, &["records", "minutes"]),
    },
    Spec {
        name: "dedupwatch_retention_last_run_timestamp_seconds",
        help: "When what is old was last looked for, in seconds since 1970.",
        labels: &[],
        sort: GAUGE,
        samples: |_, vitals| samples::once(vitals.retained_us().map(seconds)),
    },
    Spec {
        name: "dedupwatch_build_info",
        help: "Always 1; the label says which version runs.",
        labels: &["version"],
        sort: GAUGE,
        samples: |_, _| {
            Samples::from([(vec![env!("CARGO_PKG_VERSION").to_owned()], Value::Number(1.0))])
        },
    },
];

impl Spec {
    /// The metric with its samples of this moment.
    pub(super) fn family(&self, state: &mut State, vitals: &Vitals) -> MetricFamily {
        let samples = (self.samples)(state, vitals);
        let mut family = MetricFamily::default();
        family.set_name(self.name.into());
        family.set_help(self.help.into());
        family.set_field_type(self.sort);
        let metric = |(labels, value): (Vec<String>, Value)| self.metric(labels, &value);
        family.set_metric(samples.into_iter().map(metric).collect());
        family
    }

    fn metric(&self, labels: Vec<String>, value: &Value) -> Metric {
        let pairs = self.labels.iter().zip(labels).map(|(name, value)| {
            let mut pair = LabelPair::default();
            pair.set_name((*name).into());
            pair.set_value(value);
            pair
        });
        let mut metric = Metric::from_label(pairs.collect());
        match value {
            Value::Buckets { upper, counts, sum } => {
                metric.set_histogram(histogram(upper, counts, *sum));
            }
            Value::Number(number) if self.sort == COUNTER => {
                let mut counter = Counter::default();
                counter.set_value(*number);
                metric.set_counter(counter);
            }
            Value::Number(number) => {
                let mut gauge = Gauge::default();
                gauge.set_value(*number);
                metric.set_gauge(gauge);
            }
        }
        metric
    }
}

fn histogram(upper: &[f64], counts: &[i64], sum: f64) -> Histogram {
    let mut cumulative = 0;
    let mut buckets = Vec::new();
    for (count, upper) in counts.iter().zip(upper) {
        cumulative += count.unsigned_abs();
        let mut bucket = Bucket::default();
        bucket.set_cumulative_count(cumulative);
        bucket.set_upper_bound(*upper);
        buckets.push(bucket);
    }
    let mut histogram = Histogram::default();
    histogram.set_bucket(buckets);
    histogram.set_sample_count(counts.iter().map(|count| count.unsigned_abs()).sum());
    histogram.set_sample_sum(sum);
    histogram
}
