//! The way in as one piece: real database, real writer, a clock that stands still.

mod check;
mod transitions;

use std::sync::Arc;

use serde_json::{Value, json};

use super::decode::{self, Context, Format};
use super::*;
use crate::limits;
use crate::outcome::{Body, Closed, Event, Position, format_us};
use crate::store::fixtures;

/// 2026-11-30T12:00:00Z.
const NOON_US: i64 = 1_796_040_000_000_000;
const GRACE_US: i64 = 30 * limits::SECOND_US;

struct World {
    store: Arc<Store>,
    vitals: Arc<Vitals>,
    metrics: Arc<Metrics>,
    clock: Clock,
    ingest: Ingest,
    folder: tempfile::TempDir,
}

impl World {
    async fn new() -> Self {
        Self::open(tempfile::tempdir().unwrap(), Clock::manual(NOON_US)).await
    }

    async fn open(folder: tempfile::TempDir, clock: Clock) -> Self {
        let url = format!("sqlite://{}/test.db", folder.path().display());
        let store = Arc::new(Store::open(&url, "collector-1").await.unwrap());
        let vitals = Arc::new(Vitals::default());
        let metrics = Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await.unwrap();
        let metrics = Arc::new(metrics);
        let parts = Parts {
            store: Arc::clone(&store),
            vitals: Arc::clone(&vitals),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            gap_grace_us: GRACE_US,
        };
        let ingest = Ingest::start(parts).await.unwrap();
        Self { store, vitals, metrics, clock, ingest, folder }
    }

    /// Ends it and starts it again on the same database.
    async fn reopen(self) -> Self {
        self.reopen_after(0).await
    }

    /// Ends it and starts it again when time has passed.
    async fn reopen_after(self, us: i64) -> Self {
        self.ingest.shutdown().await;
        self.store.close().await.unwrap();
        self.clock.advance(us);
        Self::open(self.folder, self.clock).await
    }

    fn context(&self) -> Context {
        Context { now_us: self.clock.now_us(), hash: self.store.hash() }
    }

    async fn try_push(&self, events: &Value) -> Result<Answer, Busy> {
        let body = events.to_string();
        let decoded = decode::outcomes(body.as_bytes(), Format::Json, self.context()).unwrap();
        self.ingest.push(decoded, self.ingest.admit(body.len())?).await
    }

    async fn push(&self, events: &Value) -> Answer {
        self.try_push(events).await.unwrap()
    }

    /// Pushes and counts: written, repeated, rejected.
    async fn counts(&self, events: &Value) -> (usize, usize, usize) {
        let answer = self.push(events).await;
        (answer.written, answer.repeated, answer.rejected)
    }

    async fn beat(&self, heartbeats: &Value) -> Answer {
        let body = heartbeats.to_string();
        let decoded = decode::heartbeats(body.as_bytes(), Format::Json, self.context()).unwrap();
        let admission = self.ingest.admit(body.len()).unwrap();
        self.ingest.heartbeats(decoded, admission).await.unwrap()
    }

    /// Time goes by, and the writer looks at the clock.
    async fn wait(&self, us: i64) {
        self.clock.advance(us);
        self.ingest.keep().await.unwrap();
    }

    async fn bodies(&self) -> Vec<Body> {
        let start = Position { collector: self.store.collector(), n: 0 };
        let records = self.store.read_records(start, 100_000).await.unwrap();
        let numbers: Vec<i64> = records.iter().map(|record| record.position.n).collect();
        assert_eq!(numbers, (1..).take(records.len()).collect::<Vec<_>>(), "without holes");
        assert!(records.is_sorted_by_key(|record| record.received_us));
        records.into_iter().map(|record| record.body).collect()
    }

    /// The log in short: `event 1`, `conflict 1`, `given_up 2-3`, ...
    async fn log(&self) -> Vec<String> {
        let seq = |seq: Option<u64>| seq.map_or("-".into(), |seq| seq.to_string());
        let short = |body| match body {
            Body::Event(event) => format!("event {}", seq(event.seq)),
            Body::Conflict(event) => format!("conflict {}", seq(event.seq)),
            Body::Refused(refused) => {
                format!("refused {} {}", seq(refused.sequence.map(|(_, seq)| seq)), refused.code)
            }
            Body::Heartbeat(beat) => format!("heartbeat {}", beat.last_seq),
            Body::Silent(silent) => format!("silent {}", silent.boot),
            Body::GivenUp(gone) => {
                format!("given_up {} {}-{}", gone.boot, gone.first_seq, gone.last_seq)
            }
            Body::Closed(closed) => format!("closed {}", closed.finding),
            Body::Tick => "tick".into(),
            Body::Transition(said) => format!("transition {}", seq(said.seq)),
            Body::TransitionConflict(said) => format!("transition_conflict {}", seq(said.seq)),
            Body::Settings(_) => "settings".into(),
        };
        self.bodies().await.into_iter().map(short).collect()
    }
}

fn event(seq: u64) -> Value {
    json!({
        "service": "settle", "source": "a", "boot": "1", "seq": seq,
        "occurred_at": format_us(NOON_US), "player": "p",
        "signature": {"room": "r", "round": seq, "net": "5", "final": true},
        "outcome": "processed",
    })
}

