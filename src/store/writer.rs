//! The one connection that writes. It is made anew after a transaction that did not come to its
//! end: on a full disk, for one, SQLite rolls back by itself, and what sqlx then knows of the
//! connection is wrong for good.

use std::ops::{Deref, DerefMut};

use tokio::sync::{MappedMutexGuard, Mutex, MutexGuard};

use super::StoreError;
use super::db::{Connection, Each, Options, query};

/// Where the connection is while nobody has it; nowhere after a transaction that was not
/// committed.
type Place = Option<Connection>;

/// Gives the connection to one caller at a time.
pub(super) struct Writer {
    options: Options,
    place: Mutex<Place>,
}

/// A transaction that writes. Dropped before its commit, nothing has happened.
pub(crate) struct Transaction<'a> {
    // Let go of before the turn ends.
    connection: Connection,
    place: MutexGuard<'a, Place>,
}

const BEGIN: Each = Each { sqlite: "BEGIN IMMEDIATE", postgres: "BEGIN" };
const COMMIT: &str = "COMMIT";

impl Writer {
    /// Connects.
    pub(super) async fn open(options: Options) -> Result<Self, StoreError> {
        let connection = options.connect().await?;
        // Anew means the same file, never an empty one in its place.
        let options = options.without_making();
        Ok(Self { options, place: Mutex::new(Some(connection)) })
    }

    /// The connection, for single statements.
    pub(super) async fn turn(&self) -> Result<MappedMutexGuard<'_, Connection>, StoreError> {
        let mut place = self.place.lock().await;
        let connection = self.take(&mut place).await?;
        Ok(MutexGuard::map(place, |place| place.insert(connection)))
    }

    /// Begins a transaction.
    pub(super) async fn begin(&self) -> Result<Transaction<'_>, StoreError> {
        let mut place = self.place.lock().await;
        let mut connection = self.take(&mut place).await?;
        query(BEGIN).execute(&mut connection).await?;
        Ok(Transaction { connection, place })
    }

    async fn take(&self, place: &mut Place) -> Result<Connection, StoreError> {
        if let Some(mut connection) = place.take()
            && connection.is_alive().await
        {
            return Ok(connection);
        }
        self.options.connect().await
    }
}

impl Transaction<'_> {
    /// Makes it so. After an error it may or may not be so.
    pub(crate) async fn commit(mut self) -> Result<(), StoreError> {
        query(COMMIT).execute(&mut self.connection).await?;
        *self.place = Some(self.connection);
        Ok(())
    }
}

impl Deref for Transaction<'_> {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl DerefMut for Transaction<'_> {
    fn deref_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }
}

#[cfg(test)]
mod tests {
    use crate::store::StoreError;
    use crate::store::fixtures::{self, Fixture};
    use crate::store::group::Group;
    use crate::store::log::{Row, TICK};

    /// A group that needs more than the pages that are there.
    fn group(id: &str, n: i64) -> Group {
        let body = format!("{{\"filler\":\"{}\"}}", "x".repeat(100_000));
        Group {
            id: id.into(),
            at_us: 1,
            last_n: n,
            answers: "[]".into(),
            records: vec![Row { n, kind: TICK, received_us: 1, body }],
            ..Group::default()
        }
    }

    #[tokio::test]
    async fn after_a_full_disk_writing_goes_on() {
        let Fixture { store, _folder } = fixtures::store().await;
        for number in 1..=2 {
            store.fill_up().await;
            let why = store.write_group(&group("g-1", 1)).await.unwrap_err();
            assert!(matches!(why, StoreError::Full), "{number}: {why}");
            assert!(!store.has_commit("g-1").await.unwrap());
        }
        store.write_group(&group("g-1", 1)).await.unwrap();
        store.write_group(&group("g-2", 2)).await.unwrap();
        assert!(store.has_commit("g-1").await.unwrap() && store.has_commit("g-2").await.unwrap());
        assert_eq!(fixtures::number(&store, "SELECT count(*) FROM records").await, 2);
    }

    #[tokio::test]
    async fn a_file_that_is_gone_is_not_made_anew() {
        let Fixture { store, _folder } = fixtures::store().await;
        drop(store.begin().await.unwrap());
        let path = _folder.path().join("test.db");
        std::fs::remove_file(&path).unwrap();
        assert!(store.write_group(&group("g-1", 1)).await.is_err());
        assert!(!path.exists());
    }
}
