//! `guard_bypass`: settlements were accepted while the guard was off. Nothing is lost yet: the sum
//! was unprotected. One row for each source and ledger.

use super::facts::SignatureFacts;
use super::finding::{OrderKnown, Witness};
use super::group::Occurrence;
use super::kind::Kind;
use super::order::Moment;
use super::settle_groups::{About, Counted};
use super::state::Audit;
use super::table::PlayerKey;
use super::witness::Evidence;
use crate::outcome::{Amounts, GuardMode, Net};

const CAUSE: &str = "guard_off";

impl Audit {
    /// Counts the acceptances of a key past the guard, and takes out those whose money turned out
    /// not to have moved.
    pub(super) fn count_bypasses(&mut self, player: PlayerKey, facts: &mut SignatureFacts) {
        let signature = facts.signature.clone();
        let off = |mode| mode == Some(GuardMode::Off);
        for accepted in facts.accepted.iter_mut().filter(|accepted| off(accepted.mode)) {
            let counted = accepted.rare.as_ref().and_then(|rare| rare.bypass.clone());
            let now = match (counted, accepted.failed()) {
                (None, false) => {
                    let about = self.facts.players.get(player);
                    let witness = about.and_then(|player| {
                        let about = Evidence::about(&self.sources, &player.player, &signature);
                        about.acceptance("accepted", accepted)
                    });
                    self.count_bypass(player, &accepted.at, accepted.net, witness)
                }
                (Some(was), true) => {
                    self.uncount_bypass(player, &accepted.at, accepted.net, &was);
                    None
                }
                _ => continue,
            };
            accepted.rare.get_or_insert_default().bypass = now;
        }
    }

    /// Counts one; returns how.
    pub(super) fn count_bypass(
        &mut self,
        player: PlayerKey,
        at: &Moment,
        net: Net,
        witness: Option<Witness>,
    ) -> Option<Counted> {
        let from = self.sources.name(at.source).cloned()?;
        let mut facts = self.facts.players.lend(player)?;
        let ledger = facts.ledger.clone();
        let about = About { kind: Kind::GuardBypass, from, ledger: Some(&ledger) };
        let (at_us, amounts) = (at.at_us, Amounts::at_risk(net));
        let occurrence = Occurrence { at_us, amounts, witnesses: witness.into_iter().collect() };
        let how = (CAUSE.to_owned(), true, OrderKnown::Proven);
        let counted = self.count(about, &mut facts, how, false, occurrence);
        self.facts.players.give_back(player, facts, true);
        Some(counted)
    }

    fn uncount_bypass(&mut self, player: PlayerKey, at: &Moment, net: Net, was: &Counted) {
        let Some(from) = self.sources.name(at.source).cloned() else { return };
        let Some(ledger) = self.facts.players.get(player).map(|player| player.ledger.clone())
        else {
            return;
        };
        let about = About { kind: Kind::GuardBypass, from, ledger: Some(&ledger) };
        self.uncount(about, was, Amounts::at_risk(net), at.position);
    }
}
