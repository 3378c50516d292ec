//! Statements with any number of rows or keys.

use sqlx::{QueryBuilder, Sqlite};

use super::Connection;
use super::statement::Row;
use super::value::Value;

/// Rows of one INSERT: beyond about 100 nothing is gained.
const ROWS_OF_A_STATEMENT: usize = 100;

/// Inserts any number of rows, with as few statements as is fast: `insert` names the table and its
/// columns, `end` says what happens to a row that is there.
pub(in crate::store) async fn insert_rows<const N: usize>(
    on: &mut Connection,
    insert: &'static str,
    rows: Vec<[Value<'_>; N]>,
    end: &'static str,
) -> Result<(), sqlx::Error> {
    for rows in rows.chunks(ROWS_OF_A_STATEMENT) {
        let mut builder = QueryBuilder::<Sqlite>::new(insert);
        builder.push_values(rows, |mut columns, row| {
            for value in row {
                match value {
                    Value::Int(value) => columns.push_bind(*value),
                    Value::Bool(value) => columns.push_bind(*value),
                    Value::Text(value) => columns.push_bind(value.as_deref()),
                    Value::Bytes(value) => columns.push_bind(value.as_deref()),
                };
            }
        });
        builder.push(end).build().execute(on.raw()).await?;
    }
    Ok(())
}

/// The rows whose column is one of some keys: `select` ends with `IN `.
pub(in crate::store) async fn select_in(
    on: &mut Connection,
    select: &'static str,
    keys: &[impl AsRef<[u8]>],
) -> Result<Vec<Row>, sqlx::Error> {
    let mut all = Vec::new();
    for keys in keys.chunks(ROWS_OF_A_STATEMENT) {
        let mut builder = QueryBuilder::<Sqlite>::new(select);
        builder.push_tuples(keys, |mut columns, key| {
            columns.push_bind(key.as_ref());
        });
        let rows = builder.build().fetch_all(on.raw()).await?;
        all.extend(rows.into_iter().map(Row));
    }
    Ok(all)
}
