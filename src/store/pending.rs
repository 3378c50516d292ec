//! The newest facts: in memory, and in a journal on disk, until they are moved to their tables.
//!
//! A step of the judge changes facts all over the tables. Written there at once, each costs a page
//! of 4 KiB. So a step appends what it changed to the journal, and rows are moved to the tables
//! later, many at once, in the order of their keys: most facts change several times within
//! minutes, and neighbours share pages.
//!
//! The journal holds whole facts, so moving them twice is as moving them once. After a crash the
//! journal is read back and moved again: nothing is lost.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::db::{Connection, query, query_as, run_script};
use super::facts::{self, Delivery};
use super::packed::unpack;
use super::{Store, StoreError};
use crate::audit::{Facts, Needs, Stored, Table};

/// Rows moved by one transaction: it holds the lock that the writer waits for.
const SLICE_ROWS: usize = 1_000;
/// Steps taken out of the journal by one transaction.
const SLICE_STEPS: i64 = 16;

/// The tables of facts, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Of {
    Players,
    Signatures,
    Refs,
    Rooms,
    Messages,
}

/// A table, and a key of it; that of a player is (player, 0).
pub(super) type Key = (Of, i64, i64);

/// A fact as it is stored.
pub(super) type Packed = (Key, Vec<u8>);

/// Facts by key, each as it was last.
#[derive(Debug, Default)]
struct Layer {
    facts: BTreeMap<Key, Vec<u8>>,
    deliveries: BTreeSet<Delivery>,
}

impl Layer {
    fn len(&self) -> usize {
        self.facts.len() + self.deliveries.len()
    }

    fn take(&mut self, facts: Vec<Packed>, deliveries: Vec<Delivery>) {
        self.facts.extend(facts);
        self.deliveries.extend(deliveries);
    }
}

/// What is in the journal.
#[derive(Debug)]
pub struct Pending {
    newest: Layer,
    /// Older than `newest`, and newer than the tables.
    moving: Layer,
    /// The last step in the journal.
    end: i64,
    /// The last step that `moving` had.
    moving_end: i64,
    /// The last step that is gone from the journal.
    gone: i64,
    /// So many rows are kept before they are moved.
    most: usize,
}

impl Pending {
    fn get(&self, key: Key) -> Option<&Vec<u8>> {
        self.newest.facts.get(&key).or_else(|| self.moving.facts.get(&key))
    }

    /// Loads what is here; returns what is not.
    fn load(&self, facts: &mut Facts, needs: &Needs) -> Result<Needs, StoreError> {
        let mut left = Needs::default();
        for player in &needs.players {
            match self.get((Of::Players, *player, 0)) {
                Some(body) => facts.players.load(*player, Some(unpack(body)?)),
                None => drop(left.players.insert(*player)),
            }
        }
        left.signatures =
            self.load_pairs(Of::Signatures, &mut facts.signatures, &needs.signatures)?;
        left.refs = self.load_pairs(Of::Refs, &mut facts.refs, &needs.refs)?;
        left.rooms = self.load_pairs(Of::Rooms, &mut facts.rooms, &needs.rooms)?;
        left.messages = self.load_pairs(Of::Messages, &mut facts.messages, &needs.messages)?;
        Ok(left)
    }

    fn load_pairs<T: Stored>(
        &self,
        of: Of,
        table: &mut Table<(i64, i64), T>,
        keys: &BTreeSet<(i64, i64)>,
    ) -> Result<BTreeSet<(i64, i64)>, StoreError> {
        let mut left = BTreeSet::new();
        for key in keys {
            match self.get((of, key.0, key.1)) {
                Some(body) => table.load(*key, Some(unpack(body)?)),
                None => drop(left.insert(*key)),
            }
        }
        Ok(left)
    }

    /// The number of the next step.
    pub(super) fn next_step(&self) -> i64 {
        self.end + 1
    }

