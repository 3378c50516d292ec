//! The one straight line: config -> store -> metrics -> writer -> judge -> tasks -> server; and
//! the same in reverse at the end.
//!
//! Nothing here decides anything about outcomes. Whoever wants to know what runs, in which order
//! it comes up and what happens at the end, reads this file from top to bottom.

use std::future::Future;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use crate::clock::Clock;
use crate::config::Config;
use crate::metrics::{Metrics, MetricsError};
use crate::store::{DatabaseLock, Store, StoreError};
use crate::vitals::Vitals;
use crate::web::{AppState, Server};

/// From the signal to the end: what service managers allow at least (Docker kills after 10 s).
const SHUTDOWN_MAX: Duration = Duration::from_secs(10);

/// The collector, built and bound, not yet serving.
pub struct Application {
    address: SocketAddr,
    server: Server,
    store: Arc<Store>,
    vitals: Arc<Vitals>,
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
    /// The counters can't go on from where they were.
    #[error("can't read the totals behind the counters: {0}")]
    Metrics(MetricsError),
    /// The server's threads did not come up.
    #[error("can't start the server: {0}")]
    Server(io::Error),
}

impl Application {
    /// Builds all parts. The address is bound first: two collectors started by mistake then never
    /// touch one database.
    pub async fn build(mut config: Config, clock: Clock) -> Result<Self, StartError> {
        let listen = |source| StartError::Listen { address: config.listen, source };
        let listener = TcpListener::bind(config.listen).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        if config.external_url.is_empty() {
            config.external_url = format!("http://{address}");
        }
        let config = Arc::new(config);
        let (lock, store) = open_store(&config).await?;
        let vitals = Arc::new(Vitals::default());
        let metrics = Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await;
        let metrics = Arc::new(metrics.map_err(StartError::Metrics)?);
        let state = AppState {
            store: Arc::clone(&store),
            metrics,
            vitals: Arc::clone(&vitals),
            clock,
            config: Arc::clone(&config),
        };
        let server = Server::new(listener, state).map_err(StartError::Server)?;
        Ok(Self { address, server, store, vitals, _lock: lock })
    }

    /// Where it listens; with port 0 in the configuration, the port that was free.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is done; then takes no more, brings to disk what was taken, and ends
    /// within 10 s.
    pub async fn run_until_stopped(self, stop: impl Future<Output = ()>) -> anyhow::Result<()> {
        let server_stop = self.server.stop_handle();
        let server = tokio::spawn(self.server.run());
        stop.await;
        tracing::info!("stopping: no more outcomes are taken");
        let end = Instant::now() + SHUTDOWN_MAX;
        self.vitals.set_closing();
        let in_time = timeout_at(end, async {
            server_stop.stop().await;
        });
        if in_time.await.is_err() {
            tracing::warn!("stopped after 10 s with work left; it is done at the next start");
        }
        server.await??;
        self.store.close().await?;
        tracing::info!("stopped");
        Ok(())
    }
}

async fn open_store(config: &Config) -> Result<(DatabaseLock, Arc<Store>), StartError> {
    let told = |source| StartError::Store { url: config.database.clone(), source };
    let lock = DatabaseLock::take(&config.database).await.map_err(told)?;
    let store = Store::open(&config.database, &config.collector).await.map_err(told)?;
    Ok((lock, Arc::new(store)))
}
