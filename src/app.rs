//! The one straight line: config -> store -> metrics -> writer -> judge -> tasks -> server; and
//! the same in reverse at the end.
//!
//! Nothing here decides anything about outcomes. Whoever wants to know what runs, in which order
//! it comes up and what happens at the end, reads this file from top to bottom.

mod tasks;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use self::tasks::{AlertTask, OwnThread, Shared};
use crate::alert::CourierError;
use crate::clock::Clock;
use crate::config::Config;
use crate::ingest::Ingest;
use crate::metrics::MetricsError;
use crate::outcome::Settings;
use crate::store::{Checkpoints, DatabaseLock, Store, StoreError};
use crate::web::Server;

/// How long the parts have from the signal on. Service managers kill after 10 s (Docker's default),
/// so that is the end of all of it; what the judge has not done by its time, it does at the next
/// start, which costs nothing but lag.
const JUDGE_UNTIL: Duration = Duration::from_secs(8);
const REQUESTS_UNTIL: Duration = Duration::from_secs(9);
const DATABASE_UNTIL: Duration = Duration::from_secs(10);

/// The collector, built and bound, not yet serving.
pub struct Application {
    address: SocketAddr,
    server: Server,
    ingest: Ingest,
    judge: OwnThread,
    retention: OwnThread,
    alerts: AlertTask,
    checkpoints: Checkpoints,
    shared: Shared,
    _lock: DatabaseLock,
}

/// Why the collector did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address is taken or not this machine's.
    #[error(
        "can't listen on {address}: {source}; is another dedupwatch running? If not, choose \
         another address with --listen"
    )]
    Listen {
        /// Which address.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The database is locked, broken, newer than the program, or can't be reached.
    #[error("can't use the database {url}: {source}")]
    Store {
        /// Which database.
        url: String,
        /// Why.
        source: StoreError,
    },
    /// The stored totals can't be read.
    #[error("can't go on with the counters: {0}")]
    Metrics(#[from] MetricsError),
    /// The judge's state can't be read back.
    #[error("can't go on with the audit: {0}")]
    Judge(StoreError),
    /// Changed settings of the audit can't be written.
    #[error("can't write the changed settings of the audit into the log ({0}); start it again")]
    Settings(String),
    /// The operating system gives no thread.
    #[error("can't start a thread: {0}")]
    Thread(io::Error),
    /// The webhook's client can't be made.
    #[error(transparent)]
    Webhook(#[from] CourierError),
    /// The server's threads did not come up.
    #[error("can't start the server: {0}")]
    Server(io::Error),
}

impl Application {
    /// Builds all parts. The address is bound first: two collectors started by mistake then never
    /// touch one database.
    pub async fn build(mut config: Config, clock: Clock) -> Result<Self, StartError> {
        let (listener, address) = listen(config.listen)?;
        if config.external_url.is_empty() {
            config.external_url = format!("http://{address}");
        }
        let config = Arc::new(config);
        let told = |source| StartError::Store { url: config.database.to_string(), source };
        let lock = DatabaseLock::take(&config.database).await.map_err(told)?;
        let store = Store::open(&config.database, &config.collector).await.map_err(told)?;
        let checkpoints = Checkpoints::open(&config.database).await.map_err(told)?;
        let shared = Shared::new(store, clock).await?;
        let ingest = Ingest::start(shared.writer(&config)).await.map_err(told)?;
        let judge = OwnThread::judge(shared.judge(&config)).await?;
        set(&shared.store, &ingest, &config.audit).await?;
        let retention = OwnThread::retention(shared.retention(&config))?;
        let alerts = AlertTask::start(shared.alerts(&config)?);
        let state = shared.web(ingest.clone(), config);
        let server = Server::new(listener, state).map_err(StartError::Server)?;
        Ok(Self {
            address,
            server,
            ingest,
            judge,
            retention,
            alerts,
            checkpoints,
            shared,
            _lock: lock,
        })
    }

    /// Where it listens; with port 0 in the configuration, the port that was free.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is done; then takes no more (503), brings to disk what was taken, and
    /// ends within 10 s. It ends with an error if a part ends by itself: a collector that serves
    /// pages and audits nothing is worse than one that is started again.
    pub async fn run_until_stopped(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let Self {
            server, ingest, mut judge, mut retention, mut alerts, checkpoints, shared, ..
        } = self;
        let server_stop = server.stop_handle();
        let mut server = tokio::spawn(server.run());
        let ended = tokio::select! {
            () = stop => Ok(()),
            never = checkpoints.run(&shared.store) => never,
            ended = &mut server => Err(anyhow::anyhow!("the server ended: {ended:?}")),
            () = ingest.ended() => Err(anyhow::anyhow!("the writer ended; the log says why")),
            () = judge.ended() => Err(anyhow::anyhow!("the judge ended; the log says why")),
            () = retention.ended() => {
                Err(anyhow::anyhow!("the retention ended; the log says why"))
            }
            () = alerts.ended() => Err(anyhow::anyhow!("the alerts ended; the log says why")),
        };
        let told = Instant::now();
        tracing::info!("stopping: no more outcomes are taken");
        retention.ask_to_stop();
        shared.vitals.set_closing();
        within(told + JUDGE_UNTIL, "outcomes", ingest.shutdown()).await;
        within(told + JUDGE_UNTIL, "the judge", judge.catch_up(&shared.vitals)).await;
        within(told + REQUESTS_UNTIL, "the judge's step", judge.stop()).await;
        within(told + REQUESTS_UNTIL, "the retention's step", retention.stop()).await;
        within(told + REQUESTS_UNTIL, "alerts", alerts.stop()).await;
        within(told + REQUESTS_UNTIL, "requests", server_stop.stop()).await;
        server.abort();
        if let Some(closed) = within(told + DATABASE_UNTIL, "reads", shared.store.close()).await {
            closed?;
        }
        tracing::info!("stopped");
        ended
    }
}

/// Has it written into the log if other settings of the audit hold than before.
async fn set(store: &Store, ingest: &Ingest, settings: &Settings) -> Result<(), StartError> {
    if store.settings_at_end().await.map_err(StartError::Judge)?.as_ref() != Some(settings) {
        ingest
            .set(settings.clone())
            .await
            .map_err(|why| StartError::Settings(format!("{why:?}")))?;
    }
    Ok(())
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let told = |source| StartError::Listen { address, source };
    let listener = TcpListener::bind(address).map_err(told)?;
    let address = listener.local_addr().map_err(told)?;
    Ok((listener, address))
}

/// Waits for a part to end, but not for ever.
async fn within<T>(end: Instant, what: &str, part: impl Future<Output = T>) -> Option<T> {
    let ended = timeout_at(end, part).await.ok();
    if ended.is_none() {
        tracing::warn!("stopping: {what} did not end in time");
    }
    ended
}
