//! What is taken and what is refused, and with which words.

use serde_json::{Value, json};

use super::*;
use crate::outcome::{Boot, Outcome, Refused};

/// 2026-11-30T12:00:00Z.
const NOON_US: i64 = 1_796_040_000_000_000;

fn context() -> Context {
    Context { now_us: NOON_US, hash: KeyedHash::new([7; 16]) }
}

fn event() -> Value {
    json!({
        "service": "settle", "source": "a", "boot": "1", "seq": 42,
        "occurred_at": "2026-11-30T12:00:00.123456Z", "player": "p-1",
        "signature": {"room": "r", "round": "12", "net": "-250", "final": true},
        "outcome": "processed",
    })
}

/// The event with one field set; `path` may lead into an object: `signature.net`.
fn with(path: &str, value: Value) -> Value {
    let mut event = event();
    match path.split_once('.') {
        Some((outer, inner)) => event[outer][inner] = value,
        None => event[path] = value,
    }
    event
}

fn without(path: &str) -> Value {
    let mut event = event();
    match path.split_once('.') {
        Some((outer, inner)) => event[outer].as_object_mut().unwrap().remove(inner),
        None => event.as_object_mut().unwrap().remove(path),
    };
    event
}

fn one(text: &str) -> Result<Event, Box<Refused>> {
    let mut decoded = outcomes(text.as_bytes(), Format::Json, context()).unwrap();
    assert_eq!(decoded.items.len(), 1);
    decoded.items.remove(0).map_err(|refusal| Box::new(refusal.refused))
}

fn taken(event: &Value) -> Event {
    one(&event.to_string()).unwrap()
}

/// The code, if the message begins with the field.
fn refused(event: &Value, field: &str) -> String {
    let refused = one(&event.to_string()).unwrap_err();
    assert!(refused.message.starts_with(&format!("{field}: ")), "{}", refused.message);
    refused.code
}

#[test]
fn the_example_of_the_wire_is_taken() {
    let text = r#"{"service":"settle-poker","source":"settle-7f9c","boot":"2026-11-30T08:00:00Z",
        "seq":42,"occurred_at":"2026-11-30T12:00:00.123456Z","env":"prod","ledger":"chips",
        "player":"p-1001","signature":{"room":"r-77","round":"12","net":"-250","final":true},
        "outcome":"processed","window":{"len":4,"cap":4},
        "evicted":[{"room":"r-75","round":"3","net":"40","final":false}],
        "check_us":12,"response_us":1800,"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736"}"#;
    let event = one(text).unwrap();
    assert_eq!(event.seq, Some(42));
    assert_eq!(event.occurred_us, NOON_US + 123_456);
    assert_eq!(event.evicted.len(), 1);
    let stored = serde_json::to_string(&event).unwrap();
    assert_eq!(serde_json::from_str::<Event>(&stored).unwrap(), event);
}

