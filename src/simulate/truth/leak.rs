//! What stands more often than once, ref by ref.

use std::collections::BTreeMap;

use super::{About, Expected, Money, Stories, Told, Truth, Wanted, acceptances};
use crate::outcome::{Effect, GuardMode, Id, Signature};

/// Two acceptances closer than this raced (audit.md).
const RACE_US: i64 = 1_000_000;

/// (ledger, player, ref).
type Reference = (String, Id, Id);

/// What of a ref's bookings stands.
#[derive(Default)]
struct Account<'a> {
    standing: Vec<&'a Told>,
    voided: bool,
}

impl Truth {
    pub(super) fn leaks(&self, stories: &Stories<'_>, expected: &mut Expected) {
        let reversals = self.reversals();
        for (key, story) in stories {
            let accepted = acceptances(story, &key.2);
            if accepted.len() < 2 {
                continue;
            }
            let undone = reversals_of(&reversals, &accepted);
            let surplus = surplus(&accepted, &undone);
            let Some((first, again)) = surplus.first.zip(surplus.too_many.first()) else {
                continue;
            };
            let count = surplus.too_many.len() as u64;
            let wanted = Wanted::exactly(count)
                .worth(Money::surplus(key.2.net(), count))
                .because(causes(story, &key.2, first, again));
            expected.add("duplicate_leak", About::Key(key.clone()), wanted);
        }
        self.renamed(expected);
    }

    /// Bookings that undo others, by the ref that they undo.
    fn reversals(&self) -> BTreeMap<Reference, Vec<&Told>> {
        let mut reversals: BTreeMap<Reference, Vec<&Told>> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance()) {
            let failed = told.event.effect == Some(Effect::Failed);
            if let Some(undone) = told.event.reversal_of.clone().filter(|_| !failed) {
                let about = (told.event.ledger(), told.event.player.clone(), undone);
                reversals.entry(about).or_default().push(told);
            }
        }
        reversals
    }

    /// One ref with one net that stands under several signatures.
    fn renamed(&self, expected: &mut Expected) {
        let mut by_ref: BTreeMap<(Reference, i64), Vec<&Signature>> = BTreeMap::new();
        for told in self.told.iter().filter(|told| told.event.is_acceptance() && told.stands()) {
            let event = &told.event;
            let Some(reference) = event.reference.clone() else { continue };
            let about = (event.ledger(), event.player.clone(), reference);
            let names = by_ref.entry((about, event.signature.net().0)).or_default();
            if !names.contains(&&event.signature) {
                names.push(&event.signature);
            }
        }
        let renamed = by_ref.into_iter().filter(|(_, names)| names.len() > 1);
        for (((ledger, player, _), _), _) in renamed {
            expected.count("missed_duplicate", About::Player(ledger, player), 1, u64::MAX);
        }
    }
}

struct Surplus<'a> {
    first: Option<&'a Told>,
    too_many: Vec<&'a Told>,
}

fn reversals_of<'a>(all: &BTreeMap<Reference, Vec<&'a Told>>, accepted: &[&Told]) -> Vec<&'a Told> {
    let mut undone: Vec<&Told> = Vec::new();
    for told in accepted {
        let Some(reference) = told.event.reference.clone() else { continue };
        let about = (told.event.ledger(), told.event.player.clone(), reference);
        for reversal in all.get(&about).into_iter().flatten() {
            let opposite = reversal.event.signature.net().0 == -told.event.signature.net().0;
            let known = undone.iter().any(|other| other.order == reversal.order);
            if opposite && !known {
                undone.push(reversal);
            }
        }
    }
    undone
}

/// Plays the bookings and their reversals as they were.
fn surplus<'a>(accepted: &[&'a Told], undone: &[&'a Told]) -> Surplus<'a> {
    let mut steps: Vec<&Told> = accepted.iter().chain(undone).copied().collect();
    steps.sort_by_key(|told| told.order);
    let mut by_ref: BTreeMap<Option<&Id>, Account<'_>> = BTreeMap::new();
    for told in steps {
        let is_reversal = undone.iter().any(|other| other.order == told.order);
        if is_reversal {
            let account = by_ref.entry(told.event.reversal_of.as_ref()).or_default();
            account.voided |= account.standing.pop().is_some() && account.standing.is_empty();
        } else if told.stands() {
            by_ref.entry(told.event.reference.as_ref()).or_default().standing.push(told);
        }
    }
    let moved: Vec<&Told> = accepted.iter().copied().filter(|told| told.stands()).collect();
    let named = by_ref.iter().any(|(name, it)| name.is_some() && !it.standing.is_empty());
    let (mut standing, mut too_many) = (Vec::new(), Vec::new());
    for (name, account) in by_ref {
        let may_stand = if name.is_some() { !account.voided } else { !named };
        too_many.extend(account.standing.iter().skip(usize::from(may_stand)).copied());
        standing.extend(account.standing);
    }
    too_many.sort_by_key(|told| told.order);
    standing.sort_by_key(|told: &&Told| told.order);
    // Beside which they are one too many: what rightly stands, else what was undone.
    let is_right = |told: &&&Told| too_many.iter().all(|other| other.order != told.order);
    let rightly = standing.iter().find(is_right).or_else(|| moved.iter().find(is_right));
    Surplus { first: rightly.copied(), too_many }
}

/// The first cause that holds (audit.md); two where it is not known which.
fn causes(story: &[&Told], signature: &Signature, first: &Told, again: &Told) -> Vec<&'static str> {
    if again.event.guard_mode == Some(GuardMode::Off) {
        return vec!["guard_off"];
    }
    let fell = story.iter().filter(|told| told.evicts(signature));
    let between = |(surely, perhaps), told: &&Told| {
        let (after, before) = (first.before(told), told.before(again));
        (surely | (after.0 && before.0), perhaps | (after.1 && before.1))
    };
    let (surely, perhaps) = fell.copied().fold((false, false), |sum, told| between(sum, &told));
    if surely {
        return vec!["evicted"];
    }
    let same_source = first.event.from == again.event.from;
    let distance_us = (again.at_us() - first.at_us()).abs();
    let cause = if same_source && first.boot != again.boot {
        "restart"
    } else if distance_us < RACE_US {
        "race"
    } else if !same_source {
        "split"
    } else {
        "unknown"
    };
    if perhaps { vec![cause, "evicted"] } else { vec![cause] }
}
