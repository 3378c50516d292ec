//! A thin layer over sqlx: connections, statements and rows, of whichever database it is. All
//! other files of the store speak to this one, in one SQL text.

mod rows;
mod statement;
mod value;

use sqlx::pool::PoolConnection;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _, Sqlite, SqliteConnection, SqlitePool};

pub(super) use self::rows::{insert_rows, select_in};
pub(crate) use self::statement::query;
pub(super) use self::statement::{Row, query_as, query_scalar, run_script};

/// How to connect.
#[derive(Clone, Debug)]
pub(crate) struct Options(pub(super) SqliteConnectOptions);

impl Options {
    /// Connects.
    pub(crate) async fn connect(&self) -> Result<Connection, sqlx::Error> {
        Ok(Connection::Own(self.0.connect().await?))
    }

    /// The same, but never makes what is not there.
    pub(super) fn without_making(self) -> Self {
        Self(self.0.create_if_missing(false))
    }
}

/// A connection.
pub(crate) enum Connection {
    /// One of its own.
    Own(SqliteConnection),
    /// One of those that read.
    Reader(PoolConnection<Sqlite>),
    /// One of those that read, at one instant.
    Snapshot(sqlx::Transaction<'static, Sqlite>),
}

impl Connection {
    fn raw(&mut self) -> &mut SqliteConnection {
        match self {
            Self::Own(connection) => connection,
            Self::Reader(connection) => connection,
            Self::Snapshot(transaction) => transaction,
        }
    }

    /// Tells the database that it ends.
    pub(super) async fn close(self) -> Result<(), sqlx::Error> {
        match self {
            Self::Own(connection) => connection.close().await,
            Self::Reader(connection) => connection.close().await,
            Self::Snapshot(transaction) => transaction.rollback().await,
        }
    }

    /// For what only this database has.
    pub(super) fn sqlite(&mut self) -> &mut SqliteConnection {
        self.raw()
    }
}

/// The connections that read.
pub(crate) struct Readers(pub(super) SqlitePool);

impl Readers {
    /// One of them.
    pub(super) async fn acquire(&self) -> Result<Connection, sqlx::Error> {
        Ok(Connection::Reader(self.0.acquire().await?))
    }

    /// One of them, to read what is so at one instant.
    pub(super) async fn begin(&self) -> Result<Connection, sqlx::Error> {
        Ok(Connection::Snapshot(self.0.begin().await?))
    }

    pub(super) async fn close(&self) {
        self.0.close().await;
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
