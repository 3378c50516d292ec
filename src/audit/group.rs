//! Rows about a source or a boot: they count occurrences and keep a few examples.

use serde::{Deserialize, Serialize};

use super::clock::JITTER;
use super::finding::{Coverage, OrderKnown, Severity, State, Subject, Witness};
use super::kind::Kind;
use super::row::{EXAMPLES_MAX, Row, Verdict};
use crate::outcome::{Amounts, Id, Position};

/// Rows about sources close as quiet after this without a new occurrence (audit.md).
pub(super) const QUIET_US: i64 = 24 * 3_600_000_000;
/// How long a telemetry gap is only good to know (audit.md).
pub(super) const INFO_US: i64 = 600_000_000;
/// So many conflicts in a minute are two processes under one name (audit.md).
const CONFLICTS_MANY: usize = 10;
const MINUTE_US: i64 = 60_000_000;

/// What a row about a source or a boot counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Group {
    /// Which rule.
    pub kind: Kind,
    /// What it is about.
    pub subject: Subject,
    pub(super) rows: Vec<Row>,
    service: String,
    env: String,
    source: Option<Id>,
    cause: String,
    order: OrderKnown,
    /// Occurrences that stand, in all rows.
    pub(super) confirmed: u64,
    amounts: Amounts,
    /// Occurrences that may still be disproved.
    suspected: u64,
    suspected_amounts: Amounts,
    pub(super) players: u64,
    first_us: i64,
    last_us: i64,
    examples: Vec<Witness>,
    /// Receipts of the newest occurrences.
    newest: Vec<i64>,
    opened_us: i64,
    pub(super) gained_us: i64,
    /// Something made it worse than its kind is by itself.
    pub(super) critical: bool,
}

/// One occurrence.
pub(super) struct Occurrence {
    pub(super) at_us: i64,
    pub(super) amounts: Amounts,
    pub(super) witnesses: Vec<Witness>,
}

impl Group {
    pub(super) fn new(
        kind: Kind,
        subject: Subject,
        cause: &str,
        (service, env, source): (String, String, Option<Id>),
        received_us: i64,
    ) -> Self {
        Self {
            kind,
            subject,
            rows: Vec::new(),
            service,
            env,
            source,
            cause: cause.to_owned(),
            order: OrderKnown::Proven,
            confirmed: 0,
            amounts: Amounts::default(),
            suspected: 0,
            suspected_amounts: Amounts::default(),
            players: 0,
            first_us: i64::MAX,
            last_us: i64::MIN,
            examples: Vec::new(),
            newest: Vec::new(),
            opened_us: received_us,
            gained_us: received_us,
            critical: false,
        }
    }

    fn row(&self) -> Option<&Row> {
        self.rows.last().filter(|row| row.is_open())
    }

    /// The number of the row that a new occurrence counts in.
    pub(super) fn ordinal(&self) -> u32 {
        match self.rows.last() {
            None => 1,
            Some(row) if row.is_open() => row.finding.ordinal,
            Some(row) => row.finding.ordinal.saturating_add(1),
        }
    }

    /// Takes an occurrence that stands.
    pub(super) fn add(&mut self, occurrence: Occurrence, received_us: i64) {
        self.begin(received_us);
        self.confirmed = self.confirmed.saturating_add(1);
        self.amounts = self.amounts.plus(occurrence.amounts);
        self.gained_us = received_us;
        self.newest.push(received_us);
        if self.newest.len() > CONFLICTS_MANY {
            self.newest.remove(0);
        }
        self.witness(occurrence);
    }

    /// Sets the number of occurrences, where the rule says a total.
    pub(super) fn set(&mut self, total: u64, occurrence: Option<Occurrence>, received_us: i64) {
        if total > self.confirmed {
            self.begin(received_us);
            self.gained_us = received_us;
        }
        self.confirmed = total;
        if let Some(occurrence) = occurrence {
            self.witness(occurrence);
        }
    }

