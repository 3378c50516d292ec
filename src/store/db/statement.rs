//! Statements with one row of parameters, and the rows of their answers.

use std::marker::PhantomData;

use sqlx::postgres::PgRow;
use sqlx::sqlite::SqliteRow;
use sqlx::{
    AssertSqlSafe, Decode, FromRow, Postgres, Row as _, SqlSafeStr as _, SqlStr, Sqlite, Type,
};

use super::value::{Value, for_postgres, for_sqlite};
use super::{Connection, On, Raw};

/// A row of an answer.
pub(crate) enum Row {
    /// Of a file.
    Sqlite(SqliteRow),
    /// Of a server.
    Postgres(PgRow),
}

impl Row {
    /// A column, counted from 0.
    pub(in crate::store) fn try_get<'r, T>(&'r self, column: usize) -> Result<T, sqlx::Error>
    where
        T: Decode<'r, Sqlite> + Type<Sqlite> + Decode<'r, Postgres> + Type<Postgres>,
    {
        match self {
            Self::Sqlite(row) => row.try_get(column),
            Self::Postgres(row) => row.try_get(column),
        }
    }

    fn read<T: Columns>(&self) -> Result<T, sqlx::Error> {
        match self {
            Self::Sqlite(row) => T::from_row(row),
            Self::Postgres(row) => T::from_row(row),
        }
    }
}

/// What rows can be read as: tuples of columns.
pub(crate) trait Columns:
    for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>
{
}

impl<T: for<'r> FromRow<'r, SqliteRow> + for<'r> FromRow<'r, PgRow>> Columns for T {}

/// A text that differs between the databases.
#[derive(Clone, Copy)]
pub(crate) struct Each {
    pub(in crate::store) sqlite: &'static str,
    pub(in crate::store) postgres: &'static str,
}

/// The text of a statement.
pub(crate) enum Sql {
    /// The same for both databases.
    Same(SqlStr),
    /// One for each.
    Each(Each),
}

impl Sql {
    fn sqlite(self) -> SqlStr {
        match self {
            Self::Same(text) => text,
            Self::Each(each) => each.sqlite.into_sql_str(),
        }
    }

    fn postgres(self) -> SqlStr {
        match self {
            Self::Same(text) => text,
            Self::Each(each) => each.postgres.into_sql_str(),
        }
    }
}

impl From<&'static str> for Sql {
    fn from(text: &'static str) -> Self {
        Self::Same(text.into_sql_str())
    }
}

impl From<AssertSqlSafe<String>> for Sql {
    fn from(text: AssertSqlSafe<String>) -> Self {
        Self::Same(text.into_sql_str())
    }
}

impl From<Each> for Sql {
    fn from(each: Each) -> Self {
        Self::Each(each)
    }
}

/// A statement whose rows are read by column.
pub(crate) struct Query<'q> {
    sql: Sql,
    values: Vec<Value<'q>>,
}

/// A statement.
pub(crate) fn query<'q>(sql: impl Into<Sql>) -> Query<'q> {
    Query { sql: sql.into(), values: Vec::new() }
}

/// A statement whose rows are tuples.
pub(crate) fn query_as<'q, T: Columns>(sql: impl Into<Sql>) -> QueryAs<'q, T> {
    QueryAs { query: query(sql), of: PhantomData }
}

/// A statement whose rows have one column.
pub(crate) fn query_scalar<'q, T>(sql: impl Into<Sql>) -> QueryScalar<'q, T>
where
    (T,): Columns,
{
    QueryScalar { query: query_as(sql) }
}

/// Statements without parameters, one after the other.
pub(in crate::store) async fn run_script(
    sql: impl Into<Sql>,
    on: &mut Connection,
) -> Result<(), sqlx::Error> {
    let sql = sql.into();
    match on.raw() {
        Raw::Sqlite(connection) => {
            sqlx::raw_sql(sql.sqlite()).execute(connection).await?;
        }
        Raw::Postgres(connection) => {
            sqlx::raw_sql(sql.postgres()).execute(connection).await?;
        }
    }
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
        let rows_affected = match connection.raw() {
            Raw::Sqlite(connection) => {
                let query = sqlx::query_with(self.sql.sqlite(), for_sqlite(self.values)?);
                query.execute(connection).await?.rows_affected()
            }
            Raw::Postgres(connection) => {
                let query = sqlx::query_with(self.sql.postgres(), for_postgres(self.values)?);
                query.execute(connection).await?.rows_affected()
            }
        };
        Ok(Done { rows_affected })
    }

    /// Runs it, and returns all rows of the answer.
    pub(crate) async fn fetch_all(self, on: impl Into<On<'_>>) -> Result<Vec<Row>, sqlx::Error> {
        match on.into() {
            On::Connection(connection) => self.fetch_all_on(connection).await,
            On::Readers(readers) => self.fetch_all_on(&mut readers.acquire().await?).await,
        }
    }

    async fn fetch_all_on(self, connection: &mut Connection) -> Result<Vec<Row>, sqlx::Error> {
        Ok(match connection.raw() {
            Raw::Sqlite(connection) => {
                let query = sqlx::query_with(self.sql.sqlite(), for_sqlite(self.values)?);
                query.fetch_all(connection).await?.into_iter().map(Row::Sqlite).collect()
            }
            Raw::Postgres(connection) => {
                let query = sqlx::query_with(self.sql.postgres(), for_postgres(self.values)?);
                query.fetch_all(connection).await?.into_iter().map(Row::Postgres).collect()
            }
        })
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
        Ok(match connection.raw() {
            Raw::Sqlite(connection) => {
                let query = sqlx::query_with(self.sql.sqlite(), for_sqlite(self.values)?);
                query.fetch_optional(connection).await?.map(Row::Sqlite)
            }
            Raw::Postgres(connection) => {
                let query = sqlx::query_with(self.sql.postgres(), for_postgres(self.values)?);
                query.fetch_optional(connection).await?.map(Row::Postgres)
            }
        })
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
