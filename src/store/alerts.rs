//! Alerts, and the notifications about them. What an evaluation reads and what comes of it are one
//! transaction: a crash in between repeats nothing and forgets nothing.

use std::collections::BTreeSet;

use super::db::{query, query_as, query_scalar};
use super::gauges::read_amount;
use super::totals::{self, Total};
use super::writer::Transaction;
use super::{AlertRow, Store, StoreError};
use crate::limits;
use crate::outcome::Amounts;

/// One evaluation, or one note about a delivery. Dropped before its commit, nothing has happened.
pub struct AlertTransaction<'a> {
    pub(super) inner: Transaction<'a>,
}

/// What changed since it was read last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// Kind, service and env of findings that changed.
    pub of: BTreeSet<(String, String, String)>,
    /// The newest change; `None` without any.
    pub newest: Option<i64>,
}

/// The confirmed findings of a kind, service and env that gained an occurrence of late.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Recent {
    /// How many.
    pub rows: i64,
    /// When one last did; 0 without any.
    pub gained_us: i64,
    /// The highest severity: 0 info, 1 warning, 2 critical.
    pub severity: i64,
    /// The finding that last did.
    pub finding: Option<String>,
}

/// What is confirmed and open in one ledger.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Open {
    /// Which ledger; empty where the findings are about none.
    pub ledger: String,
    /// How many findings.
    pub rows: i64,
    /// What they come to.
    pub amounts: Amounts,
}

/// The sources of a service and env, where at least one is silent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SilentSources {
    /// Which service.
    pub service: String,
    /// Which env.
    pub env: String,
    /// How many are silent.
    pub silent: i64,
    /// How many are still heard.
    pub heard: i64,
    /// The last word of those that are silent.
    pub last_word_us: i64,
    /// One of them.
    pub example: String,
}

/// A notification to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notification {
    /// The delivery id: the same for every attempt.
    pub id: String,
    /// Who gets it.
    pub receiver: String,
    /// The alert's rule, service and env.
    pub key: (String, String, String),
    /// Why it is sent.
    pub because: String,
    /// When that was decided.
    pub created_us: i64,
    /// What is sent.
    pub payload: String,
    /// How often it was tried.
    pub attempts: i64,
}

/// How an attempt went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// The receiver has it.
    Delivered {
        /// Since when.
        at_us: i64,
    },
    /// It is tried again.
    Failed {
        /// When.
        next_attempt_us: i64,
        /// What went wrong.
        error: String,
    },
    /// It is not tried any more.
    GivenUp {
        /// What went wrong last.
        error: String,
    },
}

/// Begins an evaluation.
pub async fn begin(store: &Store) -> Result<AlertTransaction<'_>, StoreError> {
    Ok(AlertTransaction { inner: store.begin().await? })
}

const CURSOR: &str = "SELECT change FROM alert_cursor WHERE id = 1";
const CHANGED: &str = "SELECT kind, service, env, MAX(change) FROM findings \
     WHERE change > $1 GROUP BY kind, service, env";
const SET_CURSOR: &str = "INSERT INTO alert_cursor (id, change) VALUES (1, $1) \
     ON CONFLICT (id) DO UPDATE SET change = excluded.change";
const RECENT: &str = "SELECT COUNT(*), COALESCE(MAX(gained_us), 0), \
     CAST(COALESCE(MAX(CASE severity WHEN 'critical' THEN 2 WHEN 'warning' THEN 1 ELSE 0 END), 0) \
     AS BIGINT) \
     FROM findings WHERE state = 'confirmed' AND kind = $1 AND service = $2 AND env = $3 \
     AND gained_us > $4";
const NEWEST: &str = "SELECT id FROM findings WHERE state = 'confirmed' AND kind = $1 \
     AND service = $2 AND env = $3 AND gained_us > $4 ORDER BY gained_us DESC, id LIMIT 1";
const OPEN: &str = "SELECT ledger, open_confirmed, overpaid, overcharged, underpaid, \
     undercharged, exposure FROM finding_sums WHERE kind = $1 AND service = $2 AND env = $3 \
     AND open_confirmed > 0 ORDER BY ledger LIMIT $4";
