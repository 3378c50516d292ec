//! What the faults do around a guard: messages that they add, and what outcomes carry.

use std::collections::{BTreeMap, VecDeque};

use rand::RngExt;
use rand_chacha::ChaCha12Rng;

use super::fault::{Fault, FaultKind};
use super::guards::{Met, Said};
use super::source::Source;
use super::world::Delivery;
use crate::outcome::{Effect, Event, Id, IdError, Net, Outcome, Reason, Signature};

/// When a service tries again what did not work, or makes good what went wrong.
const RETRY_US: i64 = 2_000_000;
/// Between two writers of the fault `race`.
const RACE_US: i64 = 5_000;
/// When a settlement comes again and again: after the next game has been settled, and before the
/// one after that.
const STORM_US: i64 = 15_000_000;
/// How old a message is whose id is taken again: old enough to be no part of one delivery.
const TAKEN_US: i64 = 1_500_000;
/// One player in so many has a guard that goes by the ref.
const BY_REF_ONE_IN: usize = 4;

/// The faults, and what they have in hand.
pub(super) struct Mischief {
    random: ChaCha12Rng,
    faults: Vec<Fault>,
    messages: Vec<Delivery>,
    /// Messages of late, oldest first, by service.
    recent: BTreeMap<usize, VecDeque<(i64, u64)>>,
    /// Messages that have the id of another one.
    taken: BTreeMap<u128, u64>,
    /// The newest version of each player's room.
    versions: BTreeMap<(usize, usize, Id), u64>,
}

impl Mischief {
    pub(super) fn new(random: ChaCha12Rng, faults: &[Fault]) -> Self {
        Self {
            random,
            faults: faults.to_vec(),
            messages: Vec::new(),
            recent: BTreeMap::new(),
            taken: BTreeMap::new(),
            versions: BTreeMap::new(),
        }
    }

    /// Messages that the faults add.
    pub(super) fn take_messages(&mut self) -> Vec<Delivery> {
        std::mem::take(&mut self.messages)
    }

    /// A source decides on a delivery: what it tells.
    pub(super) fn decide(
        &mut self,
        source: &mut Source,
        delivery: &Delivery,
        met: Met,
    ) -> Result<Vec<Event>, IdError> {
        let by_ref = self.goes_by_ref(delivery);
        let said = self.check(source, delivery, met, by_ref);
        let accepted = matches!(said.outcome, Outcome::Processed | Outcome::LateAccepted);
        let mut events = source.told(delivery, said)?;
        let check_us = self.random.random_range(3..40);
        let response_us = self.random.random_range(400..4_000);
        if let Some(event) = events.last_mut() {
            event.check_us = Some(check_us);
            event.response_us = Some(check_us + response_us);
            self.carry(event, delivery, met)?;
            if accepted {
                self.book(event, delivery, met)?;
            }
            if event.effect == Some(Effect::Failed) {
                self.fail(source, delivery);
            }
        }
        if !delivery.is_copy {
            self.add_messages(delivery, met, by_ref)?;
        }
        Ok(events)
    }

    fn check(&mut self, source: &mut Source, delivery: &Delivery, met: Met, by_ref: bool) -> Said {
        if by_ref {
            return source.memory.check_ref(delivery);
        }
        let is_first = !delivery.is_copy;
        if is_first && met.has(FaultKind::Unknown) && self.random.random_ratio(1, 3) {
            let reasons = [None, Some(Reason::Held), Some(Reason::InProgress)];
            let which = self.random.random_range(0..reasons.len());
            if self.random.random_ratio(1, 2) {
                self.again(delivery, RETRY_US);
            }
            let reason = reasons.get(which).copied().flatten();
            return source.memory.unsure(delivery, reason, met);
        }
        source.memory.check(delivery, met)
    }

    /// What every outcome of a service carries, blocks too.
    fn carry(&mut self, event: &mut Event, delivery: &Delivery, met: Met) -> Result<(), IdError> {
        let kinds = [FaultKind::EqualSettlements, FaultKind::Reversals, FaultKind::RenamedRetries];
        if kinds.into_iter().any(|kind| self.has(kind, delivery.service)) {
            event.reference = Some(reference(delivery.trace)?);
            event.reversal_of = delivery.undoes.map(reference).transpose()?;
        }
        if self.has(FaultKind::CollidingIds, delivery.service) {
            event.message_id = Some(Id::parse(&self.message(delivery, met).to_string())?);
        }
        Ok(())
    }

    /// What acceptances carry besides.
    fn book(&mut self, event: &mut Event, delivery: &Delivery, met: Met) -> Result<(), IdError> {
        if met.has(FaultKind::EffectFailed) {
            let fails = !delivery.is_copy && self.random.random_ratio(1, 3);
            event.effect = Some(if fails { Effect::Failed } else { Effect::Applied });
        }
        let Some(room) = delivery.signature.room() else { return Ok(()) };
        if met.has(FaultKind::CrossRoom) {
            let elsewhere = self.random.random_ratio(1, 4);
            let other = Id::parse(&format!("{room}-b"))?;
            event.booked_room = Some(if elsewhere { other } else { room.clone() });
        }
        if self.has(FaultKind::OldState, delivery.service) {
            self.versioned(event, delivery, met, room)?;
        }
        Ok(())
    }

    fn versioned(
        &mut self,
        event: &mut Event,
        delivery: &Delivery,
        met: Met,
        room: &Id,
    ) -> Result<(), IdError> {
        let wrong = met.has(FaultKind::OldState) && self.random.random_ratio(1, 3);
        let torn = wrong && self.random.random_ratio(1, 2);
        let of = (delivery.service, delivery.player, room.clone());
        let newest = self.versions.entry(of).or_insert(1);
        let (version, content) = match wrong {
            false => {
                *newest += 1;
                (*newest, 0)
            }
            true if torn => (*newest, 1),
            true => (newest.saturating_sub(1), 0),
        };
        event.state_version = Some(version);
        event.state_hash = Some(Id::parse(&format!("{version:x}-{content}"))?);
        Ok(())
    }

