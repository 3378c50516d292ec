//! What the audit costs for each event: the fold in memory, without a database.
//!
//! `fold` is the time of a log of simulated services, by records (elements) per second: of healthy
//! guards, and with every fault on. Before it, the allocations and bytes that one event takes are
//! printed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a bench that can't run ends")]
#![allow(clippy::cast_precision_loss, reason = "figures to be read")]
#![allow(missing_docs, reason = "the macro's group has none")]

mod support;

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use dedupwatch::audit::{Audit, Settings};
use dedupwatch::outcome::{KeyedHash, Record};
use support::Log;

const RECORDS: usize = 50_000;
const HEALTHY: (&str, &[&str]) = ("healthy", &[]);
const FAULTS: (&str, &[&str]) = (
    "faults",
    &["window-of-3@10s+10h", "two-guards@10s+10h/1", "restart-empty@1m+10m", "crash@2m+20s/1"],
);

fn audit() -> Audit {
    let settings = Settings { warmup_us: 0, ..Settings::default() };
    Audit::in_memory(settings, KeyedHash::new([7; 16]))
}

/// As the judge does it, without a store.
fn fold(audit: &mut Audit, records: &[Record]) {
    for record in records {
        audit.fold(record);
        loop {
            let ready = audit.ready();
            if ready.is_empty() {
                break;
            }
            audit.settle(&ready);
        }
    }
    black_box(audit.book.take_changes());
}

fn folding(criterion: &mut Criterion) {
    let mut benches = criterion.benchmark_group("fold");
    benches.sample_size(10);
    for (name, faults) in [HEALTHY, FAULTS] {
        let log = Log::new(1, faults).write(RECORDS);
        let (start, rest) = log.split_at(RECORDS / 2);
        let mut warm = audit();
        fold(&mut warm, start);
        let mut counted = warm.clone();
        let used = allocation_counter::measure(|| fold(&mut counted, rest));
        let each = |count: u64| count as f64 / rest.len() as f64;
        println!(
            "allocations/{name}: {:.2} an event, {:.0} bytes an event",
            each(used.count_total),
            each(used.bytes_total)
        );
        benches.throughput(Throughput::Elements(rest.len() as u64));
        benches.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let set_up = || warm.clone();
            let run = |mut audit| {
                fold(&mut audit, rest);
                audit
            };
            bencher.iter_batched(set_up, run, BatchSize::PerIteration);
        });
    }
    benches.finish();
}

criterion_group!(benches, folding);
criterion_main!(benches);
