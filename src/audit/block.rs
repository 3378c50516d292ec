//! `false_block` and `unverifiable_block`: a settlement was refused that was never booked.
//!
//! Proven by the window, where all that it held is known and the key is not in it; else by
//! coverage: nobody who could have booked it was unheard. What can't be known is unverifiable.

use super::facts::{Block, Blocks, SignatureFacts};
use super::finding::{Coverage, OrderKnown, Severity, State};
use super::kind::Kind;
use super::order::{Moment, is_before};
use super::player::PlayerFacts;
use super::row::Verdict;
use super::rule::{Context, Judged};
use super::window;
use super::witness::Evidence;
use crate::outcome::{Amounts, GuardMode, Outcome, Reason};

/// Blocks that are not about the window wait longer: the delivery is to be tried again.
const RETRY_GRACE_US: i64 = 600_000_000;
/// How long an unverifiable block is only good to know.
const INFO_US: i64 = 600_000_000;

/// The cause of a block that its window proves false.
const NOT_IN_WINDOW: &str = "not_in_window";

/// Remembers a block whose window is now known not to hold the key; once shown, it stays shown.
pub(super) fn prove(
    context: Context<'_>,
    player: &PlayerFacts,
    signature: i64,
    facts: &mut SignatureFacts,
) {
    let Some(blocks) = facts.blocks.as_mut() else { return };
    // What may have given its place back since makes a window less known.
    let in_doubt = |block: &Block| {
        let before = |at: &Moment| !is_before(context.sources, &block.at, at);
        player.recent.iter().any(|recent| recent.entered && recent.unsure && before(&recent.at))
    };
    let stays = |block: &Block| {
        let known = block.mode == Some(GuardMode::Shared) || window::is_known(player, block);
        known && !in_doubt(block)
    };
    if blocks.proven.as_ref().is_some_and(stays) {
        return;
    }
    let proven =
        candidates(blocks).find(|block| window::can_not_hold(context, player, block, signature));
    blocks.proven = proven.cloned();
}

/// Blocks that their window may show to be false.
fn candidates(blocks: &Blocks) -> impl Iterator<Item = &Block> {
    std::iter::once(&blocks.first).chain(&blocks.newest).filter(|block| by_the_window(block))
}

/// When the next window that several sources share can be known; the grace of an earlier block may
/// be over by then.
fn proof_due_us(context: Context<'_>, blocks: &Blocks) -> Option<i64> {
    let pending = candidates(blocks)
        .filter(|block| block.mode == Some(GuardMode::Shared) && !is_grace_over(context, block));
    pending.map(|block| grace_over_us(context, block)).min().filter(|_| blocks.proven.is_none())
}

fn earliest(one: Option<i64>, other: Option<i64>) -> Option<i64> {
    one.into_iter().chain(other).min()
}

fn by_the_window(block: &Block) -> bool {
    matches!(block.reason, None | Some(Reason::Replay))
}

/// Judges the blocks of one key: a block is either false or unverifiable; judged again, one row
/// follows the other.
pub(super) fn judge(context: Context<'_>, facts: &SignatureFacts) -> [Judged; 2] {
    let gone = if facts.unknowns.is_some() { "unknown" } else { "accepted" };
    let Some(judged) = judge_blocks(context, facts) else {
        return [Kind::FalseBlock, Kind::UnverifiableBlock].map(|kind| Judged::nothing(kind, gone));
    };
    let other = match judged.kind {
        Kind::FalseBlock => Kind::UnverifiableBlock,
        _ => Kind::FalseBlock,
    };
    [Judged::nothing(other, "judged_again"), Judged { because: gone, ..judged }]
}

