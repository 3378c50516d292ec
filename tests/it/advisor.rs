//! The window advisor warns before the first leak, and never of a window that is long enough.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use dedupwatch::audit::{Audit, Settings};
use dedupwatch::clock::Clock;
use dedupwatch::outcome::{
    Body, Boot, Event, Heartbeat, KeyedHash, Position, Record, SourceName, SourceState,
};
use dedupwatch::simulate::{Step, Stream, StreamSettings};
use serde_json::{Value, json};

use crate::cases::fold;
use crate::support::{LOOK_EVERY, PATIENCE, TestApp, event, now_us, rfc3339};

const SECOND_US: i64 = 1_000_000;

/// A simulation by the second: what its sources tell, and whether that has a leak.
struct Seconds {
    stream: Stream,
    sources: Vec<SourceName>,
    boot: Boot,
    seqs: Vec<u64>,
    next: Option<Step>,
    accepted: BTreeSet<String>,
    now_us: i64,
}

struct Second {
    events: Vec<Event>,
    heartbeats: Vec<Heartbeat>,
    leaks: bool,
}

impl Seconds {
    fn new(seed: u64, start_us: i64, faults: &[&str]) -> Self {
        let mut stream = Stream::new(StreamSettings {
            seed,
            start_us,
            length_us: 300 * SECOND_US,
            players: 12,
            tag: None,
            faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
        })
        .unwrap();
        let sources: Vec<SourceName> = stream.sources().cloned().collect();
        let next = stream.next_step().unwrap();
        let (seqs, boot) = (vec![0; sources.len()], Stream::boot_at(start_us));
        let accepted = BTreeSet::new();
        Self { stream, sources, boot, seqs, next, accepted, now_us: start_us }
    }

    /// What the next second brings; nothing at the end.
    fn next(&mut self) -> Option<Second> {
        let mut second = Second { events: Vec::new(), heartbeats: Vec::new(), leaks: false };
        self.now_us += SECOND_US;
        self.next.as_ref()?;
        while let Some(step) = self.next.take_if(|step| step.at_us() < self.now_us) {
            self.next = self.stream.next_step().unwrap();
            let Step::Decided { source, events, .. } = step else { continue };
            for event in events {
                self.seqs[source] += 1;
                let key = serde_json::to_string(&(event.ledger(), &event.player, &event.signature));
                second.leaks |= event.is_acceptance() && !self.accepted.insert(key.unwrap());
                let (boot, seq) = (Some(self.boot), Some(self.seqs[source]));
                second.events.push(Event { boot, seq, ..event });
            }
        }
        for (from, seq) in self.sources.iter().zip(&self.seqs) {
            second.heartbeats.push(Heartbeat {
                from: from.clone(),
                boot: self.boot,
                last_seq: *seq,
                at_us: self.now_us,
                ledgers: vec![from.service.clone()],
                state: SourceState::Running,
            });
        }
        Some(second)
    }
}

/// Services that are warned of when the first leak comes, or at the end.
fn warned(seed: u64, faults: &[&str]) -> (BTreeSet<String>, bool) {
    let mut audit = Audit::in_memory(Settings::default(), KeyedHash::new([7; 16]));
    let (mut rows, mut n, mut warned) = (BTreeMap::new(), 0, BTreeSet::new());
    let mut seconds = Seconds::new(seed, 1_800_000_000_000_000, faults);
    while let Some(second) = seconds.next() {
        if second.leaks {
            return (warned, true);
        }
        let events = second.events.into_iter().map(|event| Body::Event(Box::new(event)));
        for body in events.chain(second.heartbeats.into_iter().map(Body::Heartbeat)) {
            n += 1;
            let position = Position { collector: 1, n };
            fold(&mut audit, &mut rows, &Record { position, received_us: seconds.now_us, body });
        }
        for advice in audit.take_advices() {
            assert!(advice.required().is_none_or(|need| need.capacity <= 4), "{advice:?}");
            if advice.is_too_small() {
                warned.insert(advice.service.clone());
            }
        }
    }
    (warned, false)
}

#[test]
fn a_window_that_is_one_too_short_is_warned_of_before_it_leaks_whatever_the_seed() {
    let mut leaks = 0;
    for seed in 1..=20 {
        assert_eq!(warned(seed, &[]), (BTreeSet::new(), false), "healthy, seed {seed}");
        let (services, leaked) = warned(seed, &["window-of-3@0s+5m"]);
        assert_eq!(services, BTreeSet::from(["settle-poker".to_owned()]), "seed {seed}");
        leaks += usize::from(leaked);
    }
    assert!(leaks >= 15, "{leaks} leaked");
}

