//! The rendered text is the contract: the tests read it as Prometheus does.

use super::*;
use crate::audit::{DISTANCES, Kind, LATE_GAMES, LATE_SECONDS, Measured};
use crate::limits;
use crate::outcome::{Id, Outcome, SourceName};
use crate::store::{fixtures, totals};

struct World {
    folder: tempfile::TempDir,
    store: Arc<Store>,
    metrics: Metrics,
}

impl World {
    async fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (store, metrics) = open(folder.path()).await;
        Self { folder, store, metrics }
    }

    async fn reopen(self) -> Self {
        let Self { folder, store, metrics } = self;
        drop((store, metrics));
        let (store, metrics) = open(folder.path()).await;
        Self { folder, store, metrics }
    }

    /// As the writer does: count, commit, hand back.
    async fn commit(&self, committed: &Committed) {
        let counted = self.metrics.count(committed);
        let mut writer = self.store.writer().await.unwrap();
        totals::add(&mut writer, self.store.collector(), counted.totals()).await.unwrap();
        self.metrics.committed(&counted, 0, Duration::from_millis(3));
    }

    async fn judge(&self, judged: &Judged) {
        let counted = self.metrics.count_judged(judged);
        let mut writer = self.store.writer().await.unwrap();
        totals::add(&mut writer, totals::SHARED, counted.totals()).await.unwrap();
        self.metrics.judged(&counted);
    }

    async fn has(&self, line: &str) {
        let text = self.metrics.render().await.unwrap();
        assert!(text.lines().any(|l| l == line), "no line {line:?} in:\n{text}");
    }

    async fn has_not(&self, part: &str) {
        let text = self.metrics.render().await.unwrap();
        assert!(!text.contains(part), "{part:?} in:\n{text}");
    }
}

async fn open(folder: &std::path::Path) -> (Arc<Store>, Metrics) {
    let url = format!("sqlite://{}/t.db", folder.display());
    let store = Arc::new(Store::open(&url, "a").await.unwrap());
    let metrics = Metrics::open(Arc::clone(&store), Arc::default()).await.unwrap();
    (store, metrics)
}

fn id(text: &str) -> Id {
    Id::parse(text).unwrap()
}

fn outcomes(service: &str, env: &str, outcome: Outcome, count: u64) -> Committed {
    let outcomes = BTreeMap::from([((id(service), id(env), outcome), count)]);
    Committed { outcomes, written: count, ..Committed::default() }
}

/// Everything that can be counted, once.
fn everything() -> Committed {
    let mut committed = outcomes("poker", "prod", Outcome::Processed, 3);
    for (latency, us) in [(Latency::Check, 12), (Latency::Check, 9_000_000), (Latency::Response, 7)]
    {
        let key = (id("poker"), id("prod"), latency);
        committed.latencies.entry(key).or_default().observe(us);
    }
    committed.repeated = 2;
    committed.reject("net_out_of_range", None);
    let from = SourceName { service: id("poker"), env: id("prod"), source: id("s") };
    committed.reject("net_out_of_range", Some(&from));
    committed
}

#[tokio::test]
async fn counters_move_after_the_commit_and_go_on_after_a_restart() {
    let world = World::new().await;
    let counted = world.metrics.count(&everything());
    world.has_not("poker").await;
    drop(counted);
    world.commit(&everything()).await;
    let world = world.reopen().await;
    world.commit(&everything()).await;
    let world = world.reopen().await;
    for line in [
        r#"dedup_outcomes_total{service="poker",env="prod",outcome="processed"} 6"#,
        r#"dedup_outcomes_total{service="poker",env="prod",outcome="evicted"} 0"#,
        r#"dedup_check_duration_seconds_bucket{service="poker",env="prod",le="0.00001"} 0"#,
        r#"dedup_check_duration_seconds_bucket{service="poker",env="prod",le="0.000025"} 2"#,
        r#"dedup_check_duration_seconds_bucket{service="poker",env="prod",le="5"} 2"#,
        r#"dedup_check_duration_seconds_bucket{service="poker",env="prod",le="+Inf"} 4"#,
        r#"dedup_check_duration_seconds_sum{service="poker",env="prod"} 18.000024"#,
        r#"dedup_check_duration_seconds_count{service="poker",env="prod"} 4"#,
        r#"dedup_response_duration_seconds_count{service="poker",env="prod"} 2"#,
        r#"dedup_findings_total{kind="duplicate_leak",service="poker",env="prod"} 0"#,
        r#"dedup_open_findings{kind="false_block",service="poker"} 0"#,
        r#"dedupwatch_ingest_events_total{result="written"} 6"#,
        r#"dedupwatch_ingest_events_total{result="repeated"} 4"#,
        r#"dedupwatch_ingest_events_total{result="rejected"} 4"#,
        r#"dedupwatch_rejected_events_total{reason="net_out_of_range"} 4"#,
        "dedupwatch_label_overflow_total 0",
    ] {
        world.has(line).await;
    }
}

