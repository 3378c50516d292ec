//! The engine and the courier on a real database file, against a real HTTP server. The clock is
//! handed in; nothing sleeps.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use super::decide::Because;
use super::receiver::{Answer, Got, Receiver};
use super::rule::RECENT_US;
use super::state::Instance;
use super::state::RESOLVED_SHOWN_US;
use super::{Alerts, Courier, Engine, Sent};
use crate::audit::{Finding, Kind, Severity, State};
use crate::clock::Clock;
use crate::config::{Config, Webhook};
use crate::limits::{self, DAY_US, MINUTE_US, SECOND_US};
use crate::metrics::{Committed, Metrics, SLICE_US};
use crate::outcome::SourceName;
use crate::store::db::query;
use crate::store::fixtures::{self, NOON_US, id};
use crate::store::{AlertRow, NotificationRow, Store};

const LINKS: &str = "https://watch.example/";

struct World {
    folder: tempfile::TempDir,
    store: Arc<Store>,
    metrics: Arc<Metrics>,
    engine: Engine,
    receiver: Receiver,
    courier: Courier,
}

impl World {
    async fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), Receiver::start().await).await
    }

    async fn open(folder: tempfile::TempDir, receiver: Receiver) -> Self {
        let (store, metrics) = open_store(folder.path()).await;
        let links = Some(LINKS.to_owned());
        let engine = Engine::new(Arc::clone(&store), Arc::clone(&metrics), links);
        let webhook = Webhook { url: receiver.url() };
        let courier = Courier::new(Arc::clone(&store), Arc::clone(&metrics), webhook).unwrap();
        Self { folder, store, metrics, engine, receiver, courier }
    }

    /// The process ends and is started again.
    async fn restart(self) -> Self {
        let Self { folder, store, metrics, engine, receiver, courier } = self;
        drop((store, metrics, engine, courier));
        Self::open(folder, receiver).await
    }

    /// The reasons for which the receiver is told, after one look.
    async fn step(&self, now_us: i64) -> Vec<Because> {
        let told = self.engine.step(now_us).await.unwrap().told;
        told.into_iter().map(|(_, because)| because).collect()
    }

    /// What arrives, after one step of the courier.
    async fn deliver(&mut self, now_us: i64) -> Vec<Got> {
        self.courier.step(&Clock::manual(now_us)).await.unwrap();
        self.receiver.take()
    }

    /// As the judge does: writes a leak that gained an occurrence now, with its sum.
    async fn leak(&self, change: i64, now_us: i64, overpaid: i128) {
        self.put(&fixtures::leak("f1", 250), change, now_us).await;
        self.sum("duplicate_leak", 1, overpaid).await;
    }

    async fn put(&self, finding: &Finding, change: i64, gained_us: i64) {
        query("DELETE FROM findings WHERE id = $1")
            .bind(&finding.id)
            .execute(&mut *self.store.writer().await.unwrap())
            .await
            .unwrap();
        fixtures::insert_finding(&self.store, finding).await;
        query("UPDATE findings SET change = $2, gained_us = $3 WHERE id = $1")
            .bind(&finding.id)
            .bind(change)
            .bind(gained_us)
            .execute(&mut *self.store.writer().await.unwrap())
            .await
            .unwrap();
    }

    async fn sum(&self, kind: &str, open: i64, overpaid: i128) {
        let sql = "INSERT OR REPLACE INTO finding_sums VALUES \
             ($1, 'settle', 'prod', 'chips', $2, $2, 0, $3, '0', '0', '0', '0')";
        query(sql)
            .bind(kind)
            .bind(open)
            .bind(overpaid.to_string())
            .execute(&mut *self.store.writer().await.unwrap())
            .await
            .unwrap();
    }

    async fn source(&self, source: &str, state: &str, last_push_us: i64) {
        let sql = "INSERT OR REPLACE INTO sources \
             (service, env, source, last_push_us, last_heartbeat_us, state) \
             VALUES ('settle', 'prod', $1, $2, $2, $3)";
        query(sql)
            .bind(source)
            .bind(last_push_us)
            .bind(state)
            .execute(&mut *self.store.writer().await.unwrap())
            .await
            .unwrap();
    }

    fn reject(&self, now_us: i64) {
        let from = SourceName { service: id("settle"), env: id("prod"), source: id("s") };
        let mut committed = Committed::default();
        committed.reject("bad_net", Some(&from));
        let counted = self.metrics.count(&committed);
        self.metrics.committed(&counted, now_us, Duration::ZERO);
    }

    async fn alerts(&self) -> Vec<AlertRow> {
        self.store.alert_rows(None, None, 100).await.unwrap()
    }

    /// State and severity of the one alert there is.
    async fn alert(&self) -> (String, String) {
        let mut alerts = self.alerts().await;
        assert_eq!(alerts.len(), 1, "{alerts:?}");
        let alert = alerts.remove(0);
        (alert.state, alert.severity)
    }

    async fn log(&self) -> Vec<NotificationRow> {
        self.store.notification_rows(None, 100).await.unwrap()
    }
}

