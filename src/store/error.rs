//! What can go wrong with the database.

use sqlx::postgres::PgDatabaseError;

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
    /// The URL names no database that is known. Never all of it: there may be a password in it.
    #[error(
        "the database URL is not right ({0:?}); write sqlite://PATH, or \
         postgres://USER:PASSWORD@HOST:PORT/DATABASE"
    )]
    Url(String),
    /// What was asked for needs a file.
    #[error("this is for SQLite alone; the database is a PostgreSQL server's")]
    NoFile,
    /// No server answers there.
    #[error(
        "no PostgreSQL server answers at {host}:{port} ({why}); check host and port in the URL, \
         and whether the server runs and lets this machine in"
    )]
    Unreachable {
        /// Which host.
        host: String,
        /// Which port.
        port: u16,
        /// Why.
        why: String,
    },
    /// The server does not know the user, or not with this password.
    #[error("the server refuses the user or the password ({0}); check both in the URL")]
    Login(String),
    /// The server has no such database.
    #[error("{0}; check the name at the end of the URL, or make it: createdb NAME")]
    NoDatabase(String),
    /// The server is too old.
    #[error("the server is PostgreSQL {is}; {oldest} is the oldest that will do")]
    OldServer {
        /// Its version.
        is: i32,
        /// What it must be at least.
        oldest: i32,
    },
    /// The server takes no statements now, or the connection to it broke.
    #[error("the server is away ({0}); it is tried again")]
    Away(String),
    /// The server only reads.
    #[error("the server takes no writes ({0}); is it a standby?")]
    ReadOnly(String),
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
        matches!(
            self,
            Self::Full
                | Self::Disk(_)
                | Self::Damaged(_)
                | Self::Denied(_)
                | Self::Unreachable { .. }
                | Self::Login(_)
                | Self::NoDatabase(_)
                | Self::Away(_)
                | Self::ReadOnly(_)
                | Self::InUse
        )
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        let Some(why) = error.as_database_error() else { return Self::Database(error) };
        let message = why.message().to_owned();
        let told = match why.try_downcast_ref::<PgDatabaseError>() {
            Some(why) => of_postgres(why.code(), message),
            None => of_sqlite(why.code().as_deref(), message),
        };
        told.unwrap_or(Self::Database(error))
    }
}

fn of_sqlite(code: Option<&str>, message: String) -> Option<StoreError> {
    let code: i32 = code?.parse().ok()?;
    // The rest of the code tells more of the same.
    match code & 0xff {
        FULL => Some(StoreError::Full),
        IO_ERROR => Some(StoreError::Disk(message)),
        CORRUPT | NOT_A_DATABASE => Some(StoreError::Damaged(message)),
        READ_ONLY | CANT_OPEN => Some(StoreError::Denied(message)),
        _ => None,
    }
}

/// By the codes of PostgreSQL's appendix A; see there.
fn of_postgres(code: &str, message: String) -> Option<StoreError> {
    match code {
        "53100" => Some(StoreError::Full),
        "58030" => Some(StoreError::Disk(message)),
        "28000" | "28P01" => Some(StoreError::Login(message)),
        "3D000" => Some(StoreError::NoDatabase(message)),
        "55P03" => Some(StoreError::InUse),
        "25006" => Some(StoreError::ReadOnly(message)),
        // Too little memory, too many connections; stopping, crashed, starting.
        "53200" | "53300" | "57P01" | "57P02" | "57P03" => Some(StoreError::Away(message)),
        _ if code.starts_with("08") => Some(StoreError::Away(message)),
        _ => None,
    }
}

// SQLite's result codes.
const READ_ONLY: i32 = 8;
const IO_ERROR: i32 = 10;
const CORRUPT: i32 = 11;
const FULL: i32 = 13;
const CANT_OPEN: i32 = 14;
const NOT_A_DATABASE: i32 = 26;
