//! Evidence, copied out of the facts so that it outlives the log.

use super::facts::{Acceptance, Block};
use super::finding::Witness;
use super::order::Moment;
use super::source::Sources;
use crate::outcome::{Id, Outcome, Position, Signature, SourceName};

/// Makes witnesses. The player and the settlement are named where the subject does not.
pub(super) struct Evidence<'a> {
    sources: &'a Sources,
    player: Option<&'a Id>,
    signature: Option<&'a Signature>,
}

impl<'a> Evidence<'a> {
    /// Of a row about one settlement.
    pub(super) fn about_the_subject(sources: &'a Sources) -> Self {
        Self { sources, player: None, signature: None }
    }

    /// Of a row about many.
    pub(super) fn about(sources: &'a Sources, player: &'a Id, signature: &'a Signature) -> Self {
        Self { sources, player: Some(player), signature: Some(signature) }
    }

    /// An event of which only the moment is known.
    pub(super) fn moment(&self, role: &str, at: &Moment) -> Option<Witness> {
        let from = self.sources.name(at.source)?;
        Some(Witness {
            boot: at.sequence.map(|(boot, _)| boot),
            seq: at.sequence.map(|(_, seq)| seq),
            player: self.player.cloned(),
            signature: self.signature.cloned(),
            ..plain(role, at.position, at.at_us, from, None)
        })
    }

    pub(super) fn acceptance(&self, role: &str, accepted: &Acceptance) -> Option<Witness> {
        let outcome = if accepted.late { Outcome::LateAccepted } else { Outcome::Processed };
        Some(Witness {
            outcome: Some(outcome),
            reference: accepted.reference.clone(),
            trace_id: accepted.trace_id.clone(),
            window: accepted.window,
            effect: accepted.effect(),
            guard_mode: accepted.mode,
            ..self.moment(role, &accepted.at)?
        })
    }

    /// The follow-up that told the fate of an acceptance.
    pub(super) fn report(&self, accepted: &Acceptance) -> Option<Witness> {
        let report = accepted.report()?;
        Some(Witness {
            outcome: Some(Outcome::EffectReported),
            reference: report.reference.clone(),
            effect: Some(report.effect),
            ..self.moment("effect_reported", &report.at)?
        })
    }

    pub(super) fn block(&self, role: &str, outcome: Outcome, block: &Block) -> Option<Witness> {
        Some(Witness {
            outcome: Some(outcome),
            reference: block.reference.clone(),
            trace_id: block.trace_id.clone(),
            window: block.window,
            reason: block.reason,
            guard_mode: block.mode,
            ..self.moment(role, &block.at)?
        })
    }
}

/// A record of which nothing more is known, or that says in words what it shows.
pub(super) fn plain(
    role: &str,
    position: Position,
    occurred_us: i64,
    from: &SourceName,
    text: Option<String>,
) -> Witness {
    Witness {
        role: role.to_owned(),
        position,
        occurred_us,
        from: from.clone(),
        boot: None,
        seq: None,
        outcome: None,
        player: None,
        signature: None,
        reference: None,
        trace_id: None,
        window: None,
        reason: None,
        effect: None,
        guard_mode: None,
        text,
    }
}
