//! The log folded again: what is stored must be what the log says.
//!
//! `verify` folds the log into a database of its own and compares; `rebuild` puts that in the
//! place of what is stored. The judge is a pure fold, so both are that fold run once more, from
//! what held before the first record (the base) to the position that the judge has reached.

use crate::audit::Audit;
use crate::ingest;
use crate::judge;
use crate::outcome::{Body, Position, Record, Settings};
use crate::store::compare::{Comparison, TableDifferences};
use crate::store::{DatabaseLock, Pending, Scratch, Step, Store, StoreError};

/// Records of one step: as many as the judge takes when it is behind.
const STEP_RECORDS: u32 = 5_000;

/// Why the log can't be folded again.
#[derive(Debug, thiserror::Error)]
pub enum RedoError {
    /// The database says no.
    #[error("can't use the database {url}: {source}")]
    Store {
        /// Which database.
        url: String,
        /// Why.
        source: StoreError,
    },
    /// Its older part is gone.
    #[error("the log begins at position {0}: what was before it can't be folded again")]
    Shortened(i64),
    /// Nothing was ever judged.
    #[error("nothing was judged yet: there is nothing to compare")]
    NeverJudged,
}

/// What came of it.
#[derive(Debug)]
pub struct Verified {
    /// Records that were folded.
    pub records: i64,
    /// The tables that differ; none if all is as the log says.
    pub tables: Vec<TableDifferences>,
}

/// Folds the log again and names every difference to what is stored. A collector may run
/// meanwhile.
pub async fn verify(url: &str, collector: &str) -> Result<Verified, RedoError> {
    let told = |source| RedoError::Store { url: url.to_owned(), source };
    let log = Store::open_to_read(url, collector).await.map_err(told)?;
    let scratch = scratch(url).await?;
    let mut redo = Redo::begin(&log, &scratch, url).await?;
    // Most of it before the instant of the comparison is fixed.
    redo.until(log.read_progress(log.collector()).await.map_err(told)?).await.map_err(told)?;
    let comparison = Comparison::begin(url, (scratch.path(), &redo.to), log.collector()).await;
    let mut comparison = comparison.map_err(told)?;
    redo.until(comparison.judged_n()).await.map_err(told)?;
    redo.roll_up_the_rest(comparison.logged_n()).await.map_err(told)?;
    let tables = comparison.differences().await.map_err(told)?;
    Ok(Verified { records: redo.at.n, tables })
}

/// Folds the log again and puts that in the place of what is stored. Takes the database for
/// itself meanwhile. Returns how many records were folded.
pub async fn rebuild(url: &str, collector: &str) -> Result<i64, RedoError> {
    let told = |source| RedoError::Store { url: url.to_owned(), source };
    let store = Store::open_to_mend(url, collector).await.map_err(told)?;
    let _lock = DatabaseLock::take(url).await.map_err(told)?;
    let scratch = scratch(url).await?;
    let mut redo = Redo::begin(&store, &scratch, url).await?;
    redo.until(store.read_progress(store.collector()).await.map_err(told)?).await.map_err(told)?;
    let records = redo.at.n;
    redo.roll_up_the_rest(i64::MAX).await.map_err(told)?;
    redo.to.close().await.map_err(told)?;
    store.replace_by(scratch.path()).await.map_err(told)?;
    store.close().await.map_err(told)?;
    Ok(records)
}

/// The fold, run once more.
struct Redo<'a> {
    log: &'a Store,
    to: Store,
    audit: Audit,
    pending: Pending,
    at: Position,
    change: i64,
}

impl<'a> Redo<'a> {
    async fn begin(log: &'a Store, scratch: &Scratch, url: &str) -> Result<Self, RedoError> {
        let told = |source| RedoError::Store { url: url.to_owned(), source };
        let at = Position { collector: log.collector(), n: 0 };
        let first = log.read_records(at, 1).await.map_err(told)?;
        let first = first.first().map_or(1, |record| record.position.n);
        if first > 1 {
            return Err(RedoError::Shortened(first));
        }
        let base: Option<Settings> = log.base_settings().await.map_err(told)?;
        let base = base.ok_or(RedoError::NeverJudged)?;
        let to = Store::open_scratch(scratch.path(), log).await.map_err(told)?;
        let audit = judge::memory::restore(&to, &base).await.map_err(told)?;
        let pending = to.read_pending(judge::PENDING_ROWS).await.map_err(told)?;
        Ok(Self { log, to, audit, pending, at, change: 0 })
    }

    /// Folds on, up to and with position `n`.
    async fn until(&mut self, n: i64) -> Result<(), StoreError> {
        while self.at.n < n {
            let mut records = self.log.read_records(self.at, STEP_RECORDS).await?;
            records.retain(|record| record.position.n <= n);
            // What a person closed was stored by then.
            let is_closing = |record: &Record| matches!(record.body, Body::Closed(_));
            let closing = records.iter().skip(1).position(is_closing);
            records.truncate(closing.map_or(records.len(), |before| before + 1));
            let Some(end) = records.last().map(|record| record.position) else { break };
            judge::fold_all(&self.to, &self.pending, &mut self.audit, &records).await?;
            let step = Step::take(&mut self.audit, &records, end)?;
            let rows = step.rows();
            self.change = self.to.save_step(step, &mut self.pending, &[], self.change).await?;
            self.to.move_pending(&mut self.pending, 2 * rows).await?;
            self.to.add_rollups(&ingest::rollups_of(&records)).await?;
            judge::memory::bound(&mut self.audit);
            self.at = end;
        }
        self.to.move_all_pending(&mut self.pending).await
    }

    /// Rolls up what is in the log and not judged yet, up to and with position `n`: the writer
    /// counts by minute at once.
    async fn roll_up_the_rest(&self, n: i64) -> Result<(), StoreError> {
        let mut at = self.at;
        while at.n < n {
            let mut records = self.log.read_records(at, STEP_RECORDS).await?;
            records.retain(|record| record.position.n <= n);
            let Some(end) = records.last().map(|record| record.position) else { return Ok(()) };
            self.to.add_rollups(&ingest::rollups_of(&records)).await?;
            at = end;
        }
        Ok(())
    }
}

/// The file of the log folded again, beside the database; gone at the end.
async fn scratch(url: &str) -> Result<Scratch, RedoError> {
    let told = |source| RedoError::Store { url: format!("{url}.redone"), source };
    Scratch::make(url.trim_start_matches("sqlite://"), "redone").await.map_err(told)
}
