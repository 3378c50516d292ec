//! One collector for one database file: two would give the same positions twice.
//!
//! The lock is on a file beside the database and held by the operating system, so it is gone with
//! the process, however that ends. A PostgreSQL server keeps its own: see `dialect::postgres`.

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::dialect::Place;
use super::{StoreError, make_folder_of};

/// Held while a collector uses a database.
pub struct DatabaseLock {
    _file: Option<File>,
}

impl DatabaseLock {
    /// Takes the lock, or says that another process has it.
    pub async fn take(url: &str) -> Result<Self, StoreError> {
        let Place::Sqlite(path) = Place::of(url)? else { return Ok(Self { _file: None }) };
        let database = Path::new(path);
        make_folder_of(database).await?;
        let mut path = database.as_os_str().to_owned();
        path.push(".lock");
        let path = PathBuf::from(path);
        let refused = |source| StoreError::Folder { path: path.display().to_string(), source };
        let file = File::create(&path).map_err(refused)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: Some(file) }),
            Err(TryLockError::WouldBlock) => Err(StoreError::InUse),
            Err(TryLockError::Error(source)) => Err(refused(source)),
        }
    }
}