const SILENT: &str = "SELECT service, env, \
     COUNT(*) FILTER (WHERE state = 'silent' AND last_push_us > $1), \
     COUNT(*) FILTER (WHERE state = 'open' \
      AND (last_heartbeat_us IS NOT NULL OR last_push_us > $2)), \
     COALESCE(MAX(last_push_us) FILTER (WHERE state = 'silent'), 0), \
     COALESCE(MIN(source) FILTER (WHERE state = 'silent' AND last_push_us > $1), '') \
     FROM sources GROUP BY service, env \
     HAVING COUNT(*) FILTER (WHERE state = 'silent' AND last_push_us > $1) > 0";

impl AlertTransaction<'_> {
    /// The (kind, service, env) whose findings changed since what was read last.
    pub async fn changed(&mut self) -> Result<Changes, StoreError> {
        let cursor: Option<i64> = query_scalar(CURSOR).fetch_optional(&mut *self.inner).await?;
        let rows: Vec<(String, String, String, i64)> =
            query_as(CHANGED).bind(cursor.unwrap_or(0)).fetch_all(&mut *self.inner).await?;
        let newest = rows.iter().map(|row| row.3).max();
        let of = rows.into_iter().map(|(kind, service, env, _)| (kind, service, env)).collect();
        Ok(Changes { of, newest })
    }

    /// These changes are read: they are not told again.
    pub async fn set_read(&mut self, newest: Option<i64>) -> Result<(), StoreError> {
        if let Some(newest) = newest {
            query(SET_CURSOR).bind(newest).execute(&mut *self.inner).await?;
        }
        Ok(())
    }

    /// The findings that gained an occurrence after `after_us`.
    pub async fn recent(
        &mut self,
        kind: &str,
        service: &str,
        env: &str,
        after_us: i64,
    ) -> Result<Recent, StoreError> {
        let (rows, gained_us, severity): (i64, i64, i64) = query_as(RECENT)
            .bind(kind)
            .bind(service)
            .bind(env)
            .bind(after_us)
            .fetch_one(&mut *self.inner)
            .await?;
        let finding: Option<String> = query_scalar(NEWEST)
            .bind(kind)
            .bind(service)
            .bind(env)
            .bind(after_us)
            .fetch_optional(&mut *self.inner)
            .await?;
        Ok(Recent { rows, gained_us, severity, finding })
    }

    /// What is confirmed and open, by ledger.
    pub async fn open(
        &mut self,
        kind: &str,
        service: &str,
        env: &str,
    ) -> Result<Vec<Open>, StoreError> {
        type Row = (String, i64, String, String, String, String, String);
        let rows: Vec<Row> = query_as(OPEN)
            .bind(kind)
            .bind(service)
            .bind(env)
            .bind(limits::LIST_ROWS_MAX)
            .fetch_all(&mut *self.inner)
            .await?;
        rows.into_iter().map(read_open).collect()
    }

    /// The services with silent sources whose last word is after `after_us`; a source that sends
    /// no heartbeats is heard if it pushed after `heard_after_us`.
    pub async fn silent_sources(
        &mut self,
        after_us: i64,
        heard_after_us: i64,
    ) -> Result<Vec<SilentSources>, StoreError> {
        type Row = (String, String, i64, i64, i64, String);
        let rows: Vec<Row> = query_as(SILENT)
            .bind(after_us)
            .bind(heard_after_us)
            .fetch_all(&mut *self.inner)
            .await?;
        let read = |(service, env, silent, heard, last_word_us, example): Row| SilentSources {
            service,
            env,
            silent,
            heard,
            last_word_us,
            example,
        };
        Ok(rows.into_iter().map(read).collect())
    }
}

fn read_open(
    row: (String, i64, String, String, String, String, String),
) -> Result<Open, StoreError> {
    let (ledger, rows, overpaid, overcharged, underpaid, undercharged, exposure) = row;
    let amounts = Amounts {
        overpaid: read_amount(&overpaid)?,
        overcharged: read_amount(&overcharged)?,
        underpaid: read_amount(&underpaid)?,
        undercharged: read_amount(&undercharged)?,
        exposure: read_amount(&exposure)?,
    };
    Ok(Open { ledger, rows, amounts })
}

