//! What is known about the order of two events.
//!
//! Clocks lie and pushes cross. Order is *proven* by the numbers of a source, *assumed* by clocks
//! where they are far enough apart, and otherwise there is none: a rule whose answer would differ
//! is then skipped and counted, never guessed.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::finding::OrderKnown;
use super::source::{SourceId, Sources};
use crate::outcome::{Boot, Event, Position};

/// Clocks of two sources that differ by less say nothing (audit.md: 1 s).
pub(super) const SKEW_US: i64 = 1_000_000;

/// When an event was: by its source's numbers and by its source's clock.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub(super) struct Moment {
    /// By the source's clock.
    pub(super) at_us: i64,
    /// Its place in the log.
    pub(super) position: Position,
    /// Whose clock and numbers.
    pub(super) source: SourceId,
    /// The run and the number in it.
    pub(super) sequence: Option<(Boot, u64)>,
}

/// A moment as it is stored, many times for each player: time, place, source; and the run (a
/// number, or a start time) and the number in it.
type Stored = (i64, i64, i64, SourceId, Option<(bool, i64, u64)>);

impl From<Moment> for Stored {
    fn from(moment: Moment) -> Self {
        let sequence = moment.sequence.map(|(boot, seq)| match boot {
            Boot::Number(number) => (false, number.cast_signed(), seq),
            Boot::Started { at_us } => (true, at_us, seq),
        });
        let Position { collector, n } = moment.position;
        (moment.at_us, collector, n, moment.source, sequence)
    }
}

impl From<Stored> for Moment {
    fn from((at_us, collector, n, source, sequence): Stored) -> Self {
        let sequence = sequence.map(|(is_time, value, seq)| match is_time {
            false => (Boot::Number(value.cast_unsigned()), seq),
            true => (Boot::Started { at_us: value }, seq),
        });
        Self { at_us, position: Position { collector, n }, source, sequence }
    }
}

impl Moment {
    pub(super) fn of(event: &Event, position: Position, source: SourceId) -> Self {
        Self { at_us: event.occurred_us, position, source, sequence: event.sequence() }
    }

    /// Time between the two by their clocks.
    pub(super) fn distance_us(&self, other: &Self) -> i64 {
        self.at_us.saturating_sub(other.at_us).saturating_abs()
    }

    /// A total order for lists: numbers where they decide, then clocks, then place.
    pub(super) fn list_order(&self, other: &Self) -> Ordering {
        match (self.sequence, other.sequence) {
            (Some(a), Some(b)) if self.source == other.source && a.0.same_sort(b.0) => a.cmp(&b),
            _ => (self.at_us, self.position).cmp(&(other.at_us, other.position)),
        }
    }
}

/// The order of `a` and `b`, and how it is known; `None` if it is not. Never `Equal` for two
/// different events.
pub(super) fn order(sources: &Sources, a: &Moment, b: &Moment) -> Option<(Ordering, OrderKnown)> {
    if a.position == b.position {
        return Some((Ordering::Equal, OrderKnown::Proven));
    }
    if a.source == b.source {
        return order_within(sources, a, b);
    }
    let at = |moment: &Moment| {
        moment.at_us.saturating_add(sources.offset_us(moment.source).unwrap_or(0))
    };
    let (a_us, b_us) = (at(a), at(b));
    (a_us.saturating_sub(b_us).saturating_abs() > SKEW_US)
        .then(|| (a_us.cmp(&b_us), OrderKnown::Assumed))
}

fn order_within(sources: &Sources, a: &Moment, b: &Moment) -> Option<(Ordering, OrderKnown)> {
    if let (Some((boot_a, seq_a)), Some((boot_b, seq_b))) = (a.sequence, b.sequence) {
        if boot_a == boot_b {
            return Some((seq_a.cmp(&seq_b), OrderKnown::Proven));
        }
        return sources
            .boots_in_order(a.source, boot_a, boot_b)
            .then(|| (boot_a.cmp(&boot_b), OrderKnown::Proven));
    }
    (a.at_us != b.at_us).then(|| (a.at_us.cmp(&b.at_us), OrderKnown::Assumed))
}

/// Whether `a` is known to be before `b`.
pub(super) fn is_before(sources: &Sources, a: &Moment, b: &Moment) -> bool {
    matches!(order(sources, a, b), Some((Ordering::Less, _)))
}

/// How the order of the two is known.
pub(super) fn how_known(sources: &Sources, a: &Moment, b: &Moment) -> OrderKnown {
    order(sources, a, b).map_or(OrderKnown::Unproven, |(_, known)| known)
}
