//! Runs the audit over the log: reads records, keeps and stores its state, writes findings.
//!
//! One step is [`Judge::step`]: read what is new, load the facts it needs, fold, and write facts,
//! findings and progress in one transaction. Tests drive it; [`run`] does so on a thread of its
//! own, woken by the writer.

pub(crate) mod memory;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::audit::{Audit, Measured, MinuteKey, Settings};
use crate::clock::Clock;
use crate::metrics::{Judged, Metrics};
use crate::outcome::{Position, Record};
use crate::store::{Pending, Step, Store, StoreError, part};
use crate::vitals::Vitals;

/// Records of one step: its write stays under the 20 ms that the writer may wait (design.md).
const STEP_RECORDS: u32 = 1_000;
/// Records of one step when more wait: the writer and the judge take turns, and the writer's
/// groups are then as large. A judge that falls behind stops the writer altogether.
const STEP_RECORDS_BEHIND: u32 = 5_000;
/// Changed rows kept in memory before they are moved to their tables: up to twice as many at a
/// time, about 300 bytes each.
pub const PENDING_ROWS: usize = 200_000;
/// How long to wait before looking again after the database failed.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// What the judge is made of.
pub struct Parts {
    /// The database.
    pub store: Arc<Store>,
    /// The signs of life.
    pub vitals: Arc<Vitals>,
    /// The counters.
    pub metrics: Arc<Metrics>,
    /// The time.
    pub clock: Clock,
    /// `[audit]` of a new database; of another, the log says what holds.
    pub settings: Settings,
    /// So many changed rows are kept in memory before they are moved to their tables.
    pub pending_rows: usize,
}

/// The one judge of a database.
pub struct Judge {
    parts: Parts,
    /// Gone after a step that failed: then all is read back first, since the commit of the step
    /// may have come through.
    known: Option<Known>,
    /// Receipt of the oldest record that waits, as far as it is known; `None` after a step that
    /// found all judged. What can't be read came no earlier than the step that first found that.
    waits_since_us: Option<i64>,
}

/// What is known of the log up to a position.
struct Known {
    audit: Audit,
    pending: Pending,
    at: Position,
    change: i64,
}

impl Known {
    async fn read(parts: &Parts) -> Result<Self, StoreError> {
        // What is stored is known once a step that ended unclearly is over.
        parts.store.settle().await?;
        let collector = parts.store.collector();
        let audit = memory::restore(&parts.store, &parts.settings).await?;
        let pending = parts.store.read_pending(parts.pending_rows).await?;
        let n = parts.store.read_progress(collector).await?;
        let change = parts.store.read_part(part::CHANGE).await?.pop().unwrap_or(0);
        // Reading back what is stored does not make the lag any smaller.
        parts.vitals.set_judged(n, parts.vitals.audit_lag_us());
        parts.vitals.set_findings(change);
        parts.vitals.set_tick_due(audit.tick_due_us());
        Ok(Self { audit, pending, at: Position { collector, n }, change })
    }

    /// Folds these records and stores what they change.
    async fn judge(&mut self, parts: &Parts, records: &[Record]) -> Result<(), StoreError> {
        let Some(end) = records.last().map(|record| record.position) else { return Ok(()) };
        fold_all(&parts.store, &self.pending, &mut self.audit, records).await?;
        let rows = self.save(parts, records, end).await?;
        memory::bound(&mut self.audit);
        parts.vitals.set_tick_due(self.audit.tick_due_us());
        parts.vitals.set_findings(self.change);
        // Twice as fast as they come, so that moving comes to an end.
        parts.store.move_pending(&mut self.pending, 2 * rows).await
    }

    /// Returns how many rows have changed.
    async fn save(
        &mut self,
        parts: &Parts,
        records: &[Record],
        end: Position,
    ) -> Result<usize, StoreError> {
        let Parts { store, metrics, .. } = parts;
        let skipped = self.audit.take_skipped().into_iter();
        let step = Step::take(&mut self.audit, records, end)?;
        let measured = |(key, measured): (&MinuteKey, &Measured)| {
            let (service, env, _) = key;
            (service.clone(), env.clone(), measured.clone())
        };
        let judged = Judged {
            confirmed: self.audit.book.take_confirmed(),
            skipped: skipped.map(|(check, count)| (check.to_owned(), count)).collect(),
            measured: step.measured().iter().map(measured).collect(),
        };
        let counted = metrics.count_judged(&judged);
        let rows = step.rows();
        self.change =
            store.save_step(step, &mut self.pending, counted.totals(), self.change).await?;
        self.at = end;
        metrics.judged(&counted);
        Ok(rows)
    }
}

