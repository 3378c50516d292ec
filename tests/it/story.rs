//! One story from push to page: a settlement is booked twice, people see it, one of them closes
//! it.

use serde_json::{Value, json};

use crate::support::{TestApp, event, heartbeat, now_us, rfc3339};

/// Five settlements of one player push the first out of the window of 4; then it comes again.
fn deliveries(player: &str) -> Vec<Value> {
    let start_us = now_us() - 60_000_000;
    let delivery = |seq: u64, round: u64, len: u64| {
        let mut event = event(seq);
        event["player"] = json!(player);
        event["ledger"] = json!("chips <b>");
        event["signature"] =
            json!({"room": "r-<i>1</i>", "round": round, "net": "250", "final": true});
        event["window"] = json!({"len": len, "cap": 4});
        event["occurred_at"] = json!(rfc3339(start_us + seq.cast_signed() * 1_000_000));
        event
    };
    let mut all: Vec<Value> = (1..=4).map(|seq| delivery(seq, seq, seq)).collect();
    let mut fifth = delivery(5, 5, 4);
    fifth["evicted"] = json!([{"room": "r-<i>1</i>", "round": 1, "net": "250", "final": true}]);
    all.extend([fifth, delivery(6, 1, 4)]);
    all
}

#[tokio::test]
async fn from_push_to_page_to_a_closed_finding() {
    let app = TestApp::start().await;
    let player = "p/1 <script>";
    app.push(&Value::Array(deliveries(player))).await;
    app.heartbeat(&json!([heartbeat(6)])).await;

    let wanted = |answer: &Value| answer["findings"].as_array().is_some_and(|it| it.len() == 1);
    let leaks = "/api/v1/findings?kind=duplicate_leak&state=confirmed";
    let answer = app.wait_for(leaks, wanted).await;
    let finding = &answer["findings"][0];
    assert_eq!((&finding["overpaid"], &finding["ledger"]), (&json!("250"), &json!("chips <b>")));

    let overview = app.wait_for_text("/", "No. Money is booked wrong in 1 ledger.").await;
    assert!(overview.contains("settle-poker") && !overview.contains("<script>"));
    let page = app.get(&format!("/findings/{}", finding["id"].as_str().unwrap())).await.body;
    assert!(page.contains(">accepted<") && page.contains(">accepted again<"), "{page}");
    assert!(page.contains("The first two are 5.000 s apart."));

    let link = page.split("href=\"/players/").nth(1).unwrap().split('"').next().unwrap();
    let rows = app.get(&format!("/players/{link}")).await.body;
    let rounds: Vec<&str> = rows
        .split("<td>r-&#60;i&#62;1&#60;/i&#62;</td>")
        .skip(1)
        .map(|row| row.split("<td>").nth(1).unwrap().split('<').next().unwrap())
        .collect();
    assert_eq!(rounds, ["1", "2", "3", "4", "5", "1"], "in the order of their occurrence");
    assert!(rows.contains(">accepted again</a>"), "the witnesses are marked");
    let api = app.get_json(&format!("/api/v1/players/{link}")).await;
    assert_eq!(api["deliveries"].as_array().unwrap().len(), 6);
    assert_eq!(api["deliveries"][0]["record"]["body"]["seq"], "6", "newest first");

    assert!(app.get("/sources").await.body.contains("settle-1"));
    let log = app.get_json("/api/v1/outcomes?limit=4").await;
    assert_eq!(log["next"], "1.4");
    let rest = app.get_json("/api/v1/outcomes?after=1.4").await;
    assert_eq!(rest["outcomes"][0]["body"]["seq"], "5");
    assert_eq!(app.get_json("/api/v1/services").await["services"][0]["service"], "settle-poker");
    assert_eq!(app.get_json("/api/v1/services/settle-poker").await["services"][0]["env"], "prod");

    close(&app, finding["id"].as_str().unwrap()).await;
    app.wait_for_text("/findings?kind=duplicate_leak", ">closed<").await;
}

/// Closes it with the form of its page, as a browser does.
async fn close(app: &TestApp, id: &str) {
    let form = |origin: String| {
        let path = format!("/findings/{id}/close");
        async move {
            let headers = [
                ("content-type", "application/x-www-form-urlencoded"),
                ("origin", origin.as_str()),
            ];
            let body = b"reason=made_good&note=booked+back%2C+T-12".to_vec();
            app.post_raw(&path, &headers, body).await
        }
    };
    let foreign = form("http://evil.example".into()).await;
    assert_eq!(foreign.status, 403);
    assert!(foreign.body.contains("<h1"), "an error of a form is a page");
    // The client follows the redirect to the page.
    let own = form(app.base().to_owned()).await;
    assert_eq!(own.status, 200);
    let page = app.wait_for_text(&format!("/findings/{id}"), "a person says").await;
    assert!(page.contains("made good. booked back, T-12"), "{page}");
    assert!(!page.contains("method=\"post\""), "a closed finding can't be closed again");
}
