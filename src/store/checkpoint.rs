//! Brings the write-ahead log into the database file, beside the writes.
//!
//! Left to itself, SQLite does that inside a commit: everybody then waits for all pages of many
//! seconds. Here a connection of its own does it while others write. Only for the last few pages
//! writing is held up, and then the log begins anew in place of growing for good.

use std::time::Duration;

use super::db::{Connection, query_as};
use super::dialect::{self, Place};
use super::{Store, StoreError};

/// Between two of them.
const EVERY: Duration = Duration::from_secs(1);
/// Pages of the log from which on it is to begin anew: 256 MB.
const LONG_PAGES: i64 = 64_000;

const CHECKPOINT: &str = "PRAGMA wal_checkpoint(PASSIVE)";

/// Does it, again and again.
pub struct Checkpoints {
    /// None to a server: that has its own.
    connection: Option<Connection>,
}

impl Checkpoints {
    /// Connects.
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        let connection = match Place::of(url)? {
            Place::Sqlite(path) => Some(dialect::sqlite::to_mend(path).connect().await?),
            Place::Postgres(_) => None,
        };
        Ok(Self { connection })
    }

    /// Once; a log of this many pages is to begin anew.
    async fn step(&mut self, store: &Store, long: i64) -> Result<(), StoreError> {
        if self.checkpoint().await? < long {
            return Ok(());
        }
        // What was written meanwhile, so that little is left.
        self.checkpoint().await?;
        // With nobody writing it comes to the end of the log, and the next to write begins anew.
        let _turn = store.writer().await?;
        self.checkpoint().await?;
        Ok(())
    }

    /// Returns how many pages the log has.
    async fn checkpoint(&mut self) -> Result<i64, StoreError> {
        let Some(connection) = &mut self.connection else { return Ok(0) };
        let query = query_as(CHECKPOINT).fetch_one(connection);
        let (_, pages, _): (i64, i64, i64) = query.await?;
        Ok(pages)
    }

    /// Until it is dropped.
    pub async fn run(mut self, store: &Store) -> ! {
        loop {
            tokio::time::sleep(EVERY).await;
            if let Err(error) = self.step(store, LONG_PAGES).await {
                tracing::error!(%error, "the write-ahead log grows; it is tried again");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    #[tokio::test]
    async fn a_long_log_begins_anew_while_others_write_and_read() {
        let Fixture { store, _folder } = fixtures::store().await;
        let url = format!("sqlite://{}", _folder.path().join("test.db").display());
        let mut checkpoints = Checkpoints::open(&url).await.unwrap();
        let mut pages = Vec::new();
        for _ in 0..40 {
            fixtures::run(&store, "INSERT INTO noted SELECT randomblob(9), 1").await;
            assert!(fixtures::number(&store, "SELECT count(*) FROM noted").await > 0);
            checkpoints.step(&store, 30).await.unwrap();
            pages.push(checkpoints.checkpoint().await.unwrap());
        }
        // First there are the pages of the tables.
        assert!(pages[0] >= 30, "{pages:?}");
        assert!(pages[1..].iter().all(|pages| *pages < 30), "{pages:?}");
        assert_eq!(fixtures::number(&store, "SELECT count(*) FROM noted").await, 40);
    }
}
