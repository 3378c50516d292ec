//! A fleet of fifty for a week: pods come and go every hour, each crashes once a week and takes its
//! last words with it, and now and then a guard refuses what it never accepted.
//!
//! Of the heartbeats, six million in a week, those are left out that say nothing new: one in 10 min
//! stays, those around a crash, and those that the verdict on a block waits for.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use dedupwatch::audit::{Audit, Finding, Settings};
use dedupwatch::guard::SignatureWindow;
use dedupwatch::outcome::{
    Body, Boot, Event, Game, GivenUp, GuardMode, Heartbeat, KeyedHash, Net, Outcome, Position,
    Record, Signature, Silent, SourceName, SourceState,
};

use super::dice::Dice;
use super::script::id;
use super::world::Key;
use super::{BEGIN_US, SECOND_US};
use crate::cases::fold;

const MINUTE_US: i64 = 60 * SECOND_US;
const HOUR_US: i64 = 60 * MINUTE_US;
const WEEK_US: i64 = 7 * 24 * HOUR_US;
const PODS: usize = 50;
const PLAYERS: usize = 40;
/// Between two heartbeats, and between two that are kept.
const BEAT_US: i64 = 5 * SECOND_US;
const KEPT_US: i64 = 10 * MINUTE_US;
/// A message comes back for less than the horizon of two hours.
const COPY_US: i64 = 110 * MINUTE_US;
/// One settlement in so many is refused by mistake.
const REFUSED_ONE_IN: i64 = 250;

struct Pod {
    name: SourceName,
    boot: Boot,
    seq: u64,
    ahead_us: i64,
    windows: BTreeMap<usize, SignatureWindow>,
    up_us: i64,
    /// It crashes soon after its next acceptance, or in an hour.
    doomed: bool,
    /// From this number on nothing is told any more.
    mute: Option<u64>,
}

#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum What {
    Beat(usize),
    LastBeat(usize),
    AllBeat,
    Crash(usize),
    Doom,
    Scale,
    Game { player: usize, round: u64, games_left: i64 },
    Deliver { player: usize, round: u64, last: bool, again: bool },
}

/// The fleet, and what is found of it.
pub struct Week {
    dice: Dice,
    mode: GuardMode,
    /// Who crashed comes back under its name; else another pod takes its place.
    comes_back: bool,
    pods: BTreeMap<usize, Pod>,
    pub made: usize,
    shared: BTreeMap<usize, SignatureWindow>,
    due: BinaryHeap<Reverse<(i64, u64, What)>>,
    order: u64,
    on_the_way: BTreeMap<(i64, u64), Body>,
    audit: Audit,
    pub rows: BTreeMap<String, Finding>,
    pub records: i64,
    pub events: u64,
    pub blocks: BTreeSet<Key>,
    pub untold: BTreeSet<Key>,
    pub wrong: BTreeSet<Key>,
    pub crashes: u64,
}

impl Week {
    pub fn new(mode: GuardMode, comes_back: bool) -> Self {
        let mut week = Self {
            dice: Dice::new(71),
            mode,
            comes_back,
            pods: BTreeMap::new(),
            made: 0,
            shared: BTreeMap::new(),
            due: BinaryHeap::new(),
            order: 0,
            on_the_way: BTreeMap::new(),
            audit: Audit::in_memory(Settings::default(), KeyedHash::new([8; 16])),
            rows: BTreeMap::new(),
            records: 0,
            events: 0,
            blocks: BTreeSet::new(),
            untold: BTreeSet::new(),
            wrong: BTreeSet::new(),
            crashes: 0,
        };
        (0..PODS).for_each(|_| week.add_pod(BEGIN_US));
        for player in 0..PLAYERS {
            let at_us = BEGIN_US + week.dice.between(0, 6 * HOUR_US);
            week.plan(at_us, What::Game { player, round: 1, games_left: 10 });
        }
        for _ in 0..PODS {
            let at_us = BEGIN_US + week.dice.between(0, WEEK_US - HOUR_US);
            week.plan(at_us, What::Doom);
        }
        (1..7 * 24).for_each(|hour| week.plan(BEGIN_US + hour * HOUR_US, What::Scale));
        week
    }

