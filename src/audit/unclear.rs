//! `indeterminate_outcome`: nobody knows whether a settlement was booked.
//!
//! An `unknown`, or an acceptance whose effect is not known. An acceptance closes it only if the
//! delivery was merely held back; otherwise the settlement may be booked twice.

use super::block::{Context, Judged};
use super::facts::SignatureFacts;
use super::finding::{Coverage, Kind, OrderKnown, Severity};
use super::row::Verdict;
use super::witness::Evidence;
use crate::outcome::{Amounts, Effect, Outcome};

/// How long the answer may take before it is missing (audit.md: 10 min).
const GRACE_US: i64 = 600_000_000;

/// Judges one key.
pub(super) fn judge(context: Context<'_>, facts: &SignatureFacts) -> Judged {
    let kind = Kind::IndeterminateOutcome;
    let nothing = Judged { kind, verdict: None, due_us: None, hole: false };
    let unclear = |effect| effect == Some(Effect::Unknown);
    let without_effect: Vec<_> =
        facts.accepted.iter().filter(|accepted| unclear(accepted.effect)).collect();
    let stands = |effect| !matches!(effect, Some(Effect::Unknown | Effect::Failed));
    let booked = facts.accepted.iter().any(|accepted| stands(accepted.effect));
    let only_held = facts.unknowns.as_ref().is_none_or(|unknowns| unknowns.only_held);
    if only_held && booked && without_effect.is_empty() {
        return nothing;
    }
    let evidence = Evidence::about_the_subject(context.sources);
    let unknown = facts
        .unknowns
        .as_ref()
        .and_then(|unknowns| evidence.block("unknown", Outcome::Unknown, &unknowns.first));
    let accepted = facts.accepted.first().and_then(|first| evidence.acceptance("accepted", first));
    let moments = facts
        .unknowns
        .iter()
        .flat_map(|unknowns| [unknowns.first.at.at_us, unknowns.last_us])
        .chain(without_effect.iter().map(|accepted| accepted.at.at_us));
    let (Some(first_us), Some(last_us)) = (moments.clone().min(), moments.max()) else {
        return nothing;
    };
    let witnesses: Vec<_> = unknown.into_iter().chain(accepted).collect();
    let Some(name) = witnesses.first().map(|witness| witness.from.clone()) else {
        return nothing;
    };
    let count =
        facts.unknowns.as_ref().map_or(0, |unknowns| unknowns.count) + without_effect.len() as u64;
    let first = facts.unknowns.as_ref().map(|unknowns| &unknowns.first);
    let since_us = match (first, without_effect.first()) {
        (Some(first), _) => context.since_us(&first.at, first.received_us),
        (None, Some(accepted)) => context.since_us(&accepted.at, accepted.at.at_us),
        (None, None) => first_us,
    };
    let due_us = since_us.saturating_add(GRACE_US);
    let confirmed = context.watermark_us >= due_us;
    let reason = facts.unknowns.as_ref().and_then(|unknowns| unknowns.first.reason);
    let cause = match (booked, reason) {
        (true, _) => "possibly_twice",
        (false, Some(reason)) => reason.as_str(),
        (false, None) if facts.unknowns.is_none() => "effect_unknown",
        (false, None) => "undecided",
    };
    let verdict = Verdict {
        count,
        amounts: Amounts::at_risk(facts.signature.net()),
        players: 1,
        severity: Severity::Warning,
        confirmed,
        cause: cause.into(),
        order: OrderKnown::Proven,
        coverage: Coverage::Full,
        service: name.service.to_string(),
        env: name.env.to_string(),
        source: Some(name.source),
        first_us,
        last_us,
        witnesses,
    };
    Judged { kind, verdict: Some(verdict), due_us: (!confirmed).then_some(due_us), hole: false }
}
