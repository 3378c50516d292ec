//! One run of a source: which of its numbers came, and when.

use serde::{Deserialize, Serialize};

use super::clock::Falls;
use super::source::{Blind, TAIL_US};
use crate::limits;
use crate::outcome::{Boot, Heartbeat, Position, Ranges, SourceState, missing};

/// Stretches kept of a run; beyond, the oldest hole stays blind for good. The collector keeps as
/// many ranges (`limits::RANGES_OF_A_BOOT_MAX`) and takes nothing more for a hole that is lost.
const STRETCHES_MAX: usize = 4_096;

/// Numbers that came, without a hole, with the times at the edges.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stretch {
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) first_us: i64,
    pub(super) last_us: i64,
}

/// One run of a source.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) boot: Boot,
    pub(super) stretches: Vec<Stretch>,
    /// Highest number that a heartbeat named, and when.
    named: u64,
    named_us: i64,
    /// Refused numbers that have not come since, and the receipt of the newest refusal.
    refused: Ranges,
    refused_us: i64,
    /// Numbers that the collector waited for and waits for no more.
    given_up: Ranges,
    /// What the holes were that are kept no more.
    lost: Option<Blind>,
    /// Numbers given up that have not come since, and those in lost holes.
    missing: u64,
    /// How far it was heard, and whether that is all; asked for with every record.
    heard: (i64, bool),
    closing: bool,
    /// The collector stopped waiting for it.
    pub(super) silent: bool,
    pub(super) first_word_us: i64,
    pub(super) last_word_us: i64,
    /// First heard after a newer-looking run, and not as its backlog: which was first is not
    /// known.
    pub(super) out_of_order: bool,
    /// From which number on holes are waited for, as the collector does: `u64::MAX` while nothing
    /// but refused numbers came.
    heard_from: u64,
    /// The run before it had said goodbye when it was first heard.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) after_goodbye: bool,
    /// The record and stamp of its first number, if the run before it had said goodbye.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) begun: Option<(Position, i64)>,
    /// Falls of the clock between neighbours.
    #[serde(default, skip_serializing_if = "Falls::is_empty")]
    pub(super) fallen: Falls,
    /// The newest record by which numbers were given up or refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) given_up_at: Option<Position>,
}

impl Run {
    pub(super) fn new(boot: Boot, at_us: i64, out_of_order: bool, heard_from: u64) -> Self {
        Self {
            boot,
            stretches: Vec::new(),
            named: 0,
            named_us: i64::MIN,
            refused: Ranges::default(),
            refused_us: i64::MIN,
            given_up: Ranges::default(),
            lost: None,
            missing: 0,
            heard: (i64::MIN, true),
            closing: false,
            silent: false,
            first_word_us: at_us,
            last_word_us: at_us,
            out_of_order,
            heard_from,
            after_goodbye: false,
            begun: None,
            fallen: Falls::default(),
            given_up_at: None,
        }
    }

    /// Takes the number of an event. Returns whether a hole became less by it.
    pub(super) fn event(&mut self, seq: u64, at_us: i64, position: Position) -> bool {
        self.first_word_us = self.first_word_us.min(at_us);
        self.last_word_us = self.last_word_us.max(at_us);
        self.heard_from = self.heard_from.min(seq);
        self.closing &= seq <= self.named;
        let goes_on = self.stretches.last().is_none_or(|s| seq == s.last.saturating_add(1));
        let was_silent = self.silent;
        self.silent &= !goes_on;
        let was_missed = self.refused.contains(seq) || self.given_up.contains(seq);
        self.refused.remove(seq, seq);
        if seq == 1 && self.after_goodbye {
            self.begun = Some((position, at_us));
        }
        let filled = self.add(seq, at_us, position);
        if self.stretches.len() > STRETCHES_MAX {
            self.lose_oldest_hole();
        }
        self.heard = self.hear();
        was_missed || filled || (was_silent && !self.silent)
    }

    fn add(&mut self, seq: u64, at_us: i64, position: Position) -> bool {
        let after = self.stretches.partition_point(|stretch| stretch.last < seq);
        if self.covers(seq, seq) {
            return false;
        }
        if self.given_up.contains(seq) {
            self.missing = self.missing.saturating_sub(1);
        }
        let tail_missing = self.missing_after_last() > 0;
        let joins_next =
            self.stretches.get(after).is_some_and(|next| next.first == seq.saturating_add(1));
        let before = after.checked_sub(1);
        let joins_last = before
            .and_then(|i| self.stretches.get(i))
            .is_some_and(|last| last.last.saturating_add(1) == seq);
        let last_us = before.and_then(|i| self.stretches.get(i)).map(|last| last.last_us);
        let next_us = self.stretches.get(after).map(|next| next.first_us);
        self.compare(last_us.filter(|_| joins_last), (seq, Some(at_us)), position);
        let next_seq = seq.saturating_add(1);
        self.compare(Some(at_us), (next_seq, next_us.filter(|_| joins_next)), position);
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
        tail_missing && self.missing_after_last() == 0
    }

