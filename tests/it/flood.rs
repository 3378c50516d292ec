//! Much of one thing at once: many findings, many boots, a hole without end, and names that are
//! nearly the same. Bounded, exact, and still answered.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::clock::Clock;
use dedupwatch::config::Webhook;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use sqlx::Connection as _;

use crate::support::receiver::Receiver;
use crate::support::{TestApp, event, now_us, rfc3339, seed};

/// Findings of a kind and service that one minute opens singly (audit.md).
const ROWS_A_MINUTE_MAX: usize = 1_000;

fn rows(answer: &Value) -> &Vec<Value> {
    answer["findings"].as_array().unwrap()
}

fn number(value: &Value) -> i128 {
    value.as_str().unwrap_or_else(|| panic!("{value}")).parse().unwrap()
}

/// All parts of a list; `then` is called after the first.
async fn all(app: &TestApp, path: &str, then: impl AsyncFnOnce()) -> Vec<Value> {
    let first = app.get_json(path).await;
    then().await;
    let (mut all, mut next) = (rows(&first).clone(), first["next"].clone());
    while let Some(after) = next.as_str() {
        let part = app.get_json(&format!("{path}&after={after}")).await;
        all.extend(rows(&part).iter().cloned());
        next = part["next"].clone();
    }
    all
}

fn of_csv(body: &str) -> Vec<BTreeMap<String, String>> {
    csv::Reader::from_reader(body.as_bytes()).deserialize().map(Result::unwrap).collect()
}

