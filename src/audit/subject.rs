//! Brings findings in line with the facts of a ref, a room, a message.

use super::finding::Subject;
use super::kind::Kind;
use super::message::{self, MessageFacts};
use super::missed;
use super::quiet::Due;
use super::room::{self, RoomFacts, RoomState};
use super::state::Audit;
use super::table::{MessageKey, PlayerKey, RefKey, RoomKey, SignatureKey};
use super::waits::{Wait, Waiting};
use crate::outcome::{Event, Id, Outcome, Signature};

impl Audit {
    pub(super) fn message_key(&self, ledger: &str, message: &Id) -> MessageKey {
        let parts: [&[u8]; 3] = [b"message", ledger.as_bytes(), message.as_str().as_bytes()];
        let all = i128::from_be_bytes(self.hash.wide(&parts));
        #[expect(clippy::cast_possible_truncation, reason = "two halves")]
        ((all >> 64) as i64, all as i64)
    }

    pub(super) fn room_key(&self, player: PlayerKey, session: Option<&Id>, room: &Id) -> RoomKey {
        let named = if session.is_some() { b"s" as &[u8] } else { b"" };
        let session = session.map_or(b"" as &[u8], |id| id.as_str().as_bytes());
        (player, self.hash.of(&[b"state", named, session, room.as_str().as_bytes()]))
    }

    /// The room whose state a settlement may tell: some games have none.
    pub(super) fn room_of(&self, player: PlayerKey, signature: &Signature) -> Option<RoomKey> {
        let game = signature.game().filter(|game| !game.room.as_str().is_empty())?;
        Some(self.room_key(player, game.session.as_ref(), &game.room))
    }

    /// Takes the message that a settlement came by.
    pub(super) fn take_message(&mut self, event: &Event, at: &super::order::Moment, ledger: &str) {
        let Some(id) = &event.message_id else { return };
        let key = self.message_key(ledger, id);
        let received_us = self.received_us;
        let new = || MessageFacts::new(ledger.to_owned(), id.clone());
        self.facts.messages.entry(key, new).tell(event, at.clone(), received_us);
        self.settle_message(key);
    }

    /// Takes the state of a room that the first acceptance of a settlement tells, in place of what
    /// another told that is now known not to be the first.
    pub(super) fn take_state(
        &mut self,
        event: &Event,
        at: &super::order::Moment,
        (player, signature): SignatureKey,
    ) {
        let Some(facts) = self.facts.signatures.get((player, signature)) else { return };
        if event.state_version.is_none() && facts.accepted.len() < 2 {
            return;
        }
        let is_first = facts.accepted.first().is_some_and(|first| first.at == *at);
        let counts = facts.first_stands(&self.sources);
        let (Some(key), Some(game)) =
            (self.room_of(player, &event.signature), event.signature.game())
        else {
            return;
        };
        if !is_first {
            return self.set_state(key, &event.signature, counts);
        }
        let in_turn = event.outcome == Outcome::Processed;
        let state = event.state_version.filter(|_| in_turn).map(|version| RoomState {
            at: at.clone(),
            received_us: self.received_us,
            signature: event.signature.clone(),
            version,
            content: event.state_hash.clone(),
            counts,
        });
        if state.is_none() && self.facts.rooms.get(key).is_none() {
            return;
        }
        let room =
            self.facts.rooms.entry(key, || RoomFacts::new(game.session.clone(), game.room.clone()));
        if !room.tell(&self.sources, &event.signature, state) {
            self.skip("version_too_late");
        }
        self.settle_room(key);
    }

    /// What became of the acceptances of a settlement decides whether the state that it told is
    /// compared.
    pub(super) fn set_state(&mut self, key: RoomKey, signature: &Signature, counts: bool) {
        let Some(mut room) = self.facts.rooms.lend(key) else { return };
        let changed = room.set_counts(signature, counts);
        self.facts.rooms.give_back(key, room, changed);
        if changed {
            self.recheck.insert(Wait::Room(key));
        }
    }

