//! What differs between databases, and what each must know of a store it opens: its tables, its
//! keys, its collectors.

pub(super) mod postgres;
pub(super) mod sqlite;

use std::cmp::Ordering;

use super::StoreError;
use super::db::{Connection, Each, Options, Raw, Readers, query, query_scalar};
use crate::outcome::KeyedHash;

/// A database that a URL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place<'a> {
    /// A file.
    Sqlite(&'a str),
    /// A server: the whole URL.
    Postgres(&'a str),
}

impl<'a> Place<'a> {
    pub(super) fn of(url: &'a str) -> Result<Self, StoreError> {
        match url.split_once("://") {
            Some(("sqlite", path)) => Ok(Self::Sqlite(path)),
            Some(("postgres" | "postgresql", _)) => Ok(Self::Postgres(url)),
            _ => Err(StoreError::Url(url.split("://").next().unwrap_or_default().to_owned())),
        }
    }

    /// The connection that writes. Makes a file that is not there.
    pub(super) fn to_write(self) -> Result<Options, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(sqlite::to_write(path)),
            Self::Postgres(url) => postgres::to_write(url),
        }
    }

    /// The connection that writes what the log says.
    pub(super) fn to_mend(self) -> Result<Options, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(sqlite::to_mend(path)),
            Self::Postgres(url) => postgres::to_mend(url),
        }
    }

    /// A connection that can't write.
    pub(super) fn to_read(self) -> Result<Options, StoreError> {
        match self {
            Self::Sqlite(path) => Ok(sqlite::to_read(path)),
            Self::Postgres(url) => postgres::to_read(url),
        }
    }

    /// The connections that read.
    pub(super) async fn readers(self, count: u32) -> Result<Readers, StoreError> {
        match self {
            Self::Sqlite(path) => sqlite::readers(path, count).await,
            Self::Postgres(url) => postgres::readers(url, count).await,
        }
    }
}

/// Brings the tables up to date.
pub(super) async fn migrate(connection: &mut Connection) -> Result<(), StoreError> {
    match connection.raw() {
        Raw::Sqlite(connection) => sqlite::migrate(connection).await,
        Raw::Postgres(connection) => postgres::migrate(connection).await,
    }
}

/// Migrations of either database: both have the same numbers.
const NEWEST: i64 = 4;
const IS_OURS: Each = Each {
    sqlite: "SELECT count(*) FROM sqlite_master WHERE name = '_sqlx_migrations'",
    postgres: "SELECT count(to_regclass('_sqlx_migrations'))",
};
const VERSION: &str = "SELECT max(version) FROM _sqlx_migrations";

/// Refuses tables of another program, or of another version of this one.
pub(super) async fn is_current(connection: &mut Connection) -> Result<(), StoreError> {
    let count: i64 = query_scalar(IS_OURS).fetch_one(&mut *connection).await?;
    if count == 0 {
        return Err(StoreError::NotOurs);
    }
    let version: i64 = query_scalar(VERSION).fetch_one(connection).await?;
    match version.cmp(&NEWEST) {
        Ordering::Less => Err(StoreError::Older),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(StoreError::Newer(version)),
    }
}

const HASH_KEY_READ: &str = "SELECT value FROM meta WHERE name = 'hash_key'";

const HASH_KEY_MAKE: Each = Each {
    sqlite: "INSERT INTO meta (name, value) VALUES ('hash_key', \
         lower(hex(randomblob(16)))) ON CONFLICT (name) DO NOTHING",
    // A random UUID: 122 bits of the server's strong random numbers.
    postgres: "INSERT INTO meta (name, value) VALUES ('hash_key', \
         replace(gen_random_uuid()::text, '-', '')) ON CONFLICT (name) DO NOTHING",
};

/// The key of the database's keyed hash, made once.
pub(super) async fn hash_key(connection: &mut Connection) -> Result<KeyedHash, StoreError> {
    query(HASH_KEY_MAKE).execute(&mut *connection).await?;
    read_hash_key(connection).await
}

/// The key of the database's keyed hash, which must be there.
pub(super) async fn read_hash_key(connection: &mut Connection) -> Result<KeyedHash, StoreError> {
    let text = hash_key_text(connection).await?;
    let unreadable = || StoreError::Unreadable { table: "meta", detail: "hash_key".into() };
    let key = u128::from_str_radix(&text, 16).map_err(|_| unreadable())?;
    Ok(KeyedHash::new(key.to_be_bytes()))
}

/// The key as it is stored.
pub(super) async fn hash_key_text(connection: &mut Connection) -> Result<String, StoreError> {
    Ok(query_scalar(HASH_KEY_READ).fetch_one(connection).await?)
}

const HASH_KEY_ADOPT: &str = "INSERT INTO meta (name, value) VALUES ('hash_key', $1) \
     ON CONFLICT (name) DO NOTHING";

/// Gives a database the key of another; one that has its own is refused.
pub(super) async fn adopt_hash_key(
    connection: &mut Connection,
    key: &str,
) -> Result<(), StoreError> {
    query(HASH_KEY_ADOPT).bind(key).execute(&mut *connection).await?;
    match hash_key_text(connection).await? == key {
        true => Ok(()),
        false => Err(StoreError::OtherKeys),
    }
}

const COLLECTOR_MAKE: &str =
    "INSERT INTO collectors (name) VALUES ($1) ON CONFLICT (name) DO NOTHING";
const COLLECTOR_READ: &str = "SELECT id FROM collectors WHERE name = $1";

/// The number of a collector, given at its first start.
pub(super) async fn collector_id(
    connection: &mut Connection,
    name: &str,
) -> Result<i64, StoreError> {
    query(COLLECTOR_MAKE).bind(name).execute(&mut *connection).await?;
    read_collector_id(connection, name).await
}

/// The number of a collector that has been here.
pub(super) async fn read_collector_id(
    connection: &mut Connection,
    name: &str,
) -> Result<i64, StoreError> {
    let id = query_scalar(COLLECTOR_READ).bind(name).fetch_optional(connection).await?;
    id.ok_or_else(|| StoreError::NoCollector(name.to_owned()))
}

const CHECKPOINT: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Moves SQLite's write-ahead log into the database file, which is then whole by itself.
pub(super) async fn checkpoint(connection: &mut Connection) -> Result<(), StoreError> {
    if let Raw::Sqlite(_) = connection.raw() {
        query(CHECKPOINT).execute(connection).await?;
    }
    Ok(())
}

/// SQLite has pages of 4096 bytes here.
const USED_BYTES: Each = Each {
    sqlite: "SELECT 4096 * ((SELECT page_count FROM pragma_page_count) - \
             (SELECT freelist_count FROM pragma_freelist_count))",
    postgres: "SELECT pg_database_size(current_database())",
};

/// Bytes that hold something; what is free is written to again. PostgreSQL counts that too.
pub(super) async fn used_bytes(connection: &mut Connection) -> Result<i64, StoreError> {
    Ok(query_scalar(USED_BYTES).fetch_one(connection).await?)
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
        let mut connection = sqlite::to_write(path.to_str().unwrap()).connect().await.unwrap();
        migrate(&mut connection).await.unwrap();
        migrate(&mut connection).await.unwrap();
        query(PRETEND_NEWER).execute(&mut connection).await.unwrap();
        let refused = migrate(&mut connection).await.unwrap_err();
        assert!(matches!(refused, StoreError::Newer(999)), "{refused}");
    }
}
