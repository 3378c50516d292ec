//! What a group does not take: told to the sender each time, a record once, and a number that is
//! not waited for.

use super::Planner;
use crate::ingest::item::{Ready, Rejection, reject_heartbeat};
use crate::ingest::keys::refusal_key;
use crate::ingest::said::Said;
use crate::ingest::sources::BootRefused;
use crate::ingest::{Answer, Refusal};
use crate::outcome::{Body, Boot, GivenUp, Heartbeat, SourceName};
use crate::store::StoreError;
use crate::store::identity::Key;

impl Planner<'_> {
    pub(super) async fn reject<T: Said>(
        &mut self,
        index: usize,
        ready: &Ready<T>,
        rejection: Rejection,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        let refusal = ready.rejected(rejection, self.parts.store.hash());
        self.refuse(index, &refusal, answer).await
    }

    /// A heartbeat that is right in itself and not taken.
    pub(super) async fn reject_heartbeat(
        &mut self,
        index: usize,
        heartbeat: &Heartbeat,
        rejection: Rejection,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        let refusal = reject_heartbeat(heartbeat, rejection, self.parts.store.hash());
        self.refuse(index, &refusal, answer).await
    }

    /// Something that is not taken: a place where the audit is blind, and a record, once.
    pub(super) async fn refuse(
        &mut self,
        index: usize,
        refusal: &Refusal,
        answer: &mut Answer,
    ) -> Result<(), StoreError> {
        let refused = &refusal.refused;
        answer.reject(index, &refused.code, &refused.message);
        self.tally.reject(&refused.code, refused.from.as_ref());
        let abandoned = self.note_refused(refusal);
        if self.note(refusal_key(refusal, self.parts.store.hash())).await? {
            let mut refused = refused.clone();
            let ledgers = &mut self.sources.ledgers;
            refused.ledger = refused.ledger.filter(|name| ledgers.add_refused(name));
            self.record(&Body::Refused(Box::new(refused)))?;
        }
        match (&refused.from, refused.sequence) {
            (Some(from), Some((boot, _))) => self.abandon(from, boot, &abandoned),
            _ => Ok(()),
        }
    }

    fn note_refused(&mut self, refusal: &Refusal) -> Vec<(u64, u64)> {
        let heard = refusal.refused.from.as_ref().filter(|_| !refusal.is_transition);
        let Some(from) = heard else { return Vec::new() };
        let received_us = self.end.received_us;
        // Whatever a broken sender names, it takes no room from those that send what is right.
        let Some(source) = self.sources.hear_known(from, received_us) else { return Vec::new() };
        source.settle();
        let Some((boot, seq)) = refusal.refused.sequence else { return Vec::new() };
        let Ok(source) = self.sources.hear_refused(from, boot, seq, received_us) else {
            return Vec::new();
        };
        let run = source.boots.get_mut(&boot);
        let abandoned = run.map(|run| run.refuse(seq, received_us)).unwrap_or_default();
        source.settle();
        abandoned
    }

    /// Holes that are lost are not waited for any more.
    pub(super) fn abandon(
        &mut self,
        from: &SourceName,
        boot: Boot,
        holes: &[(u64, u64)],
    ) -> Result<(), StoreError> {
        for &(first_seq, last_seq) in holes {
            let given_up = GivenUp { from: from.clone(), boot, first_seq, last_seq };
            self.record(&Body::GivenUp(given_up))?;
        }
        Ok(())
    }

    /// Whether this is to become a record: the first time it is.
    pub(super) async fn note(&mut self, key: Key) -> Result<bool, StoreError> {
        let noted = match self.notes.get(&key) {
            Some(noted) => *noted,
            None => !self.parts.store.known_notes(&[key]).await?.is_empty(),
        };
        self.notes.insert(key, true);
        if !noted {
            self.new_notes.push(key);
        }
        Ok(!noted)
    }
}

pub(super) fn rejection_of(refused: BootRefused) -> Rejection {
    match refused {
        BootRefused::OtherSort => Rejection::BootSort,
        BootRefused::TooMany => Rejection::TooMany,
    }
}