impl Judge {
    /// Goes on where the stored progress ends.
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        let known = Known::read(&parts).await?;
        Ok(Self { parts, known: Some(known), waits_since_us: None })
    }

    /// Judges the next records. Returns how many; 0 if all are judged. A step that fails changes
    /// nothing but the lag: that grows as long as steps fail.
    pub async fn step(&mut self) -> Result<usize, StoreError> {
        let now_us = self.parts.clock.now_us();
        self.waits_since_us.get_or_insert(now_us);
        let judged = self.advance().await;
        let Parts { vitals, clock, .. } = &self.parts;
        let n = self.known.as_ref().map_or_else(|| vitals.judged_n(), |known| known.at.n);
        let lag_us =
            self.waits_since_us.map_or(0, |since_us| clock.now_us().saturating_sub(since_us));
        vitals.set_judged(n, lag_us);
        if let Ok((_, next_us)) = judged {
            self.waits_since_us = next_us;
        }
        judged.map(|(records, _)| records)
    }

    /// Says how many records were judged, and before when no record came that waits.
    async fn advance(&mut self) -> Result<(usize, Option<i64>), StoreError> {
        let mut known = match self.known.take() {
            Some(known) => known,
            None => Known::read(&self.parts).await?,
        };
        let Parts { store, vitals, .. } = &self.parts;
        let waiting = vitals.appended_n().saturating_sub(known.at.n);
        let is_behind = waiting > i64::from(STEP_RECORDS);
        let limit = if is_behind { STEP_RECORDS_BEHIND } else { STEP_RECORDS };
        let records = match store.read_records(known.at, limit).await {
            Ok(records) => records,
            Err(error) => {
                self.known = Some(known);
                return Err(error);
            }
        };
        self.waits_since_us = records.first().map(|record| record.received_us);
        known.judge(&self.parts, &records).await?;
        self.known = Some(known);
        Ok((records.len(), records.last().map(|record| record.received_us)))
    }
}

/// Folds records, and settles what is due by each.
pub(crate) async fn fold_all(
    store: &Store,
    pending: &Pending,
    audit: &mut Audit,
    records: &[Record],
) -> Result<(), StoreError> {
    // As far as it can be seen before they are folded.
    load_for(store, pending, audit, records).await?;
    for record in records {
        fold(store, pending, audit, record).await?;
    }
    Ok(())
}

async fn load_for(
    store: &Store,
    pending: &Pending,
    audit: &mut Audit,
    records: &[Record],
) -> Result<(), StoreError> {
    loop {
        let needs = audit.needs(records);
        if needs.is_empty() {
            return Ok(());
        }
        store.load_facts(pending, &mut audit.facts, &needs).await?;
    }
}

async fn fold(
    store: &Store,
    pending: &Pending,
    audit: &mut Audit,
    record: &Record,
) -> Result<(), StoreError> {
    if let Some(id) = audit.needs_finding(record)
        && let Some(finding) = store.finding(id).await?
    {
        audit.load_finding(finding.finding);
    }
    load_for(store, pending, audit, std::slice::from_ref(record)).await?;
    audit.fold(record);
    loop {
        let ready = audit.ready();
        if ready.is_empty() {
            return Ok(());
        }
        loop {
            let needs = audit.needs_of(&ready);
            if needs.is_empty() {
                break;
            }
            store.load_facts(pending, &mut audit.facts, &needs).await?;
        }
        audit.settle(&ready);
        memory::bound(audit);
    }
}

/// Judges until `stop` is true or gone: a step whenever the writer has appended something.
pub async fn run(mut judge: Judge, mut stop: watch::Receiver<bool>) {
    let mut appended = judge.parts.vitals.appended();
    loop {
        appended.mark_unchanged();
        let pause = match judge.step().await {
            Ok(0) => None,
            Ok(_) => Some(Duration::ZERO),
            Err(error) => {
                tracing::error!(%error, "the judge could not go on; it tries again");
                Some(RETRY_AFTER)
            }
        };
        if *stop.borrow() || stop.has_changed().is_err() {
            return;
        }
        match pause {
            Some(Duration::ZERO) => {}
            Some(pause) => tokio::time::sleep(pause).await,
            None => tokio::select! {
                _ = appended.changed() => {}
                _ = stop.changed() => {}
            },
        }
    }
}

#[cfg(test)]
mod tests;
