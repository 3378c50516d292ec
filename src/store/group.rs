//! One group of the writer, in one transaction: the ack stands on it.

use sqlx::{Connection, SqliteConnection};

use super::identity::{self, HashRun, Key, StoredBoot, StoredSource};
use super::log::{self, Row};
use super::rollups::{self, LatencyCount, OutcomeCount};
use super::totals::{self, Total};
use super::{Store, StoreError};
use crate::limits;

/// All that one commit writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    /// Its own id, by which an unclear commit is looked up.
    pub id: String,
    /// When it is written.
    pub at_us: i64,
    /// The last position given out, by this group or before it.
    pub last_n: i64,
    /// Counts for each request, as JSON.
    pub answers: String,
    /// Entries of the log, in order.
    pub records: Vec<Row>,
    /// Sources as they are now.
    pub sources: Vec<StoredSource>,
    /// Boots as they are now.
    pub boots: Vec<StoredBoot>,
    /// Content hashes of new numbers.
    pub hashes: Vec<HashRun>,
    /// New events without a sequence, with their content hashes.
    pub event_ids: Vec<(Key, i64)>,
    /// What became a record and must not become one again.
    pub notes: Vec<Key>,
    /// Outcomes by minute.
    pub outcomes: Vec<OutcomeCount>,
    /// Latencies by minute.
    pub latencies: Vec<LatencyCount>,
    /// What the counters gain.
    pub totals: Vec<Total>,
}

const COMMIT_PUT: &str = "INSERT INTO commits (id, collector, last_n, at_us, answers) \
     VALUES ($1, $2, $3, $4, $5)";
const COMMITS_TRIM: &str = "DELETE FROM commits WHERE collector = $1 AND id <= \
     (SELECT id FROM commits WHERE collector = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)";
const COMMIT_READ: &str = "SELECT count(*) FROM commits WHERE id = $1";

impl Store {
    /// Writes a group. After an error it may or may not be on disk: ask [`Store::has_commit`].
    pub async fn write_group(&self, group: &Group) -> Result<(), StoreError> {
        let mut connection = self.writer().await;
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await?;
        write(&mut transaction, self.collector(), group).await?;
        Ok(transaction.commit().await?)
    }

    /// Whether a group is on disk. An error says that the database does not answer.
    pub async fn has_commit(&self, id: &str) -> Result<bool, StoreError> {
        let query = sqlx::query_scalar(COMMIT_READ).bind(id);
        let count: i64 = query.fetch_one(&mut *self.writer().await).await?;
        Ok(count > 0)
    }
}

async fn write(
    connection: &mut SqliteConnection,
    collector: i64,
    group: &Group,
) -> Result<(), StoreError> {
    let day = group.at_us.div_euclid(limits::DAY_US);
    log::append(connection, collector, &group.records).await?;
    for source in &group.sources {
        identity::put_source(connection, source).await?;
    }
    for boot in &group.boots {
        identity::put_boot(connection, boot).await?;
    }
    identity::put_hashes(connection, &group.hashes).await?;
    identity::put_event_ids(connection, &group.event_ids, day).await?;
    identity::put_notes(connection, &group.notes, day).await?;
    rollups::add_outcomes(connection, &group.outcomes).await?;
    rollups::add_latencies(connection, &group.latencies).await?;
    totals::add(connection, collector, &group.totals).await?;
    put_commit(connection, collector, group).await
}

async fn put_commit(
    connection: &mut SqliteConnection,
    collector: i64,
    group: &Group,
) -> Result<(), StoreError> {
    // One less than is kept: this group's own row comes after.
    sqlx::query(COMMITS_TRIM)
        .bind(collector)
        .bind(limits::COMMITS_KEPT - 1)
        .execute(&mut *connection)
        .await?;
    sqlx::query(COMMIT_PUT)
        .bind(&group.id)
        .bind(collector)
        .bind(group.last_n)
        .bind(group.at_us)
        .bind(&group.answers)
        .execute(connection)
        .await?;
    Ok(())
}