fn events(seqs: impl IntoIterator<Item = u64>) -> Value {
    seqs.into_iter().map(event).collect()
}

fn with(mut event: Value, field: &str, value: Value) -> Value {
    event[field] = value;
    event
}

fn heartbeat(last_seq: u64, state: &str, at_us: i64) -> Value {
    json!({
        "service": "settle", "source": "a", "boot": "1", "last_seq": last_seq,
        "at": format_us(at_us), "state": state,
    })
}

#[tokio::test]
async fn a_batch_sent_twice_is_written_once() {
    let world = World::new().await;
    assert_eq!(world.counts(&events(1..=3)).await, (3, 0, 0));
    assert_eq!(world.counts(&events(1..=3)).await, (0, 3, 0));
    let world = world.reopen().await;
    assert_eq!(world.counts(&events(1..=4)).await, (1, 3, 0));
    assert_eq!(world.log().await, ["event 1", "event 2", "event 3", "event 4"]);
}

#[tokio::test]
async fn a_batch_is_its_own_repeat() {
    let world = World::new().await;
    assert_eq!(world.counts(&events([1, 2, 1, 2, 2])).await, (2, 3, 0));
    let by_id = |id: &str| {
        let mut event = with(event(1), "event_id", json!(id));
        event.as_object_mut().unwrap().remove("seq");
        event
    };
    assert_eq!(world.counts(&json!([by_id("x"), by_id("x"), by_id("y")])).await, (2, 1, 0));
}

#[tokio::test]
async fn eight_at_once_are_one() {
    let world = Arc::new(World::new().await);
    let bad = with(event(500), "player", json!(""));
    let mut batch: Vec<Value> = (1..=400).map(event).collect();
    batch.push(bad);
    let batch = Arc::new(Value::Array(batch));
    let mut tasks = Vec::new();
    for _ in 0..8 {
        let (world, batch) = (Arc::clone(&world), Arc::clone(&batch));
        tasks.push(tokio::spawn(async move { world.counts(&batch).await }));
    }
    let mut sums = (0, 0, 0);
    for task in tasks {
        let (written, repeated, rejected) = task.await.unwrap();
        sums = (sums.0 + written, sums.1 + repeated, sums.2 + rejected);
    }
    assert_eq!(sums, (400, 7 * 400, 8));
    assert_eq!(world.bodies().await.len(), 401, "the refusal is a record once");
}

#[tokio::test]
async fn cut_again_it_is_the_same() {
    let world = World::new().await;
    for (first, last) in [(1, 30), (20, 60), (1, 100), (55, 100)] {
        world.push(&events(first..=last)).await;
    }
    assert_eq!(world.bodies().await.len(), 100);
}

#[tokio::test]
async fn other_content_is_a_conflict_once() {
    let world = World::new().await;
    world.push(&event(1)).await;
    let other = with(event(1), "player", json!("q"));
    for _ in 0..2 {
        assert_eq!(world.counts(&json!([other, other])).await, (0, 2, 0));
    }
    let world = world.reopen().await;
    world.push(&other).await;
    world.push(&event(1)).await;
    world.push(&with(event(1), "player", json!("r"))).await;
    assert_eq!(world.log().await, ["event 1", "conflict 1", "conflict 1"]);
    let Body::Conflict(conflict) = &world.bodies().await[1] else { panic!() };
    assert_eq!(conflict.player.as_str(), "q");
}

#[tokio::test]
async fn what_may_differ_between_two_tellings_is_no_conflict() {
    let world = World::new().await;
    world.push(&event(1)).await;
    let mut again = event(1);
    again["occurred_at"] = json!(format_us(NOON_US - 5));
    again["attempt"] = json!(2);
    again["trace_id"] = json!("t");
    again["check_us"] = json!(5);
    again["response_us"] = json!(6);
    assert_eq!(world.counts(&again).await, (0, 1, 0));
    assert_eq!(world.log().await, ["event 1"]);
}

#[tokio::test]
async fn an_event_id_belongs_to_service_and_env() {
    let world = World::new().await;
    let by_id = |source: &str, env: &str| {
        let mut event = with(event(1), "event_id", json!("e"));
        event["source"] = json!(source);
        event["env"] = json!(env);
        event.as_object_mut().unwrap().remove("seq");
        event.as_object_mut().unwrap().remove("boot");
        event
    };
    assert_eq!(world.counts(&by_id("a", "prod")).await, (1, 0, 0));
    assert_eq!(world.counts(&by_id("a", "test")).await, (1, 0, 0));
    let world = world.reopen().await;
    // Its source is content: another one that tells it is a repeat and a conflict.
    assert_eq!(world.counts(&by_id("b", "prod")).await, (0, 1, 0));
    assert_eq!(world.counts(&by_id("a", "prod")).await, (0, 1, 0));
    assert_eq!(world.log().await, ["event -", "event -", "conflict -"]);
}

