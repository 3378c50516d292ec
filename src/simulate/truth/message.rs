//! Ids that name two messages, and clocks that were set back.

use std::collections::BTreeMap;

use super::{About, Expected, Told, Truth, Wanted};
use crate::outcome::{Boot, Id, Outcome, Signature, SourceName};

/// Outcomes of one source that are closer belong to one delivery (audit.md).
const DELIVERY_US: i64 = 1_000_000;
/// A clock that falls by less is only good to know (audit.md).
const STEP_US: i64 = 1_000_000;

/// One delivery of a message.
struct Delivered<'a> {
    last: BTreeMap<&'a SourceName, i64>,
    keys: Vec<(&'a Id, &'a Signature)>,
}

impl Truth {
    pub(super) fn messages(&self, expected: &mut Expected) {
        self.collisions(expected);
        self.clocks(expected);
    }

    fn collisions(&self, expected: &mut Expected) {
        let mut messages: BTreeMap<(String, &Id), Vec<&Told>> = BTreeMap::new();
        for told in &self.told {
            let event = &told.event;
            let decided = event.is_acceptance() || event.outcome == Outcome::ReplayBlocked;
            if let Some(id) = event.message_id.as_ref().filter(|_| decided) {
                messages.entry((event.ledger(), id)).or_default().push(told);
            }
        }
        for ((ledger, _), told) in messages {
            if names_two(&told) {
                expected.count("id_collision", About::Ledger(ledger), 1, 1);
            }
        }
    }

    /// Falls of a source's clock while its numbers rise.
    fn clocks(&self, expected: &mut Expected) {
        let mut last: BTreeMap<(&SourceName, Boot), i64> = BTreeMap::new();
        let mut falls: BTreeMap<&SourceName, u64> = BTreeMap::new();
        for told in &self.told {
            let at_us = told.at_us();
            let before_us = last.insert((&told.event.from, told.boot), at_us);
            if let Some(fall_us) = before_us.map(|us| us - at_us).filter(|us| *us > 0) {
                let large = falls.entry(&told.event.from).or_default();
                *large += u64::from(fall_us >= STEP_US);
            }
        }
        for (from, large) in falls {
            let wanted = if large > 0 { Wanted::some() } else { Wanted::perhaps() };
            expected.add("clock_rollback", About::Source(from.clone()), wanted);
        }
    }
}

/// Whether the deliveries of an id fall into two groups that share no settlement.
fn names_two(told: &[&Told]) -> bool {
    let mut groups: Vec<Delivered<'_>> = Vec::new();
    for told in told {
        let (event, at_us) = (&told.event, told.at_us());
        let key = (&event.player, &event.signature);
        let belongs = |group: &Delivered<'_>| {
            let close = |last_us: &i64| (at_us - last_us).abs() < DELIVERY_US;
            group.keys.contains(&key) || group.last.get(&event.from).is_some_and(close)
        };
        let (mut own, others): (Vec<_>, Vec<_>) = groups.into_iter().partition(belongs);
        let mut joined = own.pop().unwrap_or(Delivered { last: BTreeMap::new(), keys: vec![] });
        for group in own {
            joined.keys.extend(group.keys);
            for (from, last_us) in group.last {
                let newest_us = joined.last.entry(from).or_insert(last_us);
                *newest_us = last_us.max(*newest_us);
            }
        }
        joined.keys.push(key);
        joined.last.insert(&event.from, at_us);
        groups = others;
        groups.push(joined);
    }
    groups.len() > 1
}
