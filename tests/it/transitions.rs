//! Moves of deliveries, from the push to the page: the same door as outcomes, and apart from them.

use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};

use crate::support::{
    Api, LOOK_EVERY, PATIENCE, Reply, TestApp, TestProcess, event, heartbeat, transition,
};

const TRANSITIONS: &str = "/api/v1/transitions";
const JSON: (&str, &str) = ("content-type", "application/json");
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");

fn with(seq: u64, fields: &Value) -> Value {
    let mut transition = transition(seq);
    for (field, value) in fields.as_object().unwrap() {
        transition[field] = value.clone();
    }
    transition
}

fn transitions(first: u64, last: u64) -> Value {
    Value::Array((first..=last).map(transition).collect())
}

#[track_caller]
fn counts(reply: &Reply) -> (u16, u64, u64, u64) {
    let body = reply.json();
    let count = |name: &str| body[name].as_u64().unwrap_or_else(|| panic!("{}", reply.body));
    assert_eq!(reply.header("x-dedupwatch-written"), count("written").to_string());
    (reply.status, count("written"), count("repeated"), count("rejected"))
}

/// The value of a series of `dedup_transitions_total`.
async fn total(api: &Api, from: &str, to: &str) -> Option<u64> {
    let labels = format!(r#"service="settle-poker",env="prod",from="{from}",to="{to}""#);
    let start = format!("dedup_transitions_total{{{labels}}} ");
    let text = api.get("/metrics").await.body;
    text.lines().find_map(|line| line.strip_prefix(&start)).map(|value| value.parse().unwrap())
}

#[tokio::test]
async fn the_status_table_is_that_of_outcomes() {
    let app = TestApp::start().await;
    assert_eq!(counts(&app.transition(&json!([])).await), (200, 0, 0, 0));
    assert_eq!(counts(&app.transition(&transition(1)).await), (200, 1, 0, 0));
    assert_eq!(counts(&app.transition(&transitions(1, 3)).await), (200, 2, 1, 0));
    let lines = format!("{}\n{{\"broken\n\n{}", transition(3), transition(4));
    let reply = app.post_raw(TRANSITIONS, &[NDJSON], lines.into()).await;
    assert_eq!(counts(&reply), (207, 1, 1, 1));
    assert_eq!(reply.json()["errors"][0]["index"], 1);
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(transitions(4, 5).to_string().as_bytes()).unwrap();
    let (body, gzip) = (encoder.finish().unwrap(), ("content-encoding", "gzip"));
    let reply = app.post_raw(TRANSITIONS, &[JSON, gzip], body).await;
    assert_eq!(counts(&reply), (200, 1, 1, 0));
    let body = zstd::encode_all(transitions(5, 6).to_string().as_bytes(), 1).unwrap();
    let zstd = ("content-encoding", "zstd");
    assert_eq!(counts(&app.post_raw(TRANSITIONS, &[JSON, zstd], body).await), (200, 1, 1, 0));
    let bad: Vec<Value> = (1..=120).map(|seq| with(seq, &json!({"key": ""}))).collect();
    let reply = app.transition(&Value::Array(bad)).await;
    assert_eq!(counts(&reply), (422, 0, 0, 120));
    assert_eq!(reply.json()["errors"].as_array().unwrap().len(), 100);
    for (headers, body, status) in [
        (vec![JSON], Vec::new(), 400),
        (vec![JSON], b"[{\"service\":".to_vec(), 400),
        (vec![JSON, gzip], b"plain".to_vec(), 400),
        (vec![JSON], vec![b' '; (10 << 20) + 1], 413),
        (vec![("content-type", "text/plain")], b"{}".to_vec(), 415),
    ] {
        let reply = app.post_raw(TRANSITIONS, &headers, body).await;
        assert_eq!(reply.status, status, "{}", reply.body);
    }
    let many = Value::Array(vec![json!(0); 10_001]);
    assert_eq!(app.transition(&many).await.status, 413);
    assert_eq!(app.get(TRANSITIONS).await.status, 405);
    app.stop().await;
}

#[tokio::test]
async fn bad_fields_are_refused_by_name() {
    let app = TestApp::start().await;
    for (seq, (field, value)) in (1..).zip([
        ("service", Value::Null),
        ("source", json!("")),
        ("boot", json!("neither")),
        ("seq", json!(0)),
        ("trace_id", Value::Null),
        ("key", Value::Null),
        ("key", json!("x".repeat(257))),
        ("key", json!("a\0b")),
        ("from", json!("nowhere")),
        ("from", Value::Null),
        ("to", json!(7)),
        ("to", json!("")),
        ("reason", json!({})),
        ("at", json!("yesterday")),
        ("at", json!("1600-01-01T00:00:00Z")),
        ("at", json!("2999-01-01T00:00:00Z")),
        ("at", Value::Null),
    ]) {
        let mut fields = json!({});
        fields[field] = value;
        let reply = app.transition(&with(seq, &fields)).await;
        assert_eq!(reply.status, 422, "{field}: {}", reply.body);
        let message = reply.json()["errors"][0]["message"].as_str().unwrap().to_owned();
        assert!(message.starts_with(field) && message.contains(' '), "{message}");
    }
    let nobody = with(1, &json!({"boot": null, "seq": null}));
    let reply = app.transition(&nobody).await;
    assert!(reply.body.contains("send boot and seq, or event_id"), "{}", reply.body);
    let path = "/api/v1/findings?kind=rejected_evidence";
    let count = |row: &Value| row["count"].as_str().unwrap().parse::<u64>().unwrap();
    let rows = |answer: &Value| answer["findings"].as_array().unwrap().clone();
    app.wait_for(path, |answer| rows(answer).iter().map(count).sum::<u64>() == 18).await;
    assert_eq!(app.transition(&transition(7)).await.status, 200, "the number may still come");
    app.stop().await;
}

#[tokio::test]
async fn one_batch_eight_times_at_once_is_one_batch() {
    let app = TestApp::start().await;
    let batch = Arc::new(transitions(1, 1_000));
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (api, batch) = ((*app).clone(), Arc::clone(&batch));
            tokio::spawn(async move { api.transition(&batch).await.json() })
        })
        .collect();
    let (mut written, mut repeated) = (0, 0);
    for task in tasks {
        let answer = task.await.unwrap();
        written += answer["written"].as_u64().unwrap();
        repeated += answer["repeated"].as_u64().unwrap();
    }
    assert_eq!((written, repeated), (1_000, 7_000));
    assert_eq!(total(&app, "received", "checking").await, Some(1_000));
    app.stop().await;
}

