//! All that was said, in memory, and what is known from it: order and blindness, straight from
//! the sections of `audit.md`. Times are read off whole lists each time; nothing is kept.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use dedupwatch::outcome::{Body, Boot, Event, Id, Net, Record, Signature, SourceName, Transition};

use super::fates::Fates;
use super::sources::{Run, Source};

/// Clocks of two sources differ by no more (`audit.md`, order).
pub const SKEW_US: i64 = 1_000_000;
/// What comes within this comes before any grace is over.
const PROMPT_US: i64 = 1_500_000;
/// The numbers that `audit.md` lets people set.
#[derive(Clone, Copy)]
pub struct Rules {
    pub horizon_us: i64,
    pub live_games: usize,
    pub live_for_us: i64,
    pub reuse_after_us: i64,
}

/// Whether all guards of a ledger were heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coverage {
    Full,
    Assumed,
    Blind,
}

/// All that was said.
pub struct World {
    pub rules: Rules,
    pub events: Vec<Event>,
    /// Of which settlement each event is.
    keys: Vec<Key>,
    pub sources: BTreeMap<SourceName, Source>,
    pub conflicts: Vec<(Event, i64)>,
    pub refusals: Vec<(SourceName, Boot, u64, String)>,
    pub moves: Vec<Transition>,
    pub move_conflicts: Vec<(Transition, i64)>,
    /// Nothing was believed of the sources for a time that turned out otherwise: no silence that
    /// ended, no number that came after it was given up or refused, nobody whose holes show only
    /// later. A verdict that was made meanwhile may rightly stand.
    pub lasting: bool,
    pub fates: Fates,
}

/// A settlement, told apart by its identity alone.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub ledger: String,
    pub player: Id,
    pub identity: String,
}

/// The identity of a signature: the amount is no part of an opaque one's.
pub fn identity(signature: &Signature) -> String {
    match signature {
        Signature::Settlement { game, net, last } => {
            format!("{:?} {:?} {:?} {} {last}", game.session, game.room, game.round, net.0)
        }
        Signature::Opaque { key, .. } => format!("opaque {key:?}"),
    }
}

pub fn key_of(event: &Event, signature: &Signature) -> Key {
    Key { ledger: event.ledger(), player: event.player.clone(), identity: identity(signature) }
}

/// The order of two events, if it is known, and whether it is proven.
pub fn order(a: &Event, b: &Event) -> Option<(Ordering, bool)> {
    if a.from == b.from {
        return match (a.sequence(), b.sequence()) {
            (Some(a), Some(b)) => Some((a.cmp(&b), true)),
            _ => match a.occurred_us.cmp(&b.occurred_us) {
                Ordering::Equal => None,
                known => Some((known, false)),
            },
        };
    }
    let apart_us = a.occurred_us - b.occurred_us;
    (apart_us.abs() > SKEW_US).then(|| (apart_us.cmp(&0), false))
}

/// Whether `a` is known to have been before `b`.
pub fn before(a: &Event, b: &Event) -> bool {
    order(a, b).is_some_and(|(order, _)| order == Ordering::Less)
}

impl World {
    pub fn new(rules: Rules, records: &[Record]) -> Self {
        let mut world = Self {
            rules,
            events: Vec::new(),
            keys: Vec::new(),
            sources: BTreeMap::new(),
            conflicts: Vec::new(),
            refusals: Vec::new(),
            moves: Vec::new(),
            move_conflicts: Vec::new(),
            lasting: true,
            fates: Fates::default(),
        };
        for record in records {
            world.take(record);
        }
        world.fates = Fates::apply(&mut world.events);
        world.lasting &= !world.sources.values().any(Source::shows_holes_late);
        world
    }

    /// Whether time did not pass an event that was not there yet.
    fn waited_for(&self, event: &Event, received_us: i64) -> bool {
        let source = self.sources.get(&event.from);
        let open = source.is_some_and(|source| source.is_watched() && !source.is_over());
        open || received_us - event.occurred_us <= PROMPT_US
    }

