//! Names that services give to things: players, rooms, sources, traces.
//!
//! Compared byte for byte: no case folding, no Unicode normalisation, no truncation. Folding two
//! ids into one would turn two honest settlements into a duplicate.

use std::fmt;

use serde::{Deserialize, Serialize};

/// An id of 1 to [`Id::BYTES_MAX`] bytes of UTF-8 without control characters.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Id(Box<str>);

/// Why a text is no [`Id`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// Nothing in it.
    #[error("is empty; send 1 to 256 bytes")]
    Empty,
    /// More than [`Id::BYTES_MAX`] bytes.
    #[error("has {0} bytes; at most 256 are taken, send a shorter one")]
    TooLong(usize),
    /// A control character, NUL among them.
    #[error("has a control character (U+{0:04X}); ids are plain text, send it without")]
    Control(u32),
}

impl Id {
    /// Longest id, in bytes.
    pub const BYTES_MAX: usize = 256;

    /// Checks a text from outside.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        if text.is_empty() {
            return Err(IdError::Empty);
        }
        Self::parse_or_empty(text)
    }

    /// As [`Id::parse`], but the empty text is taken: a room may have no name.
    pub fn parse_or_empty(text: &str) -> Result<Self, IdError> {
        if text.len() > Self::BYTES_MAX {
            return Err(IdError::TooLong(text.len()));
        }
        match text.chars().find(|c| c.is_control()) {
            Some(c) => Err(IdError::Control(u32::from(c))),
            None => Ok(Self(text.into())),
        }
    }

    /// Stands for an id that could not be read; no id from outside equals it.
    pub fn unread() -> Self {
        Self("".into())
    }

    /// The text, as it was sent.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_any_plain_text_and_keeps_its_bytes() {
        for text in ["a", "e\u{301}", "\u{e9}", "<b>x</b>", "a|b", " ", &"x".repeat(256)] {
            assert_eq!(Id::parse(text).map(|id| id.to_string()), Ok(text.to_string()));
        }
    }

    #[test]
    fn refuses_what_can_not_be_shown_or_kept() {
        assert_eq!(Id::parse(""), Err(IdError::Empty));
        assert_eq!(Id::parse(&"x".repeat(257)), Err(IdError::TooLong(257)));
        assert_eq!(Id::parse("a\0"), Err(IdError::Control(0)));
        assert_eq!(Id::parse("a\u{85}"), Err(IdError::Control(0x85)));
    }
}
