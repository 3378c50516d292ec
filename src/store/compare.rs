//! What is stored beside what the log says when it is folded again.
//!
//! The log folded again stands in a database of its own ([`Store::open_scratch`]), which one
//! connection attaches as `redone`: so whole tables are compared, or replaced, by one statement
//! each. Tables that are no fold of the log are not among them: the log itself, identities, what
//! alerts and notifications were, counters. What is in the journal of facts holds, in place of what
//! is in their tables.

use super::db::{Connection, query, query_as, query_scalar, run_script};
use super::{Store, StoreError, dialect, part, path_of};
use crate::audit::{MessageFacts, PlayerFacts, RefFacts, RoomFacts, SignatureFacts, Stored};

/// Differences of one table that are told one by one; the rest is counted.
pub const TOLD_MAX: i64 = 100;

/// One row that is not as the log says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Which table.
    pub table: &'static str,
    /// Which row.
    pub key: String,
    /// What is stored; `None` if there is no such row.
    pub stored: Option<String>,
    /// What the log says; `None` if it says nothing of it.
    pub redone: Option<String>,
}

/// The differences of one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableDifferences {
    /// Which table.
    pub table: &'static str,
    /// How many rows differ.
    pub count: i64,
    /// The first [`TOLD_MAX`] of them.
    pub told: Vec<Difference>,
}

/// One table that is a fold of the log.
struct Table {
    name: &'static str,
    /// Rows that differ: key, stored, redone, and how many there are in all.
    differing: &'static str,
    clear: &'static str,
    fill: &'static str,
    /// Makes a body readable.
    read: fn(&[u8]) -> String,
}

fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

fn facts<T: Stored>(body: &[u8]) -> String {
    let read = super::packed::unpack::<T>(body).and_then(|facts| {
        let rows = super::facts::json(&facts.rows())?;
        Ok(format!("{} rows {rows}", super::facts::json(&facts)?))
    });
    read.unwrap_or_else(|why| why.to_string())
}

// Each joins the tables themselves: SQLite has no index for a subquery that is joined in full, and
// goes through all of it for each row.
const PLAYERS: &str = "SELECT *, count(*) OVER () FROM ( \
     SELECT CAST(player AS TEXT), a.body, b.body FROM main.players AS a \
      FULL JOIN redone.players AS b USING (player) WHERE a.body IS DISTINCT FROM b.body \
      AND NOT EXISTS (SELECT 1 FROM redone.pending WHERE (of, a, b) = (0, player, 0)) \
     UNION ALL SELECT CAST(p.a AS TEXT), p.body, t.body FROM redone.pending AS p \
      LEFT JOIN redone.players AS t ON t.player = p.a \
      WHERE p.of = 0 AND p.body IS DISTINCT FROM t.body) ORDER BY 1 LIMIT $1";
const SIGNATURES: &str = "SELECT *, count(*) OVER () FROM ( \
     SELECT player || '/' || signature, a.body, b.body FROM main.signatures AS a \
      FULL JOIN redone.signatures AS b USING (player, signature) \
      WHERE a.body IS DISTINCT FROM b.body AND NOT EXISTS \
      (SELECT 1 FROM redone.pending WHERE (of, a, b) = (1, player, signature)) \
     UNION ALL SELECT p.a || '/' || p.b, p.body, t.body FROM redone.pending AS p \
      LEFT JOIN redone.signatures AS t ON t.player = p.a AND t.signature = p.b \
      WHERE p.of = 1 AND p.body IS DISTINCT FROM t.body) ORDER BY 1 LIMIT $1";
const REFS: &str = "SELECT *, count(*) OVER () FROM ( \
     SELECT player || '/' || ref, a.body, b.body FROM main.refs AS a \
      FULL JOIN redone.refs AS b USING (player, ref) WHERE a.body IS DISTINCT FROM b.body \
      AND NOT EXISTS (SELECT 1 FROM redone.pending WHERE (of, a, b) = (2, player, ref)) \
     UNION ALL SELECT p.a || '/' || p.b, p.body, t.body FROM redone.pending AS p \
      LEFT JOIN redone.refs AS t ON t.player = p.a AND t.ref = p.b \
      WHERE p.of = 2 AND p.body IS DISTINCT FROM t.body) ORDER BY 1 LIMIT $1";
