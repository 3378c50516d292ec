//! The verbs: what a service or a reader does with a collector.

use std::sync::Once;
use std::time::Instant;

use serde_json::Value;

use super::{LOOK_EVERY, PATIENCE};

/// A collector, as seen from outside.
#[derive(Clone)]
pub struct Api {
    base: String,
    client: reqwest::Client,
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: String,
}

impl Reply {
    /// The body as JSON.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body)
            .unwrap_or_else(|why| panic!("not JSON ({why}): {} {}", self.status, self.body))
    }

    /// A header's text; empty if it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }
}

impl Api {
    pub fn new(base: String) -> Self {
        static PROVIDER: Once = Once::new();
        PROVIDER.call_once(|| {
            // Refused if a part of the program was first: then it is there.
            let _ = rustls::crypto::ring::default_provider().install_default();
        });
        Self { base, client: reqwest::Client::new() }
    }

    /// `http://IP:PORT`.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Pushes outcomes; `events` is one or an array.
    pub async fn push(&self, events: &Value) -> Reply {
        self.post("/api/v1/outcomes", events).await
    }

    /// Sends heartbeats; `heartbeats` is one or an array.
    pub async fn heartbeat(&self, heartbeats: &Value) -> Reply {
        self.post("/api/v1/heartbeats", heartbeats).await
    }

    /// Sends transitions; `transitions` is one or an array.
    pub async fn transition(&self, transitions: &Value) -> Reply {
        self.post("/api/v1/transitions", transitions).await
    }

    /// Posts JSON.
    pub async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_raw(path, &[("content-type", "application/json")], body.to_string().into()).await
    }

    /// Posts bytes with these headers.
    pub async fn post_raw(&self, path: &str, headers: &[(&str, &str)], body: Vec<u8>) -> Reply {
        self.try_post_raw(path, headers, body).await.unwrap()
    }

    /// As [`Api::post_raw`], where the collector may be gone.
    pub async fn try_post_raw(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: Vec<u8>,
    ) -> reqwest::Result<Reply> {
        let mut request = self.client.post(format!("{}{path}", self.base)).body(body);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        reply(request).await
    }

    /// As [`Api::push`], where the collector may be gone.
    pub async fn try_push(&self, events: &Value) -> reqwest::Result<Reply> {
        let json = [("content-type", "application/json")];
        self.try_post_raw("/api/v1/outcomes", &json, events.to_string().into()).await
    }

    /// Gets what is there.
    pub async fn get(&self, path: &str) -> Reply {
        reply(self.client.get(format!("{}{path}", self.base))).await.unwrap()
    }

    /// Gets JSON that must be there.
    pub async fn get_json(&self, path: &str) -> Value {
        let reply = self.get(path).await;
        assert_eq!(reply.status, 200, "GET {path}: {}", reply.body);
        reply.json()
    }

    /// Looks at `path` until its JSON is as wanted; fails after [`PATIENCE`] with what was there.
    pub async fn wait_for(&self, path: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + PATIENCE;
        loop {
            let reply = self.get(path).await;
            if reply.status == 200 && wanted(&reply.json()) {
                return reply.json();
            }
            assert!(Instant::now() < end, "not in time: GET {path}: {}", reply.body);
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }

    /// Looks at `path` until it has this text; fails after [`PATIENCE`] with what was there.
    pub async fn wait_for_text(&self, path: &str, wanted: &str) -> String {
        let end = Instant::now() + PATIENCE;
        loop {
            let body = self.get(path).await.body;
            if body.contains(wanted) {
                return body;
            }
            assert!(Instant::now() < end, "not in time: {wanted} on {path}: {body}");
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}

async fn reply(request: reqwest::RequestBuilder) -> reqwest::Result<Reply> {
    let response = request.send().await?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    Ok(Reply { status, headers, body: response.text().await? })
}
