//! Start and stop of the whole collector.

use crate::support::{TestApp, TestProcess};

#[tokio::test]
async fn serves_and_stops() {
    let app = TestApp::start().await;
    assert_eq!(app.get("/-/healthy").await.status, 200);
    let app = app.restart().await;
    assert_eq!(app.get_json("/-/ready").await["ready"], true);
    app.stop().await;
}

#[tokio::test]
async fn stops_at_sigterm() {
    let mut process = TestProcess::start().await;
    assert_eq!(process.get("/-/healthy").await.status, 200);
    process.terminate();
    assert!(process.wait().await.success());
    let mut process = process.restart().await;
    assert_eq!(process.get("/-/healthy").await.status, 200);
    process.kill();
}
