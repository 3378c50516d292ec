//! Copies of the database, made while a collector uses it, and put back. Only for SQLite: other
//! databases have their own ways.
//!
//! `VACUUM INTO` reads one instant of the database, however long it takes, and writes it without
//! what is free. Others write meanwhile; only the write-ahead log can't begin anew until it is
//! done. SQLite does not bring the copy to disk itself, so that is done here, before it gets its
//! name: a file of that name is a whole copy.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use super::db::{Connection, query, query_scalar};
use super::dialect::Place;
use super::scratch::{BESIDE, beside};
use super::{
    BASE_END, DatabaseLock, HeldBase, Scratch, Store, StoreError, dialect, must_be_there, path_of,
};

/// Why there is no copy, or it was not put back.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The database, or the copy, says no.
    #[error("can't use {path}: {source}")]
    Store {
        /// Which file.
        path: String,
        /// Why.
        source: StoreError,
    },
    /// A server has its own tools.
    #[error(
        "PostgreSQL copies its databases itself, also while dedupwatch runs: use pg_dump to copy \
         one and pg_restore to put it back; see the README"
    )]
    Server,
    /// Something has the name that the copy is to get.
    #[error("{0} is there already, and nothing is overwritten; name another file")]
    Exists(String),
    /// Something is where the copy is to be put.
    #[error(
        "there is a database at {0}; name another one with --database, or --force to put the copy \
         in its place and keep it beside it"
    )]
    TargetExists(String),
    /// A file can't be written, or can't be moved.
    #[error("can't write {path}: {source}; check the path, who owns it and the room on the disk")]
    File {
        /// Which file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// Rows or indexes contradict each other.
    #[error("{path} is damaged ({problem}); take another copy")]
    Damaged {
        /// Which file.
        path: String,
        /// What SQLite says.
        problem: String,
    },
    /// Other tables than this version makes.
    #[error("{0} has other tables than this version of dedupwatch makes; take another copy")]
    OtherTables(String),
}

/// A copy that was made or put back.
#[derive(Debug, PartialEq, Eq)]
pub struct Copied {
    /// How large it is.
    pub bytes: u64,
    /// Records in its log.
    pub records: i64,
    /// What was there before and is kept, by its new name.
    pub kept: Option<PathBuf>,
}

const COPY: &str = "VACUUM INTO $1";
const RECORDS: &str = "SELECT count(*) FROM records";
const CHECK: &str = "PRAGMA integrity_check(1)";
const WHOLE: &str = "ok";
const TABLES: &str = "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_master \
     WHERE name NOT LIKE 'sqlite\\_%' ESCAPE '\\' ORDER BY 1";
const IN_MEMORY: &str = ":memory:";

/// Copies the database of a collector, which may be running, to a new file.
pub async fn backup(url: &str, to: &Path) -> Result<Copied, BackupError> {
    let from = file_of(url)?;
    let base_to = beside(to, BASE_END);
    must_be_free(to)?;
    must_be_free(&base_to)?;
    // Records that are in neither would be gone from both.
    let base = HeldBase::take(url).await.map_err(|why| of(url, why))?;
    let main = copy(from, to).await?;
    let (mut bytes, records) = (size_of(main.path())?, count(main.path()).await?);
    if let Some(base) = base {
        let base = copy(&base.path, &base_to).await?;
        bytes += size_of(base.path())?;
        put_new(&base, &base_to)?;
    }
    put_new(&main, to)?;
    sync_folder_of(to)?;
    Ok(Copied { bytes, records, kept: None })
}

fn file_of(url: &str) -> Result<&str, BackupError> {
    match path_of(url) {
        Err(StoreError::NoFile) => Err(BackupError::Server),
        path => path.map_err(|why| of(url, why)),
    }
}