#[test]
fn every_case_is_taken() {
    let mut events = 0;
    for entry in std::fs::read_dir("tests/cases").unwrap() {
        let path = entry.unwrap().path();
        if path.extension() != Some("json".as_ref()) {
            continue;
        }
        let case: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        for event in case["events"].as_array().unwrap() {
            let (said, at) = match event.get("heartbeat") {
                Some(beat) => (beat, &beat["at"]),
                None => (event, &event["occurred_at"]),
            };
            let now_us = crate::outcome::parse_us(at.as_str().unwrap()).unwrap();
            let (context, body) = (Context { now_us, ..context() }, said.to_string());
            let problem = match event.get("heartbeat") {
                Some(_) => heartbeats(body.as_bytes(), Format::Json, context)
                    .map(|mut decoded| decoded.items.remove(0).err()),
                None => outcomes(body.as_bytes(), Format::Json, context)
                    .map(|mut decoded| decoded.items.remove(0).err()),
            };
            // One case is about an amount that is none.
            let amount_is_none = body.contains(r#""net":"1.5""#);
            assert_eq!(problem.unwrap().is_some(), amount_is_none, "{body}");
            events += 1;
        }
    }
    assert!(events > 300, "{events}");
}

#[test]
fn what_is_needed_is_missed_by_name() {
    for field in ["service", "source", "occurred_at", "player", "signature", "outcome"] {
        assert_eq!(refused(&without(field), field), "missing");
        assert_eq!(refused(&with(field, Value::Null), field), "missing");
    }
    for field in ["signature.room", "signature.round", "signature.net", "signature.final"] {
        assert_eq!(refused(&without(field), field), "missing");
    }
    assert_eq!(refused(&without("seq"), "seq"), "missing");
    assert_eq!(refused(&without("boot"), "boot"), "missing");
    assert_eq!(refused(&with("window", json!({"len": 1})), "window.cap"), "missing");
}

#[test]
fn an_event_id_is_identity_enough() {
    let mut event = with("event_id", json!("e-1"));
    event.as_object_mut().unwrap().remove("seq");
    assert!(taken(&event).sequence().is_none());
    event.as_object_mut().unwrap().remove("boot");
    assert_eq!(taken(&event).event_id.unwrap().as_str(), "e-1");
}

#[test]
fn ids_are_1_to_256_bytes_without_control_characters() {
    for field in [
        "service",
        "source",
        "env",
        "ledger",
        "player",
        "event_id",
        "guard",
        "ref",
        "reversal_of",
        "request_id",
        "state_hash",
        "message_id",
        "service_version",
        "trace_id",
    ] {
        assert_eq!(refused(&with(field, json!("")), field), "empty");
        assert_eq!(refused(&with(field, json!("x".repeat(257))), field), "too_long");
        assert_eq!(refused(&with(field, json!("a\0b")), field), "control_character");
        assert_eq!(refused(&with(field, json!("a\u{9f}")), field), "control_character");
        assert_eq!(refused(&with(field, json!(true)), field), "invalid");
        taken(&with(field, json!("x".repeat(256))));
    }
    for field in ["signature.room", "booked_room"] {
        taken(&with(field, json!("")));
        assert_eq!(refused(&with(field, json!("x".repeat(257))), field), "too_long");
        assert_eq!(refused(&with(field, json!("\n")), field), "control_character");
    }
    assert_eq!(taken(&with("player", json!("<b>e\u{301}</b>"))).player.as_str(), "<b>e\u{301}</b>");
}

#[test]
fn half_a_surrogate_is_no_text() {
    let text = event().to_string().replace("p-1", "\\ud800");
    assert_eq!(one(&text).unwrap_err().code, "invalid");
}

#[test]
fn net_is_an_integer_of_64_bits() {
    let net = |text: &str| one(&event().to_string().replace("\"-250\"", text));
    for (text, number) in [
        ("-250", -250),
        ("\"0\"", 0),
        ("9223372036854775807", i64::MAX),
        ("\"-9223372036854775808\"", i64::MIN),
    ] {
        assert_eq!(net(text).unwrap().signature.net().0, number);
    }
    for bad in [
        "9223372036854775808",
        "\"9223372036854775808\"",
        "-9223372036854775809",
        "1.0",
        "1e3",
        "\"1e3\"",
        "\"1.0\"",
        "\"+5\"",
        "\"007\"",
        "\" 5\"",
        "\"\"",
        "\"-\"",
        "true",
        "[1]",
        "1E400",
    ] {
        let refused = net(bad).unwrap_err();
        assert_eq!(refused.code, "invalid", "{bad}");
        assert!(refused.message.starts_with("signature.net: "), "{}", refused.message);
        assert_eq!(refused.sequence, Some((Boot::Number(1), 42)));
    }
}

#[test]
fn a_round_is_an_integer_or_a_string() {
    let number = taken(&with("signature.round", json!(12)));
    assert_eq!(number.signature, taken(&event()).signature);
    taken(&with("signature.round", json!("final-table")));
    assert_eq!(refused(&with("signature.round", json!(1.5)), "signature.round"), "invalid");
}

#[test]
fn a_key_is_the_whole_identity() {
    let opaque = with("signature", json!({"key": "order-1"}));
    assert_eq!(taken(&opaque).signature.net().0, 0);
    taken(&with("signature", json!({"key": "order-1", "net": 5})));
    let both = with("signature", json!({"key": "order-1", "room": "r"}));
    assert_eq!(refused(&both, "signature.room"), "contradiction");
}

#[test]
fn a_seq_counts_from_one_to_63_bits() {
    assert_eq!(
        taken(&with("seq", json!("9223372036854775807"))).seq,
        Some(i64::MAX.unsigned_abs())
    );
    for bad in [json!(0), json!(-1), json!(9_223_372_036_854_775_808_u64), json!(1.0)] {
        assert_eq!(refused(&with("seq", bad), "seq"), "invalid");
    }
}

#[test]
fn a_boot_is_a_time_or_a_number() {
    assert_eq!(taken(&with("boot", json!(7))).boot, Some(Boot::Number(7)));
    let started = taken(&with("boot", json!("2026-11-30T09:00:00+01:00"))).boot;
    assert_eq!(started, taken(&with("boot", json!("2026-11-30T08:00:00Z"))).boot);
    for bad in [json!("today"), json!(-1), json!(1.5), json!(""), json!("9223372036854775808")] {
        assert_eq!(refused(&with("boot", bad), "boot"), "invalid");
    }
}

#[test]
fn a_time_that_does_not_read_back_is_refused() {
    for boot in ["0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"] {
        let refused = one(&with("boot", json!(boot)).to_string()).unwrap_err();
        assert!(refused.message.starts_with("boot: "), "{}", refused.message);
        assert_eq!((refused.code.as_str(), refused.sequence), ("invalid", None));
    }
    for (clock, time) in [
        ("9999-12-31T23:59:59Z", "9999-12-31T23:59:59-00:01"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00+00:01"),
    ] {
        let now_us = crate::outcome::parse_us(clock).unwrap();
        let body = with("occurred_at", json!(time)).to_string();
        let context = Context { now_us, ..context() };
        let decoded = outcomes(body.as_bytes(), Format::Json, context).unwrap();
        assert_eq!(decoded.items[0].as_ref().unwrap_err().refused.code, "invalid", "{time}");
    }
}

#[test]
fn events_are_from_the_last_14_days_up_to_10_minutes_ahead() {
    for (time, code) in [
        ("1600-01-01T00:00:00Z", "too_old"),
        ("2026-11-16T11:59:59.999999Z", "too_old"),
        ("2026-12-01T12:00:00Z", "in_future"),
        ("2026-11-30T12:10:00.000001Z", "in_future"),
        ("yesterday", "invalid"),
        ("2026-11-30 12:00", "invalid"),
    ] {
        assert_eq!(refused(&with("occurred_at", json!(time)), "occurred_at"), code);
    }
    for time in ["2026-11-16T12:00:00Z", "2026-11-30T12:10:00Z", "2026-11-30T13:00:00+01:00"] {
        taken(&with("occurred_at", json!(time)));
    }
}

#[test]
fn fields_that_contradict_each_other_are_refused() {
    assert_eq!(refused(&with("reason", json!("replay")), "reason"), "contradiction");
    let mut blocked = with("outcome", json!("replay_blocked"));
    blocked["reason"] = json!("replay");
    taken(&blocked);
    blocked["evicted"] = json!([{"key": "k"}]);
    assert_eq!(refused(&blocked, "evicted"), "contradiction");
    let mut undone = with("ref", json!("b-1"));
    undone["reversal_of"] = json!("b-1");
    assert_eq!(refused(&undone, "reversal_of"), "contradiction");
}

#[test]
fn an_effect_goes_with_what_moves_money() {
    for outcome in ["replay_blocked", "evicted", "unknown"] {
        for (field, value) in [("effect", "applied"), ("booked_room", "r")] {
            let mut event = with("outcome", json!(outcome));
            event[field] = json!(value);
            assert_eq!(refused(&event, field), "contradiction", "{outcome}");
        }
    }
    let late = with("outcome", json!("late_accepted"));
    for event in [event(), late] {
        let mut event = event;
        event["effect"] = json!("failed");
        event["booked_room"] = json!("s");
        taken(&event);
    }
}

#[test]
fn an_effect_without_an_outcome_tells_what_became_of_an_acceptance() {
    let mut follow_up = without("outcome");
    assert_eq!(refused(&follow_up, "outcome"), "missing");
    follow_up["effect"] = json!("failed");
    follow_up["ref"] = json!("h1");
    let event = taken(&follow_up);
    assert_eq!(event.outcome, Outcome::EffectReported);
    assert!(!event.is_acceptance());
    // What a client serialises is what the wire takes, and the same event.
    let again: Value = serde_json::to_value(&event).unwrap();
    assert_eq!(again["outcome"], "effect_reported");
    assert_eq!(taken(&again), event);
    for (field, value) in [
        ("evicted", json!([{"key": "k"}])),
        ("booked_room", json!("s")),
        ("reversal_of", json!("h0")),
        ("reason", json!("replay")),
    ] {
        let mut event = follow_up.clone();
        event[field] = value;
        assert_eq!(refused(&event, field), "contradiction");
    }
    follow_up["effect"] = json!("maybe");
    assert_eq!(refused(&follow_up, "effect"), "invalid");
    follow_up["effect"] = Value::Null;
    refused(&follow_up, "outcome");
    assert_eq!(refused(&with("outcome", json!("effect_reported")), "effect"), "missing");
}

#[test]
fn an_acceptance_names_at_most_64_that_it_pushed_out() {
    let keys = |n: usize| (0..n).map(|n| json!({"key": n.to_string()})).collect::<Value>();
    assert_eq!(taken(&with("evicted", keys(64))).evicted.len(), 64);
    assert_eq!(refused(&with("evicted", keys(65)), "evicted"), "too_many");
}

#[test]
fn a_window_above_its_capacity_is_taken() {
    let window = taken(&with("window", json!({"len": 5, "cap": 4, "scope": "room"}))).window;
    assert_eq!(window.map(|window| (window.len, window.cap)), Some((5, 4)));
    let strange = with("window", json!({"len": 5, "cap": 4, "scope": "table"}));
    assert_eq!(refused(&strange, "window.scope"), "invalid");
}

#[test]
fn words_are_known_or_refused() {
    for (field, bad) in [("outcome", "ok"), ("guard_mode", "remote"), ("effect", "maybe")] {
        assert_eq!(refused(&with(field, json!(bad)), field), "invalid");
        assert_eq!(refused(&with(field, json!({"processed": null})), field), "invalid");
    }
    let long = one(&with("outcome", json!("x".repeat(9_000))).to_string()).unwrap_err();
    assert!(long.message.len() <= 300);
}

#[test]
fn a_key_that_stands_there_twice_is_refused() {
    let text = event().to_string().replacen('{', "{\"player\":\"p-2\",", 1);
    let twice = one(&text).unwrap_err();
    assert_eq!(twice.code, "duplicate_key");
    assert!(twice.message.starts_with("player: "));
    assert_eq!(twice.sequence, Some((Boot::Number(1), 42)), "what is said once can be read");
    let text = event().to_string().replacen('{', "{\"se\\u0071\":43,", 1);
    let twice = one(&text).unwrap_err();
    assert_eq!((twice.code.as_str(), twice.sequence), ("duplicate_key", None));
    let text = event().to_string().replace("\"net\"", "\"net\":\"1\",\"net\"");
    assert!(one(&text).unwrap_err().message.starts_with("signature.net: "));
}

#[test]
fn an_object_of_many_fields_is_searched_for_doubles_too() {
    let mut many = event();
    for n in 0..100 {
        many[format!("x{n}")] = json!(n);
    }
    taken(&many);
    let text = many.to_string().replacen('{', "{\"x7\":0,", 1);
    assert!(one(&text).unwrap_err().message.starts_with("x7: "));
}

#[test]
fn unknown_fields_are_ignored_and_counted() {
    let mut event = event();
    event["table"] = json!("green");
    event["mood"] = json!({"deep": [1, 2]});
    let body = json!([event, event]).to_string();
    let decoded = outcomes(body.as_bytes(), Format::Json, context()).unwrap();
    assert_eq!(decoded.unknown_fields, 4);
    assert!(decoded.items.iter().all(Result::is_ok));
}

#[test]
fn a_refused_event_keeps_what_can_be_read() {
    let mut bad = without("player");
    bad["event_id"] = json!("e-1");
    bad["env"] = json!("test");
    bad["note"] = json!("\u{e9}".repeat(2_000));
    let refused = one(&bad.to_string()).unwrap_err();
    assert_eq!(refused.from.unwrap().service.as_str(), "settle");
    assert_eq!(refused.sequence, Some((Boot::Number(1), 42)));
    assert_eq!(refused.event_id.unwrap().as_str(), "e-1");
    assert_eq!(refused.ledger.as_deref(), Some("settle@test"));
    assert!(bad.to_string().starts_with(&refused.text));
    assert!((1_020..=1_024).contains(&refused.text.len()));
}

#[test]
fn an_event_has_at_most_16_kib() {
    let mut large = event();
    large["note"] = json!("x".repeat(16 << 10));
    let refused = one(&large.to_string()).unwrap_err();
    assert_eq!(refused.code, "too_large");
    assert_eq!(refused.sequence, Some((Boot::Number(1), 42)));
}

#[test]
fn a_bad_element_leaves_the_others_alone() {
    let body = json!([event(), 7, "x", [], {}, without("player"), event()]).to_string();
    let items = outcomes(body.as_bytes(), Format::Json, context()).unwrap().items;
    let codes: Vec<_> = items
        .iter()
        .map(|item| item.as_ref().map_or_else(|r| r.refused.code.as_str(), |_| "taken"))
        .collect();
    let object = "not_an_object";
    assert_eq!(codes, ["taken", object, object, object, "missing", "missing", "taken"]);
}

#[test]
fn a_broken_line_is_one_rejected_event() {
    let body = format!("{}\r\n\n{{\"service\":\n  {}\n{{}}x", event(), event());
    let items = outcomes(body.as_bytes(), Format::NdJson, context()).unwrap().items;
    let ok: Vec<_> = items.iter().map(Result::is_ok).collect();
    assert_eq!(ok, [true, false, true, false]);
    assert_eq!(items[1].as_ref().unwrap_err().refused.code, "not_json");
}

fn body_error(body: &[u8], format: Format) -> &'static str {
    outcomes(body, format, context()).unwrap_err().code()
}

#[test]
fn bodies_that_can_not_be_cut_are_refused_whole() {
    for format in [Format::Json, Format::NdJson] {
        assert_eq!(body_error(b"", format), "empty_body");
        assert_eq!(body_error(b" \r\n\t", format), "empty_body");
        assert_eq!(body_error(b"[\"\xff\"]", format), "not_utf8");
    }
    let array = json!([event(), event()]).to_string();
    assert_eq!(body_error(&array.as_bytes()[..array.len() - 9], Format::Json), "not_json");
    for text in ["{", "[{},]", "[1 2]", "nothing", "[] []", "{}{}", "[\"a\u{0}\"]"] {
        assert_eq!(body_error(text.as_bytes(), Format::Json), "not_json", "{text}");
    }
    assert!(outcomes(b"[]", Format::Json, context()).unwrap().items.is_empty());
    let deep = format!("[{}{}]", "[".repeat(100_000), "]".repeat(100_000));
    let deep = outcomes(deep.as_bytes(), Format::Json, context()).unwrap();
    assert_eq!(deep.items[0].as_ref().unwrap_err().refused.code, "too_large");
}

#[test]
fn a_body_has_at_most_10_000_events() {
    let array = |n: usize| format!("[{}]", vec!["0"; n].join(","));
    let taken = outcomes(array(10_000).as_bytes(), Format::Json, context()).unwrap();
    assert_eq!(taken.items.len(), 10_000);
    assert_eq!(body_error(array(10_001).as_bytes(), Format::Json), "too_many_events");
    assert_eq!(body_error("0\n".repeat(10_001).as_bytes(), Format::NdJson), "too_many_events");
}

#[test]
fn heartbeats_are_read_as_strictly() {
    let beat = json!({
        "service": "settle", "source": "a", "boot": "1", "last_seq": 0,
        "at": "2026-11-30T12:00:00Z", "ledgers": ["chips"], "state": "running",
    });
    let read = |beat: &Value| {
        let body = beat.to_string();
        let mut decoded = heartbeats(body.as_bytes(), Format::Json, context()).unwrap();
        decoded.items.remove(0).map_err(|refusal| refusal.refused.message)
    };
    assert_eq!(read(&beat).unwrap().ledgers.len(), 1);
    for (field, bad) in [
        ("boot", json!("now")),
        ("last_seq", json!(-1)),
        ("at", json!("1600-01-01T00:00:00Z")),
        ("state", json!("resting")),
        ("ledgers", json!("chips")),
        ("service", Value::Null),
    ] {
        let mut other = beat.clone();
        other[field] = bad;
        assert!(read(&other).unwrap_err().starts_with(&format!("{field}: ")));
    }
    let mut other = beat;
    other["ledgers"] = json!(["chips", ""]);
    assert!(read(&other).unwrap_err().starts_with("ledgers[1]: "));
}
