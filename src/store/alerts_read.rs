//! Alerts and the log of notifications, as the pages and the API read them.

use std::collections::BTreeMap;

use super::db::{Row, query, query_as};
use super::{Store, StoreError};
use crate::limits;

/// One instance of an alert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AlertRow {
    /// Which rule.
    pub rule: String,
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// `pending`, `firing` or `resolved`.
    pub state: String,
    /// `info`, `warning` or `critical`.
    pub severity: String,
    /// When it began.
    pub started_us: i64,
    /// When it was over.
    pub ended_us: Option<i64>,
    /// The instance as JSON.
    pub body: String,
}

/// One notification.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotificationRow {
    /// Its delivery id.
    pub id: String,
    /// Who gets it.
    pub receiver: String,
    /// Which rule.
    pub rule: String,
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// Why it was sent.
    pub because: String,
    /// When it was decided.
    pub created_us: i64,
    /// `waiting`, `delivered` or `given_up`.
    pub state: String,
    /// How often it was tried.
    pub attempts: i64,
    /// What went wrong last.
    pub last_error: Option<String>,
    /// When it was delivered.
    pub delivered_us: Option<i64>,
}

const ALERTS: &str = "SELECT rule, service, env, state, severity, started_us, ended_us, body \
     FROM alerts WHERE ($1 IS NULL OR state = $1) AND ($2 IS NULL OR service = $2) \
     ORDER BY CASE state WHEN 'firing' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END, \
     COALESCE(ended_us, 0) DESC, \
     CASE severity WHEN 'critical' THEN 0 WHEN 'warning' THEN 1 ELSE 2 END, \
     started_us DESC, rule, service, env LIMIT $3";
const COUNTS: &str = "SELECT state, COUNT(*) FROM alerts GROUP BY state";

impl Store {
    /// Alerts of one state and service if they are given: firing ones, pending ones, each worst
    /// and then newest first; then what is over, the last end first. `limits::ALERTS_MAX` is all.
    pub async fn alert_rows(
        &self,
        state: Option<&str>,
        service: Option<&str>,
        limit: u32,
    ) -> Result<Vec<AlertRow>, StoreError> {
        let rows =
            query(ALERTS).bind(state).bind(service).bind(limit).fetch_all(self.readers()).await?;
        rows.iter().map(read_alert).collect()
    }

    /// How many alerts there are, by state.
    pub async fn alert_counts(&self) -> Result<BTreeMap<String, i64>, StoreError> {
        let rows: Vec<(String, i64)> = query_as(COUNTS).fetch_all(self.readers()).await?;
        Ok(rows.into_iter().collect())
    }
}

const NOTIFICATIONS: &str = "SELECT id, receiver, rule, service, env, because, created_us, \
     state, attempts, last_error, delivered_us FROM notifications \
     WHERE (created_us, id) < ($1, $2) ORDER BY created_us DESC, id DESC LIMIT $3";

/// Above every delivery id: they are UUIDs.
const ABOVE_EVERY_ID: &str = "~";

impl Store {
    /// Notifications, the newest first, before the given one.
    pub async fn notification_rows(
        &self,
        after: Option<(i64, &str)>,
        limit: u32,
    ) -> Result<Vec<NotificationRow>, StoreError> {
        let (created_us, id) = after.unwrap_or((i64::MAX, ABOVE_EVERY_ID));
        let rows = query(NOTIFICATIONS)
            .bind(created_us)
            .bind(id)
            .bind(limit.min(limits::LIST_ROWS_MAX))
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_notification).collect()
    }
}

pub(super) fn read_alert(row: &Row) -> Result<AlertRow, StoreError> {
    Ok(AlertRow {
        rule: row.try_get(0)?,
        service: row.try_get(1)?,
        env: row.try_get(2)?,
        state: row.try_get(3)?,
        severity: row.try_get(4)?,
        started_us: row.try_get(5)?,
        ended_us: row.try_get(6)?,
        body: row.try_get(7)?,
    })
}

fn read_notification(row: &Row) -> Result<NotificationRow, StoreError> {
    Ok(NotificationRow {
        id: row.try_get(0)?,
        receiver: row.try_get(1)?,
        rule: row.try_get(2)?,
        service: row.try_get(3)?,
        env: row.try_get(4)?,
        because: row.try_get(5)?,
        created_us: row.try_get(6)?,
        state: row.try_get(7)?,
        attempts: row.try_get(8)?,
        last_error: row.try_get(9)?,
        delivered_us: row.try_get(10)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(lists_alerts_by_state_and_service, lists_notifications_newest_first_by_key);

    async fn lists_alerts_by_state_and_service(Fixture { store, _folder }: Fixture) {
        fixtures::run(
            &store,
            "INSERT INTO alerts VALUES \
             ('leak', 'a', 'prod', 'firing', 'critical', 5, NULL, '{}'), \
             ('gap', 'b', 'prod', 'resolved', 'critical', 7, 9, '{}'), \
             ('last', 'b', 'prod', 'resolved', 'info', 7, 10, '{}'), \
             ('wait', 'b', 'prod', 'pending', 'critical', 9, NULL, '{}'), \
             ('minor', 'a', 'prod', 'firing', 'info', 8, NULL, '{}')",
        )
        .await;
        let rules = |rows: Vec<AlertRow>| rows.into_iter().map(|row| row.rule).collect::<Vec<_>>();
        let all = rules(store.alert_rows(None, None, 10).await.unwrap());
        assert_eq!(all, ["leak", "minor", "wait", "last", "gap"], "what fires is never cut first");
        assert_eq!(rules(store.alert_rows(Some("firing"), None, 1).await.unwrap()), ["leak"]);
        assert_eq!(rules(store.alert_rows(None, Some("b"), 1).await.unwrap()), ["wait"]);
        let counts: Vec<_> = store.alert_counts().await.unwrap().into_iter().collect();
        let count = |state: &str, count| (state.to_owned(), count);
        assert_eq!(counts, [count("firing", 2), count("pending", 1), count("resolved", 2)]);
    }

    async fn lists_notifications_newest_first_by_key(Fixture { store, _folder }: Fixture) {
        fixtures::run(
            &store,
            "INSERT INTO notifications VALUES \
             ('01', 'webhook', 'leak', 'a', 'prod', 'fired', 5, '{}', 'delivered', 1, 5, NULL, 6), \
             ('02', 'webhook', 'leak', 'a', 'prod', 'grew', 5, '{}', 'waiting', 2, 9, 'x', NULL)",
        )
        .await;
        let newest = store.notification_rows(None, 1).await.unwrap();
        assert_eq!((&*newest[0].id, newest[0].attempts), ("02", 2));
        let rest = store.notification_rows(Some((5, "02")), 10).await.unwrap();
        assert_eq!((&*rest[0].id, rest[0].delivered_us), ("01", Some(6)));
        assert_eq!(rest.len(), 1);
    }
}
