//! The log: `records`, append-only, the truth that all else is a fold of.
//!
//! The writer appends inside the transaction of its group; the judge and the pages read. A body
//! is kept as the JSON of its variant, an event in the very form of the wire, so that a person
//! with `sqlite3` can read the log too.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::db::{Connection, query, query_scalar};
use super::{Store, StoreError, db, part};
use crate::outcome::{Body, Position, Record, Settings};

/// One entry as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its place in this collector's part of the log.
    pub n: i64,
    /// Which variant (see [`encode`]).
    pub kind: i64,
    /// When the collector wrote it.
    pub received_us: i64,
    /// The variant as JSON.
    pub body: String,
}

/// The kind of an outcome. The numbers are part of the file format and never change.
pub const EVENT: i64 = 1;
const REFUSED: i64 = 2;
/// The kind of an outcome that tells a known identity with other content.
pub const CONFLICT: i64 = 3;
const HEARTBEAT: i64 = 4;
const SILENT: i64 = 5;
const GIVEN_UP: i64 = 6;
const CLOSED: i64 = 7;
pub(super) const TICK: i64 = 8;
/// The kind of a transition.
pub const TRANSITION: i64 = 9;
/// The kind of a transition that tells a known identity with other content.
pub const TRANSITION_CONFLICT: i64 = 10;
const SETTINGS: i64 = 11;

/// The stored form of a body: its kind, and its JSON.
pub fn encode(body: &Body) -> Result<(i64, String), StoreError> {
    Ok(match body {
        Body::Event(event) => (EVENT, json(event)?),
        Body::Refused(refused) => (REFUSED, json(refused)?),
        Body::Conflict(event) => (CONFLICT, json(event)?),
        Body::Heartbeat(heartbeat) => (HEARTBEAT, json(heartbeat)?),
        Body::Silent(silent) => (SILENT, json(silent)?),
        Body::GivenUp(given_up) => (GIVEN_UP, json(given_up)?),
        Body::Closed(closed) => (CLOSED, json(closed)?),
        Body::Tick => (TICK, "{}".into()),
        Body::Transition(transition) => (TRANSITION, json(transition)?),
        Body::TransitionConflict(transition) => (TRANSITION_CONFLICT, json(transition)?),
        Body::Settings(settings) => (SETTINGS, json(settings)?),
    })
}

/// Reads the stored form back.
pub fn decode(kind: i64, body: &str) -> Result<Body, StoreError> {
    Ok(match kind {
        EVENT => Body::Event(parse(body)?),
        REFUSED => Body::Refused(parse(body)?),
        CONFLICT => Body::Conflict(parse(body)?),
        HEARTBEAT => Body::Heartbeat(parse(body)?),
        SILENT => Body::Silent(parse(body)?),
        GIVEN_UP => Body::GivenUp(parse(body)?),
        CLOSED => Body::Closed(parse(body)?),
        TICK => Body::Tick,
        TRANSITION => Body::Transition(parse(body)?),
        TRANSITION_CONFLICT => Body::TransitionConflict(parse(body)?),
        SETTINGS => Body::Settings(parse(body)?),
        _ => return Err(unreadable(format!("kind {kind}"))),
    })
}

fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| unreadable(error.to_string()))
}

fn parse<T: DeserializeOwned>(body: &str) -> Result<T, StoreError> {
    serde_json::from_str(body).map_err(|error| unreadable(error.to_string()))
}

fn unreadable(detail: String) -> StoreError {
    StoreError::Unreadable { table: "records", detail }
}

const APPEND: &str = "INSERT INTO records (collector, n, kind, received_us, body) ";

/// Appends rows inside the writer's transaction.
pub(crate) async fn append(
    connection: &mut Connection,
    collector: i64,
    rows: &[Row],
) -> Result<(), StoreError> {
    let rows = rows.iter().map(|row| {
        let (n, kind, received_us) = (row.n.into(), row.kind.into(), row.received_us.into());
        [collector.into(), n, kind, received_us, (&row.body).into()]
    });
    Ok(db::insert_rows(connection, APPEND, rows.collect(), "").await?)
}

const READ: &str = "SELECT n, kind, received_us, body FROM records \
     WHERE collector = $1 AND n > $2 ORDER BY n LIMIT $3";
const END: &str = "SELECT max(n) FROM (SELECT max(n) AS n FROM records WHERE collector = $1 \
     UNION ALL SELECT max(last_n) FROM commits WHERE collector = $1 UNION ALL SELECT 0) AS ends";
const LAST_RECEIVED: &str =
    "SELECT received_us FROM records WHERE collector = $1 ORDER BY n DESC LIMIT 1";

const LAST_SETTINGS: &str = "SELECT body FROM records WHERE collector = $1 AND n > $2 \
     AND kind = $3 ORDER BY n DESC LIMIT 1";

impl Store {
    /// What is set at the end of the log; `None` before the judge began.
    pub async fn settings_at_end(&self) -> Result<Option<Settings>, StoreError> {
        let judged = self.read_progress(self.collector).await?;
        let body: Option<String> = query_scalar(LAST_SETTINGS)
            .bind(self.collector)
            .bind(judged)
            .bind(SETTINGS)
            .fetch_optional(self.readers())
            .await?;
        match body {
            Some(body) => Ok(Some(parse(&body)?)),
            None => Ok(self.read_part_by_name(part::SETTINGS, &[""]).await?.pop()),
        }
    }

