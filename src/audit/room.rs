//! `version_regression`, `torn_state`, `counter_wrap`: what the versions of a room's state say.
//!
//! Versions count per room of a player. Only the first acceptance of a settlement tells one, if it
//! stands and was in turn: what comes late or again tells that of its own time. A version is
//! compared with the one before it; where the order of the two is not known and the answer hangs
//! on it, nothing is said. Two contents of one version need no order.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::finding::{Coverage, OrderKnown, Severity, Witness};
use super::kind::Kind;
use super::order::{Moment, order};
use super::quiet::QuietRows;
use super::row::{EXAMPLES_MAX, Row, Verdict};
use super::rule::{Context, Judged};
use super::source::Sources;
use super::table::Stored;
use super::witness::Evidence;
use crate::outcome::{Amounts, Id, Outcome, Signature};

/// States of a room kept, the newest: at two settlements a minute, minutes of what pushes may
/// bring out of order. They are written with each settlement of the room.
const STATES_MAX: usize = 8;
/// Counters of at least so many states go round; 3 or 7 are versions like others.
const WRAP_MIN: u64 = 255;

/// The kinds that are told here.
pub(super) const KINDS: [Kind; 3] = [Kind::VersionRegression, Kind::TornState, Kind::CounterWrap];

/// What one settlement said of the room's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RoomState {
    pub(super) at: Moment,
    pub(super) received_us: i64,
    pub(super) signature: Signature,
    pub(super) version: u64,
    pub(super) content: Option<Id>,
    /// It was surely the first acceptance of its settlement, and stands.
    pub(super) counts: bool,
}

/// What is known of one room of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoomFacts {
    pub(super) session: Option<Id>,
    pub(super) room: Id,
    /// By [`Moment::list_order`].
    states: Vec<RoomState>,
    /// What was found among those that are kept no more.
    before: BTreeMap<Kind, u64>,
    pub(super) rows: QuietRows,
    /// The order of two states is missing, and that was counted.
    pub(super) order_missing: bool,
}

impl Stored for RoomFacts {
    fn rows(&self) -> &[Row] {
        self.rows.rows()
    }

    fn take_back(&mut self, rows: Vec<Row>) {
        self.rows.take_back(rows);
    }
}

/// Two states that contradict each other.
struct Found<'a> {
    kind: Kind,
    older: &'a RoomState,
    newer: &'a RoomState,
}

/// What contradicts, and whether the order of two states could have changed that.
struct Contradictions<'a> {
    found: Vec<Found<'a>>,
    order_missing: bool,
}

impl RoomFacts {
    pub(super) fn new(session: Option<Id>, room: Id) -> Self {
        let (before, rows) = (BTreeMap::new(), QuietRows::default());
        Self { session, room, states: Vec::new(), before, rows, order_missing: false }
    }

    /// Takes what the first acceptance of a settlement says, in place of what an acceptance said
    /// that was thought to be the first. Returns `false` if it comes too late to be compared.
    pub(super) fn tell(
        &mut self,
        sources: &Sources,
        signature: &Signature,
        state: Option<RoomState>,
    ) -> bool {
        self.states.retain(|old| old.signature != *signature);
        let Some(state) = state else { return true };
        let place = self.states.partition_point(|old| old.at.list_order(&state.at).is_lt());
        if place == 0 && self.states.len() >= STATES_MAX {
            return false;
        }
        self.states.insert(place, state);
        if self.states.len() > STATES_MAX {
            self.let_go_of_oldest(sources);
        }
        true
    }

    /// Brings what a settlement told in line with the fate of its acceptances. Returns whether that
    /// changes anything.
    pub(super) fn set_counts(&mut self, signature: &Signature, counts: bool) -> bool {
        let told = self.states.iter_mut().find(|state| state.signature == *signature);
        let changed = told.filter(|state| state.counts != counts);
        changed.map(|state| state.counts = counts).is_some()
    }

    /// What the oldest state contradicted stays counted.
    fn let_go_of_oldest(&mut self, sources: &Sources) {
        let counts = |states: &[RoomState]| {
            let found = contradictions(sources, states).found;
            KINDS.map(|kind| found.iter().filter(|found| found.kind == kind).count() as u64)
        };
        let with = counts(&self.states);
        self.states.remove(0);
        let without = counts(&self.states);
        for ((kind, with), without) in KINDS.into_iter().zip(with).zip(without) {
            if with > without {
                *self.before.entry(kind).or_default() += with - without;
            }
        }
    }
}

/// The states that may be the one before `newer`: those known to be earlier with none known to
/// lie between, and those whose order to it is not known.
fn just_before<'a>(
    sources: &Sources,
    states: &[&'a RoomState],
    newer: &RoomState,
) -> (Vec<&'a RoomState>, Vec<&'a RoomState>) {
    let is_before =
        |a: &RoomState, b: &RoomState| order(sources, &a.at, &b.at).map(|(o, _)| o.is_lt());
    let others = || states.iter().copied().filter(|state| state.at.position != newer.at.position);
    let before: Vec<&RoomState> =
        others().filter(|state| is_before(state, newer) == Some(true)).collect();
    let is_last =
        |state: &&RoomState| !before.iter().any(|other| is_before(state, other) == Some(true));
    let last = before.iter().copied().filter(is_last).collect();
    (last, others().filter(|state| is_before(state, newer).is_none()).collect())
}

