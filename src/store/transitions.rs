//! Moves of deliveries: the runs whose numbers came, as the writer holds them, and the counts by
//! minute, moved with the transitions that they count.

use super::db::{Connection, query, query_as};
use super::{Store, StoreError};
use crate::limits;
use crate::outcome::{Boot, DeliveryState, Id, SourceName};

/// A run of a source that sends transitions, as it is stored. The sets are JSON arrays of
/// [first, last].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredRun {
    /// Its number, negative: the content hashes of outcomes' boots are under the positive ones.
    pub id: i64,
    /// Which source.
    pub from: SourceName,
    /// Which run; none for transitions without a number.
    pub boot: Option<Boot>,
    /// Receipt of its newest transition.
    pub last_received_us: i64,
    /// Written.
    pub received: String,
    /// Not taken any more.
    pub lost: String,
}

/// Moves of one minute to add, or as they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransitionCount {
    /// Which service.
    pub service: Id,
    /// Which env.
    pub env: Id,
    /// Which minute of occurrence, counted from 1970.
    pub minute: i64,
    /// The state before.
    pub left: DeliveryState,
    /// The state after.
    pub entered: DeliveryState,
    /// How many.
    pub count: u64,
}

const RUNS: &str = "SELECT id, service, env, source, boot, last_received_us, received, lost \
     FROM transition_runs ORDER BY id";
const RUN_PUT: &str = "INSERT INTO transition_runs \
     (id, service, env, source, boot, last_received_us, received, lost) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (id) DO UPDATE SET \
     last_received_us = excluded.last_received_us, received = excluded.received, \
     lost = excluded.lost";
const ADD: &str = "INSERT INTO transitions \
     (service, env, minute, state_from, state_to, count) VALUES ($1, $2, $3, $4, $5, $6) \
     ON CONFLICT (service, env, minute, state_from, state_to) \
     DO UPDATE SET count = transitions.count + excluded.count";

