//! Streams of guards that behave, with faults thrown in: real FIFO windows, deliveries that are
//! repeated, late and cross over, restarts, and telemetry that is lost, late, refused or repeated.

use std::collections::{BTreeMap, VecDeque};

use dedupwatch::outcome::{
    Boot, Effect, Event, Game, GuardMode, Heartbeat, Id, Net, Outcome, Reason, Signature,
    SourceName, SourceState, Window,
};

use super::BEGIN_US;
use super::dice::Dice;
use super::extras::Extras;
use super::guard::Guard;
use super::stream::{Entry, Said, Stream};

pub fn id(text: &str) -> Id {
    Id::parse_or_empty(text).unwrap()
}

pub fn named(source: &str) -> SourceName {
    SourceName { service: id("settle"), env: id("prod"), source: id(source) }
}

pub fn settlement(room: &str, round: u64, net: i64, last: bool) -> Signature {
    let game = Game { session: None, room: id(room), round: id(&round.to_string()) };
    Signature::Settlement { game, net: Net(net), last }
}

/// How likely faults are, in percent; each stream has its own mix.
struct Mix {
    repeat: u64,
    late: u64,
    fault: u64,
    lost: u64,
    delayed: u64,
    restart: u64,
    /// Every watched guard is heard of all the time, and nothing comes later than its grace.
    calm: bool,
}

/// What was delivered once and may come again.
#[derive(Clone)]
struct Delivery {
    player: String,
    signature: Signature,
    late: bool,
    reference: Option<Id>,
    reversal_of: Option<Id>,
    message: Option<Id>,
}

struct Play<'a> {
    dice: &'a mut Dice,
    mix: Mix,
    guards: Vec<Guard>,
    now_us: i64,
    stream: Stream,
    known: Vec<Delivery>,
    held_back: Vec<Delivery>,
    rounds: BTreeMap<String, u64>,
    refs: bool,
    next_ref: u64,
    extras: Extras,
}

/// A stream of this seed.
pub fn stream(dice: &mut Dice) -> Stream {
    let mix = Mix {
        repeat: dice.below(40),
        late: dice.below(25),
        fault: *dice.pick(&[0, 3, 10, 25]),
        lost: *dice.pick(&[0, 0, 3, 10]),
        delayed: *dice.pick(&[0, 5, 20]),
        restart: *dice.pick(&[0, 2, 6]),
        calm: dice.chance(60),
    };
    let names = &["a", "b", "c"][..dice.index(3) + 1];
    let guards = names.iter().map(|name| Guard::new(dice, name, mix.calm)).collect();
    let refs = dice.chance(30);
    let extras = Extras::new(dice);
    let steps = dice.between(4, 45);
    let mut play = Play {
        dice,
        mix,
        guards,
        now_us: BEGIN_US,
        stream: Vec::new(),
        known: Vec::new(),
        held_back: Vec::new(),
        rounds: BTreeMap::new(),
        refs,
        next_ref: 0,
        extras,
    };
    for at in 0..play.guards.len() {
        play.heartbeat(at, SourceState::Running);
    }
    for _ in 0..steps {
        play.step();
    }
    for at in 0..play.guards.len() {
        if play.dice.chance(60) {
            play.heartbeat(at, SourceState::Closing);
        } else {
            play.heartbeat(at, SourceState::Running);
        }
    }
    play.stream
}