async fn open_store(folder: &Path) -> (Arc<Store>, Arc<Metrics>) {
    let url = format!("sqlite://{}/t.db", folder.display());
    let store = Arc::new(Store::open(&url, "a").await.unwrap());
    let metrics = Metrics::open(Arc::clone(&store), Arc::default()).await.unwrap();
    (store, Arc::new(metrics))
}

fn pair(a: &str, b: &str) -> (String, String) {
    (a.into(), b.into())
}

const NOTHING: [Because; 0] = [];

#[tokio::test]
async fn a_leak_is_told_at_once_with_the_payload_of_alertmanager() {
    let mut world = World::new().await;
    assert_eq!(world.step(NOON_US).await, NOTHING);
    world.leak(1, NOON_US, 170_141_183_460_469_231_731_687_303_715_884_105_727).await;
    assert_eq!(world.step(NOON_US + 1).await, [Because::Fired]);
    assert_eq!(world.alert().await, pair("firing", "critical"));
    let got = world.deliver(NOON_US + 2).await;
    assert_eq!(got.len(), 1);
    assert_eq!(got[0].header("content-type"), "application/json");
    let log = world.log().await;
    assert_eq!(got[0].delivery(), log[0].id);
    assert_eq!((&*log[0].state, log[0].attempts), ("delivered", 1));
    let labels = serde_json::json!({"alertname": "DuplicateLeak", "env": "prod",
        "service": "settle", "severity": "critical"});
    let annotations = serde_json::json!({
        "summary": "Settlements booked more often than once in settle (prod)",
        "description": "Findings with a new occurrence in the last 15 minutes: 1. Confirmed and \
            open: 1 finding. Ledger chips: overpaid 170141183460469231731687303715884105727 \
            (minor units).",
        "runbook_url": "https://watch.example/help/duplicate_leak",
        "evidence_url":
            "https://watch.example/findings?kind=duplicate_leak&service=settle&env=prod",
        "alerts_url": "https://watch.example/alerts",
        "newest_finding_url": "https://watch.example/findings/f1",
    });
    let wanted = serde_json::json!({
        "version": "4",
        "groupKey": r#"{}:{alertname="DuplicateLeak", env="prod", service="settle"}"#,
        "truncatedAlerts": 0,
        "status": "firing",
        "receiver": "webhook",
        "groupLabels": {"alertname": "DuplicateLeak", "env": "prod", "service": "settle"},
        "commonLabels": labels,
        "commonAnnotations": annotations,
        "externalURL": "https://watch.example",
        "alerts": [{
            "status": "firing",
            "labels": labels,
            "annotations": annotations,
            "startsAt": "2026-11-30T12:00:00.000001Z",
            "endsAt": "0001-01-01T00:00:00Z",
            "generatorURL": "https://watch.example/alerts",
            "fingerprint": "19e916d7bd055742",
        }],
    });
    assert_eq!(got[0].json(), wanted);
}

