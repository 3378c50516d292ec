//! What the audit remembers of players and settlements: sets of what was said, never the order
//! in which it came. Verdicts are functions of these sets, so they don't depend on how pushes
//! were cut and grouped.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde::{Deserialize, Serialize};

use super::book::Row;
use super::order::Moment;
use crate::outcome::{
    Amounts, Effect, Event, GuardMode, Id, Net, Outcome, Reason, Signature, Window, WindowScope,
};

/// Acceptances of one key kept singly; more are counted.
pub(super) const ACCEPTANCES_MAX: usize = 64;
/// Evictions of one key kept singly: the newest.
const EVICTED_MAX: usize = 8;
/// Games of a player remembered: the newest. Two are live; the others rank what comes late.
const GAMES_MAX: usize = 8;
/// Acceptances and evictions of a player remembered, for the contents of its windows.
const RECENT_MAX: usize = 24;
/// Evictions of a player that may still be judged anew.
const EVICTIONS_MAX: usize = 16;
/// Reversals of one ref kept.
const REVERSALS_MAX: usize = 32;
/// Signatures of one ref kept.
const REF_KEYS_MAX: usize = 16;
/// Sources that wrote for a player, kept to know whether a window was its only one.
const WRITERS_MAX: usize = 8;

/// (ledger, player) as 64 bits of a keyed hash.
pub type PlayerKey = i64;
/// (player, signature) as 64 + 64 bits.
pub type SignatureKey = (PlayerKey, i64);
/// (player, ref) as 64 + 64 bits.
pub type RefKey = (PlayerKey, i64);

/// One booking of a settlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Acceptance {
    pub(super) at: Moment,
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) late: bool,
    pub(super) net: Net,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) effect: Option<Effect>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<GuardMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) window: Option<Window>,
}

/// One refusal of a settlement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Block {
    pub(super) at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) mode: Option<GuardMode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) window: Option<Window>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) trace_id: Option<Id>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reference: Option<Id>,
}

/// The refusals of a key: how many, and the ones that verdicts need.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Blocks {
    pub(super) count: u64,
    pub(super) last_us: i64,
    /// The first by time.
    pub(super) first: Block,
    /// The first whose window was shown not to hold the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) proven: Option<Block>,
    /// The newest few, whose windows may still be replayed when a hole fills.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) newest: Vec<Block>,
}

/// The outcomes `unknown` of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unknowns {
    pub(super) count: u64,
    pub(super) last_us: i64,
    pub(super) first: Block,
    /// Each was only held back for its turn.
    pub(super) only_held: bool,
}

/// One eviction of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evicted {
    pub(super) at: Moment,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<Reason>,
}

/// What is known of one settlement of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignatureFacts {
    pub(super) signature: Signature,
    /// By [`Moment::list_order`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) accepted: Vec<Acceptance>,
    /// Beyond those kept singly.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) more_accepted: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) more_amounts: Option<Amounts>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) blocks: Option<Blocks>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) unknowns: Option<Unknowns>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) evicted: Vec<Evicted>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) rows: Vec<Row>,
}

