//! What can go wrong with the database.

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The database said no or is away.
    #[error("database: {0}")]
    Database(sqlx::Error),
    /// There is no room to write.
    #[error("the disk is full; make room on it")]
    Full,
    /// The disk, or what stands for it, fails; some files can't grow on a full one.
    #[error("the disk is full or fails ({0}); make room on it, or see the system's log")]
    Disk(String),
    /// The file is no database, or not a whole one.
    #[error("the file is damaged ({0}); put a copy of it in its place")]
    Damaged(String),
    /// The file, or one beside it, can't be opened or written to.
    #[error(
        "it can't be opened and written to ({0}); check who owns the file, its folder, and the \
         -wal and -shm files beside it"
    )]
    Denied(String),
    /// There is no such file.
    #[error("there is no such file; check the path, or let `dedupwatch serve` make a new one")]
    Absent,
    /// The file can't be read.
    #[error("the file can't be read: {0}; check the path and who owns it")]
    Unread(std::io::Error),
    /// Some other file.
    #[error("the file is no database of dedupwatch; check the path")]
    NotOurs,
    /// It was made beside another database.
    #[error("it belongs to another database; put the one beside it that was copied with it")]
    OtherKeys,
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

impl StoreError {
    /// Whether it is surely no fault of what was to be written: the same may be taken later.
    pub fn is_outage(&self) -> bool {
        matches!(self, Self::Full | Self::Disk(_) | Self::Damaged(_) | Self::Denied(_))
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let Some(why) = error.as_database_error() else { return Self::Database(error) };
        let code = why.code().and_then(|code| code.parse::<i32>().ok());
        // The rest of the code tells more of the same.
        match code.map(|code| code & 0xff) {
            Some(FULL) => Self::Full,
            Some(IO_ERROR) => Self::Disk(why.message().to_owned()),
            Some(CORRUPT | NOT_A_DATABASE) => Self::Damaged(why.message().to_owned()),
            Some(READ_ONLY | CANT_OPEN) => Self::Denied(why.message().to_owned()),
            _ => Self::Database(error),
        }
    }
}

// SQLite's result codes.
const READ_ONLY: i32 = 8;
const IO_ERROR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANT_OPEN: i32 = 14;
const NOT_A_DATABASE: i32 = 26;
