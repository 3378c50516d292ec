//! `missed_duplicate`, by trying every order that is possible. Of several acceptances a reversal
//! undoes the last one before it: of its own game, if there is one.

use std::collections::{BTreeMap, BTreeSet};

use dedupwatch::audit::{Kind, Severity, Subject};
use dedupwatch::outcome::{Amounts, Effect, Event, Id, Net};

use super::verdict::{Verdict, Verdicts};
use super::world::{Key, World, before, key_of};

/// With more steps, orders are not tried.
const STEPS_MAX: usize = 7;

pub fn subject(event: &Event, reference: &Id) -> Subject {
    let (ledger, player) = (event.ledger(), event.player.clone());
    Subject::Ref { ledger, player, reference: reference.clone() }
}

pub fn judge(world: &World, verdicts: &mut Verdicts) {
    let mut by_ref: BTreeMap<(String, Id, Id), Vec<&Event>> = BTreeMap::new();
    for event in world.events.iter().filter(|it| it.is_acceptance() && moved(it)) {
        if let Some(reference) = &event.reference {
            let place = (event.ledger(), event.player.clone(), reference.clone());
            by_ref.entry(place).or_default().push(event);
        }
    }
    for ((_, _, reference), booked) in by_ref {
        let subject = subject(booked[0], &reference);
        let mut by_net: BTreeMap<Net, Vec<&Event>> = BTreeMap::new();
        for event in booked {
            by_net.entry(event.signature.net()).or_default().push(event);
        }
        let (mut count, mut amounts) = (0, Amounts::default());
        for (net, booked) in by_net {
            let Some(too_many) = too_many(world, &reference, net, &booked) else {
                verdicts.unsure(Kind::MissedDuplicate, &subject);
                continue;
            };
            count += too_many as u64;
            (0..too_many).for_each(|_| amounts = amounts.plus(Amounts::at_risk(net)));
        }
        if count > 0 {
            let verdict = Verdict::of(Kind::MissedDuplicate, &subject, Severity::Warning);
            verdicts.key(Verdict { count, amounts, ..verdict });
        }
    }
}

fn moved(event: &Event) -> bool {
    !matches!(event.effect, Some(Effect::Failed | Effect::Unknown))
}

/// What happened to a ref.
#[derive(Clone, Copy)]
enum Step<'a> {
    Booked(&'a Event),
    Undone(&'a Event),
}

/// How many settlements stand beyond one, at least; `None` if that is not said by the rule.
fn too_many(world: &World, reference: &Id, net: Net, booked: &[&Event]) -> Option<usize> {
    let undoes = |it: &&Event| {
        it.is_acceptance()
            && it.reversal_of.as_ref() == Some(reference)
            && it.effect != Some(Effect::Failed)
            && i128::from(it.signature.net().0) == -i128::from(net.0)
            && (it.ledger(), &it.player) == (booked[0].ledger(), &booked[0].player)
    };
    let mut steps: Vec<Step<'_>> = booked.iter().map(|it| Step::Booked(it)).collect();
    steps.extend(world.events.iter().filter(undoes).map(Step::Undone));
    if steps.len() == booked.len() {
        return Some(distinct(booked) - 1);
    }
    if steps.len() > STEPS_MAX {
        return None;
    }
    let mut answers = BTreeSet::new();
    play(&mut Vec::new(), &steps, &mut answers);
    // What is certain is the least.
    answers.first().copied()
}

/// All that may be left, in every order that contradicts nothing.
fn play(standing: &mut Vec<Event>, left: &[Step<'_>], answers: &mut BTreeSet<usize>) {
    let event = |step: &Step<'_>| match step {
        Step::Booked(event) | Step::Undone(event) => (*event).clone(),
    };
    if left.is_empty() {
        let standing: Vec<&Event> = standing.iter().collect();
        answers.insert(distinct(&standing).saturating_sub(1));
    }
    for (at, step) in left.iter().enumerate() {
        if left.iter().any(|other| before(&event(other), &event(step))) {
            continue;
        }
        let mut rest = left.to_vec();
        rest.remove(at);
        match step {
            Step::Booked(event) => {
                standing.push((*event).clone());
                play(standing, &rest, answers);
                standing.pop();
            }
            Step::Undone(undoing) => {
                let of_its_game = |it: &Event| it.signature.game() == undoing.signature.game();
                let undone = standing.iter().rposition(of_its_game);
                let mut others = standing.clone();
                if let Some(at) = undone.or_else(|| standing.len().checked_sub(1)) {
                    others.remove(at);
                }
                play(&mut others, &rest, answers);
            }
        }
    }
}

fn distinct(booked: &[&Event]) -> usize {
    let keys = booked.iter().map(|it| key_of(it, &it.signature));
    keys.collect::<BTreeSet<Key>>().len()
}
