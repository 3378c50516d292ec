//! Numbers and the outcomes that wait for their acknowledgement, under one lock: the order of
//! the buffer is the order of the numbers.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::answer::Answer;
use crate::outcome::Event;

/// What became of an outcome that was recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub seq: u64,
    /// Whether it will be told; `false` when the buffer is full or closed, and then its number is
    /// a hole.
    pub kept: bool,
}

/// How far it has come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) given_out: u64,
    pub(super) written: u64,
    pub(super) repeated: u64,
    pub(super) rejected: u64,
    pub(super) lost: u64,
    /// In the buffer or on the way.
    pub(super) waiting: usize,
}

pub(super) struct Buffer {
    capacity: usize,
    state: Mutex<State>,
    /// Something was recorded, or it was closed.
    changed: Notify,
    /// How many wait, for those who wait for room.
    waiting: watch::Sender<usize>,
}

#[derive(Default)]
struct State {
    counts: Counts,
    events: VecDeque<Event>,
    closed: bool,
}

impl Buffer {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            state: Mutex::default(),
            changed: Notify::new(),
            waiting: watch::Sender::new(0),
        }
    }

    /// Gives the next number to an outcome. `stamp` runs under the lock.
    pub(super) fn record(&self, stamp: impl FnOnce(u64) -> Event) -> Recorded {
        let mut state = self.lock();
        state.counts.given_out += 1;
        let seq = state.counts.given_out;
        let kept = !state.closed && state.counts.waiting < self.capacity;
        if kept {
            state.counts.waiting += 1;
            let event = stamp(seq);
            state.events.push_back(event);
            self.changed.notify_one();
        } else {
            state.counts.lost += 1;
            tracing::warn!(seq, "the buffer is full or closed: an outcome will not be told");
        }
        Recorded { seq, kept }
    }

    pub(super) fn give_up(&self) -> u64 {
        let mut state = self.lock();
        state.counts.given_out += 1;
        state.counts.lost += 1;
        state.counts.given_out
    }

    /// Reads the last number under the lock, with whatever must fit to it.
    pub(super) fn with_last_seq<T>(&self, read: impl FnOnce(u64) -> T) -> T {
        let state = self.lock();
        read(state.counts.given_out)
    }

    pub(super) fn counts(&self) -> Counts {
        self.lock().counts
    }

    /// Nothing more is kept.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Waits until there is something to send. `false`: closed and empty.
    pub(super) async fn wait_for_events(&self) -> bool {
        loop {
            {
                let state = self.lock();
                if !state.events.is_empty() || state.closed {
                    return !state.events.is_empty();
                }
            }
            self.changed.notified().await;
        }
    }

    /// Waits until there are this many to send, or it is closed.
    pub(super) async fn wait_for_full_batch(&self, events: usize) {
        loop {
            {
                let state = self.lock();
                if state.events.len() >= events || state.closed {
                    return;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Moves the oldest ones out; they go on being counted as waiting until they are answered.
    pub(super) fn take(&self, events_max: usize) -> Vec<Event> {
        let mut state = self.lock();
        let count = state.events.len().min(events_max);
        state.events.drain(..count).collect()
    }

    /// The collector has answered for this many of those that were taken.
    pub(super) fn answered(&self, events: usize, answer: &Answer) {
        let waiting = {
            let mut state = self.lock();
            let counts = &mut state.counts;
            counts.written += answer.written;
            counts.repeated += answer.repeated;
            counts.rejected += answer.rejected;
            counts.waiting = counts.waiting.saturating_sub(events);
            counts.waiting
        };
        self.waiting.send_replace(waiting);
    }

    pub(super) async fn wait_for_room(&self, waiting_max: usize) {
        let mut waiting = self.waiting.subscribe();
        while self.counts().waiting > waiting_max {
            if waiting.changed().await.is_err() {
                return;
            }
        }
    }

    /// A panic under the lock can only come from a stamp; the numbers are right all the same.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
