//! What became of an acceptance: its effect, as told with it or by a follow-up.
//!
//! A follow-up tells the fate of the newest acceptance before it of the same source, else of any
//! source; with the same ref, where it names one. Where one acceptance fits, no order is needed;
//! where several fit and their order is not known, it tells nothing and is counted. The latest
//! one wins. Follow-ups are a set beside the acceptances: what they come to is found anew each time
//! that a key is judged, so that it does not matter what was heard first.

use serde::{Deserialize, Serialize};

use super::facts::{ACCEPTANCES_MAX, Acceptance, SignatureFacts, push_newest};
use super::order::{Moment, is_before};
use super::rule::Context;
use super::settle_groups::Counted;
use super::source::Sources;
use crate::outcome::{Effect, Event, GuardMode, Id};

/// Follow-ups of one key kept: the newest, two for each acceptance kept (pending, then done).
const REPORTS_MAX: usize = 2 * ACCEPTANCES_MAX;

/// What few acceptances carry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Rare {
    /// The room whose book the money went to, where that is not the signature's.
    pub(super) booked_room: Option<Id>,
    /// The ref that it undoes.
    pub(super) reversal_of: Option<Id>,
    /// When it was heard that its effect failed or is not known.
    pub(super) heard_us: Option<i64>,
    /// The follow-up that told its fate.
    pub(super) reported: Option<Report>,
    /// How it is counted as a booking past the guard.
    pub(super) bypass: Option<Counted>,
}

/// A follow-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) at: Moment,
    pub(super) received_us: i64,
    pub(super) effect: Effect,
    pub(super) reference: Option<Id>,
}

/// The follow-ups of a key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reports {
    pub(super) newest: Vec<Report>,
    /// Some could not be told to whom they belong, and that was counted.
    pub(super) unordered: bool,
    /// Some were of no acceptance that was heard in time, and that was counted.
    pub(super) unmatched: bool,
}

impl Rare {
    /// What is rare about an acceptance; `None` for nearly all.
    pub(super) fn of(event: &Event, received_us: i64) -> Option<Box<Self>> {
        let elsewhere = |room: &&Id| event.signature.room().is_some_and(|own| own != *room);
        let in_doubt = matches!(event.effect, Some(Effect::Failed | Effect::Unknown));
        let rare = Self {
            booked_room: event.booked_room.as_ref().filter(elsewhere).cloned(),
            reversal_of: event.reversal_of.clone(),
            heard_us: in_doubt.then_some(received_us),
            reported: None,
            bypass: None,
        };
        (rare != Self::default()).then(|| Box::new(rare))
    }
}

impl Acceptance {
    /// Whether the money moved, as last told.
    pub(super) fn effect(&self) -> Option<Effect> {
        self.report().map_or(self.effect, |report| Some(report.effect))
    }

    /// The money did not move.
    pub(super) fn failed(&self) -> bool {
        self.effect() == Some(Effect::Failed)
    }

    /// Whether the money moved is not known.
    pub(super) fn is_unknown(&self) -> bool {
        self.effect() == Some(Effect::Unknown)
    }

    /// The money moved, as far as anybody says.
    pub(super) fn stands(&self) -> bool {
        !self.failed() && !self.is_unknown()
    }

    /// Nothing about it by itself is a matter of any rule.
    pub(super) fn is_plain(&self) -> bool {
        self.stands() && self.mode != Some(GuardMode::Off) && self.booked_room().is_none()
    }

    /// The follow-up that told its fate.
    pub(super) fn report(&self) -> Option<&Report> {
        self.rare.as_ref().and_then(|rare| rare.reported.as_ref())
    }

    /// The room whose book the money went to, where that is not the signature's.
    pub(super) fn booked_room(&self) -> Option<&Id> {
        self.rare.as_ref().and_then(|rare| rare.booked_room.as_ref())
    }

    /// The ref that it undoes.
    pub(super) fn reversal_of(&self) -> Option<&Id> {
        self.rare.as_ref().and_then(|rare| rare.reversal_of.as_ref())
    }

    /// When its fate was told.
    pub(super) fn fate_at(&self) -> &Moment {
        self.report().map_or(&self.at, |report| &report.at)
    }

    /// From when on a grace counts that waits for its fate to change.
    pub(super) fn fate_since_us(&self, context: Context<'_>) -> i64 {
        let heard_us = self.rare.as_ref().and_then(|rare| rare.heard_us);
        let received_us = match self.report() {
            Some(report) => report.received_us,
            None => heard_us.unwrap_or(self.at.at_us),
        };
        context.since_us(self.fate_at(), received_us)
    }
}

