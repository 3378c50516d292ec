//! The demo, as somebody sees it who starts it.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Api, program};

/// From the start until there is something to see (building aside).
const SOON: Duration = Duration::from_secs(30);

#[tokio::test]
async fn soon_there_is_traffic_a_leak_a_live_eviction_and_an_alert() {
    let started = Instant::now();
    let mut command = program();
    let folder = tempfile::tempdir().unwrap();
    command.args(["demo", "--listen", "127.0.0.1:0"]).env("TMPDIR", folder.path());
    let mut demo = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let address = lines.find(|line| line.trim().starts_with("http://")).unwrap();
    let api = Api::new(address.trim().to_owned());
    for (path, list, of) in [
        ("/api/v1/findings?kind=duplicate_leak&state=confirmed", "findings", "a leak"),
        ("/api/v1/findings?kind=live_eviction&state=confirmed", "findings", "a live eviction"),
        ("/api/v1/alerts?state=firing", "alerts", "an alert"),
        ("/api/v1/outcomes", "outcomes", "traffic"),
    ] {
        api.wait_for(path, |answer| !answer[list].as_array().unwrap().is_empty()).await;
        assert!(started.elapsed() < SOON, "{of} took too long");
    }
    assert!(api.get("/").await.body.contains("settle-poker"));
    let id = demo.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let status = tokio::task::spawn_blocking(move || demo.wait().unwrap()).await.unwrap();
    assert!(status.success());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "its folder goes with it");
}
