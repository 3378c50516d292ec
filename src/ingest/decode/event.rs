//! An outcome, field by field.

use serde_json::value::RawValue;

use super::field::{self, Problem, needed, optional};
use super::object::Object;
use super::{refusal, signature};
use crate::limits;
use crate::outcome::{
    Boot, Effect, Event, GuardMode, Id, Outcome, Reason, Signature, SourceName, Window, WindowScope,
};

/// The fields of an outcome.
pub(super) const KNOWN: &[&str] = &[
    "service",
    "source",
    "boot",
    "seq",
    "event_id",
    "occurred_at",
    "env",
    "ledger",
    "player",
    "signature",
    "outcome",
    "window",
    "evicted",
    "guard",
    "guard_mode",
    "reason",
    "ref",
    "reversal_of",
    "attempt",
    "effect",
    "booked_room",
    "request_id",
    "state_version",
    "state_hash",
    "message_id",
    "service_version",
    "trace_id",
    "check_us",
    "response_us",
];

/// Reads an outcome.
pub(super) fn read(object: &Object<'_>, now_us: i64) -> Result<Event, Problem> {
    let (boot, seq, event_id) = identity(object)?;
    let event = Event {
        from: from(object)?,
        boot,
        seq,
        event_id,
        occurred_us: field::moment("occurred_at", needed(object, "", "occurred_at")?, now_us)?,
        ledger_named: optional(object, "ledger", field::id)?,
        player: field::id("player", needed(object, "", "player")?)?,
        signature: signature::read("signature", needed(object, "", "signature")?)?,
        outcome: outcome(object)?,
        window: optional(object, "window", window)?,
        evicted: optional(object, "evicted", evicted)?.unwrap_or_default(),
        guard: optional(object, "guard", field::id)?,
        guard_mode: optional(object, "guard_mode", field::word::<GuardMode>)?,
        reason: optional(object, "reason", field::word::<Reason>)?,
        reference: optional(object, "ref", field::id)?,
        reversal_of: optional(object, "reversal_of", field::id)?,
        attempt: optional(object, "attempt", field::natural)?,
        effect: optional(object, "effect", field::word::<Effect>)?,
        booked_room: optional(object, "booked_room", field::room)?,
        request_id: optional(object, "request_id", field::id)?,
        state_version: optional(object, "state_version", field::natural)?,
        state_hash: optional(object, "state_hash", field::id)?,
        message_id: optional(object, "message_id", field::id_or_integer)?,
        service_version: optional(object, "service_version", field::id)?,
        trace_id: optional(object, "trace_id", field::id)?,
        check_us: optional(object, "check_us", field::natural)?,
        response_us: optional(object, "response_us", field::natural)?,
    };
    refuse_contradictions(&event)?;
    Ok(event)
}

/// Who says it.
pub(super) fn from(object: &Object<'_>) -> Result<SourceName, Problem> {
    Ok(SourceName {
        service: field::id("service", needed(object, "", "service")?)?,
        env: optional(object, "env", field::id)?.map_or_else(refusal::prod, Ok)?,
        source: field::id("source", needed(object, "", "source")?)?,
    })
}

type Identity = (Option<Boot>, Option<u64>, Option<Id>);

/// What tells it from others.
pub(super) fn identity(object: &Object<'_>) -> Result<Identity, Problem> {
    let boot = optional(object, "boot", field::boot)?;
    let seq = optional(object, "seq", field::seq)?;
    let event_id = optional(object, "event_id", field::id)?;
    match (boot, seq, &event_id) {
        (None, Some(_), _) => {
            let message = "is missing beside seq, which counts the events of a boot; send both";
            Err(Problem::at("missing", "boot", message))
        }
        (_, None, None) => {
            let message = "is missing; send boot and seq, or event_id: without an identity a \
                           repeat can't be told from a second event";
            Err(Problem::at("missing", "seq", message))
        }
        _ => Ok((boot, seq, event_id)),
    }
}

