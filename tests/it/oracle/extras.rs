//! What streams of guards tell beside the decision: messages that carried deliveries, versions of
//! a room's state, and what became of an acceptance, told later.

use std::collections::BTreeMap;

use dedupwatch::outcome::{Effect, Event, Id, Outcome};

use super::dice::Dice;
use super::guards::id;

/// Which of them a stream tells, and what was told so far.
pub struct Extras {
    messages: bool,
    states: bool,
    reports: bool,
    faults: u64,
    next_message: u64,
    versions: BTreeMap<(Id, Id), u64>,
    /// Acceptances whose fate is still to be told, and by which guard they were told.
    pending: Vec<(usize, Event)>,
}

impl Extras {
    pub fn new(dice: &mut Dice) -> Self {
        Self {
            messages: dice.chance(40),
            states: dice.chance(40),
            reports: dice.chance(40),
            faults: *dice.pick(&[0, 5, 30]),
            next_message: 0,
            versions: BTreeMap::new(),
            pending: Vec::new(),
        }
    }

    /// The message that carries a delivery: a new one, the one that carried it before, or by a
    /// fault one that carried something else.
    pub fn message(&mut self, dice: &mut Dice, carried: Option<&Id>) -> Option<Id> {
        if !self.messages || dice.chance(10) {
            return None;
        }
        if let Some(carried) = carried.filter(|_| dice.chance(70)) {
            return Some(carried.clone());
        }
        self.next_message += 1;
        let of = if dice.chance(self.faults) { self.next_message / 2 } else { self.next_message };
        Some(id(&format!("m{of}")))
    }

    /// The state of the room after an acceptance in turn.
    pub fn state(&mut self, dice: &mut Dice, event: &mut Event) {
        let Some(room) = event.signature.room().filter(|_| self.states).cloned() else { return };
        let version = self.versions.entry((event.player.clone(), room)).or_insert(3);
        *version += 1;
        let fault = dice.chance(self.faults).then(|| dice.below(4));
        match fault {
            Some(0) => *version = version.saturating_sub(2),
            Some(1) => *version = dice.below(5),
            Some(2) => *version = version.saturating_sub(1),
            _ => {}
        }
        event.state_version = (!dice.chance(5)).then_some(*version);
        let content = if fault == Some(3) { "torn".to_owned() } else { format!("s{version}") };
        event.state_hash = dice.chance(80).then(|| id(&content));
    }

    /// Remembers an acceptance whose fate is told later.
    pub fn accepted(&mut self, dice: &mut Dice, at: usize, event: &Event) {
        if self.reports && dice.chance(25) {
            self.pending.push((at, event.clone()));
        }
    }

    /// What became of some acceptance, and the guard that tells it.
    pub fn report(&mut self, dice: &mut Dice, guards: usize) -> Option<(usize, Event)> {
        if self.pending.is_empty() || !dice.chance(30) {
            return None;
        }
        let of = dice.index(self.pending.len());
        let (at, accepted) =
            if dice.chance(70) { self.pending.remove(of) } else { self.pending[of].clone() };
        let Event { from, player, signature, .. } = accepted;
        let mut report = Event::new(from, player, signature, Outcome::EffectReported);
        let effects = [Effect::Applied, Effect::Applied, Effect::Failed, Effect::Unknown];
        report.effect = Some(*dice.pick(&effects));
        report.reference = accepted.reference.filter(|_| dice.chance(60));
        Some((if dice.chance(85) { at } else { dice.index(guards) }, report))
    }
}
