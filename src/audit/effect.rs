//! `accept_without_effect` and `block_after_failed_effect`: a settlement was accepted, its money
//! did not move, and nothing made that good; worse if it is refused since then.
//!
//! By coverage, up to the end of the grace: where somebody was blind, or the key was evicted before
//! or its outcome `unknown`, the money may have moved unheard. Then it is a warning, and an amount
//! at risk. The amount is in the row of the acceptance alone, so that it is missing once.

use super::block;
use super::facts::{Acceptance, SignatureFacts};
use super::finding::{Coverage, Severity};
use super::kind::Kind;
use super::order::{Moment, is_before};
use super::row::Verdict;
use super::rule::{Context, Judged};
use super::witness::Evidence;
use crate::outcome::{Amounts, Outcome};

/// Judges one key.
pub(super) fn judge(context: Context<'_>, facts: &SignatureFacts) -> [Judged; 2] {
    let stands = facts.accepted.iter().any(Acceptance::stands) || facts.more_accepted > 0;
    let because = if stands { "made_good" } else { "judged_again" };
    let nothing = |kind| Judged::nothing(kind, because);
    let all_failed = facts.more_accepted == 0 && facts.accepted.iter().all(Acceptance::failed);
    let first = facts.accepted.first().filter(|_| all_failed);
    let Some(failure) = first.map(|first| Failure::of(context, facts, first)) else {
        return [Kind::AcceptWithoutEffect, Kind::BlockAfterFailedEffect].map(nothing);
    };
    let evidence = Evidence::about_the_subject(context.sources);
    let shown = [evidence.acceptance("accepted", failure.first), evidence.report(failure.first)];
    let verdict = failure.verdict(context).map(|verdict| Verdict {
        count: facts.accepted.len() as u64,
        amounts: failure.amounts(facts),
        ..verdict.shown_by(shown.clone())
    });
    let accepted = wait(context, Kind::AcceptWithoutEffect, verdict, failure.due_us);
    let Some(blocks) = &facts.blocks else {
        return [accepted, nothing(Kind::BlockAfterFailedEffect)];
    };
    let blocked = evidence.block("blocked", Outcome::ReplayBlocked, &blocks.first);
    let verdict = failure.verdict(context).map(|verdict| {
        let shown = verdict.shown_by(shown.into_iter().chain([blocked]));
        Verdict { count: blocks.count, last_us: shown.last_us.max(blocks.last_us), ..shown }
    });
    let due_us = failure.due_us.max(block::grace_over_us(context, &blocks.first));
    [accepted, wait(context, Kind::BlockAfterFailedEffect, verdict, due_us)]
}

/// Confirmed once its grace is over; judged again when a hole fills.
fn wait(context: Context<'_>, kind: Kind, verdict: Option<Verdict>, due_us: i64) -> Judged {
    let confirmed = context.watermark_us >= due_us;
    let verdict = verdict.map(|verdict| Verdict { confirmed, ..verdict });
    let blind = verdict.as_ref().is_some_and(|verdict| verdict.coverage == Coverage::Blind);
    let due_us = (!confirmed).then_some(due_us);
    Judged { verdict, due_us, hole: !confirmed || blind, ..Judged::nothing(kind, "") }
}

/// What is known of a key of which every acceptance failed.
struct Failure<'a> {
    first: &'a Acceptance,
    coverage: Coverage,
    /// Something says that it may have been booked unheard.
    perhaps_booked: bool,
    due_us: i64,
}

impl<'a> Failure<'a> {
    fn of(context: Context<'_>, facts: &'a SignatureFacts, first: &'a Acceptance) -> Self {
        let grace_us = context.settings.block_grace_us;
        let since_us = facts.accepted.iter().map(|failed| failed.fate_since_us(context)).min();
        let evicted_before =
            |at| !is_before(context.sources, &first.at, at) && first.at.position != at.position;
        let undecided = facts.unknowns.as_ref().is_some_and(|unknowns| !unknowns.only_held);
        let evicted = facts.evicted.iter().any(|evicted| evicted_before(&evicted.at));
        let coverage = |at: &Moment| context.ledger.coverage(context.sources, context.settings, at);
        // What comes after it may make it good, so what is missing after it counts too.
        let known = first.fate_at();
        let until_us = known.at_us.saturating_add(grace_us);
        let by_then = coverage(&Moment { at_us: until_us, sequence: None, ..known.clone() });
        Self {
            first,
            coverage: coverage(&first.at).max(by_then),
            perhaps_booked: undecided || evicted,
            due_us: since_us.unwrap_or(first.at.at_us).saturating_add(grace_us),
        }
    }

    fn amounts(&self, facts: &SignatureFacts) -> Amounts {
        let net = facts.signature.net();
        if self.perhaps_booked || self.coverage == Coverage::Blind {
            Amounts::at_risk(net)
        } else {
            Amounts::missing(net)
        }
    }

    fn verdict(&self, context: Context<'_>) -> Option<Verdict> {
        let certain = self.coverage == Coverage::Full && !self.perhaps_booked;
        let severity = if certain { Severity::Critical } else { Severity::Warning };
        let verdict = Verdict::of(context.sources, &self.first.at, "effect_failed")?;
        Some(Verdict { severity, coverage: self.coverage, ..verdict })
    }
}
