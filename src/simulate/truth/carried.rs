//! What outcomes carry besides: rooms that were booked, refs, guards that were off.

use std::collections::{BTreeMap, BTreeSet};

use super::{About, Expected, Key, Stories, Told, Truth, Wanted, acceptances, blocks};
use crate::outcome::{GuardMode, Id};

impl Truth {
    pub(super) fn carried(&self, stories: &Stories<'_>, expected: &mut Expected) {
        for (key, story) in stories {
            let elsewhere = |told: &&Told| {
                told.event.booked_room.as_ref().is_some_and(|room| Some(room) != key.2.room())
            };
            let moved = acceptances(story, &key.2).into_iter().filter(elsewhere).count() as u64;
            if moved > 0 {
                let wanted = Wanted::between(1, moved);
                expected.add("cross_room_booking", About::Key(key.clone()), wanted);
            }
            equal(key, story, expected);
        }
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            if told.event.guard_mode == Some(GuardMode::Off) {
                expected.count("guard_bypass", told.source(), 1, 1);
            }
        }
        self.states(expected);
    }

    /// Versions of a room's state, by the first acceptances in turn.
    fn states(&self, expected: &mut Expected) {
        let mut rooms: BTreeMap<Room<'_>, (u64, BTreeMap<u64, &Id>)> = BTreeMap::new();
        let mut seen: BTreeSet<Key> = BTreeSet::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            let event = &told.event;
            let Some(version) = event.state_version else { continue };
            if !seen.insert(told.key()) || !told.is_processed() {
                continue;
            }
            let Some(room) = event.signature.room() else { continue };
            let about = || About::Player(event.ledger(), event.player.clone());
            let (newest, hashes) = rooms.entry((event.ledger(), &event.player, room)).or_default();
            if version < *newest {
                expected.add("version_regression", about(), Wanted::some());
            }
            *newest = version.max(*newest);
            let Some(hash) = event.state_hash.as_ref() else { continue };
            if *hashes.entry(version).or_insert(hash) != hash {
                expected.add("torn_state", about(), Wanted::some());
            }
        }
    }
}

/// (ledger, player, room).
type Room<'a> = (String, &'a Id, &'a Id);

/// Refused under a ref that nobody has accepted it under.
fn equal(key: &Key, story: &[&Told], expected: &mut Expected) {
    let accepted = acceptances(story, &key.2);
    if accepted.is_empty() || accepted.iter().any(|told| told.event.reference.is_none()) {
        return;
    }
    let differs = |told: &&Told| {
        let own = told.event.reference.as_ref();
        own.is_some() && accepted.iter().all(|other| other.event.reference.as_ref() != own)
    };
    let count = blocks(story, &key.2).into_iter().filter(differs).count() as u64;
    if count > 0 {
        let wanted = Wanted::between(1, count);
        expected.add("ambiguous_equal", About::Key(key.clone()), wanted);
    }
}
