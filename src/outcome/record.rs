//! The entries of the log. Whatever the clock decides is one too, so that the audit needs no
//! clock: same log, same verdicts.

use serde::{Deserialize, Serialize};

use super::{Boot, Event, Heartbeat, Id, Settings, SourceName, Transition};

/// A place in the log: (collector, n), n without holes for each collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Position {
    /// Whose part of the log.
    pub collector: i64,
    /// From 1.
    pub n: i64,
}

/// One entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Its place.
    pub position: Position,
    /// When the collector wrote it, by its own clock.
    pub received_us: i64,
    /// What it says.
    pub body: Body,
}

/// What an entry of the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// An outcome.
    Event(Box<Event>),
    /// An event that was not taken.
    Refused(Box<Refused>),
    /// The other content of a known identity.
    Conflict(Box<Event>),
    /// A source says that it is there.
    Heartbeat(Heartbeat),
    /// The collector stopped waiting for a source.
    Silent(Silent),
    /// The collector stopped waiting for a hole.
    GivenUp(GivenUp),
    /// A person closed a finding.
    Closed(Closed),
    /// Time went by, and something waited for it.
    Tick,
    /// A delivery went from one state to another.
    Transition(Box<Transition>),
    /// The other content of a known transition.
    TransitionConflict(Box<Transition>),
    /// What of the audit is set was changed.
    Settings(Settings),
}

/// An event that was not taken, with as much of its identity as could be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refused {
    /// Who sent it, where that could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<SourceName>,
    /// Its run and number, where they could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sequence: Option<(Boot, u64)>,
    /// Its own identity, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event_id: Option<Id>,
    /// Its ledger, where it could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ledger: Option<String>,
    /// The error code that the sender was told.
    pub code: String,
    /// The error text that the sender was told.
    pub message: String,
    /// The first KiB of what was sent.
    pub text: String,
}

/// A watched source that was not heard for too long.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Silent {
    /// Which one.
    pub from: SourceName,
    /// Its newest run.
    pub boot: Boot,
}

/// Numbers of a boot that did not come in time. They are still taken when they come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GivenUp {
    /// Which source.
    pub from: SourceName,
    /// Which run.
    pub boot: Boot,
    /// First missing number.
    pub first_seq: u64,
    /// Last missing number.
    pub last_seq: u64,
}

/// A person's decision about a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    /// Which finding.
    pub finding: String,
    /// Why.
    pub reason: String,
    /// In their words.
    pub note: String,
}
