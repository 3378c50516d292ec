//! The queue before the writer, bounded by events and not by requests: 64 requests may be 64
//! events or 640,000. Nobody waits for room in it: a full queue is told at once (429), so that
//! the sender, who knows more, decides what to do.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

use super::writer::Writer;
use super::{Answer, Busy, Parts, Refusal};
use crate::clock::Clock;
use crate::limits;
use crate::outcome::{Closed, Event, Heartbeat};
use crate::store::StoreError;
use crate::vitals::Vitals;

/// One thing for the log.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// An outcome.
    Event(Box<Event>),
    /// A sign of life.
    Heartbeat(Box<Heartbeat>),
    /// Something that decoding did not take.
    Refused(Box<Refusal>),
    /// A person's decision.
    Closed(Box<Closed>),
}

/// One request that waits for the writer.
pub(super) struct Push {
    /// When it came.
    pub(super) received_us: i64,
    /// What it holds.
    pub(super) items: Vec<Item>,
    /// Who waits.
    pub(super) answer: oneshot::Sender<Result<Answer, Busy>>,
    /// Its room in the queue, given back when it is answered.
    pub(super) _room: OwnedSemaphorePermit,
}

/// What the writer is asked for.
pub(super) enum Job {
    /// Write this.
    Push(Push),
    /// Look at the clock once.
    Keep(oneshot::Sender<Result<(), Busy>>),
    /// Write what is queued, and end.
    Stop,
}

/// The way to the writer. A clone is another handle to the same one.
#[derive(Clone)]
pub struct Ingest {
    jobs: mpsc::Sender<Job>,
    room: Arc<Semaphore>,
    vitals: Arc<Vitals>,
    clock: Clock,
}

impl Ingest {
    /// Reads what is known of the sources and starts the writer.
    pub async fn start(parts: Parts) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(limits::QUEUE_EVENTS_MAX);
        let room = Arc::new(Semaphore::new(limits::QUEUE_EVENTS_MAX));
        let (vitals, clock) = (Arc::clone(&parts.vitals), parts.clock.clone());
        let writer = Writer::open(parts, Arc::clone(&room)).await?;
        tokio::spawn(writer.run(queue));
        Ok(Self { jobs, room, vitals, clock })
    }

    /// Writes the outcomes of one request; answers after the commit is on disk.
    pub async fn push(&self, events: Vec<Result<Event, Refusal>>) -> Result<Answer, Busy> {
        let item = |event: Result<Event, Refusal>| match event {
            Ok(event) => Item::Event(Box::new(event)),
            Err(refusal) => Item::Refused(Box::new(refusal)),
        };
        self.write(events.into_iter().map(item).collect()).await
    }

    /// Writes the heartbeats of one request.
    pub async fn heartbeats(
        &self,
        heartbeats: Vec<Result<Heartbeat, Refusal>>,
    ) -> Result<Answer, Busy> {
        let item = |heartbeat: Result<Heartbeat, Refusal>| match heartbeat {
            Ok(heartbeat) => Item::Heartbeat(Box::new(heartbeat)),
            Err(refusal) => Item::Refused(Box::new(refusal)),
        };
        self.write(heartbeats.into_iter().map(item).collect()).await
    }

    /// Writes a person's decision about a finding into the log; the judge follows it.
    pub async fn close_finding(&self, closed: Closed) -> Result<(), Busy> {
        self.write(vec![Item::Closed(Box::new(closed))]).await.map(|_| ())
    }

    /// Looks at the clock once: silences, holes given up, ticks. The writer does it every second
    /// by itself; tests need not wait for that.
    pub async fn keep(&self) -> Result<(), Busy> {
        let (answer, answered) = oneshot::channel();
        self.jobs.send(Job::Keep(answer)).await.map_err(|_| Busy::Closing)?;
        answered.await.unwrap_or(Err(Busy::Closing))
    }

    /// Takes no more, writes what is queued, and comes back when the writer has ended.
    pub async fn shutdown(&self) {
        self.vitals.set_closing();
        // The writer has ended already if nobody takes this.
        let _ = self.jobs.send(Job::Stop).await;
        self.jobs.closed().await;
    }

    async fn write(&self, items: Vec<Item>) -> Result<Answer, Busy> {
        self.admit()?;
        if items.is_empty() {
            return Ok(Answer::default());
        }
        let events = u32::try_from(items.len()).map_err(|_| Busy::QueueFull)?;
        let room = Arc::clone(&self.room).try_acquire_many_owned(events);
        let room = room.map_err(|_| Busy::QueueFull)?;
        self.note_queue();
        let (answer, answered) = oneshot::channel();
        let push = Push { received_us: self.clock.now_us(), items, answer, _room: room };
        self.jobs.try_send(Job::Push(push)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Busy::QueueFull,
            mpsc::error::TrySendError::Closed(_) => Busy::Closing,
        })?;
        // A writer that dropped the question did not commit it.
        answered.await.unwrap_or(Err(Busy::DatabaseAway))
    }

    fn admit(&self) -> Result<(), Busy> {
        if self.vitals.closing() {
            return Err(Busy::Closing);
        }
        if self.vitals.database_away() {
            return Err(Busy::DatabaseAway);
        }
        if self.vitals.audit_lag_us() > limits::AUDIT_LAG_US_MAX {
            return Err(Busy::AuditBehind);
        }
        Ok(())
    }

    fn note_queue(&self) {
        self.vitals.set_queue_events(queued(&self.room));
    }
}

/// Events that wait, by the room that is left.
pub(super) fn queued(room: &Semaphore) -> u64 {
    limits::QUEUE_EVENTS_MAX.saturating_sub(room.available_permits()) as u64
}
