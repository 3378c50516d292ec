//! What is known of a ref: the settlements booked under it, and the bookings that undo it.

use serde::{Deserialize, Serialize};

use super::facts::push_newest;
use super::order::Moment;
use super::row::Row;
use super::table::Stored;
use crate::outcome::Net;

/// Reversals of one ref kept.
const REVERSALS_MAX: usize = 32;
/// Signatures of one ref kept.
const REF_KEYS_MAX: usize = 64;

/// One booking that undoes another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reversal {
    pub(super) at: Moment,
    pub(super) net: Net,
    pub(super) game: Option<i64>,
}

/// What is known of one `ref` of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefFacts {
    /// Signatures accepted under it: those of the least hashes, so that which ones are kept does
    /// not hang on the order in which they came.
    pub(super) keys: Vec<i64>,
    /// Bookings that undo it.
    pub(super) reversals: Vec<Reversal>,
    #[serde(skip)]
    pub(super) rows: Vec<Row>,
    /// The order of a reversal is missing, and that was counted.
    pub(super) order_missing: bool,
}

impl RefFacts {
    /// Returns whether reversals may now be about other signatures than before.
    pub(super) fn carry(&mut self, signature: i64) -> bool {
        let Err(place) = self.keys.binary_search(&signature) else { return false };
        self.keys.insert(place, signature);
        self.keys.truncate(REF_KEYS_MAX);
        !self.reversals.is_empty()
    }

    pub(super) fn reverse(&mut self, reversal: Reversal) {
        let _ = push_newest(&mut self.reversals, reversal, REVERSALS_MAX, |reversal| &reversal.at);
    }

    /// Brings a booking that undoes in line with its fate. Returns whether that changes anything.
    pub(super) fn set_reversal(&mut self, reversal: Reversal, failed: bool) -> bool {
        let is_it = |known: &Reversal| known.at.position == reversal.at.position;
        let known = self.reversals.iter().position(is_it);
        match known {
            Some(i) if failed => {
                self.reversals.remove(i);
            }
            None if !failed => self.reverse(reversal),
            _ => return false,
        }
        true
    }
}

impl Stored for RefFacts {
    fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn take_back(&mut self, rows: Vec<Row>) {
        self.rows = rows;
    }
}
