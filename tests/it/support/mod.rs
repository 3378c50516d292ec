//! What all tests use: a real collector on a free port with a real database in a folder of its
//! own, either inside the test (`TestApp`) or as a process that can be killed (`TestProcess`).
//! Both have the verbs of `Api`.
#![allow(dead_code, reason = "each test uses what it needs")]

mod api;
pub mod postgres;
pub mod prometheus;
pub mod receiver;
pub mod seed;
mod test_app;
mod test_process;

#[allow(unused_imports, reason = "as above")]
pub use api::{Api, Reply};
pub use test_app::TestApp;
pub use test_process::{TestProcess, program};

use std::time::Duration;

use dedupwatch::clock::Clock;
use serde_json::{Value, json};

/// How long a test waits for what must come.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks.
pub const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A moment as the wire has it.
pub fn rfc3339(at_us: i64) -> String {
    chrono::DateTime::from_timestamp_micros(at_us)
        .unwrap()
        .to_rfc3339_opts(chrono::SecondsFormat::Micros, true)
}

/// The machine's time.
pub fn now_us() -> i64 {
    Clock::System.now_us()
}

/// An outcome as a service sends it: `seq` of source `settle-1`, of a settlement of its own. Tests
/// change the fields that matter to them.
pub fn event(seq: u64) -> Value {
    json!({
        "service": "settle-poker",
        "source": "settle-1",
        "boot": "1",
        "seq": seq,
        "occurred_at": rfc3339(now_us()),
        "player": format!("p-{seq}"),
        "signature": {"room": "r-1", "round": seq, "net": "100", "final": true},
        "outcome": "processed",
        "window": {"len": 1, "cap": 4},
        "check_us": 12,
        "response_us": 1800,
    })
}

/// The events `first..=last`.
pub fn events(first: u64, last: u64) -> Value {
    Value::Array((first..=last).map(event).collect())
}

/// A heartbeat of the source of [`event`].
pub fn heartbeat(last_seq: u64) -> Value {
    json!({
        "service": "settle-poker",
        "source": "settle-1",
        "boot": "1",
        "last_seq": last_seq,
        "at": rfc3339(now_us()),
        "ledgers": ["settle-poker"],
        "state": "running",
    })
}

/// A move of a delivery, from `received` to `checking`: `seq` of source `settle-1`.
pub fn transition(seq: u64) -> Value {
    json!({
        "service": "settle-poker",
        "source": "settle-1",
        "boot": "1",
        "seq": seq,
        "trace_id": format!("trace-{seq}"),
        "key": format!("k-{seq}"),
        "from": "received",
        "to": "checking",
        "at": rfc3339(now_us()),
    })
}
