//! What one group writes, worked out before its transaction.
//!
//! Planning changes what the writer holds in memory (sets, sources) as it goes, and reads from
//! disk only what is not held there: content hashes of repeats, event ids, notes. If the group
//! then can't be written, the writer reads all it holds from disk again, so memory and disk never
//! tell two stories.

mod refuse;
mod take;

use std::collections::HashMap;

use self::refuse::rejection_of;
use self::take::Take;
use super::contents::Contents;
use super::item::{Item, Ready, Rejection};
use super::keys::{conflict_key, event_key, heartbeat_content, refusal_key};
use super::queue::Push;
use super::sources::Sources;
use super::tally::Tally;
use super::{Answer, Parts};
use crate::metrics::Counted;
use crate::outcome::{Body, Heartbeat, Id};
use crate::store::StoreError;
use crate::store::group::Group;
use crate::store::identity::Key;
use crate::store::log::{self, Row};

/// Where the log stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct End {
    /// The last position given out.
    pub(super) n: i64,
    /// The receipt of the newest record. Receipts never fall, whatever the clock does.
    pub(super) received_us: i64,
}

/// A group to be written, and what is to be said after that.
pub(super) struct Plan {
    /// For the database.
    pub(super) group: Group,
    /// One for each request.
    pub(super) answers: Vec<Answer>,
    /// For the counters.
    pub(super) counted: Counted,
    /// Where the log then stands.
    pub(super) end: End,
}

/// Works out a group.
pub(super) struct Planner<'a> {
    parts: &'a Parts,
    sources: &'a mut Sources,
    end: End,
    rows: Vec<Row>,
    contents: Contents,
    /// Event ids, with the content that was written first; known ones and this group's.
    event_ids: HashMap<Key, Option<i64>>,
    new_event_ids: Vec<(Key, i64)>,
    /// Whether something became a record before.
    notes: HashMap<Key, bool>,
    new_notes: Vec<Key>,
    tally: Tally,
    answers: Vec<Answer>,
}

/// What the sets say about a number.
enum Verdict {
    New { boot_id: i64, abandoned: Vec<(u64, u64)> },
    Known { boot_id: i64, lost: bool },
    Rejected(Rejection),
}

impl<'a> Planner<'a> {
    /// An empty group after the end of the log.
    pub(super) fn new(parts: &'a Parts, sources: &'a mut Sources, end: End) -> Self {
        Self {
            parts,
            sources,
            end,
            rows: Vec::new(),
            contents: Contents::default(),
            event_ids: HashMap::new(),
            new_event_ids: Vec::new(),
            notes: HashMap::new(),
            new_notes: Vec::new(),
            tally: Tally::default(),
            answers: Vec::new(),
        }
    }

    /// Adds requests.
    pub(super) async fn pushes(&mut self, pushes: &[Push]) -> Result<(), StoreError> {
        self.look_up(pushes).await?;
        for push in pushes {
            self.end.received_us = self.end.received_us.max(push.received_us);
            self.tally.committed.unknown_fields += push.unknown_fields;
            let mut answer = Answer::default();
            for (index, item) in push.items.iter().enumerate() {
                self.item(index, item, &mut answer).await?;
            }
            self.answers.push(answer);
        }
        Ok(())
    }

    /// Adds a record of the clock.
    pub(super) fn record(&mut self, body: &Body) -> Result<(), StoreError> {
        let (kind, body) = log::encode(body)?;
        self.append(kind, body);
        Ok(())
    }

    /// Time goes by.
    pub(super) fn at(&mut self, now_us: i64) {
        self.end.received_us = self.end.received_us.max(now_us);
    }

    /// The sources, for what the clock decides.
    pub(super) fn sources(&mut self) -> &mut Sources {
        self.sources
    }

    /// What the requests would be told. Nothing is to be written.
    pub(super) fn into_answers(self) -> Vec<Answer> {
        self.answers
    }

    /// The group.
    pub(super) fn finish(self, at_us: i64) -> Result<Plan, StoreError> {
        let (sources, boots) = self.sources.take_changed()?;
        let transition_runs = self.sources.transitions.take_changed()?;
        let counted = self.parts.metrics.count(&self.tally.committed);
        let counts = self
            .answers
            .iter()
            .map(|answer| serde_json::json!([answer.written, answer.repeated, answer.rejected]));
        let group = Group {
            id: uuid::Uuid::now_v7().to_string(),
            at_us,
            last_n: self.end.n,
            answers: serde_json::Value::from_iter(counts).to_string(),
            records: self.rows,
            sources,
            boots,
            ledgers: self.sources.ledgers.take_new(),
            hashes: self.contents.into_runs(),
            event_ids: self.new_event_ids,
            notes: self.new_notes,
            transition_runs,
            rollups: self.tally.rollups(),
            totals: counted.totals().to_vec(),
        };
        Ok(Plan { group, answers: self.answers, counted, end: self.end })
    }

