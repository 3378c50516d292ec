//! Transitions go in as outcomes do, and have nothing to do with their numbers.

use super::*;
use crate::outcome::DeliveryState;
use crate::store::transitions::TransitionCount;

impl World {
    /// Sends transitions and counts: written, repeated, rejected.
    async fn moved(&self, transitions: &Value) -> (usize, usize, usize) {
        let answer = self.send(transitions).await;
        (answer.written, answer.repeated, answer.rejected)
    }

    async fn send(&self, transitions: &Value) -> Answer {
        let body = transitions.to_string();
        let decoded = decode::transitions(body.as_bytes(), Format::Json, self.context()).unwrap();
        let admission = self.ingest.admit(body.len()).unwrap();
        self.ingest.transitions(decoded, admission).await.unwrap()
    }

    async fn metric(&self, from: &str, to: &str) -> Option<String> {
        let text = self.metrics.render().await.unwrap();
        let labels = format!(r#"service="settle",env="prod",from="{from}",to="{to}""#);
        let start = format!("dedup_transitions_total{{{labels}}} ");
        text.lines().find_map(|line| line.strip_prefix(&start)).map(str::to_owned)
    }
}

fn transition(seq: u64) -> Value {
    json!({
        "service": "settle", "source": "a", "boot": "1", "seq": seq, "trace_id": "t-1",
        "key": "k-1", "from": "received", "to": "checking", "at": format_us(NOON_US),
    })
}

fn unnumbered(event_id: &str) -> Value {
    let mut transition = with(transition(0), "event_id", json!(event_id));
    transition["boot"].take();
    transition["seq"].take();
    transition
}

#[tokio::test]
async fn a_repeat_is_told_as_one_also_after_a_restart() {
    let world = World::new().await;
    let both = json!([transition(1), transition(2), unnumbered("e"), transition(1)]);
    assert_eq!(world.moved(&both).await, (3, 1, 0));
    assert_eq!(world.moved(&both).await, (0, 4, 0));
    let later = with(transition(1), "at", json!(format_us(NOON_US + 1)));
    assert_eq!(world.moved(&later).await, (0, 1, 0));
    let world = world.reopen().await;
    assert_eq!(world.moved(&both).await, (0, 4, 0));
    assert_eq!(world.log().await, ["transition 1", "transition 2", "transition -"]);
    assert_eq!(world.metric("received", "checking").await.as_deref(), Some("3"));
    assert_eq!(world.metric("accepted", "checking").await.as_deref(), Some("0"));
}

#[tokio::test]
async fn numbers_and_ids_are_apart_from_the_outcomes() {
    let world = World::new().await;
    let mut by_id = with(event(9), "event_id", json!("e"));
    by_id["seq"].take();
    by_id["boot"].take();
    assert_eq!(world.counts(&json!([event(1), by_id])).await, (2, 0, 0));
    assert_eq!(world.moved(&json!([transition(1), unnumbered("e")])).await, (2, 0, 0));
    // A hole among transitions is waited for by nobody, and a heartbeat does not name it.
    assert_eq!(world.moved(&transition(7)).await, (1, 0, 0));
    world.beat(&heartbeat(1, "running", NOON_US)).await;
    world.wait(2 * GRACE_US - 1).await;
    let log = world.log().await;
    assert!(!log.iter().any(|entry| entry.starts_with("given_up")), "{log:?}");
    // Another sort of boots is none of the outcomes' business.
    let started = with(transition(1), "boot", json!("2026-11-30T08:00:00Z"));
    assert_eq!(world.moved(&started).await, (1, 0, 0));
    assert_eq!(world.counts(&event(2)).await, (1, 0, 0));
}

#[tokio::test]
async fn a_source_is_not_heard_by_its_transitions() {
    let world = World::new().await;
    world.push(&event(1)).await;
    world.beat(&heartbeat(1, "running", NOON_US)).await;
    world.clock.advance(59 * limits::SECOND_US);
    world.send(&transition(1)).await;
    world.send(&with(transition(2), "to", json!("nowhere"))).await;
    world.wait(limits::SECOND_US).await;
    assert_eq!(world.log().await.last().map(String::as_str), Some("silent 1"));
    let sources = world.store.load_sources().await.unwrap();
    assert_eq!(sources[0].last_push_us, NOON_US);
    assert_eq!(world.send(&with(transition(1), "source", json!("b"))).await.written, 1);
    assert_eq!(world.store.load_sources().await.unwrap().len(), 1);
}

#[tokio::test]
async fn other_content_is_a_conflict_once() {
    let world = World::new().await;
    world.moved(&json!([transition(1), unnumbered("e")])).await;
    let others = json!([
        with(transition(1), "trace_id", json!("t-2")),
        with(transition(1), "trace_id", json!("t-2")),
        with(transition(1), "to", json!("refused")),
        with(unnumbered("e"), "key", json!("k-2")),
    ]);
    assert_eq!(world.moved(&others).await, (0, 4, 0));
    let world = world.reopen().await;
    assert_eq!(world.moved(&others).await, (0, 4, 0));
    let conflicts = ["transition_conflict 1", "transition_conflict 1", "transition_conflict -"];
    assert_eq!(world.log().await[2..], conflicts);
}

#[tokio::test]
async fn a_refused_one_is_a_record_once_and_no_number_of_an_outcome() {
    let world = World::new().await;
    world.push(&event(1)).await;
    let bad = with(transition(2), "key", json!(""));
    let at = with(bad.clone(), "at", json!(format_us(NOON_US - 1)));
    let nobody = with(bad.clone(), "source", Value::Null);
    let batch = json!([bad, at, nobody, transition(3)]);
    let answer = world.send(&batch).await;
    assert_eq!((answer.written, answer.rejected), (1, 3));
    let codes: Vec<_> = answer.errors.iter().map(|e| (e.index, &*e.code, &*e.message)).collect();
    let empty = "key: is empty; send 1 to 256 bytes";
    let missing = "source: is missing; send it";
    assert_eq!(codes, [(0, "empty", empty), (1, "empty", empty), (2, "missing", missing)]);
    world.send(&batch).await;
    let refused = ["refused - empty", "refused - missing"];
    assert_eq!(world.log().await[1..], [refused[0], refused[1], "transition 3"]);
    // The number may still come, mended; and so may the outcome of that number.
    assert_eq!(world.moved(&transition(2)).await, (1, 0, 0));
    assert_eq!(world.store.load_boots().await.unwrap()[0].refused, "[]");
}

#[tokio::test]
async fn moves_are_counted_by_minute_of_occurrence() {
    let world = World::new().await;
    let illegal = with(with(transition(3), "from", json!("accepted")), "to", json!("checking"));
    let earlier = with(transition(4), "at", json!(format_us(NOON_US - 1)));
    world.send(&json!([transition(1), transition(2), illegal, earlier, transition(1)])).await;
    let minute = NOON_US / limits::MINUTE_US;
    let counted = world.store.transitions_by_minute("settle", minute - 1, minute).await.unwrap();
    let short = |row: &TransitionCount| (row.minute - minute, row.left, row.entered, row.count);
    let (received, checking) = (DeliveryState::Received, DeliveryState::Checking);
    let expected = [
        (0, DeliveryState::Accepted, checking, 1),
        (0, received, checking, 2),
        (-1, received, checking, 1),
    ];
    assert_eq!(counted.iter().map(short).collect::<Vec<_>>(), expected);
    assert_eq!(world.metric("accepted", "checking").await.as_deref(), Some("1"));
}

#[tokio::test]
async fn a_group_that_was_not_written_leaves_nothing_behind() {
    let world = World::new().await;
    world.send(&transition(1)).await;
    world.store.trouble.set(limits::GROUP_TRIES_MAX, 0);
    let batch = json!([transition(2), transition(3)]);
    assert_eq!(world.moved(&batch).await, (2, 0, 0), "tried again alone");
    world.store.trouble.set(0, 1);
    assert_eq!(world.moved(&transition(4)).await, (1, 0, 0), "found on disk");
    assert_eq!(world.moved(&batch).await, (0, 2, 0));
    assert_eq!(world.metric("received", "checking").await.as_deref(), Some("4"));
}

#[tokio::test]
async fn runs_are_forgotten_when_nothing_of_them_can_come_again() {
    let world = World::new().await;
    world.send(&json!([transition(1), unnumbered("e")])).await;
    world.wait(limits::IDENTITY_AGE_US_MAX).await;
    assert_eq!(world.store.load_transition_runs().await.unwrap().len(), 2);
    world.wait(1).await;
    world.wait(1).await;
    assert_eq!(world.store.load_transition_runs().await.unwrap(), []);
    assert_eq!(world.store.hash_runs(-1, 1).await.unwrap(), []);
    let world = world.reopen().await;
    let again = with(transition(1), "at", json!(format_us(world.clock.now_us())));
    assert_eq!(world.moved(&again).await, (1, 0, 0));
}
