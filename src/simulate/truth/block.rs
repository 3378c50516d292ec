//! What was refused and never booked: false where that can be seen, else unknowable.

use std::collections::BTreeMap;

use super::{About, Expected, Money, Stories, Told, Truth, TruthSettings, Wanted, blocks};
use crate::outcome::{Id, Outcome, Reason, Signature, SourceName};

/// What entered a window and has not fallen out: which, and when.
type Contents<'a> = Vec<(&'a Signature, usize)>;

/// A player at a source.
type WindowOf<'a> = (&'a SourceName, String, &'a Id);

impl Truth {
    pub(super) fn blocks(
        &self,
        stories: &Stories<'_>,
        settings: &TruthSettings,
        expected: &mut Expected,
    ) {
        let proven = self.proven();
        for (key, story) in stories {
            let blocks = blocks(story, &key.2);
            let Some(first) = blocks.first() else { continue };
            let booked = |told: &&&Told| told.accepts(&key.2) || told.evicts(&key.2);
            let unclear =
                |told: &&&Told| told.event.outcome == Outcome::Unknown && told.order < first.order;
            if story.iter().any(|told| booked(&told) || unclear(&told)) {
                continue;
            }
            let seen = |told: &&Told| {
                let span_us = (told.at_us() - settings.horizon_us, told.at_us());
                !self.was_blind(&key.0, span_us) && !self.warms_up(&key.0, told.at_us(), settings)
            };
            let count = blocks.len() as u64;
            let missing = Wanted::between(1, count).worth(Money::missing(key.2.net()));
            let about = || About::Key(key.clone());
            expected.waits_for_retries |= blocks.iter().any(|told| !by_the_window(told));
            if blocks.iter().any(|told| proven.contains(&told.order)) || blocks.iter().all(&seen) {
                expected.add("false_block", about(), missing);
            } else if !seen(first) {
                expected.add("unverifiable_block", about(), Wanted::between(1, count));
            } else {
                // The first block was seen to be false, the next could not be: either is right.
                expected.add("false_block", about(), Wanted { least: 0, ..missing });
                expected.add("unverifiable_block", about(), Wanted::between(0, count));
            }
        }
    }

    /// Blocks whose window is known, from its oldest signature on, and does not hold the key.
    fn proven(&self) -> std::collections::BTreeSet<usize> {
        let mut proven = std::collections::BTreeSet::new();
        let mut windows: BTreeMap<WindowOf<'_>, (Contents<'_>, Vec<usize>)> = BTreeMap::new();
        for told in &self.told {
            let event = &told.event;
            let (contents, unsure) =
                windows.entry((&event.from, event.ledger(), &event.player)).or_default();
            if event.outcome == Outcome::ReplayBlocked {
                if self.cannot_hold(told, contents, unsure) {
                    proven.insert(told.order);
                }
                continue;
            }
            contents.retain(|(held, _)| !event.evicted.contains(held));
            match event.outcome {
                Outcome::Evicted => contents.retain(|(held, _)| **held != event.signature),
                Outcome::Processed | Outcome::LateAccepted => {
                    contents.retain(|(held, _)| **held != event.signature);
                    contents.push((&event.signature, told.order));
                    if !told.stands() {
                        unsure.push(told.order);
                    }
                }
                _ => {}
            }
        }
        proven
    }

    fn cannot_hold(&self, block: &Told, contents: &Contents<'_>, unsure: &[usize]) -> bool {
        let event = &block.event;
        let Some(window) = event.window.filter(|_| by_the_window(block)) else { return false };
        let Ok(len) = usize::try_from(window.len) else { return false };
        let Some(oldest) = contents.len().checked_sub(len) else { return false };
        let held = contents.get(oldest..).unwrap_or_default();
        let since = held.first().map_or(block.order, |(_, order)| *order);
        held.iter().all(|(signature, _)| **signature != event.signature)
            && unsure.iter().all(|order| *order < since)
            && self.is_whole(&event.from, since, block.order)
    }
}

/// Whether it was refused for what the window holds; else it is to be tried again.
fn by_the_window(block: &Told) -> bool {
    matches!(block.event.reason, None | Some(Reason::Replay))
}
