//! The values of a statement's parameters, until it is known which database it runs on.

use std::borrow::Cow;

use sqlx::Arguments as _;
use sqlx::postgres::PgArguments;
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
pub(super) fn for_sqlite(values: Vec<Value<'_>>) -> Result<SqliteArguments, sqlx::Error> {
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

/// As PostgreSQL takes them.
pub(super) fn for_postgres(values: Vec<Value<'_>>) -> Result<PgArguments, sqlx::Error> {
    let mut arguments = PgArguments::default();
    for value in values {
        let added = match value {
            Value::Int(value) => arguments.add(value),
            Value::Bool(value) => arguments.add(value),
            Value::Text(value) => arguments.add(value.map(without_nul)),
            Value::Bytes(value) => arguments.add(value.as_deref()),
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// PostgreSQL takes no NUL in a text. What replaces it is a control character, which no id has:
/// what is looked for by a text with a NUL is not found, as is right. JSON has no NUL as it is.
fn without_nul(text: Cow<'_, str>) -> Cow<'_, str> {
    match text.contains('\0') {
        true => text.replace('\0', "\u{1}").into(),
        false => text,
    }
}

/// The same columns of many rows, as PostgreSQL takes them: one array for each column.
pub(super) fn columns_for_postgres<const N: usize>(
    rows: Vec<[Value<'_>; N]>,
) -> Result<PgArguments, sqlx::Error> {
    let mut columns: [Column<'_>; N] = std::array::from_fn(|_| Column::Unknown);
    let count = rows.len();
    for row in rows {
        for (column, value) in columns.iter_mut().zip(row) {
            column.push(value, count);
        }
    }
    let mut arguments = PgArguments::default();
    for column in columns {
        let added = match column {
            Column::Unknown => Ok(()),
            Column::Ints(values) => arguments.add(values),
            Column::Bools(values) => arguments.add(values),
            Column::Texts(values) => arguments.add(values),
            Column::Bytes(values) => {
                let values: Vec<_> = values.iter().map(Option::as_deref).collect();
                arguments.add(values)
            }
        };
        added.map_err(sqlx::Error::Encode)?;
    }
    Ok(arguments)
}

/// The values of one column, of the sort of the first.
enum Column<'q> {
    Unknown,
    Ints(Vec<Option<i64>>),
    Bools(Vec<bool>),
    Texts(Vec<Option<Cow<'q, str>>>),
    Bytes(Vec<Option<Cow<'q, [u8]>>>),
}

impl<'q> Column<'q> {
    fn push(&mut self, value: Value<'q>, room: usize) {
        if matches!(self, Self::Unknown) {
            *self = match value {
                Value::Int(_) => Self::Ints(Vec::with_capacity(room)),
                Value::Bool(_) => Self::Bools(Vec::with_capacity(room)),
                Value::Text(_) => Self::Texts(Vec::with_capacity(room)),
                Value::Bytes(_) => Self::Bytes(Vec::with_capacity(room)),
            };
        }
        match (self, value) {
            (Self::Ints(values), Value::Int(value)) => values.push(value),
            (Self::Bools(values), Value::Bool(value)) => values.push(value),
            (Self::Texts(values), Value::Text(value)) => values.push(value.map(without_nul)),
            (Self::Bytes(values), Value::Bytes(value)) => values.push(value),
            // Arrays of different lengths: the database refuses the row without a column.
            _ => {}
        }
    }
}
