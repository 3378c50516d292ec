//! The time from the push of a second acceptance to its finding.
//!
//! A guard of its own, beside the load, books a settlement twice, in two pushes, again and again,
//! and looks for the finding in the API as a person would.

use std::sync::Arc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::Deserialize;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{ACK_US_MAX, LoadError, SERVICE, Shared};
use crate::outcome::format_us;

/// Between two leaks: a run of half a minute gives 300, enough for a P99.
const EVERY: Duration = Duration::from_millis(100);
/// Between two looks, which is how exact the times are.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// Longest that a finding is looked for.
const LOOK_MAX: Duration = Duration::from_secs(30);

/// The guard without a memory, at work.
pub(super) struct Probe {
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Probed, LoadError>>,
}

/// What it found out.
pub(super) struct Probed {
    /// Events that it pushed.
    pub(super) events: u64,
    /// From the push of the second acceptance to the finding, in microseconds.
    pub(super) findings: Histogram<u64>,
}

#[derive(Deserialize)]
struct Page {
    findings: Vec<serde::de::IgnoredAny>,
}

impl Probe {
    pub(super) fn start(shared: Arc<Shared>) -> Self {
        let (stop, stopped) = oneshot::channel();
        let boot = format_us(shared.started_us);
        Self { stop, task: tokio::spawn(run(shared, boot, stopped)) }
    }

    /// Ends it after the leak at hand.
    pub(super) async fn stop(self) -> Result<Probed, LoadError> {
        let _ = self.stop.send(());
        self.task.await?
    }
}

async fn run(
    shared: Arc<Shared>,
    boot: String,
    mut stop: oneshot::Receiver<()>,
) -> Result<Probed, LoadError> {
    let findings = Histogram::new_with_bounds(1, ACK_US_MAX, 3)?;
    let mut probed = Probed { events: 0, findings };
    let name = ("load-twice", boot.as_str());
    shared.beat(name, 0, "running").await?;
    let mut clock = tokio::time::interval(EVERY);
    while stop.try_recv().is_err() {
        clock.tick().await;
        let player = format!("twice-{boot}-{}", probed.events);
        shared.push(&acceptance(&shared, name, &player, probed.events + 1)).await?;
        let began = Instant::now();
        shared.push(&acceptance(&shared, name, &player, probed.events + 2)).await?;
        probed.events += 2;
        while !is_found(&shared, &player).await? && began.elapsed() < LOOK_MAX {
            tokio::time::sleep(LOOK_EVERY).await;
        }
        let took_us = u64::try_from(began.elapsed().as_micros()).unwrap_or(ACK_US_MAX);
        probed.findings.saturating_record(took_us);
    }
    shared.beat(name, probed.events, "closing").await?;
    Ok(probed)
}

fn acceptance(shared: &Shared, (source, boot): (&str, &str), player: &str, seq: u64) -> String {
    let event = serde_json::json!({
        "service": SERVICE, "env": "prod", "source": source, "boot": boot, "seq": seq,
        "occurred_at": format_us(shared.now.now_us()), "player": player, "outcome": "processed",
        "signature": {"room": "r", "round": "1", "net": "0", "final": true},
    });
    format!("[{event}]")
}

async fn is_found(shared: &Shared, player: &str) -> Result<bool, LoadError> {
    let url = format!("{}/api/v1/findings", shared.settings.target);
    let about = [("ledger", SERVICE), ("player", player), ("kind", "duplicate_leak")];
    let url = reqwest::Url::parse_with_params(&url, about)
        .map_err(|why| LoadError::Refused { status: 0, text: why.to_string() })?;
    let page: Page = shared.http.get(url).send().await?.error_for_status()?.json().await?;
    Ok(!page.findings.is_empty())
}