fn is_false(flag: &bool) -> bool {
    !*flag
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl SignatureFacts {
    fn new(signature: Signature) -> Self {
        Self {
            signature,
            accepted: Vec::new(),
            more_accepted: 0,
            more_amounts: None,
            blocks: None,
            unknowns: None,
            evicted: Vec::new(),
            rows: Vec::new(),
        }
    }

    pub(super) fn accept(&mut self, event: &Event, at: Moment) {
        if self.accepted.len() >= ACCEPTANCES_MAX {
            self.more_accepted = self.more_accepted.saturating_add(1);
            let amounts = Amounts::surplus(event.signature.net());
            self.more_amounts = Some(self.more_amounts.unwrap_or_default().plus(amounts));
            return;
        }
        let place = self.accepted.partition_point(|other| other.at.list_order(&at).is_lt());
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
            },
        );
    }

    pub(super) fn block(&mut self, event: &Event, at: Moment) {
        let block = Block::of(event, at);
        match &mut self.blocks {
            None => {
                self.blocks = Some(Blocks {
                    count: 1,
                    last_us: block.at.at_us,
                    first: block.clone(),
                    proven: None,
                    newest: vec![block],
                });
            }
            Some(blocks) => {
                blocks.count = blocks.count.saturating_add(1);
                blocks.last_us = blocks.last_us.max(block.at.at_us);
                if block.at.list_order(&blocks.first.at).is_lt() {
                    blocks.first = block.clone();
                }
                push_newest(&mut blocks.newest, block, 4, |block| &block.at);
            }
        }
    }

    pub(super) fn unknown(&mut self, event: &Event, at: Moment) {
        let first = Block::of(event, at);
        let held = matches!(event.reason, Some(Reason::Held | Reason::InProgress));
        match &mut self.unknowns {
            None => {
                let last_us = first.at.at_us;
                self.unknowns = Some(Unknowns { count: 1, last_us, first, only_held: held });
            }
            Some(unknowns) => {
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
        push_newest(&mut self.evicted, Evicted { at, reason }, EVICTED_MAX, |evicted| &evicted.at);
    }
}

impl Block {
    fn of(event: &Event, at: Moment) -> Self {
        Self {
            at,
            reason: event.reason,
            mode: event.guard_mode,
            window: event.window,
            trace_id: event.trace_id.clone(),
            reference: event.reference.clone(),
        }
    }
}

/// Inserts in order and lets the oldest go.
fn push_newest<T>(list: &mut Vec<T>, item: T, max: usize, at: impl Fn(&T) -> &Moment) {
    let place = list.partition_point(|other| at(other).list_order(at(&item)).is_lt());
    list.insert(place, item);
    if list.len() > max {
        list.remove(0);
    }
}

/// One game of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GameFacts {
    pub(super) game: i64,
    pub(super) room: i64,
    /// First acceptance in turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) processed: Option<Moment>,
    /// First acceptance of any sort.
    pub(super) accepted: Moment,
    /// Its accepted signatures.
    pub(super) signatures: Vec<i64>,
}

/// What entered or left a window of a player.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recent {
    pub(super) at: Moment,
    pub(super) signature: i64,
    /// By its own event; inline evictions come with their acceptance.
    pub(super) entered: bool,
    pub(super) game: Option<i64>,
    pub(super) room: Option<i64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left: Vec<i64>,
    pub(super) scope: Option<WindowScope>,
    /// It may have given its place back: its effect failed or is not known.
    #[serde(default, skip_serializing_if = "is_false")]
    pub(super) unsure: bool,
}

/// What is known of one player in one ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlayerFacts {
    pub(super) ledger: String,
    pub(super) player: Id,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) games: Vec<GameFacts>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) recent: Vec<Recent>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) writers: Vec<super::source::SourceId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) evictions: Vec<super::eviction::Eviction>,
    /// Findings about several players in which this one is counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) counted_in: Vec<String>,
}

impl PlayerFacts {
    fn new(ledger: String, player: Id) -> Self {
        Self {
            ledger,
            player,
            games: Vec::new(),
            recent: Vec::new(),
            writers: Vec::new(),
            evictions: Vec::new(),
            counted_in: Vec::new(),
        }
    }

    /// Takes an acceptance into the player's games.
    pub(super) fn play(&mut self, game: i64, room: i64, signature: i64, late: bool, at: &Moment) {
        let earlier = |old: &Moment| at.list_order(old).is_lt();
        match self.games.iter_mut().find(|old| old.game == game) {
            Some(old) => {
                if earlier(&old.accepted) {
                    old.accepted = at.clone();
                }
                if !late && old.processed.as_ref().is_none_or(earlier) {
                    old.processed = Some(at.clone());
                }
                if !old.signatures.contains(&signature) && old.signatures.len() < ACCEPTANCES_MAX {
                    old.signatures.push(signature);
                }
            }
            None => {
                let processed = (!late).then(|| at.clone());
                let accepted = at.clone();
                let signatures = vec![signature];
                self.games.push(GameFacts { game, room, processed, accepted, signatures });
                self.forget_oldest_game();
            }
        }
    }

    fn forget_oldest_game(&mut self) {
        if self.games.len() <= GAMES_MAX {
            return;
        }
        let age = |game: &GameFacts| {
            let moment = game.processed.as_ref().unwrap_or(&game.accepted);
            (game.processed.is_some(), moment.at_us, moment.position)
        };
        let oldest = self.games.iter().enumerate().min_by_key(|(_, game)| age(game));
        if let Some((i, _)) = oldest {
            self.games.swap_remove(i);
        }
    }

    pub(super) fn remember(&mut self, recent: Recent) {
        let source = recent.at.source;
        push_newest(&mut self.recent, recent, RECENT_MAX, |recent| &recent.at);
        if !self.writers.contains(&source) && self.writers.len() < WRITERS_MAX {
            self.writers.push(source);
        }
    }

