//! What the log keeps of an event that was not taken: as much of its identity as can be read, and
//! the start of its text. A seq that was refused is a place where the audit is blind.

use super::field::{self, Problem};
use super::object::Object;
use super::{Refusal, event};
use crate::limits;
use crate::outcome::{Boot, Id, KeyedHash, Refused, SourceName, ledger_of};

/// The env of a sender that names none.
pub(super) fn prod() -> Result<Id, Problem> {
    Id::parse("prod").map_err(|error| Problem::at("invalid", "env", &error.to_string()))
}

/// The refusal of a piece of a body.
pub(super) fn make(
    piece: &str,
    object: Option<&Object<'_>>,
    problem: Problem,
    hash: KeyedHash,
) -> Refusal {
    let from = object.and_then(|object| event::from(object).ok());
    let end = piece.floor_char_boundary(limits::REFUSED_TEXT_BYTES_MAX);
    let refused = Refused {
        sequence: object.and_then(sequence),
        event_id: object.and_then(|o| o.get("event_id").and_then(|r| field::id("", r).ok())),
        ledger: object.and_then(|object| ledger(object, from.as_ref())),
        from,
        code: problem.code.into(),
        message: problem.message,
        text: piece.get(..end).unwrap_or_default().into(),
    };
    Refusal { refused, is_transition: false, content: hash.wide(&[b"text", piece.as_bytes()]) }
}

fn sequence(object: &Object<'_>) -> Option<(Boot, u64)> {
    let boot = field::boot("", object.get("boot")?).ok()?;
    let seq = field::seq("", object.get("seq")?).ok()?;
    Some((boot, seq))
}

/// As named, else the source's own; none if it is named and can't be read.
fn ledger(object: &Object<'_>, from: Option<&SourceName>) -> Option<String> {
    match object.get("ledger") {
        Some(raw) => field::id("", raw).ok().map(|id| id.to_string()),
        None => from.map(ledger_of),
    }
}
