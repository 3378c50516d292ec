//! Pushes outcomes in order, one batch at a time, until the collector has them on disk.

use std::sync::Arc;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, RETRY_AFTER};
use tokio::sync::watch;

use super::answer::{Answer, Backoff, Meaning, Rejected, meaning};
use super::buffer::Buffer;
use super::{Mode, Settings};
use crate::outcome::Event;

/// The task that pushes.
pub(super) struct Pusher {
    settings: Arc<Settings>,
    http: reqwest::Client,
    buffer: Arc<Buffer>,
    mode: watch::Receiver<Mode>,
    backoff: Backoff,
    /// The last try failed, and that was logged.
    is_failing: bool,
}

impl Pusher {
    pub(super) fn new(
        settings: Arc<Settings>,
        http: reqwest::Client,
        buffer: Arc<Buffer>,
        mode: watch::Receiver<Mode>,
    ) -> Self {
        let backoff = Backoff::new(settings.retry_min, settings.retry_max);
        Self { settings, http, buffer, mode, backoff, is_failing: false }
    }

    /// Runs until the buffer is closed and empty, or the client is killed.
    pub(super) async fn run(mut self) {
        while self.gather().await {
            let batch = self.buffer.take(self.settings.batch_events);
            if !self.push(&batch).await {
                return;
            }
        }
    }

    /// Waits for outcomes, and a little for company. `false`: it is over.
    async fn gather(&mut self) -> bool {
        let full = async {
            let some = self.buffer.wait_for_events().await;
            if some {
                let full = self.buffer.wait_for_full_batch(self.settings.batch_events);
                // Either way there is something to send.
                let _ = tokio::time::timeout(self.settings.gather, full).await;
            }
            some
        };
        let some = tokio::select! {
            _ = self.mode.wait_for(|&mode| mode == Mode::Killed) => false,
            some = full => some,
        };
        some && *self.mode.borrow() != Mode::Killed
    }

    /// Sends a batch until all of it is answered; in parts where it is refused as a whole.
    /// `false`: killed before.
    async fn push(&mut self, batch: &[Event]) -> bool {
        let mut rest = batch;
        let mut size = rest.len();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(size.min(rest.len()));
            let answer = match self.send(now).await {
                Meaning::Answered(answer) => answer,
                Meaning::Split if now.len() > 1 => {
                    size = now.len().div_ceil(2);
                    continue;
                }
                Meaning::Split => refused_alone(),
                Meaning::Retry { after } => {
                    if self.pause(after).await {
                        continue;
                    }
                    return false;
                }
            };
            self.is_well();
            log_rejected(now, &answer);
            self.buffer.answered(now.len(), &answer);
            rest = later;
        }
        true
    }

    async fn send(&mut self, batch: &[Event]) -> Meaning {
        let body = match serde_json::to_vec(batch) {
            Ok(body) => body,
            Err(error) => {
                tracing::error!(%error, "outcomes could not be written as JSON");
                return Meaning::Split;
            }
        };
        let url = format!("{}/api/v1/outcomes", self.settings.target);
        let request = self.http.post(url).header(CONTENT_TYPE, "application/json").body(body);
        let (meaning, why) = match answered(request).await {
            Ok((meaning, status)) => (meaning, format!("status {status}")),
            Err(error) => (Meaning::Retry { after: None }, error.without_url().to_string()),
        };
        if matches!(meaning, Meaning::Retry { .. }) && !self.is_failing {
            tracing::warn!(why, "the collector takes no outcomes; trying until it does");
            self.is_failing = true;
        }
        meaning
    }

    fn is_well(&mut self) {
        self.backoff.reset();
        if std::mem::take(&mut self.is_failing) {
            tracing::info!("the collector takes outcomes again");
        }
    }

    /// Waits before the next try. `false`: killed meanwhile.
    async fn pause(&mut self, asked: Option<Duration>) -> bool {
        let pause = self.backoff.pause(asked);
        tokio::select! {
            _ = self.mode.wait_for(|&mode| mode == Mode::Killed) => false,
            () = tokio::time::sleep(pause) => true,
        }
    }
}

async fn answered(request: reqwest::RequestBuilder) -> Result<(Meaning, u16), reqwest::Error> {
    let response = request.send().await?;
    let status = response.status().as_u16();
    let retry_after = response.headers().get(RETRY_AFTER).cloned();
    let body = response.bytes().await?;
    let retry_after = retry_after.as_ref().and_then(|value| value.to_str().ok());
    Ok((meaning(status, retry_after, &body), status))
}

/// One outcome that the collector calls no request at all: to send it again would block all that
/// come after it.
fn refused_alone() -> Answer {
    let error = Rejected {
        index: 0,
        code: "refused".into(),
        message: "refused as a request, even alone".into(),
    };
    Answer { rejected: 1, errors: vec![error], ..Answer::default() }
}

/// Rejected outcomes are answered the same each time, so they are not sent again.
fn log_rejected(batch: &[Event], answer: &Answer) {
    for Rejected { index, code, message } in &answer.errors {
        let seq = batch.get(*index).and_then(|event| event.seq);
        tracing::error!(seq, code, message, "an outcome was refused");
    }
}