const ALERTS: &str =
    "SELECT rule, service, env, state, severity, started_us, ended_us, body FROM alerts";
const PUT: &str = "INSERT INTO alerts \
     (rule, service, env, state, severity, started_us, ended_us, body) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (rule, service, env) DO UPDATE SET \
     state = excluded.state, severity = excluded.severity, started_us = excluded.started_us, \
     ended_us = excluded.ended_us, body = excluded.body";
const FORGET: &str = "DELETE FROM alerts WHERE rule = $1 AND service = $2 AND env = $3";
const DELIVERED: &str = "SELECT DISTINCT rule, service, env FROM notifications \
     WHERE delivered_us > $1";
/// What waits of this alert since it came to fire; what is from before a `resolved` is another
/// story, and is told.
const SUPERSEDE: &str = "UPDATE notifications SET state = 'given_up', \
     last_error = 'superseded by ' || $1 WHERE id IN (SELECT id FROM notifications AS n \
     WHERE state = 'waiting' AND rule = $2 AND service = $3 AND env = $4 AND created_us < $5 \
     AND NOT EXISTS (SELECT 1 FROM notifications AS over WHERE over.state = 'waiting' \
     AND over.rule = n.rule AND over.service = n.service AND over.env = n.env \
     AND over.because = 'resolved' AND over.created_us >= n.created_us)) \
     RETURNING attempts, next_attempt_us";
const ENQUEUE: &str = "INSERT INTO notifications (id, receiver, rule, service, env, because, \
     created_us, payload, state, attempts, next_attempt_us) \
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting', $9, $10)";
const CROWDED_OUT: &str = "UPDATE notifications SET state = 'given_up', \
     last_error = 'too many notifications are waiting' WHERE id IN (SELECT id \
     FROM notifications WHERE state = 'waiting' \
     ORDER BY created_us DESC, id DESC LIMIT 9223372036854775807 OFFSET $1)";
const PRUNE: &str = "DELETE FROM notifications WHERE id IN (SELECT id FROM notifications \
     WHERE state <> 'waiting' ORDER BY created_us DESC, id DESC \
     LIMIT 9223372036854775807 OFFSET $1)";

impl AlertTransaction<'_> {
    /// All alerts that are not inactive.
    pub async fn alerts(&mut self) -> Result<Vec<AlertRow>, StoreError> {
        let rows = query(ALERTS).fetch_all(&mut *self.inner).await?;
        rows.iter().map(super::alerts_read::read_alert).collect()
    }

    /// Writes an alert over what was there.
    pub async fn put(&mut self, alert: &AlertRow) -> Result<(), StoreError> {
        query(PUT)
            .bind(&alert.rule)
            .bind(&alert.service)
            .bind(&alert.env)
            .bind(&alert.state)
            .bind(&alert.severity)
            .bind(alert.started_us)
            .bind(alert.ended_us)
            .bind(&alert.body)
            .execute(&mut *self.inner)
            .await?;
        Ok(())
    }

    /// An alert is inactive.
    pub async fn forget(&mut self, key: &(String, String, String)) -> Result<(), StoreError> {
        let (rule, service, env) = key;
        query(FORGET).bind(rule).bind(service).bind(env).execute(&mut *self.inner).await?;
        Ok(())
    }

    /// The alerts of which something was delivered after `after_us`.
    pub async fn delivered(
        &mut self,
        after_us: i64,
    ) -> Result<BTreeSet<(String, String, String)>, StoreError> {
        let rows: Vec<(String, String, String)> =
            query_as(DELIVERED).bind(after_us).fetch_all(&mut *self.inner).await?;
        Ok(rows.into_iter().collect())
    }

    /// Keeps a notification to be sent: instead of what waits of the same alert, unless one of
    /// the two is about its end. Returns how many others were given up for want of room.
    pub async fn enqueue(&mut self, notification: &Notification) -> Result<u64, StoreError> {
        let (rule, service, env) = &notification.key;
        let (attempts, next_attempt_us) = self.supersede(notification).await?;
        query(ENQUEUE)
            .bind(&notification.id)
            .bind(&notification.receiver)
            .bind(rule)
            .bind(service)
            .bind(env)
            .bind(&notification.because)
            .bind(notification.created_us)
            .bind(&notification.payload)
            .bind(attempts)
            .bind(next_attempt_us)
            .execute(&mut *self.inner)
            .await?;
        let crowded_out = query(CROWDED_OUT)
            .bind(limits::NOTIFICATIONS_WAITING_MAX)
            .execute(&mut *self.inner)
            .await?;
        query(PRUNE).bind(limits::NOTIFICATIONS_KEPT_MAX).execute(&mut *self.inner).await?;
        Ok(crowded_out.rows_affected())
    }

    /// The attempts that the notification starts with, and when it is due: those of what it
    /// supersedes, since news makes a receiver no better. Else at once, whatever the clock says.
    async fn supersede(&mut self, by: &Notification) -> Result<(i64, i64), StoreError> {
        if by.because == "resolved" {
            return Ok((0, 0));
        }
        let (rule, service, env) = &by.key;
        let rows: Vec<(i64, i64)> = query_as(SUPERSEDE)
            .bind(&by.id)
            .bind(rule)
            .bind(service)
            .bind(env)
            .bind(by.created_us)
            .fetch_all(&mut *self.inner)
            .await?;
        Ok(rows.into_iter().max().unwrap_or((0, 0)))
    }
}

