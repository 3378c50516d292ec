//! Plays a script with real guards: what each instance decides and says, and what is true of each
//! settlement.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::num::NonZeroUsize;

use dedupwatch::guard::SignatureWindow;
use dedupwatch::outcome::{
    Boot, Event, Game, GuardMode, Heartbeat, Id, Outcome, Reason, Signature, SourceName,
    SourceState, Window, WindowScope,
};

use super::dice::Dice;
use super::plan::{Balance, Evictions, Plan};
use super::script::{Delivery, Restart, Step, What, id};
use super::{BEGIN_US, SECOND_US};

/// Between two heartbeats (`wire.md`).
const BEAT_US: i64 = 5 * SECOND_US;
/// How long the fleet goes on after the last step, so that time passes all graces.
const AFTER_US: i64 = 120 * SECOND_US;

/// What an instance says, and when.
#[derive(Clone, Debug)]
pub struct Said {
    pub at_us: i64,
    pub instance: usize,
    pub words: Words,
    /// When its thread takes its number.
    pub numbered_us: i64,
}

#[derive(Clone, Debug)]
pub enum Words {
    Event(Box<Event>),
    Heartbeat(Heartbeat),
}

/// A settlement of a player.
pub type Key = (Id, Signature);

/// All that was said, and what was never told.
#[derive(Default)]
pub struct Play {
    pub said: Vec<Said>,
    /// Numbers given out by each run.
    pub numbers: BTreeMap<(SourceName, Boot), Vec<u64>>,
    /// What was accepted, told or not.
    pub accepted: BTreeSet<Key>,
    /// A window let go of what may come again: no healthy fleet.
    pub unhealthy: bool,
}

struct Instance {
    from: SourceName,
    boot: Boot,
    seq: u64,
    runs: u64,
    windows: BTreeMap<(usize, Option<Id>), SignatureWindow>,
    up_us: i64,
    beaten_us: i64,
}

struct World<'a> {
    plan: &'a Plan,
    instances: Vec<Instance>,
    shared: BTreeMap<(usize, Option<Id>), SignatureWindow>,
    moved: usize,
    threads: Dice,
    /// The games of each player by first settlement.
    games: BTreeMap<usize, Vec<Game>>,
    play: Play,
}

/// Plays the steps.
pub fn play(plan: &Plan, steps: &[Step]) -> Play {
    let mut world = World {
        plan,
        instances: (0..plan.instances).map(|at| Instance::new(plan, at)).collect(),
        shared: BTreeMap::new(),
        moved: 0,
        threads: Dice::new(plan.seed ^ 0x7e),
        games: BTreeMap::new(),
        play: Play::default(),
    };
    let mut due: BinaryHeap<Reverse<(i64, usize)>> =
        steps.iter().enumerate().map(|(at, step)| Reverse((step.at_us, at))).collect();
    let mut now_us = BEGIN_US;
    while let Some(Reverse((at_us, index))) = due.pop() {
        world.beat(at_us);
        now_us = at_us;
        match &steps[index].what {
            What::Deliver(delivery) => {
                let at = world.route(delivery, at_us);
                let up_us = world.instances[at].up_us;
                if up_us > at_us {
                    // In the same order, as soon as somebody is back.
                    due.push(Reverse((up_us, index)));
                } else {
                    world.deliver(at, delivery, at_us);
                }
            }
            What::Restart(restart) => world.restart(restart, at_us),
            What::Rebalance(by) => world.moved += by,
        }
    }
    world.end(now_us);
    world.play
}

impl Instance {
    fn new(plan: &Plan, at: usize) -> Self {
        let mut instance = Self {
            from: SourceName { service: id("settle"), env: id("prod"), source: id("?") },
            boot: Boot::Number(0),
            seq: 0,
            runs: 0,
            windows: BTreeMap::new(),
            up_us: BEGIN_US,
            beaten_us: BEGIN_US - BEAT_US + 700_000 * at as i64,
        };
        instance.begin(plan, at, BEGIN_US - 10 * SECOND_US);
        instance
    }

