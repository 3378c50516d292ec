//! What the judge holds and stores of one player or one settlement, however much is said of it.

use serde_json::{Value, json};

use super::*;
use crate::outcome::format_us;
use crate::store::fixtures::Fixture;

/// Stored of a player at most. It has 64 evictions to be judged anew, of about 200 bytes each.
const PLAYER_BYTES_MAX: i64 = 32 << 10;
/// Stored of a settlement at most: 64 acceptances, 13 blocks, 8 evictions, 16 follow-ups.
const SIGNATURE_BYTES_MAX: i64 = 16 << 10;

fn settlement(round: u64) -> Value {
    let (room, round) = (format!("r-{}", round % 7), round.to_string());
    json!({"room": room, "round": round, "net": "5", "final": true})
}

/// All sorts of things of the `n`-th settlement of one player.
fn sayings(n: u64) -> Vec<Value> {
    let window = json!({"len": 4, "cap": 4});
    let mut said = vec![json!({
        "outcome": "processed", "signature": settlement(n), "window": window,
        "ref": format!("b-{n}"), "message_id": n.to_string(), "state_version": n,
        "evicted": [settlement(n.saturating_sub(4))],
    })];
    let more = match n % 6 {
        0 => json!({"outcome": "replay_blocked", "signature": settlement(n), "window": window}),
        1 => json!({"outcome": "replay_blocked", "signature": settlement(1_000_000 + n)}),
        2 => json!({"outcome": "unknown", "signature": settlement(2_000_000 + n)}),
        3 => json!({"outcome": "evicted", "signature": settlement(n - 1), "window": window}),
        4 => json!({"effect": "failed", "outcome": "effect_reported", "signature": settlement(n)}),
        _ => json!({"outcome": "late_accepted", "signature": settlement(n - 2), "window": window}),
    };
    said.push(more);
    said
}

fn bodies(said: Vec<Value>, first_seq: u64) -> Vec<Body> {
    let body = |(seq, mut event): (u64, Value)| {
        let at_us = START_US + seq.cast_signed() * 100_000;
        // Three guards write, in turn: orders and windows are seldom known for sure.
        let source = ["a", "b", "c"][usize::try_from(seq % 3).unwrap()];
        let common = json!({"service": "s", "env": "prod", "source": source, "boot": "1",
            "player": "p", "occurred_at": format_us(at_us), "seq": seq / 3 + 1});
        event.as_object_mut().unwrap().extend(common.as_object().unwrap().clone());
        Body::Event(serde_json::from_value(event).unwrap())
    };
    (first_seq..).zip(said).map(body).collect()
}

async fn judge_all(judge: &mut Judge) {
    while judge.step().await.unwrap() > 0 {}
}

async fn sizes(store: &Store, table: &str) -> (i64, i64) {
    let (rows, largest) = match table {
        "players" => ("SELECT count(*) FROM players", "SELECT max(length(body)) FROM players"),
        "signatures" => {
            ("SELECT count(*) FROM signatures", "SELECT max(length(body)) FROM signatures")
        }
        _ => ("SELECT count(*) FROM refs", "SELECT max(length(body)) FROM refs"),
    };
    (fixtures::number(store, rows).await, fixtures::number(store, largest).await)
}

#[tokio::test]
async fn a_player_takes_no_more_room_for_more_settlements() {
    let Fixture { store, _folder } = fixtures::store().await;
    let store = Arc::new(store);
    let mut judge = judge(&store).await;
    let (mut seq, mut n, mut largest) = (0, 0, Vec::new());
    // The first part is ten times what is remembered of a player's windows, the second ten times
    // what is remembered of anything of a player.
    for settlements in [160, 640] {
        let records = bodies((n..n + settlements).flat_map(sayings).collect(), seq);
        (n, seq) = (n + settlements, seq + records.len() as u64);
        append(&store, &records).await;
        judge_all(&mut judge).await;
        let (players, bytes) = sizes(&store, "players").await;
        assert_eq!(players, 1);
        assert!(bytes <= PLAYER_BYTES_MAX, "{bytes}");
        largest.push(bytes);
        let (signatures, bytes) = sizes(&store, "signatures").await;
        assert!(signatures >= n.cast_signed() && bytes <= SIGNATURE_BYTES_MAX, "{bytes}");
        let (_, bytes) = sizes(&store, "refs").await;
        assert!(bytes <= SIGNATURE_BYTES_MAX, "{bytes}");
    }
    // What one more record asks of the store does not grow either.
    let known = judge.known.as_mut().unwrap();
    known.audit.facts.forget_beyond(0, 0);
    let records = bodies(sayings(n), seq);
    append(&store, &records).await;
    assert_eq!(judge.step().await.unwrap(), records.len());
    let facts = &judge.known.as_ref().unwrap().audit.facts;
    let loaded = facts.players.len() + facts.signatures.len() + facts.refs.len();
    assert!(loaded <= 20, "{loaded}");
}

#[tokio::test]
async fn a_settlement_takes_no_more_room_for_more_that_is_said_of_it() {
    let Fixture { store, _folder } = fixtures::store().await;
    let store = Arc::new(store);
    let mut judge = judge(&store).await;
    let said = |n: u64| {
        let one = settlement(1);
        let turn = |words: &[&'static str]| words[usize::try_from(n).unwrap() % words.len()];
        let mut said = vec![
            json!({"outcome": "processed", "signature": one, "ref": format!("b-{n}"),
                "reversal_of": format!("b-{}", n / 2 * 2 + 10_000), "guard_mode": "off",
                "booked_room": format!("x-{n}"), "trace_id": format!("t-{n}")}),
            json!({"outcome": "replay_blocked", "signature": one, "ref": format!("c-{n}"),
                "reason": turn(&["replay", "stale", "in_progress"])}),
            json!({"outcome": "unknown", "signature": one, "reason": "held"}),
            json!({"outcome": "evicted", "signature": one, "reason": "ttl"}),
            json!({"outcome": "effect_reported", "signature": one,
                "effect": turn(&["failed", "applied"])}),
        ];
        // The same under one ref and one message, again and again.
        said.push(json!({"outcome": "processed", "signature": settlement(n + 2), "ref": "same",
            "message_id": "7", "reversal_of": "another"}));
        said
    };
    // Ten times as many as are kept.
    append(&store, &bodies((0..640).flat_map(said).collect(), 0)).await;
    judge_all(&mut judge).await;
    for table in ["players", "signatures", "refs"] {
        let (_, bytes) = sizes(&store, table).await;
        assert!(bytes <= PLAYER_BYTES_MAX, "{table}: {bytes}");
    }
}
