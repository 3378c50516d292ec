//! What the audit remembers of settlements and refs: sets of what was said, never the order
//! in which it came. Verdicts are functions of these sets, so they don't depend on how pushes
//! were cut and grouped.
//!
//! Of these there are many, so what is rare is behind a box, and they are stored without the names
//! of their fields: see [`Stored`] before you change one.

use serde::{Deserialize, Serialize};

use super::fate::{Rare, Reports};
use super::kind::Kind;
use super::order::{Moment, is_before};
use super::row::Row;
use super::source::Sources;
use super::table::Stored;
use crate::outcome::{
    Amounts, Effect, Event, GuardMode, Id, Net, Outcome, Reason, Signature, Window,
};

/// Acceptances of one key kept singly; more are counted.
pub(super) const ACCEPTANCES_MAX: usize = 64;
/// Blocks of one key kept beside the first: the newest, whose windows may be replayed.
const BLOCKS_MAX: usize = 4;
/// Blocks of one key kept beside those, each the first of its sort: a key is delivered again to
/// one or two more sources, or under one or two more refs.
const BLOCK_SORTS_MAX: usize = 8;
/// Sources kept that did not know what became of one key.
const UNKNOWN_SOURCES_MAX: usize = 8;
/// So many refusals of one key are many (audit.md).
pub(super) const BLOCKS_MANY: u64 = 3;
/// Evictions of one key kept singly: the newest.
const EVICTED_MAX: usize = 8;

/// One booking of a settlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Acceptance {
    pub(super) at: Moment,
    pub(super) late: bool,
    pub(super) net: Net,
    pub(super) reference: Option<Id>,
    pub(super) effect: Option<Effect>,
    pub(super) mode: Option<GuardMode>,
    pub(super) trace_id: Option<Id>,
    pub(super) window: Option<Window>,
    /// What few carry.
    pub(super) rare: Option<Box<Rare>>,
}

/// One refusal of a settlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Block {
    pub(super) at: Moment,
    pub(super) received_us: i64,
    pub(super) reason: Option<Reason>,
    pub(super) mode: Option<GuardMode>,
    pub(super) window: Option<Window>,
    pub(super) trace_id: Option<Id>,
    pub(super) reference: Option<Id>,
}

/// The refusals of a key: how many, and the ones that verdicts need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Blocks {
    pub(super) count: u64,
    pub(super) last_us: i64,
    /// The first by time.
    pub(super) first: Block,
    /// The first of each other sort: of another source, under another ref, for another reason.
    pub(super) others: Vec<Block>,
    /// The first whose window was shown not to hold the key.
    pub(super) proven: Option<Block>,
    /// The newest of the others, whose windows may still be replayed when a hole fills.
    pub(super) newest: Vec<Block>,
}

/// The outcomes `unknown` of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Unknowns {
    pub(super) count: u64,
    pub(super) last_us: i64,
    pub(super) first: Block,
    /// The first of each source: their order to a block is told apart.
    pub(super) firsts: Vec<Moment>,
    /// Each was only held back for its turn.
    pub(super) only_held: bool,
}

/// One eviction of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Evicted {
    pub(super) at: Moment,
    pub(super) reason: Option<Reason>,
}

/// What is known of one settlement of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureFacts {
    pub(super) signature: Signature,
    /// By [`Moment::list_order`].
    pub(super) accepted: Vec<Acceptance>,
    /// Beyond those kept singly.
    pub(super) more_accepted: u64,
    pub(super) more_amounts: Option<Box<Amounts>>,
    pub(super) blocks: Option<Box<Blocks>>,
    pub(super) unknowns: Option<Box<Unknowns>>,
    pub(super) evicted: Vec<Evicted>,
    /// Kept apart from the others by the store.
    #[serde(skip)]
    pub(super) rows: Vec<Row>,
    /// Follow-ups that tell the fate of an acceptance.
    pub(super) reports: Option<Box<Reports>>,
    /// Rules whose answer hangs on an order that is not known, and that was counted.
    pub(super) unordered: Vec<Kind>,
}

impl Stored for SignatureFacts {
    fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn take_back(&mut self, rows: Vec<Row>) {
        self.rows = rows;
    }
}

impl SignatureFacts {
    pub(super) fn new(signature: Signature) -> Self {
        Self {
            signature,
            accepted: Vec::new(),
            more_accepted: 0,
            more_amounts: None,
            blocks: None,
            unknowns: None,
            evicted: Vec::new(),
            rows: Vec::new(),
            reports: None,
            unordered: Vec::new(),
        }
    }

    /// The amount of an opaque key is no part of what it is, so it may be told otherwise each
    /// time: until it is booked the largest counts, whichever was heard first.
    pub(super) fn tell(&mut self, signature: &Signature) {
        let (Signature::Opaque { net, .. }, true) = (&mut self.signature, self.accepted.is_empty())
        else {
            return;
        };
        let size = |net: Net| (net.0.unsigned_abs(), net);
        if size(signature.net()) > size(*net) {
            *net = signature.net();
        }
    }