/// Gives a copy its name, which nothing must have.
fn put_new(copy: &Scratch, to: &Path) -> Result<(), BackupError> {
    // Fails where something has the name by now. Some file systems know no second names.
    match std::fs::hard_link(copy.path(), to) {
        Ok(()) => {}
        Err(why) if why.kind() == ErrorKind::AlreadyExists => must_be_free(to)?,
        Err(_) => {
            must_be_free(to)?;
            std::fs::rename(copy.path(), to).map_err(|why| file(to, why))?;
        }
    }
    Ok(())
}

/// Puts a copy at the place of a database that no collector uses. If one is there already, it is
/// refused, or with `force` kept under another name, which ends with `now_us`.
pub async fn restore(
    copy_path: &Path,
    url: &str,
    force: bool,
    now_us: i64,
) -> Result<Copied, BackupError> {
    let to = file_of(url)?;
    let from = copy_path.display().to_string();
    is_whole(&from).await?;
    let base_from = beside(copy_path, BASE_END);
    let has_base = base_from.exists();
    if has_base {
        is_whole(&base_from.display().to_string()).await?;
    }
    let _lock = DatabaseLock::take(url).await.map_err(|why| of(to, why))?;
    let to = Path::new(to);
    let is_there = all_of(to).iter().any(|file| file.exists());
    if is_there && !force {
        return Err(BackupError::TargetExists(to.display().to_string()));
    }
    let main = copy(&from, to).await?;
    let (mut bytes, records) = (size_of(main.path())?, count(main.path()).await?);
    let base_to = beside(to, BASE_END);
    let base = match has_base {
        true => Some(copy(&base_from.display().to_string(), &base_to).await?),
        false => None,
    };
    let kept = if is_there { Some(put_aside(to, now_us)?) } else { None };
    if let Some(base) = base {
        bytes += size_of(base.path())?;
        std::fs::rename(base.path(), &base_to).map_err(|why| file(&base_to, why))?;
    }
    std::fs::rename(main.path(), to).map_err(|why| file(to, why))?;
    sync_folder_of(to)?;
    Ok(Copied { bytes, records, kept })
}

/// A database, its base, and what SQLite puts beside each.
fn all_of(path: &Path) -> Vec<PathBuf> {
    let ends = std::iter::once("").chain(BESIDE);
    ends.flat_map(|end| [beside(path, end), beside(path, &format!("{BASE_END}{end}"))]).collect()
}

fn must_be_free(path: &Path) -> Result<(), BackupError> {
    match path.symlink_metadata() {
        Err(why) if why.kind() == ErrorKind::NotFound => Ok(()),
        Err(why) => Err(file(path, why)),
        Ok(_) => Err(BackupError::Exists(path.display().to_string())),
    }
}

/// A copy beside where it is to be, whole and on disk.
async fn copy(from: &str, to: &Path) -> Result<Scratch, BackupError> {
    let to = to.display().to_string();
    let scratch = Scratch::make(&to, "partial").await.map_err(|why| of(&to, why))?;
    let mut connection = open(from).await?;
    let copied = query(COPY).bind(scratch.path()).execute(&mut connection).await;
    copied.map_err(|why| of(from, why.into()))?;
    connection.close().await.map_err(|why| of(from, why.into()))?;
    let path = Path::new(scratch.path());
    File::open(path).and_then(|copy| copy.sync_all()).map_err(|why| file(path, why))?;
    Ok(scratch)
}

impl Store {
    /// Copies a database, which may be in use, to a file that is not there yet. The copy may not
    /// be on disk.
    pub async fn copy(from: &str, to: &str) -> Result<(), StoreError> {
        let mut connection = dialect::sqlite::to_copy(from).connect().await?;
        query(COPY).bind(to).execute(&mut connection).await?;
        Ok(connection.close().await?)
    }
}

/// A connection to a database of this version.
async fn open(path: &str) -> Result<Connection, BackupError> {
    must_be_there(Place::Sqlite(path)).await.map_err(|why| of(path, why))?;
    let connection = dialect::sqlite::to_copy(path).connect().await;
    let mut connection = connection.map_err(|why| of(path, why))?;
    dialect::is_current(&mut connection).await.map_err(|why| of(path, why))?;
    Ok(connection)
}

