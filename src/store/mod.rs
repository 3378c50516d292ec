//! The only place that knows sqlx. One file per table family; what differs between databases is
//! in `db` and `dialect`.
//!
//! One connection writes, and whoever wants to write waits for its turn in order: SQLite has one
//! writer anyway, and its own way of waiting (sleep and try again) starves the judge under load.
//! Readers have connections of their own.

mod advice;
pub mod alerts;
mod alerts_read;
pub mod backup;
mod base_file;
mod checkpoint;
pub mod compare;
pub(crate) mod db;
mod deliveries;
mod dialect;
mod error;
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
mod pending;
mod players_read;
pub mod retention;
pub mod rollups;
mod rollups_read;
mod scratch;
mod sources_read;
mod step;
pub mod totals;
pub mod transitions;
mod verdicts;
mod writer;

use std::path::Path;

use tokio::io::AsyncReadExt as _;
use tokio::sync::MappedMutexGuard;

pub use self::alerts_read::{AlertRow, NotificationRow};
pub use self::base_file::{BASE_END, HeldBase, base_bytes, has_base};
pub use self::checkpoint::Checkpoints;
use self::db::{Connection, Options, Readers, query};
use self::dialect::Place;
pub use self::error::StoreError;
pub use self::findings_read::{
    FindingFilter, FindingKey, FindingPage, FindingRow, FindingSum, FindingSums,
};
pub use self::lock::DatabaseLock;
pub use self::pending::Pending;
pub use self::players_read::{Delivery, DeliveryKey};
pub use self::rollups_read::{MinuteCount, ServiceCount};
pub use self::scratch::Scratch;
pub use self::sources_read::{BootRow, SourceCount, SourceRow, size_of};
pub use self::step::{Step, part};
use self::writer::{Transaction, Writer};
use crate::outcome::KeyedHash;

/// Readers at a time: pages and API; more would wait for the 2 cores of a small machine anyway.
const READERS: u32 = 4;

/// The database.
pub struct Store {
    readers: Readers,
    writer: Writer,
    hash: KeyedHash,
    collector: i64,
    #[cfg(test)]
    pub(crate) trouble: fixtures::Trouble,
}

/// What each file of SQLite starts with.
const SQLITE_STARTS: &[u8; 16] = b"SQLite format 3\0";

const PING: &str = "SELECT 1";

impl Store {
    /// Opens the database, makes it if it is not there, and brings its tables up to date.
    pub async fn open(url: &str, collector: &str) -> Result<Self, StoreError> {
        let place = Place::of(url)?;
        if let Place::Sqlite(path) = place {
            make_folder_of(Path::new(path)).await?;
        }
        let writer = Writer::open(place.to_write()?).await?;
        let mut turn = writer.turn().await?;
        dialect::migrate(&mut turn).await?;
        let hash = dialect::hash_key(&mut turn).await?;
        let collector = dialect::collector_id(&mut turn, collector).await?;
        drop(turn);
        Self::of(place, writer, hash, collector).await
    }

    /// Opens the database of a collector that may be running, for reading only.
    pub async fn open_to_read(url: &str, collector: &str) -> Result<Self, StoreError> {
        let place = Place::of(url)?;
        must_be_there(place).await?;
        Self::open_current(place, place.to_read()?, collector).await
    }

    /// Opens the database of a collector that does not run, to write what its log says. Makes
    /// nothing that is not there.
    pub async fn open_to_mend(url: &str, collector: &str) -> Result<Self, StoreError> {
        let place = Place::of(url)?;
        must_be_there(place).await?;
        Self::open_current(place, place.to_mend()?, collector).await
    }

    async fn open_current(
        place: Place<'_>,
        options: Options,
        collector: &str,
    ) -> Result<Self, StoreError> {
        let writer = Writer::open(options).await?;
        let mut turn = writer.turn().await?;
        dialect::is_current(&mut turn).await?;
        let hash = dialect::read_hash_key(&mut turn).await?;
        let collector = dialect::read_collector_id(&mut turn, collector).await?;
        drop(turn);
        Self::of(place, writer, hash, collector).await
    }

