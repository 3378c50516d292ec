//! The values of a statement's parameters, until it is known which database it runs on.

use std::borrow::Cow;

use sqlx::Arguments as _;
use sqlx::sqlite::SqliteArguments;

/// What is put in the place of a `$1`.
#[derive(Clone, Debug)]
pub(crate) enum Value<'q> {
    Int(Option<i64>),
    Bool(bool),
    Text(Option<Cow<'q, str>>),
    Bytes(Option<Cow<'q, [u8]>>),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Int(Some(value))
    }
}

impl From<&i64> for Value<'_> {
    fn from(value: &i64) -> Self {
        Self::Int(Some(*value))
    }
}

impl From<u32> for Value<'_> {
    fn from(value: u32) -> Self {
        Self::Int(Some(value.into()))
    }
}

impl From<Option<i64>> for Value<'_> {
    fn from(value: Option<i64>) -> Self {
        Self::Int(value)
    }
}

impl From<bool> for Value<'_> {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl<'q> From<&'q str> for Value<'q> {
    fn from(value: &'q str) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl From<String> for Value<'_> {
    fn from(value: String) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl<'q> From<&'q String> for Value<'q> {
    fn from(value: &'q String) -> Self {
        Self::Text(Some(value.into()))
    }
}

impl<'q> From<Option<&'q str>> for Value<'q> {
    fn from(value: Option<&'q str>) -> Self {
        Self::Text(value.map(Cow::from))
    }
}

impl<'q> From<Option<&'q String>> for Value<'q> {
    fn from(value: Option<&'q String>) -> Self {
        Self::Text(value.map(Cow::from))
    }
}

impl<'q> From<&'q Option<String>> for Value<'q> {
    fn from(value: &'q Option<String>) -> Self {
        value.as_ref().into()
    }
}

impl<'q> From<&'q [u8]> for Value<'q> {
    fn from(value: &'q [u8]) -> Self {
        Self::Bytes(Some(value.into()))
    }
}

impl From<Vec<u8>> for Value<'_> {
    fn from(value: Vec<u8>) -> Self {
        Self::Bytes(Some(value.into()))
    }
}

/// As SQLite takes them.
pub(super) fn sqlite_arguments(values: Vec<Value<'_>>) -> Result<SqliteArguments, sqlx::Error> {
    let mut arguments = SqliteArguments::default();
    for value in values {
        let added = match value {
            Value::Int(value) => arguments.add(value),
            Value::Bool(value) => arguments.add(value),
            Value::Text(value) => arguments.add(value),
            Value::Bytes(value) => arguments.add(value),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}