    /// The booking failed. Some services take its place back and try again, some try again and
    /// are refused by their own memory, some leave it at that.
    fn fail(&mut self, source: &mut Source, delivery: &Delivery) {
        let way = self.random.random_range(0..4);
        if way < 2 {
            source.memory.give_back(delivery);
        }
        if way < 3 {
            self.again(delivery, RETRY_US);
        }
    }

    fn add_messages(&mut self, delivery: &Delivery, met: Met, by_ref: bool) -> Result<(), IdError> {
        if met.has(FaultKind::Race) && self.random.random_ratio(1, 3) {
            self.astray(delivery, RACE_US);
        }
        if met.has(FaultKind::RefreshOnBlock) && self.random.random_ratio(1, 3) {
            self.again(delivery, STORM_US);
            self.again(delivery, STORM_US + RETRY_US / 2);
        }
        if met.has(FaultKind::EqualSettlements) && self.random.random_ratio(1, 3) {
            self.new_booking(delivery, delivery.signature.clone(), RETRY_US, None);
        }
        if met.has(FaultKind::RenamedRetries) && self.random.random_ratio(1, 8) {
            let signature = renamed(&delivery.signature)?;
            let at_us = delivery.at_us + RETRY_US;
            let again = Delivery { at_us, signature, is_copy: true, ..delivery.clone() };
            self.messages.push(again);
        }
        let net = delivery.signature.net();
        let is_booking = delivery.undoes.is_none() && net != Net(0);
        if by_ref && is_booking && met.has(FaultKind::Reversals) {
            let undoing = undoing(&delivery.signature);
            match self.random.random_range(0..5) {
                0 => self.new_booking(delivery, undoing, 2 * RETRY_US, Some(delivery.trace)),
                1 => {
                    self.new_booking(delivery, undoing, RETRY_US, Some(delivery.trace));
                    let again = delivery.signature.clone();
                    self.new_booking(delivery, again, 3 * RETRY_US, None);
                }
                2 => {
                    self.astray(delivery, RETRY_US);
                    self.new_booking(delivery, undoing, 3 * RETRY_US, Some(delivery.trace));
                }
                // What was undone comes again, where nobody knows of it: nothing may stand.
                3 => {
                    self.new_booking(delivery, undoing, RETRY_US, Some(delivery.trace));
                    self.astray(delivery, 3 * RETRY_US);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn again(&mut self, delivery: &Delivery, after_us: i64) {
        let at_us = delivery.at_us + after_us;
        self.messages.push(Delivery { at_us, is_copy: true, ..delivery.clone() });
    }

    fn astray(&mut self, delivery: &Delivery, after_us: i64) {
        let at_us = delivery.at_us + after_us;
        self.messages.push(Delivery { at_us, is_copy: true, astray: true, ..delivery.clone() });
    }

    /// Another intended booking, with a ref of its own.
    fn new_booking(
        &mut self,
        delivery: &Delivery,
        signature: Signature,
        after_us: i64,
        undoes: Option<u128>,
    ) {
        let (at_us, trace) = (delivery.at_us + after_us, self.random.random());
        // It brings no messages of its own.
        let is_copy = true;
        let other = Delivery { at_us, signature, trace, undoes, is_copy, ..delivery.clone() };
        self.messages.push(other);
    }

    /// The id of the message that carried a delivery: that of its first one.
    fn message(&mut self, delivery: &Delivery, met: Met) -> u64 {
        let own = u64::try_from(delivery.trace >> 65).unwrap_or_default();
        if let Some(other) = self.taken.get(&delivery.trace) {
            return *other;
        }
        if delivery.is_copy {
            return own;
        }
        let recent = self.recent.entry(delivery.service).or_default();
        recent.push_back((delivery.at_us, own));
        let old_us = delivery.at_us - TAKEN_US;
        while recent.get(1).is_some_and(|(at_us, _)| *at_us <= old_us) {
            recent.pop_front();
        }
        let other = recent.front().filter(|(at_us, _)| *at_us <= old_us).copied();
        let takes = met.has(FaultKind::CollidingIds) && self.random.random_ratio(1, 4);
        match other.filter(|_| takes) {
            Some((_, other)) => {
                self.taken.insert(delivery.trace, other);
                other
            }
            None => own,
        }
    }

    fn has(&self, kind: FaultKind, service: usize) -> bool {
        self.faults.iter().any(|fault| fault.kind == kind && fault.service == service)
    }

    fn goes_by_ref(&self, delivery: &Delivery) -> bool {
        let kinds = [FaultKind::EqualSettlements, FaultKind::Reversals];
        delivery.player % BY_REF_ONE_IN == BY_REF_ONE_IN - 1
            && kinds.into_iter().any(|kind| self.has(kind, delivery.service))
    }
}

fn reference(trace: u128) -> Result<Id, IdError> {
    Id::parse(&format!("ref-{trace:x}"))
}

/// The same settlement under another name: of another room.
fn renamed(signature: &Signature) -> Result<Signature, IdError> {
    let mut other = signature.clone();
    if let Signature::Settlement { game, .. } = &mut other {
        game.room = Id::parse(&format!("{}-moved", game.room))?;
    }
    Ok(other)
}

/// The settlement that undoes another one, in the same game.
fn undoing(signature: &Signature) -> Signature {
    let mut other = signature.clone();
    let (Signature::Settlement { net, .. } | Signature::Opaque { net, .. }) = &mut other;
    *net = Net(-net.0);
    other
}
