//! One step of the judge: facts, findings, sums, small state, totals and progress, written
//! together or not at all.
//!
//! What is written is made ready before the write lock is taken: the writer of the log waits for
//! it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::db::Connection;
use super::facts::{self, Delivery, json};
use super::pending::{self, Packed, Pending};
use super::rollups::{self, Rollups};
use super::totals::{self, SHARED, Total};
use super::verdicts::{self, Part};
use super::{Store, StoreError, advice};
use crate::audit::{Audit, Change, Measured, MinuteKey, SumKey, Sums};
use crate::outcome::{Body, Position, Record};

/// The names of the parts of the judge's small state.
pub mod part {
    /// Sources.
    pub const SOURCE: &str = "source";
    /// Ledgers.
    pub const LEDGER: &str = "ledger";
    /// Services.
    pub const SERVICE: &str = "service";
    /// What the window advisor says.
    pub const ADVICE: &str = "advice";
    /// Rows about sources and boots.
    pub const GROUP: &str = "group";
    /// Rows `more`.
    pub const MORE: &str = "more";
    /// What is set: at the position that was reached, and ([`BASE`]) before the first record.
    pub const SETTINGS: &str = "settings";
    /// The name of what was set before the first record.
    pub const BASE: &str = "base";
    /// Rows that minutes opened.
    pub const OPENED: &str = "opened";
    /// Who waits for time.
    pub const WAIT: &str = "wait";
    /// The receipt of the newest record.
    pub const RECEIVED: &str = "received";
    /// The last number given to a change of a finding. Not to be had from the findings: a
    /// withdrawn one leaves no trace, and the alerts would miss what gets its number again.
    pub const CHANGE: &str = "change";
}

/// All that one step changed.
pub struct Step {
    end: Position,
    facts: Vec<Packed>,
    /// The facts as the journal keeps them.
    journal: Vec<u8>,
    deliveries: Vec<Delivery>,
    findings: BTreeMap<String, Change>,
    sums: Vec<(SumKey, Sums)>,
    measured: BTreeMap<MinuteKey, Measured>,
    parts: Vec<Part>,
    /// Of the judge's steps empty: the writer has counted.
    rollups: Rollups,
}

impl Step {
    /// Takes what has changed in the audit by folding these records.
    pub fn take(audit: &mut Audit, records: &[Record], end: Position) -> Result<Self, StoreError> {
        let deliveries = deliveries(audit, records);
        let mut parts = Parts::default();
        for source in audit.sources.take_changed() {
            parts.put(part::SOURCE, &source.name, source)?;
        }
        for ledger in audit.ledgers.take_changed() {
            parts.put(part::LEDGER, &ledger.name, ledger)?;
        }
        for service in audit.take_services() {
            parts.put(part::SERVICE, &service.name, service)?;
        }
        for advice in audit.take_advices() {
            parts.put(part::ADVICE, &(&advice.service, &advice.env), advice)?;
        }
        for group in audit.take_groups() {
            parts.put(part::GROUP, &(group.kind, &group.subject), group)?;
        }
        for row in audit.book.take_more() {
            parts.put(part::MORE, &row.id(), row)?;
        }
        for opened in audit.book.take_opened() {
            parts.put(part::OPENED, &(opened.kind, &opened.service), opened)?;
        }
        for (wait, waiting) in audit.waits.take_changed() {
            match waiting {
                Some(waiting) => parts.put(part::WAIT, &wait, waiting)?,
                None => parts.drop(part::WAIT, &wait)?,
            }
        }
        if let Some(settings) = audit.take_settings() {
            parts.put(part::SETTINGS, &"", settings)?;
        }
        parts.put(part::RECEIVED, &"", &audit.received_us())?;
        let facts = facts::changed(&mut audit.facts)?;
        Ok(Self {
            end,
            journal: pending::journal_form(&facts)?,
            facts,
            deliveries,
            findings: audit.book.take_changes(),
            sums: audit.book.take_sums(),
            measured: audit.take_measured(),
            parts: parts.0,
            rollups: Rollups::default(),
        })
    }

    /// Also counts its records by minute.
    #[must_use]
    pub fn with_rollups(self, rollups: Rollups) -> Self {
        Self { rollups, ..self }
    }

    /// Does not say which records are about which player.
    #[must_use]
    pub fn without_deliveries(self) -> Self {
        Self { deliveries: Vec::new(), ..self }
    }

    /// How many rows of facts and deliveries it changes.
    pub fn rows(&self) -> usize {
        self.facts.len() + self.deliveries.len()
    }

    /// What the window advisor measured.
    pub fn measured(&self) -> &BTreeMap<MinuteKey, Measured> {
        &self.measured
    }

    async fn write(
        &self,
        connection: &mut Connection,
        number: i64,
        totals: &[Total],
        change: &mut i64,
    ) -> Result<(), StoreError> {
        if self.rows() > 0 {
            pending::append(connection, number, &self.journal, &self.deliveries).await?;
        }
        verdicts::save_findings(connection, &self.findings, change).await?;
        verdicts::save_sums(connection, &self.sums).await?;
        advice::add_measured(connection, &self.measured).await?;
        verdicts::save_parts(connection, &self.parts).await?;
        let last = (part::CHANGE, String::new(), Some(json(change)?));
        verdicts::save_parts(connection, &[last]).await?;
        totals::add(connection, SHARED, totals).await?;
        rollups::add(connection, &self.rollups).await?;
        verdicts::save_progress(connection, self.end.collector, self.end.n).await
    }
}

impl Store {
    /// Writes a step and what it adds to the totals. `change` is the last number given to a
    /// change of a finding; returns the new one.
    pub async fn save_step(
        &self,
        step: Step,
        pending: &mut Pending,
        totals: &[Total],
        mut change: i64,
    ) -> Result<i64, StoreError> {
        let mut transaction = self.begin().await?;
        step.write(&mut transaction, pending.next_step(), totals, &mut change).await?;
        transaction.commit().await?;
        if step.rows() > 0 {
            pending.take(step.facts, step.deliveries);
        }
        Ok(change)
    }
}

/// Entries of the small state: part, name, and body unless it is to go.
#[derive(Default)]
struct Parts(Vec<Part>);

impl Parts {
    fn put(
        &mut self,
        part: &'static str,
        name: &impl Serialize,
        value: &impl Serialize,
    ) -> Result<(), StoreError> {
        self.0.push((part, json(name)?, Some(json(value)?)));
        Ok(())
    }

    fn drop(&mut self, part: &'static str, name: &impl Serialize) -> Result<(), StoreError> {
        self.0.push((part, json(name)?, None));
        Ok(())
    }
}

/// Which records are about which player, in the order of the table's key.
fn deliveries(audit: &Audit, records: &[Record]) -> Vec<Delivery> {
    let delivery = |record: &Record| match &record.body {
        Body::Event(event) => Some(Delivery {
            player: audit.player_key(&event.ledger(), &event.player),
            occurred_us: event.occurred_us,
            position: record.position,
        }),
        _ => None,
    };
    let mut deliveries: Vec<Delivery> = records.iter().filter_map(delivery).collect();
    deliveries.sort_unstable();
    deliveries
}
