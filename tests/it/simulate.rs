//! Simulations against the audit: what it finds is the truth of what was delivered, no more and
//! no less. In memory over many seeds; then with clients, HTTP, log and judge.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use dedupwatch::audit::{Audit, Finding, Settings, State};
use dedupwatch::client::http;
use dedupwatch::clock::Clock;
use dedupwatch::outcome::{
    Body, Boot, Event, GivenUp, Heartbeat, KeyedHash, Position, Record, SourceName, SourceState,
};
use dedupwatch::simulate::check::Check;
use dedupwatch::simulate::found::{Comparison, Reported, compare};
use dedupwatch::simulate::run::{Pace, play as push};
use dedupwatch::simulate::truth::{Truth, TruthSettings};
use dedupwatch::simulate::{Fault, FaultKind, Step, Stream, StreamSettings};
use serde_json::json;

use crate::cases::fold;
use crate::support::{TestApp, now_us, program};

/// Each fault, and combinations of them; early, in the middle, and so late that what was lost is
/// still in the windows at the end.
const SCENARIOS: &[&[&str]] = &[
    &[],
    &["window-of-3@30s+2m"],
    &["window-of-3@0s+5m/1"],
    &["window-of-3@30s+4m/1"],
    &["restart-empty@60s+2m"],
    &["restart-empty@60s+2m/1"],
    &["two-guards@30s+3m"],
    &["two-guards@30s+3m/1"],
    &["lost-telemetry@60s+30s"],
    &["lost-telemetry@255s+35s/1"],
    &["crash@60s+20s"],
    &["crash@265s+20s"],
    &["crash@265s+20s/1"],
    &["window-of-3@30s+4m", "two-guards@60s+2m", "crash@265s+20s/2"],
    &["window-of-3@30s+4m", "lost-telemetry@100s+5s", "restart-empty@150s+40s"],
    &["one-counter@60s+20s/2", "guard-off@60s+30s", "effect-failed@30s+3m/1"],
    &["one-counter@60s+20s/1", "lost-telemetry@100s+3s/1", "unknown@30s+3m/2"],
    &["order-mark@60s+2m", "race@60s+60s/1", "guard-off@60s+30s/2"],
    &["order-mark@60s+2m/1", "lost-telemetry@30s+3s/1", "handover@60s+60s"],
    &["refresh-on-block@30s+3m", "cross-room@30s+2m/1", "effect-failed@30s+3m/2"],
    &["refresh-on-block@30s+3m/1", "colliding-ids@30s+3m", "old-state@60s+2m/2"],
    &["clock-back@60s+60s/1", "race@60s+60s", "renamed-retries@60s+2m/2"],
    &["lower-capacity@60s+60s", "handover@60s+60s/1", "colliding-ids@30s+3m/2"],
    &["lower-capacity@60s+60s/1", "equal-settlements@60s+60s", "clock-back@60s+60s/2"],
    &["reversals@60s+2m/1", "equal-settlements@30s+2m/1"],
];

/// How long the collector waits for a hole.
const GAP_GRACE_US: i64 = 30_000_000;

fn settings(seed: u64, faults: &[&str]) -> StreamSettings {
    StreamSettings {
        seed,
        start_us: 1_800_000_000_000_000,
        length_us: 300_000_000,
        players: 12,
        tag: None,
        faults: faults.iter().map(|fault| fault.parse().unwrap()).collect(),
    }
}

/// The log of a simulation, in the order of receipt.
#[derive(Default)]
struct Log {
    records: Vec<(i64, Body)>,
    seqs: BTreeMap<(SourceName, Boot), u64>,
    /// Numbers that were not told.
    lost: Vec<GivenUp>,
}

impl Log {
    fn told(&mut self, boot: Boot, event: &Event, received_us: i64) {
        let seq = self.next_seq(&event.from, boot);
        let event = Event { boot: Some(boot), seq: Some(seq), ..event.clone() };
        self.records.push((received_us, Body::Event(Box::new(event))));
    }

