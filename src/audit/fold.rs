//! `fold(state, record)`: what each entry of the log means.

use super::eviction::Eviction;
use super::facts::Reversal;
use super::finding::{Kind, Subject, Witness};
use super::group::{Group, Occurrence};
use super::order::Moment;
use super::player::Recent;
use super::source::SourceId;
use super::state::Audit;
use super::table::PlayerKey;
use super::waits::{Wait, Waiting};
use super::witness;
use crate::outcome::{
    Amounts, Body, Boot, Closed, Effect, Event, GivenUp, Heartbeat, Id, Outcome, Position, Record,
    Refused, Signature, Silent, SourceName,
};

/// How often many undecided suspicions are looked at while holes fill.
const HOLES_EVERY_US: i64 = 1_000_000;

/// An event, with what its ids come to.
struct Told<'a> {
    event: &'a Event,
    at: Moment,
    ledger: String,
    player: PlayerKey,
    signature: i64,
}

impl Audit {
    /// Takes one entry of the log. What it [`Audit::needs`] must be loaded.
    pub fn fold(&mut self, record: &Record) {
        self.received_us = self.received_us.max(record.received_us);
        match &record.body {
            Body::Event(event) => self.event(event, record.position),
            Body::Heartbeat(heartbeat) => self.heartbeat(heartbeat, record.received_us),
            Body::Refused(refused) => self.refused(refused, record),
            Body::Conflict(event) => self.conflict(event, record.position),
            Body::Silent(silent) => self.silent(silent),
            Body::GivenUp(given_up) => self.given_up(given_up, record),
            Body::Closed(closed) => self.closed(closed),
            Body::Tick => {}
        }
    }

    fn event(&mut self, event: &Event, position: Position) {
        let ledger = event.ledger();
        let Some(source) = self.hear(event, &ledger) else { return };
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
        match event.outcome {
            Outcome::Processed | Outcome::LateAccepted => self.accept(&told),
            Outcome::ReplayBlocked => {
                let received_us = self.received_us;
                let facts = self.facts.signature(key, &event.signature);
                facts.block(event, told.at.clone(), received_us);
            }
            Outcome::Unknown => {
                let received_us = self.received_us;
                let facts = self.facts.signature(key, &event.signature);
                facts.unknown(event, told.at.clone(), received_us);
            }
            Outcome::Evicted => {
                self.evict(&told, &event.signature, told.signature, false);
                self.remember(&told, false, Vec::new());
            }
        }
        self.settle_key(key);
        self.settle_player(player);
    }

    /// Takes what an event says about its source. `None` if there are more sources than can be
    /// numbered.
    fn hear(&mut self, event: &Event, ledger: &str) -> Option<SourceId> {
        let at_us = event.occurred_us;
        let source = self.sources.entry(&event.from, at_us)?;
        let was_open = source.is_open();
        source.first_us = source.first_us.min(at_us);
        source.last_us = source.last_us.max(at_us);
        let filled = match event.sequence() {
            Some((boot, seq)) => source.run(boot, at_us, seq).event(seq, at_us),
            None => {
                let (first_us, last_us) = source.unnumbered_us.unwrap_or((at_us, at_us));
                source.unnumbered_us = Some((first_us.min(at_us), last_us.max(at_us)));
                false
            }
        };
        let (id, is_open) = (source.id, source.is_open());
        let joins = !source.ledgers.contains(ledger) && source.ledgers.insert(ledger.to_owned());
        self.ledgers.join(ledger, id, joins, Some(at_us));
        if joins || is_open != was_open {
            self.reopen(id, false);
        }
        if filled {
            self.judge_again(id);
            if let Some((boot, _)) = event.sequence() {
                self.gap_may_have_closed(&event.from, boot);
            }
        }
        Some(id)
    }

    /// What waited for a hole of a source is to be looked at again: now, or where that is much,
    /// within a second, since a backlog fills many holes.
    fn judge_again(&mut self, id: SourceId) {
        let ledgers = self.sources.get(id).map(|source| source.ledgers.clone());
        for ledger in ledgers.unwrap_or_default() {
            let wait = Wait::Holes(ledger);
            let Wait::Holes(ledger) = &wait else { continue };
            if self.waits.few_for_hole(ledger) {
                self.recheck.extend(self.waits.for_hole(ledger).cloned());
            } else if !self.waits.has(&wait) {
                let due_us = Some(self.received_us.saturating_add(HOLES_EVERY_US));
                self.waits.set(Waiting { wait, ledger: None, due_us, hole: false });
            }
        }
    }

