//! Streams of sources whose clocks go astray: far off, set back, ahead of their numbers, over holes
//! and restarts. Beside what they settle, they tell how deliveries move.

use dedupwatch::outcome::{
    Boot, DeliveryState, Event, Heartbeat, Outcome, SourceName, SourceState, Transition,
};

use super::BEGIN_US;
use super::dice::Dice;
use super::guards::{id, named, settlement};
use super::stream::{Entry, Said, Stream};

const SECOND_US: i64 = 1_000_000;

struct Ticker {
    from: SourceName,
    boot: Boot,
    seq: u64,
    moves: u64,
    /// States of rooms told.
    states: u64,
    watched: bool,
    counts: bool,
    /// How far its clock is behind.
    behind_us: i64,
}

struct Ticks<'a> {
    dice: &'a mut Dice,
    tickers: Vec<Ticker>,
    now_us: i64,
    stream: Stream,
    /// In percent: how often its clock falls, a word is lost, comes late.
    falls: u64,
    lost: u64,
    late: u64,
}

/// A stream of this seed.
pub fn stream(dice: &mut Dice) -> Stream {
    let tickers = ["a", "b"][..dice.index(2) + 1].iter().map(|name| ticker(dice, name)).collect();
    let every_us = *dice.pick(&[1, 5, 5, 6, 30]) * SECOND_US;
    let falls = *dice.pick(&[0, 5, 20]);
    let (lost, late) = (*dice.pick(&[0, 5, 15]), *dice.pick(&[0, 10, 30]));
    let beats = dice.between(3, 28);
    let stream = Vec::new();
    let mut ticks = Ticks { dice, tickers, now_us: BEGIN_US, stream, falls, lost, late };
    for _ in 0..beats {
        for at in 0..ticks.tickers.len() {
            ticks.step(at);
        }
        ticks.now_us += every_us;
    }
    for at in 0..ticks.tickers.len() {
        let state = *ticks.dice.pick(&[SourceState::Closing, SourceState::Running]);
        ticks.heartbeat(at, state);
    }
    ticks.stream
}

fn ticker(dice: &mut Dice, name: &str) -> Ticker {
    let boot = *dice.pick(&[Boot::Number(1), Boot::Started { at_us: BEGIN_US - SECOND_US }]);
    let far_us = [0, 0, 0, 400_000, 3 * SECOND_US, 60 * SECOND_US, 61 * SECOND_US, 300 * SECOND_US];
    let behind_us = *dice.pick(&far_us) + dice.between(-1, 1);
    let counts = dice.chance(90);
    Ticker {
        from: named(name),
        boot,
        seq: if dice.chance(15) { dice.below(4) } else { 0 },
        moves: 0,
        states: 0,
        watched: counts && dice.chance(85),
        counts,
        behind_us: if dice.chance(50) { behind_us } else { -behind_us },
    }
}

