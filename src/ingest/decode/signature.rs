//! Signatures: what is missing in one would make two settlements look like one.

use serde_json::value::RawValue;

use super::field::{self, Problem, needed};
use super::object::Object;
use crate::outcome::{Game, Net, Signature};

/// Reads a signature that stands at `path`.
pub(super) fn read(path: &str, raw: &RawValue) -> Result<Signature, Problem> {
    let object = field::object(path, raw)?;
    let inside = format!("{path}.");
    match object.get("key") {
        Some(key) => opaque(&object, &inside, key),
        None => settlement(&object, &inside),
    }
}

fn opaque(object: &Object<'_>, path: &str, key: &RawValue) -> Result<Signature, Problem> {
    let other =
        ["session", "room", "round", "final"].iter().find(|name| object.get(name).is_some());
    if let Some(other) = other {
        let message = "stands beside key, which is the whole identity; send one or the other";
        return Err(Problem::at("contradiction", &format!("{path}{other}"), message));
    }
    let key = field::id(&format!("{path}key"), key)?;
    let net = object.get("net").map(|raw| net(path, raw)).transpose()?.unwrap_or_default();
    Ok(Signature::Opaque { key, net })
}

fn settlement(object: &Object<'_>, path: &str) -> Result<Signature, Problem> {
    let at = |name: &str| format!("{path}{name}");
    let session = object.get("session").map(|raw| field::id(&at("session"), raw)).transpose()?;
    let room = field::room(&at("room"), needed(object, path, "room")?)?;
    let round = field::id_or_integer(&at("round"), needed(object, path, "round")?)?;
    let net = net(path, needed(object, path, "net")?)?;
    let last = field::boolean(&at("final"), needed(object, path, "final")?)?;
    Ok(Signature::Settlement { game: Game { session, room, round }, net, last })
}

fn net(path: &str, raw: &RawValue) -> Result<Net, Problem> {
    field::integer(&format!("{path}net"), raw).map(Net)
}