#[tokio::test]
async fn services_beyond_the_bound_become_other_and_stay_so_after_a_restart() {
    let mut world = World::new().await;
    for n in 0..limits::LABEL_SERVICES_MAX {
        // In an order that is not the alphabet's: the first to come, not the first by name.
        world.commit(&outcomes(&format!("z{n}"), "prod", Outcome::Processed, 1)).await;
    }
    for _ in 0..2 {
        world.commit(&outcomes("a", "prod", Outcome::Unknown, 5)).await;
        world = world.reopen().await;
    }
    world.commit(&outcomes("z0", "prod", Outcome::Processed, 1)).await;
    world.has(r#"dedup_outcomes_total{service="other",env="prod",outcome="unknown"} 10"#).await;
    world.has(r#"dedup_outcomes_total{service="z0",env="prod",outcome="processed"} 2"#).await;
    world.has("dedupwatch_label_overflow_total 10").await;
}

#[tokio::test]
async fn rejected_senders_take_no_place_among_the_labels() {
    let world = World::new().await;
    let from = |n: usize| SourceName {
        service: id(&format!("invented-{n}")),
        env: id(&format!("env-{n}")),
        source: id("s"),
    };
    for n in 0..limits::LABEL_SERVICES_MAX {
        let mut committed = Committed::default();
        committed.reject("empty", Some(&from(n)));
        world.commit(&committed).await;
        let confirmed = (Kind::RejectedEvidence, format!("invented-{n}"), format!("env-{n}"));
        let confirmed = BTreeMap::from([(confirmed, 1)]);
        world.judge(&Judged { confirmed, ..Judged::default() }).await;
    }
    world.has_not("invented").await;
    let rejected = limits::LABEL_SERVICES_MAX;
    world.has(&format!(r#"dedupwatch_rejected_events_total{{reason="empty"}} {rejected}"#)).await;
    world.commit(&outcomes("poker", "prod", Outcome::Processed, 1)).await;
    world.has(r#"dedup_outcomes_total{service="poker",env="prod",outcome="processed"} 1"#).await;
    world.has("dedupwatch_label_overflow_total 0").await;
    let mut committed = Committed::default();
    committed.reject("empty", Some(&SourceName { service: id("poker"), ..from(0) }));
    let senders = world.metrics.count(&committed).rejects;
    assert_eq!(senders, [(("poker".into(), "env-0".into()), 1)], "people are told by name");
}

/// Two replays, one further back than is remembered, and a late acceptance.
fn measured() -> Measured {
    let count = |n: usize, places: usize| (0..places).map(|place| u64::from(place == n)).collect();
    let mut measured = Measured::default();
    measured.distances.counts = count(4, DISTANCES.len() + 1);
    measured.distances.counts[DISTANCES.len()] = 1;
    measured.distances.sum = 24;
    measured.late_us.counts = count(1, LATE_SECONDS.len() + 1);
    measured.late_us.sum = 1_500_000;
    measured.late_games.counts = count(2, LATE_GAMES.len() + 1);
    measured.late_games.sum = 2;
    measured
}

#[tokio::test]
async fn the_judge_counts_rows_and_skipped_checks() {
    let mut world = World::new().await;
    world.commit(&outcomes("poker", "prod", Outcome::Processed, 1)).await;
    let judged = Judged {
        confirmed: BTreeMap::from([
            ((Kind::DuplicateLeak, "poker".into(), "prod".into()), 2),
            ((Kind::RejectedEvidence, String::new(), String::new()), 1),
        ]),
        skipped: BTreeMap::from([("live_eviction".into(), 3)]),
        measured: vec![("poker".into(), "prod".into(), measured())],
    };
    for _ in 0..2 {
        world.judge(&judged).await;
        world = world.reopen().await;
    }
    for line in [
        r#"dedup_findings_total{kind="duplicate_leak",service="poker",env="prod"} 4"#,
        r#"dedup_findings_total{kind="rejected_evidence",service="unknown",env="unknown"} 2"#,
        r#"dedupwatch_audit_skipped_total{check="live_eviction"} 6"#,
        r#"dedup_replay_distance_bucket{service="poker",env="prod",le="3"} 0"#,
        r#"dedup_replay_distance_bucket{service="poker",env="prod",le="4"} 2"#,
        r#"dedup_replay_distance_bucket{service="poker",env="prod",le="15"} 2"#,
        r#"dedup_replay_distance_count{service="poker",env="prod"} 4"#,
        r#"dedup_replay_distance_sum{service="poker",env="prod"} 48"#,
        r#"dedup_late_seconds_sum{service="poker",env="prod"} 3"#,
        r#"dedup_late_games_bucket{service="poker",env="prod",le="2"} 2"#,
    ] {
        world.has(line).await;
    }
}

#[tokio::test]
async fn gauges_are_read_from_the_store() {
    let world = World::new().await;
    let heard = ["prod", "test"].map(|env| (id("poker"), id(env))).into();
    world.commit(&Committed { heard, ..Committed::default() }).await;
    fixtures::run(
        &world.store,
        "INSERT INTO sources (service, env, source, last_push_us, state) VALUES \
             ('poker', 'prod', 's1', 1500000, 'open'), ('poker', 'test', 's2', 2500000, 'silent')",
    )
    .await;
    fixtures::run(
        &world.store,
        "INSERT INTO finding_sums VALUES \
             ('duplicate_leak', 'poker', 'prod', 'chips', 9, 2, 1, '250', '2', '0', '0', '0'), \
             ('false_block', 'poker', 'prod', 'chips', 1, 1, 0, '0', '0', '7', '8', '0')",
    )
    .await;
    fixtures::run(
        &world.store,
        "INSERT INTO alerts VALUES ('DuplicateLeak', 'poker', 'prod', 'firing', 'critical', \
             1, NULL, '{}')",
    )
    .await;
    for line in [
        r#"dedup_sources{service="poker",env="prod",state="open"} 1"#,
        r#"dedup_sources{service="poker",env="test",state="silent"} 1"#,
        r#"dedup_sources{service="poker",env="prod",state="closed"} 0"#,
        r#"dedup_source_last_push_timestamp_seconds{service="poker"} 2.5"#,
        r#"dedup_outcomes_total{service="poker",env="test",outcome="unknown"} 0"#,
        r#"dedup_open_findings{kind="duplicate_leak",service="poker"} 2"#,
        r#"dedup_open_findings{kind="live_eviction",service="poker"} 0"#,
        r#"dedup_overpaid_minor_units{service="poker",ledger="chips"} 250"#,
        r#"dedup_overcharged_minor_units{service="poker",ledger="chips"} 2"#,
        r#"dedup_underpaid_minor_units{service="poker",ledger="chips"} 7"#,
        r#"dedup_undercharged_minor_units{service="poker",ledger="chips"} 8"#,
        r#"dedup_alerts{alertname="DuplicateLeak",service="poker",env="prod",state="firing"} 1"#,
    ] {
        world.has(line).await;
    }
}

#[tokio::test]
async fn what_can_not_be_read_is_not_shown_as_zero() {
    let world = World::new().await;
    world.commit(&everything()).await;
    world.has(r#"dedup_open_findings{kind="duplicate_leak",service="poker"} 0"#).await;
    fixtures::run(&world.store, "DROP TABLE finding_sums").await;
    world.has_not("dedup_open_findings").await;
    world.has(r#"dedupwatch_ingest_events_total{result="written"} 3"#).await;
}

#[tokio::test]
async fn the_collector_tells_about_itself() {
    let world = World::new().await;
    world.metrics.shared.vitals.set_queue_events(17);
    world.metrics.shared.vitals.set_judged(5, 1_500_000);
    world.metrics.announce_receiver("webhook");
    world.metrics.notified(&world.metrics.count_notified("webhook", "failed", 1));
    world.commit(&Committed::default()).await;
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        "dedupwatch_queue_events 17",
        "dedupwatch_audit_lag_seconds 1.5",
        r#"dedupwatch_notifications_total{receiver="webhook",result="delivered"} 0"#,
        r#"dedupwatch_notifications_total{receiver="webhook",result="failed"} 1"#,
        r#"dedupwatch_commit_duration_seconds_bucket{le="0.005"} 1"#,
        &format!(r#"dedupwatch_build_info{{version="{version}"}} 1"#),
    ] {
        world.has(line).await;
    }
    let text = world.metrics.render().await.unwrap();
    assert!(text.contains("\nprocess_resident_memory_bytes "));
}

#[tokio::test]
async fn labels_can_not_break_the_format() {
    let world = World::new().await;
    world.commit(&outcomes("a\"b\\c", "<b>", Outcome::Processed, 1)).await;
    world.has(r#"dedup_outcomes_total{service="a\"b\\c",env="<b>",outcome="processed"} 1"#).await;
}

/// `promtool` of Debian's `prometheus` reads it without complaint.
#[tokio::test]
async fn promtool_has_no_complaint() {
    use std::io::Write;
    let world = World::new().await;
    world.commit(&everything()).await;
    world.judge(&Judged { skipped: BTreeMap::from([("c".into(), 1)]), ..Judged::default() }).await;
    world.metrics.announce_receiver("webhook");
    fixtures::run(
        &world.store,
        "INSERT INTO finding_sums VALUES \
             ('duplicate_leak', 'poker', 'prod', 'chips', 9, 2, 1, '250', '2', '0', '0', '0')",
    )
    .await;
    let text = world.metrics.render().await.unwrap();
    let mut promtool = std::process::Command::new("promtool")
        .args(["check", "metrics"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("promtool: apt-get install prometheus");
    promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = promtool.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.is_empty(), "{said}\n{text}");
}
