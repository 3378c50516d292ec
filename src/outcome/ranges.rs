//! A set of numbers as ranges: what counts without holes is one range, however long.

use serde::{Deserialize, Serialize};

/// Sorted, apart from each other by at least one number; first and last are in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    /// Whether no number is in.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The ranges, lowest first.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().copied()
    }

    /// How many ranges there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The highest number.
    pub fn last(&self) -> Option<u64> {
        self.0.last().map(|&(_, last)| last)
    }

    /// Where the first range that does not end before `n` stands.
    fn at(&self, n: u64) -> usize {
        self.0.partition_point(|&(_, last)| last < n)
    }

    /// The range that holds a number.
    pub fn around(&self, n: u64) -> Option<(u64, u64)> {
        self.0.get(self.at(n)).copied().filter(|&(first, _)| first <= n)
    }

    /// Whether a number is in.
    pub fn contains(&self, n: u64) -> bool {
        self.around(n).is_some()
    }

    /// The first number in the set from `n` on.
    pub fn next(&self, n: u64) -> Option<u64> {
        self.0.get(self.at(n)).map(|&(first, _)| first.max(n))
    }

    /// Puts numbers in.
    pub fn insert(&mut self, first: u64, last: u64) {
        let from = self.0.partition_point(|&(_, end)| end.saturating_add(1) < first);
        let to = self.0.partition_point(|&(start, _)| start <= last.saturating_add(1));
        let touched = self.0.get(from..to).unwrap_or_default();
        let start = touched.first().map_or(first, |&(start, _)| start.min(first));
        let end = touched.last().map_or(last, |&(_, end)| end.max(last));
        self.0.splice(from..to.max(from), [(start, end)]);
    }

    /// Takes numbers out.
    pub fn remove(&mut self, first: u64, last: u64) {
        let from = self.at(first);
        let to = self.0.partition_point(|&(start, _)| start <= last);
        if from >= to {
            return;
        }
        let touched = self.0.get(from..to).unwrap_or_default();
        let before = touched.first().filter(|&&(start, _)| start < first);
        let after = touched.last().filter(|&&(_, end)| end > last);
        let before = before.map(|&(start, _)| (start, first - 1));
        let after = after.map(|&(_, end)| (last + 1, end));
        let rest: Vec<_> = before.into_iter().chain(after).collect();
        self.0.splice(from..to, rest);
    }
}

/// The numbers of `first..=last` that are in none of the sets.
pub fn missing(sets: &[&Ranges], first: u64, last: u64) -> Vec<(u64, u64)> {
    let mut missing = Ranges::default();
    if first <= last {
        missing.insert(first, last);
    }
    for set in sets {
        for &(start, end) in set.0.iter().filter(|&&(start, end)| start <= last && end >= first) {
            missing.remove(start, end);
        }
    }
    missing.0
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn numbers(ranges: &Ranges) -> BTreeSet<u64> {
        ranges.0.iter().flat_map(|&(first, last)| first..=last).collect()
    }

    proptest! {
        #[test]
        fn is_a_set_of_numbers(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..6), 0..60),
        ) {
            let (mut ranges, mut model) = (Ranges::default(), BTreeSet::new());
            for (insert, first, more) in steps {
                let last = first + more;
                if insert {
                    ranges.insert(first, last);
                    model.extend(first..=last);
                } else {
                    ranges.remove(first, last);
                    model.retain(|n| !(first..=last).contains(n));
                }
                prop_assert_eq!(&numbers(&ranges), &model);
                prop_assert!(ranges.0.windows(2).all(|two| two[0].1 + 1 < two[1].0));
            }
            for n in 0..70 {
                prop_assert_eq!(ranges.contains(n), model.contains(&n));
                prop_assert_eq!(ranges.next(n), model.range(n..).next().copied());
            }
            let gaps: BTreeSet<u64> = missing(&[&ranges], 5, 50)
                .into_iter()
                .flat_map(|(first, last)| first..=last)
                .collect();
            prop_assert_eq!(gaps, (5..=50).filter(|n| !model.contains(n)).collect::<BTreeSet<_>>());
        }
    }

    #[test]
    fn the_ends_of_the_numbers_are_no_trap() {
        let mut ranges = Ranges::default();
        ranges.insert(u64::MAX, u64::MAX);
        ranges.insert(0, 0);
        assert_eq!(ranges.0, [(0, 0), (u64::MAX, u64::MAX)]);
        ranges.remove(0, u64::MAX);
        assert_eq!(ranges.0, []);
        assert_eq!(missing(&[&ranges], 3, 2), []);
    }

    #[test]
    fn is_stored_as_pairs() {
        let mut ranges = Ranges::default();
        ranges.insert(1, 3);
        ranges.insert(7, 7);
        assert_eq!(serde_json::to_string(&ranges).unwrap(), "[[1,3],[7,7]]");
    }
}
