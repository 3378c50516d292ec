//! Statements with any number of rows or keys: for SQLite a list of them, some at a time; for
//! PostgreSQL one array for each column.

use std::fmt::Write as _;

use sqlx::{AssertSqlSafe, PgConnection, QueryBuilder, Sqlite, SqliteConnection};

use super::statement::Row;
use super::value::{Value, columns_for_postgres};
use super::{Connection, Raw};

/// Rows of one INSERT of SQLite: beyond about 100 nothing is gained.
const ROWS_OF_A_STATEMENT: usize = 100;

/// Inserts any number of rows, with as few statements as is fast: `insert` names the table and its
/// columns, `end` says what happens to a row that is there.
pub(in crate::store) async fn insert_rows<const N: usize>(
    on: &mut Connection,
    insert: &'static str,
    rows: Vec<[Value<'_>; N]>,
    end: &'static str,
) -> Result<(), sqlx::Error> {
    match on.raw() {
        _ if rows.is_empty() => Ok(()),
        Raw::Sqlite(connection) => insert_lists(connection, insert, rows, end).await,
        Raw::Postgres(connection) => insert_arrays(connection, insert, rows, end).await,
    }
}

async fn insert_lists<const N: usize>(
    connection: &mut SqliteConnection,
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
        builder.push(end).build().execute(&mut *connection).await?;
    }
    Ok(())
}

async fn insert_arrays<const N: usize>(
    connection: &mut PgConnection,
    insert: &'static str,
    rows: Vec<[Value<'_>; N]>,
    end: &'static str,
) -> Result<(), sqlx::Error> {
    let mut sql = format!("{insert}SELECT * FROM unnest($1");
    for column in 2..=N {
        let _ = write!(sql, ", ${column}");
    }
    let _ = write!(sql, "){end}");
    let arguments = columns_for_postgres(rows)?;
    sqlx::query_with(AssertSqlSafe(sql), arguments).execute(connection).await?;
    Ok(())
}

/// The rows whose column is one of some keys: `select` ends with `IN `.
pub(in crate::store) async fn select_in(
    on: &mut Connection,
    select: &'static str,
    keys: &[impl AsRef<[u8]>],
) -> Result<Vec<Row>, sqlx::Error> {
    match on.raw() {
        _ if keys.is_empty() => Ok(Vec::new()),
        Raw::Sqlite(connection) => select_of_list(connection, select, keys).await,
        Raw::Postgres(connection) => {
            let keys = keys.iter().map(|key| [key.as_ref().into()]).collect();
            let sql = AssertSqlSafe(format!("{select}(SELECT unnest($1))"));
            let query = sqlx::query_with(sql, columns_for_postgres::<1>(keys)?);
            Ok(query.fetch_all(connection).await?.into_iter().map(Row::Postgres).collect())
        }
    }
}

async fn select_of_list(
    connection: &mut SqliteConnection,
    select: &'static str,
    keys: &[impl AsRef<[u8]>],
) -> Result<Vec<Row>, sqlx::Error> {
    let mut all = Vec::new();
    for keys in keys.chunks(ROWS_OF_A_STATEMENT) {
        let mut builder = QueryBuilder::<Sqlite>::new(select);
        builder.push_tuples(keys, |mut columns, key| {
            columns.push_bind(key.as_ref());
        });
        let rows = builder.build().fetch_all(&mut *connection).await?;
        all.extend(rows.into_iter().map(Row::Sqlite));
    }
    Ok(all)
}
