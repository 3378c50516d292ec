//! A log as the collector writes it of simulated services: their events, numbered, with a
//! heartbeat of each source every five seconds of game time and goodbyes.

use dedupwatch::outcome::{
    Body, Boot, Event, Heartbeat, Position, Record, SourceName, SourceState,
};
use dedupwatch::simulate::{Step, Stream, StreamSettings};

const START_US: i64 = 1_800_000_000_000_000;
const BEAT_US: i64 = 5_000_000;
/// From an event to its receipt.
const ON_THE_WAY_US: i64 = 50_000;

struct Told {
    from: SourceName,
    boot: Boot,
    seq: u64,
}

/// A log that is being written.
pub(crate) struct Log {
    stream: Stream,
    sources: Vec<Told>,
    beat_us: i64,
    records: Vec<Record>,
    collector: i64,
}

impl Log {
    /// An empty log of 1,000 players for each service.
    pub(crate) fn new(collector: i64, faults: &[&str]) -> Self {
        let stream = Stream::new(StreamSettings {
            seed: 7,
            start_us: START_US,
            length_us: 30 * 24 * 3_600_000_000,
            players: 1_000,
            tag: None,
            faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
        });
        let stream = stream.unwrap();
        let boot = Stream::boot_at(START_US);
        let told = |from: &SourceName| Told { from: from.clone(), boot, seq: 0 };
        let sources = stream.sources().map(told).collect();
        Self { stream, sources, beat_us: START_US, records: Vec::new(), collector }
    }

    /// The log with at least this many records.
    pub(crate) fn write(mut self, records: usize) -> Vec<Record> {
        while self.records.len() < records {
            let step = self.stream.next_step().unwrap().unwrap();
            while self.beat_us <= step.at_us() {
                for index in 0..self.sources.len() {
                    self.beat(index, self.beat_us, SourceState::Running);
                }
                self.beat_us += BEAT_US;
            }
            match step {
                Step::Decided { source, events, lost, .. } => {
                    events.into_iter().for_each(|event| self.tell(source, event, lost));
                }
                Step::Restarted { at_us, source, goodbye } => {
                    if goodbye {
                        self.beat(source, at_us, SourceState::Closing);
                    }
                    self.sources[source].boot = Stream::boot_at(at_us);
                    self.sources[source].seq = 0;
                }
            }
        }
        self.records
    }

    fn tell(&mut self, source: usize, event: Event, lost: bool) {
        let told = &mut self.sources[source];
        told.seq += 1;
        let event = Event { boot: Some(told.boot), seq: Some(told.seq), ..event };
        if !lost {
            self.append(event.occurred_us, Body::Event(Box::new(event)));
        }
    }

    fn beat(&mut self, source: usize, at_us: i64, state: SourceState) {
        let Told { from, boot, seq } = &self.sources[source];
        let ledgers = self.stream.ledger(source).into_iter().cloned().collect();
        let (from, boot, last_seq) = (from.clone(), *boot, *seq);
        self.append(
            at_us,
            Body::Heartbeat(Heartbeat { from, boot, last_seq, at_us, ledgers, state }),
        );
    }

    fn append(&mut self, at_us: i64, body: Body) {
        let n = i64::try_from(self.records.len()).unwrap() + 1;
        let position = Position { collector: self.collector, n };
        self.records.push(Record { position, received_us: at_us + ON_THE_WAY_US, body });
    }
}