#[tokio::test]
async fn what_is_new_is_told_once_a_minute_and_at_once_if_it_is_tenfold() {
    let mut world = World::new().await;
    world.leak(1, NOON_US, 100).await;
    assert_eq!(world.step(NOON_US).await, [Because::Fired]);
    assert_eq!(world.deliver(NOON_US).await.len(), 1);
    world.leak(2, NOON_US + SECOND_US, 200).await;
    assert_eq!(world.step(NOON_US + SECOND_US).await, NOTHING);
    assert_eq!(world.step(NOON_US + MINUTE_US - 1).await, NOTHING);
    assert_eq!(world.step(NOON_US + MINUTE_US).await, [Because::Grew]);
    assert_eq!(world.deliver(NOON_US + MINUTE_US).await.len(), 1);
    assert_eq!(world.step(NOON_US + 5 * MINUTE_US).await, NOTHING, "nothing new since");
    world.leak(3, NOON_US + 5 * MINUTE_US, 1_999).await;
    assert_eq!(world.step(NOON_US + 5 * MINUTE_US).await, [Because::Grew]);
    world.leak(4, NOON_US + 5 * MINUTE_US, 19_990).await;
    assert_eq!(world.step(NOON_US + 5 * MINUTE_US + 1).await, [Because::AmountGrew]);
    let got = world.deliver(NOON_US + 5 * MINUTE_US + 2).await;
    assert!(got[0].description().contains("overpaid 19990 "), "instead of what waited");
    assert!(world.deliver(NOON_US + 5 * MINUTE_US + 2).await.is_empty());
}

#[tokio::test]
async fn an_alert_resolves_after_15_minutes_and_says_what_is_open() {
    let mut world = World::new().await;
    world.leak(1, NOON_US, 250).await;
    world.step(NOON_US).await;
    world.deliver(NOON_US).await;
    assert_eq!(world.step(NOON_US + RECENT_US - 1).await, NOTHING);
    assert_eq!(world.step(NOON_US + RECENT_US).await, [Because::Resolved]);
    assert_eq!(world.alert().await, pair("resolved", "critical"));
    let got = world.deliver(NOON_US + RECENT_US).await;
    assert_eq!(got[0].json()["status"], "resolved");
    assert_eq!(got[0].json()["alerts"][0]["endsAt"], "2026-11-30T12:15:00.000000Z");
    assert_eq!(
        got[0].description(),
        "No confirmed finding has gained an occurrence in the last 15 minutes. Still open: 1 \
         finding. Ledger chips: overpaid 250 (minor units)."
    );
    // It fires again by a new occurrence, is over again, and at last no more shown.
    let later_us = NOON_US + 2 * RECENT_US;
    world.leak(2, later_us, 250).await;
    assert_eq!(world.step(later_us).await, [Because::Fired]);
    assert_eq!(world.step(later_us + RECENT_US).await, [Because::Resolved]);
    assert_eq!(world.step(later_us + RECENT_US + RESOLVED_SHOWN_US).await, NOTHING);
    assert!(world.alerts().await.is_empty());
}

#[tokio::test]
async fn a_finding_that_is_closed_fires_no_more() {
    let mut world = World::new().await;
    world.leak(1, NOON_US, 250).await;
    world.step(NOON_US).await;
    let closed = Finding { state: State::Closed, ..fixtures::leak("f1", 250) };
    world.put(&closed, 2, NOON_US).await;
    world.sum("duplicate_leak", 0, 0).await;
    // At the same moment: the end is still told after the beginning.
    assert_eq!(world.step(NOON_US).await, [Because::Resolved]);
    let log = world.log().await;
    assert!(log[0].because == "resolved" && log[0].created_us > log[1].created_us, "{log:?}");
    world.deliver(NOON_US).await;
    let got = world.deliver(NOON_US).await;
    assert!(got[0].description().ends_with("Still open: nothing."));
}

