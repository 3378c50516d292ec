//! What differs between databases, and what each must know of a store it opens: its tables, its
//! keys, its collectors.

mod sqlite;

use std::cmp::Ordering;

pub(super) use self::sqlite::{
    checkpoint, migrate, readers, to_base, to_copy, to_mend, to_read, to_redo, to_write, used_bytes,
};
use super::StoreError;
use super::db::{Connection, query, query_scalar};
use crate::outcome::KeyedHash;

const VERSION: &str = "SELECT max(version) FROM _sqlx_migrations";

/// Refuses tables of another program, or of another version of this one.
pub(super) async fn is_current(connection: &mut Connection) -> Result<(), StoreError> {
    if !sqlite::is_ours(connection).await? {
        return Err(StoreError::NotOurs);
    }
    let version: i64 = query_scalar(VERSION).fetch_one(connection).await?;
    match version.cmp(&(sqlite::MIGRATIONS.len() as i64)) {
        Ordering::Less => Err(StoreError::Older),
        Ordering::Equal => Ok(()),
        Ordering::Greater => Err(StoreError::Newer(version)),
    }
}

const HASH_KEY_READ: &str = "SELECT value FROM meta WHERE name = 'hash_key'";

/// The key of the database's keyed hash, made once.
pub(super) async fn hash_key(connection: &mut Connection) -> Result<KeyedHash, StoreError> {
    sqlite::make_hash_key(connection).await?;
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
