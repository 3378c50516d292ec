//! One player's deliveries, in order of occurrence.

use super::db::{Row, query};
use super::{Store, StoreError, log};
use crate::limits;
use crate::outcome::{Position, Record};

/// The place of a delivery among a player's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeliveryKey {
    /// When, by the source's clock.
    pub occurred_us: i64,
    /// Its place in the log.
    pub position: Position,
}

/// A delivery: its place, and the record, unless the log no longer has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its place.
    pub key: DeliveryKey,
    /// What the log says.
    pub record: Option<Record>,
}

/// What is in the journal may be in the table too.
const LIST: &str = "SELECT d.occurred_us, d.collector, d.n, r.kind, r.received_us, r.body FROM ( \
     SELECT * FROM (SELECT occurred_us, collector, n FROM deliveries \
      WHERE player = $1 AND (occurred_us, collector, n) < ($2, $3, $4) \
      ORDER BY occurred_us DESC, collector DESC, n DESC LIMIT $5) AS moved \
     UNION SELECT occurred_us, collector, n FROM delivery_journal \
      WHERE player = $1 AND (occurred_us, collector, n) < ($2, $3, $4) \
     ORDER BY 1 DESC, 2 DESC, 3 DESC LIMIT $5) AS d \
     LEFT JOIN records r ON r.collector = d.collector AND r.n = d.n \
     ORDER BY d.occurred_us DESC, d.collector DESC, d.n DESC";

impl Store {
    /// A player's deliveries before the given one, the newest first.
    pub async fn deliveries(
        &self,
        ledger: &str,
        player: &str,
        before: Option<DeliveryKey>,
        limit: u32,
    ) -> Result<Vec<Delivery>, StoreError> {
        let last = DeliveryKey {
            occurred_us: i64::MAX,
            position: Position { collector: i64::MAX, n: i64::MAX },
        };
        let before = before.unwrap_or(last);
        let rows = query(LIST)
            .bind(self.player_hash(ledger, player))
            .bind(before.occurred_us)
            .bind(before.position.collector)
            .bind(before.position.n)
            .bind(limit.min(limits::LIST_ROWS_MAX))
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_delivery).collect()
    }

    /// The number under which the facts of a player of a ledger are kept.
    pub(super) fn player_hash(&self, ledger: &str, player: &str) -> i64 {
        self.hash().of(&[b"player", ledger.as_bytes(), player.as_bytes()])
    }
}

fn read_delivery(row: &Row) -> Result<Delivery, StoreError> {
    let position = Position { collector: row.try_get(1)?, n: row.try_get(2)? };
    let kind: Option<i64> = row.try_get(3)?;
    let record = match kind {
        None => None,
        Some(kind) => Some(Record {
            position,
            received_us: row.try_get(4)?,
            body: log::decode(kind, row.try_get(5)?)?,
        }),
    };
    Ok(Delivery { key: DeliveryKey { occurred_us: row.try_get(0)?, position }, record })
}

#[cfg(test)]
mod tests {
    use crate::store::db::query;
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(lists_one_players_deliveries_by_key);

    async fn lists_one_players_deliveries_by_key(Fixture { store, _folder }: Fixture) {
        fixtures::run(&store, "INSERT INTO records VALUES (1, 2, 8, 5, '{}')").await;
        for (player, occurred_us, n) in
            [("p", 10_i64, 1_i64), ("p", 10, 2), ("p", 20, 3), ("q", 15, 4)]
        {
            query("INSERT INTO deliveries VALUES ($1, $2, 1, $3)")
                .bind(store.player_hash("chips", player))
                .bind(occurred_us)
                .bind(n)
                .execute(&mut *store.writer().await.unwrap())
                .await
                .unwrap();
        }
        let all = store.deliveries("chips", "p", None, 10).await.unwrap();
        assert_eq!(all.iter().map(|row| row.key.position.n).collect::<Vec<_>>(), [3, 2, 1]);
        assert!(all[1].record.is_some(), "the log has it");
        assert!(all[0].record.is_none(), "the log no longer has it");
        let rest = store.deliveries("chips", "p", Some(all[0].key), 1).await.unwrap();
        assert_eq!(rest, all[1..2]);
        assert_eq!(store.deliveries("gold", "p", None, 10).await.unwrap(), []);
    }
}
