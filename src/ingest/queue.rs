//! The queue before the writer, bounded by events and bytes and not by requests: 64 requests may
//! be 64 events or 640,000. Nobody waits for room in it: a full queue is told at once (429), so
//! that the sender, who knows more, decides what to do.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::decode::Decoded;
use super::item::Item;
use super::room::{Admission, Place, Room};
use super::writer::Writer;
use super::{Answer, Busy, Parts, Refusal};
use crate::clock::Clock;
use crate::limits;
use crate::outcome::{Closed, Event, Heartbeat, KeyedHash, Settings, Transition};
use crate::store::StoreError;
use crate::vitals::Vitals;

/// One request that waits for the writer.
pub(super) struct Push {
    /// When it came.
    pub(super) received_us: i64,
    /// What it holds.
    pub(super) items: Vec<Item>,
    /// Fields in it that nobody knows.
    pub(super) unknown_fields: u64,
    /// Who waits.
    pub(super) answer: oneshot::Sender<Result<Answer, Busy>>,
    /// Its room in the queue, given back when it is answered.
    pub(super) _place: Place,
}

impl Push {
    /// Tells whoever waits. One who has gone away meanwhile asks again and gets repeats.
    pub(super) fn answer(self, answer: Result<Answer, Busy>) {
        let _ = self.answer.send(answer);
    }
}

/// What the writer is asked for.
pub(super) enum Job {
    /// Write this.
    Push(Push),
    /// Say what would become of this if it were written now.
    Check(Push),
    /// Look at the clock once.
    Keep(oneshot::Sender<Result<(), Busy>>),
    /// Write what is queued, and end.
    Stop,
}

/// The way to the writer. A clone is another handle to the same one.
#[derive(Clone)]
pub struct Ingest {
    jobs: mpsc::Sender<Job>,
    room: Room,
    vitals: Arc<Vitals>,
    clock: Clock,
    hash: KeyedHash,
}

impl Ingest {
    /// Reads what is known of the sources and starts the writer.
    pub async fn start(parts: Parts) -> Result<Self, StoreError> {
        let (jobs, queue) = mpsc::channel(limits::QUEUE_EVENTS_MAX);
        let room = Room::new();
        let (vitals, clock) = (Arc::clone(&parts.vitals), parts.clock.clone());
        let hash = parts.store.hash();
        let writer = Writer::open(parts, room.clone()).await?;
        tokio::spawn(writer.run(queue));
        Ok(Self { jobs, room, vitals, clock, hash })
    }

    /// Room for a request whose body has so many bytes at most; to be taken before it is read.
    pub fn admit(&self, bytes: usize) -> Result<Admission, Busy> {
        self.is_open()?;
        self.told(self.room.admit(bytes))
    }

    /// Lets the writer know that a request found no room: its sender is not silent.
    fn told<T>(&self, room: Result<T, Busy>) -> Result<T, Busy> {
        room.inspect_err(|_| self.vitals.set_turned_away())
    }

    fn is_open(&self) -> Result<(), Busy> {
        if self.vitals.closing() {
            return Err(Busy::Closing);
        }
        if self.vitals.database_away() {
            return Err(Busy::DatabaseAway);
        }
        Ok(())
    }

    /// Whether the audit keeps up, which outcomes and transitions wait for. Heartbeats do not: they
    /// are small, and tell a source that is turned away from one that is gone.
    pub fn keeps_up(&self) -> Result<(), Busy> {
        match self.vitals.is_audit_behind() {
            true => Err(Busy::AuditBehind),
            false => Ok(()),
        }
    }

    /// Writes the outcomes of one request; answers after the commit is on disk.
    pub async fn push(&self, events: Decoded<Event>, admission: Admission) -> Result<Answer, Busy> {
        self.take(events, Item::of_event, admission, Job::Push).await
    }

    /// Answers as [`Ingest::push`] would; nothing of it is written, counted or remembered.
    pub async fn check(
        &self,
        events: Decoded<Event>,
        admission: Admission,
    ) -> Result<Answer, Busy> {
        self.take(events, Item::of_event, admission, Job::Check).await
    }

    /// Writes the transitions of one request.
    pub async fn transitions(
        &self,
        transitions: Decoded<Transition>,
        admission: Admission,
    ) -> Result<Answer, Busy> {
        self.take(transitions, Item::of_transition, admission, Job::Push).await
    }

    async fn take<T>(
        &self,
        decoded: Decoded<T>,
        make: fn(Result<T, Refusal>, KeyedHash) -> Item,
        admission: Admission,
        job: fn(Push) -> Job,
    ) -> Result<Answer, Busy> {
        self.keeps_up()?;
        // Before the work of making them ready, so that overload does not add to itself.
        self.is_open()?;
        let items = decoded.items.into_iter().map(|item| make(item, self.hash)).collect();
        self.ask(items, decoded.unknown_fields, Some(admission), job).await
    }

    /// Writes the heartbeats of one request.
    pub async fn heartbeats(
        &self,
        heartbeats: Decoded<Heartbeat>,
        admission: Admission,
    ) -> Result<Answer, Busy> {
        let items = heartbeats.items.into_iter().map(Item::of_heartbeat).collect();
        self.ask(items, heartbeats.unknown_fields, Some(admission), Job::Push).await
    }

    /// Writes a person's decision about a finding into the log; the judge follows it.
    pub async fn close_finding(&self, closed: Closed) -> Result<(), Busy> {
        self.ask(vec![Item::Closed(Box::new(closed))], 0, None, Job::Push).await.map(|_| ())
    }

    /// Writes into the log that other settings of the audit hold from here on.
    pub async fn set(&self, settings: Settings) -> Result<(), Busy> {
        self.ask(vec![Item::Settings(Box::new(settings))], 0, None, Job::Push).await.map(|_| ())
    }

    /// Looks at the clock once: silences, holes given up, ticks. The writer does it every second
    /// by itself; tests need not wait for that.
    pub async fn keep(&self) -> Result<(), Busy> {
        let (answer, answered) = oneshot::channel();
        self.jobs.send(Job::Keep(answer)).await.map_err(|_| Busy::Closing)?;
        answered.await.unwrap_or(Err(Busy::Closing))
    }

    /// Done when the writer has ended, however it did.
    pub async fn ended(&self) {
        self.jobs.closed().await;
    }

    /// Takes no more, writes what is queued, and comes back when the writer has ended.
    pub async fn shutdown(&self) {
        self.vitals.set_closing();
        // The writer has ended already if nobody takes this.
        let _ = self.jobs.send(Job::Stop).await;
        self.jobs.closed().await;
    }

    async fn ask(
        &self,
        items: Vec<Item>,
        unknown_fields: u64,
        admission: Option<Admission>,
        job: fn(Push) -> Job,
    ) -> Result<Answer, Busy> {
        self.is_open()?;
        if items.is_empty() {
            return Ok(Answer::default());
        }
        let place = self.told(self.room.place(items.len(), admission))?;
        self.vitals.set_queue_events(self.room.queued());
        let (answer, answered) = oneshot::channel();
        let push =
            Push { received_us: self.clock.now_us(), items, unknown_fields, answer, _place: place };
        self.jobs.try_send(job(push)).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Busy::QueueFull,
            mpsc::error::TrySendError::Closed(_) => Busy::Closing,
        })?;
        // A writer that dropped the question did not commit it.
        answered.await.unwrap_or(Err(Busy::DatabaseAway))
    }
}