impl SignatureFacts {
    /// Takes a follow-up.
    pub(super) fn report(&mut self, event: &Event, at: Moment, received_us: i64) {
        let Some(effect) = event.effect else { return };
        let report = Report { at, received_us, effect, reference: event.reference.clone() };
        let reports = self.reports.get_or_insert_default();
        let _ = push_newest(&mut reports.newest, report, REPORTS_MAX, |report| &report.at);
    }
}

/// Finds anew what the follow-ups of a key come to. Returns whether it is to be counted that some
/// could not be told to whom they belong.
pub(super) fn apply(sources: &Sources, facts: &mut SignatureFacts) -> bool {
    let Some(reports) = facts.reports.as_mut() else { return false };
    let mut told: Vec<Vec<&Report>> = vec![Vec::new(); facts.accepted.len()];
    let mut unordered = false;
    // What is older than the follow-ups that are kept stands as it was told.
    let oldest = reports.newest.first().filter(|_| reports.newest.len() >= REPORTS_MAX);
    for report in &reports.newest {
        match meant(sources, &facts.accepted, report) {
            Meant::Nobody | Meant::Same => {}
            Meant::NotKnown => unordered = true,
            Meant::This(i) => {
                if let Some(told) = told.get_mut(i) {
                    told.push(report);
                }
            }
        }
    }
    for (accepted, told) in facts.accepted.iter_mut().zip(told) {
        let latest = latest(sources, &told);
        unordered |= latest.is_none() && !told.is_empty();
        match latest {
            Some(report) => {
                accepted.rare.get_or_insert_default().reported = Some(report.clone());
            }
            None => {
                let let_go =
                    |told: &Report| oldest.is_some_and(|kept| told.at.list_order(&kept.at).is_lt());
                if let Some(rare) = accepted.rare.as_mut()
                    && !rare.reported.as_ref().is_some_and(let_go)
                {
                    rare.reported = None;
                }
            }
        }
    }
    let count = unordered && !reports.unordered;
    reports.unordered = unordered;
    count
}

/// When a follow-up of no acceptance that was heard has waited long enough for it; `None` if there
/// is none.
pub(super) fn unmatched_due_us(context: Context<'_>, facts: &SignatureFacts) -> Option<i64> {
    let reports = facts.reports.as_ref().filter(|reports| !reports.unmatched)?;
    let meant_nobody =
        |report: &&Report| matches!(meant(context.sources, &facts.accepted, report), Meant::Nobody);
    let since_us = |report: &Report| context.since_us(&report.at, report.received_us);
    let first_us = reports.newest.iter().filter(meant_nobody).map(since_us).min()?;
    Some(first_us.saturating_add(context.settings.block_grace_us))
}

enum Meant {
    /// The one at this place.
    This(usize),
    /// None that was heard.
    Nobody,
    /// One of several, and whichever it means, nothing changes.
    Same,
    /// One of several, in an order that is not known.
    NotKnown,
}

/// Whose fate a follow-up tells.
fn meant(sources: &Sources, accepted: &[Acceptance], report: &Report) -> Meant {
    let named = |accepted: &Acceptance| {
        report.reference.is_none() || accepted.reference == report.reference
    };
    let fits: Vec<(usize, &Acceptance)> = accepted
        .iter()
        .enumerate()
        .filter(|(_, accepted)| named(accepted) && !is_before(sources, &report.at, &accepted.at))
        .collect();
    if let [(i, _)] = fits.as_slice() {
        return Meant::This(*i);
    }
    let own = |(_, accepted): &&(usize, &Acceptance)| accepted.at.source == report.at.source;
    let same_source: Vec<_> = fits.iter().filter(own).copied().collect();
    let among = if same_source.is_empty() { fits } else { same_source };
    let newest = among.iter().find(|(i, newest)| {
        let is_older =
            |(j, other): &(usize, &Acceptance)| i == j || is_before(sources, &other.at, &newest.at);
        is_before(sources, &newest.at, &report.at) && among.iter().all(is_older)
    });
    match newest {
        Some((i, _)) => Meant::This(*i),
        None if among.is_empty() => Meant::Nobody,
        None if among.iter().all(|(_, other)| other.effect == Some(report.effect)) => Meant::Same,
        None => Meant::NotKnown,
    }
}

/// The latest of several; `None` if they differ in an order that is not known.
fn latest<'a>(sources: &Sources, told: &[&'a Report]) -> Option<&'a Report> {
    let overruled = |report: &Report| {
        told.iter()
            .any(|other| other.effect != report.effect && is_before(sources, &report.at, &other.at))
    };
    let mut last = told.iter().filter(|report| !overruled(report));
    // Of several that say the same, the first: that is when it became known.
    let first = last.next()?;
    last.all(|other| other.effect == first.effect).then_some(*first)
}
