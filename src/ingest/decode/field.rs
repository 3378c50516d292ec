//! One field: read strictly, refused with its name, what is wrong, and what to do.

use std::borrow::Cow;

use serde::de::{DeserializeOwned, IntoDeserializer, value};
use serde_json::value::RawValue;

use super::object::{Object, Text};
use crate::limits;
use crate::outcome::{Boot, Id, IdError, parse_us, reads_back};

/// Longest message: it goes to the sender up to 100 times an answer, and into the log.
const MESSAGE_BYTES_MAX: usize = 300;
/// Longest piece of a bad value that a message shows.
const SHOWN_CHARS_MAX: usize = 40;

/// Why an event is not taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Problem {
    /// For programs.
    pub(super) code: &'static str,
    /// For people.
    pub(super) message: String,
}

impl Problem {
    /// A problem of the event as a whole.
    pub(super) fn new(code: &'static str, message: impl Into<String>) -> Self {
        // Keys and words of the sender are in it.
        let mut message = message.into().replace(char::is_control, "\u{fffd}");
        if message.len() > MESSAGE_BYTES_MAX {
            message.truncate(message.floor_char_boundary(MESSAGE_BYTES_MAX));
        }
        Self { code, message }
    }

    /// A problem of one field.
    pub(super) fn at(code: &'static str, path: &str, message: &str) -> Self {
        let path = path.get(..path.floor_char_boundary(100)).unwrap_or_default();
        Self::new(code, format!("{path}: {message}"))
    }

    fn invalid(path: &str, raw: &RawValue, remedy: &str) -> Self {
        Self::at("invalid", path, &format!("{} {remedy}", shown(raw.get())))
    }
}

/// The start of a bad value, safe to print.
fn shown(text: &str) -> String {
    let visible = |c: char| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c };
    let start: String = text.chars().take(SHOWN_CHARS_MAX).map(visible).collect();
    if text.chars().nth(SHOWN_CHARS_MAX).is_some() { format!("{start}...") } else { start }
}

/// A field that must be there.
pub(super) fn needed<'a>(
    object: &Object<'a>,
    path: &str,
    name: &str,
) -> Result<&'a RawValue, Problem> {
    let missing = || Problem::at("missing", &format!("{path}{name}"), "is missing; send it");
    object.get(name).ok_or_else(missing)
}

/// A field that may be there.
pub(super) fn optional<T>(
    object: &Object<'_>,
    name: &str,
    read: impl Fn(&str, &RawValue) -> Result<T, Problem>,
) -> Result<Option<T>, Problem> {
    object.get(name).map(|raw| read(name, raw)).transpose()
}

/// A string.
pub(super) fn text<'a>(path: &str, raw: &'a RawValue) -> Result<Cow<'a, str>, Problem> {
    let read: Result<Text<'a>, _> = serde_json::from_str(raw.get());
    let Text(text) = read.map_err(|_| Problem::invalid(path, raw, "is no string; send one"))?;
    Ok(text)
}

/// An id.
pub(super) fn id(path: &str, raw: &RawValue) -> Result<Id, Problem> {
    parse_id(path, raw, &text(path, raw)?, false)
}

/// The id of a room, which alone may be empty.
pub(super) fn room(path: &str, raw: &RawValue) -> Result<Id, Problem> {
    parse_id(path, raw, &text(path, raw)?, true)
}

/// An id that may be written as an integer too.
pub(super) fn id_or_integer(path: &str, raw: &RawValue) -> Result<Id, Problem> {
    if raw.get().starts_with('"') {
        return id(path, raw);
    }
    parse_id(path, raw, &integer(path, raw)?.to_string(), false)
}

fn parse_id(path: &str, raw: &RawValue, text: &str, may_be_empty: bool) -> Result<Id, Problem> {
    let id = if may_be_empty { Id::parse_or_empty(text) } else { Id::parse(text) };
    id.map_err(|error| {
        let (code, value) = match error {
            IdError::Empty => ("empty", String::new()),
            IdError::TooLong(_) => ("too_long", format!("{} ", shown(raw.get()))),
            IdError::Control(_) => ("control_character", format!("{} ", shown(raw.get()))),
        };
        Problem::at(code, path, &format!("{value}{error}"))
    })
}

