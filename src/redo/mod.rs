//! The log folded again: what is stored must be what the log says.
//!
//! `verify` folds the log into a database of its own and compares; `rebuild` puts that in the
//! place of what is stored. The judge is a pure fold, so both are that fold run once more, from
//! what held before the first record (the base) to the position that the judge has reached.

mod base;
mod fold;

pub use self::base::Base;
pub use self::fold::Fold;
use crate::config::without_password;
use crate::ingest;
use crate::outcome::Settings;
use crate::store::compare::{Comparison, TableDifferences};
use crate::store::{DatabaseLock, HeldBase, Scratch, Store, StoreError};

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
    /// Its older part is gone, and no base says what that was.
    #[error(
        "the log begins at position {0}: what was before it can't be folded again; the file with \
         .base at the end of its name belongs beside the database"
    )]
    Shortened(i64),
    /// The base is not that of this database as it is now.
    #[error(
        "the file with .base at the end of its name goes up to position {base}, and the audit up \
         to {judged}: put the one beside the database that was copied with it"
    )]
    Ahead {
        /// How far the base goes.
        base: i64,
        /// How far the judge was.
        judged: i64,
    },
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
    let told = |source| RedoError::Store { url: without_password(url), source };
    let log = Store::open_to_read(url, collector).await.map_err(told)?;
    let scratch = scratch(url).await?;
    let mut redo = Redo::begin(&log, &scratch, url).await?;
    // Most of it before the instant of the comparison is fixed.
    redo.until(log.read_progress(log.collector()).await.map_err(told)?).await.map_err(told)?;
    let from = (log.collector(), redo.base_n);
    let comparison = Comparison::begin(url, (scratch.path(), redo.fold.to()), from).await;
    let mut comparison = comparison.map_err(told)?;
    redo.until(comparison.judged_n()).await.map_err(told)?;
    redo.roll_up_the_rest(comparison.logged_n()).await.map_err(told)?;
    let tables = comparison.differences().await.map_err(told)?;
    Ok(Verified { records: redo.fold.at().n - redo.base_n, tables })
}

/// Folds the log again and puts that in the place of what is stored. Takes the database for
/// itself meanwhile. Returns how many records were folded.
pub async fn rebuild(url: &str, collector: &str) -> Result<i64, RedoError> {
    let told = |source| RedoError::Store { url: without_password(url), source };
    let store = Store::open_to_mend(url, collector).await.map_err(told)?;
    let _lock = DatabaseLock::take(url).await.map_err(told)?;
    let scratch = scratch(url).await?;
    let mut redo = Redo::begin(&store, &scratch, url).await?;
    redo.until(store.read_progress(store.collector()).await.map_err(told)?).await.map_err(told)?;
    let records = redo.fold.at().n - redo.base_n;
    redo.roll_up_the_rest(i64::MAX).await.map_err(told)?;
    redo.fold.to().close().await.map_err(told)?;
    store.replace_by(scratch.path()).await.map_err(told)?;
    store.close().await.map_err(told)?;
    Ok(records)
}

/// The fold, run once more.
struct Redo<'a> {
    log: &'a Store,
    fold: Fold,
    /// The last record that is not folded again.
    base_n: i64,
    /// Nobody drops records that come after it meanwhile.
    _base: Option<HeldBase>,
}

impl<'a> Redo<'a> {
    async fn begin(log: &'a Store, scratch: &Scratch, url: &str) -> Result<Self, RedoError> {
        let told = |source| RedoError::Store { url: without_password(url), source };
        let settings: Option<Settings> = log.base_settings().await.map_err(told)?;
        let settings = settings.ok_or(RedoError::NeverJudged)?;
        let held = HeldBase::take(url).await.map_err(told)?;
        let path = held.as_ref().map(|base| base.path.as_str());
        let fold = base::begin(log, path, scratch.path(), &settings).await;
        let fold = fold.map_err(told)?;
        let first = log.read_records(fold.at(), 1).await.map_err(told)?;
        let first = first.first().map_or(fold.at().n + 1, |record| record.position.n);
        if first > fold.at().n + 1 {
            return Err(RedoError::Shortened(first));
        }
        let judged_n = log.read_progress(log.collector()).await.map_err(told)?;
        if fold.at().n > judged_n {
            return Err(RedoError::Ahead { base: fold.at().n, judged: judged_n });
        }
        let base_n = fold.at().n;
        Ok(Self { log, fold, base_n, _base: held })
    }

    /// Folds on, up to and with position `n`.
    async fn until(&mut self, n: i64) -> Result<(), StoreError> {
        while self.fold.at().n < n {
            let mut records = self.log.read_records(self.fold.at(), STEP_RECORDS).await?;
            records.retain(|record| record.position.n <= n);
            if self.fold.step(records).await? == 0 {
                break;
            }
        }
        self.fold.settle().await
    }

    /// Rolls up what is in the log and not judged yet, up to and with position `n`: the writer
    /// counts by minute at once.
    async fn roll_up_the_rest(&self, n: i64) -> Result<(), StoreError> {
        let mut at = self.fold.at();
        while at.n < n {
            let mut records = self.log.read_records(at, STEP_RECORDS).await?;
            records.retain(|record| record.position.n <= n);
            let Some(end) = records.last().map(|record| record.position) else { return Ok(()) };
            self.fold.to().add_rollups(&ingest::rollups_of(&records)).await?;
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