    fn lost(&mut self, boot: Boot, event: &Event) {
        let seq = self.next_seq(&event.from, boot);
        let from = event.from.clone();
        self.lost.push(GivenUp { from, boot, first_seq: seq, last_seq: seq });
    }

    fn next_seq(&mut self, from: &SourceName, boot: Boot) -> u64 {
        let seq = self.seqs.entry((from.clone(), boot)).or_default();
        *seq += 1;
        *seq
    }

    fn beat(&mut self, from: &SourceName, boot: Boot, at_us: i64, state: SourceState) -> u64 {
        let last_seq = self.seqs.get(&(from.clone(), boot)).copied().unwrap_or(0);
        let ledgers = vec![from.service.clone()];
        let from = from.clone();
        let heartbeat = Heartbeat { from, boot, last_seq, at_us, ledgers, state };
        self.records.push((at_us, Body::Heartbeat(heartbeat)));
        last_seq
    }
}

/// Plays a stream into a log. `delay_us` is how long a source gathers its batches.
fn play(settings: &StreamSettings, delays_us: &[i64]) -> (Log, Truth) {
    let mut stream = Stream::new(settings.clone()).unwrap();
    let sources: Vec<SourceName> = stream.sources().cloned().collect();
    let mut boots = vec![Stream::boot_at(settings.start_us); sources.len()];
    let mut beat_us = settings.start_us;
    let (mut log, mut truth) = (Log::default(), Truth::default());
    let mut told_seqs = vec![0; sources.len()];
    let delay = |source: usize| delays_us[source % delays_us.len()];
    while let Some(step) = stream.next_step().unwrap() {
        while beat_us <= step.at_us() {
            for (source, from) in sources.iter().enumerate() {
                told_seqs[source] = log.beat(from, boots[source], beat_us, SourceState::Running);
            }
            beat_us += 5_000_000;
        }
        match step {
            Step::Decided { source, events, lost: true, .. } => {
                for event in events {
                    log.lost(boots[source], &event);
                    truth.lost(boots[source], &event);
                }
            }
            Step::Decided { at_us, source, events, .. } => {
                let batch_us = delay(source);
                let received_us = (at_us / batch_us + 1) * batch_us;
                for event in events {
                    log.told(boots[source], &event, received_us);
                    truth.told(boots[source], &event);
                }
            }
            Step::Restarted { at_us, source, goodbye } => {
                let from = &sources[source];
                if goodbye {
                    let down_us = at_us - 1_000_000;
                    told_seqs[source] =
                        log.beat(from, boots[source], down_us, SourceState::Closing);
                } else {
                    truth.crashed(from, from.service.as_str(), at_us);
                }
                truth.ended(from, boots[source], Some(told_seqs[source]));
                boots[source] = Stream::boot_at(at_us);
            }
        }
    }
    for (source, from) in sources.iter().enumerate() {
        let end_us = settings.start_us + settings.length_us;
        let told = log.beat(from, boots[source], end_us, SourceState::Closing);
        truth.ended(from, boots[source], Some(told));
    }
    (log, truth)
}

/// Folds a log, and returns what stands at the end.
fn audit(log: Log, end_us: i64) -> Vec<Finding> {
    let settings = Settings { warmup_us: 0, ..Settings::default() };
    let mut audit = Audit::in_memory(settings, KeyedHash::new([7; 16]));
    let mut rows = BTreeMap::new();
    let mut records = log.records;
    let late_us = end_us + 700_000_000;
    let given_up: Vec<_> = log.lost.into_iter().filter_map(|h| given_up(h, &records)).collect();
    records.extend(given_up);
    // By receipt; what one source sends stays in its order.
    records.sort_by_key(|(received_us, _)| *received_us);
    records.push((late_us, Body::Tick));
    for (n, (received_us, body)) in (1..).zip(records) {
        let position = Position { collector: 1, n };
        fold(&mut audit, &mut rows, &Record { position, received_us, body });
    }
    rows.into_values().filter(|finding| finding.state != State::Closed).collect()
}