    /// Judges one ref of a player.
    pub(super) fn settle_ref(&mut self, key: RefKey) {
        let one = self.facts.refs.get(key).is_none_or(|refs| refs.keys.len() < 2);
        if one {
            return;
        }
        let Some(mut refs) = self.facts.refs.lend(key) else { return };
        let was = (refs.rows.clone(), refs.order_missing);
        let keys: Vec<_> = refs
            .keys
            .iter()
            .filter_map(|signature| self.facts.signatures.get((key.0, *signature)))
            .map(|facts| (facts, facts.signature.game().map(|game| game.hash(&self.hash))))
            .collect();
        let named = keys.iter().flat_map(|(facts, _)| &facts.accepted);
        let mut named = named.filter_map(|accepted| accepted.reference.as_ref());
        let reference = named.find(|id| self.ref_hash(id) == key.1).cloned();
        let player = self.facts.players.get(key.0);
        if let (Some(player), Some(reference)) = (player, reference)
            && let Some(context) = self.context(&player.ledger)
        {
            let judged = missed::judge(context, &reference, &refs, &keys);
            let (ledger, player) = (player.ledger.clone(), player.player.clone());
            let subject = Subject::Ref { ledger: ledger.clone(), player, reference };
            let due = Due { ledger_us: judged.due_us, receipt_us: None, hole: judged.hole };
            self.wait(Wait::Ref(key), &ledger, due);
            let (rows, received_us) = (&mut refs.rows, self.received_us);
            let kind = judged.kind;
            self.book.settle(rows, &subject, kind, judged.verdict, judged.because, received_us);
            if judged.order_missing && !refs.order_missing {
                self.skip(kind.as_str());
            }
            refs.order_missing = judged.order_missing;
        }
        let changed = was != (refs.rows.clone(), refs.order_missing);
        self.facts.refs.give_back(key, refs, changed);
    }

    /// Judges one message id.
    pub(super) fn settle_message(&mut self, key: MessageKey) {
        let Some(mut facts) = self.facts.messages.lend(key) else { return };
        let was = (facts.rows.clone(), facts.skipped);
        if let Some(context) = self.context(&facts.ledger) {
            let message::Collision { judged, incomplete } = message::judge(context, &facts);
            let subject =
                Subject::Message { ledger: facts.ledger.clone(), message: facts.message.clone() };
            let (book, received_us) = (&mut self.book, self.received_us);
            let due = facts.rows.settle(book, &subject, judged, received_us);
            self.wait(Wait::Message(key), &facts.ledger, due);
            if incomplete && !facts.skipped {
                self.skip(Kind::IdCollision.as_str());
            }
            facts.skipped |= incomplete;
        }
        let changed = was != (facts.rows.clone(), facts.skipped);
        self.facts.messages.give_back(key, facts, changed);
    }

    /// Judges the states of one room of a player.
    pub(super) fn settle_room(&mut self, key: RoomKey) {
        let Some(mut facts) = self.facts.rooms.lend(key) else { return };
        let was = (facts.rows.clone(), facts.order_missing);
        if let Some(player) = self.facts.players.get(key.0)
            && let Some(context) = self.context(&player.ledger)
        {
            let said = room::judge(context, &facts);
            let subject = Subject::Room {
                ledger: player.ledger.clone(),
                player: player.player.clone(),
                session: facts.session.clone(),
                room: facts.room.clone(),
            };
            let ledger = player.ledger.clone();
            let mut due = Due::default();
            for judged in said.judged {
                let (book, received_us) = (&mut self.book, self.received_us);
                due = due.or(facts.rows.settle(book, &subject, judged, received_us));
            }
            self.wait(Wait::Room(key), &ledger, due);
            if said.order_missing && !facts.order_missing {
                self.skip(Kind::VersionRegression.as_str());
            }
            facts.order_missing = said.order_missing;
        }
        let changed = was != (facts.rows.clone(), facts.order_missing);
        self.facts.rooms.give_back(key, facts, changed);
    }

    /// Waits for what comes first: a grace by the time of the ledger, then for quiet.
    fn wait(&mut self, wait: Wait, ledger: &str, due: Due) {
        let by_ledger = due.ledger_us.is_some() || due.hole;
        let ledger = (by_ledger || due.receipt_us.is_none()).then(|| ledger.to_owned());
        let due_us = if by_ledger { due.ledger_us } else { due.receipt_us };
        self.waits.set(Waiting::new(wait, ledger, due_us, due.hole));
    }
}
