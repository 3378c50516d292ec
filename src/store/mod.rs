//! The only place that knows sqlx. One file per table family; what differs between databases is
//! in `dialect.rs`.
//!
//! One connection writes, and whoever wants to write waits for its turn in order: SQLite has one
//! writer anyway, and its own way of waiting (sleep and try again) starves the judge under load.
//! Readers have connections of their own.

mod advice;
pub mod alerts;
mod alerts_read;
pub mod compare;
mod deliveries;
mod dialect;
mod facts;
mod findings_read;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod forget;
pub mod gauges;
pub mod group;
pub mod identity;
mod lock;
pub mod log;
mod packed;
mod players_read;
pub mod rollups;
mod rollups_read;
mod sources_read;
mod step;
pub mod totals;
pub mod transitions;
mod verdicts;

use std::path::Path;

use sqlx::{SqliteConnection, SqlitePool};
use tokio::sync::{Mutex, MutexGuard};

pub use self::alerts_read::{AlertRow, NotificationRow};
pub use self::findings_read::{
    FindingFilter, FindingKey, FindingPage, FindingRow, FindingSum, FindingSums,
};
pub use self::lock::DatabaseLock;
pub use self::players_read::{Delivery, DeliveryKey};
pub use self::rollups_read::{MinuteCount, ServiceCount};
pub use self::sources_read::{BootRow, SourceCount, SourceRow, size_of};
pub use self::step::{Step, part};
use crate::outcome::KeyedHash;

/// Readers at a time: pages and API; more would wait for the 2 cores of a small machine anyway.
const READERS: u32 = 4;

/// The database.
pub struct Store {
    readers: SqlitePool,
    writer: Mutex<SqliteConnection>,
    hash: KeyedHash,
    collector: i64,
    #[cfg(test)]
    pub(crate) trouble: fixtures::Trouble,
}

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said no or is away.
    #[error("database: {0}")]
    Database(#[from] sqlx::Error),
    /// The tables could not be made or brought up to date.
    #[error("database schema: {0}")]
    Schema(#[from] sqlx::migrate::MigrateError),
    /// A stored value can't be read back.
    #[error("database: {table} holds a value that can't be read: {detail}")]
    Unreadable {
        /// Where.
        table: &'static str,
        /// What was wrong.
        detail: String,
    },
    /// The URL names no database that is known.
    #[error("database URL {0:?} is not known; use sqlite://PATH")]
    Url(String),
    /// Another process has the database.
    #[error("another dedupwatch uses it; stop that one first, or choose another with --database")]
    InUse,
    /// No collector of this name has written to it.
    #[error(
        "no collector called {0:?} has written to it; name the one by --config or its variable"
    )]
    NoCollector(String),
    /// An earlier version of the program made its tables.
    #[error("its tables are of an earlier version of dedupwatch; start this version on it once")]
    Older,
    /// A later version of the program made its tables.
    #[error("its tables are of a later version of dedupwatch (migration {0}); start that version")]
    Newer(i64),
    /// The folder of the database file can't be made or written to.
    #[error("can't write to {path}: {source}; check the path and who owns it")]
    Folder {
        /// Which folder.
        path: String,
        /// Why.
        source: std::io::Error,
    },
}

const PING: &str = "SELECT 1";

impl Store {
    /// Opens the database, makes it if it is not there, and brings its tables up to date.
    pub async fn open(url: &str, collector: &str) -> Result<Self, StoreError> {
        let path = path_of(url)?;
        make_folder_of(Path::new(path)).await?;
        let mut writer = dialect::connect(path).await?;
        dialect::migrate(&mut writer).await?;
        let hash = dialect::hash_key(&mut writer).await?;
        let collector = dialect::collector_id(&mut writer, collector).await?;
        Self::of(path, writer, hash, collector).await
    }

    /// Opens the database of a collector that may be running, for reading only.
    pub async fn open_to_read(url: &str, collector: &str) -> Result<Self, StoreError> {
        let path = path_of(url)?;
        let mut writer = dialect::connect_to_read(path).await?;
        dialect::is_current(&mut writer).await?;
        let hash = dialect::read_hash_key(&mut writer).await?;
        let collector = dialect::read_collector_id(&mut writer, collector).await?;
        Self::of(path, writer, hash, collector).await
    }

    /// Makes an empty database at this path with the keys of another, for its log folded again.
    pub async fn open_scratch(path: &str, of: &Self) -> Result<Self, StoreError> {
        let mut writer = dialect::connect(path).await?;
        dialect::migrate(&mut writer).await?;
        Self::of(path, writer, of.hash, of.collector).await
    }

    async fn of(
        path: &str,
        writer: SqliteConnection,
        hash: KeyedHash,
        collector: i64,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            readers: dialect::readers(path, READERS).await?,
            writer: Mutex::new(writer),
            hash,
            collector,
            #[cfg(test)]
            trouble: fixtures::Trouble::default(),
        })
    }

    /// The connections for reading.
    pub(crate) fn readers(&self) -> &SqlitePool {
        &self.readers
    }

    /// The connection for writing, when it is this caller's turn.
    pub(crate) async fn writer(&self) -> MutexGuard<'_, SqliteConnection> {
        self.writer.lock().await
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        sqlx::query(PING).execute(&self.readers).await?;
        Ok(())
    }

    /// Ends reading, brings the write-ahead log into the database file and lets go of it.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        dialect::checkpoint(&mut *self.writer().await).await
    }

    /// The keyed hash of this database.
    pub fn hash(&self) -> KeyedHash {
        self.hash
    }

    /// The number of this collector.
    pub fn collector(&self) -> i64 {
        self.collector
    }
}

/// The file that a URL names.
fn path_of(url: &str) -> Result<&str, StoreError> {
    url.strip_prefix("sqlite://").ok_or_else(|| StoreError::Url(url.into()))
}

async fn make_folder_of(path: &Path) -> Result<(), StoreError> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        None => Ok(()),
        Some(folder) => tokio::fs::create_dir_all(folder)
            .await
            .map_err(|source| StoreError::Folder { path: folder.display().to_string(), source }),
    }
}
