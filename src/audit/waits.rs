//! What waits for time to go by: suspicions for their grace, rows for their quiet.
//!
//! Time of a ledger is its watermark; time of rows about sources is the time of receipt. A
//! suspicion that can't be decided for want of evidence waits for a hole to fill instead.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::finding::Subject;
use super::kind::Kind;
use super::source::SourceId;
use super::table::{MessageKey, PlayerKey, RefKey, RoomKey, SignatureKey};

/// Undecided suspicions of a ledger that are judged again when a hole fills; beyond, the oldest
/// stay as they are: what can't be known of a warm-up would else be kept for good, and what could
/// be known later would find no room.
pub(super) const WATCHED_MAX: usize = 50_000;

/// So many are looked at whenever a hole fills; more are once a second.
const FEW: usize = 64;

/// Who waits.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// The rules of a settlement.
    Key(PlayerKey, i64),
    /// The evictions of a player.
    Player(PlayerKey),
    /// A row about a source or boot.
    Group(Kind, Subject),
    /// All that wait for a hole of a ledger.
    Holes(String),
    /// The rules of a ref.
    Ref(RefKey),
    /// The rules of a player's room.
    Room(RoomKey),
    /// The rules of a message.
    Message(MessageKey),
    /// The clock of a source.
    Clock(SourceId),
}

/// What somebody waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Who.
    pub wait: Wait,
    /// By whose time: a ledger's, or that of receipt.
    pub ledger: Option<String>,
    /// Until when.
    pub due_us: Option<i64>,
    /// Also until a hole fills.
    pub hole: bool,
    /// The how-manieth it is that waits for a hole of its ledger: by this the oldest are known.
    /// Numbered by [`Waits`].
    #[serde(default, skip_serializing_if = "is_zero")]
    number: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Waiting {
    /// Waits for a time, or for a hole of the ledger, or for whichever is first.
    pub(super) fn new(wait: Wait, ledger: Option<String>, due_us: Option<i64>, hole: bool) -> Self {
        Self { wait, ledger, due_us, hole, number: 0 }
    }

    fn is_as(&self, other: &Self) -> bool {
        let Self { ledger, due_us, hole, .. } = other;
        (&self.ledger, &self.due_us, &self.hole) == (ledger, due_us, hole)
    }
}

/// Those that wait for a hole of one ledger.
#[derive(Clone, Debug, Default)]
struct Watched {
    waits: BTreeSet<Wait>,
    by_number: BTreeMap<u64, Wait>,
}

impl Watched {
    fn insert(&mut self, waiting: &Waiting) {
        self.waits.insert(waiting.wait.clone());
        self.by_number.insert(waiting.number, waiting.wait.clone());
    }

    fn remove(&mut self, waiting: &Waiting) {
        self.waits.remove(&waiting.wait);
        self.by_number.remove(&waiting.number);
    }

    fn next_number(&self) -> u64 {
        self.by_number.last_key_value().map_or(1, |(number, _)| number.saturating_add(1))
    }

    /// The oldest, if there are too many.
    fn beyond(&self) -> Option<Wait> {
        let oldest = self.by_number.first_key_value().filter(|_| self.waits.len() > WATCHED_MAX);
        oldest.map(|(_, wait)| wait.clone())
    }
}

/// All who wait.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    by_wait: BTreeMap<Wait, Waiting>,
    due: BTreeMap<Option<String>, BTreeSet<(i64, Wait)>>,
    holes: BTreeMap<String, Watched>,
    changed: BTreeSet<Wait>,
}

impl Waits {
    /// Takes back a stored one.
    pub fn restore(&mut self, waiting: Waiting) {
        self.put(waiting);
        self.changed.clear();
    }

