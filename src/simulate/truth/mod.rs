//! The truth of what was delivered: what an audit of it must find, no more and no less.
//!
//! It shares no code with `audit`, and it works the other way round: it has the whole story in
//! hand, knows what was lost and when, and reads it once at the end. The audit has a stream and
//! has to decide as it goes.
//!
//! What was lost is not part of the truth: nobody can find a leak whose second acceptance was
//! never told. But a loss also makes things *unknowable*: a block whose acceptance was lost looks
//! like a false block, and must come out as unverifiable; an eviction while somebody was blind
//! may be counted or not. So evictions have a lower and an upper count.

mod block;
mod carried;
mod effect;
mod eviction;
mod expected;
mod follow;
mod leak;
mod message;
mod window;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

pub use self::expected::{About, Expected, Key, Money, Wanted};
use crate::outcome::{Boot, Effect, Event, Id, Outcome, Signature, SourceName};

/// Clocks of different sources say nothing about order when they are closer than this
/// (audit.md: 1 s).
const SKEW_US: i64 = 1_000_000;

/// What of the collector's settings the truth depends on.
#[derive(Clone, Copy, Debug)]
pub struct TruthSettings {
    /// How many of a player's newest games are live.
    pub live_games: usize,
    /// How long a new ledger is blind.
    pub warmup_us: i64,
    /// How long a message can come back.
    pub horizon_us: i64,
}

/// All that was told, and what of it was lost.
#[derive(Debug, Default)]
pub struct Truth {
    /// What reached the collector, in the order in which it was decided.
    told: Vec<Told>,
    boots: BTreeMap<(SourceName, Boot), BootStory>,
    /// First outcome of each ledger.
    first_us: BTreeMap<String, i64>,
    /// When which ledger could not be seen in full.
    blind: BTreeMap<String, Vec<(i64, i64)>>,
    /// Sources whose last words were lost, and since when.
    dark: BTreeMap<SourceName, Dark>,
    /// Before which of `told` something of a source is missing.
    holes: BTreeMap<SourceName, Vec<usize>>,
}

#[derive(Debug)]
struct Told {
    /// Its place among all.
    order: usize,
    boot: Boot,
    event: Event,
}

#[derive(Debug, Default)]
struct BootStory {
    given_out: u64,
    delivered: u64,
    newest_delivered: u64,
    newest_told: u64,
}

#[derive(Debug, Clone)]
struct Dark {
    ledger: String,
    since_us: i64,
}

/// What was told of each settlement.
type Stories<'a> = BTreeMap<Key, Vec<&'a Told>>;

impl Truth {
    /// An outcome reached the collector.
    pub fn told(&mut self, boot: Boot, event: &Event) {
        let story = self.boots.entry((event.from.clone(), boot)).or_default();
        story.given_out += 1;
        story.delivered += 1;
        story.newest_delivered = story.given_out;
        if let Some(dark) = self.dark.remove(&event.from) {
            self.light(dark, event.occurred_us);
        }
        self.first_us.entry(event.ledger()).or_insert(event.occurred_us);
        self.told.push(Told { order: self.told.len(), boot, event: event.clone() });
    }

    /// An outcome got its number and never reached the collector.
    pub fn lost(&mut self, boot: Boot, event: &Event) {
        self.boots.entry((event.from.clone(), boot)).or_default().given_out += 1;
        self.darken(&event.from, &event.ledger(), event.occurred_us);
    }

    /// A boot ended. `told_seq`: the last number that a heartbeat has shown.
    pub fn ended(&mut self, from: &SourceName, boot: Boot, told_seq: Option<u64>) {
        let story = self.boots.entry((from.clone(), boot)).or_default();
        story.newest_told = told_seq.unwrap_or(0);
    }

    /// A boot ended without a goodbye: nobody knows what it did after its last word.
    pub fn crashed(&mut self, from: &SourceName, ledger: &str, at_us: i64) {
        self.darken(from, ledger, at_us);
    }

    /// What must be found.
    pub fn expected(mut self, settings: &TruthSettings) -> Expected {
        for (_, dark) in std::mem::take(&mut self.dark) {
            self.light(dark, i64::MAX);
        }
        let mut expected = Expected::default();
        let stories = self.stories();
        self.leaks(&stories, &mut expected);
        self.blocks(&stories, settings, &mut expected);
        self.effects(&stories, &mut expected);
        self.carried(&stories, &mut expected);
        self.live_evictions(settings, &mut expected);
        self.windows(settings, &mut expected);
        self.messages(&mut expected);
        self.follow_ups(&stories, &mut expected);
        self.gaps(&mut expected);
        expected
    }

