//! What differs between databases: connecting, settings, migrations.

use std::cmp::Ordering;
use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{ConnectOptions, SqlSafeStr, SqliteConnection, SqlitePool};

use super::StoreError;
use crate::limits;
use crate::outcome::KeyedHash;

/// The tables, in the order of their making. A file that has been released never changes.
const MIGRATIONS: [(i64, &str, &str); 4] = [
    (1, "log", include_str!("../../migrations/sqlite/0001_log.sql")),
    (2, "audit", include_str!("../../migrations/sqlite/0002_audit.sql")),
    (3, "alert", include_str!("../../migrations/sqlite/0003_alert.sql")),
    (4, "transitions", include_str!("../../migrations/sqlite/0004_transitions.sql")),
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
pub(super) fn to_write(path: &str) -> SqliteConnectOptions {
    // See `super::checkpoint`.
    let options =
        options(path).pragma("cache_size", WRITER_CACHE).pragma("wal_autocheckpoint", "0");
    options.create_if_missing(true).journal_mode(SqliteJournalMode::Wal)
}

/// The connection that writes what the log says, with statements that may take their time, to a
/// database that is there.
pub(super) fn to_mend(path: &str) -> SqliteConnectOptions {
    options(path).pragma("cache_size", WRITER_CACHE).disable_statement_logging()
}

/// The same for the database that the log is folded into.
pub(super) fn to_redo(path: &str) -> SqliteConnectOptions {
    to_write(path).pragma("wal_autocheckpoint", CHECKPOINT_PAGES).disable_statement_logging()
}

/// Pages of a base's write-ahead log between checkpoints: 16 MB. Nobody waits for them.
const BASE_CHECKPOINT_PAGES: &str = "4000";

/// The same for a base.
pub(super) fn to_base(path: &str) -> SqliteConnectOptions {
    let options = to_redo(path).pragma("wal_autocheckpoint", BASE_CHECKPOINT_PAGES);
    options.pragma("cache_size", READER_CACHE)
}

/// A connection that can't write, to a database that is there. Its statements may take their
/// time.
pub(super) fn to_read(path: &str) -> SqliteConnectOptions {
    options(path).disable_statement_logging().pragma("query_only", "on")
}

/// A connection that copies a database that is there. It may take its time; one that can't write
/// can't copy either.
pub(super) fn to_copy(path: &str) -> SqliteConnectOptions {
    options(path).disable_statement_logging()
}

/// Cache of one reader, in KiB: SQLite's own 2 MB make the judge read the same pages again.
const READER_CACHE: &str = "-32768";

/// The connections that read.
pub(super) async fn readers(path: &str, count: u32) -> Result<SqlitePool, StoreError> {
    let options = options(path).pragma("query_only", "on").pragma("cache_size", READER_CACHE);
    Ok(SqlitePoolOptions::new().max_connections(count).connect_with(options).await?)
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

const IS_OURS: &str = "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'";
const VERSION: &str = "SELECT max(version) FROM _sqlx_migrations";

/// Refuses tables of another program, or of another version of this one.
pub(super) async fn is_current(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    let is_ours: i64 = sqlx::query_scalar(IS_OURS).fetch_one(&mut *connection).await?;
    if is_ours == 0 {
        return Err(StoreError::NotOurs);
    }
    let version: i64 = sqlx::query_scalar(VERSION).fetch_one(connection).await?;
    match version.cmp(&(MIGRATIONS.len() as i64)) {
        Ordering::Less => Err(StoreError::Older),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(StoreError::Newer(version)),
    }
}

const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Moves the write-ahead log into the database file, which is then whole by itself.
pub(super) async fn checkpoint(connection: &mut SqliteConnection) -> Result<(), StoreError> {
    sqlx::query(CHECKPOINT).execute(connection).await?;
    Ok(())
}

const HASH_KEY_MAKE: &str = "INSERT INTO meta (name, value) VALUES ('hash_key', \
     lower(hex(randomblob(16)))) ON CONFLICT (name) DO NOTHING";
const HASH_KEY_READ: &str = "SELECT value FROM meta WHERE name = 'hash_key'";

/// The key of the database's keyed hash, made once.
pub(super) async fn hash_key(connection: &mut SqliteConnection) -> Result<KeyedHash, StoreError> {
    sqlx::query(HASH_KEY_MAKE).execute(&mut *connection).await?;
    read_hash_key(connection).await
}

/// The key of the database's keyed hash, which must be there.
pub(super) async fn read_hash_key(
    connection: &mut SqliteConnection,
) -> Result<KeyedHash, StoreError> {
    let text = hash_key_text(connection).await?;
    let unreadable = || StoreError::Unreadable { table: "meta", detail: "hash_key".into() };
    let key = u128::from_str_radix(&text, 16).map_err(|_| unreadable())?;
    Ok(KeyedHash::new(key.to_be_bytes()))
}

/// The key as it is stored.
pub(super) async fn hash_key_text(connection: &mut SqliteConnection) -> Result<String, StoreError> {
    Ok(sqlx::query_scalar(HASH_KEY_READ).fetch_one(connection).await?)
}

const HASH_KEY_ADOPT: &str = "INSERT INTO meta (name, value) VALUES ('hash_key', $1) \
     ON CONFLICT (name) DO NOTHING";

/// Gives a database the key of another; one that has its own is refused.
pub(super) async fn adopt_hash_key(
    connection: &mut SqliteConnection,
    key: &str,
) -> Result<(), StoreError> {
    sqlx::query(HASH_KEY_ADOPT).bind(key).execute(&mut *connection).await?;
    match hash_key_text(connection).await? == key {
        true => Ok(()),
        false => Err(StoreError::OtherKeys),
    }
}

const PAGES: &str = "SELECT (SELECT page_count FROM pragma_page_count) - \
     (SELECT freelist_count FROM pragma_freelist_count)";
const PAGE_BYTES: i64 = 4096;

/// Bytes that hold something; what is free is written to again.
pub(super) async fn used_bytes(connection: &mut SqliteConnection) -> Result<i64, StoreError> {
    let pages: i64 = sqlx::query_scalar(PAGES).fetch_one(connection).await?;
    Ok(pages.saturating_mul(PAGE_BYTES))
}

const COLLECTOR_MAKE: &str =
    "INSERT INTO collectors (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
const COLLECTOR_READ: &str = "SELECT id FROM collectors WHERE name = $1";

/// The number of a collector, given at its first start.
pub(super) async fn collector_id(
    connection: &mut SqliteConnection,
    name: &str,
) -> Result<i64, StoreError> {
    sqlx::query(COLLECTOR_MAKE).bind(name).execute(&mut *connection).await?;
    read_collector_id(connection, name).await
}

/// The number of a collector that has been here.
pub(super) async fn read_collector_id(
    connection: &mut SqliteConnection,
    name: &str,
) -> Result<i64, StoreError> {
    let id = sqlx::query_scalar(COLLECTOR_READ).bind(name).fetch_optional(connection).await?;
    id.ok_or_else(|| StoreError::NoCollector(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRETEND_NEWER: &str = "INSERT INTO _sqlx_migrations (version, description, success, \
         checksum, execution_time) VALUES (999, 'later', TRUE, x'00', 0)";

    #[tokio::test]
    async fn a_database_of_a_later_version_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("test.db");
        let mut connection = to_write(path.to_str().unwrap()).connect().await.unwrap();
        migrate(&mut connection).await.unwrap();
        migrate(&mut connection).await.unwrap();
        sqlx::query(PRETEND_NEWER).execute(&mut connection).await.unwrap();
        let refused = migrate(&mut connection).await.unwrap_err();
        assert!(matches!(refused, StoreError::Newer(999)), "{refused}");
    }
}
