//! `duplicate_leak`, by trying: every order that is possible, and every fate of what nobody knows.

use std::collections::BTreeMap;

use dedupwatch::audit::{Kind, Severity};
use dedupwatch::outcome::{Amounts, Effect, Event, GuardMode, Id};

use super::verdict::{Verdict, Verdicts};
use super::world::{Key, SKEW_US, World, before, key_of};

/// More orders are not tried.
const ORDERS_MAX: usize = 6;

/// What happened to a ref.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Step {
    /// An acceptance of the key.
    Stands,
    /// An acceptance of another key under the same ref.
    Other,
    Undone,
    /// By a reversal of which nobody knows whether it moved money.
    PerhapsUndone,
}

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    for (key, acceptances) in world.acceptances() {
        let surplus = surplus(world, &key, &acceptances);
        let Some(surplus) = surplus else {
            verdicts.unsure(Kind::DuplicateLeak, &key);
            continue;
        };
        if surplus.is_empty() {
            continue;
        }
        let nets = surplus.iter().map(|event| event.signature.net());
        let amounts = nets.fold(Amounts::default(), |sum, net| sum.plus(Amounts::surplus(net)));
        let zero = amounts == Amounts::default();
        verdicts.key(Verdict {
            count: surplus.len() as u64,
            amounts,
            cause: cause(world, &key, &acceptances, &surplus),
            ..Verdict::of(
                Kind::DuplicateLeak,
                &key,
                if zero { Severity::Info } else { Severity::Critical },
            )
        });
    }
}

/// The acceptances too many, the latest ones; `None` if that depends on what nobody knows.
fn surplus<'a>(world: &World, key: &Key, all: &[&'a Event]) -> Option<Vec<&'a Event>> {
    let known: Vec<&Event> =
        all.iter().copied().filter(|it| it.effect != Some(Effect::Failed)).collect();
    let known: Vec<&Event> =
        known.into_iter().filter(|it| it.effect != Some(Effect::Unknown)).collect();
    let mut by_ref: BTreeMap<Option<&Id>, Vec<&Event>> = BTreeMap::new();
    for event in known {
        by_ref.entry(event.reference.as_ref()).or_default().push(event);
    }
    let mut surplus = Vec::new();
    let mut others_stand = Vec::new();
    for (reference, events) in &by_ref {
        let Some(reference) = reference else { continue };
        let (stands, too_many) = of_ref(world, key, reference, events)?;
        others_stand.extend(earliest(events, stands));
        surplus.extend(latest(events, too_many));
    }
    for of_one in world.uses(by_ref.get(&None).map_or(&[][..], Vec::as_slice)) {
        let named = others_stand.iter().any(|it| world.is_one_use(of_one[0], it));
        surplus.extend(latest(&of_one, of_one.len() - usize::from(!named)));
    }
    Some(surplus)
}

fn latest<'a>(events: &[&'a Event], n: usize) -> Vec<&'a Event> {
    let mut events = events.to_vec();
    events.sort_by_key(|event| (event.occurred_us, event.boot, event.seq));
    events.split_off(events.len() - n)
}

fn earliest<'a>(events: &[&'a Event], n: usize) -> Vec<&'a Event> {
    let mut events = events.to_vec();
    events.sort_by_key(|event| (event.occurred_us, event.boot, event.seq));
    events.truncate(n);
    events
}

/// How many acceptances of a ref stand, and how many of them are too many.
fn of_ref(world: &World, key: &Key, reference: &Id, events: &[&Event]) -> Option<(usize, usize)> {
    let mut steps: Vec<(&Event, Step)> =
        events.iter().map(|event| (*event, Step::Stands)).collect();
    let of_player = world.events.iter().filter(|event| {
        event.is_acceptance() && event.ledger() == key.ledger && event.player == key.player
    });
    for event in of_player {
        // It undoes one acceptance: of just what it gives back.
        let undone = -i128::from(event.signature.net().0);
        if event.reversal_of.as_ref() == Some(reference)
            && event.effect != Some(Effect::Failed)
            && events.iter().any(|it| i128::from(it.signature.net().0) == undone)
        {
            let sure = event.effect != Some(Effect::Unknown);
            steps.push((event, if sure { Step::Undone } else { Step::PerhapsUndone }));
        } else if event.reference.as_ref() == Some(reference)
            && key_of(event, &event.signature) != *key
        {
            steps.push((event, Step::Other));
        }
    }
    // What carries the very ref that it undoes contradicts itself: is it booked under it?
    let undoes_itself = |event: &&Event| {
        event.reference.as_ref() == Some(reference) && event.reversal_of == event.reference
    };
    if steps.iter().any(|(event, _)| undoes_itself(event)) {
        return None;
    }
    let is = |wanted: Step| steps.iter().any(|(_, step)| *step == wanted);
    if !is(Step::Undone) && !is(Step::PerhapsUndone) {
        return Some((events.len(), events.len().saturating_sub(1)));
    }
    if steps.len() > ORDERS_MAX || is(Step::Other) {
        return None;
    }
    // What is certain is the least.
    let mut answers = Vec::new();
    orders(&mut Vec::new(), &steps, &mut |order| {
        answers.push(played(order, true));
        answers.push(played(order, false));
    });
    answers.into_iter().min_by_key(|(_, too_many)| *too_many)
}

fn played(steps: &[Step], perhaps: bool) -> (usize, usize) {
    let (mut stands, mut voided) = (0, false);
    for step in steps {
        match step {
            Step::Stands | Step::Other => stands += 1,
            Step::PerhapsUndone if !perhaps => {}
            // One that undoes nothing voids nothing.
            Step::Undone | Step::PerhapsUndone if stands == 0 => {}
            Step::Undone | Step::PerhapsUndone => {
                stands -= 1;
                voided |= stands == 0;
            }
        }
    }
    (stands, usize::saturating_sub(stands, usize::from(!voided)))
}

/// Every order of the steps that contradicts nothing that is known.
fn orders(done: &mut Vec<Step>, left: &[(&Event, Step)], each: &mut impl FnMut(&[Step])) {
    if left.is_empty() {
        each(done);
    }
    for (at, (event, step)) in left.iter().enumerate() {
        if left.iter().any(|(other, _)| before(other, event)) {
            continue;
        }
        let mut rest = left.to_vec();
        rest.remove(at);
        done.push(*step);
        orders(done, &rest, each);
        done.pop();
    }
}

/// The cause, where two acceptances are all there is. Which of them is too many is not always the
/// later one: without ref it is, where the other carries one.
fn cause(world: &World, key: &Key, all: &[&Event], surplus: &[&Event]) -> Option<String> {
    let ([one, two], [again]) = (all, surplus) else { return None };
    let first = if one == again { two } else { one };
    let evicted = world.evictions().into_iter().any(|(event, signature)| {
        key_of(event, signature) == *key && before(first, event) && before(event, again)
    });
    let same = first.from == again.from;
    let cause = if again.guard_mode == Some(GuardMode::Off) {
        "guard_off"
    } else if evicted {
        "evicted"
    } else if same && first.boot != again.boot {
        "restart"
    } else if (again.occurred_us - first.occurred_us).abs() < SKEW_US {
        "race"
    } else if !same {
        "split"
    } else {
        "unknown"
    };
    Some(cause.into())
}
