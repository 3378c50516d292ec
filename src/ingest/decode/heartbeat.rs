//! A heartbeat, field by field.

use serde_json::value::RawValue;

use super::event;
use super::field::{self, Problem, needed, optional};
use super::object::Object;
use crate::outcome::{Heartbeat, Id, SourceState};

/// The fields of a heartbeat.
pub(super) const KNOWN: &[&str] =
    &["service", "env", "source", "boot", "last_seq", "at", "ledgers", "state"];

/// Reads a heartbeat. Its time has the bounds of an event's: one from next year would push the
/// watermark there.
pub(super) fn read(object: &Object<'_>, now_us: i64) -> Result<Heartbeat, Problem> {
    Ok(Heartbeat {
        from: event::from(object)?,
        boot: field::boot("boot", needed(object, "", "boot")?)?,
        last_seq: field::natural("last_seq", needed(object, "", "last_seq")?)?,
        at_us: field::moment("at", needed(object, "", "at")?, now_us)?,
        ledgers: optional(object, "ledgers", ledgers)?.unwrap_or_default(),
        state: field::word::<SourceState>("state", needed(object, "", "state")?)?,
    })
}

fn ledgers(path: &str, raw: &RawValue) -> Result<Vec<Id>, Problem> {
    let read = |(index, raw): (usize, &&RawValue)| field::id(&format!("{path}[{index}]"), raw);
    field::array(path, raw)?.iter().enumerate().map(read).collect()
}
