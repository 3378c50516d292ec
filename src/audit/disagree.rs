//! `outcome_flip`, `replica_disagreement` and `ambiguous_equal`: what was said of one settlement
//! does not go together.
//!
//! A block that only says "come again" (another delivery is being worked on, the guard's store
//! does not answer) contradicts no acceptance.

use std::collections::BTreeSet;

use super::block;
use super::facts::{Acceptance, Block, SignatureFacts};
use super::finding::{Coverage, Severity};
use super::kind::Kind;
use super::order::{Moment, is_before};
use super::row::Verdict;
use super::rule::{Context, Judged};
use super::witness::Evidence;
use crate::outcome::{Amounts, Outcome};

/// Judges one key.
pub(super) fn judge(context: Context<'_>, facts: &SignatureFacts) -> [Judged; 3] {
    [flip(context, facts), disagreement(context, facts), ambiguous(context, facts)]
}

/// Blocked first, accepted later: a block was before each trace of an acceptance.
fn flip(context: Context<'_>, facts: &SignatureFacts) -> Judged {
    let nothing = Judged::nothing(Kind::OutcomeFlip, "disproved");
    let Some(accepted) = facts.accepted.first() else { return nothing };
    let evicted = facts.evicted.iter().map(|evicted| &evicted.at);
    let booked = || facts.accepted.iter().map(|accepted| &accepted.at).chain(evicted.clone());
    let surely =
        |at: &Moment| refusals(facts).find(|block| is_before(context.sources, &block.at, at));
    let perhaps = |block: &Block| !booked().any(|at| is_before(context.sources, at, &block.at));
    if booked().all(|at| surely(at).is_some()) {
        let blocked = surely(&accepted.at);
        let verdict =
            blocked.and_then(|block| contradiction(context, "blocked_first", block, accepted));
        return Judged { verdict, ..nothing };
    }
    Judged { order_missing: refusals(facts).any(perhaps), ..nothing }
}

/// One source blocks what another accepts: it was accepted after the block, or at about the same
/// time although an acceptance before both had made the block right.
fn disagreement(context: Context<'_>, facts: &SignatureFacts) -> Judged {
    let nothing = Judged::nothing(Kind::ReplicaDisagreement, "disproved");
    let before =
        |accepted: &Acceptance, block: &Block| is_before(context.sources, &accepted.at, &block.at);
    let mut order_missing = false;
    for block in refusals(facts) {
        let elsewhere = facts.accepted.iter().filter(|a| a.at.source != block.at.source);
        for accepted in elsewhere.filter(|accepted| !before(accepted, block)) {
            let after = is_before(context.sources, &block.at, &accepted.at);
            let booked = |other: &Acceptance| {
                before(other, block) && is_before(context.sources, &other.at, &accepted.at)
            };
            if after || facts.accepted.iter().any(booked) {
                let verdict = contradiction(context, "blocked_elsewhere", block, accepted);
                return Judged { verdict, ..nothing };
            }
            order_missing = true;
        }
    }
    Judged { order_missing, ..nothing }
}

fn refusals(facts: &SignatureFacts) -> impl Iterator<Item = &Block> {
    let sorts = facts.blocks.iter().flat_map(|blocks| blocks.sorts());
    sorts.filter(|block| !block.comes_again())
}

fn contradiction(
    context: Context<'_>,
    cause: &str,
    block: &Block,
    accepted: &Acceptance,
) -> Option<Verdict> {
    let evidence = Evidence::about_the_subject(context.sources);
    let verdict = Verdict::of(context.sources, &block.at, cause)?;
    Some(verdict.shown_by([
        evidence.block("blocked", Outcome::ReplayBlocked, block),
        evidence.acceptance("accepted", accepted),
    ]))
}

/// Blocked with a ref that differs from the ref of every acceptance: two honest equal settlements,
/// or not. Where an acceptance names no ref, nobody can tell; where somebody was blind, the one
/// with that ref may have been booked unheard.
fn ambiguous(context: Context<'_>, facts: &SignatureFacts) -> Judged {
    let nothing = Judged::nothing(Kind::AmbiguousEqual, "accepted");
    let booked: BTreeSet<_> =
        facts.accepted.iter().map(|accepted| accepted.reference.as_ref()).collect();
    let all_failed = facts.accepted.iter().all(Acceptance::failed);
    if all_failed || facts.more_accepted > 0 || booked.contains(&None) {
        return nothing;
    }
    let sorts = facts.blocks.iter().flat_map(|blocks| blocks.sorts());
    let other: Vec<&Block> = sorts
        .filter(|block| block.reference.is_some() && !booked.contains(&block.reference.as_ref()))
        .collect();
    let (Some(first), Some(accepted)) = (other.first(), facts.accepted.first()) else {
        return nothing;
    };
    let refs: BTreeSet<_> = other.iter().map(|block| &block.reference).collect();
    let (sources, settings) = (context.sources, context.settings);
    let coverage = context.ledger.coverage(sources, settings, &first.at);
    let due_us = other.iter().map(|block| block::grace_over_us(context, block)).min();
    let confirmed = due_us.is_some_and(|due_us| context.watermark_us >= due_us);
    let blind = coverage == Coverage::Blind;
    let evidence = Evidence::about_the_subject(sources);
    let blocked =
        other.iter().map(|block| evidence.block("blocked", Outcome::ReplayBlocked, block));
    let shown = std::iter::once(evidence.acceptance("accepted", accepted)).chain(blocked);
    let verdict = Verdict::of(sources, &first.at, "other_ref").map(|verdict| Verdict {
        count: refs.len() as u64,
        amounts: Amounts::at_risk(facts.signature.net()).times(refs.len()),
        severity: if blind { Severity::Info } else { Severity::Warning },
        confirmed,
        coverage,
        ..verdict.shown_by(shown)
    });
    let due_us = due_us.filter(|_| !confirmed);
    Judged { verdict, due_us, hole: !confirmed || blind, ..nothing }
}
