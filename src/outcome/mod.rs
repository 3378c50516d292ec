//! The vocabulary: what a settlement service says, and what the log keeps of it.
//!
//! Values here are checked once, where they come in (`ingest::decode`), and can't be wrong
//! afterwards. The serde form of [`Event`] and [`Heartbeat`] is the wire form: the client sends
//! it, the log keeps it, the API shows it. This module knows no clock, database or HTTP.

mod event;
mod hash;
mod heartbeat;
mod id;
mod identity;
mod money;
mod ranges;
mod record;
mod settings;
mod signature;
mod time;
mod transition;

pub use event::{Effect, Event, GuardMode, Outcome, Reason, Window, WindowScope, ledger_of};
pub use hash::KeyedHash;
pub use heartbeat::{Heartbeat, SourceState};
pub use id::{Id, IdError};
pub use identity::{Boot, BootError, SourceName};
pub use money::{Amounts, Net};
pub use ranges::{Ranges, missing};
pub use record::{Body, Closed, GivenUp, Position, Record, Refused, Silent};
pub use settings::{ReuseAfter, Settings};
pub use signature::{Game, Signature};
pub use time::{format_us, parse_us, reads_back, rfc3339};
pub use transition::{DeliveryState, Transition};
