//! A fold of the log into a database of its own, which can be gone on with later.

use crate::audit::Audit;
use crate::ingest;
use crate::judge;
use crate::outcome::{Body, Position, Record, Settings};
use crate::store::{Pending, Step, Store, StoreError, part};

/// Players, settlements, refs, rooms and messages each that a base keeps in memory between steps:
/// it has all the time that there is, and the collector needs its memory elsewhere.
const FACTS_KEPT: usize = 5_000;

/// Changed rows that a base keeps in memory before they are moved to their tables.
const PENDING_ROWS: usize = 20_000;

/// What a fold is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To be compared with what is stored.
    Compare,
    /// To know what the log said before it began. Whom records are about is not kept beyond them.
    Base,
}

/// The fold, and where it is.
pub struct Fold {
    to: Store,
    audit: Audit,
    pending: Pending,
    at: Position,
    change: i64,
    purpose: Purpose,
}

impl Fold {
    /// Goes on where this database ends; what is set before the first record is the base of the
    /// settings.
    pub async fn begin(to: Store, base: &Settings, purpose: Purpose) -> Result<Self, StoreError> {
        let audit = judge::memory::restore(&to, base).await?;
        let rows = match purpose {
            Purpose::Compare => judge::PENDING_ROWS,
            Purpose::Base => PENDING_ROWS,
        };
        let pending = to.read_pending(rows).await?;
        let collector = to.collector();
        let at = Position { collector, n: to.read_progress(collector).await? };
        let change = to.read_part(part::CHANGE).await?.pop().unwrap_or(0);
        Ok(Self { to, audit, pending, at, change, purpose })
    }

    /// The last record that is in it.
    pub fn at(&self) -> Position {
        self.at
    }

    /// The database that it is folded into.
    pub fn to(&self) -> &Store {
        &self.to
    }

    /// Folds records that come next, as many as make one step; says how many these were.
    pub async fn step(&mut self, mut records: Vec<Record>) -> Result<usize, StoreError> {
        // What a person closed was stored by then.
        let is_closing = |record: &Record| matches!(record.body, Body::Closed(_));
        let closing = records.iter().skip(1).position(is_closing);
        records.truncate(closing.map_or(records.len(), |before| before + 1));
        let (Some(first), Some(last)) = (records.first(), records.last()) else { return Ok(0) };
        if first.position.n != self.at.n + 1 {
            let detail = format!("{} comes after {}", first.position.n, self.at.n);
            return Err(StoreError::Unreadable { table: "records", detail });
        }
        let end = last.position;
        judge::fold_all(&self.to, &self.pending, &mut self.audit, &records).await?;
        let step = Step::take(&mut self.audit, &records, end)?;
        let step = step.with_rollups(ingest::rollups_of(&records));
        let step = match self.purpose {
            Purpose::Compare => step,
            Purpose::Base => step.without_deliveries(),
        };
        let rows = step.rows();
        self.change = self.to.save_step(step, &mut self.pending, &[], self.change).await?;
        self.to.move_pending(&mut self.pending, 2 * rows).await?;
        match self.purpose {
            Purpose::Compare => judge::memory::bound(&mut self.audit),
            Purpose::Base => self.audit.facts.forget_beyond(FACTS_KEPT, FACTS_KEPT),
        }
        self.at = end;
        Ok(records.len())
    }

    /// Moves all facts to their tables.
    pub async fn settle(&mut self) -> Result<(), StoreError> {
        self.to.move_all_pending(&mut self.pending).await
    }
}
