//! Who reports, and what of it is missing.

use super::db::{Row, query, query_as};
use super::{Store, StoreError};
use crate::limits;
use crate::outcome::{Id, SourceName};

/// One guard instance with its newest run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceRow {
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// Which instance.
    pub source: String,
    /// `open`, `silent` or `closed`.
    pub state: String,
    /// Receipt of the newest push or heartbeat.
    pub last_push_us: i64,
    /// Receipt of the newest heartbeat; `None`: not watched.
    pub last_heartbeat_us: Option<i64>,
    /// Its newest run; `None` for senders that don't count.
    pub boot: Option<BootRow>,
}

impl SourceRow {
    /// Its whole name; `None` if a part is no id.
    pub fn name(&self) -> Option<SourceName> {
        Some(SourceName {
            service: Id::parse(&self.service).ok()?,
            env: Id::parse(&self.env).ok()?,
            source: Id::parse(&self.source).ok()?,
        })
    }
}

/// One run of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootRow {
    /// Its start time or number.
    pub boot: String,
    /// Receipt of its first word.
    pub first_received_us: i64,
    /// Receipt of its newest word.
    pub last_received_us: i64,
    /// Highest number that came or that a heartbeat named.
    pub last_seq: i64,
    /// Numbers that came and were taken, but for those within `lost`.
    pub received: Vec<(i64, i64)>,
    /// Numbers that came and were refused.
    pub refused: Vec<(i64, i64)>,
    /// One range from the first lost number to the last; what came of it is written all the same.
    pub lost: Vec<(i64, i64)>,
}

impl BootRow {
    /// How many numbers were taken; `None` if some are lost: of those taken between the lost
    /// ones, only the content hashes are kept.
    pub fn taken(&self) -> Option<i64> {
        self.lost.is_empty().then(|| size_of(&self.received))
    }

    /// The numbers that did not come, lowest first.
    pub fn missing(&self) -> Vec<(i64, i64)> {
        let mut known: Vec<_> =
            [&self.received, &self.refused, &self.lost].into_iter().flatten().copied().collect();
        known.sort_unstable();
        // A first number above 1 is no hole by itself: the boot may have been under way.
        let Some(&(first, _)) = known.first() else { return Vec::new() };
        let mut missing = Vec::new();
        // The last number that is accounted for; a boot may end at the last number that there is.
        let mut until = first - 1;
        for (first, last) in known {
            if first - 1 > until {
                missing.push((until + 1, first - 1));
            }
            until = until.max(last);
        }
        if self.last_seq > until {
            missing.push((until + 1, self.last_seq));
        }
        missing
    }
}

/// How many numbers these ranges hold.
pub fn size_of(ranges: &[(i64, i64)]) -> i64 {
    let size = |(first, last): &(i64, i64)| last.saturating_sub(*first).saturating_add(1);
    ranges.iter().map(size).fold(0, i64::saturating_add)
}

const LIST: &str = "SELECT s.service, s.env, s.source, s.state, s.last_push_us, \
     s.last_heartbeat_us, b.boot, b.first_received_us, b.last_received_us, b.last_seq_named, \
     b.received, b.refused, b.lost FROM sources s LEFT JOIN boots b ON b.id = \
     (SELECT n.id FROM boots n WHERE n.source_id = s.id \
      ORDER BY n.last_received_us DESC, n.id DESC LIMIT 1) \
     WHERE (s.service, s.env, s.source) > ($1, $2, $3) AND ($4 IS NULL OR s.service = $4) \
     AND ($5 IS NULL OR s.env = $5) ORDER BY s.service, s.env, s.source LIMIT $6";