/// When the collector gives a hole up: some time after anything has shown it, if ever.
fn given_up(hole: GivenUp, records: &[(i64, Body)]) -> Option<(i64, Body)> {
    let shows = |body: &Body| match body {
        Body::Event(event) => {
            event.from == hole.from
                && event.boot == Some(hole.boot)
                && event.seq > Some(hole.last_seq)
        }
        Body::Heartbeat(beat) => {
            beat.from == hole.from && beat.boot == hole.boot && beat.last_seq >= hole.last_seq
        }
        _ => false,
    };
    let shown_us = records.iter().filter(|(_, body)| shows(body)).map(|(us, _)| *us).min()?;
    Some((shown_us + GAP_GRACE_US, Body::GivenUp(hole)))
}

/// As the API has it.
fn reported(finding: &Finding) -> Reported {
    let (amounts, text) = (finding.amounts, |n: i128| n.to_string());
    serde_json::from_value(json!({
        "kind": finding.kind.as_str(), "state": finding.state.as_str(), "cause": finding.cause,
        "service": finding.service, "env": finding.env, "ledger": finding.ledger,
        "source": finding.source, "player": finding.player, "signature": finding.signature,
        "count": finding.count.to_string(), "overpaid": text(amounts.overpaid),
        "overcharged": text(amounts.overcharged), "underpaid": text(amounts.underpaid),
        "undercharged": text(amounts.undercharged),
    }))
    .unwrap()
}

fn compared(settings: &StreamSettings, delays_us: &[i64]) -> Comparison {
    let (log, truth) = play(settings, delays_us);
    let truth_settings = TruthSettings { live_games: 2, warmup_us: 0, horizon_us: 7_200_000_000 };
    let expected = truth.expected(&truth_settings);
    let found = audit(log, settings.start_us + settings.length_us);
    let found: Vec<Reported> = found.iter().map(reported).collect();
    compare(&expected, &found).unwrap()
}

