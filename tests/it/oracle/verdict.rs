//! What is said of a subject in the end, as the oracle and the product say it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

use dedupwatch::audit::{Finding, Kind, Severity, State, Subject};
use dedupwatch::outcome::Amounts;

use super::world::{Key, identity};

/// The kinds that the oracle judges; the others are not compared.
pub const COVERED: [Kind; 30] = [
    Kind::DuplicateLeak,
    Kind::FalseBlock,
    Kind::UnverifiableBlock,
    Kind::LiveEviction,
    Kind::IndeterminateOutcome,
    Kind::AcceptWithoutEffect,
    Kind::BlockAfterFailedEffect,
    Kind::CrossRoomBooking,
    Kind::GuardBypass,
    Kind::TelemetryGap,
    Kind::IdentityConflict,
    Kind::RejectedEvidence,
    Kind::ClockRollback,
    Kind::ClockSkew,
    Kind::CapMismatch,
    Kind::TwoWriters,
    Kind::ReplicaDisagreement,
    Kind::IllegalTransition,
    Kind::CounterWrap,
    Kind::MissedDuplicate,
    Kind::IdCollision,
    Kind::SignatureReused,
    Kind::AmbiguousEqual,
    Kind::OutcomeFlip,
    Kind::StuckClaim,
    Kind::RetryStorm,
    Kind::VersionRegression,
    Kind::TornState,
    Kind::WindowLost,
    Kind::UndersizedWindow,
];

/// What one kind says of one subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    pub kind: Kind,
    pub subject: String,
    pub confirmed: bool,
    /// `None` is not compared.
    pub severity: Option<Severity>,
    /// Where the rule names one.
    pub cause: Option<String>,
    pub count: u64,
    pub amounts: Amounts,
}

/// Verdicts, and what can't be said.
#[derive(Debug, Default)]
pub struct Verdicts {
    pub said: BTreeMap<(Kind, String), Verdict>,
    /// Depends on what is not known: the product may stay silent.
    pub unsure: BTreeSet<(Kind, String)>,
}

impl Verdict {
    /// One occurrence of nothing, confirmed.
    pub fn of(kind: Kind, subject: &impl Debug, severity: Severity) -> Self {
        Self {
            kind,
            subject: format!("{subject:?}"),
            confirmed: true,
            severity: Some(severity),
            cause: None,
            count: 1,
            amounts: Amounts::default(),
        }
    }
}

impl Verdicts {
    pub fn key(&mut self, verdict: Verdict) {
        self.said.insert((verdict.kind, verdict.subject.clone()), verdict);
    }

    pub fn unsure(&mut self, kind: Kind, subject: &impl Debug) {
        self.unsure.insert((kind, format!("{subject:?}")));
    }

    /// Of the product: open rows.
    pub fn of(findings: impl Iterator<Item = Finding>) -> Self {
        let mut verdicts = Self::default();
        for finding in findings.filter(|finding| finding.state != State::Closed) {
            let subject = subject(&finding);
            let place = (finding.kind, subject.clone());
            let verdict = Verdict {
                kind: finding.kind,
                subject,
                confirmed: finding.state == State::Confirmed,
                severity: Some(finding.severity),
                cause: Some(finding.cause),
                count: finding.count,
                amounts: finding.amounts,
            };
            let known = verdicts.said.remove(&place);
            verdicts.said.insert(place, known.map_or(verdict.clone(), |one| one.with(&verdict)));
        }
        verdicts
    }

    /// What the other says otherwise, by sort of difference; `self` is the oracle.
    pub fn differences(&self, product: &Self) -> BTreeMap<String, Vec<String>> {
        let places: BTreeSet<_> = self.said.keys().chain(product.said.keys()).collect();
        let mut differences: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let compared = places.into_iter().filter(|place| COVERED.contains(&place.0));
        for place in compared.filter(|place| !self.unsure.contains(place)) {
            let (right, said) = (self.said.get(place), product.said.get(place));
            let what = match (right, said) {
                (Some(right), Some(said)) if right.same(said) => continue,
                (Some(_), Some(_)) => "otherwise",
                (Some(_), None) => "not found",
                _ => "found",
            };
            let both = format!("{place:?}\n  oracle  {right:?}\n  product {said:?}");
            differences.entry(format!("{} {what}", place.0.as_str())).or_default().push(both);
        }
        differences
    }
}

impl Verdict {
    fn same(&self, product: &Self) -> bool {
        let cause = self.cause.clone().or(product.cause.clone());
        let severity = self.severity.or(product.severity);
        Self { cause, severity, ..self.clone() } == *product
    }

    /// Two rows of one subject, as the oracle tells subjects apart.
    fn with(self, other: &Self) -> Self {
        Self {
            count: self.count + other.count,
            amounts: self.amounts.plus(other.amounts),
            severity: self.severity.max(other.severity),
            confirmed: self.confirmed && other.confirmed,
            ..self
        }
    }
}

/// Causes of a live eviction that its reason gives; the others are told apart by no rule.
pub const BY_REASON: [&str; 5] = ["ttl", "reaper", "restart", "memory", "ack"];

fn subject(finding: &Finding) -> String {
    match &finding.subject {
        Subject::AuditKey { ledger, player, signature } => {
            let (ledger, player) = (ledger.clone(), player.clone());
            format!("{:?}", Key { ledger, player, identity: identity(signature) })
        }
        Subject::Source { from: Some(from), cause, .. } if finding.kind == Kind::LiveEviction => {
            let cause = BY_REASON.iter().find(|reason| *reason == cause).unwrap_or(&"fifo");
            format!("{:?}", (from, cause))
        }
        // Of a source that was never taken no name is kept: anybody can make them up. So which
        // row a refusal counts in depends on when its source was first taken.
        Subject::Source { cause, .. } if finding.kind == Kind::RejectedEvidence => {
            format!("{cause:?}")
        }
        Subject::Source { from: Some(from), cause, .. } => format!("{:?}", (from, cause)),
        Subject::Service { service, env, .. } => format!("{:?}", (service, env)),
        Subject::Player { ledger, player } => format!("{:?}", (ledger, player)),
        Subject::Boot { from, boot } => format!("{:?}", (from, format!("{boot:?}"))),
        other => format!("{other:?}"),
    }
}
