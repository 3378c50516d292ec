//! A collector inside the test: its clock and configuration are the test's.

use std::ops::Deref;
use std::sync::Arc;

use dedupwatch::app::Application;
use dedupwatch::clock::Clock;
use dedupwatch::config::Config;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::Api;

/// A running collector. Dropped, it ends with the test.
pub struct TestApp {
    api: Api,
    config: Config,
    clock: Clock,
    folder: Arc<TempDir>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<anyhow::Result<()>>,
}

impl Deref for TestApp {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl TestApp {
    /// One with the machine's clock and no warm-up.
    pub async fn start() -> Self {
        Self::start_with(Clock::System, |_| {}).await
    }

    /// One with this clock; `change` has the last word on the configuration (no warm-up, a free
    /// port, an own database).
    pub async fn start_with(clock: Clock, change: impl FnOnce(&mut Config)) -> Self {
        let folder = Arc::new(tempfile::tempdir().unwrap());
        let mut config = Config {
            listen: "127.0.0.1:0".parse().unwrap(),
            database: format!("sqlite://{}", folder.path().join("test.db").display()).into(),
            ..Config::default()
        };
        config.audit.warmup_us = 0;
        change(&mut config);
        Self::run(config, clock, folder).await
    }

    async fn run(config: Config, clock: Clock, folder: Arc<TempDir>) -> Self {
        let application = Application::build(config.clone(), clock.clone()).await.unwrap();
        let api = Api::new(format!("http://{}", application.address()));
        let (stop, stopped) = oneshot::channel::<()>();
        let task = tokio::spawn(application.run_until_stopped(async move {
            let _ = stopped.await;
        }));
        Self { api, config, clock, folder, stop, task }
    }

    /// Stops it as SIGTERM does.
    pub async fn stop(self) {
        self.stop.send(()).unwrap();
        self.task.await.unwrap().unwrap();
    }

    /// Stops it and starts it again on the same database.
    pub async fn restart(self) -> Self {
        let Self { config, clock, folder, stop, task, .. } = self;
        stop.send(()).unwrap();
        task.await.unwrap().unwrap();
        Self::run(config, clock, folder).await
    }

    /// The clock of the collector.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The database's URL.
    pub fn database(&self) -> &str {
        &self.config.database
    }
}