impl Ticks<'_> {
    fn step(&mut self, at: usize) {
        if self.dice.chance(4) {
            self.restart(at);
        }
        if self.dice.chance(1) {
            // Somebody sets it right, or wrong.
            self.tickers[at].behind_us = *self.dice.pick(&[0, -61 * SECOND_US, 90 * SECOND_US]);
        }
        if self.dice.chance(90) {
            self.heartbeat(at, SourceState::Running);
        }
        for _ in 0..self.dice.below(4) {
            self.now_us += self.dice.between(1, 50_000);
            if self.dice.chance(15) {
                self.moved(at);
            } else {
                self.settled(at);
            }
        }
    }

    /// By its own clock.
    fn clock_us(&mut self, at: usize) -> i64 {
        let falls = self.dice.chance(self.falls);
        let by_us = [1, 900, 400_000, 999_999, 1_000_000, 1_000_001, 2_000_000, 70_000_000];
        let ahead_us = if falls { *self.dice.pick(&by_us) } else { 0 };
        self.now_us - self.tickers[at].behind_us + ahead_us
    }

    fn settled(&mut self, at: usize) {
        let occurred_us = self.clock_us(at);
        let ticker = &mut self.tickers[at];
        ticker.seq += 1;
        let player = id(&format!("p{}", ticker.seq));
        let signature = settlement(ticker.from.source.as_str(), ticker.seq, 5, false);
        let mut event = Event::new(ticker.from.clone(), player, signature, Outcome::Processed);
        event.occurred_us = occurred_us;
        if self.dice.chance(25) {
            count_state(self.dice, ticker, &mut event);
        }
        if ticker.counts {
            (event.boot, event.seq) = (Some(ticker.boot), Some(ticker.seq));
        } else {
            event.event_id = Some(id(&format!("e{}", ticker.seq)));
        }
        let bad = event.sequence().map(|(boot, seq)| Said::Bad(event.from.clone(), boot, seq));
        if self.dice.chance(self.lost) {
            if let Some(bad) = bad.filter(|_| self.dice.chance(50)) {
                self.hear(bad);
            }
            return;
        }
        self.hear(Said::Event(Box::new(event)));
    }

    fn hear(&mut self, said: Said) {
        let late_us = [SECOND_US, 20 * SECOND_US, 29 * SECOND_US, 32 * SECOND_US, 95 * SECOND_US];
        let late = self.dice.chance(self.late);
        let late_us = if late { *self.dice.pick(&late_us) } else { self.dice.between(0, 200_000) };
        self.stream.push(Entry { received_us: self.now_us + late_us, said });
    }

    /// A move of a delivery: forward or not, told once or again, or otherwise.
    fn moved(&mut self, at: usize) {
        let clock_us = self.clock_us(at);
        let states = DeliveryState::ALL;
        let (left, entered) = (*self.dice.pick(&states), *self.dice.pick(&states));
        let trace = self.dice.below(3);
        let ticker = &mut self.tickers[at];
        ticker.moves += 1;
        let counted = ticker.counts.then_some((ticker.boot, ticker.moves));
        let moved = Transition {
            from: ticker.from.clone(),
            boot: counted.map(|(boot, _)| boot),
            seq: counted.map(|(_, seq)| seq),
            event_id: counted.is_none().then(|| id(&format!("m{}", ticker.moves))),
            trace_id: id(&format!("t{trace}")),
            key: id("k"),
            left,
            entered,
            reason: None,
            at_us: clock_us,
        };
        if self.dice.chance(20) {
            let mut again = moved.clone();
            again.at_us += 5;
            if self.dice.chance(40) {
                again.entered = *self.dice.pick(&states);
            }
            self.hear(Said::Moved(Box::new(again)));
        }
        self.hear(Said::Moved(Box::new(moved)));
    }

    fn heartbeat(&mut self, at: usize, state: SourceState) {
        let ticker = &self.tickers[at];
        if !ticker.watched {
            return;
        }
        let heartbeat = Heartbeat {
            from: ticker.from.clone(),
            boot: ticker.boot,
            last_seq: ticker.seq,
            at_us: self.now_us - ticker.behind_us,
            ledgers: vec![id("settle")],
            state,
        };
        // The network only ever adds.
        let slow_us = if self.dice.chance(50) { 0 } else { self.dice.between(0, 300_000) };
        let received_us = self.now_us + slow_us;
        self.stream.push(Entry { received_us, said: Said::Heartbeat(heartbeat) });
    }

    fn restart(&mut self, at: usize) {
        if self.dice.chance(70) {
            self.heartbeat(at, SourceState::Closing);
        }
        self.now_us += *self.dice.pick(&[400_000, 3 * SECOND_US]);
        if self.dice.chance(40) {
            let by_us = [1_000, 999_999, 3 * SECOND_US, 5 * SECOND_US];
            self.tickers[at].behind_us += *self.dice.pick(&by_us);
        }
        let clock_us = self.now_us - self.tickers[at].behind_us;
        let ticker = &mut self.tickers[at];
        ticker.boot = match ticker.boot {
            Boot::Number(n) => Boot::Number(n + 1),
            Boot::Started { .. } => Boot::Started { at_us: clock_us },
        };
        (ticker.seq, ticker.moves) = (0, 0);
        if self.dice.chance(80) {
            self.heartbeat(at, SourceState::Running);
        }
    }
}

/// A version near where counters go round, of a room with few states.
fn count_state(dice: &mut Dice, ticker: &mut Ticker, event: &mut Event) {
    let (few, limits) = (6, [1 << 8, 1 << 16, 1 << 32, 1 << 53, 1 << 63, 0]);
    let room = ticker.states / few;
    let limit: u64 = limits[usize::try_from(room).unwrap() % limits.len()];
    ticker.states += 1;
    event.player = ticker.from.source.clone();
    event.signature = settlement(&format!("w{room}"), ticker.states, 5, false);
    let near = [limit.wrapping_sub(2), limit.wrapping_sub(1), limit, limit.wrapping_add(1), 0, 1];
    event.state_version = Some(*dice.pick(&near));
}