fn judge_blocks(context: Context<'_>, facts: &SignatureFacts) -> Option<Judged> {
    let blocks = facts.blocks.as_ref()?;
    let booked = !facts.accepted.is_empty() || !facts.evicted.is_empty();
    // A block after an unknown is never one; one before it stays one.
    let after_it = |unknown: &Moment| is_before(context.sources, &blocks.first.at, unknown);
    let perhaps_booked =
        facts.unknowns.as_ref().is_some_and(|unknowns| !unknowns.firsts.iter().all(after_it));
    if booked || perhaps_booked {
        return None;
    }
    // What was confirmed stands, unless it was confirmed by a window that is no more known.
    let stands = facts.rows.iter().map(|row| &row.finding).any(|finding| {
        finding.kind == Kind::FalseBlock
            && finding.state == State::Confirmed
            && (finding.cause != NOT_IN_WINDOW || blocks.proven.is_some())
    });
    let coverage = coverage(context, blocks);
    let block = blocks.proven.as_ref().unwrap_or(&blocks.first);
    if coverage == Coverage::Blind && blocks.proven.is_none() && !stands {
        return Some(unverifiable(context, facts, blocks));
    }
    let due_us = grace_over_us(context, block);
    let confirmed = stands || context.watermark_us >= due_us;
    let certain = blocks.proven.is_some() || coverage == Coverage::Full;
    let severity = if certain { Severity::Critical } else { Severity::Warning };
    let cause = match (&blocks.proven, block.reason) {
        (Some(_), _) => NOT_IN_WINDOW,
        (None, Some(reason)) => reason.as_str(),
        (None, None) => "never_accepted",
    };
    let verdict = verdict(context, facts, blocks, block, (cause, severity, confirmed, coverage));
    Some(Judged {
        verdict: verdict
            .map(|verdict| Verdict { amounts: Amounts::missing(facts.signature.net()), ..verdict }),
        due_us: earliest((!confirmed).then_some(due_us), proof_due_us(context, blocks)),
        // What a window proves may change: somebody else writes for the player, or something in it
        // turns out to have failed.
        hole: !confirmed || candidates(blocks).any(|block| block.window.is_some()),
        ..Judged::nothing(Kind::FalseBlock, "")
    })
}

fn unverifiable(context: Context<'_>, facts: &SignatureFacts, blocks: &Blocks) -> Judged {
    let block = &blocks.first;
    let grace_us = grace_over_us(context, block);
    // From when it is known: what a backlog brings is as old as the backlog.
    let since_us = context.since_us(&block.at, block.received_us).max(block.received_us);
    let warning_us = since_us.saturating_add(INFO_US);
    let confirmed = context.watermark_us >= grace_us;
    let warned = context.watermark_us >= warning_us;
    let severity = if warned { Severity::Warning } else { Severity::Info };
    let due_us = if confirmed { warning_us } else { grace_us };
    let say = ("blind", severity, confirmed, Coverage::Blind);
    Judged {
        verdict: verdict(context, facts, blocks, block, say)
            .map(|verdict| Verdict { amounts: Amounts::at_risk(facts.signature.net()), ..verdict }),
        due_us: earliest((!confirmed || !warned).then_some(due_us), proof_due_us(context, blocks)),
        hole: true,
        ..Judged::nothing(Kind::UnverifiableBlock, "")
    }
}

/// How well everybody was heard who could have booked it before its first block.
pub(super) fn coverage(context: Context<'_>, blocks: &Blocks) -> Coverage {
    let first = &blocks.first;
    let heard = context.ledger.coverage(context.sources, context.settings, &first.at);
    let holds_something = first.window.is_some_and(|window| window.len > 0);
    if holds_something { heard.max(Coverage::Assumed) } else { heard }
}

/// Whether all that was said before a block has had its time to come.
pub(super) fn is_grace_over(context: Context<'_>, block: &Block) -> bool {
    context.watermark_us >= grace_over_us(context, block)
}

/// When a block has waited long enough.
pub(super) fn grace_over_us(context: Context<'_>, block: &Block) -> i64 {
    let by_the_window = by_the_window(block);
    let grace_us = if by_the_window { context.settings.block_grace_us } else { RETRY_GRACE_US };
    context.since_us(&block.at, block.received_us).saturating_add(grace_us)
}

fn verdict(
    context: Context<'_>,
    facts: &SignatureFacts,
    blocks: &Blocks,
    block: &Block,
    (cause, severity, confirmed, coverage): (&str, Severity, bool, Coverage),
) -> Option<Verdict> {
    let name = context.sources.name(block.at.source)?;
    let evidence = Evidence::about_the_subject(context.sources);
    let mut witness = evidence.block("blocked", Outcome::ReplayBlocked, block)?;
    if coverage == Coverage::Blind && blocks.proven.is_none() {
        let from_us = block.at.at_us.saturating_sub(context.settings.horizon_us);
        let unheard = context.ledger.blind(context.sources, from_us, &block.at);
        witness.text = Some(match unheard.and_then(|id| context.sources.name(id)) {
            Some(name) => format!("not everything was heard of source {}", name.source),
            None => "the ledger is new: its guards may remember what was booked before".into(),
        });
    }
    Some(Verdict {
        count: blocks.count,
        amounts: Amounts::default(),
        players: 1,
        severity,
        confirmed,
        cause: cause.to_owned(),
        order: if facts.accepted.is_empty() { OrderKnown::Proven } else { OrderKnown::Assumed },
        coverage,
        service: name.service.to_string(),
        env: name.env.to_string(),
        source: Some(name.source.clone()),
        first_us: blocks.first.at.at_us,
        last_us: blocks.last_us,
        witnesses: vec![witness],
    })
}