    /// Those that changed since the last call; `None` for who waits no more.
    pub fn take_changed(&mut self) -> Vec<(Wait, Option<&Waiting>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|wait| (wait.clone(), self.by_wait.get(&wait))).collect()
    }

    /// Waits anew, in place of what the same waited for.
    pub(super) fn set(&mut self, mut waiting: Waiting) {
        if waiting.due_us.is_none() && !waiting.hole {
            return self.clear(&waiting.wait);
        }
        let was = self.by_wait.get(&waiting.wait);
        if was.is_some_and(|was| was.is_as(&waiting)) {
            return;
        }
        if let Some(ledger) = waiting.ledger.as_ref().filter(|_| waiting.hole) {
            let same = was.filter(|was| was.hole && was.ledger == waiting.ledger);
            let next = || self.holes.get(ledger).map_or(1, Watched::next_number);
            waiting.number = same.map_or_else(next, |was| was.number);
        }
        let ledger = waiting.ledger.clone();
        self.put(waiting);
        let watched = ledger.and_then(|ledger| self.holes.get(&ledger));
        let Some(oldest) = watched.and_then(Watched::beyond) else { return };
        if let Some(oldest) = self.by_wait.get(&oldest).cloned() {
            self.set(Waiting { hole: false, number: 0, ..oldest });
        }
    }

    fn put(&mut self, waiting: Waiting) {
        self.clear(&waiting.wait);
        if let Some(due_us) = waiting.due_us {
            let due = self.due.entry(waiting.ledger.clone()).or_default();
            due.insert((due_us, waiting.wait.clone()));
        }
        if let Some(ledger) = waiting.ledger.as_ref().filter(|_| waiting.hole) {
            self.holes.entry(ledger.clone()).or_default().insert(&waiting);
        }
        self.changed.insert(waiting.wait.clone());
        self.by_wait.insert(waiting.wait.clone(), waiting);
    }

    /// Waits no more.
    pub(super) fn clear(&mut self, wait: &Wait) {
        let Some(old) = self.by_wait.remove(wait) else { return };
        self.changed.insert(wait.clone());
        if let Some(due_us) = old.due_us
            && let Some(due) = self.due.get_mut(&old.ledger)
        {
            due.remove(&(due_us, wait.clone()));
            if due.is_empty() {
                self.due.remove(&old.ledger);
            }
        }
        let watched = old.ledger.as_ref().filter(|_| old.hole);
        if let Some(watched) = watched.and_then(|ledger| self.holes.get_mut(ledger)) {
            watched.remove(&old);
        }
    }

    /// Those whose time has come, so many at most.
    pub(super) fn due(&self, max: usize, now_us: impl Fn(Option<&str>) -> i64) -> Vec<Wait> {
        let mut ready = Vec::new();
        for (ledger, due) in &self.due {
            let now_us = now_us(ledger.as_deref());
            let past = due.iter().take_while(|(due_us, _)| *due_us <= now_us);
            ready.extend(past.take(max - ready.len()).map(|(_, wait)| wait.clone()));
        }
        ready
    }

    /// Those that wait for a hole of a ledger to fill.
    pub(super) fn for_hole(&self, ledger: &str) -> impl Iterator<Item = &Wait> {
        self.holes.get(ledger).into_iter().flat_map(|watched| &watched.waits)
    }

    /// The settlements of a player that wait for something.
    pub(super) fn of_player(&self, player: PlayerKey) -> impl Iterator<Item = &Wait> {
        let all = Wait::Key(player, i64::MIN)..=Wait::Key(player, i64::MAX);
        self.by_wait.range(all).map(|(wait, _)| wait)
    }

    /// Whether so few wait for a hole of a ledger that all can be looked at for each that fills.
    pub(super) fn few_for_hole(&self, ledger: &str) -> bool {
        self.holes.get(ledger).is_none_or(|watched| watched.waits.len() <= FEW)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.by_wait.len()
    }

    /// Whether nobody waits.
    pub fn is_empty(&self) -> bool {
        self.by_wait.is_empty()
    }

    /// Whether this one waits for something.
    pub(super) fn has(&self, wait: &Wait) -> bool {
        self.by_wait.contains_key(wait)
    }

    /// The first moment that is waited for by the time of receipt: of rows about sources, and of
    /// ledgers that go by receipt.
    pub(super) fn first_by_receipt(&self, by_receipt: impl Fn(&str) -> bool) -> Option<i64> {
        let counts = |ledger: &Option<String>| ledger.as_deref().is_none_or(&by_receipt);
        let firsts = self.due.iter().filter(|(ledger, _)| counts(ledger));
        firsts.filter_map(|(_, due)| due.first()).map(|(due_us, _)| *due_us).min()
    }
}

impl Wait {
    pub(super) fn key(key: SignatureKey) -> Self {
        Self::Key(key.0, key.1)
    }
}