#[tokio::test]
async fn with_both_the_sequence_decides() {
    let world = World::new().await;
    let one = with(event(1), "event_id", json!("e"));
    let two = with(event(2), "event_id", json!("e"));
    assert_eq!(world.counts(&json!([one, two])).await, (2, 0, 0));
}

#[tokio::test]
async fn a_refusal_is_a_record_once() {
    let world = World::new().await;
    let bad = with(event(2), "player", json!(""));
    let worse = with(event(2), "outcome", json!("?"));
    let nameless = json!({"outcome": "processed"});
    for _ in 0..2 {
        assert_eq!(world.counts(&json!([bad, event(1), bad, nameless])).await.2, 3);
        assert_eq!(world.counts(&json!([worse, nameless, 7])).await, (0, 0, 3));
    }
    let world = world.reopen().await;
    assert_eq!(world.counts(&json!([worse, nameless, 7])).await, (0, 0, 3));
    let log = ["refused 2 empty", "event 1", "refused - missing", "refused - not_an_object"];
    assert_eq!(world.log().await, log);
    let answer = world.push(&bad).await;
    assert_eq!((answer.errors[0].index, answer.errors[0].code.as_str()), (0, "empty"));
}

#[tokio::test]
async fn a_refused_number_is_written_when_it_comes_right() {
    let world = World::new().await;
    let bad = with(event(2), "player", json!(""));
    world.push(&json!([event(1), bad, event(3)])).await;
    let world = world.reopen().await;
    world.wait(2 * GRACE_US).await;
    assert_eq!(world.counts(&event(2)).await, (1, 0, 0));
    assert_eq!(world.counts(&event(2)).await, (0, 1, 0));
    assert_eq!(world.counts(&bad).await, (0, 0, 1), "the same answer each time");
    assert_eq!(world.log().await, ["event 1", "refused 2 empty", "event 3", "event 2"]);
}

#[tokio::test]
async fn boots_of_two_sorts_are_refused() {
    let world = World::new().await;
    world.push(&event(1)).await;
    let timed = with(event(1), "boot", json!("2026-11-30T08:00:00Z"));
    let answer = world.push(&json!([timed, event(2)])).await;
    assert_eq!((answer.written, answer.errors[0].code.as_str()), (1, "boot_sort"));
    world.push(&timed).await;
    let beat = with(heartbeat(1, "running", NOON_US), "boot", json!("2026-11-30T08:00:00Z"));
    assert_eq!(world.beat(&beat).await.errors[0].code, "boot_sort");
    let log = ["event 1", "refused - boot_sort", "event 2", "refused - boot_sort"];
    assert_eq!(world.log().await, log);
}

#[tokio::test]
async fn of_five_thousand_holes_the_lowest_are_lost() {
    let world = World::new().await;
    let odd = |first: u64, last: u64| events((first..=last).filter(|seq| seq % 2 == 1));
    assert_eq!(world.counts(&odd(1, 10_001)).await, (5_001, 0, 0));
    let world = world.reopen().await;
    assert_eq!(world.counts(&odd(1, 10_001)).await, (0, 5_001, 0), "what was written stays so");
    let answer = world.push(&events([2, 4, 9_998])).await;
    assert_eq!((answer.written, answer.rejected), (1, 2));
    assert_eq!(answer.errors[0].code, "given_up");
    assert_eq!(world.counts(&events([2, 4, 9_998])).await, (0, 1, 2));
    assert_eq!(world.counts(&with(event(3), "player", json!("q"))).await, (0, 1, 0));
    let log = world.log().await;
    assert_eq!(log.last().unwrap(), "conflict 3");
    assert_eq!(log.iter().filter(|entry| entry.starts_with("given_up 1 2-2")).count(), 1);
    assert_eq!(log.iter().filter(|entry| entry.starts_with("refused 2 ")).count(), 1);
}

#[tokio::test]
async fn a_request_at_fault_is_refused_and_stops_nobody() {
    let world = World::new().await;
    let poison = "CREATE TRIGGER poison BEFORE INSERT ON records WHEN new.kind = 1 AND \
                  new.body LIKE '%poison%' BEGIN SELECT raise(ABORT, 'poison'); END";
    fixtures::run(&world.store, poison).await;
    let bad = json!([event(1), with(event(2), "player", json!("poison"))]);
    // Held until both are queued, so that they are one group.
    let held = world.store.writer().await.unwrap();
    let other = event(3);
    let ((), bad, other) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            drop(held);
        },
        world.push(&bad),
        world.push(&other),
    );
    assert_eq!((bad.written, bad.rejected, bad.errors[0].code.as_str()), (0, 2, "not_writable"));
    assert_eq!((other.written, other.rejected), (1, 0));
    fixtures::run(&world.store, "DROP TRIGGER poison").await;
    assert_eq!(world.counts(&events(1..=3)).await, (2, 1, 0), "a refused number may be written");
    let mut log = world.log().await;
    log.sort();
    let wanted =
        ["event 1", "event 2", "event 3", "refused 1 not_writable", "refused 2 not_writable"];
    assert_eq!(log, wanted);
}