async fn count(path: &str) -> Result<i64, BackupError> {
    let mut connection = open(path).await?;
    let count = query_scalar(RECORDS).fetch_one(&mut connection).await;
    let count = count.map_err(|why| of(path, why.into()))?;
    connection.close().await.map_err(|why| of(path, why.into()))?;
    Ok(count)
}

/// Refuses what is no database of this version, or not all of one.
async fn is_whole(path: &str) -> Result<(), BackupError> {
    let mut connection = open(path).await?;
    let told = |why: sqlx::Error| of(path, why.into());
    let check: String = query_scalar(CHECK).fetch_one(&mut connection).await.map_err(told)?;
    if check != WHOLE {
        return Err(BackupError::Damaged { path: path.to_owned(), problem: check });
    }
    let fresh = dialect::sqlite::to_redo(IN_MEMORY).connect().await;
    let mut fresh = fresh.map_err(|why| of(path, why))?;
    dialect::migrate(&mut fresh).await.map_err(|why| of(path, why))?;
    let tables: Vec<String> =
        query_scalar(TABLES).fetch_all(&mut connection).await.map_err(told)?;
    let wanted: Vec<String> = query_scalar(TABLES).fetch_all(&mut fresh).await.map_err(told)?;
    dialect::read_hash_key(&mut connection).await.map_err(|why| of(path, why))?;
    match tables == wanted {
        true => Ok(()),
        false => Err(BackupError::OtherTables(path.to_owned())),
    }
}

/// Gives another name to a database and to what stands beside it. What was in its write-ahead log
/// must never be read into another database.
fn put_aside(path: &Path, now_us: i64) -> Result<PathBuf, BackupError> {
    let aside = beside(path, &format!(".before-restore-{now_us}"));
    for (file_path, kept) in all_of(path).iter().zip(all_of(&aside)) {
        match std::fs::rename(file_path, kept) {
            Err(why) if why.kind() != ErrorKind::NotFound => return Err(file(path, why)),
            _ => {}
        }
    }
    Ok(aside)
}

fn size_of(path: &str) -> Result<u64, BackupError> {
    let path = Path::new(path);
    Ok(path.metadata().map_err(|why| file(path, why))?.len())
}

/// Names are on disk with their folder.
fn sync_folder_of(path: &Path) -> Result<(), BackupError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or_else(|| Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(|why| file(path, why))
}

fn of(path: &str, source: StoreError) -> BackupError {
    BackupError::Store { path: path.to_owned(), source }
}

