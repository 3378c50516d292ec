//! Room for what is under way, taken before a body is read. Without it, as many bodies as there
//! are connections would be in memory at a time, each a gzip bomb inflated to its bound.
//!
//! Bytes are refused at once where there is no room for them (429), as events are. The turn to
//! decode is waited for: decoding ends by itself, and soon.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::Busy;
use crate::limits;

/// The room of one collector.
#[derive(Clone)]
pub(super) struct Room {
    /// Events that wait for the writer.
    events: Arc<Semaphore>,
    bytes: Arc<Semaphore>,
    turns: Arc<Semaphore>,
}

/// The room that one request has until it is answered.
pub struct Admission {
    bytes: OwnedSemaphorePermit,
    turns: Arc<Semaphore>,
    turn: Option<OwnedSemaphorePermit>,
}

/// Room among the events that wait for the writer, with that of the bytes they came from.
pub(super) struct Place {
    _events: OwnedSemaphorePermit,
    _bytes: Option<OwnedSemaphorePermit>,
}

impl Room {
    pub(super) fn new() -> Self {
        let room = |most| Arc::new(Semaphore::new(most));
        Self {
            events: room(limits::QUEUE_EVENTS_MAX),
            bytes: room(limits::BYTES_UNDER_WAY_MAX),
            turns: room(limits::DECODED_AT_A_TIME),
        }
    }

    /// Room for a body of so many bytes.
    pub(super) fn admit(&self, bytes: usize) -> Result<Admission, Busy> {
        let bytes = take(&self.bytes, bytes.max(limits::EVENT_BYTES_MAX))?;
        Ok(Admission { bytes, turns: Arc::clone(&self.turns), turn: None })
    }

    /// Room for the events of a request, whose decoding is thereby over.
    pub(super) fn place(&self, events: usize, admission: Option<Admission>) -> Result<Place, Busy> {
        let events = take(&self.events, events)?;
        Ok(Place { _events: events, _bytes: admission.map(|admission| admission.bytes) })
    }

    /// Events that wait, by the room that is left.
    pub(super) fn queued(&self) -> u64 {
        limits::QUEUE_EVENTS_MAX.saturating_sub(self.events.available_permits()) as u64
    }
}

impl Admission {
    /// Waits for the turn to decode.
    pub async fn turn(&mut self) {
        // Nobody closes the semaphore.
        self.turn = Arc::clone(&self.turns).acquire_owned().await.ok();
    }

    /// The body has so many bytes after all.
    pub fn fit(&mut self, bytes: usize) -> Result<(), Busy> {
        let bytes = bytes.max(limits::EVENT_BYTES_MAX);
        let held = self.bytes.num_permits();
        if bytes > held {
            let more = take(self.bytes.semaphore(), bytes - held)?;
            self.bytes.merge(more);
        } else {
            drop(self.bytes.split(held - bytes));
        }
        Ok(())
    }
}

fn take(room: &Arc<Semaphore>, wanted: usize) -> Result<OwnedSemaphorePermit, Busy> {
    let wanted = u32::try_from(wanted).map_err(|_| Busy::QueueFull)?;
    Arc::clone(room).try_acquire_many_owned(wanted).map_err(|_| Busy::QueueFull)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_held_until_the_answer_and_refused_beyond_the_bound() {
        let room = Room::new();
        let half = limits::BYTES_UNDER_WAY_MAX / 2;
        let mut one = room.admit(half).unwrap();
        let two = room.admit(half).unwrap();
        assert_eq!(room.admit(1).err(), Some(Busy::QueueFull));
        assert_eq!(one.fit(half + 1), Err(Busy::QueueFull));
        one.fit(half - limits::EVENT_BYTES_MAX).unwrap();
        let three = room.admit(1).unwrap();
        assert!(room.admit(1).is_err(), "a small one takes room as well");
        let place = room.place(1, Some(two)).unwrap();
        drop(three);
        assert!(one.fit(half).is_ok());
        assert!(room.admit(1).is_err(), "queued events keep theirs");
        drop(place);
        assert!(room.admit(half).is_ok());
        assert_eq!(room.queued(), 0);
    }

    #[tokio::test]
    async fn so_many_are_decoded_at_a_time_and_the_next_waits() {
        let room = Room::new();
        let mut decoding = Vec::new();
        for _ in 0..limits::DECODED_AT_A_TIME {
            let mut admission = room.admit(1).unwrap();
            admission.turn().await;
            decoding.push(admission);
        }
        let mut next = room.admit(1).unwrap();
        let brief = std::time::Duration::from_millis(20);
        assert!(tokio::time::timeout(brief, next.turn()).await.is_err());
        let place = room.place(1, decoding.pop()).unwrap();
        next.turn().await;
        drop(place);
    }
}
