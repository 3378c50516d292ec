//! The one writer: takes what queued while the last commit ran, and commits it as one group.

use std::sync::Arc;

use tokio::sync::{Semaphore, mpsc};

use super::queue::{Item, Job, Push, queued};
use super::{Answer, Busy, Parts};
use crate::limits;
use crate::outcome::Body;
use crate::store::StoreError;
use crate::store::log::{self, Row};

/// The task behind [`super::Ingest`].
pub(super) struct Writer {
    parts: Parts,
    room: Arc<Semaphore>,
    last_n: i64,
    last_received_us: i64,
}

impl Writer {
    pub(super) async fn open(parts: Parts, room: Arc<Semaphore>) -> Result<Self, StoreError> {
        let collector = parts.store.collector();
        let last_n = parts.store.log_end(collector).await?;
        let last_received_us = parts.store.log_last_received_us(collector).await?.unwrap_or(0);
        parts.vitals.set_appended(last_n);
        Ok(Self { parts, room, last_n, last_received_us })
    }

    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        while let Some(job) = queue.recv().await {
            match job {
                Job::Push(push) => self.write_group(vec![push]).await,
                Job::Keep(done) => drop(done.send(Ok(()))),
                Job::Stop => queue.close(),
            }
        }
    }

    async fn write_group(&mut self, pushes: Vec<Push>) {
        for push in pushes {
            let result = self.append(&push).await;
            if let Err(error) = &result {
                tracing::error!(%error, "a group was not written");
            }
            let _ = push.answer.send(result.map_err(|_| Busy::DatabaseAway));
        }
        self.parts.vitals.set_appended(self.last_n);
        self.parts.vitals.set_queue_events(queued(&self.room));
    }

    async fn append(&mut self, push: &Push) -> Result<Answer, StoreError> {
        self.last_received_us = self.last_received_us.max(push.received_us);
        let mut rows = Vec::new();
        for (item, n) in push.items.iter().zip(self.last_n + 1..) {
            let body = match item.clone() {
                Item::Event(event) => Body::Event(event),
                Item::Heartbeat(heartbeat) => Body::Heartbeat(*heartbeat),
                Item::Refused(refusal) => Body::Refused(Box::new(refusal.refused)),
                Item::Closed(closed) => Body::Closed(*closed),
            };
            let (kind, body) = log::encode(&body)?;
            rows.push(Row { n, kind, received_us: self.last_received_us, body });
        }
        let collector = self.parts.store.collector();
        for rows in rows.chunks(limits::GROUP_EVENTS_MAX) {
            log::append(&mut *self.parts.store.writer().await, collector, rows).await?;
        }
        self.last_n += i64::try_from(rows.len()).unwrap_or(0);
        Ok(Answer { written: rows.len(), ..Answer::default() })
    }
}
