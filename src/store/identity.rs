//! What is known of every sender: its sources, their boots with the sets of numbers, the content
//! hashes of what was written, and what was noted once.
//!
//! The writer reads sources and boots at its start and holds them in memory; it alone writes
//! them. Hashes, event ids and notes are too many for that: they are looked up, and only where an
//! event is a repeat, has no sequence or was refused.

use std::collections::{HashMap, HashSet};

use super::db::{Connection, Row, insert_rows, query, query_as, query_scalar, select_in};
use super::{Store, StoreError};
use crate::outcome::{Boot, Id, SourceName};

/// 128 bits of the keyed hash of an identity.
pub type Key = [u8; 16];

/// A source as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSource {
    /// Its number.
    pub id: i64,
    /// Which one.
    pub from: SourceName,
    /// Receipt of its newest push or heartbeat.
    pub last_push_us: i64,
    /// Receipt of its newest heartbeat.
    pub last_heartbeat_us: Option<i64>,
    /// `open`, `silent` or `closed`.
    pub state: String,
}

/// A boot as it is stored. The sets are JSON arrays of [first, last].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredBoot {
    /// Its number.
    pub id: i64,
    /// The number of its source.
    pub source_id: i64,
    /// Which run.
    pub boot: Boot,
    /// Receipt of its first word.
    pub first_received_us: i64,
    /// Receipt of its newest word.
    pub last_received_us: i64,
    /// Highest number that a heartbeat named.
    pub last_seq_named: u64,
    /// Whether it said goodbye.
    pub closing: bool,
    /// Written.
    pub received: String,
    /// Came and was not taken.
    pub refused: String,
    /// Not taken any more.
    pub lost: String,
    /// Not waited for any more.
    pub given_up: String,
    /// From which number on holes are waited for.
    pub heard_from: u64,
    /// Content hashes of the newest heartbeats, a JSON array.
    pub heartbeats: String,
}

/// Content hashes of numbers without a hole between them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HashRun {
    /// Of which boot.
    pub boot_id: i64,
    /// The first number.
    pub first_seq: u64,
    /// One for each number.
    pub hashes: Vec<i64>,
}

const SOURCES: &str = "SELECT id, service, env, source, last_push_us, last_heartbeat_us, state \
     FROM sources ORDER BY id";
const BOOTS: &str = "SELECT id, source_id, boot, first_received_us, last_received_us, \
     last_seq_named, closing, received, refused, lost, given_up, heard_from, heartbeats \
     FROM boots ORDER BY id";
const LEDGERS: &str = "SELECT name FROM ledgers ORDER BY name";

impl Store {
    /// All sources.
    pub async fn load_sources(&self) -> Result<Vec<StoredSource>, StoreError> {
        let rows = query(SOURCES).fetch_all(&mut *self.writer().await?).await?;
        rows.iter().map(read_source).collect()
    }

    /// All ledgers.
    pub async fn load_ledgers(&self) -> Result<Vec<String>, StoreError> {
        Ok(query_scalar(LEDGERS).fetch_all(&mut *self.writer().await?).await?)
    }

    /// All boots.
    pub async fn load_boots(&self) -> Result<Vec<StoredBoot>, StoreError> {
        let rows = query(BOOTS).fetch_all(&mut *self.writer().await?).await?;
        rows.iter().map(read_boot).collect()
    }
}

fn unreadable(table: &'static str, detail: &impl ToString) -> StoreError {
    StoreError::Unreadable { table, detail: detail.to_string() }
}

fn read_source(row: &Row) -> Result<StoredSource, StoreError> {
    let id = |column: usize| {
        Id::parse(row.try_get(column)?).map_err(|error| unreadable("sources", &error))
    };
    Ok(StoredSource {
        id: row.try_get(0)?,
        from: SourceName { service: id(1)?, env: id(2)?, source: id(3)? },
        last_push_us: row.try_get(4)?,
        last_heartbeat_us: row.try_get(5)?,
        state: row.try_get(6)?,
    })
}

fn read_boot(row: &Row) -> Result<StoredBoot, StoreError> {
    let boot = Boot::parse(row.try_get(2)?).map_err(|error| unreadable("boots", &error))?;
    Ok(StoredBoot {
        id: row.try_get(0)?,
        source_id: row.try_get(1)?,
        boot,
        first_received_us: row.try_get(3)?,
        last_received_us: row.try_get(4)?,
        last_seq_named: row.try_get::<i64>(5)?.unsigned_abs(),
        closing: row.try_get(6)?,
        received: row.try_get(7)?,
        refused: row.try_get(8)?,
        lost: row.try_get(9)?,
        given_up: row.try_get(10)?,
        heard_from: row.try_get::<i64>(11)?.unsigned_abs(),
        heartbeats: row.try_get(12)?,
    })
}

const SOURCE_PUT: &str = "INSERT INTO sources \
     (id, service, env, source, last_push_us, last_heartbeat_us, state) \
     VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO UPDATE SET \
     last_push_us = excluded.last_push_us, last_heartbeat_us = excluded.last_heartbeat_us, \
     state = excluded.state";

/// Writes a source as it is now.
pub(super) async fn put_source(
    connection: &mut Connection,
    source: &StoredSource,
) -> Result<(), StoreError> {
    query(SOURCE_PUT)
        .bind(source.id)
        .bind(source.from.service.as_str())
        .bind(source.from.env.as_str())
        .bind(source.from.source.as_str())
        .bind(source.last_push_us)
        .bind(source.last_heartbeat_us)
        .bind(&source.state)
        .execute(connection)
        .await?;
    Ok(())
}