    /// The stamp of its last number, if it said goodbye and nothing of its end is waited for.
    pub(super) fn ended_us(&self) -> Option<i64> {
        let last = self.stretches.last()?;
        let is_all = self.is_given_up(last.last.saturating_add(1), self.named);
        (self.closing && is_all).then_some(last.last_us)
    }

    /// Takes a heartbeat. Returns whether what was blind may have become less.
    pub(super) fn heartbeat(&mut self, heartbeat: &Heartbeat) -> bool {
        self.first_word_us = self.first_word_us.min(heartbeat.at_us);
        self.last_word_us = self.last_word_us.max(heartbeat.at_us);
        let was = (self.closing, self.silent);
        self.closing = match heartbeat.state {
            SourceState::Closing => true,
            // One that was overtaken by the goodbye does not take it back.
            SourceState::Running => self.closing && heartbeat.last_seq <= self.named,
        };
        // What it gives out after a heartbeat is waited for, also where the heartbeat comes late.
        self.heard_from = self.heard_from.min(heartbeat.last_seq.saturating_add(1));
        self.named = self.named.max(heartbeat.last_seq);
        self.named_us = self.named_us.max(heartbeat.at_us);
        if self.silent && self.missing_after_last() == 0 {
            self.silent = false;
        }
        self.heard = self.hear();
        was != (self.closing, self.silent)
    }

    fn lose_oldest_hole(&mut self) {
        if self.stretches.len() < 2 {
            return;
        }
        let oldest = self.stretches.remove(0);
        let fell = self.stretches.first().map(|next| self.fall_over(&oldest, next));
        self.fallen.merge(fell.unwrap_or_default());
        let Some(next) = self.stretches.first_mut() else { return };
        let (first, last) = (oldest.last.saturating_add(1), next.first.saturating_sub(1));
        let hole = Blind { from_us: oldest.last_us, to_us: next.first_us };
        (next.first, next.first_us) = (oldest.first, oldest.first_us);
        let known = count(&self.refused, first, last) + count(&self.given_up, first, last);
        let lost = (last - first).saturating_add(1).saturating_sub(known);
        self.missing = self.missing.saturating_add(lost);
        self.lost = Some(self.lost.map_or(hole, |lost| Blind {
            from_us: lost.from_us.min(hole.from_us),
            to_us: lost.to_us.max(hole.to_us),
        }));
        self.given_up.remove(first, last);
        self.refused.remove(first, last);
    }

    fn is_heard(&self) -> bool {
        self.heard_from < u64::MAX
    }

    /// Whether the collector still knows it when it hears of another run at `at_us`: it forgets
    /// those of which no number can come again.
    pub(super) fn is_known_at(&self, at_us: i64) -> bool {
        self.is_heard() && at_us <= self.last_word_us.saturating_add(limits::EVENT_AGE_US_MAX)
    }

    /// Remembers that a number was refused.
    pub(super) fn refuse(&mut self, seq: u64, received_us: i64, position: Position) {
        if self.is_heard() {
            self.heard_from = self.heard_from.min(seq);
        }
        if !self.covers(seq, seq) {
            self.refused.insert(seq, seq);
            self.refused_us = self.refused_us.max(received_us);
            self.given_up_at = Some(position);
        }
        self.heard = self.hear();
    }

    /// Remembers that the collector waits for these no more.
    pub(super) fn give_up(&mut self, first: u64, last: u64, position: Position) {
        if first > last {
            return;
        }
        self.given_up_at = Some(position);
        for (first, last) in missing(&[&self.given_up], first, last) {
            self.missing = self.missing.saturating_add(self.absent(first, last));
        }
        self.given_up.insert(first, last);
        self.heard = self.hear();
    }

    /// It is over and said so.
    pub(super) fn said_goodbye(&self) -> bool {
        self.closing
    }

    /// Numbers given up that have not come since.
    pub(super) fn missing(&self) -> u64 {
        self.missing
    }

    /// How many of these have not come.
    fn absent(&self, first: u64, last: u64) -> u64 {
        let from = self.stretches.partition_point(|stretch| stretch.last < first);
        let within = self.stretches.get(from..).unwrap_or_default().iter();
        let come =
            within.take_while(|stretch| stretch.first <= last).fold(0_u64, |sum, stretch| {
                sum.saturating_add(stretch.last.min(last) - stretch.first.max(first) + 1)
            });
        (last - first).saturating_add(1).saturating_sub(come)
    }