    /// Opens a database at this path with the keys of another, for its log folded again; makes
    /// an empty one if there is none.
    pub async fn open_scratch(path: &str, of: &Self) -> Result<Self, StoreError> {
        Self::open_beside(path, dialect::sqlite::to_redo(path), of).await
    }

    /// The same for a base, which takes its time and little memory.
    pub async fn open_base(path: &str, of: &Self) -> Result<Self, StoreError> {
        Self::open_beside(path, dialect::sqlite::to_base(path), of).await
    }

    async fn open_beside(path: &str, options: Options, of: &Self) -> Result<Self, StoreError> {
        let key = dialect::hash_key_text(&mut of.readers.acquire().await?).await?;
        let writer = Writer::open(options).await?;
        let mut turn = writer.turn().await?;
        dialect::migrate(&mut turn).await?;
        dialect::adopt_hash_key(&mut turn, &key).await?;
        drop(turn);
        Self::of(Place::Sqlite(path), writer, of.hash, of.collector).await
    }

    async fn of(
        place: Place<'_>,
        writer: Writer,
        hash: KeyedHash,
        collector: i64,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            readers: place.readers(READERS).await?,
            writer,
            hash,
            collector,
            #[cfg(test)]
            trouble: fixtures::Trouble::default(),
        })
    }

    /// The connections for reading.
    pub(crate) fn readers(&self) -> &Readers {
        &self.readers
    }

    /// The connection for writing, when it is this caller's turn.
    pub(crate) async fn writer(&self) -> Result<MappedMutexGuard<'_, Connection>, StoreError> {
        self.writer.turn().await
    }

    /// A transaction of the connection for writing, when it is this caller's turn.
    pub(crate) async fn begin(&self) -> Result<Transaction<'_>, StoreError> {
        self.writer.begin().await
    }

    /// Whether the database answers.
    pub async fn ping(&self) -> Result<(), StoreError> {
        query(PING).execute(&self.readers).await?;
        Ok(())
    }

    /// Done when nothing that was begun is still being written: a server may be at it after the
    /// connection broke, and lets the next connection wait for that.
    pub async fn settle(&self) -> Result<(), StoreError> {
        self.writer().await.map(drop)
    }

    /// Ends reading, brings the write-ahead log into the database file and lets go of it.
    pub async fn close(&self) -> Result<(), StoreError> {
        self.readers.close().await;
        dialect::checkpoint(&mut *self.writer().await?).await
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
    match Place::of(url)? {
        Place::Sqlite(path) => Ok(path),
        Place::Postgres(_) => Err(StoreError::NoFile),
    }
}

/// Refuses what is no file of a database, before anything is made beside it.
async fn must_be_there(place: Place<'_>) -> Result<(), StoreError> {
    // A server says itself that it has no such database.
    let Place::Sqlite(path) = place else { return Ok(()) };
    let refused = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::NotFound => StoreError::Absent,
        _ => StoreError::Unread(source),
    };
    let mut start = [0; SQLITE_STARTS.len()];
    let mut file = tokio::fs::File::open(path).await.map_err(refused)?;
    match file.read_exact(&mut start).await {
        Ok(_) if start == *SQLITE_STARTS => Ok(()),
        Err(why) if why.kind() != std::io::ErrorKind::UnexpectedEof => Err(refused(why)),
        _ => Err(StoreError::NotOurs),
    }
}

async fn make_folder_of(path: &Path) -> Result<(), StoreError> {
    match path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        None => Ok(()),
        Some(folder) => tokio::fs::create_dir_all(folder)
            .await
            .map_err(|source| StoreError::Folder { path: folder.display().to_string(), source }),
    }
}
