//! A body, once it is inflated, is cut into the texts of its events.

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde_json::value::RawValue;

use crate::limits;

/// How the events of a body are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `application/json`: one object or an array.
    Json,
    /// `application/x-ndjson`: one object a line.
    NdJson,
}

/// Why nothing of a body can be taken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// Nothing in it.
    #[error("the body is empty; send one event, a JSON array or NDJSON")]
    Empty,
    /// No UTF-8.
    #[error("the body is not UTF-8 from byte {0} on; JSON is UTF-8")]
    NotUtf8(usize),
    /// Broken or truncated JSON.
    #[error(
        "the body is not JSON ({0}); send one object or an array, or one object a line as \
             application/x-ndjson"
    )]
    NotJson(String),
    /// Broken or truncated gzip.
    #[error("the body is not gzip ({0}); send gzip, or no Content-Encoding")]
    NotGzip(String),
    /// Broken or truncated zstd, or a window that is too large.
    #[error(
        "the body is not zstd ({0}); send zstd with windows of 8 MiB at most, or no \
             Content-Encoding"
    )]
    NotZstd(String),
    /// More bytes than are taken.
    #[error("the body is over {0} bytes {1}; send smaller batches")]
    TooLarge(usize, &'static str),
    /// More events than are taken.
    #[error("the body has over {0} events; send smaller batches")]
    TooMany(usize),
}

impl BodyError {
    /// For programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Empty => "empty_body",
            Self::NotUtf8(_) => "not_utf8",
            Self::NotJson(_) => "not_json",
            Self::NotGzip(_) => "not_gzip",
            Self::NotZstd(_) => "not_zstd",
            Self::TooLarge(..) => "body_too_large",
            Self::TooMany(_) => "too_many_events",
        }
    }

    /// Whether it is the size (413) that is wrong, rather than the form (400).
    pub fn is_size(&self) -> bool {
        matches!(self, Self::TooLarge(..) | Self::TooMany(_))
    }
}

/// The texts of the events.
pub(super) fn cut(body: &[u8], format: Format) -> Result<Vec<&str>, BodyError> {
    let text =
        std::str::from_utf8(body).map_err(|error| BodyError::NotUtf8(error.valid_up_to()))?;
    let text = text.trim_matches([' ', '\t', '\r', '\n']);
    if text.is_empty() {
        return Err(BodyError::Empty);
    }
    match format {
        Format::Json if text.starts_with('[') => cut_array(text),
        Format::Json => {
            let value: &RawValue = serde_json::from_str(text).map_err(|error| not_json(&error))?;
            Ok(vec![value.get()])
        }
        Format::NdJson => cut_lines(text),
    }
}

fn not_json(error: &serde_json::Error) -> BodyError {
    BodyError::NotJson(error.to_string())
}

/// Blank lines are no events.
fn cut_lines(text: &str) -> Result<Vec<&str>, BodyError> {
    let mut lines = Vec::new();
    for line in text.split('\n').map(|line| line.trim_matches([' ', '\t', '\r'])) {
        if line.is_empty() {
            continue;
        }
        if lines.len() == limits::BATCH_EVENTS_MAX {
            return Err(BodyError::TooMany(limits::BATCH_EVENTS_MAX));
        }
        lines.push(line);
    }
    Ok(lines)
}

fn cut_array(text: &str) -> Result<Vec<&str>, BodyError> {
    let mut json = serde_json::Deserializer::from_str(text);
    let cut = json.deserialize_seq(Elements).map_err(|error| not_json(&error))?;
    json.end().map_err(|error| not_json(&error))?;
    if cut.beyond > 0 {
        return Err(BodyError::TooMany(limits::BATCH_EVENTS_MAX));
    }
    Ok(cut.elements)
}

/// Keeps the texts of the elements up to the bound and skips the rest: 64 MiB of `0,0,0` would
/// be half a gigabyte of slices.
struct Elements;

#[derive(Default)]
struct Cut<'a> {
    elements: Vec<&'a str>,
    beyond: usize,
}

impl<'a> Visitor<'a> for Elements {
    type Value = Cut<'a>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of events")
    }

    fn visit_seq<A: SeqAccess<'a>>(self, mut array: A) -> Result<Cut<'a>, A::Error> {
        let mut cut = Cut::default();
        while cut.elements.len() < limits::BATCH_EVENTS_MAX {
            match array.next_element::<&'a RawValue>()? {
                Some(element) => cut.elements.push(element.get()),
                None => return Ok(cut),
            }
        }
        while array.next_element::<IgnoredAny>()?.is_some() {
            cut.beyond += 1;
        }
        Ok(cut)
    }
}
