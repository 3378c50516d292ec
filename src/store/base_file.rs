//! The file beside a database that holds what its log said before it begins (`redo::Base`).

use std::time::Duration;

use super::dialect::Place;
use super::{DatabaseLock, StoreError};

/// What its name ends with.
pub const BASE_END: &str = ".base";
/// How often somebody who waits for another to let go of it looks again, and after how long.
const LOOKS: u32 = 600;
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The base of a database, in which nothing changes while this is held.
pub struct HeldBase {
    /// Where it is.
    pub path: String,
    _lock: DatabaseLock,
}

impl HeldBase {
    /// Waits for whoever has it; `None` if there is none.
    pub async fn take(url: &str) -> Result<Option<Self>, StoreError> {
        if !has_base(url) {
            return Ok(None);
        }
        let url = format!("{url}{BASE_END}");
        let path = super::path_of(&url)?.to_owned();
        if !tokio::fs::try_exists(&path).await.unwrap_or(true) {
            return Ok(None);
        }
        let mut looks = 0;
        loop {
            match DatabaseLock::take(&url).await {
                Err(StoreError::InUse) if looks < LOOKS => looks += 1,
                lock => return Ok(Some(Self { path, _lock: lock? })),
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

/// Whether the log of a database can get shorter, with a base that holds what it said: a file
/// beside the database. PostgreSQL's log stays whole.
pub fn has_base(url: &str) -> bool {
    matches!(Place::of(url), Ok(Place::Sqlite(_)))
}

/// How large the base of a database is; 0 if there is none.
pub async fn base_bytes(url: &str) -> i64 {
    let Ok(path) = super::path_of(url) else { return 0 };
    let file = tokio::fs::metadata(format!("{path}{BASE_END}")).await;
    file.map_or(0, |file| i64::try_from(file.len()).unwrap_or(i64::MAX))
}
