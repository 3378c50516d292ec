//! The cases over HTTP, all in one collector: each in a world of its own by its names.

use std::time::Instant;

use dedupwatch::clock::Clock;
use dedupwatch::config::{Config, DatabaseUrl};
use serde_json::Value;

use crate::cases::{Case, Said, cases, moved};
use crate::support::{LOOK_EVERY, PATIENCE, TestApp, now_us, postgres};

/// The case with names of its own.
fn apart(case: &Case, mut event: Value) -> Value {
    let place = match event.get("heartbeat") {
        Some(_) => &mut event["heartbeat"],
        None => &mut event,
    };
    for name in ["service", "source", "ledger", "message_id"] {
        if let Some(text) = place[name].as_str().map(|text| format!("{}-{text}", case.id)) {
            place[name] = text.into();
        }
    }
    let ledgers = place["ledgers"].as_array().cloned().unwrap_or_default();
    if !ledgers.is_empty() {
        let of_case = |ledger: &Value| format!("{}-{}", case.id, ledger.as_str().unwrap()).into();
        place["ledgers"] = Value::Array(ledgers.iter().map(of_case).collect());
    }
    event
}

async fn send(app: &TestApp, case: &Case) {
    let end_us = app.clock().now_us() - 10_000_000;
    let events = moved(case, end_us - case.end_us()).into_iter().map(|event| apart(case, event));
    let events: Vec<Value> = events.collect();
    let is_heartbeat = |event: &Value| event.get("heartbeat").is_some();
    for run in events.chunk_by(|a, b| is_heartbeat(a) == is_heartbeat(b)) {
        let reply = if is_heartbeat(&run[0]) {
            let inner = run.iter().map(|event| event["heartbeat"].clone()).collect();
            app.heartbeat(&Value::Array(inner)).await
        } else {
            app.push(&Value::Array(run.to_vec())).await
        };
        assert!([200, 207].contains(&reply.status), "{}: {reply:?}", case.id);
    }
}

async fn said(app: &TestApp, case: &Case) -> Vec<Said> {
    let amount = |finding: &Value, name: &str| finding[name].as_str().unwrap().parse().unwrap();
    let service = format!("{}-settle", case.id);
    let list = app.get_json(&format!("/api/v1/findings?limit=1000&service={service}")).await;
    let said = |finding: &Value| Said {
        kind: finding["kind"].as_str().unwrap().into(),
        open: finding["state"] != "closed",
        info: finding["severity"] == "info",
        overpaid: amount(finding, "overpaid"),
        overcharged: amount(finding, "overcharged"),
        whole: format!("{finding:#}"),
    };
    list["findings"].as_array().unwrap().iter().map(said).collect()
}

/// What is wrong, over all cases.
async fn differences(app: &TestApp, cases: &[Case]) -> Vec<String> {
    let mut wrong = Vec::new();
    for case in cases {
        let differences = case.differences_of(&said(app, case).await);
        wrong.extend(differences.iter().map(|what| format!("{}: {what}", case.id)));
    }
    wrong
}

#[tokio::test]
async fn each_case_gets_its_verdict_over_http() {
    each_case_gets_its_verdict(None).await;
}

#[tokio::test]
async fn each_case_gets_its_verdict_over_http_on_postgres() {
    let database = tokio::task::spawn_blocking(|| postgres::shared().database()).await.unwrap();
    each_case_gets_its_verdict(Some(database)).await;
}

async fn each_case_gets_its_verdict(database: Option<String>) {
    let change = |config: &mut Config| {
        config.database = database.map_or(config.database.clone(), DatabaseUrl::from);
    };
    let app = TestApp::start_with(Clock::manual(now_us()), change).await;
    let cases = cases();
    for case in &cases {
        send(&app, case).await;
    }
    // Holes are given up, the silent are silent, graces run out.
    let end = Instant::now() + PATIENCE;
    app.clock().advance(45_000_000);
    let mut wrong = differences(&app, &cases).await;
    while !wrong.is_empty() {
        assert!(Instant::now() < end, "{}", wrong.join("\n"));
        tokio::time::sleep(LOOK_EVERY).await;
        wrong = differences(&app, &cases).await;
    }
    app.stop().await;
}
