//! "Is money safe now?": the answer that the overview begins with. Pure, so that each answer has
//! its test.
//!
//! It claims no more than the audit knows. Money is wrong where a confirmed finding says so. It
//! is safe only if nothing says otherwise *and* everybody was heard; else it can't be told.

use crate::audit::Kind;
use crate::limits;
use crate::web::format::{number, several, span};

/// What the answer rests on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    /// Whether anything was ever heard.
    pub(super) has_data: bool,
    /// Ledgers with a confirmed wrong amount.
    pub(super) wrong_ledgers: usize,
    /// Confirmed and open findings of a settlement booked wrong, also if the amount is 0.
    pub(super) wrong: i64,
    /// Suspected findings of any kind.
    pub(super) suspected: i64,
    /// Settlements that nobody can judge: unverifiable and indeterminate ones.
    pub(super) unclear: i64,
    /// Findings of missing, refused or contradicting evidence.
    pub(super) evidence: i64,
    /// Settlements whose money did not move, or moved twice under two names, as far as was told.
    pub(super) astray: i64,
    /// Findings of settlements that a window let go of too early.
    pub(super) at_risk: i64,
    /// Findings of guards that can't stop every replay.
    pub(super) unguarded: i64,
    /// Watched sources that fell silent within a day.
    pub(super) silent: i64,
    /// Ledgers whose guards may remember what was never heard here.
    pub(super) new_ledgers: i64,
    /// Whether not all open findings are added up.
    pub(super) is_cut: bool,
    /// How far the audit is behind.
    pub(super) audit_lag_us: i64,
    /// Whether the last write found no database.
    pub(super) database_away: bool,
}

impl Facts {
    /// What the findings of a kind are counted under; `None` for those that say nothing of whether
    /// money is safe, or say it again of a settlement that another one is about.
    pub(super) fn of_kind(&mut self, kind: Kind) -> Option<&mut i64> {
        match kind {
            Kind::DuplicateLeak | Kind::FalseBlock | Kind::CrossRoomBooking => {
                Some(&mut self.wrong)
            }
            Kind::AcceptWithoutEffect | Kind::MissedDuplicate => Some(&mut self.astray),
            Kind::UnverifiableBlock
            | Kind::IndeterminateOutcome
            | Kind::AmbiguousEqual
            | Kind::IdCollision
            | Kind::StuckClaim => Some(&mut self.unclear),
            Kind::LiveEviction => Some(&mut self.at_risk),
            Kind::WindowLost | Kind::UndersizedWindow | Kind::GuardBypass => {
                Some(&mut self.unguarded)
            }
            Kind::TelemetryGap | Kind::IdentityConflict | Kind::RejectedEvidence => {
                Some(&mut self.evidence)
            }
            Kind::BlockAfterFailedEffect
            | Kind::ClockRollback
            | Kind::ClockSkew
            | Kind::VersionRegression
            | Kind::TornState
            | Kind::RetryStorm
            | Kind::ReplicaDisagreement
            | Kind::OutcomeFlip
            | Kind::CapMismatch
            | Kind::CounterWrap
            | Kind::TwoWriters
            | Kind::SignatureReused
            | Kind::IllegalTransition => None,
        }
    }
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// `none`, `bad`, `unsure` or `good`.
    pub(super) level: &'static str,
    /// In one sentence.
    pub(super) headline: String,
    /// Why, each with where to look.
    pub(super) reasons: Vec<Reason>,
}

/// A reason and where to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reason {
    /// In words.
    pub(super) text: String,
    /// Where to look.
    pub(super) url: &'static str,
}

/// Behind by more than this, the answer is about the past.
const LAG_TOLD_US: i64 = 2_000_000;

/// The answer to these facts.
pub(super) fn verdict(facts: &Facts) -> Verdict {
    let reasons = reasons(facts);
    let (level, headline) = if !facts.has_data {
        ("none", "No outcomes received yet.".to_owned())
    } else if facts.wrong_ledgers > 0 {
        let ledgers = several(facts.wrong_ledgers as i128, "ledger", "ledgers");
        ("bad", format!("No. Money is booked wrong in {ledgers}."))
    } else if facts.wrong > 0 {
        ("bad", "No. Settlements are booked wrong, though no amount is off.".to_owned())
    } else if !reasons.is_empty() {
        ("unsure", "No wrong booking is known, but it can\u{2019}t be ruled out.".to_owned())
    } else {
        ("good", "Yes. Every settlement heard of is booked exactly once.".to_owned())
    };
    Verdict { level, headline, reasons }
}

fn reasons(facts: &Facts) -> Vec<Reason> {
    let told = |(holds, text, url): (bool, String, _)| holds.then_some(Reason { text, url });
    of_the_collector(facts).into_iter().chain(of_the_audit(facts)).filter_map(told).collect()
}

