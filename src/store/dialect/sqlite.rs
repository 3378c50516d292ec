//! SQLite: connecting, settings, migrations.

use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions as _, SqlSafeStr as _, SqliteConnection};

use crate::limits;
use crate::store::StoreError;
use crate::store::db::{Options, Readers};

/// The tables, in the order of their making. A file that has been released never changes.
const MIGRATIONS: [(i64, &str, &str); 4] = [
    (1, "log", include_str!("../../../migrations/sqlite/0001_log.sql")),
    (2, "audit", include_str!("../../../migrations/sqlite/0002_audit.sql")),
    (3, "alert", include_str!("../../../migrations/sqlite/0003_alert.sql")),
    (4, "transitions", include_str!("../../../migrations/sqlite/0004_transitions.sql")),
];

/// Pages of the write-ahead log between checkpoints: 128 MB. SQLite's own 1,000 pages cost 25 to
/// 40 % of the rate.
const CHECKPOINT_PAGES: &str = "32000";

/// `synchronous=FULL`: what is acknowledged survives a power cut.
fn options(path: &str) -> SqliteConnectOptions {
    SqliteConnectOptions::new()
        .filename(path)
        .page_size(4096)
        .synchronous(SqliteSynchronous::Full)
        .busy_timeout(Duration::from_millis(limits::DATABASE_BUSY_MS))
        .pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
        .pragma("temp_store", "memory")
        .foreign_keys(false)
}

/// Cache of the connection that writes, in KiB: 256 MB.
const WRITER_CACHE: &str = "-262144";

/// The connection that writes. Makes the database if it is not there.
pub(in crate::store) fn to_write(path: &str) -> Options {
    Options::Sqlite(writing(path))
}

fn writing(path: &str) -> SqliteConnectOptions {
    // See `store::checkpoint`.
    let options =
        options(path).pragma("cache_size", WRITER_CACHE).pragma("wal_autocheckpoint", "0");
    options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal)
}

/// The connection that writes what the log says, with statements that may take their time, to a
/// database that is there.
pub(in crate::store) fn to_mend(path: &str) -> Options {
    Options::Sqlite(options(path).pragma("cache_size", WRITER_CACHE).disable_statement_logging())
}

/// The same for the database that the log is folded into.
pub(in crate::store) fn to_redo(path: &str) -> Options {
    let options = writing(path).pragma("wal_autocheckpoint", CHECKPOINT_PAGES);
    Options::Sqlite(options.disable_statement_logging())
}

/// Pages of a base's write-ahead log between checkpoints: 16 MB. Nobody waits for them.
const BASE_CHECKPOINT_PAGES: &str = "4000";

/// The same for a base.
pub(in crate::store) fn to_base(path: &str) -> Options {
    let options = writing(path).pragma("wal_autocheckpoint", BASE_CHECKPOINT_PAGES);
    Options::Sqlite(options.pragma("cache_size", READER_CACHE).disable_statement_logging())
}

/// A connection that can't write, to a database that is there. Its statements may take their
/// time.
pub(in crate::store) fn to_read(path: &str) -> Options {
    Options::Sqlite(options(path).disable_statement_logging().pragma("query_only", "on"))
}

/// A connection that copies a database that is there. It may take its time; one that can't write
/// can't copy either.
pub(in crate::store) fn to_copy(path: &str) -> Options {
    Options::Sqlite(options(path).disable_statement_logging())
}

/// Cache of one reader, in KiB: SQLite's own 2 MB make the judge read the same pages again.
const READER_CACHE: &str = "-32768";

/// The connections that read.
pub(in crate::store) async fn readers(path: &str, count: u32) -> Result<Readers, StoreError> {
    let options = options(path).pragma("query_only", "on").pragma("cache_size", READER_CACHE);
    let pool = SqlitePoolOptions::new().max_connections(count).connect_with(options);
    Ok(Readers::Sqlite(pool.await?))
}

/// Brings the tables up to date.
pub(super) async fn migrate(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let migrator = Migrator::with_migrations(migrations.to_vec());
    migrator.run_direct(None, connection, false).await.map_err(|why| match why {
        MigrateError::VersionMissing(version) => StoreError::Newer(version),
        why => StoreError::Schema(why),
    })
}
