//! One run of a source: which of its numbers came, and when.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::source::{Blind, TAIL_US};
use crate::outcome::{Boot, Heartbeat, SourceState};

/// Refused numbers remembered of a run, newest kept; the hole they leave is blind anyway.
const REFUSED_MAX: usize = 256;

/// Numbers that came, without a hole, with the times at the edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) first: u64,
    pub(super) last: u64,
    first_us: i64,
    last_us: i64,
}

/// One run of a source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) boot: Boot,
    stretches: Vec<Stretch>,
    /// Highest number that a heartbeat named, and when.
    named: u64,
    named_us: i64,
    /// Refused numbers that have not come since, with the receipt of the refusal.
    refused: BTreeMap<u64, i64>,
    /// Ranges that the collector waits for no more.
    given_up: Vec<(u64, u64)>,
    closing: bool,
    /// The collector stopped waiting for it.
    pub(super) silent: bool,
    pub(super) first_word_us: i64,
    pub(super) last_word_us: i64,
    /// First heard after a newer-looking run, and not as its backlog: which was first is not
    /// known.
    pub(super) out_of_order: bool,
    /// Another run of the source was known before.
    pub(super) later: bool,
}

impl Run {
    pub(super) fn new(boot: Boot, at_us: i64, newer_known: bool, known: bool) -> Self {
        Self {
            boot,
            stretches: Vec::new(),
            named: 0,
            named_us: i64::MIN,
            refused: BTreeMap::new(),
            given_up: Vec::new(),
            closing: false,
            silent: false,
            first_word_us: at_us,
            last_word_us: at_us,
            out_of_order: newer_known,
            later: known,
        }
    }

    /// Takes the number of an event. Returns whether a hole was closed by it.
    pub(super) fn event(&mut self, seq: u64, at_us: i64) -> bool {
        self.first_word_us = self.first_word_us.min(at_us);
        self.last_word_us = self.last_word_us.max(at_us);
        let goes_on = self.stretches.last().is_none_or(|s| seq == s.last.saturating_add(1));
        let was_silent = self.silent;
        self.silent &= !goes_on;
        let was_refused = self.refused.remove(&seq).is_some();
        let filled = self.add(seq, at_us);
        was_refused || filled || (was_silent && !self.silent)
    }

    fn add(&mut self, seq: u64, at_us: i64) -> bool {
        let after = self.stretches.partition_point(|stretch| stretch.last < seq);
        let joins_next =
            self.stretches.get(after).is_some_and(|next| next.first == seq.saturating_add(1));
        let before = after.checked_sub(1);
        let joins_last = before
            .and_then(|i| self.stretches.get(i))
            .is_some_and(|last| last.last.saturating_add(1) == seq);
        match (joins_last, joins_next) {
            (true, true) => {
                let next = self.stretches.remove(after);
                if let Some(last) = before.and_then(|i| self.stretches.get_mut(i)) {
                    (last.last, last.last_us) = (next.last, next.last_us);
                }
                return true;
            }
            (true, false) => {
                if let Some(last) = before.and_then(|i| self.stretches.get_mut(i)) {
                    (last.last, last.last_us) = (seq, at_us);
                }
            }
            (false, true) => {
                if let Some(next) = self.stretches.get_mut(after) {
                    (next.first, next.first_us) = (seq, at_us);
                }
                return seq == 1;
            }
            (false, false) => {
                let alone = Stretch { first: seq, last: seq, first_us: at_us, last_us: at_us };
                self.stretches.insert(after, alone);
            }
        }
        // A tail that a heartbeat had shown missing is whole again.
        self.named > 0 && self.covers(1, self.named)
    }

    /// Takes a heartbeat. Returns whether what was blind may have become less.
    pub(super) fn heartbeat(&mut self, heartbeat: &Heartbeat) -> bool {
        self.first_word_us = self.first_word_us.min(heartbeat.at_us);
        self.last_word_us = self.last_word_us.max(heartbeat.at_us);
        self.named = self.named.max(heartbeat.last_seq);
        self.named_us = self.named_us.max(heartbeat.at_us);
        let was = (self.closing, self.silent);
        self.closing |= heartbeat.state == SourceState::Closing;
        if self.silent && self.missing_after_last() == 0 {
            self.silent = false;
        }
        was != (self.closing, self.silent)
    }

    /// Remembers that a number was refused.
    pub(super) fn refuse(&mut self, seq: u64, received_us: i64) {
        if !self.covers(seq, seq) {
            self.refused.insert(seq, received_us);
            if self.refused.len() > REFUSED_MAX {
                self.refused.pop_first();
            }
        }
    }