    /// A step is in the journal.
    pub(super) fn take(&mut self, facts: Vec<Packed>, deliveries: Vec<Delivery>) {
        self.end += 1;
        self.newest.take(facts, deliveries);
    }

    /// Begins to move all that there is, once it is enough and what was moved before is gone from
    /// the journal.
    fn turn(&mut self) {
        let is_done = self.moving.len() == 0 && self.gone == self.moving_end;
        if is_done && self.newest.len() >= self.most {
            self.moving = std::mem::take(&mut self.newest);
            self.moving_end = self.end;
        }
    }
}

impl Store {
    /// Reads the journal back. `most` rows are kept in memory before they are moved.
    pub async fn read_pending(&self, most: usize) -> Result<Pending, StoreError> {
        let mut connection = self.readers().acquire().await?;
        let (newest, steps) = read(&mut connection).await?;
        let (gone, end) = steps.map_or((0, 0), |(first, last)| (first - 1, last));
        let moving = Layer::default();
        Ok(Pending { newest, moving, end, moving_end: gone, gone, most: most.max(1) })
    }

    /// Loads what is needed; what is not known is loaded as unknown.
    pub async fn load_facts(
        &self,
        pending: &Pending,
        facts: &mut Facts,
        needs: &Needs,
    ) -> Result<(), StoreError> {
        let left = pending.load(facts, needs)?;
        self.load_from_tables(facts, &left).await
    }

    /// Moves on if there is enough to move: one slice, or at least so many rows if as many wait to
    /// be moved next as may be.
    pub async fn move_pending(&self, pending: &mut Pending, rows: usize) -> Result<(), StoreError> {
        pending.turn();
        let is_full = pending.newest.len() >= pending.most;
        let rows = if is_full { rows } else { rows.min(SLICE_ROWS) };
        let until = pending.moving.len().saturating_sub(rows);
        while pending.moving.len() > until {
            self.move_slice(pending).await?;
        }
        if pending.moving.len() == 0 && pending.gone < pending.moving_end {
            self.trim(pending).await?;
        }
        Ok(())
    }

    /// Moves all that there is.
    pub async fn move_all_pending(&self, pending: &mut Pending) -> Result<(), StoreError> {
        let most = std::mem::replace(&mut pending.most, 1);
        while pending.newest.len() > 0 || pending.gone < pending.moving_end {
            self.move_pending(pending, SLICE_ROWS).await?;
        }
        pending.most = most;
        Ok(())
    }

    async fn move_slice(&self, pending: &mut Pending) -> Result<(), StoreError> {
        let layer = &mut pending.moving;
        let facts: Vec<_> = layer.facts.iter().take(SLICE_ROWS).collect();
        let deliveries = layer.deliveries.iter().take(SLICE_ROWS - facts.len());
        let deliveries: Vec<Delivery> = deliveries.copied().collect();
        let mut transaction = self.begin().await?;
        facts::put(&mut transaction, &facts).await?;
        facts::put_deliveries(&mut transaction, &deliveries).await?;
        transaction.commit().await?;
        let (facts, deliveries) = (facts.len(), deliveries.len());
        for _ in 0..facts {
            layer.facts.pop_first();
        }
        for _ in 0..deliveries {
            layer.deliveries.pop_first();
        }
        Ok(())
    }

    /// Takes what was moved out of the journal: the oldest first, so that what is left is never
    /// older than what is in the tables.
    async fn trim(&self, pending: &mut Pending) -> Result<(), StoreError> {
        let gone = pending.moving_end.min(pending.gone + SLICE_STEPS);
        let mut transaction = self.begin().await?;
        query(TRIM_FACTS).bind(gone).execute(&mut *transaction).await?;
        query(TRIM_DELIVERIES).bind(gone).execute(&mut *transaction).await?;
        transaction.commit().await?;
        pending.gone = gone;
        Ok(())
    }
}

