//! The read API: filters, pages by key, bad input, and forms that don't change.

use dedupwatch::clock::Clock;
use serde_json::{Value, json};

use crate::support::{TestApp, seed};

fn ids(answer: &Value) -> Vec<u64> {
    let id = |finding: &Value| u64::from_str_radix(finding["id"].as_str().unwrap(), 16).unwrap();
    answer["findings"].as_array().unwrap().iter().map(id).collect()
}

async fn app_with_leaks(count: u32) -> TestApp {
    let app = TestApp::start().await;
    let leaks: Vec<Value> = (1..=count).map(seed::leak).collect();
    seed::findings(&app, &leaks).await;
    app
}

#[tokio::test]
async fn empty_lists_are_empty_and_not_errors() {
    let app = TestApp::start().await;
    for name in ["findings", "services", "sources", "outcomes", "alerts"] {
        let answer = app.get_json(&format!("/api/v1/{name}")).await;
        assert_eq!(answer, json!({name: [], "next": null}));
    }
    let answer = app.get_json("/api/v1/players/chips/p-1").await;
    assert_eq!(answer, json!({"deliveries": [], "next": null}));
}

#[tokio::test]
async fn findings_come_newest_first_in_pages_by_key() {
    let app = app_with_leaks(5).await;
    let (mut seen, mut path) = (Vec::new(), "/api/v1/findings?limit=2".to_owned());
    loop {
        let answer = app.get_json(&path).await;
        seen.extend(ids(&answer));
        let Some(next) = answer["next"].as_str() else { break };
        path = format!("/api/v1/findings?limit=2&after={next}");
    }
    assert_eq!(seen, [5, 4, 3, 2, 1]);
}

#[tokio::test]
async fn findings_are_filtered() {
    let app = TestApp::start().await;
    let mut other = seed::leak(2);
    let changes = [
        ("kind", "false_block"),
        ("service", "other"),
        ("env", "stage"),
        ("ledger", "gold"),
        ("player", "p/2"),
        ("state", "suspected"),
        ("severity", "warning"),
    ];
    for (name, value) in changes {
        other[name] = json!(value);
    }
    seed::findings(&app, &[seed::leak(1), other]).await;
    for (name, value) in changes {
        let value = value.replace('/', "%2F");
        let answer = app.get_json(&format!("/api/v1/findings?{name}={value}")).await;
        assert_eq!(ids(&answer), [2], "{name}");
    }
    let from = app.get_json("/api/v1/findings?from=2026-11-30T12:00:02Z").await;
    assert_eq!(ids(&from), [2]);
    let to = app.get_json("/api/v1/findings?to=2026-11-30T12:00:01Z&service=").await;
    assert_eq!(ids(&to), [1]);
    let both = app.get_json("/api/v1/findings?env=stage&ledger=chips").await;
    assert_eq!(ids(&both), [0; 0]);
}

#[tokio::test]
async fn one_finding_has_all_its_fields_with_numbers_as_strings() {
    let app = app_with_leaks(1).await;
    let id = format!("{:032x}", 1);
    let finding = app.get_json(&format!("/api/v1/findings/{id}")).await;
    for field in [
        "id",
        "kind",
        "severity",
        "state",
        "cause",
        "order",
        "coverage",
        "service",
        "env",
        "ledger",
        "source",
        "player",
        "signature",
        "count",
        "first_at",
        "last_at",
        "overpaid",
        "overcharged",
        "underpaid",
        "undercharged",
        "exposure",
        "witnesses",
        "help_url",
    ] {
        assert!(finding.get(field).is_some(), "{field}");
    }
    assert_eq!(finding["count"], "1");
    assert_eq!(finding["overpaid"], "100");
    assert_eq!(finding["first_at"], "2026-11-30T12:00:01.000000Z");
    assert_eq!(finding["witnesses"][0]["seq"], "42");
    assert_eq!(finding["witnesses"][0]["position"], "1.42");
    assert_eq!(finding["witnesses"][0]["window"], json!({"len": "4", "cap": "4"}));
    let help = finding["help_url"].as_str().unwrap();
    assert_eq!(help, format!("{}/help/duplicate_leak", app.base()));
}

