//! The samples of each metric: from the totals, from the gauges, and the zeros that make a first
//! event a rise which `increase()` sees.

use std::collections::{BTreeMap, BTreeSet};

use super::State;
use super::buckets::{BUCKETS, Latency};
use super::count::name;
use crate::audit::Kind;
use crate::limits::LATENCY_BUCKETS_US;
use crate::outcome::{Amounts, DeliveryState, Outcome};

/// Label values, and the value.
pub(super) type Samples = BTreeMap<Vec<String>, Value>;

pub(super) enum Value {
    Number(f64),
    /// Upper bounds, counts (not cumulative; the last place is beyond the bounds), sum.
    Buckets {
        upper: Vec<f64>,
        counts: Vec<i64>,
        sum: f64,
    },
}

/// Kinds that say that money is or can be wrong: of a known service they start at 0, so that the
/// first one is a rise that `increase()` sees.
const CRITICAL: [Kind; 3] = [Kind::DuplicateLeak, Kind::FalseBlock, Kind::LiveEviction];

/// A number as Prometheus has it: 53 bits of it are exact.
#[expect(clippy::cast_precision_loss, reason = "the format of Prometheus knows floats alone")]
fn float(number: i128) -> f64 {
    number as f64
}

pub(super) fn approximate(number: impl Into<i128>) -> f64 {
    float(number.into())
}

pub(super) fn seconds(us: i64) -> f64 {
    approximate(us) / 1e6
}

pub(super) fn one(value: f64) -> Samples {
    Samples::from([(Vec::new(), Value::Number(value))])
}

/// A number, once it is known.
pub(super) fn once(number: Option<f64>) -> Samples {
    number.map(one).unwrap_or_default()
}

pub(super) fn stored(state: &State, name: &str) -> Samples {
    let totals = state.totals.get(name).into_iter().flatten();
    totals.map(|(labels, value)| (labels.clone(), Value::Number(approximate(*value)))).collect()
}

pub(super) fn from_zero(state: &State, name: &str, values: &[&str]) -> Samples {
    let zero = |value: &&str| (vec![(*value).to_owned()], Value::Number(0.0));
    let mut samples: Samples = values.iter().map(zero).collect();
    samples.extend(stored(state, name));
    samples
}

/// The service and env labels that outcomes or sources were seen of.
fn known(state: &State) -> BTreeSet<(String, String)> {
    let mut known = BTreeSet::new();
    for labels in state.totals.get(name::OUTCOMES).into_iter().flat_map(BTreeMap::keys) {
        if let [service, env, _] = labels.as_slice() {
            known.insert((service.clone(), env.clone()));
        }
    }
    for (service, env, _) in state.gauges.iter().flat_map(|gauges| gauges.sources.keys()) {
        known.insert((state.labels.service(service), state.labels.env(env)));
    }
    known
}

pub(super) fn outcomes(state: &State) -> Samples {
    let mut samples = Samples::new();
    for (service, env) in known(state) {
        for outcome in Outcome::ALL {
            let labels = vec![service.clone(), env.clone(), outcome.as_str().to_owned()];
            samples.insert(labels, Value::Number(0.0));
        }
    }
    samples.extend(stored(state, name::OUTCOMES));
    samples
}

/// A service that sends any has them all from 0, so that the first illegal one is a rise.
pub(super) fn transitions(state: &State) -> Samples {
    let counted = stored(state, name::TRANSITIONS);
    let mut samples = Samples::new();
    for labels in counted.keys() {
        let [service, env, _, _] = labels.as_slice() else { continue };
        for left in DeliveryState::ALL.map(DeliveryState::as_str) {
            for entered in DeliveryState::ALL.map(DeliveryState::as_str) {
                let labels = [service, env, left, entered].map(str::to_owned);
                samples.insert(labels.into(), Value::Number(0.0));
            }
        }
    }
    samples.extend(counted);
    samples
}

pub(super) fn findings(state: &State) -> Samples {
    let mut samples = Samples::new();
    for (service, env) in known(state) {
        for kind in CRITICAL {
            let labels = vec![kind.as_str().to_owned(), service.clone(), env.clone()];
            samples.insert(labels, Value::Number(0.0));
        }
    }
    samples.extend(stored(state, name::FINDINGS));
    samples
}

pub(super) fn latencies(state: &State, latency: Latency) -> Samples {
    let mut by_labels: BTreeMap<Vec<String>, ([i64; BUCKETS], i64)> = BTreeMap::new();
    for (labels, count) in state.totals.get(name::LATENCY_BUCKET).into_iter().flatten() {
        let [which, service, env, place] = labels.as_slice() else { continue };
        let sample = by_labels.entry(vec![service.clone(), env.clone()]);
        let place = place.parse().unwrap_or(BUCKETS);
        if which == latency.as_str()
            && let Some(bucket) = sample.or_insert(([0; BUCKETS], 0)).0.get_mut(place)
        {
            *bucket = *count;
        }
    }
    for (labels, sum_us) in state.totals.get(name::LATENCY_SUM_US).into_iter().flatten() {
        if let [which, service, env] = labels.as_slice()
            && which == latency.as_str()
            && let Some((_, sum)) = by_labels.get_mut([service.clone(), env.clone()].as_slice())
        {
            *sum = *sum_us;
        }
    }
    let upper: Vec<f64> = LATENCY_BUCKETS_US.iter().map(|us| approximate(*us) / 1e6).collect();
    let sample = |(counts, sum_us): ([i64; BUCKETS], i64)| Value::Buckets {
        upper: upper.clone(),
        counts: counts.into(),
        sum: seconds(sum_us),
    };
    by_labels.into_iter().map(|(labels, counted)| (labels, sample(counted))).collect()
}