impl Play<'_> {
    fn step(&mut self) {
        let steps_us = [20_000, 300_000, 700_000, 1_500_000, 4_000_000, 20_000_000, 50_000_000];
        self.now_us += *self.dice.pick(&steps_us) + self.dice.between(0, 1_000);
        let at = self.dice.index(self.guards.len());
        if self.mix.calm {
            (0..self.guards.len()).for_each(|at| self.heartbeat(at, SourceState::Running));
        } else if self.dice.chance(12) {
            self.heartbeat(at, SourceState::Running);
        }
        if self.dice.chance(self.mix.restart) {
            self.restart(at);
        }
        let delivery = if self.dice.chance(self.mix.repeat) && !self.known.is_empty() {
            self.again()
        } else if self.dice.chance(self.mix.late) && !self.held_back.is_empty() {
            let at = self.dice.index(self.held_back.len());
            self.held_back.remove(at)
        } else {
            self.new_delivery()
        };
        if let Some((at, report)) = self.extras.report(self.dice, self.guards.len()) {
            let from = self.guards[at].from.clone();
            self.tell(at, Event { from, ..report }, false);
        }
        self.deliver_often(at, delivery);
    }

    /// A delivery is tried again at once, or its message settles others too.
    fn deliver_often(&mut self, mut at: usize, mut delivery: Delivery) {
        let stuck = self.dice.chance(self.mix.fault / 3);
        if stuck {
            // Claimed, and never released.
            let guard = &mut self.guards[at];
            let place = guard.place(&delivery.player, &delivery.signature);
            guard.windows.entry(place).or_default().push_back(delivery.signature.clone());
        }
        let storm = stuck || self.dice.chance(self.mix.repeat / 4);
        let table = !storm && delivery.message.is_some() && self.dice.chance(25);
        for _ in 0..if storm || table { self.dice.between(2, 4) } else { 1 } {
            self.known.push(delivery.clone());
            self.deliver(at, &delivery);
            self.now_us += self.dice.between(1, 1_100_000);
            if table {
                let message = delivery.message;
                delivery = Delivery { message, ..self.new_delivery() };
            } else if storm && self.dice.chance(20) {
                at = self.dice.index(self.guards.len());
            }
        }
    }

    /// The same again, as a retry or by mistake as something else.
    fn again(&mut self) -> Delivery {
        let mut delivery = self.dice.pick(&self.known).clone();
        delivery.message = self.extras.message(self.dice, delivery.message.as_ref());
        if self.refs && self.dice.chance(20) {
            self.next_ref += u64::from(self.dice.chance(50));
            delivery.reference = Some(id(&format!("ref-{}", self.next_ref)));
        }
        delivery.reference =
            delivery.reference.filter(|one| delivery.reversal_of.as_ref() != Some(one));
        delivery
    }

    /// A settlement of the player's current game, or of the next one.
    fn new_delivery(&mut self) -> Delivery {
        let player = (*self.dice.pick(&["p", "p", "q", "r"])).to_owned();
        let round = self.rounds.entry(player.clone()).or_insert(1);
        let net = *self.dice.pick(&[100, -40, 250, 0, i64::MAX]);
        if self.refs && self.dice.chance(15) {
            let with_ref = self.known.iter().find(|known| known.reference.is_some()).cloned();
            if let Some(undone) = with_ref {
                let net = undone.signature.net().0.saturating_neg();
                return Delivery {
                    signature: settlement("back", self.next_ref, net, false),
                    late: false,
                    reference: None,
                    reversal_of: undone.reference,
                    message: self.extras.message(self.dice, None),
                    ..undone
                };
            }
        }
        let last = self.dice.chance(50);
        let room = format!("r{}", *round % 3);
        let signature = settlement(&room, *round, net, last);
        if last || self.dice.chance(20) {
            *round += 1;
        }
        let reference = self.refs.then(|| {
            self.next_ref += u64::from(self.dice.chance(80));
            id(&format!("ref-{}", self.next_ref))
        });
        let reference = reference.filter(|_| self.dice.chance(85));
        let message = self.extras.message(self.dice, None);
        let (late, reversal_of) = (false, None);
        let delivery = Delivery { player, signature, late, reference, reversal_of, message };
        if self.dice.chance(self.mix.late) {
            self.held_back.push(Delivery { late: true, ..delivery.clone() });
        }
        delivery
    }

    /// The guard decides, and tells.
    fn deliver(&mut self, at: usize, delivery: &Delivery) {
        let fault = self.dice.chance(self.mix.fault);
        let guard = &mut self.guards[at];
        let place = guard.place(&delivery.player, &delivery.signature);
        let window = guard.windows.entry(place).or_default();
        let seen = window.contains(&delivery.signature);
        let mut event = Event::new(
            guard.from.clone(),
            id(&delivery.player),
            delivery.signature.clone(),
            Outcome::ReplayBlocked,
        );
        event.guard_mode = guard.mode;
        event.reference = delivery.reference.clone();
        event.reversal_of = delivery.reversal_of.clone();
        event.message_id = delivery.message.clone();
        event.reason = *self.dice.pick(&[None, Some(Reason::Replay)]);
        let accepts = match fault.then(|| self.dice.below(8)) {
            None | Some(0 | 1) => !seen,
            Some(7) => {
                window.clear();
                true
            }
            Some(fault) => (self.err(fault, &mut event) && !seen) || fault == 5,
        };
        if event.outcome == Outcome::Unknown {
            return self.tell(at, event, true);
        }
        if !accepts {
            event.effect = None;
            self.tell(at, event, true);
            return;
        }
        self.accept(at, delivery, event);
    }

    /// A fault of the decision; whether what is new is accepted all the same.
    fn err(&mut self, fault: u64, event: &mut Event) -> bool {
        use Reason::{GuardDown, Held, InProgress, Stale, TooOld};
        match fault {
            2 => {
                event.outcome = Outcome::Unknown;
                event.reason = *self.dice.pick(&[None, Some(Held), Some(Held), Some(InProgress)]);
            }
            3 => event.effect = Some(Effect::Failed),
            4 => event.effect = Some(Effect::Unknown),
            5 => event.guard_mode = Some(GuardMode::Off),
            _ => {
                event.reason = Some(*self.dice.pick(&[Stale, TooOld, InProgress, GuardDown]));
                return false;
            }
        }
        true
    }

    fn accept(&mut self, at: usize, delivery: &Delivery, mut event: Event) {
        let guard = &mut self.guards[at];
        let place = guard.place(&delivery.player, &delivery.signature);
        let window = guard.windows.entry(place).or_default();
        event.reason = None;
        event.outcome = if delivery.late { Outcome::LateAccepted } else { Outcome::Processed };
        let mut fell = Vec::new();
        if !window.contains(&delivery.signature) {
            window.push_back(delivery.signature.clone());
        }
        while window.len() > guard.cap {
            fell.extend(window.pop_front());
        }
        if guard.tells_evictions && guard.inline {
            event.evicted = fell;
        } else if guard.tells_evictions {
            for signature in fell {
                let mut eviction = Event { signature, ..event.clone() };
                eviction.outcome = Outcome::Evicted;
                eviction.reason = *self.dice.pick(&[
                    None,
                    Some(Reason::Fifo),
                    Some(Reason::Fifo),
                    Some(Reason::Ttl),
                ]);
                (eviction.effect, eviction.reference, eviction.reversal_of) = (None, None, None);
                eviction.message_id = None;
                self.tell(at, eviction, true);
            }
        }
        if self.dice.chance(self.mix.fault / 3) {
            event.booked_room = Some(id("r1"));
        }
        self.extras.state(self.dice, &mut event);
        self.extras.accepted(self.dice, at, &event);
        self.tell(at, event, true);
    }

    /// The event goes its way, if nothing befalls it.
    fn tell(&mut self, at: usize, mut event: Event, with_window: bool) {
        let guard = &mut self.guards[at];
        let place = guard.place(event.player.as_str(), &event.signature);
        let len = guard.windows.get(&place).map_or(0, VecDeque::len);
        if guard.tells_window && with_window {
            let (len, cap) = (len as u64, guard.cap as u64);
            let len = if self.dice.chance(self.mix.fault / 3) { self.dice.below(6) } else { len };
            event.window = Some(Window { len, cap, scope: guard.scope });
        }
        event.occurred_us = self.now_us + guard.skew_us;
        if guard.counts {
            guard.seq += 1;
            (event.boot, event.seq) = (Some(guard.boot), Some(guard.seq));
        } else {
            guard.event_ids += 1;
            event.event_id = Some(id(&format!("e{}", guard.event_ids)));
        }
        if self.dice.chance(self.mix.lost) {
            if let (Some((boot, seq)), true) = (event.sequence(), self.dice.chance(30)) {
                self.hear(Said::Bad(event.from, boot, seq), 100_000);
            }
            return;
        }
        let delay_us = if self.dice.chance(self.mix.delayed) {
            let delays_us = [1_000_000, 5_000_000, 20_000_000, 29_000_000, 100_000_000];
            let usual = if self.mix.calm { 3 } else { delays_us.len() };
            *self.dice.pick(&delays_us[..usual])
        } else {
            self.dice.between(0, 200_000)
        };
        if self.dice.chance(5) {
            let again_us = delay_us + self.dice.between(0, 2_000_000);
            let mut again = event.clone();
            if self.dice.chance(20) {
                again.reference = Some(id("other"));
            }
            self.hear(Said::Event(Box::new(again)), again_us);
        }
        self.hear(Said::Event(Box::new(event)), delay_us);
    }

    fn hear(&mut self, said: Said, delay_us: i64) {
        // No clock runs before the collector's by more than the skew of the guards.
        let received_us = self.now_us + 300_000 + delay_us;
        self.stream.push(Entry { received_us, said });
    }

    fn heartbeat(&mut self, at: usize, state: SourceState) {
        let guard = &self.guards[at];
        if !guard.watched {
            return;
        }
        let heartbeat = Heartbeat {
            from: guard.from.clone(),
            boot: guard.boot,
            last_seq: guard.seq,
            at_us: self.now_us + guard.skew_us,
            ledgers: vec![id("settle")],
            state,
        };
        // Nothing to measure: no offset corrects its times.
        let received_us = heartbeat.at_us;
        self.stream.push(Entry { received_us, said: Said::Heartbeat(heartbeat) });
    }

    fn restart(&mut self, at: usize) {
        if self.dice.chance(60) {
            self.heartbeat(at, SourceState::Closing);
        }
        let usual = if self.mix.calm { 2 } else { 3 };
        self.now_us += *self.dice.pick(&[500_000, 3_000_000, 70_000_000][..usual]);
        let guard = &mut self.guards[at];
        guard.boot = match guard.boot {
            Boot::Number(n) => Boot::Number(n + 1),
            Boot::Started { .. } => Boot::Started { at_us: self.now_us },
        };
        guard.seq = 0;
        if self.dice.chance(50) {
            guard.windows.clear();
        }
        if self.mix.calm || self.dice.chance(70) {
            self.heartbeat(at, SourceState::Running);
        }
    }
}