const ROOMS: &str = "SELECT *, count(*) OVER () FROM ( \
     SELECT player || '/' || room, a.body, b.body FROM main.rooms AS a \
      FULL JOIN redone.rooms AS b USING (player, room) WHERE a.body IS DISTINCT FROM b.body \
      AND NOT EXISTS (SELECT 1 FROM redone.pending WHERE (of, a, b) = (3, player, room)) \
     UNION ALL SELECT p.a || '/' || p.b, p.body, t.body FROM redone.pending AS p \
      LEFT JOIN redone.rooms AS t ON t.player = p.a AND t.room = p.b \
      WHERE p.of = 3 AND p.body IS DISTINCT FROM t.body) ORDER BY 1 LIMIT $1";
const MESSAGES: &str = "SELECT *, count(*) OVER () FROM ( \
     SELECT ledger || '/' || message, a.body, b.body FROM main.messages AS a \
      FULL JOIN redone.messages AS b USING (ledger, message) WHERE a.body IS DISTINCT FROM b.body \
      AND NOT EXISTS (SELECT 1 FROM redone.pending WHERE (of, a, b) = (4, ledger, message)) \
     UNION ALL SELECT p.a || '/' || p.b, p.body, t.body FROM redone.pending AS p \
      LEFT JOIN redone.messages AS t ON t.ledger = p.a AND t.message = p.b \
      WHERE p.of = 4 AND p.body IS DISTINCT FROM t.body) ORDER BY 1 LIMIT $1";
const DELIVERIES: &str = "SELECT *, count(*) OVER () FROM ( \
     SELECT player || '/' || occurred_us || '/' || collector || '.' || n, \
      CASE WHEN a.n IS NOT NULL THEN x'' END, CASE WHEN b.n IS NOT NULL THEN x'' END \
      FROM main.deliveries AS a FULL JOIN redone.deliveries AS b \
      USING (player, occurred_us, collector, n) WHERE n > (SELECT n FROM redone.kept) \
      AND (b.n IS NULL OR (a.n IS NULL \
      AND NOT EXISTS (SELECT 1 FROM redone.pending_deliveries AS p WHERE \
      (p.player, p.occurred_us, p.collector, p.n) = \
      (b.player, b.occurred_us, b.collector, b.n)))) \
     UNION ALL SELECT player || '/' || occurred_us || '/' || collector || '.' || n, x'', NULL \
      FROM redone.pending_deliveries AS p WHERE p.n > (SELECT n FROM redone.kept) \
      AND NOT EXISTS \
      (SELECT 1 FROM redone.deliveries AS b WHERE (b.player, b.occurred_us, b.collector, b.n) = \
      (p.player, p.occurred_us, p.collector, p.n)) AND NOT EXISTS \
      (SELECT 1 FROM main.deliveries AS a WHERE (a.player, a.occurred_us, a.collector, a.n) = \
      (p.player, p.occurred_us, p.collector, p.n))) ORDER BY 1 LIMIT $1";
const STATE: &str = "SELECT part || ' ' || name, CAST(a.body AS BLOB), CAST(b.body AS BLOB), \
     count(*) OVER () FROM main.audit_state AS a FULL JOIN redone.audit_state AS b \
     USING (part, name) WHERE part <> 'change' AND a.body IS DISTINCT FROM b.body \
     ORDER BY part, name LIMIT $1";
const FINDINGS: &str = "SELECT id, \
     CASE WHEN a.id IS NOT NULL THEN CAST(json_array(a.opened_us, a.gained_us, a.state, \
      a.severity, a.first_us, a.last_us, json(a.body)) AS BLOB) END, \
     CASE WHEN b.id IS NOT NULL THEN CAST(json_array(b.opened_us, b.gained_us, b.state, \
      b.severity, b.first_us, b.last_us, json(b.body)) AS BLOB) END, \
     count(*) OVER () FROM main.findings AS a FULL JOIN redone.findings AS b USING (id) \
     WHERE (a.opened_us, a.gained_us, a.state, a.severity, a.first_us, a.last_us, json(a.body)) \
     IS NOT \
      (b.opened_us, b.gained_us, b.state, b.severity, b.first_us, b.last_us, json(b.body)) \
     ORDER BY id LIMIT $1";