    /// Reads at once what the requests are known to need.
    async fn look_up(&mut self, pushes: &[Push]) -> Result<(), StoreError> {
        let hash = self.parts.store.hash();
        let (mut events, mut refusals) = (Vec::new(), Vec::new());
        for item in pushes.iter().flat_map(|push| &push.items) {
            match item {
                Item::Event(ready) if ready.said.sequence().is_none() => {
                    events.extend(event_key(&ready.said, hash));
                }
                Item::Transition(ready) if ready.said.sequence().is_none() => {
                    events.extend(event_key(&ready.said, hash));
                }
                Item::Refused(refusal) => refusals.push(refusal_key(refusal, hash)),
                _ => {}
            }
        }
        let known = self.parts.store.known_event_ids(&events).await?;
        self.event_ids = events.into_iter().map(|key| (key, known.get(&key).copied())).collect();
        let known = self.parts.store.known_notes(&refusals).await?;
        self.notes = refusals.into_iter().map(|key| (key, known.contains(&key))).collect();
        Ok(())
    }

    async fn item(
        &mut self,
        index: usize,
        item: &Item,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        match item {
            Item::Event(ready) => self.take(index, ready, answer).await,
            Item::Transition(ready) => self.take(index, ready, answer).await,
            Item::Heartbeat(heartbeat) => self.heartbeat(index, heartbeat, answer).await,
            Item::Refused(refusal) => self.refuse(index, refusal, answer).await,
            Item::Closed(closed) => {
                answer.written += 1;
                self.record(&Body::Closed(closed.as_ref().clone()))
            }
            Item::Settings(settings) => {
                answer.written += 1;
                self.record(&Body::Settings(settings.as_ref().clone()))
            }
        }
    }

    async fn take<T: Take>(
        &mut self,
        index: usize,
        ready: &Ready<T>,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        let Some((boot, seq)) = ready.said.sequence() else {
            return self.take_by_id(index, ready, answer).await;
        };
        match ready.said.judge(self, boot, seq) {
            Verdict::New { boot_id, abandoned } => {
                self.contents.write(boot_id, seq, ready.content);
                self.write(ready, answer);
                self.abandon(ready.said.from(), boot, &abandoned)
            }
            Verdict::Known { boot_id, lost } => {
                match self.contents.get(&self.parts.store, boot_id, seq).await? {
                    None if lost => self.reject(index, ready, Rejection::GivenUp, answer).await,
                    first => self.repeat(ready, first, answer).await,
                }
            }
            Verdict::Rejected(rejection) => self.reject(index, ready, rejection, answer).await,
        }
    }

    async fn take_by_id<T: Take>(
        &mut self,
        index: usize,
        ready: &Ready<T>,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        if let Err(rejection) = ready.said.hear(self.sources, self.end.received_us) {
            return self.reject(index, ready, rejection, answer).await;
        }
        let Some(key) = event_key(&ready.said, self.parts.store.hash()) else {
            return self.reject(index, ready, Rejection::NotWritable, answer).await;
        };
        if let Some(first) = self.event_ids.get(&key).copied().flatten() {
            return self.repeat(ready, Some(first), answer).await;
        }
        if let Err(rejection) = ready.said.find_room(self.sources) {
            return self.reject(index, ready, rejection, answer).await;
        }
        self.event_ids.insert(key, Some(ready.content));
        self.new_event_ids.push((key, ready.content));
        self.write(ready, answer);
        Ok(())
    }

    fn write<T: Take>(&mut self, ready: &Ready<T>, answer: &mut Answer) {
        answer.written += 1;
        ready.said.count(self.sources, &mut self.tally);
        self.append(T::KIND, ready.body.clone());
    }

    /// Something that was there before; `first` is the content that was written.
    async fn repeat<T: Take>(
        &mut self,
        ready: &Ready<T>,
        first: Option<i64>,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        answer.repeated += 1;
        self.tally.repeat();
        if first.is_some_and(|first| first != ready.content)
            && self.note(conflict_key(ready, self.parts.store.hash())).await?
        {
            self.append(T::CONFLICT, ready.body.clone());
        }
        Ok(())
    }

    async fn heartbeat(
        &mut self,
        index: usize,
        heartbeat: &Heartbeat,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        let (from, boot, received_us) = (&heartbeat.from, heartbeat.boot, self.end.received_us);
        let next_seq = heartbeat.last_seq.saturating_add(1);
        if !self.sources.ledgers.have_room(heartbeat.ledgers.iter().map(Id::as_str)) {
            return self
                .reject_heartbeat(index, heartbeat, Rejection::TooManyLedgers, answer)
                .await;
        }
        let source = match self.sources.hear_boot(from, boot, next_seq, received_us) {
            Ok(source) => source,
            Err(refused) => {
                let rejection = rejection_of(refused);
                return self.reject_heartbeat(index, heartbeat, rejection, answer).await;
            }
        };
        let content = heartbeat_content(heartbeat, self.parts.store.hash());
        let run = source.boots.get_mut(&boot);
        let is_new = run.is_some_and(|run| run.beat(heartbeat, content, received_us));
        source.watch(received_us);
        source.settle();
        if !is_new {
            answer.repeated += 1;
            return Ok(());
        }
        answer.written += 1;
        self.tally.hear(from);
        heartbeat.ledgers.iter().for_each(|ledger| self.sources.ledgers.add(ledger.as_str()));
        self.record(&Body::Heartbeat(heartbeat.clone()))
    }

    fn append(&mut self, kind: i64, body: String) {
        self.end.n += 1;
        let row = Row { n: self.end.n, kind, received_us: self.end.received_us, body };
        self.rows.push(row);
    }
}
