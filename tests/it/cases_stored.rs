//! The cases through the whole collector: real writer, real judge, real database; cut in every
//! way, and stopped between any two steps. Same findings, whatever the way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use dedupwatch::audit::{Finding, Settings};
use dedupwatch::clock::Clock;
use dedupwatch::ingest::decode::{self, Context, Format};
use dedupwatch::ingest::{Ingest, Parts};
use dedupwatch::judge::{self, Judge};
use dedupwatch::metrics::Metrics;
use dedupwatch::redo;
use dedupwatch::store::{FindingFilter, Store};
use dedupwatch::vitals::Vitals;
use serde_json::{Value, json};

use crate::cases::{Case, cases, moved, same};
use crate::support::{LOOK_EVERY, PATIENCE, TestProcess, now_us};

/// How a case is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    OneBatch,
    OneEventABatch,
    EachBatchTwice,
    ReopenedBetweenSteps,
}

/// The parts of a collector without a server, on one database.
struct Collector {
    url: String,
    clock: Clock,
    store: Arc<Store>,
    ingest: Ingest,
    judge: Judge,
    reopen: bool,
}

impl Collector {
    async fn open(url: &str, clock: &Clock, reopen: bool) -> Self {
        let store = Arc::new(Store::open(url, "collector-1").await.unwrap());
        let vitals = Arc::new(Vitals::default());
        let metrics =
            Arc::new(Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await.unwrap());
        let settings = Settings { warmup_us: 0, ..Settings::default() };
        let parts = Parts {
            store: Arc::clone(&store),
            vitals: Arc::clone(&vitals),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            gap_grace_us: settings.gap_grace_us,
        };
        let ingest = Ingest::start(parts).await.unwrap();
        let (store_of_judge, clock_of_judge) = (Arc::clone(&store), clock.clone());
        let parts = judge::Parts {
            store: store_of_judge,
            vitals,
            metrics,
            clock: clock_of_judge,
            settings,
            // So few that all that is moved is moved while the case runs.
            pending_rows: 4,
        };
        let judge = Judge::open(parts).await.unwrap();
        Self { url: url.into(), clock: clock.clone(), store, ingest, judge, reopen }
    }

    /// Between two steps: the collector is stopped without a word and opened again.
    async fn pause(self) -> Self {
        if !self.reopen {
            return self;
        }
        let (url, clock) = (self.url.clone(), self.clock.clone());
        drop(self);
        Self::open(&url, &clock, true).await
    }

    async fn push(self, events: &[Value]) -> Self {
        // Heartbeats have a door of their own: a batch ends where one comes.
        let mut collector = self;
        for run in events.chunk_by(|a, b| is_heartbeat(a) == is_heartbeat(b)) {
            let context =
                Context { now_us: collector.clock.now_us(), hash: collector.store.hash() };
            let body = if is_heartbeat(&run[0]) {
                let inner: Vec<&Value> = run.iter().map(|event| &event["heartbeat"]).collect();
                serde_json::to_vec(&inner).unwrap()
            } else {
                serde_json::to_vec(run).unwrap()
            };
            if is_heartbeat(&run[0]) {
                let decoded = decode::heartbeats(&body, Format::Json, context).unwrap();
                let admission = collector.ingest.admit(body.len()).unwrap();
                collector.ingest.heartbeats(decoded, admission).await.unwrap();
            } else {
                let decoded = decode::outcomes(&body, Format::Json, context).unwrap();
                let admission = collector.ingest.admit(body.len()).unwrap();
                collector.ingest.push(decoded, admission).await.unwrap();
            }
            collector = collector.pause().await;
        }
        collector.judge_all().await
    }

    async fn judge_all(mut self) -> Self {
        while self.judge.step().await.unwrap() > 0 {
            self = self.pause().await;
        }
        self.pause().await
    }

