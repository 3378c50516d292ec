//! Rates over time, from the per-minute rollups. A minute without any row is one that nothing was
//! heard about, which is not the same as zero.

use super::db::{query_as, query_scalar};
use super::{Store, StoreError};
use crate::limits;

/// Outcomes of one sort in one minute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinuteCount {
    /// Minutes since 1970.
    pub minute: i64,
    /// `processed`, `replay_blocked`, ...
    pub outcome: String,
    /// How many.
    pub count: i64,
}

/// Outcomes of one sort of one service in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceCount {
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// `processed`, `replay_blocked`, ...
    pub outcome: String,
    /// How many.
    pub count: i64,
}

const BY_MINUTE: &str = "SELECT minute, outcome, CAST(sum(count) AS BIGINT) FROM rollups \
     WHERE minute >= $1 AND minute <= $2 AND ($3 IS NULL OR service = $3) \
     GROUP BY minute, outcome ORDER BY minute, outcome LIMIT $4";

impl Store {
    /// Outcomes by minute, `first` to `last` inclusive, of one service if it is given.
    pub async fn outcomes_by_minute(
        &self,
        first: i64,
        last: i64,
        service: Option<&str>,
    ) -> Result<Vec<MinuteCount>, StoreError> {
        let rows: Vec<(i64, String, i64)> = query_as(BY_MINUTE)
            .bind(first)
            .bind(last)
            .bind(service)
            .bind(limits::SCAN_ROWS_MAX)
            .fetch_all(self.readers())
            .await?;
        let read = |(minute, outcome, count)| MinuteCount { minute, outcome, count };
        Ok(rows.into_iter().map(read).collect())
    }
}

const ANY: &str = "SELECT EXISTS (SELECT 1 FROM rollups)";

impl Store {
    /// Whether any outcome was ever taken.
    pub async fn has_outcomes(&self) -> Result<bool, StoreError> {
        Ok(query_scalar(ANY).fetch_one(self.readers()).await?)
    }
}

const BY_SERVICE: &str = "SELECT service, env, outcome, CAST(sum(count) AS BIGINT) FROM rollups \
     WHERE minute >= $1 AND minute <= $2 AND ($3 IS NULL OR service = $3) \
     GROUP BY service, env, outcome ORDER BY service, env, outcome LIMIT $4";

impl Store {
    /// Outcomes by service and env, minute `first` to `last` inclusive.
    pub async fn outcomes_by_service(
        &self,
        first: i64,
        last: i64,
        service: Option<&str>,
    ) -> Result<Vec<ServiceCount>, StoreError> {
        let rows: Vec<(String, String, String, i64)> = query_as(BY_SERVICE)
            .bind(first)
            .bind(last)
            .bind(service)
            .bind(limits::SCAN_ROWS_MAX)
            .fetch_all(self.readers())
            .await?;
        let read = |(service, env, outcome, count)| ServiceCount { service, env, outcome, count };
        Ok(rows.into_iter().map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(sums_within_the_span_and_the_service);

    async fn sums_within_the_span_and_the_service(Fixture { store, _folder }: Fixture) {
        assert!(!store.has_outcomes().await.unwrap());
        fixtures::run(
            &store,
            "INSERT INTO rollups VALUES ('a', 'prod', 9, 'processed', 1), \
             ('a', 'prod', 10, 'processed', 2), ('b', 'prod', 10, 'processed', 3), \
             ('b', 'prod', 11, 'evicted', 4), ('b', 'prod', 12, 'evicted', 5)",
        )
        .await;
        assert!(store.has_outcomes().await.unwrap());
        let minutes = store.outcomes_by_minute(10, 11, None).await.unwrap();
        let minutes: Vec<_> = minutes.iter().map(|row| (row.minute, row.count)).collect();
        assert_eq!(minutes, [(10, 5), (11, 4)]);
        let of_a = store.outcomes_by_minute(10, 11, Some("a")).await.unwrap();
        assert_eq!(of_a.iter().map(|row| row.count).collect::<Vec<_>>(), [2]);
        let services = store.outcomes_by_service(9, 12, None).await.unwrap();
        let services: Vec<_> = services.iter().map(|row| (&*row.service, row.count)).collect();
        assert_eq!(services, [("a", 3), ("b", 9), ("b", 3)]);
        let of_b = store.outcomes_by_service(9, 12, Some("b")).await.unwrap();
        assert_eq!(of_b.len(), 2);
    }
}
