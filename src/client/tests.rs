//! The client against a real HTTP server that answers as it is told to.

use std::collections::VecDeque;
use std::sync::Mutex;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::outcome::{Game, Net};

/// What the server does with the next push of outcomes; when the script is over it takes all.
#[derive(Clone, Copy)]
enum Act {
    Take,
    Status(u16),
    RetryAfter(u64),
    /// Takes the events, but the answer is lost.
    TakeAndHangUp,
    /// Takes all but the second event.
    RejectSecond,
    /// 413 for more than this many events.
    AtMost(usize),
}

#[derive(Default)]
struct Heard {
    script: Mutex<VecDeque<Act>>,
    /// Numbers in the order in which they were taken.
    taken: Mutex<Vec<u64>>,
    pushes: Mutex<usize>,
    heartbeats: Mutex<Vec<Value>>,
}

impl Heard {
    fn taken(&self) -> Vec<u64> {
        self.taken.lock().unwrap().clone()
    }

    fn heartbeats(&self) -> Vec<Value> {
        self.heartbeats.lock().unwrap().clone()
    }

    fn take(&self, events: &[Value]) -> Value {
        let mut taken = self.taken.lock().unwrap();
        let before = taken.len();
        for event in events {
            let seq = event["seq"].as_u64().unwrap();
            if !taken.contains(&seq) {
                taken.push(seq);
            }
        }
        let written = taken.len() - before;
        json!({"written": written, "repeated": events.len() - written, "rejected": 0})
    }

    /// Status, further header, body; `None`: hang up.
    fn answer(&self, path: &str, body: &[u8]) -> Option<(u16, String, String)> {
        let body: Value = serde_json::from_slice(body).unwrap();
        if path.ends_with("/heartbeats") {
            self.heartbeats.lock().unwrap().push(body);
            return Some((200, String::new(), "{}".into()));
        }
        let events = body.as_array().unwrap();
        *self.pushes.lock().unwrap() += 1;
        let act = self.script.lock().unwrap().pop_front().unwrap_or(Act::Take);
        let plain = |status: u16, body: Value| Some((status, String::new(), body.to_string()));
        match act {
            Act::Take => plain(200, self.take(events)),
            Act::Status(status) => plain(status, json!({"error": {"code": "x"}})),
            Act::RetryAfter(s) => Some((429, format!("Retry-After: {s}\r\n"), "{}".into())),
            Act::TakeAndHangUp => {
                self.take(events);
                None
            }
            Act::RejectSecond => {
                let mut rest = events.clone();
                rest.remove(1);
                let mut answer = self.take(&rest);
                answer["rejected"] = json!(1);
                answer["errors"] = json!([{"index": 1, "code": "bad", "message": "no"}]);
                plain(207, answer)
            }
            Act::AtMost(max) if events.len() > max => {
                self.script.lock().unwrap().push_front(act);
                plain(413, json!({}))
            }
            Act::AtMost(_) => {
                self.script.lock().unwrap().push_front(act);
                plain(200, self.take(events))
            }
        }
    }
}

struct Server {
    heard: Arc<Heard>,
    target: String,
}

impl Server {
    async fn start(script: &[Act]) -> Self {
        Self::listen("127.0.0.1:0", script).await
    }

    async fn listen(address: &str, script: &[Act]) -> Self {
        let listener = TcpListener::bind(address).await.unwrap();
        let target = format!("http://{}", listener.local_addr().unwrap());
        let heard = Arc::new(Heard::default());
        heard.script.lock().unwrap().extend(script);
        let shared = Arc::clone(&heard);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Self { heard, target }
    }

    fn settings(&self) -> Settings {
        settings(&self.target)
    }
}

