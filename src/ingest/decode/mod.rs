//! From bytes to values that can't be wrong.
//!
//! Two layers of refusal. A body that can't be cut into events at all is a [`BodyError`]: nothing
//! of it is taken. Once it is cut, every event stands for itself: a bad one becomes a
//! [`Refusal`] that names field, problem and remedy, and keeps whatever identity could be read,
//! since the audit must know which number of which run it is blind to. serde's derived readers
//! are not used here: they stop at the first error without saying where, keep the last of two
//! equal keys, and take `1e3` for an integer.

mod body;
mod event;
mod field;
mod heartbeat;
mod inflate;
mod object;
mod refusal;
mod signature;
mod transition;

pub use self::body::{BodyError, Format};
use self::field::Problem;
pub use self::inflate::{Encoding, inflate};
use self::object::Object;
use super::Refusal;
use crate::limits;
use crate::outcome::{Event, Heartbeat, KeyedHash, Transition};

/// What decoding needs to know of the world.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The present moment, for the bounds of `occurred_at`.
    pub now_us: i64,
    /// Tells apart refused texts without an identity.
    pub hash: KeyedHash,
}

/// The outcomes, heartbeats or transitions of one request, in its order.
#[derive(Debug)]
pub struct Decoded<T> {
    /// Each taken or refused for itself.
    pub items: Vec<Result<T, Refusal>>,
    /// Fields that nobody knows: ignored, and counted.
    pub unknown_fields: u64,
}

/// Reads the outcomes of one inflated body.
pub fn outcomes(
    body: &[u8],
    format: Format,
    context: Context,
) -> Result<Decoded<Event>, BodyError> {
    decode(body, format, context, (event::KNOWN, event::read, refusal::make))
}

/// Reads the heartbeats of one inflated body.
pub fn heartbeats(
    body: &[u8],
    format: Format,
    context: Context,
) -> Result<Decoded<Heartbeat>, BodyError> {
    decode(body, format, context, (heartbeat::KNOWN, heartbeat::read, refusal::make))
}

/// Reads the transitions of one inflated body.
pub fn transitions(
    body: &[u8],
    format: Format,
    context: Context,
) -> Result<Decoded<Transition>, BodyError> {
    decode(body, format, context, (transition::KNOWN, transition::read, transition::refuse))
}

/// What is known of a sort of things: its fields, how one is read, and how one is refused.
type Sort<T> = (
    &'static [&'static str],
    fn(&Object<'_>, i64) -> Result<T, Problem>,
    fn(&str, Option<&Object<'_>>, Problem, KeyedHash) -> Refusal,
);

fn decode<T>(
    body: &[u8],
    format: Format,
    context: Context,
    (known, read, refuse): Sort<T>,
) -> Result<Decoded<T>, BodyError> {
    let pieces = body::cut(body, format)?;
    let mut decoded = Decoded { items: Vec::with_capacity(pieces.len()), unknown_fields: 0 };
    for piece in pieces {
        let object = Object::parse(piece);
        let value = checked(piece, &object, |object| read(object, context.now_us));
        if let Ok(object) = &object {
            decoded.unknown_fields += object.unknown(known);
        }
        let refuse = |problem| refuse(piece, object.as_ref().ok(), problem, context.hash);
        decoded.items.push(value.map_err(refuse));
    }
    Ok(decoded)
}

/// What holds for every event and heartbeat, then what it says itself.
fn checked<T>(
    piece: &str,
    object: &Result<Object<'_>, Problem>,
    read: impl Fn(&Object<'_>) -> Result<T, Problem>,
) -> Result<T, Problem> {
    if piece.len() > limits::EVENT_BYTES_MAX {
        let size = piece.len();
        let most = limits::EVENT_BYTES_MAX;
        return Err(Problem::new(
            "too_large",
            format!("the event has {size} bytes; at most {most} are taken, send less with it"),
        ));
    }
    let object = object.as_ref().map_err(Clone::clone)?;
    object.refuse_duplicates("")?;
    read(object)
}

#[cfg(test)]
mod tests;
