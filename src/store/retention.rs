//! What is old goes, a little at a time: each transaction holds the lock that the writer waits
//! for, so each takes few rows.

use super::db::{Connection, query, query_as, query_scalar};
use super::totals::{self, Total};
use super::{Store, StoreError, dialect};
use crate::limits;
use crate::outcome::{Body, Record};

/// A table of what was counted by minute.
#[derive(Clone, Copy, Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    next: &'static str,
    first: &'static str,
    delete: &'static str,
}

/// All of them. Their keys begin with service, env and minute.
pub const TABLES: [Table; 4] = [
    Table {
        name: "rollups",
        next: "SELECT service, env FROM rollups WHERE (service, env) > ($1, $2) \
               ORDER BY service, env LIMIT 1",
        first: "SELECT min(minute) FROM rollups WHERE service = $1 AND env = $2",
        delete: "DELETE FROM rollups WHERE service = $1 AND env = $2 AND minute < $3",
    },
    Table {
        name: "latencies",
        next: "SELECT service, env FROM latencies WHERE (service, env) > ($1, $2) \
               ORDER BY service, env LIMIT 1",
        first: "SELECT min(minute) FROM latencies WHERE service = $1 AND env = $2",
        delete: "DELETE FROM latencies WHERE service = $1 AND env = $2 AND minute < $3",
    },
    Table {
        name: "audit_rollups",
        next: "SELECT service, env FROM audit_rollups WHERE (service, env) > ($1, $2) \
               ORDER BY service, env LIMIT 1",
        first: "SELECT min(minute) FROM audit_rollups WHERE service = $1 AND env = $2",
        delete: "DELETE FROM audit_rollups WHERE service = $1 AND env = $2 AND minute < $3",
    },
    Table {
        name: "transitions",
        next: "SELECT service, env FROM transitions WHERE (service, env) > ($1, $2) \
               ORDER BY service, env LIMIT 1",
        first: "SELECT min(minute) FROM transitions WHERE service = $1 AND env = $2",
        delete: "DELETE FROM transitions WHERE service = $1 AND env = $2 AND minute < $3",
    },
];

const DELETE_DELIVERY: &str = "DELETE FROM deliveries WHERE player = $1 AND occurred_us = $2 \
     AND collector = $3 AND n = $4";
const DELETE_RECORDS: &str = "DELETE FROM records WHERE collector = $1 AND n <= $2";
const KEEP_FROM: &str = "INSERT INTO meta (name, value) VALUES ('rollups_from', $1) \
     ON CONFLICT (name) DO UPDATE SET value = excluded.value";

impl Store {
    /// Bytes that hold something.
    pub async fn used_bytes(&self) -> Result<i64, StoreError> {
        dialect::used_bytes(&mut self.readers().acquire().await?).await
    }

    /// Takes the oldest records out of the log, with what says whom they are about. `records` are
    /// these, in order; `totals` is what counters gain by it.
    pub async fn drop_records(
        &self,
        records: &[Record],
        totals: &[Total],
    ) -> Result<(), StoreError> {
        let Some(last) = records.last().map(|record| record.position) else { return Ok(()) };
        let mut transaction = self.begin().await?;
        for record in records {
            if let Body::Event(event) = &record.body {
                let player = self.player_hash(event.ledger().as_str(), event.player.as_str());
                query(DELETE_DELIVERY)
                    .bind(player)
                    .bind(event.occurred_us)
                    .bind(record.position.collector)
                    .bind(record.position.n)
                    .execute(&mut *transaction)
                    .await?;
            }
        }
        let delete = query(DELETE_RECORDS).bind(last.collector).bind(last.n);
        delete.execute(&mut *transaction).await?;
        totals::add(&mut transaction, self.collector(), totals).await?;
        transaction.commit().await
    }

    /// Takes a day at most of the minutes before this one out of a table, of the first service
    /// that has any; how many rows these were, 0 if there are none.
    pub async fn drop_minutes(
        &self,
        table: Table,
        before: i64,
        totals: impl FnOnce(u64) -> Vec<Total>,
    ) -> Result<u64, StoreError> {
        let Some((service, env, first)) = self.first_before(table, before).await? else {
            return Ok(0);
        };
        let end = before.min(first.saturating_add(limits::DAY_US / limits::MINUTE_US));
        let mut transaction = self.begin().await?;
        keep_from(&mut transaction, before).await?;
        let delete = query(table.delete).bind(service).bind(env).bind(end);
        let rows = delete.execute(&mut *transaction).await?.rows_affected();
        totals::add(&mut transaction, self.collector(), &totals(rows)).await?;
        transaction.commit().await?;
        Ok(rows)
    }

    async fn first_before(
        &self,
        table: Table,
        before: i64,
    ) -> Result<Option<(String, String, i64)>, StoreError> {
        let (mut service, mut env) = (String::new(), String::new());
        loop {
            let next = query_as(table.next).bind(&service).bind(&env);
            let next: Option<(String, String)> = next.fetch_optional(self.readers()).await?;
            let Some(next) = next else { return Ok(None) };
            (service, env) = next;
            let first = query_scalar(table.first).bind(&service).bind(&env);
            let first: Option<i64> = first.fetch_one(self.readers()).await?;
            if let Some(first) = first.filter(|first| *first < before) {
                return Ok(Some((service, env, first)));
            }
        }
    }
}

/// From here on minutes are compared with what the log says.
async fn keep_from(connection: &mut Connection, minute: i64) -> Result<(), StoreError> {
    query(KEEP_FROM).bind(minute.to_string()).execute(connection).await?;
    Ok(())
}
