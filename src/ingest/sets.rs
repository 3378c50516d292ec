//! What became of the numbers of one boot: received, refused or lost; the rest are holes.
//!
//! A boot may have any number of holes, its sets may not: beyond the bound the lowest hole is
//! lost, for good. To lose holes one by one would not make the sets smaller (each received
//! number between two of them is a range too), so all from the first lost number to the last is
//! one range. What was received in there is still known exactly: by its content hash, which is
//! kept on disk for each event.

use crate::limits;
use crate::outcome::{Ranges, missing};

/// The sets of a boot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Sets {
    /// Written.
    pub(super) received: Ranges,
    /// Came, but could not be taken as they were. May still be written.
    pub(super) refused: Ranges,
    /// Not taken any more, except where there is a content hash: then written before.
    pub(super) lost: Ranges,
    /// Holes that are not waited for any more. What arrives is written.
    pub(super) given_up: Ranges,
}

/// What is known of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    /// It may be written.
    New,
    /// It was written.
    Received,
    /// It was written if it has a content hash; else it can't be written any more.
    Lost,
}

impl Sets {
    /// What is known of a number.
    pub(super) fn known(&self, seq: u64) -> Known {
        if self.received.contains(seq) {
            Known::Received
        } else if self.lost.contains(seq) {
            Known::Lost
        } else {
            Known::New
        }
    }

    /// A number was written.
    pub(super) fn receive(&mut self, seq: u64) {
        self.received.insert(seq, seq);
        self.refused.remove(seq, seq);
        self.given_up.remove(seq, seq);
    }

    /// A number came and was not taken. What is written or lost stays that.
    pub(super) fn refuse(&mut self, seq: u64) {
        if self.known(seq) == Known::New {
            self.refused.insert(seq, seq);
            self.given_up.remove(seq, seq);
        }
    }

    /// The highest number that came.
    pub(super) fn top(&self) -> u64 {
        let tops = [self.received.last(), self.refused.last(), self.lost.last()];
        tops.into_iter().flatten().max().unwrap_or(0)
    }

    /// Holes up to a number that are still waited for.
    pub(super) fn waited_for(&self, first: u64, last: u64) -> Vec<(u64, u64)> {
        missing(&[&self.received, &self.refused, &self.lost, &self.given_up], first, last)
    }

    /// Stops waiting.
    pub(super) fn give_up(&mut self, first: u64, last: u64) {
        self.given_up.insert(first, last);
    }

    /// Loses the lowest holes from `first` on until the sets are within their bound; says which
    /// holes were still waited for.
    pub(super) fn shrink(&mut self, first: u64) -> Vec<(u64, u64)> {
        let mut abandoned = Vec::new();
        while self.received.len() + self.refused.len() + self.lost.len()
            > limits::RANGES_OF_A_BOOT_MAX
        {
            let Some((start, end)) = self.lowest_hole(first) else { break };
            abandoned.extend(self.waited_for(start, end));
            self.lose(start, end);
        }
        abandoned
    }

    /// The lowest numbers that were not written; a refused one is a hole as well.
    fn lowest_hole(&self, first: u64) -> Option<(u64, u64)> {
        let mut start = first;
        while let Some((_, end)) = self.received.around(start).or_else(|| self.lost.around(start)) {
            start = end.checked_add(1)?;
        }
        let stop = [self.received.next(start), self.lost.next(start)].into_iter().flatten().min();
        let end = match stop {
            Some(stop) => stop - 1,
            None => match self.refused.around(start) {
                Some((_, end)) => end,
                None => self.refused.next(start)? - 1,
            },
        };
        Some((start, end))
    }

    fn lose(&mut self, start: u64, end: u64) {
        self.lost.insert(start, end);
        let first = self.lost.next(0).unwrap_or(start);
        let last = self.lost.last().unwrap_or(end);
        self.lost.insert(first, last);
        for set in [&mut self.received, &mut self.refused, &mut self.given_up] {
            set.remove(first, last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_number_may_still_be_written() {
        let mut sets = Sets::default();
        sets.refuse(2);
        assert_eq!(sets.known(2), Known::New);
        sets.receive(2);
        assert_eq!(sets.known(2), Known::Received);
        assert!(!sets.refused.contains(2));
        sets.refuse(2);
        assert_eq!(sets.known(2), Known::Received);
        assert!(!sets.refused.contains(2));
    }

    #[test]
    fn a_hole_given_up_is_still_a_hole() {
        let mut sets = Sets::default();
        sets.receive(1);
        sets.receive(5);
        assert_eq!(sets.waited_for(1, 5), [(2, 4)]);
        sets.give_up(2, 4);
        assert_eq!(sets.waited_for(1, 5), []);
        assert_eq!(sets.known(3), Known::New);
        sets.receive(3);
        assert_eq!(sets.waited_for(1, 5), [], "the others stay given up");
    }

    #[test]
    fn five_thousand_holes_lose_the_lowest_and_no_other() {
        let mut sets = Sets::default();
        let mut abandoned = Vec::new();
        for seq in (1..=10_001).step_by(2) {
            sets.receive(seq);
            abandoned.extend(sets.shrink(1));
        }
        let ranges = sets.received.len() + sets.refused.len() + sets.lost.len();
        assert_eq!(ranges, limits::RANGES_OF_A_BOOT_MAX);
        let lost_up_to = sets.lost.last().unwrap();
        assert_eq!(abandoned.first(), Some(&(2, 2)));
        assert_eq!(abandoned.last(), Some(&(lost_up_to, lost_up_to)));
        assert_eq!(sets.known(1), Known::Received);
        assert_eq!(sets.known(2), Known::Lost);
        assert_eq!(sets.known(lost_up_to + 1), Known::Received);
        assert_eq!(sets.known(lost_up_to + 2), Known::New);
        assert_eq!(sets.known(10_001), Known::Received);
        assert_eq!(sets.top(), 10_001);
    }

    #[test]
    fn refused_numbers_are_bounded_too() {
        let mut sets = Sets::default();
        for seq in (1..=10_001).step_by(2) {
            sets.refuse(seq);
            sets.shrink(1);
        }
        assert!(sets.refused.len() + sets.lost.len() <= limits::RANGES_OF_A_BOOT_MAX);
        let mut sets = Sets::default();
        for seq in (1..=10_001).step_by(2) {
            sets.refuse(seq);
            sets.receive(seq + 1);
            sets.shrink(1);
        }
        let ranges = sets.received.len() + sets.refused.len() + sets.lost.len();
        assert!(ranges <= limits::RANGES_OF_A_BOOT_MAX);
    }

    #[test]
    fn a_lost_number_stays_lost() {
        let mut sets = Sets::default();
        sets.lose(2, 4);
        sets.refuse(3);
        assert_eq!(sets.known(3), Known::Lost);
        assert!(sets.refused.is_empty());
    }
}
