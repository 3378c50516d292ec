//! A stream as a collector hears it, and the collector in a few lines: identity, refusals,
//! conflicts, silence and giving up, all by the time of receipt.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::outcome::{
    Body, Boot, Event, GivenUp, Heartbeat, Position, Record, Refused, Silent, SourceName,
    SourceState, Transition,
};

/// Silence of a watched source (`audit.md`: 60 s by receipt).
const SILENT_AFTER_US: i64 = 60_000_000;
/// When a hole is given up (`gap_grace`).
pub const GAP_GRACE_US: i64 = 30_000_000;
/// After the last entry: long enough for all that waits, and less than a day.
const END_AFTER_US: i64 = 3_600_000_000;

/// One thing that was sent, and when it came.
#[derive(Clone, Debug)]
pub struct Entry {
    pub received_us: i64,
    pub said: Said,
}

/// What was sent.
#[derive(Clone, Debug)]
pub enum Said {
    Event(Box<Event>),
    Heartbeat(Heartbeat),
    /// An event that is not taken.
    Bad(SourceName, Boot, u64),
    Moved(Box<Transition>),
}

/// In any order; the collector sorts by receipt.
pub type Stream = Vec<Entry>;

/// Lines for people, one for each entry.
pub fn lines(stream: &Stream) -> String {
    let mut lines = String::new();
    for entry in in_order(stream) {
        let said = match &entry.said {
            Said::Event(event) => serde_json::to_string(event).unwrap(),
            Said::Heartbeat(heartbeat) => serde_json::to_string(heartbeat).unwrap(),
            Said::Moved(transition) => serde_json::to_string(transition).unwrap(),
            Said::Bad(from, boot, seq) => format!("refused: {} {boot}#{seq}", from.source),
        };
        lines += &format!("{:>12} {said}\n", entry.received_us - super::BEGIN_US);
    }
    lines
}

fn in_order(stream: &Stream) -> Vec<&Entry> {
    let mut entries: Vec<&Entry> = stream.iter().collect();
    entries.sort_by_key(|entry| entry.received_us);
    entries
}

#[derive(Default)]
struct Run {
    /// Written or refused.
    came: BTreeSet<u64>,
    given_up: BTreeSet<u64>,
    /// From which number on it was heard.
    from: u64,
    /// The last number given out.
    last: u64,
    /// When each missing number was first known to be missing.
    missed: BTreeMap<u64, i64>,
    closing: bool,
}

#[derive(Default)]
struct Heard {
    runs: BTreeMap<Boot, Run>,
    heard_us: i64,
    watched: bool,
    silent: bool,
}

/// Source, boot and number, event id.
type Identity = (SourceName, Option<(Boot, u64)>, Option<String>);

#[derive(Default)]
struct Collector {
    records: Vec<Record>,
    seen: BTreeMap<Identity, Event>,
    moved: BTreeMap<Identity, Transition>,
    conflicts: BTreeSet<String>,
    refused: BTreeSet<(SourceName, Boot, u64)>,
    sources: BTreeMap<SourceName, Heard>,
}

/// The log that a collector makes of a stream.
pub fn records(stream: &Stream) -> Vec<Record> {
    let mut collector = Collector::default();
    let mut now_us = super::BEGIN_US;
    for entry in in_order(stream) {
        now_us = entry.received_us;
        collector.time(now_us);
        collector.take(entry);
    }
    for after_us in [SILENT_AFTER_US + 1, END_AFTER_US / 2, END_AFTER_US] {
        collector.time(now_us + after_us);
        collector.record(now_us + after_us, Body::Tick);
    }
    collector.records
}

impl Collector {
    fn record(&mut self, received_us: i64, body: Body) {
        let n = i64::try_from(self.records.len()).unwrap() + 1;
        let position = Position { collector: 1, n };
        self.records.push(Record { position, received_us, body });
    }

    /// Gives up what has waited too long.
    fn time(&mut self, now_us: i64) {
        let mut due = Vec::new();
        for (from, heard) in &mut self.sources {
            let silent_us = heard.heard_us + SILENT_AFTER_US;
            if let Some((boot, newest)) = heard.runs.last_key_value()
                && heard.watched
                && !newest.closing
                && !heard.silent
                && silent_us <= now_us
            {
                heard.silent = true;
                let silent = Silent { from: from.clone(), boot: *boot };
                due.push((silent_us, Body::Silent(silent)));
            }
            for (boot, run) in &mut heard.runs {
                let waited = run.missed.iter().map(|(seq, at_us)| (*seq, at_us + GAP_GRACE_US));
                for (seq, at_us) in waited.filter(|(_, at_us)| *at_us <= now_us) {
                    if run.given_up.insert(seq) {
                        let (from, boot) = (from.clone(), *boot);
                        let hole = GivenUp { from, boot, first_seq: seq, last_seq: seq };
                        due.push((at_us, Body::GivenUp(hole)));
                    }
                }
            }
        }
        due.sort_by_key(|(at_us, _)| *at_us);
        for (at_us, body) in due {
            self.record(at_us, body);
        }
    }