/// A signed 64-bit integer, as a JSON integer or a decimal string. `1.0` and `1e3` are no
/// integers: a sender that writes them may have lost digits already.
pub(super) fn integer(path: &str, raw: &RawValue) -> Result<i64, Problem> {
    let quoted;
    let digits = if raw.get().starts_with('"') {
        quoted = text(path, raw)?;
        quoted.as_ref()
    } else {
        raw.get()
    };
    let number = if is_integer(digits) { digits.parse().ok() } else { None };
    number.ok_or_else(|| {
        let remedy = "is no integer from -2^63 to 2^63-1; send digits, as a number or a string";
        Problem::invalid(path, raw, remedy)
    })
}

/// The grammar of a JSON integer: no plus, no leading zeros.
fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let plain = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain && (digits.len() == 1 || !digits.starts_with('0'))
}

/// An integer from 0 to 2^63-1.
pub(super) fn natural(path: &str, raw: &RawValue) -> Result<u64, Problem> {
    let negative = |_| Problem::invalid(path, raw, "is negative; send 0 to 2^63-1");
    u64::try_from(integer(path, raw)?).map_err(negative)
}

/// The number of an event in its run, or of its run's last one.
pub(super) fn seq(path: &str, raw: &RawValue) -> Result<u64, Problem> {
    match natural(path, raw)? {
        0 => Err(Problem::invalid(path, raw, "is below 1; count the events of a boot from 1")),
        seq => Ok(seq),
    }
}

/// A boot: a string, or an integer.
pub(super) fn boot(path: &str, raw: &RawValue) -> Result<Boot, Problem> {
    let boot = if raw.get().starts_with('"') { text(path, raw)? } else { Cow::Borrowed(raw.get()) };
    let remedy = "is neither an RFC 3339 time from 1970 to 9999 nor an integer from 0 to 2^63-1; \
                  send the start time of the process or a counter that rises";
    Boot::parse(&boot).map_err(|_| Problem::invalid(path, raw, remedy))
}

/// A moment within the bounds.
pub(super) fn moment(path: &str, raw: &RawValue, now_us: i64) -> Result<i64, Problem> {
    let read = text(path, raw)?;
    let at_us = parse_us(&read).ok_or_else(|| {
        let remedy = "is no RFC 3339 time; send for example 2026-11-30T12:00:00.123456Z";
        Problem::invalid(path, raw, remedy)
    })?;
    if at_us < now_us.saturating_sub(limits::EVENT_AGE_US_MAX) {
        let remedy = "is over 14 days ago by the collector's clock; it can't be taken any more: \
                      leave it out, or set the sender's clock right";
        return Err(Problem { code: "too_old", ..Problem::invalid(path, raw, remedy) });
    }
    if at_us > now_us.saturating_add(limits::EVENT_AHEAD_US_MAX) {
        let remedy = "is over 10 minutes ahead of the collector's clock; set the sender's right";
        return Err(Problem { code: "in_future", ..Problem::invalid(path, raw, remedy) });
    }
    // The clock of the collector may itself be at an edge of the calendar.
    if !reads_back(at_us) {
        return Err(Problem::invalid(path, raw, "is not from 1970 to 9999; set the clocks right"));
    }
    Ok(at_us)
}

/// `true` or `false`.
pub(super) fn boolean(path: &str, raw: &RawValue) -> Result<bool, Problem> {
    let read = serde_json::from_str(raw.get());
    read.map_err(|_| Problem::invalid(path, raw, "is neither true nor false; send one of them"))
}

/// One of a few words.
pub(super) fn word<T: DeserializeOwned>(path: &str, raw: &RawValue) -> Result<T, Problem> {
    let word = text(path, raw)?;
    if word.chars().count() > SHOWN_CHARS_MAX {
        return Err(Problem::invalid(path, raw, "is not known; see the documentation"));
    }
    let word: value::StrDeserializer<'_, value::Error> = word.as_ref().into_deserializer();
    T::deserialize(word).map_err(|error| Problem::at("invalid", path, &error.to_string()))
}

/// A nested object.
pub(super) fn object<'a>(path: &str, raw: &'a RawValue) -> Result<Object<'a>, Problem> {
    let object = Object::parse(raw.get());
    let object = object.map_err(|_| Problem::invalid(path, raw, "is no object; send {...}"))?;
    object.refuse_duplicates(&format!("{path}."))?;
    Ok(object)
}

/// The elements of an array.
pub(super) fn array<'a>(path: &str, raw: &'a RawValue) -> Result<Vec<&'a RawValue>, Problem> {
    let read = serde_json::from_str(raw.get());
    read.map_err(|_| Problem::invalid(path, raw, "is no array; send [...]"))
}
