//! What was heard of one source, and when it was blind.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::outcome::{Boot, Heartbeat, SourceState};

/// Before the first number of a boot that is an integer, and after a last word.
const LOST_AFTER_US: i64 = 60_000_000;
/// A lost boot makes coverage assumed for so long.
const ASSUMED_US: i64 = 24 * 3_600_000_000;

/// One run of a source.
#[derive(Default)]
pub struct Run {
    /// When what was written happened, by number.
    pub times: BTreeMap<u64, i64>,
    /// When what was refused was received, by number.
    pub refused: BTreeMap<u64, i64>,
    pub given_up: BTreeSet<u64>,
    pub heartbeats: Vec<Heartbeat>,
    /// Its first event came before its first heartbeat.
    pub told_before_watched: bool,
    /// The run before it had ended when it was first heard.
    pub after_goodbye: bool,
    /// First heard after a newer-looking one, and not as its backlog.
    pub out_of_order: bool,
}

/// What was heard of a source.
#[derive(Default)]
pub struct Source {
    pub runs: BTreeMap<Boot, Run>,
    pub ids: Vec<i64>,
    /// Receipt and stamp of each heartbeat, as received.
    pub beats: Vec<(i64, i64)>,
    pub ledgers: BTreeSet<String>,
    /// It is silent now.
    pub silent: bool,
}

impl Source {
    /// A run that is heard of.
    pub fn run(&mut self, boot: Boot, at_us: i64) -> &mut Run {
        let older = self.runs.range(..boot).next_back();
        let after_goodbye = older.is_some_and(|(_, older)| older.said_goodbye());
        let mut newer = self.runs.range(boot..);
        let out_of_order =
            newer.any(|(_, run)| run.first_word_us().is_some_and(|first_us| first_us <= at_us));
        if !self.runs.contains_key(&boot)
            && let Some((_, next)) = self.runs.range_mut(boot..).next()
        {
            // It was heard before anybody knew of this one.
            next.after_goodbye = false;
        }
        self.runs.entry(boot).or_insert_with(|| Run {
            after_goodbye,
            out_of_order,
            ..Run::default()
        })
    }

    pub fn is_over(&self) -> bool {
        self.runs.last_key_value().is_some_and(|(_, run)| run.said_goodbye())
    }

    /// What it did not tell may show only when much else was believed already.
    pub fn shows_holes_late(&self) -> bool {
        self.runs.values().next().is_some_and(|run| run.told_before_watched)
            || self
                .runs
                .iter()
                .enumerate()
                .any(|(at, (boot, run))| run.begins_blind(*boot, at == 0))
    }

    pub fn is_watched(&self) -> bool {
        self.runs.values().any(|run| !run.heartbeats.is_empty())
    }

    /// Seen about that time, and yet nothing follows from its silence.
    pub fn proves_nothing(&self, from_us: i64, until_us: i64) -> bool {
        let about = |times: Vec<i64>| match (times.iter().min(), times.iter().max()) {
            (Some(first), Some(last)) => *first <= until_us && from_us <= *last,
            _ => false,
        };
        let numbered = self.runs.values().flat_map(|run| run.times.values().copied()).collect();
        about(self.ids.clone())
            || (!self.is_watched() && about(numbered))
            || (self.is_watched()
                && self
                    .lost_for_good()
                    .is_some_and(|at_us| (at_us..=at_us + ASSUMED_US).contains(&until_us)))
    }

    /// When its newest run was lost, if it was not heard since.
    pub fn lost_for_good(&self) -> Option<i64> {
        let (_, run) = self.runs.last_key_value()?;
        (!run.said_goodbye()).then(|| run.last_word_us()).flatten().map(|at| at + LOST_AFTER_US)
    }

