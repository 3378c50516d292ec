//! How many events a second the collector puts on disk, or how it does at a given rate.
//!
//! As fast as it goes, it is a closed loop: each connection sends its next batch when the last one
//! is acknowledged. At a given rate each batch has its moment, from which its time is taken
//! whatever the ones before it did; and beside the load a guard without a memory books
//! settlements twice, to measure the time from the push of the second to its finding. The
//! events are honest ones of healthy guards (two settlements a game, a block now and then, full
//! windows with their evictions), so the judge works as it does on a quiet day. Bodies are put
//! together from prepared pieces, since the load shares the machine with what it measures.

mod pieces;
mod probe;

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use serde::Deserialize;

use self::pieces::Pieces;
use self::probe::Probe;
use super::scrape::{audit_lag_s, scrape};
use crate::clock::Clock;
use crate::outcome::format_us;

/// The service that all of it comes from.
const SERVICE: &str = "load";
/// Longest ack that is told apart.
const ACK_US_MAX: u64 = 600_000_000;
/// Pause after a refusal that names none.
const PAUSE: Duration = Duration::from_millis(200);
/// How long the judge is waited for at the end.
const JUDGE_MAX: Duration = Duration::from_secs(600);

/// What is measured.
#[derive(Clone, Debug)]
pub struct LoadSettings {
    /// The collector.
    pub target: String,
    /// Events in all.
    pub events: u64,
    /// Requests on the way at a time.
    pub connections: u64,
    /// Events of a request.
    pub batch: u64,
    /// Events a second; as fast as it goes without.
    pub rate: Option<NonZeroU64>,
}

