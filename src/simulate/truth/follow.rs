//! What the faults bring along: storms of retries, sources that disagree, two who write at once.

use std::collections::{BTreeMap, BTreeSet};

use super::{About, Expected, Key, PlayerOf, Stories, Told, Truth, Wanted, acceptances, blocks};
use crate::outcome::Effect;

/// So many blocks of one key are a storm (audit.md).
const MANY: usize = 3;
/// Two sources that accept for one player within this are two writers (audit.md).
const AT_ONCE_US: i64 = 1_000_000;

impl Truth {
    pub(super) fn follow_ups(&self, stories: &Stories<'_>, expected: &mut Expected) {
        for (key, story) in stories {
            storms(key, story, expected);
            disagreements(key, story, expected);
        }
        self.capacities(expected);
        self.two_writers(expected);
    }

    /// Sources of one service with windows of different size.
    fn capacities(&self, expected: &mut Expected) {
        let mut of_service: BTreeMap<(String, String), BTreeSet<u64>> = BTreeMap::new();
        for told in &self.told {
            let Some(window) = told.event.window else { continue };
            let from = &told.event.from;
            let service = (from.service.to_string(), from.env.to_string());
            of_service.entry(service).or_default().insert(window.cap);
        }
        for ((service, env), _) in of_service.into_iter().filter(|(_, caps)| caps.len() > 1) {
            expected.add("cap_mismatch", About::Service(service, env), Wanted::perhaps());
        }
    }

    fn two_writers(&self, expected: &mut Expected) {
        let mut last: BTreeMap<PlayerOf<'_>, Vec<&Told>> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            let event = &told.event;
            let newest = last.entry((event.ledger(), &event.player)).or_default();
            newest.retain(|other| told.at_us() - other.at_us() <= 2 * AT_ONCE_US);
            for other in newest.iter().filter(|other| other.event.from != event.from) {
                let at_once = (told.at_us() - other.at_us()).abs() < AT_ONCE_US;
                let wanted = if at_once { Wanted::some() } else { Wanted::perhaps() };
                let about = About::Player(event.ledger(), event.player.clone());
                let surely = expected.get("two_writers", &about).is_some_and(|it| it.least > 0);
                if !surely {
                    expected.add("two_writers", about, wanted);
                }
            }
            newest.push(told);
        }
    }
}

/// Delivered again and again: never accepted, or accepted long ago.
fn storms(key: &Key, story: &[&Told], expected: &mut Expected) {
    let blocks = blocks(story, &key.2);
    if blocks.len() < MANY {
        return;
    }
    let accepted = acceptances(story, &key.2);
    let about = || About::Key(key.clone());
    if accepted.is_empty() {
        let known = story.iter().any(|told| told.evicts(&key.2));
        let wanted = if known { Wanted::perhaps() } else { Wanted::some() };
        expected.add("stuck_claim", about(), wanted);
        expected.add("retry_storm", about(), Wanted::perhaps());
        return;
    }
    let failed = accepted.iter().all(|told| told.event.effect == Some(Effect::Failed));
    let wanted = if failed { Wanted::perhaps() } else { Wanted::some() };
    expected.add("retry_storm", about(), wanted);
    if failed {
        expected.add("stuck_claim", about(), Wanted::perhaps());
    }
}

/// Refused here and accepted there; refused first and accepted later.
fn disagreements(key: &Key, story: &[&Told], expected: &mut Expected) {
    let (accepted, blocks) = (acceptances(story, &key.2), blocks(story, &key.2));
    let about = || About::Key(key.clone());
    // Of two that raced, each may refuse what it has accepted itself.
    let known = |block: &Told, other: &Told| {
        accepted.iter().any(|it| it.surely_before(block) && it.surely_before(other))
    };
    let perhaps_known = |block: &Told| accepted.iter().any(|it| it.before(block).1);
    let (mut surely, mut perhaps) = (false, false);
    for block in &blocks {
        let elsewhere = accepted.iter().filter(|it| it.event.from != block.event.from);
        for it in elsewhere.filter(|it| !it.surely_before(block)) {
            surely |= block.surely_before(it) || known(block, it);
            perhaps |= block.before(it).1 || perhaps_known(block);
        }
    }
    if surely || perhaps {
        let wanted = if surely { Wanted::some() } else { Wanted::perhaps() };
        expected.add("replica_disagreement", about(), wanted);
    }
    let Some((block, first)) = blocks.first().zip(accepted.first()) else { return };
    if block.surely_before(first) {
        expected.add("outcome_flip", about(), Wanted::some());
    } else if blocks.iter().any(|block| accepted.iter().any(|it| block.before(it).1)) {
        expected.add("outcome_flip", about(), Wanted::perhaps());
    }
}
