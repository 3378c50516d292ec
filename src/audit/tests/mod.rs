//! Each rule by itself, in small worlds: what it finds, and what it must not find.

mod advisor;
mod arrival;
mod blocks;
mod bookings;
mod bounds;
mod claims;
mod clocks;
mod effects;
mod evictions;
mod inferred;
mod leaks;
mod messages;
mod refs;
mod rooms;
mod rows;
mod shared;
mod sources;
mod stored;
mod transitions;
mod windows;
mod witnesses;

use std::collections::{BTreeMap, BTreeSet};

use self::stored::Stored;
use super::{Audit, Change, Finding, Kind, Settings, State, SumKey};
use crate::outcome::{
    Amounts, Body, Boot, Closed, Event, GivenUp, Heartbeat, Id, KeyedHash, Position, Record,
    Refused, Silent, SourceName, SourceState, format_us, parse_us,
};

/// A moment to begin at.
const START: &str = "2026-11-01T00:00:00Z";

/// Records after each of which a world is read back.
const RESTARTS: i64 = 60;

/// An audit in memory, its log, and the rows that it wrote.
struct World {
    audit: Audit,
    stored: Stored,
    /// It is not read back after records.
    lasts: bool,
    n: i64,
    received_us: i64,
    rows: BTreeMap<String, Finding>,
    gained: BTreeMap<String, BTreeSet<i64>>,
}

fn settings() -> Settings {
    Settings { warmup_us: 0, ..Settings::default() }
}

#[expect(clippy::cast_possible_truncation, reason = "a few hours at most")]
fn seconds(at: f64) -> i64 {
    parse_us(START).unwrap() + (at * 1e6) as i64
}

fn id(text: &str) -> Id {
    Id::parse(text).unwrap()
}

fn named(source: &str) -> SourceName {
    SourceName { service: id("settle"), env: id("prod"), source: id(source) }
}

/// An event in the making: `source boot seq` or `source id`, at seconds.
struct Told(serde_json::Value);

/// `who`: "a 1#2" (source, boot, seq) or "a" (an event_id is made up). `signature`:
/// "room/round/net", with "F" for the final one, or "=key/net".
fn told(at: f64, who: &str, player: &str, signature: &str, outcome: &str) -> Told {
    let mut parts = who.split(' ');
    let mut event = serde_json::json!({
        "service": "settle", "env": "prod", "source": parts.next().unwrap(),
        "occurred_at": format_us(seconds(at)), "player": player,
        "signature": signature_of(signature), "outcome": outcome,
    });
    match parts.next() {
        Some(number) => {
            let (boot, seq) = number.split_once('#').unwrap();
            event["boot"] = boot.into();
            event["seq"] = seq.parse::<u64>().unwrap().into();
        }
        None => event["event_id"] = format!("{at}-{signature}-{outcome}").into(),
    }
    Told(event)
}

fn signature_of(text: &str) -> serde_json::Value {
    if let Some((key, net)) = text.strip_prefix('=').and_then(|text| text.split_once('/')) {
        return serde_json::json!({"key": key, "net": net});
    }
    let parts: Vec<&str> = text.split('/').collect();
    let net = parts[2].trim_end_matches('F');
    serde_json::json!({
        "room": parts[0], "round": parts[1], "net": net, "final": parts[2].ends_with('F')
    })
}

impl Told {
    fn with(mut self, field: &str, value: impl Into<serde_json::Value>) -> Self {
        self.0[field] = value.into();
        self
    }

    fn window(self, len: u64, cap: u64) -> Self {
        self.with("window", serde_json::json!({"len": len, "cap": cap}))
    }

    fn evicts(self, signature: &str) -> Self {
        self.with("evicted", vec![signature_of(signature)])
    }

    fn event(self) -> Event {
        serde_json::from_value(self.0).unwrap()
    }
}

impl World {
    fn new() -> Self {
        Self::with(settings())
    }

    fn with(settings: Settings) -> Self {
        Self {
            audit: Audit::in_memory(settings, KeyedHash::new([3; 16])),
            stored: Stored::default(),
            lasts: false,
            n: 0,
            received_us: seconds(0.0),
            rows: BTreeMap::new(),
            gained: BTreeMap::new(),
        }
    }

    fn fold(&mut self, body: Body) {
        self.n += 1;
        let position = Position { collector: 1, n: self.n };
        self.audit.fold(&Record { position, received_us: self.received_us, body });
        for _ in 0..100 {
            let ready = self.audit.ready();
            if ready.is_empty() {
                break;
            }
            self.audit.settle(&ready);
        }
        assert!(self.audit.ready().is_empty(), "something is settled for ever");
        for (id, change) in self.audit.book.take_changes() {
            match change {
                Change::Write { finding, gained_us, .. } => {
                    self.gained.entry(id.clone()).or_default().extend(gained_us);
                    self.rows.insert(id, *finding);
                }
                Change::Withdraw => {
                    self.rows.remove(&id);
                }
            }
        }
        // After each record, as long as that is quick.
        if !self.lasts && (self.n <= RESTARTS || self.n % (50 * RESTARTS) == 0) {
            self.assert_sums();
            self.stored.take(&mut self.audit);
            self.audit = self.stored.read_back(&mut self.audit);
        }
    }

