//! `verify` and `rebuild`: what is stored is what the log says, or each difference is named.

use std::collections::BTreeSet;
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
    assert!(create(database, statement).await > 0);
}

/// Runs a statement and says how many rows it changed.
async fn create(database: &str, statement: &'static str) -> u64 {
    let path = database.strip_prefix("sqlite://").unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    let mut connection = options.connect().await.unwrap();
    let done = sqlx::query(statement).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    done.rows_affected()
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
        "INSERT INTO players (player, body) VALUES (1, x'01')",
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
    execute(&database, "DELETE FROM players").await;
    assert!(told(&run("verify", &database)).contains("rows differ"));
    assert_eq!(run("rebuild", &database).status.code(), Some(0));
    process = process.restart().await;
    assert_eq!(findings(&process).await, before);
    is_right(&database);
}

#[tokio::test]
async fn what_can_not_be_verified_is_said() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("folder.db")).unwrap();
    std::fs::write(folder.path().join("empty.db"), "").unwrap();
    std::fs::write(folder.path().join("text.db"), "no database\n".repeat(100)).unwrap();
    let damaged = [b"SQLite format 3\0".as_slice(), &[7; 5_000]].concat();
    std::fs::write(folder.path().join("damaged.db"), damaged).unwrap();
    let other = format!("sqlite://{}", folder.path().join("other.db").display());
    std::fs::write(folder.path().join("other.db"), "").unwrap();
    create(&other, "CREATE TABLE others (id)").await;
    let names = || {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect::<BTreeSet<_>>()
    };
    let before = names();
    for command in ["verify", "rebuild"] {
        for (name, text) in [
            ("none.db", "there is no such file; check the path"),
            ("no/folder.db", "there is no such file; check the path"),
            ("folder.db", "the file can't be read: Is a directory"),
            ("empty.db", "the file is no database of dedupwatch; check the path"),
            ("text.db", "the file is no database of dedupwatch; check the path"),
            ("other.db", "the file is no database of dedupwatch; check the path"),
            ("damaged.db", "the file is damaged (file is not a database); put a copy"),
        ] {
            let database = format!("sqlite://{}", folder.path().join(name).display());
            let refused = run(command, &database);
            assert_eq!(refused.status.code(), Some(1), "{command} {name}");
            let why = String::from_utf8(refused.stderr).unwrap();
            let told = format!("dedupwatch: can't use the database {database}: {text}");
            assert!(why.starts_with(&told), "{command} {name}: {why}");
            assert!(!why.contains("code"), "{command} {name}: {why}");
            assert_eq!(names(), before, "{command} {name}: nothing is made");
        }
    }
}

#[tokio::test]
async fn a_log_of_another_collector_is_not_put_in_place() {
    let mut process = busy().await;
    let database = process.database();
    let found = findings(&process).await;
    process.kill();
    let mut rebuild = program();
    rebuild.args(["rebuild", "--database", &database]).env("DEDUPWATCH_COLLECTOR", "other");
    let refused = rebuild.output().unwrap();
    let why = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1), "{why}");
    assert!(why.contains("no collector called \"other\" has written to it"), "{why}");
    process = process.restart().await;
    assert_eq!(findings(&process).await, found);
}

#[test]
fn no_address_is_offered_where_nothing_listens() {
    for command in ["verify", "rebuild"] {
        let help = String::from_utf8(program().args([command, "-h"]).output().unwrap().stdout);
        let help = help.unwrap();
        assert!(help.contains("--database") && help.contains("--config"), "{help}");
        assert!(!help.contains("listen"), "{help}");
    }
}
