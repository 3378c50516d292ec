//! `illegal_transition`: a delivery went back, stood still, or left an end.
//!
//! Each record stands for itself: two moves of one delivery come in any order, so what it did
//! before is no proof against it. A legal one touches nothing.

use super::finding::Witness;
use super::group::Occurrence;
use super::hearing::Identity;
use super::kind::Kind;
use super::state::Audit;
use super::witness;
use crate::outcome::{Amounts, Position, Transition};

impl Audit {
    pub(super) fn transition(&mut self, transition: &Transition, position: Position) {
        if transition.is_legal() {
            return;
        }
        let received_us = self.received_us;
        let witnesses = vec![evidence("moved", transition, position, &moved(transition))];
        let occurrence =
            Occurrence { at_us: transition.at_us, amounts: Amounts::default(), witnesses };
        let cause = format!("{}_to_{}", transition.left.as_str(), transition.entered.as_str());
        let about = (Some(transition.from.clone()), None);
        self.group_of_source(Kind::IllegalTransition, about, &cause, |group| {
            group.add(occurrence, received_us);
        });
    }

    pub(super) fn transition_conflict(&mut self, other: &Transition, position: Position) {
        let identity = Identity::of(&other.from, other.sequence(), other.event_id.as_ref());
        let text = format!(
            "the transition of {} came again with other content: {}",
            identity.text,
            moved(other)
        );
        let witness = evidence("other_content", other, position, &text);
        self.conflict_of(&identity, witness);
    }
}

fn moved(transition: &Transition) -> String {
    let reason = transition.reason.as_ref().map_or_else(String::new, |why| format!(": {why}"));
    format!(
        "key {} went from {} to {}{reason}",
        transition.key,
        transition.left.as_str(),
        transition.entered.as_str(),
    )
}

fn evidence(role: &str, of: &Transition, position: Position, text: &str) -> Witness {
    Witness {
        boot: of.boot,
        seq: of.seq,
        trace_id: Some(of.trace_id.clone()),
        ..witness::plain(role, position, of.at_us, &of.from, Some(text.to_owned()))
    }
}
