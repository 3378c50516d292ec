//! What the gauges of `/metrics` show, read when they are asked for: so they can't drift from
//! what is stored, and need nothing kept over a restart.

use std::collections::{BTreeMap, BTreeSet};

use super::db::query_as;
use super::{Store, StoreError};
use crate::limits;
use crate::outcome::Amounts;

/// The stored things that gauges show.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// By service, env and state: how many, and the newest push of them.
    pub sources: BTreeMap<(String, String, String), (i64, i64)>,
    /// By kind, service and ledger: confirmed and open rows, and what they come to.
    pub open: BTreeMap<(String, String, String), (i64, Amounts)>,
    /// Rule, service, env and state.
    pub alerts: BTreeSet<(String, String, String, String)>,
    /// By service: the smallest capacity that its windows have now.
    pub capacity: BTreeMap<String, u64>,
    /// By service: the capacity that its windows would have needed.
    pub required: BTreeMap<String, u64>,
}

const SOURCES: &str = "SELECT service, env, state, COUNT(*), MAX(last_push_us) FROM sources \
     GROUP BY service, env, state ORDER BY MIN(id) LIMIT $1";
const SUMS: &str = "SELECT kind, service, ledger, open_confirmed, overpaid, overcharged, \
     underpaid, undercharged, exposure FROM finding_sums \
     ORDER BY open_confirmed > 0 DESC, kind, service, ledger LIMIT $1";
const ALERTS: &str = "SELECT rule, service, env, state FROM alerts LIMIT $1";
const SERVICES: &str = "SELECT service, env FROM sources \
     GROUP BY service, env ORDER BY MIN(id) LIMIT $1";

impl Store {
    /// Reads what the gauges show.
    pub async fn read_gauges(&self) -> Result<Gauges, StoreError> {
        let mut gauges = Gauges::default();
        let sources: Vec<(String, String, String, i64, i64)> =
            query_as(SOURCES).bind(limits::SCAN_ROWS_MAX).fetch_all(self.readers()).await?;
        for (service, env, state, count, last_push_us) in sources {
            gauges.sources.insert((service, env, state), (count, last_push_us));
        }
        let alerts: Vec<(String, String, String, String)> =
            query_as(ALERTS).bind(limits::SCAN_ROWS_MAX).fetch_all(self.readers()).await?;
        gauges.alerts = alerts.into_iter().collect();
        gauges.open = self.read_open().await?;
        for advice in self.read_advice().await? {
            if let Some(capacity) = advice.capacity() {
                let least = gauges.capacity.entry(advice.service.clone()).or_insert(capacity);
                *least = (*least).min(capacity);
            }
            if let Some(need) = advice.required() {
                let most = gauges.required.entry(advice.service).or_default();
                *most = (*most).max(need.capacity);
            }
        }
        Ok(gauges)
    }

    async fn read_open(
        &self,
    ) -> Result<BTreeMap<(String, String, String), (i64, Amounts)>, StoreError> {
        type Row = (String, String, String, i64, String, String, String, String, String);
        let rows: Vec<Row> =
            query_as(SUMS).bind(limits::SCAN_ROWS_MAX).fetch_all(self.readers()).await?;
        // Beyond the limit, zeros that are not shown are no loss.
        if rows.len() >= limits::SCAN_ROWS_MAX as usize && rows.last().is_some_and(|row| row.3 > 0)
        {
            tracing::warn!(shown = rows.len(), "more sums of open findings than /metrics adds up");
        }
        let mut open = BTreeMap::new();
        for (kind, service, ledger, count, over, overcharged, under, undercharged, exposure) in rows
        {
            let amounts = Amounts {
                overpaid: read_amount(&over)?,
                overcharged: read_amount(&overcharged)?,
                underpaid: read_amount(&under)?,
                undercharged: read_amount(&undercharged)?,
                exposure: read_amount(&exposure)?,
            };
            let sum: &mut (i64, Amounts) = open.entry((kind, service, ledger)).or_default();
            *sum = (sum.0 + count, sum.1.plus(amounts));
        }
        Ok(open)
    }

