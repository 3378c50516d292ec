//! From a push to the message that wakes somebody.

use dedupwatch::clock::Clock;
use dedupwatch::config::{Config, Webhook};
use serde_json::{Value, json};

use crate::support::receiver::{Answer, Got, Receiver};
use crate::support::{LOOK_EVERY, PATIENCE, TestApp, event, heartbeat, now_us, rfc3339};

/// One settlement accepted twice by one source, 3 s apart.
fn leak() -> Value {
    let mut first = event(1);
    let mut second = event(2);
    second["player"] = first["player"].clone();
    second["signature"] = first["signature"].clone();
    first["occurred_at"] = rfc3339(now_us() - 3_000_000).into();
    json!([first, second])
}

#[tokio::test]
async fn a_leak_reaches_the_webhook_though_it_fails_at_first_and_the_collector_restarts() {
    let receiver = Receiver::start().await;
    receiver.answers(Answer::Status(503));
    receiver.answers(Answer::Hangup);
    let app = start_at(&Clock::System, &receiver).await;
    assert_eq!(app.push(&leak()).await.status, 200);
    let mut got = wait_for(&receiver, 1).await;
    let app = app.restart().await;
    got.extend(wait_for(&receiver, 2).await);
    assert_eq!(got.len(), 3, "failed, lost, delivered");
    assert!(got.iter().all(|one| one.delivery() == got[0].delivery()));
    assert!(got.iter().all(|one| one.json() == got[0].json()));
    let alert = &got[0].json()["alerts"][0];
    assert_eq!(alert["labels"]["alertname"], "DuplicateLeak");
    assert_eq!(alert["labels"]["service"], "settle-poker");
    assert_eq!(alert["labels"]["severity"], "critical");
    assert!(got[0].description().contains("overpaid 100 "), "{}", got[0].description());
    every_link_leads_somewhere(&app, &got[0]).await;
    let page = app.get("/alerts").await.body;
    let newest = alert["annotations"]["newest_finding_url"].as_str().unwrap();
    let newest = newest.rsplit('/').next().unwrap();
    for part in [
        "<a href=\"/findings?kind=duplicate_leak&#38;service=settle%2Dpoker&#38;env=prod\">",
        &format!("<a href=\"/findings/{newest}\">newest finding</a>"),
        "<b>100</b> overpaid",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    let of = r#"alertname="DuplicateLeak",service="settle-poker",env="prod",state="firing""#;
    let firing = &format!("dedup_alerts{{{of}}} 1");
    let delivered = r#"dedupwatch_notifications_total{receiver="webhook",result="delivered"} 1"#;
    for line in [firing, delivered] {
        app.wait_for_text("/metrics", &format!("{line}\n")).await;
    }
    app.stop().await;
    assert!(receiver.take().is_empty(), "told once");
}

async fn every_link_leads_somewhere(app: &TestApp, got: &Got) {
    let alert = &got.json()["alerts"][0];
    let of_annotations = alert["annotations"].as_object().unwrap().iter();
    let mut links: Vec<&Value> =
        of_annotations.filter(|(name, _)| name.ends_with("_url")).map(|(_, link)| link).collect();
    links.push(&alert["generatorURL"]);
    assert!(links.len() >= 4, "{alert}");
    for link in links {
        let link = link.as_str().unwrap();
        let (_, path) = link.split_once("//").unwrap().1.split_once('/').unwrap();
        let reply = app.get(&format!("/{path}")).await;
        assert_eq!(reply.status, 200, "{link}");
        let about = if path.starts_with("help/") { "What to do" } else { "settle-poker" };
        assert!(reply.body.contains(about), "{link} shows what the alert is about");
    }
}

const SECOND_US: i64 = 1_000_000;

async fn start_at(clock: &Clock, receiver: &Receiver) -> TestApp {
    let url = receiver.url();
    let webhook = |config: &mut Config| config.webhook = Some(Webhook { url });
    TestApp::start_with(clock.clone(), webhook).await
}

/// Status, rule and severity.
fn short(got: &[Got]) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let one = |got: &Got| {
        let alert = &got.json()["alerts"][0];
        let labels = &alert["labels"];
        [&alert["status"], &labels["alertname"], &labels["severity"]].map(text)
    };
    got.iter().map(one).collect()
}

#[tokio::test]
async fn a_leak_that_is_not_repeated_resolves_after_15_minutes_and_is_still_open() {
    let receiver = Receiver::start().await;
    let clock = Clock::manual(now_us());
    let app = start_at(&clock, &receiver).await;
    assert_eq!(app.push(&leak()).await.status, 200);
    assert_eq!(short(&wait_for(&receiver, 1).await), [["firing", "DuplicateLeak", "critical"]]);
    clock.advance(15 * 60 * SECOND_US);
    let got = wait_for(&receiver, 1).await;
    assert_eq!(short(&got), [["resolved", "DuplicateLeak", "critical"]]);
    let wanted = "Still open: 1 finding. Ledger settle-poker: overpaid 100 (minor units).";
    assert!(got[0].description().ends_with(wanted), "{}", got[0].description());
    app.stop().await;
}

