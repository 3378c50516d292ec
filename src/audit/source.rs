//! What was heard of a source: its runs, the numbers that came, and so when it was *blind*.
//!
//! Kept as sets with the times at their edges, so that the order of arrival and the cutting of
//! pushes make no difference.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde::{Deserialize, Serialize};

use super::clock::{Fall, Falls};
use super::offset::Offsets;
use super::run::Run;
use crate::outcome::{Boot, Heartbeat, SourceName, WindowScope};

/// A source, in the order in which the log names them first.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, Default,
)]
#[serde(transparent)]
pub struct SourceId(pub u32);

/// A boot without goodbye leaves at most this much unheard, then it is lost (audit.md).
pub(super) const TAIL_US: i64 = 60_000_000;
/// A lost boot that is not heard of makes coverage *assumed* for this long (audit.md).
const LOST_ASSUMED_US: i64 = 24 * 3_600_000_000;
/// No hole is waited for longer than this by the source's clock. The collector gives holes up
/// after seconds; should it not, one number would hold up all verdicts of its ledgers for good.
const HOLE_US_MAX: i64 = 3_600_000_000;
/// Runs remembered of a source: one restart an hour for ten days. Older ones count as heard.
const RUNS_MAX: usize = 256;

/// A stretch of time in which something may have happened unheard, by the source's clock, edges
/// included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blind {
    /// From here.
    pub from_us: i64,
    /// To here.
    pub to_us: i64,
}

/// What was heard of a source between two of its events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// All.
    Whole,
    /// All but what a run that ended without goodbye may have said at last.
    Tail,
    /// Some numbers have not come.
    Hole,
}

/// One guard instance.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Source {
    /// Its number.
    pub id: SourceId,
    /// Its name.
    pub name: SourceName,
    /// Whether it sends heartbeats.
    pub watched: bool,
    /// Time of its first event or heartbeat.
    pub first_us: i64,
    /// Time of its newest event.
    pub last_us: i64,
    /// Times of its first and newest event without a number.
    pub unnumbered_us: Option<(i64, i64)>,
    /// Whether it ever told an eviction.
    #[serde(default)]
    pub(super) tells_evictions: bool,
    /// The capacities that its windows were told to have.
    #[serde(default)]
    pub(super) caps: BTreeSet<(WindowScope, u64)>,
    /// The ledgers it writes to.
    pub ledgers: BTreeSet<String>,
    pub(super) runs: BTreeMap<BootKey, Run>,
    pub(super) offsets: Offsets,
    /// Falls of its clock in runs that are remembered no more.
    #[serde(default, skip_serializing_if = "Falls::is_empty")]
    fallen: Falls,
    /// When it was last told that its clock is far off; `None` while it is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) skew_told_us: Option<i64>,
}

/// A boot as the key of a map that is kept as JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct BootKey(pub(super) Boot);

impl Source {
    fn new(id: SourceId, name: SourceName, at_us: i64) -> Self {
        Self {
            id,
            name,
            watched: false,
            first_us: at_us,
            last_us: at_us,
            unnumbered_us: None,
            tells_evictions: false,
            caps: BTreeSet::new(),
            ledgers: BTreeSet::new(),
            runs: BTreeMap::new(),
            offsets: Offsets::default(),
            fallen: Falls::default(),
            skew_told_us: None,
        }
    }

    /// The newest run.
    pub(super) fn newest(&self) -> Option<&Run> {
        self.runs.last_key_value().map(|(_, run)| run)
    }

    /// The run of this boot, made if it is new. Only a later run of a known source is waited for
    /// from 1 on: of the first one, nobody knows how long it has been running, so `first_seq`,
    /// the number that it was first heard with, is where waiting begins.
    pub(super) fn run(&mut self, boot: Boot, at_us: i64, first_seq: u64) -> &mut Run {
        let key = BootKey(boot);
        let mut newer = self.runs.range(key..).filter(|(other, _)| **other != key);
        let out_of_order = newer.any(|(_, run)| run.first_word_us <= at_us);
        let is_later = self.runs.range(..key).any(|(_, run)| run.is_known_at(at_us));
        let heard_from = if is_later { 1 } else { first_seq };
        let mut after_goodbye = false;
        if !self.runs.contains_key(&key) {
            if self.runs.len() >= RUNS_MAX {
                self.forget_oldest_run();
            }
            let last = self.runs.range(..key).next_back();
            after_goodbye = last.is_some_and(|(_, run)| run.said_goodbye());
            // The one after it was heard before anybody knew of this one.
            if let Some((_, next)) = self.runs.range_mut(key..).next() {
                next.after_goodbye = false;
            }
        }
        self.runs.entry(key).or_insert_with(|| {
            let mut run = Run::new(boot, at_us, out_of_order, heard_from);
            run.after_goodbye = after_goodbye;
            run
        })
    }

