//! What no event can ask for any more goes: events are taken for 14 days after they happened, so
//! identities older than that can't come again.
//!
//! A bounded number of rows a step: the writer forgets between groups, and nobody waits for it.

use super::db::query;
use super::{Store, StoreError};
use crate::limits;

const HASHES: &str = "DELETE FROM hashes WHERE boot_id = $1 AND first_seq IN \
     (SELECT first_seq FROM hashes WHERE boot_id = $1 ORDER BY first_seq LIMIT $2)";
const BOOT: &str = "DELETE FROM boots WHERE id = $1";
/// Runs of transitions have ids of their own, below those of the boots of outcomes.
const RUN: &str = "DELETE FROM transition_runs WHERE id = $1";
const SOURCE: &str = "DELETE FROM sources WHERE id = $1";
const EVENT_IDS: &str = "DELETE FROM event_ids WHERE id IN \
     (SELECT id FROM event_ids WHERE day < $1 LIMIT $2)";
const NOTES: &str = "DELETE FROM noted WHERE id IN (SELECT id FROM noted WHERE day < $1 LIMIT $2)";

impl Store {
    /// Forgets a boot, of outcomes or of transitions; `false` if there is more of it than one step
    /// takes.
    pub async fn forget_boot(&self, boot_id: i64) -> Result<bool, StoreError> {
        let mut transaction = self.begin().await?;
        let most = limits::FORGET_ROWS_MAX;
        let hashes = query(HASHES).bind(boot_id).bind(most).execute(&mut *transaction);
        let is_last = hashes.await?.rows_affected() < u64::from(most);
        if is_last {
            query(BOOT).bind(boot_id).execute(&mut *transaction).await?;
            query(RUN).bind(boot_id).execute(&mut *transaction).await?;
        }
        transaction.commit().await?;
        Ok(is_last)
    }

    /// Forgets a source; its boots are to be forgotten before.
    pub async fn forget_source(&self, id: i64) -> Result<(), StoreError> {
        query(SOURCE).bind(id).execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// Forgets event ids and notes of the days before this one, as many as one step takes.
    pub async fn forget_days_before(&self, day: i64) -> Result<(), StoreError> {
        let mut connection = self.writer().await?;
        let most = limits::FORGET_ROWS_MAX;
        query(EVENT_IDS).bind(day).bind(most).execute(&mut *connection).await?;
        query(NOTES).bind(day).bind(most).execute(&mut *connection).await?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::db::query_scalar;
    use crate::store::fixtures::{self, Fixture};
    use crate::store::identity;

    fixtures::contract!(
        old_days_go_and_young_ones_stay,
        a_source_goes_alone,
        a_boot_goes_step_by_step_with_its_hashes
    );

    async fn count(store: &Store, statement: &'static str) -> i64 {
        query_scalar(statement).fetch_one(&mut *store.writer().await.unwrap()).await.unwrap()
    }

    async fn old_days_go_and_young_ones_stay(Fixture { store, _folder }: Fixture) {
        for (id, day) in [(1_u8, 9), (2, 10)] {
            let mut writer = store.writer().await.unwrap();
            identity::put_event_ids(&mut writer, &[([id; 16], 1)], day).await.unwrap();
            identity::put_notes(&mut writer, &[[id; 16]], day).await.unwrap();
        }
        store.forget_days_before(10).await.unwrap();
        assert_eq!(count(&store, "SELECT min(day) FROM event_ids").await, 10);
        assert_eq!(count(&store, "SELECT min(day) FROM noted").await, 10);
    }

    async fn a_source_goes_alone(Fixture { store, _folder }: Fixture) {
        fixtures::run(
            &store,
            "INSERT INTO sources VALUES (1, 's', 'prod', 'a', 1, NULL, 'open'), \
             (2, 's', 'prod', 'b', 1, NULL, 'open')",
        )
        .await;
        store.forget_source(1).await.unwrap();
        let left: Vec<i64> =
            store.load_sources().await.unwrap().iter().map(|source| source.id).collect();
        assert_eq!(left, [2]);
    }

    async fn a_boot_goes_step_by_step_with_its_hashes(Fixture { store, _folder }: Fixture) {
        fixtures::run(
            &store,
            "INSERT INTO boots VALUES \
             (1, 1, '7', 1, 2, 0, false, '[]', '[]', '[]', '[]', 1, '[]'), \
             (2, 1, '8', 1, 2, 0, false, '[]', '[]', '[]', '[]', 1, '[]')",
        )
        .await;
        let run = |boot_id, first_seq| identity::HashRun { boot_id, first_seq, hashes: vec![7] };
        let runs: Vec<_> = (1..=15_000).map(|seq| run(1, seq)).chain([run(2, 1)]).collect();
        identity::put_hashes(&mut store.writer().await.unwrap(), &runs).await.unwrap();
        assert!(!store.forget_boot(1).await.unwrap());
        assert_eq!(store.load_boots().await.unwrap().len(), 2);
        assert!(store.forget_boot(1).await.unwrap());
        assert_eq!(store.load_boots().await.unwrap().len(), 1);
        assert_eq!(count(&store, "SELECT count(*) FROM hashes").await, 1);
    }
}
