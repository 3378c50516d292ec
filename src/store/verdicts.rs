//! What the judge writes beside its facts: findings and their sums, its small state, its
//! progress. All in one transaction: a crash repeats nothing and skips nothing.

use std::collections::BTreeMap;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::db::{Connection, Each, insert_rows, query, query_scalar};
use super::facts::{json, parse};
use super::gauges::read_amount;
use super::{Store, StoreError, part};
use crate::audit::{Change, Finding, Kind, SumKey, Sums};
use crate::outcome::{Amounts, Settings};

const PUT: &str = "INSERT INTO findings (id, kind, severity, state, service, env, ledger, \
     player, first_us, last_us, body, opened_us, gained_us, change) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14) \
     ON CONFLICT (id) DO UPDATE SET severity = excluded.severity, state = excluded.state, \
     first_us = excluded.first_us, last_us = excluded.last_us, body = excluded.body, \
     opened_us = excluded.opened_us, gained_us = excluded.gained_us, change = excluded.change";
const WITHDRAW: &str = "DELETE FROM findings WHERE id = $1";

/// Writes the rows that changed; `change` is the last number given out, and is moved on.
pub(super) async fn save_findings(
    connection: &mut Connection,
    changes: &BTreeMap<String, Change>,
    change: &mut i64,
) -> Result<(), StoreError> {
    for (id, what) in changes {
        match what {
            Change::Withdraw => {
                query(WITHDRAW).bind(id).execute(&mut *connection).await?;
            }
            Change::Write { finding, opened_us, gained_us } => {
                *change += 1;
                put(connection, finding, *opened_us, *gained_us, *change).await?;
            }
        }
    }
    Ok(())
}

async fn put(
    connection: &mut Connection,
    finding: &Finding,
    opened_us: i64,
    gained_us: Option<i64>,
    change: i64,
) -> Result<(), StoreError> {
    query(PUT)
        .bind(&finding.id)
        .bind(finding.kind.as_str())
        .bind(finding.severity.as_str())
        .bind(finding.state.as_str())
        .bind(&finding.service)
        .bind(&finding.env)
        .bind(&finding.ledger)
        .bind(finding.player.as_ref().map(|player| player.as_str()))
        .bind(finding.first_us)
        .bind(finding.last_us)
        .bind(json(finding)?)
        .bind(opened_us)
        .bind(gained_us)
        .bind(change)
        .execute(connection)
        .await?;
    Ok(())
}

const PUT_SUMS: &str = "INSERT INTO finding_sums (kind, service, env, ledger, confirmed_ever, \
     open_confirmed, open_suspected, overpaid, overcharged, underpaid, undercharged, exposure) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) \
     ON CONFLICT (kind, service, env, ledger) DO UPDATE SET \
     confirmed_ever = excluded.confirmed_ever, open_confirmed = excluded.open_confirmed, \
     open_suspected = excluded.open_suspected, overpaid = excluded.overpaid, \
     overcharged = excluded.overcharged, underpaid = excluded.underpaid, \
     undercharged = excluded.undercharged, exposure = excluded.exposure";

