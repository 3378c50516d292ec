//! `fold(state, record)`: what each entry of the log means.

use super::eviction::Eviction;
use super::facts::push_newest;
use super::finding::Subject;
use super::infer::{self, UNTOLD_MAX, Untold};
use super::order::Moment;
use super::player::Recent;
use super::ref_facts::Reversal;
use super::report::{self, Stayed};
use super::state::Audit;
use super::table::PlayerKey;
use crate::outcome::{
    Body, Closed, Effect, Event, GuardMode, Outcome, Position, Record, Signature,
};

/// An event, with what its ids come to.
pub(super) struct Told<'a> {
    pub(super) event: &'a Event,
    pub(super) at: Moment,
    ledger: String,
    pub(super) player: PlayerKey,
    pub(super) signature: i64,
}

impl Audit {
    /// Takes one entry of the log. What it [`Audit::needs`] must be loaded.
    pub fn fold(&mut self, record: &Record) {
        self.received_us = self.received_us.max(record.received_us);
        match &record.body {
            Body::Event(event) => self.event(event, record.position),
            Body::Heartbeat(heartbeat) => self.heartbeat(heartbeat, record),
            Body::Refused(refused) => self.refused(refused, record),
            Body::Conflict(event) => self.conflict(event, record.position),
            Body::Silent(silent) => self.silent(silent),
            Body::GivenUp(given_up) => self.given_up(given_up, record),
            Body::Closed(closed) => self.closed(closed),
            Body::Transition(transition) => self.transition(transition, record.position),
            Body::TransitionConflict(other) => self.transition_conflict(other, record.position),
            Body::Tick => {}
            Body::Settings(settings) => self.set(settings),
        }
    }

    fn event(&mut self, event: &Event, position: Position) {
        let ledger = event.ledger();
        let Some(source) = self.hear(event, &ledger, position) else { return };
        let player = self.player_key(&ledger, &event.player);
        let told = Told {
            event,
            at: Moment::of(event, position, source),
            player,
            signature: event.signature.hash(&self.hash),
            ledger,
        };
        self.facts.player(player, &told.ledger, &event.player);
        let key = (player, told.signature);
        let refused = self.refused_before(&told);
        match event.outcome {
            Outcome::Processed | Outcome::LateAccepted => self.accept(&told),
            Outcome::ReplayBlocked => {
                let received_us = self.received_us;
                let facts = self.facts.signature(key, &event.signature);
                facts.block(event, told.at.clone(), received_us);
                self.take_message(event, &told.at, &told.ledger);
                self.stayed(&told);
            }
            Outcome::Unknown => {
                let received_us = self.received_us;
                let facts = self.facts.signature(key, &event.signature);
                facts.unknown(event, told.at.clone(), received_us);
                self.stayed(&told);
            }
            Outcome::Evicted => {
                self.evict(&told, &event.signature, told.signature, false);
                self.remember(&told, false, Vec::new());
            }
            Outcome::EffectReported => {
                let received_us = self.received_us;
                let facts = self.facts.signature(key, &event.signature);
                facts.report(event, told.at.clone(), received_us);
            }
        }
        self.take_capacity(&told);
        self.told_again(&told);
        self.settle_key(key);
        self.advise_on(&told, &refused);
        self.settle_player(player);
    }

    fn accept(&mut self, told: &Told<'_>) {
        let Told { event, at, player, signature, .. } = told;
        let key = (*player, *signature);
        let received_us = self.received_us;
        let facts = self.facts.signature(key, &event.signature);
        let again = !facts.accepted.is_empty();
        let kept = facts.accept(event, at.clone(), received_us);
        let moved = event.effect != Some(Effect::Failed);
        if !kept && moved && event.guard_mode == Some(GuardMode::Off) {
            let _ = self.count_bypass(*player, at, event.signature.net(), None);
        }
        self.service(event.from.service.as_str()).count(at.at_us, 1, 0);
        if let Some(game) = event.signature.game() {
            let (game, room) = (game.hash(&self.hash), self.room_hash(&event.signature));
            let late = event.outcome == Outcome::LateAccepted;
            // What comes again of a game that is not remembered begins no game.
            if let Some(facts) = self.facts.players.get_mut(*player)
                && (!again || facts.remembers(game))
            {
                facts.play(game, room.unwrap_or_default(), *signature, late, at);
            }
        }
        let left = event.evicted.iter().map(|evicted| evicted.hash(&self.hash)).collect();
        self.remember(told, true, left);
        if infer::may_have_evicted(event)
            && let Some(player) = self.facts.players.get_mut(*player)
        {
            let untold = Untold { at: at.clone(), received_us };
            let _ = push_newest(&mut player.untold, untold, UNTOLD_MAX, |untold| &untold.at);
        }
        self.first_accepted(told);
        for evicted in &event.evicted {
            let hash = evicted.hash(&self.hash);
            self.evict(told, evicted, hash, true);
            self.settle_key((*player, hash));
        }
        self.take_refs(told);
        self.take_message(event, at, &told.ledger);
        self.take_state(event, at, key);
    }