const SUMS: &str = "SELECT json_array(kind, service, env, ledger), \
     CASE WHEN a.kind IS NOT NULL THEN CAST(json_array(a.confirmed_ever, a.open_confirmed, \
      a.open_suspected, a.overpaid, a.overcharged, a.underpaid, a.undercharged, a.exposure) \
      AS BLOB) END, \
     CASE WHEN b.kind IS NOT NULL THEN CAST(json_array(b.confirmed_ever, b.open_confirmed, \
      b.open_suspected, b.overpaid, b.overcharged, b.underpaid, b.undercharged, b.exposure) \
      AS BLOB) END, \
     count(*) OVER () FROM main.finding_sums AS a FULL JOIN redone.finding_sums AS b \
     USING (kind, service, env, ledger) \
     WHERE (a.confirmed_ever, a.open_confirmed, a.open_suspected, a.overpaid, a.overcharged, \
      a.underpaid, a.undercharged, a.exposure) IS NOT (b.confirmed_ever, b.open_confirmed, \
      b.open_suspected, b.overpaid, b.overcharged, b.underpaid, b.undercharged, b.exposure) \
     ORDER BY kind, service, env, ledger LIMIT $1";
const PROGRESS: &str = "SELECT CAST(collector AS TEXT), CAST(a.n AS BLOB), CAST(b.n AS BLOB), \
     count(*) OVER () FROM main.progress AS a FULL JOIN redone.progress AS b USING (collector) \
     WHERE a.n IS DISTINCT FROM b.n ORDER BY collector LIMIT $1";
const ROLLUPS: &str = "SELECT json_array(service, env, minute, outcome), \
     CAST(a.count AS BLOB), CAST(b.count AS BLOB), count(*) OVER () FROM main.rollups AS a \
     FULL JOIN redone.rollups AS b USING (service, env, minute, outcome) \
     WHERE a.count IS DISTINCT FROM b.count AND minute >= (SELECT minute FROM redone.kept) \
     ORDER BY service, env, minute, outcome LIMIT $1";
const LATENCIES: &str = "SELECT json_array(service, env, minute, metric), \
     CAST(a.buckets || ' ' || a.sum_us AS BLOB), CAST(b.buckets || ' ' || b.sum_us AS BLOB), \
     count(*) OVER () FROM main.latencies AS a FULL JOIN redone.latencies AS b \
     USING (service, env, minute, metric) \
     WHERE (a.buckets, a.sum_us) IS NOT (b.buckets, b.sum_us) \
     AND minute >= (SELECT minute FROM redone.kept) \
     ORDER BY service, env, minute, metric LIMIT $1";
const MEASURED: &str = "SELECT json_array(service, env, minute), CAST(a.body AS BLOB), \
     CAST(b.body AS BLOB), count(*) OVER () FROM main.audit_rollups AS a \
     FULL JOIN redone.audit_rollups AS b USING (service, env, minute) \
     WHERE a.body IS DISTINCT FROM b.body AND minute >= (SELECT minute FROM redone.kept) \
     ORDER BY service, env, minute LIMIT $1";
const TRANSITIONS: &str = "SELECT json_array(service, env, minute, state_from, state_to), \
     CAST(a.count AS BLOB), CAST(b.count AS BLOB), count(*) OVER () FROM main.transitions AS a \
     FULL JOIN redone.transitions AS b USING (service, env, minute, state_from, state_to) \
     WHERE a.count IS DISTINCT FROM b.count AND minute >= (SELECT minute FROM redone.kept) \
     ORDER BY service, env, minute, state_from, state_to LIMIT $1";

