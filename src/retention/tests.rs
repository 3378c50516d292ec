//! Days go by, with outcomes, findings and people; what is old goes, and what is left is right.

use serde_json::{Value, json};

use super::*;
use crate::ingest::decode::{self, Context, Format};
use crate::ingest::{self, Ingest};
use crate::judge::{self, Judge};
use crate::outcome::{Closed, Settings, format_us};
use crate::redo;
use crate::store::{backup, fixtures};

/// 2026-11-30T12:00:00Z.
const NOON_US: i64 = 1_796_040_000_000_000;

struct World {
    folder: tempfile::TempDir,
    store: Arc<Store>,
    vitals: Arc<Vitals>,
    metrics: Arc<Metrics>,
    clock: Clock,
    ingest: Ingest,
    judge: Judge,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/test.db", folder.path().display());
        let store = Arc::new(Store::open(&url, "collector-1").await.unwrap());
        let (vitals, clock) = (Arc::new(Vitals::default()), Clock::manual(NOON_US));
        let metrics = Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await.unwrap();
        let metrics = Arc::new(metrics);
        let parts = ingest::Parts {
            store: Arc::clone(&store),
            vitals: Arc::clone(&vitals),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            gap_grace_us: 30 * limits::SECOND_US,
        };
        let ingest = Ingest::start(parts).await.unwrap();
        let parts = judge::Parts {
            store: Arc::clone(&store),
            vitals: Arc::clone(&vitals),
            metrics: Arc::clone(&metrics),
            clock: clock.clone(),
            settings: Settings { warmup_us: 0, ..Settings::default() },
            pending_rows: 50,
        };
        let judge = Judge::open(parts).await.unwrap();
        Self { folder, store, vitals, metrics, clock, ingest, judge }
    }

    fn url(&self) -> String {
        format!("sqlite://{}/test.db", self.folder.path().display())
    }

    fn retention(&self, ages: Ages) -> Retention {
        Retention::new(Parts {
            store: Arc::clone(&self.store),
            vitals: Arc::clone(&self.vitals),
            metrics: Arc::clone(&self.metrics),
            clock: self.clock.clone(),
            url: self.url(),
            ages,
        })
    }

    async fn judge(&mut self) {
        while self.judge.step().await.unwrap() > 0 {}
    }

    async fn push(&mut self, events: Vec<Value>) {
        let body = Value::Array(events).to_string();
        let context = Context { now_us: self.clock.now_us(), hash: self.store.hash() };
        let decoded = decode::outcomes(body.as_bytes(), Format::Json, context).unwrap();
        let admission = self.ingest.admit(body.len()).unwrap();
        let answer = self.ingest.push(decoded, admission).await.unwrap();
        assert_eq!(answer.repeated, 0);
        self.judge().await;
    }

    /// A day of ten players: settlements that are booked, one that is booked again the next day,
    /// one that is refused and never booked, one that nobody takes, and a hole.
    async fn live_a_day(&mut self, day: u64) {
        let at_us = self.clock.now_us();
        let event = |seq: u64, player: u64, round: u64, outcome: &str| {
            json!({
                "service": "settle", "source": "a", "boot": "1", "seq": day * 100 + seq,
                "occurred_at": format_us(at_us + i64::try_from(seq).unwrap() * limits::SECOND_US),
                "player": format!("p-{player}"), "outcome": outcome, "check_us": 7,
                "signature": {"room": format!("r-{day}"), "round": round, "net": "5",
                              "final": true},
                "window": {"len": 1, "cap": 4},
            })
        };
        let mut events: Vec<Value> = (1..=10).map(|n| event(n, n, 1, "processed")).collect();
        events.push(event(11, day % 10, 7, "replay_blocked"));
        let mut again = event(13, 3, 1, "processed");
        again["signature"]["room"] = json!(format!("r-{}", day.saturating_sub(1)));
        events.push(again);
        let mut bad = event(14, 3, 9, "processed");
        bad["signature"]["net"] = json!("much");
        events.push(bad);
        self.push(events).await;
        for _ in 0..3 {
            self.clock.advance(limits::MINUTE_US);
            self.ingest.keep().await.unwrap();
            self.judge().await;
        }
        if day % 3 == 1 {
            self.close_a_leak().await;
        }
        self.clock.advance(limits::DAY_US - 3 * limits::MINUTE_US);
    }

    async fn close_a_leak(&mut self) {
        let open = fixtures::text(
            &self.store,
            // Not by id: that is another one in each database.
            "SELECT coalesce((SELECT id FROM findings WHERE kind = 'duplicate_leak' \
             AND state = 'confirmed' ORDER BY first_us DESC, last_us, player LIMIT 1), '')",
        );
        let (finding, reason) = (open.await, "made_good".to_owned());
        let closed = Closed { finding, reason, note: String::new() };
        self.ingest.close_finding(closed).await.unwrap();
        self.judge().await;
    }

    async fn is_right(&self) -> i64 {
        let verified = redo::verify(&self.url(), "collector-1").await.unwrap();
        assert_eq!(verified.tables, [], "{} records", verified.records);
        verified.records
    }

    async fn count(&self, statement: &'static str) -> i64 {
        fixtures::number(&self.store, statement).await
    }
}