/// Writes runs as they are now, inside the caller's transaction.
pub(super) async fn put_runs(
    connection: &mut Connection,
    runs: &[StoredRun],
) -> Result<(), StoreError> {
    for run in runs {
        query(RUN_PUT)
            .bind(run.id)
            .bind(run.from.service.as_str())
            .bind(run.from.env.as_str())
            .bind(run.from.source.as_str())
            .bind(run.boot.map_or_else(String::new, |boot| boot.to_string()))
            .bind(run.last_received_us)
            .bind(&run.received)
            .bind(&run.lost)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

/// Adds moves of minutes, inside the caller's transaction.
pub(super) async fn add(
    connection: &mut Connection,
    counts: &[TransitionCount],
) -> Result<(), StoreError> {
    for count in counts {
        query(ADD)
            .bind(count.service.as_str())
            .bind(count.env.as_str())
            .bind(count.minute)
            .bind(count.left.as_str())
            .bind(count.entered.as_str())
            .bind(i64::try_from(count.count).unwrap_or(i64::MAX))
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

type RunColumns = (i64, String, String, String, String, i64, String, String);

fn unreadable(table: &'static str, detail: &impl ToString) -> StoreError {
    StoreError::Unreadable { table, detail: detail.to_string() }
}

fn id(table: &'static str, text: &str) -> Result<Id, StoreError> {
    Id::parse(text).map_err(|error| unreadable(table, &error))
}

fn run(columns: RunColumns) -> Result<StoredRun, StoreError> {
    const TABLE: &str = "transition_runs";
    let (number, service, env, source, boot, last_received_us, received, lost) = columns;
    let boot = Some(boot).filter(|boot| !boot.is_empty()).map(|boot| Boot::parse(&boot));
    Ok(StoredRun {
        id: number,
        from: SourceName {
            service: id(TABLE, &service)?,
            env: id(TABLE, &env)?,
            source: id(TABLE, &source)?,
        },
        boot: boot.transpose().map_err(|error| unreadable(TABLE, &error))?,
        last_received_us,
        received,
        lost,
    })
}

const BY_MINUTE: &str = "SELECT service, env, minute, state_from, state_to, count \
     FROM transitions WHERE service = $1 AND minute >= $2 AND minute <= $3 \
     ORDER BY minute DESC, env, state_from, state_to LIMIT $4";

impl Store {
    /// All runs that transitions came of.
    pub async fn load_transition_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let rows: Vec<RunColumns> = query_as(RUNS).fetch_all(&mut *self.writer().await?).await?;
        rows.into_iter().map(run).collect()
    }

    /// Moves of a service in all its envs, minute `first` to `last` inclusive, newest first.
    pub async fn transitions_by_minute(
        &self,
        service: &str,
        first: i64,
        last: i64,
    ) -> Result<Vec<TransitionCount>, StoreError> {
        let rows: Vec<(String, String, i64, String, String, i64)> = query_as(BY_MINUTE)
            .bind(service)
            .bind(first)
            .bind(last)
            .bind(limits::SCAN_ROWS_MAX)
            .fetch_all(self.readers())
            .await?;
        rows.into_iter().map(count).collect()
    }
}

fn count(
    columns: (String, String, i64, String, String, i64),
) -> Result<TransitionCount, StoreError> {
    const TABLE: &str = "transitions";
    let (service, env, minute, left, entered, count) = columns;
    let state = |name: &str| {
        let named = DeliveryState::ALL.into_iter().find(|state| state.as_str() == name);
        named.ok_or_else(|| unreadable(TABLE, &format!("state {name}")))
    };
    Ok(TransitionCount {
        service: id(TABLE, &service)?,
        env: id(TABLE, &env)?,
        minute,
        left: state(&left)?,
        entered: state(&entered)?,
        count: count.unsigned_abs(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};
    use crate::store::group::Group;
    use crate::store::identity::HashRun;
    use crate::store::rollups::Rollups;

    fixtures::contract!(
        runs_read_back_as_they_were_written,
        counts_of_a_minute_add_up_and_are_read_of_a_span
    );

    fn stored(boot: Option<Boot>, id: i64) -> StoredRun {
        let [service, env, source] = ["s", "prod", "a"].map(fixtures::id);
        let (received, lost) = ("[[1,2]]".into(), "[]".into());
        let from = SourceName { service, env, source };
        StoredRun { id, from, boot, last_received_us: 5, received, lost }
    }

    fn counted(minute: i64, entered: DeliveryState, count: u64) -> TransitionCount {
        let (service, env) = (fixtures::id("s"), fixtures::id("prod"));
        TransitionCount { service, env, minute, left: DeliveryState::Received, entered, count }
    }

    async fn runs_read_back_as_they_were_written(Fixture { store, _folder }: Fixture) {
        let runs = [stored(None, -2), stored(Some(Boot::Number(7)), -1)];
        let group = Group { id: "1".into(), transition_runs: runs.to_vec(), ..Group::default() };
        store.write_group(&group).await.unwrap();
        assert_eq!(store.load_transition_runs().await.unwrap(), runs);
        let grown = StoredRun {
            last_received_us: 9,
            received: "[[5,9]]".into(),
            lost: "[[1,4]]".into(),
            ..runs[1].clone()
        };
        let hashes = vec![HashRun { boot_id: -1, first_seq: 1, hashes: vec![3] }];
        let transition_runs = vec![grown.clone()];
        let group = Group { id: "2".into(), transition_runs, hashes, ..Group::default() };
        store.write_group(&group).await.unwrap();
        assert_eq!(store.load_transition_runs().await.unwrap(), [runs[0].clone(), grown]);
        assert!(store.forget_boot(-1).await.unwrap());
        assert_eq!(store.load_transition_runs().await.unwrap(), runs[..1]);
        assert_eq!(store.hash_runs(-1, 1).await.unwrap(), []);
    }

    async fn counts_of_a_minute_add_up_and_are_read_of_a_span(Fixture { store, _folder }: Fixture) {
        let (checking, refused) = (DeliveryState::Checking, DeliveryState::Refused);
        for id in ["1", "2"] {
            let transitions = vec![
                counted(6, checking, 1),
                counted(7, checking, 3),
                counted(8, refused, 1),
                counted(9, refused, 1),
            ];
            let rollups = Rollups { transitions, ..Rollups::default() };
            let group = Group { id: id.into(), rollups, ..Group::default() };
            store.write_group(&group).await.unwrap();
        }
        let read = store.transitions_by_minute("s", 7, 8).await.unwrap();
        assert_eq!(read, [counted(8, refused, 2), counted(7, checking, 6)]);
        assert_eq!(store.transitions_by_minute("t", 7, 8).await.unwrap(), []);
    }
}
