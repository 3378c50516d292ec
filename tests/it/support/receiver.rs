//! A webhook's receiver: a real HTTP server on a free port, as simple as one can be. The tests
//! of `alert` use it too.
#![allow(dead_code, reason = "each test uses what it needs")]

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What it does with the next request.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Answer {
    /// Answers with this status.
    Status(u16),
    /// Sends the sender elsewhere.
    Redirect,
    /// Answers 200 after this long.
    Late(Duration),
    /// Takes the request and ends the connection: the answer is lost.
    Hangup,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Got {
    head: String,
    body: String,
}

impl Got {
    pub(crate) fn header(&self, name: &str) -> String {
        let line = self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        line.unwrap_or_default()
    }

    pub(crate) fn delivery(&self) -> String {
        let id = self.header("x-dedupwatch-delivery");
        assert_eq!(id.len(), 36, "a UUID: {:?}", self.head);
        id
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub(crate) fn description(&self) -> String {
        self.json()["alerts"][0]["annotations"]["description"].as_str().unwrap().to_owned()
    }
}

#[derive(Default)]
struct Shared {
    got: Mutex<Vec<Got>>,
    answers: Mutex<VecDeque<Answer>>,
}

pub(crate) struct Receiver {
    port: u16,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared = Arc::new(Shared::default());
        let task = tokio::spawn(serve(listener, Arc::clone(&shared)));
        Self { port, shared, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook?secret-token", self.port)
    }

    /// The answer to the next request that has none yet; 200 where nothing is said.
    pub(crate) fn answers(&self, answer: Answer) {
        self.shared.answers.lock().unwrap().push_back(answer);
    }

    /// What arrived since the last call.
    pub(crate) fn take(&self) -> Vec<Got> {
        std::mem::take(&mut *self.shared.got.lock().unwrap())
    }

    /// Nobody listens any more.
    pub(crate) async fn stop(&mut self) {
        self.task.abort();
        let _ = (&mut self.task).await;
    }
}

async fn serve(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        answer(stream, &shared).await;
    }
}

/// One request a connection.
async fn answer(mut stream: TcpStream, shared: &Shared) {
    let mut bytes = Vec::new();
    let got = loop {
        if let Some(got) = parse(&bytes) {
            break got;
        }
        if stream.read_buf(&mut bytes).await.unwrap() == 0 {
            return;
        }
    };
    shared.got.lock().unwrap().push(got);
    let answer = shared.answers.lock().unwrap().pop_front();
    let (status, more) = match answer.unwrap_or(Answer::Status(200)) {
        Answer::Hangup => return,
        Answer::Late(wait) => {
            tokio::time::sleep(wait).await;
            (200, "")
        }
        Answer::Redirect => (302, "location: /elsewhere\r\n"),
        Answer::Status(status) => (status, ""),
    };
    let text =
        format!("HTTP/1.1 {status} X\r\n{more}content-length: 0\r\nconnection: close\r\n\r\n");
    // Whoever asked may be gone.
    let _ = stream.write_all(text.as_bytes()).await;
}

/// The request, when all of it is there.
fn parse(bytes: &[u8]) -> Option<Got> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (head, body) = text.split_once("\r\n\r\n")?;
    let got = Got { head: head.to_owned(), body: body.to_owned() };
    (body.len() >= got.header("content-length").parse().unwrap_or(0)).then_some(got)
}