/// What the collector itself can't see. Each: whether it holds, in words, where to look.
fn of_the_collector(facts: &Facts) -> [(bool, String, &'static str); 3] {
    [
        (
            facts.database_away,
            "The database does not answer: nothing new is taken.".into(),
            "/-/ready",
        ),
        (
            facts.audit_lag_us > LAG_TOLD_US,
            format!("The audit is {} behind.", span(facts.audit_lag_us)),
            "/-/ready",
        ),
        (
            facts.is_cut,
            format!(
                "Only {} sums of open findings are added up here; there are more.",
                number(limits::SCAN_ROWS_MAX)
            ),
            "/findings?state=confirmed",
        ),
    ]
}

/// What the audit says, worst first.
fn of_the_audit(facts: &Facts) -> [(bool, String, &'static str); 9] {
    let settlements = |count| several(count, "settlement", "settlements");
    let findings = |count| several(count, "finding", "findings");
    let sources = several(facts.silent, "watched source is", "watched sources are");
    let ledgers = several(facts.new_ledgers, "ledger is", "ledgers are");
    [
        (
            facts.wrong > 0,
            format!("{} booked wrong.", settlements(facts.wrong)),
            "/findings?state=confirmed",
        ),
        (
            facts.astray > 0,
            format!(
                "{} whose money seems not to have moved, or to have moved twice.",
                settlements(facts.astray)
            ),
            "/findings?state=confirmed",
        ),
        (facts.silent > 0, format!("{sources} silent."), "/sources"),
        (
            facts.evidence > 0,
            format!("{} about evidence that is missing or was refused.", findings(facts.evidence)),
            "/findings?state=confirmed",
        ),
        (
            facts.unclear > 0,
            format!("{} that nobody can judge yet.", settlements(facts.unclear)),
            "/findings?state=confirmed",
        ),
        (
            facts.at_risk > 0,
            "Windows let go of settlements that can still be replayed.".into(),
            "/findings?kind=live_eviction",
        ),
        (
            facts.unguarded > 0,
            format!(
                "{} about guards that can\u{2019}t stop every replay.",
                findings(facts.unguarded)
            ),
            "/findings?state=confirmed",
        ),
        (
            facts.new_ledgers > 0,
            format!("{ledgers} still warming up: what came before is not known."),
            "/api/v1/config",
        ),
        (
            facts.suspected > 0,
            format!("{} waiting for proof.", findings(facts.suspected)),
            "/findings?state=suspected",
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard() -> Facts {
        Facts { has_data: true, ..Facts::default() }
    }

    #[test]
    fn no_data_is_no_answer() {
        assert_eq!(verdict(&Facts::default()).level, "none");
    }

    #[test]
    fn safe_only_if_nothing_says_otherwise() {
        assert_eq!(verdict(&heard()).level, "good");
        for facts in [
            Facts { silent: 1, ..heard() },
            Facts { suspected: 1, ..heard() },
            Facts { unclear: 1, ..heard() },
            Facts { evidence: 1, ..heard() },
            Facts { astray: 1, ..heard() },
            Facts { at_risk: 1, ..heard() },
            Facts { unguarded: 1, ..heard() },
            Facts { is_cut: true, ..heard() },
            Facts { new_ledgers: 1, ..heard() },
            Facts { audit_lag_us: LAG_TOLD_US + 1, ..heard() },
            Facts { database_away: true, ..heard() },
        ] {
            let told = verdict(&facts);
            assert_eq!((told.level, told.reasons.len()), ("unsure", 1), "{facts:?}");
        }
    }

    #[test]
    fn a_replay_that_is_refused_again_and_again_leaves_money_safe() {
        let mut facts = heard();
        assert_eq!(facts.of_kind(Kind::RetryStorm), None);
        *facts.of_kind(Kind::GuardBypass).unwrap() += 1;
        *facts.of_kind(Kind::TelemetryGap).unwrap() += 1;
        let told: Vec<String> = verdict(&facts).reasons.into_iter().map(|it| it.text).collect();
        let expected = [
            "1 finding about evidence that is missing or was refused.",
            "1 finding about guards that can\u{2019}t stop every replay.",
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn wrong_money_comes_before_all_else() {
        let told = verdict(&Facts { wrong_ledgers: 2, wrong: 3, silent: 1, ..heard() });
        assert_eq!(told.level, "bad");
        assert!(told.headline.contains("2 ledgers"), "{}", told.headline);
        assert_eq!(told.reasons.len(), 2);
        assert_eq!(verdict(&Facts { wrong: 1, ..heard() }).level, "bad");
    }
}