    fn plan(&mut self, at_us: i64, what: What) {
        self.order += 1;
        self.due.push(Reverse((at_us, self.order, what)));
    }

    pub fn run(&mut self) {
        while let Some(Reverse((at_us, _, what))) = self.due.pop() {
            if at_us > BEGIN_US + WEEK_US {
                break;
            }
            self.hear_until(at_us);
            match what {
                What::Beat(pod) => self.beat(pod, at_us),
                What::LastBeat(pod) => self.heartbeat(pod, at_us, SourceState::Running),
                What::AllBeat => self.all_beat(at_us),
                What::Crash(pod) => self.crash(pod, at_us),
                What::Doom => {
                    let pods: Vec<usize> = self.pods.keys().copied().collect();
                    let pod = pods[self.dice.below(pods.len())];
                    self.pods.get_mut(&pod).unwrap().doomed = true;
                    self.plan(at_us + HOUR_US, What::Crash(pod));
                }
                What::Scale => self.scale(at_us),
                What::Game { player, round, games_left } => {
                    self.game(player, round, games_left, at_us);
                }
                What::Deliver { player, round, last, again } => {
                    self.deliver(player, &settlement(player, round, last), again, at_us);
                }
            }
        }
        for pod in self.pods.keys().copied().collect::<Vec<_>>() {
            self.heartbeat(pod, BEGIN_US + WEEK_US + SECOND_US, SourceState::Closing);
        }
        self.hear_until(BEGIN_US + WEEK_US + MINUTE_US);
        self.send(BEGIN_US + WEEK_US + 2 * HOUR_US, Body::Tick);
        self.hear_until(i64::MAX);
    }

    fn send(&mut self, received_us: i64, body: Body) {
        self.order += 1;
        self.on_the_way.insert((received_us, self.order), body);
    }

    fn hear_until(&mut self, until_us: i64) {
        while let Some(first) = self.on_the_way.first_entry() {
            if first.key().0 > until_us {
                return;
            }
            let ((received_us, _), body) = first.remove_entry();
            self.records += 1;
            let position = Position { collector: 1, n: self.records };
            let record = Record { position, received_us, body };
            fold(&mut self.audit, &mut self.rows, &record);
        }
    }

    fn add_pod(&mut self, at_us: i64) {
        self.made += 1;
        let name = SourceName {
            service: id("settle"),
            env: id("prod"),
            source: id(&format!("pod-{}", self.made)),
        };
        let ahead_us = self.dice.between(-150_000, 150_000);
        let pod = Pod {
            name,
            boot: Boot::Started { at_us: at_us + ahead_us },
            seq: 0,
            ahead_us,
            windows: BTreeMap::new(),
            up_us: at_us,
            doomed: false,
            mute: None,
        };
        self.pods.insert(self.made, pod);
        self.plan(at_us, What::Beat(self.made));
    }

    /// Some say goodbye, others begin.
    fn scale(&mut self, at_us: i64) {
        for _ in 0..self.dice.below(5) {
            let pods: Vec<usize> = self.pods.keys().copied().collect();
            let pod = pods[self.dice.below(pods.len())];
            if self.pods.len() > PODS - 8 && !self.pods[&pod].doomed {
                self.heartbeat(pod, at_us, SourceState::Closing);
                self.pods.remove(&pod);
            }
        }
        for _ in 0..self.dice.below(5) {
            if self.pods.len() < PODS + 8 {
                self.add_pod(at_us);
            }
        }
    }

    fn beat(&mut self, pod: usize, at_us: i64) {
        let Some(up_us) = self.pods.get(&pod).map(|pod| pod.up_us) else { return };
        if up_us <= at_us {
            self.heartbeat(pod, at_us, SourceState::Running);
            self.plan(at_us + KEPT_US, What::Beat(pod));
        } else {
            self.plan(up_us, What::Beat(pod));
        }
    }