/// All tables that are a fold of the log.
const TABLES: [Table; 14] = [
    Table {
        name: "players",
        differing: PLAYERS,
        clear: "DELETE FROM main.players",
        fill: "INSERT INTO main.players SELECT * FROM redone.players",
        read: facts::<PlayerFacts>,
    },
    Table {
        name: "signatures",
        differing: SIGNATURES,
        clear: "DELETE FROM main.signatures",
        fill: "INSERT INTO main.signatures SELECT * FROM redone.signatures",
        read: facts::<SignatureFacts>,
    },
    Table {
        name: "refs",
        differing: REFS,
        clear: "DELETE FROM main.refs",
        fill: "INSERT INTO main.refs SELECT * FROM redone.refs",
        read: facts::<RefFacts>,
    },
    Table {
        name: "rooms",
        differing: ROOMS,
        clear: "DELETE FROM main.rooms",
        fill: "INSERT INTO main.rooms SELECT * FROM redone.rooms",
        read: facts::<RoomFacts>,
    },
    Table {
        name: "messages",
        differing: MESSAGES,
        clear: "DELETE FROM main.messages",
        fill: "INSERT INTO main.messages SELECT * FROM redone.messages",
        read: facts::<MessageFacts>,
    },
    Table {
        name: "deliveries",
        differing: DELIVERIES,
        clear: "DELETE FROM main.deliveries",
        fill: "INSERT INTO main.deliveries SELECT * FROM redone.deliveries",
        read: text,
    },
    Table {
        name: "audit_state",
        differing: STATE,
        clear: "DELETE FROM main.audit_state WHERE part <> 'change'",
        fill: "INSERT INTO main.audit_state SELECT * FROM redone.audit_state \
               WHERE part <> 'change'",
        read: text,
    },
    Table {
        name: "findings",
        differing: FINDINGS,
        // Rows keep the number of their last change, so that nobody is told of them anew.
        clear: "CREATE TEMPORARY TABLE kept AS SELECT id, change FROM main.findings; \
                DELETE FROM main.findings",
        fill: "INSERT INTO main.findings SELECT r.id, kind, severity, state, service, env, \
               ledger, player, first_us, last_us, body, opened_us, gained_us, \
               coalesce(kept.change, 0) FROM redone.findings AS r \
               LEFT JOIN temp.kept ON kept.id = r.id; DROP TABLE temp.kept",
        read: text,
    },
    Table {
        name: "finding_sums",
        differing: SUMS,
        clear: "DELETE FROM main.finding_sums",
        fill: "INSERT INTO main.finding_sums SELECT * FROM redone.finding_sums",
        read: text,
    },
    Table {
        name: "progress",
        differing: PROGRESS,
        clear: "DELETE FROM main.progress",
        fill: "INSERT INTO main.progress SELECT * FROM redone.progress",
        read: text,
    },
    Table {
        name: "rollups",
        differing: ROLLUPS,
        clear: "DELETE FROM main.rollups",
        fill: "INSERT INTO main.rollups SELECT * FROM redone.rollups",
        read: text,
    },
    Table {
        name: "latencies",
        differing: LATENCIES,
        clear: "DELETE FROM main.latencies",
        fill: "INSERT INTO main.latencies SELECT * FROM redone.latencies",
        read: text,
    },
    Table {
        name: "audit_rollups",
        differing: MEASURED,
        clear: "DELETE FROM main.audit_rollups",
        fill: "INSERT INTO main.audit_rollups SELECT * FROM redone.audit_rollups",
        read: text,
    },
    Table {
        name: "transitions",
        differing: TRANSITIONS,
        clear: "DELETE FROM main.transitions",
        fill: "INSERT INTO main.transitions SELECT * FROM redone.transitions",
        read: text,
    },
];

const CLEAR_JOURNAL: &str = "DELETE FROM main.fact_journal; DELETE FROM main.delivery_journal";
const ATTACH: &str = "ATTACH DATABASE $1 AS redone";
const BEGIN: &str = "BEGIN";
const JUDGED: &str = "SELECT n FROM main.progress WHERE collector = $1";
const KEPT_MINUTE: &str = "SELECT coalesce(max(CAST(value AS INTEGER)), 0) FROM meta \
     WHERE name = 'rollups_from'";
const NOTE_KEPT: &str = "CREATE TABLE kept AS SELECT $1 AS n, $2 AS minute";
const LOGGED: &str = "SELECT max(n) FROM main.records WHERE collector = $1";

/// A connection to a database that sees it, and its log folded again, at one instant.
pub struct Comparison {
    connection: Connection,
    judged_n: i64,
    logged_n: i64,
}

impl Comparison {
    /// Fixes the instant. From here on until the end the write-ahead log can't be let go of. The
    /// log begins after `base_n`.
    pub async fn begin(
        url: &str,
        (scratch, redone): (&str, &Store),
        (collector, base_n): (i64, i64),
    ) -> Result<Self, StoreError> {
        let mut connection = dialect::sqlite::to_read(path_of(url)?).connect().await?;
        query(ATTACH).bind(scratch).execute(&mut connection).await?;
        query(BEGIN).execute(&mut connection).await?;
        let judged = query_scalar(JUDGED).bind(collector);
        let judged_n = judged.fetch_optional(&mut connection).await?.unwrap_or(0);
        let logged = query_scalar::<Option<i64>>(LOGGED).bind(collector);
        let logged_n = logged.fetch_one(&mut connection).await?.unwrap_or(0);
        redone.copy_journal(&mut connection).await?;
        let kept_minute: i64 = query_scalar(KEPT_MINUTE).fetch_one(&mut connection).await?;
        redone.note_kept(base_n, kept_minute).await?;
        Ok(Self { connection, judged_n, logged_n })
    }

    /// How far the judge was at that instant.
    pub fn judged_n(&self) -> i64 {
        self.judged_n
    }

    /// How far the log was at that instant.
    pub fn logged_n(&self) -> i64 {
        self.logged_n
    }

