//! Heartbeats: the source is there, and this is the last number that it gave out.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::sync::watch;

use super::answer::Backoff;
use super::buffer::Buffer;
use super::{Mode, Settings};
use crate::outcome::{Heartbeat, SourceState};

/// No heartbeat was taken yet.
const NEVER: u64 = u64::MAX;

/// Says that the source is there.
#[derive(Clone)]
pub(super) struct Heart {
    settings: Arc<Settings>,
    http: reqwest::Client,
    buffer: Arc<Buffer>,
    told_seq: Arc<AtomicU64>,
}

impl Heart {
    pub(super) fn new(settings: Arc<Settings>, http: reqwest::Client, buffer: Arc<Buffer>) -> Self {
        Self { settings, http, buffer, told_seq: Arc::new(AtomicU64::new(NEVER)) }
    }

    pub(super) fn settings(&self) -> &Settings {
        &self.settings
    }

    pub(super) fn told_seq(&self) -> Option<u64> {
        Some(self.told_seq.load(Ordering::Acquire)).filter(|&seq| seq != NEVER)
    }

    /// Beats at once, so that the source is watched from its start, and then regularly. One that
    /// fails is not tried again: the next one says more.
    pub(super) async fn run(self, mut mode: watch::Receiver<Mode>) {
        let mut ticks = tokio::time::interval(self.settings.heartbeat_every);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                killed = mode.wait_for(|&mode| mode == Mode::Killed) => {
                    drop(killed);
                    return;
                }
                _ = ticks.tick() => {}
            }
            if !self.beat(SourceState::Running).await {
                tracing::debug!("a heartbeat was not taken");
            }
        }
    }

    pub(super) async fn beat_until_taken(&self, state: SourceState) {
        let mut backoff = Backoff::new(self.settings.retry_min, self.settings.retry_max);
        while !self.beat(state).await {
            tokio::time::sleep(backoff.pause(None)).await;
        }
    }

    /// Time and last number are read together: no outcome is older than a heartbeat that does not
    /// count it.
    async fn beat(&self, state: SourceState) -> bool {
        let heartbeat = self.buffer.with_last_seq(|last_seq| Heartbeat {
            from: self.settings.from.clone(),
            boot: self.settings.boot,
            last_seq,
            at_us: self.settings.clock.now_us(),
            ledgers: self.settings.ledgers.clone(),
            state,
        });
        let url = format!("{}/api/v1/heartbeats", self.settings.target);
        let answer = self.http.post(url).json(&heartbeat).send().await;
        let taken = answer.is_ok_and(|answer| answer.status().is_success());
        if taken {
            self.told(heartbeat.last_seq);
        }
        taken
    }

    /// `NEVER` is the highest number, so the first one told always replaces it.
    fn told(&self, seq: u64) {
        let higher = |told: u64| (told == NEVER || seq > told).then_some(seq);
        // An `Err` says that a higher number was told already.
        let _ = self.told_seq.fetch_update(Ordering::AcqRel, Ordering::Acquire, higher);
    }
}
