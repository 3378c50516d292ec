//! A thin layer over sqlx: connections, statements and rows, of whichever database it is. All
//! other files of the store speak to this one, in one SQL text where the databases allow.

mod rows;
mod statement;
mod value;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{
    ConnectOptions as _, Connection as _, PgConnection, PgPool, Postgres, Sqlite, SqliteConnection,
    SqlitePool,
};

pub(super) use self::rows::{insert_rows, select_in};
pub(crate) use self::statement::query;
pub(super) use self::statement::{Each, Row, query_as, query_scalar, run_script};
use super::StoreError;
use super::dialect::postgres::Server;

/// How to connect.
#[derive(Clone, Debug)]
pub(crate) enum Options {
    /// To a file.
    Sqlite(SqliteConnectOptions),
    /// To a server.
    Postgres(Server),
}

impl Options {
    /// Connects.
    pub(crate) async fn connect(&self) -> Result<Connection, StoreError> {
        Ok(match self {
            Self::Sqlite(options) => Connection::Sqlite(options.connect().await?),
            Self::Postgres(server) => Connection::Postgres(server.connect().await?),
        })
    }

    /// The same, but never makes what is not there.
    pub(super) fn without_making(self) -> Self {
        match self {
            Self::Sqlite(options) => Self::Sqlite(options.create_if_missing(false)),
            Self::Postgres(server) => Self::Postgres(server),
        }
    }
}

/// A connection: one of its own, one of those that read, or one of these at one instant.
pub(crate) enum Connection {
    /// To a file.
    Sqlite(SqliteConnection),
    /// To a file, to read.
    SqliteReader(PoolConnection<Sqlite>),
    /// To a file, to read what is so at one instant.
    SqliteSnapshot(sqlx::Transaction<'static, Sqlite>),
    /// To a server.
    Postgres(PgConnection),
    /// To a server, to read.
    PostgresReader(PoolConnection<Postgres>),
    /// To a server, to read what is so at one instant.
    PostgresSnapshot(sqlx::Transaction<'static, Postgres>),
}

/// A connection as sqlx has it.
pub(super) enum Raw<'c> {
    Sqlite(&'c mut SqliteConnection),
    Postgres(&'c mut PgConnection),
}

impl Connection {
    /// As sqlx has it.
    pub(super) fn raw(&mut self) -> Raw<'_> {
        match self {
            Self::Sqlite(connection) => Raw::Sqlite(connection),
            Self::SqliteReader(connection) => Raw::Sqlite(connection),
            Self::SqliteSnapshot(transaction) => Raw::Sqlite(transaction),
            Self::Postgres(connection) => Raw::Postgres(connection),
            Self::PostgresReader(connection) => Raw::Postgres(connection),
            Self::PostgresSnapshot(transaction) => Raw::Postgres(transaction),
        }
    }

    /// Whether the server is still there; a file always is.
    pub(super) async fn is_alive(&mut self) -> bool {
        match self.raw() {
            Raw::Sqlite(_) => true,
            Raw::Postgres(connection) => connection.ping().await.is_ok(),
        }
    }

    /// Tells the database that it ends.
    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Sqlite(connection) => connection.close().await,
            Self::SqliteReader(connection) => connection.close().await,
            Self::SqliteSnapshot(transaction) => transaction.rollback().await,
            Self::Postgres(connection) => connection.close().await,
            Self::PostgresReader(connection) => connection.close().await,
            Self::PostgresSnapshot(transaction) => transaction.rollback().await,
        }
    }
}

/// The connections that read.
pub(crate) enum Readers {
    /// Of a file.
    Sqlite(SqlitePool),
    /// Of a server.
    Postgres(PgPool),
}

/// All that a PostgreSQL transaction reads is then of one instant, as with SQLite.
const SNAPSHOT: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY";

impl Readers {
    /// One of them.
    pub(super) async fn acquire(&self) -> Result<Connection, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(pool) => Connection::SqliteReader(pool.acquire().await?),
            Self::Postgres(pool) => Connection::PostgresReader(pool.acquire().await?),
        })
    }

    /// One of them, to read what is so at one instant.
    pub(super) async fn begin(&self) -> Result<Connection, sqlx::Error> {
        Ok(match self {
            Self::Sqlite(pool) => Connection::SqliteSnapshot(pool.begin().await?),
            Self::Postgres(pool) => Connection::PostgresSnapshot(pool.begin_with(SNAPSHOT).await?),
        })
    }

    pub(super) async fn close(&self) {
        match self {
            Self::Sqlite(pool) => pool.close().await,
            Self::Postgres(pool) => pool.close().await,
        }
    }
}

/// Where a statement is run.
pub(crate) enum On<'c> {
    /// On any connection that reads.
    Readers(&'c Readers),
    /// On this one.
    Connection(&'c mut Connection),
}

impl<'c> From<&'c Readers> for On<'c> {
    fn from(readers: &'c Readers) -> Self {
        Self::Readers(readers)
    }
}

impl<'c> From<&'c mut Connection> for On<'c> {
    fn from(connection: &'c mut Connection) -> Self {
        Self::Connection(connection)
    }
}
