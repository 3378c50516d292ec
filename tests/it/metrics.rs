//! `/metrics` as its readers see it: `promtool`, and a real Prometheus (both of Debian's package
//! `prometheus`) across a restart of the collector.

use std::io::Write as _;
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use dedupwatch::clock::Clock;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::support::{Api, LOOK_EVERY, PATIENCE, TestApp, event, events};

/// A Prometheus that scrapes one collector. Dropped, it is killed.
struct Prometheus {
    api: Api,
    child: Child,
    _folder: TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    async fn start(target: SocketAddr) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("prometheus.yml");
        let text = format!(
            "global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}\n\
             scrape_configs:\n\
             - job_name: dedupwatch\n\
             \x20 static_configs: [{{targets: ['{target}']}}]\n"
        );
        std::fs::write(&config, text).unwrap();
        let address = free_address();
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--log.level=error")
            .spawn()
            .expect("prometheus: see tests/run");
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect(address).await.is_err() {
            assert!(Instant::now() < end, "Prometheus does not listen");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Self { api: Api::new(format!("http://{address}")), child, _folder: folder }
    }

    /// Waits until an expression has one value, and this one.
    async fn wait_for(&self, expression: &str, value: &str) {
        let encoded: String = expression.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let path = format!("/api/v1/query?query={encoded}");
        self.api
            .wait_for(&path, |answer| {
                let result = answer["data"]["result"].as_array();
                result.is_some_and(|all| all.len() == 1 && all[0]["value"][1] == value)
            })
            .await;
    }
}

/// An address that is free now; the collector and Prometheus must be found under it again.
fn free_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

const PROCESSED: &str =
    r#"dedup_outcomes_total{service="settle-poker",env="prod",outcome="processed"}"#;

#[tokio::test]
async fn a_real_prometheus_sees_the_right_totals_across_a_restart() {
    let address = free_address();
    let app = TestApp::start_with(Clock::System, |config| config.listen = address).await;
    let prometheus = Prometheus::start(address).await;
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