    /// What follows from numbers may be taken back when this one comes.
    fn comes(&mut self, from: &SourceName, sequence: Option<(Boot, u64)>) {
        let Some(source) = self.sources.get_mut(from) else { return };
        self.lasting &= !source.silent;
        source.silent = false;
        let Some((boot, seq)) = sequence else { return };
        let missed = |run: &Run| {
            run.given_up.contains(&seq) || run.refused.contains_key(&seq) || seq < run.heard_from()
        };
        self.lasting &= !source.runs.get(&boot).is_some_and(missed);
    }

    fn take(&mut self, record: &Record) {
        match &record.body {
            Body::Event(event) => {
                self.comes(&event.from, event.sequence());
                self.lasting &= self.waited_for(event, record.received_us);
                let source = self.sources.entry(event.from.clone()).or_default();
                source.ledgers.insert(event.ledger());
                match event.sequence() {
                    Some((boot, seq)) => {
                        let run = source.run(boot, event.occurred_us);
                        run.told_before_watched |= run.heartbeats.is_empty();
                        run.times.insert(seq, event.occurred_us);
                    }
                    None => source.ids.push(event.occurred_us),
                }
                self.keys.push(key_of(event, &event.signature));
                self.events.push((**event).clone());
            }
            Body::Refused(refused) => {
                let (from, (boot, seq)) =
                    (refused.from.clone().unwrap(), refused.sequence.unwrap());
                if let Some(source) = self.sources.get_mut(&from) {
                    let run = source.run(boot, record.received_us);
                    run.refused.insert(seq, record.received_us);
                }
                self.refusals.push((from, boot, seq, refused.code.clone()));
            }
            Body::Conflict(event) => self.conflicts.push(((**event).clone(), record.received_us)),
            Body::Heartbeat(heartbeat) => {
                self.comes(&heartbeat.from, None);
                let source = self.sources.entry(heartbeat.from.clone()).or_default();
                let ledgers = heartbeat.ledgers.iter().map(|ledger| ledger.as_str().to_owned());
                source.ledgers.extend(ledgers);
                source.beats.push((record.received_us, heartbeat.at_us));
                let run = source.run(heartbeat.boot, heartbeat.at_us);
                run.heartbeats.push(heartbeat.clone());
            }
            Body::GivenUp(hole) => {
                let source = self.sources.entry(hole.from.clone()).or_default();
                let run = source.runs.entry(hole.boot).or_default();
                run.given_up.extend(hole.first_seq..=hole.last_seq);
            }
            Body::Silent(silent) => {
                self.sources.entry(silent.from.clone()).or_default().silent = true;
            }
            Body::Transition(transition) => self.moves.push((**transition).clone()),
            Body::TransitionConflict(other) => {
                self.move_conflicts.push(((**other).clone(), record.received_us));
            }
            Body::Closed(_) | Body::Tick | Body::Settings(_) => {}
        }
    }

    /// What is known of everybody who writes to the ledger, from `from_us` until `event`.
    /// The other answer is for those who know by heartbeats how far all was heard before a hole.
    pub fn coverage(&self, ledger: &str, from_us: i64, event: &Event) -> [Coverage; 2] {
        [false, true].map(|narrow| self.covered(ledger, from_us, event, narrow))
    }

    fn covered(&self, ledger: &str, from_us: i64, event: &Event, narrow: bool) -> Coverage {
        let of_ledger = self.sources.iter().filter(|(_, source)| source.ledgers.contains(ledger));
        let one = of_ledger.map(|(name, source)| {
            let own = *name == event.from;
            let widened_us = if own { 0 } else { SKEW_US };
            let until_us = event.occurred_us;
            let upto = event.sequence().filter(|_| own);
            let blind = source.blind(upto, narrow).into_iter().any(|(begin_us, end_us)| {
                begin_us - widened_us <= until_us && end_us + widened_us >= from_us
            });
            if blind {
                return Coverage::Blind;
            }
            if source.proves_nothing(from_us, until_us) {
                Coverage::Assumed
            } else {
                Coverage::Full
            }
        });
        one.max().unwrap_or(Coverage::Full)
    }
}

/// Views of what was said.
impl World {
    /// Acceptances by settlement, whatever became of their money.
    pub fn acceptances(&self) -> BTreeMap<Key, Vec<&Event>> {
        self.grouped(Event::is_acceptance)
    }