    /// Whether all of these have come.
    pub(super) fn covers(&self, first: u64, last: u64) -> bool {
        let at = self.stretches.partition_point(|stretch| stretch.last < first);
        first > last || self.stretches.get(at).is_some_and(|s| s.first <= first && last <= s.last)
    }

    /// Whether a number was given out and has not come.
    pub(super) fn is_missing(&self, seq: u64) -> bool {
        let last = self.stretches.last().map_or(0, |stretch| stretch.last);
        let last = last.max(self.named).max(self.refused.last().unwrap_or(0));
        seq <= last && !self.covers(seq, seq)
    }

    /// Whether it said goodbye and all of it from `first` on has come.
    pub(super) fn ended_whole(&self, first: u64) -> bool {
        self.closing && self.missing_after_last() == 0 && self.covers(first, self.named)
    }

    /// Whether all of it that is known of has come, from `first` on.
    pub(super) fn has_no_hole(&self, first: u64) -> bool {
        let last = self.stretches.last().map_or(0, |stretch| stretch.last);
        self.missing_after_last() == 0
            && self.refused.next(first).is_none()
            && self.covers(first, last)
    }

    /// Whether nothing of this range is waited for: each number was given up or refused.
    pub(super) fn is_given_up(&self, first: u64, last: u64) -> bool {
        let mut next = first;
        while next <= last {
            match self.given_up.around(next).or_else(|| self.refused.around(next)) {
                Some((_, end)) if end == u64::MAX => return true,
                Some((_, end)) => next = end + 1,
                None => return false,
            }
        }
        true
    }

    fn missing_after_last(&self) -> u64 {
        self.named.saturating_sub(self.stretches.last().map_or(0, |stretch| stretch.last))
    }

    /// How far it was heard without a hole that may still fill, and whether that is all.
    pub(super) fn heard(&self) -> (i64, bool) {
        self.heard
    }

    fn hear(&self) -> (i64, bool) {
        let mut heard_us = i64::MIN;
        let mut next = self.heard_from;
        for (i, stretch) in self.stretches.iter().enumerate() {
            if stretch.first > next && !self.is_given_up(next, stretch.first - 1) {
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

    /// The first moment at which it can have been blind.
    pub(super) fn begins_us(&self) -> i64 {
        self.before_us(0).min(self.first_word_us)
    }

    /// The last moment at which it can have been blind.
    pub(super) fn ends_us(&self) -> i64 {
        self.last_word_us.saturating_add(TAIL_US).max(self.refused_us)
    }

    /// Adds the stretches in which numbers are missing; only those before a number, if one is
    /// given: what is missing after an event was after it, however its clock stood.
    pub(super) fn holes(&self, until: Option<u64>, blind: &mut Vec<Blind>) {
        if self.heard_from > 1 {
            // Up to its first word, exclusive.
            let to_us = self.first_word_us.saturating_sub(1);
            blind.push(Blind { from_us: self.before_us(0), to_us });
        }
        let mut next = if self.is_heard() { self.heard_from } else { 1 };
        for (i, stretch) in self.stretches.iter().enumerate() {
            if until.is_some_and(|seq| seq < next) {
                break;
            }
            if stretch.first > next {
                // Within a run a hole may have the very times of its neighbours; what was before
                // the first that was heard was earlier.
                let to_us = stretch.first_us.saturating_sub(i64::from(i == 0));
                let from_us = self.before_us(i);
                // The clock may have been set back in the hole.
                blind.push(Blind { from_us: from_us.min(to_us), to_us: to_us.max(from_us) });
            }
            next = stretch.last.saturating_add(1);
        }
        blind.extend(self.lost);
        if until.is_some_and(|seq| seq < next) {
            return;
        }
        let mut to_us = i64::MIN;
        if self.named >= next {
            to_us = self.named_us;
        }
        if self.refused.next(next).is_some() {
            to_us = to_us.max(self.refused_us);
        }
        if to_us > i64::MIN {
            blind.push(Blind { from_us: self.before_us(self.stretches.len()), to_us });
        }
    }
}

/// How many numbers of a range are in a set.
fn count(set: &Ranges, first: u64, last: u64) -> u64 {
    let part = |(start, end): (u64, u64)| (start.max(first), end.min(last));
    let parts = set.iter().map(part).filter(|(start, end)| start <= end);
    parts.fold(0, |sum, (start, end)| sum.saturating_add(end - start + 1))
}
