//! The judge's facts of players and settlements: loaded by key, stored when they changed.

use std::collections::BTreeSet;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::db::{Connection, Each, insert_rows, query_as};
use super::packed::{pack, unpack};
use super::pending::{Key, Of, Packed};
use super::{Store, StoreError};
use crate::audit::{Facts, Needs, PlayerKey, Stored, Table};
use crate::outcome::Position;

const PLAYERS: Each = Each {
    sqlite: "SELECT p.player, p.body FROM json_each($1) AS k \
     JOIN players AS p ON p.player = k.value",
    postgres: "SELECT p.player, p.body FROM json_array_elements_text($1::json) AS k \
     JOIN players AS p ON p.player = k.value::bigint",
};
const SIGNATURES: Each = Each {
    sqlite: "SELECT s.player, s.signature, s.body FROM json_each($1) AS k \
     JOIN signatures AS s ON s.player = k.value ->> 0 AND s.signature = k.value ->> 1",
    postgres: "SELECT s.player, s.signature, s.body FROM json_array_elements($1::json) AS k \
     JOIN signatures AS s ON s.player = (k.value ->> 0)::bigint \
     AND s.signature = (k.value ->> 1)::bigint",
};
const REFS: Each = Each {
    sqlite: "SELECT r.player, r.ref, r.body FROM json_each($1) AS k \
     JOIN refs AS r ON r.player = k.value ->> 0 AND r.ref = k.value ->> 1",
    postgres: "SELECT r.player, r.ref, r.body FROM json_array_elements($1::json) AS k \
     JOIN refs AS r ON r.player = (k.value ->> 0)::bigint \
     AND r.ref = (k.value ->> 1)::bigint",
};
const ROOMS: Each = Each {
    sqlite: "SELECT r.player, r.room, r.body FROM json_each($1) AS k \
     JOIN rooms AS r ON r.player = k.value ->> 0 AND r.room = k.value ->> 1",
    postgres: "SELECT r.player, r.room, r.body FROM json_array_elements($1::json) AS k \
     JOIN rooms AS r ON r.player = (k.value ->> 0)::bigint \
     AND r.room = (k.value ->> 1)::bigint",
};
const MESSAGES: Each = Each {
    sqlite: "SELECT m.ledger, m.message, m.body FROM json_each($1) AS k \
     JOIN messages AS m ON m.ledger = k.value ->> 0 AND m.message = k.value ->> 1",
    postgres: "SELECT m.ledger, m.message, m.body FROM json_array_elements($1::json) AS k \
     JOIN messages AS m ON m.ledger = (k.value ->> 0)::bigint \
     AND m.message = (k.value ->> 1)::bigint",
};

/// The key of most tables: 64 + 64 bits, of a player and something of it, or of a message.
type Pair = (i64, i64);

impl Store {
    /// Loads what is needed from the tables; what they don't have is loaded as unknown.
    pub(super) async fn load_from_tables(
        &self,
        facts: &mut Facts,
        needs: &Needs,
    ) -> Result<(), StoreError> {
        self.load_players(facts, needs).await?;
        if !needs.signatures.is_empty() {
            let rows = query_as(SIGNATURES).bind(json(&needs.signatures)?);
            let rows = rows.fetch_all(self.readers()).await?;
            take_pairs(rows, &mut facts.signatures, &needs.signatures)?;
        }
        if !needs.refs.is_empty() {
            let rows = query_as(REFS).bind(json(&needs.refs)?);
            let rows = rows.fetch_all(self.readers()).await?;
            take_pairs(rows, &mut facts.refs, &needs.refs)?;
        }
        if !needs.rooms.is_empty() {
            let rows = query_as(ROOMS).bind(json(&needs.rooms)?);
            let rows = rows.fetch_all(self.readers()).await?;
            take_pairs(rows, &mut facts.rooms, &needs.rooms)?;
        }
        if !needs.messages.is_empty() {
            let rows = query_as(MESSAGES).bind(json(&needs.messages)?);
            let rows = rows.fetch_all(self.readers()).await?;
            take_pairs(rows, &mut facts.messages, &needs.messages)?;
        }
        Ok(())
    }

    async fn load_players(&self, facts: &mut Facts, needs: &Needs) -> Result<(), StoreError> {
        if needs.players.is_empty() {
            return Ok(());
        }
        let rows = query_as(PLAYERS).bind(json(&needs.players)?);
        let rows: Vec<(i64, Vec<u8>)> = rows.fetch_all(self.readers()).await?;
        let mut unknown = needs.players.clone();
        for (player, body) in rows {
            facts.players.load(player, Some(unpack(&body)?));
            unknown.remove(&player);
        }
        for player in unknown {
            facts.players.load(player, None);
            facts.is_new(player);
        }
        Ok(())
    }
}

fn take_pairs<T: Stored>(
    rows: Vec<(i64, i64, Vec<u8>)>,
    table: &mut Table<Pair, T>,
    keys: &BTreeSet<Pair>,
) -> Result<(), StoreError> {
    for (player, other, body) in rows {
        table.load((player, other), Some(unpack(&body)?));
    }
    keys.iter().for_each(|key| table.load(*key, None));
    Ok(())
}

