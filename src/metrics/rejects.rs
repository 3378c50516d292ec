//! Rejected events by ten-second slice, for the rule that tells a stray bad event from a sender
//! that keeps sending them. In memory: the log holds a bad event once, however often it comes.

use std::collections::BTreeMap;

use super::labels::OTHER;
use crate::limits::{self, SECOND_US};

/// How long a slice is.
pub const SLICE_US: i64 = 10 * SECOND_US;
/// How many slices in a row make it a state of things: one minute.
pub const SLICES: i64 = 6;

/// Rejects of one service and env.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RejectRun {
    /// How many whole slices in a row, back from the newest and six at most, had rejects.
    pub slices: i64,
    /// Rejects in them.
    pub events: u64,
}

/// What is known of the newest rejects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RejectRuns {
    /// Whether six whole slices are known: not in the first minute after a start.
    pub known: bool,
    /// By service and env: those with rejects in the newest whole slice.
    pub runs: BTreeMap<(String, String), RejectRun>,
}

/// The newest slices of each service and env. By their names as sent: people are to be told whose
/// events are rejected, though rejected events make no label values.
#[derive(Debug, Default)]
pub(super) struct Rejects {
    first_slice: Option<i64>,
    by_sender: BTreeMap<(String, String), BTreeMap<i64, u64>>,
}

impl Rejects {
    pub(super) fn add(&mut self, now_us: i64, sender: &(String, String), events: u64) {
        let slice = now_us.div_euclid(SLICE_US);
        self.first_slice.get_or_insert(slice);
        let is_full = self.by_sender.len() >= limits::REJECTED_SENDERS_MAX;
        let sender = match is_full && !self.by_sender.contains_key(sender) {
            true => (OTHER.to_owned(), OTHER.to_owned()),
            false => sender.clone(),
        };
        let slices = self.by_sender.entry(sender).or_default();
        *slices.entry(slice).or_default() += events;
    }

    pub(super) fn runs(&mut self, now_us: i64) -> RejectRuns {
        let current = now_us.div_euclid(SLICE_US);
        let first = *self.first_slice.get_or_insert(current);
        self.by_sender.retain(|_, slices| {
            slices.retain(|slice, _| *slice >= current - SLICES);
            !slices.is_empty()
        });
        let runs = self.by_sender.iter().map(|(sender, slices)| (sender, run(slices, current)));
        RejectRuns {
            known: first <= current - SLICES,
            runs: runs
                .filter(|(_, run)| run.slices > 0)
                .map(|(sender, run)| (sender.clone(), run))
                .collect(),
        }
    }
}

/// The run back from the newest whole slice; the current one is not over yet.
fn run(slices: &BTreeMap<i64, u64>, current: i64) -> RejectRun {
    let mut run = RejectRun::default();
    for back in 1..=SLICES {
        let Some(events) = slices.get(&(current - back)) else { break };
        run = RejectRun { slices: back, events: run.events + events };
    }
    run
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sender(name: &str) -> (String, String) {
        (name.into(), "prod".into())
    }

    #[test]
    fn a_run_counts_whole_slices_back_to_the_first_without_rejects() {
        let mut rejects = Rejects::default();
        for slice in [0, 2, 3, 4] {
            rejects.add(slice * SLICE_US + 7, &sender("a"), 2);
        }
        let run_at = |rejects: &mut Rejects, slice: i64| {
            rejects.runs(slice * SLICE_US).runs.get(&sender("a")).copied().unwrap_or_default()
        };
        assert_eq!(run_at(&mut rejects, 4), RejectRun { slices: 2, events: 4 });
        assert_eq!(run_at(&mut rejects, 5), RejectRun { slices: 3, events: 6 });
        assert_eq!(run_at(&mut rejects, 6), RejectRun::default());
    }

    #[test]
    fn six_is_the_most_and_what_is_older_is_forgotten() {
        let mut rejects = Rejects::default();
        for slice in 0..20 {
            rejects.add(slice * SLICE_US, &sender("a"), 1);
        }
        let runs = rejects.runs(20 * SLICE_US);
        assert_eq!(runs.runs[&sender("a")], RejectRun { slices: SLICES, events: 6 });
        assert!(rejects.runs(40 * SLICE_US).runs.is_empty());
        assert!(rejects.by_sender.is_empty());
    }

    #[test]
    fn senders_beyond_the_bound_share_one_name() {
        let mut rejects = Rejects::default();
        for n in 0..limits::REJECTED_SENDERS_MAX + 5 {
            rejects.add(0, &sender(&format!("s{n}")), 1);
        }
        rejects.add(0, &sender("s0"), 1);
        let runs = rejects.runs(SLICE_US).runs;
        assert_eq!(runs.len(), limits::REJECTED_SENDERS_MAX + 1);
        assert_eq!(runs[&(OTHER.into(), OTHER.into())].events, 5);
        assert_eq!(runs[&sender("s0")].events, 2);
    }

    #[test]
    fn nothing_is_known_of_the_time_before_the_start() {
        let mut rejects = Rejects::default();
        assert!(!rejects.runs(100 * SLICE_US).known);
        assert!(!rejects.runs(105 * SLICE_US).known);
        assert!(rejects.runs(106 * SLICE_US).known);
    }
}