#[tokio::test]
async fn suspicions_old_news_and_kinds_without_a_rule_fire_nothing() {
    let world = World::new().await;
    let leak = fixtures::leak("f1", 250);
    let suspected = Finding { state: State::Suspected, ..leak.clone() };
    world.put(&suspected, 1, NOON_US).await;
    world.put(&Finding { id: "f2".into(), ..leak.clone() }, 2, NOON_US - RECENT_US).await;
    let kind = Kind::RejectedEvidence;
    world.put(&Finding { id: "f3".into(), kind, ..leak }, 3, NOON_US).await;
    assert_eq!(world.step(NOON_US).await, NOTHING);
    assert!(world.alerts().await.is_empty());
}

#[tokio::test]
async fn conflicts_of_identity_are_told_once_they_are_critical() {
    let world = World::new().await;
    let leak = fixtures::leak("f1", 0);
    let conflict = Finding { kind: Kind::IdentityConflict, severity: Severity::Warning, ..leak };
    world.put(&conflict, 1, NOON_US).await;
    assert_eq!(world.step(NOON_US).await, NOTHING);
    let many = Finding { severity: Severity::Critical, ..conflict };
    world.put(&many, 2, NOON_US + 1).await;
    assert_eq!(world.step(NOON_US + 1).await, [Because::Fired]);
}

#[tokio::test]
async fn a_rise_of_severity_is_told_at_once() {
    let world = World::new().await;
    let gap = |severity| Finding { kind: Kind::TelemetryGap, severity, ..fixtures::leak("f1", 0) };
    world.put(&gap(Severity::Info), 1, NOON_US).await;
    assert_eq!(world.step(NOON_US).await, [Because::Fired]);
    world.put(&gap(Severity::Warning), 2, NOON_US).await;
    assert_eq!(world.step(NOON_US + 1).await, [Because::SeverityRose]);
    assert_eq!(world.alert().await, pair("firing", "warning"));
}

#[tokio::test]
async fn each_rule_service_and_env_has_an_alert_of_its_own() {
    let world = World::new().await;
    for (n, (kind, env)) in [
        (Kind::DuplicateLeak, "prod"),
        (Kind::DuplicateLeak, "test"),
        (Kind::LiveEviction, "prod"),
        (Kind::FalseBlock, "prod"),
        (Kind::TelemetryGap, "prod"),
    ]
    .into_iter()
    .enumerate()
    {
        let (id, env) = (format!("f{n}"), env.to_owned());
        let finding = Finding { id, kind, env, ..fixtures::leak("", 1) };
        world.put(&finding, 1, NOON_US).await;
    }
    assert_eq!(world.step(NOON_US).await, [Because::Fired; 5]);
    let mut rules: Vec<String> =
        world.alerts().await.into_iter().map(|alert| alert.rule + "/" + &alert.env).collect();
    rules.sort();
    assert_eq!(
        rules,
        [
            "DuplicateLeak/prod",
            "DuplicateLeak/test",
            "FalseBlock/prod",
            "LiveEviction/prod",
            "TelemetryGap/prod"
        ]
    );
}

#[tokio::test]
async fn a_restart_neither_forgets_nor_repeats() {
    let mut world = World::new().await;
    world.leak(1, NOON_US, 100).await;
    assert_eq!(world.step(NOON_US).await, [Because::Fired]);
    world = world.restart().await;
    assert_eq!(world.step(NOON_US + 1).await, NOTHING);
    assert_eq!(world.deliver(NOON_US + 1).await.len(), 1);
    world.leak(2, NOON_US + 2, 150).await;
    world = world.restart().await;
    assert_eq!(world.step(NOON_US + MINUTE_US).await, NOTHING, "delivered less than a minute ago");
    assert_eq!(world.step(NOON_US + MINUTE_US + 1).await, [Because::Grew]);
    world = world.restart().await;
    assert_eq!(world.step(NOON_US + 2 + RECENT_US).await, [Because::Resolved]);
    assert!(world.deliver(NOON_US + RECENT_US).await.len() == 1);
}

