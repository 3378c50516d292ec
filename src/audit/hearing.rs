//! What entries of the log mean for their sources: who was heard, who was blind, who lies.

use super::finding::{Subject, Witness};
use super::group::{Group, Occurrence};
use super::kind::Kind;
use super::source::SourceId;
use super::state::Audit;
use super::waits::{Wait, Waiting};
use super::witness;
use crate::outcome::{
    Amounts, Boot, Event, GivenUp, Heartbeat, Id, Outcome, Position, Record, Refused, Silent,
    SourceName,
};

/// How often many undecided suspicions are looked at while holes fill.
const HOLES_EVERY_US: i64 = 1_000_000;

impl Audit {
    /// Takes what an event says about its source. `None` if there are more sources than can be
    /// numbered.
    pub(super) fn hear(
        &mut self,
        event: &Event,
        ledger: &str,
        position: Position,
    ) -> Option<SourceId> {
        let at_us = event.occurred_us;
        let source = self.sources.entry(&event.from, at_us)?;
        let was_open = source.is_open();
        source.first_us = source.first_us.min(at_us);
        source.last_us = source.last_us.max(at_us);
        source.tells_evictions |= event.outcome == Outcome::Evicted || !event.evicted.is_empty();
        let (filled, fell) = match event.sequence() {
            Some((boot, seq)) => {
                let run = source.run(boot, at_us, seq);
                let fallen = run.fallen;
                let filled = run.event(seq, at_us, position);
                let fell = run.fallen != fallen || run.fell_beside(seq);
                (filled, filled || fell || (seq == 1 && run.after_goodbye))
            }
            None => {
                let (first_us, last_us) = source.unnumbered_us.unwrap_or((at_us, at_us));
                source.unnumbered_us = Some((first_us.min(at_us), last_us.max(at_us)));
                (false, false)
            }
        };
        let (id, is_open) = (source.id, source.is_open());
        let joins = !source.ledgers.contains(ledger) && source.ledgers.insert(ledger.to_owned());
        self.ledgers.join(ledger, id, joins, Some(at_us));
        if joins || is_open != was_open {
            self.reopen(id, false);
        }
        if fell {
            self.clock_fell(id);
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
                self.waits.set(Waiting::new(wait, None, due_us, false));
            }
        }
    }

    pub(super) fn heartbeat(&mut self, heartbeat: &Heartbeat, record: &Record) {
        let received_us = record.received_us;
        let Some(source) = self.sources.entry(&heartbeat.from, heartbeat.at_us) else { return };
        let changed = source.heartbeat(heartbeat, received_us);
        let id = source.id;
        for ledger in heartbeat.ledgers.iter().map(ToString::to_string) {
            if source.ledgers.insert(ledger.clone()) {
                self.ledgers.join(&ledger, id, true, None);
            }
        }
        self.reopen(id, changed);
        self.measure_clock(id, heartbeat, record.position);
    }

    fn reopen(&mut self, id: SourceId, changed: bool) {
        if let Some(source) = self.sources.get(id) {
            self.ledgers.set_open(source);
        }
        if changed {
            self.judge_again(id);
        }
    }

    pub(super) fn silent(&mut self, silent: &Silent) {
        let received_us = self.received_us;
        let Some(source) = self.sources.entry(&silent.from, received_us) else { return };
        if let Some(run) = source.known_run(silent.boot) {
            run.silent = true;
        }
        let id = source.id;
        self.reopen(id, false);
    }

    pub(super) fn given_up(&mut self, given_up: &GivenUp, record: &Record) {
        let received_us = self.received_us;
        let Some(source) = self.sources.entry(&given_up.from, received_us) else { return };
        let id = source.id;
        let Some(run) = source.known_run(given_up.boot) else { return };
        run.give_up(given_up.first_seq, given_up.last_seq, record.position);
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
        self.clock_fell(id);
        // Nobody waits any more for what it said goodbye ahead of.
        self.reopen(id, false);
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

    pub(super) fn conflict(&mut self, event: &Event, position: Position) {
        let identity = Identity::of(&event.from, event.sequence(), event.event_id.as_ref());
        let text = format!("{} came again with other content", identity.text);
        let at_us = event.occurred_us;
        let witness = Witness {
            boot: identity.boot,
            seq: event.seq,
            outcome: Some(event.outcome),
            player: Some(event.player.clone()),
            signature: Some(event.signature.clone()),
            trace_id: event.trace_id.clone(),
            ..witness::plain("other_content", position, at_us, &event.from, Some(text))
        };
        self.conflict_of(&identity, witness);
    }

    /// An identity came again with other content.
    pub(super) fn conflict_of(&mut self, identity: &Identity<'_>, witness: Witness) {
        let received_us = self.received_us;
        let at_us = witness.occurred_us;
        let occurrence =
            Occurrence { at_us, amounts: Amounts::default(), witnesses: vec![witness] };
        let add = |group: &mut Group| group.add(occurrence, received_us);
        let from = identity.from;
        match identity.boot {
            Some(boot) => self.group_of_boot(Kind::IdentityConflict, (from, boot), add),
            None => {
                let about = (Some(from.clone()), None);
                self.group_of_source(Kind::IdentityConflict, about, "event_id", add);
            }
        }
    }

    pub(super) fn refused(&mut self, refused: &Refused, record: &Record) {
        let received_us = record.received_us;
        if let (Some(from), Some((boot, seq))) = (&refused.from, refused.sequence) {
            self.blind_at(from, (boot, seq), refused.ledger.as_deref(), record.position);
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
    fn blind_at(
        &mut self,
        from: &SourceName,
        (boot, seq): (Boot, u64),
        ledger: Option<&str>,
        position: Position,
    ) {
        let received_us = self.received_us;
        // A source that was never taken makes nobody blind: anybody can make names up.
        if self.sources.named(from).is_none() {
            return;
        }
        let Some(source) = self.sources.entry(from, received_us) else { return };
        if !source.has_sort_of(boot) {
            return;
        }
        source.refused_run(boot, received_us).refuse(seq, received_us, position);
        let id = source.id;
        if let Some(ledger) = ledger {
            let joins = source.ledgers.insert(ledger.to_owned());
            self.ledgers.join(ledger, id, joins, None);
        }
        self.clock_fell(id);
        self.reopen(id, false);
    }
}

/// What something is known by.
pub(super) struct Identity<'a> {
    from: &'a SourceName,
    pub(super) boot: Option<Boot>,
    /// For people.
    pub(super) text: String,
}

impl<'a> Identity<'a> {
    pub(super) fn of(
        from: &'a SourceName,
        sequence: Option<(Boot, u64)>,
        event_id: Option<&Id>,
    ) -> Self {
        let text = match sequence {
            Some((_, seq)) => format!("seq {seq}"),
            None => format!("event_id {}", event_id.map_or("", Id::as_str)),
        };
        Self { from, boot: sequence.map(|(boot, _)| boot), text }
    }
}