#[tokio::test]
async fn the_last_source_gone_silent_is_critical_and_over_when_it_is_heard() {
    let receiver = Receiver::start().await;
    let clock = Clock::manual(now_us());
    let app = start_at(&clock, &receiver).await;
    assert_eq!(app.heartbeat(&heartbeat(0)).await.status, 200);
    clock.advance(61 * SECOND_US);
    let got = wait_for(&receiver, 1).await;
    assert_eq!(short(&got), [["firing", "SourceSilent", "critical"]]);
    every_link_leads_somewhere(&app, &got[0]).await;
    assert_eq!(post(&app, "/api/v1/heartbeats", &heartbeat(0)).await, 200);
    assert_eq!(short(&wait_for(&receiver, 1).await), [["resolved", "SourceSilent", "critical"]]);
    app.stop().await;
}

#[tokio::test]
async fn a_sender_that_keeps_sending_what_is_rejected_is_told_of() {
    let receiver = Receiver::start().await;
    let clock = Clock::manual(now_us());
    let app = start_at(&clock, &receiver).await;
    let mut bad = event(1);
    bad["signature"]["net"] = "1e3".into();
    for _ in 0..6 {
        // The same event each time: the log keeps it once, and each is a reject.
        assert_eq!(post(&app, "/api/v1/outcomes", &bad).await, 422);
        clock.advance(10 * SECOND_US);
    }
    let got = wait_for(&receiver, 1).await;
    assert_eq!(short(&got), [["firing", "RejectedOutcomes", "warning"]]);
    every_link_leads_somewhere(&app, &got[0]).await;
    let labels = &got[0].json()["groupLabels"];
    assert_eq!((&labels["service"], &labels["env"]), (&json!("settle-poker"), &json!("prod")));
    app.stop().await;
}

#[tokio::test]
async fn a_hole_that_stays_is_told_of() {
    let receiver = Receiver::start().await;
    let clock = Clock::manual(now_us());
    let app = start_at(&clock, &receiver).await;
    assert_eq!(app.push(&json!([event(1), event(3)])).await.status, 200);
    clock.advance(31 * SECOND_US);
    let got = wait_for(&receiver, 1).await;
    assert_eq!(short(&got), [["firing", "TelemetryGap", "info"]]);
    every_link_leads_somewhere(&app, &got[0]).await;
    app.stop().await;
}

/// The second settlement of the player of [`event`] 1.
fn next() -> Value {
    let mut next = event(2);
    next["player"] = event(1)["player"].clone();
    next
}

#[tokio::test]
async fn a_live_eviction_is_always_told() {
    let receiver = Receiver::start().await;
    let clock = Clock::manual(now_us());
    let app = start_at(&clock, &receiver).await;
    let mut pushing = next();
    pushing["evicted"] = json!([event(1)["signature"]]);
    assert_eq!(app.push(&json!([event(1), pushing])).await.status, 200);
    clock.advance(5 * SECOND_US);
    let got = wait_for(&receiver, 1).await;
    assert_eq!(short(&got), [["firing", "LiveEviction", "warning"]]);
    every_link_leads_somewhere(&app, &got[0]).await;
    app.stop().await;
}

#[tokio::test]
async fn a_false_block_is_told_with_what_is_owed() {
    let receiver = Receiver::start().await;
    let clock = Clock::manual(now_us());
    let app = start_at(&clock, &receiver).await;
    let mut blocked = next();
    blocked["outcome"] = "replay_blocked".into();
    assert_eq!(app.push(&json!([event(1), blocked])).await.status, 200);
    clock.advance(40 * SECOND_US);
    let got = wait_for(&receiver, 1).await;
    assert_eq!(short(&got), [["firing", "FalseBlock", "critical"]]);
    every_link_leads_somewhere(&app, &got[0]).await;
    assert!(got[0].description().contains("underpaid 100 "), "{}", got[0].description());
    app.stop().await;
}

/// Posts until the collector is not too busy: for the judge, a leap of the clock is a lag.
async fn post(app: &TestApp, path: &str, body: &Value) -> u16 {
    let end = std::time::Instant::now() + PATIENCE;
    loop {
        let status = app.post(path, body).await.status;
        if status != 429 {
            return status;
        }
        assert!(std::time::Instant::now() < end, "busy all the time");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn wait_for(receiver: &Receiver, count: usize) -> Vec<Got> {
    let end = std::time::Instant::now() + PATIENCE;
    let mut got = Vec::new();
    while got.len() < count {
        assert!(std::time::Instant::now() < end, "not in time: {got:?}");
        tokio::time::sleep(LOOK_EVERY).await;
        got.extend(receiver.take());
    }
    got
}
