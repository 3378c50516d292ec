//! What the judge costs for each record, with its database: reading the log, loading facts,
//! folding, writing.
//!
//! `judge` is a log of simulated services, judged from its start by a judge that knows nothing,
//! and a later part of it by a judge that must first let go of what it knew; by records
//! (elements) per second.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that can't run ends")]
#![allow(missing_docs, reason = "the macro's group has none")]

mod support;

use std::sync::Arc;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dedupwatch::audit::Settings;
use dedupwatch::clock::Clock;
use dedupwatch::judge::{Judge, PENDING_ROWS, Parts};
use dedupwatch::metrics::Metrics;
use dedupwatch::outcome::Record;
use dedupwatch::store::Store;
use dedupwatch::store::group::Group;
use dedupwatch::store::log::{Row, encode};
use dedupwatch::vitals::Vitals;
use support::Log;
use tokio::runtime::Runtime;

const RECORDS: usize = 100_000;
const GROUP: usize = 5_000;

/// A database with this log, and a judge of it.
struct World {
    _folder: tempfile::TempDir,
    store: Arc<Store>,
    vitals: Arc<Vitals>,
}

impl World {
    async fn new(records: &[Record]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite://{}/bench.db", folder.path().display());
        let store = Arc::new(Store::open(&url, "bench").await.unwrap());
        for records in records.chunks(GROUP) {
            store.write_group(&group(records)).await.unwrap();
        }
        let vitals = Arc::new(Vitals::default());
        vitals.set_appended(records.len() as i64);
        Self { _folder: folder, store, vitals }
    }

    async fn judge(&self) -> Judge {
        let (store, vitals) = (Arc::clone(&self.store), Arc::clone(&self.vitals));
        let metrics = Metrics::open(Arc::clone(&store), Arc::clone(&vitals)).await.unwrap();
        let settings = Settings { warmup_us: 0, ..Settings::default() };
        let metrics = Arc::new(metrics);
        let (clock, pending_rows) = (Clock::System, PENDING_ROWS);
        Judge::open(Parts { store, vitals, metrics, clock, settings, pending_rows }).await.unwrap()
    }

    /// Judges so many records, and says how long that took.
    async fn run(&self, judge: &mut Judge, records: usize) -> Duration {
        let began = Instant::now();
        let mut judged = 0;
        while judged < records {
            judged += judge.step().await.unwrap();
        }
        began.elapsed()
    }
}

fn group(records: &[Record]) -> Group {
    let row = |record: &Record| {
        let (kind, body) = encode(&record.body).unwrap();
        Row { n: record.position.n, kind, received_us: record.received_us, body }
    };
    let records: Vec<Row> = records.iter().map(row).collect();
    let last_n = records.last().map_or(0, |row| row.n);
    let id = format!("{last_n:012}");
    Group { id, last_n, answers: "[]".into(), records, ..Group::default() }
}

fn judging(criterion: &mut Criterion) {
    let runtime = Runtime::new().unwrap();
    let log = Log::new(1, &[]).write(RECORDS);
    let log = &log[..RECORDS];
    let mut benches = criterion.benchmark_group("judge");
    benches.sample_size(10).measurement_time(Duration::from_secs(10));
    benches.throughput(Throughput::Elements(RECORDS as u64 / 2));
    for warm in [false, true] {
        let name = if warm { "warm" } else { "fresh" };
        benches.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            bencher.iter_custom(|rounds| {
                let one = async || {
                    let world = World::new(log).await;
                    let mut judge = world.judge().await;
                    let mut took = world.run(&mut judge, RECORDS / 2).await;
                    if warm {
                        judge = world.judge().await;
                        took = world.run(&mut judge, RECORDS / 2).await;
                    }
                    took
                };
                (0..rounds).map(|_| runtime.block_on(one())).sum()
            });
        });
    }
    benches.finish();
}

criterion_group!(benches, judging);
criterion_main!(benches);
