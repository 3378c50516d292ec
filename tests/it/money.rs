//! Amounts from push to page: exact beyond 64 bits, and the same by every door at one instant.

use serde_json::{Value, json};

use crate::support::{Reply, TestApp, event, heartbeat};

/// Between groups of three digits.
const GROUPED: char = '\u{202f}';
const NETS: [i64; 5] = [i64::MAX, i64::MIN, i64::MAX, i64::MIN, i64::MAX];

/// Each net is booked twice, each for a player whose name looks like a formula.
async fn app_with_leaks() -> TestApp {
    let app = TestApp::start().await;
    let booked = (0..).zip(NETS.iter().chain(&NETS)).map(|(n, net)| {
        let mut event = event(n + 1);
        event["player"] = json!(format!("=p-{}", n % 5));
        event["signature"] = json!({"room": "-r", "round": 1, "net": net, "final": true});
        event
    });
    let mut booked: Vec<Value> = booked.collect();
    booked.iter_mut().for_each(|event| event["window"] = Value::Null);
    assert_eq!(app.push(&Value::Array(booked)).await.status, 200);
    app.heartbeat(&json!([heartbeat(10)])).await;
    let five = |answer: &Value| answer["findings"].as_array().is_some_and(|it| it.len() == 5);
    app.wait_for("/api/v1/findings?kind=duplicate_leak&state=confirmed", five).await;
    app
}

/// (overpaid, overcharged).
fn sums<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> (i128, i128) {
    rows.fold((0, 0), |sum, (overpaid, overcharged)| {
        (sum.0 + overpaid.parse::<i128>().unwrap(), sum.1 + overcharged.parse::<i128>().unwrap())
    })
}

fn of_json(answer: &Value) -> (i128, i128) {
    let rows = answer["findings"].as_array().unwrap().iter();
    sums(rows.map(|row| (row["overpaid"].as_str().unwrap(), row["overcharged"].as_str().unwrap())))
}

fn of_csv(body: &str) -> (i128, i128) {
    let mut table = csv::Reader::from_reader(body.as_bytes());
    let headings = table.headers().unwrap().clone();
    let column = |name| headings.iter().position(|heading| heading == name).unwrap();
    let (overpaid, overcharged) = (column("overpaid"), column("overcharged"));
    let rows: Vec<_> = table.records().map(Result::unwrap).collect();
    sums(rows.iter().map(|row| (&row[overpaid], &row[overcharged])))
}

/// All parts of a list, from one instant.
async fn parts(app: &TestApp, first: &str, next: impl Fn(&Reply) -> Option<String>) -> Vec<Reply> {
    let mut parts = vec![app.get(first).await];
    while let Some(path) = next(parts.last().unwrap()) {
        parts.push(app.get(&path).await);
    }
    assert!(parts.iter().all(|part| part.status == 200), "{parts:?}");
    parts
}

#[tokio::test]
async fn lists_add_up_to_the_overview_at_the_same_instant() {
    let app = app_with_leaks().await;
    let wanted = (3 * i128::from(i64::MAX), -2 * i128::from(i64::MIN));

    let services = app.get("/api/v1/services").await;
    let sum = &services.json()["services"][0]["ledgers"]["settle-poker"];
    assert_eq!(sum["overpaid"], wanted.0.to_string());
    assert_eq!(sum["overcharged"], wanted.1.to_string());

    let list = "/api/v1/findings?state=confirmed&limit=2";
    let json = parts(&app, list, |part| {
        part.json()["next"].as_str().map(|next| format!("{list}&after={next}"))
    });
    let json = json.await;
    let total = json.iter().map(|part| of_json(&part.json()));
    assert_eq!(total.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)), wanted);

    let table = parts(&app, "/api/v1/findings.csv?state=confirmed&limit=2", |part| {
        let next = part.header("link").strip_prefix('<')?;
        next.strip_suffix(">; rel=\"next\"").map(str::to_owned)
    });
    let table = table.await;
    assert_eq!(table.len(), 3);
    let total = table.iter().map(|part| of_csv(&part.body));
    assert_eq!(total.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1)), wanted);

    let as_of = services.header("x-dedupwatch-as-of");
    assert!(!as_of.is_empty());
    for part in json.iter().chain(&table) {
        assert_eq!(part.header("x-dedupwatch-as-of"), as_of);
    }
    let metrics = app.get("/metrics").await.body;
    assert!(metrics.contains("dedup_overpaid_minor_units"), "{metrics}");
    let overview = app.get("/").await.body.replace(GROUPED, "");
    for amount in [wanted.0, wanted.1] {
        assert!(overview.contains(&format!(">{amount}<")), "{amount}: {overview}");
    }
}

#[tokio::test]
async fn a_table_says_when_it_is_not_all_and_holds_no_formula() {
    let app = app_with_leaks().await;
    let whole = app.get("/api/v1/findings.csv").await;
    assert_eq!(whole.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(whole.header("content-disposition"), "attachment; filename=\"findings.csv\"");
    assert_eq!(whole.header("link"), "");
    assert!(whole.body.contains(",'=p-0,,'-r,1,9223372036854775807,true,,"), "{}", whole.body);
    let part = app.get("/api/v1/findings.csv?limit=1").await;
    assert!(part.header("content-disposition").contains("findings-incomplete.csv"));
    let page = app.get("/findings?kind=duplicate_leak").await.body;
    assert!(page.contains("href=\"/api/v1/findings.csv?kind=duplicate%5Fleak\""), "{page}");
    let wrong = app.get("/api/v1/findings.csv?kind=leak").await;
    assert!(wrong.status == 400 && wrong.body.contains("`kind`"), "{}", wrong.body);
}