fn contradictions<'a>(sources: &Sources, states: &'a [RoomState]) -> Contradictions<'a> {
    let states: Vec<&RoomState> = states.iter().filter(|state| state.counts).collect();
    let mut found = torn(&states);
    let mut order_missing = false;
    for newer in states.iter().copied() {
        let (before, unsure) = just_before(sources, &states, newer);
        let higher = |older: &&&RoomState| older.version > newer.version;
        let (certain, possible) =
            (before.iter().filter(higher).count(), unsure.iter().filter(higher).count());
        if certain == 0 && possible == 0 {
            continue;
        }
        let Some(older) = before.iter().max_by_key(|older| older.version) else {
            order_missing = true;
            continue;
        };
        if certain < before.len() || possible < unsure.len() {
            order_missing = true;
            continue;
        }
        found.push(Found { kind: Kind::VersionRegression, older, newer });
        if is_limit(older.version) {
            found.push(Found { kind: Kind::CounterWrap, older, newer });
        }
    }
    Contradictions { found, order_missing }
}

/// Contents of one version beyond its first.
fn torn<'a>(states: &[&'a RoomState]) -> Vec<Found<'a>> {
    let mut found = Vec::new();
    for (i, newer) in states.iter().copied().enumerate() {
        let earlier = states.get(..i).unwrap_or_default().iter().copied();
        let same: Vec<&RoomState> = earlier
            .filter(|older| older.version == newer.version && older.content.is_some())
            .collect();
        let is_new = newer.content.is_some() && same.iter().all(|old| old.content != newer.content);
        if let Some(older) = same.first().copied().filter(|_| is_new) {
            found.push(Found { kind: Kind::TornState, older, newer });
        }
    }
    found
}

/// Whether a counter of this value may go round next.
fn is_limit(version: u64) -> bool {
    version >= WRAP_MIN && version.checked_add(1).is_none_or(u64::is_power_of_two)
}

/// What is to be said of a room, and whether the order of two states is missing.
pub(super) struct Said {
    pub(super) judged: Vec<Judged>,
    pub(super) order_missing: bool,
}

/// Judges one room.
pub(super) fn judge(context: Context<'_>, facts: &RoomFacts) -> Said {
    let Contradictions { found, order_missing } = contradictions(context.sources, &facts.states);
    let judged = KINDS.map(|kind| {
        let found: Vec<&Found<'_>> = found.iter().filter(|found| found.kind == kind).collect();
        judge_kind(context, facts, kind, &found)
    });
    Said { judged: judged.into(), order_missing }
}

fn judge_kind(context: Context<'_>, facts: &RoomFacts, kind: Kind, found: &[&Found<'_>]) -> Judged {
    let nothing = Judged::nothing(kind, "disproved");
    // What was accepted before either of the two may be in a push that is yet to come.
    let due_us = |found: &Found<'_>| {
        let since_us = |state: &RoomState| context.since_us(&state.at, state.received_us);
        let both_us = since_us(found.older).max(since_us(found.newer));
        both_us.saturating_add(context.settings.block_grace_us)
    };
    let waiting: Vec<i64> = found
        .iter()
        .map(|found| due_us(found))
        .filter(|due_us| *due_us > context.watermark_us)
        .collect();
    let all = facts.before.get(&kind).copied().unwrap_or(0).saturating_add(found.len() as u64);
    let settled = all.saturating_sub(waiting.len() as u64);
    let (count, confirmed) = facts.rows.shown(kind, settled, all);
    let verdict = verdict(context, kind, found).or_else(|| facts.rows.told(kind));
    Judged {
        verdict: verdict.map(|verdict| Verdict { count, confirmed, ..verdict }),
        due_us: waiting.into_iter().min(),
        ..nothing
    }
}

fn verdict(context: Context<'_>, kind: Kind, found: &[&Found<'_>]) -> Option<Verdict> {
    let (first, last) = (found.first()?, found.last()?);
    let sources = context.sources;
    let known = |found: &&Found<'_>| {
        order(sources, &found.older.at, &found.newer.at)
            .map_or(OrderKnown::Unproven, |(_, known)| known)
    };
    let from = sources.name(last.newer.at.source)?;
    let mut witnesses: Vec<Witness> = Vec::new();
    for found in found.iter().rev() {
        let both = [("state", found.older), ("state_after", found.newer)];
        let both = both.into_iter().filter_map(|(role, state)| witness(sources, role, state));
        witnesses.extend(both);
    }
    witnesses.truncate(EXAMPLES_MAX);
    let moments = || found.iter().flat_map(|found| [found.older.at.at_us, found.newer.at.at_us]);
    Some(Verdict {
        count: 0,
        amounts: Amounts::default(),
        players: 1,
        severity: if kind == Kind::CounterWrap { Severity::Info } else { Severity::Warning },
        confirmed: false,
        cause: cause(first).to_owned(),
        order: found.iter().map(known).max()?,
        coverage: Coverage::Full,
        service: from.service.to_string(),
        env: from.env.to_string(),
        source: Some(from.source.clone()),
        first_us: moments().min()?,
        last_us: moments().max()?,
        witnesses,
    })
}

fn cause(found: &Found<'_>) -> &'static str {
    let elsewhere = found.older.at.source != found.newer.at.source;
    match found.kind {
        Kind::VersionRegression if is_limit(found.older.version) => "counter_wrap",
        _ if elsewhere => "two_sources",
        _ => "one_source",
    }
}

fn witness(sources: &Sources, role: &str, state: &RoomState) -> Option<Witness> {
    let text = match &state.content {
        Some(content) => format!("state version {}, hash {content}", state.version),
        None => format!("state version {}", state.version),
    };
    let evidence = Evidence::about_the_subject(sources).moment(role, &state.at)?;
    Some(Witness {
        outcome: Some(Outcome::Processed),
        signature: Some(state.signature.clone()),
        text: Some(text),
        ..evidence
    })
}