    fn take(&mut self, entry: &Entry) {
        let now_us = entry.received_us;
        match &entry.said {
            Said::Heartbeat(heartbeat) => {
                let source = self.source(&heartbeat.from, now_us);
                source.watched = true;
                let run = source.run(heartbeat.boot, heartbeat.last_seq + 1);
                let closing = heartbeat.state == SourceState::Closing;
                run.closing = closing || (run.closing && heartbeat.last_seq <= run.last);
                run.from = run.from.min(heartbeat.last_seq + 1);
                run.hear(heartbeat.last_seq, now_us);
                self.record(now_us, Body::Heartbeat(heartbeat.clone()));
            }
            Said::Event(event) => self.take_event(event, now_us),
            Said::Moved(transition) => self.take_move(transition, now_us),
            Said::Bad(from, boot, seq) => {
                // Whose name was never taken is not known by what is refused of it.
                let is_known = self.sources.contains_key(from);
                let news = self.refused.insert((from.clone(), *boot, *seq));
                if (is_known && self.source(from, now_us).come(*boot, *seq, now_us))
                    || (!is_known && news)
                {
                    self.record(now_us, refused(from, *boot, *seq));
                }
            }
        }
    }

    fn source(&mut self, from: &SourceName, now_us: i64) -> &mut Heard {
        let source = self.sources.entry(from.clone()).or_default();
        source.heard_us = now_us;
        source.silent = false;
        source
    }

    /// Transitions have numbers of their own, and nobody waits for them.
    fn take_move(&mut self, transition: &Transition, now_us: i64) {
        let sequence = transition.sequence();
        let event_id = transition.event_id.as_ref().filter(|_| sequence.is_none());
        let id = (transition.from.clone(), sequence, event_id.map(|id| id.to_string()));
        match self.moved.get(&id) {
            None => {
                self.moved.insert(id, transition.clone());
                self.record(now_us, Body::Transition(Box::new(transition.clone())));
            }
            Some(known) if known.content() == transition.content() => {}
            Some(_) => {
                if self.conflicts.insert(serde_json::to_string(&transition.content()).unwrap()) {
                    let body = Body::TransitionConflict(Box::new(transition.clone()));
                    self.record(now_us, body);
                }
            }
        }
    }

    fn take_event(&mut self, event: &Event, now_us: i64) {
        let sequence = event.sequence();
        let source = self.source(&event.from, now_us);
        if let Some((boot, seq)) = sequence {
            source.come(boot, seq, now_us);
        }
        let event_id = event.event_id.as_ref().filter(|_| sequence.is_none());
        let id = (event.from.clone(), sequence, event_id.map(|id| id.to_string()));
        match self.seen.get(&id) {
            None => {
                self.seen.insert(id, event.clone());
                self.record(now_us, Body::Event(Box::new(event.clone())));
            }
            Some(known) if known.content() == event.content() => {}
            Some(_) => {
                if self.conflicts.insert(serde_json::to_string(&event.content()).unwrap()) {
                    self.record(now_us, Body::Conflict(Box::new(event.clone())));
                }
            }
        }
    }
}

impl Heard {
    /// A run; of the first of a source nobody knows what was before.
    fn run(&mut self, boot: Boot, seq: u64) -> &mut Run {
        let first = self.runs.is_empty();
        let from = if first { seq } else { 1 };
        self.runs.entry(boot).or_insert_with(|| Run { from, last: from - 1, ..Run::default() })
    }

    /// A number came; whether that is news.
    fn come(&mut self, boot: Boot, seq: u64, now_us: i64) -> bool {
        let run = self.run(boot, seq);
        let news = run.came.insert(seq);
        run.closing &= seq <= run.last;
        run.hear(seq, now_us);
        news
    }
}

impl Run {
    /// It was heard to have come to this number.
    fn hear(&mut self, seq: u64, now_us: i64) {
        self.last = self.last.max(seq);
        if self.came.contains(&seq) {
            self.from = self.from.min(seq);
        }
        for missing in (self.from..=self.last).filter(|seq| !self.came.contains(seq)) {
            self.missed.entry(missing).or_insert(now_us);
        }
        self.missed.retain(|seq, _| !self.came.contains(seq));
    }
}

fn refused(from: &SourceName, boot: Boot, seq: u64) -> Body {
    Body::Refused(Box::new(Refused {
        from: Some(from.clone()),
        sequence: Some((boot, seq)),
        event_id: None,
        ledger: None,
        code: "bad_value".into(),
        message: "net: not an integer".into(),
        text: "{}".into(),
    }))
}
