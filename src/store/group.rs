//! One group of the writer, in one transaction: the ack stands on it.

use super::db::{Connection, query, query_scalar};
use super::identity::{self, HashRun, Key, StoredBoot, StoredSource};
use super::log::{self, Row};
use super::rollups::{self, Rollups};
use super::totals::{self, Total};
use super::transitions::{self, StoredRun};
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
    /// Ledgers that are new.
    pub ledgers: Vec<String>,
    /// Content hashes of new numbers.
    pub hashes: Vec<HashRun>,
    /// New events without a sequence, with their content hashes.
    pub event_ids: Vec<(Key, i64)>,
    /// What became a record and must not become one again.
    pub notes: Vec<Key>,
    /// Runs of transitions as they are now.
    pub transition_runs: Vec<StoredRun>,
    /// What the minutes gain.
    pub rollups: Rollups,
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
        let mut transaction = self.begin().await?;
        write(&mut transaction, self.collector(), group).await?;
        #[cfg(test)]
        self.trouble.before_commit()?;
        transaction.commit().await?;
        #[cfg(test)]
        self.trouble.after_commit()?;
        Ok(())
    }

    /// Whether a group is on disk. An error says that the database does not answer.
    pub async fn has_commit(&self, id: &str) -> Result<bool, StoreError> {
        let query = query_scalar(COMMIT_READ).bind(id);
        let count: i64 = query.fetch_one(&mut *self.writer().await?).await?;
        Ok(count > 0)
    }
}

async fn write(
    connection: &mut Connection,
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
    identity::put_ledgers(connection, &group.ledgers).await?;
    identity::put_hashes(connection, &group.hashes).await?;
    identity::put_event_ids(connection, &group.event_ids, day).await?;
    identity::put_notes(connection, &group.notes, day).await?;
    transitions::put_runs(connection, &group.transition_runs).await?;
    rollups::add(connection, &group.rollups).await?;
    totals::add(connection, collector, &group.totals).await?;
    put_commit(connection, collector, group).await
}