    pub(super) fn watch(&mut self, eviction: super::eviction::Eviction) {
        push_newest(&mut self.evictions, eviction, EVICTIONS_MAX, |eviction| &eviction.at);
    }
}

/// One booking that undoes another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reversal {
    pub(super) at: Moment,
    pub(super) net: Net,
    pub(super) game: Option<i64>,
}

/// What is known of one `ref` of a player.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefFacts {
    /// Signatures accepted under it.
    pub(super) keys: Vec<i64>,
    /// Bookings that undo it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) reversals: Vec<Reversal>,
}

impl RefFacts {
    pub(super) fn carry(&mut self, signature: i64) {
        if !self.keys.contains(&signature) && self.keys.len() < REF_KEYS_MAX {
            self.keys.push(signature);
        }
    }

    pub(super) fn reverse(&mut self, reversal: Reversal) {
        push_newest(&mut self.reversals, reversal, REVERSALS_MAX, |reversal| &reversal.at);
    }
}

/// One table of facts, of which a part is in memory.
#[derive(Clone, Debug)]
pub struct Table<K, V> {
    loaded: HashMap<K, Option<V>>,
    changed: BTreeSet<K>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Self { loaded: HashMap::new(), changed: BTreeSet::new() }
    }
}

impl<K: Copy + Eq + Ord + std::hash::Hash, V> Table<K, V> {
    /// Takes what the store has of a key: nothing, if nothing is known of it.
    pub fn load(&mut self, key: K, value: Option<V>) {
        self.loaded.entry(key).or_insert(value);
    }

    fn is_loaded(&self, key: K) -> bool {
        self.loaded.contains_key(&key)
    }

    pub(super) fn get(&self, key: K) -> Option<&V> {
        self.loaded.get(&key).and_then(Option::as_ref)
    }

    pub(super) fn entry(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        self.changed.insert(key);
        self.loaded.entry(key).or_default().get_or_insert_with(new)
    }

    pub(super) fn get_mut(&mut self, key: K) -> Option<&mut V> {
        let value = self.loaded.get_mut(&key).and_then(Option::as_mut)?;
        self.changed.insert(key);
        Some(value)
    }

    /// Those that changed since the last call, in the order of their keys.
    pub fn take_changed(&mut self) -> Vec<(K, &V)> {
        let changed = std::mem::take(&mut self.changed);
        changed.into_iter().filter_map(|key| Some((key, self.get(key)?))).collect()
    }

    /// How many are in memory.
    pub fn len(&self) -> usize {
        self.loaded.len()
    }

    /// Whether none is in memory.
    pub fn is_empty(&self) -> bool {
        self.loaded.is_empty()
    }

    /// Lets go of all that is stored.
    pub fn forget(&mut self) {
        let changed = &self.changed;
        self.loaded.retain(|key, _| changed.contains(key));
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
}

impl Needs {
    /// Whether nothing is needed.
    pub fn is_empty(&self) -> bool {
        self.players.is_empty() && self.signatures.is_empty() && self.refs.is_empty()
    }
}

impl Facts {
    /// Remembers that the store knows nothing of a player, nor so of its settlements.
    pub fn is_new(&mut self, player: PlayerKey) {
        self.fresh_players.insert(player);
    }

    fn known(&self, player: PlayerKey) -> bool {
        self.complete || self.fresh_players.contains(&player)
    }

    pub(super) fn want_player(&self, needs: &mut Needs, key: PlayerKey) {
        if !self.known(key) && !self.players.is_loaded(key) {
            needs.players.insert(key);
        }
    }

    pub(super) fn want_signature(&self, needs: &mut Needs, key: SignatureKey) {
        if !self.known(key.0) && !self.signatures.is_loaded(key) {
            needs.signatures.insert(key);
        }
    }

    pub(super) fn want_ref(&self, needs: &mut Needs, key: RefKey) {
        if !self.known(key.0) && !self.refs.is_loaded(key) {
            needs.refs.insert(key);
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
        self.signatures.entry(key, || SignatureFacts::new(signature.clone()))
    }

    /// Lets go of all that is stored, once there is more than this of one sort.
    pub fn forget_beyond(&mut self, max: usize) {
        if self.players.len() + self.signatures.len() + self.refs.len() > max {
            self.players.forget();
            self.signatures.forget();
            self.refs.forget();
            self.fresh_players.clear();
        }
    }
}
