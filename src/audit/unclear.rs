//! `indeterminate_outcome`: nobody knows whether a settlement was booked.
//!
//! An `unknown`, or an acceptance whose effect is not known. An acceptance closes it only if the
//! delivery was merely held back; otherwise the settlement may be booked twice.

use super::facts::{Acceptance, SignatureFacts};
use super::finding::{Coverage, OrderKnown, Severity};
use super::kind::Kind;
use super::row::Verdict;
use super::rule::{Context, Judged};
use super::witness::Evidence;
use crate::outcome::{Amounts, Outcome};

/// How long the answer may take before it is missing (audit.md: 10 min).
const GRACE_US: i64 = 600_000_000;

/// Judges one key.
pub(super) fn judge(context: Context<'_>, facts: &SignatureFacts) -> Judged {
    let because = if facts.reports.is_some() { "effect_reported" } else { "accepted" };
    let nothing = Judged::nothing(Kind::IndeterminateOutcome, because);
    let unknowns = facts.unknowns.as_ref();
    let without_effect: Vec<&Acceptance> =
        facts.accepted.iter().filter(|accepted| accepted.is_unknown()).collect();
    let booked = facts.accepted.iter().any(Acceptance::stands);
    let only_held = unknowns.is_none_or(|unknowns| unknowns.only_held);
    // An acceptance whose money did not move is told by its own rule: it is known what happened.
    let decided = !facts.accepted.is_empty() && without_effect.is_empty();
    if only_held && decided {
        return nothing;
    }
    let since_us = match (unknowns.map(|unknowns| &unknowns.first), without_effect.first()) {
        (Some(first), _) => context.since_us(&first.at, first.received_us),
        (None, Some(accepted)) => accepted.fate_since_us(context),
        (None, None) => return nothing,
    };
    let due_us = since_us.saturating_add(GRACE_US);
    let confirmed = context.watermark_us >= due_us;
    let verdict = verdict(context, facts, &without_effect, booked);
    let verdict = verdict.map(|verdict| Verdict { confirmed, ..verdict });
    Judged { verdict, due_us: (!confirmed).then_some(due_us), ..nothing }
}

fn verdict(
    context: Context<'_>,
    facts: &SignatureFacts,
    without_effect: &[&Acceptance],
    booked: bool,
) -> Option<Verdict> {
    let unknowns = facts.unknowns.as_ref();
    let evidence = Evidence::about_the_subject(context.sources);
    let unknown =
        unknowns.and_then(|unknowns| evidence.block("unknown", Outcome::Unknown, &unknowns.first));
    let accepted = without_effect.first().copied().or(facts.accepted.first());
    let accepted = accepted.and_then(|accepted| evidence.acceptance("accepted", accepted));
    let witnesses: Vec<_> = unknown.into_iter().chain(accepted).collect();
    let moments = unknowns
        .into_iter()
        .flat_map(|unknowns| [unknowns.first.at.at_us, unknowns.last_us])
        .chain(without_effect.iter().map(|accepted| accepted.at.at_us));
    let cause = match unknowns.map(|unknowns| unknowns.first.reason) {
        _ if booked => "possibly_twice",
        Some(Some(reason)) => reason.as_str(),
        Some(None) => "undecided",
        None => "effect_unknown",
    };
    let name = witnesses.first()?.from.clone();
    Some(Verdict {
        count: unknowns.map_or(0, |unknowns| unknowns.count) + without_effect.len() as u64,
        amounts: Amounts::at_risk(facts.signature.net()),
        players: 1,
        severity: Severity::Warning,
        confirmed: false,
        cause: cause.into(),
        order: OrderKnown::Proven,
        coverage: Coverage::Full,
        service: name.service.to_string(),
        env: name.env.to_string(),
        source: Some(name.source),
        first_us: moments.clone().min()?,
        last_us: moments.max()?,
        witnesses,
    })
}