#[tokio::test]
async fn bad_input_says_what_is_wrong_where_and_what_to_do() {
    let app = TestApp::start().await;
    for (path, told) in [
        ("/api/v1/findings?limit=0", "`limit`"),
        ("/api/v1/findings?limit=1001", "1 to 1000"),
        ("/api/v1/findings?stat=closed", "this address takes: kind"),
        ("/api/v1/findings?state=open", "suspected, confirmed, closed"),
        ("/api/v1/findings?kind=leak", "duplicate_leak"),
        ("/api/v1/findings?from=yesterday", "RFC 3339"),
        ("/api/v1/findings?after=x", "`next`"),
        ("/api/v1/findings?player=a%00b", "control character"),
        ("/api/v1/findings?env=a&env=b", "twice"),
        ("/api/v1/outcomes?after=1", "`next`"),
        ("/api/v1/sources?after=a", "`next`"),
        ("/api/v1/players/a/b?limit=x", "`limit`"),
        ("/api/v1/alerts?state=on", "firing"),
        ("/api/v1/services?x=1", "takes none"),
    ] {
        let reply = app.get(path).await;
        assert_eq!(reply.status, 400, "{path}");
        let error = &reply.json()["error"];
        assert_eq!(error["code"], "bad_parameter", "{path}");
        assert!(error["message"].as_str().unwrap().contains(told), "{path}: {error}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_a_404_with_a_way_on() {
    let app = TestApp::start().await;
    for path in ["/api/v1/findings/abc", "/api/v1/services/nobody", "/api/v1/nothing"] {
        let reply = app.get(path).await;
        assert_eq!(reply.status, 404, "{path}");
        let error = &reply.json()["error"];
        assert_eq!(error["code"], "not_found");
        assert!(error["message"].as_str().unwrap().contains('/'), "{error}");
    }
}

#[tokio::test]
async fn a_wrong_method_or_address_is_told_as_all_errors_are() {
    let app = TestApp::start().await;
    for (path, status, code) in [
        ("/api/v1/findings", 405, "wrong_method"),
        ("/-/ready", 405, "wrong_method"),
        // Not UTF-8: read as well as can be, and so not found.
        ("/api/v1/findings/%FF/close", 404, "not_found"),
    ] {
        let reply = app.post(path, &json!({"reason": "x"})).await;
        let told = reply.json()["error"]["code"].clone();
        assert_eq!((reply.status, told), (status, json!(code)), "{path}");
    }
    for (path, status) in [("/findings/%FF", 404), ("/findings/1/close", 405)] {
        let reply = app.get(path).await;
        assert_eq!((reply.status, reply.body.contains("<h1")), (status, true), "{path}");
    }
}

#[tokio::test]
async fn a_name_that_is_not_ours_is_refused() {
    let app = TestApp::start_with(Clock::System, |config| {
        config.external_url = "https://watch.example/d".into();
    })
    .await;
    let get = async |path: &str, host: &str| {
        let request = reqwest::Client::new().get(format!("{}{path}", app.base()));
        let reply = request.header("host", host).send().await.unwrap();
        (reply.status().as_u16(), reply.text().await.unwrap())
    };
    for host in ["localhost:9736", "[::1]:1", "watch.example"] {
        assert_eq!(get("/", host).await.0, 200, "{host}");
    }
    for host in ["evil.example", "evil.example:9736", ""] {
        let (status, text) = get("/findings", host).await;
        assert_eq!((status, text.contains("external_url")), (421, true), "{host}: {text}");
    }
    let (status, text) = get("/api/v1/findings", "evil.example").await;
    assert_eq!((status, text.contains(r#""code":"other_host""#)), (421, true), "{text}");
}

#[tokio::test]
async fn a_decision_is_checked_before_it_is_written() {
    let app = app_with_leaks(1).await;
    let path = format!("/api/v1/findings/{:032x}/close", 1);
    let told = app.post(&path, &json!({"reason": ""})).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!("bad_decision")));
    let told = app.post(&path, &json!({"reason": "x", "note": "n".repeat(4_097)})).await;
    assert_eq!(told.status, 400);
    let told = app.post(&path, &json!({"note": "no reason"})).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!("bad_body")));
    let told = app.post(&path, &json!({"reason": "x", "noet": "a slip"})).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (400, &json!("bad_body")));
    let text = [("content-type", "text/plain")];
    let told = app.post_raw(&path, &text, br#"{"reason":"x"}"#.to_vec()).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (415, &json!("unknown_content_type")));
    let told = app.post("/api/v1/findings/abc/close", &json!({"reason": "x"})).await;
    assert_eq!(told.status, 404);
    let headers = [("content-type", "application/json"), ("origin", "http://evil.example")];
    let told = app.post_raw(&path, &headers, br#"{"reason":"x"}"#.to_vec()).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (403, &json!("other_origin")));
    assert_eq!(app.get_json("/api/v1/outcomes").await["outcomes"], json!([]));
}

#[tokio::test]
async fn a_closed_finding_is_not_closed_again() {
    let app = TestApp::start().await;
    let mut leak = seed::leak(1);
    leak["state"] = json!("closed");
    seed::findings(&app, &[leak]).await;
    let path = format!("/api/v1/findings/{:032x}/close", 1);
    let told = app.post(&path, &json!({"reason": "x"})).await;
    assert_eq!((told.status, &told.json()["error"]["code"]), (409, &json!("closed_already")));
}

#[tokio::test]
async fn head_is_get_without_the_body() {
    let app = TestApp::start().await;
    for path in ["/-/healthy", "/", "/api/v1/findings"] {
        let reply = reqwest::Client::new().head(format!("{}{path}", app.base())).send().await;
        let reply = reply.unwrap();
        assert_eq!(reply.status(), 200, "{path}");
        assert_eq!(reply.text().await.unwrap(), "", "{path}");
    }
}

#[tokio::test]
async fn the_settings_in_force_are_told() {
    let app = TestApp::start().await;
    let settings = app.get_json("/api/v1/config").await;
    assert_eq!(settings["audit"]["warmup_us"], "0");
    assert_eq!(settings["audit"]["gap_grace_us"], "30000000");
    assert_eq!(settings["audit"]["live_games"], 2);
}

#[tokio::test]
async fn the_description_is_served() {
    let app = TestApp::start().await;
    let description = app.get_json("/openapi.json").await;
    assert!(description["openapi"].as_str().unwrap().starts_with("3."));
    for path in
        ["/api/v1/findings", "/api/v1/findings/{id}/close", "/api/v1/players/{ledger}/{player}"]
    {
        assert!(description["paths"][path].is_object(), "{path}");
    }
    assert!(
        description["components"]["schemas"]["FindingView"]["properties"]["overpaid"].is_object()
    );
}

#[tokio::test]
async fn ready_says_so_with_reasons() {
    let app = TestApp::start().await;
    let ready = app.get_json("/-/ready").await;
    assert_eq!((&ready["ready"], &ready["reasons"]), (&json!(true), &json!([])));
}
