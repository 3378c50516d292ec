//! The audit: is every settlement booked exactly once; if not, who, how much, why?
//!
//! A pure fold over the records of the log: [`Audit::fold`]. It has no clock and no store: the
//! same log gives the same verdicts.
//!
//! | what | where |
//! |---|---|
//! | what was heard of sources, and so when they were blind | `source`, `run`, `offset`, `ledger` |
//! | what is known of the order of two events | `order` |
//! | sets of what was said, by player and settlement | `player`, `facts`, `table` |
//! | `duplicate_leak` | `leak` |
//! | `live_eviction` | `eviction`, `settle_evictions`, `infer` |
//! | `window_lost` | `report`, `loss`, `crossed`, `settle_windows` |
//! | `undersized_window` | `undersized`, `settle_windows` |
//! | `two_writers` | `writers` |
//! | `cap_mismatch` | `caps` |
//! | `false_block`, `unverifiable_block` | `block`, `window` |
//! | `indeterminate_outcome` | `unclear` |
//! | what became of an acceptance: its effect, told with it or later | `fate` |
//! | `accept_without_effect`, `block_after_failed_effect` | `effect` |
//! | `stuck_claim`, `retry_storm` | `claim` |
//! | `outcome_flip`, `replica_disagreement`, `ambiguous_equal` | `disagree` |
//! | `cross_room_booking`, `signature_reused` | `booking` |
//! | `guard_bypass` | `bypass` |
//! | `missed_duplicate` | `missed` |
//! | `id_collision` | `message` |
//! | `version_regression`, `torn_state`, `counter_wrap` | `room` |
//! | `clock_rollback`, `clock_skew` | `clock` |
//! | `telemetry_gap`, `identity_conflict`, `rejected_evidence` | `hearing`, `group` |
//! | `illegal_transition` | `transition` |
//! | rows that grow, close and are followed by others | `row`, `book`, `group`, `settle_groups` |
//! | rows that nobody has to close | `quiet` |
//! | what a rule is given and answers | `rule` |
//! | how long windows have to be | `advisor`, `measure`, `advice` |
//! | graces | `waits`, `settle`, `subject` |
//! | what must be loaded | `needs` |

mod advice;
mod advisor;
mod block;
mod book;
mod booking;
mod bypass;
mod caps;
mod claim;
mod clock;
mod crossed;
mod disagree;
mod effect;
mod eviction;
mod facts;
mod fate;
mod finding;
mod fold;
mod group;
mod hearing;
mod infer;
mod kind;
mod leak;
mod ledger;
mod loss;
mod measure;
mod message;
mod missed;
mod more;
mod needs;
mod offset;
mod order;
mod player;
mod quiet;
mod ref_facts;
mod report;
mod room;
mod row;
mod rule;
mod run;
mod settle;
mod settle_evictions;
mod settle_groups;
mod settle_windows;
mod source;
mod state;
mod subject;
mod table;
mod transition;
mod unclear;
mod undersized;
mod waits;
mod window;
mod witness;
mod writers;

pub use advice::{
    Advice, DAYS, DISTANCES, Histogram, LATE_GAMES, LATE_SECONDS, Measured, Need, Why,
};
pub use book::{Book, Change, Opened, SumKey, Sums};
pub use facts::SignatureFacts;
pub use finding::{Coverage, Finding, OrderKnown, Severity, State, Subject, Witness};
pub use group::Group;
pub use kind::Kind;
pub use ledger::{Ledger, Ledgers};
pub use message::MessageFacts;
pub use player::PlayerFacts;
pub use ref_facts::RefFacts;
pub use room::RoomFacts;
pub use row::Row;
pub use source::{Blind, Source, SourceId, Sources};
pub use state::{Audit, MinuteKey, Service, player_key};
pub use table::{
    Facts, MessageKey, Needs, PlayerKey, RefKey, RoomKey, SignatureKey, Stored, Table,
};
pub use waits::{Wait, Waiting, Waits};

pub use crate::outcome::{ReuseAfter, Settings};

#[cfg(test)]
mod tests;
