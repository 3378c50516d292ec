//! Rows for the contract tests of the statements: a real database file in a folder of its own.

use std::sync::atomic::{AtomicU32, Ordering};

use super::db::{Connection, query, query_scalar};
use super::{Store, StoreError};
use crate::audit::{Coverage, Finding, Kind, OrderKnown, Severity, State, Subject, Witness};
use crate::outcome::{
    Amounts, Boot, Game, Id, Net, Outcome, Position, Signature, SourceName, Window, WindowScope,
};

/// Some moment: 2026-11-30T12:00:00Z.
pub(crate) const NOON_US: i64 = 1_796_040_000_000_000;

#[allow(dead_code, reason = "the tests of the whole program use more of it")]
#[path = "../../tests/it/support/postgres.rs"]
pub(crate) mod postgres;

/// A store and the folder that it lives in.
pub(crate) struct Fixture {
    pub(crate) store: Store,
    pub(crate) _folder: tempfile::TempDir,
}

/// Commits of groups that are to go wrong: so many that find a full disk, so many before they are
/// on disk, and then so many whose answer is lost after that.
#[derive(Debug, Default)]
pub(crate) struct Trouble {
    full: AtomicU32,
    before: AtomicU32,
    after: AtomicU32,
}

impl Trouble {
    pub(crate) fn set(&self, before: u32, after: u32) {
        self.before.store(before, Ordering::SeqCst);
        self.after.store(after, Ordering::SeqCst);
    }

    pub(crate) fn set_full(&self, full: u32) {
        self.full.store(full, Ordering::SeqCst);
    }

    pub(super) fn before_commit(&self) -> Result<(), StoreError> {
        strike(&self.full).map_err(|_| StoreError::Full)?;
        strike(&self.before)
    }

    pub(super) fn after_commit(&self) -> Result<(), StoreError> {
        strike(&self.after)
    }
}

fn strike(count: &AtomicU32) -> Result<(), StoreError> {
    let left = count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
    if left.is_ok() { Err(sqlx::Error::WorkerCrashed.into()) } else { Ok(()) }
}

/// Another process that writes: it holds the lock until it is dropped.
pub(crate) async fn other_writer(folder: &std::path::Path) -> Connection {
    let path = folder.join("test.db");
    let mut other =
        super::dialect::sqlite::to_write(path.to_str().unwrap()).connect().await.unwrap();
    query("BEGIN IMMEDIATE").execute(&mut other).await.unwrap();
    other
}

/// An empty database.
pub(crate) async fn store() -> Fixture {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}/test.db", folder.path().display());
    Fixture { store: Store::open(&url, "collector-1").await.unwrap(), _folder: folder }
}

/// An empty database of a PostgreSQL server.
pub(crate) async fn on_postgres() -> Fixture {
    let url = tokio::task::spawn_blocking(|| postgres::shared().database()).await.unwrap();
    let _folder = tempfile::tempdir().unwrap();
    Fixture { store: Store::open(&url, "collector-1").await.unwrap(), _folder }
}

/// The contract of the statements: each of these tests, which take a [`Fixture`], on both
/// databases.
macro_rules! contract {
    ($($test:ident),+ $(,)?) => {
        mod sqlite {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::store::fixtures::store().await).await;
            })+
        }

        mod postgres {
            $(#[tokio::test]
            async fn $test() {
                super::$test($crate::store::fixtures::on_postgres().await).await;
            })+
        }
    };
}
pub(crate) use contract;

pub(crate) fn id(text: &str) -> Id {
    Id::parse(text).unwrap()
}

/// A settlement of room r-77.
pub(crate) fn signature(net: i64) -> Signature {
    let game = Game { session: None, room: id("r-77"), round: id("12") };
    Signature::Settlement { game, net: Net(net), last: true }
}

/// A confirmed leak of `net` in ledger `chips`.
pub(crate) fn leak(finding_id: &str, net: i64) -> Finding {
    let player = id("p-1001");
    let signature = signature(net);
    Finding {
        id: finding_id.into(),
        kind: Kind::DuplicateLeak,
        subject: Subject::AuditKey {
            ledger: "chips".into(),
            player: player.clone(),
            signature: signature.clone(),
        },
        ordinal: 1,
        severity: Severity::Critical,
        state: State::Confirmed,
        closed_because: None,
        cause: "evicted".into(),
        order: OrderKnown::Proven,
        coverage: Coverage::Full,
        service: "settle".into(),
        env: "prod".into(),
        ledger: Some("chips".into()),
        source: Some(id("settle-1")),
        player: Some(player),
        signature: Some(signature),
        count: 1,
        players: 1,
        first_us: NOON_US,
        last_us: NOON_US + 5_000_000,
        amounts: Amounts::surplus(Net(net)),
        amounts_before_closing: None,
        witnesses: vec![
            witness("accepted", 42, NOON_US),
            witness("accepted_again", 51, NOON_US + 5_000_000),
        ],
    }
}