/// A settlement booked to another room.
fn cross_room(seq: u64) -> Value {
    let mut event = event(seq);
    // Sums of these do not fit into 64 bits.
    event["signature"]["net"] = json!(i64::MAX - seq.cast_signed());
    event["booked_room"] = json!("another");
    event
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_findings_in_a_second_are_few_rows_exact_sums_and_one_alert() {
    const FINDINGS: u64 = 10_000;
    let receiver = Receiver::start().await;
    let url = receiver.url();
    let app = TestApp::start_with(Clock::System, |config| config.webhook = Some(Webhook { url }));
    let app = app.await;
    let batch: Value = (1..=FINDINGS).map(cross_room).collect();
    assert_eq!(app.push(&batch).await.json()["written"], FINDINGS);
    let list = "/api/v1/findings?kind=cross_room_booking&limit=300";
    let counted = async || {
        // Pages and API answer meanwhile.
        for path in ["/", "/findings", "/alerts", "/metrics", "/sources"] {
            assert_eq!(app.get(path).await.status, 200, "{path}");
        }
        all(&app, list, async || {}).await
    };
    let mut found = counted().await;
    let sum =
        |found: &[Value], name: &str| found.iter().map(|row| number(&row[name])).sum::<i128>();
    for _ in 0..300 {
        if sum(&found, "count") == i128::from(FINDINGS) {
            break;
        }
        tokio::time::sleep(crate::support::LOOK_EVERY).await;
        found = counted().await;
    }
    assert_eq!(sum(&found, "count"), i128::from(FINDINGS));
    assert_eq!(found.len(), ROWS_A_MINUTE_MAX + 1);
    let more: Vec<_> = found.iter().filter(|row| row["cause"] == "more").collect();
    assert_eq!((more.len(), &more[0]["count"]), (1, &json!("9000")));
    let wanted = (1..=FINDINGS).map(|seq| i128::from(i64::MAX) - i128::from(seq)).sum::<i128>();
    assert_eq!(sum(&found, "exposure"), wanted);
    let services = app.get_json("/api/v1/services").await;
    let overview = &services["services"][0]["ledgers"]["settle-poker"];
    assert_eq!(number(&overview["exposure"]), wanted);
    let table = of_csv(&app.get("/api/v1/findings.csv?kind=cross_room_booking").await.body);
    let same = ["id", "state", "player", "count", "exposure", "first_at", "last_at", "cause"];
    assert_eq!(table.len(), found.len());
    for (line, row) in table.iter().zip(&found) {
        for name in same {
            assert_eq!(line[name], row[name].as_str().unwrap_or_default(), "{name}");
        }
    }
    let alerts = app.get_json("/api/v1/alerts").await;
    let alerts = alerts["alerts"].as_array().unwrap();
    let named = |name| alerts.iter().filter(|alert| alert["rule"] == name).count();
    assert_eq!(named("CrossRoomBooking"), 1, "{alerts:?}");
    let told = receiver.take();
    assert!(!told.is_empty() && told.len() <= 4, "one, and once more for ten times as much");
    app.stop().await;
}

#[tokio::test]
async fn rows_that_change_between_pages_are_neither_lost_nor_told_twice() {
    let app = TestApp::start().await;
    let leak = |n: u64, again: u64| {
        let mut event = event(1_000 * again + n);
        event["player"] = json!(format!("p-{n}"));
        event["signature"]["round"] = json!(n);
        event["occurred_at"] = json!(rfc3339(now_us() - 60_000_000 + (n * 10).cast_signed()));
        event
    };
    let batch = (0..2).flat_map(|again| (1..=20).map(move |n| (n, again)));
    let batch: Value = batch.map(|(n, again)| leak(n, again)).collect();
    assert_eq!(app.push(&batch).await.status, 200);
    let confirmed = "/api/v1/findings?kind=duplicate_leak&state=confirmed";
    app.wait_for(confirmed, |answer| rows(answer).len() == 20).await;
    // While somebody pages: one more of an old one, a new one, and one is closed.
    let between = async || {
        let mut old = leak(3, 2);
        old["occurred_at"] = json!(rfc3339(now_us()));
        let mut new = [leak(21, 0), leak(21, 1)];
        new.iter_mut().for_each(|event| event["occurred_at"] = json!(rfc3339(now_us())));
        let [first, second] = new;
        assert_eq!(app.push(&json!([old, first, second])).await.status, 200);
        let grown = |answer: &Value| {
            let three = rows(answer).iter().find(|row| row["player"] == "p-3");
            rows(answer).len() == 21 && three.is_some_and(|row| row["count"] == "2")
        };
        let now = app.wait_for(confirmed, grown).await;
        let five = rows(&now).iter().find(|row| row["player"] == "p-5").unwrap();
        let close = format!("/api/v1/findings/{}/close", five["id"].as_str().unwrap());
        assert!(app.post(&close, &json!({"reason": "expected"})).await.status < 300);
        app.wait_for(confirmed, |answer| rows(answer).len() == 20).await;
    };
    let path = "/api/v1/findings?kind=duplicate_leak&state=confirmed&limit=4";
    let seen = all(&app, path, between).await;
    let players: Vec<&str> = seen.iter().map(|row| row["player"].as_str().unwrap()).collect();
    let distinct: BTreeSet<&str> = players.iter().copied().collect();
    assert_eq!(distinct.len(), players.len(), "nothing twice: {players:?}");
    let untouched = (1..=20).filter(|n| ![3, 5].contains(n)).map(|n| format!("p-{n}"));
    for player in untouched {
        assert!(distinct.contains(player.as_str()), "{player}: {players:?}");
    }
    // Whoever needs one instant sees that these were of two.
    let services = app.get("/api/v1/services").await;
    let parts = app.get(path).await;
    assert_eq!(parts.header("x-dedupwatch-as-of"), services.header("x-dedupwatch-as-of"));
    let now = all(&app, path, async || {}).await;
    let sum: i128 = now.iter().map(|row| number(&row["overpaid"])).sum();
    let shown = &services.json()["services"][0]["ledgers"]["settle-poker"];
    assert_eq!((sum, number(&shown["overpaid"])), (2_100, 2_100));
    app.stop().await;
}

/// Bytes of the judge's state of a source.
async fn source_bytes(app: &TestApp) -> i64 {
    let mut connection = seed::connect(app).await;
    let bytes = "SELECT sum(length(body)) FROM audit_state WHERE part = 'source'";
    let bytes = sqlx::query_scalar(bytes).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    bytes
}

#[tokio::test]
async fn a_source_of_a_thousand_boots_and_a_hole_of_2_to_the_62_stay_small() {
    const HOLE: u64 = 1 << 62;
    let app = TestApp::start_with(Clock::System, |config| config.audit.gap_grace_us = 0).await;
    let of_boot = |boot: u64, seq: u64, n: u64| {
        let mut event = event(seq);
        event["boot"] = json!(boot);
        event["player"] = json!(format!("p-{n}"));
        event["signature"]["round"] = json!(n);
        event
    };
    // Each has a hole, and the last one of 2^62 numbers.
    let batch = (1..=1_000).flat_map(|boot| {
        let last = if boot == 1_000 { HOLE + 2 } else { 3 };
        [of_boot(boot, 1, 2 * boot), of_boot(boot, last, 2 * boot + 1)]
    });
    assert_eq!(app.push(&batch.collect()).await.json()["written"], 2_000);
    let gaps = "/api/v1/findings?kind=telemetry_gap&limit=1000";
    let widest = |answer: &Value| {
        let counts = rows(answer).iter().map(|row| number(&row["count"]));
        counts.max() == Some(i128::from(HOLE))
    };
    let found = app.wait_for(gaps, widest).await;
    assert!(rows(&found).len() <= 1_000, "one for a boot at most");
    let source = app.get_json("/api/v1/sources").await["sources"][0].clone();
    assert_eq!(source["boot"]["missing"], HOLE.to_string());
    assert!(app.get("/sources").await.body.contains("missing: 2 to 4"), "the hole is shown");
    assert!(source_bytes(&app).await < 200_000, "256 boots are remembered");
    // What comes of the hole is still taken, and counted.
    let filled = app.push(&json!([of_boot(1_000, 2, 1), of_boot(1_000, HOLE, 2)])).await;
    assert_eq!(filled.json()["written"], 2);
    let less = |answer: &Value| {
        rows(answer).iter().any(|row| number(&row["count"]) == i128::from(HOLE - 2))
    };
    app.wait_for(gaps, less).await;
    let app = app.restart().await;
    assert_eq!(app.push(&json!([of_boot(1_000, HOLE, 2)])).await.json()["repeated"], 1);
    for path in ["/", "/sources", "/findings", "/metrics", "/api/v1/sources"] {
        assert_eq!(app.get(path).await.status, 200, "{path}");
    }
    app.stop().await;
}

/// Names that differ by case, by the form of a letter, or by what is not seen, and some that mean
/// something where they are shown.
const NAMES: [&str; 11] = [
    "jos\u{e9}",
    "jose\u{301}",
    "JOS\u{c9}",
    "Jos\u{e9}",
    "jos\u{e9} ",
    "'=jos\u{e9}",
    "=jos\u{e9}",
    "jos\u{e9}\u{200b}",
    "\u{202e}\u{e9}soj",
    "\"jos\u{e9}\\\"",
    "<i>jos\u{e9}",
];

/// One settlement, accepted twice by each of those names as service, source, ledger and player;
/// and in one ledger once by each of them as player, and once in each of them as room.
fn of_names() -> Vec<Value> {
    let mut batch = Vec::new();
    for (n, name) in (1..).zip(NAMES) {
        let mut one = event(1);
        one["signature"]["round"] = json!(1);
        for field in ["service", "source", "ledger", "player"] {
            one[field] = json!(name);
        }
        let mut again = one.clone();
        again["seq"] = json!(2);
        let mut of_player = one.clone();
        for field in ["service", "source", "ledger"] {
            of_player[field] = json!("all");
        }
        of_player["seq"] = json!(2 * n);
        let mut of_room = of_player.clone();
        (of_room["seq"], of_room["player"]) = (json!(2 * n + 1), json!("all"));
        of_room["signature"]["room"] = json!(name);
        batch.extend([one, again, of_player, of_room]);
    }
    batch
}

#[tokio::test]
async fn names_that_are_nearly_the_same_are_not() {
    let app = TestApp::start().await;
    let mut batch = of_names();
    let of_nul = ["jos\u{e9}\0", "\0"].map(|name| {
        let mut event = event(9);
        event["player"] = json!(name);
        event
    });
    batch.extend(of_nul);
    let reply = app.push(&Value::Array(batch)).await;
    assert_eq!(reply.json()["written"], 4 * NAMES.len(), "{}", reply.body);
    assert_eq!(reply.json()["errors"][1]["code"], "control_character");
    // One leak for each, of each one's own ledger; none where all are in one ledger.
    let leaks = "/api/v1/findings?kind=duplicate_leak";
    let found = app.wait_for(leaks, |answer| rows(answer).len() >= NAMES.len()).await;
    let wanted = BTreeSet::from(NAMES);
    for field in ["player", "ledger", "service", "source"] {
        let told = rows(&found).iter().map(|row| row[field].as_str().unwrap());
        assert_eq!(told.collect::<BTreeSet<_>>(), wanted, "{field}");
    }
    assert_eq!(rows(&found).len(), NAMES.len());
    let table = of_csv(&app.get("/api/v1/findings.csv?kind=duplicate_leak").await.body);
    let shown: BTreeSet<&str> = table.iter().map(|line| line["player"].as_str()).collect();
    assert_eq!(shown.len(), NAMES.len());
    assert!(shown.contains("'=jos\u{e9}") && shown.contains("''=jos\u{e9}"), "{shown:?}");
    let metrics = app.get("/metrics").await.body;
    for name in NAMES {
        let label = name.replace('\\', "\\\\").replace('"', "\\\"");
        let line = format!("dedup_overpaid_minor_units{{service=\"{label}\"");
        assert_eq!(metrics.matches(&line).count(), 1, "{name}: {metrics}");
        let name = utf8_percent_encode(name, NON_ALPHANUMERIC);
        let page = app.get(&format!("/players/{name}/{name}")).await;
        assert!(page.status == 200 && !page.body.contains("<i>"), "{name}");
        assert_eq!(page.body.matches("Duplicate leak").count(), 1, "{name}: {}", page.body);
        let of_player = app.get_json(&format!("/api/v1/players/{name}/{name}")).await;
        assert_eq!(of_player["deliveries"].as_array().unwrap().len(), 2, "{name}");
        let filtered = app.get_json(&format!("{leaks}&player={name}")).await;
        assert_eq!(rows(&filtered).len(), 1, "{name}");
    }
    app.stop().await;
}
