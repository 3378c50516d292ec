//! A JSON object as the sender wrote it: every key, also the second of two equal ones. Which of
//! the two a reader takes differs between readers, so an event with such keys says two things.

use std::borrow::Cow;
use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::field::Problem;

/// Up to here keys are compared each with each.
const FEW: usize = 40;

/// The fields of an object, in order, their values unread.
pub(super) struct Object<'a> {
    fields: Vec<(Cow<'a, str>, &'a RawValue)>,
    duplicate: Option<Cow<'a, str>>,
}

impl<'a> Object<'a> {
    /// Reads the outer form of a text.
    pub(super) fn parse(text: &'a str) -> Result<Self, Problem> {
        if !text.starts_with('{') {
            return Err(match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => Problem::new("not_an_object", "is no JSON object; send {...}"),
                Err(error) => not_json(&error),
            });
        }
        serde_json::from_str(text).map_err(|error| not_json(&error))
    }

    /// The value of a field; `null` says that there is none. Of two values there is none either.
    pub(super) fn get(&self, name: &str) -> Option<&'a RawValue> {
        if self.duplicate.as_deref() == Some(name) {
            return None;
        }
        let (_, value) = self.fields.iter().find(|(key, _)| key == name)?;
        Some(*value).filter(|value| value.get() != "null")
    }

    /// How many of its fields are not among these.
    pub(super) fn unknown(&self, known: &[&str]) -> u64 {
        self.fields.iter().filter(|(key, _)| !known.contains(&key.as_ref())).count() as u64
    }

    /// Refuses an object with two equal keys; `path` says where it stands.
    pub(super) fn refuse_duplicates(&self, path: &str) -> Result<(), Problem> {
        match &self.duplicate {
            None => Ok(()),
            Some(key) => {
                let message = "stands there twice; send each field once";
                Err(Problem::at("duplicate_key", &format!("{path}{key}"), message))
            }
        }
    }
}

fn not_json(error: &serde_json::Error) -> Problem {
    Problem::new("not_json", format!("is not JSON ({error}); send one JSON object"))
}

/// The first key that stands there twice.
fn duplicate<'a>(fields: &[(Cow<'a, str>, &'a RawValue)]) -> Option<Cow<'a, str>> {
    if fields.len() > FEW {
        let mut seen = HashSet::with_capacity(fields.len());
        return fields.iter().find(|(key, _)| !seen.insert(key.as_ref())).map(|(k, _)| k.clone());
    }
    let mut before = fields.iter().enumerate();
    let twice = before.find(|(at, (key, _))| fields.iter().take(*at).any(|(k, _)| k == key));
    twice.map(|(_, (key, _))| key.clone())
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Object<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
        let mut fields = Vec::with_capacity(16);
        while let Some(Text(key)) = map.next_key()? {
            fields.push((key, map.next_value()?));
        }
        let duplicate = duplicate(&fields);
        Ok(Object { fields, duplicate })
    }
}

/// A string that stays where it is unless it has escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}