impl AlertTransaction<'_> {
    /// Moves counters with this transaction.
    pub async fn add_totals(&mut self, totals: &[Total]) -> Result<(), StoreError> {
        totals::add(&mut self.inner, totals::SHARED, totals).await
    }

    /// Makes it so.
    pub async fn commit(self) -> Result<(), StoreError> {
        self.inner.commit().await
    }
}

#[cfg(test)]
mod tests {
    use super::super::deliveries::{DUE, WAKE};
    use super::*;
    use crate::audit::{Finding, Severity, State};
    use crate::store::fixtures::{self, Fixture, NOON_US};

    fixtures::contract!(
        changes_are_read_once_and_only_with_a_commit,
        recent_findings_are_confirmed_ones_of_the_kind_service_and_env,
        open_findings_are_told_by_ledger,
        silence_counts_who_is_silent_of_late_and_who_is_heard,
        alerts_are_put_over_what_was_there_and_forgotten,
        notifications_are_due_in_order_one_of_each_alert,
        what_waits_is_superseded_but_neither_an_end_nor_what_is_before_it,
        what_waits_and_what_is_kept_is_bounded_and_the_oldest_goes,
        totals_move_with_the_transaction
    );

    fn key(a: &str, b: &str, c: &str) -> (String, String, String) {
        (a.into(), b.into(), c.into())
    }