#[tokio::test]
async fn a_failed_delivery_is_repeated_with_its_id_through_restarts() {
    let mut world = World::new().await;
    world.leak(1, NOON_US, 100).await;
    world.step(NOON_US).await;
    for answer in [Answer::Status(500), Answer::Status(404), Answer::Hangup, Answer::Redirect] {
        world.receiver.answers(answer);
    }
    let mut ids = Vec::new();
    let mut now_us = NOON_US;
    for wait in [1, 2, 4, 8] {
        let got = world.deliver(now_us).await;
        assert_eq!(got.len(), 1);
        ids.push(got[0].delivery());
        world = world.restart().await;
        assert!(world.deliver(now_us + wait * SECOND_US - 1).await.is_empty(), "too soon");
        now_us += wait * SECOND_US;
    }
    // Meanwhile it is over: that is told after that it fired.
    assert_eq!(world.step(NOON_US + RECENT_US).await, [Because::Resolved]);
    let got = world.deliver(NOON_US + RECENT_US).await;
    assert_eq!((got.len(), &got[0].json()["status"]), (1, &"firing".into()));
    ids.push(got[0].delivery());
    ids.dedup();
    assert_eq!(ids.len(), 1, "one id for all attempts");
    let got = world.deliver(NOON_US + RECENT_US).await;
    assert_eq!(got[0].json()["status"], "resolved");
    assert_ne!(got[0].delivery(), ids[0]);
    assert!(world.deliver(NOON_US + DAY_US).await.is_empty(), "nothing is left");
    let text = world.metrics.render().await.unwrap();
    for line in [
        r#"dedupwatch_notifications_total{receiver="webhook",result="delivered"} 2"#,
        r#"dedupwatch_notifications_total{receiver="webhook",result="failed"} 4"#,
    ] {
        assert!(text.contains(line), "{line} in {text}");
    }
}

#[tokio::test]
async fn after_an_outage_one_post_says_what_is_so_and_the_next_comes_a_minute_later() {
    let mut world = World::new().await;
    world.leak(1, NOON_US, 5).await;
    assert_eq!(world.step(NOON_US).await, [Because::Fired]);
    world.receiver.answers(Answer::Status(503));
    assert_eq!(world.deliver(NOON_US).await.len(), 1);
    for minute in 1..10 {
        let now_us = NOON_US + minute * MINUTE_US;
        world.leak(1 + minute, now_us, 5 + i128::from(minute)).await;
        assert_eq!(world.step(now_us).await, [Because::Grew]);
    }
    let now_us = NOON_US + 9 * MINUTE_US + SECOND_US;
    world.leak(11, now_us, 1_275).await;
    assert_eq!(world.step(now_us).await, [Because::AmountGrew]);
    let got = world.deliver(now_us).await;
    assert!(got[0].description().contains("overpaid 1275 "), "{}", got[0].description());
    assert!(world.deliver(now_us).await.is_empty(), "nothing else waits");
    world.leak(12, now_us + 1, 1_280).await;
    assert_eq!(world.step(now_us + MINUTE_US - 1).await, NOTHING);
    assert_eq!(world.step(now_us + MINUTE_US).await, [Because::Grew]);
    // Delivered late: the minute is counted from then.
    let late_us = now_us + 2 * MINUTE_US;
    assert_eq!(world.deliver(late_us).await.len(), 1);
    world.leak(13, late_us, 1_290).await;
    assert_eq!(world.step(late_us + MINUTE_US - 1).await, NOTHING);
    assert_eq!(world.step(late_us + MINUTE_US).await, [Because::Grew]);
}