    fn forget_oldest_run(&mut self) {
        let mut runs = self.runs.values();
        let fell = runs.next().zip(runs.next()).and_then(|(old, next)| fell_between(old, next));
        if let Some(fall) = fell {
            self.fallen.add(fall);
        }
        if let Some((_, run)) = self.runs.pop_first() {
            self.fallen.merge(run.falls());
        }
    }

    /// All falls of its clock.
    pub(super) fn falls(&self) -> Falls {
        let mut falls = self.fallen;
        self.runs.values().for_each(|run| falls.merge(run.falls()));
        let mut last: Option<&Run> = None;
        for run in self.runs.values() {
            if let Some(fall) = last.and_then(|last| fell_between(last, run)) {
                falls.add(fall);
            }
            last = last.filter(|_| run.passed_without_a_word()).or(Some(run));
        }
        falls
    }

    /// The run of this boot, of which a number was refused. Of a first one nothing is waited for
    /// because of that: the collector does not know a source by its refusals alone.
    pub(super) fn refused_run(&mut self, boot: Boot, received_us: i64) -> &mut Run {
        self.run(boot, received_us, u64::MAX)
    }

    /// The run of this boot, if it was heard of.
    pub(super) fn known_run(&mut self, boot: Boot) -> Option<&mut Run> {
        self.runs.get_mut(&BootKey(boot))
    }

    /// Whether a boot is named as the others of the source are.
    pub(super) fn has_sort_of(&self, boot: Boot) -> bool {
        self.runs.keys().next().is_none_or(|known| known.0.same_sort(boot))
    }

    /// Whether others wait for it: it is watched, has not fallen silent, and has not said goodbye
    /// or said it ahead of words that may still come.
    pub fn is_open(&self) -> bool {
        let over = |run: &Run| run.silent || (run.said_goodbye() && run.heard().1);
        self.watched && self.newest().is_some_and(|run| !over(run))
    }

    /// How far it was heard without a hole that may still fill, by its clock.
    pub(super) fn heard_us(&self) -> i64 {
        let mut heard_us = i64::MIN;
        for run in self.runs.values() {
            let (to_us, whole) = run.heard();
            heard_us = heard_us.max(to_us);
            if !whole {
                heard_us = heard_us.min(to_us);
                break;
            }
        }
        let last_words = self.runs.values().map(|run| run.last_word_us);
        heard_us.max(last_words.max().unwrap_or(i64::MIN).saturating_sub(HOLE_US_MAX))
    }

    /// Whether it can have been blind between the two moments at all: cheap, since a fleet leaves
    /// thousands of dead sources behind.
    pub(super) fn spoke_near(&self, from_us: i64, to_us: i64) -> bool {
        let begins = self.runs.values().map(Run::begins_us).min();
        let ends = self.runs.values().map(Run::ends_us).max();
        begins.is_some_and(|begins_us| begins_us <= to_us)
            && ends.is_some_and(|ends_us| from_us <= ends_us)
    }

    /// The stretches in which it was blind, oldest first.
    pub fn blind(&self) -> Vec<Blind> {
        self.blind_before(None)
    }

    /// As [`Source::blind`], of what was before one of its own events, where that is proven.
    pub(super) fn blind_before(&self, event: Option<(Boot, u64)>) -> Vec<Blind> {
        let in_order = self.runs.values().all(|run| !run.out_of_order);
        let event = event.filter(|_| in_order);
        let mut all = Vec::new();
        let mut runs = self.runs.iter().peekable();
        while let Some((BootKey(boot), run)) = runs.next() {
            let until = event.filter(|(of, _)| of == boot).map(|(_, seq)| seq);
            run.holes(until, &mut all);
            if until.is_some() {
                break;
            }
            let next = runs.peek().map(|(_, next)| next);
            if run.said_goodbye() || (next.is_none() && !run.silent) {
                continue;
            }
            let lost_us = run.last_word_us.saturating_add(TAIL_US);
            let to_us = next.map_or(lost_us, |next| next.first_word_us.min(lost_us));
            // The last word itself was heard.
            let from_us = run.last_word_us.saturating_add(1);
            all.extend((from_us <= to_us).then_some(Blind { from_us, to_us }));
        }
        all
    }

    /// Whether a run of it was lost less than a day before `at_us` and not heard since.
    pub(super) fn lost_before(&self, at_us: i64) -> bool {
        let Some(run) = self.newest().filter(|run| run.silent && !run.said_goodbye()) else {
            return false;
        };
        let lost_us = run.last_word_us.saturating_add(TAIL_US);
        (lost_us..=lost_us.saturating_add(LOST_ASSUMED_US)).contains(&at_us)
    }

