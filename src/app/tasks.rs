//! The parts that run by themselves, and how each is told to end.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::StartError;
use crate::alert::{Alerts, CourierError};
use crate::clock::Clock;
use crate::config::Config;
use crate::ingest::{self, Ingest};
use crate::judge::{self, Judge};
use crate::metrics::{Metrics, MetricsError};
use crate::retention::{self, Retention};
use crate::store::Store;
use crate::vitals::Vitals;
use crate::web::AppState;

/// Between two looks at whether the judge has caught up.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// What most parts work with.
pub(super) struct Shared {
    pub(super) store: Arc<Store>,
    pub(super) vitals: Arc<Vitals>,
    metrics: Arc<Metrics>,
    clock: Clock,
}

impl Shared {
    pub(super) async fn new(store: Store, clock: Clock) -> Result<Self, MetricsError> {
        let (store, vitals) = (Arc::new(store), Arc::new(Vitals::default()));
        let metrics = Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await?;
        Ok(Self { store, vitals, metrics: Arc::new(metrics), clock })
    }

    pub(super) fn writer(&self, config: &Config) -> ingest::Parts {
        ingest::Parts {
            store: Arc::clone(&self.store),
            vitals: Arc::clone(&self.vitals),
            metrics: Arc::clone(&self.metrics),
            clock: self.clock.clone(),
            gap_grace_us: config.audit.gap_grace_us,
        }
    }

    pub(super) fn judge(&self, config: &Config) -> judge::Parts {
        judge::Parts {
            store: Arc::clone(&self.store),
            vitals: Arc::clone(&self.vitals),
            metrics: Arc::clone(&self.metrics),
            clock: self.clock.clone(),
            settings: config.audit.clone(),
            pending_rows: judge::PENDING_ROWS,
        }
    }

    pub(super) fn retention(&self, config: &Config) -> retention::Parts {
        retention::Parts {
            store: Arc::clone(&self.store),
            vitals: Arc::clone(&self.vitals),
            metrics: Arc::clone(&self.metrics),
            clock: self.clock.clone(),
            url: String::from(&*config.database),
            ages: config.retention,
        }
    }

    pub(super) fn alerts(&self, config: &Config) -> Result<Alerts, CourierError> {
        let (store, metrics) = (Arc::clone(&self.store), Arc::clone(&self.metrics));
        Alerts::new(store, metrics, Arc::clone(&self.vitals), self.clock.clone(), config)
    }

    pub(super) fn web(&self, ingest: Ingest, config: Arc<Config>) -> AppState {
        AppState {
            store: Arc::clone(&self.store),
            ingest,
            metrics: Arc::clone(&self.metrics),
            vitals: Arc::clone(&self.vitals),
            clock: self.clock.clone(),
            config,
        }
    }
}

/// A part on a thread of its own: its work is computing, and requests must not wait for it.
pub(super) struct OwnThread {
    stop: watch::Sender<bool>,
    /// Nothing is sent: it is the end of the sender that tells.
    ended: watch::Receiver<()>,
}

impl OwnThread {
    pub(super) async fn judge(parts: judge::Parts) -> Result<Self, StartError> {
        let judge = Judge::open(parts).await.map_err(StartError::Judge)?;
        Self::start("judge", |stopped| judge::run(judge, stopped))
    }

    pub(super) fn retention(parts: retention::Parts) -> Result<Self, StartError> {
        let retention = Retention::new(parts);
        Self::start("retention", |stopped| retention.run_until(stopped))
    }

    fn start<F: Future<Output = ()>>(
        name: &str,
        part: impl FnOnce(watch::Receiver<bool>) -> F + Send + 'static,
    ) -> Result<Self, StartError> {
        let (stop, stopped) = watch::channel(false);
        let (end, ended) = watch::channel(());
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(StartError::Thread)?;
        let run = move || {
            runtime.block_on(part(stopped));
            // Also gone if the line above panics.
            drop(end);
        };
        std::thread::Builder::new().name(name.into()).spawn(run).map_err(StartError::Thread)?;
        Ok(Self { stop, ended })
    }

    /// Done when the thread has ended, however it did.
    pub(super) async fn ended(&mut self) {
        while self.ended.changed().await.is_ok() {}
    }

    /// Done when all that is on disk is judged, or the thread has ended.
    pub(super) async fn catch_up(&self, vitals: &Vitals) {
        while vitals.judged_n() < *vitals.appended().borrow() && self.ended.has_changed().is_ok() {
            sleep(LOOK_EVERY).await;
        }
    }

    /// Lets it end after the step it is at.
    pub(super) fn ask_to_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Ends it after the step it is at.
    pub(super) async fn stop(mut self) {
        self.ask_to_stop();
        self.ended().await;
    }
}

/// The alerts, evaluated and delivered.
pub(super) struct AlertTask {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl AlertTask {
    pub(super) fn start(alerts: Alerts) -> Self {
        let (stop, mut stopped) = watch::channel(false);
        let stopped = async move { drop(stopped.wait_for(|stop| *stop).await) };
        Self { stop, task: tokio::spawn(alerts.run_until(stopped)) }
    }

    /// Done when the task has ended, however it did.
    pub(super) async fn ended(&mut self) {
        // Asked again after its end, the handle would panic.
        if self.task.is_finished() {
            return;
        }
        if let Err(why) = (&mut self.task).await {
            tracing::error!(%why, "the alerts ended");
        }
    }

    pub(super) async fn stop(mut self) {
        self.stop.send_replace(true);
        self.ended().await;
    }
}