impl Store {
    /// Sources by service, env and name, after the given one, of one service and env if they are
    /// given.
    pub async fn sources(
        &self,
        after: Option<(&str, &str, &str)>,
        service: Option<&str>,
        env: Option<&str>,
        limit: u32,
    ) -> Result<Vec<SourceRow>, StoreError> {
        let (after_service, after_env, after_source) = after.unwrap_or_default();
        let rows = query(LIST)
            .bind(after_service)
            .bind(after_env)
            .bind(after_source)
            .bind(service)
            .bind(env)
            .bind(limit.min(limits::LIST_ROWS_MAX))
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(read_source).collect()
    }
}

/// How many sources of a service are in one state, and when one of them was last heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceCount {
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// `open`, `silent` or `closed`; or, of those not heard for long, `quiet` (open, but sends no
    /// heartbeats that would be missed) or `gone` (silent).
    pub state: String,
    /// How many.
    pub count: i64,
    /// Receipt of the newest push or heartbeat of any of them.
    pub last_push_us: i64,
}

const COUNTS: &str = "SELECT service, env, CASE \
     WHEN state = 'silent' AND last_push_us <= $2 THEN 'gone' \
     WHEN state = 'open' AND last_heartbeat_us IS NULL AND last_push_us <= $3 THEN 'quiet' \
     ELSE state END AS standing, count(*), max(last_push_us) FROM sources \
     WHERE ($1 IS NULL OR service = $1) GROUP BY service, env, standing \
     ORDER BY service, env, standing LIMIT $4";

impl Store {
    /// Sources counted by service, env and state: of those last heard until `gone_us` and
    /// `quiet_us` it is known no more.
    pub async fn source_counts(
        &self,
        service: Option<&str>,
        gone_us: i64,
        quiet_us: i64,
    ) -> Result<Vec<SourceCount>, StoreError> {
        let rows: Vec<(String, String, String, i64, i64)> = query_as(COUNTS)
            .bind(service)
            .bind(gone_us)
            .bind(quiet_us)
            .bind(limits::SCAN_ROWS_MAX)
            .fetch_all(self.readers())
            .await?;
        let read = |(service, env, state, count, last_push_us)| SourceCount {
            service,
            env,
            state,
            count,
            last_push_us,
        };
        Ok(rows.into_iter().map(read).collect())
    }
}

fn read_source(row: &Row) -> Result<SourceRow, StoreError> {
    Ok(SourceRow {
        service: row.try_get(0)?,
        env: row.try_get(1)?,
        source: row.try_get(2)?,
        state: row.try_get(3)?,
        last_push_us: row.try_get(4)?,
        last_heartbeat_us: row.try_get(5)?,
        boot: row.try_get::<Option<String>>(6)?.map(|boot| read_boot(row, boot)).transpose()?,
    })
}

fn read_boot(row: &Row, boot: String) -> Result<BootRow, StoreError> {
    let named: i64 = row.try_get(9)?;
    let (received, refused, lost) = (ranges(row, 10)?, ranges(row, 11)?, ranges(row, 12)?);
    let highest = [&received, &refused, &lost].into_iter().flatten().map(|(_, last)| *last).max();
    Ok(BootRow {
        boot,
        first_received_us: row.try_get(7)?,
        last_received_us: row.try_get(8)?,
        last_seq: named.max(highest.unwrap_or(0)),
        received,
        refused,
        lost,
    })
}

