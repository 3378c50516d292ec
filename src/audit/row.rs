//! What a rule says of a subject, and the row that shows it.

use serde::{Deserialize, Serialize};

use super::finding::{Coverage, Finding, OrderKnown, Severity, State, Subject, Witness};
use super::kind::Kind;
use crate::outcome::{Amounts, Id, KeyedHash};

/// Evidence kept in a row that counts many occurrences.
pub(super) const EXAMPLES_MAX: usize = 10;

/// What a rule says about a subject, in all.
#[derive(Clone, Debug)]
pub(super) struct Verdict {
    pub(super) count: u64,
    pub(super) amounts: Amounts,
    pub(super) players: u64,
    pub(super) severity: Severity,
    pub(super) confirmed: bool,
    pub(super) cause: String,
    pub(super) order: OrderKnown,
    pub(super) coverage: Coverage,
    pub(super) service: String,
    pub(super) env: String,
    pub(super) source: Option<Id>,
    pub(super) first_us: i64,
    pub(super) last_us: i64,
    pub(super) witnesses: Vec<Witness>,
}

/// A row as its subject remembers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub(super) finding: Finding,
    /// Where it began to count.
    pub(super) base: Counted,
    /// The total that its subject had reached when it was closed, or has fallen to since: the
    /// next row counts from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<Counted>,
    /// The minute whose row `more` shows it instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) more: Option<i64>,
    /// Receipt of the record by which it was opened.
    pub(super) opened_us: i64,
    /// Receipt of the record by which it last gained a confirmed occurrence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) gained_us: Option<i64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counted {
    pub(super) count: u64,
    pub(super) amounts: Amounts,
}

impl Counted {
    pub(super) fn of(finding: &Finding) -> Self {
        Self { count: finding.count, amounts: finding.amounts }
    }

    pub(super) fn minus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_sub(other.count),
            amounts: self.amounts.minus(other.amounts),
        }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            count: self.count.saturating_add(other.count),
            amounts: self.amounts.plus(other.amounts),
        }
    }
}

impl Row {
    pub(super) fn new(finding: Finding, base: Counted, more: Option<i64>, opened_us: i64) -> Self {
        Self { finding, base, ended: None, more, opened_us, gained_us: None }
    }

    /// The total that its subject had reached with it.
    pub(super) fn end(&self) -> Counted {
        self.ended.unwrap_or_else(|| self.base.plus(Counted::of(&self.finding)))
    }

    /// How many its subject had counted with it.
    pub(super) fn end_count(&self) -> u64 {
        self.end().count
    }

    /// The id of its finding.
    pub fn id(&self) -> &str {
        &self.finding.id
    }

    pub(super) fn is_open(&self) -> bool {
        self.finding.state != State::Closed
    }
}

/// The row of a verdict: what it says beyond where the row began to count.
pub(super) fn new_finding(
    hash: &KeyedHash,
    subject: &Subject,
    kind: Kind,
    ordinal: u32,
    verdict: Verdict,
    base: Counted,
) -> Finding {
    let (ledger, player, signature) = match subject {
        Subject::AuditKey { ledger, player, signature } => {
            (Some(ledger.clone()), Some(player.clone()), Some(signature.clone()))
        }
        Subject::Source { ledger, .. } => (ledger.clone(), None, None),
        Subject::Ref { ledger, player, .. }
        | Subject::Player { ledger, player }
        | Subject::Room { ledger, player, .. } => {
            (Some(ledger.clone()), Some(player.clone()), None)
        }
        Subject::Message { ledger, .. } => (Some(ledger.clone()), None, None),
        Subject::Service { .. } | Subject::Boot { .. } | Subject::More { .. } => (None, None, None),
    };
    let shown = Counted { count: verdict.count, amounts: verdict.amounts }.minus(base);
    Finding {
        id: Finding::id_of(hash, kind, subject, ordinal),
        kind,
        subject: subject.clone(),
        ordinal,
        severity: verdict.severity,
        state: if verdict.confirmed { State::Confirmed } else { State::Suspected },
        closed_because: None,
        cause: verdict.cause,
        order: verdict.order,
        coverage: verdict.coverage,
        service: verdict.service,
        env: verdict.env,
        ledger,
        source: verdict.source,
        player,
        signature,
        count: shown.count,
        players: verdict.players,
        first_us: verdict.first_us,
        last_us: verdict.last_us,
        amounts: shown.amounts,
        amounts_before_closing: None,
        witnesses: verdict.witnesses,
    }
}

/// An empty row `more`, for findings like this one.
pub(super) fn more_finding(
    hash: &KeyedHash,
    subject: Subject,
    ordinal: u32,
    like: &Finding,
) -> Finding {
    Finding {
        id: Finding::id_of(hash, like.kind, &subject, ordinal),
        subject,
        ordinal,
        source: None,
        player: None,
        signature: None,
        cause: "more".into(),
        count: 0,
        players: 0,
        amounts: Amounts::default(),
        amounts_before_closing: None,
        witnesses: Vec::new(),
        ..like.clone()
    }
}
