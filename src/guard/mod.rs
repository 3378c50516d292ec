//! Deduplication strategies, pure and usable by a settlement service as they are.
//!
//! A guard decides one delivery at a time, for one player, under the lock that also moves the
//! money. It keeps no clock and does no I/O; whoever calls it writes down what it said (see
//! `client`), so that somebody else can audit it.

mod window;

pub use window::{Decision, SignatureWindow, Verdict};