/// Pushes a simulation second by second up to its first leak, and returns that second.
async fn push(app: &TestApp, faults: &[&str]) -> Option<Second> {
    let mut seconds = Seconds::new(1, app.clock().now_us(), faults);
    while let Some(second) = seconds.next() {
        app.clock().advance(SECOND_US);
        if second.leaks {
            return Some(second);
        }
        tell(app, &second).await;
    }
    None
}

async fn tell(app: &TestApp, second: &Second) {
    if !second.events.is_empty() {
        post(app, "/api/v1/outcomes", &json!(second.events)).await;
    }
    post(app, "/api/v1/heartbeats", &json!(second.heartbeats)).await;
}

/// Posts until the collector is not too busy.
async fn post(app: &TestApp, path: &str, body: &Value) {
    let end = Instant::now() + PATIENCE;
    loop {
        match app.post(path, body).await.status {
            200 => return,
            status => assert!(status == 429 && Instant::now() < end, "{status}"),
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

fn too_small(alerts: &Value) -> Vec<&Value> {
    let alerts = alerts["alerts"].as_array().unwrap().iter();
    alerts.filter(|alert| alert["rule"] == "WindowTooSmall").collect()
}

#[tokio::test]
async fn the_alert_fires_before_the_first_leak_where_a_place_is_missing() {
    let app = TestApp::start_with(Clock::manual(now_us() - 600 * SECOND_US), |_| {}).await;
    let leak = push(&app, &["window-of-3@0s+5m"]).await.expect("there is a leak");
    let alerts = app.wait_for("/api/v1/alerts", |alerts| !too_small(alerts).is_empty()).await;
    let of: Vec<_> = too_small(&alerts).iter().map(|alert| &alert["service"]).collect();
    assert_eq!(of, ["settle-poker"]);
    assert_eq!(too_small(&alerts)[0]["severity"], "warning");
    let leaks = "/api/v1/findings?kind=duplicate_leak";
    assert_eq!(app.get_json(leaks).await["findings"], json!([]), "none so far");
    let line = "dedup_window_required_capacity{service=\"settle-poker\"} 4
";
    app.wait_for_text("/metrics", line).await;
    let page = app.get("/services/settle-poker").await.body;
    assert!(page.contains("2 settlements x 2 games = 4: 4 needed, capacity 3."), "{page}");
    tell(&app, &leak).await;
    app.wait_for(leaks, |found| found["findings"] != json!([])).await;
    app.stop().await;
}

#[tokio::test]
async fn a_healthy_service_is_not_warned_of() {
    let app = TestApp::start_with(Clock::manual(now_us() - 600 * SECOND_US), |_| {}).await;
    assert!(push(&app, &[]).await.is_none(), "it has no leak");
    for service in ["settle-poker", "settle-slots", "settle-baccarat"] {
        let line = format!(r#"dedup_window_required_capacity{{service="{service}"}} 4"#);
        app.wait_for_text("/metrics", &format!("{line}\n")).await;
    }
    // The rules are looked at every second, and all is judged by then.
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let alerts = app.get_json("/api/v1/alerts").await;
    assert!(too_small(&alerts).is_empty(), "{alerts}");
    let metrics = app.get("/metrics").await.body;
    for name in ["dedup_replay_distance", "dedup_late_seconds", "dedup_late_games"] {
        let count = format!("{name}_count{{service=\"settle-poker\",env=\"prod\"}} ");
        let line = metrics.lines().find(|line| line.starts_with(&count)).unwrap();
        assert_ne!(line.split(' ').next_back(), Some("0"), "{line}");
    }
    let app = app.restart().await;
    let after = app.get("/metrics").await.body;
    let of = |text: &str| {
        let ours = |line: &&str| line.starts_with("dedup_late") || line.starts_with("dedup_replay");
        text.lines().filter(ours).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(of(&metrics), of(&after), "they go on after a restart");
    app.stop().await;
}

#[tokio::test]
async fn the_capacity_that_prometheus_sees_is_the_one_of_now() {
    let app = TestApp::start().await;
    let told = async |seq, ago_us, cap: u64| {
        let mut event = event(seq);
        event["occurred_at"] = rfc3339(now_us() - ago_us).into();
        event["window"]["cap"] = u64::into(cap);
        assert_eq!(app.push(&event).await.status, 200);
        let line = format!("dedup_window_capacity{{service=\"settle-poker\"}} {cap}\n");
        app.wait_for_text("/metrics", &line).await;
    };
    told(1, 20 * 60 * SECOND_US, 3).await;
    told(2, 0, 8).await;
    told(3, 0, 6).await;
    app.stop().await;
}
