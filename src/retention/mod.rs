//! What is old goes: records of the log after their age, or sooner under a cap of the disk, and
//! minutes after theirs. A little at a time, and with pauses: nobody waits for it.
//!
//! Before records go they are folded into the base ([`crate::redo::Base`]), so that base and log
//! together still say what is stored. Each is on disk before the other loses anything: after a
//! crash a record is in both, which does no harm.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::clock::Clock;
use crate::config::Retention as Ages;
use crate::limits;
use crate::metrics::Metrics;
use crate::outcome::Position;
use crate::redo::Base;
use crate::store::retention::TABLES;
use crate::store::{Store, StoreError, base_bytes, has_base};
use crate::vitals::Vitals;

/// Between two runs.
const RUN_EVERY: Duration = Duration::from_secs(60);
/// After which somebody who is busier, or has the base, may be done.
const LOOK_AGAIN: Duration = Duration::from_secs(2);
/// Records folded into the base by one step.
const FOLD_RECORDS: u32 = 1_000;
/// Records that one transaction takes out of the log: some 5 ms.
const DROP_RECORDS: u32 = 200;
/// Steps of one run; then whoever waits for the base has his turn.
const STEPS_MAX: usize = 200;
/// Percent of the cap from which on it is warned.
const WARN_PERCENT: i64 = 80;
/// How far the audit may be behind for this work to go on.
const LAG_US_MAX: i64 = 200_000;

/// What it works with.
pub struct Parts {
    /// The database.
    pub store: Arc<Store>,
    /// Told how large it is, and when it was looked after.
    pub vitals: Arc<Vitals>,
    /// Counts what went.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
    /// Where the database is: the base is beside it.
    pub url: String,
    /// How long what is kept.
    pub ages: Ages,
}

/// Looks after what is old.
pub struct Retention {
    parts: Parts,
    /// Whether it was told that there is little room.
    warned: bool,
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// All that is old is gone.
    Through,
    /// There is more to do.
    More,
    /// Others are busier, or have the base.
    Waits,
}

impl Retention {
    /// Nothing happens yet.
    pub fn new(parts: Parts) -> Self {
        parts.vitals.set_disk_cap(parts.ages.disk_cap_bytes);
        if !has_base(&parts.url) {
            tracing::warn!("the log of a PostgreSQL database is not shortened: it stays whole");
        }
        Self { parts, warned: false }
    }

    /// One run: so many steps at most.
    pub async fn run(&mut self) -> Result<Ran, StoreError> {
        let now_us = self.parts.clock.now_us();
        let used = self.measure().await?;
        let raw = self.drop_raw(self.until_us(now_us, used).await?).await?;
        let minutes = self.drop_minutes(now_us).await?;
        self.measure().await?;
        self.parts.vitals.set_retained(now_us);
        Ok(if raw == Ran::Through { minutes } else { raw })
    }

