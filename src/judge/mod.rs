//! Runs the audit over the log: reads records, keeps and stores its state, writes findings.
//!
//! One step is [`Judge::step`]: read what is new, load the facts it needs, fold, and write facts,
//! findings and progress in one transaction. Tests drive it; [`run`] does so on a thread of its
//! own, woken by the writer.

mod memory;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use crate::audit::{Audit, Settings};
use crate::clock::Clock;
use crate::metrics::{Judged, Metrics};
use crate::outcome::{Position, Record};
use crate::store::{Step, Store, StoreError};
use crate::vitals::Vitals;

/// Records of one step: its write stays under the 20 ms that the writer may wait (design.md).
const STEP_RECORDS: u32 = 1_000;
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
    /// `[audit]`.
    pub settings: Settings,
}

/// The one judge of a database.
pub struct Judge {
    parts: Parts,
    audit: Audit,
    at: Position,
    change: i64,
}

impl Judge {
    /// Goes on where the stored progress ends.
    pub async fn open(parts: Parts) -> Result<Self, StoreError> {
        let collector = parts.store.collector();
        let audit = memory::restore(&parts.store, &parts.settings).await?;
        let n = parts.store.read_progress(collector).await?;
        let change = parts.store.read_last_change().await?;
        parts.vitals.set_judged(n, 0);
        parts.vitals.set_findings(change);
        parts.vitals.set_tick_due(audit.tick_due_us());
        Ok(Self { at: Position { collector, n }, parts, audit, change })
    }

    /// Judges the next records. Returns how many; 0 if all are judged.
    ///
    /// After an error the step is undone, in memory too.
    pub async fn step(&mut self) -> Result<usize, StoreError> {
        match self.try_step().await {
            Ok(judged) => Ok(judged),
            Err(error) => {
                self.audit = memory::restore(&self.parts.store, &self.parts.settings).await?;
                Err(error)
            }
        }
    }

    async fn try_step(&mut self) -> Result<usize, StoreError> {
        let records = self.parts.store.read_records(self.at, STEP_RECORDS).await?;
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            self.parts.vitals.set_judged(self.at.n, 0);
            return Ok(0);
        };
        let (oldest_us, end) = (first.received_us, last.position);
        self.load_for(&records).await?;
        for record in &records {
            self.fold(record).await?;
        }
        let change = self.save(&records, end).await?;
        (self.at, self.change) = (end, change);
        memory::bound(&mut self.audit);
        let vitals = &self.parts.vitals;
        vitals.set_tick_due(self.audit.tick_due_us());
        vitals.set_judged(end.n, self.parts.clock.now_us().saturating_sub(oldest_us));
        vitals.set_findings(change);
        Ok(records.len())
    }

    async fn save(&mut self, records: &[Record], end: Position) -> Result<i64, StoreError> {
        let judged = Judged {
            confirmed: self.audit.book.take_confirmed(),
            skipped: self
                .audit
                .take_skipped()
                .into_iter()
                .map(|(check, count)| (check.to_owned(), count))
                .collect(),
        };
        let step = Step::take(&mut self.audit, records, end)?;
        let Parts { store, metrics, clock, .. } = &self.parts;
        let counted = metrics.count_judged(&judged);
        let now_us = clock.now_us();
        let change = store.save_step(&step, counted.totals(), now_us, self.change).await?;
        metrics.judged(&counted);
        Ok(change)
    }

    /// Loads what the records need, as far as that can be seen before they are folded.
    async fn load_for(&mut self, records: &[Record]) -> Result<(), StoreError> {
        loop {
            let needs = self.audit.needs(records);
            if needs.is_empty() {
                return Ok(());
            }
            self.parts.store.load_facts(&mut self.audit.facts, &needs).await?;
        }
    }

    async fn fold(&mut self, record: &Record) -> Result<(), StoreError> {
        if let Some(id) = self.audit.needs_finding(record) {
            if let Some(finding) = self.parts.store.finding(id).await? {
                self.audit.load_finding(finding.finding);
            }
        }
        self.load_for(std::slice::from_ref(record)).await?;
        self.audit.fold(record);
        loop {
            let ready = self.audit.ready();
            if ready.is_empty() {
                return Ok(());
            }
            loop {
                let needs = self.audit.needs_of(&ready);
                if needs.is_empty() {
                    break;
                }
                self.parts.store.load_facts(&mut self.audit.facts, &needs).await?;
            }
            self.audit.settle(&ready);
        }
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
