//! PostgreSQL: connecting, settings, migrations.
//!
//! The connection that writes holds a lock of the database for as long as it lives: so there is
//! one collector for one database, and a connection that is made anew waits until the server is
//! done with what the one before was doing. Only then can it be told what was written and what was
//! not.

use std::time::Duration;

use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPoolOptions};
use sqlx::{ConnectOptions as _, PgConnection, SqlSafeStr as _};

use crate::store::StoreError;
use crate::store::db::{Options, Readers};

/// The tables, in the order of their making, with the numbers that they have for SQLite. A file
/// that has been released never changes.
const MIGRATIONS: [(i64, &str, &str); 4] = [
    (1, "log", include_str!("../../../migrations/postgres/0001_log.sql")),
    (2, "audit", include_str!("../../../migrations/postgres/0002_audit.sql")),
    (3, "alert", include_str!("../../../migrations/postgres/0003_alert.sql")),
    (4, "transitions", include_str!("../../../migrations/postgres/0004_transitions.sql")),
];

/// The oldest server that has all that is used.
const OLDEST: i32 = 15;

/// How long a request waits for a connection to read on, the making of one included.
const READER_WAIT: Duration = Duration::from_secs(5);

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Write,
    Read,
}

/// A server, and what a connection to it is for.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    options: PgConnectOptions,
    purpose: Purpose,
}

const VERSION: &str = "SELECT current_setting('server_version_num')::int4 / 10000";
const LOCK_WAIT: &str = "SET lock_timeout = '5s'";
const LOCK: &str = "SELECT pg_advisory_lock(7234318301)";
const LOCK_WAIT_OVER: &str = "SET lock_timeout = 0";

impl Server {
    /// Connects; to write, only when nobody else does.
    pub(in crate::store) async fn connect(&self) -> Result<PgConnection, StoreError> {
        let mut connection = self.reach().await?;
        let version: i32 = sqlx::query_scalar(VERSION).fetch_one(&mut connection).await?;
        if version < OLDEST {
            return Err(StoreError::OldServer { is: version, oldest: OLDEST });
        }
        if self.purpose == Purpose::Write {
            sqlx::query(LOCK_WAIT).execute(&mut connection).await?;
            sqlx::query(LOCK).execute(&mut connection).await?;
            sqlx::query(LOCK_WAIT_OVER).execute(&mut connection).await?;
        }
        Ok(connection)
    }

    async fn reach(&self) -> Result<PgConnection, StoreError> {
        self.options.connect().await.map_err(|why| match why {
            sqlx::Error::Io(why) => StoreError::Unreachable {
                host: self.options.get_host().to_owned(),
                port: self.options.get_port(),
                why: why.to_string(),
            },
            why => why.into(),
        })
    }
}

fn options(url: &str, purpose: Purpose) -> Result<Server, StoreError> {
    let options: PgConnectOptions =
        url.parse().map_err(|why: sqlx::Error| StoreError::Url(why.to_string()))?;
    let read_only = match purpose {
        Purpose::Write => "off",
        Purpose::Read => "on",
    };
    // A host that is gone must not hold the lock for hours.
    let options = options.application_name("dedupwatch").options([
        ("default_transaction_read_only", read_only),
        ("tcp_keepalives_idle", "10"),
        ("tcp_keepalives_interval", "5"),
        ("tcp_keepalives_count", "3"),
    ]);
    Ok(Server { options, purpose })
}

/// The connection that writes.
pub(in crate::store) fn to_write(url: &str) -> Result<Options, StoreError> {
    Ok(Options::Postgres(options(url, Purpose::Write)?))
}

/// The same with statements that may take their time.
pub(in crate::store) fn to_mend(url: &str) -> Result<Options, StoreError> {
    let mut server = options(url, Purpose::Write)?;
    server.options = server.options.disable_statement_logging();
    Ok(Options::Postgres(server))
}

/// A connection that can't write. Its statements may take their time.
pub(in crate::store) fn to_read(url: &str) -> Result<Options, StoreError> {
    let mut server = options(url, Purpose::Read)?;
    server.options = server.options.disable_statement_logging();
    Ok(Options::Postgres(server))
}

