//! Compares what the collector found with the truth, and says each difference on a line.

use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::found::{Comparison, Reported, compare, number};
use super::run::Played;
use super::scrape::audit_lag_s;
use super::truth::{Expected, TruthSettings};
use crate::clock::Clock;

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long the audit may take beyond its graces ...
const PATIENCE_US: i64 = 30_000_000;
/// ... while it is behind the log.
const BEHIND_US_MAX: i64 = 600_000_000;
/// After the graces, so that what they confirm is there. False alarms get this long too.
const MARGIN_US: i64 = 3_000_000;
/// What a guard is expected to try again is wrong only after this (audit.md: 10 min).
const RETRY_US: i64 = 600_000_000;
/// Pages of findings that are read at most; with 1,000 each.
const PAGES_MAX: usize = 1_000;

/// The collector's `[audit]`, as `/api/v1/config` has it.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditSettings {
    eviction_grace_us: String,
    block_grace_us: String,
    gap_grace_us: String,
    warmup_us: String,
    horizon_us: String,
    live_games: u32,
}

#[derive(Deserialize)]
struct ConfigAnswer {
    audit: AuditSettings,
}

#[derive(Deserialize)]
struct Page {
    findings: Vec<Reported>,
    next: Option<String>,
}

/// Why nothing could be compared.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The collector did not answer.
    #[error("the collector's API did not answer: {0}")]
    Http(#[from] reqwest::Error),
    /// The answer can't be read.
    #[error("the collector's API answered what can't be read: {0}")]
    Unreadable(String),
}

impl AuditSettings {
    fn truth(&self) -> Result<TruthSettings, CheckError> {
        Ok(TruthSettings {
            live_games: usize::try_from(self.live_games).unwrap_or(usize::MAX),
            warmup_us: number(&self.warmup_us)?,
            horizon_us: number(&self.horizon_us)?,
        })
    }

    /// Until when the audit may wait before it has to be sure. After all goodbyes its time is that
    /// of receipt.
    fn settled_us(
        &self,
        played: &Played,
        ended_us: i64,
        expected: &Expected,
    ) -> Result<i64, CheckError> {
        let losses = expected.must("telemetry_gap") + expected.must("unverifiable_block") > 0;
        let grace_us = number::<i64>(&self.eviction_grace_us)?.max(number(&self.block_grace_us)?);
        let retry_us = if expected.waits_for_retries { RETRY_US } else { 0 };
        let told_us = (played.end_us + grace_us).max(ended_us + retry_us);
        let gaps_us = if losses { ended_us + number::<i64>(&self.gap_grace_us)? } else { 0 };
        Ok(told_us.max(gaps_us).max(ended_us) + MARGIN_US)
    }
}

/// The truth of what was played, to be compared once the graces are over.
pub struct Check {
    played: Played,
    expected: Expected,
    settled_us: i64,
}

impl Check {
    /// Works out the truth, by the settings of the collector.
    pub async fn of(
        http: &reqwest::Client,
        target: &str,
        mut played: Played,
    ) -> Result<Self, CheckError> {
        let ended_us = Clock::System.now_us();
        let config: ConfigAnswer = get(http, &format!("{target}/api/v1/config")).await?;
        let truth = std::mem::take(&mut played.truth);
        let expected = truth.expected(&config.audit.truth()?);
        let settled_us = config.audit.settled_us(&played, ended_us, &expected)?;
        Ok(Self { played, expected, settled_us })
    }

    /// How long the graces of the audit go on.
    pub fn wait_us(&self) -> i64 {
        (self.settled_us - Clock::System.now_us()).max(0)
    }

    /// Waits until they are over, then looks until all is as it must be, for a bounded time.
    pub async fn compare(
        self,
        http: &reqwest::Client,
        target: &str,
    ) -> Result<Comparison, CheckError> {
        let give_up_us = self.settled_us + PATIENCE_US;
        loop {
            let now_us = Clock::System.now_us();
            if now_us >= self.settled_us {
                let found = read_findings(http, target, &self.played).await?;
                let comparison = compare(&self.expected, &found)?;
                let is_over = now_us >= give_up_us + BEHIND_US_MAX
                    || (now_us >= give_up_us && audit_lag_s(http, target).await? <= Some(0.0));
                if comparison.is_right() || is_over {
                    return Ok(comparison);
                }
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

async fn get<T: DeserializeOwned>(http: &reqwest::Client, url: &str) -> Result<T, CheckError> {
    let body = http.get(url).send().await?.error_for_status()?.bytes().await?;
    serde_json::from_slice(&body).map_err(|error| {
        let start: String = String::from_utf8_lossy(&body).chars().take(200).collect();
        CheckError::Unreadable(format!("GET {url}: {error}: {start}"))
    })
}

/// All findings that stand, of the sources that pushed and the books that they wrote to.
async fn read_findings(
    http: &reqwest::Client,
    target: &str,
    played: &Played,
) -> Result<Vec<Reported>, CheckError> {
    let mut found = Vec::new();
    let mut after = String::new();
    for _ in 0..PAGES_MAX {
        let url = format!("{target}/api/v1/findings?limit=1000{after}");
        let page: Page = get(http, &url).await?;
        found.extend(page.findings);
        let Some(next) = page.next else { break };
        let next = percent_encoding::utf8_percent_encode(&next, percent_encoding::NON_ALPHANUMERIC);
        after = format!("&after={next}");
    }
    found.retain(|finding| finding.is_of(&played.sources, &played.ledgers));
    Ok(found)
}
