//! The way from an instance to the collector: batches that wait for company, overtake each other,
//! are sent twice, and pile up while the collector is away.

use std::collections::BTreeMap;

use dedupwatch::outcome::{Boot, SourceName};

use super::dice::Dice;
use super::plan::Plan;
use super::world::{Said, Words};
use super::{BEGIN_US, SECOND_US};

/// Something that reaches the collector.
#[derive(Clone, Debug)]
pub struct Entry {
    pub received_us: i64,
    pub words: Words,
}

/// Words of one batch: whose, and which.
type Batch = (SourceName, Option<Boot>, i64);

/// What reaches the collector, in order. What was said before the collector was there does not.
pub fn entries(plan: &Plan, said: &[Said]) -> Vec<Entry> {
    let mut dice = Dice::new(plan.seed ^ 0x11e);
    let resume_us: Vec<i64> =
        (0..plan.instances).map(|_| SECOND_US * dice.between(0, 40)).collect();
    let mut batches: BTreeMap<Batch, Vec<&Said>> = BTreeMap::new();
    let mut entries = Vec::new();
    for one in said {
        match &one.words {
            Words::Event(event) => {
                let gathered = (one.at_us - BEGIN_US) / plan.gather_us;
                let batch = (event.from.clone(), event.boot, gathered);
                batches.entry(batch).or_default().push(one);
            }
            Words::Heartbeat(_) => {
                let received_us = one.at_us + dice.between(1_000, 30_000);
                let back_us = |to_us| to_us + resume_us[one.instance];
                let away = plan.outage.is_some_and(|(from_us, to_us, _)| {
                    (from_us..back_us(to_us)).contains(&received_us)
                });
                let words = one.words.clone();
                entries.extend((!away).then_some(Entry { received_us, words }));
            }
        }
    }
    let gather_us = plan.gather_us;
    for ((_, _, gathered), batch) in batches {
        let left_us = BEGIN_US + (gathered + 1) * gather_us;
        let at_us = arrival_us(plan, &mut dice, left_us);
        let again = dice.chance(plan.troubled).then(|| at_us + dice.between(0, 10_000_000));
        let resumed_us = resume_us[batch[0].instance];
        for came_us in [Some(at_us), again].into_iter().flatten() {
            let received_us = after_outage(plan, &mut dice, came_us, resumed_us);
            let all = batch.iter().map(|said| Entry { received_us, words: said.words.clone() });
            entries.extend(all);
        }
    }
    entries.retain(|entry| entry.received_us >= plan.install_us);
    entries.sort_by_key(|entry| entry.received_us);
    entries
}

fn arrival_us(plan: &Plan, dice: &mut Dice, left_us: i64) -> i64 {
    // Whom nobody watches has to be prompt: nothing else says that more is to come.
    let longest_us = if plan.watched { 8_000_000 } else { 700_000 };
    let tries_us = if dice.chance(plan.troubled) { dice.between(0, longest_us) } else { 0 };
    left_us + tries_us + dice.between(1_000, 50_000)
}

/// What does not get through waits, and is sent in any order among what is new.
fn after_outage(plan: &Plan, dice: &mut Dice, at_us: i64, resumed_us: i64) -> i64 {
    match plan.outage {
        Some((from_us, to_us, drain_us)) if (from_us..to_us).contains(&at_us) => {
            to_us + resumed_us / 2 + dice.between(0, drain_us)
        }
        _ => at_us,
    }
}
