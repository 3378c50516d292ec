//! What the counters go on from after a restart. A total moves in the transaction of the commit
//! that it counts, so a counter and the log never tell two stories.

use super::db::{Connection, Each, query, query_as};
use super::{Store, StoreError};

/// The `collector` of what the judge and the alerts count: there is one of each for all
/// collectors.
pub const SHARED: i64 = 0;

/// One counter: what a commit adds to it, or where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Total {
    /// Which counter.
    pub name: String,
    /// The values of its labels, in the order of the counter.
    pub labels: Vec<String>,
    /// How much.
    pub value: i64,
}

/// One statement for any number of totals: a round trip costs more than the row. At the end of
/// 63 bits a total stays there: SQLite would go on with a float, which no counter can be read from.
const ADD: Each = Each {
    sqlite: "INSERT INTO totals (collector, name, labels, value) \
             SELECT $1, t.value ->> 0, t.value ->> 1, t.value ->> 2 FROM json_each($2) AS t \
             WHERE true ON CONFLICT (collector, name, labels) DO UPDATE SET value = \
             CASE WHEN value > 9223372036854775807 - excluded.value THEN 9223372036854775807 \
             ELSE value + excluded.value END",
    // PostgreSQL refuses what does not fit, also what is computed on the way, and a statement that
    // touches a row twice.
    postgres: "INSERT INTO totals (collector, name, labels, value) \
               SELECT $1, t.value ->> 0, t.value ->> 1, \
               least(sum((t.value ->> 2)::bigint), 9223372036854775807)::bigint \
               FROM json_array_elements($2::json) AS t GROUP BY 2, 3 \
               ON CONFLICT (collector, name, labels) DO UPDATE SET value = \
               CASE WHEN excluded.value <= 0 THEN totals.value + excluded.value \
               WHEN totals.value > 9223372036854775807 - excluded.value \
               THEN 9223372036854775807 ELSE totals.value + excluded.value END",
};

/// Adds to totals, inside the caller's transaction.
pub(crate) async fn add(
    connection: &mut Connection,
    collector: i64,
    totals: &[Total],
) -> Result<(), StoreError> {
    if totals.is_empty() {
        return Ok(());
    }
    let row = |total: &Total| {
        let labels = serde_json::Value::from(total.labels.as_slice()).to_string();
        serde_json::json!([total.name, labels, total.value])
    };
    let rows = serde_json::Value::Array(totals.iter().map(row).collect());
    query(ADD).bind(collector).bind(rows.to_string()).execute(connection).await?;
    Ok(())
}

const READ: &str = "SELECT name, labels, value FROM totals WHERE collector IN ($1, $2)";

impl Store {
    /// Where the counters of this collector, and those that all share, stand.
    pub async fn read_totals(&self) -> Result<Vec<Total>, StoreError> {
        let rows: Vec<(String, String, i64)> =
            query_as(READ).bind(self.collector()).bind(SHARED).fetch_all(self.readers()).await?;
        rows.into_iter().map(total_of).collect()
    }
}

fn total_of((name, labels, value): (String, String, i64)) -> Result<Total, StoreError> {
    let labels = serde_json::from_str(&labels).map_err(|error| StoreError::Unreadable {
        table: "totals",
        detail: format!("labels of {name}: {error}"),
    })?;
    Ok(Total { name, labels, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(
        totals_add_up_and_are_kept_apart_by_collector,
        a_total_goes_down_and_stays_a_number_at_its_end
    );

    fn total(name: &str, labels: &[&str], value: i64) -> Total {
        let labels = labels.iter().map(ToString::to_string).collect();
        Total { name: name.into(), labels, value }
    }

    async fn totals_add_up_and_are_kept_apart_by_collector(Fixture { store, _folder }: Fixture) {
        let strange = total("outcomes", &["a\"b\\", "", "x,y"], 2);
        {
            let mut writer = store.writer().await.unwrap();
            let first = [strange.clone(), total("plain", &[], 1)];
            add(&mut writer, store.collector(), &first).await.unwrap();
            add(&mut writer, store.collector(), &[total("plain", &[], 40)]).await.unwrap();
            add(&mut writer, SHARED, &[total("skipped", &["c"], i64::from(u32::MAX) * 9)])
                .await
                .unwrap();
            add(&mut writer, 77, &[total("plain", &[], 1000)]).await.unwrap();
            add(&mut writer, 77, &[]).await.unwrap();
            let (one, other) = (total("twice", &["a"], 3), total("twice", &["a"], 4));
            add(&mut writer, SHARED, &[one, other]).await.unwrap();
        }
        let mut read = store.read_totals().await.unwrap();
        read.sort_by(|a, b| a.name.cmp(&b.name));
        let skipped = total("skipped", &["c"], i64::from(u32::MAX) * 9);
        let twice = total("twice", &["a"], 7);
        assert_eq!(read, [strange, total("plain", &[], 41), skipped, twice]);
    }

    async fn a_total_goes_down_and_stays_a_number_at_its_end(Fixture { store, _folder }: Fixture) {
        for delta in [5, -2, i64::MAX - 3, 9, 1] {
            let mut writer = store.writer().await.unwrap();
            add(&mut writer, SHARED, &[total("t", &[], delta)]).await.unwrap();
        }
        assert_eq!(store.read_totals().await.unwrap(), [total("t", &[], i64::MAX)]);
    }
}