#[test]
fn the_audit_finds_the_truth_whatever_the_seed_and_the_fault() {
    let mut wrong = Vec::new();
    for (seed, faults) in (1..).zip(SCENARIOS) {
        let comparison = compared(&settings(seed, faults), &[100_000]);
        if !comparison.is_right() {
            wrong.push(format!("seed {seed}, {faults:?}: {comparison:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn the_audit_finds_what_each_fault_is_known_for() {
    let mut wrong = Vec::new();
    for kind in FaultKind::all() {
        let span = if kind == FaultKind::Crash { "265s+20s" } else { "30s+2m" };
        let fault = format!("{}@{span}", kind.as_str());
        let mut not_yet = kind.known_for().to_vec();
        for seed in 1..=3 {
            if not_yet.is_empty() {
                break;
            }
            let comparison = compared(&settings(seed, &[&fault]), &[100_000]);
            not_yet.retain(|known| !comparison.right.contains_key(known));
            if !comparison.is_right() {
                wrong.push(format!("seed {seed}, {fault}: {comparison:#?}"));
            }
        }
        wrong.extend(not_yet.into_iter().map(|known| format!("{fault} without {known}")));
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// Over 20,000 outcomes with every fault.
#[test]
fn the_audit_finds_every_fault() {
    let mut wrong = Vec::new();
    let mut known: BTreeSet<&str> =
        FaultKind::all().flat_map(FaultKind::known_for).copied().collect();
    for seed in 1..=3 {
        let length_us = 600_000_000;
        let faults = Fault::all(length_us);
        let settings = StreamSettings { length_us, faults, players: 40, ..settings(seed, &[]) };
        let comparison = compared(&settings, &[100_000]);
        let is_right = comparison.is_right() && comparison.right_in_all() > 500;
        known.retain(|known| !comparison.right.contains_key(known));
        if !is_right {
            wrong.push(format!("seed {seed}: {comparison:#?}"));
        }
    }
    assert!(known.is_empty(), "not shown: {known:?}");
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn it_does_not_matter_how_late_and_in_which_batches_sources_push() {
    let mut wrong = Vec::new();
    for faults in SCENARIOS {
        let comparison = compared(&settings(4, faults), &[100_000, 7_000_000, 1_300_000]);
        if !comparison.is_right() {
            wrong.push(format!("{faults:?}: {comparison:#?}"));
        }
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
}

/// What comes through clients, HTTP, log and judge, and is read from the API.
async fn pushed(target: &str, tag: usize, faults: &[&str]) -> Comparison {
    let pace = Pace::faster(now_us(), 300_000_000, 12.5, 45_000_000);
    let settings = StreamSettings {
        start_us: pace.game_us,
        tag: Some(format!("t{tag}")),
        ..settings(5, faults)
    };
    let played = push(target, settings, pace, std::future::pending()).await.unwrap();
    assert_eq!(played.unclear, [] as [String; 0], "{faults:?}");
    let http = http(Duration::from_secs(60)).unwrap();
    let check = Check::of(&http, target, played).await.unwrap();
    check.compare(&http, target).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_collector_finds_the_truth_of_what_was_pushed() {
    let app = TestApp::start_with(Clock::System, |config| {
        config.audit.warmup_us = 0;
        // Longer than a push waits on a busy machine: a hole given up is skipped for good.
        config.audit.gap_grace_us = 10_000_000;
    })
    .await;
    let worlds = [
        &[][..],
        &["window-of-3@30s+4m"],
        &["window-of-3@30s+4m/1"],
        &["restart-empty@60s+2m"],
        &["two-guards@30s+3m/1"],
        &["lost-telemetry@250s+40s"],
        &["crash@265s+20s"],
        &["one-counter@60s+20s/2", "guard-off@60s+30s", "effect-failed@30s+3m/1"],
        &["lower-capacity@60s+60s", "clock-back@60s+60s/2", "reversals@60s+2m/1"],
        &["race@60s+60s", "handover@60s+60s/1", "cross-room@30s+3m/2"],
        &["refresh-on-block@30s+3m", "equal-settlements@30s+3m/1", "old-state@30s+3m/2"],
        &["colliding-ids@30s+3m", "renamed-retries@30s+3m/1"],
    ];
    let runs: Vec<_> = (0..)
        .zip(worlds)
        .map(|(tag, faults)| {
            let target = app.base().to_owned();
            (faults, tokio::spawn(async move { pushed(&target, tag, faults).await }))
        })
        .collect();
    let mut wrong = Vec::new();
    for (faults, run) in runs {
        let comparison = run.await.unwrap();
        assert!(faults.is_empty() || comparison.right_in_all() > 0, "{faults:?} showed nothing");
        if !comparison.is_right() {
            wrong.push(format!("{faults:?}: {comparison:#?}"));
        }
    }
    let metrics = app.get("/metrics").await.body;
    let skipped = metrics.lines().filter(|line| line.starts_with("dedupwatch_audit_skipped"));
    let skipped: Vec<_> = skipped.collect();
    assert!(wrong.is_empty(), "{}\n{}", wrong.join("\n"), skipped.join("\n"));
    app.stop().await;
}

#[tokio::test]
async fn the_command_checks_and_says_so_by_its_exit_status() {
    let app = TestApp::start().await;
    let simulate = |flags: &[&str]| {
        let mut command = program();
        command.args(["simulate", "--target", app.base(), "--length", "90s", "--speed", "30"]);
        command.args(["--players", "6"]).args(flags);
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    let output = simulate(&["--check", "--fault", "two-guards@10s+60s"]).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains(" right, 0 missed, 0 false"), "{text}");
    let output = simulate(&["--fault", "nap@1s+1s"]).await.unwrap();
    assert_eq!(output.status.code(), Some(2), "a fault that is none");
    app.stop().await;
}

#[tokio::test]
async fn the_load_is_written_once_each_and_counted() {
    let app = TestApp::start().await;
    let mut command = program();
    command.args(["simulate", "--target", app.base(), "--rate", "max", "--events", "20005"]);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    assert!(text.contains("count right: 20005 asked for, 20005 written"), "{text}");
    assert_eq!(app.get_json("/api/v1/findings").await["findings"], json!([]));
    app.stop().await;
}