    /// Accepted once, its effect not in doubt, and nothing else but a replay that was refused: no
    /// rule has anything to say.
    pub(super) fn is_plain(&self) -> bool {
        self.accepted.len() <= 1
            && self.accepted.iter().all(Acceptance::is_plain)
            && self.rows.is_empty()
            && self.unknowns.is_none()
            && self.reports.is_none()
            && self.blocks.as_ref().is_none_or(|blocks| self.is_plain_replay(blocks))
    }

    /// Refused after the acceptance by the same source, for what it was.
    fn is_plain_replay(&self, blocks: &Blocks) -> bool {
        let after = |accepted: &Acceptance| {
            accepted.at.source == blocks.first.at.source
                && accepted.at.list_order(&blocks.first.at).is_lt()
                && (blocks.first.reference.is_none()
                    || blocks.first.reference == accepted.reference)
        };
        let booked = match self.accepted.first() {
            Some(accepted) => after(accepted),
            None => !self.evicted.is_empty(),
        };
        booked && blocks.count < BLOCKS_MANY && blocks.others.is_empty()
    }

    /// What of it judging may change.
    pub(super) fn as_judged(&self) -> impl PartialEq + use<> {
        let proven = self.blocks.as_ref().is_some_and(|blocks| blocks.proven.is_some());
        let reports = self.reports.clone();
        let fates = reports.map(|reports| (reports, self.accepted.clone()));
        (self.rows.clone(), proven, self.unordered.clone(), fates)
    }

    /// Nobody told of it but once.
    pub(super) fn is_told_once(&self) -> bool {
        let count = |count: Option<u64>| count.unwrap_or_default();
        let blocks = count(self.blocks.as_ref().map(|blocks| blocks.count));
        let unknowns = count(self.unknowns.as_ref().map(|unknowns| unknowns.count));
        (self.accepted.len() as u64).saturating_add(blocks).saturating_add(unknowns) <= 1
    }

    /// Whether it was accepted, blocked or held at another moment that is not known to be later.
    pub(super) fn is_told_before(&self, sources: &Sources, at: &Moment) -> bool {
        let accepted = self.accepted.iter().map(|accepted| &accepted.at);
        let blocked = self.blocks.iter().map(|blocks| &blocks.first.at);
        let unknown = self.unknowns.iter().map(|unknowns| &unknowns.first.at);
        let others = accepted.chain(blocked).chain(unknown);
        others.filter(|other| *other != at).any(|other| !is_before(sources, at, other))
    }

    /// Whether it is known which acceptance was the first, and that one stands.
    pub(super) fn first_stands(&self, sources: &Sources) -> bool {
        self.accepted.split_first().is_some_and(|(first, others)| {
            first.stands() && others.iter().all(|other| is_before(sources, &first.at, &other.at))
        })
    }

    /// Takes an acceptance. Returns whether it is kept singly.
    pub(super) fn accept(&mut self, event: &Event, at: Moment, received_us: i64) -> bool {
        let stands = !matches!(event.effect, Some(Effect::Failed | Effect::Unknown));
        if self.accepted.len() >= ACCEPTANCES_MAX {
            // Those that never stood make room; what does not stand is not counted beyond.
            match self.accepted.iter().position(Acceptance::failed) {
                _ if !stands => return false,
                Some(i) => {
                    self.accepted.remove(i);
                }
                None => {}
            }
        }
        if let Some(blocks) = &mut self.blocks {
            blocks.newest.clear();
        }
        if self.accepted.len() >= ACCEPTANCES_MAX {
            self.more_accepted = self.more_accepted.saturating_add(1);
            let amounts = Amounts::surplus(event.signature.net());
            let more = self.more_amounts.get_or_insert_default();
            **more = more.plus(amounts);
            return false;
        }
        let place = self.accepted.partition_point(|other| other.at.list_order(&at).is_lt());
        // Most are booked once; a list would make room for four.
        self.accepted.reserve_exact(1);
        self.accepted.insert(
            place,
            Acceptance {
                at,
                late: event.outcome == Outcome::LateAccepted,
                net: event.signature.net(),
                reference: event.reference.clone(),
                effect: event.effect,
                mode: event.guard_mode,
                trace_id: event.trace_id.clone(),
                window: event.window,
                rare: Rare::of(event, received_us),
            },
        );
        if let (Signature::Opaque { net, .. }, Some(first)) =
            (&mut self.signature, self.accepted.first())
        {
            // An eviction or a block may not have told the amount.
            *net = first.net;
        }
        true
    }