async fn serve(mut stream: TcpStream, heard: Arc<Heard>) {
    while let Some((path, body)) = read_request(&mut stream).await {
        let Some((status, headers, body)) = heard.answer(&path, &body) else { return };
        let length = body.len();
        let answer =
            format!("HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\n\r\n{body}");
        if stream.write_all(answer.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.ok()?;
    Some((head.split(' ').nth(1).unwrap().to_owned(), body))
}

fn settings(target: &str) -> Settings {
    let id = |text| Id::parse(text).unwrap();
    let from = SourceName { service: id("settle"), env: id("prod"), source: id("a") };
    Settings {
        batch_events: 10,
        gather: Duration::from_millis(1),
        retry_min: Duration::from_millis(1),
        retry_max: Duration::from_millis(5),
        heartbeat_every: Duration::from_millis(20),
        ..Settings::new(target, from, Clock::manual(1_000_000))
    }
}

fn tell(client: &Client, count: u32) {
    for round in 0..count {
        let round = Id::parse(&round.to_string()).unwrap();
        let game = Game { session: None, room: Id::parse("r").unwrap(), round };
        let signature = Signature::Settlement { game, net: Net(1), last: false };
        let player = Id::parse("p").unwrap();
        client.record(client.draft(player, signature, Outcome::Processed));
    }
}

async fn tell_and_close(settings: Settings, count: u32) -> Summary {
    let client = Client::start(settings).unwrap();
    tell(&client, count);
    client.close(Duration::from_secs(20)).await
}

fn all(count: u64) -> Vec<u64> {
    (1..=count).collect()
}

#[tokio::test]
async fn tells_all_in_order_and_says_goodbye() {
    let server = Server::start(&[]).await;
    let summary = tell_and_close(server.settings(), 95).await;
    assert_eq!(server.heard.taken(), all(95));
    assert_eq!((summary.given_out, summary.written, summary.lost), (95, 95, 0));
    assert!(summary.said_goodbye);
    let heartbeats = server.heard.heartbeats();
    let goodbye = heartbeats.last().unwrap();
    assert_eq!((&goodbye["state"], &goodbye["last_seq"]), (&json!("closing"), &json!(95)));
    assert_eq!(heartbeats.iter().filter(|beat| beat["state"] == "closing").count(), 1);
}

#[tokio::test]
async fn refusals_for_now_and_lost_answers_neither_lose_nor_reorder() {
    let script = [
        Act::Status(429),
        Act::Take,
        Act::Status(503),
        Act::Status(500),
        Act::TakeAndHangUp,
        Act::Status(502),
        Act::TakeAndHangUp,
    ];
    let server = Server::start(&script).await;
    let summary = tell_and_close(server.settings(), 95).await;
    assert_eq!(server.heard.taken(), all(95));
    assert_eq!(summary.written + summary.repeated, 95);
    assert!(summary.repeated > 0, "a batch whose answer was lost is sent again");
}

#[tokio::test]
async fn what_was_acknowledged_is_not_sent_again() {
    let server = Server::start(&[]).await;
    let summary = tell_and_close(server.settings(), 100).await;
    assert_eq!(summary.repeated, 0);
    assert!(*server.heard.pushes.lock().unwrap() >= 10);
}

#[tokio::test]
async fn retry_after_is_honoured() {
    let server = Server::start(&[Act::RetryAfter(1)]).await;
    let start = tokio::time::Instant::now();
    let summary = tell_and_close(server.settings(), 5).await;
    assert_eq!(summary.written, 5);
    assert!(start.elapsed() >= Duration::from_secs(1));
}

#[tokio::test]
async fn rejected_outcomes_are_counted_and_not_sent_again() {
    let server = Server::start(&[Act::RejectSecond]).await;
    let client = Client::start(server.settings()).unwrap();
    tell(&client, 10);
    let summary = client.close(Duration::from_secs(20)).await;
    assert_eq!(summary.written + summary.rejected, 10);
    assert_eq!(summary.rejected, 1);
    assert_eq!(server.heard.taken().len(), 9);
}

#[tokio::test]
async fn a_batch_that_is_too_large_goes_in_parts() {
    let server = Server::start(&[Act::AtMost(3)]).await;
    let summary = tell_and_close(server.settings(), 25).await;
    assert_eq!(summary.written, 25);
    assert_eq!(server.heard.taken(), all(25));
}

#[tokio::test]
async fn an_outcome_that_is_no_request_at_all_does_not_block_the_others() {
    let server = Server::start(&[Act::Status(400)]).await;
    let client = Client::start(Settings { batch_events: 1, ..server.settings() }).unwrap();
    tell(&client, 3);
    let summary = client.close(Duration::from_secs(20)).await;
    assert_eq!((summary.rejected, summary.written), (1, 2));
    assert_eq!(server.heard.taken(), [2, 3]);
}

#[tokio::test]
async fn waits_for_a_collector_that_is_not_there_yet() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::start(settings(&format!("http://{free}"))).unwrap();
    tell(&client, 30);
    let server = Server::listen(&free.to_string(), &[]).await;
    let summary = client.close(Duration::from_secs(20)).await;
    assert_eq!(summary.written, 30);
    assert_eq!(server.heard.taken(), all(30));
}

#[tokio::test]
async fn a_full_buffer_gives_up_the_newest_and_leaves_a_hole() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = format!("http://{free}");
    let client = Client::start(Settings { buffer_events: 20, ..settings(&target) }).unwrap();
    tell(&client, 25);
    assert_eq!((client.summary().lost, client.summary().waiting), (5, 20));
    let server = Server::listen(&free.to_string(), &[]).await;
    client.wait_for_room(0).await;
    tell(&client, 1);
    assert_eq!(client.give_up(), 27);
    let summary = client.close(Duration::from_secs(20)).await;
    let told: Vec<u64> = (1..=20).chain([26]).collect();
    assert_eq!(server.heard.taken(), told);
    assert_eq!((summary.given_out, summary.written, summary.lost), (27, 21, 6));
    assert_eq!(summary.told_seq, Some(27), "the heartbeat shows what is missing");
}

#[tokio::test]
async fn a_killed_client_loses_its_tail_and_says_no_goodbye() {
    let server = Server::start(&[Act::Status(503); 1000]).await;
    let client = Client::start(server.settings()).unwrap();
    tell(&client, 30);
    let summary = client.kill().await;
    assert_eq!((summary.given_out, summary.written, summary.waiting), (30, 0, 30));
    assert!(!summary.said_goodbye);
    assert_eq!(server.heard.taken(), [] as [u64; 0]);
    assert!(server.heard.heartbeats().iter().all(|beat| beat["state"] == "running"));
}

#[tokio::test]
async fn an_idle_source_beats_from_its_start() {
    let server = Server::start(&[]).await;
    let client = Client::start(server.settings()).unwrap();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(20);
    while server.heard.heartbeats().len() < 3 {
        assert!(tokio::time::Instant::now() < deadline, "three heartbeats");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let first = server.heard.heartbeats().remove(0);
    assert_eq!((&first["last_seq"], &first["state"]), (&json!(0), &json!("running")));
    assert_eq!(first["at"], "1970-01-01T00:00:01.000000Z");
    assert_eq!(client.summary().told_seq, Some(0));
}

#[tokio::test]
async fn a_goodbye_without_a_collector_ends_in_time() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let client = Client::start(settings(&format!("http://{free}"))).unwrap();
    tell(&client, 3);
    let summary = client.close(Duration::from_millis(50)).await;
    assert_eq!((summary.waiting, summary.said_goodbye), (3, false));
}