#[tokio::test]
async fn a_database_that_takes_nothing_is_away_and_found_again() {
    let world = World::new().await;
    world.push(&event(1)).await;
    let full = "CREATE TRIGGER full BEFORE INSERT ON commits \
                BEGIN SELECT raise(ABORT, 'disk full'); END";
    fixtures::run(&world.store, full).await;
    assert_eq!(world.try_push(&event(2)).await, Err(Busy::DatabaseAway));
    assert!(world.vitals.database_away());
    assert_eq!(world.try_push(&event(2)).await, Err(Busy::DatabaseAway));
    assert_eq!(world.ingest.keep().await, Err(Busy::DatabaseAway));
    fixtures::run(&world.store, "DROP TRIGGER full").await;
    world.ingest.keep().await.unwrap();
    assert_eq!(world.counts(&events(1..=2)).await, (1, 1, 0));
    assert_eq!(world.log().await, ["event 1", "event 2"]);
}

#[tokio::test]
async fn a_commit_that_fails_unclearly_is_there_once_and_answered_right() {
    let mut by_id = with(event(9), "event_id", json!("e"));
    by_id.as_object_mut().unwrap().remove("seq");
    let other = with(event(1), "player", json!("q"));
    let batch = json!([event(1), event(2), other, with(event(3), "player", json!("")), by_id]);
    for (before, after) in [(0, 0), (0, 1), (1, 0), (1, 1), (2, 1), (3, 0), (4, 0), (3, 1)] {
        let world = World::new().await;
        world.push(&with(event(1), "source", json!("b"))).await;
        world.store.trouble.set(before, after);
        if before + after > 3 {
            // The probe of the database failed as well: nothing was kept, and it is found again.
            assert_eq!(world.try_push(&batch).await, Err(Busy::DatabaseAway));
            world.ingest.keep().await.unwrap();
        }
        assert_eq!(world.counts(&batch).await, (3, 1, 1), "{before} {after}");
        let log = ["event 1", "event 1", "event 2", "conflict 1", "refused 3 empty", "event -"];
        assert_eq!(world.log().await, log, "{before} {after}");
        let text = world.metrics.render().await.unwrap();
        let line = "dedupwatch_ingest_events_total{result=\"written\"} 4";
        assert!(text.contains(line), "{before} {after}: {text}");
        assert_eq!(world.counts(&batch).await, (0, 4, 1));
        let world = world.reopen().await;
        assert_eq!(world.counts(&batch).await, (0, 4, 1));
        assert_eq!(world.log().await, log, "{before} {after}");
        let text = world.metrics.render().await.unwrap();
        assert!(text.contains(line), "{before} {after}: {text}");
    }
}

#[tokio::test]
async fn a_full_disk_stops_nothing_once_there_is_room() {
    let world = World::new().await;
    let batch = |first: u64| events(first..first + 500);
    world.store.fill_up().await;
    // The second try finds room.
    assert_eq!(world.counts(&batch(1)).await, (500, 0, 0));
    assert_eq!(world.counts(&batch(501)).await, (500, 0, 0));
    assert_eq!(world.counts(&batch(1)).await, (0, 500, 0));
    assert_eq!(world.log().await.len(), 1_000);
}

#[tokio::test]
async fn what_a_full_disk_does_not_take_is_not_refused() {
    let world = World::new().await;
    let batch = events(1..=3);
    // It takes less: the next group, if there were one.
    world.store.trouble.set_full(limits::GROUP_TRIES_MAX);
    assert_eq!(world.try_push(&batch).await, Err(Busy::DatabaseAway));
    assert!(world.vitals.database_away());
    world.ingest.keep().await.unwrap();
    assert!(!world.vitals.database_away());
    assert_eq!(world.counts(&batch).await, (3, 0, 0));
    assert_eq!(world.log().await, ["event 1", "event 2", "event 3"]);
}

#[tokio::test]
async fn another_process_that_writes_is_told() {
    let world = World::new().await;
    world.push(&event(1)).await;
    let other = fixtures::other_writer(world.folder.path()).await;
    // After `limits::DATABASE_BUSY_MS`, not after each try once more.
    assert_eq!(world.try_push(&event(2)).await, Err(Busy::DatabaseAway));
    drop(other);
    world.ingest.keep().await.unwrap();
    assert_eq!(world.counts(&events(1..=2)).await, (1, 1, 0));
}

