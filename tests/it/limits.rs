//! Every field at its limit and one step beyond, and names that are nearly the same: through a
//! real server, so that what is taken can also be stored, judged and shown.

use serde_json::{Value, json};

use crate::support::{Reply, TestApp, event, now_us, rfc3339};

const MAX: i64 = i64::MAX;
const DAY_US: i64 = 86_400_000_000;
const EVENT_BYTES_MAX: usize = 16 << 10;

/// The `n`-th event, of a source of its own, with one field set; `path` may lead into an object.
fn with(n: u64, path: &str, value: Value) -> Value {
    let mut event = event(1);
    event["source"] = json!(format!("source-{n}"));
    match path.split_once('.') {
        Some((outer, inner)) => event[outer][inner] = value,
        None => event[path] = value,
    }
    event
}

fn long() -> Value {
    json!("\u{e9}".repeat(128))
}

/// Nested so deep.
fn deep(levels: usize) -> Value {
    serde_json::from_str(&format!("{}{}", "[".repeat(levels), "]".repeat(levels))).unwrap()
}

/// An event of just so many bytes.
fn padded(n: u64, bytes: usize) -> Value {
    let mut event = with(n, "padding", json!(""));
    event["padding"] = json!("x".repeat(bytes - event.to_string().len()));
    event
}

fn evicted(count: usize) -> Value {
    (0..count).map(|n| json!({"key": n.to_string(), "net": MAX})).collect()
}

/// Each field at its limits.
fn at_the_limits() -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&str, Value)> = ["service", "source", "env", "ledger", "player", "guard"]
        .into_iter()
        .chain(["ref", "reversal_of", "request_id", "state_hash", "message_id", "trace_id"])
        .chain(["service_version", "event_id", "booked_room", "signature.room"])
        .chain(["signature.round", "signature.session"])
        .map(|path| (path, long()))
        .collect();
    for number in ["attempt", "state_version", "check_us", "response_us"] {
        all.extend([(number, json!(0)), (number, json!(MAX)), (number, json!(MAX.to_string()))]);
    }
    all.extend([
        ("seq", json!(MAX)),
        ("boot", json!(0)),
        ("boot", json!(MAX)),
        ("boot", json!("1970-01-01T00:00:00Z")),
        ("boot", json!("9999-12-31T23:59:59.999999Z")),
        ("occurred_at", json!(rfc3339(now_us() - 14 * DAY_US + 60_000_000))),
        ("occurred_at", json!(rfc3339(now_us() + 540_000_000))),
        ("signature.net", json!(MAX)),
        ("signature.net", json!(i64::MIN)),
        ("signature.round", json!(i64::MIN)),
        ("signature.room", json!("")),
        ("booked_room", json!("")),
        ("signature", json!({"key": long(), "net": i64::MIN})),
        ("window", json!({"len": MAX, "cap": 0, "scope": "source"})),
        ("window", json!({"len": 0, "cap": MAX, "scope": "room"})),
        ("window", json!({"len": MAX, "cap": MAX})),
        ("evicted", evicted(64)),
        ("evicted", json!([])),
        ("unknown", deep(120)),
    ]);
    all
}

