//! A push in vain: the same answer, and nothing of it stays.

use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;

use super::*;

impl World {
    async fn check(&self, events: &Value) -> Answer {
        let body = events.to_string();
        let decoded = decode::outcomes(body.as_bytes(), Format::Json, self.context()).unwrap();
        let admission = self.ingest.admit(body.len()).unwrap();
        self.ingest.check(decoded, admission).await.unwrap()
    }

    /// All that is stored, and all that is counted.
    async fn all(&self) -> (Vec<String>, String) {
        let text = self.metrics.render().await.unwrap();
        let counters = text.lines().filter(|line| line.starts_with("dedup"));
        (fixtures::dump(&self.store).await, counters.collect::<Vec<_>>().join("\n"))
    }
}

/// New ones, repeats, holes, conflicts, other boots, sources and ledgers, ids for numbers, and
/// what is not taken for several reasons.
fn anything(random: &mut ChaCha12Rng) -> Value {
    let mut event = event(random.random_range(1..30));
    match random.random_range(0..12) {
        0 => event["player"] = json!("other"),
        1 => event["player"] = json!(""),
        2 => event["boot"] = json!("2"),
        3 => event["boot"] = json!("2026-11-30T12:00:00Z"),
        4 => event["source"] = json!(format!("b-{}", random.random_range(0..5))),
        5 => event["ledger"] = json!(format!("l-{}", random.random_range(0..5))),
        6 => event["occurred_at"] = json!(format_us(NOON_US - 15 * limits::DAY_US)),
        7 => event["from_the_future"] = json!(1),
        8 => event = json!(random.random_range(0..3)),
        9 | 10 => {
            event["event_id"] = json!(random.random_range(0..20).to_string());
            event.as_object_mut().unwrap().remove("seq");
        }
        _ => {}
    }
    event
}

#[tokio::test]
async fn a_check_answers_what_a_push_does_and_leaves_nothing() {
    for seed in 0..4 {
        let (world, other) = (World::new().await, World::new().await);
        let mut random = ChaCha12Rng::seed_from_u64(seed);
        for _ in 0..30 {
            let batch: Value =
                (0..random.random_range(1..20)).map(|_| anything(&mut random)).collect();
            for _ in 0..2 {
                let before = world.all().await;
                let checked = world.check(&batch).await;
                assert_eq!(world.check(&batch).await, checked);
                assert_eq!(world.all().await, before);
                assert_eq!(world.push(&batch).await, checked, "{batch}");
                assert_eq!(other.push(&batch).await, checked, "{batch}");
            }
            let us = random.random_range(0..10) * limits::SECOND_US;
            world.wait(us).await;
            other.wait(us).await;
        }
        // What the clock gives up comes in no order among sources.
        let (mut log, mut wanted) = (world.log().await, other.log().await);
        log.sort_unstable();
        wanted.sort_unstable();
        assert_eq!(log, wanted);
    }
}

/// A source that is only checked is not heard by it: it falls silent at its time.
#[tokio::test]
async fn a_check_is_no_sign_of_life() {
    let world = World::new().await;
    world.push(&event(1)).await;
    world.beat(&heartbeat(1, "running", NOON_US)).await;
    for _ in 0..5 {
        world.wait(limits::SILENCE_US / 5).await;
        world.check(&events([2, 4])).await;
    }
    world.wait(0).await;
    assert_eq!(world.log().await, ["event 1", "heartbeat 1", "silent 1"]);
}

/// What was sent before counts, though it is not answered yet.
#[tokio::test]
async fn a_check_stands_in_the_queue() {
    let world = World::new().await;
    let (batch, more) = (events(1..=500), events(1..=501));
    let (pushed, checked) = tokio::join!(world.push(&batch), world.check(&more));
    assert_eq!((pushed.written, checked.written, checked.repeated), (500, 1, 500));
    assert_eq!(world.bodies().await.len(), 500);
}