const TRIM_FACTS: &str = "DELETE FROM fact_journal WHERE step <= $1";
const TRIM_DELIVERIES: &str = "DELETE FROM delivery_journal WHERE step <= $1";

const APPEND_FACTS: &str = "INSERT INTO fact_journal (step, body) VALUES ($1, $2)";

/// Appends what a step changed, inside the judge's transaction.
pub(super) async fn append(
    connection: &mut Connection,
    step: i64,
    facts: &[u8],
    deliveries: &[Delivery],
) -> Result<(), StoreError> {
    query(APPEND_FACTS).bind(step).bind(facts).execute(&mut *connection).await?;
    facts::put_newest_deliveries(connection, step, deliveries).await
}

/// What the journal keeps of the facts that a step changed.
pub(super) fn journal_form(facts: &[Packed]) -> Result<Vec<u8>, StoreError> {
    postcard::to_allocvec(facts).map_err(|error| unreadable(&error))
}

const READ_FACTS: &str = "SELECT step, body FROM fact_journal ORDER BY step";
const READ_DELIVERIES: &str = "SELECT player, occurred_us, collector, n FROM delivery_journal";

/// All of the journal, and its first and last step.
async fn read(connection: &mut Connection) -> Result<(Layer, Option<(i64, i64)>), StoreError> {
    let mut layer = Layer::default();
    let steps: Vec<(i64, Vec<u8>)> = query_as(READ_FACTS).fetch_all(&mut *connection).await?;
    for (_, body) in &steps {
        let facts: Vec<Packed> = postcard::from_bytes(body).map_err(|error| unreadable(&error))?;
        layer.facts.extend(facts);
    }
    let deliveries: Vec<(i64, i64, i64, i64)> =
        query_as(READ_DELIVERIES).fetch_all(connection).await?;
    layer.deliveries.extend(deliveries.into_iter().map(Delivery::from));
    Ok((layer, steps.first().zip(steps.last()).map(|(first, last)| (first.0, last.0))))
}

const COPY: &str = "CREATE TABLE pending (of INTEGER, a INTEGER, b INTEGER, body BLOB, \
     PRIMARY KEY (of, a, b)) WITHOUT ROWID; \
     CREATE TABLE pending_deliveries (player INTEGER, occurred_us INTEGER, collector INTEGER, \
     n INTEGER, PRIMARY KEY (player, occurred_us, collector, n)) WITHOUT ROWID";
const COPY_FACT: &str = "INSERT INTO pending VALUES ($1, $2, $3, $4)";
const COPY_DELIVERY: &str = "INSERT INTO pending_deliveries VALUES ($1, $2, $3, $4)";

impl Store {
    /// Copies the journal of another database into tables with its keys, beside the tables of
    /// this one.
    pub(super) async fn copy_journal(&self, of: &mut Connection) -> Result<(), StoreError> {
        let (layer, _) = read(of).await?;
        let mut transaction = self.begin().await?;
        run_script(COPY, &mut transaction).await?;
        for ((of, a, b), body) in layer.facts {
            let put = query(COPY_FACT).bind(of as i64).bind(a).bind(b).bind(body);
            put.execute(&mut *transaction).await?;
        }
        for Delivery { player, occurred_us, position } in layer.deliveries {
            let put = query(COPY_DELIVERY).bind(player).bind(occurred_us);
            let put = put.bind(position.collector).bind(position.n);
            put.execute(&mut *transaction).await?;
        }
        transaction.commit().await
    }
}

