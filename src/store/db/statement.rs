//! Statements with one row of parameters, and the rows of their answers.

use std::marker::PhantomData;

use sqlx::sqlite::SqliteRow;
use sqlx::{Decode, FromRow, Row as _, SqlSafeStr, SqlStr, Sqlite, Type};

use super::value::{Value, sqlite_arguments};
use super::{Connection, On};

/// A row of an answer.
pub(crate) struct Row(pub(super) SqliteRow);

impl Row {
    /// A column, counted from 0.
    pub(in crate::store) fn try_get<'r, T>(&'r self, column: usize) -> Result<T, sqlx::Error>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite>,
    {
        self.0.try_get(column)
    }

    fn read<T: Columns>(&self) -> Result<T, sqlx::Error> {
        T::from_row(&self.0)
    }
}

/// What rows can be read as: tuples of columns.
pub(crate) trait Columns: for<'r> FromRow<'r, SqliteRow> + Send + Unpin {}

impl<T: for<'r> FromRow<'r, SqliteRow> + Send + Unpin> Columns for T {}

/// A statement whose rows are read by column.
pub(crate) struct Query<'q> {
    sql: SqlStr,
    values: Vec<Value<'q>>,
}

/// A statement.
pub(crate) fn query<'q>(sql: impl SqlSafeStr) -> Query<'q> {
    Query { sql: sql.into_sql_str(), values: Vec::new() }
}

/// A statement whose rows are tuples.
pub(crate) fn query_as<'q, T: Columns>(sql: impl SqlSafeStr) -> QueryAs<'q, T> {
    QueryAs { query: query(sql), of: PhantomData }
}

/// A statement whose rows have one column.
pub(crate) fn query_scalar<'q, T>(sql: impl SqlSafeStr) -> QueryScalar<'q, T>
where
    (T,): Columns,
{
    QueryScalar { query: query_as(sql) }
}

/// Statements without parameters, one after the other.
pub(in crate::store) async fn run_script(
    sql: impl SqlSafeStr,
    on: &mut Connection,
) -> Result<(), sqlx::Error> {
    sqlx::raw_sql(sql).execute(on.raw()).await?;
    Ok(())
}

/// What a statement did.
pub(crate) struct Done {
    rows_affected: u64,
}

impl Done {
    /// How many rows it changed.
    pub(in crate::store) fn rows_affected(&self) -> u64 {
        self.rows_affected
    }
}

impl<'q> Query<'q> {
    /// The value of the next parameter.
    pub(crate) fn bind(mut self, value: impl Into<Value<'q>>) -> Self {
        self.values.push(value.into());
        self
    }

    /// Runs it.
    pub(crate) async fn execute(self, on: impl Into<On<'_>>) -> Result<Done, sqlx::Error> {
        match on.into() {
            On::Connection(connection) => self.execute_on(connection).await,
            On::Readers(readers) => self.execute_on(&mut readers.acquire().await?).await,
        }
    }

    async fn execute_on(self, connection: &mut Connection) -> Result<Done, sqlx::Error> {
        let query = sqlx::query_with(self.sql, sqlite_arguments(self.values)?);
        let done = query.execute(connection.raw()).await?;
        Ok(Done { rows_affected: done.rows_affected() })
    }

    /// Runs it, and returns all rows of the answer.
    pub(crate) async fn fetch_all(self, on: impl Into<On<'_>>) -> Result<Vec<Row>, sqlx::Error> {
        match on.into() {
            On::Connection(connection) => self.fetch_all_on(connection).await,
            On::Readers(readers) => self.fetch_all_on(&mut readers.acquire().await?).await,
        }
    }

    async fn fetch_all_on(self, connection: &mut Connection) -> Result<Vec<Row>, sqlx::Error> {
        let query = sqlx::query_with(self.sql, sqlite_arguments(self.values)?);
        let rows = query.fetch_all(connection.raw()).await?;
        Ok(rows.into_iter().map(Row).collect())
    }

    /// Runs it, and returns the first row of the answer, if there is one.
    pub(crate) async fn fetch_optional(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Option<Row>, sqlx::Error> {
        match on.into() {
            On::Connection(connection) => self.fetch_optional_on(connection).await,
            On::Readers(readers) => self.fetch_optional_on(&mut readers.acquire().await?).await,
        }
    }

    async fn fetch_optional_on(
        self,
        connection: &mut Connection,
    ) -> Result<Option<Row>, sqlx::Error> {
        let query = sqlx::query_with(self.sql, sqlite_arguments(self.values)?);
        Ok(query.fetch_optional(connection.raw()).await?.map(Row))
    }
}

/// A statement whose rows are tuples.
pub(crate) struct QueryAs<'q, T> {
    query: Query<'q>,
    of: PhantomData<fn() -> T>,
}

impl<'q, T: Columns> QueryAs<'q, T> {
    /// The value of the next parameter.
    pub(crate) fn bind(self, value: impl Into<Value<'q>>) -> Self {
        Self { query: self.query.bind(value), of: self.of }
    }

    /// Runs it, and returns all rows of the answer.
    pub(crate) async fn fetch_all(self, on: impl Into<On<'_>>) -> Result<Vec<T>, sqlx::Error> {
        self.query.fetch_all(on).await?.iter().map(Row::read).collect()
    }

    /// Runs it, and returns the first row of the answer, if there is one.
    pub(crate) async fn fetch_optional(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Option<T>, sqlx::Error> {
        self.query.fetch_optional(on).await?.as_ref().map(Row::read).transpose()
    }

    /// Runs it, and returns the first row of the answer, which must have one.
    pub(crate) async fn fetch_one(self, on: impl Into<On<'_>>) -> Result<T, sqlx::Error> {
        self.fetch_optional(on).await?.ok_or(sqlx::Error::RowNotFound)
    }
}

/// A statement whose rows have one column.
pub(crate) struct QueryScalar<'q, T> {
    query: QueryAs<'q, (T,)>,
}

impl<'q, T> QueryScalar<'q, T>
where
    (T,): Columns,
{
    /// The value of the next parameter.
    pub(crate) fn bind(self, value: impl Into<Value<'q>>) -> Self {
        Self { query: self.query.bind(value) }
    }

    /// Runs it, and returns the column.
    pub(crate) async fn fetch_all(self, on: impl Into<On<'_>>) -> Result<Vec<T>, sqlx::Error> {
        Ok(self.query.fetch_all(on).await?.into_iter().map(|row| row.0).collect())
    }

    /// Runs it, and returns the column of the first row, if there is one.
    pub(crate) async fn fetch_optional(
        self,
        on: impl Into<On<'_>>,
    ) -> Result<Option<T>, sqlx::Error> {
        Ok(self.query.fetch_optional(on).await?.map(|row| row.0))
    }

    /// Runs it, and returns the column of the first row, which must be there.
    pub(crate) async fn fetch_one(self, on: impl Into<On<'_>>) -> Result<T, sqlx::Error> {
        Ok(self.query.fetch_one(on).await?.0)
    }
}
