//! Which facts must be loaded before something is folded or settled.

use super::finding::Subject;
use super::state::Audit;
use super::table::{Needs, PlayerKey, RefKey, SignatureKey};
use super::waits::Wait;
use crate::outcome::{Body, Event, Outcome, Record, Signature};

impl Audit {
    /// Facts that must be loaded before these records are folded; ask again until there are none.
    pub fn needs(&self, records: &[Record]) -> Needs {
        let mut needs = Needs::default();
        for record in records {
            match &record.body {
                Body::Event(event) => self.event_needs(event, &mut needs),
                Body::Closed(closed) => {
                    if let Some(finding) = self.closing.get(&closed.finding) {
                        self.subject_needs(&finding.subject, &mut needs);
                    }
                }
                _ => {}
            }
        }
        needs
    }

    /// The finding that must be loaded before this record is folded.
    pub fn needs_finding<'a>(&self, record: &'a Record) -> Option<&'a str> {
        match &record.body {
            Body::Closed(closed) if !self.closing.contains_key(&closed.finding) => {
                Some(&closed.finding)
            }
            _ => None,
        }
    }

    fn event_needs(&self, event: &Event, needs: &mut Needs) {
        let player = self.player_key(&event.ledger(), &event.player);
        self.player_needs(player, needs);
        self.key_needs((player, event.signature.hash(&self.hash)), needs);
        for evicted in &event.evicted {
            self.key_needs((player, evicted.hash(&self.hash)), needs);
        }
        for reference in event.reference.iter().chain(&event.reversal_of) {
            self.ref_needs((player, self.ref_hash(reference)), needs);
        }
        if let Some(message) = &event.message_id {
            self.facts.want_message(needs, self.message_key(&event.ledger(), message));
        }
        let tells_state = match event.outcome {
            Outcome::Processed | Outcome::LateAccepted => {
                event.state_version.is_some() || self.was_accepted(player, &event.signature)
            }
            Outcome::EffectReported => true,
            _ => false,
        };
        if tells_state && let Some(key) = self.room_of(player, &event.signature) {
            self.facts.want_room(needs, key);
        }
    }

    fn player_needs(&self, key: PlayerKey, needs: &mut Needs) {
        self.facts.want_player(needs, key);
        let Some(player) = self.facts.players.get(key) else { return };
        for untold in &player.untold {
            if let Some(out) = player.pushed_out(&self.sources, &untold.at) {
                self.facts.want_signature(needs, (key, out.signature));
            }
        }
    }

    fn was_accepted(&self, player: PlayerKey, signature: &Signature) -> bool {
        let facts = self.facts.signatures.get((player, signature.hash(&self.hash)));
        facts.is_some_and(|facts| !facts.accepted.is_empty())
    }

    fn ref_needs(&self, key: RefKey, needs: &mut Needs) {
        self.facts.want_ref(needs, key);
        for signature in self.facts.refs.get(key).iter().flat_map(|refs| &refs.keys) {
            self.key_needs((key.0, *signature), needs);
        }
    }

    fn key_needs(&self, key: SignatureKey, needs: &mut Needs) {
        self.facts.want_signature(needs, key);
        let accepted = self.facts.signatures.get(key).into_iter().flat_map(|facts| &facts.accepted);
        let named =
            accepted.flat_map(|accepted| accepted.reference.iter().chain(accepted.reversal_of()));
        for reference in named {
            self.facts.want_ref(needs, (key.0, self.ref_hash(reference)));
        }
        let reported = self.facts.signatures.get(key).filter(|facts| facts.reports.is_some());
        if let Some(room) = reported.and_then(|facts| self.room_of(key.0, &facts.signature)) {
            self.facts.want_room(needs, room);
        }
    }

    fn subject_needs(&self, subject: &Subject, needs: &mut Needs) {
        match subject {
            Subject::AuditKey { ledger, player, signature } => {
                let player = self.player_key(ledger, player);
                self.facts.want_player(needs, player);
                self.key_needs((player, signature.hash(&self.hash)), needs);
            }
            Subject::Ref { ledger, player, reference } => {
                let player = self.player_key(ledger, player);
                self.facts.want_player(needs, player);
                self.ref_needs((player, self.ref_hash(reference)), needs);
            }
            Subject::Room { ledger, player, session, room } => {
                let player = self.player_key(ledger, player);
                self.facts.want_player(needs, player);
                self.facts.want_room(needs, self.room_key(player, session.as_ref(), room));
            }
            Subject::Message { ledger, message } => {
                self.facts.want_message(needs, self.message_key(ledger, message));
            }
            Subject::Player { ledger, player } => {
                self.facts.want_player(needs, self.player_key(ledger, player));
            }
            _ => {}
        }
    }

    /// Facts that must be loaded before these are settled.
    pub fn needs_of(&self, waits: &[Wait]) -> Needs {
        let mut needs = Needs::default();
        for wait in waits {
            match wait {
                Wait::Key(player, signature) => {
                    self.facts.want_player(&mut needs, *player);
                    self.key_needs((*player, *signature), &mut needs);
                }
                Wait::Player(player) => self.player_needs(*player, &mut needs),
                Wait::Ref(key) => {
                    self.facts.want_player(&mut needs, key.0);
                    self.ref_needs(*key, &mut needs);
                }
                Wait::Room(key) => {
                    self.facts.want_player(&mut needs, key.0);
                    self.facts.want_room(&mut needs, *key);
                }
                Wait::Message(key) => self.facts.want_message(&mut needs, *key),
                Wait::Group(..) | Wait::Holes(_) | Wait::Clock(_) => {}
            }
        }
        needs
    }
}
