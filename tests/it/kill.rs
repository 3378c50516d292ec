//! `kill -9` under load: what was acknowledged is there afterwards, once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dedupwatch::outcome::{Body, Position};
use dedupwatch::store::Store;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::support::{Api, TestProcess, event};

const KILLS: usize = 10;
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
fn send(api: Api, sender: usize, acknowledged: u64, stop: Arc<AtomicBool>) -> JoinHandle<u64> {
    tokio::spawn(async move {
        let mut acknowledged = acknowledged;
        while !stop.load(Ordering::SeqCst) {
            let Ok(reply) = api.try_push(&batch(sender, acknowledged + 1)).await else { break };
            if reply.status != 200 {
                break;
            }
            acknowledged += BATCH;
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
    let mut process = TestProcess::start().await;
    let mut acknowledged = vec![0; SENDERS];
    for kill in 0..KILLS {
        let stop = Arc::new(AtomicBool::new(false));
        let senders: Vec<_> = (0..SENDERS)
            .map(|n| send((*process).clone(), n, acknowledged[n], Arc::clone(&stop)))
            .collect();
        // Not a wait for anything: the moment of the kill is meant to be any.
        tokio::time::sleep(Duration::from_millis(60 + 23 * kill as u64)).await;
        process.kill();
        stop.store(true, Ordering::SeqCst);
        for (sender, task) in senders.into_iter().enumerate() {
            acknowledged[sender] = task.await.unwrap();
        }
        process = process.restart().await;
    }
    assert!(acknowledged.iter().all(|seq| *seq > 0), "{acknowledged:?}");
    process.kill();
    let seen = in_the_log(&process.database()).await;
    for (sender, acknowledged) in acknowledged.into_iter().enumerate() {
        let source = &seen[&format!("settle-{sender}")];
        let missing: BTreeSet<u64> =
            (1..=acknowledged).filter(|seq| !source.contains_key(seq)).collect();
        assert!(missing.is_empty(), "acknowledged and lost: {missing:?}");
        let twice: Vec<_> = source.iter().filter(|(_, count)| **count != 1).collect();
        assert!(twice.is_empty(), "counted twice: {twice:?}");
    }
}
