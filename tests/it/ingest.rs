//! Bad input over HTTP, and the same input in another cut.

use serde_json::{Value, json};

use crate::support::{TestApp, event, events, heartbeat};

fn with(path: &str, value: Value) -> Value {
    let mut event = event(1);
    match path.split_once('.') {
        Some((outer, inner)) => event[outer][inner] = value,
        None => event[path] = value,
    }
    event
}

#[tokio::test]
async fn bad_fields_are_refused_by_name() {
    let app = TestApp::start().await;
    let long = "x".repeat(257);
    for (path, value) in [
        ("service", Value::Null),
        ("source", json!("")),
        ("player", json!(long)),
        ("player", json!("a\0b")),
        ("signature", json!({})),
        ("signature.net", json!("9223372036854775808")),
        ("signature.net", json!(1e3)),
        ("signature.net", json!(1.0)),
        ("outcome", json!("fine")),
        ("occurred_at", json!("1600-01-01T00:00:00Z")),
        ("occurred_at", json!("2999-01-01T00:00:00Z")),
        ("boot", json!("neither")),
        ("seq", json!(0)),
        ("seq", json!(9_223_372_036_854_775_808_u64)),
    ] {
        let reply = app.push(&with(path, value)).await;
        assert_eq!(reply.status, 422, "{path}: {}", reply.body);
        let message = reply.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(path.split('.').next().unwrap()), "{message}");
    }
    assert_eq!(app.push(&with("window", json!({"len": 9, "cap": 4}))).await.status, 200);
    app.stop().await;
}

#[tokio::test]
async fn a_boot_at_the_edge_of_the_calendar_stops_nothing() {
    let app = TestApp::start().await;
    for boot in ["0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"] {
        let reply = app.push(&with("boot", json!(boot))).await;
        assert_eq!((reply.status, &reply.json()["errors"][0]["code"]), (422, &json!("invalid")));
        let mut beat = heartbeat(1);
        beat["boot"] = json!(boot);
        assert_eq!(app.heartbeat(&beat).await.status, 422);
    }
    assert_eq!(app.push(&with("boot", json!("9999-12-31T23:59:59Z"))).await.status, 200);
    let app = app.restart().await;
    assert_eq!(app.push(&with("boot", json!("9999-12-31T23:59:59Z"))).await.json()["repeated"], 1);
    assert_eq!(app.get("/-/ready").await.status, 200);
    app.stop().await;
}

#[tokio::test]
async fn a_key_that_stands_there_twice_is_refused() {
    let app = TestApp::start().await;
    let body = event(1).to_string().replacen('{', "{\"player\":\"other\",", 1);
    let headers = [("content-type", "application/json")];
    let reply = app.post_raw("/api/v1/outcomes", &headers, body.into()).await;
    assert_eq!(reply.json()["errors"][0]["code"], "duplicate_key");
    app.stop().await;
}

#[tokio::test]
async fn boots_of_two_sorts_are_refused_for_the_second_sort() {
    let app = TestApp::start().await;
    app.push(&event(1)).await;
    let reply = app.push(&with("boot", json!("2026-11-30T08:00:00Z"))).await;
    assert_eq!((reply.status, &reply.json()["errors"][0]["code"]), (422, &json!("boot_sort")));
    assert_eq!(app.push(&event(2)).await.status, 200);
    app.stop().await;
}

#[tokio::test]
async fn one_batch_eight_times_at_once_is_one_batch() {
    let app = TestApp::start().await;
    let batch = std::sync::Arc::new(events(1, 1_000));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (api, batch) = ((*app).clone(), std::sync::Arc::clone(&batch));
            tokio::spawn(async move { api.push(&batch).await.json() })
        })
        .collect();
    let (mut written, mut repeated) = (0, 0);
    for task in tasks {
        let answer = task.await.unwrap();
        written += answer["written"].as_u64().unwrap();
        repeated += answer["repeated"].as_u64().unwrap();
    }
    assert_eq!((written, repeated), (1_000, 7_000));
    let text = app.get("/metrics").await.body;
    let line =
        "dedup_outcomes_total{service=\"settle-poker\",env=\"prod\",outcome=\"processed\"} 1000";
    assert!(text.contains(line), "{text}");
    app.stop().await;
}

#[tokio::test]
async fn five_thousand_holes_lose_the_lowest() {
    let app = TestApp::start().await;
    let odd: Vec<Value> = (0..5_001).map(|n| event(2 * n + 1)).collect();
    let odd = Value::Array(odd);
    assert_eq!(app.push(&odd).await.json()["written"], 5_001);
    let app = app.restart().await;
    assert_eq!(app.push(&odd).await.json()["repeated"], 5_001);
    let reply = app.push(&event(2)).await;
    assert_eq!((reply.status, &reply.json()["errors"][0]["code"]), (422, &json!("given_up")));
    assert_eq!(app.push(&event(9_998)).await.json()["written"], 1);
    app.stop().await;
}