/// Runs until there is nothing left to do.
async fn run(retention: &mut Retention) {
    while retention.run().await.unwrap() == Ran::More {}
}

const RECORDS: &str = "SELECT count(*) FROM records";
const OLDEST_US: &str = "SELECT min(received_us) FROM records";
const FINDINGS: &str = "SELECT group_concat(id || state || body) FROM findings ORDER BY id";

#[tokio::test]
async fn old_days_go_and_what_is_left_is_right() {
    let (mut world, mut other) = (World::new().await, World::new().await);
    let ages = Ages { raw_us: 4 * limits::DAY_US, ..Ages::default() };
    let mut retention = world.retention(ages);
    for day in 1..=12 {
        world.live_a_day(day).await;
        other.live_a_day(day).await;
        run(&mut retention).await;
        let oldest_us = world.count(OLDEST_US).await;
        assert!(oldest_us >= world.clock.now_us() - 4 * limits::DAY_US, "day {day}");
        let (kept, all) = (world.is_right().await, other.count(RECORDS).await);
        assert_eq!(kept < all, day > 4, "day {day}: {kept} of {all}");
    }
    let sums = "SELECT group_concat(kind || confirmed_ever || open_confirmed || overpaid) \
                FROM finding_sums ORDER BY kind";
    assert_eq!(
        fixtures::text(&world.store, sums).await,
        fixtures::text(&other.store, sums).await,
        "nothing else is found"
    );
    assert_eq!(world.count("SELECT count(*) FROM deliveries WHERE n < 40").await, 0);
    let text = world.metrics.render().await.unwrap();
    let gone = other.count(RECORDS).await - world.count(RECORDS).await;
    assert!(text.contains(&format!("removed_rows_total{{what=\"records\"}} {gone}\n")), "{text}");
    let now_s = world.clock.now_us() / limits::SECOND_US;
    assert!(text.contains(&format!("last_run_timestamp_seconds {now_s}\n")), "{text}");
}

#[tokio::test]
async fn a_rebuild_begins_at_the_base() {
    let mut world = World::new().await;
    let mut retention = world.retention(Ages { raw_us: 2 * limits::DAY_US, ..Ages::default() });
    for day in 1..=6 {
        world.live_a_day(day).await;
    }
    run(&mut retention).await;
    world.is_right().await;
    let before = fixtures::text(&world.store, FINDINGS).await;
    assert!(before.len() > 1_000, "{before}");
    for statement in ["DELETE FROM findings", "DELETE FROM signatures", "DELETE FROM rollups"] {
        world.store.execute(statement).await;
    }
    assert_ne!(redo::verify(&world.url(), "collector-1").await.unwrap().tables, []);
    redo::rebuild(&world.url(), "collector-1").await.unwrap();
    world.is_right().await;
    assert_eq!(fixtures::text(&world.store, FINDINGS).await, before);
}

#[tokio::test]
async fn a_copy_has_its_base_with_it() {
    let mut world = World::new().await;
    let mut retention = world.retention(Ages { raw_us: 2 * limits::DAY_US, ..Ages::default() });
    for day in 1..=4 {
        world.live_a_day(day).await;
    }
    run(&mut retention).await;
    let (copy, other) = (world.folder.path().join("copy.db"), world.folder.path().join("o.db"));
    let url = format!("sqlite://{}", other.display());
    backup::backup(&world.url(), &copy).await.unwrap();
    backup::restore(&copy, &url, false, 7).await.unwrap();
    let verified = redo::verify(&url, "collector-1").await.unwrap();
    assert_eq!((verified.tables, verified.records), (vec![], world.is_right().await));
    let restored = backup::restore(&copy, &url, true, 7).await.unwrap();
    let kept = format!("sqlite://{}", restored.kept.unwrap().display());
    assert_eq!(redo::verify(&kept, "collector-1").await.unwrap().tables, []);
}