/// What the guard did; an effect on its own tells the fate of an earlier acceptance.
fn outcome(object: &Object<'_>) -> Result<Outcome, Problem> {
    match optional(object, "outcome", field::word::<Outcome>)? {
        Some(outcome) => Ok(outcome),
        None if object.get("effect").is_some() => Ok(Outcome::EffectReported),
        None => Err(Problem::at(
            "missing",
            "outcome",
            "is missing; send it, or effect alone to tell what became of an earlier acceptance",
        )),
    }
}

fn window(path: &str, raw: &RawValue) -> Result<Window, Problem> {
    let object = field::object(path, raw)?;
    let scope = object.get("scope").map(|raw| field::word::<WindowScope>("window.scope", raw));
    Ok(Window {
        len: field::natural("window.len", needed(&object, "window.", "len")?)?,
        cap: field::natural("window.cap", needed(&object, "window.", "cap")?)?,
        scope: scope.transpose()?.unwrap_or_default(),
    })
}

fn evicted(path: &str, raw: &RawValue) -> Result<Vec<Signature>, Problem> {
    let read =
        |(index, raw): (usize, &&RawValue)| signature::read(&format!("{path}[{index}]"), raw);
    let all = field::array(path, raw)?;
    if all.len() > limits::EVICTED_MAX {
        let message = format!(
            "has {} signatures, {} at most; send those that fell out before as `evicted` events",
            all.len(),
            limits::EVICTED_MAX
        );
        return Err(Problem::at("too_many", path, &message));
    }
    all.iter().enumerate().map(read).collect()
}

/// What can't both be true. A window longer than its capacity can: it is taken and reported.
fn refuse_contradictions(event: &Event) -> Result<(), Problem> {
    let outcome = event.outcome.as_str();
    if let Some(reason) = event.reason.filter(|reason| !reason.fits(event.outcome)) {
        let reason = reason.as_str();
        let message =
            format!("{reason} does not go with the outcome {outcome}; send one that does");
        return Err(Problem::at("contradiction", "reason", &message));
    }
    if !event.evicted.is_empty() && !event.is_acceptance() {
        let message = format!("goes with acceptances only, not with {outcome}; leave it out");
        return Err(Problem::at("contradiction", "evicted", &message));
    }
    refuse_fates(event)?;
    if event.reversal_of.is_some() && event.reversal_of == event.reference {
        let message = "is the ref itself, and no booking undoes itself; send the ref undone";
        return Err(Problem::at("contradiction", "reversal_of", message));
    }
    Ok(())
}

/// Money moves by acceptances alone; what became of one may be told later.
fn refuse_fates(event: &Event) -> Result<(), Problem> {
    let outcome = event.outcome.as_str();
    let reported = event.outcome == Outcome::EffectReported;
    let evicted = event.outcome == Outcome::Evicted;
    if event.effect.is_none() && reported {
        let message = "is missing beside the outcome effect_reported; send applied, failed or \
                       unknown";
        return Err(Problem::at("missing", "effect", message));
    }
    if event.effect.is_some() && !reported && !event.is_acceptance() {
        let message = format!(
            "goes with acceptances, or with no outcome to tell what became of one, not with \
             {outcome}; leave one of them out"
        );
        return Err(Problem::at("contradiction", "effect", &message));
    }
    let of_bookings = [
        ("booked_room", event.booked_room.is_some()),
        // A reversal may be blocked or held, as any booking; an eviction is of no booking.
        ("reversal_of", (reported || evicted) && event.reversal_of.is_some()),
    ];
    match of_bookings.iter().find(|(_, said)| *said && !event.is_acceptance()) {
        None => Ok(()),
        Some((field, _)) => {
            let message = format!("is about a booking, not about {outcome}; leave it out");
            Err(Problem::at("contradiction", field, &message))
        }
    }
}