    /// Lets time go by: silences, holes given up, graces.
    async fn wait(mut self, by_us: i64) -> Self {
        self.clock.advance(by_us);
        self.ingest.keep().await.unwrap();
        self = self.judge_all().await;
        self.ingest.keep().await.unwrap();
        self.judge_all().await
    }

    async fn findings(&self) -> Vec<Finding> {
        let page = self.store.findings(&FindingFilter::default(), None, 1_000).await.unwrap();
        let mut findings: Vec<Finding> = page.rows.into_iter().map(|row| row.finding).collect();
        findings.sort_by_key(|finding| (finding.kind, finding.subject.clone(), finding.ordinal));
        // Databases have keys of their own.
        findings.iter_mut().for_each(|finding| finding.id.clear());
        same(findings)
    }
}

fn is_heartbeat(event: &Value) -> bool {
    event.get("heartbeat").is_some()
}

async fn run(case: &Case, way: Way) -> Vec<Finding> {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("sqlite://{}", folder.path().join("test.db").display());
    let clock = Clock::manual(case.end_us() + 10_000_000);
    let reopen = way == Way::ReopenedBetweenSteps;
    let mut collector = Collector::open(&url, &clock, reopen).await;
    match way {
        Way::OneBatch => collector = collector.push(&case.events).await,
        Way::OneEventABatch | Way::ReopenedBetweenSteps => {
            for event in &case.events {
                collector = collector.push(std::slice::from_ref(event)).await;
            }
        }
        Way::EachBatchTwice => {
            for _ in 0..2 {
                collector = collector.push(&case.events).await;
            }
        }
    }
    // Silence counts from the opening of the collector on, so no opening comes between.
    collector.reopen = false;
    collector = collector.wait(45_000_000).await;
    collector = collector.wait(45_000_000).await;
    let verified = redo::verify(&url, "collector-1").await.unwrap();
    assert!(verified.tables.is_empty(), "{} {way:?}: {:#?}", case.id, verified.tables);
    collector.findings().await
}