    /// The services and envs that have sources, in the order in which they came.
    pub async fn read_services(&self) -> Result<Vec<(String, String)>, StoreError> {
        let limit = limits::SCAN_ROWS_MAX;
        Ok(query_as(SERVICES).bind(limit).fetch_all(self.readers()).await?)
    }
}

/// Reads an amount: decimal text, since 128 bits fit no column.
pub(super) fn read_amount(text: &str) -> Result<i128, StoreError> {
    text.parse().map_err(|_| StoreError::Unreadable {
        table: "finding_sums",
        detail: format!("amount {text:?}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(gauges_show_what_is_stored, what_is_open_is_shown_before_what_is_closed);

    const ROWS: [&str; 3] = [
        "INSERT INTO sources (service, env, source, last_push_us, state) VALUES \
         ('b', 'prod', 's1', 5, 'open'), ('b', 'prod', 's2', 9, 'open'), \
         ('b', 'prod', 's3', 2, 'silent'), ('a', 'test', 's1', 1, 'closed')",
        "INSERT INTO finding_sums VALUES \
         ('duplicate_leak', 'b', 'prod', 'chips', 9, 2, 1, \
          '170141183460469231731687303715884105720', '2', '0', '0', '0'), \
         ('duplicate_leak', 'b', 'test', 'chips', 1, 1, 0, '7', '0', '0', '0', '0')",
        "INSERT INTO alerts VALUES ('DuplicateLeak', 'b', 'prod', 'firing', 'critical', 1, \
         NULL, '{}'), ('DuplicateLeak', 'b', 'test', 'firing', 'critical', 1, NULL, '{}')",
    ];

    async fn gauges_show_what_is_stored(Fixture { store, _folder }: Fixture) {
        assert_eq!(store.read_gauges().await.unwrap(), Gauges::default());
        for sql in ROWS {
            fixtures::run(&store, sql).await;
        }
        let gauges = store.read_gauges().await.unwrap();
        let key = |a: &str, b: &str, c: &str| (a.to_string(), b.to_string(), c.to_string());
        assert_eq!(gauges.sources[&key("b", "prod", "open")], (2, 9));
        assert_eq!(gauges.sources[&key("b", "prod", "silent")], (1, 2));
        assert_eq!(gauges.sources[&key("a", "test", "closed")], (1, 1));
        let (open, amounts) = gauges.open[&key("duplicate_leak", "b", "chips")];
        assert_eq!((open, amounts.overpaid, amounts.overcharged), (3, i128::MAX, 2));
        let alert = |env: &str| {
            ("DuplicateLeak".to_owned(), "b".to_owned(), env.to_owned(), "firing".to_owned())
        };
        assert_eq!(gauges.alerts, [alert("prod"), alert("test")].into());
        let services = store.read_services().await.unwrap();
        let pair = |a: &str, b: &str| (a.to_string(), b.to_string());
        assert_eq!(services, [pair("b", "prod"), pair("a", "test")]);
    }

    async fn what_is_open_is_shown_before_what_is_closed(Fixture { store, _folder }: Fixture) {
        fixtures::run(
            &store,
            "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10001) \
             INSERT INTO finding_sums \
             SELECT 'duplicate_leak', 'a', 'prod', CAST(n AS TEXT), 1, 0, 0, \
             '0', '0', '0', '0', '0' FROM n",
        )
        .await;
        fixtures::insert_sum(&store, "false_block", "z", "chips", 7).await;
        let gauges = store.read_gauges().await.unwrap();
        assert!(gauges.open.values().any(|(open, amounts)| (*open, amounts.overpaid) == (1, 7)));
    }

    #[test]
    fn an_amount_that_is_none_is_told() {
        assert!(read_amount("1.5").is_err());
    }
}