#[tokio::test]
async fn illegal_moves_are_found_with_their_source_and_evidence() {
    let app = TestApp::start().await;
    let back = json!({"from": "accepted", "to": "checking", "reason": "retry"});
    let batch = json!([
        transition(1),
        with(2, &json!({"from": "checking", "to": "accepted"})),
        with(3, &back),
        with(4, &back),
        with(4, &back),
        with(5, &json!({"from": "refused", "to": "accepted", "source": "settle-2"})),
    ]);
    assert_eq!(counts(&app.transition(&batch).await), (200, 5, 1, 0));
    let path = "/api/v1/findings?kind=illegal_transition";
    let two = |answer: &Value| answer["findings"].as_array().is_some_and(|rows| rows.len() == 2);
    let app = {
        app.wait_for(path, two).await;
        app.restart().await
    };
    let found = app.wait_for(path, two).await;
    let of = |source: &str| {
        let mut rows = found["findings"].as_array().unwrap().iter();
        rows.find(|row| row["source"] == source).unwrap().clone()
    };
    let row = of("settle-1");
    assert_eq!((&row["count"], &row["cause"]), (&json!("2"), &json!("accepted_to_checking")));
    assert_eq!((&row["severity"], &row["state"]), (&json!("warning"), &json!("confirmed")));
    assert_eq!(row["witnesses"][0]["trace_id"], "trace-3");
    assert_eq!(row["witnesses"][0]["text"], "key k-3 went from accepted to checking: retry");
    assert_eq!(of("settle-2")["cause"], "refused_to_accepted");
    assert_eq!(total(&app, "accepted", "checking").await, Some(2));
    assert_eq!(total(&app, "refused", "accepted").await, Some(1));
    assert_eq!(total(&app, "accepted", "accepted").await, Some(0));
    app.stop().await;
}

