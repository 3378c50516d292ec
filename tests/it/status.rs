//! The status table of the way in, row by row.

use std::io::Write;
use std::sync::Arc;

use dedupwatch::clock::Clock;
use flate2::{Compression, write::GzEncoder};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::support::{Reply, TestApp, event, events, heartbeat};

const OUTCOMES: &str = "/api/v1/outcomes";
const JSON: (&str, &str) = ("content-type", "application/json");
const NDJSON: (&str, &str) = ("content-type", "application/x-ndjson");
const GZIP: (&str, &str) = ("content-encoding", "gzip");
const ZSTD: (&str, &str) = ("content-encoding", "zstd");

fn bad(seq: u64) -> Value {
    let mut bad = event(seq);
    bad["player"] = json!("");
    bad
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

/// Status and the three counts, which stand in body and headers alike.
#[track_caller]
fn counts(reply: &Reply) -> (u16, u64, u64, u64) {
    let body = reply.json();
    let count = |name: &str, header: &str| {
        let count = body[name].as_u64().unwrap_or_else(|| panic!("{}", reply.body));
        assert_eq!(reply.header(header), count.to_string());
        count
    };
    (
        reply.status,
        count("written", "x-dedupwatch-written"),
        count("repeated", "x-dedupwatch-repeated"),
        count("rejected", "x-dedupwatch-rejected"),
    )
}

/// Status and code of an answer that is an error as a whole.
#[track_caller]
fn error(reply: &Reply) -> (u16, String) {
    let body = reply.json();
    assert!(body["error"]["message"].as_str().is_some_and(|message| message.len() > 10));
    (reply.status, body["error"]["code"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_200_says_that_nothing_was_rejected() {
    let app = TestApp::start().await;
    assert_eq!(counts(&app.push(&json!([])).await), (200, 0, 0, 0));
    assert_eq!(counts(&app.push(&event(1)).await), (200, 1, 0, 0));
    assert_eq!(counts(&app.push(&events(1, 3)).await), (200, 2, 1, 0));
    let lines = format!("{}\n\n{}\r\n", event(4), event(5));
    let reply = app.post_raw(OUTCOMES, &[NDJSON], lines.into()).await;
    assert_eq!(counts(&reply), (200, 2, 0, 0));
    let body = gzip(events(5, 6).to_string().as_bytes());
    let utf8 = ("content-type", "Application/JSON; charset=UTF-8");
    assert_eq!(counts(&app.post_raw(OUTCOMES, &[utf8, GZIP], body).await), (200, 1, 1, 0));
    let body = zstd(events(5, 6).to_string().as_bytes());
    assert_eq!(counts(&app.post_raw(OUTCOMES, &[JSON, ZSTD], body).await), (200, 0, 2, 0));
    let identity = ("content-encoding", "identity");
    let body = event(7).to_string().into();
    assert_eq!(counts(&app.post_raw(OUTCOMES, &[JSON, identity], body).await), (200, 1, 0, 0));
    assert_eq!(counts(&app.heartbeat(&heartbeat(7)).await), (200, 1, 0, 0));
    let beat = zstd(heartbeat(7).to_string().as_bytes());
    let reply = app.post_raw("/api/v1/heartbeats", &[JSON, ZSTD], beat).await;
    assert_eq!(counts(&reply), (200, 1, 0, 0));
    app.stop().await;
}

#[tokio::test]
async fn a_check_is_answered_as_the_push_after_it() {
    let app = TestApp::start().await;
    let written = "dedupwatch_ingest_events_total{result=\"written\"} ";
    for (batch, status, sum) in [
        (json!([event(1), event(2)]), 200, 2),
        (json!([event(2), bad(3), event(4)]), 207, 3),
        (json!([bad(3)]), 422, 3),
    ] {
        for _ in 0..2 {
            let checked = app.post("/api/v1/outcomes?check=1", &batch).await;
            let pushed = app.push(&batch).await;
            assert_eq!(checked.body, pushed.body);
            assert_eq!(counts(&checked), counts(&pushed));
            assert_eq!(checked.status, status);
        }
        app.wait_for_text("/metrics", &format!("{written}{sum}\n")).await;
    }
    for query in ["check", "check=", "check=true", "chek=1", "check=1&check=1"] {
        let reply = app.post(&format!("/api/v1/outcomes?{query}"), &event(9)).await;
        assert_eq!(error(&reply), (400, "bad_parameter".into()), "{query}");
    }
    for path in ["/api/v1/transitions?check=1", "/api/v1/heartbeats?check=1"] {
        assert_eq!(error(&app.post(path, &json!([])).await), (400, "bad_parameter".into()));
    }
    assert_eq!(counts(&app.push(&event(9)).await), (200, 1, 0, 0));
    app.stop().await;
}

#[tokio::test]
async fn a_207_says_that_the_rest_was_written() {
    let app = TestApp::start().await;
    let reply = app.push(&json!([event(1), bad(2), event(3)])).await;
    assert_eq!(counts(&reply), (207, 2, 0, 1));
    assert_eq!(reply.json()["errors"][0]["index"], 1);
    assert_eq!(reply.json()["errors"][0]["code"], "empty");
    let lines = format!("{}\n{{\"broken\n{}", event(3), event(4));
    let reply = app.post_raw(OUTCOMES, &[NDJSON], lines.into()).await;
    assert_eq!(counts(&reply), (207, 1, 1, 1));
    assert_eq!(reply.json()["errors"][0]["code"], "not_json");
    let mut nobody = heartbeat(4);
    nobody["source"] = Value::Null;
    let reply = app.heartbeat(&json!([heartbeat(4), nobody])).await;
    assert_eq!(counts(&reply), (207, 1, 0, 1));
    app.stop().await;
}

#[tokio::test]
async fn a_422_says_that_all_was_rejected_and_why_for_the_first_hundred() {
    let app = TestApp::start().await;
    let all: Vec<Value> = (1..=120).map(bad).collect();
    let reply = app.push(&Value::Array(all)).await;
    assert_eq!(counts(&reply), (422, 0, 0, 120));
    assert_eq!(reply.json()["errors"].as_array().unwrap().len(), 100);
    assert_eq!(counts(&app.push(&json!(7)).await), (422, 0, 0, 1));
    app.stop().await;
}

#[tokio::test]
async fn a_400_says_what_is_wrong_with_the_body() {
    let app = TestApp::start().await;
    let whole = events(1, 3).to_string().into_bytes();
    let truncated = whole[..whole.len() / 2].to_vec();
    let inflated_half = gzip(&whole)[..40].to_vec();
    let half_a_frame = zstd(&whole)[..40].to_vec();
    for (headers, body, code) in [
        (vec![JSON], Vec::new(), "empty_body"),
        (vec![NDJSON], b"\n\n".to_vec(), "empty_body"),
        (vec![JSON], b"nothing".to_vec(), "not_json"),
        (vec![JSON], truncated, "not_json"),
        (vec![JSON], b"[\"\xff\"]".to_vec(), "not_utf8"),
        (vec![NDJSON], b"\xff\xfe".to_vec(), "not_utf8"),
        (vec![JSON, GZIP], whole.clone(), "not_gzip"),
        (vec![JSON, ZSTD], whole, "not_zstd"),
        (vec![JSON, ZSTD], half_a_frame, "not_zstd"),
        (vec![JSON, GZIP], inflated_half, "not_gzip"),
    ] {
        let reply = app.post_raw(OUTCOMES, &headers, body).await;
        assert_eq!(error(&reply), (400, code.to_owned()));
    }
    let text = app.get("/metrics").await.body;
    assert!(text.contains("dedupwatch_ingest_events_total{result=\"written\"} 0"), "{text}");
    app.stop().await;
}

#[tokio::test]
async fn a_413_comes_for_bytes_and_for_events() {
    let app = TestApp::start().await;
    let too_many = Value::Array(vec![json!(0); 10_001]);
    assert_eq!(error(&app.push(&too_many).await), (413, "too_many_events".into()));
    let blanks = vec![b' '; (64 << 20) + 1];
    for (encoding, bomb) in [(GZIP, gzip(&blanks)), (ZSTD, zstd(&blanks))] {
        assert!(bomb.len() < 1 << 20);
        let reply = app.post_raw(OUTCOMES, &[JSON, encoding], bomb).await;
        assert_eq!(error(&reply), (413, "body_too_large".into()), "{encoding:?}");
    }
    let head = format!("content-length: {}\r\n\r\n", (10 << 20) + 1);
    let early = raw(&app, &head).await;
    assert!(early.starts_with("HTTP/1.1 413 "), "before the body is sent: {early}");
    app.stop().await;
}

#[tokio::test]
async fn a_body_without_length_is_bounded_as_it_comes() {
    let app = TestApp::start().await;
    let mut stream = open(&app, "transfer-encoding: chunked\r\n\r\n").await;
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(0x10000));
    // 160 chunks of 64 KiB are 10 MiB, which are taken; one byte more is not, and it is the last
    // that is sent, so that the answer is not lost by a reset.
    for _ in 0..160 {
        stream.write_all(chunk.as_bytes()).await.unwrap();
    }
    stream.write_all(b"1\r\n \r\n").await.unwrap();
    let mut answer = vec![0; 12];
    stream.read_exact(&mut answer).await.unwrap();
    assert_eq!(String::from_utf8_lossy(&answer), "HTTP/1.1 413");
    assert_eq!(counts(&app.push(&event(1)).await), (200, 1, 0, 0));
    app.stop().await;
}

/// A connection that has sent the head of a push.
async fn open(app: &TestApp, head: &str) -> TcpStream {
    let address = app.base().trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let start = format!(
        "POST {OUTCOMES} HTTP/1.1\r\nhost: {address}\r\ncontent-type: application/json\r\n{head}"
    );
    stream.write_all(start.as_bytes()).await.unwrap();
    stream
}

/// The first bytes of the answer to a head without a body.
async fn raw(app: &TestApp, head: &str) -> String {
    let mut stream = open(app, head).await;
    let mut answer = vec![0; 1_024];
    let length = stream.read(&mut answer).await.unwrap();
    String::from_utf8_lossy(&answer[..length]).into_owned()
}

#[tokio::test]
async fn a_415_says_what_is_accepted() {
    let app = TestApp::start().await;
    let body = || event(1).to_string().into_bytes();
    for headers in [
        vec![],
        vec![("content-type", "text/plain")],
        vec![("content-type", "application/x-www-form-urlencoded")],
        vec![("content-type", "application/json; charset=latin1")],
    ] {
        let reply = app.post_raw(OUTCOMES, &headers, body()).await;
        assert_eq!(error(&reply), (415, "unknown_content_type".into()));
        assert!(reply.body.contains("application/x-ndjson"));
    }
    for encoding in ["br", "compress", "deflate", "gzip, gzip", "gzip, zstd"] {
        let headers = [JSON, ("content-encoding", encoding)];
        let reply = app.post_raw(OUTCOMES, &headers, body()).await;
        assert_eq!(error(&reply), (415, "unknown_encoding".into()));
        assert!(reply.body.contains("plain, gzip or zstd"), "{}", reply.body);
    }
    app.stop().await;
}

fn by(source: &str, seq: u64) -> Value {
    let mut event = event(seq);
    event["source"] = json!(source);
    event["player"] = json!(format!("p-{seq}"));
    event
}

#[tokio::test]
async fn a_503_says_when_to_try_again() {
    let app = TestApp::start().await;
    let api = Arc::new((*app).clone());
    assert_eq!(api.push(&event(1)).await.status, 200);
    // The way in closes first, the server last, and between the two the judge catches up: then,
    // senders are told.
    let many: Vec<Value> = (1..=10_000).map(|seq| by("settle-b", seq)).collect();
    assert_eq!(api.push(&Value::Array(many)).await.json()["written"], 10_000);
    let asking = tokio::spawn(async move {
        let mut told = Vec::new();
        for seq in 2.. {
            match api.try_push(&event(seq)).await {
                Ok(reply) if reply.status == 200 => {}
                Ok(reply) => told.push(reply),
                Err(_) => break,
            }
        }
        told
    });
    app.stop().await;
    let told = asking.await.unwrap();
    assert!(!told.is_empty());
    for reply in told {
        assert_eq!(error(&reply), (503, "closing".into()));
        assert!(reply.header("retry-after").parse::<u64>().unwrap() > 0);
    }
}

#[tokio::test]
async fn other_methods_and_times_are_told_plainly() {
    let app = TestApp::start_with(Clock::System, |_| {}).await;
    assert_eq!(app.get("/api/v1/heartbeats").await.status, 405);
    let mut old = event(1);
    old["occurred_at"] = json!("1600-01-01T00:00:00Z");
    let mut early = event(2);
    early["occurred_at"] = json!("2999-01-01T00:00:00Z");
    let reply = app.push(&json!([old, early])).await;
    assert_eq!(counts(&reply), (422, 0, 0, 2));
    assert_eq!(reply.json()["errors"][0]["code"], "too_old");
    assert_eq!(reply.json()["errors"][1]["code"], "in_future");
    app.stop().await;
}