    fn begin(&mut self, plan: &Plan, at: usize, now_us: i64) {
        if self.runs == 0 || plan.renamed {
            self.from.source = id(&format!("pod-{at}-{}", self.runs));
        }
        self.runs += 1;
        self.seq = 0;
        self.boot = if plan.started {
            Boot::Started { at_us: now_us + plan.ahead_us[at] }
        } else {
            Boot::Number(self.runs)
        };
        if !plan.keeps() {
            self.windows.clear();
        }
    }
}

impl World<'_> {
    /// The instance that a delivery reaches; the one that is back first, if none is there.
    fn route(&self, delivery: &Delivery, at_us: i64) -> usize {
        let by = match self.plan.balance {
            Balance::ByPlayer => delivery.player + self.moved,
            Balance::ByRoom => {
                let room = delivery.signature.room().unwrap().as_str();
                usize::from(room.as_bytes()[room.len() - 1]) + self.moved
            }
            Balance::NotSticky => delivery.to,
        };
        let all = (0..self.plan.instances).map(|i| (by + i) % self.plan.instances);
        let away = |at: &usize| (self.instances[*at].up_us - at_us).max(0);
        all.min_by_key(away).unwrap()
    }

    fn deliver(&mut self, at: usize, delivery: &Delivery, at_us: i64) {
        let plan = self.plan;
        let signature = &delivery.signature;
        let by_room = plan.scope == WindowScope::Room;
        let room = signature.room().filter(|_| by_room).cloned();
        let windows = match plan.mode {
            Some(GuardMode::Shared) => &mut self.shared,
            _ => &mut self.instances[at].windows,
        };
        let capacity = NonZeroUsize::new(plan.capacity).unwrap();
        let window = windows
            .entry((delivery.player, room))
            .or_insert_with(|| SignatureWindow::with_capacity(capacity));
        let player = id(&format!("p{}", delivery.player));
        if delivery.again && !window.remembers(signature) {
            return;
        }
        let before = window.len() as u64;
        let numbered_us = at_us + self.threads.between(0, plan.numbered_after_us);
        let decision = window.check(signature);
        let games = self.games.entry(delivery.player).or_default();
        let game = |signature: &Signature| signature.game().cloned().unwrap();
        if !games.contains(&game(signature)) {
            games.push(game(signature));
        }
        let live = &games[games.len().saturating_sub(2)..];
        self.play.unhealthy |= decision.evicted.iter().any(|gone| live.contains(&game(gone)));
        let from = self.instances[at].from.clone();
        let mut event = Event::new(from, player, signature.clone(), decision.verdict.into());
        event.occurred_us = at_us - delivery.stamped_before_us + plan.ahead_us[at];
        event.window = Some(Window { scope: plan.scope, ..decision.window });
        event.guard_mode = plan.mode;
        let key = format!("{}-{:?}", delivery.player, signature);
        self.dress(&mut event, delivery, &key);
        if plan.evictions == Evictions::BeforeIt {
            for (gone, left) in decision.evicted.iter().zip(1..) {
                let mut eviction = event.clone();
                eviction.signature = gone.clone();
                eviction.outcome = Outcome::Evicted;
                eviction.reason = None;
                eviction.window =
                    event.window.map(|window| Window { len: before - left, ..window });
                (eviction.reference, eviction.message_id) = (None, None);
                (eviction.state_version, eviction.state_hash) = (None, None);
                let numbered_us = at_us + self.threads.between(0, numbered_us - at_us);
                self.tell(at, eviction, at_us, numbered_us);
            }
        } else if plan.evictions == Evictions::WithTheAcceptance {
            event.evicted = decision.evicted;
        }
        if event.outcome == Outcome::ReplayBlocked {
            event.reason = (key.len() % 2 == 0).then_some(Reason::Replay);
        }
        self.tell(at, event, at_us, numbered_us);
    }

    /// What a settlement carries.
    fn dress(&self, event: &mut Event, delivery: &Delivery, key: &str) {
        let hash = key.bytes().fold(7_u64, |sum, byte| sum.wrapping_mul(31) + u64::from(byte));
        event.reference = self.plan.refs.then(|| id(&format!("ref-{hash}")));
        event.message_id = self.plan.messages.then(|| id(&hash.to_string()));
        if self.plan.states {
            event.state_version = Some(delivery.version);
            event.state_hash = Some(id(&format!("state-{}", delivery.version)));
        }
    }

    fn tell(&mut self, at: usize, mut event: Event, at_us: i64, numbered_us: i64) {
        let instance = &mut self.instances[at];
        instance.seq += 1;
        if self.plan.numbered {
            (event.boot, event.seq) = (Some(instance.boot), Some(instance.seq));
            let run = (event.from.clone(), instance.boot);
            self.play.numbers.entry(run).or_default().push(instance.seq);
        } else {
            event.event_id = Some(id(&format!("e{}-{}", instance.boot, instance.seq)));
        }
        if event.is_acceptance() {
            let key = (event.player.clone(), event.signature.clone());
            assert!(self.play.accepted.insert(key), "not healthy: {event:?}");
        }
        let words = Words::Event(Box::new(event));
        self.play.said.push(Said { at_us, instance: at, words, numbered_us });
    }

    /// Threads took their numbers in the order in which they came to it.
    fn number(&mut self, at: usize) {
        let (from, boot) = (&self.instances[at].from, Some(self.instances[at].boot));
        let mut run: Vec<(i64, &mut Event)> = Vec::new();
        for said in &mut self.play.said {
            match &mut said.words {
                Words::Event(event) if event.from == *from && event.boot == boot => {
                    run.push((said.numbered_us, event));
                }
                _ => {}
            }
        }
        let seqs: Vec<Option<u64>> = run.iter().map(|(_, event)| event.seq).collect();
        run.sort_by_key(|(numbered_us, event)| (*numbered_us, event.seq));
        run.into_iter().zip(seqs).for_each(|((_, event), seq)| event.seq = seq);
    }

    fn restart(&mut self, restart: &Restart, at_us: i64) {
        let at = restart.instance;
        if self.instances[at].up_us > at_us {
            return;
        }
        self.number(at);
        if restart.goodbye {
            self.heartbeat(at, at_us, SourceState::Closing);
        } else {
            self.cut(at, at_us - restart.untold_us);
        }
        let up_us = at_us + restart.away_us;
        let instance = &mut self.instances[at];
        instance.begin(self.plan, at, up_us);
        (instance.up_us, instance.beaten_us) = (up_us, up_us - BEAT_US);
    }

    /// What this run decided since then was never told.
    fn cut(&mut self, at: usize, since_us: i64) {
        let (from, boot) = (self.instances[at].from.clone(), self.instances[at].boot);
        self.play.said.retain(|said| match &said.words {
            Words::Event(event) => {
                said.at_us < since_us || event.from != from || event.boot != Some(boot)
            }
            Words::Heartbeat(_) => true,
        });
    }

    fn beat(&mut self, until_us: i64) {
        for at in 0..self.instances.len() {
            while self.instances[at].beaten_us + BEAT_US <= until_us {
                self.instances[at].beaten_us += BEAT_US;
                let at_us = self.instances[at].beaten_us;
                self.heartbeat(at, at_us, SourceState::Running);
            }
        }
    }

    fn heartbeat(&mut self, at: usize, at_us: i64, state: SourceState) {
        if !self.plan.watched {
            return;
        }
        let instance = &self.instances[at];
        let heartbeat = Heartbeat {
            from: instance.from.clone(),
            boot: instance.boot,
            last_seq: instance.seq,
            at_us: at_us + self.plan.ahead_us[at],
            ledgers: vec![id("settle")],
            state,
        };
        let words = Words::Heartbeat(heartbeat);
        self.play.said.push(Said { at_us, instance: at, words, numbered_us: at_us });
    }

    fn end(&mut self, now_us: i64) {
        self.beat(now_us + AFTER_US);
        for at in 0..self.instances.len() {
            let at_us = now_us.max(self.instances[at].up_us) + AFTER_US;
            self.number(at);
            self.heartbeat(at, at_us, SourceState::Closing);
        }
    }
}