const PUT_PLAYERS: &str = "INSERT INTO players (player, body) ";
const PUT_SIGNATURES: &str = "INSERT INTO signatures (player, signature, body) ";
const PUT_REFS: &str = "INSERT INTO refs (player, ref, body) ";
const PUT_ROOMS: &str = "INSERT INTO rooms (player, room, body) ";
const PUT_MESSAGES: &str = "INSERT INTO messages (ledger, message, body) ";
const ON_CONFLICT_PLAYER: &str = " ON CONFLICT (player) DO UPDATE SET body = excluded.body";
const ON_CONFLICT_SIGNATURE: &str =
    " ON CONFLICT (player, signature) DO UPDATE SET body = excluded.body";
const ON_CONFLICT_REF: &str = " ON CONFLICT (player, ref) DO UPDATE SET body = excluded.body";
const ON_CONFLICT_ROOM: &str = " ON CONFLICT (player, room) DO UPDATE SET body = excluded.body";
const ON_CONFLICT_MESSAGE: &str =
    " ON CONFLICT (ledger, message) DO UPDATE SET body = excluded.body";

/// Facts that changed, ready to be written.
pub(super) fn changed(facts: &mut Facts) -> Result<Vec<Packed>, StoreError> {
    let mut changed = Vec::new();
    for (player, facts) in facts.players.take_changed() {
        changed.push(((Of::Players, player, 0), pack(facts)?));
    }
    add_changed(&mut changed, Of::Signatures, &mut facts.signatures)?;
    add_changed(&mut changed, Of::Refs, &mut facts.refs)?;
    add_changed(&mut changed, Of::Rooms, &mut facts.rooms)?;
    add_changed(&mut changed, Of::Messages, &mut facts.messages)?;
    Ok(changed)
}

fn add_changed<T: Stored>(
    to: &mut Vec<Packed>,
    of: Of,
    table: &mut Table<Pair, T>,
) -> Result<(), StoreError> {
    for (key, facts) in table.take_changed() {
        to.push(((of, key.0, key.1), pack(facts)?));
    }
    Ok(())
}

/// Writes facts to their tables; they are in the order of their keys.
pub(super) async fn put(
    connection: &mut Connection,
    facts: &[(&Key, &Vec<u8>)],
) -> Result<(), StoreError> {
    for rows in facts.chunk_by(|a, b| a.0.0 == b.0.0) {
        let Some((of, ..)) = rows.first().map(|(key, _)| key) else { continue };
        let (insert, on_conflict) = match of {
            Of::Players => (PUT_PLAYERS, ON_CONFLICT_PLAYER),
            Of::Signatures => (PUT_SIGNATURES, ON_CONFLICT_SIGNATURE),
            Of::Refs => (PUT_REFS, ON_CONFLICT_REF),
            Of::Rooms => (PUT_ROOMS, ON_CONFLICT_ROOM),
            Of::Messages => (PUT_MESSAGES, ON_CONFLICT_MESSAGE),
        };
        let rows = rows.iter().map(|((_, player, other), body)| (player, other, body.as_slice()));
        if *of == Of::Players {
            let rows = rows.map(|(player, _, body)| [player.into(), body.into()]);
            insert_rows(connection, insert, rows.collect(), on_conflict).await?;
        } else {
            let rows = rows.map(|(player, other, body)| [player.into(), other.into(), body.into()]);
            insert_rows(connection, insert, rows.collect(), on_conflict).await?;
        }
    }
    Ok(())
}

const PUT_DELIVERIES: &str = "INSERT INTO deliveries (player, occurred_us, collector, n) ";
const ON_CONFLICT_DELIVERY: &str = " ON CONFLICT DO NOTHING";
const PUT_NEWEST_DELIVERIES: &str =
    "INSERT INTO delivery_journal (player, occurred_us, collector, n, step) ";

/// Which record is about which player.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Delivery {
    pub(super) player: PlayerKey,
    pub(super) occurred_us: i64,
    pub(super) position: Position,
}

impl From<(i64, i64, i64, i64)> for Delivery {
    fn from((player, occurred_us, collector, n): (i64, i64, i64, i64)) -> Self {
        Self { player, occurred_us, position: Position { collector, n } }
    }
}

/// Writes which records are about which player to the table; some may be there.
pub(super) async fn put_deliveries(
    connection: &mut Connection,
    deliveries: &[Delivery],
) -> Result<(), StoreError> {
    let rows = deliveries.iter().map(|row| {
        let Position { collector, n } = row.position;
        [row.player.into(), row.occurred_us.into(), collector.into(), n.into()]
    });
    Ok(insert_rows(connection, PUT_DELIVERIES, rows.collect(), ON_CONFLICT_DELIVERY).await?)
}

/// Writes which records of a step are about which player to the journal.
pub(super) async fn put_newest_deliveries(
    connection: &mut Connection,
    step: i64,
    deliveries: &[Delivery],
) -> Result<(), StoreError> {
    let rows = deliveries.iter().map(|row| {
        let Position { collector, n } = row.position;
        [row.player.into(), row.occurred_us.into(), collector.into(), n.into(), step.into()]
    });
    Ok(insert_rows(connection, PUT_NEWEST_DELIVERIES, rows.collect(), "").await?)
}

pub(super) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::Unreadable {
        table: "facts",
        detail: format!("can't be written: {error}"),
    })
}

pub(super) fn parse<T: DeserializeOwned>(table: &'static str, body: &str) -> Result<T, StoreError> {
    serde_json::from_str(body)
        .map_err(|error| StoreError::Unreadable { table, detail: error.to_string() })
}
