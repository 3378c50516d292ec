//! Streams of windows that are small, and lose: a few settlements of each player, with all that
//! befalls a window.

use std::collections::{BTreeMap, VecDeque};

use dedupwatch::outcome::{
    Boot, Effect, Event, GuardMode, Heartbeat, Outcome, Reason, Signature, SourceState, Window,
    WindowScope,
};

use super::BEGIN_US;
use super::dice::Dice;
use super::guards::{id, named, settlement};
use super::stream::{Entry, Said, Stream};

/// Of one player no more are told: all of it is remembered.
const TOLD_MAX: u64 = 12;

/// Threads cross within this.
const CROSSED_US: i64 = 20_000;

struct Pane<'a> {
    dice: &'a mut Dice,
    name: &'static str,
    boot: u64,
    seq: u64,
    mode: Option<GuardMode>,
    scope: WindowScope,
    cap: u64,
    watched: bool,
    threads: bool,
    inline: bool,
    windows: BTreeMap<String, VecDeque<Signature>>,
    told: BTreeMap<&'static str, u64>,
    now_us: i64,
    stream: Stream,
}

/// A stream of this seed.
pub fn stream(dice: &mut Dice) -> Stream {
    let mut stream = Stream::new();
    for name in &["a", "b"][..dice.index(2) + 1] {
        stream.extend(one(dice, name));
    }
    stream
}

fn one(dice: &mut Dice, name: &'static str) -> Stream {
    let mode = *dice.pick(&[
        None,
        Some(GuardMode::Local),
        Some(GuardMode::Local),
        Some(GuardMode::Shared),
    ]);
    let scope = *dice.pick(&[WindowScope::Player, WindowScope::Player, WindowScope::Room]);
    let (cap, steps) = (dice.below(4) + 1, dice.between(6, 24));
    let (watched, threads, inline) = (dice.chance(75), dice.chance(30), dice.chance(50));
    let step_us = *dice.pick(&[5_000, 2_000_000, 20_000_000, 200_000_000]);
    let mut pane = Pane {
        dice,
        name,
        boot: 1,
        seq: 0,
        mode,
        scope,
        cap,
        watched,
        threads,
        inline,
        windows: BTreeMap::new(),
        told: BTreeMap::new(),
        now_us: BEGIN_US,
        stream: Stream::new(),
    };
    pane.beat(SourceState::Running);
    for round in 0..steps.unsigned_abs() {
        pane.now_us += pane.dice.between(1_000, step_us.max(2_000));
        pane.step(round / 3);
        pane.beat(SourceState::Running);
    }
    pane.now_us += 2_000_000;
    pane.beat(SourceState::Closing);
    pane.stream
}

impl Pane<'_> {
    fn step(&mut self, round: u64) {
        if self.dice.chance(6) {
            self.restart();
        }
        if self.dice.chance(3) {
            self.cap = self.dice.below(4) + 1;
        }
        let players = if self.name == "a" { ["p", "q"] } else { ["p", "r"] };
        let player = *self.dice.pick(&players);
        if *self.told.entry(player).or_default() >= TOLD_MAX {
            return;
        }
        let room = *self.dice.pick(&["x", "x", "y"]);
        let round = round.saturating_sub(self.dice.below(2));
        let signature = settlement(room, round, *self.dice.pick(&[5, 7]), self.dice.chance(50));
        let place = match self.scope {
            WindowScope::Room => format!("{player} {room}"),
            _ => player.to_owned(),
        };
        let window = self.windows.entry(place.clone()).or_default();
        let seen = window.contains(&signature);
        let mut fell = Vec::new();
        if !seen {
            window.push_back(signature.clone());
            let cap = usize::try_from(self.cap).unwrap();
            fell = window.drain(..window.len().saturating_sub(cap)).collect();
        }
        if self.dice.chance(7) {
            window.clear();
        } else if self.dice.chance(5) {
            window.pop_front();
        }
        let begin = self.stream.len();
        let outcome = if seen { Outcome::ReplayBlocked } else { Outcome::Processed };
        let mut event = Event::new(named(self.name), id(player), signature, outcome);
        if self.inline {
            event.evicted = fell;
        } else {
            for gone in fell {
                let mut eviction = Event::new(named(self.name), id(player), gone, Outcome::Evicted);
                eviction.reason = *self.dice.pick(&[None, Some(Reason::Fifo), Some(Reason::Ttl)]);
                self.tell(eviction, &place, 1);
            }
        }
        if !seen && self.dice.chance(8) {
            event.effect = Some(*self.dice.pick(&[Effect::Failed, Effect::Unknown]));
        }
        if !seen && self.dice.chance(15) {
            event.outcome = Outcome::LateAccepted;
        }
        self.tell(event, &place, 0);
        *self.told.entry(player).or_default() += (self.stream.len() - begin) as u64;
        if self.threads && self.dice.chance(30) {
            self.cross();
        }
    }

    fn restart(&mut self) {
        if self.dice.chance(60) {
            self.beat(SourceState::Closing);
        }
        self.now_us += 3_000_000;
        (self.boot, self.seq) = (self.boot + 1, 0);
        if self.dice.chance(60) {
            self.windows.clear();
        }
        self.beat(SourceState::Running);
    }

    fn tell(&mut self, mut event: Event, place: &str, fewer: u64) {
        self.seq += 1;
        (event.boot, event.seq) = (Some(Boot::Number(self.boot)), Some(self.seq));
        event.occurred_us = self.now_us;
        event.guard_mode = self.mode;
        let len = self.windows.get(place).map_or(0, |window| window.len() as u64);
        let window = Window { len: len.saturating_sub(fewer), cap: self.cap, scope: self.scope };
        event.window = (!self.dice.chance(6)).then_some(window);
        if !self.dice.chance(2) {
            let received_us = self.now_us + self.dice.between(0, 500_000);
            self.stream.push(Entry { received_us, said: Said::Event(Box::new(event)) });
        }
    }

    /// Two threads took their numbers the other way round.
    fn cross(&mut self) {
        let boot = Some(Boot::Number(self.boot));
        let mut seqs: Vec<(i64, &mut Option<u64>)> = Vec::new();
        for entry in &mut self.stream {
            match &mut entry.said {
                Said::Event(event) if event.boot == boot => {
                    seqs.push((event.occurred_us, &mut event.seq));
                }
                _ => {}
            }
        }
        if let [.., (one_us, one), (two_us, two)] = seqs.as_mut_slice()
            && *two_us - *one_us < CROSSED_US
        {
            std::mem::swap(*one, *two);
        }
    }

    fn beat(&mut self, state: SourceState) {
        let heartbeat = Heartbeat {
            from: named(self.name),
            boot: Boot::Number(self.boot),
            last_seq: self.seq,
            at_us: self.now_us,
            ledgers: vec![id("settle")],
            state,
        };
        if self.watched {
            let said = Said::Heartbeat(heartbeat);
            self.stream.push(Entry { received_us: self.now_us, said });
        }
    }
}
