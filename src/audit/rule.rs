//! What the rules about one settlement are given, and what they answer.
//!
//! A rule is a function of what is known of the settlement; it says what *is*, in all, and when to
//! look again. `settle` asks every rule, and the book turns the answers into rows.

use super::finding::{Coverage, OrderKnown, Severity, Witness};
use super::kind::Kind;
use super::ledger::Ledger;
use super::order::Moment;
use super::row::Verdict;
use super::source::Sources;
use crate::outcome::{Amounts, Settings};

/// What the audit knows around a key.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) sources: &'a Sources,
    pub(super) ledger: &'a Ledger,
    pub(super) settings: &'a Settings,
    pub(super) watermark_us: i64,
    /// The watermark is the time of receipt, for want of anybody who tells.
    pub(super) by_receipt: bool,
}

impl Context<'_> {
    /// From when on a grace counts, by the collector's clock: from when it happened; where time is
    /// that of receipt, from when it was heard, since a backlog says nothing of what else is in
    /// it.
    pub(super) fn since_us(&self, at: &Moment, received_us: i64) -> i64 {
        let at_us = at.at_us.saturating_add(self.sources.offset_us(at.source).unwrap_or(0));
        if self.by_receipt { at_us.max(received_us) } else { at_us }
    }
}

/// What is to be said of a key, and when to look again.
pub(super) struct Judged {
    pub(super) kind: Kind,
    pub(super) verdict: Option<Verdict>,
    pub(super) due_us: Option<i64>,
    /// Look again when a hole fills.
    pub(super) hole: bool,
    /// The answer hangs on an order that is not known: the least is said, and that is counted.
    pub(super) order_missing: bool,
    /// Why a row that stands no more is closed.
    pub(super) because: &'static str,
}

impl Verdict {
    /// What the witnesses show, said by the source of one of them: good to know, and no amount.
    pub(super) fn of(sources: &Sources, at: &Moment, cause: &str) -> Option<Self> {
        let name = sources.name(at.source)?;
        Some(Self {
            count: 1,
            amounts: Amounts::default(),
            players: 1,
            severity: Severity::Info,
            confirmed: true,
            cause: cause.to_owned(),
            order: OrderKnown::Proven,
            coverage: Coverage::Full,
            service: name.service.to_string(),
            env: name.env.to_string(),
            source: Some(name.source.clone()),
            first_us: at.at_us,
            last_us: at.at_us,
            witnesses: Vec::new(),
        })
    }

    /// With these witnesses, and the times from the first to the last of them.
    pub(super) fn shown_by(self, witnesses: impl IntoIterator<Item = Option<Witness>>) -> Self {
        let witnesses: Vec<Witness> = witnesses.into_iter().flatten().collect();
        let times = witnesses.iter().map(|witness| witness.occurred_us);
        let first_us = times.clone().min().unwrap_or(self.first_us);
        let last_us = times.max().unwrap_or(self.last_us);
        Self { first_us, last_us, witnesses, ..self }
    }
}

impl Judged {
    /// Nothing is to be said, and nothing waited for.
    pub(super) fn nothing(kind: Kind, because: &'static str) -> Self {
        Self { kind, verdict: None, due_us: None, hole: false, order_missing: false, because }
    }
}