    fn accept(&mut self, told: &Told<'_>) {
        let Told { event, at, player, signature, .. } = told;
        let key = (*player, *signature);
        self.facts.signature(key, &event.signature).accept(event, at.clone());
        self.service(event.from.service.as_str()).count(at.at_us, 1, 0);
        if let Some(game) = event.signature.game() {
            let (game, room) = (game.hash(&self.hash), self.room_hash(&event.signature));
            let late = event.outcome == Outcome::LateAccepted;
            if let Some(facts) = self.facts.players.get_mut(*player) {
                facts.play(game, room.unwrap_or_default(), *signature, late, at);
            }
        }
        let left = event.evicted.iter().map(|evicted| evicted.hash(&self.hash)).collect();
        self.remember(told, true, left);
        self.first_accepted(told);
        for evicted in &event.evicted {
            let hash = evicted.hash(&self.hash);
            self.evict(told, evicted, hash, true);
            self.settle_key((*player, hash));
        }
        self.take_refs(told);
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
            self.facts.refs.entry(key, Default::default).carry(told.signature);
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
            reason: told.event.reason,
            window: told.event.window,
            received_us: self.received_us,
            accepted,
            pushed: None,
            counted: None,
            skipped: false,
        };
        let player = self.facts.players.get_mut(told.player);
        if let Some(oldest) = player.and_then(|player| player.watch(eviction)) {
            self.let_go(told.player, &oldest);
        }
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
            scope: told.event.window.map(|window| window.scope),
            unsure: matches!(told.event.effect, Some(Effect::Failed | Effect::Unknown)),
        };
        let player = self.facts.players.get_mut(told.player);
        if player.is_some_and(|player| player.remember(recent)) {
            // What a window of its own proved is no more proven.
            self.recheck.extend(self.waits.of_player(told.player).cloned());
        }
    }

    fn room_hash(&self, signature: &Signature) -> Option<i64> {
        signature.room().map(|room| self.hash.of(&[b"room", room.as_str().as_bytes()]))
    }

    fn heartbeat(&mut self, heartbeat: &Heartbeat, received_us: i64) {
        let Some(source) = self.sources.entry(&heartbeat.from, heartbeat.at_us) else { return };
        let changed = source.heartbeat(heartbeat, received_us);
        let id = source.id;
        for ledger in heartbeat.ledgers.iter().map(ToString::to_string) {
            if source.ledgers.insert(ledger.clone()) {
                self.ledgers.join(&ledger, id, true, None);
            }
        }
        self.reopen(id, changed);
    }

    fn reopen(&mut self, id: SourceId, changed: bool) {
        if let Some(source) = self.sources.get(id) {
            self.ledgers.set_open(source);
        }
        if changed {
            self.judge_again(id);
        }
    }

    fn silent(&mut self, silent: &Silent) {
        let received_us = self.received_us;
        let Some(source) = self.sources.entry(&silent.from, received_us) else { return };
        if let Some(run) = source.known_run(silent.boot) {
            run.silent = true;
        }
        let id = source.id;
        self.reopen(id, false);
    }

    fn given_up(&mut self, given_up: &GivenUp, record: &Record) {
        let received_us = self.received_us;
        let Some(source) = self.sources.entry(&given_up.from, received_us) else { return };
        let Some(run) = source.known_run(given_up.boot) else { return };
        run.give_up(given_up.first_seq, given_up.last_seq);
        let (missing, at_us) = (run.missing(), run.last_word_us);
        let text = format!(
            "numbers {} to {} of boot {} did not come in time",
            given_up.first_seq, given_up.last_seq, given_up.boot
        );
        let witness = witness::plain("missing", record.position, at_us, &given_up.from, Some(text));
        let witness = Witness { boot: Some(given_up.boot), ..witness };
        let occurrence =
            Occurrence { at_us, amounts: Amounts::default(), witnesses: vec![witness] };
        let boot = (&given_up.from, given_up.boot);
        self.group_of_boot(Kind::TelemetryGap, boot, |group| {
            group.set(missing, Some(occurrence), received_us);
        });
    }

    fn gap_may_have_closed(&mut self, from: &SourceName, boot: Boot) {
        let subject = Subject::Boot { from: from.clone(), boot };
        if !self.groups.contains_key(&(Kind::TelemetryGap, subject)) {
            return;
        }
        let source = self.sources.entry(from, self.received_us);
        let missing = source.and_then(|source| source.known_run(boot)).map(|run| run.missing());
        let received_us = self.received_us;
        self.group_of_boot(Kind::TelemetryGap, (from, boot), |group| {
            group.set(missing.unwrap_or_default(), None, received_us);
        });
    }

    fn conflict(&mut self, event: &Event, position: Position) {
        let Some((boot, seq)) = event.sequence() else {
            let key = event.event_id.as_ref().map_or("", Id::as_str).to_owned();
            return self.conflict_of(event, position, &format!("event_id {key}"), None);
        };
        self.conflict_of(event, position, &format!("seq {seq}"), Some(boot));
    }

    fn conflict_of(&mut self, event: &Event, position: Position, which: &str, boot: Option<Boot>) {
        let received_us = self.received_us;
        let text = format!("{which} came again with other content");
        let at_us = event.occurred_us;
        let witness = Witness {
            boot,
            seq: event.seq,
            outcome: Some(event.outcome),
            player: Some(event.player.clone()),
            signature: Some(event.signature.clone()),
            trace_id: event.trace_id.clone(),
            ..witness::plain("other_content", position, at_us, &event.from, Some(text))
        };
        let occurrence =
            Occurrence { at_us, amounts: Amounts::default(), witnesses: vec![witness] };
        let add = |group: &mut Group| group.add(occurrence, received_us);
        match boot {
            Some(boot) => self.group_of_boot(Kind::IdentityConflict, (&event.from, boot), add),
            None => {
                let from = Some(event.from.clone());
                self.group_of_source(Kind::IdentityConflict, (from, None), "event_id", add);
            }
        }
    }

    fn refused(&mut self, refused: &Refused, record: &Record) {
        let received_us = record.received_us;
        if let (Some(from), Some((boot, seq))) = (&refused.from, refused.sequence) {
            self.blind_at(from, (boot, seq), refused.ledger.as_deref());
        }
        let nobody = SourceName { service: Id::unread(), env: Id::unread(), source: Id::unread() };
        let from = refused.from.as_ref().unwrap_or(&nobody);
        let text = format!("{}: {}", refused.message, refused.text);
        let witness = Witness {
            boot: refused.sequence.map(|(boot, _)| boot),
            seq: refused.sequence.map(|(_, seq)| seq),
            ..witness::plain("refused", record.position, received_us, from, Some(text))
        };
        let occurrence = Occurrence {
            at_us: received_us,
            amounts: Amounts::default(),
            witnesses: vec![witness],
        };
        let known = refused.from.clone().filter(|from| self.sources.named(from).is_some());
        let about = (known, None);
        self.group_of_source(Kind::RejectedEvidence, about, &refused.code, |group| {
            group.add(occurrence, received_us);
        });
    }

    /// A number was refused: its source is blind there until it comes after all.
    fn blind_at(&mut self, from: &SourceName, (boot, seq): (Boot, u64), ledger: Option<&str>) {
        let received_us = self.received_us;
        // A source that was never taken makes nobody blind: anybody can make names up.
        if self.sources.named(from).is_none() {
            return;
        }
        let Some(source) = self.sources.entry(from, received_us) else { return };
        if !source.has_sort_of(boot) {
            return;
        }
        source.refused_run(boot, received_us).refuse(seq, received_us);
        let id = source.id;
        if let Some(ledger) = ledger {
            let joins = source.ledgers.insert(ledger.to_owned());
            self.ledgers.join(ledger, id, joins, None);
        }
        self.reopen(id, false);
    }

    fn closed(&mut self, closed: &Closed) {
        let Some(finding) = self.closing.remove(&closed.finding) else { return };
        let because = format!("{}: {}", closed.reason, closed.note);
        match &finding.subject {
            Subject::AuditKey { ledger, player, signature } => {
                let player = self.player_key(ledger, player);
                let key = (player, signature.hash(&self.hash));
                if let Some(facts) = self.facts.signatures.get_mut(key) {
                    self.book.close_as_is(&mut facts.rows, &finding.id, &because);
                }
                self.settle_key(key);
            }
            Subject::More { .. } => self.book.close_more(&finding, &because),
            subject => {
                let key = (finding.kind, subject.clone());
                if let Some(group) = self.groups.get_mut(&key) {
                    self.book.close_as_is(&mut group.rows, &finding.id, &because);
                    self.settle_group(key.0, &key.1);
                }
            }
        }
    }
}
