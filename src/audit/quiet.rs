//! Rows of subjects that nobody has to close: after a day without news they close as quiet
//! (audit.md).

use serde::{Deserialize, Serialize};

use super::book::Book;
use super::finding::{State, Subject};
use super::group::QUIET_US;
use super::kind::Kind;
use super::row::{Row, Verdict};
use super::rule::Judged;

/// The newest rows of each kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct QuietRows {
    #[serde(skip)]
    rows: Vec<Row>,
}

/// When to look again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Due {
    /// By the time of the ledger.
    pub(super) ledger_us: Option<i64>,
    /// By the time of receipt.
    pub(super) receipt_us: Option<i64>,
    /// When a hole fills.
    pub(super) hole: bool,
}

impl Due {
    /// The earlier of the two, each by itself.
    pub(super) fn or(self, other: Self) -> Self {
        let earlier = |a: Option<i64>, b: Option<i64>| a.into_iter().chain(b).min();
        Self {
            ledger_us: earlier(self.ledger_us, other.ledger_us),
            receipt_us: earlier(self.receipt_us, other.receipt_us),
            hole: self.hole || other.hole,
        }
    }
}

impl QuietRows {
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    pub(super) fn take_back(&mut self, rows: Vec<Row>) {
        self.rows = rows;
    }

    fn newest(&self, kind: Kind) -> Option<&Row> {
        self.rows.iter().rfind(|row| row.finding.kind == kind)
    }

    /// What a row shows of occurrences of which `settled` stand and `all` are known: only those
    /// that stand, once one of them is new.
    pub(super) fn shown(&self, kind: Kind, settled: u64, all: u64) -> (u64, bool) {
        let row = self.newest(kind);
        let counted =
            row.map_or(0, |row| if row.is_open() { row.base.count } else { row.end_count() });
        let stands = row.is_some_and(|row| row.finding.state == State::Confirmed);
        let confirmed = settled > counted || stands;
        (if confirmed { settled } else { all }, confirmed)
    }

    /// What the row of a kind says, for what the facts have let go of.
    pub(super) fn told(&self, kind: Kind) -> Option<Verdict> {
        let finding = self.newest(kind)?.finding.clone();
        Some(Verdict {
            count: finding.count,
            amounts: finding.amounts,
            players: finding.players,
            severity: finding.severity,
            confirmed: finding.state == State::Confirmed,
            cause: finding.cause,
            order: finding.order,
            coverage: finding.coverage,
            service: finding.service,
            env: finding.env,
            source: finding.source,
            first_us: finding.first_us,
            last_us: finding.last_us,
            witnesses: finding.witnesses,
        })
    }

    /// Brings the row of a rule in line.
    pub(super) fn settle(
        &mut self,
        book: &mut Book,
        subject: &Subject,
        judged: Judged,
        received_us: i64,
    ) -> Due {
        let Judged { kind, verdict, because, due_us, hole, .. } = judged;
        let due = Due { ledger_us: due_us, receipt_us: None, hole };
        let verdict = verdict.map(|verdict| begun_earlier(verdict, self.newest(kind)));
        let is_told = verdict.as_ref().zip(self.newest(kind)).is_some_and(|(verdict, row)| {
            let confirmed = verdict.confirmed <= (row.finding.state == State::Confirmed);
            row.is_open() && row.end_count() == verdict.count && confirmed
        });
        // What is told already keeps its evidence, also where the facts have let go of it.
        if !is_told {
            book.settle(&mut self.rows, subject, kind, verdict, because, received_us);
        }
        let Some(row) = self.newest(kind).filter(|row| row.is_open()) else { return due };
        let quiet_us = row.gained_us.unwrap_or(row.opened_us).saturating_add(QUIET_US);
        if received_us < quiet_us {
            return Due { receipt_us: Some(quiet_us), ..due };
        }
        let id = row.finding.id.clone();
        book.close_as_is(&mut self.rows, &id, "quiet", received_us);
        due
    }

    /// A person closed a row: what happens after counts from there.
    pub(super) fn close(&mut self, book: &mut Book, id: &str, because: &str, received_us: i64) {
        book.close_as_is(&mut self.rows, id, because, received_us);
    }
}

/// The first witness may be one that the facts have let go of.
fn begun_earlier(verdict: Verdict, row: Option<&Row>) -> Verdict {
    let row = row.filter(|row| row.is_open());
    let first_us = row.map_or(verdict.first_us, |row| row.finding.first_us.min(verdict.first_us));
    Verdict { first_us, ..verdict }
}