    pub(super) fn block(&mut self, event: &Event, at: Moment, received_us: i64) {
        let block = Block::of(event, at, received_us);
        match &mut self.blocks {
            None => {
                self.blocks = Some(Box::new(Blocks {
                    count: 1,
                    last_us: block.at.at_us,
                    first: block,
                    others: Vec::new(),
                    proven: None,
                    newest: Vec::new(),
                }));
            }
            Some(blocks) => {
                blocks.count = blocks.count.saturating_add(1);
                blocks.last_us = blocks.last_us.max(block.at.at_us);
                let is_first = block.at.list_order(&blocks.first.at).is_lt();
                let other =
                    if is_first { std::mem::replace(&mut blocks.first, block) } else { block };
                blocks.sort_out(&other);
                // Of what was booked, no window is ever replayed.
                if self.accepted.is_empty() {
                    let _ = push_newest(&mut blocks.newest, other, BLOCKS_MAX, |other| &other.at);
                }
            }
        }
    }

    pub(super) fn unknown(&mut self, event: &Event, at: Moment, received_us: i64) {
        let first = Block::of(event, at, received_us);
        let held = matches!(event.reason, Some(Reason::Held | Reason::InProgress));
        match &mut self.unknowns {
            None => {
                let (last_us, firsts) = (first.at.at_us, vec![first.at.clone()]);
                let unknowns = Unknowns { count: 1, last_us, first, firsts, only_held: held };
                self.unknowns = Some(Box::new(unknowns));
            }
            Some(unknowns) => {
                unknowns.note(&first.at);
                unknowns.count = unknowns.count.saturating_add(1);
                unknowns.only_held &= held;
                unknowns.last_us = unknowns.last_us.max(first.at.at_us);
                if first.at.list_order(&unknowns.first.at).is_lt() {
                    unknowns.first = first;
                }
            }
        }
    }

    pub(super) fn evict(&mut self, at: Moment, reason: Option<Reason>) {
        let evicted = Evicted { at, reason };
        let _ = push_newest(&mut self.evicted, evicted, EVICTED_MAX, |evicted| &evicted.at);
    }
}

impl Unknowns {
    fn note(&mut self, at: &Moment) {
        let same = self.firsts.iter().position(|first| first.source == at.source);
        match same.and_then(|i| self.firsts.get_mut(i)) {
            Some(first) if at.list_order(first).is_lt() => *first = at.clone(),
            Some(_) => {}
            None => {
                let place = self.firsts.partition_point(|first| first.list_order(at).is_lt());
                self.firsts.insert(place, at.clone());
                self.firsts.truncate(UNKNOWN_SOURCES_MAX);
            }
        }
    }
}

impl Blocks {
    /// Keeps it if it is the first of another sort than the first of all.
    fn sort_out(&mut self, other: &Block) {
        self.others.retain(|kept| !kept.is_sort_of(&self.first));
        let same = self.others.iter().position(|kept| kept.is_sort_of(other));
        match same.and_then(|i| self.others.get(i).map(|kept| (i, kept))) {
            _ if other.is_sort_of(&self.first) => return,
            Some((i, kept)) if other.at.list_order(&kept.at).is_lt() => {
                self.others.remove(i);
            }
            Some(_) => return,
            None => {}
        }
        let place = self.others.partition_point(|kept| kept.at.list_order(&other.at).is_lt());
        self.others.insert(place, other.clone());
        // The first ones stay: what comes out does not hang on what was heard first.
        self.others.truncate(BLOCK_SORTS_MAX);
    }

    /// The first of each sort.
    pub(super) fn sorts(&self) -> impl Iterator<Item = &Block> {
        std::iter::once(&self.first).chain(&self.others)
    }
}

impl Block {
    fn is_sort_of(&self, other: &Self) -> bool {
        self.at.source == other.at.source
            && self.reference == other.reference
            && self.comes_again() == other.comes_again()
    }

    /// It says nothing of the settlement but that it is to come again.
    pub(super) fn comes_again(&self) -> bool {
        matches!(self.reason, Some(Reason::InProgress | Reason::GuardDown))
    }

    fn of(event: &Event, at: Moment, received_us: i64) -> Self {
        Self {
            at,
            received_us,
            reason: event.reason,
            mode: event.guard_mode,
            window: event.window,
            trace_id: event.trace_id.clone(),
            reference: event.reference.clone(),
        }
    }
}

/// Inserts in order and lets the oldest go, which is returned.
pub(super) fn push_newest<T>(
    list: &mut Vec<T>,
    item: T,
    max: usize,
    at: impl Fn(&T) -> &Moment,
) -> Option<T> {
    let place = list.partition_point(|other| at(other).list_order(at(&item)).is_lt());
    list.reserve_exact(1);
    list.insert(place, item);
    (list.len() > max).then(|| list.remove(0))
}
