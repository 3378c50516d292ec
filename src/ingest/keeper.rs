//! What the clock decides, as records: a watched source that says nothing, a hole that nobody
//! waits for any more, and a tick where the judge waits for time to go by. Where nothing is to be
//! decided, old identities are forgotten, and the sources of which nothing else is left.
//!
//! The judge has no clock. It lives by the times of receipt in the log, so that the log alone
//! says what it must find, today and when it is folded again.

use super::Busy;
use super::plan::Planner;
use super::sources::Sources;
use super::writer::{Failure, Writer};
use crate::limits;
use crate::outcome::{Body, Boot, GivenUp, Silent, SourceName};
use crate::store::StoreError;
use crate::vitals::Vitals;

impl Writer {
    /// Looks at the clock once, and finds the database again if it was away.
    pub(super) async fn keep(&mut self) -> Result<(), Busy> {
        if self.is_away() && self.recover().await == Failure::Away {
            return Err(Busy::DatabaseAway);
        }
        let now_us = self.parts.clock.now_us();
        let before = self.end;
        let mut planner = Planner::new(&self.parts, &mut self.sources, before);
        planner.at(now_us);
        if !was_ready(&self.parts.vitals) {
            planner.sources().wait_anew(now_us);
        }
        let mut bodies = decide(planner.sources(), now_us, self.parts.gap_grace_us);
        let due_us = self.parts.vitals.tick_due_us();
        if bodies.is_empty()
            && due_us.is_some_and(|due_us| due_us <= now_us && before.received_us < due_us)
        {
            bodies.push(Body::Tick);
        }
        let recorded = bodies.iter().try_for_each(|body| planner.record(body));
        if bodies.is_empty() {
            return self.forget_quietly().await;
        }
        let plan = recorded.and_then(|()| planner.finish(now_us));
        let result = match plan {
            Ok(plan) => self.put(plan).await,
            Err(error) => {
                tracing::error!(%error, "a step of the clock could not be planned");
                Err(self.failed(&error).await)
            }
        };
        result.map(|_| ()).map_err(|_| Busy::DatabaseAway)
    }
}

impl Writer {
    /// Forgetting can wait: what fails is tried again at the next step.
    async fn forget_quietly(&mut self) -> Result<(), Busy> {
        if let Err(error) = self.forget().await {
            tracing::warn!(%error, "old identities could not be forgotten");
        }
        Ok(())
    }

    /// Forgets a little of what no event can ask for any more. A repeat of it is refused by its
    /// time, before its identity is looked at.
    async fn forget(&mut self) -> Result<(), StoreError> {
        let now_us = self.parts.clock.now_us();
        if let Some((from, boot, id)) = self.sources.find_over(now_us)
            && self.parts.store.forget_boot(id).await?
        {
            self.sources.forget_boot(&from, boot);
        }
        if let Some((from, boot, id)) = self.sources.transitions.find_over(now_us)
            && self.parts.store.forget_boot(id).await?
        {
            self.sources.transitions.forget(&from, boot);
        }
        if let Some((from, id)) = self.sources.find_gone(now_us) {
            self.parts.store.forget_source(id).await?;
            self.sources.forget(&from);
        }
        let oldest_us = now_us.saturating_sub(limits::IDENTITY_AGE_US_MAX);
        // A day of receipt ends a day after it began.
        let day = oldest_us.div_euclid(limits::DAY_US) - 1;
        self.parts.store.forget_days_before(day).await
    }
}

/// Whether all who sent something since the last look were taken. Silence and holes count only
/// then: under overload every source would fall silent at once, and the audit go blind. After the
/// database was away all waiting begins anew anyway, since the sources are read again.
fn was_ready(vitals: &Vitals) -> bool {
    let turned_away = vitals.take_turned_away();
    !turned_away && !vitals.is_audit_behind()
}

/// What is decided at this moment. What does not fit into a group waits for the next step.
fn decide(sources: &mut Sources, now_us: i64, gap_grace_us: i64) -> Vec<Body> {
    let mut bodies = Vec::new();
    let mut changed: Vec<(SourceName, Option<Boot>)> = Vec::new();
    for (from, source) in sources.iter_mut() {
        if bodies.len() >= limits::GROUP_EVENTS_MAX {
            break;
        }
        for (boot, run) in &mut source.boots {
            let holes = run.give_up(now_us, gap_grace_us);
            if !holes.is_empty() {
                changed.push((from.clone(), Some(*boot)));
            }
            bodies.extend(holes.into_iter().map(|(first_seq, last_seq)| {
                Body::GivenUp(GivenUp { from: from.clone(), boot: *boot, first_seq, last_seq })
            }));
        }
        if source.falls_silent(now_us) {
            changed.push((from.clone(), None));
            let newest = source.boots.keys().next_back();
            bodies.extend(
                newest.map(|boot| Body::Silent(Silent { from: from.clone(), boot: *boot })),
            );
        }
    }
    for (from, boot) in changed {
        sources.touch(&from, boot);
    }
    bodies
}