/// The connections that read.
pub(in crate::store) async fn readers(url: &str, count: u32) -> Result<Readers, StoreError> {
    let server = options(url, Purpose::Read)?;
    let pool = PgPoolOptions::new().max_connections(count).acquire_timeout(READER_WAIT);
    Ok(Readers::Postgres(pool.connect_with(server.options).await?))
}

/// Brings the tables up to date. Whoever migrates holds a lock of the database.
pub(super) async fn migrate(connection: &mut PgConnection) -> Result<(), StoreError> {
    let migrations = MIGRATIONS.map(|(version, name, sql)| {
        Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
    });
    let migrator = Migrator::with_migrations(migrations.to_vec());
    migrator.run_direct(None, connection, false).await.map_err(|why| match why {
        MigrateError::VersionMissing(version) => StoreError::Newer(version),
        why => StoreError::Schema(why),
    })
}

#[cfg(test)]
mod tests {
    use crate::store::fixtures::{on_postgres, postgres::shared, run};
    use crate::store::{FindingFilter, Store, StoreError};

    async fn refused(url: &str) -> StoreError {
        let Err(why) = Store::open(url, "c").await else { panic!("{url} was opened") };
        let told = why.to_string();
        assert!(!told.contains("hush"), "{told}");
        why
    }

    #[tokio::test]
    async fn what_is_wrong_is_told_and_never_the_password() {
        let right = tokio::task::spawn_blocking(|| shared().database()).await.unwrap();
        let url = url::Url::parse(&right).unwrap();
        let changed = |change: fn(&mut url::Url)| {
            let mut url = url.clone();
            change(&mut url);
            String::from(url)
        };
        let why = refused(&changed(|url| url.set_password(Some("hush2")).unwrap())).await;
        assert!(matches!(why, StoreError::Login(_)), "{why}");
        let why = refused(&changed(|url| url.set_username("hugh").unwrap())).await;
        assert!(matches!(why, StoreError::Login(_)), "{why}");
        let why = refused(&changed(|url| url.set_path("none"))).await;
        assert!(matches!(why, StoreError::NoDatabase(_)), "{why}");
        let why = refused(&changed(|url| url.set_port(Some(9)).unwrap())).await;
        assert!(matches!(why, StoreError::Unreachable { port: 9, .. }), "{why}");
        let why = refused(&changed(|url| url.set_host(Some("nowhere.invalid")).unwrap())).await;
        assert!(matches!(why, StoreError::Unreachable { .. }), "{why}");
        let why = refused(&changed(|url| url.set_query(Some("sslmode=loud")))).await;
        assert!(matches!(why, StoreError::Url(_)), "{why}");
        assert!(Store::open(&right, "c").await.is_ok());
    }

    #[tokio::test]
    async fn tables_of_a_later_version_are_refused() {
        let url = tokio::task::spawn_blocking(|| shared().database()).await.unwrap();
        let store = Store::open(&url, "c").await.unwrap();
        run(
            &store,
            "INSERT INTO _sqlx_migrations (version, description, success, checksum, \
             execution_time) VALUES (999, 'later', TRUE, '', 0)",
        )
        .await;
        drop(store);
        assert!(matches!(refused(&url).await, StoreError::Newer(999)));
        let why = Store::open_to_read(&url, "c").await.err().unwrap();
        assert!(matches!(why, StoreError::Newer(999)), "{why}");
    }

    #[tokio::test]
    async fn one_collector_at_a_time_uses_a_database() {
        let url = tokio::task::spawn_blocking(|| shared().database()).await.unwrap();
        let why = Store::open_to_read(&url, "c").await.err().unwrap();
        assert!(matches!(why, StoreError::NotOurs), "{why}");
        let store = Store::open(&url, "c").await.unwrap();
        assert!(matches!(refused(&url).await, StoreError::InUse));
        assert!(Store::open_to_read(&url, "c").await.is_ok(), "reading is free");
        store.close().await.unwrap();
        drop(store);
        assert!(Store::open(&url, "c").await.is_ok());
    }

    #[tokio::test]
    async fn a_text_with_a_nul_is_looked_for_and_not_found() {
        let store = on_postgres().await.store;
        let filter = FindingFilter { kind: Some("a\0b".into()), ..FindingFilter::default() };
        assert_eq!(store.findings(&filter, None, 10).await.unwrap().rows, []);
    }
}
