//! The facts in memory: the part of the stored tables that the fold needs now.

use std::collections::hash_map::Entry;
use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::facts::SignatureFacts;
use super::message::MessageFacts;
use super::player::PlayerFacts;
use super::ref_facts::RefFacts;
use super::room::RoomFacts;
use super::row::Row;
use crate::outcome::{Id, Signature};

/// (ledger, player) as 64 bits of a keyed hash.
pub type PlayerKey = i64;
/// (player, signature) as 64 + 64 bits.
pub type SignatureKey = (PlayerKey, i64);
/// (player, ref) as 64 + 64 bits.
pub type RefKey = (PlayerKey, i64);
/// (player, room) as 64 + 64 bits.
pub type RoomKey = (PlayerKey, i64);
/// (ledger, message id) as 128 bits: two halves of one keyed hash.
pub type MessageKey = (i64, i64);

/// Facts that the store keeps by key, in a form without names: fields are told apart by their
/// order alone. So `skip_serializing_if`, `flatten`, `untagged` and `tag` must not be used in
/// them, nor in what they hold; a wire type that needs one has a second form for writers that are
/// not human readable. (Wherever facts are written, debug builds read them back and compare.)
///
/// Once databases are out there, a field that comes, goes or changes its type, or a variant
/// anywhere but at the end of its enum, needs a new number in front of the stored form
/// (`store::packed`) and a reader for the old one.
pub trait Stored: Serialize + DeserializeOwned + PartialEq {
    /// The rows that they have: few, and large. Their field is skipped by `serde`, since the
    /// store keeps them as it keeps findings.
    fn rows(&self) -> &[Row] {
        &[]
    }

    /// Takes the rows back.
    fn take_back(&mut self, rows: Vec<Row>) {
        let _ = rows;
    }
}

/// One table of facts, of which a part is in memory.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    loaded: HashMap<K, Option<V>>,
    /// Each loaded key once, the longest loaded first.
    order: VecDeque<K>,
    changed: BTreeSet<K>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { loaded: HashMap::new(), order: VecDeque::new(), changed: BTreeSet::new() }
    }
}

impl<K: Copy + Eq + Ord + std::hash::Hash, V> Table<K, V> {
    /// Takes what the store has of a key: nothing, if nothing is known of it.
    pub fn load(&mut self, key: K, value: Option<V>) {
        if let Entry::Vacant(place) = self.loaded.entry(key) {
            place.insert(value);
            self.order.push_back(key);
        }
    }

    fn is_loaded(&self, key: K) -> bool {
        self.loaded.contains_key(&key)
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.loaded.get(&key).and_then(Option::as_ref)
    }

    pub(super) fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        self.changed.insert(key);
        self.load(key, None);
        self.loaded.entry(key).or_default().get_or_insert_with(new)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let value = self.loaded.get_mut(&key).and_then(Option::as_mut)?;
        self.changed.insert(key);
        Some(value)
    }

    /// Takes a value out, to be given back before anything is let go of.
    pub(super) fn lend(&mut self, key: K) -> Option<V> {
        self.loaded.get_mut(&key).and_then(Option::take)
    }

    /// Puts a lent value back.
    pub(super) fn give_back(&mut self, key: K, value: V, changed: bool) {
        if changed {
            self.changed.insert(key);
        }
        self.loaded.insert(key, Some(value));
    }

    /// Those that changed since the last call, in the order of their keys.
    pub fn take_changed(&mut self) -> Vec<(K, &V)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|key| Some((key, self.get(key)?))).collect()
    }

    /// All that are in memory.
    #[cfg(test)]
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.loaded.values().flatten()
    }

    /// How many are in memory.
    pub fn len(&self) -> usize {
        self.loaded.len()
    }

    /// Whether none is in memory.
    pub fn is_empty(&self) -> bool {
        self.loaded.is_empty()
    }

    /// Lets go of what is stored, the longest loaded first, until no more than `most` are left;
    /// says of which.
    fn forget_beyond(&mut self, most: usize) -> Vec<K> {
        let mut gone = Vec::new();
        for _ in 0..self.order.len() {
            if self.loaded.len() <= most {
                break;
            }
            let Some(key) = self.order.pop_front() else { break };
            if self.changed.contains(&key) {
                self.order.push_back(key);
            } else {
                self.loaded.remove(&key);
                gone.push(key);
            }
        }
        gone
    }
}

