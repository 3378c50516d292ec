//! What a source says about itself every 5 s. The serde form is the wire form of
//! `POST /api/v1/heartbeats`.

use serde::{Deserialize, Serialize};

use super::{Boot, Id, SourceName};

/// Shows a lost tail, a goodbye, and that silence is silence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Heartbeat {
    /// Who says it.
    #[serde(flatten)]
    pub from: SourceName,
    /// The run of the source.
    pub boot: Boot,
    /// The last number *given out*, sent or not; 0 before the first.
    pub last_seq: u64,
    /// When, by the source's clock.
    #[serde(rename = "at", with = "super::time::rfc3339")]
    pub at_us: i64,
    /// The books that this source writes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ledgers: Vec<Id>,
    /// Whether it goes on.
    pub state: SourceState,
}

/// Whether a source goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceState {
    /// It does.
    Running,
    /// The goodbye: after it no silence and no lost tail.
    Closing,
}
