//! `id_collision`.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity, Subject};
use dedupwatch::outcome::{Event, Id, Outcome};

use super::verdict::{Verdict, Verdicts};
use super::world::{Key, World, key_of};

/// What a source does within this by one message is one delivery.
const APART_US: i64 = 1_000_000;

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let mut by_id: BTreeMap<(String, Id), Vec<&Event>> = BTreeMap::new();
    for event in world.events.iter().filter(|it| is_delivered(it)) {
        if let Some(message) = &event.message_id {
            by_id.entry((event.ledger(), message.clone())).or_default().push(event);
        }
    }
    for ((ledger, message), events) in by_id {
        let subject = Subject::Message { ledger, message };
        let counts = [false, true].map(|narrow| {
            let messages = joined(deliveries(world, &events));
            let whole =
                messages.iter().filter(|one| one.iter().any(|it| is_whole(world, it, narrow)));
            whole.count().saturating_sub(1)
        });
        // A hole may show when all was confirmed.
        let whole = joined(deliveries(world, &events)).len() - 1;
        let late = events.iter().any(|it| {
            let source = &world.sources[&it.from];
            !source.is_watched() || source.shows_holes_late()
        });
        if counts[0] != counts[1] || (counts[0] < whole && late) {
            verdicts.unsure(Kind::IdCollision, &subject);
        }
        if counts[0] > 0 {
            let verdict = Verdict::of(Kind::IdCollision, &subject, Severity::Critical);
            verdicts.key(Verdict { count: counts[0] as u64, ..verdict });
        }
    }
}

fn is_delivered(event: &Event) -> bool {
    event.is_acceptance() || event.outcome == Outcome::ReplayBlocked
}

/// Runs of one source.
fn deliveries<'a>(world: &World, events: &[&'a Event]) -> Vec<Vec<&'a Event>> {
    let mut events = events.to_vec();
    events.sort_by_key(|it| (it.from.clone(), it.sequence(), it.occurred_us));
    let mut deliveries: Vec<Vec<&Event>> = Vec::new();
    for event in events {
        match deliveries.last_mut() {
            Some(run) if goes_on(world, run[run.len() - 1], event) => run.push(event),
            _ => deliveries.push(vec![event]),
        }
    }
    deliveries
}

fn goes_on(world: &World, last: &Event, next: &Event) -> bool {
    let clock_was_set_back = next.occurred_us < last.occurred_us
        && last.boot == next.boot
        && last.seq.is_some()
        && !world.events.iter().any(|it| {
            it.from == last.from
                && it.boot == last.boot
                && (it.seq > last.seq && it.seq < next.seq)
                && is_delivered(it)
        });
    last.from == next.from
        && ((last.occurred_us - next.occurred_us).abs() < APART_US || clock_was_set_back)
}

/// Deliveries that share settlements, directly or through others.
fn joined(deliveries: Vec<Vec<&Event>>) -> Vec<Vec<Vec<&Event>>> {
    let keys = |message: &[Vec<&Event>]| -> BTreeSet<Key> {
        message.iter().flatten().map(|it| key_of(it, &it.signature)).collect()
    };
    let mut messages: Vec<Vec<Vec<&Event>>> = deliveries.into_iter().map(|it| vec![it]).collect();
    let joins = |messages: &[Vec<Vec<&Event>>]| {
        (0..messages.len())
            .flat_map(|a| (0..a).map(move |b| (a, b)))
            .find(|(a, b)| !keys(&messages[*a]).is_disjoint(&keys(&messages[*b])))
    };
    while let Some((a, b)) = joins(&messages) {
        let one = messages.remove(a);
        messages[b].extend(one);
    }
    messages
}

/// Whether nothing of a delivery can be missing.
fn is_whole(world: &World, delivery: &[&Event], narrow: bool) -> bool {
    let times = || delivery.iter().map(|it| it.occurred_us);
    let (first_us, last_us) = (times().min().unwrap(), times().max().unwrap());
    let blind = world.sources[&delivery[0].from].blind(None, narrow);
    blind
        .iter()
        .all(|(from_us, to_us)| *to_us <= first_us - APART_US || *from_us >= last_us + APART_US)
}
