//! The kit at work: a real Prometheus with our configuration scrapes a collector while simulated
//! services go wrong, and hands its alerts to a real Alertmanager. Every expression of every
//! dashboard and of every rule must return data.

use std::time::Instant;

use dedupwatch::clock::Clock;
use dedupwatch::config::{Config, Webhook};
use dedupwatch::limits::{SECOND_US, SILENCE_US};
use dedupwatch::simulate::StreamSettings;
use dedupwatch::simulate::run::{Pace, play};
use serde_json::{Value, json};

use super::dashboards::{Dashboard, array, rules, text};
use super::kit;
use crate::support::prometheus::{Alertmanager, Prometheus, encoded};
use crate::support::receiver::{Answer, Receiver};
use crate::support::{LOOK_EVERY, PATIENCE, TestApp, event, heartbeat, now_us, transition};

/// What goes wrong. The dashboard of one service shows the first one, so most of it is there.
const FAULTS: [&str; 6] = [
    "window-of-3@10s+290s/0",
    "two-guards@30s+200s/0",
    "one-counter@30s+200s/1",
    "effect-failed@30s+200s/2",
    "cross-room@30s+200s/2",
    "lost-telemetry@255s+10s/2",
];
const LENGTH_US: i64 = 300 * SECOND_US;
const SPEED: f64 = 15.0;

/// What holds in this world, so that its expression has data as it stands. `DedupOwnAlert` is the
/// name of two rules.
const HOLDS: [&str; 9] = [
    "DedupDuplicateLeak",
    "DedupFalseBlock",
    "DedupMoneyOpen",
    "DedupOwnAlert",
    "DedupLiveEviction",
    "DedupWindowHeadroomGone",
    "DedupSourceSilent",
    "DedupServiceSilent",
    "DedupwatchDown",
];

/// What must have data so that an alert *could* fire. Where the alert is to fire: its expression.
/// Else its condition is rightly false, and an expression that is false returns nothing, just as
/// one with a typo does; so it is taken apart into what it compares:
///
/// - `A unless on (l) B`: both A and B,
/// - `absent(A)`: A,
/// - `A > 1` (or another comparison with a number): A.
fn evidence(alert: &str, expression: &str) -> Vec<String> {
    if HOLDS.contains(&alert) {
        return vec![expression.to_owned()];
    }
    if let Some((left, right)) = expression.split_once(" unless on (instance) ") {
        return [evidence(alert, left), evidence(alert, right)].concat();
    }
    if let Some(inner) = expression.strip_prefix("absent(") {
        return vec![inner.trim_end().strip_suffix(')').unwrap().to_owned()];
    }
    let words: Vec<&str> = expression.split_whitespace().collect();
    let [left @ .., operator, number] = words.as_slice() else { return vec![expression.into()] };
    let compares = ["==", ">", "<", ">=", "<="].contains(operator) && number.parse::<f64>().is_ok();
    vec![if compares { left.join(" ") } else { expression.to_owned() }]
}

#[test]
fn conditions_are_taken_apart_into_what_they_compare() {
    let of = |expression| evidence("rests", expression);
    assert_eq!(of("a > 5"), ["a"]);
    assert_eq!(
        of("sum by (b) (\n  increase(a[15m])\n) > 2\n"),
        ["sum by (b) ( increase(a[15m]) )"]
    );
    assert_eq!(of("up == 1 unless on (instance) a"), ["up", "a"]);
    assert_eq!(of("absent(up{job=\"x\"})"), ["up{job=\"x\"}"]);
    assert_eq!(evidence("DedupFalseBlock", "a > 5"), ["a > 5"]);
}

/// An expression of a dashboard as Grafana sends it: `All` of the variables, or the one chosen.
fn filled(dashboard: &str, expression: &str) -> String {
    let (service, env) =
        if dashboard == "service" { ("settle-poker", "prod") } else { (".+", ".+") };
    let filled = expression.replace("$service", service).replace("$env", env);
    let filled = filled.replace("$__rate_interval", "1m").replace("$__range", "1h");
    assert!(!filled.contains('$'), "{filled}");
    filled
}

/// Everything that must return data: where it stands, and the expression.
fn expressions() -> Vec<(String, String)> {
    let mut all = Vec::new();
    for dashboard in Dashboard::all() {
        for (place, expression) in dashboard.expressions() {
            all.push((place, filled(&dashboard.name, expression)));
        }
    }
    for (name, expression) in rules() {
        let is_recorded = name.contains(':');
        let wanted = if is_recorded { vec![expression] } else { evidence(&name, &expression) };
        all.extend(wanted.into_iter().map(|expression| (name.clone(), expression)));
    }
    all
}

/// The configuration of the kit for another collector and another Alertmanager, in a hurry. A
/// second target answers never, so that `DedupwatchDown` holds.
fn config(app: &TestApp, alertmanager: &Alertmanager) -> String {
    let text = std::fs::read_to_string(kit("prometheus/prometheus.yml")).unwrap();
    let address = app.base().strip_prefix("http://").unwrap();
    let rules = format!("{}/", kit("prometheus/rules").display());
    let mut config = text;
    for (ours, here) in [
        ("targets: [\"127.0.0.1:9736\"]", format!("targets: [\"{address}\", \"127.0.0.1:1\"]")),
        ("127.0.0.1:9736", address.to_owned()),
        ("127.0.0.1:9093", alertmanager.address().to_string()),
        ("15s", "1s".to_owned()),
        ("- rules/", format!("- {rules}")),
    ] {
        assert!(config.contains(ours), "{ours} is not in prometheus.yml");
        config = config.replace(ours, &here);
    }
    config
}