    /// The records of one collector after a position, in order, at most `limit`.
    pub async fn read_records(
        &self,
        after: Position,
        limit: u32,
    ) -> Result<Vec<Record>, StoreError> {
        let rows = query(READ)
            .bind(after.collector)
            .bind(after.n)
            .bind(limit)
            .fetch_all(self.readers())
            .await?;
        rows.iter().map(|row| record(after.collector, row)).collect()
    }

    /// The last position that this collector gave out; 0 before the first.
    pub async fn log_end(&self, collector: i64) -> Result<i64, StoreError> {
        Ok(query_scalar(END).bind(collector).fetch_one(self.readers()).await?)
    }

    /// When the newest record of this collector was received.
    pub async fn log_last_received_us(&self, collector: i64) -> Result<Option<i64>, StoreError> {
        let query = query_scalar(LAST_RECEIVED).bind(collector);
        Ok(query.fetch_optional(self.readers()).await?)
    }
}

fn record(collector: i64, row: &db::Row) -> Result<Record, StoreError> {
    let position = Position { collector, n: row.try_get(0)? };
    let body = decode(row.try_get(1)?, row.try_get(3)?)?;
    Ok(Record { position, received_us: row.try_get(2)?, body })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{
        Boot, Closed, Event, GivenUp, Heartbeat, Refused, Settings, Silent, SourceName, Transition,
    };

    fn event() -> Box<Event> {
        let text = r#"{"service":"s","env":"prod","source":"a","boot":"1","seq":1,
            "occurred_at":"2026-11-30T12:00:00Z","player":"p","outcome":"processed",
            "signature":{"room":"","round":"1","net":"-5","final":true},
            "evicted":[{"key":"k","net":"1"}],"window":{"len":1,"cap":4,"scope":"room"},
            "effect":"applied","guard_mode":"local","check_us":9223372036854775807}"#;
        Box::new(serde_json::from_str(text).unwrap())
    }

    fn bodies() -> Vec<Body> {
        let event = event();
        let from: SourceName = event.from.clone();
        let boot = Boot::Number(1);
        let heartbeat: Heartbeat = serde_json::from_str(
            r#"{"service":"s","env":"prod","source":"a","boot":"2026-11-30T12:00:00Z",
            "last_seq":7,"at":"2026-11-30T12:00:00Z","state":"closing","ledgers":["l"]}"#,
        )
        .unwrap();
        let refused = Refused {
            from: Some(from.clone()),
            sequence: Some((boot, 3)),
            event_id: None,
            ledger: Some("l".into()),
            code: "missing".into(),
            message: "player: missing".into(),
            text: "{\"a\":\0".into(),
        };
        let transition = serde_json::from_str(
            r#"{"service":"s","env":"prod","source":"a","event_id":"e","trace_id":"t","key":"k",
            "from":"checking","to":"refused","reason":"late","at":"2026-11-30T12:00:00Z"}"#,
        );
        let transition: Box<Transition> = Box::new(transition.unwrap());
        vec![
            Body::Event(event.clone()),
            Body::Refused(Box::new(refused)),
            Body::Conflict(event),
            Body::Heartbeat(heartbeat),
            Body::Silent(Silent { from: from.clone(), boot }),
            Body::GivenUp(GivenUp { from, boot, first_seq: 2, last_seq: 4 }),
            Body::Closed(Closed { finding: "f".into(), reason: "r".into(), note: "n".into() }),
            Body::Tick,
            Body::Transition(transition.clone()),
            Body::TransitionConflict(transition),
            Body::Settings(Settings::default()),
        ]
    }

    #[test]
    fn every_body_reads_back_as_it_was() {
        for (index, body) in bodies().into_iter().enumerate() {
            let (kind, text) = encode(&body).unwrap();
            assert_eq!(kind, i64::try_from(index).unwrap() + 1);
            assert_eq!(decode(kind, &text).unwrap(), body, "{text}");
        }
    }

    #[test]
    fn an_unknown_kind_is_an_error() {
        assert!(matches!(decode(99, "{}"), Err(StoreError::Unreadable { .. })));
    }

    #[tokio::test]
    async fn what_was_appended_is_read_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/t.db", folder.path().display());
        let store = Store::open(&url, "c").await.unwrap();
        let collector = store.collector();
        assert_eq!(store.log_end(collector).await.unwrap(), 0);
        let rows: Vec<Row> = (1..=250)
            .map(|n| Row { n, kind: TICK, received_us: 1_000 + n, body: "{}".into() })
            .collect();
        append(&mut store.writer().await.unwrap(), collector, &rows).await.unwrap();
        let after = Position { collector, n: 10 };
        let read = store.read_records(after, 100).await.unwrap();
        let numbers: Vec<i64> = read.iter().map(|record| record.position.n).collect();
        assert_eq!(numbers, (11..=110).collect::<Vec<_>>());
        assert_eq!(store.log_end(collector).await.unwrap(), 250);
        assert_eq!(store.log_last_received_us(collector).await.unwrap(), Some(1_250));
    }
}