    /// The tables that differ.
    pub async fn differences(&mut self) -> Result<Vec<TableDifferences>, StoreError> {
        let mut all = Vec::new();
        for table in TABLES {
            let found = differences(&mut self.connection, &table).await?;
            all.extend((found.count > 0).then_some(found));
        }
        Ok(all)
    }
}

type DifferingRow = (String, Option<Vec<u8>>, Option<Vec<u8>>, i64);

async fn differences(
    connection: &mut Connection,
    table: &Table,
) -> Result<TableDifferences, StoreError> {
    let rows: Vec<DifferingRow> =
        query_as(table.differing).bind(TOLD_MAX).fetch_all(connection).await?;
    let count = rows.first().map_or(0, |(.., count)| *count);
    let told = rows.into_iter().map(|(key, stored, redone, _)| Difference {
        table: table.name,
        key,
        stored: stored.as_deref().map(table.read),
        redone: redone.as_deref().map(table.read),
    });
    Ok(TableDifferences { table: table.name, count, told: told.collect() })
}

impl Store {
    /// Notes from where on there is something to compare with.
    async fn note_kept(&self, n: i64, minute: i64) -> Result<(), StoreError> {
        let note = query(NOTE_KEPT).bind(n).bind(minute);
        note.execute(&mut *self.writer().await?).await?;
        Ok(())
    }

    /// Puts what the log says in the place of what is stored, whole or not at all. No collector
    /// may use the database meanwhile.
    pub async fn replace_by(&self, scratch: &str) -> Result<(), StoreError> {
        query(ATTACH).bind(scratch).execute(&mut *self.writer().await?).await?;
        let mut transaction = self.begin().await?;
        run_script(CLEAR_JOURNAL, &mut transaction).await?;
        for table in TABLES {
            run_script(table.clear, &mut transaction).await?;
            run_script(table.fill, &mut transaction).await?;
        }
        transaction.commit().await?;
        Ok(())
    }

    /// What held before the first record of the log.
    pub async fn base_settings(&self) -> Result<Option<crate::outcome::Settings>, StoreError> {
        Ok(self.read_part_by_name(part::SETTINGS, &[part::BASE]).await?.pop())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::fixtures::{self, Fixture};

    /// Tables that are no fold of the log, each with its reason.
    const OTHERS: [&str; 18] = [
        "_sqlx_migrations", // sqlx's own
        "meta",             // keys
        "fact_journal",     // compared as what the tables will be
        "delivery_journal",
        "collectors", // names
        "records",    // the log itself
        "sources",    // identities, as senders gave them
        "boots",
        "transition_runs",
        "ledgers",
        "hashes",
        "event_ids",
        "noted",
        "commits",       // the newest groups
        "totals",        // counters of the process too
        "alerts",        // decided by the clock
        "notifications", // what was sent
        "alert_cursor",
    ];

    #[tokio::test]
    async fn rows_are_found_by_an_index() {
        let (one, two) = (fixtures::store().await, fixtures::store().await);
        let path = |it: &Fixture| it._folder.path().join("test.db").display().to_string();
        let url = format!("sqlite://{}", path(&one));
        let mut comparison =
            Comparison::begin(&url, (&path(&two), &two.store), (1, 0)).await.unwrap();
        for table in TABLES {
            let explain = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", table.differing));
            let plan: Vec<(i64, i64, i64, String)> = query_as(explain)
                .bind(TOLD_MAX)
                .fetch_all(&mut comparison.connection)
                .await
                .unwrap();
            let joined: Vec<_> = plan.iter().filter(|step| step.3.contains("LEFT-JOIN")).collect();
            assert!(!joined.is_empty(), "{}: {plan:?}", table.name);
            for join in joined {
                assert!(join.3.starts_with("SEARCH"), "{}: {join:?}", table.name);
            }
            let looked_up = plan.iter().filter(|step| step.3.contains("redone.pending"));
            for step in looked_up {
                assert!(step.3.starts_with("SEARCH"), "{}: {step:?}", table.name);
            }
        }
    }

    #[tokio::test]
    async fn every_table_is_compared_or_has_a_reason_not_to_be() {
        let Fixture { store, _folder } = fixtures::store().await;
        let names: Vec<String> =
            query_scalar("SELECT name FROM sqlite_master WHERE type = 'table'")
                .fetch_all(store.readers())
                .await
                .unwrap();
        for name in &names {
            let compared = TABLES.iter().any(|table| table.name == name);
            let other = OTHERS.contains(&name.as_str());
            assert!(compared != other, "{name}: compare it, or say why not");
        }
        assert!(names.len() >= TABLES.len() + OTHERS.len(), "{names:?}");
    }
}
