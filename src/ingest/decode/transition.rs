//! A transition, field by field.

use super::field::{self, Problem, needed, optional};
use super::object::Object;
use super::{event, refusal};
use crate::ingest::Refusal;
use crate::outcome::{DeliveryState, KeyedHash, Transition};

/// The fields of a transition.
pub(super) const KNOWN: &[&str] = &[
    "service", "source", "boot", "seq", "event_id", "env", "trace_id", "key", "from", "to",
    "reason", "at",
];

/// Reads a transition. A move that is not legal is taken: it is what the audit looks for.
pub(super) fn read(object: &Object<'_>, now_us: i64) -> Result<Transition, Problem> {
    let state = |name| field::word::<DeliveryState>(name, needed(object, "", name)?);
    let (boot, seq, event_id) = event::identity(object)?;
    Ok(Transition {
        from: event::from(object)?,
        boot,
        seq,
        event_id,
        trace_id: field::id("trace_id", needed(object, "", "trace_id")?)?,
        key: field::id("key", needed(object, "", "key")?)?,
        left: state("from")?,
        entered: state("to")?,
        reason: optional(object, "reason", field::id)?,
        at_us: field::moment("at", needed(object, "", "at")?, now_us)?,
    })
}

/// The refusal of a piece of a body.
pub(super) fn refuse(
    piece: &str,
    object: Option<&Object<'_>>,
    problem: Problem,
    hash: KeyedHash,
) -> Refusal {
    refusal::make(piece, object, problem, hash).into_transition(hash)
}
