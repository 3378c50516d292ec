//! What a settlement service adds to tell its outcomes: numbers, batches, retries, heartbeats and
//! a goodbye. It needs nothing of the collector but its address.
//!
//! What a sender promises (`wire.md`), and where it is kept here:
//!
//! - Stamp and number are taken together, under one lock: [`Client::record`]. Call it under the
//!   lock that decides, and the numbers have the order of the decisions.
//! - Outcomes are pushed in that order, one batch at a time, until the collector has them on disk
//!   (`push.rs`). What was acknowledged is never sent again.
//! - A full buffer never stops a service from settling. The *newest* outcome is given up then: its
//!   number is taken all the same, so the hole is seen, and what was told stays without a gap.
//! - Every 5 s, and at the end, the source says the last number that it gave out
//!   (`heartbeat.rs`): a lost tail shows.

mod answer;
mod buffer;
mod heartbeat;
mod http;
mod push;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use self::buffer::Recorded;
use self::buffer::{Buffer, Counts};
use self::heartbeat::Heart;
pub use self::http::http;
use self::push::Pusher;
use crate::clock::Clock;
use crate::outcome::{Boot, Event, Id, Outcome, Signature, SourceName, SourceState};

/// How a source tells its outcomes.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The collector, as `http://HOST:PORT`.
    pub target: String,
    /// Who speaks.
    pub from: SourceName,
    /// Which run of it.
    pub boot: Boot,
    /// The books that it writes to; empty: the service's own.
    pub ledgers: Vec<Id>,
    /// Outcomes kept until they are acknowledged. At 50 a second the default is half an hour of
    /// an unreachable collector, in about 60 MB.
    pub buffer_events: usize,
    /// Outcomes of one request, at most.
    pub batch_events: usize,
    /// How long the first outcome of a batch waits for company: at most 10 requests a second.
    pub gather: Duration,
    /// Between two heartbeats (wire.md: 5 s).
    pub heartbeat_every: Duration,
    /// How long one request may take.
    pub request_timeout: Duration,
    /// First pause after a request that failed; doubles up to `retry_max`.
    pub retry_min: Duration,
    /// Longest pause between two tries, unless the collector asks for a longer one.
    pub retry_max: Duration,
    /// Where stamps come from.
    pub clock: Clock,
}

impl Settings {
    /// The defaults, for a run that starts now.
    pub fn new(target: &str, from: SourceName, clock: Clock) -> Self {
        Self {
            target: target.trim_end_matches('/').to_owned(),
            from,
            boot: Boot::Started { at_us: clock.now_us() },
            ledgers: Vec::new(),
            buffer_events: 100_000,
            batch_events: 1_000,
            gather: Duration::from_millis(100),
            heartbeat_every: Duration::from_secs(5),
            request_timeout: Duration::from_secs(30),
            retry_min: Duration::from_millis(100),
            retry_max: Duration::from_secs(10),
            clock,
        }
    }
}

/// How far a source has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Numbers given out.
    pub given_out: u64,
    /// Outcomes that the collector wrote.
    pub written: u64,
    /// Outcomes that it had already, from a try whose answer was lost.
    pub repeated: u64,
    /// Outcomes that it refused; each is in the log of this process.
    pub rejected: u64,
    /// Outcomes given up here: numbers that will never be told.
    pub lost: u64,
    /// Outcomes that wait for their acknowledgement.
    pub waiting: u64,
    /// The highest last number that a heartbeat has told.
    pub told_seq: Option<u64>,
    /// Whether the collector took the goodbye.
    pub said_goodbye: bool,
}

/// What the tasks of a client are to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Go on.
    Running,
    /// Send what is there, then end.
    Flushing,
    /// End after the request that is on its way.
    Killed,
}

/// One source that tells its outcomes. Dropped without [`Client::close`], it ends as by
/// [`Client::kill`].
pub struct Client {
    buffer: Arc<Buffer>,
    heart: Heart,
    mode: watch::Sender<Mode>,
    pusher: JoinHandle<()>,
    beats: JoinHandle<()>,
}

