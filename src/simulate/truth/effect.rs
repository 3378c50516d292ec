//! Money that did not move, and outcomes that say neither.

use super::{About, Expected, Key, Stories, Told, Truth, Wanted, acceptances, blocks};
use crate::outcome::{Effect, Outcome, Reason};

impl Truth {
    pub(super) fn effects(&self, stories: &Stories<'_>, expected: &mut Expected) {
        for (key, story) in stories {
            failed(key, story, expected);
            unclear(key, story, expected);
        }
    }
}

/// Accepted, and the money never moved.
fn failed(key: &Key, story: &[&Told], expected: &mut Expected) {
    let accepted = acceptances(story, &key.2);
    let failed = |told: &&Told| told.event.effect == Some(Effect::Failed);
    if !accepted.iter().any(&failed) || accepted.iter().any(|told| told.stands()) {
        return;
    }
    let about = || About::Key(key.clone());
    if !accepted.iter().all(failed) {
        expected.add("accept_without_effect", about(), Wanted::perhaps());
        return;
    }
    expected.add("accept_without_effect", about(), Wanted::some());
    if !blocks(story, &key.2).is_empty() {
        expected.add("block_after_failed_effect", about(), Wanted::some());
    }
}

/// Nobody said whether it was booked. What was only held back for its turn is cleared up by an
/// acceptance; anything else may have been booked twice by it.
fn unclear(key: &Key, story: &[&Told], expected: &mut Expected) {
    let unknown =
        |told: &&&Told| told.event.outcome == Outcome::Unknown && told.event.signature == key.2;
    let waits = |told: &&Told| matches!(told.event.reason, Some(Reason::Held | Reason::InProgress));
    let unknowns: Vec<_> = story.iter().filter(unknown).copied().collect();
    let accepted = acceptances(story, &key.2);
    let half = accepted.iter().any(|told| told.event.effect == Some(Effect::Unknown));
    let cleared = unknowns.iter().all(waits) && !accepted.is_empty();
    expected.waits_for_retries |= half || !unknowns.is_empty();
    if half || (!unknowns.is_empty() && !cleared) {
        expected.add("indeterminate_outcome", About::Key(key.clone()), Wanted::some());
    }
}