/// Writes the sums that changed.
pub(super) async fn save_sums(
    connection: &mut Connection,
    changed: &[(SumKey, Sums)],
) -> Result<(), StoreError> {
    let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
    for ((kind, service, env, ledger), sums) in changed {
        query(PUT_SUMS)
            .bind(kind.as_str())
            .bind(service)
            .bind(env)
            .bind(ledger)
            .bind(count(sums.confirmed_ever))
            .bind(count(sums.open_confirmed))
            .bind(count(sums.open_suspected))
            .bind(sums.amounts.overpaid.to_string())
            .bind(sums.amounts.overcharged.to_string())
            .bind(sums.amounts.underpaid.to_string())
            .bind(sums.amounts.undercharged.to_string())
            .bind(sums.amounts.exposure.to_string())
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// One entry of the judge's small state: its part, its name, and its body unless it is to go.
pub(super) type Part = (&'static str, String, Option<String>);

const PUT_PARTS: &str = "INSERT INTO audit_state (part, name, body) ";
const ON_CONFLICT_PART: &str = " ON CONFLICT (part, name) DO UPDATE SET body = excluded.body";
const DROP_PARTS: Each = Each {
    sqlite: "DELETE FROM audit_state WHERE (part, name) IN \
             (SELECT value ->> 0, value ->> 1 FROM json_each($1))",
    postgres: "DELETE FROM audit_state WHERE (part, name) IN \
               (SELECT value ->> 0, value ->> 1 FROM json_array_elements($1::json))",
};

/// Writes entries of the judge's small state, each at most once.
pub(super) async fn save_parts(
    connection: &mut Connection,
    parts: &[Part],
) -> Result<(), StoreError> {
    let (puts, drops): (Vec<_>, Vec<_>) = parts.iter().partition(|(.., body)| body.is_some());
    let rows = puts.iter().map(|(part, name, body)| [(*part).into(), name.into(), body.into()]);
    insert_rows(connection, PUT_PARTS, rows.collect(), ON_CONFLICT_PART).await?;
    if !drops.is_empty() {
        let names: Vec<_> = drops.iter().map(|(part, name, _)| (part, name)).collect();
        query(DROP_PARTS).bind(json(&names)?).execute(connection).await?;
    }
    Ok(())
}

const PUT_PROGRESS: &str = "INSERT INTO progress (collector, n) VALUES ($1, $2) \
     ON CONFLICT (collector) DO UPDATE SET n = excluded.n";

/// Writes how far the judge is.
pub(super) async fn save_progress(
    connection: &mut Connection,
    collector: i64,
    n: i64,
) -> Result<(), StoreError> {
    query(PUT_PROGRESS).bind(collector).bind(n).execute(connection).await?;
    Ok(())
}

const PROGRESS: &str = "SELECT n FROM progress WHERE collector = $1";
const PART: &str = "SELECT body FROM audit_state WHERE part = $1 ORDER BY name";
const PART_BY_NAME: Each = Each {
    sqlite: "SELECT a.body FROM json_each($2) AS k \
             JOIN audit_state AS a ON a.part = $1 AND a.name = k.value",
    postgres: "SELECT a.body FROM json_array_elements_text($2::json) AS k \
               JOIN audit_state AS a ON a.part = $1 AND a.name = k.value",
};
const SUMS: &str = "SELECT kind, service, env, ledger, confirmed_ever, open_confirmed, \
     open_suspected, overpaid, overcharged, underpaid, undercharged, exposure FROM finding_sums";
/// A ledger without an event begins at the end of time.
const LEDGERS_AFTER: Each = Each {
    sqlite: "SELECT COUNT(*) FROM audit_state WHERE part = $1 \
             AND body ->> 'first_us' > $2 AND body ->> 'first_us' < $3",
    postgres: "SELECT COUNT(*) FROM audit_state WHERE part = $1 \
               AND (body::json ->> 'first_us')::bigint > $2 \
               AND (body::json ->> 'first_us')::bigint < $3",
};

const PUT_BASE: &str = "INSERT INTO audit_state (part, name, body) \
     VALUES ($1, $2, $4), ($1, $3, $4) ON CONFLICT (part, name) DO NOTHING";

impl Store {
    /// Before the first record: what is set. Changes nothing once there is something.
    pub async fn begin_audit(&self, settings: &Settings) -> Result<(), StoreError> {
        query(PUT_BASE)
            .bind(part::SETTINGS)
            .bind(json(&"")?)
            .bind(json(&part::BASE)?)
            .bind(json(settings)?)
            .execute(&mut *self.writer().await?)
            .await?;
        Ok(())
    }

    /// How far the judge is in a collector's part of the log.
    pub async fn read_progress(&self, collector: i64) -> Result<i64, StoreError> {
        let n = query_scalar(PROGRESS).bind(collector);
        Ok(n.fetch_optional(self.readers()).await?.unwrap_or(0))
    }

    /// All entries of a part of the judge's small state.
    pub async fn read_part<T: DeserializeOwned>(&self, part: &str) -> Result<Vec<T>, StoreError> {
        let bodies = query_scalar(PART).bind(part).fetch_all(self.readers()).await?;
        bodies.iter().map(|body: &String| parse("audit_state", body)).collect()
    }

    /// The entries of a part that have these names; a name without an entry is left out.
    pub async fn read_part_by_name<T: DeserializeOwned>(
        &self,
        part: &str,
        names: &[impl Serialize],
    ) -> Result<Vec<T>, StoreError> {
        let names: Vec<String> = names.iter().map(json).collect::<Result<_, _>>()?;
        let query = query_scalar(PART_BY_NAME).bind(part).bind(json(&names)?);
        let bodies: Vec<String> = query.fetch_all(self.readers()).await?;
        bodies.iter().map(|body| parse("audit_state", body)).collect()
    }

    /// How many ledgers had their first event after this moment.
    pub async fn count_ledgers_after(&self, at_us: i64) -> Result<i64, StoreError> {
        let query = query_scalar(LEDGERS_AFTER).bind(part::LEDGER).bind(at_us).bind(i64::MAX);
        Ok(query.fetch_one(self.readers()).await?)
    }

    /// All sums over findings.
    pub async fn read_sums(&self) -> Result<Vec<(SumKey, Sums)>, StoreError> {
        let unreadable = |detail: String| StoreError::Unreadable { table: "finding_sums", detail };
        let mut all = Vec::new();
        for row in query(SUMS).fetch_all(self.readers()).await? {
            let name: String = row.try_get(0)?;
            let kind = Kind::parse(&name).ok_or_else(|| unreadable(format!("kind {name}")))?;
            let count = |i: usize| -> Result<u64, StoreError> {
                u64::try_from(row.try_get::<i64>(i)?).map_err(|_| unreadable("a count".into()))
            };
            let amount = |i: usize| -> Result<i128, StoreError> { read_amount(row.try_get(i)?) };
            let amounts = Amounts {
                overpaid: amount(7)?,
                overcharged: amount(8)?,
                underpaid: amount(9)?,
                undercharged: amount(10)?,
                exposure: amount(11)?,
            };
            let sums = Sums {
                confirmed_ever: count(4)?,
                open_confirmed: count(5)?,
                open_suspected: count(6)?,
                amounts,
            };
            all.push(((kind, row.try_get(1)?, row.try_get(2)?, row.try_get(3)?), sums));
        }
        Ok(all)
    }
}