impl Client {
    /// Starts to push and to say that it is there, on the current tokio runtime.
    pub fn start(settings: Settings) -> Result<Self, reqwest::Error> {
        let http = http(settings.request_timeout)?;
        let settings = Arc::new(settings);
        let (mode, follow) = watch::channel(Mode::Running);
        let buffer = Arc::new(Buffer::new(settings.buffer_events));
        let heart = Heart::new(Arc::clone(&settings), http.clone(), Arc::clone(&buffer));
        let pusher = Pusher::new(settings, http, Arc::clone(&buffer), follow.clone());
        let pusher = tokio::spawn(pusher.run());
        let beats = tokio::spawn(heart.clone().run(follow));
        Ok(Self { buffer, heart, mode, pusher, beats })
    }

    /// An outcome of this source, to be filled in and recorded.
    pub fn draft(&self, player: Id, signature: Signature, outcome: Outcome) -> Event {
        Event::new(self.heart.settings().from.clone(), player, signature, outcome)
    }

    /// Numbers and stamps an outcome, and keeps it until it is told. Never waits for the network.
    pub fn record(&self, mut event: Event) -> Recorded {
        let settings = self.heart.settings();
        self.buffer.record(|seq| {
            event.from = settings.from.clone();
            event.boot = Some(settings.boot);
            event.seq = Some(seq);
            event.occurred_us = settings.clock.now_us();
            event
        })
    }

    /// Takes a number for an outcome that can't be told, so that its absence shows.
    pub fn give_up(&self) -> u64 {
        self.buffer.give_up()
    }

    /// How far it has come.
    pub fn summary(&self) -> Summary {
        summary(self.buffer.counts(), &self.heart)
    }

    /// Waits until no more than this many outcomes wait for their acknowledgement.
    pub async fn wait_for_room(&self, waiting_max: usize) {
        self.buffer.wait_for_room(waiting_max).await;
    }

    /// The goodbye: takes no more, sends what is there, says that it ends; all within this time.
    /// What could not be sent by then is lost, and the goodbye shows how much.
    pub async fn close(mut self, within: Duration) -> Summary {
        let end = tokio::time::Instant::now() + within;
        self.buffer.close();
        self.mode.send_replace(Mode::Flushing);
        let flushed = tokio::time::timeout_at(end, &mut self.pusher).await;
        if flushed.is_err() {
            let waiting = self.buffer.counts().waiting;
            tracing::warn!(waiting, "outcomes were not told before the end");
            self.pusher.abort();
        }
        // Not in mid-request: a `running` that arrives after the `closing` would undo it.
        self.mode.send_replace(Mode::Killed);
        if tokio::time::timeout_at(end, &mut self.beats).await.is_err() {
            self.beats.abort();
        }
        let goodbye = self.heart.beat_until_taken(SourceState::Closing);
        // One more second: where the flush took all the time, the goodbye still tells the loss.
        let end = end.max(tokio::time::Instant::now() + Duration::from_secs(1));
        let said_goodbye = tokio::time::timeout_at(end, goodbye).await.is_ok();
        Summary { said_goodbye, ..self.summary() }
    }

    /// Ends as a crash would: what is not sent is lost, and no goodbye is said. Only the request
    /// that is on its way is waited for, so that the summary is exact.
    pub async fn kill(mut self) -> Summary {
        self.buffer.close();
        self.mode.send_replace(Mode::Killed);
        for task in [&mut self.pusher, &mut self.beats] {
            if let Err(error) = task.await {
                tracing::error!(%error, "a task of the client failed");
            }
        }
        self.summary()
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.buffer.close();
        self.mode.send_if_modified(|mode| {
            let running = *mode == Mode::Running;
            if running {
                *mode = Mode::Killed;
            }
            running
        });
    }
}

fn summary(counts: Counts, heart: &Heart) -> Summary {
    Summary {
        given_out: counts.given_out,
        written: counts.written,
        repeated: counts.repeated,
        rejected: counts.rejected,
        lost: counts.lost,
        waiting: counts.waiting as u64,
        told_seq: heart.told_seq(),
        said_goodbye: false,
    }
}