const BOOT_PUT: &str = "INSERT INTO boots \
     (id, source_id, boot, first_received_us, last_received_us, last_seq_named, closing, \
      received, refused, lost, given_up, heard_from, heartbeats) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) \
     ON CONFLICT (id) DO UPDATE SET last_received_us = excluded.last_received_us, \
     last_seq_named = excluded.last_seq_named, closing = excluded.closing, \
     received = excluded.received, refused = excluded.refused, lost = excluded.lost, \
     given_up = excluded.given_up, heard_from = excluded.heard_from, \
     heartbeats = excluded.heartbeats";

/// Writes a boot as it is now.
pub(super) async fn put_boot(
    connection: &mut Connection,
    boot: &StoredBoot,
) -> Result<(), StoreError> {
    query(BOOT_PUT)
        .bind(boot.id)
        .bind(boot.source_id)
        .bind(boot.boot.to_string())
        .bind(boot.first_received_us)
        .bind(boot.last_received_us)
        .bind(boot.last_seq_named.cast_signed())
        .bind(boot.closing)
        .bind(&boot.received)
        .bind(&boot.refused)
        .bind(&boot.lost)
        .bind(&boot.given_up)
        .bind(boot.heard_from.cast_signed())
        .bind(&boot.heartbeats)
        .execute(connection)
        .await?;
    Ok(())
}

const LEDGER_PUT: &str = "INSERT INTO ledgers (name) VALUES ($1)";

/// Writes ledgers that are new: few, and hardly ever.
pub(super) async fn put_ledgers(
    connection: &mut Connection,
    names: &[String],
) -> Result<(), StoreError> {
    for name in names {
        query(LEDGER_PUT).bind(name).execute(&mut *connection).await?;
    }
    Ok(())
}

const HASHES_PUT: &str = "INSERT INTO hashes (boot_id, first_seq, hashes) ";

/// Writes the hashes of numbers that are new.
pub(super) async fn put_hashes(
    connection: &mut Connection,
    runs: &[HashRun],
) -> Result<(), StoreError> {
    let rows = runs.iter().map(|run| {
        let bytes: Vec<u8> = run.hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect();
        [run.boot_id.into(), run.first_seq.cast_signed().into(), bytes.into()]
    });
    Ok(insert_rows(connection, HASHES_PUT, rows.collect(), "").await?)
}

/// The run that may hold a number, and the one after it: repeats come in order.
const HASHES_READ: &str = "SELECT first_seq, hashes FROM hashes WHERE boot_id = $1 AND \
     first_seq >= coalesce((SELECT max(first_seq) FROM hashes \
         WHERE boot_id = $1 AND first_seq <= $2), $2) \
     ORDER BY first_seq LIMIT 2";

impl Store {
    /// Content hashes around a number of a boot.
    pub async fn hash_runs(&self, boot_id: i64, seq: u64) -> Result<Vec<HashRun>, StoreError> {
        let rows: Vec<(i64, Vec<u8>)> = query_as(HASHES_READ)
            .bind(boot_id)
            .bind(seq.cast_signed())
            .fetch_all(&mut *self.writer().await?)
            .await?;
        let run = |(first_seq, bytes): (i64, Vec<u8>)| HashRun {
            boot_id,
            first_seq: first_seq.unsigned_abs(),
            hashes: bytes.as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect(),
        };
        Ok(rows.into_iter().map(run).collect())
    }
}

const EVENT_IDS_PUT: &str = "INSERT INTO event_ids (id, content, day) ";

/// Writes the identities of events that name one, with the hashes of their content.
pub(super) async fn put_event_ids(
    connection: &mut Connection,
    ids: &[(Key, i64)],
    day: i64,
) -> Result<(), StoreError> {
    let rows = ids.iter().map(|(id, content)| [id.as_slice().into(), content.into(), day.into()]);
    Ok(insert_rows(connection, EVENT_IDS_PUT, rows.collect(), "").await?)
}

const NOTES_PUT: &str = "INSERT INTO noted (id, day) ";

/// Notes that something became a record.
pub(super) async fn put_notes(
    connection: &mut Connection,
    notes: &[Key],
    day: i64,
) -> Result<(), StoreError> {
    let rows = notes.iter().map(|id| [id.as_slice().into(), day.into()]);
    Ok(insert_rows(connection, NOTES_PUT, rows.collect(), "").await?)
}

const EVENT_IDS_READ: &str = "SELECT id, content FROM event_ids WHERE id IN ";
const NOTES_READ: &str = "SELECT id FROM noted WHERE id IN ";

impl Store {
    /// Those of these events that were written before, with the hashes of their content.
    pub async fn known_event_ids(&self, ids: &[Key]) -> Result<HashMap<Key, i64>, StoreError> {
        let mut known = HashMap::new();
        for row in select_in(&mut *self.writer().await?, EVENT_IDS_READ, ids).await? {
            known.insert(key("event_ids", row.try_get(0)?)?, row.try_get(1)?);
        }
        Ok(known)
    }

    /// Those of these that became a record before.
    pub async fn known_notes(&self, ids: &[Key]) -> Result<HashSet<Key>, StoreError> {
        let mut known = HashSet::new();
        for row in select_in(&mut *self.writer().await?, NOTES_READ, ids).await? {
            known.insert(key("noted", row.try_get(0)?)?);
        }
        Ok(known)
    }
}

fn key(table: &'static str, bytes: &[u8]) -> Result<Key, StoreError> {
    Key::try_from(bytes).map_err(|error| unreadable(table, &error))
}
