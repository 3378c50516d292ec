//! Witnesses: each tells all that was told of it, for it outlives the log.

use serde_json::{Value, json};

use super::*;

/// The witnesses of the one open finding of a kind, without what is the same in all.
fn witnesses(world: &World, kind: Kind) -> Vec<Value> {
    let told = |witness| {
        let mut told = serde_json::to_value(witness).unwrap();
        let fields = told.as_object_mut().unwrap();
        fields.remove("position");
        for everywhere in ["service", "env"] {
            fields.remove(everywhere);
        }
        fields.retain(|_, value| !value.is_null());
        told
    };
    world.only(kind).witnesses.iter().map(told).collect()
}

#[test]
fn acceptances_and_what_became_of_them_are_told_whole() {
    let mut world = World::new();
    let accepted = |at, who| {
        let told = told(at, who, "p", "A/1/5", "processed").with("ref", "r");
        told.with("trace_id", format!("trace of {who}")).with("guard_mode", "shared").window(2, 4)
    };
    world.hear(accepted(1.0, "a 1#1"));
    world.hear(accepted(2.0, "b 7#3").with("outcome", "late_accepted"));
    let report = told(3.0, "b 7#4", "p", "A/1/5", "effect_reported");
    world.hear(report.with("ref", "r").with("effect", "applied"));
    world.wait_until(200.0);
    let told = json!([
        {
            "role": "accepted", "source": "a", "boot": "1", "seq": 1, "outcome": "processed",
            "occurred_at": "2026-11-01T00:00:01.000000Z", "ref": "r", "trace_id": "trace of a 1#1",
            "guard_mode": "shared", "window": {"len": 2, "cap": 4},
        },
        {
            "role": "accepted_again", "source": "b", "boot": "7", "seq": 3,
            "outcome": "late_accepted", "occurred_at": "2026-11-01T00:00:02.000000Z", "ref": "r",
            "trace_id": "trace of b 7#3", "guard_mode": "shared", "window": {"len": 2, "cap": 4},
            "effect": "applied",
        },
    ]);
    assert_eq!(Value::Array(witnesses(&world, Kind::DuplicateLeak)), told);
}

#[test]
fn blocks_are_told_whole() {
    let mut world = World::new();
    let block = told(1.0, "a 1#1", "p", "A/1/5", "replay_blocked").with("ref", "r");
    let block = block.with("trace_id", "t").with("guard_mode", "local").with("reason", "replay");
    world.hear(block.window(2, 4));
    for at in [2.0, 400.0] {
        world.heartbeat(at, "a", "1", 1);
    }
    world.wait_until(20_000.0);
    let told = json!([{
        "role": "blocked", "source": "a", "boot": "1", "seq": 1, "outcome": "replay_blocked",
        "occurred_at": "2026-11-01T00:00:01.000000Z", "ref": "r", "trace_id": "t",
        "guard_mode": "local", "reason": "replay", "window": {"len": 2, "cap": 4},
    }]);
    assert_eq!(Value::Array(witnesses(&world, Kind::FalseBlock)), told);
}

#[test]
fn two_writers_are_told_whole_and_only_the_first_of_them() {
    let mut world = World::new();
    let accepted = |n: u32, source: &str, at: f64| {
        let who = format!("{source} 1#{n}");
        told(at, &who, "p", &format!("{source}/{n}/5"), "processed").with("guard_mode", "local")
    };
    world.hear(accepted(1, "a", 1.0));
    world.hear(accepted(1, "b", 1.005));
    let of = |source: &str, at: &str| {
        json!({
            "role": "accepted", "source": source, "boot": "1", "seq": 1, "guard_mode": "local",
            "occurred_at": format!("2026-11-01T00:00:01.{at}Z"),
        })
    };
    let told = json!([of("a", "000000"), of("b", "004999")]);
    assert_eq!(Value::Array(witnesses(&world, Kind::TwoWriters)), told);
    for n in 2_u32..30 {
        let source = if n % 2 == 0 { "a" } else { "b" };
        world.hear(accepted(n / 2 + 1, source, 1.0 + f64::from(n) / 1e3));
    }
    let all = witnesses(&world, Kind::TwoWriters);
    assert_eq!(all.len(), 10, "examples, each once");
    assert!((1..all.len()).all(|n| !all[..n].contains(&all[n])), "{all:#?}");
}

#[test]
fn what_became_of_an_acceptance_is_told_whole() {
    let mut world = World::new();
    world.hear(told(1.0, "a 1#1", "p", "A/1/5", "processed").with("ref", "r"));
    let report = told(3.0, "a 1#2", "p", "A/1/5", "effect_reported");
    world.hear(report.with("ref", "r").with("effect", "failed"));
    world.wait_until(20_000.0);
    let told = json!([
        {
            "role": "accepted", "source": "a", "boot": "1", "seq": 1, "outcome": "processed",
            "occurred_at": "2026-11-01T00:00:01.000000Z", "ref": "r", "effect": "failed",
        },
        {
            "role": "effect_reported", "source": "a", "boot": "1", "seq": 2,
            "outcome": "effect_reported", "occurred_at": "2026-11-01T00:00:03.000000Z",
            "ref": "r", "effect": "failed",
        },
    ]);
    assert_eq!(Value::Array(witnesses(&world, Kind::AcceptWithoutEffect)), told);
}
