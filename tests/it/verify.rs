//! `verify` and `rebuild`: what is stored is what the log says, or each difference is named.

use std::process::Output;

use serde_json::{Value, json};
use sqlx::{ConnectOptions as _, Connection as _};

use crate::support::{TestProcess, event, events, heartbeat, program};

fn run(command: &str, database: &str) -> Output {
    program().args([command, "--database", database]).output().unwrap()
}

fn told(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[track_caller]
fn is_right(database: &str) {
    let verified = run("verify", database);
    let text = told(&verified) + &String::from_utf8_lossy(&verified.stderr);
    assert_eq!(verified.status.code(), Some(0), "{text}");
    assert!(text.ends_with("records folded: no difference\n"), "{text}");
}

/// A leak, a hole, a refused event, an eviction, and a person's decision about the leak.
async fn busy() -> TestProcess {
    let process = TestProcess::start().await;
    process.push(&events(1, 20)).await;
    let mut again = event(21);
    (again["player"], again["signature"]["round"]) = (json!("p-3"), json!(3));
    let mut evicting = event(22);
    evicting["evicted"] = json!([{"room": "r-1", "round": 5, "net": "100", "final": true}]);
    let mut bad = event(23);
    bad["signature"]["net"] = json!("much");
    process.push(&Value::Array(vec![again, evicting, bad, event(40)])).await;
    process.heartbeat(&json!([heartbeat(40)])).await;
    let leaks = "/api/v1/findings?kind=duplicate_leak";
    let one = |answer: &Value| answer["findings"].as_array().is_some_and(|it| it.len() == 1);
    let leak = process.wait_for(leaks, one).await["findings"][0]["id"].clone();
    let close = format!("/api/v1/findings/{}/close", leak.as_str().unwrap());
    let reply = process.post(&close, &json!({"reason": "made_good", "note": "T-1"})).await;
    assert!(reply.status < 300, "{reply:?}");
    let closed = |answer: &Value| answer["findings"].as_array().is_some_and(|it| it.len() == 1);
    process.wait_for(&format!("{leaks}&state=closed"), closed).await;
    process
}

/// All findings, but for the address of the server in their links.
async fn findings(process: &TestProcess) -> Vec<Value> {
    let mut answer = process.get_json("/api/v1/findings").await;
    let findings = answer["findings"].as_array_mut().unwrap();
    for finding in &mut *findings {
        finding.as_object_mut().unwrap().remove("help_url");
    }
    std::mem::take(findings)
}

async fn execute(database: &str, statement: &'static str) {
    let path = database.strip_prefix("sqlite://").unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut connection = options.connect().await.unwrap();
    assert!(sqlx::query(statement).execute(&mut connection).await.unwrap().rows_affected() > 0);
    connection.close().await.unwrap();
}

#[tokio::test]
async fn what_is_stored_is_what_the_log_says_while_the_server_runs_and_after_changed_settings() {
    let mut process = busy().await;
    is_right(&process.database());
    process.set_variable("DEDUPWATCH_AUDIT_BLOCK_GRACE", "1s");
    process = process.restart().await;
    let reply = process.push(&events(41, 50)).await;
    assert_eq!(reply.status, 200);
    let set = |answer: &Value| answer["outcomes"].as_array().unwrap().iter().any(is_settings);
    process.wait_for("/api/v1/outcomes?limit=1000", set).await;
    is_right(&process.database());
}

fn is_settings(record: &Value) -> bool {
    record["kind"] == "settings" && record["body"]["block_grace_us"] == "1000000"
}

#[tokio::test]
async fn each_difference_is_named_and_a_rebuild_mends_it_and_tells_nobody() {
    let mut process = busy().await;
    let database = process.database();
    let refused = run("rebuild", &database);
    assert_eq!(refused.status.code(), Some(1));
    let why = String::from_utf8(refused.stderr).unwrap();
    assert!(why.contains("another dedupwatch uses it; stop that one first"), "{why}");

    let before = findings(&process).await;
    process.kill();
    for statement in [
        "UPDATE rollups SET count = count + 1",
        "DELETE FROM findings WHERE kind = 'duplicate_leak'",
        "UPDATE finding_sums SET exposure = '7' WHERE kind = 'duplicate_leak'",
        "DELETE FROM players WHERE player = (SELECT min(player) FROM players)",
    ] {
        execute(&database, statement).await;
    }
    let found = run("verify", &database);
    assert_eq!(found.status.code(), Some(1));
    let text = told(&found);
    for table in ["rollups:", "findings: 1 rows differ", "finding_sums: ", "players: 1 rows differ"]
    {
        assert!(text.contains(table), "{table} {text}");
    }
    assert!(text.contains("by the log: ") && text.contains("no such row"), "{text}");

    let rebuilt = run("rebuild", &database);
    assert_eq!(rebuilt.status.code(), Some(0), "{:?}", String::from_utf8(rebuilt.stderr));
    is_right(&database);
    process = process.restart().await;
    assert_eq!(findings(&process).await, before);
    is_right(&database);
}

#[tokio::test]
async fn what_can_not_be_verified_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let database = format!("sqlite://{}", folder.path().join("none.db").display());
    let absent = run("verify", &database);
    assert_eq!(absent.status.code(), Some(1));
    let why = String::from_utf8(absent.stderr).unwrap();
    assert!(why.contains("none.db"), "{why}");
    assert!(!folder.path().join("none.db").exists(), "nothing is made");
}