    /// All who can.
    fn all_beat(&mut self, at_us: i64) {
        let can = |pod: &Pod| pod.up_us <= at_us && pod.mute.is_none();
        let pods = self.pods.iter().filter(|(_, pod)| can(pod)).map(|(at, _)| *at);
        for pod in pods.collect::<Vec<_>>() {
            self.heartbeat(pod, at_us, SourceState::Running);
        }
    }

    fn heartbeat(&mut self, pod: usize, at_us: i64, state: SourceState) {
        let pod = &self.pods[&pod];
        let heartbeat = Heartbeat {
            from: pod.name.clone(),
            boot: pod.boot,
            last_seq: pod.seq,
            at_us: at_us + pod.ahead_us,
            ledgers: vec![id("settle")],
            state,
        };
        let lost = pod.mute.filter(|first| *first <= pod.seq).map(|first_seq| GivenUp {
            from: pod.name.clone(),
            boot: pod.boot,
            first_seq,
            last_seq: pod.seq,
        });
        let received_us = at_us + 20_000;
        self.send(received_us, Body::Heartbeat(heartbeat));
        if let Some(lost) = lost {
            self.send(received_us + 30 * SECOND_US, Body::GivenUp(lost));
        }
    }

    /// It ends without a word, and begins again, or another does.
    fn crash(&mut self, at: usize, at_us: i64) {
        if !self.pods.get(&at).is_some_and(|pod| pod.doomed) {
            return;
        }
        self.crashes += 1;
        let up_us = at_us + self.dice.between(2, 30) * SECOND_US;
        if !self.comes_back {
            let Some(Pod { name: from, boot, .. }) = self.pods.remove(&at) else { return };
            self.send(at_us + MINUTE_US, Body::Silent(Silent { from, boot }));
            return self.add_pod(up_us);
        }
        let pod = self.pods.get_mut(&at).unwrap();
        pod.up_us = up_us;
        pod.boot = Boot::Started { at_us: pod.up_us + pod.ahead_us };
        (pod.seq, pod.doomed, pod.mute) = (0, false, None);
    }

    /// A player plays some games, and comes back after hours.
    fn game(&mut self, player: usize, round: u64, games_left: i64, at_us: i64) {
        let final_us = self.dice.between(5, 40) * SECOND_US;
        for (last, after_us) in [(false, 0), (true, final_us)] {
            self.plan(at_us + after_us, What::Deliver { player, round, last, again: false });
            while self.dice.chance(15) {
                let long = self.dice.chance(10);
                let most_us = if long { COPY_US } else { 90 * SECOND_US };
                let copy_us = after_us + self.dice.between(10_000, most_us);
                self.plan(at_us + copy_us, What::Deliver { player, round, last, again: true });
            }
        }
        let (pause_us, games_left) = if games_left > 0 {
            (self.dice.between(45, 120) * SECOND_US, games_left - 1)
        } else {
            (self.dice.between(30, 240) * MINUTE_US, self.dice.between(3, 20))
        };
        self.plan(at_us + pause_us, What::Game { player, round: round + 1, games_left });
    }

    fn route(&mut self, player: usize, at_us: i64) -> usize {
        let up: Vec<usize> =
            self.pods.iter().filter(|(_, pod)| pod.up_us <= at_us).map(|(at, _)| *at).collect();
        if self.mode == GuardMode::Shared {
            return up[self.dice.below(up.len())];
        }
        // The same one, while it is there.
        let weight = |pod: &&usize| (player * 7_919 + **pod * 104_729) % 15_485_863 * 31 % 1_009;
        *up.iter().max_by_key(weight).unwrap()
    }