    /// Evictions of the key now know when it was first accepted.
    fn first_accepted(&mut self, told: &Told<'_>) {
        let key = (told.player, told.signature);
        let first = self.facts.signatures.get(key).and_then(|facts| facts.accepted.first());
        let Some(first) = first.map(|accepted| accepted.at.clone()) else { return };
        let Some(player) = self.facts.players.get_mut(told.player) else { return };
        for eviction in &mut player.evictions {
            if eviction.hash == told.signature {
                eviction.accepted = Some(first.clone());
            }
        }
    }

    fn take_refs(&mut self, told: &Told<'_>) {
        let event = told.event;
        if let Some(reference) = &event.reference {
            let key = (told.player, self.ref_hash(reference));
            let refs = self.facts.refs.entry(key, Default::default);
            if refs.carry(told.signature) {
                for signature in refs.keys.clone() {
                    self.settle_key((told.player, signature));
                }
            }
            self.settle_ref(key);
        }
        let undone = event.reversal_of.as_ref().filter(|_| event.effect != Some(Effect::Failed));
        let Some(undone) = undone else { return };
        let key = (told.player, self.ref_hash(undone));
        let game = event.signature.game().map(|game| game.hash(&self.hash));
        let reversal = Reversal { at: told.at.clone(), net: event.signature.net(), game };
        let refs = self.facts.refs.entry(key, Default::default);
        refs.reverse(reversal);
        for signature in refs.keys.clone() {
            self.settle_key((told.player, signature));
        }
        self.settle_ref(key);
    }

    fn evict(&mut self, told: &Told<'_>, signature: &Signature, hash: i64, inline: bool) {
        let facts = self.facts.signature((told.player, hash), signature);
        facts.evict(told.at.clone(), told.event.reason);
        let accepted = facts.accepted.first().map(|accepted| accepted.at.clone());
        let eviction = Eviction {
            at: told.at.clone(),
            hash,
            game: signature.game().map(|game| game.hash(&self.hash)),
            room: self.room_hash(signature),
            signature: signature.clone(),
            inline,
            inferred: false,
            reason: told.event.reason,
            window: told.event.window,
            received_us: self.received_us,
            accepted,
            pushed: None,
            counted: None,
            skipped: false,
        };
        let Some(mut player) = self.facts.players.lend(told.player) else { return };
        if let Some(oldest) = player.watch(eviction) {
            self.let_go(&player, &oldest);
        }
        self.facts.players.give_back(told.player, player, true);
    }

    fn remember(&mut self, told: &Told<'_>, entered: bool, left: Vec<i64>) {
        let game = told.event.signature.game().map(|game| game.hash(&self.hash));
        let recent = Recent {
            at: told.at.clone(),
            signature: told.signature,
            entered,
            game,
            room: self.room_hash(&told.event.signature),
            left,
            window: told.event.window,
            mode: told.event.guard_mode,
            unsure: matches!(told.event.effect, Some(Effect::Failed | Effect::Unknown)),
            again: false,
            other_guard: !report::is_compared(told.event.guard.as_ref()),
            reason: told.event.reason,
        };
        let live_games = self.settings.live_games;
        let received_us = self.received_us;
        let Some(player) = self.facts.players.get_mut(told.player) else { return };
        let told_window = recent.window.is_some();
        let is_new = player.remember(recent);
        if told_window {
            player.look_for_loss(&told.at, received_us);
        }
        if entered {
            player.look_for_too_many(live_games, &told.at, received_us);
        }
        if entered && told.event.guard_mode == Some(GuardMode::Local) {
            self.look_for_two_writers(told.player, &told.at);
        }
        if is_new {
            // What a window of its own proved is no more proven.
            self.recheck.extend(self.waits.of_player(told.player).cloned());
        }
    }

