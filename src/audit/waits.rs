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
/// stay as they are.
const WATCHED_MAX: usize = 50_000;

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
}

/// All who wait.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    by_wait: BTreeMap<Wait, Waiting>,
    due: BTreeMap<Option<String>, BTreeSet<(i64, Wait)>>,
    holes: BTreeMap<String, BTreeSet<Wait>>,
    changed: BTreeSet<Wait>,
}

impl Waits {
    /// Takes back a stored one.
    pub fn restore(&mut self, waiting: Waiting) {
        self.set(waiting);
        self.changed.clear();
    }

    /// Those that changed since the last call; `None` for who waits no more.
    pub fn take_changed(&mut self) -> Vec<(Wait, Option<&Waiting>)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().map(|wait| (wait.clone(), self.by_wait.get(&wait))).collect()
    }

    /// Waits anew, in place of what the same waited for.
    pub(super) fn set(&mut self, waiting: Waiting) {
        if waiting.due_us.is_none() && !waiting.hole {
            return self.clear(&waiting.wait);
        }
        if self.by_wait.get(&waiting.wait) == Some(&waiting) {
            return;
        }
        self.clear(&waiting.wait);
        if let Some(due_us) = waiting.due_us {
            let due = self.due.entry(waiting.ledger.clone()).or_default();
            due.insert((due_us, waiting.wait.clone()));
        }
        if let Some(ledger) = waiting.ledger.as_ref().filter(|_| waiting.hole) {
            let holes = self.holes.entry(ledger.clone()).or_default();
            if holes.len() < WATCHED_MAX {
                holes.insert(waiting.wait.clone());
            }
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
        if let Some(holes) = old.ledger.as_ref().and_then(|ledger| self.holes.get_mut(ledger)) {
            holes.remove(wait);
        }
    }

    /// Those whose time has come.
    pub(super) fn due(&self, now_us: impl Fn(Option<&str>) -> i64) -> Vec<Wait> {
        let mut ready = Vec::new();
        for (ledger, due) in &self.due {
            let now_us = now_us(ledger.as_deref());
            let past = due.iter().take_while(|(due_us, _)| *due_us <= now_us);
            ready.extend(past.map(|(_, wait)| wait.clone()));
        }
        ready
    }

    /// Those that wait for a hole of a ledger to fill.
    pub(super) fn for_hole(&self, ledger: &str) -> impl Iterator<Item = &Wait> {
        self.holes.get(ledger).into_iter().flatten()
    }

    /// The settlements of a player that wait for something.
    pub(super) fn of_player(&self, player: PlayerKey) -> impl Iterator<Item = &Wait> {
        let all = Wait::Key(player, i64::MIN)..=Wait::Key(player, i64::MAX);
        self.by_wait.range(all).map(|(wait, _)| wait)
    }

    /// Whether so few wait for a hole of a ledger that all can be looked at for each that fills.
    pub(super) fn few_for_hole(&self, ledger: &str) -> bool {
        self.holes.get(ledger).is_none_or(|holes| holes.len() <= FEW)
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