    pub fn of_outcome(&self, outcome: dedupwatch::outcome::Outcome) -> BTreeMap<Key, Vec<&Event>> {
        self.grouped(|event| event.outcome == outcome)
    }

    /// The amount of a settlement. Of an opaque key it is no part: the first acceptance says it,
    /// and until there is one the largest that was told.
    pub fn net(&self, key: &Key) -> Net {
        let accepted = self.acceptances().remove(key).unwrap_or_default();
        let firsts = accepted.iter().filter(|one| !accepted.iter().any(|it| before(it, one)));
        if let Some(first) = firsts.min_by_key(|first| first.occurred_us) {
            return first.signature.net();
        }
        let own = self.events.iter().map(|event| (event, &event.signature));
        let told = own.chain(self.evictions()).filter(|(event, told)| key_of(event, told) == *key);
        let nets = told.map(|(_, signature)| signature.net());
        nets.max_by_key(|net| (net.0.unsigned_abs(), *net)).unwrap_or(Net(0))
    }

    fn grouped(&self, wanted: impl Fn(&Event) -> bool) -> BTreeMap<Key, Vec<&Event>> {
        let mut by_key: BTreeMap<Key, Vec<&Event>> = BTreeMap::new();
        let keyed = self.events.iter().zip(&self.keys);
        for (event, key) in keyed.filter(|(event, _)| wanted(event)) {
            by_key.entry(key.clone()).or_default().push(event);
        }
        by_key
    }

    /// Acceptances by use: one that is further than `reuse_after` from the beginning of the use
    /// before begins another, unless its ref names one.
    pub fn uses<'a>(&self, accepted: &[&'a Event]) -> Vec<Vec<&'a Event>> {
        let mut accepted = accepted.to_vec();
        accepted.sort_by_key(|it| (it.occurred_us, it.boot, it.seq));
        let mut uses: Vec<Vec<&Event>> = Vec::new();
        for event in accepted {
            let named = |it: &&Event| it.reference.is_some() && it.reference == event.reference;
            if let Some(at) = uses.iter().position(|one| one.iter().any(named)) {
                uses[at].push(event);
                continue;
            }
            match uses.last_mut() {
                Some(last) if self.is_one_use(last[0], event) => last.push(event),
                _ => uses.push(vec![event]),
            }
        }
        uses
    }

    /// Whether two acceptances are so close that the signature can't have been used anew.
    pub fn is_one_use(&self, first: &Event, other: &Event) -> bool {
        (first.occurred_us - other.occurred_us).abs() <= self.rules.reuse_after_us
    }

    /// What fell out, and the event that says so.
    pub fn evictions(&self) -> Vec<(&Event, &Signature)> {
        let mut evictions = Vec::new();
        for event in &self.events {
            if event.outcome == dedupwatch::outcome::Outcome::Evicted {
                evictions.push((event, &event.signature));
            }
            evictions.extend(event.evicted.iter().map(|signature| (event, signature)));
        }
        evictions
    }

    /// The event of that number of the same source.
    pub fn by_sequence(&self, of: &Event, boot: Boot, seq: u64) -> Option<&Event> {
        let same = |event: &&Event| event.from == of.from && event.sequence() == Some((boot, seq));
        self.events.iter().find(same)
    }

    /// The events of a source before one of its numbers, newest first, as far as there is no
    /// hole; across boots only with a goodbye.
    pub fn back_from(&self, of: &Event, mut boot: Boot, mut seq: u64) -> Vec<&Event> {
        let runs = &self.sources[&of.from].runs;
        let mut events = Vec::new();
        loop {
            while seq > 1 {
                seq -= 1;
                let Some(event) = self.by_sequence(of, boot, seq) else { return events };
                events.push(event);
            }
            let Some((older, run)) = runs.range(..boot).next_back() else { return events };
            let last = run.heartbeats.iter().map(|heartbeat| heartbeat.last_seq).max();
            let Some(last) = last.filter(|_| run.said_goodbye()) else { return events };
            (boot, seq) = (*older, last + 1);
        }
    }
}
