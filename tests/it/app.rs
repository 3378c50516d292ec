//! Start and stop of the whole collector.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::support::{Api, LOOK_EVERY, PATIENCE, TestApp, TestProcess, event, events};

#[tokio::test]
async fn serves_and_stops() {
    let app = TestApp::start().await;
    assert_eq!(app.get("/-/healthy").await.status, 200);
    let app = app.restart().await;
    assert_eq!(app.get_json("/-/ready").await["ready"], true);
    app.stop().await;
}

#[tokio::test]
async fn goes_on_after_a_restart() {
    let app = TestApp::start().await;
    assert_eq!(app.push(&events(1, 3)).await.json()["written"], 3);
    let app = app.restart().await;
    let again = app.push(&events(1, 4)).await.json();
    assert_eq!((&again["written"], &again["repeated"]), (&1.into(), &3.into()));
    app.stop().await;
}

const PUSHERS: u64 = 4;
const BATCH: u64 = 200;

/// What the pushers have sent, and which of it was acknowledged.
#[derive(Default)]
struct Load {
    acknowledged: AtomicU64,
    over: AtomicBool,
}

/// Pushes batches of one source until the collector says no or is gone; gives back those that it
/// acknowledged.
async fn push_until_refused(api: Api, load: Arc<Load>, source: u64) -> Vec<Value> {
    let mut acknowledged = Vec::new();
    for batch in 0.. {
        let first = batch * BATCH + 1;
        let mut body = events(first, first + BATCH - 1);
        for event in body.as_array_mut().unwrap() {
            event["source"] = format!("settle-{source}").into();
        }
        match api.try_push(&body).await {
            Ok(reply) if reply.status == 200 => {
                acknowledged.push(body);
                load.acknowledged.fetch_add(BATCH, Ordering::SeqCst);
            }
            Ok(reply) if reply.status == 429 => tokio::time::sleep(LOOK_EVERY).await,
            Ok(reply) => {
                assert_eq!(reply.status, 503, "{}", reply.body);
                assert!(!reply.header("retry-after").is_empty());
                load.over.store(true, Ordering::SeqCst);
            }
            Err(_) => load.over.store(true, Ordering::SeqCst),
        }
        if load.over.load(Ordering::SeqCst) {
            break;
        }
    }
    acknowledged
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stops_under_load_within_ten_seconds_and_loses_nothing() {
    let mut process = TestProcess::start().await;
    let load = Arc::new(Load::default());
    let pushers: Vec<_> = (1..=PUSHERS)
        .map(|source| tokio::spawn(push_until_refused(process.clone(), Arc::clone(&load), source)))
        .collect();
    let end = Instant::now() + PATIENCE;
    while load.acknowledged.load(Ordering::SeqCst) < 20 * BATCH {
        assert!(Instant::now() < end, "the load did not start");
        tokio::time::sleep(LOOK_EVERY).await;
    }
    let told = Instant::now();
    process.terminate();
    assert!(process.wait().await.success());
    assert!(told.elapsed() < Duration::from_secs(10), "it took {:?}", told.elapsed());
    let log = format!("{}-wal", process.database().trim_start_matches("sqlite://"));
    let left = std::fs::metadata(log).map_or(0, |log| log.len());
    assert_eq!(left, 0, "the write-ahead log was not brought into the database");

    let process = process.restart().await;
    for pusher in pushers {
        for batch in pusher.await.unwrap() {
            let reply = process.push(&batch).await.json();
            assert_eq!(reply["repeated"], BATCH, "acknowledged, then lost: {reply}");
        }
    }
}

#[tokio::test]
async fn a_signal_while_nothing_happens_ends_it_at_once() {
    let mut process = TestProcess::start().await;
    assert_eq!(process.push(&event(1)).await.status, 200);
    let told = Instant::now();
    process.terminate();
    assert!(process.wait().await.success());
    assert!(told.elapsed() < Duration::from_secs(5), "it took {:?}", told.elapsed());
    let mut process = process.restart().await;
    assert_eq!(process.push(&event(1)).await.json()["repeated"], 1);
    process.kill();
}

#[tokio::test]
async fn a_client_that_hangs_in_mid_body_does_not_hold_the_end_up() {
    let mut process = TestProcess::start().await;
    let address = process.base().trim_start_matches("http://").to_owned();
    let mut hanging = TcpStream::connect(&address).unwrap();
    let head = "POST /api/v1/outcomes HTTP/1.1\r\nhost: [::1]\r\ncontent-type: application/json\r\n\
                content-length: 100\r\n\r\n[";
    hanging.write_all(head.as_bytes()).unwrap();
    assert_eq!(process.push(&event(1)).await.status, 200);
    let told = Instant::now();
    process.terminate();
    assert!(process.wait().await.success());
    assert!(told.elapsed() < Duration::from_secs(10), "it took {:?}", told.elapsed());
}
