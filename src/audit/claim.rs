//! `stuck_claim` and `retry_storm`: a settlement is delivered and refused again and again, never
//! accepted (its claim was taken and never released), or accepted long ago (harmless).

use super::block;
use super::facts::{Acceptance, BLOCKS_MANY, Blocks, SignatureFacts};
use super::finding::{Coverage, Severity, Witness};
use super::kind::Kind;
use super::row::Verdict;
use super::rule::{Context, Judged};
use super::witness::Evidence;
use crate::outcome::Outcome;

/// Judges one key.
pub(super) fn judge(context: Context<'_>, facts: &SignatureFacts) -> [Judged; 2] {
    let stuck = Judged::nothing(Kind::StuckClaim, "accepted");
    let storm = Judged::nothing(Kind::RetryStorm, "judged_again");
    let Some(blocks) = facts.blocks.as_ref().filter(|blocks| blocks.count >= BLOCKS_MANY) else {
        return [stuck, storm];
    };
    let never_accepted = facts.accepted.is_empty();
    if never_accepted && facts.evicted.is_empty() {
        return [judge_stuck(context, blocks), storm];
    }
    let booked = never_accepted || facts.accepted.iter().any(|accepted| !accepted.failed());
    let verdict = booked.then(|| verdict(context, facts.accepted.first(), blocks)).flatten();
    [stuck, Judged { verdict, ..storm }]
}

/// As sure as the block that is false: where somebody was blind, only good to know. The amount is
/// in that row.
fn judge_stuck(context: Context<'_>, blocks: &Blocks) -> Judged {
    let coverage = block::coverage(context, blocks);
    let unheard = coverage == Coverage::Blind && blocks.proven.is_none();
    let severity = if unheard { Severity::Info } else { Severity::Warning };
    let due_us = block::grace_over_us(context, &blocks.first);
    let confirmed = context.watermark_us >= due_us;
    let verdict = verdict(context, None, blocks);
    let verdict = verdict.map(|verdict| Verdict { confirmed, severity, coverage, ..verdict });
    let due_us = (!confirmed).then_some(due_us);
    let nothing = Judged::nothing(Kind::StuckClaim, "");
    Judged { verdict, due_us, hole: !confirmed || unheard, ..nothing }
}

fn verdict(
    context: Context<'_>,
    accepted: Option<&Acceptance>,
    blocks: &Blocks,
) -> Option<Verdict> {
    let (first, evidence) = (&blocks.first, Evidence::about_the_subject(context.sources));
    let accepted = accepted.and_then(|accepted| evidence.acceptance("accepted", accepted));
    let blocked = evidence.block("blocked", Outcome::ReplayBlocked, first)?;
    let last_us = blocks.last_us.max(first.at.at_us);
    let age_s = last_us.saturating_sub(first.at.at_us) / 1_000_000;
    let text = Some(format!("refused {} times within {age_s} s", blocks.count));
    let cause = first.reason.map_or("refused", crate::outcome::Reason::as_str);
    let verdict = Verdict::of(context.sources, &first.at, cause)?
        .shown_by([accepted, Some(Witness { text, ..blocked })]);
    Some(Verdict { count: blocks.count, first_us: first.at.at_us, last_us, ..verdict })
}