    /// The sums are those of the rows.
    fn assert_sums(&self) {
        let mut sums: BTreeMap<SumKey, (u64, u64, Amounts)> = BTreeMap::new();
        for row in self.rows.values() {
            let ledger = row.ledger.clone().unwrap_or_default();
            let key = (row.kind, row.service.clone(), row.env.clone(), ledger);
            let (confirmed, suspected, amounts) = sums.entry(key).or_default();
            match row.state {
                State::Confirmed => {
                    *confirmed += 1;
                    *amounts = amounts.plus(row.amounts);
                }
                State::Suspected => *suspected += 1,
                State::Closed => {}
            }
        }
        for (key, sums_of) in self.audit.book.sums() {
            let told = (sums_of.open_confirmed, sums_of.open_suspected, sums_of.amounts);
            assert_eq!(sums.remove(key).unwrap_or_default(), told, "{key:?}");
        }
        assert!(sums.is_empty(), "{sums:?}");
    }

    /// Receives an event at the time when it happened, or later.
    fn hear(&mut self, told: Told) {
        let event = told.event();
        self.received_us = self.received_us.max(event.occurred_us);
        self.fold(Body::Event(Box::new(event)));
    }

    /// Receives nothing until then.
    fn wait_until(&mut self, at: f64) {
        self.received_us = seconds(at);
        self.fold(Body::Tick);
    }

    fn heartbeat(&mut self, at: f64, source: &str, boot: &str, last_seq: u64) {
        self.heartbeat_in(at, source, boot, last_seq, SourceState::Running);
    }

    fn goodbye(&mut self, at: f64, source: &str, boot: &str, last_seq: u64) {
        self.heartbeat_in(at, source, boot, last_seq, SourceState::Closing);
    }

    fn heartbeat_in(&mut self, at: f64, source: &str, boot: &str, last: u64, state: SourceState) {
        self.received_us = self.received_us.max(seconds(at));
        self.fold(Body::Heartbeat(Heartbeat {
            from: named(source),
            boot: Boot::parse(boot).unwrap(),
            last_seq: last,
            at_us: seconds(at),
            ledgers: vec![id("settle")],
            state,
        }));
    }

    fn give_up(&mut self, source: &str, boot: &str, first_seq: u64, last_seq: u64) {
        let (from, boot) = (named(source), Boot::parse(boot).unwrap());
        self.fold(Body::GivenUp(GivenUp { from, boot, first_seq, last_seq }));
    }

    fn silent(&mut self, source: &str, boot: &str) {
        let boot = Boot::parse(boot).unwrap();
        self.fold(Body::Silent(Silent { from: named(source), boot }));
    }

    fn refuse(&mut self, source: &str, boot: &str, seq: u64) {
        self.fold(Body::Refused(Box::new(Refused {
            from: Some(named(source)),
            sequence: Some((Boot::parse(boot).unwrap(), seq)),
            event_id: None,
            ledger: Some("settle".into()),
            code: "bad_value".into(),
            message: "net: not an integer".into(),
            text: "{}".into(),
        })));
    }

    fn conflict(&mut self, told: Told) {
        self.fold(Body::Conflict(Box::new(told.event())));
    }

    fn close(&mut self, kind: Kind) {
        let finding = self.only(kind).clone();
        let closed = Closed {
            finding: finding.id.clone(),
            reason: "known".into(),
            note: "paid back".into(),
        };
        self.audit.load_finding(finding);
        self.fold(Body::Closed(closed));
    }

    /// The open rows of a kind.
    fn open(&self, kind: Kind) -> Vec<&Finding> {
        let open = |row: &&Finding| row.kind == kind && row.state != State::Closed;
        self.rows.values().filter(open).collect()
    }

    /// The one open row of a kind.
    fn only(&self, kind: Kind) -> &Finding {
        let open = self.open(kind);
        assert_eq!(open.len(), 1, "{kind:?}: {:#?}", self.rows);
        open[0]
    }

    /// Nothing is open.
    fn assert_quiet(&self) {
        let open: Vec<_> = self.rows.values().filter(|row| row.state != State::Closed).collect();
        assert!(open.is_empty(), "{open:#?}");
    }

    /// Rows of a kind, closed ones too, in order.
    fn all(&self, kind: Kind) -> Vec<&Finding> {
        let mut rows: Vec<_> = self.rows.values().filter(|row| row.kind == kind).collect();
        rows.sort_by_key(|row| row.ordinal);
        rows
    }

    fn skipped(&mut self) -> BTreeMap<&'static str, u64> {
        self.audit.take_skipped()
    }
}
