//! What the window advisor measured and says: by minute, and in all.

use std::collections::BTreeMap;

use super::alerts::AlertTransaction;
use super::db::{Connection, query, query_scalar};
use super::facts::{json, parse};
use super::{Store, StoreError, part};
use crate::audit::{Advice, Measured, MinuteKey};
use crate::limits;

const READ: &str = "SELECT body FROM audit_rollups WHERE service = $1 AND env = $2 AND minute = $3";
const PUT: &str = "INSERT INTO audit_rollups (service, env, minute, body) \
     VALUES ($1, $2, $3, $4) \
     ON CONFLICT (service, env, minute) DO UPDATE SET body = excluded.body";

/// Adds what was measured, inside the caller's transaction.
pub(super) async fn add_measured(
    connection: &mut Connection,
    measured: &BTreeMap<MinuteKey, Measured>,
) -> Result<(), StoreError> {
    for ((service, env, minute), more) in measured {
        let before: Option<String> = query_scalar(READ)
            .bind(service)
            .bind(env)
            .bind(minute)
            .fetch_optional(&mut *connection)
            .await?;
        let mut sum: Measured = match before {
            Some(body) => parse("audit_rollups", &body)?,
            None => Measured::default(),
        };
        sum.add(more);
        query(PUT)
            .bind(service)
            .bind(env)
            .bind(minute)
            .bind(json(&sum)?)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

const SPAN: &str = "SELECT body FROM audit_rollups WHERE service = $1 AND env = $2 \
     AND minute >= $3 ORDER BY minute DESC LIMIT $4";
const ADVICE: &str = "SELECT body FROM audit_state WHERE part = $1 ORDER BY name LIMIT $2";

impl Store {
    /// What was measured of a service since a minute, at most of the newest
    /// [`limits::SCAN_ROWS_MAX`] minutes that have anything.
    pub async fn measured_since(
        &self,
        service: &str,
        env: &str,
        minute: i64,
    ) -> Result<Measured, StoreError> {
        let bodies: Vec<String> = query_scalar(SPAN)
            .bind(service)
            .bind(env)
            .bind(minute)
            .bind(limits::SCAN_ROWS_MAX)
            .fetch_all(self.readers())
            .await?;
        let mut sum = Measured::default();
        for body in &bodies {
            sum.add(&parse("audit_rollups", body)?);
        }
        Ok(sum)
    }

    /// What the window advisor says of each service and env.
    pub async fn read_advice(&self) -> Result<Vec<Advice>, StoreError> {
        let query = query_scalar(ADVICE).bind(part::ADVICE).bind(limits::SCAN_ROWS_MAX);
        let bodies: Vec<String> = query.fetch_all(self.readers()).await?;
        bodies.iter().map(|body| parse("audit_state", body)).collect()
    }
}

impl AlertTransaction<'_> {
    /// What the window advisor says of each service and env.
    pub async fn advice(&mut self) -> Result<Vec<Advice>, StoreError> {
        let query = query_scalar(ADVICE).bind(part::ADVICE).bind(limits::SCAN_ROWS_MAX);
        let bodies: Vec<String> = query.fetch_all(&mut *self.inner).await?;
        bodies.iter().map(|body| parse("audit_state", body)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(what_was_measured_adds_up_by_minute_and_over_them);

    async fn what_was_measured_adds_up_by_minute_and_over_them(
        Fixture { store, _folder }: Fixture,
    ) {
        let mut one: Measured = Measured::default();
        one.distances.counts = vec![1, 0, 2];
        one.distances.sum = 4;
        let key = |env: &str, minute| ("a".to_owned(), env.to_owned(), minute);
        for minute in [1, 5, 5, 6] {
            let mut writer = store.writer().await.unwrap();
            let measured = BTreeMap::from([(key("prod", minute), one.clone())]);
            add_measured(&mut writer, &measured).await.unwrap();
            let elsewhere = BTreeMap::from([(key("test", minute), one.clone())]);
            add_measured(&mut writer, &elsewhere).await.unwrap();
        }
        let sum = store.measured_since("a", "prod", 5).await.unwrap();
        assert_eq!((sum.distances.counts, sum.distances.sum), (vec![3, 0, 6], 12));
    }
}