    /// Takes a heartbeat. Returns whether what was blind may have become less.
    pub(super) fn heartbeat(&mut self, heartbeat: &Heartbeat, received_us: i64) -> bool {
        self.watched = true;
        self.first_us = self.first_us.min(heartbeat.at_us);
        self.offsets.add(received_us, heartbeat.at_us);
        let next_seq = heartbeat.last_seq.saturating_add(1);
        self.run(heartbeat.boot, heartbeat.at_us, next_seq).heartbeat(heartbeat)
    }
}

/// By how much the clock fell between the end of a run and the begin of the next.
fn fell_between(old: &Run, next: &Run) -> Option<Fall> {
    if !next.after_goodbye || next.out_of_order {
        return None;
    }
    let (position, at_us, seq) = next.began()?;
    let by_us = old.ended_us()?.saturating_sub(at_us);
    (by_us > 0).then_some(Fall { by_us, boot: next.boot, seq, at_us, position })
}

/// All sources.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    list: Vec<Source>,
    index: HashMap<SourceName, SourceId>,
    changed: BTreeSet<SourceId>,
}

impl Sources {
    /// Takes back a stored source; in the order of their numbers.
    pub fn restore(&mut self, source: Source) {
        self.index.insert(source.name.clone(), source.id);
        self.list.push(source);
    }

    /// Those that changed since the last call.
    pub fn take_changed(&mut self) -> Vec<&Source> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|id| self.list.get(id.0 as usize)).collect()
    }

    /// Every source.
    pub fn iter(&self) -> impl Iterator<Item = &Source> {
        self.list.iter()
    }

    /// The source of this name, if it was heard.
    pub fn named(&self, name: &SourceName) -> Option<&Source> {
        self.index.get(name).and_then(|id| self.get(*id))
    }

    pub(super) fn get(&self, id: SourceId) -> Option<&Source> {
        self.list.get(id.0 as usize)
    }

    /// The source of this name for writing, made if it is new.
    pub(super) fn entry(&mut self, name: &SourceName, at_us: i64) -> Option<&mut Source> {
        let next = SourceId(u32::try_from(self.list.len()).ok()?);
        let id = match self.index.get(name) {
            Some(id) => *id,
            None => {
                self.index.insert(name.clone(), next);
                self.list.push(Source::new(next, name.clone(), at_us));
                next
            }
        };
        self.changed.insert(id);
        self.list.get_mut(id.0 as usize)
    }

    /// What is to be added to a source's clock to get the collector's, where that was measured.
    pub(super) fn offset_us(&self, id: SourceId) -> Option<i64> {
        self.get(id).and_then(|source| source.offsets.measured_us())
    }

    /// Whether the order of two boots of a source says which was first.
    pub(super) fn boots_in_order(&self, id: SourceId, a: Boot, b: Boot) -> bool {
        let proven = |boot| self.run(id, boot).is_none_or(|run| !run.out_of_order);
        a.same_sort(b) && proven(a) && proven(b)
    }

    /// Whether all numbers from one event of a source to another have come, across boots only
    /// with a goodbye.
    pub(super) fn whole_between(&self, id: SourceId, from: (Boot, u64), to: (Boot, u64)) -> bool {
        if from.0 == to.0 {
            return self.run(id, to.0).is_some_and(|run| run.covers(from.1, to.1));
        }
        let Some(source) = self.get(id).filter(|_| from.0.same_sort(to.0) && from.0 < to.0) else {
            return false;
        };
        source.runs.range(BootKey(from.0)..=BootKey(to.0)).all(|(BootKey(boot), run)| {
            let first = if *boot == from.0 { from.1 } else { 1 };
            let in_order = !run.out_of_order;
            in_order && if *boot == to.0 { run.covers(first, to.1) } else { run.ended_whole(first) }
        })
    }

    /// How much is unheard from one event of a source to a later one.
    pub(super) fn heard_between(&self, id: SourceId, from: (Boot, u64), to: (Boot, u64)) -> Heard {
        if self.whole_between(id, from, to) {
            return Heard::Whole;
        }
        let Some(source) = self.get(id).filter(|_| from.0.same_sort(to.0) && from.0 < to.0) else {
            return Heard::Hole;
        };
        let told =
            source.runs.range(BootKey(from.0)..=BootKey(to.0)).all(|(BootKey(boot), run)| {
                let first = if *boot == from.0 { from.1 } else { 1 };
                !run.out_of_order
                    && if *boot == to.0 { run.covers(first, to.1) } else { run.has_no_hole(first) }
            });
        if told { Heard::Tail } else { Heard::Hole }
    }

    pub(super) fn run(&self, id: SourceId, boot: Boot) -> Option<&Run> {
        self.get(id).and_then(|source| source.runs.get(&BootKey(boot)))
    }

    /// The name of a source.
    pub(super) fn name(&self, id: SourceId) -> Option<&SourceName> {
        self.get(id).map(|source| &source.name)
    }
}
