//! Rows as the judge and the engine write them, for what reads them. Where the story matters and
//! not the rows, tests push outcomes instead.

use serde_json::{Value, json};
use sqlx::{ConnectOptions, Connection, SqliteConnection};

use super::TestApp;

/// A second connection to the database of a collector.
pub async fn connect(app: &TestApp) -> SqliteConnection {
    let path = app.database().strip_prefix("sqlite://").unwrap();
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
    options.busy_timeout(std::time::Duration::from_secs(10)).connect().await.unwrap()
}

/// One outcome, a day ago: too old for what is said of the last hour, and kept by retention.
pub const OUTCOME: &str = "INSERT INTO rollups VALUES ('settle', 'prod', \
    unixepoch() / 60 - 1440, 'processed', 1)";

/// Runs statements.
pub async fn run(app: &TestApp, statements: &[&'static str]) {
    let mut connection = connect(app).await;
    for statement in statements {
        sqlx::query(*statement).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
}

/// A confirmed leak as JSON (`audit::Finding`), of the n-th second of 2026-11-30T12:00.
pub fn leak(n: u32) -> Value {
    let signature = json!({"room": "r-77", "round": n.to_string(), "net": "100", "final": true});
    let at_us = 1_796_040_000_000_000_i64 + i64::from(n) * 1_000_000;
    let witness = |role: &str, seq: u32| {
        json!({"role": role, "position": {"collector": 1, "n": seq},
            "occurred_at": "2026-11-30T12:00:00Z", "service": "settle", "env": "prod",
            "source": "settle-1", "boot": "7", "seq": seq, "outcome": "processed",
            "window": {"len": 4, "cap": 4}, "trace_id": "trace-1"})
    };
    json!({
        "id": format!("{n:032x}"), "kind": "duplicate_leak",
        "subject": {"audit_key": {"ledger": "chips", "player": "p-1", "signature": signature}},
        "ordinal": 1, "severity": "critical", "state": "confirmed", "closed_because": null,
        "cause": "evicted", "order": "proven", "coverage": "full", "service": "settle",
        "env": "prod", "ledger": "chips", "source": "settle-1", "player": "p-1",
        "signature": signature, "count": 1, "players": 1, "first_us": at_us, "last_us": at_us,
        "amounts": {"overpaid": "100", "overcharged": "0", "underpaid": "0",
            "undercharged": "0", "exposure": "0"},
        "amounts_before_closing": null,
        "witnesses": [witness("accepted", 42), witness("accepted_again", 51)],
    })
}

/// Writes findings as the judge does.
pub async fn findings(app: &TestApp, findings: &[Value]) {
    let mut connection = connect(app).await;
    for finding in findings {
        let text = |name: &str| finding[name].as_str().map(str::to_owned);
        sqlx::query("INSERT INTO findings VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11,$10,NULL,1)")
            .bind(text("id"))
            .bind(text("kind"))
            .bind(text("severity"))
            .bind(text("state"))
            .bind(text("service"))
            .bind(text("env"))
            .bind(text("ledger"))
            .bind(text("player"))
            .bind(finding["first_us"].as_i64())
            .bind(finding["last_us"].as_i64())
            .bind(finding.to_string())
            .execute(&mut connection)
            .await
            .unwrap();
    }
    connection.close().await.unwrap();
}
