//! Brings findings in line with the facts, when something came or its time has come.

use super::block;
use super::booking;
use super::claim;
use super::disagree;
use super::effect;
use super::facts::SignatureFacts;
use super::fate;
use super::finding::Subject;
use super::kind::Kind;
use super::leak;
use super::player::PlayerFacts;
use super::ref_facts::Reversal;
use super::rule::Judged;
use super::state::Audit;
use super::table::{PlayerKey, SignatureKey};
use super::unclear;
use super::waits::{Wait, Waiting};
use crate::outcome::Id;

impl Audit {
    /// Settles those whose time has come. What they [`Audit::needs_of`] must be loaded.
    pub fn settle(&mut self, waits: &[Wait]) {
        for wait in waits {
            self.recheck.remove(wait);
            match wait {
                Wait::Key(player, signature) => self.settle_key((*player, *signature)),
                Wait::Player(player) => self.settle_player(*player),
                Wait::Group(kind, subject) => self.settle_group(*kind, subject),
                Wait::Ref(key) => self.settle_ref(*key),
                Wait::Room(key) => self.settle_room(*key),
                Wait::Message(key) => self.settle_message(*key),
                Wait::Clock(source) => self.settle_clock(*source),
                Wait::Holes(ledger) => {
                    self.recheck.extend(self.waits.for_hole(ledger).cloned());
                    self.waits.clear(wait);
                }
            }
        }
    }

    /// Judges the windows of one player, where anything about them is in question.
    pub(super) fn settle_player(&mut self, key: PlayerKey) {
        if self.facts.players.get(key).is_none_or(PlayerFacts::is_plain) {
            return self.waits.clear(&Wait::Player(key));
        }
        let Some(mut player) = self.facts.players.lend(key) else { return };
        let measures_us = self.advise_again(&mut player);
        let untold_us = self.settle_untold(key, &mut player);
        let (evictions_us, unfilled) = self.settle_evictions(&mut player);
        let (losses_us, hole) = self.settle_losses(&mut player);
        let too_many_us = self.settle_too_many(&mut player);
        let due_us = [measures_us, untold_us, evictions_us, losses_us, too_many_us];
        let due_us = due_us.into_iter().flatten().min();
        let (wait, ledger) = (Wait::Player(key), Some(player.ledger.clone()));
        self.waits.set(Waiting::new(wait, ledger, due_us, hole || unfilled));
        self.facts.players.give_back(key, player, true);
    }

    /// Judges one settlement by all rules that are about one.
    pub(super) fn settle_key(&mut self, key: SignatureKey) {
        let Some(mut facts) = self.facts.signatures.lend(key) else { return };
        let wait = Wait::key(key);
        if facts.is_plain() {
            self.waits.clear(&wait);
            return self.facts.signatures.give_back(key, facts, false);
        }
        let was = facts.as_judged();
        if let Some(waiting) = self.judge_key(key, &mut facts) {
            self.waits.set(waiting);
        }
        let changed = was != facts.as_judged();
        self.facts.signatures.give_back(key, facts, changed);
    }

    fn judge_key(&mut self, key: SignatureKey, facts: &mut SignatureFacts) -> Option<Waiting> {
        self.apply_reports(key, facts);
        self.count_bypasses(key.0, facts);
        let player = self.facts.players.get(key.0)?;
        let context = self.context(&player.ledger)?;
        block::prove(context, player, key.1, facts);
        let refs = |reference: &Id| self.facts.refs.get((key.0, self.ref_hash(reference)));
        let game = facts.signature.game().map(|game| game.hash(&self.hash));
        let mut judged = vec![leak::judge(context, facts, game, &refs)];
        judged.extend(block::judge(context, facts));
        judged.push(unclear::judge(context, facts));
        judged.extend(effect::judge(context, facts));
        judged.extend(claim::judge(context, facts));
        judged.extend(disagree::judge(context, facts));
        judged.extend(booking::judge(context, facts));
        let subject = Subject::AuditKey {
            ledger: player.ledger.clone(),
            player: player.player.clone(),
            signature: facts.signature.clone(),
        };
        let unmatched_us = fate::unmatched_due_us(context, facts);
        let is_unmatched = unmatched_us.is_some_and(|due_us| context.watermark_us >= due_us);
        let unmatched_us = unmatched_us.filter(|_| !is_unmatched);
        let due_us = judged.iter().filter_map(|judged| judged.due_us).chain(unmatched_us).min();
        let hole = judged.iter().any(|judged| judged.hole);
        let waiting = Waiting::new(Wait::key(key), Some(player.ledger.clone()), due_us, hole);
        let missing = judged.iter().filter(|judged| judged.order_missing);
        let unordered: Vec<Kind> = missing.map(|judged| judged.kind).collect();
        for kind in unordered.iter().filter(|kind| !facts.unordered.contains(kind)) {
            self.skip(kind.as_str());
        }
        facts.unordered = unordered;
        if let Some(reports) = facts.reports.as_mut().filter(|_| is_unmatched) {
            reports.unmatched = true;
            self.skip("effect_reported_unmatched");
        }
        for Judged { kind, verdict, because, .. } in judged {
            let (book, rows) = (&mut self.book, &mut facts.rows);
            book.settle(rows, &subject, kind, verdict, because, self.received_us);
        }
        Some(waiting)
    }

    /// Brings acceptances in line with the follow-ups that tell their fate, and what hangs on them:
    /// what windows may hold, and what reversals undo.
    fn apply_reports(&mut self, key: SignatureKey, facts: &mut SignatureFacts) {
        if facts.reports.is_none() {
            return;
        }
        if fate::apply(&self.sources, facts) {
            self.skip("effect_reported");
        }
        let named = facts.accepted.iter().filter_map(|accepted| accepted.reference.as_ref());
        let named = named.map(|reference| Wait::Ref((key.0, self.ref_hash(reference))));
        self.recheck.extend(named.collect::<Vec<_>>());
        if let Some(room) = self.room_of(key.0, &facts.signature) {
            self.set_state(room, &facts.signature, facts.first_stands(&self.sources));
        }
        let received_us = self.received_us;
        let player = self.facts.players.get_mut(key.0);
        if player.is_some_and(|player| player.doubt(key.1, &facts.accepted, received_us)) {
            self.recheck.extend(self.waits.of_player(key.0).cloned());
        }
        let game = facts.signature.game().map(|game| game.hash(&self.hash));
        for accepted in &facts.accepted {
            let Some(undone) = accepted.reversal_of() else { continue };
            let reversal = Reversal { at: accepted.at.clone(), net: accepted.net, game };
            let undone = (key.0, self.ref_hash(undone));
            let refs = self.facts.refs.entry(undone, Default::default);
            if refs.set_reversal(reversal, accepted.failed()) {
                let keys = refs.keys.iter().map(|signature| Wait::Key(key.0, *signature));
                self.recheck.extend(keys);
            }
        }
    }
}
