//! `backup` while a collector takes outcomes, and `restore`.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use sqlx::{ConnectOptions as _, Connection as _};

use crate::support::{Api, LOOK_EVERY, PATIENCE, TestProcess, events, program};

const BATCH: u64 = 50;

async fn run(arguments: &[&str]) -> (Option<i32>, String) {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    let output: Output = tokio::task::spawn_blocking(move || {
        program().args(&arguments).env("DEDUPWATCH_LOG_FILTER", "warn").output().unwrap()
    })
    .await
    .unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(text).unwrap())
}

async fn count(file: &Path, statement: &'static str) -> u64 {
    let options = sqlx::sqlite::SqliteConnectOptions::new().filename(file);
    let mut connection = options.connect().await.unwrap();
    let count: i64 = sqlx::query_scalar(statement).fetch_one(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    count.try_into().unwrap()
}

/// Outcomes that were sent, and those of them that were answered.
#[derive(Default)]
struct Load {
    sent: AtomicU64,
    answered: AtomicU64,
    over: AtomicBool,
}

impl Load {
    async fn send(self: Arc<Self>, api: Api) {
        while !self.over.load(Ordering::SeqCst) {
            let first = self.sent.fetch_add(BATCH, Ordering::SeqCst) + 1;
            let reply = api.push(&events(first, first + BATCH - 1)).await;
            assert_eq!(reply.status, 200, "{}", reply.body);
            self.answered.fetch_add(BATCH, Ordering::SeqCst);
        }
    }

    async fn wait_for(&self, answered: u64) {
        let end = Instant::now() + PATIENCE;
        while self.answered.load(Ordering::SeqCst) < answered {
            assert!(Instant::now() < end, "nothing is answered");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_copy_under_load_is_a_moment_of_the_database() {
    let process = TestProcess::start().await;
    let database = process.database();
    let folder = tempfile::tempdir().unwrap();
    let (copy, other) = (folder.path().join("copy.db"), folder.path().join("new/other.db"));
    let (copy_path, url) = (copy.to_str().unwrap(), format!("sqlite://{}", other.display()));

    let load = Arc::new(Load::default());
    let sender = tokio::spawn(Arc::clone(&load).send((*process).clone()));
    load.wait_for(20 * BATCH).await;
    let before = load.answered.load(Ordering::SeqCst);
    let (code, told) = run(&["backup", copy_path, "--database", &database]).await;
    assert_eq!(code, Some(0), "{told}");
    let after = load.sent.load(Ordering::SeqCst);
    load.wait_for(after + BATCH).await;
    load.over.store(true, Ordering::SeqCst);
    sender.await.unwrap();

    assert!(told.starts_with(copy_path) && told.contains(" records"), "{told}");
    let (code, told) = run(&["backup", copy_path, "--database", &database]).await;
    assert_eq!(code, Some(1));
    assert!(told.contains("is there already, and nothing is overwritten"), "{told}");
    let (code, told) = run(&["restore", copy_path, "--force", "--database", &database]).await;
    assert_eq!(code, Some(1));
    assert!(told.contains("another dedupwatch uses it; stop that one first"), "{told}");

    let (code, told) = run(&["restore", copy_path, "--database", &url]).await;
    assert_eq!(code, Some(0), "{told}");
    let (code, told) = run(&["verify", "--database", &url]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.ends_with("records folded: no difference\n"), "{told}");
    let outcomes = count(&other, "SELECT count(*) FROM records WHERE kind = 1").await;
    assert!((before..=after).contains(&outcomes), "{before} {outcomes} {after}");
    assert_eq!(count(&other, "SELECT sum(count) FROM rollups").await, outcomes);

    let (code, told) = run(&["restore", copy_path, "--database", &url]).await;
    assert_eq!(code, Some(1));
    assert!(told.contains("--force"), "{told}");
    let (code, told) = run(&["restore", copy_path, "--force", "--database", &url]).await;
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("what was there is kept: "), "{told}");
}