/// What is critical goes first and, once anything got there, at once.
#[tokio::test]
async fn after_an_outage_what_is_critical_does_not_wait_out_its_backoff() {
    let mut world = World::new().await;
    let gap = |env: &str| {
        let (kind, severity, id) = (Kind::TelemetryGap, Severity::Info, env.to_owned());
        Finding { id, kind, severity, env: env.into(), ..fixtures::leak("", 0) }
    };
    world.put(&gap("a"), 1, NOON_US).await;
    world.step(NOON_US).await;
    world.leak(2, NOON_US + 1, 100).await;
    world.step(NOON_US + 1).await;
    let mut now_us = NOON_US + 1;
    for wait in [1, 2, 4, 8] {
        world.receiver.answers(Answer::Status(503));
        let got = world.deliver(now_us).await;
        assert_eq!(got[0].json()["commonLabels"]["alertname"], "DuplicateLeak", "before its elder");
        now_us += wait * SECOND_US;
    }
    // The critical one waits 8 s; what was never tried gets there, and with it the news.
    now_us -= 7 * SECOND_US;
    world.put(&gap("b"), 3, now_us).await;
    world.step(now_us).await;
    let mut order = Vec::new();
    for _ in 0..3 {
        let got = world.deliver(now_us).await;
        order.push(got[0].json()["commonLabels"].clone());
    }
    let order: Vec<_> = order.iter().map(|of| [&of["alertname"], &of["env"]]).collect();
    assert_eq!(order, [["TelemetryGap", "a"], ["DuplicateLeak", "prod"], ["TelemetryGap", "b"]]);
}

#[tokio::test]
async fn after_a_day_a_delivery_is_given_up_and_the_log_names_no_url() {
    let mut world = World::new().await;
    world.leak(1, NOON_US, 100).await;
    world.step(NOON_US).await;
    world.receiver.stop().await;
    for now_us in [NOON_US, NOON_US + DAY_US] {
        world.courier.step(&Clock::manual(now_us)).await.unwrap();
        let log = world.log().await;
        assert_eq!(log[0].last_error.as_deref(), Some("the receiver can't be reached"));
        let rendered = format!("{log:?}{:?}", world.alerts().await);
        assert!(!rendered.contains("secret-token"));
    }
    let log = world.log().await;
    assert_eq!((&*log[0].state, log[0].attempts), ("given_up", 2));
}

#[tokio::test]
async fn without_a_receiver_alerts_are_kept_and_a_later_one_is_told() {
    let world = World::new().await;
    let engine = Engine::new(Arc::clone(&world.store), Arc::clone(&world.metrics), None);
    world.leak(1, NOON_US, 100).await;
    assert!(engine.step(NOON_US).await.unwrap().told.is_empty());
    assert_eq!(world.alert().await, pair("firing", "critical"));
    assert!(world.log().await.is_empty());
    assert_eq!(world.step(NOON_US + 1).await, [Because::Fired]);
}

#[tokio::test]
async fn a_silent_source_is_a_warning_and_critical_if_it_was_the_last() {
    let mut world = World::new().await;
    world.source("s1", "open", NOON_US).await;
    world.source("s2", "open", NOON_US).await;
    assert_eq!(world.step(NOON_US).await, NOTHING);
    world.source("s1", "silent", NOON_US).await;
    assert_eq!(world.step(NOON_US + MINUTE_US).await, [Because::Fired]);
    assert_eq!(world.alert().await, pair("firing", "warning"));
    let got = world.deliver(NOON_US + MINUTE_US).await;
    assert_eq!(
        got[0].description(),
        "Silent sources: 1 (s1 is one). Other sources still heard: 1."
    );
    world.source("s2", "silent", NOON_US).await;
    assert_eq!(world.step(NOON_US + MINUTE_US + 1).await, [Because::SeverityRose]);
    assert_eq!(world.alert().await, pair("firing", "critical"));
    world.source("s1", "open", NOON_US + 2 * MINUTE_US).await;
    world.source("s2", "closed", NOON_US + 2 * MINUTE_US).await;
    assert_eq!(world.step(NOON_US + 2 * MINUTE_US).await, [Because::Resolved]);
}