    /// When events of it may be missing; of the run and number given, what came after it by
    /// number does not count.
    pub fn blind(&self, upto: Option<(Boot, u64)>, narrow: bool) -> Vec<(i64, i64)> {
        let mut blind = Vec::new();
        let boots: Vec<&Boot> = self.runs.keys().collect();
        for (at, (boot, run)) in self.runs.iter().enumerate() {
            if upto.is_some_and(|(upto, _)| *boot > upto) {
                break;
            }
            let limit = upto.filter(|(upto, _)| upto == boot).map(|(_, seq)| seq);
            blind.extend(run.holes(*boot, at == 0, limit, narrow));
            let next = boots.get(at + 1).map(|boot| &self.runs[*boot]);
            if limit.is_none()
                && !run.said_goodbye()
                && (next.is_some() || self.is_watched())
                && let Some(last_us) = run.last_word_us()
            {
                // The last word itself was heard.
                let next_us = next.and_then(Run::first_word_us).unwrap_or(i64::MAX);
                let until_us = next_us.min(last_us + LOST_AFTER_US);
                blind.extend((last_us < until_us).then_some((last_us + 1, until_us)));
            }
        }
        blind
    }
}

impl Run {
    pub fn said_goodbye(&self) -> bool {
        let goodbye = self.heartbeats.iter().filter(|it| it.state == SourceState::Closing);
        goodbye.map(|it| it.last_seq).max().is_some_and(|last_seq| {
            self.times.last_key_value().is_none_or(|(seq, _)| *seq <= last_seq)
        })
    }

    pub fn last_word_us(&self) -> Option<i64> {
        let heartbeats = self.heartbeats.iter().map(|heartbeat| heartbeat.at_us);
        self.times.values().copied().chain(heartbeats).max()
    }

    pub fn first_word_us(&self) -> Option<i64> {
        let heartbeats = self.heartbeats.iter().map(|heartbeat| heartbeat.at_us);
        self.times.values().copied().chain(heartbeats).min()
    }

    /// A hole before its first word shows only with that.
    pub fn begins_blind(&self, boot: Boot, is_first: bool) -> bool {
        let Some(first_us) = self.first_word_us() else { return false };
        self.holes(boot, is_first, None, false).iter().any(|(from_us, _)| *from_us < first_us)
    }

    pub fn heard_from(&self) -> u64 {
        let named = self.heartbeats.iter().map(|heartbeat| heartbeat.last_seq + 1);
        named.chain(self.times.keys().copied()).min().unwrap_or(1)
    }

    /// Between the neighbours of each hole. What came before the first word is over by then.
    pub fn holes(
        &self,
        boot: Boot,
        is_first: bool,
        limit: Option<u64>,
        narrow: bool,
    ) -> Vec<(i64, i64)> {
        let Some(first_us) = self.first_word_us() else {
            // Of a run of which only refusals were heard, nobody knows when it began.
            let refused_us = self.refused.values().copied().filter(|_| !narrow).max();
            return refused_us.map(|at_us| (at_us - LOST_AFTER_US, at_us)).into_iter().collect();
        };
        let begin_us = match boot {
            Boot::Started { at_us } => at_us.min(first_us),
            Boot::Number(_) => first_us - LOST_AFTER_US,
        };
        let mut holes = Vec::new();
        // Of the first run of a source nobody knows what was before it was heard.
        let heard_from = self.heard_from();
        if heard_from > 1 {
            holes.push((begin_us, first_us - 1));
        }
        let from = if is_first { heard_from } else { 1 };
        let whole_us = |last: u64, last_us: i64| {
            let whole = self.heartbeats.iter().filter(|it| narrow && it.last_seq <= last);
            whole.map(|it| it.at_us).max().map_or(last_us, |at_us| at_us.max(last_us))
        };
        let (mut last, mut last_us) = (from - 1, begin_us);
        for (seq, at_us) in &self.times {
            if limit.is_some_and(|limit| last >= limit) {
                return holes;
            }
            if *seq > last + 1 {
                last_us = whole_us(last, last_us);
                let at_us = if last < from { at_us - 1 } else { *at_us };
                holes.push((last_us.min(at_us), last_us.max(at_us)));
            }
            (last, last_us) = (*seq, *at_us);
        }
        if limit.is_some_and(|limit| last >= limit) {
            return holes;
        }
        last_us = whole_us(last, last_us);
        let named = self.heartbeats.iter().filter(|heartbeat| heartbeat.last_seq > last);
        if let Some(until_us) = named.map(|heartbeat| heartbeat.at_us).max() {
            holes.push((last_us.min(until_us), last_us.max(until_us)));
        }
        if let Some(until_us) = self.refused.range(last + 1..).map(|(_, at_us)| *at_us).max() {
            holes.push((last_us.min(until_us), last_us.max(until_us)));
        }
        holes
    }
}