/// Services that go wrong for five minutes, in twenty seconds; deliveries that move; an outcome
/// that is rejected; and one source that says nothing after its first heartbeat.
async fn go_wrong(app: &TestApp) {
    let mut lost = heartbeat(0);
    lost["service"] = json!("settle-lost");
    lost["ledgers"] = json!(["settle-lost"]);
    assert_eq!(app.heartbeat(&lost).await.status, 200);
    assert_eq!(app.transition(&transition(1)).await.status, 200);
    let mut bad = event(1);
    bad["signature"]["net"] = json!("1e3");
    assert_eq!(app.push(&bad).await.status, 422);
    let pace = Pace::faster(now_us(), LENGTH_US, SPEED, 45 * SECOND_US);
    let settings = StreamSettings {
        seed: 1,
        start_us: pace.game_us,
        length_us: LENGTH_US,
        players: 20,
        tag: None,
        faults: FAULTS.iter().map(|fault| fault.parse().unwrap()).collect(),
    };
    let played = play(app.base(), settings, pace, std::future::pending()).await.unwrap();
    assert_eq!(played.unclear, [] as [String; 0]);
    // All others have said goodbye.
    app.clock().advance(SILENCE_US + 31 * SECOND_US);
}

/// Whether an answer of the API has a number. A share of nothing has none.
fn has_data(answer: &Value) -> bool {
    let result = answer["data"]["result"].as_array();
    result.is_some_and(|all| all.iter().any(|series| series["value"][1] != "NaN"))
}

/// Waits until every expression has data; names all that have none.
async fn all_have_data(prometheus: &Prometheus) {
    let mut waiting = expressions();
    assert!(waiting.len() > 80, "only {}", waiting.len());
    let end = Instant::now() + PATIENCE;
    while !waiting.is_empty() {
        let mut without = Vec::new();
        for (place, expression) in waiting {
            let reply = prometheus.api().get(&Prometheus::query(&expression)).await;
            assert_eq!(reply.status, 200, "{place}: {expression}: {}", reply.body);
            if !has_data(&reply.json()) {
                without.push((place, expression));
            }
        }
        waiting = without;
        assert!(waiting.is_empty() || Instant::now() < end, "without data: {waiting:#?}");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// What people can choose from: `label_values(METRIC, LABEL)`.
async fn variables_have_values(prometheus: &Prometheus) {
    for dashboard in Dashboard::all() {
        for (name, variable) in dashboard.variables() {
            if variable["type"] != "query" {
                continue;
            }
            let query = text(&variable["query"]["query"]).strip_prefix("label_values(").unwrap();
            let (metric, label) = query.strip_suffix(')').unwrap().rsplit_once(", ").unwrap();
            let metric = encoded(&filled(&dashboard.name, metric));
            let path = format!("/api/v1/label/{label}/values?match[]={metric}");
            let values = prometheus.api().get_json(&path).await;
            assert!(!array(&values["data"]).is_empty(), "{}: {name}: {values}", dashboard.name);
        }
    }
}

/// Grafana and the pages give one answer.
async fn money_is_not_safe(app: &TestApp, prometheus: &Prometheus) {
    for dashboard in Dashboard::all() {
        for (place, expression) in dashboard.expressions() {
            if place.ends_with("Is money safe now?") {
                prometheus.wait_for(&filled(&dashboard.name, expression), "3").await;
            }
        }
    }
    app.wait_for_text("/", "No. Money is booked wrong in ").await;
}

/// The leak as whoever is on call gets it.
async fn the_leak_is_told(app: &TestApp, alertmanager: &Alertmanager) {
    let filter = encoded("alertname=\"DedupDuplicateLeak\"");
    let path = format!("/api/v2/alerts?filter={filter}");
    let of_poker = |alert: &&Value| alert["labels"]["service"] == "settle-poker";
    let wanted = |alerts: &Value| array(alerts).iter().any(|alert| of_poker(&alert));
    let alerts = alertmanager.api().wait_for(&path, wanted).await;
    let alert = array(&alerts).iter().find(of_poker).unwrap();
    let labels = json!({"alertname": "DedupDuplicateLeak", "service": "settle-poker",
        "env": "prod", "severity": "critical"});
    assert_eq!(alert["labels"], labels);
    assert_eq!(alert["status"]["state"], "active");
    assert_eq!(alert["receivers"], json!([{"name": "on-call"}]));
    let description = text(&alert["annotations"]["description"]);
    assert!(description.contains("overpaid ") && description.contains(" of settle-poker"));
    for link in ["runbook_url", "page_url"] {
        let url = text(&alert["annotations"][link]);
        let path = url.strip_prefix(app.base()).unwrap_or_else(|| panic!("{link}: {url}"));
        let reply = app.get(path).await;
        assert_eq!(reply.status, 200, "{link}: {url}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_panel_and_every_rule_has_data_and_the_leak_reaches_alertmanager() {
    let receiver = Receiver::start().await;
    (0..1_000).for_each(|_| receiver.answers(Answer::Status(500)));
    let url = receiver.url();
    let app = TestApp::start_with(Clock::manual(now_us()), |config: &mut Config| {
        config.webhook = Some(Webhook { url });
        config.retention.disk_cap_bytes = Some(1 << 30);
    })
    .await;
    let alertmanager = Alertmanager::start(&kit("prometheus/alertmanager.yml")).await;
    let prometheus = Prometheus::start(&config(&app, &alertmanager)).await;
    prometheus.wait_for("count(up == 1)", "1").await;
    go_wrong(&app).await;
    all_have_data(&prometheus).await;
    variables_have_values(&prometheus).await;
    money_is_not_safe(&app, &prometheus).await;
    the_leak_is_told(&app, &alertmanager).await;
    app.stop().await;
}
