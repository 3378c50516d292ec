//! `/metrics`: what Prometheus sees.
//!
//! A counter moves only after the commit that it counts, and goes on from the stored totals after
//! a restart. So whoever commits asks first what the commit adds ([`Metrics::count`]), writes that
//! into its own transaction (`store::totals::add`), and hands it back when the commit is on disk
//! ([`Metrics::committed`]). Gauges are read when they are asked for.

mod buckets;
mod count;
mod families;
mod labels;
mod rejects;
mod samples;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use prometheus::core::{Collector, Desc};
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Histogram, HistogramOpts, Registry, TextEncoder};

pub use self::buckets::{BUCKETS, Buckets, Latency};
pub use self::count::{Committed, Counted, Judged};
use self::labels::Labels;
use self::rejects::Rejects;
pub use self::rejects::{RejectRun, RejectRuns, SLICE_US, SLICES};
use crate::store::gauges::Gauges;
use crate::store::{Store, StoreError};
use crate::vitals::Vitals;

/// The content type of [`Metrics::render`], to the letter: Prometheus 3 takes no other spelling.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

const COMMIT_NAME: &str = "dedupwatch_commit_duration_seconds";
const COMMIT_HELP: &str = "How long commits of the log took, in seconds.";
/// Upper bounds of the commit times, in seconds: a commit is one fsync, at times a checkpoint.
const COMMIT_SECONDS: [f64; 12] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0];

/// Why the metrics can't be had.
#[derive(Debug, thiserror::Error)]
pub enum MetricsError {
    /// Totals or labels can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Two metrics contradict each other: a mistake in the program.
    #[error("metrics: {0}")]
    Registry(#[from] prometheus::Error),
}

/// The counters of one collector.
pub struct Metrics {
    store: Arc<Store>,
    shared: Arc<Shared>,
    registry: Registry,
    commit_seconds: Histogram,
}

struct Shared {
    state: Mutex<State>,
    vitals: Arc<Vitals>,
}

/// The totals mirror the stored ones: name, label values, value.
#[derive(Default)]
struct State {
    totals: BTreeMap<String, BTreeMap<Vec<String>, i64>>,
    labels: Labels,
    rejects: Rejects,
    /// `None` while they can't be read: then they are left out, not shown as 0.
    gauges: Option<Gauges>,
}

impl Metrics {
    /// Goes on from the stored totals.
    pub async fn open(store: Arc<Store>, vitals: Arc<Vitals>) -> Result<Self, MetricsError> {
        let mut state = State::default();
        for total in store.read_totals().await? {
            state.readmit(&total.name, &total.labels);
            let stands = state.entry(&total.name, total.labels);
            *stands = stands.saturating_add(total.value);
        }
        for (service, env) in store.read_services().await? {
            state.labels.admit(&service, &env);
        }
        let registry = Registry::new();
        let options = HistogramOpts::new(COMMIT_NAME, COMMIT_HELP);
        let commit_seconds = Histogram::with_opts(options.buckets(COMMIT_SECONDS.to_vec()))?;
        let shared = Arc::new(Shared { state: Mutex::new(state), vitals });
        registry.register(Box::new(commit_seconds.clone()))?;
        registry.register(Box::new(ProcessCollector::for_self()))?;
        registry.register(Box::new(Families::new(Arc::clone(&shared))?))?;
        Ok(Self { store, shared, registry, commit_seconds })
    }

    /// What the writer's commit will add to the totals. Nothing moves yet.
    pub fn count(&self, committed: &Committed) -> Counted {
        Counted::of_committed(committed, &mut self.shared.lock().labels)
    }

    /// The writer's commit is on disk.
    pub fn committed(&self, counted: &Counted, now_us: i64, took: Duration) {
        self.commit_seconds.observe(took.as_secs_f64());
        let state = &mut *self.shared.lock();
        state.apply(counted);
        for (sender, events) in &counted.rejects {
            state.rejects.add(now_us, sender, *events);
        }
    }

    /// What the judge's commit will add to the totals. Nothing moves yet.
    pub fn count_judged(&self, judged: &Judged) -> Counted {
        Counted::of_judged(judged, &self.shared.lock().labels)
    }

    /// The judge's commit is on disk.
    pub fn judged(&self, counted: &Counted) {
        self.shared.lock().apply(counted);
    }