/// Each field one step beyond its limit, with the code, and the limit as the message has it.
fn beyond_the_limits() -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let too_long = json!(format!("{}x", "\u{e9}".repeat(128)));
    let ids = ["service", "source", "env", "ledger", "player", "guard", "ref", "reversal_of"];
    let ids = ids.into_iter().chain(["request_id", "state_hash", "message_id", "trace_id"]);
    let ids = ids.chain(["service_version", "event_id", "booked_room", "signature.room"]);
    let ids = ids.chain(["signature.round", "signature.session"]);
    let mut all: Vec<_> =
        ids.map(|path| (path, too_long.clone(), "too_long", "at most 256")).collect();
    for path in ["attempt", "state_version", "check_us", "response_us", "seq", "signature.net"] {
        all.push((path, json!(9_223_372_036_854_775_808_u64), "invalid", "2^63-1"));
        all.push((path, json!("9223372036854775808"), "invalid", "2^63-1"));
    }
    all.extend([
        ("attempt", json!(-1), "invalid", "0 to 2^63-1"),
        ("seq", json!(0), "invalid", "from 1"),
        ("boot", json!(-1), "invalid", "0 to 2^63-1"),
        ("boot", json!("9223372036854775808"), "invalid", "2^63-1"),
        ("boot", json!("9999-12-31T23:59:59-23:59"), "invalid", "1970 to 9999"),
        ("occurred_at", json!(rfc3339(now_us() - 14 * DAY_US - 1)), "too_old", "14 days"),
        ("occurred_at", json!(rfc3339(now_us() + 660_000_000)), "in_future", "10 minutes"),
        ("signature.net", json!("-9223372036854775809"), "invalid", "-2^63"),
        ("signature.net", json!(1e19), "invalid", "2^63-1"),
        ("signature", json!({"key": too_long}), "too_long", "at most 256"),
        ("window", json!({"len": -1, "cap": 4}), "invalid", "0 to 2^63-1"),
        ("evicted", evicted(65), "too_many", "64 at most"),
        ("player", json!("p\0"), "control_character", "U+0000"),
        ("outcome", json!("processed\u{7f}"), "invalid", "expected one of"),
    ]);
    all
}

/// What is told of each event that was not taken.
#[track_caller]
fn errors(reply: &Reply) -> Vec<(u64, String, String)> {
    let text = |error: &Value, name: &str| error[name].as_str().unwrap().to_owned();
    let errors = reply.json()["errors"].as_array().unwrap().clone();
    errors
        .iter()
        .map(|error| {
            (error["index"].as_u64().unwrap(), text(error, "code"), text(error, "message"))
        })
        .collect()
}

/// Waits until all is judged that was pushed: a leak that is pushed last is found.
async fn judged(app: &TestApp) {
    let mut leak = [event(1), event(2)];
    for event in &mut leak {
        event["source"] = json!("the last");
        event["player"] = json!("the last");
        event["signature"]["round"] = json!(1);
    }
    assert_eq!(app.push(&json!(leak)).await.status, 200);
    let found = |answer: &Value| answer["findings"].as_array().is_some_and(|it| !it.is_empty());
    app.wait_for("/api/v1/findings?kind=duplicate_leak&player=the%20last", found).await;
}

