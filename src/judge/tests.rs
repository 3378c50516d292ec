//! The step: once each record, whatever fails.

mod bounds;

use std::sync::Arc;

use super::*;
use crate::limits;
use crate::outcome::Body;
use crate::store::log::{self, Row};
use crate::store::{FindingFilter, fixtures};

const START_US: i64 = fixtures::NOON_US;

fn body(seq: u64, outcome: &str) -> Body {
    let text = format!(
        r#"{{"service":"s","env":"prod","source":"a","boot":"1","seq":{seq},
        "occurred_at":"2026-11-30T12:00:0{seq}Z","player":"p","outcome":"{outcome}",
        "signature":{{"room":"r","round":"1","net":"5","final":true}}}}"#
    );
    Body::Event(serde_json::from_str(&text).unwrap())
}

async fn append(store: &Store, bodies: &[Body]) {
    let n = store.log_end(store.collector()).await.unwrap();
    let row = |(i, body): (i64, &Body)| {
        let (kind, body) = log::encode(body).unwrap();
        Row { n: n + i, kind, received_us: START_US + i, body }
    };
    let rows: Vec<Row> = (1..).zip(bodies).map(row).collect();
    log::append(&mut store.writer().await.unwrap(), store.collector(), &rows).await.unwrap();
}

async fn judge(store: &Arc<Store>) -> Judge {
    let vitals = Arc::new(Vitals::default());
    let metrics = Metrics::open(Arc::clone(store), Arc::clone(&vitals)).await.unwrap();
    let parts = Parts {
        store: Arc::clone(store),
        vitals,
        metrics: Arc::new(metrics),
        clock: Clock::manual(START_US),
        settings: Settings { warmup_us: 0, ..Settings::default() },
        pending_rows: 5,
    };
    Judge::open(parts).await.unwrap()
}

async fn counts(store: &Store) -> Vec<u64> {
    let page = store.findings(&FindingFilter::default(), None, 10).await.unwrap();
    page.rows.iter().map(|row| row.finding.count).collect()
}

#[tokio::test]
async fn a_step_that_fails_is_repeated_and_counts_once() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let mut judge = judge(&store).await;
    append(&store, &[body(1, "processed"), body(2, "processed")]).await;
    assert_eq!(judge.step().await.unwrap(), 2);
    append(&store, &[body(3, "processed")]).await;
    store.execute("ALTER TABLE progress RENAME TO elsewhere").await;
    for _ in 0..3 {
        judge.step().await.unwrap_err();
    }
    assert_eq!(counts(&store).await, [1]);
    store.execute("ALTER TABLE elsewhere RENAME TO progress").await;
    assert_eq!(judge.step().await.unwrap(), 1);
    assert_eq!(judge.step().await.unwrap(), 0);
    assert_eq!(counts(&store).await, [2]);
}

#[tokio::test]
async fn a_full_disk_stops_it_only_while_it_is_full() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let mut judge = judge(&store).await;
    let mut bodies = vec![body(1, "processed"); 300];
    for (seq, body) in (1..).zip(&mut bodies) {
        let Body::Event(event) = body else { continue };
        (event.seq, event.player) = (Some(seq), fixtures::id(&format!("p-{seq}")));
    }
    append(&store, &bodies).await;
    for _ in 0..2 {
        store.fill_up().await;
        let why = judge.step().await.unwrap_err();
        assert!(matches!(why, StoreError::Full), "{why}");
    }
    let mut judged = 0;
    while judged < bodies.len() {
        judged += judge.step().await.unwrap();
    }
    assert_eq!(judge.step().await.unwrap(), 0);
}

#[tokio::test]
async fn a_judge_that_is_stuck_falls_behind() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let mut judge = judge(&store).await;
    append(&store, &[body(1, "processed")]).await;
    assert_eq!(judge.step().await.unwrap(), 1);
    assert_eq!(judge.step().await.unwrap(), 0);
    let (vitals, clock) = (Arc::clone(&judge.parts.vitals), judge.parts.clock.clone());
    // A long quiet time is no lag.
    clock.advance(3_600 * limits::SECOND_US);
    let away_and_back = [
        ("ALTER TABLE records RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO records"),
        ("ALTER TABLE progress RENAME TO elsewhere", "ALTER TABLE elsewhere RENAME TO progress"),
    ];
    for (away, back) in away_and_back {
        store.execute(away).await;
        for seconds in 0..9 {
            // The second time all has to be read back first.
            if away.contains("progress") {
                judge.known = None;
            }
            judge.step().await.unwrap_err();
            assert_eq!(vitals.audit_lag_us(), seconds * limits::SECOND_US, "{away}");
            clock.advance(limits::SECOND_US);
        }
        store.execute(back).await;
        assert_eq!(judge.step().await.unwrap(), 0);
        assert_eq!(vitals.audit_lag_us(), 0);
    }
    assert_eq!(vitals.judged_n(), 1);
}