fn witness(role: &str, seq: u64, occurred_us: i64) -> Witness {
    Witness {
        role: role.into(),
        position: Position { collector: 1, n: seq.cast_signed() },
        occurred_us,
        from: SourceName { service: id("settle"), env: id("prod"), source: id("settle-1") },
        boot: Some(Boot::parse("2026-11-30T08:00:00Z").unwrap()),
        seq: Some(seq),
        outcome: Some(Outcome::Processed),
        player: None,
        signature: None,
        reference: None,
        trace_id: Some(id("4bf92f3577b34da6a3ce929d0e0e4736")),
        window: Some(Window { len: 4, cap: 4, scope: WindowScope::Player }),
        reason: None,
        effect: None,
        guard_mode: None,
        text: None,
    }
}

/// Writes a finding as the judge does.
pub(crate) async fn insert_finding(store: &Store, finding: &Finding) {
    query(
        "INSERT INTO findings (id, kind, severity, state, service, env, ledger, player, \
         first_us, last_us, body, opened_us, gained_us, change) VALUES \
         ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $12, 1)",
    )
    .bind(&finding.id)
    .bind(finding.kind.as_str())
    .bind(finding.severity.as_str())
    .bind(finding.state.as_str())
    .bind(&finding.service)
    .bind(&finding.env)
    .bind(&finding.ledger)
    .bind(finding.player.as_ref().map(Id::as_str))
    .bind(finding.first_us)
    .bind(finding.last_us)
    .bind(serde_json::to_string(finding).unwrap())
    .bind(NOON_US)
    .execute(&mut *store.writer().await.unwrap())
    .await
    .unwrap();
}

/// Writes a sum with one open row.
pub(crate) async fn insert_sum(
    store: &Store,
    kind: &str,
    service: &str,
    ledger: &str,
    overpaid: i128,
) {
    query("INSERT INTO finding_sums VALUES ($1, $2, 'prod', $3, 1, 1, 0, $4, '0', '0', '0', '0')")
        .bind(kind)
        .bind(service)
        .bind(ledger)
        .bind(overpaid.to_string())
        .execute(&mut *store.writer().await.unwrap())
        .await
        .unwrap();
}

/// Runs one statement that sets the scene.
pub(crate) async fn run(store: &Store, sql: &'static str) {
    query(sql).execute(&mut *store.writer().await.unwrap()).await.unwrap();
}

/// A number from the database.
pub(crate) async fn number(store: &Store, sql: &'static str) -> i64 {
    query_scalar(sql).fetch_one(store.readers()).await.unwrap()
}

/// A text from the database.
pub(crate) async fn text(store: &Store, sql: &'static str) -> String {
    query_scalar(sql).fetch_one(store.readers()).await.unwrap()
}

impl Store {
    /// There is no room for another page. Holds for the connection that writes, until that is
    /// made anew.
    pub(crate) async fn fill_up(&self) {
        self.execute("PRAGMA max_page_count = 1").await;
    }

    /// Does something to the database behind its back.
    pub(crate) async fn execute(&self, sql: &'static str) {
        query(sql).execute(&mut *self.writer().await.unwrap()).await.unwrap();
    }
}

const TABLES: &str =
    "SELECT name FROM sqlite_master WHERE type = 'table' AND sql IS NOT NULL ORDER BY name";
const COLUMNS: &str =
    "SELECT group_concat(format('quote(\"%w\")', name), '||'',''||') FROM pragma_table_info($1)";

/// All rows of all tables.
pub(crate) async fn dump(store: &Store) -> Vec<String> {
    let mut connection = store.writer().await.unwrap();
    let tables: Vec<String> = query_scalar(TABLES).fetch_all(&mut *connection).await.unwrap();
    let mut all = Vec::new();
    for table in tables {
        let columns: String =
            query_scalar(COLUMNS).bind(&table).fetch_one(&mut *connection).await.unwrap();
        let select = format!("SELECT {columns} AS \"row\" FROM \"{table}\" ORDER BY 1");
        let rows: Vec<String> =
            query_scalar(sqlx::AssertSqlSafe(select)).fetch_all(&mut *connection).await.unwrap();
        all.extend(rows.into_iter().map(|row| format!("{table}: {row}")));
    }
    all
}