    /// Takes an occurrence that may still be disproved.
    pub(super) fn suspect(&mut self, occurrence: Occurrence, received_us: i64) {
        self.begin(received_us);
        self.suspected = self.suspected.saturating_add(1);
        self.suspected_amounts = self.suspected_amounts.plus(occurrence.amounts);
        if self.row().is_none() {
            self.witness(occurrence);
        }
    }

    /// A suspected one is no more suspected: it stands, or is disproved.
    pub(super) fn unsuspect(&mut self, amounts: Amounts) {
        self.suspected = self.suspected.saturating_sub(1);
        self.suspected_amounts = self.suspected_amounts.minus(amounts);
    }

    /// One that stood is disproved.
    pub(super) fn take_back(&mut self, amounts: Amounts, example: Position) {
        self.confirmed = self.confirmed.saturating_sub(1);
        self.amounts = self.amounts.minus(amounts);
        self.examples.retain(|witness| witness.position != example);
    }

    fn begin(&mut self, received_us: i64) {
        if self.row().is_none() && self.suspected == 0 {
            self.players = 0;
            (self.first_us, self.last_us) = (i64::MAX, i64::MIN);
            self.examples.clear();
            self.newest.clear();
            (self.opened_us, self.gained_us) = (received_us, received_us);
            self.critical = false;
        }
    }

    fn witness(&mut self, occurrence: Occurrence) {
        self.first_us = self.first_us.min(occurrence.at_us);
        self.last_us = self.last_us.max(occurrence.at_us);
        for witness in occurrence.witnesses {
            if self.examples.len() < 2 * EXAMPLES_MAX && !self.examples.contains(&witness) {
                self.examples.push(witness);
            }
        }
    }

    pub(super) fn order(&mut self, order: OrderKnown) {
        self.order = self.order.max(order);
    }

    /// What the rows are to show, and when to look again.
    pub(super) fn verdict(&self, received_us: i64) -> (Option<Verdict>, Option<i64>) {
        let counted_before = match self.rows.last() {
            None => 0,
            Some(row) if row.is_open() => row.base.count,
            Some(row) => row.end_count(),
        };
        let confirmed = self.row().is_some_and(|row| row.finding.state == State::Confirmed)
            || self.confirmed > counted_before;
        let (count, amounts) = if confirmed {
            (self.confirmed, self.amounts)
        } else {
            let amounts = self.amounts.plus(self.suspected_amounts);
            (self.confirmed.saturating_add(self.suspected), amounts)
        };
        let verdict = Verdict {
            count,
            amounts,
            players: self.players,
            severity: self.severity(received_us),
            confirmed,
            cause: self.cause.clone(),
            order: self.order,
            coverage: Coverage::Full,
            service: self.service.clone(),
            env: self.env.clone(),
            source: self.source.clone(),
            first_us: self.first_us,
            last_us: self.last_us,
            witnesses: self.examples.clone(),
        };
        let warning_us = self.opened_us.saturating_add(INFO_US);
        let due_us = if self.kind == Kind::TelemetryGap && received_us < warning_us {
            warning_us
        } else {
            self.gained_us.saturating_add(QUIET_US)
        };
        (Some(verdict), self.row().is_some().then_some(due_us))
    }

    /// Whether nothing new came for so long that the row closes.
    pub(super) fn is_quiet(&self, received_us: i64) -> bool {
        received_us >= self.gained_us.saturating_add(QUIET_US)
    }

    fn severity(&self, received_us: i64) -> Severity {
        let many = self.newest.len() >= CONFLICTS_MANY
            && self.newest.last().zip(self.newest.first()).is_some_and(|(l, f)| l - f <= MINUTE_US);
        let was = self.row().map(|row| row.finding.severity);
        match self.kind {
            _ if self.critical || was == Some(Severity::Critical) => Severity::Critical,
            Kind::IdentityConflict if many => Severity::Critical,
            Kind::TelemetryGap if received_us < self.opened_us.saturating_add(INFO_US) => {
                Severity::Info
            }
            Kind::ClockRollback if self.cause == JITTER => Severity::Info,
            Kind::CapMismatch => Severity::Info,
            _ => Severity::Warning,
        }
    }
}