#[tokio::test]
async fn the_lag_counts_from_the_oldest_record_that_waits() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let mut judge = judge(&store).await;
    let vitals = Arc::clone(&judge.parts.vitals);
    append(&store, &[body(1, "processed")]).await;
    judge.parts.clock.advance(10 * limits::SECOND_US);
    store.execute("ALTER TABLE progress RENAME TO elsewhere").await;
    for _ in 0..2 {
        judge.step().await.unwrap_err();
        assert_eq!(vitals.audit_lag_us(), 10 * limits::SECOND_US - 1);
    }
    store.execute("ALTER TABLE elsewhere RENAME TO progress").await;
    assert_eq!(judge.step().await.unwrap(), 1);
    assert_eq!(judge.step().await.unwrap(), 0);
    assert_eq!(vitals.audit_lag_us(), 0);
}

#[tokio::test]
async fn a_step_that_was_stored_but_not_answered_is_not_repeated() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let mut judge = judge(&store).await;
    append(&store, &[body(1, "processed"), body(2, "processed")]).await;
    judge.step().await.unwrap();
    // As after a commit whose answer was lost: what is known is gone, what is stored is not.
    judge.known = None;
    assert_eq!(judge.step().await.unwrap(), 0);
    append(&store, &[body(3, "processed")]).await;
    assert_eq!(judge.step().await.unwrap(), 1);
    assert_eq!(counts(&store).await, [2]);
}

#[tokio::test]
async fn facts_are_read_back_as_they_were_written() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let events =
        [body(1, "unknown"), body(2, "processed"), body(3, "evicted"), body(4, "processed")];
    for event in &events {
        append(&store, std::slice::from_ref(event)).await;
        // Each step by a judge that knows nothing but the store.
        assert_eq!(judge(&store).await.step().await.unwrap(), 1);
    }
    let page = store.findings(&FindingFilter::default(), None, 10).await.unwrap();
    let mut found: Vec<_> = page
        .rows
        .iter()
        .map(|row| (row.finding.kind.as_str(), row.finding.cause.clone()))
        .collect();
    found.sort();
    let expected = [
        ("duplicate_leak", "evicted"),
        ("indeterminate_outcome", "possibly_twice"),
        ("live_eviction", "unknown"),
    ];
    assert_eq!(found, expected.map(|(kind, cause)| (kind, cause.to_owned())));
}

#[tokio::test]
async fn numbers_of_changes_rise_also_after_a_withdrawal_and_a_restart() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    append(&store, &[body(2, "replay_blocked")]).await;
    let mut first = judge(&store).await;
    first.step().await.unwrap();
    let suspected = *first.parts.vitals.findings().borrow();
    assert_eq!(suspected, 1);
    append(&store, &[body(1, "processed")]).await;
    first.step().await.unwrap();
    assert!(counts(&store).await.is_empty(), "withdrawn");
    append(&store, &[body(3, "processed")]).await;
    let mut second = judge(&store).await;
    second.step().await.unwrap();
    assert!(*second.parts.vitals.findings().borrow() > suspected, "the alerts read on from there");
}

#[tokio::test]
async fn what_was_let_go_of_is_read_again() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let mut judge = judge(&store).await;
    for (seq, (players, settlements)) in (1..).zip([(0, 9), (9, 0), (0, 0), (9, 9)]) {
        append(&store, &[body(seq, "processed")]).await;
        judge.step().await.unwrap();
        let known = judge.known.as_mut().unwrap();
        known.audit.facts.forget_beyond(players, settlements);
    }
    assert_eq!(counts(&store).await, [3]);
    let records = store.read_records(Position { collector: 1, n: 0 }, 1).await.unwrap();
    let mut audit = memory::restore(&store, &judge.parts.settings).await.unwrap();
    let pending = store.read_pending(1).await.unwrap();
    load_for(&store, &pending, &mut audit, &records).await.unwrap();
    let players = format!("{:?}", audit.facts.players);
    assert_eq!(players.matches("entered: true").count(), 4, "all four are remembered");
}

#[tokio::test]
async fn a_step_without_facts_leaves_the_journal_alone() {
    let fixture = fixtures::store().await;
    let store = Arc::new(fixture.store);
    let mut judge = judge(&store).await;
    let journal = || fixtures::number(&store, "SELECT count(*) FROM fact_journal");
    for (body, expected) in [(body(1, "processed"), 1), (Body::Tick, 1)] {
        append(&store, &[body]).await;
        assert_eq!(judge.step().await.unwrap(), 1);
        assert_eq!(journal().await, expected);
    }
    store.move_all_pending(&mut judge.known.as_mut().unwrap().pending).await.unwrap();
    assert_eq!(journal().await, 0);
}
