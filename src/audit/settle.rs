//! Brings findings in line with the facts, when something came or its time has come.

use super::block;
use super::facts::SignatureFacts;
use super::finding::Subject;
use super::kind::Kind;
use super::leak;
use super::rule::Judged;
use super::state::Audit;
use super::table::SignatureKey;
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
                Wait::Holes(ledger) => {
                    self.recheck.extend(self.waits.for_hole(ledger).cloned());
                    self.waits.clear(wait);
                }
            }
        }
    }

    /// Judges one settlement by all rules that are about one.
    pub(super) fn settle_key(&mut self, key: SignatureKey) {
        let Some(mut facts) = self.facts.signatures.lend(key) else { return };
        let wait = Wait::key(key);
        if facts.is_plain() {
            self.waits.clear(&wait);
            return self.facts.signatures.give_back(key, facts, false);
        }
        let was = (facts.rows.clone(), facts.is_proven());
        if let Some(waiting) = self.judge_key(key, &mut facts) {
            self.waits.set(waiting);
        }
        let changed = was != (facts.rows.clone(), facts.is_proven());
        self.facts.signatures.give_back(key, facts, changed);
    }

    fn judge_key(&mut self, key: SignatureKey, facts: &mut SignatureFacts) -> Option<Waiting> {
        let player = self.facts.players.get(key.0)?;
        let context = self.context(&player.ledger)?;
        block::prove(context, player, key.1, facts);
        let refs = |reference: &Id| self.facts.refs.get((key.0, self.ref_hash(reference)));
        let game = facts.signature.game().map(|game| game.hash(&self.hash));
        let leak = leak::judge(&self.sources, facts, game, &refs);
        let mut judged = vec![leak.judged];
        judged.extend(block::judge(context, facts));
        judged.push(unclear::judge(context, facts));
        let subject = Subject::AuditKey {
            ledger: player.ledger.clone(),
            player: player.player.clone(),
            signature: facts.signature.clone(),
        };
        let waiting = Waiting {
            wait: Wait::key(key),
            ledger: Some(player.ledger.clone()),
            due_us: judged.iter().filter_map(|judged| judged.due_us).min(),
            hole: judged.iter().any(|judged| judged.hole),
        };
        if leak.order_missing && !facts.order_missing {
            self.skip(Kind::DuplicateLeak.as_str());
        }
        facts.order_missing = leak.order_missing;
        for Judged { kind, verdict, because, .. } in judged {
            let (book, rows) = (&mut self.book, &mut facts.rows);
            book.settle(rows, &subject, kind, verdict, because, self.received_us);
        }
        Some(waiting)
    }
}