#[tokio::test]
async fn a_second_silent_source_is_news_and_one_gone_for_a_day_is_not() {
    let world = World::new().await;
    world.source("s1", "silent", NOON_US).await;
    world.source("s3", "open", NOON_US).await;
    assert_eq!(world.step(NOON_US + MINUTE_US).await, [Because::Fired]);
    fixtures::run(&world.store, "UPDATE notifications SET state = 'delivered'").await;
    world.source("s2", "silent", NOON_US + MINUTE_US).await;
    assert_eq!(world.step(NOON_US + 2 * MINUTE_US).await, [Because::Grew]);
    assert_eq!(world.step(NOON_US + DAY_US).await, NOTHING);
    assert_eq!(world.step(NOON_US + DAY_US + MINUTE_US).await, [Because::Resolved]);
}

#[tokio::test]
async fn rejects_in_six_slices_in_a_row_fire_and_one_without_ends_it() {
    let mut world = World::new().await;
    let slice = |n: i64| NOON_US + n * SLICE_US;
    assert_eq!(world.step(slice(0)).await, NOTHING);
    for n in 0..6 {
        world.reject(slice(n));
        assert_eq!(world.step(slice(n)).await, NOTHING);
    }
    assert_eq!(world.alert().await, pair("pending", "warning"));
    assert_eq!(world.step(slice(6)).await, [Because::Fired]);
    let got = world.deliver(slice(6)).await;
    assert!(got[0].description().contains("slices: 6 in all"), "{}", got[0].description());
    world.reject(slice(6));
    assert_eq!(world.step(slice(7)).await, NOTHING);
    // After a restart the slices are not known at first: it goes on firing until they are.
    world = world.restart().await;
    for n in 7..13 {
        assert_eq!(world.step(slice(n)).await, NOTHING);
    }
    assert_eq!(world.step(slice(13)).await, [Because::Resolved]);
}

#[tokio::test]
async fn a_stray_reject_is_pending_and_gone() {
    let world = World::new().await;
    world.reject(NOON_US);
    world.step(NOON_US + SLICE_US).await;
    assert_eq!(world.alert().await, pair("pending", "warning"));
    world.step(NOON_US + 2 * SLICE_US).await;
    assert!(world.alerts().await.is_empty());
}

#[tokio::test]
async fn what_is_told_of_a_firing_alert_is_at_most_a_minute_old() {
    let world = World::new().await;
    let leak = |id: &str| Finding { id: id.into(), ..fixtures::leak("", 1) };
    world.put(&leak("f1"), 1, NOON_US).await;
    world.put(&leak("f2"), 2, NOON_US + 5 * MINUTE_US).await;
    world.step(NOON_US + 5 * MINUTE_US).await;
    let count = async || {
        let alert: Instance = serde_json::from_str(&world.alerts().await[0].body).unwrap();
        alert.seen.count
    };
    assert_eq!(count().await, 2);
    // Nothing changes but the time: the first occurrence is no more of the last 15 minutes.
    world.step(NOON_US + RECENT_US + MINUTE_US).await;
    assert_eq!(count().await, 1);
}

impl World {
    /// As many alerts as are kept, all in one state; each ended a microsecond after the other.
    async fn fill(&self, rule: &str, state: &str) {
        let sql = "WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < $1) \
             INSERT INTO alerts SELECT $2, n, 'prod', $3, 'warning', 1, \
             CASE $3 WHEN 'resolved' THEN $4 + n END, json_object('state', $3, 'started_us', 1, \
             'ended_us', CASE $3 WHEN 'resolved' THEN $4 + n END, 'told', NULL, \
             'seen', json_object('severity', 'warning', 'count', 1, 'newest_us', 1, \
             'example', NULL, 'open', json_array())) FROM n";
        query(sql)
            .bind(limits::ALERTS_MAX)
            .bind(rule)
            .bind(state)
            .bind(NOON_US)
            .execute(&mut *self.store.writer().await.unwrap())
            .await
            .unwrap();
    }

    /// Services with an alert of this rule.
    async fn services(&self, rule: &str) -> Vec<String> {
        let rows = self.store.alert_rows(None, None, 2 * limits::ALERTS_MAX).await.unwrap();
        rows.into_iter().filter(|row| row.rule == rule).map(|row| row.service).collect()
    }
}