#[tokio::test]
async fn without_its_base_a_log_can_not_be_folded() {
    let mut world = World::new().await;
    let mut retention = world.retention(Ages { raw_us: 2 * limits::DAY_US, ..Ages::default() });
    for day in 1..=4 {
        world.live_a_day(day).await;
    }
    run(&mut retention).await;
    let base = world.folder.path().join("test.db.base");
    let aside = world.folder.path().join("aside");
    std::fs::rename(&base, &aside).unwrap();
    let why = redo::verify(&world.url(), "collector-1").await.unwrap_err();
    assert!(matches!(why, redo::RedoError::Shortened(_)), "{why}");
    let other = World::new().await;
    let theirs = other.folder.path().join("test.db");
    other.store.close().await.unwrap();
    std::fs::copy(theirs, &base).unwrap();
    let why = redo::verify(&world.url(), "collector-1").await.unwrap_err();
    assert!(why.to_string().contains("belongs to another database"), "{why}");
}

/// What was folded and not dropped, as after a crash, is dropped and not folded again.
#[tokio::test]
async fn a_crash_between_base_and_log_does_no_harm() {
    let mut world = World::new().await;
    for day in 1..=4 {
        world.live_a_day(day).await;
    }
    let mut base = Base::open(&world.store, &world.url()).await.unwrap().unwrap();
    let records = world.store.read_records(base.fold.at(), 20).await.unwrap();
    assert!(base.fold.step(records).await.unwrap() > 0);
    let mut retention = world.retention(Ages { raw_us: 2 * limits::DAY_US, ..Ages::default() });
    assert_eq!(retention.run().await.unwrap(), Ran::Waits, "somebody has the base");
    assert_eq!(world.count("SELECT min(n) FROM records").await, 1);
    drop(base);
    world.is_right().await;
    run(&mut retention).await;
    assert!(world.count("SELECT min(n) FROM records").await > 20);
    world.is_right().await;
}

#[tokio::test]
async fn over_the_cap_the_oldest_days_go_and_never_today() {
    let mut world = World::new().await;
    for day in 1..=5 {
        world.live_a_day(day).await;
    }
    // Today, since a day begins at midnight.
    let today = world.count(RECORDS).await;
    world.live_a_day(6).await;
    world.clock.advance(-limits::DAY_US);
    let used = world.store.used_bytes().await.unwrap();
    let mut roomy = world.retention(Ages { disk_cap_bytes: Some(used * 2), ..Ages::default() });
    run(&mut roomy).await;
    assert!(!roomy.warned);
    assert_eq!(world.count("SELECT min(n) FROM records").await, 1);
    let text = world.metrics.render().await.unwrap();
    assert!(text.contains(&format!("dedupwatch_database_cap_bytes {}\n", used * 2)), "{text}");
    let mut tight = world.retention(Ages { disk_cap_bytes: Some(used / 2), ..Ages::default() });
    for _ in 0..8 {
        run(&mut tight).await;
    }
    assert!(tight.warned);
    assert_eq!(world.count("SELECT min(n) FROM records").await, today + 1);
    world.is_right().await;
}

#[tokio::test]
async fn old_minutes_go_and_are_compared_no_more() {
    let mut world = World::new().await;
    world.live_a_day(1).await;
    let first = "SELECT min(minute) FROM rollups";
    let before = world.count(first).await;
    world.clock.advance(20 * limits::DAY_US);
    world.live_a_day(2).await;
    let ages = Ages { rollups_us: 15 * limits::DAY_US, ..Ages::default() };
    let mut retention = world.retention(ages);
    run(&mut retention).await;
    assert!(world.count(first).await > before + 20 * 24 * 60);
    assert_eq!(world.count("SELECT count(*) FROM latencies").await, 1);
    world.is_right().await;
    let text = world.metrics.render().await.unwrap();
    assert!(!text.contains("removed_rows_total{what=\"minutes\"} 0\n"), "{text}");
}