fn unreadable(error: &postcard::Error) -> StoreError {
    StoreError::Unreadable { table: "fact_journal", detail: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::Position;
    use crate::store::fixtures::{self, Fixture};

    fixtures::contract!(
        what_is_moved_holds_whenever_it_is_read_back,
        a_move_that_fails_is_made_again
    );

    const fn key(n: i64) -> Key {
        (Of::Signatures, n % 7, n)
    }

    fn delivery(n: i64) -> Delivery {
        Delivery { player: n % 7, occurred_us: n, position: Position { collector: 1, n } }
    }

    /// A step that says of these keys that they are as of now.
    async fn step(store: &Store, pending: &mut Pending, now: i64, keys: std::ops::Range<i64>) {
        let body = format!("step {now}").into_bytes();
        let facts: Vec<Packed> = keys.clone().map(|n| (key(n), body.clone())).collect();
        let deliveries: Vec<Delivery> = keys.map(|n| delivery(n + 10_000 * now)).collect();
        let mut transaction = store.begin().await.unwrap();
        let journal = journal_form(&facts).unwrap();
        append(&mut transaction, pending.next_step(), &journal, &deliveries).await.unwrap();
        transaction.commit().await.unwrap();
        pending.take(facts, deliveries);
    }

    /// What holds: what is pending, else what is in the table.
    async fn held(store: &Store, pending: &Pending) -> BTreeMap<i64, String> {
        let rows: Vec<(i64, i64, Vec<u8>)> =
            query_as("SELECT player, signature, body FROM signatures")
                .fetch_all(store.readers())
                .await
                .unwrap();
        let text = |body: &[u8]| String::from_utf8(body.to_vec()).unwrap();
        let mut held: BTreeMap<i64, String> =
            rows.iter().map(|(_, n, body)| (*n, text(body))).collect();
        for layer in [&pending.moving, &pending.newest] {
            held.extend(layer.facts.iter().map(|((.., n), body)| (*n, text(body))));
        }
        held
    }

    async fn rows(store: &Store) -> (i64, i64) {
        let journal = "SELECT count(*) FROM delivery_journal";
        let table = "SELECT count(*) FROM deliveries";
        (fixtures::number(store, journal).await, fixtures::number(store, table).await)
    }

    async fn what_is_moved_holds_whenever_it_is_read_back(Fixture { store, _folder }: Fixture) {
        let mut pending = store.read_pending(40).await.unwrap();
        let mut expected = BTreeMap::new();
        for number in 1..=60 {
            let keys = number * 3 % 50..number * 3 % 50 + 9;
            step(&store, &mut pending, number, keys.clone()).await;
            expected.extend(keys.map(|n| (n, format!("step {number}"))));
            store.move_pending(&mut pending, 5).await.unwrap();
            assert!(pending.newest.len() < 120, "{}", pending.newest.len());
            assert_eq!(held(&store, &pending).await, expected, "{number}");
            if number % 4 == 0 {
                // As after a crash: memory is gone.
                pending = store.read_pending(40).await.unwrap();
                assert_eq!(held(&store, &pending).await, expected, "{number} read back");
            }
        }
        let (journal, table) = rows(&store).await;
        assert!(journal + table >= 60 * 9, "{journal} {table}");
        store.move_all_pending(&mut pending).await.unwrap();
        assert_eq!(rows(&store).await, (0, 60 * 9));
        assert_eq!(pending.newest.len() + pending.moving.len(), 0);
        assert_eq!(held(&store, &pending).await, expected);
        // Nothing is left to do.
        store.move_all_pending(&mut pending).await.unwrap();
    }

    async fn a_move_that_fails_is_made_again(Fixture { store, _folder }: Fixture) {
        let mut pending = store.read_pending(1).await.unwrap();
        step(&store, &mut pending, 1, 0..3_000).await;
        let expected = held(&store, &pending).await;
        store.execute("ALTER TABLE deliveries RENAME TO elsewhere").await;
        while store.move_pending(&mut pending, 1).await.is_ok() {}
        assert_eq!(held(&store, &pending).await, expected);
        store.execute("ALTER TABLE elsewhere RENAME TO deliveries").await;
        store.move_all_pending(&mut pending).await.unwrap();
        assert_eq!(held(&store, &pending).await, expected);
        assert_eq!(rows(&store).await, (0, 3_000));
    }
}