    /// Blind from the last word before a loss on.
    fn darken(&mut self, from: &SourceName, ledger: &str, at_us: i64) {
        let holes = self.holes.entry(from.clone()).or_default();
        if holes.last() != Some(&self.told.len()) {
            holes.push(self.told.len());
        }
        if self.dark.contains_key(from) {
            return;
        }
        let last = self.told.iter().rev().find(|told| told.event.from == *from);
        let since_us = last.map_or(at_us, |told| told.event.occurred_us);
        let dark = Dark { ledger: ledger.to_owned(), since_us };
        self.dark.insert(from.clone(), dark);
    }

    fn light(&mut self, dark: Dark, until_us: i64) {
        let span = (dark.since_us - SKEW_US, until_us.saturating_add(SKEW_US));
        self.blind.entry(dark.ledger).or_default().push(span);
    }

    /// What was told of each settlement, the evictions that acceptances carry included.
    fn stories(&self) -> Stories<'_> {
        let mut stories: Stories<'_> = BTreeMap::new();
        for told in &self.told {
            stories.entry(told.key()).or_default().push(told);
            for gone in &told.event.evicted {
                stories.entry(told.key_of(gone)).or_default().push(told);
            }
        }
        stories
    }

    fn was_blind(&self, ledger: &str, (from_us, to_us): (i64, i64)) -> bool {
        let spans = self.blind.get(ledger).into_iter().flatten();
        spans.into_iter().any(|&(since_us, until_us)| since_us <= to_us && from_us <= until_us)
    }

    fn warms_up(&self, ledger: &str, at_us: i64, settings: &TruthSettings) -> bool {
        let first_us = self.first_us.get(ledger);
        first_us.is_some_and(|first_us| at_us < first_us + settings.warmup_us)
    }

    /// Whether nothing of a source is missing between two of its outcomes.
    fn is_whole(&self, from: &SourceName, since: usize, until: usize) -> bool {
        let holes = self.holes.get(from).map(Vec::as_slice).unwrap_or_default();
        let later = holes.partition_point(|&hole| hole <= since);
        holes.get(later).is_none_or(|&hole| hole > until)
    }

    fn gaps(&self, expected: &mut Expected) {
        for ((from, _), story) in &self.boots {
            let missing = story.newest_delivered.max(story.newest_told) - story.delivered;
            if missing > 0 {
                let about = About::Source(from.clone());
                expected.count("telemetry_gap", about, missing, missing);
            }
        }
    }
}

impl Told {
    fn key(&self) -> Key {
        self.key_of(&self.event.signature)
    }

    fn key_of(&self, signature: &Signature) -> Key {
        (self.event.ledger(), self.event.player.clone(), signature.clone())
    }

    fn source(&self) -> About {
        About::Source(self.event.from.clone())
    }

    fn at_us(&self) -> i64 {
        self.event.occurred_us
    }

    /// Whether it is about this settlement itself, and an acceptance.
    fn accepts(&self, signature: &Signature) -> bool {
        self.event.is_acceptance() && self.event.signature == *signature
    }

    /// Whether it is about this settlement itself, and a block.
    fn blocks(&self, signature: &Signature) -> bool {
        self.event.outcome == Outcome::ReplayBlocked && self.event.signature == *signature
    }

    /// Whether it says that this settlement fell out of a window.
    fn evicts(&self, signature: &Signature) -> bool {
        let itself = self.event.outcome == Outcome::Evicted && self.event.signature == *signature;
        itself || self.event.evicted.contains(signature)
    }

    /// Whether the money surely moved.
    fn stands(&self) -> bool {
        !matches!(self.event.effect, Some(Effect::Failed | Effect::Unknown))
    }

    /// Whether it surely, or perhaps, came before another. One source decides one after the
    /// other; between sources only clocks speak.
    fn before(&self, other: &Self) -> (bool, bool) {
        if self.event.from == other.event.from {
            return (self.order < other.order, self.order < other.order);
        }
        let gap_us = other.event.occurred_us - self.event.occurred_us;
        (gap_us > SKEW_US, gap_us >= -SKEW_US)
    }

    fn surely_before(&self, other: &Self) -> bool {
        self.before(other).0
    }

    fn is_processed(&self) -> bool {
        self.event.outcome == Outcome::Processed
    }
}

/// Acceptances of a story, in the order in which they were decided.
fn acceptances<'a>(story: &[&'a Told], signature: &Signature) -> Vec<&'a Told> {
    story.iter().filter(|told| told.accepts(signature)).copied().collect()
}

/// Blocks of a story, in the order in which they were decided.
fn blocks<'a>(story: &[&'a Told], signature: &Signature) -> Vec<&'a Told> {
    story.iter().filter(|told| told.blocks(signature)).copied().collect()
}

/// (ledger, player).
type PlayerOf<'a> = (String, &'a Id);
