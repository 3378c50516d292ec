//! `/metrics` as its readers see it: `promtool`, and a real Prometheus (both of Debian's package
//! `prometheus`) across a restart of the collector.

use std::io::Write as _;
use std::net::SocketAddr;
use std::process::{Command, Stdio};

use dedupwatch::clock::Clock;

use crate::support::prometheus::{Prometheus, free_address};
use crate::support::{TestApp, event, events};

/// A Prometheus that scrapes one collector.
async fn prometheus(target: SocketAddr) -> Prometheus {
    let config = format!(
        "global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}\n\
         scrape_configs:\n\
         - job_name: dedupwatch\n\
         \x20 static_configs: [{{targets: ['{target}']}}]\n"
    );
    Prometheus::start(&config).await
}

const PROCESSED: &str =
    r#"dedup_outcomes_total{service="settle-poker",env="prod",outcome="processed"}"#;

#[tokio::test]
async fn a_real_prometheus_sees_the_right_totals_across_a_restart() {
    let address = free_address();
    let app = TestApp::start_with(Clock::System, |config| config.listen = address).await;
    let prometheus = prometheus(address).await;
    assert_eq!(app.push(&events(1, 30)).await.status, 200);
    assert_eq!(app.push(&events(21, 40)).await.status, 200);
    prometheus.wait_for(PROCESSED, "40").await;
    prometheus.wait_for(r#"dedupwatch_ingest_events_total{result="repeated"}"#, "10").await;
    let app = app.restart().await;
    assert_eq!(app.push(&events(41, 42)).await.status, 200);
    prometheus.wait_for(PROCESSED, "42").await;
    prometheus.wait_for(&format!("resets({PROCESSED}[1h])"), "0").await;
    let never = r#"dedup_outcomes_total{service="settle-poker",outcome="unknown"}"#;
    prometheus.wait_for(never, "0").await;
    prometheus.wait_for("dedup_check_duration_seconds_count", "42").await;
    prometheus.wait_for(r#"dedup_window_capacity{service="settle-poker"}"#, "4").await;
    prometheus.wait_for(r#"dedup_sources{service="settle-poker",state="open"}"#, "1").await;
    prometheus.wait_for("up", "1").await;
    app.stop().await;
}

#[tokio::test]
async fn the_text_is_what_promtool_wants_and_says_what_it_is() {
    let app = TestApp::start().await;
    let mut evicting = event(1);
    evicting["evicted"] =
        serde_json::json!([{"room": "r-0", "round": "1", "net": "5", "final": true}]);
    assert_eq!(app.push(&evicting).await.status, 200);
    let mut bad = event(2);
    bad["signature"]["net"] = "1e3".into();
    assert_eq!(app.push(&bad).await.status, 422);
    let reply = app.get("/metrics").await;
    assert_eq!(reply.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let evicted = r#"dedup_outcomes_total{service="settle-poker",env="prod",outcome="evicted"} 1"#;
    for line in [
        evicted,
        r#"dedupwatch_ingest_events_total{result="written"} 1"#,
        r#"dedupwatch_ingest_events_total{result="rejected"} 1"#,
        r#"dedup_response_duration_seconds_count{service="settle-poker",env="prod"} 1"#,
    ] {
        assert!(reply.body.lines().any(|l| l == line), "no {line}: {}", reply.body);
    }
    let mut promtool = Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("promtool: see tests/run");
    promtool.stdin.take().unwrap().write_all(reply.body.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    app.stop().await;
}