    /// What a refusal says of its window, unless it is known to be no news.
    fn stayed(&mut self, told: &Told<'_>) {
        let Told { event, at, player, .. } = told;
        let Some(window) = event.window.filter(|_| report::is_compared(event.guard.as_ref()))
        else {
            return;
        };
        let room = self.room_hash(&event.signature);
        let stayed = Stayed { at: at.clone(), room, window, mode: event.guard_mode };
        let Some(player) = self.facts.players.get_mut(*player) else { return };
        if player.is_news(&self.sources, &stayed) {
            player.stay(stayed);
            player.look_for_loss(at, self.received_us);
        }
    }

    /// What entered a window is marked where its signature was told of before that.
    fn told_again(&mut self, told: &Told<'_>) {
        let Some(facts) = self.facts.signatures.get((told.player, told.signature)) else { return };
        if facts.is_told_once() {
            return;
        }
        let received_us = self.received_us;
        let Some(player) = self.facts.players.get_mut(told.player) else { return };
        let mut again: Vec<Moment> = Vec::new();
        for recent in &mut player.recent {
            let entered = recent.entered && recent.signature == told.signature;
            if entered && !recent.again && facts.is_told_before(&self.sources, &recent.at) {
                recent.again = true;
                again.push(recent.at.clone());
            }
        }
        // A window that holds more than it may should hold as many as before.
        again.iter().for_each(|at| player.look_for_loss(at, received_us));
    }

    pub(super) fn room_hash(&self, signature: &Signature) -> Option<i64> {
        signature.room().map(|room| self.hash.of(&[b"room", room.as_str().as_bytes()]))
    }

    fn closed(&mut self, closed: &Closed) {
        let Some(finding) = self.closing.remove(&closed.finding) else { return };
        let because = format!("{}: {}", closed.reason, closed.note);
        let (id, kind, received_us) = (&finding.id, finding.kind, self.received_us);
        match &finding.subject {
            Subject::AuditKey { ledger, player, signature } => {
                let player = self.player_key(ledger, player);
                let key = (player, signature.hash(&self.hash));
                if let Some(facts) = self.facts.signatures.get_mut(key) {
                    self.book.close_as_is(&mut facts.rows, id, &because, received_us);
                }
                self.settle_key(key);
            }
            Subject::Ref { ledger, player, reference } => {
                let key = (self.player_key(ledger, player), self.ref_hash(reference));
                if let Some(facts) = self.facts.refs.get_mut(key) {
                    self.book.close_as_is(&mut facts.rows, id, &because, received_us);
                }
                self.settle_ref(key);
            }
            Subject::Room { ledger, player, session, room } => {
                let player = self.player_key(ledger, player);
                let key = self.room_key(player, session.as_ref(), room);
                if let Some(facts) = self.facts.rooms.get_mut(key) {
                    facts.rows.close(&mut self.book, id, &because, received_us);
                }
                self.settle_room(key);
            }
            Subject::Message { ledger, message } => {
                let key = self.message_key(ledger, message);
                if let Some(facts) = self.facts.messages.get_mut(key) {
                    facts.rows.close(&mut self.book, id, &because, received_us);
                }
                self.settle_message(key);
            }
            Subject::Player { ledger, player } => {
                let key = self.player_key(ledger, player);
                if let Some(facts) = self.facts.players.get_mut(key) {
                    self.book.close_as_is(&mut facts.rows, &finding.id, &because, received_us);
                }
            }
            Subject::More { .. } => self.book.close_more(&finding, &because, received_us),
            subject => {
                let key = (kind, subject.clone());
                if let Some(group) = self.groups.get_mut(&key) {
                    self.book.close_as_is(&mut group.rows, id, &because, received_us);
                    self.settle_group(key.0, &key.1);
                }
            }
        }
    }
}