fn ranges(row: &Row, column: usize) -> Result<Vec<(i64, i64)>, StoreError> {
    let text: &str = row.try_get(column)?;
    serde_json::from_str(text)
        .map_err(|error| StoreError::Unreadable { table: "boots", detail: error.to_string() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(lists_sources_with_their_newest_boot_by_key, counts_sources_by_state);

    async fn set_the_scene(store: &Store) {
        fixtures::run(
            store,
            "INSERT INTO sources VALUES (1, 'a', 'prod', 's1', 100, 90, 'open'), \
             (2, 'a', 'prod', 's2', 50, NULL, 'silent'), (3, 'b', 'prod', 's1', 70, 60, 'open')",
        )
        .await;
        fixtures::run(
            store,
            "INSERT INTO boots VALUES \
             (1, 1, '7', 10, 20, 9, false, '[[1,9]]', '[]', '[]', '[]', 1, '[]'), \
             (2, 1, '8', 30, 100, 12, false, '[[1,4],[8,8]]', '[[5,5]]', '[[9,9]]', '[]', 1, '[]')",
        )
        .await;
    }

    async fn lists_sources_with_their_newest_boot_by_key(Fixture { store, _folder }: Fixture) {
        set_the_scene(&store).await;
        let all = store.sources(None, None, None, 10).await.unwrap();
        let names: Vec<_> = all.iter().map(|row| (&*row.service, &*row.source)).collect();
        assert_eq!(names, [("a", "s1"), ("a", "s2"), ("b", "s1")]);
        let boot = all[0].boot.as_ref().unwrap();
        assert_eq!((&*boot.boot, boot.last_seq), ("8", 12));
        assert_eq!(boot.missing(), [(6, 7), (10, 12)]);
        assert_eq!(size_of(&boot.missing()), 5);
        assert_eq!(all[1].boot, None);
        let rest = store.sources(Some(("a", "prod", "s1")), None, None, 1).await.unwrap();
        assert_eq!(rest, all[1..2]);
        assert_eq!(store.sources(None, Some("b"), None, 10).await.unwrap(), all[2..]);
        assert_eq!(store.sources(None, Some("b"), Some("prod"), 10).await.unwrap(), all[2..]);
        assert_eq!(store.sources(None, Some("b"), Some("test"), 10).await.unwrap(), []);
    }

    async fn counts_sources_by_state(Fixture { store, _folder }: Fixture) {
        set_the_scene(&store).await;
        let counts = store.source_counts(Some("a"), 49, 0).await.unwrap();
        let counts: Vec<_> = counts.iter().map(|row| (&*row.state, row.last_push_us)).collect();
        assert_eq!(counts, [("open", 100), ("silent", 50)]);
        let counts = store.source_counts(None, 50, 1_000).await.unwrap();
        let counts: Vec<_> = counts.iter().map(|row| &*row.state).collect();
        assert_eq!(counts, ["gone", "open", "open"], "who sends heartbeats is never quiet");
        fixtures::run(&store, "UPDATE sources SET last_heartbeat_us = NULL WHERE id = 1").await;
        let counts = store.source_counts(Some("a"), 0, 100).await.unwrap();
        let counts: Vec<_> = counts.iter().map(|row| &*row.state).collect();
        assert_eq!(counts, ["quiet", "silent"]);
    }

    #[test]
    fn a_boot_heard_from_the_middle_on_has_no_hole_before() {
        let boot = BootRow {
            boot: "1".into(),
            first_received_us: 0,
            last_received_us: 0,
            last_seq: 9,
            received: vec![(5, 9)],
            refused: vec![],
            lost: vec![],
        };
        assert_eq!(boot.missing(), []);
        let named = BootRow { received: vec![], ..boot };
        assert_eq!(named.missing(), [], "nothing but a heartbeat came");
    }

    #[test]
    fn the_last_number_that_there_is_is_no_trap() {
        let boot = |received: &[(i64, i64)]| BootRow {
            boot: "1".into(),
            first_received_us: 0,
            last_received_us: 0,
            last_seq: i64::MAX,
            received: received.to_vec(),
            refused: vec![],
            lost: vec![],
        };
        let tail = boot(&[(1, 3)]).missing();
        assert_eq!(tail, [(4, i64::MAX)]);
        assert_eq!(size_of(&tail), i64::MAX - 3);
        let hole = boot(&[(1, 3), (i64::MAX, i64::MAX)]).missing();
        assert_eq!(hole, [(4, i64::MAX - 1)]);
        let whole = boot(&[(1, i64::MAX)]);
        assert_eq!((whole.missing(), whole.taken()), (vec![], Some(i64::MAX)));
    }
}