#[tokio::test]
async fn outcomes_and_heartbeats_know_nothing_of_their_numbers() {
    let app = TestApp::start_with(dedupwatch::clock::Clock::System, |config| {
        config.audit.gap_grace_us = 100_000;
    })
    .await;
    assert_eq!(app.push(&event(1)).await.status, 200);
    assert_eq!(
        counts(&app.transition(&json!([transition(1), transition(9)])).await),
        (200, 2, 0, 0)
    );
    assert_eq!(app.heartbeat(&heartbeat(1)).await.status, 200);
    tokio::time::sleep(std::time::Duration::from_millis(2_500)).await;
    let source = &app.get_json("/api/v1/sources").await["sources"][0];
    assert!(source.to_string().contains("settle-1"), "{source}");
    let found = app.get_json("/api/v1/findings").await;
    assert_eq!(found["findings"], json!([]), "no hole is seen");
    let answer = app.transition(&with(1, &json!({"trace_id": "another"}))).await;
    assert_eq!(counts(&answer), (200, 0, 1, 0));
    let path = "/api/v1/findings?kind=identity_conflict";
    app.wait_for(path, |answer| answer["findings"][0]["count"] == "1").await;
    let log = app.get_json("/api/v1/outcomes").await;
    let kinds: Vec<_> = log["outcomes"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    let kinds: Vec<_> = kinds.into_iter().filter(|kind| *kind != "tick").collect();
    let expected = ["event", "transition", "transition", "heartbeat", "transition_conflict"];
    assert_eq!(kinds, expected);
    app.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn totals_are_right_after_kills() {
    const BATCH: u64 = 50;
    let mut process = TestProcess::start().await;
    let (mut acknowledged, mut sent) = (0, 0);
    for _ in 0..3 {
        let (api, batches) = ((*process).clone(), Arc::new(AtomicU64::new(0)));
        let (first, done) = (acknowledged, Arc::clone(&batches));
        let sender = tokio::spawn(async move {
            let mut last = first;
            loop {
                let body = transitions(last + 1, last + BATCH).to_string();
                match api.try_post_raw(TRANSITIONS, &[JSON], body.into()).await {
                    Ok(reply) => assert_eq!(reply.status, 200, "{}", reply.body),
                    Err(_) => return last,
                }
                last += BATCH;
                done.fetch_add(1, Ordering::SeqCst);
            }
        });
        let end = Instant::now() + PATIENCE;
        while batches.load(Ordering::SeqCst) < 3 {
            assert!(Instant::now() < end, "nothing is acknowledged");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        process.kill();
        acknowledged = sender.await.unwrap();
        sent = acknowledged + BATCH;
        process = process.restart().await;
        let counted = total(&process, "received", "checking").await.unwrap();
        assert!(counted == acknowledged || counted == sent, "{counted} of {acknowledged}");
    }
    let all = process.transition(&transitions(1, sent)).await;
    assert_eq!(
        all.json()["written"].as_u64().unwrap() + all.json()["repeated"].as_u64().unwrap(),
        sent
    );
    assert_eq!(total(&process, "received", "checking").await, Some(sent), "each once");
    process.kill();
}

#[tokio::test]
async fn the_page_and_the_api_show_the_moves_by_minute() {
    let app = TestApp::start().await;
    assert_eq!(app.get("/services/settle-poker").await.status, 404);
    assert_eq!(app.push(&event(1)).await.status, 200);
    let body = app.get("/services/settle-poker").await.body;
    assert!(body.contains("No move of a delivery was heard"), "{body}");
    assert!(app.get("/").await.body.contains("<a href=\"/services/settle%2Dpoker\">"));
    let illegal = with(3, &json!({"from": "refused", "to": "refused", "env": "test"}));
    let batch = json!([transition(1), transition(2), illegal]);
    assert_eq!(app.transition(&batch).await.status, 200);
    let body = app.get("/services/settle-poker").await.body;
    for part in
        ["received to checking", "refused to refused", "not legal", ">2</td>", "test</span>"]
    {
        assert!(body.contains(part), "{part}: {body}");
    }
    let list = app.get_json("/api/v1/services/settle-poker/transitions").await;
    let rows = list["transitions"].as_array().unwrap();
    let of = |env: &str| {
        let counts = rows.iter().filter(|row| row["env"] == env);
        counts.map(|row| row["count"].as_str().unwrap().parse::<u64>().unwrap()).sum::<u64>()
    };
    assert_eq!((of("prod"), of("test"), list["next"].clone()), (2, 1, Value::Null));
    assert!(rows.iter().all(|row| row["legal"] == (row["from"] == "received")), "{rows:?}");
    let none = app.get("/api/v1/services/other/transitions").await;
    assert_eq!(none.status, 404, "{none:?}");
    app.stop().await;
}
