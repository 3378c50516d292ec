//! How fast the log can be written at all, and how near to that an ack is.
//!
//! `log` puts the rows of events into the log and nothing else, one commit for each group: the
//! limit. `ack` sends the same events through ingest, eight requests at a time: with sets,
//! content hashes, rollups and counters. `decode` reads the text of events. All say rows
//! (elements) per second.
#![allow(clippy::unwrap_used, reason = "a bench that can't run has nothing to say")]
#![allow(missing_docs, reason = "the macro's group has none")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dedupwatch::clock::Clock;
use dedupwatch::ingest::decode::{self, Context, Decoded, Format};
use dedupwatch::ingest::{Ingest, Parts};
use dedupwatch::metrics::Metrics;
use dedupwatch::outcome::{Event, format_us};
use dedupwatch::store::Store;
use dedupwatch::store::group::Group;
use dedupwatch::store::log::{EVENT, Row};
use dedupwatch::vitals::Vitals;
use tokio::runtime::Runtime;

const REQUESTS: u64 = 8;
const BATCH: u64 = 1_000;

async fn store(folder: &tempfile::TempDir) -> Arc<Store> {
    let url = format!("sqlite://{}/bench.db", folder.path().display());
    Arc::new(Store::open(&url, "bench").await.unwrap())
}

/// An event of about 360 bytes, of one of eight sources.
fn event(source: u64, seq: u64) -> String {
    let at = format_us(Clock::System.now_us());
    format!(
        r#"{{"service":"settle-poker","env":"prod","source":"settle-{source}","boot":"1","seq":{seq},"occurred_at":"{at}","player":"p-{}","signature":{{"room":"r-{}","round":"{seq}","net":"-250","final":true}},"outcome":"processed","window":{{"len":4,"cap":4}},"trace_id":"4bf92f3577b34da6a3ce929d0e0e4736","check_us":12,"response_us":1800}}"#,
        seq % 5_000,
        seq % 300,
    )
}

fn log(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(store(&folder));
    let mut last_n = 0;
    let mut benches = criterion.benchmark_group("log");
    benches.sample_size(10).measurement_time(Duration::from_secs(8));
    for size in [1_000_u64, 5_000, 20_000] {
        benches.throughput(Throughput::Elements(size));
        let bodies: Vec<String> = (1..=size).map(|seq| event(seq % REQUESTS, seq)).collect();
        benches.bench_function(BenchmarkId::from_parameter(size), |bencher| {
            bencher.iter_custom(|rounds| {
                let mut took = Duration::ZERO;
                for _ in 0..rounds {
                    let group = group(&bodies, &mut last_n);
                    let began = Instant::now();
                    runtime.block_on(store.write_group(&group)).unwrap();
                    took += began.elapsed();
                }
                took
            });
        });
    }
    benches.finish();
}

fn group(bodies: &[String], last_n: &mut i64) -> Group {
    let row = |body: &String| {
        *last_n += 1;
        Row { n: *last_n, kind: EVENT, received_us: 1, body: body.clone() }
    };
    let records = bodies.iter().map(row).collect();
    let id = format!("{last_n:012}");
    Group { id, last_n: *last_n, answers: "[]".into(), records, ..Group::default() }
}

fn ack(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (store, ingest) = runtime.block_on(async {
        let store = store(&folder).await;
        let vitals = Arc::new(Vitals::default());
        let metrics = Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await.unwrap();
        let parts = Parts {
            store: Arc::clone(&store),
            vitals,
            metrics: Arc::new(metrics),
            clock: Clock::System,
            gap_grace_us: 30_000_000,
        };
        (store, Ingest::start(parts).await.unwrap())
    });
    let mut first = 1;
    let mut benches = criterion.benchmark_group("ack");
    benches.sample_size(10).measurement_time(Duration::from_secs(8));
    benches.throughput(Throughput::Elements(REQUESTS * BATCH));
    benches.bench_function("8x1000", |bencher| {
        bencher.iter_custom(|rounds| {
            let mut took = Duration::ZERO;
            for _ in 0..rounds {
                let bodies = (0..REQUESTS).map(|n| body(n, first));
                let batches: Vec<_> = bodies.map(|body| batch(&store, &body)).collect();
                first += BATCH;
                let began = Instant::now();
                runtime.block_on(push_all(&ingest, batches));
                took += began.elapsed();
            }
            took
        });
    });
    benches.finish();
}

fn body(source: u64, first: u64) -> String {
    let lines: Vec<String> = (first..first + BATCH).map(|seq| event(source, seq)).collect();
    lines.join("\n")
}

fn batch(store: &Store, body: &str) -> Decoded<Event> {
    let context = Context { now_us: Clock::System.now_us(), hash: store.hash() };
    decode::outcomes(body.as_bytes(), Format::NdJson, context).unwrap()
}

async fn push_all(ingest: &Ingest, batches: Vec<Decoded<Event>>) {
    let tasks: Vec<_> = batches
        .into_iter()
        .map(|batch| {
            let ingest = ingest.clone();
            tokio::spawn(async move { ingest.push(batch, ingest.admit(1).unwrap()).await.unwrap() })
        })
        .collect();
    for task in tasks {
        assert_eq!(task.await.unwrap().written, usize::try_from(BATCH).unwrap());
    }
}

fn decoding(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let store = runtime.block_on(store(&folder));
    let mut benches = criterion.benchmark_group("decode");
    benches.throughput(Throughput::Elements(BATCH));
    let body = body(1, 1);
    benches.bench_function("ndjson", |bencher| {
        bencher.iter(|| black_box(batch(&store, &body)));
    });
    benches.finish();
}

criterion_group!(benches, log, ack, decoding);
criterion_main!(benches);