/// A histogram of what the judge measured, by the names of its totals. `unit`: how many of what is
/// summed up are one of what is shown.
pub(super) fn measured(
    state: &State,
    (buckets, sum): (&str, &str),
    bounds: &[u64],
    unit: f64,
) -> Samples {
    let upper: Vec<f64> = bounds.iter().map(|bound| approximate(*bound)).collect();
    let mut samples = Samples::new();
    for (labels, count) in state.totals.get(buckets).into_iter().flatten() {
        let [service, env, place] = labels.as_slice() else { continue };
        let labels = vec![service.clone(), env.clone()];
        let total = state.totals.get(sum).and_then(|sums| sums.get(&labels));
        let total = approximate(total.copied().unwrap_or(0)) / unit;
        let sample = samples.entry(labels).or_insert_with(|| Value::Buckets {
            upper: upper.clone(),
            counts: vec![0; bounds.len() + 1],
            sum: total,
        });
        let place = place.parse().unwrap_or(usize::MAX);
        if let Value::Buckets { counts, .. } = sample
            && let Some(bucket) = counts.get_mut(place)
        {
            *bucket = *count;
        }
    }
    samples
}

pub(super) fn capacity(state: &State) -> Samples {
    let mut least: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (service, capacity) in state.gauges.iter().flat_map(|gauges| &gauges.capacity) {
        let known = least.entry(vec![state.labels.service(service)]).or_insert(*capacity);
        *known = (*known).min(*capacity);
    }
    numbers(least.into_iter().map(|(labels, capacity)| (labels, approximate(capacity))))
}

pub(super) fn required(state: &State) -> Samples {
    let mut most: BTreeMap<Vec<String>, u64> = BTreeMap::new();
    for (service, required) in state.gauges.iter().flat_map(|gauges| &gauges.required) {
        let known = most.entry(vec![state.labels.service(service)]).or_default();
        *known = (*known).max(*required);
    }
    numbers(most.into_iter().map(|(labels, required)| (labels, approximate(required))))
}

pub(super) fn open_findings(state: &State) -> Samples {
    let mut counts: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    let known = known(state);
    let Some(gauges) = &state.gauges else { return Samples::new() };
    for (service, _) in known {
        for kind in CRITICAL {
            counts.insert(vec![kind.as_str().to_owned(), service.clone()], 0);
        }
    }
    for ((kind, service, _), (rows, _)) in &gauges.open {
        let labels = vec![kind.clone(), state.labels.service(service)];
        *counts.entry(labels).or_default() += rows;
    }
    numbers(counts.into_iter().map(|(labels, count)| (labels, approximate(count))))
}

pub(super) fn amounts(state: &mut State, part: fn(&Amounts) -> i128) -> Samples {
    let mut sums: BTreeMap<Vec<String>, i128> = BTreeMap::new();
    let open = state.gauges.iter().flat_map(|gauges| &gauges.open);
    // What is about no ledger has no amount of these four sorts.
    for ((_, service, ledger), (_, open)) in open.filter(|((_, _, ledger), _)| !ledger.is_empty()) {
        if let Some(ledger) = state.labels.ledger(ledger) {
            *sums.entry(vec![state.labels.service(service), ledger]).or_default() += part(open);
        }
    }
    numbers(sums.into_iter().map(|(labels, sum)| (labels, float(sum))))
}

pub(super) fn sources(state: &State) -> Samples {
    let mut counts: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for ((service, env, source_state), (count, _)) in
        state.gauges.iter().flat_map(|gauges| &gauges.sources)
    {
        let (service, env) = (state.labels.service(service), state.labels.env(env));
        for zero in ["open", "silent", "closed"] {
            counts.entry(vec![service.clone(), env.clone(), zero.to_owned()]).or_default();
        }
        *counts.entry(vec![service, env, source_state.clone()]).or_default() += count;
    }
    numbers(counts.into_iter().map(|(labels, count)| (labels, approximate(count))))
}

pub(super) fn last_push(state: &State) -> Samples {
    let mut newest: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for ((service, _, _), (_, push_us)) in state.gauges.iter().flat_map(|gauges| &gauges.sources) {
        let last = newest.entry(vec![state.labels.service(service)]).or_insert(*push_us);
        *last = (*last).max(*push_us);
    }
    numbers(newest.into_iter().map(|(labels, push_us)| (labels, seconds(push_us))))
}

pub(super) fn alerts(state: &State) -> Samples {
    let mut counts: BTreeMap<Vec<String>, i64> = BTreeMap::new();
    for (rule, service, env, alert_state) in state.gauges.iter().flat_map(|gauges| &gauges.alerts) {
        let (service, env) = (state.labels.service(service), state.labels.env(env));
        let labels = vec![rule.clone(), service, env, alert_state.clone()];
        *counts.entry(labels).or_default() += 1;
    }
    numbers(counts.into_iter().map(|(labels, count)| (labels, approximate(count))))
}

fn numbers(values: impl Iterator<Item = (Vec<String>, f64)>) -> Samples {
    values.map(|(labels, value)| (labels, Value::Number(value))).collect()
}
