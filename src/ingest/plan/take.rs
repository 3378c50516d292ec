//! Where outcomes and transitions go different ways: an outcome is a word of its guard and belongs
//! to a ledger; a transition is neither.

use super::{Planner, Verdict, rejection_of};
use crate::ingest::item::Rejection;
use crate::ingest::said::Said;
use crate::ingest::sets::Known;
use crate::ingest::sources::Sources;
use crate::ingest::tally::Tally;
use crate::outcome::{Boot, Event, Transition};

/// Something that can be taken.
pub(super) trait Take: Said + Sized {
    /// It came without a number.
    fn hear(&self, sources: &mut Sources, received_us: i64) -> Result<(), Rejection>;
    /// Whether it may be new.
    fn find_room(&self, sources: &Sources) -> Result<(), Rejection>;
    /// It came with a number: what the sets say.
    fn judge(&self, planner: &mut Planner<'_>, boot: Boot, seq: u64) -> Verdict;
    /// It is new.
    fn count(&self, sources: &mut Sources, tally: &mut Tally);
}

impl Take for Event {
    fn hear(&self, sources: &mut Sources, received_us: i64) -> Result<(), Rejection> {
        sources.hear(&self.from, received_us).ok_or(Rejection::TooMany)?.settle();
        Ok(())
    }

    fn find_room(&self, sources: &Sources) -> Result<(), Rejection> {
        match sources.ledgers.have_room([self.ledger().as_str()]) {
            true => Ok(()),
            false => Err(Rejection::TooManyLedgers),
        }
    }

    fn judge(&self, planner: &mut Planner<'_>, boot: Boot, seq: u64) -> Verdict {
        let received_us = planner.end.received_us;
        let room = self.find_room(planner.sources);
        let source = match planner.sources.hear_boot(&self.from, boot, seq, received_us) {
            Ok(source) => source,
            Err(refused) => return Verdict::Rejected(rejection_of(refused)),
        };
        let Some(run) = source.boots.get_mut(&boot) else {
            return Verdict::Rejected(Rejection::TooMany);
        };
        let boot_id = run.id;
        let verdict = match (run.sets.known(seq), room) {
            (Known::New, Err(rejection)) => Verdict::Rejected(rejection),
            (Known::New, Ok(())) => {
                let age_us = received_us.saturating_sub(self.occurred_us);
                let grace_us = planner.parts.gap_grace_us;
                let abandoned = run.receive(seq, age_us, received_us, grace_us);
                Verdict::New { boot_id, abandoned }
            }
            (known, _) => Verdict::Known { boot_id, lost: known == Known::Lost },
        };
        source.settle();
        verdict
    }

    fn count(&self, sources: &mut Sources, tally: &mut Tally) {
        tally.write(self);
        sources.ledgers.add(&self.ledger());
    }
}

impl Take for Transition {
    fn hear(&self, sources: &mut Sources, received_us: i64) -> Result<(), Rejection> {
        sources.transitions.hear(&self.from, None, received_us).map(|_| ())
    }

    fn find_room(&self, _: &Sources) -> Result<(), Rejection> {
        Ok(())
    }

    fn judge(&self, planner: &mut Planner<'_>, boot: Boot, seq: u64) -> Verdict {
        let received_us = planner.end.received_us;
        match planner.sources.transitions.hear(&self.from, Some(boot), received_us) {
            Err(rejection) => Verdict::Rejected(rejection),
            Ok(run) => match run.receive(seq) {
                Known::New => Verdict::New { boot_id: run.id, abandoned: Vec::new() },
                known => Verdict::Known { boot_id: run.id, lost: known == Known::Lost },
            },
        }
    }

    fn count(&self, _: &mut Sources, tally: &mut Tally) {
        tally.move_on(self);
    }
}