#[tokio::test]
async fn what_is_over_makes_room_for_what_fires() {
    let world = World::new().await;
    world.fill("TelemetryGap", "resolved").await;
    world.leak(1, NOON_US, 100).await;
    assert_eq!(world.step(NOON_US + SECOND_US).await, [Because::Fired]);
    assert_eq!(world.services("DuplicateLeak").await, ["settle"]);
    let kept = world.services("TelemetryGap").await;
    assert_eq!(kept.len(), limits::ALERTS_MAX as usize - 1);
    assert!(!kept.contains(&"1".to_owned()), "what has been over the longest goes");
}

#[tokio::test]
async fn an_alert_without_room_waits_and_is_not_lost() {
    let world = World::new().await;
    let engine = Engine::new(Arc::clone(&world.store), Arc::clone(&world.metrics), None);
    // In the first minute of a collector, nobody knows that these are over.
    world.fill("RejectedOutcomes", "firing").await;
    world.leak(1, NOON_US, 100).await;
    engine.step(NOON_US).await.unwrap();
    assert!(world.services("DuplicateLeak").await.is_empty());
    fixtures::run(&world.store, "DELETE FROM alerts WHERE service = '7'").await;
    engine.step(NOON_US + SECOND_US).await.unwrap();
    assert_eq!(world.services("DuplicateLeak").await, ["settle"]);
}

#[tokio::test]
async fn nothing_waits_for_a_failure_and_each_attempt_has_its_own_time() {
    let mut world = World::new().await;
    for (n, service) in ["a", "b"].into_iter().enumerate() {
        let id = format!("f{n}");
        world
            .put(&Finding { id, service: service.into(), ..fixtures::leak("", 1) }, 1, NOON_US)
            .await;
    }
    world.step(NOON_US).await;
    world.receiver.answers(Answer::Status(500));
    let clock = Clock::manual(NOON_US);
    assert_eq!(world.courier.step(&clock).await.unwrap(), Sent::Answered);
    // The failed one is older, and not due yet; the answer to the other makes it so.
    for _ in 0..2 {
        assert_eq!(world.courier.step(&clock).await.unwrap(), Sent::Answered);
        clock.advance(SECOND_US / 10);
    }
    assert_eq!(world.courier.step(&clock).await.unwrap(), Sent::Nothing);
    let log = world.log().await;
    let of = |attempts| log.iter().find(|row| row.attempts == attempts).unwrap();
    assert_eq!(of(1).delivered_us, Some(NOON_US));
    assert_eq!(of(2).delivered_us, Some(NOON_US + SECOND_US / 10));
}

#[tokio::test]
async fn a_receiver_that_hangs_is_told_apart_and_asked_again_later() {
    let mut world = World::new().await;
    world.courier.answer_within(Duration::from_millis(50));
    world.leak(1, NOON_US, 100).await;
    world.step(NOON_US).await;
    world.receiver.answers(Answer::Late(Duration::from_secs(1)));
    let sent = world.courier.step(&Clock::manual(NOON_US)).await.unwrap();
    assert_eq!(sent, Sent::Unanswered);
    let error = world.log().await[0].last_error.clone();
    assert_eq!(error.as_deref(), Some("the receiver did not answer in time"));
}

#[tokio::test]
async fn a_stop_lets_a_delivery_under_way_come_to_its_end() {
    let world = World::new().await;
    world.leak(1, NOON_US, 100).await;
    world.receiver.answers(Answer::Late(Duration::from_millis(300)));
    let webhook = Some(Webhook { url: world.receiver.url() });
    let config = Config { webhook, external_url: LINKS.into(), ..Config::default() };
    let (store, metrics) = (Arc::clone(&world.store), Arc::clone(&world.metrics));
    let clock = Clock::manual(NOON_US);
    let alerts = Alerts::new(store, metrics, Arc::default(), clock, &config).unwrap();
    let under_way = async {
        while world.receiver.take().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), alerts.run_until(under_way)).await.unwrap();
    let log = world.log().await;
    assert_eq!((&*log[0].state, log[0].attempts), ("delivered", 1));
}