    /// Runs again and again, until `stop` is true or gone.
    pub async fn run_until(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let ran = tokio::select! {
                ran = self.run() => ran,
                _ = stop.changed() => return,
            };
            let pause = match ran {
                Ok(Ran::More) => Duration::ZERO,
                Ok(Ran::Waits) => LOOK_AGAIN,
                Ok(Ran::Through) => RUN_EVERY,
                Err(error) => {
                    tracing::error!(%error, "what is old could not be removed; it is tried again");
                    RUN_EVERY
                }
            };
            tokio::select! {
                () = sleep(pause) => {}
                _ = stop.changed() => return,
            }
        }
    }

    /// Says how much room is taken, and warns before there is none.
    async fn measure(&mut self) -> Result<i64, StoreError> {
        let Parts { store, vitals, url, .. } = &self.parts;
        let used = store.used_bytes().await?.saturating_add(base_bytes(url).await);
        vitals.set_database_bytes(used);
        let Some(cap) = self.parts.ages.disk_cap_bytes else { return Ok(used) };
        let is_tight = used >= cap / 100 * WARN_PERCENT;
        if is_tight && !self.warned {
            tracing::warn!(
                used,
                cap,
                "the database nears `retention.disk_cap`; at the cap the oldest days of the log go"
            );
        }
        self.warned = is_tight;
        Ok(used)
    }

    /// Records received before this go. Over the cap, that is all of the oldest day; never today.
    async fn until_us(&self, now_us: i64, used: i64) -> Result<i64, StoreError> {
        let ages = &self.parts.ages;
        let by_age_us = now_us.saturating_sub(ages.raw_us);
        if ages.disk_cap_bytes.is_none_or(|cap| used <= cap) {
            return Ok(by_age_us);
        }
        let oldest = self.parts.store.read_records(self.start(), 1).await?;
        let Some(oldest) = oldest.first() else { return Ok(by_age_us) };
        let day = |at_us: i64| at_us.div_euclid(limits::DAY_US);
        if day(oldest.received_us) >= day(now_us) {
            tracing::error!(used, "over `retention.disk_cap`, and the log holds only today");
            return Ok(by_age_us);
        }
        let end_us = (day(oldest.received_us) + 1) * limits::DAY_US;
        Ok(by_age_us.max(end_us))
    }

    /// Before the first record.
    fn start(&self) -> Position {
        Position { collector: self.parts.store.collector(), n: 0 }
    }

    /// Folds records into the base, then takes those that are in it out of the log.
    async fn drop_raw(&self, until_us: i64) -> Result<Ran, StoreError> {
        let store = &self.parts.store;
        if !has_base(&self.parts.url) {
            return Ok(Ran::Through);
        }
        let first = store.read_records(self.start(), 1).await?;
        if first.first().is_none_or(|record| record.received_us >= until_us) {
            return Ok(Ran::Through);
        }
        let Some(mut base) = Base::open(store, &self.parts.url).await? else {
            return Ok(Ran::Waits);
        };
        let judged_n = store.read_progress(store.collector()).await?;
        let mut ran = Ran::More;
        for _ in 0..STEPS_MAX {
            if self.parts.vitals.audit_lag_us() > LAG_US_MAX {
                ran = Ran::Waits;
                break;
            }
            let began = Instant::now();
            let mut records = store.read_records(base.fold.at(), FOLD_RECORDS).await?;
            records.retain(|record| record.received_us < until_us && record.position.n <= judged_n);
            if base.fold.step(records).await? == 0 {
                ran = Ran::Through;
                break;
            }
            sleep(began.elapsed()).await;
        }
        base.fold.settle().await?;
        self.drop_until(base.fold.at()).await?;
        Ok(ran)
    }

    async fn drop_until(&self, end: Position) -> Result<(), StoreError> {
        let Parts { store, metrics, .. } = &self.parts;
        loop {
            let began = Instant::now();
            let mut records = store.read_records(self.start(), DROP_RECORDS).await?;
            records.retain(|record| record.position.n <= end.n);
            if records.is_empty() {
                return Ok(());
            }
            let counted = metrics.count_removed("records", records.len() as u64);
            store.drop_records(&records, counted.totals()).await?;
            metrics.removed(&counted);
            sleep(began.elapsed()).await;
        }
    }

    async fn drop_minutes(&self, now_us: i64) -> Result<Ran, StoreError> {
        let Parts { store, metrics, ages, .. } = &self.parts;
        let before = now_us.saturating_sub(ages.rollups_us).div_euclid(limits::MINUTE_US);
        let mut steps = 0;
        for table in TABLES {
            loop {
                let began = Instant::now();
                let counted = |rows| metrics.count_removed("minutes", rows);
                let rows = store
                    .drop_minutes(table, before, |rows| counted(rows).totals().to_vec())
                    .await?;
                if rows == 0 {
                    break;
                }
                metrics.removed(&counted(rows));
                steps += 1;
                if steps >= STEPS_MAX {
                    return Ok(Ran::More);
                }
                sleep(began.elapsed()).await;
            }
        }
        Ok(Ran::Through)
    }
}

#[cfg(test)]
mod tests;