    fn deliver(&mut self, player: usize, signature: &Signature, again: bool, at_us: i64) {
        let at = self.route(player, at_us);
        let refused = !again && self.dice.between(1, REFUSED_ONE_IN) == 1;
        let pod = self.pods.get_mut(&at).unwrap();
        let windows = match self.mode {
            GuardMode::Shared => &mut self.shared,
            _ => &mut pod.windows,
        };
        let window = windows.entry(player).or_default();
        if again && !window.remembers(signature) {
            return;
        }
        let key = (id(&format!("p{player}")), signature.clone());
        let (outcome, evicted, window) = if refused {
            self.wrong.insert(key.clone());
            let window = dedupwatch::outcome::Window {
                len: window.len() as u64,
                cap: window.capacity().get() as u64,
                scope: dedupwatch::outcome::WindowScope::Player,
            };
            (Outcome::ReplayBlocked, Vec::new(), window)
        } else {
            let decision = window.check(signature);
            (decision.verdict.into(), decision.evicted, decision.window)
        };
        let mut event = Event::new(pod.name.clone(), key.0.clone(), signature.clone(), outcome);
        pod.seq += 1;
        (event.boot, event.seq) = (Some(pod.boot), Some(pod.seq));
        event.occurred_us = at_us + pod.ahead_us;
        (event.window, event.evicted) = (Some(window), evicted);
        event.guard_mode = Some(self.mode);
        if pod.doomed && event.is_acceptance() && pod.mute.is_none() {
            self.end(at, at_us);
            self.come_back(player, signature, at_us);
        }
        self.told(at, key, event, at_us);
    }

    /// What a pod decides from its newest number on is never told, and soon it crashes. Its
    /// heartbeats still come, or not.
    fn end(&mut self, at: usize, at_us: i64) {
        let crash_us = at_us + self.dice.between(1, 20) * SECOND_US;
        self.plan(crash_us, What::Crash(at));
        let beaten_us = self.dice.between(1, BEAT_US);
        let pod = self.pods.get_mut(&at).unwrap();
        pod.seq -= 1;
        self.heartbeat(at, at_us - beaten_us, SourceState::Running);
        let pod = self.pods.get_mut(&at).unwrap();
        pod.seq += 1;
        pod.mute = Some(pod.seq);
        let mut beat_us = at_us - beaten_us + BEAT_US;
        let come = self.dice.chance(50);
        while come && beat_us < crash_us {
            self.plan(beat_us, What::LastBeat(at));
            beat_us += BEAT_US;
        }
    }

    /// What was lost comes again, for sure.
    fn come_back(&mut self, player: usize, signature: &Signature, at_us: i64) {
        let Signature::Settlement { game, last, .. } = signature else { return };
        let round = game.round.as_str().parse().unwrap();
        for most_us in [30 * SECOND_US, 90 * SECOND_US, COPY_US] {
            let copy_us = at_us + self.dice.between(SECOND_US, most_us);
            self.plan(copy_us, What::Deliver { player, round, last: *last, again: true });
        }
    }

    fn told(&mut self, at: usize, key: Key, event: Event, at_us: i64) {
        self.events += 1;
        if self.pods[&at].mute.is_some() {
            if event.is_acceptance() {
                self.untold.insert(key.clone());
            }
            self.wrong.remove(&key);
            return;
        }
        let is_wrong = self.wrong.contains(&key);
        if is_wrong || self.untold.contains(&key) {
            self.plan(at_us + 35 * SECOND_US, What::AllBeat);
        }
        if event.outcome == Outcome::ReplayBlocked && !is_wrong {
            self.blocks.insert(key);
        }
        let received_us = at_us + self.dice.between(20_000, 1_500_000);
        self.send(received_us, Body::Event(Box::new(event)));
    }
}

/// The same amount whenever it comes.
fn settlement(player: usize, round: u64, last: bool) -> Signature {
    let room = id(&format!("r{}", player % 40));
    let game = Game { session: None, room, round: id(&round.to_string()) };
    let net = Net(100 + i64::from(last));
    Signature::Settlement { game, net, last }
}