    /// Remembers that the collector waits for these no more.
    pub(super) fn give_up(&mut self, first: u64, last: u64) {
        if first <= last && !self.given_up.contains(&(first, last)) {
            self.given_up.push((first, last));
        }
    }

    /// It is over and said so.
    pub(super) fn said_goodbye(&self) -> bool {
        self.closing
    }

    /// Numbers given up that have not come since.
    pub(super) fn missing(&self) -> u64 {
        let mut ranges = self.given_up.clone();
        ranges.sort_unstable();
        let mut missing: u64 = 0;
        let mut from = 0;
        for (first, last) in ranges {
            let first = first.max(from);
            if first <= last {
                missing = missing.saturating_add(self.absent(first, last));
                from = last.saturating_add(1);
            }
        }
        missing
    }

    /// Whether all of these have come.
    pub(super) fn covers(&self, first: u64, last: u64) -> bool {
        first > last
            || self.stretches.iter().any(|stretch| stretch.first <= first && last <= stretch.last)
    }

    /// Whether it said goodbye and all of it from `first` on has come.
    pub(super) fn ended_whole(&self, first: u64) -> bool {
        self.closing && self.missing_after_last() == 0 && self.covers(first, self.named)
    }

    fn absent(&self, first: u64, last: u64) -> u64 {
        let present = self.stretches.iter().fold(0_u64, |sum, stretch| {
            let (from, to) = (stretch.first.max(first), stretch.last.min(last));
            if from <= to { sum.saturating_add(to - from + 1) } else { sum }
        });
        (last - first).saturating_add(1).saturating_sub(present)
    }

    /// Whether nothing of this range is waited for: each number was given up or refused.
    fn is_given_up(&self, first: u64, last: u64) -> bool {
        let mut done: Vec<(u64, u64)> = self.given_up.clone();
        done.extend(self.refused.range(first..=last).map(|(seq, _)| (*seq, *seq)));
        done.sort_unstable();
        let mut next = first;
        for (from, to) in done {
            if from > next {
                break;
            }
            next = next.max(to.saturating_add(1));
        }
        next > last
    }

    fn missing_after_last(&self) -> u64 {
        self.named.saturating_sub(self.stretches.last().map_or(0, |stretch| stretch.last))
    }

    /// How far it was heard without a hole that may still fill, and whether that is all.
    pub(super) fn heard(&self) -> (i64, bool) {
        let mut heard_us = i64::MIN;
        let mut next = 1;
        for (i, stretch) in self.stretches.iter().enumerate() {
            // What a first run did before it was first heard is not waited for.
            let waits = stretch.first > next && (i > 0 || self.later);
            if waits && !self.is_given_up(next, stretch.first - 1) {
                return (heard_us.max(self.before_us(i)), false);
            }
            heard_us = heard_us.max(stretch.last_us);
            next = stretch.last.saturating_add(1);
        }
        if next <= self.named && !self.is_given_up(next, self.named) {
            return (heard_us.max(self.before_us(self.stretches.len())), false);
        }
        (heard_us.max(self.named_us), true)
    }

    /// The last moment known to be before the stretch `i`.
    fn before_us(&self, i: usize) -> i64 {
        match i.checked_sub(1).and_then(|i| self.stretches.get(i)) {
            Some(stretch) => stretch.last_us,
            None => match self.boot {
                Boot::Started { at_us } => at_us.min(self.first_word_us),
                Boot::Number(_) => self.first_word_us.saturating_sub(TAIL_US),
            },
        }
    }

    /// Adds the stretches in which numbers are missing.
    pub(super) fn holes(&self, blind: &mut Vec<Blind>) {
        let mut next = 1;
        for (i, stretch) in self.stretches.iter().enumerate() {
            if stretch.first > next {
                // Within a run a hole may have the very times of its neighbours; what was before
                // the first that was heard was earlier.
                let to_us = stretch.first_us.saturating_sub(i64::from(i == 0));
                blind.push(Blind { from_us: self.before_us(i), to_us });
            }
            next = stretch.last.saturating_add(1);
        }
        let mut to_us = i64::MIN;
        if self.named >= next {
            to_us = self.named_us;
        }
        if let Some(received_us) = self.refused.range(next..).map(|(_, us)| *us).max() {
            to_us = to_us.max(received_us);
        }
        if to_us > i64::MIN {
            blind.push(Blind { from_us: self.before_us(self.stretches.len()), to_us });
        }
    }
}