async fn compare(way: Way) {
    let mut wrong = Vec::new();
    for case in cases().into_iter().chain([follow_ups()]) {
        let expected = run(&case, Way::OneBatch).await;
        let differences = case.differences(&expected);
        wrong.extend(differences.iter().map(|what| format!("{}: {what}", case.id)));
        let findings = run(&case, way).await;
        if findings != expected {
            let id = &case.id;
            wrong.push(format!("{id} {way:?}: {findings:#?}\nin one batch: {expected:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Fates told later: of a booking, of one past the guard, of a surplus, and of a reversal.
fn follow_ups() -> Case {
    let at = |second: u64| format!("2026-11-01T00:{:02}:{:02}Z", second / 60, second % 60);
    let mut seq = 0;
    let mut told = |second: u64, net: &str, more: Value| {
        seq += 1;
        let mut event = json!({
            "service": "settle", "source": "a", "boot": "1", "seq": seq, "player": "p",
            "occurred_at": at(second),
            "signature": {"room": "r", "round": "1", "net": net, "final": true},
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        event
    };
    let accepted = json!({"outcome": "processed"});
    let (failed, applied) = (json!({"effect": "failed"}), json!({"effect": "applied"}));
    let by = json!({"outcome": "processed", "ref": "s1"});
    let events = vec![
        told(1, "10", accepted.clone()),
        told(2, "10", json!({"outcome": "replay_blocked"})),
        told(3, "10", failed.clone()),
        told(4, "20", json!({"outcome": "processed", "guard_mode": "off"})),
        told(5, "20", failed.clone()),
        told(6, "20", applied.clone()),
        told(7, "30", accepted.clone()),
        told(8, "30", accepted),
        told(9, "30", failed.clone()),
        told(10, "40", by.clone()),
        told(11, "40", by),
        told(12, "-40", json!({"outcome": "processed", "ref": "u1", "reversal_of": "s1"})),
        told(13, "-40", failed),
        told(14, "50", json!({"outcome": "processed", "effect": "unknown"})),
        told(15, "50", applied),
    ];
    let kinds = |kinds: &[&str]| kinds.iter().map(|kind| (*kind).to_owned()).collect();
    Case {
        id: "follow_ups".into(),
        events,
        must_find: kinds(&[
            "accept_without_effect",
            "block_after_failed_effect",
            "duplicate_leak",
            "guard_bypass",
        ]),
        may_find: kinds(&[]),
        overpaid: 40,
        overcharged: 0,
    }
}

#[tokio::test]
async fn one_event_a_batch() {
    compare(Way::OneEventABatch).await;
}

#[tokio::test]
async fn each_batch_twice() {
    compare(Way::EachBatchTwice).await;
}

#[tokio::test]
async fn reopened_between_any_two_steps() {
    compare(Way::ReopenedBetweenSteps).await;
}

/// What must be the same: kind, subject, state, cause, count, amounts, severity, witnesses.
async fn found(process: &TestProcess) -> Vec<Value> {
    let list = process.get_json("/api/v1/findings?limit=1000").await;
    let mut findings: Vec<Value> = list["findings"].as_array().unwrap().clone();
    for finding in &mut findings {
        let witnesses = finding["witnesses"].as_array_mut().unwrap();
        witnesses.iter_mut().for_each(|witness| witness["position"] = json!(null));
        // A refused event has no time but that of its receipt.
        if finding["kind"] == "rejected_evidence" {
            finding["first_at"] = json!(null);
            finding["last_at"] = json!(null);
            finding["witnesses"][0]["occurred_at"] = json!(null);
        }
        for own in ["id", "opened_at", "help_url", "gained_at", "url"] {
            finding.as_object_mut().unwrap().remove(own);
        }
    }
    findings.sort_by_key(ToString::to_string);
    findings
}

/// Waits until the verdict is right and stays the same.
async fn settled(process: &TestProcess, case: &Case) -> Vec<Value> {
    let end = Instant::now() + PATIENCE;
    let mut last = (Vec::new(), Instant::now());
    loop {
        let findings = found(process).await;
        let kinds: BTreeMap<&str, &str> = findings
            .iter()
            .filter(|finding| finding["state"] == "confirmed")
            .map(|finding| (finding["kind"].as_str().unwrap(), ""))
            .collect();
        let complete = case.must_find.iter().all(|kind| kinds.contains_key(kind.as_str()));
        if findings != last.0 {
            last = (findings, Instant::now());
        } else if complete && last.1.elapsed().as_secs() >= 3 {
            return last.0;
        }
        assert!(Instant::now() < end, "{}: not settled: {:#?}", case.id, last.0);
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn send(process: &TestProcess, event: &Value) {
    let reply = match event.get("heartbeat") {
        Some(heartbeat) => process.heartbeat(heartbeat).await,
        None => process.push(event).await,
    };
    assert!([200, 207, 422].contains(&reply.status), "{reply:?}");
}

#[tokio::test]
async fn killed_between_any_two_steps() {
    let graces = [
        ("DEDUPWATCH_AUDIT_WARMUP", "0s"),
        ("DEDUPWATCH_AUDIT_EVICTION_GRACE", "0s"),
        ("DEDUPWATCH_AUDIT_BLOCK_GRACE", "0s"),
        ("DEDUPWATCH_AUDIT_GAP_GRACE", "0s"),
    ];
    for case in cases() {
        if !["E05", "H19", "K02", "N01", "N05"].contains(&case.id.as_str()) {
            continue;
        }
        let events = moved(&case, now_us() - 10_000_000 - case.end_us());
        let whole = TestProcess::start_with(&[], &graces).await;
        for event in &events {
            send(&whole, event).await;
        }
        let expected = settled(&whole, &case).await;
        let mut killed = TestProcess::start_with(&[], &graces).await;
        for event in &events {
            send(&killed, event).await;
            killed = killed.restart().await;
        }
        assert_eq!(settled(&killed, &case).await, expected, "{}", case.id);
    }
}
