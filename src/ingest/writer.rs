//! The one writer: takes what queued while the last commit ran, and commits it as one group.
//!
//! No timer cuts groups: alone, a request is committed at once; under load the group grows by
//! itself while the disk is busy. After an error nobody knows whether the commit is on disk, so
//! it is looked up by its id before it is tried again. A group that fails three times while the
//! database takes others holds a request that it does not take: the group is split and that
//! request refused, so that it does not stop everybody else for good.

use std::time::Duration;

use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::item::{Item, Rejection};
use super::plan::{End, Plan, Planner};
use super::queue::{Job, Push};
use super::room::Room;
use super::sources::Sources;
use super::{Answer, Busy, Parts};
use crate::limits;
use crate::store::StoreError;
use crate::store::group::Group;

/// Between two looks at the clock.
const KEEP_EVERY: Duration = Duration::from_secs(1);

/// The task behind [`super::Ingest`].
pub(super) struct Writer {
    pub(super) parts: Parts,
    pub(super) sources: Sources,
    pub(super) end: End,
    /// What is held in memory may be ahead of the disk: to be read again before it is used.
    stale: bool,
    room: Room,
}

/// Why a group is not on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// The database takes nothing.
    Away,
    /// The database takes others.
    AtFault,
}

impl Writer {
    /// Reads all that the writer holds.
    pub(super) async fn open(parts: Parts, room: Room) -> Result<Self, StoreError> {
        let (sources, end) = read(&parts).await?;
        parts.vitals.set_appended(end.n);
        Ok(Self { parts, sources, end, stale: false, room })
    }

    /// Works until nobody is left to send, or until it is told to stop; what is queued by then is
    /// still written.
    pub(super) async fn run(mut self, mut queue: mpsc::Receiver<Job>) {
        let mut clock = interval(KEEP_EVERY);
        clock.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut left_over = None;
        loop {
            let job = match left_over.take() {
                Some(job) => Some(job),
                None => tokio::select! {
                    job = queue.recv() => job,
                    _ = clock.tick() => {
                        // Told to nobody: the next step tries again.
                        let _ = self.keep().await;
                        continue;
                    }
                },
            };
            match job {
                Some(Job::Push(push)) => {
                    let (group, rest) = collect(push, &mut queue);
                    left_over = rest;
                    self.commit_group(group).await;
                }
                Some(Job::Check(push)) => self.check(push).await,
                Some(Job::Keep(answer)) => drop(answer.send(self.keep().await)),
                Some(Job::Stop) => queue.close(),
                None => return,
            }
        }
    }

    async fn commit_group(&mut self, group: Vec<Push>) {
        let result = self.commit(&group).await;
        match result {
            Ok(answers) => {
                for (push, answer) in group.into_iter().zip(answers) {
                    push.answer(Ok(answer));
                }
            }
            Err(Failure::Away) => {
                group.into_iter().for_each(|push| push.answer(Err(Busy::DatabaseAway)));
            }
            Err(Failure::AtFault) => {
                for push in group {
                    self.commit_alone(push).await;
                }
            }
        }
        self.parts.vitals.set_queue_events(self.room.queued());
    }

    /// One request of a group that could not be written.
    async fn commit_alone(&mut self, push: Push) {
        let group = [push];
        let result = self.commit(&group).await;
        let [push] = group;
        match result {
            Ok(answers) => push.answer(answers.into_iter().next().ok_or(Busy::DatabaseAway)),
            Err(Failure::Away) => push.answer(Err(Busy::DatabaseAway)),
            Err(Failure::AtFault) => self.refuse_all(push).await,
        }
    }

    /// A request that the database does not take. What is left of it are its refusals, on disk if
    /// those can be written.
    async fn refuse_all(&mut self, mut push: Push) {
        let hash = self.parts.store.hash();
        let refuse = |item: Item| item.rejected(Rejection::NotWritable, hash);
        push.items = std::mem::take(&mut push.items).into_iter().map(refuse).collect();
        let group = [push];
        let result = self.commit(&group).await;
        let [push] = group;
        match result {
            Ok(answers) => push.answer(answers.into_iter().next().ok_or(Busy::DatabaseAway)),
            Err(Failure::Away) => push.answer(Err(Busy::DatabaseAway)),
            Err(Failure::AtFault) => {
                let answer = refusals(&push.items);
                push.answer(answer);
            }
        }
    }

    async fn commit(&mut self, group: &[Push]) -> Result<Vec<Answer>, Failure> {
        match self.plan(group).await {
            Ok(plan) => self.put(plan).await,
            Err(error) => {
                tracing::error!(%error, "a group could not be planned");
                Err(self.failed(&error).await)
            }
        }
    }

    async fn plan(&mut self, group: &[Push]) -> Result<Plan, StoreError> {
        if self.stale {
            self.read_again().await?;
        }
        let now_us = self.parts.clock.now_us();
        let mut planner = Planner::new(&self.parts, &mut self.sources, self.end);
        planner.pushes(group).await?;
        planner.finish(now_us)
    }

