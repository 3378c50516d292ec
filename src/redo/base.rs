//! What the log said up to where it begins: the fold of all that is no longer in it, in a database
//! beside the log's own. Base and log together say what is stored.
//!
//! One process at a time uses it: it goes on only before records are dropped, and does not while
//! it is copied.

use super::fold::{Fold, Purpose};
use crate::outcome::Settings;
use crate::store::{BASE_END, DatabaseLock, Store, StoreError};

/// A base, ours until it is dropped.
pub struct Base {
    /// Goes on with it.
    pub fold: Fold,
    _lock: DatabaseLock,
}

impl Base {
    /// Opens the base of a database, or begins one; `None` while another process uses it, or
    /// nothing was ever judged.
    pub async fn open(log: &Store, url: &str) -> Result<Option<Self>, StoreError> {
        let url = format!("{url}{BASE_END}");
        let Some(settings) = log.base_settings().await? else { return Ok(None) };
        let lock = match DatabaseLock::take(&url).await {
            Err(StoreError::InUse) => return Ok(None),
            lock => lock?,
        };
        let to = Store::open_base(path_of(&url), log).await?;
        let fold = Fold::begin(to, &settings, Purpose::Base).await?;
        Ok(Some(Self { fold, _lock: lock }))
    }
}

/// Begins a fold that knows what a base says, or nothing.
pub(super) async fn begin(
    log: &Store,
    base: Option<&str>,
    scratch: &str,
    settings: &Settings,
) -> Result<Fold, StoreError> {
    if let Some(base) = base {
        Store::copy(base, scratch).await?;
    }
    Fold::begin(Store::open_scratch(scratch, log).await?, settings, Purpose::Compare).await
}

fn path_of(url: &str) -> &str {
    url.trim_start_matches("sqlite://")
}
