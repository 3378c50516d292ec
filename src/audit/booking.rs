//! `cross_room_booking` and `signature_reused`: where money went, and what is a settlement of its
//! own although its signature was used before.

use super::facts::{Acceptance, SignatureFacts};
use super::finding::Severity;
use super::kind::Kind;
use super::leak;
use super::row::{EXAMPLES_MAX, Verdict};
use super::rule::{Context, Judged};
use super::witness::Evidence;
use crate::outcome::Amounts;

/// Judges one key.
pub(super) fn judge(context: Context<'_>, facts: &SignatureFacts) -> [Judged; 2] {
    [cross_room(context, facts), reused(context, facts)]
}

/// The book of another room: the player has their own, and somebody else's money moved. Which of
/// the two rooms has how much too little is not told, so the amount is one at risk.
fn cross_room(context: Context<'_>, facts: &SignatureFacts) -> Judged {
    let nothing = Judged::nothing(Kind::CrossRoomBooking, "made_good");
    let elsewhere: Vec<&Acceptance> = facts
        .accepted
        .iter()
        .filter(|accepted| accepted.stands() && accepted.booked_room().is_some())
        .collect();
    let Some(first) = elsewhere.first() else { return nothing };
    let evidence = Evidence::about_the_subject(context.sources);
    let shown = elsewhere.iter().take(EXAMPLES_MAX).map(|accepted| {
        let mut witness = evidence.acceptance("accepted", accepted)?;
        let room = accepted.booked_room()?;
        witness.text = Some(format!("booked in room {room}"));
        Some(witness)
    });
    let amounts = elsewhere.iter().map(|accepted| Amounts::at_risk(accepted.net));
    let amounts = amounts.fold(Amounts::default(), Amounts::plus);
    let verdict = Verdict::of(context.sources, &first.at, "other_room").map(|verdict| Verdict {
        count: elsewhere.len() as u64,
        amounts,
        severity: Severity::Critical,
        ..verdict.shown_by(shown)
    });
    Judged { verdict, ..nothing }
}

/// A signature that came again later than its ledger's `reuse_after`.
fn reused(context: Context<'_>, facts: &SignatureFacts) -> Judged {
    let nothing = Judged::nothing(Kind::SignatureReused, "disproved");
    let uses = leak::uses(context, facts.accepted.iter().filter(|accepted| accepted.stands()));
    let mut begin = uses.iter().filter_map(|accepted| accepted.first().copied());
    let (Some(first), Some(again)) = (begin.next(), begin.next()) else { return nothing };
    let evidence = Evidence::about_the_subject(context.sources);
    let shown = std::iter::once(evidence.acceptance("accepted", first)).chain(
        std::iter::once(again)
            .chain(begin)
            .take(EXAMPLES_MAX)
            .map(|again| evidence.acceptance("accepted_again", again)),
    );
    let verdict = Verdict::of(context.sources, &again.at, "long_ago")
        .map(|verdict| Verdict { count: uses.len() as u64 - 1, ..verdict.shown_by(shown) });
    Judged { verdict, ..nothing }
}