    /// What a request would be told, from a copy of what is held. It stands in the queue as every
    /// other, so that what was sent before it counts.
    async fn check(&mut self, push: Push) {
        let request = [push];
        let answers = match self.plan_in_vain(&request).await {
            Ok(answers) => answers,
            Err(error) => {
                tracing::error!(%error, "a request could not be checked");
                // The next to write finds out more.
                Vec::new()
            }
        };
        let [push] = request;
        push.answer(answers.into_iter().next().ok_or(Busy::DatabaseAway));
        self.parts.vitals.set_queue_events(self.room.queued());
    }

    async fn plan_in_vain(&mut self, request: &[Push]) -> Result<Vec<Answer>, StoreError> {
        if self.stale {
            self.read_again().await?;
        }
        let items = request.iter().flat_map(|push| &push.items);
        let mut copy = self.sources.copy_of(items.filter_map(Item::speaker));
        let mut planner = Planner::new(&self.parts, &mut copy, self.end);
        planner.pushes(request).await?;
        Ok(planner.into_answers())
    }

    /// Puts a group on disk.
    pub(super) async fn put(&mut self, plan: Plan) -> Result<Vec<Answer>, Failure> {
        let mut attempt = 1;
        loop {
            let began = Instant::now();
            let Err(error) = self.parts.store.write_group(&plan.group).await else {
                return Ok(self.settle(plan, began.elapsed()));
            };
            tracing::error!(%error, attempt, group = plan.group.id, "a group was not written");
            match self.parts.store.has_commit(&plan.group.id).await {
                Ok(true) => return Ok(self.settle(plan, began.elapsed())),
                Ok(false) if attempt < limits::GROUP_TRIES_MAX => attempt += 1,
                Ok(false) | Err(_) => return Err(self.failed(&error).await),
            }
        }
    }

    /// The group is on disk: tell everybody.
    fn settle(&mut self, plan: Plan, took: Duration) -> Vec<Answer> {
        self.end = plan.end;
        let Parts { vitals, metrics, clock, .. } = &self.parts;
        metrics.committed(&plan.counted, clock.now_us(), took);
        vitals.set_database_away(false);
        vitals.set_appended(self.end.n);
        plan.answers
    }

    /// After an error that says itself what it is. A disk may be too full for a group and take
    /// less: that is no reason to refuse the group.
    pub(super) async fn failed(&mut self, error: &StoreError) -> Failure {
        if !error.is_outage() {
            return self.recover().await;
        }
        self.stale = true;
        self.parts.vitals.set_database_away(true);
        Failure::Away
    }

    /// After a group that is not on disk: forgets what memory is ahead, and finds out whether the
    /// database takes anything at all. Only a write tells: a full disk can be read.
    pub(super) async fn recover(&mut self) -> Failure {
        self.stale = true;
        let probe = Group {
            id: uuid::Uuid::now_v7().to_string(),
            at_us: self.parts.clock.now_us(),
            last_n: self.end.n,
            answers: "[]".into(),
            ..Group::default()
        };
        let result = match self.parts.store.write_group(&probe).await {
            Ok(()) => self.read_again().await,
            Err(error) => Err(error),
        };
        self.parts.vitals.set_database_away(result.is_err());
        match result {
            Ok(()) => Failure::AtFault,
            Err(error) => {
                tracing::error!(%error, "the database does not take writes");
                Failure::Away
            }
        }
    }

    async fn read_again(&mut self) -> Result<(), StoreError> {
        let (sources, end) = read(&self.parts).await?;
        let received_us = self.end.received_us.max(end.received_us);
        (self.sources, self.end) = (sources, End { received_us, ..end });
        self.stale = false;
        Ok(())
    }

    /// Whether the database has to be found again first.
    pub(super) fn is_away(&self) -> bool {
        self.stale || self.parts.vitals.database_away()
    }
}

/// All that the writer holds, as it is on disk.
async fn read(parts: &Parts) -> Result<(Sources, End), StoreError> {
    let sources = Sources::load(&parts.store, parts.clock.now_us()).await?;
    let collector = parts.store.collector();
    let n = parts.store.log_end(collector).await?;
    let received_us = parts.store.log_last_received_us(collector).await?.unwrap_or(0);
    Ok((sources, End { n, received_us }))
}

/// The group that starts with a request, and the job that does not fit into it.
fn collect(first: Push, queue: &mut mpsc::Receiver<Job>) -> (Vec<Push>, Option<Job>) {
    let mut events = first.items.len();
    let mut group = vec![first];
    loop {
        match queue.try_recv() {
            Ok(Job::Push(push)) if events + push.items.len() <= limits::GROUP_EVENTS_MAX => {
                events += push.items.len();
                group.push(push);
            }
            Ok(other) => return (group, Some(other)),
            Err(_) => return (group, None),
        }
    }
}

/// The answer of a request of which not even the refusals can be written.
fn refusals(items: &[Item]) -> Result<Answer, Busy> {
    let mut answer = Answer::default();
    for (index, item) in items.iter().enumerate() {
        match item {
            Item::Refused(refusal) => {
                answer.reject(index, &refusal.refused.code, &refusal.refused.message);
            }
            _ => return Err(Busy::DatabaseAway),
        }
    }
    Ok(answer)
}