async fn put_commit(
    connection: &mut Connection,
    collector: i64,
    group: &Group,
) -> Result<(), StoreError> {
    // One less than is kept: this group's own row comes after.
    query(COMMITS_TRIM)
        .bind(collector)
        .bind(limits::COMMITS_KEPT - 1)
        .execute(&mut *connection)
        .await?;
    query(COMMIT_PUT)
        .bind(&group.id)
        .bind(collector)
        .bind(group.last_n)
        .bind(group.at_us)
        .bind(&group.answers)
        .execute(connection)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Boot, Outcome, Position, SourceName};
    use crate::store::db::query_as;
    use crate::store::fixtures::{self, Fixture, id};
    use crate::store::rollups::{LatencyCount, OutcomeCount};

    fixtures::contract!(
        a_group_reads_back_as_it_was_written,
        sources_and_boots_are_kept_as_they_are_now,
        a_group_is_on_disk_whole_or_not_at_all,
        the_newest_thousand_commits_are_kept,
        counts_of_a_minute_add_up
    );

    fn group(number: i64) -> Group {
        let id = format!("{number:06}");
        Group { id, at_us: number, last_n: number, answers: "[]".into(), ..Group::default() }
    }

    fn source() -> StoredSource {
        let from = SourceName { service: id("s"), env: id("prod"), source: id("a") };
        let (last_push_us, last_heartbeat_us) = (5, None);
        StoredSource { id: 1, from, last_push_us, last_heartbeat_us, state: "open".into() }
    }

    fn boot() -> StoredBoot {
        StoredBoot {
            id: 1,
            source_id: 1,
            boot: Boot::Number(7),
            first_received_us: 1,
            last_received_us: 2,
            last_seq_named: i64::MAX.unsigned_abs(),
            closing: false,
            received: "[[1,2]]".into(),
            refused: "[[3,3]]".into(),
            lost: "[[4,4]]".into(),
            given_up: "[[5,5]]".into(),
            heard_from: 1,
            heartbeats: "[-9]".into(),
        }
    }

    async fn a_group_reads_back_as_it_was_written(Fixture { store, _folder }: Fixture) {
        let keys = [[1; 16], [2; 16]];
        let run = |first_seq, hashes| HashRun { boot_id: 1, first_seq, hashes };
        let group = Group {
            records: vec![Row { n: 1, kind: 8, received_us: 9, body: "{}".into() }],
            sources: vec![source()],
            boots: vec![boot()],
            ledgers: vec!["b".into(), "a".into()],
            hashes: vec![run(1, vec![i64::MIN, -1]), run(9, vec![i64::MAX]), run(20, vec![3])],
            event_ids: vec![(keys[0], -5)],
            notes: vec![keys[1]],
            ..group(1)
        };
        store.write_group(&group).await.unwrap();
        let start = Position { collector: store.collector(), n: 0 };
        assert_eq!(store.read_records(start, 10).await.unwrap().len(), 1);
        assert_eq!(store.load_sources().await.unwrap(), [source()]);
        assert_eq!(store.load_boots().await.unwrap(), [boot()]);
        assert_eq!(store.load_ledgers().await.unwrap(), ["a", "b"]);
        assert_eq!(store.hash_runs(1, 2).await.unwrap(), group.hashes[..2]);
        assert_eq!(store.hash_runs(1, 15).await.unwrap(), group.hashes[1..]);
        assert_eq!(store.hash_runs(2, 1).await.unwrap(), []);
        let known = store.known_event_ids(&keys).await.unwrap();
        assert_eq!(known.into_iter().collect::<Vec<_>>(), [(keys[0], -5)]);
        let known = store.known_notes(&keys).await.unwrap();
        assert_eq!(known.into_iter().collect::<Vec<_>>(), [keys[1]]);
        assert!(store.known_notes(&[]).await.unwrap().is_empty());
    }

    async fn sources_and_boots_are_kept_as_they_are_now(Fixture { store, _folder }: Fixture) {
        let first = Group { sources: vec![source()], boots: vec![boot()], ..group(1) };
        store.write_group(&first).await.unwrap();
        let later = StoredSource {
            last_push_us: 8,
            last_heartbeat_us: Some(7),
            state: "silent".into(),
            ..source()
        };
        let grown = StoredBoot {
            last_received_us: 9,
            closing: true,
            received: "[[1,9]]".into(),
            refused: "[]".into(),
            lost: "[]".into(),
            given_up: "[]".into(),
            heartbeats: "[1,2]".into(),
            ..boot()
        };
        let second = Group { sources: vec![later.clone()], boots: vec![grown.clone()], ..group(2) };
        store.write_group(&second).await.unwrap();
        assert_eq!(store.load_sources().await.unwrap(), [later]);
        assert_eq!(store.load_boots().await.unwrap(), [grown]);
    }

    async fn a_group_is_on_disk_whole_or_not_at_all(Fixture { store, _folder }: Fixture) {
        store.write_group(&group(1)).await.unwrap();
        assert!(store.has_commit("000001").await.unwrap());
        let row = Row { n: 1, kind: 8, received_us: 9, body: "{}".into() };
        let again = Group { records: vec![row], ..group(1) };
        store.write_group(&again).await.unwrap_err();
        let start = Position { collector: store.collector(), n: 0 };
        assert_eq!(store.read_records(start, 10).await.unwrap(), []);
        assert!(!store.has_commit("000002").await.unwrap());
    }

    async fn the_newest_thousand_commits_are_kept(Fixture { store, _folder }: Fixture) {
        for number in 1..=limits::COMMITS_KEPT + 5 {
            store.write_group(&group(number)).await.unwrap();
        }
        assert!(!store.has_commit("000005").await.unwrap());
        assert!(store.has_commit("000006").await.unwrap());
        assert!(store.has_commit("001005").await.unwrap());
        assert_eq!(store.log_end(store.collector()).await.unwrap(), limits::COMMITS_KEPT + 5);
    }

    async fn counts_of_a_minute_add_up(Fixture { store, _folder }: Fixture) {
        let (service, env) = (id("s"), id("prod"));
        let outcomes = vec![OutcomeCount {
            service: service.clone(),
            env: env.clone(),
            minute: 7,
            outcome: Outcome::Evicted,
            count: 3,
        }];
        let latencies = vec![LatencyCount {
            service,
            env,
            minute: 7,
            metric: "check",
            buckets: vec![1, 0, 2],
            sum_us: u64::MAX,
        }];
        let rollups = Rollups { outcomes, latencies, ..Rollups::default() };
        for number in 1..=2 {
            let rollups = rollups.clone();
            store.write_group(&Group { rollups, ..group(number) }).await.unwrap();
        }
        let mut writer = store.writer().await.unwrap();
        let count: i64 =
            query_scalar("SELECT count FROM rollups").fetch_one(&mut *writer).await.unwrap();
        let latency: (String, i64) = query_as("SELECT buckets, sum_us FROM latencies")
            .fetch_one(&mut *writer)
            .await
            .unwrap();
        assert_eq!(count, 6);
        assert_eq!(latency, ("[2,0,4]".into(), i64::MAX));
    }
}