    /// What so many attempts to notify will add to the totals. Nothing moves yet.
    pub fn count_notified(&self, receiver: &str, result: &str, attempts: u64) -> Counted {
        Counted::of_notified(receiver, result, attempts)
    }

    /// The attempt is noted on disk.
    pub fn notified(&self, counted: &Counted) {
        self.shared.lock().apply(counted);
    }

    /// What so many rows that are removed will add to the totals. Nothing moves yet.
    pub fn count_removed(&self, what: &str, rows: u64) -> Counted {
        Counted::of_removed(what, rows)
    }

    /// They are gone from the disk.
    pub fn removed(&self, counted: &Counted) {
        self.shared.lock().apply(counted);
    }

    /// A receiver is there: its counters start at 0.
    pub fn announce_receiver(&self, receiver: &str) {
        let state = &mut *self.shared.lock();
        for result in ["delivered", "failed", "given_up"] {
            let labels = vec![receiver.to_owned(), result.to_owned()];
            state.entry(count::name::NOTIFICATIONS, labels);
        }
    }

    /// The checks that the audit skipped, and how often.
    pub fn skipped_checks(&self) -> Vec<(String, i64)> {
        let state = self.shared.lock();
        let counts = state.totals.get(count::name::AUDIT_SKIPPED).into_iter().flatten();
        counts.filter_map(|(labels, count)| Some((labels.first()?.clone(), *count))).collect()
    }

    /// The newest rejects by service and env.
    pub fn reject_runs(&self, now_us: i64) -> RejectRuns {
        self.shared.lock().rejects.runs(now_us)
    }

    /// All metrics in the text format; send it as [`CONTENT_TYPE`]. While the database is away,
    /// the gauges that are read from it are left out: an old number would look like a new one.
    pub async fn render(&self) -> Result<String, MetricsError> {
        let gauges = self.store.read_gauges().await;
        if let Err(error) = &gauges {
            tracing::warn!(%error, "the gauges of /metrics can't be read");
        }
        self.shared.lock().gauges = gauges.ok();
        Ok(TextEncoder::new().encode_to_string(&self.registry.gather())?)
    }
}

/// Name with labels, and help, of every metric but the process's own, for the README.
pub fn described() -> impl Iterator<Item = (String, &'static str)> {
    let named = |spec: &families::Spec| match spec.labels {
        [] => spec.name.to_owned(),
        labels => format!("{}{{{}}}", spec.name, labels.join(",")),
    };
    let specs = families::SPECS.iter().map(move |spec| (named(spec), spec.help));
    specs.chain([(COMMIT_NAME.to_owned(), COMMIT_HELP)])
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn entry(&mut self, name: &str, labels: Vec<String>) -> &mut i64 {
        self.totals.entry(name.to_owned()).or_default().entry(labels).or_default()
    }

    fn apply(&mut self, counted: &Counted) {
        for total in &counted.totals {
            let stands = self.entry(&total.name, total.labels.clone());
            *stands = stands.saturating_add(total.value);
        }
    }

    /// Whatever became a label once stays one.
    fn readmit(&mut self, name: &str, labels: &[String]) {
        match (name, labels) {
            (count::name::OUTCOMES, [service, env, _])
            | (count::name::TRANSITIONS, [service, env, _, _]) => self.labels.admit(service, env),
            _ => {}
        }
    }
}

/// The families that are made of totals and gauges.
struct Families {
    shared: Arc<Shared>,
    descriptions: Vec<Desc>,
}

impl Families {
    fn new(shared: Arc<Shared>) -> Result<Self, prometheus::Error> {
        let describe = |spec: &families::Spec| {
            let labels = spec.labels.iter().map(ToString::to_string).collect();
            Desc::new(spec.name.into(), spec.help.into(), labels, std::collections::HashMap::new())
        };
        let descriptions = families::SPECS.iter().map(describe).collect::<Result<_, _>>()?;
        Ok(Self { shared, descriptions })
    }
}

impl Collector for Families {
    fn desc(&self) -> Vec<&Desc> {
        self.descriptions.iter().collect()
    }

    fn collect(&self) -> Vec<MetricFamily> {
        let state = &mut *self.shared.lock();
        families::SPECS.iter().map(|spec| spec.family(state, &self.shared.vitals)).collect()
    }
}