/// The facts in memory.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By player.
    pub players: Table<PlayerKey, PlayerFacts>,
    /// By settlement.
    pub signatures: Table<SignatureKey, SignatureFacts>,
    /// By ref.
    pub refs: Table<RefKey, RefFacts>,
    /// By room of a player.
    pub rooms: Table<RoomKey, RoomFacts>,
    /// By message.
    pub messages: Table<MessageKey, MessageFacts>,
    /// Nothing is stored elsewhere: what is not here is not known.
    pub complete: bool,
    fresh_players: HashSet<PlayerKey>,
}

/// Facts that a record needs in memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Players.
    pub players: BTreeSet<PlayerKey>,
    /// Settlements.
    pub signatures: BTreeSet<SignatureKey>,
    /// Refs.
    pub refs: BTreeSet<RefKey>,
    /// Rooms of players.
    pub rooms: BTreeSet<RoomKey>,
    /// Messages.
    pub messages: BTreeSet<MessageKey>,
}

impl Needs {
    /// Whether nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty()
            && self.signatures.is_empty()
            && self.refs.is_empty()
            && self.rooms.is_empty()
            && self.messages.is_empty()
    }
}

impl Facts {
    /// Remembers that the store knows nothing of a player, nor so of its settlements.
    pub fn is_new(&mut self, player: PlayerKey) {
        self.fresh_players.insert(player);
    }

    /// Whether all settlements, refs and rooms of a player are in memory.
    fn has_all_of(&self, player: PlayerKey) -> bool {
        self.complete || self.fresh_players.contains(&player)
    }

    pub(super) fn want_player(&self, needs: &mut Needs, key: PlayerKey) {
        if !self.complete && !self.players.is_loaded(key) {
            needs.players.insert(key);
        }
    }

    pub(super) fn want_signature(&self, needs: &mut Needs, key: SignatureKey) {
        if !self.has_all_of(key.0) && !self.signatures.is_loaded(key) {
            needs.signatures.insert(key);
        }
    }

    pub(super) fn want_ref(&self, needs: &mut Needs, key: RefKey) {
        if !self.has_all_of(key.0) && !self.refs.is_loaded(key) {
            needs.refs.insert(key);
        }
    }

    pub(super) fn want_room(&self, needs: &mut Needs, key: RoomKey) {
        if !self.has_all_of(key.0) && !self.rooms.is_loaded(key) {
            needs.rooms.insert(key);
        }
    }

    pub(super) fn want_message(&self, needs: &mut Needs, key: MessageKey) {
        if !self.complete && !self.messages.is_loaded(key) {
            needs.messages.insert(key);
        }
    }

    pub(super) fn player(&mut self, key: PlayerKey, ledger: &str, player: &Id) -> &mut PlayerFacts {
        self.players.entry(key, || PlayerFacts::new(ledger.to_owned(), player.clone()))
    }

    pub(super) fn signature(
        &mut self,
        key: SignatureKey,
        signature: &Signature,
    ) -> &mut SignatureFacts {
        let facts = self.signatures.entry(key, || SignatureFacts::new(signature.clone()));
        facts.tell(signature);
        facts
    }

    /// Lets go of what is stored of players, of settlements, refs, rooms and messages, once there
    /// are more of one than this.
    pub fn forget_beyond(&mut self, players: usize, settlements: usize) {
        for player in self.players.forget_beyond(players) {
            self.fresh_players.remove(&player);
        }
        let gone = [
            self.signatures.forget_beyond(settlements),
            self.refs.forget_beyond(settlements),
            self.rooms.forget_beyond(settlements),
        ];
        for (player, _) in gone.iter().flatten() {
            self.fresh_players.remove(player);
        }
        self.messages.forget_beyond(settlements);
    }
}
