//! `kill -9` under load: what was acknowledged is there afterwards, once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use dedupwatch::outcome::{Body, Position};
use dedupwatch::store::Store;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Api, LOOK_EVERY, PATIENCE, TestProcess, event, postgres};

const KILLS: u64 = 10;
const SENDERS: usize = 4;
const BATCH: u64 = 50;

fn batch(sender: usize, first: u64) -> Value {
    let one = |seq| {
        let mut event = event(seq);
        event["source"] = json!(format!("settle-{sender}"));
        event["player"] = json!(format!("p-{sender}-{seq}"));
        event
    };
    (first..first + BATCH).map(one).collect()
}

/// Sends batch after batch until the collector is gone; says up to which number it was
/// acknowledged. The first batch may have come before, as after a real crash.
fn send(api: Api, sender: usize, acknowledged: u64, batches: Arc<AtomicU64>) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut acknowledged = acknowledged;
        while let Ok(reply) = api.try_push(&batch(sender, acknowledged + 1)).await {
            if [429, 503].contains(&reply.status) {
                // The database is away, or the judge has yet to catch up: the same again.
                tokio::time::sleep(LOOK_EVERY).await;
                continue;
            }
            assert_eq!(reply.status, 200, "{}", reply.body);
            acknowledged += BATCH;
            batches.fetch_add(1, Ordering::SeqCst);
        }
        acknowledged
    })
}

/// Every event of the log, by source: how often each number is there.
async fn in_the_log(url: &str) -> BTreeMap<String, BTreeMap<u64, usize>> {
    let store = Store::open(url, "collector-1").await.unwrap();
    let mut seen: BTreeMap<String, BTreeMap<u64, usize>> = BTreeMap::new();
    let mut after = Position { collector: store.collector(), n: 0 };
    loop {
        let records = store.read_records(after, 10_000).await.unwrap();
        let Some(last) = records.last() else { break };
        assert_eq!(last.position.n, after.n + i64::try_from(records.len()).unwrap());
        after = last.position;
        for record in records {
            if let Body::Event(event) = record.body {
                let source = seen.entry(event.from.source.to_string()).or_default();
                *source.entry(event.seq.unwrap()).or_default() += 1;
            }
        }
    }
    store.close().await.unwrap();
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_once_after_ten_kills() {
    kill_again_and_again(TestProcess::start().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_holds_on_postgres() {
    let database = tokio::task::spawn_blocking(|| postgres::shared().database()).await.unwrap();
    kill_again_and_again(TestProcess::start_on(database).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_acknowledged_is_there_once_after_the_server_was_cut_off() {
    let server = tokio::task::spawn_blocking(|| postgres::Server::start(true)).await.unwrap();
    let mut process = TestProcess::start_on(server.database()).await;
    let batches = Arc::new(AtomicU64::new(0));
    let senders: Vec<_> =
        (0..SENDERS).map(|n| send((*process).clone(), n, 0, Arc::clone(&batches))).collect();
    for _ in 0..3 {
        more(&batches, 20).await;
        tokio::task::block_in_place(|| server.cut(|| {}));
    }
    more(&batches, 20).await;
    process.kill();
    let mut acknowledged = Vec::new();
    for task in senders {
        acknowledged.push(task.await.unwrap());
    }
    is_there_once(&process.database(), acknowledged).await;
}

/// Waits until so many more batches are acknowledged.
async fn more(batches: &AtomicU64, count: u64) {
    let (before, end) = (batches.load(Ordering::SeqCst), Instant::now() + PATIENCE);
    while batches.load(Ordering::SeqCst) < before + count {
        assert!(Instant::now() < end, "nothing is acknowledged");
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn kill_again_and_again(mut process: TestProcess) {
    let mut acknowledged = vec![0; SENDERS];
    for kill in 0..KILLS {
        let batches = Arc::new(AtomicU64::new(0));
        let senders: Vec<_> = (0..SENDERS)
            .map(|n| send((*process).clone(), n, acknowledged[n], Arc::clone(&batches)))
            .collect();
        // Early and late in a load that goes on; each time something was acknowledged before.
        let end = Instant::now() + PATIENCE;
        while batches.load(Ordering::SeqCst) <= 3 * kill {
            assert!(Instant::now() < end, "nothing is acknowledged");
            tokio::time::sleep(LOOK_EVERY).await;
        }
        process.kill();
        for (sender, task) in senders.into_iter().enumerate() {
            acknowledged[sender] = task.await.unwrap();
        }
        process = process.restart().await;
    }
    assert!(acknowledged.iter().all(|seq| *seq > 0), "{acknowledged:?}");
    process.kill();
    is_there_once(&process.database(), acknowledged).await;
}

async fn is_there_once(database: &str, acknowledged: Vec<u64>) {
    let seen = in_the_log(database).await;
    for (sender, acknowledged) in acknowledged.into_iter().enumerate() {
        let source = &seen[&format!("settle-{sender}")];
        let missing: BTreeSet<u64> =
            (1..=acknowledged).filter(|seq| !source.contains_key(seq)).collect();
        assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
        let twice: Vec<_> = source.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "counted twice: {twice:?}");
    }
}
