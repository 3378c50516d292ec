//! Outcomes, latencies and moves by minute, moved with the records that they count.

use super::db::{Connection, query, query_as};
use super::transitions::{self, TransitionCount};
use super::{Store, StoreError};
use crate::outcome::{Id, Outcome};

/// Outcomes of one minute to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeCount {
    /// Which service.
    pub service: Id,
    /// Which env.
    pub env: Id,
    /// Which minute of occurrence, counted from 1970.
    pub minute: i64,
    /// Which outcome.
    pub outcome: Outcome,
    /// How many.
    pub count: u64,
}

/// Latencies of one minute to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LatencyCount {
    /// Which service.
    pub service: Id,
    /// Which env.
    pub env: Id,
    /// Which minute of occurrence, counted from 1970.
    pub minute: i64,
    /// `check` or `response`.
    pub metric: &'static str,
    /// How many in each bucket of `limits::LATENCY_BUCKETS_US`, and above.
    pub buckets: Vec<u64>,
    /// Their sum.
    pub sum_us: u64,
}

/// What some records add to the minutes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rollups {
    /// Outcomes by minute.
    pub outcomes: Vec<OutcomeCount>,
    /// Latencies by minute.
    pub latencies: Vec<LatencyCount>,
    /// Moves of deliveries by minute.
    pub transitions: Vec<TransitionCount>,
}

impl Store {
    /// Adds to the rollups in a transaction of their own.
    pub async fn add_rollups(&self, rollups: &Rollups) -> Result<(), StoreError> {
        let mut transaction = self.begin().await?;
        add(&mut transaction, rollups).await?;
        transaction.commit().await?;
        Ok(())
    }
}

/// Adds to the rollups, inside the caller's transaction.
pub(super) async fn add(connection: &mut Connection, rollups: &Rollups) -> Result<(), StoreError> {
    add_outcomes(connection, &rollups.outcomes).await?;
    add_latencies(connection, &rollups.latencies).await?;
    transitions::add(connection, &rollups.transitions).await
}

const OUTCOME_ADD: &str = "INSERT INTO rollups (service, env, minute, outcome, count) \
     VALUES ($1, $2, $3, $4, $5) ON CONFLICT (service, env, minute, outcome) \
     DO UPDATE SET count = rollups.count + excluded.count";

/// Adds outcomes, inside the caller's transaction.
async fn add_outcomes(
    connection: &mut Connection,
    counts: &[OutcomeCount],
) -> Result<(), StoreError> {
    for count in counts {
        query(OUTCOME_ADD)
            .bind(count.service.as_str())
            .bind(count.env.as_str())
            .bind(count.minute)
            .bind(count.outcome.as_str())
            .bind(stored(count.count))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

const LATENCY_READ: &str = "SELECT buckets, sum_us FROM latencies \
     WHERE service = $1 AND env = $2 AND minute = $3 AND metric = $4";
const LATENCY_PUT: &str = "INSERT INTO latencies (service, env, minute, metric, buckets, sum_us) \
     VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (service, env, minute, metric) \
     DO UPDATE SET buckets = excluded.buckets, sum_us = excluded.sum_us";

/// Adds latencies, inside the caller's transaction.
async fn add_latencies(
    connection: &mut Connection,
    counts: &[LatencyCount],
) -> Result<(), StoreError> {
    for count in counts {
        let (service, env) = (count.service.as_str(), count.env.as_str());
        let before: Option<(String, i64)> = query_as(LATENCY_READ)
            .bind(service)
            .bind(env)
            .bind(count.minute)
            .bind(count.metric)
            .fetch_optional(&mut *connection)
            .await?;
        let (buckets, sum_us) = added(before, count)?;
        query(LATENCY_PUT)
            .bind(service)
            .bind(env)
            .bind(count.minute)
            .bind(count.metric)
            .bind(buckets)
            .bind(sum_us)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

fn added(before: Option<(String, i64)>, count: &LatencyCount) -> Result<(String, i64), StoreError> {
    let unreadable = |error: serde_json::Error| StoreError::Unreadable {
        table: "latencies",
        detail: error.to_string(),
    };
    let (buckets, sum_us) = before.unwrap_or_else(|| ("[]".into(), 0));
    let mut buckets: Vec<u64> = serde_json::from_str(&buckets).map_err(unreadable)?;
    buckets.resize(count.buckets.len().max(buckets.len()), 0);
    for (bucket, more) in buckets.iter_mut().zip(&count.buckets) {
        *bucket += more;
    }
    let buckets = serde_json::to_string(&buckets).map_err(unreadable)?;
    Ok((buckets, sum_us.saturating_add(stored(count.sum_us))))
}

/// A sender may claim any latency: a sum stops at the top instead of turning negative.
fn stored(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