#[tokio::test]
async fn counters_and_rollups_move_with_the_commit() {
    let world = World::new().await;
    let mut first = with(event(1), "check_us", json!(12));
    first["evicted"] = json!([{"key": "x"}, {"key": "y"}]);
    first["mood"] = json!("good");
    let batch = json!([first, event(2), with(event(3), "player", json!(""))]);
    world.push(&batch).await;
    world.push(&batch).await;
    let text = world.metrics.render().await.unwrap();
    for line in [
        r#"dedup_outcomes_total{service="settle",env="prod",outcome="processed"} 2"#,
        r#"dedup_outcomes_total{service="settle",env="prod",outcome="evicted"} 2"#,
        r#"dedup_check_duration_seconds_count{service="settle",env="prod"} 1"#,
        r#"dedupwatch_ingest_events_total{result="written"} 2"#,
        r#"dedupwatch_ingest_events_total{result="repeated"} 2"#,
        r#"dedupwatch_rejected_events_total{reason="empty"} 2"#,
        "dedupwatch_unknown_fields_total 2",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    let world = world.reopen().await;
    world.push(&event(4)).await;
    let text = world.metrics.render().await.unwrap();
    assert!(text.contains(r#"dedupwatch_ingest_events_total{result="written"} 3"#), "{text}");
}

#[tokio::test]
async fn time_of_receipt_never_falls() {
    let world = World::new().await;
    world.push(&event(1)).await;
    world.clock.advance(-3_600 * limits::SECOND_US);
    world.push(&with(event(2), "occurred_at", json!(format_us(world.clock.now_us())))).await;
    let world = world.reopen().await;
    world.push(&with(event(3), "occurred_at", json!(format_us(world.clock.now_us())))).await;
    world.bodies().await;
}

#[tokio::test]
async fn overload_is_told_at_once() {
    let world = Arc::new(World::new().await);
    let held = world.store.writer().await.unwrap();
    let batch = Arc::new(Value::Array(vec![json!(0); limits::BATCH_EVENTS_MAX]));
    let mut tasks = Vec::new();
    for _ in 0..limits::QUEUE_EVENTS_MAX / limits::BATCH_EVENTS_MAX {
        let (world, batch) = (Arc::clone(&world), Arc::clone(&batch));
        tasks.push(tokio::spawn(async move { world.try_push(&batch).await }));
    }
    while world.vitals.queue_events() < limits::QUEUE_EVENTS_MAX as u64 {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.try_push(&event(1)).await, Err(Busy::QueueFull));
    assert!(world.vitals.take_turned_away());
    drop(held);
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().rejected, limits::BATCH_EVENTS_MAX);
    }
    assert_eq!(world.counts(&event(1)).await, (1, 0, 0));
    world.vitals.set_judged(1, limits::AUDIT_LAG_US_MAX + 1);
    assert_eq!(world.try_push(&event(2)).await, Err(Busy::AuditBehind));
}

#[tokio::test]
async fn shutting_down_writes_what_was_taken() {
    let world = Arc::new(World::new().await);
    let held = world.store.writer().await.unwrap();
    let mut tasks = Vec::new();
    for seq in 1..=20 {
        let world = Arc::clone(&world);
        tasks.push(tokio::spawn(async move { world.try_push(&event(seq)).await }));
    }
    while world.vitals.queue_events() < 20 {
        tokio::task::yield_now().await;
    }
    let stopping = {
        let world = Arc::clone(&world);
        tokio::spawn(async move { world.ingest.shutdown().await })
    };
    while !world.vitals.closing() {
        tokio::task::yield_now().await;
    }
    assert_eq!(world.try_push(&event(21)).await, Err(Busy::Closing));
    drop(held);
    stopping.await.unwrap();
    for task in tasks {
        assert_eq!(task.await.unwrap().unwrap().written, 1);
    }
    assert_eq!(world.bodies().await.len(), 20);
    world.ingest.shutdown().await;
}

#[tokio::test]
async fn a_closing_of_a_finding_is_a_record() {
    let world = World::new().await;
    let closed = Closed { finding: "f".into(), reason: "r".into(), note: String::new() };
    world.ingest.close_finding(closed).await.unwrap();
    assert_eq!(world.log().await, ["closed f"]);
}

#[tokio::test]
async fn an_empty_batch_writes_nothing() {
    let world = World::new().await;
    assert_eq!(world.push(&json!([])).await, Answer::default());
    assert_eq!(world.log().await, [""; 0]);
}

#[tokio::test]
async fn a_watched_source_that_says_nothing_falls_silent_once() {
    let world = World::new().await;
    world.push(&event(1)).await;
    world.wait(limits::SILENCE_US).await;
    assert_eq!(world.log().await, ["event 1"], "nobody watches it");
    world.beat(&heartbeat(1, "running", world.clock.now_us())).await;
    world.wait(limits::SILENCE_US - 1).await;
    world.push(&event(1)).await;
    world.wait(limits::SILENCE_US - 1).await;
    world.wait(1).await;
    world.wait(limits::SILENCE_US).await;
    let world = world.reopen().await;
    world.wait(limits::SILENCE_US).await;
    assert_eq!(world.log().await, ["event 1", "heartbeat 1", "silent 1"], "once");
    world.beat(&heartbeat(1, "running", world.clock.now_us())).await;
    world.wait(limits::SILENCE_US).await;
    assert_eq!(world.log().await[3..], ["heartbeat 1", "silent 1"], "each silence");
}

#[tokio::test]
async fn silence_is_counted_only_while_the_collector_was_ready() {
    let world = World::new().await;
    world.beat(&heartbeat(0, "running", NOON_US)).await;
    world.clock.advance(limits::SILENCE_US - 1);
    let world = world.reopen().await;
    world.wait(limits::SILENCE_US - 1).await;
    assert_eq!(world.log().await, ["heartbeat 0"]);
    world.wait(1).await;
    assert_eq!(world.log().await, ["heartbeat 0", "silent 1"]);
}

#[tokio::test]
async fn nobody_falls_silent_while_the_collector_is_not_ready() {
    let world = World::new().await;
    world.push(&event(1)).await;
    world.beat(&heartbeat(3, "running", NOON_US)).await;
    world.vitals.set_judged(2, limits::AUDIT_LAG_US_MAX + 1);
    for _ in 0..9 {
        assert_eq!(world.try_push(&event(2)).await, Err(Busy::AuditBehind));
        world.wait(limits::SILENCE_US).await;
    }
    assert_eq!(world.log().await, ["event 1", "heartbeat 3"]);
    world.vitals.set_judged(2, 0);
    world.wait(GRACE_US - 1).await;
    assert_eq!(world.log().await.len(), 2);
    world.wait(1).await;
    world.wait(limits::SILENCE_US - GRACE_US).await;
    assert_eq!(world.log().await[2..], ["given_up 1 2-3", "silent 1"], "now they count");
}

#[tokio::test]
async fn whoever_finds_no_room_is_not_silent() {
    let world = World::new().await;
    world.beat(&heartbeat(0, "running", NOON_US)).await;
    world.vitals.set_turned_away();
    world.wait(limits::SILENCE_US).await;
    world.wait(limits::SILENCE_US - 1).await;
    assert_eq!(world.log().await, ["heartbeat 0"]);
    world.wait(1).await;
    assert_eq!(world.log().await, ["heartbeat 0", "silent 1"]);
}

#[tokio::test]
async fn heartbeats_are_taken_while_the_audit_is_behind() {
    let world = World::new().await;
    world.vitals.set_judged(0, limits::AUDIT_LAG_US_MAX + 1);
    assert_eq!(world.beat(&heartbeat(0, "running", NOON_US)).await.written, 1);
    assert_eq!(world.try_push(&event(1)).await, Err(Busy::AuditBehind));
}

#[tokio::test]
async fn a_goodbye_is_no_silence() {
    let world = World::new().await;
    world.push(&events([1, 2])).await;
    world.beat(&heartbeat(3, "closing", NOON_US)).await;
    // What was on the way arrives after the goodbye.
    world.push(&event(3)).await;
    world.wait(2 * limits::SILENCE_US).await;
    let world = world.reopen().await;
    world.wait(2 * limits::SILENCE_US).await;
    assert_eq!(world.log().await, ["event 1", "event 2", "heartbeat 3", "event 3"]);
    world.push(&with(event(1), "boot", json!("2"))).await;
    world.wait(limits::SILENCE_US).await;
    assert_eq!(world.log().await[4..], ["event 1", "silent 2"], "it is back");
}

#[tokio::test]
async fn a_heartbeat_sent_twice_is_written_once() {
    let world = World::new().await;
    let beats = json!([heartbeat(0, "running", NOON_US), heartbeat(0, "running", NOON_US + 5)]);
    let answer = world.beat(&beats).await;
    assert_eq!((answer.written, answer.repeated), (2, 0));
    let world = world.reopen().await;
    let answer = world.beat(&beats).await;
    assert_eq!((answer.written, answer.repeated), (0, 2));
    assert_eq!(world.log().await, ["heartbeat 0", "heartbeat 0"]);
}

#[tokio::test]
async fn a_hole_is_given_up_once_and_still_filled() {
    let world = World::new().await;
    world.push(&events([1, 4])).await;
    world.wait(GRACE_US - 1).await;
    assert_eq!(world.log().await, ["event 1", "event 4"]);
    world.wait(1).await;
    let world = world.reopen().await;
    world.wait(GRACE_US).await;
    assert_eq!(world.log().await, ["event 1", "event 4", "given_up 1 2-3"]);
    let late = with(event(2), "occurred_at", json!(format_us(world.clock.now_us())));
    assert_eq!(world.counts(&late).await, (1, 0, 0));
    world.wait(GRACE_US).await;
    assert_eq!(world.log().await[3..], ["event 2"]);
}

#[tokio::test]
async fn the_waiting_for_a_hole_begins_anew_after_a_start() {
    let world = World::new().await;
    world.push(&events([1, 3])).await;
    let world = world.reopen_after(GRACE_US).await;
    world.wait(GRACE_US - 1).await;
    assert_eq!(world.log().await, ["event 1", "event 3"]);
    world.wait(1).await;
    assert_eq!(world.log().await[2..], ["given_up 1 2-2"]);
}

#[tokio::test]
async fn a_lost_tail_is_given_up() {
    let world = World::new().await;
    world.push(&event(1)).await;
    world.beat(&heartbeat(3, "running", NOON_US)).await;
    world.wait(GRACE_US).await;
    assert_eq!(world.log().await[2..], ["given_up 1 2-3"]);
    world.beat(&heartbeat(4, "running", NOON_US + 1)).await;
    world.wait(GRACE_US).await;
    assert_eq!(world.log().await[3..], ["heartbeat 4", "given_up 1 4-4"]);
}

#[tokio::test]
async fn the_start_of_a_boot_is_a_hole_only_of_a_known_source() {
    let world = World::new().await;
    world.push(&events([7, 8])).await;
    world.push(&with(event(3), "boot", json!("2"))).await;
    world.wait(GRACE_US).await;
    assert_eq!(world.log().await[3..], ["given_up 2 1-2"]);
}

#[tokio::test]
async fn a_draining_backlog_is_waited_for() {
    let world = World::new().await;
    let old = |seq, age_us| {
        with(event(seq), "occurred_at", json!(format_us(world.clock.now_us() - age_us)))
    };
    world.push(&json!([old(1, 7 * GRACE_US), old(9, 6 * GRACE_US)])).await;
    for (seq, age) in (3..7).zip([5, 4, 3, 2]) {
        world.wait(GRACE_US - 1).await;
        world.push(&old(seq, age * GRACE_US)).await;
    }
    assert_eq!(world.log().await.len(), 6);
    world.wait(GRACE_US).await;
    assert_eq!(world.log().await[6..], ["given_up 1 2-2", "given_up 1 7-8"]);
}

#[tokio::test]
async fn a_watched_source_with_a_slow_clock_has_its_holes_given_up() {
    let world = World::new().await;
    let slow_us = GRACE_US + limits::SECOND_US;
    for seq in 1..=9 {
        let at_us = world.clock.now_us() - slow_us;
        if seq != 3 {
            world.push(&with(event(seq), "occurred_at", json!(format_us(at_us)))).await;
        }
        world.beat(&heartbeat(seq, "running", at_us)).await;
        world.wait(10 * limits::SECOND_US).await;
    }
    let log = world.log().await;
    assert_eq!(log.iter().filter(|entry| *entry == "given_up 1 3-3").count(), 1, "{log:?}");
}

#[tokio::test]
async fn the_log_ticks_where_the_judge_waits() {
    let world = World::new().await;
    world.push(&event(1)).await;
    world.wait(limits::SECOND_US).await;
    world.vitals.set_tick_due(Some(NOON_US + 5 * limits::SECOND_US));
    world.wait(3 * limits::SECOND_US).await;
    assert_eq!(world.log().await, ["event 1"]);
    world.wait(limits::SECOND_US).await;
    world.wait(limits::SECOND_US).await;
    assert_eq!(world.log().await, ["event 1", "tick"], "one, until the judge waits for more");
    // What was received since then says as much as a tick.
    world.push(&with(event(2), "occurred_at", json!(format_us(world.clock.now_us())))).await;
    world.vitals.set_tick_due(Some(world.clock.now_us()));
    world.wait(limits::SECOND_US).await;
    assert_eq!(world.log().await, ["event 1", "tick", "event 2"]);
}

#[tokio::test]
async fn what_no_event_can_ask_for_is_forgotten() {
    let world = World::new().await;
    let mut by_id = with(event(9), "event_id", json!("e"));
    by_id.as_object_mut().unwrap().remove("seq");
    by_id["signature"] = json!({"key": "k", "net": "5"});
    world.push(&json!([event(1), by_id])).await;
    world.wait(limits::IDENTITY_AGE_US_MAX).await;
    let later = with(event(1), "occurred_at", json!(format_us(world.clock.now_us())));
    world.push(&with(later, "source", json!("b"))).await;
    assert_eq!(world.store.load_boots().await.unwrap().len(), 2, "the very edge is kept");
    world.wait(1).await;
    let boots = world.store.load_boots().await.unwrap();
    assert_eq!(boots.len(), 1);
    assert_eq!(world.store.hash_runs(1, 1).await.unwrap(), []);
    world.wait(2 * limits::DAY_US).await;
    let by_id: Event = serde_json::from_value(with(by_id, "env", json!("prod"))).unwrap();
    let key = super::keys::event_key(&by_id, world.store.hash());
    assert!(world.store.known_event_ids(&[key.unwrap()]).await.unwrap().is_empty());
    let world = world.reopen().await;
    let next = with(event(3), "occurred_at", json!(format_us(world.clock.now_us())));
    assert_eq!(world.counts(&with(next, "boot", json!("2"))).await, (1, 0, 0));
}

#[tokio::test]
async fn a_source_that_says_nothing_is_forgotten_and_may_come_back() {
    let world = World::new().await;
    let pods: Value = (0..3).map(|n| with(event(1), "source", json!(format!("pod-{n}")))).collect();
    world.push(&pods).await;
    world.wait(limits::IDENTITY_AGE_US_MAX).await;
    world.push(&with(event(1), "source", json!("pod-0"))).await;
    for _ in 0..3 {
        world.wait(1).await;
    }
    let names = |sources: Vec<crate::store::identity::StoredSource>| {
        sources.iter().map(|stored| stored.from.source.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(names(world.store.load_sources().await.unwrap()), ["pod-0"]);
    let world = world.reopen().await;
    let now = json!(format_us(world.clock.now_us()));
    let back = with(with(event(4), "source", json!("pod-1")), "occurred_at", now);
    assert_eq!(world.counts(&json!([back, back])).await, (1, 1, 0));
    let world = world.reopen().await;
    assert_eq!(world.counts(&back).await, (0, 1, 0));
    assert_eq!(names(world.store.load_sources().await.unwrap()), ["pod-0", "pod-1"]);
}

#[tokio::test]
async fn refused_events_make_no_sources() {
    let world = World::new().await;
    let bad = |n: u64| with(with(event(n), "player", json!("")), "source", json!(format!("x{n}")));
    let batch: Value = (1..=5).map(bad).collect();
    for _ in 0..2 {
        assert_eq!(world.counts(&batch).await, (0, 0, 5));
    }
    assert!(world.store.load_sources().await.unwrap().is_empty());
    assert_eq!(world.log().await.len(), 5, "each is a record, once");
    // A known source's refused numbers are not waited for.
    world.push(&json!([event(1), with(event(2), "player", json!("")), event(3)])).await;
    world.wait(GRACE_US).await;
    assert_eq!(world.log().await[5..], ["event 1", "refused 2 empty", "event 3"]);
}

#[tokio::test]
async fn ledgers_are_bounded_also_after_a_restart() {
    let world = World::new().await;
    let insert = format!(
        "INSERT INTO ledgers WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL \
         SELECT i + 1 FROM n WHERE i < {}) SELECT 'l' || i FROM n",
        limits::LEDGERS_MAX
    );
    fixtures::run(&world.store, Box::leak(insert.into_boxed_str())).await;
    let world = world.reopen().await;
    let of = |seq: u64, ledger: &str| with(event(seq), "ledger", json!(ledger));
    assert_eq!(world.counts(&json!([of(1, "l1"), of(2, "l1"), of(3, "l2")])).await, (3, 0, 0));
    let world = world.reopen().await;
    let answer = world.push(&json!([of(4, "x"), of(1, "x"), of(5, "l1")])).await;
    assert_eq!((answer.written, answer.repeated, answer.rejected), (1, 1, 1));
    assert_eq!(answer.errors[0].code, "too_many_ledgers");
    let mut by_id = with(of(1, "y"), "event_id", json!("e"));
    by_id.as_object_mut().unwrap().remove("seq");
    assert_eq!(world.counts(&by_id).await, (0, 0, 1));
    let beat = heartbeat(5, "running", NOON_US);
    let beats = json!([with(beat.clone(), "ledgers", json!(["l1", "z"])), beat]);
    assert_eq!(world.beat(&beats).await.errors[0].code, "too_many_ledgers");
    let refused = world.bodies().await.into_iter().filter_map(|body| match body {
        Body::Refused(refused) => Some(refused.ledger),
        _ => None,
    });
    assert_eq!(refused.collect::<Vec<_>>(), [None, None, None], "the judge makes none either");
}

/// Events of two sources with two boots each, some without a sequence, some of them bad.
fn mixed() -> Vec<Value> {
    let mut all = Vec::new();
    for (source, boot) in [("a", "1"), ("a", "2"), ("b", "1"), ("b", "2")] {
        for seq in 1..=60 {
            let mut event = with(event(seq), "boot", json!(boot));
            event["source"] = json!(source);
            if seq % 7 == 0 {
                event["event_id"] = json!(format!("{source}-{boot}-{seq}"));
                event.as_object_mut().unwrap().remove("seq");
            }
            if seq % 11 == 0 {
                event["player"] = json!("");
            }
            all.push(event);
        }
    }
    all
}

/// What the log holds, in any order.
async fn contents(world: &World) -> Vec<String> {
    let mut contents: Vec<String> = world
        .bodies()
        .await
        .into_iter()
        .map(|body| match body {
            Body::Event(event) => serde_json::to_string(&event).unwrap(),
            Body::Refused(refused) => serde_json::to_string(&refused).unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    contents.sort();
    contents
}

#[tokio::test]
async fn in_any_order_cut_and_number_of_times_it_is_the_same() {
    use rand::seq::SliceRandom;
    use rand::{RngExt, SeedableRng};

    let all = mixed();
    let straight = World::new().await;
    straight.push(&Value::Array(all.clone())).await;
    let wanted = contents(&straight).await;
    assert_eq!(wanted.len(), all.len());
    for seed in 0..5 {
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let mut world = World::new().await;
        let mut sent: Vec<Value> = all.iter().chain(&all).chain(&all).cloned().collect();
        sent.shuffle(&mut random);
        let (mut written, mut rest) = (0, sent.as_slice());
        while !rest.is_empty() {
            let (one, after) = rest.split_at(random.random_range(1..=80).min(rest.len()));
            let (two, after) = after.split_at(random.random_range(0..=80).min(after.len()));
            rest = after;
            let (one, two) = (Value::Array(one.to_vec()), Value::Array(two.to_vec()));
            let (one, two) = tokio::join!(world.push(&one), world.push(&two));
            written += one.written + two.written;
            if random.random_bool(0.2) {
                world = world.reopen().await;
            }
        }
        assert_eq!(written, all.iter().filter(|event| event["player"] != "").count());
        assert_eq!(contents(&world).await, wanted, "seed {seed}");
    }
}
