//! A file beside another that is being made: one process at a time makes it, and it is gone at
//! the end unless it was put in its place.

use std::path::{Path, PathBuf};

use super::{DatabaseLock, StoreError};

/// The file's path, ours until it is dropped; then it is removed.
pub struct Scratch {
    text: String,
    _lock: DatabaseLock,
}

/// What SQLite puts beside a database.
pub(super) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

impl Scratch {
    /// Beside this file, with this end to its name. What one that was stopped half-way has left
    /// there is removed.
    pub async fn make(path: &str, end: &str) -> Result<Self, StoreError> {
        let text = format!("{path}.{end}");
        let lock = DatabaseLock::take(&format!("sqlite://{text}")).await?;
        let scratch = Self { text, _lock: lock };
        scratch.remove();
        Ok(scratch)
    }

    /// Where it is.
    pub fn path(&self) -> &str {
        &self.text
    }

    fn remove(&self) {
        for end in std::iter::once("").chain(BESIDE) {
            let _ = std::fs::remove_file(beside(Path::new(&self.text), end));
        }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        self.remove();
        let _ = std::fs::remove_file(beside(Path::new(&self.text), ".lock"));
    }
}

/// The path with something put behind it.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}