/// What was measured.
#[derive(Clone, Debug)]
pub struct LoadReport {
    /// Events that the collector wrote.
    pub written: u64,
    /// Events that it had already: tries whose answer was lost.
    pub repeated: u64,
    /// Events that it refused.
    pub rejected: u64,
    /// Requests that were to come again later.
    pub put_off: u64,
    /// From the first request to the last ack.
    pub took: Duration,
    /// From a batch's first try, or the moment at which it was due, to its ack, in microseconds.
    pub acks: Histogram<u64>,
    /// At a given rate: from the push of a second acceptance to its finding in the API, in
    /// microseconds.
    pub findings: Option<Histogram<u64>>,
    /// How many more events the collector counts as written than before; `None` without metrics.
    pub counted: Option<u64>,
    /// How far the judge was behind at the last ack, in seconds.
    pub lag_s: Option<f64>,
    /// From the last ack until the judge was done.
    pub judged_after: Option<Duration>,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The collector did not answer.
    #[error("the collector did not answer: {0}")]
    Http(#[from] reqwest::Error),
    /// The collector said no.
    #[error("the collector answered {status}: {text}")]
    Refused {
        /// With this status.
        status: u16,
        /// In these words.
        text: String,
    },
    /// A connection's task failed.
    #[error("a connection failed: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// The latencies can't be kept.
    #[error("latencies can't be kept: {0}")]
    Histogram(#[from] hdrhistogram::CreationError),
}

impl LoadReport {
    /// Acknowledged events a second.
    #[expect(clippy::cast_precision_loss, reason = "a figure to be read")]
    pub fn rate(&self) -> f64 {
        self.written as f64 / self.took.as_secs_f64().max(f64::MIN_POSITIVE)
    }

    /// Whether each event is there once, as far as was told.
    pub fn is_complete(&self, events: u64) -> bool {
        let counted = self.counted.is_none_or(|counted| counted == events);
        self.written + self.repeated == events && self.rejected == 0 && counted
    }
}

/// Measures.
pub async fn load(
    http: &reqwest::Client,
    settings: &LoadSettings,
) -> Result<LoadReport, LoadError> {
    let before = written_by_now(http, &settings.target).await?;
    let shared = Arc::new(Shared {
        http: http.clone(),
        settings: settings.clone(),
        now: Clock::System,
        started_us: Clock::System.now_us(),
        put_off: AtomicU64::new(0),
    });
    let probe = settings.rate.map(|_| Probe::start(Arc::clone(&shared)));
    let start = Instant::now();
    let connections: Vec<_> = (0..settings.connections)
        .map(|index| tokio::spawn(Connection::new(index, Arc::clone(&shared)).run()))
        .collect();
    let mut sums = Sums::new()?;
    for connection in connections {
        sums.add(&connection.await??);
    }
    let took = start.elapsed();
    let probed = match probe {
        Some(probe) => Some(probe.stop().await?),
        None => None,
    };
    let lag_s = audit_lag_s(http, &settings.target).await?;
    let judged_after = wait_for_judge(http, &settings.target).await?;
    let after = written_by_now(http, &settings.target).await?;
    let counted = before.zip(after).map(|(before, after)| after.saturating_sub(before));
    let extra = probed.as_ref().map_or(0, |probed| probed.events);
    Ok(LoadReport {
        written: sums.written,
        repeated: sums.repeated,
        rejected: sums.rejected,
        put_off: shared.put_off.load(Ordering::Relaxed),
        took,
        acks: sums.acks,
        counted: counted.map(|counted| counted.saturating_sub(extra)),
        findings: probed.map(|probed| probed.findings),
        lag_s,
        judged_after,
    })
}

struct Shared {
    http: reqwest::Client,
    settings: LoadSettings,
    now: Clock,
    started_us: i64,
    put_off: AtomicU64,
}

struct Sums {
    written: u64,
    repeated: u64,
    rejected: u64,
    acks: Histogram<u64>,
}

impl Sums {
    fn new() -> Result<Self, LoadError> {
        let acks = Histogram::new_with_bounds(1, ACK_US_MAX, 3)?;
        Ok(Self { written: 0, repeated: 0, rejected: 0, acks })
    }

    fn add(&mut self, other: &Self) {
        self.written += other.written;
        self.repeated += other.repeated;
        self.rejected += other.rejected;
        // Same bounds, so it fits.
        let _ = self.acks.add(&other.acks);
    }
}

#[derive(Deserialize)]
struct Answer {
    written: u64,
    repeated: u64,
    rejected: u64,
}

/// One connection, which is one source.
struct Connection {
    shared: Arc<Shared>,
    events: u64,
    pieces: Pieces,
    started: Instant,
}

impl Connection {
    fn new(index: u64, shared: Arc<Shared>) -> Self {
        let LoadSettings { events, connections, .. } = shared.settings;
        let events = events / connections + u64::from(index < events % connections);
        let pieces = Pieces::new(index, shared.started_us);
        Self { shared, events, pieces, started: Instant::now() }
    }

    async fn run(self) -> Result<Sums, LoadError> {
        let mut sums = Sums::new()?;
        self.shared.beat(self.pieces.name(), 0, "running").await?;
        let mut from = 0;
        while from < self.events {
            let to = self.events.min(from + self.shared.settings.batch);
            let start = self.due(from).await;
            let body = self.pieces.batch(from..to, self.shared.now.now_us());
            let answer = self.shared.push(&body).await?;
            let ack_us = u64::try_from(start.elapsed().as_micros()).unwrap_or(ACK_US_MAX);
            sums.acks.saturating_record(ack_us);
            sums.written += answer.written;
            sums.repeated += answer.repeated;
            sums.rejected += answer.rejected;
            from = to;
        }
        self.shared.beat(self.pieces.name(), self.events, "closing").await?;
        Ok(sums)
    }

    /// Waits for the moment of the batch that begins with this event, and says when it was; now,
    /// where there is none.
    async fn due(&self, from: u64) -> Instant {
        let LoadSettings { rate: Some(rate), connections, .. } = &self.shared.settings else {
            return Instant::now();
        };
        // The connections take turns.
        let before = from * connections + self.pieces.index * self.shared.settings.batch;
        let after = Duration::from_micros(before.saturating_mul(1_000_000) / rate.get());
        let due = self.started + after;
        tokio::time::sleep_until(due.into()).await;
        due
    }
}

impl Shared {
    /// Sends a batch until it is acknowledged.
    async fn push(&self, body: &str) -> Result<Answer, LoadError> {
        let url = format!("{}/api/v1/outcomes", self.settings.target);
        loop {
            let request = self.http.post(&url).header(CONTENT_TYPE, "application/json");
            let response = request.body(body.to_owned()).send().await?;
            let status = response.status().as_u16();
            if matches!(status, 429 | 503) {
                let pause = response.headers().get(RETRY_AFTER).and_then(|s| s.to_str().ok());
                let pause = pause.and_then(|s| s.parse().ok()).map_or(PAUSE, Duration::from_secs);
                self.put_off.fetch_add(1, Ordering::Relaxed);
                tokio::time::sleep(pause).await;
                continue;
            }
            let text = response.text().await?;
            return serde_json::from_str(&text).map_err(|_| LoadError::Refused { status, text });
        }
    }

    async fn beat(
        &self,
        (source, boot): (&str, &str),
        last_seq: u64,
        state: &str,
    ) -> Result<(), LoadError> {
        let heartbeat = serde_json::json!({
            "service": SERVICE, "env": "prod", "source": source, "boot": boot,
            "last_seq": last_seq, "at": format_us(self.now.now_us()),
            "ledgers": [SERVICE], "state": state,
        });
        let url = format!("{}/api/v1/heartbeats", self.settings.target);
        let response = self.http.post(url).json(&heartbeat).send().await?;
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        Err(LoadError::Refused { status: status.as_u16(), text: response.text().await? })
    }
}

async fn written_by_now(http: &reqwest::Client, target: &str) -> Result<Option<u64>, LoadError> {
    let name = r#"dedupwatch_ingest_events_total{result="written"}"#;
    Ok(scrape(http, target, name).await?)
}

/// How long the judge takes until it is done.
async fn wait_for_judge(
    http: &reqwest::Client,
    target: &str,
) -> Result<Option<Duration>, LoadError> {
    let start = Instant::now();
    while start.elapsed() < JUDGE_MAX {
        match audit_lag_s(http, target).await? {
            Some(lag_s) if lag_s > 0.0 => tokio::time::sleep(Duration::from_millis(50)).await,
            Some(_) => return Ok(Some(start.elapsed())),
            None => return Ok(None),
        }
    }
    Ok(None)
}
