//! The collector in a few lines: what it has is written once, who says nothing is silent, and what
//! does not come is given up.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::outcome::{Body, Boot, GivenUp, Position, Record, Silent, SourceName, SourceState};

use super::SECOND_US;
use super::line::Entry;
use super::plan::Plan;
use super::world::Words;

const SILENCE_US: i64 = 60 * SECOND_US;
/// How often it looks at the clock.
const LOOK_US: i64 = SECOND_US;
/// How often the judge hears of time at least.
const TICK_US: i64 = 10 * SECOND_US;
/// How long it goes on after the last entry.
const AFTER_US: i64 = 3_600 * SECOND_US;

#[derive(Default)]
struct Run {
    came: BTreeSet<u64>,
    given_up: BTreeSet<u64>,
    from: u64,
    top: u64,
    /// When each missing number was first known to be missing.
    missed: BTreeMap<u64, i64>,
    /// Until when nothing is given up, since a backlog drains.
    drains_us: i64,
    closing: bool,
}

#[derive(Default)]
struct Source {
    runs: BTreeMap<Boot, Run>,
    event_ids: BTreeSet<String>,
    heard_us: i64,
    watched: bool,
    silent: bool,
}

struct Collector<'a> {
    plan: &'a Plan,
    /// It waits for a backlog to drain, as `audit.md` says. To be less patient is allowed, and what
    /// it then gives up is no loss.
    patient: bool,
    records: Vec<Record>,
    sources: BTreeMap<SourceName, Source>,
    looked_us: i64,
}

/// The log that the collector makes.
pub fn records(plan: &Plan, entries: &[Entry]) -> Vec<Record> {
    let mut collector = Collector {
        plan,
        patient: plan.seed.is_multiple_of(2),
        records: Vec::new(),
        sources: BTreeMap::new(),
        looked_us: plan.install_us,
    };
    for entry in entries {
        collector.look(entry.received_us);
        collector.take(entry);
    }
    let end_us = entries.last().map_or(plan.install_us, |entry| entry.received_us);
    collector.look(end_us + 2 * SILENCE_US);
    for minutes in [5, 11, 60] {
        collector.record(end_us + AFTER_US * minutes / 60, Body::Tick);
    }
    collector.records
}

impl Collector<'_> {
    fn record(&mut self, received_us: i64, body: Body) {
        let n = i64::try_from(self.records.len()).unwrap() + 1;
        let position = Position { collector: 1, n };
        self.records.push(Record { position, received_us, body });
    }

    /// Time goes by.
    fn look(&mut self, now_us: i64) {
        while self.looked_us + LOOK_US <= now_us {
            self.looked_us += LOOK_US;
            match self.plan.outage {
                Some((from_us, to_us, _)) if (from_us..to_us).contains(&self.looked_us) => {
                    self.looked_us = to_us;
                    self.wait_anew(to_us);
                }
                _ => self.decide(self.looked_us),
            }
        }
    }

    fn wait_anew(&mut self, now_us: i64) {
        for source in self.sources.values_mut() {
            source.heard_us = now_us;
            for run in source.runs.values_mut() {
                run.missed.values_mut().for_each(|since_us| *since_us = now_us);
            }
        }
    }

    fn decide(&mut self, now_us: i64) {
        let mut bodies = Vec::new();
        for (from, source) in &mut self.sources {
            let newest = source.runs.last_key_value();
            if let Some((boot, run)) = newest
                && source.watched
                && !run.closing
                && !source.silent
                && source.heard_us + SILENCE_US <= now_us
            {
                source.silent = true;
                bodies.push(Body::Silent(Silent { from: from.clone(), boot: *boot }));
            }
            let grace_us = self.plan.settings.gap_grace_us;
            for (boot, run) in &mut source.runs {
                let due = |since_us: &i64| since_us.max(&run.drains_us) + grace_us <= now_us;
                let over = run.missed.iter().filter(|(_, since_us)| due(since_us));
                for seq in over.map(|(seq, _)| *seq).collect::<Vec<_>>() {
                    run.missed.remove(&seq);
                    run.given_up.insert(seq);
                    let (from, boot) = (from.clone(), *boot);
                    let given_up = GivenUp { from, boot, first_seq: seq, last_seq: seq };
                    bodies.push(Body::GivenUp(given_up));
                }
            }
        }
        let last_us = self.records.last().map_or(now_us, |record| record.received_us);
        if bodies.is_empty() && last_us + TICK_US <= now_us {
            bodies.push(Body::Tick);
        }
        bodies.into_iter().for_each(|body| self.record(now_us, body));
    }

    fn take(&mut self, entry: &Entry) {
        let now_us = entry.received_us;
        let from = match &entry.words {
            Words::Event(event) => &event.from,
            Words::Heartbeat(heartbeat) => &heartbeat.from,
        };
        let source = self.sources.entry(from.clone()).or_default();
        (source.heard_us, source.silent) = (now_us, false);
        match &entry.words {
            Words::Heartbeat(heartbeat) => {
                source.watched = true;
                let run = source.run(heartbeat.boot, heartbeat.last_seq + 1);
                let closing = heartbeat.state == SourceState::Closing;
                run.closing = closing || (run.closing && heartbeat.last_seq <= run.top);
                run.hear(heartbeat.last_seq + 1, heartbeat.last_seq, now_us);
                self.record(now_us, Body::Heartbeat(heartbeat.clone()));
            }
            Words::Event(event) => {
                let news = match (event.sequence(), &event.event_id) {
                    (Some((boot, seq)), _) => {
                        let age_us = now_us - event.occurred_us;
                        let drains = age_us > self.plan.settings.gap_grace_us && self.patient;
                        let run = source.run(boot, seq);
                        run.drains_us = if drains { now_us } else { run.drains_us };
                        let news = run.came.insert(seq);
                        run.closing &= seq <= run.top;
                        run.hear(seq, seq, now_us);
                        news
                    }
                    (None, id) => source.event_ids.insert(id.as_ref().unwrap().to_string()),
                };
                if news {
                    self.record(now_us, Body::Event(event.clone()));
                }
            }
        }
    }
}

impl Source {
    /// A run; of the first of a source nobody knows what was before.
    fn run(&mut self, boot: Boot, seq: u64) -> &mut Run {
        let is_later = self.runs.keys().next().is_some_and(|oldest| *oldest < boot);
        let from = if is_later { 1 } else { seq };
        self.runs.entry(boot).or_insert_with(|| Run { from, top: from - 1, ..Run::default() })
    }
}

impl Run {
    /// It is heard from a number on, and has come to another.
    fn hear(&mut self, from: u64, top: u64, now_us: i64) {
        let holes = (self.top + 1..=top).chain(from..self.from);
        let missing: Vec<u64> = holes.filter(|seq| !self.came.contains(seq)).collect();
        self.from = self.from.min(from);
        self.top = self.top.max(top);
        for seq in missing {
            self.missed.entry(seq).or_insert(now_us);
        }
        self.missed.retain(|seq, _| !self.came.contains(seq));
    }
}
