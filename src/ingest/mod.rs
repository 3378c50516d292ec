//! The way in: decode -> queue -> append -> ack.
//!
//! [`Ingest`] is the handle that handlers hold. Behind it stands one writer task that owns what
//! is known of every source (which numbers of which run have come) and puts whatever queued
//! while the last commit ran onto the disk as one group. An answer is given only after that
//! commit. There is no lock: what the writer owns, only the writer touches.

mod answer;
mod boot;
mod contents;
pub mod decode;
mod item;
mod keeper;
mod keys;
mod ledgers;
mod plan;
mod queue;
mod room;
mod said;
mod sets;
mod sources;
mod tally;
mod transitions;
mod writer;

use std::sync::Arc;

pub use self::answer::{Answer, Busy, EventError};
pub use self::queue::Ingest;
pub use self::room::Admission;
use self::tally::Tally;
use crate::clock::Clock;
use crate::metrics::Metrics;
use crate::outcome::{Body, Record, Refused};
use crate::store::Store;
use crate::store::rollups::Rollups;
use crate::vitals::Vitals;

/// What ingest works with.
pub struct Parts {
    /// Where the log is kept.
    pub store: Arc<Store>,
    /// Tells the others how far the log is.
    pub vitals: Arc<Vitals>,
    /// Counts what was committed.
    pub metrics: Arc<Metrics>,
    /// The time of receipt.
    pub clock: Clock,
    /// How long a missing number is waited for (`[audit] gap_grace`).
    pub gap_grace_us: i64,
}

/// Something that was not taken, and what tells it from others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the log keeps of it. Of a transition it names no identity: that is a number among
    /// transitions, and the audit would take it for one among outcomes.
    pub refused: Refused,
    /// Whether it is a transition: those say nothing of their source's outcomes.
    pub is_transition: bool,
    /// Keyed hash of its whole text: its identity where it names none that can be read.
    pub content: [u8; 16],
}

/// The rollups by minute of these records, as the ack writes them.
pub fn rollups_of(records: &[Record]) -> Rollups {
    let mut tally = Tally::default();
    for record in records {
        match &record.body {
            Body::Event(event) => tally.write(event),
            Body::Transition(transition) => tally.move_on(transition),
            _ => {}
        }
    }
    tally.rollups()
}

#[cfg(test)]
mod tests;
