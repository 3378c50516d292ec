//! What the rules about one settlement are given, and what they answer.
//!
//! A rule is a function of what is known of the settlement; it says what *is*, in all, and when to
//! look again. `settle` asks every rule, and the book turns the answers into rows.

use super::kind::Kind;
use super::ledger::Ledger;
use super::order::Moment;
use super::row::Verdict;
use super::settings::Settings;
use super::source::Sources;

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
    /// Why a row that stands no more is closed.
    pub(super) because: &'static str,
}

impl Judged {
    /// Nothing is to be said, and nothing waited for.
    pub(super) fn nothing(kind: Kind, because: &'static str) -> Self {
        Self { kind, verdict: None, due_us: None, hole: false, because }
    }
}