    /// Does one thing in a transaction of its own.
    async fn once<T>(
        store: &Store,
        work: impl AsyncFnOnce(&mut AlertTransaction<'_>) -> Result<T, StoreError>,
    ) -> T {
        let mut transaction = begin(store).await.unwrap();
        let result = work(&mut transaction).await.unwrap();
        transaction.commit().await.unwrap();
        result
    }

    async fn changes_are_read_once_and_only_with_a_commit(Fixture { store, _folder }: Fixture) {
        assert_eq!(once(&store, async |t| t.changed().await).await, Changes::default());
        fixtures::insert_finding(&store, &fixtures::leak("f1", 1)).await;
        fixtures::insert_finding(&store, &fixtures::leak("f2", 1)).await;
        let of = BTreeSet::from([key("duplicate_leak", "settle", "prod")]);
        let changed = |newest| Changes { of: of.clone(), newest: Some(newest) };
        {
            let mut dropped = begin(&store).await.unwrap();
            assert_eq!(dropped.changed().await.unwrap(), changed(1));
            dropped.set_read(Some(1)).await.unwrap();
        }
        let again = once(&store, async |t| t.changed().await).await;
        assert_eq!(again, changed(1), "that it was read was not committed");
        let again = once(&store, async |t| t.changed().await).await;
        assert_eq!(again, changed(1), "nobody said that it was read");
        once(&store, async |t| t.set_read(Some(1)).await).await;
        once(&store, async |t| t.set_read(None).await).await;
        assert_eq!(once(&store, async |t| t.changed().await).await, Changes::default());
        fixtures::run(&store, "UPDATE findings SET change = 2 WHERE id = 'f1'").await;
        assert_eq!(once(&store, async |t| t.changed().await).await, changed(2));
    }

    async fn recent_findings_are_confirmed_ones_of_the_kind_service_and_env(
        Fixture { store, _folder }: Fixture,
    ) {
        let leak = |id: &str| fixtures::leak(id, 1);
        for finding in [
            Finding { severity: Severity::Info, ..leak("f1") },
            Finding { severity: Severity::Warning, ..leak("f2") },
            Finding { state: State::Closed, ..leak("f3") },
            Finding { state: State::Suspected, ..leak("f4") },
            Finding { service: "x".into(), ..leak("f5") },
            Finding { env: "x".into(), ..leak("f6") },
            Finding { kind: crate::audit::Kind::FalseBlock, ..leak("f7") },
        ] {
            fixtures::insert_finding(&store, &finding).await;
        }
        fixtures::run(&store, "UPDATE findings SET gained_us = gained_us + 1 WHERE id = 'f1'")
            .await;
        let (kind, service, env) = ("duplicate_leak", "settle", "prod");
        let recent = |rows, gained_us, severity, finding: Option<&str>| Recent {
            rows,
            gained_us,
            severity,
            finding: finding.map(String::from),
        };
        let all = once(&store, async |t| t.recent(kind, service, env, NOON_US - 1).await).await;
        assert_eq!(all, recent(2, NOON_US + 1, 1, Some("f1")));
        let newest = once(&store, async |t| t.recent(kind, service, env, NOON_US).await).await;
        assert_eq!(newest, recent(1, NOON_US + 1, 0, Some("f1")));
        let none = once(&store, async |t| t.recent(kind, service, env, NOON_US + 1).await).await;
        assert_eq!(none, recent(0, 0, 0, None));
    }

    #[tokio::test]
    async fn nothing_is_read_from_end_to_end() {
        let Fixture { store, _folder } = fixtures::store().await;
        for (statement, index) in [
            (RECENT, "findings_by_gain"),
            (NEWEST, "findings_by_gain"),
            (CHANGED, "findings_by_change"),
            (DUE, "notifications_of_alert (rule=? AND service=? AND env=?"),
            (DELIVERED, "notifications_by_delivery"),
            (SUPERSEDE, "notifications_of_alert (rule=? AND service=? AND env=?"),
            (WAKE, "notifications_waiting"),
        ] {
            let plan = sqlx::AssertSqlSafe(format!("EXPLAIN QUERY PLAN {statement}"));
            let rows: Vec<(i64, i64, i64, String)> =
                query_as(plan).fetch_all(store.readers()).await.unwrap();
            assert!(rows.iter().any(|row| row.3.contains(index)), "{index}: {rows:?}");
        }
    }

    async fn open_findings_are_told_by_ledger(Fixture { store, _folder }: Fixture) {
        fixtures::run(
            &store,
            "INSERT INTO finding_sums VALUES \
             ('false_block', 's', 'prod', 'b', 9, 2, 1, '1', '2', '3', '4', '5'), \
             ('false_block', 's', 'prod', 'a', 9, 1, 0, '0', '0', '7', '0', '0'), \
             ('false_block', 's', 'prod', 'c', 9, 0, 1, '0', '0', '0', '0', '0'), \
             ('false_block', 's', 'test', 'd', 9, 1, 0, '0', '0', '9', '0', '0'), \
             ('duplicate_leak', 's', 'prod', 'e', 9, 1, 0, '9', '0', '0', '0', '0')",
        )
        .await;
        let open = once(&store, async |t| t.open("false_block", "s", "prod").await).await;
        let b = Amounts { overpaid: 1, overcharged: 2, underpaid: 3, undercharged: 4, exposure: 5 };
        let a = Amounts { underpaid: 7, ..Amounts::default() };
        assert_eq!(
            open,
            [
                Open { ledger: "a".into(), rows: 1, amounts: a },
                Open { ledger: "b".into(), rows: 2, amounts: b },
            ]
        );
    }

    async fn silence_counts_who_is_silent_of_late_and_who_is_heard(
        Fixture { store, _folder }: Fixture,
    ) {
        fixtures::run(
            &store,
            "INSERT INTO sources (service, env, source, last_push_us, last_heartbeat_us, state) \
             VALUES ('a', 'prod', 'old', 10, 10, 'silent'), ('a', 'prod', 's2', 60, 60, 'silent'), \
             ('a', 'prod', 's1', 50, 50, 'silent'), ('a', 'prod', 'watched', 20, 20, 'open'), \
             ('a', 'prod', 'pushed', 80, NULL, 'open'), ('a', 'prod', 'gone', 70, NULL, 'open'), \
             ('a', 'prod', 'bye', 90, 90, 'closed'), ('a', 'test', 'old', 10, 10, 'silent'), \
             ('b', 'prod', 's', 90, 90, 'open')",
        )
        .await;
        let wanted = SilentSources {
            service: "a".into(),
            env: "prod".into(),
            silent: 2,
            heard: 2,
            last_word_us: 60,
            example: "s1".into(),
        };
        assert_eq!(once(&store, async |t| t.silent_sources(10, 70).await).await, [wanted]);
    }

    async fn alerts_are_put_over_what_was_there_and_forgotten(Fixture { store, _folder }: Fixture) {
        let alert = |rule: &str, state: &str, ended_us| AlertRow {
            rule: rule.into(),
            service: "s".into(),
            env: "prod".into(),
            state: state.into(),
            severity: "critical".into(),
            started_us: 5,
            ended_us,
            body: "{}".into(),
        };
        once(&store, async |t| t.put(&alert("A", "firing", None)).await).await;
        once(&store, async |t| t.put(&alert("B", "firing", None)).await).await;
        once(&store, async |t| t.put(&alert("A", "resolved", Some(9))).await).await;
        once(&store, async |t| t.forget(&key("B", "s", "prod")).await).await;
        once(&store, async |t| t.forget(&key("A", "other", "prod")).await).await;
        assert_eq!(
            once(&store, async |t| t.alerts().await).await,
            [alert("A", "resolved", Some(9))]
        );
    }

    fn notification(id: &str, rule: &str, created_us: i64) -> Notification {
        Notification {
            id: id.into(),
            receiver: "webhook".into(),
            key: key(rule, "s", "prod"),
            because: "fired".into(),
            created_us,
            payload: "{}".into(),
            attempts: 0,
        }
    }

    async fn notifications_are_due_in_order_one_of_each_alert(Fixture { store, _folder }: Fixture) {
        let over = Notification { because: "resolved".into(), ..notification("3", "A", 30) };
        for one in [&over, &notification("1", "A", 10), &notification("2", "B", 20)] {
            once(&store, async |t| t.enqueue(one).await).await;
        }
        let due = async |now_us| store.due_notification(now_us).await.unwrap();
        assert_eq!(due(9).await, Some(notification("1", "A", 10)));

        let failed = Attempt::Failed { next_attempt_us: 50, error: "no".into() };
        once(&store, async |t| t.note_attempt("1", &failed).await).await;
        assert_eq!(due(49).await, Some(notification("2", "B", 20)), "nothing waits for a failure");
        once(&store, async |t| t.note_attempt("2", &Attempt::Delivered { at_us: 31 }).await).await;
        let delivered = async |after_us| once(&store, async |t| t.delivered(after_us).await).await;
        assert_eq!(delivered(30).await, BTreeSet::from([key("B", "s", "prod")]));
        assert_eq!(delivered(31).await, BTreeSet::new());
        assert_eq!(due(30).await, None, "3 comes after 1");
        let again = Notification { attempts: 1, ..notification("1", "A", 10) };
        assert_eq!(due(31).await, Some(again), "the receiver is back");
        once(&store, async |t| {
            t.note_attempt("1", &Attempt::GivenUp { error: "never".into() }).await
        })
        .await;
        assert_eq!(due(50).await, Some(over));

        let log = store.notification_rows(None, 9).await.unwrap();
        let short = log.iter().map(|row| {
            (&*row.id, &*row.state, row.attempts, row.last_error.as_deref(), row.delivered_us)
        });
        assert_eq!(
            short.collect::<Vec<_>>(),
            [
                ("3", "waiting", 0, None, None),
                ("2", "delivered", 1, None, Some(31)),
                ("1", "given_up", 2, Some("never"), None),
            ]
        );
    }

    async fn what_waits_is_superseded_but_neither_an_end_nor_what_is_before_it(
        Fixture { store, _folder }: Fixture,
    ) {
        let of = |id: &str, because: &str, created_us| Notification {
            because: because.into(),
            ..notification(id, "A", created_us)
        };
        let failed = Attempt::Failed { next_attempt_us: 90, error: "no".into() };
        for one in [of("1", "fired", 10), of("2", "resolved", 20), of("3", "fired", 30)] {
            once(&store, async |t| t.enqueue(&one).await).await;
        }
        once(&store, async |t| t.enqueue(&notification("b", "B", 35)).await).await;
        once(&store, async |t| t.note_attempt("3", &failed).await).await;
        once(&store, async |t| t.enqueue(&of("4", "grew", 40)).await).await;
        let rows = async || {
            let mut rows = store.notification_rows(None, 9).await.unwrap();
            rows.sort_by(|a, b| a.id.cmp(&b.id));
            let short = rows.into_iter().map(|row| (row.id + " " + &row.state, row.attempts));
            short.collect::<Vec<_>>()
        };
        let row = |text: &str, attempts| (text.to_owned(), attempts);
        assert_eq!(
            rows().await,
            [
                row("1 waiting", 0),
                row("2 waiting", 0),
                row("3 given_up", 1),
                row("4 waiting", 1),
                row("b waiting", 0),
            ]
        );
        let log = store.notification_rows(None, 9).await.unwrap();
        let superseded = log.iter().find(|row| row.id == "3").unwrap();
        assert_eq!(superseded.last_error.as_deref(), Some("superseded by 4"));
        // An attempt that was under way meanwhile: failed, it is still superseded.
        once(&store, async |t| t.note_attempt("3", &failed).await).await;
        assert_eq!(rows().await[2], row("3 given_up", 1));
        once(&store, async |t| t.note_attempt("3", &Attempt::Delivered { at_us: 50 }).await).await;
        assert_eq!(rows().await[2], row("3 delivered", 2));
    }

    async fn what_waits_and_what_is_kept_is_bounded_and_the_oldest_goes(
        Fixture { store, _folder }: Fixture,
    ) {
        fixtures::run(
            &store,
            "INSERT INTO notifications (id, receiver, rule, service, env, because, created_us, \
             payload, state, attempts, next_attempt_us) \
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 11001) \
             SELECT CAST(n + 100000 AS TEXT), 'webhook', 'A', 's', 'prod', 'fired', n, '{}', \
             CASE WHEN n <= 1000 THEN 'waiting' ELSE 'delivered' END, 0, n FROM n",
        )
        .await;
        let crowded_out =
            once(&store, async |t| t.enqueue(&notification("new", "B", 20_000)).await).await;
        assert_eq!(crowded_out, 1);
        let count: (i64, i64, String) = query_as(
            "SELECT COUNT(*) FILTER (WHERE state = 'waiting'), \
             COUNT(*) FILTER (WHERE state <> 'waiting'), \
             MIN(CASE WHEN state = 'waiting' THEN id END) FROM notifications",
        )
        .fetch_one(store.readers())
        .await
        .unwrap();
        assert_eq!(count, (1_000, 10_000, "100002".into()));
    }

    async fn totals_move_with_the_transaction(Fixture { store, _folder }: Fixture) {
        let total = Total { name: "n".into(), labels: vec!["a".into()], value: 2 };
        once(&store, async |t| t.add_totals(std::slice::from_ref(&total)).await).await;
        assert_eq!(store.read_totals().await.unwrap(), [total]);
    }
}