fn file(path: &Path, source: io::Error) -> BackupError {
    BackupError::File { path: path.display().to_string(), source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    fn path(fixture: &Fixture, name: &str) -> PathBuf {
        fixture._folder.path().join(name)
    }

    fn url(path: &Path) -> String {
        format!("sqlite://{}", path.display())
    }

    /// A database with a few rows, in use.
    async fn used() -> Fixture {
        let fixture = fixtures::store().await;
        fixtures::run(&fixture.store, "INSERT INTO records VALUES (1, 1, 8, 9, '{}')").await;
        fixture
    }

    fn names(fixture: &Fixture) -> Vec<String> {
        let entries = std::fs::read_dir(fixture._folder.path()).unwrap();
        let name = |entry: io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<String> =
            entries.map(|entry| name(entry).into_string().unwrap()).collect();
        names.sort_unstable();
        names
    }

    #[tokio::test]
    async fn a_copy_is_the_database_at_one_instant_and_nothing_is_overwritten() {
        let fixture = used().await;
        let (from, to) = (url(&path(&fixture, "test.db")), path(&fixture, "copy.db"));
        let before = fixtures::dump(&fixture.store).await;
        let turn = fixture.store.begin().await.unwrap();
        let copied = backup(&from, &to).await.unwrap();
        drop(turn);
        assert_eq!((copied.records, copied.kept), (1, None));
        assert_eq!(copied.bytes, to.metadata().unwrap().len());
        let all = names(&fixture);
        assert!(!all.iter().any(|name| name.contains("partial")), "{all:?}");
        let bytes = std::fs::read(&to).unwrap();
        let refused = backup(&from, &to).await.unwrap_err();
        assert!(matches!(refused, BackupError::Exists(_)), "{refused}");
        assert_eq!(std::fs::read(&to).unwrap(), bytes);
        let store = Store::open(&url(&to), "collector-1").await.unwrap();
        assert_eq!(fixtures::dump(&store).await, before);
    }

    #[tokio::test]
    async fn a_copy_is_put_back_where_nothing_is_or_by_force() {
        let fixture = used().await;
        let (from, to) = (path(&fixture, "test.db"), path(&fixture, "copy.db"));
        backup(&url(&from), &to).await.unwrap();
        let before = fixtures::dump(&fixture.store).await;
        fixtures::run(&fixture.store, "INSERT INTO records VALUES (1, 2, 8, 9, '{}')").await;
        let held = DatabaseLock::take(&url(&from)).await.unwrap();
        let refused = restore(&to, &url(&from), true, 7).await.unwrap_err();
        assert!(matches!(refused, BackupError::Store { source: StoreError::InUse, .. }));
        drop(held);
        let refused = restore(&to, &url(&from), false, 7).await.unwrap_err();
        assert!(matches!(refused, BackupError::TargetExists(_)), "{refused}");
        let two = "SELECT count(*) FROM records";
        assert_eq!(fixtures::number(&fixture.store, two).await, 2);
        let restored = restore(&to, &url(&from), true, 7).await.unwrap();
        let aside = path(&fixture, "test.db.before-restore-7");
        assert_eq!(restored.kept, Some(aside.clone()));
        let store = Store::open(&url(&from), "collector-1").await.unwrap();
        assert_eq!(fixtures::dump(&store).await, before);
        let kept = Store::open(&url(&aside), "collector-1").await.unwrap();
        assert_eq!(fixtures::number(&kept, two).await, 2);
        let new = path(&fixture, "new/other.db");
        assert_eq!(restore(&to, &url(&new), false, 7).await.unwrap().kept, None);
        let store = Store::open(&url(&new), "collector-1").await.unwrap();
        assert_eq!(fixtures::dump(&store).await, before);
    }

    #[tokio::test]
    async fn what_is_not_whole_or_not_ours_is_not_put_back() {
        let fixture = used().await;
        fixtures::run(
            &fixture.store,
            "INSERT INTO noted WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
             WHERE i < 9000) SELECT randomblob(16), i FROM n",
        )
        .await;
        let to = path(&fixture, "copy.db");
        backup(&url(&path(&fixture, "test.db")), &to).await.unwrap();
        let whole = std::fs::read(&to).unwrap();
        let pages = whole.len() / 4096;
        let mut holed = whole.clone();
        holed[(pages / 2) * 4096..][..4096].fill(7);
        for (name, bytes) in [
            ("none.db", None),
            ("empty.db", Some(Vec::new())),
            ("text.db", Some(b"no database\n".repeat(99))),
            ("half.db", Some(whole[..(pages / 2) * 4096].to_vec())),
            ("holed.db", Some(holed)),
        ] {
            let file = path(&fixture, name);
            bytes.into_iter().for_each(|bytes| std::fs::write(&file, bytes).unwrap());
            let before = names(&fixture);
            let target = url(&path(&fixture, "target.db"));
            let refused = restore(&file, &target, false, 7).await.unwrap_err();
            assert!(refused.to_string().contains(name), "{refused}");
            assert_eq!(names(&fixture), before, "{name}");
        }
        fixtures::run(&fixture.store, "CREATE TABLE other (id)").await;
        let other = path(&fixture, "other.db");
        backup(&url(&path(&fixture, "test.db")), &other).await.unwrap();
        let refused = restore(&other, &url(&path(&fixture, "t.db")), false, 7).await.unwrap_err();
        assert!(matches!(refused, BackupError::OtherTables(_)), "{refused}");
    }
}
