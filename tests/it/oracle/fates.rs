//! What became of an acceptance, where that was told later by an event of its own.
//!
//! It tells the fate of the newest acceptance before it of the same source, else of any; with the
//! same ref, if it names one. The latest wins.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::Kind;
use dedupwatch::outcome::{Event, GuardMode, Outcome};

use super::verdict::Verdicts;
use super::world::{Key, World, before, key_of};

/// What was told later, and what is not known all the same.
#[derive(Default)]
pub struct Fates {
    /// An acceptance, and what told its fate at last.
    told: Vec<(Event, Event)>,
    /// Settlements of which the fate of some acceptance hangs on an order that is not known.
    unclear: BTreeSet<Key>,
}

impl Fates {
    /// Finds them, and brings the effects of the acceptances in line.
    pub fn apply(events: &mut [Event]) -> Self {
        let mut fates = Self::default();
        let mut told: BTreeMap<usize, Vec<Event>> = BTreeMap::new();
        for report in events.iter().filter(|it| it.outcome == Outcome::EffectReported) {
            match possible(events, report).as_slice() {
                [] => {}
                [one] => told.entry(*one).or_default().push(report.clone()),
                _ => {
                    fates.unclear.insert(key_of(report, &report.signature));
                }
            }
        }
        for (at, reports) in told {
            let overruled = |one: &&Event| {
                reports.iter().any(|other| other.effect != one.effect && before(one, other))
            };
            let last: Vec<&Event> = reports.iter().filter(|one| !overruled(one)).collect();
            let accepted = &mut events[at];
            if last.iter().any(|it| it.effect != last[0].effect) {
                fates.unclear.insert(key_of(accepted, &accepted.signature));
                continue;
            }
            accepted.effect = last[0].effect;
            if let Some(first) = last.iter().min_by_key(|it| it.occurred_us) {
                fates.told.push((accepted.clone(), (*first).clone()));
            }
        }
        fates
    }

    /// What told the fate of an acceptance; itself, if nothing did later.
    pub fn of<'a>(&'a self, accepted: &'a Event) -> &'a Event {
        let told = self.told.iter().find(|(one, _)| one == accepted);
        told.map_or(accepted, |(_, report)| report)
    }
}

/// The acceptances whose fate it may tell.
fn possible(events: &[Event], report: &Event) -> Vec<usize> {
    let key = key_of(report, &report.signature);
    let fits = |at: &usize| {
        let it = &events[*at];
        it.is_acceptance()
            && key_of(it, &it.signature) == key
            && (report.reference.is_none() || report.reference == it.reference)
            && !before(report, it)
    };
    let fitting: Vec<usize> = (0..events.len()).filter(fits).collect();
    let own: Vec<usize> =
        fitting.iter().copied().filter(|at| events[*at].from == report.from).collect();
    let among = if own.is_empty() { fitting } else { own };
    let is_newest = |at: &usize| {
        !among
            .iter()
            .any(|other| before(&events[*at], &events[*other]) && before(&events[*other], report))
    };
    among.iter().copied().filter(is_newest).collect()
}

/// Of settlements whose acceptances may have failed or not, nothing that hangs on it is compared.
pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let of_keys = [
        Kind::DuplicateLeak,
        Kind::IndeterminateOutcome,
        Kind::AcceptWithoutEffect,
        Kind::BlockAfterFailedEffect,
        Kind::CrossRoomBooking,
        Kind::AmbiguousEqual,
        Kind::RetryStorm,
        Kind::SignatureReused,
    ];
    for key in &world.fates.unclear {
        of_keys.iter().for_each(|kind| verdicts.unsure(*kind, key));
        let of_player = |it: &&Event| it.ledger() == key.ledger && it.player == key.player;
        let of_key = |it: &&Event| key_of(it, &it.signature) == *key;
        for event in world.events.iter().filter(of_player) {
            // What its window held.
            let other = key_of(event, &event.signature);
            verdicts.unsure(Kind::FalseBlock, &other);
            verdicts.unsure(Kind::UnverifiableBlock, &other);
            verdicts.unsure(Kind::StuckClaim, &other);
        }
        for event in world.events.iter().filter(of_player).filter(of_key) {
            for reference in event.reference.iter().chain(&event.reversal_of) {
                verdicts.unsure(Kind::MissedDuplicate, &super::refs::subject(event, reference));
            }
            for other in world.events.iter().filter(of_player) {
                if event.reversal_of.is_some() && event.reversal_of == other.reference {
                    let other = key_of(other, &other.signature);
                    verdicts.unsure(Kind::DuplicateLeak, &other);
                }
            }
            if let Some(room) = super::state::subject(event) {
                verdicts.unsure(Kind::VersionRegression, &room);
                verdicts.unsure(Kind::TornState, &room);
            }
            if event.guard_mode == Some(GuardMode::Off) {
                verdicts.unsure(Kind::GuardBypass, &(&event.from, "guard_off"));
            }
        }
    }
}