/// All that can be asked for answers, whatever is in the database.
async fn all_answers(app: &TestApp) {
    for path in ["/", "/findings?limit=1000", "/sources?limit=1000", "/alerts", "/metrics"] {
        assert_eq!(app.get(path).await.status, 200, "{path}");
    }
    for name in ["findings", "sources", "outcomes", "findings.csv"] {
        let path = format!("/api/v1/{name}?limit=1000");
        assert_eq!(app.get(&path).await.status, 200, "{path}");
    }
    assert_eq!(app.get("/api/v1/alerts").await.status, 200);
    let findings = app.get_json("/api/v1/findings?limit=1000").await;
    for finding in findings["findings"].as_array().unwrap() {
        let path = format!("/findings/{}", finding["id"].as_str().unwrap());
        assert_eq!(app.get(&path).await.status, 200, "{path}");
    }
    let home = app.get("/").await.body;
    assert!(!home.contains("\"/services/\"") && !home.contains("service=\""), "leads nowhere");
    let services = app.get_json("/api/v1/services").await;
    for service in services["services"].as_array().unwrap() {
        let name = service["service"].as_str().unwrap();
        if name.is_empty() {
            continue;
        }
        let name = percent_encoding::utf8_percent_encode(name, percent_encoding::NON_ALPHANUMERIC);
        for path in [format!("/services/{name}"), format!("/api/v1/services/{name}")] {
            assert_eq!(app.get(&path).await.status, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn each_field_is_taken_at_its_limits_and_told_of_one_step_beyond() {
    let app = TestApp::start().await;
    let (right, wrong) = (at_the_limits(), beyond_the_limits());
    let (taken, refused) = (right.len(), wrong.len());
    // One wrong one between two right ones: nothing else is lost.
    let mut batch = Vec::new();
    let mut expected = Vec::new();
    let (mut right, mut wrong) = (right.into_iter(), wrong.into_iter());
    for n in 0.. {
        let (left, bad) = (right.next(), wrong.next());
        if left.is_none() && bad.is_none() {
            break;
        }
        batch.extend(left.map(|(path, value)| with(2 * n, path, value)));
        if let Some((path, value, code, limit)) = bad {
            expected.push((batch.len() as u64, path, code, limit));
            batch.push(with(2 * n + 1, path, value));
        }
    }
    let reply = app.push(&Value::Array(batch.clone())).await;
    assert_eq!(reply.status, 207, "{}", reply.body);
    let told = errors(&reply);
    let counts = reply.json();
    assert_eq!((&counts["written"], &counts["rejected"]), (&json!(taken), &json!(refused)));
    for ((index, code, message), (at, path, wanted, limit)) in told.iter().zip(expected) {
        let first = path.split('.').next().unwrap();
        assert_eq!((*index, code.as_str()), (at, wanted), "{path}: {message}");
        assert!(message.starts_with(first) && message.contains(limit), "{path}: {message}");
        let remedies = ["send", "count", "set ", "leave", "expected"];
        assert!(remedies.iter().any(|remedy| message.contains(remedy)), "{message}");
        assert!(message.len() <= 300 && !message.contains(char::is_control), "{message}");
        let start = "\u{e9}".repeat(39);
        assert!(code != "too_long" || message.contains(&format!("\"{start}...")), "{message}");
    }
    judged(&app).await;
    all_answers(&app).await;
    let app = app.restart().await;
    let again = app.push(&Value::Array(batch)).await.json();
    assert_eq!((&again["written"], &again["repeated"]), (&json!(0), &json!(taken)));
    all_answers(&app).await;
    app.stop().await;
}

#[tokio::test]
async fn all_fields_are_taken_at_their_limits_together() {
    let app = TestApp::start().await;
    let mut largest = event(1);
    for (path, value) in at_the_limits() {
        match path.split_once('.') {
            Some((outer, inner)) => largest[outer][inner] = value,
            None if path != "signature" => largest[path] = value,
            None => {}
        }
    }
    (largest["ref"], largest["effect"]) = (json!("x".repeat(256)), json!("unknown"));
    let left = EVENT_BYTES_MAX - largest.to_string().len() - ",\"\":\"\"".len();
    largest[""] = json!("x".repeat(left));
    assert_eq!(largest.to_string().len(), EVENT_BYTES_MAX);
    let mut again = largest.clone();
    (again["seq"], again[""]) = (json!(MAX - 1), json!("x".repeat(left)));
    let batch = [largest, again, padded(1, EVENT_BYTES_MAX), padded(2, EVENT_BYTES_MAX + 1)];
    let reply = app.push(&json!(batch)).await;
    assert_eq!(reply.status, 207, "{}", reply.body);
    let told = errors(&reply);
    assert_eq!((told.len(), told[0].0, told[0].1.as_str()), (1, 3, "too_large"));
    for part in ["16385 bytes", "at most 16384", "send less"] {
        assert!(told[0].2.contains(part), "{}", told[0].2);
    }
    judged(&app).await;
    all_answers(&app).await;
    app.stop().await;
}

#[tokio::test]
async fn the_deepest_and_longest_bodies_are_taken() {
    let app = TestApp::start().await;
    let levels = (EVENT_BYTES_MAX - event(1).to_string().len()) / 2 - 10;
    let deep = format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    let text = event(1).to_string().replacen('{', &format!("{{\"deep\":{deep},"), 1);
    let json = [("content-type", "application/json")];
    let reply = app.post_raw("/api/v1/outcomes", &json, text.into()).await;
    assert_eq!(reply.status, 200, "{}", reply.body);
    // A field that is read.
    let text = event(2).to_string().replace("\"p-2\"", &deep);
    let reply = app.post_raw("/api/v1/outcomes", &json, text.into()).await;
    assert_eq!(errors(&reply)[0].1, "invalid");
    // 10 MiB as sent, and not a byte more.
    let events = json!((3..=600).map(|n| padded(n, EVENT_BYTES_MAX)).collect::<Vec<_>>());
    let body = events.to_string();
    let room = (10 << 20) - body.len();
    let longest = body + &" ".repeat(room);
    let reply = app.post_raw("/api/v1/outcomes", &json, longest.clone().into()).await;
    assert_eq!((reply.status, &reply.json()["written"]), (200, &json!(598)), "{}", reply.body);
    let reply = app.post_raw("/api/v1/outcomes", &json, (longest + " ").into()).await;
    assert_eq!(reply.status, 413);
    app.stop().await;
}

/// A follow-up with a field of its own.
fn follow_up(field: &str, value: Value) -> Value {
    let mut event = with(1, "effect", json!("failed"));
    event.as_object_mut().unwrap().remove("outcome");
    event[field] = value;
    event
}

fn said(outcome: &str, field: &str, value: Value) -> Value {
    let mut event = with(1, "outcome", json!(outcome));
    event[field] = value;
    event
}

/// Events that say two things, with the field that is told of.
fn contradictions() -> Vec<(&'static str, Value)> {
    let mut wrong = Vec::new();
    for outcome in ["replay_blocked", "evicted", "unknown"] {
        wrong.push(("effect", said(outcome, "effect", json!("applied"))));
        wrong.push(("booked_room", said(outcome, "booked_room", json!("r"))));
        wrong.push(("evicted", said(outcome, "evicted", evicted(1))));
    }
    wrong.push(("reversal_of", said("evicted", "reversal_of", json!("b-1"))));
    for (field, value) in [
        ("booked_room", json!("r")),
        ("reversal_of", json!("b")),
        ("evicted", evicted(1)),
        ("reason", json!("replay")),
        ("effect", json!("maybe")),
        ("effect", json!(["failed"])),
    ] {
        wrong.push((field, follow_up(field, value)));
    }
    wrong.push(("effect", with(1, "outcome", json!("effect_reported"))));
    for (outcome, reason) in
        [("processed", "replay"), ("evicted", "held"), ("unknown", "ttl"), ("late_accepted", "ack")]
    {
        wrong.push(("reason", said(outcome, "reason", json!(reason))));
    }
    wrong.push(("signature.room", with(1, "signature.key", json!("k"))));
    wrong
}

#[tokio::test]
async fn fields_that_contradict_each_other_are_told_and_no_other_event_is_lost() {
    let app = TestApp::start().await;
    let mut batch = vec![with(1, "reversal_of", json!("b-1"))];
    // A reversal may itself be blocked or held.
    for (seq, outcome) in [(2, "replay_blocked"), (3, "unknown")] {
        let mut event = said(outcome, "reversal_of", json!("b-1"));
        event["seq"] = json!(seq);
        batch.push(event);
    }
    let mut fields = Vec::new();
    for (seq, (field, mut event)) in (4..).zip(contradictions()) {
        event["seq"] = json!(seq);
        fields.push(field);
        batch.push(event);
    }
    let mut last = follow_up("ref", json!("b-1"));
    last["seq"] = json!(batch.len() + 1);
    batch.push(last);
    let reply = app.push(&Value::Array(batch)).await;
    assert_eq!((reply.status, &reply.json()["written"]), (207, &json!(4)), "{}", reply.body);
    for ((_, code, message), field) in errors(&reply).iter().zip(&fields) {
        assert!(["contradiction", "missing", "invalid"].contains(&code.as_str()), "{message}");
        assert!(message.starts_with(&format!("{field}: ")), "{field}: {message}");
        let remedies = ["send", "leave", "expected one of"];
        assert!(remedies.iter().any(|remedy| message.contains(remedy)), "{message}");
    }
    assert_eq!(errors(&reply).len(), fields.len());
    app.stop().await;
}
